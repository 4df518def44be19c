//! The parsers: each runs callbacks and item pipelines on a thread of its own.
//!
//! A callback runs behind a fence; many may be suspended at once, each holding a slot of the parser's link.
//! Facts are held for a moment so that the engine is woken once for several pages.

mod fence;
pub mod message;
mod noting;
pub(crate) mod pulse;
pub(crate) mod stage;

use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;

use futures_util::future::LocalBoxFuture;
use tokio::sync::oneshot;
use tokio::time::Instant;

use crate::actor::{Cx, Facts, Slot, Worker};
use crate::api::failure::Failure;
use crate::api::out::{Origin, OutCore, Port, Scraped};
use crate::api::response::Response;
use crate::api::signal::{Lifecycle, Signal};
use crate::api::spider::{CallbackResult, Running, UnknownStep};
use crate::downloader::message::Attempt;
use crate::downloader::transport::Reply;
use crate::engine::message::Fact;
use crate::engine::ticket::Tag;
use crate::html::PageOptions;
use crate::scheduler::job::Job;
use fence::Fence;
use message::{CallbackFault, Control, Effects, Marks, Order, Parsed, Part};
use noting::Noting;
use pulse::Pulse;
use stage::Stage;

/// Facts held at most before the engine is told.
const HELD: usize = 16;
/// A held fact waits at most this long while the parser has more to do.
const HOLD: Duration = Duration::from_millis(1);

/// Limits of callbacks.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ParserConfig {
    /// `CALLBACK_MAX_EFFECTS`.
    pub max_effects: usize,
    /// `DEPTH_PRIORITY`.
    pub depth_priority: i32,
    /// `CALLBACK_TIMEOUT`.
    pub callback_timeout: Duration,
    /// `HTML_ENGINE` and the bounds of a page.
    pub html: PageOptions,
}

/// Runs callbacks.
pub(crate) struct Parser {
    stage: Stage,
    config: ParserConfig,
    engine: Facts<Fact>,
    pulse: Arc<Pulse>,
    held: Vec<Fact>,
    held_since: Option<Instant>,
    /// Dropped to stop every running callback.
    alive: Option<tokio::sync::watch::Sender<()>>,
}

/// What a finished run leaves.
struct Ended {
    parsed: Box<Parsed>,
}

impl Parser {
    pub(crate) fn new(stage: Stage, config: ParserConfig, engine: Facts<Fact>, pulse: Arc<Pulse>) -> Self {
        Self {
            stage,
            config,
            engine,
            pulse,
            held: Vec::new(),
            held_since: None,
            alive: Some(tokio::sync::watch::Sender::new(())),
        }
    }

    fn page(&mut self, tag: Tag, job: Arc<Job>, reply: Arc<Reply>, attempt: Attempt, slot: Slot, cx: &mut Cx<'_, Self>) {
        let marks = Rc::new(RefCell::new(Marks::default()));
        let response = Response::new(job.clone(), reply, attempt.latency, marks.clone());
        let response = response.under(attempt.lease).read_with(self.config.html);
        let spider = self.stage.listeners.spider.clone();
        self.run(tag, Some(job.clone()), Origin::Page, marks, Some(response.clone()), slot, cx, move |out| {
            Box::pin(async move {
                match spider.parse(job.request.step(), response, out) {
                    Ok(running) => Ok(running.await),
                    Err(UnknownStep) => Err(UnknownStep),
                }
            })
        });
    }

    fn handle_order(&mut self, order: Order, slot: Slot, cx: &mut Cx<'_, Self>) {
        let spider = self.stage.listeners.spider.clone();
        match order {
            Order::Page { tag, job, reply, attempt } => self.page(tag, job, reply, attempt, slot, cx),
            Order::Failed { tag, job, fault, reply, attempt } => {
                let marks = Rc::new(RefCell::new(Marks::default()));
                let Attempt { latency, lease, .. } = attempt.unwrap_or_default();
                let response = reply.map(|reply| {
                    let response = Response::new(job.clone(), reply, latency, marks.clone());
                    response.under(lease.clone()).read_with(self.config.html)
                });
                let failure = Failure::new(job.clone(), fault, response.clone(), lease, marks.clone());
                self.run(tag, Some(job.clone()), Origin::Page, marks, response, slot, cx, move |out| {
                    Box::pin(async move {
                        match spider.failed(job.request.step(), failure, out) {
                            Ok(running) => Ok(running.await),
                            Err(UnknownStep) => Err(UnknownStep),
                        }
                    })
                });
            }
            Order::Start { tag, cursor } => {
                self.run(tag, None, Origin::Start { skip: cursor }, Rc::default(), None, slot, cx, move |out| {
                    whole(spider, |s| s.start(out))
                });
            }
            Order::Idle { tag, made } => {
                self.run(tag, None, Origin::Idle { made }, Rc::default(), None, slot, cx, move |out| {
                    whole(spider, |s| s.idle(out))
                });
            }
            Order::Signal(event) => {
                self.stage.listeners.tell(&event.signal());
                if matches!(event, Lifecycle::Closed { .. }) {
                    self.held.push(Fact::Farewell);
                    self.tell();
                }
            }
        }
    }

