//! A webhook that follows a script: answers, silences and resets on a loopback port, on a thread of its own.
//!
//! Keeps every request that was read to its end and tells which records it took. Speaks as much HTTP/1.1 as clients of
//! the webhook do: `POST`, `Content-Length`, keep-alive. What is posted elsewhere gets a 404 and costs no step.

use std::collections::{HashSet, VecDeque};
use std::fmt;
use std::io;
use std::net::SocketAddr;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use bytes::Bytes;
use serde_json::Value as Json;

use super::loopback::{Serving, each_connection};
use super::webhook_wire as wire;
use crate::apcloudy::{Signer, Value};

/// What happens to one request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Step {
    /// The request is read and answered with this status; 2xx takes its records.
    Answer(u16),
    /// As `Answer`, with more headers and a body.
    AnswerWith {
        /// The status.
        status: u16,
        /// Headers beside `Content-Length`.
        headers: Vec<(String, String)>,
        /// The body.
        body: String,
    },
    /// The request is read; then nothing for this long. If the client is still there, the default step follows; of one
    /// that left nothing is taken.
    Hang(Duration),
    /// The request is read and its records are taken; then the connection is reset without an answer.
    TakeThenReset,
    /// The connection is reset before the request is read.
    Reset,
}

/// A request that was read to its end.
#[derive(Debug, Clone)]
pub struct Received {
    /// When its last byte had come.
    pub at: Instant,
    /// Which connection it came on, from 0.
    pub connection: usize,
    /// Its path with query.
    pub target: String,
    /// Its headers in their order, names in lower case.
    pub headers: Vec<(String, String)>,
    /// Its body.
    pub body: Bytes,
    /// Whether `X-SIGNATURE` is the signature of `X-TIMESTAMP` and body.
    pub is_signed: bool,
    /// The status it was answered with, if it was.
    pub status: Option<u16>,
    /// Whether its records were taken.
    pub is_taken: bool,
}

impl Received {
    /// The first header of this name, in lower case.
    #[must_use]
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_str())
    }

    /// The `Idempotency-Key`.
    #[must_use]
    pub fn key(&self) -> Option<&str> {
        self.header("idempotency-key")
    }

    /// The body as text.
    #[must_use]
    pub fn text(&self) -> String {
        String::from_utf8_lossy(&self.body).into_owned()
    }
}

/// The records that were taken, in order of arrival.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Records {
    /// `data.requests`
    pub requests: Vec<Json>,
    /// `data.items`
    pub items: Vec<Json>,
    /// `data.logs`
    pub logs: Vec<Json>,
    /// `data.stats`
    pub stats: Vec<Json>,
}

/// A webhook on the loopback. Stops when it is dropped.
pub struct ScriptedWebhook {
    addr: SocketAddr,
    shared: Arc<Shared>,
    _serving: Serving,
}

type Refuse = Arc<dyn Fn(&str) -> Option<u16> + Send + Sync>;

pub(super) struct Shared {
    signer: Signer,
    state: Mutex<State>,
    changed: Condvar,
}

struct State {
    script: VecDeque<Step>,
    default: Step,
    refuse: Option<Refuse>,
    received: Vec<Received>,
    calls: usize,
    connections: usize,
}

impl ScriptedWebhook {
    /// Listens on a free port and answers 200 to everything. Signatures are checked with `secret`; a wrong one is
    /// noted, not refused.
    ///
    /// # Errors
    /// When the system gives no port, no thread or no event queue.
    pub fn start(secret: &str) -> io::Result<Self> {
        Self::with_script(secret, [])
    }

    /// As [`start`](Self::start), with the first steps.
    ///
    /// # Errors
    /// The same as [`start`](Self::start).
    pub fn with_script(secret: &str, script: impl IntoIterator<Item = Step>) -> io::Result<Self> {
        let state = State {
            script: script.into_iter().collect(),
            default: Step::Answer(200),
            refuse: None,
            received: Vec::new(),
            calls: 0,
            connections: 0,
        };
        let shared = Arc::new(Shared { signer: Signer::new(secret.into()), state: Mutex::new(state), changed: Condvar::new() });
        let listener = std::net::TcpListener::bind(("127.0.0.1", 0))?;
        let addr = listener.local_addr()?;
        let served = Arc::clone(&shared);
        let serving = Serving::start("scripted-webhook", || accept(listener, served))?;
        Ok(Self { addr, shared, _serving: serving })
    }

    /// The base URL, for `APCLOUDY_URL`.
    #[must_use]
    pub fn url(&self) -> String {
        format!("http://{}", self.addr)
    }

    /// Adds steps to the end of the script.
    pub fn script(&self, steps: impl IntoIterator<Item = Step>) {
        self.shared.lock().script.extend(steps);
    }

    /// What happens when the script is at its end; 200 at first.
    pub fn set_default(&self, step: Step) {
        self.shared.lock().default = step;
    }

