//! The embedded control plane over HTTP: the node API as Connect JSON, health, the ledger, and a few things to do by hand.
//!
//! Decides nothing about leases: [`Plane`] does. Here is what stands around a call on the wire (wire contract, sections 1 to 3,
//! 21.3 and 31): its order of checks, its waiting, its end when the caller goes away or the server stops.

mod admin;
mod books;
mod configs;
mod leases;
mod mounted;
mod read;
mod route;
#[cfg(test)]
mod tests;
mod turnstile;
mod write;

use std::future::Future;
use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use http::header::AUTHORIZATION;
use http::{HeaderMap, StatusCode};
use tokio::sync::watch;
use tokio::time::{Instant, sleep, timeout};

pub(crate) use self::mounted::Mounted;
use self::route::Route;
use self::turnstile::Turnstile;
pub(crate) use super::desk::Clock;
use super::desk::Desk;
use super::model::refusal::Refusal;
use super::model::token::Token;
use super::model::{Ms, Plane};
use crate::dice::Dice;
use crate::http_server::{Answer, Asked, BodyFault, Head, Reply};
use crate::spinneret::Procedure;

/// Bytes of the largest request body; what the HTTP server must let through for all calls to be answered.
pub(crate) const LARGEST_BODY: usize = read::LARGEST;

/// How long a call may take, and how much longer than its own waiting a watch may.
const CALL: Duration = Duration::from_secs(60);
const WATCH_GRACE: Duration = Duration::from_secs(10);
const LONGEST_WATCH: Duration = Duration::from_secs(60);
/// The bounds of the rest between two looks at what is due.
const SHORTEST_REST: Ms = 10;
const LONGEST_REST: Ms = 1_000;
/// Longest name of a node, bytes.
const NODE: usize = 128;

/// How a face is set up.
#[derive(Debug, Clone)]
pub(crate) struct FaceOptions {
    /// What stands before all paths, `/prefix` or nothing; a slash at its end is dropped.
    pub(crate) base: String,
    /// Units of the admission gate; 0 lets everybody in.
    pub(crate) gate: u32,
    /// The seed of the hints that spread those who are sent away.
    pub(crate) seed: u64,
    /// Tells the time to the plane.
    pub(crate) clock: Clock,
}

impl Default for FaceOptions {
    fn default() -> Self {
        Self { base: String::new(), gate: 64, seed: 0, clock: Clock::default() }
    }
}

/// A plane as an HTTP server answers for it.
#[derive(Debug)]
pub(crate) struct Face {
    base: String,
    desk: Desk,
    turnstile: Turnstile,
    stopping: watch::Sender<bool>,
}

/// What is known of a call besides its body.
#[derive(Debug)]
struct Caller<'a> {
    headers: &'a HeaderMap,
    peer: IpAddr,
    /// How long the caller waits in all.
    timeout: Option<Duration>,
}

impl Face {
    /// A face of this plane. Must be called inside a tokio runtime.
    pub(crate) fn new(plane: Plane, options: FaceOptions) -> Self {
        let FaceOptions { base, gate, seed, clock } = options;
        Self {
            base: base.trim_end_matches('/').to_owned(),
            desk: Desk::new(plane, clock),
            turnstile: Turnstile::new(gate, Dice::new(seed)),
            stopping: watch::Sender::new(false),
        }
    }

    /// Whether this path is the face's to answer; others are for whoever else listens at the same address.
    pub(crate) fn owns(&self, path: &str) -> bool {
        const OWN: [&str; 4] = ["/spinneret.", "/plane/", "/healthz", "/readyz"];
        path.strip_prefix(&*self.base).is_some_and(|path| OWN.into_iter().any(|own| path.starts_with(own)))
    }

    /// Does something with the plane between two calls (reload a file, say), at the plane's time. Short: every call waits.
    pub(crate) fn with_plane<T>(&self, act: impl FnOnce(&mut Plane, Ms) -> T) -> T {
        self.desk.with(act)
    }

    /// Does what time brings (leases that end, bans that are over, breakers) until [`Self::shut_down`]. For a task of its own.
    pub(crate) async fn keep_time(self: Arc<Self>) {
        while !self.is_stopping() {
            let rest = self.desk.with(|plane, now| {
                plane.tick(now);
                plane.next_due().map_or(LONGEST_REST, |due| due.saturating_sub(now))
            });
            // What comes up meanwhile is late by the longest rest at most.
            let rest = Duration::from_millis(rest.clamp(SHORTEST_REST, LONGEST_REST));
            self.unless_stopping(sleep(rest)).await;
        }
    }

    /// Ends all waiting: watches with `canceled`, acquires with what they found last. Calls go on to be answered. Call it before
    /// the HTTP server is stopped.
    pub(crate) fn shut_down(&self) {
        self.stopping.send_replace(true);
    }

    fn is_stopping(&self) -> bool {
        *self.stopping.borrow()
    }

    /// Waits for something, and no longer than until the server stops.
    async fn unless_stopping(&self, wait: impl Future<Output = ()>) {
        let mut stopping = self.stopping.subscribe();
        tokio::select! {
            () = wait => {}
            // The sender lives as long as the face.
            _ = stopping.wait_for(|is_stopping| *is_stopping) => {}
        }
    }

