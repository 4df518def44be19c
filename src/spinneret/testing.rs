//! A server without a socket, for tests on the paused clock: answers by script, and remembers what it was asked.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing)]

mod logs;

use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use bytes::Bytes;
use futures_util::FutureExt as _;
use futures_util::future::BoxFuture;
use http::{HeaderMap, HeaderValue};
use serde_json::{Value, json};
use tokio::time::Instant;

pub(crate) use self::logs::Logs;
use super::error_kind::ErrorKind;
use super::procedure::Procedure;
pub(crate) use super::transport::loopback;
use super::transport::{Attempt, Fault, Phase, Reply, Transport};

/// What the server does with one call.
#[derive(Debug, Clone)]
pub(crate) enum Step {
    /// 200 with this body.
    Answer(Value),
    /// A Connect error.
    Refuse { status: u16, code: &'static str, reason: &'static str, hint: Option<u64> },
    /// Any status and body.
    Bare { status: u16, body: &'static str },
    /// No answer.
    Fault(ErrorKind, Phase),
    /// First this long nothing.
    After(Duration, Box<Step>),
    /// Nothing until the caller gives up: the read timeout ends it.
    Hang,
}

/// A call that was made.
#[derive(Debug, Clone)]
pub(crate) struct Seen {
    pub(crate) procedure: Procedure,
    pub(crate) body: Value,
    pub(crate) read_timeout: Duration,
    pub(crate) at: Instant,
}

/// The server.
#[derive(Debug, Default)]
pub(crate) struct Script {
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    steps: HashMap<Procedure, VecDeque<Step>>,
    otherwise: HashMap<Procedure, Step>,
    seen: Vec<Seen>,
    leases: u32,
    is_closed: bool,
}

impl Script {
    /// A server that grants, takes and releases everything, has no configuration and no secret.
    pub(crate) fn new() -> Arc<Self> {
        Arc::default()
    }

    /// The next call of this kind is answered so; several are answered in turn.
    pub(crate) fn next(&self, procedure: Procedure, step: Step) -> &Self {
        self.state.lock().unwrap().steps.entry(procedure).or_default().push_back(step);
        self
    }

    /// Every call of this kind for which there is no [`Self::next`].
    pub(crate) fn always(&self, procedure: Procedure, step: Step) -> &Self {
        self.state.lock().unwrap().otherwise.insert(procedure, step);
        self
    }

    /// The calls so far, of all kinds, in their order.
    pub(crate) fn seen(&self) -> Vec<Seen> {
        self.state.lock().unwrap().seen.clone()
    }

    /// The bodies of the calls of one kind.
    pub(crate) fn bodies(&self, procedure: Procedure) -> Vec<Value> {
        self.seen().into_iter().filter(|seen| seen.procedure == procedure).map(|seen| seen.body).collect()
    }

    /// The reports of all `Report` calls, one after the other.
    pub(crate) fn reports(&self) -> Vec<Value> {
        self.bodies(Procedure::Report).iter().flat_map(|body| body["reports"].as_array().cloned().unwrap_or_default()).collect()
    }

    /// Whether the transport was closed.
    pub(crate) fn is_closed(&self) -> bool {
        self.state.lock().unwrap().is_closed
    }

