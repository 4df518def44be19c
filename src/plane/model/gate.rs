//! The gate before the pool: how many acquires are worked on at once, who waits, who is sent away
//! (wire contract, section 31).
//!
//! A heavy attempt costs as many units as it asks for leases. First come, first served: a light one never overtakes a heavy
//! one that waits. Nobody who is sent away has consumed anything.

use std::collections::VecDeque;

use super::Ms;
use crate::dice::Dice;

/// Longest stay in the wait room, ms.
const LONGEST_STAY: Ms = 50;
/// Fewest places in the wait room.
const FEWEST_PLACES: usize = 32;
/// Least and most units of one instance.
#[cfg(test)]
const SHARE: (u32, u32) = (4, 4_096);
/// Hints of those sent away lie in `[LEAST_HINT, LEAST_HINT + HINT_SPREAD)` ms.
const LEAST_HINT: Ms = 100;
const HINT_SPREAD: u64 = 100;

/// How many units one instance of `instances` has of the fleet's budget: its share, at least 4 and at most 4,096. A budget of
/// 0 is no limit; what is pinned for the instance is used as it is.
#[cfg(test)]
pub(crate) fn share(budget: u32, instances: u32, pinned: Option<u32>) -> u32 {
    match pinned {
        Some(units) => units,
        None if budget == 0 => 0,
        None => (budget / instances.max(1)).clamp(SHARE.0, SHARE.1),
    }
}

/// The hint for one who is sent away: 100 to 199 ms, evenly spread.
pub(crate) fn shed_hint(dice: &mut Dice) -> Ms {
    LEAST_HINT + dice.roll() % HINT_SPREAD
}

/// A place in the wait room. Later ones are greater.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Place(u64);

/// What the gate answers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Entry {
    /// Goes in, and gives these units back with [`Gate::leave`].
    In(u32),
    /// Waits, at most until then.
    Waits(Place, Ms),
    /// Is sent away with `overloaded`.
    Shed,
}

/// What becomes of one who waited.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Turn {
    /// Goes in, and gives these units back with [`Gate::leave`].
    In(Place, u32),
    /// Waited long enough and is sent away with `overloaded`.
    Shed(Place),
}

#[derive(Debug)]
struct Waiting {
    place: Place,
    units: u32,
    until: Ms,
}

/// The gate of one instance.
#[derive(Debug)]
pub(crate) struct Gate {
    limit: u32,
    busy: u32,
    room: VecDeque<Waiting>,
    next: u64,
}

impl Gate {
    /// A gate of so many units; 0 lets everybody in.
    pub(crate) fn new(limit: u32) -> Self {
        Self { limit, busy: 0, room: VecDeque::new(), next: 0 }
    }

    /// Asks to go in with an attempt for `count` leases, of which none costs more than the whole gate. `wait` is what is left
    /// of the call's `wait_ms`.
    pub(crate) fn ask(&mut self, count: u32, wait: Ms, now: Ms) -> Entry {
        if self.limit == 0 {
            return Entry::In(0);
        }
        let units = count.clamp(1, self.limit);
        if self.room.is_empty() && self.fits(units) {
            self.busy += units;
            return Entry::In(units);
        }
        if wait == 0 || self.room.len() >= self.places() {
            return Entry::Shed;
        }
        let place = Place(self.next);
        self.next += 1;
        let until = now.saturating_add(wait.min(LONGEST_STAY));
        self.room.push_back(Waiting { place, units, until });
        Entry::Waits(place, until)
    }

    /// Gives back the units of one who went in; answers whose turn it is now, in order.
    pub(crate) fn leave(&mut self, units: u32, now: Ms) -> Vec<Turn> {
        self.busy = self.busy.saturating_sub(units);
        self.turns(now)
    }

    /// One who waits has gone away by itself; answers whose turn it is now, in order.
    pub(crate) fn give_up(&mut self, place: Place, now: Ms) -> Vec<Turn> {
        self.room.retain(|waiting| waiting.place != place);
        self.turns(now)
    }

