//! The seen set: every key exactly, in 20 to 28 bytes.
//!
//! Open addressing with linear probing. A table that doubles would be a third full after it grew, and hold both copies
//! meanwhile: this one grows by two fifths, and a large one is cut into shards that grow one at a time. Keys are hashes:
//! their upper bits choose the shard and, in the order of the keys, the place, so that growing reads and writes along.

use super::heap::allocation;

/// Shards of a large set, chosen by the highest six bits.
const SHARDS: usize = 64;

/// Up to so many keys the set is in one piece.
const IN_ONE_PIECE: usize = 1 << 14;

/// The fewest places of a shard that holds anything.
const FEWEST: usize = 8;

/// A set of keys.
#[derive(Debug)]
pub(crate) struct Seen {
    shards: Vec<Shard>,
    len: usize,
    bytes: usize,
    /// Zero marks empty places, so its presence is kept here.
    has_zero: bool,
}

#[derive(Debug, Default)]
struct Shard {
    places: Box<[u128]>,
    len: usize,
}

impl Seen {
    pub(crate) fn new() -> Self {
        Self { shards: vec![Shard::default()], len: 0, bytes: 0, has_zero: false }
    }

    /// Adds a key; false when it was there.
    pub(crate) fn insert(&mut self, key: u128) -> bool {
        if key == 0 {
            let is_new = !std::mem::replace(&mut self.has_zero, true);
            self.len += usize::from(is_new);
            return is_new;
        }
        if self.shards.len() == 1 && self.len >= IN_ONE_PIECE {
            self.cut(self.len);
        }
        let at = self.shard_of(key);
        let Some(shard) = self.shards.get_mut(at) else { return false };
        if shard.is_full_with(1) {
            // Most keys that come to a full shard are known: they make nothing grow.
            if shard.contains(key) {
                return false;
            }
            let before = shard.bytes();
            shard.resize(grown(shard.places.len()));
            self.bytes = self.bytes + shard.bytes() - before;
        }
        let is_new = shard.insert(key);
        self.len += usize::from(is_new);
        is_new
    }

    pub(crate) fn contains(&self, key: u128) -> bool {
        if key == 0 { self.has_zero } else { self.shards.get(self.shard_of(key)).is_some_and(|shard| shard.contains(key)) }
    }

    #[cfg(test)]
    pub(crate) const fn len(&self) -> usize {
        self.len
    }

    /// Bytes held.
    pub(crate) const fn bytes(&self) -> usize {
        self.bytes + allocation(self.shards.len() * size_of::<Shard>())
    }

    /// Bytes more that it may hold when these keys are in, and while they are put in; at most a few more than true.
    pub(crate) fn growth(&self, keys: impl Iterator<Item = u128> + Clone) -> usize {
        let count = keys.clone().count();
        if self.shards.len() == 1 && self.len + count > IN_ONE_PIECE {
            return self.bytes + SHARDS * size_of::<Shard>();
        }
        let mut counted = [false; SHARDS];
        let mut more = 0;
        let mut copied = 0;
        for key in keys {
            let at = self.shard_of(key);
            if let (Some(shard), Some(counted)) = (self.shards.get(at), counted.get_mut(at))
                && !std::mem::replace(counted, true)
                && shard.is_full_with(count)
            {
                let mut places = shard.places.len();
                while is_full(shard.len + count, places) {
                    places = grown(places);
                }
                more += allocation(places * size_of::<u128>()) - shard.bytes();
                copied = copied.max(shard.bytes());
            }
        }
        more + copied
    }

    /// What [`Seen::growth`] is at most for any `keys` keys.
    pub(crate) const fn most_growth(&self, keys: usize) -> usize {
        let copied = if self.shards.len() == 1 { self.bytes } else { self.bytes / 16 };
        self.bytes * 2 / 5 + copied + keys * 2 * size_of::<u128>() + SHARDS * 2 * FEWEST * size_of::<u128>()
    }

    /// Cuts the one piece into shards, with room for `expected` keys.
    fn cut(&mut self, expected: usize) {
        let each = expected / SHARDS;
        let places = places_for(each + 4 * each.isqrt());
        let whole = std::mem::take(&mut self.shards);
        self.shards.resize_with(SHARDS, || Shard { places: vec![0; places].into(), len: 0 });
        let keys = whole.iter().flat_map(|shard| &shard.places).filter(|key| **key != 0);
        for key in keys {
            let at = self.shard_of(*key);
            if let Some(shard) = self.shards.get_mut(at) {
                if shard.is_full_with(1) {
                    shard.resize(grown(shard.places.len()));
                }
                shard.insert(*key);
            }
        }
        self.bytes = self.shards.iter().map(Shard::bytes).sum();
    }

    #[allow(clippy::cast_possible_truncation, reason = "only six bits are left")]
    const fn shard_of(&self, key: u128) -> usize {
        if self.shards.len() == 1 { 0 } else { (key >> 122) as usize }
    }
}

impl Shard {
    const fn is_full_with(&self, more: usize) -> bool {
        is_full(self.len + more, self.places.len())
    }