    /// Answers bodies for which `refuse` names a status with that status, where they would be answered with 2xx.
    pub fn refuse_if(&self, refuse: impl Fn(&str) -> Option<u16> + Send + Sync + 'static) {
        self.shared.lock().refuse = Some(Arc::new(refuse));
    }

    /// Every request that was read to its end, in order.
    #[must_use]
    pub fn requests(&self) -> Vec<Received> {
        self.shared.lock().received.clone()
    }

    /// Their bodies.
    #[must_use]
    pub fn bodies(&self) -> Vec<String> {
        self.shared.lock().received.iter().map(Received::text).collect()
    }

    /// How many steps were taken, resets before the request is read included.
    #[must_use]
    pub fn calls(&self) -> usize {
        self.shared.lock().calls
    }

    /// How many connections were accepted.
    #[must_use]
    pub fn connections(&self) -> usize {
        self.shared.lock().connections
    }

    /// The records taken so far, each `Idempotency-Key` once. A body that is not of the webhook's shape adds nothing.
    #[must_use]
    pub fn records(&self) -> Records {
        let state = self.shared.lock();
        let mut seen = HashSet::new();
        let mut records = Records::default();
        for request in state.received.iter().filter(|request| request.is_taken) {
            if request.key().is_none_or(|key| seen.insert(key.to_owned())) {
                records.add(&request.body);
            }
        }
        records
    }

    /// Waits until so many steps were taken; `false` if they are not within the limit.
    pub fn wait_for_calls(&self, calls: usize, limit: Duration) -> bool {
        let state = self.shared.lock();
        let waited = self.shared.changed.wait_timeout_while(state, limit, |state| state.calls < calls);
        let (state, _) = waited.unwrap_or_else(PoisonError::into_inner);
        state.calls >= calls
    }
}

impl fmt::Debug for ScriptedWebhook {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ScriptedWebhook").field("addr", &self.addr).field("calls", &self.calls()).finish_non_exhaustive()
    }
}

impl Records {
    /// How many there are, stats included.
    #[must_use]
    pub const fn total(&self) -> usize {
        self.requests.len() + self.items.len() + self.logs.len() + self.stats.len()
    }

    fn add(&mut self, body: &[u8]) {
        let Ok(parsed) = Value::parse(body) else { return };
        let Ok(parsed) = serde_json::from_str::<Json>(&parsed.write_strict()) else { return };
        let Some(data) = parsed.get("data") else { return };
        let lists = [("requests", &mut self.requests), ("items", &mut self.items), ("logs", &mut self.logs)];
        for (name, list) in lists {
            list.extend(data.get(name).and_then(Json::as_array).into_iter().flatten().cloned());
        }
        self.stats.extend(data.get("stats").cloned());
    }
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The next step of the script. Whoever waits for calls is told.
    pub(super) fn next_step(&self) -> Step {
        let mut state = self.lock();
        state.calls += 1;
        self.changed.notify_all();
        state.script.pop_front().unwrap_or_else(|| state.default.clone())
    }

    pub(super) fn default_step(&self) -> Step {
        self.lock().default.clone()
    }

    /// The step without its 2xx, when the body is refused.
    pub(super) fn refused(&self, step: Step, body: &[u8]) -> Step {
        if !matches!(step, Step::Answer(200..=299) | Step::AnswerWith { status: 200..=299, .. }) {
            return step;
        }
        let refuse = self.lock().refuse.clone();
        refuse.and_then(|refuse| refuse(&String::from_utf8_lossy(body))).map_or(step, Step::Answer)
    }

    /// Notes a request and gives back its place.
    pub(super) fn note(&self, request: wire::Request, connection: usize) -> usize {
        let header = |name: &str| request.headers.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_str());
        let (timestamp, signature) = (header("x-timestamp").unwrap_or_default(), header("x-signature").unwrap_or_default());
        let is_signed = self.signer.verify(timestamp, &request.body, signature);
        let mut state = self.lock();
        state.received.push(Received {
            at: Instant::now(),
            connection,
            target: request.target,
            headers: request.headers,
            body: request.body,
            is_signed,
            status: None,
            is_taken: false,
        });
        state.received.len() - 1
    }

    /// Notes what came of a request, before the client can know it.
    pub(super) fn settle(&self, place: usize, status: Option<u16>, is_taken: bool) {
        if let Some(received) = self.lock().received.get_mut(place) {
            (received.status, received.is_taken) = (status, is_taken);
        }
    }
}

async fn accept(listener: std::net::TcpListener, shared: Arc<Shared>) {
    each_connection(listener, |stream| {
        let connection = {
            let mut state = shared.lock();
            state.connections += 1;
            state.connections - 1
        };
        tokio::spawn(wire::serve(stream, Arc::clone(&shared), connection));
    })
    .await;
}

#[cfg(test)]
mod tests;
