//! A parser's pulse: what it has begun and since when its thread is busy, readable from outside.
//!
//! A callback that loops without an await holds its thread; only another thread can tell.

use std::collections::HashSet;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use crate::engine::ticket::Tag;

/// Shared between one parser's incarnations and the engine.
#[derive(Debug)]
pub(crate) struct Pulse {
    origin: Instant,
    /// Microseconds since `origin`, plus one, at which the thread entered user code; 0 while it is out of it.
    entered: AtomicU64,
    begun: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    begun: HashSet<Tag>,
    /// The ticket whose callback is being polled.
    polled: Option<Tag>,
}

impl Pulse {
    pub(crate) fn new() -> Self {
        Self { origin: Instant::now(), entered: AtomicU64::new(0), begun: Mutex::default() }
    }

    /// Notes that a ticket's order was taken from the inbox.
    pub(crate) fn begin(&self, tag: Tag) {
        self.lock().begun.insert(tag);
    }

    /// Notes that a ticket was answered.
    pub(crate) fn end(&self, tag: Tag) {
        self.lock().begun.remove(&tag);
    }

    /// Notes that user code of `tag` runs, until the guard is dropped.
    pub(crate) fn enter(&self, tag: Tag) -> Entered<'_> {
        self.lock().polled = Some(tag);
        let now = u64::try_from(self.origin.elapsed().as_micros()).unwrap_or(u64::MAX - 1);
        self.entered.store(now + 1, Ordering::Release);
        Entered(self)
    }

    /// How long user code has held the thread, and whose.
    pub(crate) fn busy(&self) -> Option<(Duration, Tag)> {
        let entered = self.entered.load(Ordering::Acquire).checked_sub(1)?;
        let polled = self.lock().polled?;
        Some((self.origin.elapsed().saturating_sub(Duration::from_micros(entered)), polled))
    }

    /// Takes what was begun and not answered: the incarnation that had it is gone. The first is the one whose
    /// callback ran last; the others were suspended, or over and not told yet.
    pub(crate) fn take(&self) -> (Option<Tag>, Vec<Tag>) {
        self.entered.store(0, Ordering::Release);
        let mut state = self.lock();
        let polled = state.polled.take().filter(|tag| state.begun.remove(tag));
        let mut others: Vec<Tag> = state.begun.drain().collect();
        others.sort_unstable();
        (polled, others)
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, State> {
        // Nothing panics while the lock is held; a poisoned one still holds whole values.
        self.begun.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
    }
}

/// User code runs while this lives.
#[must_use]
pub(crate) struct Entered<'a>(&'a Pulse);

impl Drop for Entered<'_> {
    fn drop(&mut self) {
        self.0.entered.store(0, Ordering::Release);
    }
}