    /// Whose turn it is: those whose stay is over are sent away, and whoever fits behind them goes in.
    pub(crate) fn turns(&mut self, now: Ms) -> Vec<Turn> {
        let mut turns = Vec::new();
        self.room.retain(|waiting| {
            let stays = now < waiting.until;
            if !stays {
                turns.push(Turn::Shed(waiting.place));
            }
            stays
        });
        while let Some(first) = self.room.front().filter(|first| self.fits(first.units)) {
            self.busy += first.units;
            turns.push(Turn::In(first.place, first.units));
            self.room.pop_front();
        }
        turns
    }

    /// When the next stay is over.
    #[cfg(test)]
    pub(crate) fn next_end(&self) -> Option<Ms> {
        self.room.iter().map(|waiting| waiting.until).min()
    }

    /// Units that are in.
    #[cfg(test)]
    pub(crate) const fn busy(&self) -> u32 {
        self.busy
    }

    fn fits(&self, units: u32) -> bool {
        units <= self.limit.saturating_sub(self.busy)
    }

    fn places(&self) -> usize {
        usize::try_from(self.limit).map_or(usize::MAX, |limit| limit.saturating_mul(4)).max(FEWEST_PLACES)
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing, clippy::panic)]

    use proptest::prelude::*;

    use super::*;

    fn waits(entry: Entry) -> Place {
        let Entry::Waits(place, _) = entry else { panic!("{entry:?}") };
        place
    }

    #[test]
    fn b151_a_full_gate_sends_away_who_cannot_wait_and_a_batch_costs_its_count() {
        let mut gate = Gate::new(4);
        assert_eq!(gate.ask(3, 0, 0), Entry::In(3));
        assert_eq!(gate.ask(2, 0, 0), Entry::Shed);
        assert_eq!(gate.busy(), 3, "nothing is taken by who is sent away");
        assert_eq!(gate.ask(1, 0, 0), Entry::In(1));
        assert_eq!(gate.ask(1, 0, 0), Entry::Shed);
        assert_eq!(gate.leave(3, 0), []);
        assert_eq!(gate.ask(50, 0, 0), Entry::Shed);
        assert_eq!(gate.leave(1, 0), []);
        assert_eq!(gate.ask(50, 0, 0), Entry::In(4), "no attempt costs more than the gate has");
    }

    #[test]
    fn b151_hints_are_spread_over_100_to_199_ms() {
        let mut dice = Dice::new(3);
        let hints: Vec<Ms> = (0..5_000).map(|_| shed_hint(&mut dice)).collect();
        assert_eq!((hints.iter().min(), hints.iter().max()), (Some(&100), Some(&199)));
    }

    #[test]
    fn who_waits_goes_in_by_turns_and_nobody_overtakes() {
        let mut gate = Gate::new(4);
        assert_eq!(gate.ask(3, 0, 0), Entry::In(3));
        let heavy = gate.ask(4, 5_000, 0);
        assert_eq!(heavy, Entry::Waits(waits(heavy), 50), "at most 50 ms, however long the call may wait");
        assert_eq!(gate.ask(1, 0, 0), Entry::Shed, "a light one does not overtake");
        let light = gate.ask(1, 20, 10);
        assert_eq!(light, Entry::Waits(waits(light), 30));
        assert_eq!(gate.next_end(), Some(30));
        assert_eq!(gate.leave(3, 12), [Turn::In(waits(heavy), 4)]);
        assert_eq!(gate.leave(4, 13), [Turn::In(waits(light), 1)]);
        assert_eq!((gate.busy(), gate.next_end()), (1, None));
    }

    #[test]
    fn whose_stay_is_over_is_sent_away_and_makes_room_for_the_next() {
        let mut gate = Gate::new(4);
        assert_eq!(gate.ask(3, 0, 0), Entry::In(3));
        let heavy = waits(gate.ask(2, 10, 0));
        let light = waits(gate.ask(1, 50, 0));
        assert_eq!(gate.turns(9), []);
        assert_eq!(gate.turns(10), [Turn::Shed(heavy), Turn::In(light, 1)]);
        let gone = waits(gate.ask(4, 50, 20));
        let next = waits(gate.ask(1, 50, 20));
        assert_eq!(gate.leave(1, 21), []);
        assert_eq!(gate.give_up(gone, 22), [Turn::In(next, 1)]);
    }

    #[test]
    fn the_wait_room_has_an_end() {
        for (limit, places) in [(1, 32), (8, 32), (9, 36)] {
            let mut gate = Gate::new(limit);
            assert_eq!(gate.ask(limit, 0, 0), Entry::In(limit));
            for _ in 0..places {
                waits(gate.ask(1, 50, 0));
            }
            assert_eq!(gate.ask(1, 50, 0), Entry::Shed);
        }
    }

    #[test]
    fn a_share_is_the_budget_divided_unless_it_is_off_or_pinned() {
        for (budget, instances, pinned, units) in [
            (64, 1, None, 64),
            (64, 3, None, 21),
            (64, 32, None, 4),
            (64, 0, None, 64),
            (1_000_000, 1, None, 4_096),
            (0, 5, None, 0),
            (64, 3, Some(1), 1),
            (64, 3, Some(0), 0),
        ] {
            assert_eq!(share(budget, instances, pinned), units);
        }
        assert_eq!(Gate::new(0).ask(50, 0, 0), Entry::In(0));
    }

    #[derive(Debug, Clone)]
    enum Step {
        Ask(u32, Ms),
        Leave,
        GiveUp,
        Pass(Ms),
    }

    fn step() -> impl Strategy<Value = Step> {
        prop_oneof![
            3 => (1_u32..9, prop_oneof![Just(0), 1_u64..80]).prop_map(|(count, wait)| Step::Ask(count, wait)),
            3 => Just(Step::Leave),
            1 => Just(Step::GiveUp),
            2 => (0_u64..40).prop_map(Step::Pass),
        ]
    }

    proptest! {
        #[test]
        fn units_never_exceed_the_limit_and_everybody_is_answered_once(
            limit in 1_u32..6,
            steps in prop::collection::vec(step(), 1..200),
        ) {
            let mut gate = Gate::new(limit);
            let (mut now, mut inside, mut waiting) = (0, Vec::new(), Vec::new());
            for step in steps {
                let turns = match step {
                    Step::Ask(count, wait) => {
                        match gate.ask(count, wait, now) {
                            Entry::In(units) => {
                                prop_assert!(waiting.is_empty(), "overtook {waiting:?}");
                                inside.push(units);
                            }
                            Entry::Waits(place, until) => {
                                prop_assert!(until <= now + 50);
                                waiting.push((place, until));
                            }
                            Entry::Shed => prop_assert!(wait == 0 || waiting.len() == 32),
                        }
                        Vec::new()
                    }
                    Step::Leave => inside.pop().map_or_else(Vec::new, |units| gate.leave(units, now)),
                    Step::GiveUp => waiting.pop().map_or_else(Vec::new, |(place, _)| gate.give_up(place, now)),
                    Step::Pass(time) => {
                        now += time;
                        gate.turns(now)
                    }
                };
                for turn in turns {
                    match turn {
                        Turn::In(place, units) => {
                            let (first, until) = waiting.remove(0);
                            prop_assert!(first == place && now < until);
                            inside.push(units);
                        }
                        Turn::Shed(place) => {
                            let index = waiting.iter().position(|(other, until)| *other == place && *until <= now);
                            waiting.remove(index.expect("only a place whose stay is over"));
                        }
                    }
                }
                prop_assert_eq!(gate.busy(), inside.iter().sum::<u32>());
                prop_assert!(gate.busy() <= limit);
                prop_assert_eq!(gate.room.len(), waiting.len());
            }
        }
    }
}
