//! What the courier decides: what is tried next, what is repeated, taken apart, put aside or given up.
//!
//! The state outlives an incarnation of the actor: a batch is never lost to a panic of the sink. Nothing here waits: a
//! try is a future that somebody else polls, one at a time, and whose answer comes back with
//! [`answered`](CourierState::answered).

use std::any::Any;
use std::collections::VecDeque;
use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use tokio::time::Instant;

use super::lines::{self, Next, Tried};
use super::message::{How, Order, Report, Settled};
use super::rejected::{self, Place};
use super::split::Split;
use super::webhook::{Pending, Webhook};
use crate::actor::{Slot, panic_text};
use crate::apcloudy::Answer;
use crate::api::stats::Stats;
use crate::backoff::Backoff;
use crate::collector::batch::{Batch, Counts};
use crate::collector::log::{Fate, Part};
use crate::settings::OnFatal;

/// Records refused one by one, with none taken in between, after which it is the sink and not the records: the rest stays in
/// the spool instead of becoming a file each.
const REFUSED_IN_A_ROW: u64 = 500;
/// Panics of the sink in a row after which it is not called any more.
const PANICS: u32 = 3;
/// The longest wait between two tries that a sink does not ask for.
const LONGEST: Duration = Duration::from_secs(60);
/// The longest wait a sink may ask for.
const LONGEST_ASKED: Duration = Duration::from_secs(300);
/// The longest wait between two tries once the job closes.
const CLOSING_WAIT: Duration = Duration::from_secs(1);

/// How the courier works.
#[derive(Debug, Clone)]
pub struct CourierOptions {
    /// The spool: named to people, and refused records are put aside in it.
    pub spool: PathBuf,
    /// What follows a fatal answer (`APCLOUDY_ON_FATAL`).
    pub on_fatal: OnFatal,
    /// Start of the jitter's draws.
    pub seed: u64,
}

/// Batches on their way to a sink.
pub struct CourierState {
    sink: Box<dyn Webhook>,
    options: CourierOptions,
    stats: Stats,
    queue: VecDeque<Queued>,
    /// The first batch of the queue, taken apart.
    split: Option<Split>,
    /// What is tried: the first batch or a part of it, made once.
    target: Option<Arc<Batch>>,
    /// The target is refused for good and not yet put aside: this was the answer.
    refused: Option<String>,
    backoff: Backoff,
    /// Tries in a row after which nothing was taken.
    failures: u32,
    retry_at: Option<Instant>,
    /// Whether the sink named that time.
    asked: bool,
    deadline: Option<Instant>,
    fatal: Option<String>,
    /// A call is under way. Still set at the start of an incarnation, it was lost with the one before.
    calling: bool,
    panics: u32,
    /// Records put aside since the sink took any.
    put_aside: u64,
    /// For the collector, not yet told.
    reports: Vec<Report>,
}

#[derive(Debug)]
struct Queued {
    batch: Arc<Batch>,
    /// Parts that an earlier run was through with.
    done: Vec<Part>,
    since: Instant,
    _slot: Slot,
}

/// What is to be done next.
pub(super) enum Step {
    /// Poll this; the job's limit ends it, if there is one.
    Call(Pending, Option<Instant>),
    /// Look again: there is more to do now.
    Again,
    /// Nothing can be done before then.
    Wait(Instant),
    /// Nothing can be done before something comes.
    Idle,
}

impl CourierState {
    /// A courier with nothing to do.
    #[must_use]
    pub fn new(sink: Box<dyn Webhook>, options: CourierOptions, stats: Stats) -> Self {
        let backoff = Backoff::new(options.seed).up_to(LONGEST);
        Self {
            sink,
            options,
            stats,
            queue: VecDeque::new(),
            split: None,
            target: None,
            refused: None,
            backoff,
            failures: 0,
            retry_at: None,
            asked: false,
            deadline: None,
            fatal: None,
            calling: false,
            panics: 0,
            put_aside: 0,
            reports: Vec::new(),
        }
    }

    /// Looks after what the incarnation before left.
    pub(super) fn recover(&mut self, now: Instant) -> Step {
        if self.calling { self.crashed("the courier broke off", now) } else { Step::Again }
    }

    pub(super) fn take(&mut self, order: Order, slot: Slot, now: Instant) {
        let Order::Cut { batch, done } = order;
        self.queue.push_back(Queued { batch, done, since: now, _slot: slot });
    }

    /// Limits the time for everything that is queued and comes later.
    pub(super) fn close_by(&mut self, deadline: Instant) {
        self.deadline = Some(self.deadline.map_or(deadline, |earlier| earlier.min(deadline)));
        // One more try at once: what was wrong half a minute ago may be mended. A sink that named a time is not asked before.
        if !self.asked {
            self.retry_at = None;
        }
    }

