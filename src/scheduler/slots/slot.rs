//! What is known of one host, small for one of which there is only work that waits.

use std::cmp::Reverse;
use std::time::Duration;

use super::super::job::SlotKey;
use super::super::pacing::{Pacing, Rates};
use super::super::throttle::Throttled;
use super::minute::Minute;
use super::when::When;

/// A slot.
#[derive(Debug)]
pub(super) struct Slot {
    pub(super) key: SlotKey,
    /// When it was served last, by the number of the pick.
    pub(super) turn: u64,
    pub(super) queued_at: Option<When>,
    pub(super) priority: i32,
    /// Places taken.
    pub(super) active: u32,
    /// Where its job is filed, or the slot itself when it has none.
    pub(super) filed: Filed,
    /// What most slots do not have.
    rare: Option<Box<Rare>>,
}

/// The rest of a slot that was sent something, or of which more than jobs are known.
#[derive(Debug, Clone, PartialEq, Default)]
pub(super) struct Rare {
    /// The last request sent, and the throw of the dice for the delay after it.
    pub(super) last: Option<(When, f64)>,
    /// The delay its robots.txt asks for.
    pub(super) crawl_delay: Duration,
    /// What it is held by for others' sake, until it is lifted.
    pub(super) gate: Option<When>,
    /// A pause that nobody lifts: the host asked for it, or an earlier run left it.
    pub(super) pause: Option<When>,
    /// The delay its answers have led to, where it is throttled.
    pub(super) throttled: Option<Throttled>,
    /// When it last refused, as far as the throttle knows.
    pub(super) refused: Option<When>,
    /// What counts for `REQUESTS_PER_MINUTE`.
    pub(super) minute: Minute,
    pub(super) robots_at: Option<When>,
    pub(super) hops: u32,
    /// Places that were given out under a delay and are not sent yet.
    pub(super) unsent: u32,
    /// Where its hop is filed.
    pub(super) hop_filed: Filed,
    /// Its next job waits for robots.txt.
    pub(super) parked: bool,
}

/// Where something is filed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) enum Filed {
    #[default]
    Nowhere,
    /// Among those that may go, under the slot's rank.
    Ready,
    /// Among those that wait for this time.
    At(When),
    /// Among those that are kept until this time, for their next send time or gate only.
    Kept(When),
}

/// Places taken, priority, time of the last service: the least goes first.
pub(super) type Rank = (u32, Reverse<i32>, u64);

impl Slot {
    pub(super) fn new(key: SlotKey, turn: u64) -> Self {
        Self { key, turn, queued_at: None, priority: 0, active: 0, filed: Filed::Nowhere, rare: None }
    }

    pub(super) fn rare(&self) -> &Rare {
        static NOTHING: Rare = Rare {
            last: None,
            crawl_delay: Duration::ZERO,
            gate: None,
            pause: None,
            throttled: None,
            refused: None,
            minute: Minute::NONE,
            robots_at: None,
            hops: 0,
            unsent: 0,
            hop_filed: Filed::Nowhere,
            parked: false,
        };
        self.rare.as_deref().unwrap_or(&NOTHING)
    }

    /// For what is not as most slots have it; [`Self::slim`] takes it back.
    pub(super) fn rare_mut(&mut self) -> &mut Rare {
        self.rare.get_or_insert_default()
    }

    /// Gives back the room of what is as most slots have it.
    pub(super) fn slim(&mut self) {
        if self.rare.as_deref().is_some_and(|rare| *rare == Rare::default()) {
            self.rare = None;
        }
    }

    /// What its job is filed under among those that may go.
    pub(super) fn rank(&self) -> Rank {
        (self.active, Reverse(self.priority), self.turn)
    }

    /// What its hop is filed under among those that may go.
    pub(super) fn hop_rank(&self) -> Rank {
        (0, Reverse(0), self.turn)
    }

    /// Its delay, without jitter.
    pub(super) fn delay(&self, pacing: &Pacing) -> Duration {
        self.delay_by(&pacing.of(&self.key.0), pacing)
    }

    fn delay_by(&self, rates: &Rates, pacing: &Pacing) -> Duration {
        let rare = self.rare();
        let own = if rates.throttles {
            // Settings may have changed since it was found.
            let found = rare.throttled.unwrap_or_else(|| Throttled::new(&pacing.throttle, rates.delay));
            found.delay.min(pacing.throttle.max).max(rates.delay)
        } else {
            rates.delay
        };
        own.max(rare.crawl_delay)
    }

