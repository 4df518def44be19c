//! Asking ahead: how many leases to have asked for, so that the way to the plane costs no throughput.
//!
//! Little's law: while `places` downloads take `page` each, their rate is `places / page`, and asks that take `ask`
//! each must have `places × ask / page` under way to keep up with it. Pure; also counts who is on the wire, since a
//! leased request then waits for its place. Used for planes behind a network only.

use std::collections::{HashMap, VecDeque};
use std::time::Duration;

use tokio::time::Instant;

use super::ticket::Serial;
use crate::scheduler::job::SlotKey;

/// The weight of a new measurement.
const WEIGHT: f64 = 1.0 / 16.0;
/// A measurement counts as at most so many times what is known: one slow answer is no trend.
const OUTLIER: f64 = 4.0;
/// No more is asked for ahead than this many times the places there are.
const MOST: usize = 4;
/// An ask that takes so many times as long as usual waits for something else than the way to the plane.
const STUCK: u32 = 4;
/// No ask counts as stuck before this.
const STUCK_LEAST: Duration = Duration::from_millis(50);

/// Asks under way, requests on the wire, and how long both take.
#[derive(Debug, Default)]
pub(super) struct Ahead {
    ask: Mean,
    page: Mean,
    asked: HashMap<u64, Instant, Serial>,
    /// Asks by their time, those included that are answered.
    order: VecDeque<(Instant, u64)>,
    /// Asks under way that are longer than usual.
    stuck: usize,
    wire: HashMap<SlotKey, usize>,
    /// Leased tickets that wait for a place, oldest first.
    pub(super) ready: VecDeque<u64>,
    /// What the scheduler was told last.
    pub(super) told: usize,
}

/// A mean that follows what it is told, in seconds.
#[derive(Debug, Clone, Copy, Default)]
struct Mean(Option<f64>);

impl Mean {
    fn add(&mut self, took: Duration) {
        let took = took.as_secs_f64();
        self.0 = Some(self.0.map_or(took, |mean| {
            let took = took.min(mean.max(0.001) * OUTLIER);
            mean + (took - mean) * WEIGHT
        }));
    }
}

impl Ahead {
    /// The ticket's ask goes out.
    pub(super) fn ask(&mut self, ticket: u64, now: Instant) {
        self.asked.insert(ticket, now);
        self.order.push_back((now, ticket));
    }

    /// The ticket's ask is over; only what was granted says how long an ask takes.
    pub(super) fn answered(&mut self, ticket: u64, granted: bool, now: Instant) {
        let Some(since) = self.asked.remove(&ticket) else { return };
        let took = now.saturating_duration_since(since);
        if self.order.front().is_none_or(|(first, _)| *first > since) {
            self.stuck = self.stuck.saturating_sub(1);
        }
        if granted {
            self.ask.add(took);
        }
    }

    /// Asks under way that will be answered soon; the others wait for an identity, and nobody waits for them.
    pub(super) fn soon(&mut self, now: Instant) -> usize {
        let usual = Duration::try_from_secs_f64(self.ask.0.unwrap_or(0.0)).unwrap_or_default();
        let limit = usual.saturating_mul(STUCK).max(STUCK_LEAST);
        while let Some((since, ticket)) = self.order.front().copied() {
            let is_current = self.asked.get(&ticket) == Some(&since);
            if is_current && now.saturating_duration_since(since) < limit {
                break;
            }
            self.order.pop_front();
            self.stuck += usize::from(is_current);
        }
        self.asked.len().saturating_sub(self.stuck)
    }

    /// Whether each ask under way is so young that nobody has waited for its answer yet.
    pub(super) fn are_young(&mut self, now: Instant) -> bool {
        self.soon(now);
        let oldest = self.order.front().map(|(since, _)| now.saturating_duration_since(*since));
        self.stuck == 0 && oldest.is_none_or(|age| age < STUCK_LEAST)
    }

    /// A request of the slot goes on the wire.
    pub(super) fn sent(&mut self, slot: &SlotKey) {
        *self.wire.entry(slot.clone()).or_default() += 1;
    }

    /// A request of the slot is off the wire again, after this time.
    pub(super) fn done(&mut self, slot: &SlotKey, took: Duration) {
        self.page.add(took);
        if let Some(count) = self.wire.get_mut(slot) {
            *count -= 1;
            if *count == 0 {
                self.wire.remove(slot);
            }
        }
    }

