//! A bounded map that forgets what has expired, a little at each insertion.
//!
//! Never sweeps as a whole, so no call is slow; never holds more than its capacity, whatever is put in. Which entry goes
//! depends on the keys alone: a run can be repeated.

use std::collections::BTreeMap;
use std::ops::Bound;

/// How many old entries each insertion looks at: more than one, so expired entries go faster than new ones come.
const LOOKS: usize = 2;

/// Entries by key, at most `capacity` of them.
#[derive(Debug, Clone)]
pub(crate) struct Shelf<K, V> {
    entries: BTreeMap<K, V>,
    hand: Option<K>,
    capacity: usize,
}

impl<K: Ord + Copy, V: Default> Shelf<K, V> {
    pub(crate) const fn new(capacity: usize) -> Self {
        Self { entries: BTreeMap::new(), hand: None, capacity }
    }

    pub(crate) fn get(&self, key: &K) -> Option<&V> {
        self.entries.get(key)
    }

    /// The entry of this key, new if there is none. A new one makes room: entries that `expired` accepts go first, and on a
    /// full shelf the next one in turn goes whatever it holds.
    pub(crate) fn entry(&mut self, key: K, expired: impl Fn(&V) -> bool) -> &mut V {
        if !self.entries.contains_key(&key) {
            self.make_room(expired);
        }
        self.entries.entry(key).or_default()
    }

    #[cfg(test)]
    pub(crate) fn remove(&mut self, key: &K) -> Option<V> {
        self.entries.remove(key)
    }

    #[cfg(test)]
    pub(crate) fn len(&self) -> usize {
        self.entries.len()
    }

    fn make_room(&mut self, expired: impl Fn(&V) -> bool) {
        for _ in 0..LOOKS {
            let after = self.hand.map_or(Bound::Unbounded, Bound::Excluded);
            let next = self.entries.range((after, Bound::Unbounded)).next().or_else(|| self.entries.iter().next());
            let Some((key, gone)) = next.map(|(key, value)| (*key, expired(value))) else { return };
            self.hand = Some(key);
            if gone || self.entries.len() >= self.capacity {
                self.entries.remove(&key);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing)]
    use super::*;

    #[test]
    fn a_full_shelf_drops_one_to_take_one() {
        let mut shelf: Shelf<u32, u32> = Shelf::new(4);
        for key in 0..100 {
            *shelf.entry(key, |_| false) = key;
            assert!(shelf.len() <= 4);
            assert_eq!(shelf.get(&key), Some(&key));
        }
        assert_eq!(shelf.len(), 4);
        assert_eq!(shelf.remove(&99), Some(99));
        assert_eq!(shelf.get(&99), None);
    }

    #[test]
    fn expired_entries_go_as_new_ones_come() {
        let mut shelf: Shelf<u32, u32> = Shelf::new(1_000_000);
        for key in 0..10_000 {
            // Only the last hundred are alive.
            *shelf.entry(key, |at| at + 100 < key) = key;
            assert!(shelf.len() < 400, "{} after {key}", shelf.len());
        }
        for key in 9_901..10_000 {
            assert_eq!(shelf.get(&key), Some(&key));
        }
    }

    #[test]
    fn an_entry_in_use_is_not_swept_by_its_own_lookup() {
        let mut shelf: Shelf<u32, u32> = Shelf::new(2);
        *shelf.entry(1, |_| true) = 7;
        assert_eq!(*shelf.entry(1, |_| true), 7);
    }
}