    #[allow(clippy::too_many_arguments, reason = "one call a kind of order; a struct would only rename them")]
    fn run(
        &mut self,
        tag: Tag,
        job: Option<Arc<Job>>,
        origin: Origin,
        marks: Rc<RefCell<Marks>>,
        response: Option<Response>,
        slot: Slot,
        cx: &mut Cx<'_, Self>,
        callback: impl FnOnce(OutCore) -> LocalBoxFuture<'static, Result<(OutCore, CallbackResult), UnknownStep>> + 'static,
    ) {
        self.pulse.begin(tag);
        let held = Rc::new(Cell::new(0));
        let committing = Rc::new(Cell::new(0));
        let port = Rc::new(Commit {
            tag,
            engine: self.engine.clone(),
            stage: self.stage.clone(),
            committing: committing.clone(),
            job: job.clone(),
            under_way: Rc::default(),
        });
        let context = self.stage.listeners.context.clone();
        let lease = response.as_ref().and_then(|response| response.lease().cloned());
        let out =
            OutCore::new(origin, job.clone(), context, port, self.config.max_effects, self.config.depth_priority, held.clone())
                .under(lease)
                .of(response.clone());
        let Some(alive) = &self.alive else {
            self.finish(Ended { parsed: Box::new(cancelled(tag)) });
            return;
        };
        let mut gone = alive.subscribe();
        let stage = self.stage.clone();
        let (listeners, page, limit) = (stage.listeners.clone(), job.clone(), self.config.callback_timeout);
        let response = response.map(|response| Noting::new(response, stage.listeners.context.stats().clone()));
        let body = async move {
            let (mut out, result) = match callback(out).await {
                Ok(ended) => ended,
                Err(UnknownStep) => return Err(UnknownStep),
            };
            let unanswered = || response.as_ref().and_then(|r| r.take_selector_errors().first().map(ToString::to_string));
            let fault = match result {
                Err(error) if error.is_stop() => Some(CallbackFault::Cancelled),
                // What the callback missed may be missing because of that.
                Err(error) => Some(CallbackFault::Error(match unanswered() {
                    Some(selector) => format!("{error}; {selector}"),
                    None => error.to_string(),
                })),
                Ok(()) => out.take_refused().map(|e| e.to_string()).or_else(unanswered).map(CallbackFault::Error),
            };
            drop(response);
            if let Some(fault) = fault {
                return Ok(Err(fault));
            }
            // A part whose `flush` was dropped goes first. It fails only when the job stops.
            if out.committed().await.is_err() {
                return Ok(Err(CallbackFault::Cancelled));
            }
            let (jobs, items) = out.take();
            Ok(Ok(stage.run(jobs, items, job.as_deref()).await))
        };
        let fence = Fence::new(body, tag, self.pulse.clone(), committing, self.config.callback_timeout);
        let mut whole = Box::pin(async move {
            let ended = tokio::select! {
                biased;
                ended = fence => ended,
                _ = gone.changed() => Err(CallbackFault::Cancelled),
            };
            let discarded = held.get();
            let marks = marks.take();
            let mut parsed =
                Parsed { tag, effects: Effects::default(), result: Ok(()), marks, discarded: 0, unknown_step: false };
            match ended {
                Ok(Ok(Ok(effects))) => parsed.effects = effects,
                Ok(Ok(Err(fault))) => parsed.result = Err(fault),
                Ok(Err(UnknownStep)) => parsed.unknown_step = true,
                Err(fault) => parsed.result = Err(fault),
            }
            if let Err(fault) = &parsed.result {
                parsed.discarded = discarded;
                if *fault != CallbackFault::Cancelled {
                    let (url, step) = page.as_deref().map(|j| (j.url().as_str(), j.request.step().name())).unwrap_or_default();
                    let error = fault_text(fault, (limit, limit));
                    listeners.tell(&Signal::SpiderError { url, step: &step, error: &error });
                }
            }
            Ended { parsed: Box::new(parsed) }
        });
        // Most callbacks end in their first poll: those need no task. A pending one is polled again by its
        // task at once, which replaces the waker given here.
        let waker = futures_util::task::noop_waker();
        match whole.as_mut().poll(&mut std::task::Context::from_waker(&waker)) {
            Poll::Ready(ended) => {
                drop(slot);
                self.finish(ended);
            }
            Poll::Pending => cx.spawn(whole, move |parser, ended, _| {
                drop(slot);
                parser.finish(ended);
                parser.tell();
            }),
        }
    }

    fn finish(&mut self, ended: Ended) {
        self.held.push(Fact::Parsed(ended.parsed));
        let since = *self.held_since.get_or_insert_with(Instant::now);
        if self.held.len() >= HELD || since.elapsed() >= HOLD {
            self.tell();
        }
    }

