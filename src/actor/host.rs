//! Host: the one actix actor, which runs a [`Worker`] in turns.
//!
//! A turn fires due timers, handles up to [`TURN`](super::TURN) messages and finished futures, then flushes.
//! After that many the host yields to the runtime, so timers, sockets and neighbours on the same thread
//! get theirs whatever the backlog. A panic anywhere in a turn is caught here and handed to supervision.
//!
//! It yields through tokio and not through `ctx.notify` or an address: actix would run either within the
//! same poll, and the clock would never advance.

use std::any::Any;
use std::future::Future;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::Pin;
use std::sync::atomic::Ordering;
use std::task::{self, Poll};

use actix::{Actor, ActorContext, ActorFuture, AsyncContext, Context, Handler};
use futures_util::StreamExt;
use futures_util::future::LocalBoxFuture;
use tokio::time::{Instant, Sleep};

use super::bell::Wake;
use super::cx::{Core, Cx, Timer};
use super::lane::{Rest, Taken};
use super::supervise::{End, Tenure};
use super::{TURN, Worker};

/// Starts an incarnation on this thread; needs a `LocalSet`, as every arbiter has.
pub(crate) fn start<W: Worker>(tenure: Tenure<W>) {
    let core = Core::new(tenure.inbox().clone(), tenure.epoch());
    Host { worker: None, core, left: TURN, yielding: None, sleep: None, tenure }.start();
}

// Fields drop in this order: when an arbiter stops, the worker is gone before its end is reported.
struct Host<W: Worker> {
    worker: Option<W>,
    core: Core<W>,
    /// What may still be handled before the next yield.
    left: usize,
    yielding: Option<LocalBoxFuture<'static, ()>>,
    sleep: Option<(Instant, Pin<Box<Sleep>>)>,
    tenure: Tenure<W>,
}

/// How a turn went.
enum Flow {
    /// Nothing to do until woken.
    Wait,
    /// The actor ends for good.
    Stop,
    /// Another incarnation serves the inbox.
    Retired,
}

impl<W: Worker> Actor for Host<W> {
    type Context = Context<Self>;

    fn started(&mut self, ctx: &mut Context<Self>) {
        let address = ctx.address().recipient();
        // When it does not serve any more, the first turn finds that out.
        self.core.inbox.lanes.attach(self.core.epoch, address);
        ctx.spawn(Pump);
    }
}

impl<W: Worker> Handler<Wake> for Host<W> {
    type Result = ();

    /// The wake has done its work by having the actor polled: the pump runs after the mailbox.
    fn handle(&mut self, Wake: Wake, _: &mut Context<Self>) {}
}

/// The only future of a host: each poll is one turn.
struct Pump;

impl<W: Worker> ActorFuture<Host<W>> for Pump {
    type Output = ();

    fn poll(self: Pin<&mut Self>, host: &mut Host<W>, ctx: &mut Context<Host<W>>, task: &mut task::Context<'_>) -> Poll<()> {
        // The state after a panic is thrown away, so nothing half-done can be seen.
        let end = match catch_unwind(AssertUnwindSafe(|| host.turn(task))) {
            Ok(Flow::Wait) => return Poll::Pending,
            Ok(Flow::Stop) => Some(End::Stopped),
            Ok(Flow::Retired) => None,
            Err(panic) => Some(End::Panicked(panic_text(panic.as_ref()))),
        };
        host.discard();
        host.tenure.end(end);
        ctx.stop();
        Poll::Ready(())
    }
}

impl<W: Worker> Host<W> {
    fn turn(&mut self, task: &mut task::Context<'_>) -> Flow {
        if let Some(yielding) = &mut self.yielding {
            if yielding.as_mut().poll(task).is_pending() {
                return Flow::Wait;
            }
            self.yielding = None;
            self.left = TURN;
        }
        let Self { worker, core, left, yielding, sleep, tenure } = self;
        if !tenure.is_current() {
            return Flow::Retired;
        }
        if worker.is_none() && core.inbox.lanes.bell.is_halted() {
            return Flow::Stop;
        }
        let worker = match worker {
            Some(worker) => worker,
            None => {
                let worker = worker.insert(tenure.build());
                worker.started(&mut Cx { core });
                worker
            }
        };
        loop {
            let before = *left;
            let mut flow = fire_timers(worker, core, left, sleep, task, tenure);
            if flow.is_none() {
                flow = handle_messages(worker, core, left, tenure);
            }
            if flow.is_none() {
                flow = finish_futures(worker, core, left, task, tenure);
            }
            if let Some(flow) = flow {
                if matches!(flow, Flow::Stop) {
                    worker.turn_end(&mut Cx { core });
                }
                return flow;
            }
            if *left == before {
                // Nothing ran, so every future and timer is registered: sleep, unless something came in.
                match core.inbox.lanes.rest(core.epoch) {
                    Rest::More => continue,
                    Rest::Retired => return Flow::Retired,
                    Rest::Idle => {
                        core.inbox.lanes.data.permits.notify_settled();
                        return Flow::Wait;
                    }
                }
            }
            core.inbox.lanes.data.gauges.turns.fetch_add(1, Ordering::Relaxed);
            worker.turn_end(&mut Cx { core });
            if *left == 0 {
                let mut pause: LocalBoxFuture<'static, ()> = Box::pin(tokio::task::yield_now());
                if pause.as_mut().poll(task).is_pending() {
                    *yielding = Some(pause);
                    return Flow::Wait;
                }
                *left = TURN;
            }
        }
    }

