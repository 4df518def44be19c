//! The spider of these tests: what its callbacks do is a table by URL.

use std::collections::{HashMap, VecDeque};
use std::fmt;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, OnceLock};
use std::time::Duration;

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use tokio::time::Instant;

use crate::api::context::Context;
use crate::api::failure::Failure;
use crate::api::out::Out;
use crate::api::request::Request;
use crate::api::response::Response;
use crate::api::signal::Signal;
use crate::api::spider::{CallbackError, CallbackResult, Spider};

/// One thing a callback does.
#[derive(Clone)]
pub(super) enum Do {
    /// Follows a link.
    Follow(String),
    /// Makes this request.
    Make(Request),
    /// Gives an item with this `id`.
    Item(String),
    /// Gives something that is no object.
    Broken,
    /// Adds a marker to the report.
    Mark(&'static str),
    Sleep(Duration),
    /// Commits and waits.
    Flush,
    /// Commits, but waits no longer than this.
    FlushWithin(Duration),
    Panic,
    Error(&'static str),
    /// `send`s so many requests, one by one.
    Send(usize, String),
    /// Adds so many requests without a pause.
    Push(usize, String),
    /// Holds its thread until told otherwise.
    Spin(Arc<AtomicBool>),
    /// Never ends.
    Hang,
    /// Stops the job.
    Stop(&'static str),
    /// Holds something over the next awaits that panics when it is dropped.
    Bomb,
}

/// What all parts of a stand note, on one clock.
#[derive(Default)]
pub(super) struct Notes {
    origin: OnceLock<Instant>,
    lines: Mutex<Vec<(Duration, String)>>,
}

/// What the callbacks do, and what they saw.
#[derive(Default)]
pub(super) struct Script {
    pub(super) start: Vec<Do>,
    pub(super) pages: HashMap<String, Vec<Do>>,
    pub(super) failed: HashMap<String, Vec<Do>>,
    /// One list for each call of `idle`.
    pub(super) idle: Mutex<VecDeque<Vec<Do>>>,
    pub(super) domains: Vec<String>,
    pub(super) notes: Arc<Notes>,
    /// What pages do that are not in the table.
    pub(super) other: Vec<Do>,
    pub(super) running: AtomicUsize,
    /// The most callbacks that ever ran at once.
    pub(super) most: AtomicUsize,
    /// Requests given to `send` so far.
    pub(super) sent: AtomicUsize,
}

#[derive(Deserialize)]
pub(super) struct Robot {
    #[serde(skip)]
    pub(super) script: Arc<Script>,
}

#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) enum Step {
    Page,
}

impl Notes {
    pub(super) fn begin(&self) {
        let _ = self.origin.set(Instant::now());
    }

    pub(super) fn now(&self) -> Duration {
        self.origin.get().map_or(Duration::ZERO, Instant::elapsed)
    }

    pub(super) fn add(&self, line: impl Into<String>) {
        let at = self.now();
        self.lines.lock().unwrap().push((at, line.into()));
    }

    pub(super) fn lines(&self) -> Vec<(Duration, String)> {
        self.lines.lock().unwrap().clone()
    }
}

impl fmt::Debug for Do {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Follow(url) => write!(f, "Follow({url})"),
            Self::Make(request) => write!(f, "Make({})", request.url()),
            Self::Item(id) => write!(f, "Item({id})"),
            Self::Sleep(time) => write!(f, "Sleep({time:?})"),
            Self::Flush => f.write_str("Flush"),
            Self::Panic => f.write_str("Panic"),
            Self::Error(text) => write!(f, "Error({text})"),
            _ => f.write_str("…"),
        }
    }
}

pub(super) fn follow(url: &str) -> Do {
    Do::Follow(url.to_owned())
}

pub(super) fn item(id: &str) -> Do {
    Do::Item(id.to_owned())
}

/// A request for `url`, changed.
pub(super) fn make(url: &str, change: impl FnOnce(&mut Request)) -> Do {
    let mut request = Request::get(url, &Step::Page).unwrap();
    change(&mut request);
    Do::Make(request)
}

/// Counts a callback while it runs.
struct Counted<'a>(&'a AtomicUsize);

impl Drop for Counted<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::SeqCst);
    }
}

struct Bomb;

impl Drop for Bomb {
    fn drop(&mut self) {
        assert!(std::thread::panicking(), "a scripted panic of a drop");
    }
}

