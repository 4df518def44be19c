//! Sticky sessions: which identity a session key got last, per endpoint group (wire contract, section 21.2).
//!
//! Bounded: when it is full, the key whose time is over first goes. Never decides whether the identity is still fit.

use std::borrow::Cow;
use std::collections::{BTreeSet, HashMap};
use std::fmt::{self, Write as _};
use std::sync::Arc;

use sha2::{Digest as _, Sha256};

use super::Ms;

/// Longest key, in bytes, that is used as it is.
const RAW: usize = 64;

/// The map of one site.
pub(crate) struct StickyMap {
    limit: usize,
    /// By `<group>/<stored key>`.
    places: HashMap<Arc<str>, u32>,
    entries: Vec<Option<Entry>>,
    free: Vec<u32>,
    /// By the end of their time.
    ends: BTreeSet<(Ms, u32)>,
    /// For the name that is looked up.
    name: String,
}

struct Entry {
    name: Arc<str>,
    identity: u32,
    ends: Ms,
}

impl StickyMap {
    /// An empty map that keeps at most `limit` keys (at least one).
    pub(crate) fn new(limit: usize) -> Self {
        Self {
            limit: limit.max(1),
            places: HashMap::new(),
            entries: Vec::new(),
            free: Vec::new(),
            ends: BTreeSet::new(),
            name: String::new(),
        }
    }

    /// The identity `key` got last in `group`, while its time lasts.
    pub(crate) fn get(&mut self, group: u32, key: &str, now: Ms) -> Option<u32> {
        self.write_name(group, key);
        let place = *self.places.get(self.name.as_str())?;
        let entry = self.entries.get(place as usize)?.as_ref()?;
        if entry.ends > now {
            return Some(entry.identity);
        }
        self.drop_place(place);
        None
    }

    /// Maps `key` to `identity` for `ttl` from `now` on; every use does, so that the time starts again.
    pub(crate) fn set(&mut self, group: u32, key: &str, identity: u32, ttl: Ms, now: Ms) {
        self.write_name(group, key);
        let ends = now.saturating_add(ttl);
        if let Some(place) = self.places.get(self.name.as_str()).copied() {
            if let Some(entry) = self.entries.get_mut(place as usize).and_then(Option::as_mut) {
                self.ends.remove(&(entry.ends, place));
                self.ends.insert((ends, place));
                entry.identity = identity;
                entry.ends = ends;
            }
            return;
        }
        if self.places.len() >= self.limit
            && let Some((_, first)) = self.ends.first().copied()
        {
            self.drop_place(first);
        }
        // Keys nobody asks for again leave in passing.
        for _ in 0..2 {
            match self.ends.first().copied() {
                Some((end, place)) if end <= now => self.drop_place(place),
                _ => break,
            }
        }
        let place = self.free.pop().unwrap_or_else(|| {
            self.entries.push(None);
            u32::try_from(self.entries.len() - 1).unwrap_or(u32::MAX)
        });
        let name: Arc<str> = self.name.as_str().into();
        if let Some(entry) = self.entries.get_mut(place as usize) {
            *entry = Some(Entry { name: Arc::clone(&name), identity, ends });
            self.ends.insert((ends, place));
            self.places.insert(name, place);
        }
    }

    /// How many keys there are, those whose time is over included until they are noticed.
    pub(crate) fn len(&self) -> usize {
        self.places.len()
    }

    fn drop_place(&mut self, place: u32) {
        if let Some(entry) = self.entries.get_mut(place as usize).and_then(Option::take) {
            self.ends.remove(&(entry.ends, place));
            self.places.remove(&entry.name);
            self.free.push(place);
        }
    }

    fn write_name(&mut self, group: u32, key: &str) {
        self.name.clear();
        // Writing to a text cannot fail.
        let _ = write!(self.name, "{group}/{}", stored_key(key));
    }
}

impl fmt::Debug for StickyMap {
    /// Without the keys: a session key may be an account's name.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("StickyMap").field("len", &self.len()).field("limit", &self.limit).finish()
    }
}

/// How a session key is stored: as it is when it is short and of safe characters, else by its hash.
pub(crate) fn stored_key(key: &str) -> Cow<'_, str> {
    let safe = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'.' | b':' | b'-');
    if key.len() <= RAW && key.bytes().all(safe) {
        return Cow::Borrowed(key);
    }
    let mut hash = String::with_capacity(32);
    for byte in Sha256::digest(key.as_bytes()).iter().take(16) {
        let _ = write!(hash, "{byte:02x}");
    }
    Cow::Owned(hash)
}

#[cfg(test)]
mod tests {
    use super::*;

    const TTL: Ms = 600_000;

    #[test]
    fn keys_that_are_not_safe_are_stored_by_their_hash() {
        assert_eq!(stored_key("user 42/ü"), "10fbab2a704de8bd73782225570d18a0");
        for raw in ["user-42", "a_b.c:d-E9", "", &"x".repeat(64)] {
            assert_eq!(stored_key(raw), raw);
        }
        for hashed in ["a b", "é", "a/b", &"x".repeat(65)] {
            let stored = stored_key(hashed).into_owned();
            assert!(stored.len() == 32 && stored != hashed, "{hashed}");
        }
    }

    #[test]
    fn b141_a_key_keeps_its_identity_per_group_while_it_is_used() {
        let mut map = StickyMap::new(100);
        map.set(1, "k", 7, TTL, 0);
        map.set(2, "k", 8, TTL, 0);
        assert_eq!((map.get(1, "k", 1), map.get(2, "k", 1), map.get(3, "k", 1)), (Some(7), Some(8), None));
        assert_eq!(map.get(1, "k", TTL - 1), Some(7));
        map.set(1, "k", 7, TTL, TTL - 1);
        assert_eq!(map.get(2, "k", TTL), None);
        assert_eq!(map.get(1, "k", TTL), Some(7));
        // The identity cools down: the key goes over to another.
        map.set(1, "k", 9, TTL, TTL);
        assert_eq!(map.get(1, "k", 2 * TTL - 1), Some(9));
        assert_eq!(map.get(1, "k", 2 * TTL), None);
        assert_eq!(map.len(), 0);
    }

    #[test]
    fn a_full_map_drops_the_key_whose_time_is_over_first() {
        let mut map = StickyMap::new(3);
        for (key, identity) in [("a", 1), ("b", 2), ("c", 3)] {
            map.set(0, key, identity, TTL, u64::from(identity));
        }
        map.set(0, "a", 1, TTL, 10);
        map.set(0, "d", 4, TTL, 11);
        assert_eq!(map.len(), 3);
        let kept: Vec<_> = ["a", "b", "c", "d"].map(|key| map.get(0, key, 12)).into();
        assert_eq!(kept, [Some(1), None, Some(3), Some(4)]);
    }

    #[test]
    fn keys_nobody_asks_for_again_do_not_pile_up() {
        let mut map = StickyMap::new(1_000_000);
        for n in 0..10_000_u64 {
            map.set(0, &format!("visitor {n}"), 1, 100, n * 10);
        }
        assert!(map.len() <= 12 && map.entries.len() <= 13, "{map:?}");
        assert!(!format!("{map:?}").contains("visitor"));
    }
}