    /// Requests of the slot on the wire.
    pub(super) fn on_wire(&self, slot: &SlotKey) -> usize {
        self.wire.get(slot).copied().unwrap_or(0)
    }

    /// How many requests to have out beyond `places`: some more than the law says, since neither time is even.
    pub(super) fn beyond(&self, places: usize) -> usize {
        let (Some(ask), Some(page)) = (self.ask.0, self.page.0) else { return 0 };
        if ask <= 0.0 || page <= 0.0 {
            return 0;
        }
        #[allow(clippy::cast_precision_loss, reason = "places are few")]
        let law = places as f64 * ask / page;
        #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "positive, and the bound follows")]
        let more = (law * 1.25 + 1.0).ceil() as usize;
        more.min(places.saturating_mul(MOST))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: Duration = Duration::from_millis(1);

    fn slot() -> SlotKey {
        SlotKey("a.test".into())
    }

    fn measured(ask: Duration, page: Duration) -> Ahead {
        let mut ahead = Ahead::default();
        let now = Instant::now();
        for ticket in 0..100 {
            ahead.ask(ticket, now);
            ahead.answered(ticket, true, now + ask);
            ahead.sent(&slot());
            ahead.done(&slot(), page);
        }
        ahead
    }

    #[test]
    fn as_many_are_asked_for_as_come_free_while_one_is_answered() {
        for (ask, page, places, least, most) in [
            (6 * MS, 60 * MS, 64, 7, 10),
            (6 * MS, 60 * MS, 8, 1, 3),
            (60 * MS, 60 * MS, 16, 16, 22),
            (Duration::ZERO, 60 * MS, 64, 0, 0),
            (900 * MS, 30 * MS, 16, 64, 64),
        ] {
            let more = measured(ask, page).beyond(places);
            assert!((least..=most).contains(&more), "{ask:?} of {page:?} at {places}: {more}");
        }
        assert_eq!(Ahead::default().beyond(64), 0, "nothing is known yet");
    }

    #[test]
    fn one_slow_answer_changes_little() {
        let mut ahead = measured(6 * MS, 60 * MS);
        let now = Instant::now();
        ahead.ask(1, now);
        ahead.answered(1, true, now + 5_000 * MS);
        assert!(ahead.beyond(64) <= 12, "{}", ahead.beyond(64));
    }

    #[test]
    fn asks_that_take_long_are_not_waited_for() {
        let mut ahead = measured(6 * MS, 60 * MS);
        let now = Instant::now();
        for ticket in 0..10 {
            ahead.ask(ticket, now);
        }
        assert_eq!(ahead.soon(now + 10 * MS), 10);
        ahead.ask(10, now + 90 * MS);
        assert_eq!(ahead.soon(now + 100 * MS), 1);
        for ticket in 0..11 {
            ahead.answered(ticket, false, now + 101 * MS);
        }
        assert_eq!(ahead.soon(now + 101 * MS), 0);
        ahead.ask(11, now + 102 * MS);
        assert_eq!(ahead.soon(now + 103 * MS), 1);
    }

    #[test]
    fn asks_are_young_until_one_of_them_is_not() {
        // However long they usually take.
        for usual in [6 * MS, 5_000 * MS] {
            let mut ahead = measured(usual, 60 * MS);
            let now = Instant::now();
            assert!(ahead.are_young(now), "there are none");
            ahead.ask(1, now);
            ahead.ask(2, now + 30 * MS);
            assert!(ahead.are_young(now + 49 * MS));
            assert!(!ahead.are_young(now + 50 * MS));
            ahead.answered(1, true, now + 60 * MS);
            assert!(ahead.are_young(now + 60 * MS));
            assert!(!ahead.are_young(now + 80 * MS));
            assert!(!ahead.are_young(now + 60_000 * MS));
            ahead.answered(2, false, now + 60_000 * MS);
            assert!(ahead.are_young(now + 60_000 * MS));
        }
    }

    #[test]
    fn the_wire_counts_by_slot() {
        let mut ahead = Ahead::default();
        ahead.sent(&slot());
        ahead.sent(&slot());
        ahead.done(&slot(), MS);
        assert_eq!((ahead.on_wire(&slot()), ahead.on_wire(&SlotKey("b".into()))), (1, 0));
        ahead.done(&slot(), MS);
        assert!(ahead.wire.is_empty());
    }
}