    /// What to do now: calls the sink once at most.
    pub(super) fn step(&mut self, now: Instant) -> Step {
        if self.queue.is_empty() {
            return Step::Idle;
        }
        if let Some(why) = self.fatal.clone() {
            return self.spool_all(&why);
        }
        if self.deadline.is_some_and(|deadline| deadline <= now) {
            if self.calling {
                self.say("no answer before the job closed", Next::Spooled);
            }
            return self.spool_all("the job closed before everything was taken");
        }
        if self.calling {
            return self.deadline.map_or(Step::Idle, Step::Wait);
        }
        if let Some(at) = self.retry_at.filter(|at| *at > now) {
            return Step::Wait(self.deadline.map_or(at, |deadline| at.min(deadline)));
        }
        self.retry_at = None;
        match self.refused.take() {
            Some(answer) => self.put_aside(answer, now),
            None => self.call(now),
        }
    }

    /// A call is over.
    pub(super) fn answered(&mut self, answer: Answer, now: Instant) -> Step {
        if !std::mem::take(&mut self.calling) {
            return Step::Idle;
        }
        self.panics = 0;
        match answer {
            Answer::Delivered => self.delivered(),
            Answer::Retry { after, why } => {
                self.stats.inc("courier/failures/retry");
                self.later(&why, after, now)
            }
            Answer::Split { why } | Answer::Reject { why } if self.put_aside >= REFUSED_IN_A_ROW => {
                self.stats.inc("courier/failures/fatal");
                self.give_up(&format!("{why} (so were the {} records before, one by one)", self.put_aside))
            }
            Answer::Split { why } | Answer::Reject { why } => {
                self.stats.inc("courier/failures/split");
                if self.take_apart(&why) {
                    return Step::Again;
                }
                self.put_aside(why, now)
            }
            Answer::Fatal { why } => {
                self.stats.inc("courier/failures/fatal");
                self.give_up(&why)
            }
        }
    }

    /// A call ended with a panic.
    pub(super) fn panicked(&mut self, panic: &(dyn Any + Send), now: Instant) -> Step {
        if !self.calling {
            return Step::Idle;
        }
        self.crashed(&format!("the sink panicked: {}", panic_text(panic)), now)
    }

    /// Whether a call is under way; one that is not may be dropped.
    pub(super) const fn is_calling(&self) -> bool {
        self.calling
    }

    /// What the collector has not been told yet.
    pub(super) fn take_reports(&mut self) -> Vec<Report> {
        std::mem::take(&mut self.reports)
    }

    fn call(&mut self, now: Instant) -> Step {
        let Some(first) = self.queue.front() else { return Step::Idle };
        if self.split.is_none() && !first.done.is_empty() {
            self.split = Split::resume(&first.batch, &first.done);
            if self.split.as_ref().is_some_and(Split::is_done) {
                return self.settle_split();
            }
        }
        let part = || self.split.as_ref().and_then(|split| split.part(&first.batch)).map(Arc::new);
        let target = Arc::clone(self.target.get_or_insert_with(|| part().unwrap_or_else(|| Arc::clone(&first.batch))));
        self.calling = true;
        match catch_unwind(AssertUnwindSafe(|| self.sink.deliver(target))) {
            Ok(pending) => Step::Call(pending, self.deadline),
            Err(panic) => self.panicked(panic.as_ref(), now),
        }
    }

    fn delivered(&mut self) -> Step {
        if self.failures > 0 {
            lines::back(&self.sink.place(), self.failures);
            self.failures = 0;
        }
        if let Some(target) = &self.target {
            self.stats.add("courier/delivered", signed(records(target.counts)));
            self.stats.add("courier/bytes", i64::try_from(target.body.len()).unwrap_or(i64::MAX));
        }
        self.put_aside = 0;
        self.stats.inc(if self.split.is_some() { "courier/parts" } else { "courier/batches" });
        self.advance(Fate::Delivered)
    }

    fn later(&mut self, why: &str, asked: Option<Duration>, now: Instant) -> Step {
        let wait = self.wait(asked);
        self.asked = asked.is_some();
        let at = now + wait;
        // There is no next try after the limit.
        if self.deadline.is_some_and(|deadline| deadline <= at) {
            self.say(why, Next::Spooled);
        } else {
            self.stats.inc("courier/retries");
            self.say(why, Next::Retry(wait));
        }
        self.retry_at = Some(at);
        self.step(now)
    }

    /// The wait after one more failure.
    fn wait(&mut self, asked: Option<Duration>) -> Duration {
        self.failures = self.failures.saturating_add(1);
        let own = self.backoff.wait(self.failures);
        at_least(if self.deadline.is_some() { own.min(CLOSING_WAIT) } else { own }, asked)
    }

    fn crashed(&mut self, why: &str, now: Instant) -> Step {
        self.calling = false;
        self.panics += 1;
        self.stats.inc("courier/failures/panic");
        if self.panics >= PANICS { self.give_up(&format!("{why}, {PANICS} times in a row")) } else { self.later(why, None, now) }
    }