    fn contains(&self, key: u128) -> bool {
        let (before, from) = self.places.split_at(home(key, self.places.len()));
        for place in from {
            if *place == key || *place == 0 {
                return *place == key;
            }
        }
        before.iter().take_while(|place| **place != 0).any(|place| *place == key)
    }

    /// There must be an empty place, unless the key is there.
    fn insert(&mut self, key: u128) -> bool {
        let (before, from) = self.places.split_at_mut(home(key, self.places.len()));
        for place in from.iter_mut().chain(before) {
            if *place == key {
                return false;
            }
            if *place == 0 {
                *place = key;
                self.len += 1;
                return true;
            }
        }
        false
    }

    fn resize(&mut self, places: usize) {
        let old = std::mem::replace(&mut self.places, vec![0; places].into());
        self.len = 0;
        for key in old.iter().filter(|key| **key != 0) {
            self.insert(*key);
        }
    }

    const fn bytes(&self) -> usize {
        allocation(self.places.len() * size_of::<u128>())
    }
}

/// The place a key belongs to, of `places`: in proportion to the 64 bits below those that choose the shard.
#[allow(clippy::cast_possible_truncation, reason = "64 bits are taken, and a product with a fraction is smaller than the number")]
const fn home(key: u128, places: usize) -> usize {
    let fraction = (key >> 58) as u64;
    ((fraction as u128 * places as u128) >> 64) as usize
}

/// Whether more than four fifths are used.
const fn is_full(len: usize, places: usize) -> bool {
    len * 5 > places * 4
}

const fn grown(places: usize) -> usize {
    let more = places * 2 / 5;
    places + if more < FEWEST { FEWEST } else { more }
}

const fn places_for(keys: usize) -> usize {
    let places = keys * 5 / 4 + 1;
    if places < FEWEST { FEWEST } else { places }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing)]
    use std::collections::HashSet;

    use proptest::prelude::*;
    use xxhash_rust::xxh3::xxh3_128;

    use super::*;

    fn key(n: u64) -> u128 {
        xxh3_128(&n.to_le_bytes())
    }

    #[test]
    fn a_key_takes_at_most_32_bytes_at_rest_and_48_while_it_grows() {
        let mut seen = Seen::new();
        let (mut at_rest, mut growing) = (0.0_f64, 0.0_f64);
        for n in 1..1_000_000_u32 {
            let before = seen.bytes();
            assert!(seen.insert(key(n.into())));
            let is_in_one_piece = seen.shards.len() == 1;
            if n < 1_000 || (is_in_one_piece && n >= 16_384) {
                continue;
            }
            let each = |bytes: usize| bytes as f64 / f64::from(n);
            at_rest = at_rest.max(each(seen.bytes()));
            if seen.bytes() > before && n > 16_385 {
                // The old copy of the largest shard was there as well.
                let largest = seen.shards.iter().map(Shard::bytes).max().unwrap();
                growing = growing.max(each(seen.bytes() + largest));
            }
        }
        assert!(at_rest <= 32.0, "{at_rest} bytes a key");
        assert!(growing <= 32.0, "{growing} bytes a key while a shard is copied");
    }

    #[test]
    fn keys_that_are_known_make_nothing_grow() {
        let mut seen = Seen::new();
        for n in 0..3_000 {
            seen.insert(key(n));
            let bytes = seen.bytes();
            assert!(!seen.insert(key(n)) && !seen.insert(key(n / 2)));
            assert_eq!(seen.bytes(), bytes, "after {n}");
        }
    }

    #[test]
    fn what_is_in_is_found_and_nothing_else() {
        let mut seen = Seen::new();
        let all = IN_ONE_PIECE as u64 * 2;
        assert!((0..all).all(|n| seen.insert(key(n))));
        assert!((0..all).all(|n| seen.contains(key(n)) && !seen.insert(key(n))));
        assert!((all..2 * all).all(|n| !seen.contains(key(n))));
    }

    #[test]
    fn the_growth_told_is_never_less_than_what_comes() {
        let mut seen = Seen::new();
        for batch in 0..4_000_u64 {
            let keys = (batch * 50..batch * 50 + 50).map(key);
            let told = seen.growth(keys.clone());
            let before = seen.bytes();
            keys.for_each(|key| assert!(seen.insert(key)));
            assert!(seen.bytes() <= before + told, "batch {batch}");
        }
    }

    proptest! {
        #[test]
        fn it_is_a_set(keys in proptest::collection::vec(prop_oneof![0_u128..40, any::<u128>(), (0_u128..40).prop_map(|k| u128::MAX - k), (0_u128..9).prop_map(|k| k << 122)], 0..400)) {
            let mut seen = Seen::new();
            let mut model = HashSet::new();
            for key in keys {
                prop_assert_eq!(seen.contains(key), model.contains(&key));
                prop_assert_eq!(seen.insert(key), model.insert(key));
                prop_assert_eq!(seen.len(), model.len());
            }
            let all: Vec<u128> = model.iter().copied().collect();
            seen.cut(all.len());
            prop_assert!(all.iter().all(|key| seen.contains(*key) && !seen.insert(*key)));
        }
    }
}