    /// Who calls.
    fn enter(&self, caller: &Caller<'_>) -> Result<Arc<Token>, Refusal> {
        // A header that is no text is a token nobody has.
        let authorization = caller.headers.get(AUTHORIZATION).map(|value| value.to_str().unwrap_or("Bearer ?"));
        self.desk.with(|plane, now| plane.enter(authorization, Some(caller.peer), now))
    }

    async fn call(&self, procedure: Procedure, asked: Asked) -> Result<Reply, Refusal> {
        let Asked { peer, headers, body, .. } = asked;
        let limit = route::timeout(&headers)?;
        let body = read::unpacked(&headers, body)?;
        let caller = Caller { headers: &headers, peer, timeout: limit };
        let own = if procedure == Procedure::WatchConfig { LONGEST_WATCH + WATCH_GRACE } else { CALL };
        let answer = async {
            match procedure {
                Procedure::Acquire => self.acquire(&caller, &body).await.map(|answer| write::success(&answer, &headers)),
                Procedure::AcquireBatch => {
                    self.acquire_batch(&caller, &body).await.map(|answer| write::success(&answer, &headers))
                }
                Procedure::Renew => self.renew(&caller, &body).map(|answer| write::success(&answer, &headers)),
                Procedure::Release => self.release(&caller, &body).map(|answer| write::success(&answer, &headers)),
                Procedure::Report => self.report(&caller, &body).map(|answer| write::success(&answer, &headers)),
                Procedure::GetConfig => self.get_config(&caller, &body).map(|answer| write::success(&answer, &headers)),
                Procedure::BatchGetConfig => {
                    self.batch_get_config(&caller, &body).map(|answer| write::success(&answer, &headers))
                }
                Procedure::WatchConfig => self.watch_config(&caller, &body).await.map(|answer| write::success(&answer, &headers)),
                Procedure::GetSecret => self.get_secret(&caller, &body).map(|answer| write::success(&answer, &headers)),
            }
        };
        // A call that is answered in one go is answered, however little time it was given.
        timeout(limit.map_or(own, |limit| limit.min(own)), answer).await.unwrap_or_else(|_| Err(Refusal::deadline_exceeded()))
    }
}

impl Answer for Face {
    async fn answer(&self, asked: Asked) -> Reply {
        match Route::of(&self.base, &asked.path) {
            None => route::nothing(),
            Some(Route::Health) => route::plain(StatusCode::OK, "ok\n"),
            Some(Route::Ready) if self.is_stopping() => route::plain(StatusCode::SERVICE_UNAVAILABLE, "stopping\n"),
            Some(Route::Ready) => route::plain(StatusCode::OK, "ready\n"),
            Some(Route::Ledger) => write::success(&books::Shown::of(&self.ledger()), &asked.headers),
            Some(Route::Deed(deed)) => {
                let done = read::unpacked(&asked.headers, asked.body).and_then(|body| self.act(deed, &body));
                match done {
                    Ok((answer, done)) => {
                        tracing::info!(target: "dragline::plane", "by hand from {}: {done}", asked.peer);
                        write::success(&answer, &asked.headers)
                    }
                    Err(refusal) => write::refusal(&refusal),
                }
            }
            Some(Route::Call(procedure)) => {
                let (begin, node) = (Instant::now(), node(&asked.headers));
                let reply = self.call(procedure, asked).await;
                let took_ms = begin.elapsed().as_millis();
                match reply {
                    Ok(reply) => {
                        tracing::debug!(target: "dragline::plane", %procedure, node, took_ms, "answered");
                        reply
                    }
                    Err(refusal) => {
                        let reason = refusal.reason.map_or("", |reason| reason.name());
                        tracing::debug!(target: "dragline::plane", %procedure, node, took_ms, code = %refusal.code, reason, "refused");
                        write::refusal(&refusal)
                    }
                }
            }
        }
    }

    fn refuse(&self, head: &Head) -> Option<Reply> {
        Route::check(&self.base, head).err().map(|reply| *reply)
    }

    /// A call that found no connection has consumed nothing and may come again: it is shed.
    fn refuse_full(&self, head: &Head) -> Reply {
        match Route::of(&self.base, &head.path) {
            Some(Route::Call(_)) => write::refusal(&self.turnstile.refuse()),
            _ => route::plain(StatusCode::SERVICE_UNAVAILABLE, "no connection is free; come again in a moment\n"),
        }
    }

    fn refuse_body(&self, _head: &Head, fault: BodyFault) -> Reply {
        write::refusal(&match fault {
            BodyFault::TooLarge(_) => Refusal::body_too_large(),
            BodyFault::TooSlow(_) => Refusal::deadline_exceeded(),
            BodyFault::CutOff => Refusal::malformed("the body ended before it was complete; send it again"),
        })
    }
}

/// The name a node gives itself, cleaned (wire contract, section 1.2).
fn node(headers: &HeaderMap) -> String {
    let given = headers.get("x-spinneret-node").map(|value| String::from_utf8_lossy(value.as_bytes()));
    let is_plain = |character: char| character.is_ascii_alphanumeric() || "._:@/-".contains(character);
    let cleaned: String =
        given.as_deref().unwrap_or_default().chars().map(|character| if is_plain(character) { character } else { '_' }).collect();
    cleaned.trim_matches('_').chars().take(NODE).collect()
}