    fn give_up(&mut self, why: &str) -> Step {
        self.say(why, Next::NothingMore(&self.options.spool));
        let why = format!("{} takes nothing any more: {why}", self.sink.place());
        if self.options.on_fatal == OnFatal::Stop {
            self.reports.push(Report::Refused(why.clone()));
        }
        let step = self.spool_all(&why);
        self.fatal = Some(why);
        step
    }

    /// Takes the first batch apart, or the refused part of it further. `false` when it is a single record.
    fn take_apart(&mut self, why: &str) -> bool {
        let apart = match (&mut self.split, self.queue.front()) {
            (Some(split), _) => split.halve(),
            (None, Some(first)) => {
                self.split = Split::of(&first.batch);
                self.split.is_some()
            }
            (None, None) => false,
        };
        if apart {
            self.say(why, Next::Apart);
            self.target = None;
        }
        apart
    }

    fn put_aside(&mut self, answer: String, now: Instant) -> Step {
        let (Some(first), Some(target)) = (self.queue.front(), &self.target) else { return Step::Idle };
        let counts = target.counts;
        let place = Place { batch: first.batch.id, part: self.split.as_ref().and_then(Split::places) };
        match rejected::write(&self.options.spool, place, target, &answer, &rejected_at()) {
            Ok(file) => {
                self.say(&answer, Next::PutAside(&file));
                self.stats.add("courier/rejected", signed(records(counts)));
                self.put_aside = self.put_aside.saturating_add(records(counts));
                self.advance(Fate::Rejected)
            }
            Err(error) => {
                let wait = self.wait(None);
                self.say(&answer, Next::Unwritten(&self.options.spool, &error.to_string(), wait));
                self.refused = Some(answer);
                self.retry_at = Some(now + wait);
                self.step(now)
            }
        }
    }

    /// The sink has, or the directory of refused records has, what was just tried.
    fn advance(&mut self, fate: Fate) -> Step {
        self.target = None;
        let Some(first) = self.queue.front() else { return Step::Idle };
        let Some(split) = &mut self.split else {
            return self.settle(if fate == Fate::Delivered { How::Delivered } else { How::Rejected });
        };
        if let Some((first_place, last)) = split.places() {
            self.reports.push(Report::Part(Part { batch: first.batch.id, first: first_place, last, fate }));
        }
        split.next(fate);
        if split.is_done() { self.settle_split() } else { Step::Again }
    }

    fn settle_split(&mut self) -> Step {
        let rejected = self.split.as_ref().map_or_else(Counts::default, |split| split.rejected);
        let all = self.queue.front().is_some_and(|first| first.batch.counts == rejected);
        self.settle(match rejected == Counts::default() {
            // Each part passed alone: the whole was too large, or the sink has changed its mind.
            true => How::Delivered,
            false if all => How::Rejected,
            false => How::Split { rejected },
        })
    }

    fn settle(&mut self, how: How) -> Step {
        self.clear();
        let Some(Queued { batch, since, .. }) = self.queue.pop_front() else { return Step::Idle };
        let waited = i64::try_from(since.elapsed().as_millis()).unwrap_or(i64::MAX);
        self.stats.max("courier/waiting_ms_max", waited);
        self.reports.push(Report::Settled(Settled { id: batch.id, counts: batch.counts, how }));
        if self.queue.is_empty() { Step::Idle } else { Step::Again }
    }

    fn spool_all(&mut self, why: &str) -> Step {
        self.calling = false;
        self.clear();
        let settled = self.queue.drain(..).map(|Queued { batch, .. }| {
            Report::Settled(Settled { id: batch.id, counts: batch.counts, how: How::Spooled(why.to_owned()) })
        });
        self.reports.extend(settled);
        Step::Idle
    }

    /// Forgets what concerned the first batch.
    fn clear(&mut self) {
        self.split = None;
        self.target = None;
        self.refused = None;
        self.retry_at = None;
    }

    fn say(&self, answer: &str, next: Next<'_>) {
        let place = self.sink.place();
        if let Some(target) = &self.target {
            lines::failed(Tried { id: target.id, records: records(target.counts), place: &place, answer }, next);
        }
    }
}

/// The wait, no shorter than what the sink asks for within reason.
fn at_least(wait: Duration, asked: Option<Duration>) -> Duration {
    wait.max(asked.unwrap_or_default().min(LONGEST_ASKED))
}

fn rejected_at() -> String {
    jiff::Timestamp::now().to_string()
}

const fn records(counts: Counts) -> u64 {
    counts.total() + counts.stats
}

fn signed(n: u64) -> i64 {
    i64::try_from(n).unwrap_or(i64::MAX)
}

impl fmt::Debug for CourierState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CourierState")
            .field("queued", &self.queue.len())
            .field("split", &self.split.is_some())
            .field("calling", &self.calling)
            .field("fatal", &self.fatal)
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests;
