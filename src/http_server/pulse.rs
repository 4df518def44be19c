//! How far one connection is: between requests, sending one, or waiting for an answer; and how long it may stay so.
//!
//! Decides nothing about requests. A connection that is answered has all the time its answer takes.

use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use tokio::sync::Notify;
use tokio::time::Instant;

/// A connection that has sent nothing whole for this long is one that others need not wait for.
const SLOW: Duration = Duration::from_secs(1);
/// The same for one whose body does not come to its end.
const SLOW_BODY: Duration = Duration::from_secs(5);

/// How long a server waits for requests, and what it does when it has no room.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Patience {
    /// How long the head of a request may take from its first byte on; that of the first one from the connect on.
    pub(crate) head_time: Duration,
    /// How long a connection may stay open without a request.
    pub(crate) idle_time: Duration,
    pub(crate) when_full: WhenFull,
}

impl Default for Patience {
    fn default() -> Self {
        Self { head_time: Duration::from_secs(10), idle_time: Duration::from_secs(120), when_full: WhenFull::Wait }
    }
}

/// What becomes of a connection beyond the bound.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum WhenFull {
    /// It waits to be accepted.
    Wait,
    /// It takes the place of one that asks for nothing; where all are being answered, it is told to come again.
    MakeRoom,
}

/// The state of one connection.
#[derive(Debug)]
pub(super) struct Pulse {
    phase: Mutex<Phase>,
    leave: Notify,
}

#[derive(Debug, Clone, Copy)]
enum Phase {
    /// Nothing whole has come yet.
    Fresh(Instant),
    /// Between two requests.
    Idle(Instant),
    /// A part of a head has come.
    Head(Instant),
    /// A head is whole, its body is not.
    Body(Instant),
    /// A request is being answered.
    Busy,
}

/// How easily a connection is spared: the least first.
pub(super) type Rank = (u8, Instant);

impl Pulse {
    pub(super) fn new() -> Self {
        Self { phase: Mutex::new(Phase::Fresh(Instant::now())), leave: Notify::new() }
    }

    /// Bytes have come.
    pub(super) fn heard(&self) {
        self.change(|phase| if let Phase::Idle(_) = phase { Phase::Head(Instant::now()) } else { phase });
    }

    /// A head is whole.
    pub(super) fn begins(&self) {
        self.change(|_| Phase::Body(Instant::now()));
    }

    /// So is the body: what is to come is ours.
    pub(super) fn answers(&self) {
        self.change(|_| Phase::Busy);
    }

    /// The answer is handed over.
    pub(super) fn ends(&self) {
        self.change(|_| Phase::Idle(Instant::now()));
    }

    /// When it has taken too long; bodies are timed by who reads them, and an answer has all its time.
    pub(super) fn due(&self, patience: &Patience) -> Option<Instant> {
        match self.phase() {
            Phase::Fresh(since) | Phase::Head(since) => since.checked_add(patience.head_time),
            Phase::Idle(since) => since.checked_add(patience.idle_time),
            Phase::Body(_) | Phase::Busy => None,
        }
    }

    /// Whether another one may have its place, and how soon it is its turn.
    pub(super) fn spare(&self) -> Option<Rank> {
        match self.phase() {
            Phase::Fresh(since) | Phase::Head(since) if since.elapsed() >= SLOW => Some((0, since)),
            Phase::Body(since) if since.elapsed() >= SLOW_BODY => Some((0, since)),
            Phase::Idle(since) => Some((1, since)),
            _ => None,
        }
    }

    /// Asks it to end.
    pub(super) fn dismiss(&self) {
        self.leave.notify_one();
    }

    /// Waits for that.
    pub(super) async fn dismissed(&self) {
        self.leave.notified().await;
    }

    fn phase(&self) -> Phase {
        *self.phase.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn change(&self, next: impl FnOnce(Phase) -> Phase) {
        let mut phase = self.phase.lock().unwrap_or_else(PoisonError::into_inner);
        *phase = next(*phase);
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing)]

    use tokio::time::advance;

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn each_phase_has_its_time_and_an_answer_has_all() {
        let patience = Patience::default();
        let (start, pulse) = (Instant::now(), Pulse::new());
        let after = |pulse: &Pulse| pulse.due(&patience).map(|due| due.duration_since(start).as_secs());
        assert_eq!(after(&pulse), Some(10));
        advance(Duration::from_secs(3)).await;
        pulse.heard();
        assert_eq!(after(&pulse), Some(10), "the first head counts from the connect on");
        pulse.begins();
        pulse.heard();
        assert_eq!(after(&pulse), None);
        pulse.ends();
        assert_eq!(after(&pulse), Some(123));
        advance(Duration::from_secs(100)).await;
        pulse.heard();
        assert_eq!(after(&pulse), Some(113));
        advance(Duration::from_secs(5)).await;
        pulse.heard();
        assert_eq!(after(&pulse), Some(113), "more bytes buy no time");
    }

    #[tokio::test(start_paused = true)]
    async fn slow_heads_are_spared_before_idle_connections_and_busy_ones_never() {
        let (slow, idle, busy, body) = (Pulse::new(), Pulse::new(), Pulse::new(), Pulse::new());
        idle.begins();
        idle.ends();
        busy.begins();
        busy.answers();
        body.begins();
        assert_eq!(slow.spare(), None, "it may be about to ask");
        advance(SLOW).await;
        assert!(slow.spare().unwrap() < idle.spare().unwrap());
        assert_eq!((body.spare(), busy.spare()), (None, None));
        advance(SLOW_BODY).await;
        assert!(body.spare().unwrap() < idle.spare().unwrap(), "a body that trickles in");
        assert_eq!(busy.spare(), None);
    }
}