    /// Drops the worker, its timers and futures; a panic in a destructor changes nothing any more.
    fn discard(&mut self) {
        let worker = self.worker.take();
        let fresh = Core::new(self.core.inbox.clone(), self.core.epoch);
        let core = std::mem::replace(&mut self.core, fresh);
        for dropped in [catch_unwind(AssertUnwindSafe(|| drop(worker))), catch_unwind(AssertUnwindSafe(|| drop(core)))] {
            if let Err(panic) = dropped {
                let actor = self.core.inbox.name();
                tracing::error!(actor, panic = panic_text(panic.as_ref()), "destructor of an actor panicked");
            }
        }
        self.sleep = None;
        self.yielding = None;
    }
}

/// Whether the worker must not be called again, checked after each call into it.
fn ended<W: Worker>(core: &Core<W>, tenure: &Tenure<W>) -> Option<Flow> {
    if !tenure.is_current() {
        Some(Flow::Retired)
    } else if core.stop || core.inbox.lanes.bell.is_halted() {
        Some(Flow::Stop)
    } else {
        None
    }
}

fn fire_timers<W: Worker>(
    worker: &mut W,
    core: &mut Core<W>,
    left: &mut usize,
    sleep: &mut Option<(Instant, Pin<Box<Sleep>>)>,
    task: &mut task::Context<'_>,
    tenure: &Tenure<W>,
) -> Option<Flow> {
    // A timer made by a timer waits for the next round, however short: messages come in between.
    let newest = core.next_timer;
    while let Some(earliest) = core.timers.first_key_value().map(|(timer, _)| *timer) {
        let due = earliest.at() <= Instant::now();
        if due && earliest.id() < newest {
            if let Some(control) = core.timers.remove(&earliest) {
                call_control(worker, control, core, left);
            }
            if let Some(flow) = ended(core, tenure) {
                return Some(flow);
            }
        } else if due || !arm(sleep, earliest, task) {
            // Due again already: something ran, so the loop of the turn comes back.
            return None;
        }
    }
    None
}

/// Sees to it that the task is woken at `timer`; `true` when that instant has come.
fn arm(sleep: &mut Option<(Instant, Pin<Box<Sleep>>)>, timer: Timer, task: &mut task::Context<'_>) -> bool {
    let at = timer.at();
    let (armed_for, sleep) = sleep.get_or_insert_with(|| (at, Box::pin(tokio::time::sleep_until(at))));
    if *armed_for != at {
        *armed_for = at;
        sleep.as_mut().reset(at);
    }
    sleep.as_mut().poll(task).is_ready()
}

fn handle_messages<W: Worker>(worker: &mut W, core: &mut Core<W>, left: &mut usize, tenure: &Tenure<W>) -> Option<Flow> {
    let lanes = core.inbox.lanes.clone();
    let hand = tenure.hand();
    // One reading of the clock a message: the end of one is the beginning of the next.
    let mut clock = None;
    loop {
        if let Some(flow) = ended(core, tenure) {
            return Some(flow);
        }
        if *left == 0 {
            return None;
        }
        match lanes.control.take(core.epoch) {
            Taken::Message(control) => {
                call_control(worker, control, core, left);
                clock = None;
                continue;
            }
            Taken::Retired => return Some(Flow::Retired),
            Taken::Empty => {}
        }
        match lanes.data.take(core.epoch, hand) {
            Taken::Message((order, slot)) => {
                let begun = clock.unwrap_or_else(std::time::Instant::now);
                worker.handle(order, slot, &mut Cx { core });
                hand.clear();
                let now = std::time::Instant::now();
                if tenure.is_current() {
                    // A replaced one that wakes late has been counted as a loss.
                    lanes.data.gauges.handled(now.saturating_duration_since(begun));
                }
                clock = Some(now);
                *left -= 1;
            }
            Taken::Retired => return Some(Flow::Retired),
            Taken::Empty => return None,
        }
    }
}

fn finish_futures<W: Worker>(
    worker: &mut W,
    core: &mut Core<W>,
    left: &mut usize,
    task: &mut task::Context<'_>,
    tenure: &Tenure<W>,
) -> Option<Flow> {
    // An allowance of their own: messages may have used up the turn, and must not starve the futures.
    for _ in 0..TURN {
        match core.futures.poll_next_unpin(task) {
            Poll::Ready(Some(done)) => {
                done(worker, &mut Cx { core });
                *left = left.saturating_sub(1);
                if let Some(flow) = ended(core, tenure) {
                    return Some(flow);
                }
            }
            Poll::Ready(None) | Poll::Pending => return None,
        }
    }
    *left = 0;
    None
}

fn call_control<W: Worker>(worker: &mut W, control: W::Control, core: &mut Core<W>, left: &mut usize) {
    worker.control(control, &mut Cx { core });
    core.inbox.lanes.data.gauges.controls.fetch_add(1, Ordering::Relaxed);
    *left = left.saturating_sub(1);
}

/// The text a panic was raised with.
pub(crate) fn panic_text(panic: &(dyn Any + Send)) -> String {
    if let Some(text) = panic.downcast_ref::<&'static str>() {
        (*text).to_owned()
    } else if let Some(text) = panic.downcast_ref::<String>() {
        text.clone()
    } else {
        "panic without a text".to_owned()
    }
}