    fn tell(&mut self) {
        self.held_since = None;
        if self.held.is_empty() {
            return;
        }
        for fact in &self.held {
            if let Fact::Parsed(parsed) = fact {
                self.pulse.end(parsed.tag);
            }
        }
        self.engine.post_all(self.held.drain(..));
    }
}

impl Worker for Parser {
    type Order = Order;
    type Control = Control;

    fn handle(&mut self, order: Order, slot: Slot, cx: &mut Cx<'_, Self>) {
        self.handle_order(order, slot, cx);
    }

    fn control(&mut self, control: Control, _: &mut Cx<'_, Self>) {
        match control {
            Control::Abandon => self.alive = None,
        }
    }

    fn turn_end(&mut self, _: &mut Cx<'_, Self>) {
        self.tell();
    }
}

/// Commits parts of a running callback's effects, one at a time.
struct Commit {
    tag: Tag,
    engine: Facts<Fact>,
    stage: Stage,
    committing: Rc<Cell<u32>>,
    job: Option<Arc<Job>>,
    under_way: Rc<RefCell<Option<UnderWay>>>,
}

/// A part on its way. It belongs to the callback, not to the `flush` that waits for it: that may be dropped.
struct UnderWay {
    whole: LocalBoxFuture<'static, Result<(), String>>,
    /// Whether the engine has it.
    posted: Rc<Cell<bool>>,
}

impl Port for Commit {
    fn begin(&self, jobs: Vec<Job>, items: Vec<Scraped>) {
        let (tag, engine, stage, job) = (self.tag, self.engine.clone(), self.stage.clone(), self.job.clone());
        let posted = Rc::new(Cell::new(false));
        let told = posted.clone();
        let whole = Box::pin(async move {
            let effects = stage.run(jobs, items, job.as_deref()).await;
            let (done, answer) = oneshot::channel();
            if !engine.post(Fact::Part(Part { tag, effects, done })) {
                return Err("the job is over".to_owned());
            }
            told.set(true);
            answer.await.unwrap_or_else(|_| Err("the job is stopping".to_owned()))
        });
        *self.under_way.borrow_mut() = Some(UnderWay { whole, posted });
    }

    fn answered(&self) -> LocalBoxFuture<'static, Result<(), String>> {
        let (under_way, committing) = (self.under_way.clone(), self.committing.clone());
        let mut waiting = None;
        Box::pin(std::future::poll_fn(move |cx| {
            // Pipelines run in here; they do not know the port, so nothing borrows this twice.
            let mut place = under_way.borrow_mut();
            let Some(part) = place.as_mut() else { return Poll::Ready(Ok(())) };
            let polled = part.whole.as_mut().poll(cx);
            match &polled {
                Poll::Ready(_) => {
                    waiting = None;
                    *place = None;
                }
                // The wait for the engine has no limit; pipelines have that of any await.
                Poll::Pending if part.posted.get() => {
                    waiting.get_or_insert_with(|| Waiting::new(committing.clone()));
                }
                Poll::Pending => {}
            }
            polled
        }))
    }
}

/// Counts a commit under way, also when its future is dropped.
struct Waiting(Rc<Cell<u32>>);

impl Waiting {
    fn new(count: Rc<Cell<u32>>) -> Self {
        count.set(count.get() + 1);
        Self(count)
    }
}

impl Drop for Waiting {
    fn drop(&mut self) {
        self.0.set(self.0.get() - 1);
    }
}

fn whole(
    spider: Arc<dyn crate::api::spider::DynSpider>,
    call: impl for<'a> FnOnce(&'a dyn crate::api::spider::DynSpider) -> Running<'a> + 'static,
) -> LocalBoxFuture<'static, Result<(OutCore, CallbackResult), UnknownStep>> {
    Box::pin(async move { Ok(call(spider.as_ref()).await) })
}

fn cancelled(tag: Tag) -> Parsed {
    Parsed {
        tag,
        effects: Effects::default(),
        result: Err(CallbackFault::Cancelled),
        marks: Marks::default(),
        discarded: 0,
        unknown_step: false,
    }
}

/// The words of a callback's failure, for log, record and stats.
pub(crate) fn fault_text(fault: &CallbackFault, limits: (Duration, Duration)) -> String {
    match fault {
        CallbackFault::Error(error) => error.clone(),
        CallbackFault::Panic(text) => format!("panicked: {text}"),
        CallbackFault::TimedOut => format!("one await took longer than {} s (CALLBACK_TIMEOUT)", limits.0.as_secs_f64()),
        CallbackFault::Stalled => {
            format!("held its thread for {} s without an await (PARSE_STALL); it was abandoned", limits.1.as_secs_f64())
        }
        CallbackFault::Lost => {
            "its parser was replaced because of another callback; what it had committed before stays, the rest is lost".to_owned()
        }
        CallbackFault::Cancelled => "the job stopped".to_owned(),
    }
}
