//! What is known of jobs while they are out: their places in the queue, and the children of parents that are not settled.

use std::collections::HashMap;
use std::collections::hash_map::Entry;

use super::heap::{KeyMap, KeySet, table};
use super::lines::Queued;
use crate::scheduler::job::RequestId;

/// Jobs that were pulled or admitted and neither settled nor put back: as many as requests are in flight.
#[derive(Debug, Default)]
pub(crate) struct Out {
    jobs: KeyMap<Queued>,
}

/// What each parent that is not settled has queued; for offers that are made twice.
#[derive(Debug, Default)]
pub(crate) struct Children {
    of: KeyMap<KeySet>,
    /// Bytes of the sets.
    heap: usize,
}

impl Out {
    /// False when it was out already; then nothing changes.
    pub(crate) fn insert(&mut self, id: RequestId, queued: Queued) -> bool {
        match self.jobs.entry(id.0) {
            Entry::Occupied(_) => false,
            Entry::Vacant(place) => {
                place.insert(queued);
                true
            }
        }
    }

    pub(crate) fn remove(&mut self, id: RequestId) -> Option<Queued> {
        self.jobs.remove(&id.0)
    }

    pub(crate) fn get(&self, id: RequestId) -> Option<&Queued> {
        self.jobs.get(&id.0)
    }

    pub(crate) fn contains(&self, id: RequestId) -> bool {
        self.jobs.contains_key(&id.0)
    }

    /// Takes all of them out.
    pub(crate) fn drain(&mut self) -> impl Iterator<Item = Queued> {
        std::mem::take(&mut self.jobs).into_values()
    }

    pub(crate) fn len(&self) -> usize {
        self.jobs.len()
    }

    pub(crate) fn bytes(&self) -> usize {
        table(self.jobs.capacity(), size_of::<(u128, Queued)>())
    }
}

impl Children {
    /// False when the parent has that child already.
    pub(crate) fn insert(&mut self, parent: RequestId, child: RequestId) -> bool {
        let children = self.of.entry(parent.0).or_default();
        let before = set_bytes(children);
        let is_new = children.insert(child.0);
        self.heap = self.heap + set_bytes(children) - before;
        is_new
    }

    pub(crate) fn contains(&self, parent: RequestId, child: RequestId) -> bool {
        self.of.get(&parent.0).is_some_and(|children| children.contains(&child.0))
    }

    /// Forgets a parent; whether it had any.
    pub(crate) fn forget(&mut self, parent: RequestId) -> bool {
        let children = self.of.remove(&parent.0);
        self.heap -= children.as_ref().map_or(0, set_bytes);
        children.is_some()
    }

    /// Parents that have children.
    #[cfg(test)]
    pub(crate) fn parents(&self) -> impl Iterator<Item = RequestId> {
        self.of.keys().map(|id| RequestId(*id))
    }

    pub(crate) fn bytes(&self) -> usize {
        self.heap + table(self.of.capacity(), size_of::<(u128, HashMap<u128, ()>)>())
    }

    /// Bytes more that it may hold with so many more children: a table of few is up to a quarter full only.
    pub(crate) const fn growth(children: usize) -> usize {
        children * 4 * (size_of::<u128>() + 1)
    }
}

fn set_bytes(set: &KeySet) -> usize {
    table(set.capacity(), size_of::<u128>())
}