    /// Whether one of its requests has to be sent before the next one is given out.
    pub(super) fn is_paced(&self, pacing: &Pacing) -> bool {
        pacing.of(&self.key.0).is_paced() || !self.rare().crawl_delay.is_zero()
    }

    /// What throttles it.
    pub(super) fn rates(&self, pacing: &Pacing) -> Rates {
        pacing.of(&self.key.0)
    }

    pub(super) fn is_idle(&self) -> bool {
        let rare = self.rare();
        self.active == 0 && rare.hops == 0 && rare.robots_at.is_none() && self.queued_at.is_none() && !rare.parked
    }

    pub(super) fn is_full(&self, pacing: &Pacing, ahead: usize) -> bool {
        self.is_full_of(pacing.of(&self.key.0).per_slot.saturating_add(ahead))
    }

    const fn is_full_of(&self, places: usize) -> bool {
        self.active as usize >= places
    }

    /// When the slot is worth forgetting, as far as times go: after delay, gate and pause, and when the last minute is over.
    pub(super) fn closed_until(&self, pacing: &Pacing) -> Option<When> {
        let rates = pacing.of(&self.key.0);
        let minute = self.rare().minute.ends().filter(|_| rates.per_minute > 0);
        self.delayed_by(&rates, pacing).max(self.shut_until()).max(minute)
    }

    /// The end of gate and pause, whichever is later.
    pub(super) fn shut_until(&self) -> Option<When> {
        self.rare().gate.max(self.rare().pause)
    }

    /// When the next request may go after those that were sent; gates aside.
    pub(super) fn delayed_until(&self, pacing: &Pacing) -> Option<When> {
        self.delayed_by(&pacing.of(&self.key.0), pacing)
    }

    fn delayed_by(&self, rates: &Rates, pacing: &Pacing) -> Option<When> {
        let rare = self.rare();
        let delay = self.delay_by(rates, pacing);
        let delayed = rare.last.filter(|_| !delay.is_zero()).map(|(at, throw)| {
            // Neither a delay that robots.txt asks for nor what a refusal came to may be made shorter by the jitter.
            let floor = rare.throttled.filter(|_| rates.throttles).map_or(Duration::ZERO, |found| found.floor.min(delay));
            at.after(delay.mul_f64(throw.mul_add(rates.jitter, 1.0)).max(rare.crawl_delay).max(floor))
        });
        delayed.max(rare.minute.open_at(rates.per_minute))
    }

    /// When the first hop and the first job may go; `None` if there is none or it waits for something else.
    pub(super) fn due(&self, pacing: &Pacing, ahead: usize, now: When) -> (Option<When>, Option<When>) {
        let rare = self.rare();
        let rates = pacing.of(&self.key.0);
        let is_paced = rates.is_paced() || !rare.crawl_delay.is_zero();
        let shut = self.shut_until();
        let is_held_back = is_paced || shut.is_some_and(|gate| gate > now);
        if self.is_full_of(rates.per_slot.saturating_add(if is_held_back { 0 } else { ahead })) {
            return (None, None);
        }
        let robots = rare.robots_at.map(|at| shut.map_or(at, |gate| gate.max(at)));
        if rare.unsent > 0 && is_paced {
            return (None, robots);
        }
        let open = self.delayed_by(&rates, pacing).max(shut).unwrap_or(now);
        if rare.hops > 0 {
            return (Some(open), robots);
        }
        let queued = self.queued_at.filter(|_| !rare.parked).map(|at| at.max(open));
        (None, robots.into_iter().chain(queued).min())
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use std::sync::Arc;

    use super::*;

    #[test]
    fn a_slot_with_waiting_jobs_only_is_small() {
        assert!(size_of::<Option<Slot>>() <= 64, "{}", size_of::<Option<Slot>>());
        let mut slot = Slot::new(SlotKey(Arc::from("a.test")), 1);
        slot.rare_mut().hops += 1;
        slot.slim();
        assert!(slot.rare.is_some());
        slot.rare_mut().hops -= 1;
        slot.slim();
        assert!(slot.rare.is_none());
    }
}