impl Robot {
    async fn act(&self, list: &[Do], response: Option<&Response>, out: &mut Out<Self>) -> CallbackResult {
        let running = self.script.running.fetch_add(1, Ordering::SeqCst) + 1;
        self.script.most.fetch_max(running, Ordering::SeqCst);
        let mut bombs = Vec::new();
        let _counted = Counted(&self.script.running);
        for one in list {
            match one {
                Do::Follow(url) => drop(out.get(url, Step::Page)?),
                Do::Make(request) => drop(out.request(request.clone())?),
                Do::Item(id) => out.item(json!({ "id": id })),
                Do::Broken => out.item(json!([1])),
                Do::Mark(text) => response.expect("a mark needs a response").mark(*text),
                Do::Sleep(time) => tokio::time::sleep(*time).await,
                Do::Flush => out.flush().await?,
                Do::FlushWithin(time) => match tokio::time::timeout(*time, out.flush()).await {
                    Ok(flushed) => flushed?,
                    Err(_) => self.script.notes.add("flush dropped"),
                },
                Do::Panic => panic!("a scripted panic"),
                Do::Error(text) => return Err(CallbackError::new(*text)),
                Do::Send(count, prefix) => {
                    // Below the page itself where nothing else is said.
                    let own = response.filter(|_| prefix.is_empty()).map(|r| format!("{}/", r.url()));
                    let prefix = own.as_ref().unwrap_or(prefix);
                    for n in 0..*count {
                        out.send(Request::get(&format!("{prefix}{n}"), &Step::Page)?).await?;
                        self.script.sent.fetch_add(1, Ordering::SeqCst);
                    }
                }
                Do::Push(count, prefix) => {
                    for n in 0..*count {
                        out.get(&format!("{prefix}{n}"), Step::Page)?;
                    }
                }
                Do::Spin(stop) => {
                    while !stop.load(Ordering::SeqCst) {
                        std::thread::sleep(Duration::from_millis(5));
                    }
                }
                Do::Hang => std::future::pending().await,
                Do::Stop(reason) => out.context().stop(*reason),
                Do::Bomb => bombs.push(Bomb),
            }
        }
        Ok(())
    }
}

impl Spider for Robot {
    const NAME: &'static str = "robot";
    type Step = Step;
    type Item = Value;

    fn allowed_domains(&self) -> Vec<String> {
        self.script.domains.clone()
    }

    async fn start(&self, out: &mut Out<Self>) -> CallbackResult {
        self.script.notes.add("start");
        self.act(&self.script.start, None, out).await
    }

    async fn parse(&self, _: Step, response: Response, out: &mut Out<Self>) -> CallbackResult {
        let url = response.url().as_str().to_owned();
        self.script.notes.add(format!("parse {} {url}", response.status().as_u16()));
        if let Some(lease) = response.lease() {
            self.script.notes.add(format!("under {} {url}", lease.id()));
        }
        let list = self.script.pages.get(&url).unwrap_or(&self.script.other);
        self.act(list, Some(&response), out).await
    }

    async fn failed(&self, _: Step, failure: Failure, out: &mut Out<Self>) -> CallbackResult {
        let url = failure.request().url().as_str().to_owned();
        let status = failure.response().map_or("-".to_owned(), |r| r.status().as_u16().to_string());
        self.script.notes.add(format!("failed {} {status} {url} x{}", failure.kind(), failure.attempts()));
        let list = self.script.failed.get(&url).map_or(&[][..], |list| list);
        let response = failure.response().cloned();
        self.act(list, response.as_ref(), out).await
    }

    async fn idle(&self, out: &mut Out<Self>) -> CallbackResult {
        self.script.notes.add("idle");
        let list = self.script.idle.lock().unwrap().pop_front().unwrap_or_default();
        self.act(&list, None, out).await
    }

    fn signal(&self, signal: &Signal<'_>, _: &Context) {
        self.script.notes.add(format!("signal {}", signal_text(signal)));
    }
}

pub(super) fn signal_text(signal: &Signal<'_>) -> String {
    match signal {
        Signal::SpiderOpened => "opened".to_owned(),
        Signal::SpiderIdle => "idle".to_owned(),
        Signal::SpiderClosed { reason, .. } => format!("closed {reason}"),
        Signal::SpiderError { url, step, error } => format!("error {url} {step}: {error}"),
        Signal::ItemScraped { item } => format!("scraped {item}"),
        Signal::ItemDropped { reason } => format!("dropped {reason}"),
        Signal::ItemError { reason } => format!("broken {reason}"),
        Signal::ConfigChanged { group, key, version, .. } => format!("config {group}/{key} {version}"),
    }
}
