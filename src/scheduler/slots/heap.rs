//! Slots by a key, the least first, in one block of memory. Who is moved is told its new place, so that a slot can be
//! taken out or given another key wherever it stands.

use super::SlotId;

/// Children of an entry: a wide heap is flat, and the children of one lie beside each other.
const WIDE: usize = 4;

/// Room that is kept when a heap shrinks.
const KEPT: usize = 64;

/// The heap.
#[derive(Debug)]
pub(super) struct Heap<K> {
    entries: Vec<(K, SlotId)>,
}

impl<K> Default for Heap<K> {
    fn default() -> Self {
        Self { entries: Vec::new() }
    }
}

impl<K: Ord + Copy> Heap<K> {
    /// The least entry.
    pub(super) fn first(&self) -> Option<(K, SlotId)> {
        self.entries.first().copied()
    }

    #[cfg(test)]
    pub(super) fn len(&self) -> usize {
        self.entries.len()
    }

    /// Adds an entry; `moved` hears its place as well.
    pub(super) fn push(&mut self, key: K, id: SlotId, mut moved: impl FnMut(SlotId, u32)) {
        self.entries.push((key, id));
        self.rise(self.entries.len() - 1, &mut moved);
    }

    /// Gives the entry at this place another key.
    pub(super) fn change(&mut self, place: u32, key: K, mut moved: impl FnMut(SlotId, u32)) {
        let place = place as usize;
        let Some(entry) = self.entries.get_mut(place) else { return };
        let is_less = key < entry.0;
        entry.0 = key;
        if is_less {
            self.rise(place, &mut moved);
        } else {
            self.sink(place, &mut moved);
        }
    }

    /// Takes the entry at this place out.
    pub(super) fn remove(&mut self, place: u32, mut moved: impl FnMut(SlotId, u32)) {
        let place = place as usize;
        if place >= self.entries.len() {
            return;
        }
        let (gone, _) = self.entries.swap_remove(place);
        if let Some((key, _)) = self.entries.get(place) {
            if *key < gone {
                self.rise(place, &mut moved);
            } else {
                self.sink(place, &mut moved);
            }
        }
        if self.entries.capacity() > KEPT && self.entries.len() < self.entries.capacity() / 8 {
            self.entries.shrink_to((self.entries.len() * 2).max(KEPT));
        }
    }

    fn rise(&mut self, mut place: usize, moved: &mut impl FnMut(SlotId, u32)) {
        while place > 0 {
            let above = (place - 1) / WIDE;
            if !self.is_before(place, above) {
                break;
            }
            self.entries.swap(place, above);
            self.tell(place, moved);
            place = above;
        }
        self.tell(place, moved);
    }

    fn sink(&mut self, mut place: usize, moved: &mut impl FnMut(SlotId, u32)) {
        loop {
            let from = place * WIDE + 1;
            let to = (from + WIDE).min(self.entries.len());
            let below = self.entries.get(from..to).unwrap_or_default();
            let Some(least) = below.iter().enumerate().min_by_key(|(_, entry)| entry.0).map(|(at, _)| from + at) else { break };
            if !self.is_before(least, place) {
                break;
            }
            self.entries.swap(place, least);
            self.tell(place, moved);
            place = least;
        }
        self.tell(place, moved);
    }

    fn is_before(&self, one: usize, other: usize) -> bool {
        matches!((self.entries.get(one), self.entries.get(other)), (Some(one), Some(other)) if one.0 < other.0)
    }

    fn tell(&self, place: usize, moved: &mut impl FnMut(SlotId, u32)) {
        if let Some((_, id)) = self.entries.get(place) {
            // There are no more entries than ids.
            moved(*id, u32::try_from(place).unwrap_or(u32::MAX));
        }
    }
}

impl<K: Ord + Copy + PartialEq> Heap<K> {
    /// The key at this place.
    pub(super) fn key(&self, place: u32) -> Option<K> {
        self.entries.get(place as usize).map(|entry| entry.0)
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
        fn the_least_comes_first_whatever_is_added_changed_or_taken(
            steps in proptest::collection::vec((0_u32..60, 0_u8..4, 0_u32..1000), 1..400),
        ) {
            let mut heap = Heap::default();
            let mut model = BTreeMap::new();
            let mut places = vec![None; 60];
            for (id, what, key) in steps {
                let moved = |id: SlotId, place: u32| places[id.0 as usize] = Some(place);
                let key = (key, id);
                match (what, model.contains_key(&id)) {
                    (0, true) => {
                        let place = places[id as usize].unwrap();
                        heap.remove(place, |id: SlotId, place: u32| places[id.0 as usize] = Some(place));
                        places[id as usize] = None;
                        model.remove(&id);
                    }
                    (_, true) => {
                        let place = places[id as usize].unwrap();
                        heap.change(place, key, |id: SlotId, place: u32| places[id.0 as usize] = Some(place));
                        model.insert(id, key);
                    }
                    (_, false) => {
                        heap.push(key, SlotId(id), moved);
                        model.insert(id, key);
                    }
                }
                prop_assert_eq!(heap.first().map(|(key, id)| (key, id.0)), model.iter().map(|(id, key)| (*key, *id)).min());
                prop_assert_eq!(heap.len(), model.len());
                for (id, key) in &model {
                    prop_assert_eq!(heap.key(places[*id as usize].unwrap()), Some(*key));
                }
            }
        }
    }
}