    fn step(&self, attempt: &Attempt) -> Step {
        let body: Value = serde_json::from_slice(&attempt.body).unwrap();
        let mut state = self.state.lock().unwrap();
        state.seen.push(Seen {
            procedure: attempt.procedure,
            body: body.clone(),
            read_timeout: attempt.read_timeout,
            at: Instant::now(),
        });
        if let Some(step) = state.steps.get_mut(&attempt.procedure).and_then(VecDeque::pop_front) {
            return step;
        }
        if let Some(step) = state.otherwise.get(&attempt.procedure) {
            return step.clone();
        }
        Step::Answer(match attempt.procedure {
            Procedure::Acquire => {
                state.leases += 1;
                lease(&format!("lse_{}", state.leases))
            }
            Procedure::AcquireBatch => {
                let count = body["count"].as_u64().unwrap_or(1);
                let first = state.leases + 1;
                state.leases += u32::try_from(count).unwrap();
                let leases: Vec<Value> = (first..=state.leases).map(|n| lease(&format!("lse_{n}"))).collect();
                json!({"leases": leases, "requested": count})
            }
            Procedure::Renew => json!({"expires_at": "2026-09-16T08:40:00Z"}),
            Procedure::Release => json!({"released": true}),
            Procedure::Report => {
                json!({"accepted": body["reports"].as_array().map_or(0, Vec::len), "duplicated": 0, "rejected": []})
            }
            Procedure::GetConfig | Procedure::GetSecret => {
                return Step::Refuse { status: 404, code: "not_found", reason: "not_found", hint: None };
            }
            Procedure::BatchGetConfig => json!({"items": [], "missing": body["items"]}),
            Procedure::WatchConfig => {
                let wait = body["timeout_ms"].as_u64().filter(|wait| *wait > 0).unwrap_or(30_000);
                return Step::After(Duration::from_millis(wait), Box::new(Step::Answer(json!({"items": []}))));
            }
        })
    }

    async fn answer(&self, attempt: Attempt) -> Result<Reply, Fault> {
        let mut step = self.step(&attempt);
        let deadline = Instant::now() + attempt.read_timeout;
        loop {
            match step {
                Step::After(wait, then) if Instant::now() + wait < deadline => {
                    tokio::time::sleep(wait).await;
                    step = *then;
                }
                Step::After(..) | Step::Hang => {
                    tokio::time::sleep_until(deadline).await;
                    step = Step::Fault(ErrorKind::Timeout, Phase::Ambiguous);
                }
                Step::Fault(kind, phase) => return Err(Fault { kind, phase, message: format!("scripted {kind}"), source: None }),
                Step::Answer(body) => return Ok(reply(200, HeaderMap::new(), body.to_string())),
                Step::Bare { status, body } => return Ok(reply(status, HeaderMap::new(), body.to_owned())),
                Step::Refuse { status, code, reason, hint } => {
                    let mut headers = HeaderMap::new();
                    if !reason.is_empty() {
                        headers.insert("spinneret-reason", HeaderValue::from_static(reason));
                    }
                    if let Some(hint) = hint {
                        headers.insert("spinneret-retry-after-ms", HeaderValue::from(hint));
                    }
                    return Ok(reply(status, headers, json!({"code": code, "message": format!("scripted {code}")}).to_string()));
                }
            }
        }
    }
}

impl Transport for Script {
    fn send(&self, attempt: Attempt) -> BoxFuture<'_, Result<Reply, Fault>> {
        self.answer(attempt).boxed()
    }

    fn close(&self) {
        self.state.lock().unwrap().is_closed = true;
    }
}

fn reply(status: u16, headers: HeaderMap, body: String) -> Reply {
    Reply { status, headers, body: Bytes::from(body) }
}

/// A granted lease as the server writes it, with a credential and a proxy.
pub(crate) fn lease(id: &str) -> Value {
    json!({
        "lease": {
            "lease_id": id, "identity_id": "idt_1", "identity_type": "account", "endpoint_group": "search",
            "expires_at": "2026-09-16T08:30:00Z", "sticky": false, "probe": false
        },
        "credential": {
            "cookies": {"sid": "c4n4ry-cookie"}, "cookie_header": "sid=c4n4ry-cookie",
            "headers": {"User-Agent": "c4n4ry-agent"}, "query": {"sig": "c4n4ry-query"}, "json": null, "values": {}
        },
        "proxy": {"proxy_id": "pxy_1", "url": "http://user:c4n4ry-password@10.0.0.1:3128", "kind": "datacenter", "region": "de"},
        "hints": {"renew_before_ms": 30000}
    })
}
