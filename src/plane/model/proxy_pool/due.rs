//! The proxies that are due, in a list to draw windows from, and those that wait for a moment.

use std::collections::BTreeSet;

use crate::plane::model::Ms;

/// Both.
#[derive(Debug, Default)]
pub(super) struct Due {
    ready: Vec<u32>,
    waiting: BTreeSet<(Ms, u32)>,
    places: Vec<Place>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
enum Place {
    #[default]
    Nowhere,
    /// At this index of the list.
    Ready(u32),
    Waiting(Ms),
}

impl Due {
    /// The due ones, as of the last [`Due::advance`], in no order that means anything.
    pub(super) fn ready(&self) -> &[u32] {
        &self.ready
    }

    /// Whether `key` takes part.
    pub(super) fn contains(&self, key: u32) -> bool {
        self.place(key) != Place::Nowhere
    }

    /// Whether `key` waits for a moment.
    pub(super) fn waits(&self, key: u32) -> bool {
        matches!(self.place(key), Place::Waiting(_))
    }

    /// Puts `key` where `at` belongs, as of `now`.
    pub(super) fn set(&mut self, key: u32, at: Ms, now: Ms) {
        if at <= now && matches!(self.place(key), Place::Ready(_)) {
            return;
        }
        self.remove(key);
        if self.places.len() <= key as usize {
            self.places.resize(key as usize + 1, Place::Nowhere);
        }
        let place = if at <= now {
            self.ready.push(key);
            Place::Ready(u32::try_from(self.ready.len() - 1).unwrap_or(u32::MAX))
        } else {
            self.waiting.insert((at, key));
            Place::Waiting(at)
        };
        self.note(key, place);
    }

    /// Takes `key` out.
    pub(super) fn remove(&mut self, key: u32) {
        match self.place(key) {
            Place::Nowhere => return,
            Place::Waiting(at) => {
                self.waiting.remove(&(at, key));
            }
            Place::Ready(index) => {
                self.ready.swap_remove(index as usize);
                if let Some(moved) = self.ready.get(index as usize).copied() {
                    self.note(moved, Place::Ready(index));
                }
            }
        }
        self.note(key, Place::Nowhere);
    }

    /// Makes due whose moment has come at `now`.
    pub(super) fn advance(&mut self, now: Ms) {
        while let Some((at, key)) = self.waiting.first().copied() {
            if at > now {
                break;
            }
            self.set(key, at, now);
        }
    }

    fn place(&self, key: u32) -> Place {
        self.places.get(key as usize).copied().unwrap_or_default()
    }

    fn note(&mut self, key: u32, place: Place) {
        if let Some(old) = self.places.get_mut(key as usize) {
            *old = place;
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn it_knows_who_is_due(steps in proptest::collection::vec((0_u8..4, 0_u32..20, 0_u64..10), 1..150)) {
            let (mut due, mut model, mut now) = (Due::default(), BTreeMap::new(), 0);
            for (step, key, gap) in steps {
                match step {
                    0 | 1 => {
                        due.set(key, now + gap, now);
                        model.insert(key, now + gap);
                    }
                    2 => {
                        due.remove(key);
                        model.remove(&key);
                    }
                    _ => {
                        now += gap;
                        due.advance(now);
                        let mut ready = due.ready().to_vec();
                        ready.sort_unstable();
                        let expected: Vec<u32> = model.iter().filter(|(_, at)| **at <= now).map(|(key, _)| *key).collect();
                        prop_assert_eq!(ready, expected);
                    }
                }
                prop_assert_eq!(due.contains(key), model.contains_key(&key));
                prop_assert_eq!(due.ready().len() + due.waiting.len(), model.len());
            }
        }
    }
}
