//! Which report ids were seen within the dedup window (wire contract, section 24).
//!
//! Keeps 128 bits of an id, not the id: among 10^8 ids a false repeat has a chance of 10^-22. Bounded: when it is full, the
//! oldest id is forgotten early, and counted.

use std::collections::{HashSet, VecDeque};

use xxhash_rust::xxh3::xxh3_128_with_seed;

use super::hash::Folding;
use crate::plane::model::Ms;

/// One hour.
const WINDOW: Ms = 3_600_000;

/// The ids of one site.
#[derive(Debug)]
pub(crate) struct ReportDedup {
    window: Ms,
    limit: usize,
    seen: HashSet<u128, Folding>,
    /// The same, oldest first.
    order: VecDeque<u128>,
    /// When they were seen: a moment, and how many ids of `order` are of it.
    moments: VecDeque<(Ms, u32)>,
    forgotten_early: u64,
}

/// Whether an id is new.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Seen {
    First,
    Again,
}

impl ReportDedup {
    /// Remembers up to `limit` ids (at least one) for one hour.
    pub(crate) fn new(limit: usize) -> Self {
        Self {
            window: WINDOW,
            limit: limit.max(1),
            seen: HashSet::default(),
            order: VecDeque::new(),
            moments: VecDeque::new(),
            forgotten_early: 0,
        }
    }

    /// Takes note of an accepted report of a lease of `shard`. A repeat does not make the window longer.
    pub(crate) fn note(&mut self, shard: u8, report: &str, now: Ms) -> Seen {
        self.forget(now);
        let id = xxh3_128_with_seed(report.as_bytes(), u64::from(shard));
        if !self.seen.insert(id) {
            return Seen::Again;
        }
        if self.order.len() >= self.limit {
            self.drop_oldest();
            self.forgotten_early += 1;
        }
        self.order.push_back(id);
        match self.moments.back_mut() {
            // A clock that went back does not disturb the order.
            Some((at, ids)) if *at >= now && *ids < u32::MAX => *ids += 1,
            _ => self.moments.push_back((now, 1)),
        }
        Seen::First
    }

    /// How many ids are remembered.
    #[cfg(test)]
    pub(crate) fn len(&self) -> usize {
        self.order.len()
    }

    /// How many ids were forgotten before their hour was over, for want of room.
    #[cfg(test)]
    pub(crate) const fn forgotten_early(&self) -> u64 {
        self.forgotten_early
    }

    fn forget(&mut self, now: Ms) {
        while self.moments.front().is_some_and(|(at, _)| at.saturating_add(self.window) <= now) {
            self.drop_oldest();
        }
    }

    fn drop_oldest(&mut self) {
        if let Some(id) = self.order.pop_front() {
            self.seen.remove(&id);
        }
        if let Some((_, ids)) = self.moments.front_mut() {
            *ids = ids.saturating_sub(1);
            if *ids == 0 {
                self.moments.pop_front();
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn b152_the_same_id_counts_once_within_an_hour() {
        let mut dedup = ReportDedup::new(1_000);
        assert_eq!(dedup.note(3, "r-1", 0), Seen::First);
        assert_eq!(dedup.note(3, "r-1", 0), Seen::Again);
        assert_eq!(dedup.note(3, "r-1", WINDOW - 1), Seen::Again);
        assert_eq!(dedup.note(4, "r-1", WINDOW - 1), Seen::First, "another shard, another id");
        assert_eq!(dedup.note(3, "r-1", WINDOW), Seen::First);
        assert_eq!(dedup.len(), 2);
    }

    #[test]
    fn a_full_memory_forgets_the_oldest_and_says_so() {
        let mut dedup = ReportDedup::new(2);
        for id in ["a", "b", "c"] {
            assert_eq!(dedup.note(0, id, 5), Seen::First);
        }
        assert_eq!((dedup.len(), dedup.forgotten_early()), (2, 1));
        assert_eq!(dedup.note(0, "b", 6), Seen::Again);
        assert_eq!(dedup.note(0, "a", 6), Seen::First);
    }

    #[test]
    fn an_id_takes_less_than_80_bytes() {
        let mut dedup = ReportDedup::new(usize::MAX);
        let mut worst = 0;
        for n in 0..300_000_u64 {
            dedup.note(0, &format!("{n}"), n / 30);
            if n < 50_000 {
                continue;
            }
            // What hashbrown takes: buckets of a power of two, at most 7/8 full, 16 bytes and one of control each.
            let buckets = (dedup.seen.capacity() * 8 / 7).next_power_of_two();
            let bytes = buckets * 17 + dedup.order.capacity() * 16 + dedup.moments.capacity() * 16;
            worst = worst.max(bytes / dedup.len());
        }
        assert!(worst < 80, "{worst} bytes an id");
    }

    proptest! {
        #[test]
        fn it_answers_like_a_list_of_all_reports(
            limit in prop_oneof![Just(4_usize), Just(1_000)],
            steps in proptest::collection::vec(
                (0_u8..2, 0_u32..30, prop_oneof![0_u64..3, Just(900_000), 0..4_000_000_u64]), 1..120
            ),
        ) {
            let mut dedup = ReportDedup::new(limit);
            let (mut list, mut now) = (Vec::<(Ms, u8, u32)>::new(), 0);
            for (shard, id, gap) in steps {
                now += gap;
                list.retain(|(at, ..)| at + WINDOW > now);
                let again = list.iter().any(|(_, s, i)| (*s, *i) == (shard, id));
                prop_assert_eq!(dedup.note(shard, &id.to_string(), now) == Seen::Again, again);
                if !again {
                    if list.len() == limit {
                        list.remove(0);
                    }
                    list.push((now, shard, id));
                }
                prop_assert_eq!(dedup.len(), list.len());
                prop_assert_eq!(dedup.seen.len(), list.len());
            }
        }
    }
}
