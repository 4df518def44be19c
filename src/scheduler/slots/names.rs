//! Which slot a host has: a table of ids beside the names, which the slots hold themselves.

use std::hash::{BuildHasher as _, RandomState};

use super::SlotId;

/// The least size of a table that holds anything; a power of two.
const LEAST: usize = 16;

/// The table: open addressing, the next free place after the one a name's hash says.
#[derive(Debug, Default)]
pub(super) struct Names {
    /// Empty, or of a length that is a power of two.
    places: Vec<Option<Named>>,
    len: usize,
    /// Hosts come from pages: nobody may be able to choose them so that all fall on one place.
    hasher: RandomState,
}

#[derive(Debug, Clone, Copy)]
struct Named {
    hash: u32,
    /// The id, plus one, so that an empty place needs no room of its own.
    id: std::num::NonZeroU32,
}

impl Names {
    pub(super) const fn len(&self) -> usize {
        self.len
    }

    /// The host's slot; `is_named` tells whether a slot has this host's name.
    pub(super) fn find(&self, host: &str, is_named: impl Fn(SlotId) -> bool) -> Option<SlotId> {
        let hash = self.hash(host);
        let mut at = self.home(hash)?;
        while let Some(named) = self.places.get(at).copied().flatten() {
            if named.hash == hash && is_named(named.slot()) {
                return Some(named.slot());
            }
            at = self.next(at);
        }
        None
    }

    /// Adds a host that is not there.
    pub(super) fn add(&mut self, host: &str, id: SlotId) {
        if (self.len + 1) * 4 > self.places.len() * 3 {
            self.resize((self.places.len() * 2).max(LEAST));
        }
        let named = Named { hash: self.hash(host), id: std::num::NonZeroU32::MIN.saturating_add(id.0) };
        self.put(named);
        self.len += 1;
    }

    /// Takes a host's slot out.
    pub(super) fn remove(&mut self, host: &str, id: SlotId) {
        let hash = self.hash(host);
        let Some(mut gap) = self.home(hash) else { return };
        loop {
            match self.places.get(gap).copied().flatten() {
                None => return,
                Some(named) if named.slot() == id => break,
                Some(_) => gap = self.next(gap),
            }
        }
        // Whoever stands behind the gap and would have stood in it moves up.
        let mut at = gap;
        loop {
            at = self.next(at);
            let Some(named) = self.places.get(at).copied().flatten() else { break };
            let Some(home) = self.home(named.hash) else { break };
            if self.distance(home, at) >= self.distance(gap, at) {
                self.set(gap, Some(named));
                gap = at;
            }
        }
        self.set(gap, None);
        self.len -= 1;
        if self.places.len() > LEAST && self.len * 8 < self.places.len() {
            self.resize(self.places.len() / 4);
        }
    }

    fn resize(&mut self, size: usize) {
        let size = size.max(LEAST);
        for named in std::mem::replace(&mut self.places, vec![None; size]).into_iter().flatten() {
            self.put(named);
        }
    }

    fn put(&mut self, named: Named) {
        let Some(mut at) = self.home(named.hash) else { return };
        while self.places.get(at).is_some_and(Option::is_some) {
            at = self.next(at);
        }
        self.set(at, Some(named));
    }

    fn set(&mut self, at: usize, named: Option<Named>) {
        if let Some(place) = self.places.get_mut(at) {
            *place = named;
        }
    }

    #[allow(clippy::cast_possible_truncation, reason = "half of a hash is one as well")]
    fn hash(&self, host: &str) -> u32 {
        self.hasher.hash_one(host) as u32
    }

    fn home(&self, hash: u32) -> Option<usize> {
        let last = self.places.len().checked_sub(1)?;
        Some(hash as usize & last)
    }

    fn next(&self, at: usize) -> usize {
        (at + 1) & (self.places.len() - 1)
    }

    /// Steps from one place to another.
    fn distance(&self, from: usize, to: usize) -> usize {
        to.wrapping_sub(from) & (self.places.len() - 1)
    }
}

impl Named {
    fn slot(self) -> SlotId {
        SlotId(self.id.get() - 1)
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::indexing_slicing)]
    use std::collections::BTreeMap;

    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn hosts_are_found_as_long_as_they_are_there(steps in proptest::collection::vec((0_u32..200, any::<bool>()), 1..800)) {
            let mut names = Names::default();
            let mut model = BTreeMap::new();
            for (host, adds) in steps {
                let name = format!("{host}.test");
                let found = names.find(&name, |id| id.0 == host);
                prop_assert_eq!(found.map(|id| id.0), model.get(&host).copied());
                if adds && found.is_none() {
                    names.add(&name, SlotId(host));
                    model.insert(host, host);
                } else if !adds && found.is_some() {
                    names.remove(&name, SlotId(host));
                    model.remove(&host);
                }
                prop_assert_eq!(names.len(), model.len());
            }
            for host in model.keys() {
                let name = format!("{host}.test");
                prop_assert!(names.find(&name, |id| id.0 == *host).is_some());
            }
        }
    }

    #[test]
    fn a_table_that_empties_gives_its_room_back() {
        let mut names = Names::default();
        for id in 0..10_000 {
            names.add(&id.to_string(), SlotId(id));
        }
        assert!(names.places.len() * size_of::<Option<Named>>() <= 10_000 * 22, "{}", names.places.len());
        for id in 0..10_000 {
            names.remove(&id.to_string(), SlotId(id));
        }
        assert_eq!((names.len(), names.places.len()), (0, LEAST));
    }
}
