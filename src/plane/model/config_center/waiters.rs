//! Who waits for which item. A wait ends once: woken by a change, left, or drained.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use super::super::refusal::Refusal;
use super::ItemName;

/// One watch that waits.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct WaiterId(u64);

type Names = Box<[(Arc<str>, Arc<str>)]>;

/// All watches of a centre that wait.
#[derive(Debug)]
pub(super) struct Waiters {
    limit: usize,
    next: u64,
    waiting: BTreeMap<WaiterId, Names>,
    by_item: BTreeMap<Arc<str>, BTreeMap<Arc<str>, BTreeSet<WaiterId>>>,
}

impl Waiters {
    pub(super) fn new(limit: usize) -> Self {
        Self { limit, next: 0, waiting: BTreeMap::new(), by_item: BTreeMap::new() }
    }

    #[cfg(test)]
    pub(super) fn len(&self) -> usize {
        self.waiting.len()
    }

    /// Waits for any of the items, whether they exist or not.
    pub(super) fn wait<'a>(&mut self, names: impl Iterator<Item = ItemName<'a>>) -> Result<WaiterId, Refusal> {
        if self.waiting.len() >= self.limit {
            return Err(Refusal::too_many_watches(self.limit));
        }
        let waiter = WaiterId(self.next);
        self.next += 1;
        let names = names.map(|name| self.enlist(name, waiter)).collect();
        self.waiting.insert(waiter, names);
        Ok(waiter)
    }

    /// The item changed: ends all waits for it, oldest first.
    pub(super) fn changed(&mut self, name: ItemName<'_>) -> Vec<WaiterId> {
        let woken: Vec<_> =
            self.by_item.get(name.group).and_then(|keys| keys.get(name.key)).into_iter().flatten().copied().collect();
        for waiter in &woken {
            self.leave(*waiter);
        }
        woken
    }

    /// Ends one wait; nothing if it has ended.
    pub(super) fn leave(&mut self, waiter: WaiterId) {
        for (group, key) in self.waiting.remove(&waiter).into_iter().flatten() {
            let Some(keys) = self.by_item.get_mut(&group) else { continue };
            if keys.get_mut(&key).is_some_and(|waiters| waiters.remove(&waiter) && waiters.is_empty()) {
                keys.remove(&key);
            }
            if keys.is_empty() {
                self.by_item.remove(&group);
            }
        }
    }

    /// Ends all waits.
    #[cfg(test)]
    pub(super) fn drain(&mut self) -> Vec<WaiterId> {
        self.by_item.clear();
        std::mem::take(&mut self.waiting).into_keys().collect()
    }

    /// Adds the waiter to the item; answers the name, shared among all who wait for it.
    fn enlist(&mut self, name: ItemName<'_>, waiter: WaiterId) -> (Arc<str>, Arc<str>) {
        let group = self.by_item.get_key_value(name.group).map_or_else(|| Arc::from(name.group), |(group, _)| Arc::clone(group));
        let keys = self.by_item.entry(Arc::clone(&group)).or_default();
        let key = keys.get_key_value(name.key).map_or_else(|| Arc::from(name.key), |(key, _)| Arc::clone(key));
        keys.entry(Arc::clone(&key)).or_default().insert(waiter);
        (group, key)
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing)]

    use proptest::prelude::*;

    use super::super::super::refusal::Reason;
    use super::*;

    fn name(key: &str) -> ItemName<'_> {
        ItemName { group: "g", key }
    }

    #[test]
    fn a_wait_ends_once_with_the_first_of_its_items_that_changes() {
        let mut waiters = Waiters::new(10);
        let both = waiters.wait([name("a"), name("b")].into_iter()).unwrap();
        let one = waiters.wait([name("b")].into_iter()).unwrap();
        assert_eq!(waiters.changed(name("c")), []);
        assert_eq!(waiters.changed(ItemName { group: "other", key: "a" }), []);
        assert_eq!(waiters.changed(name("b")), [both, one]);
        assert_eq!(waiters.changed(name("a")), []);
        assert_eq!(waiters.len(), 0);
    }

    #[test]
    fn more_watches_than_the_limit_are_refused_until_one_ends() {
        let mut waiters = Waiters::new(2);
        let first = waiters.wait([name("a")].into_iter()).unwrap();
        waiters.wait([name("a")].into_iter()).unwrap();
        let refusal = waiters.wait([name("a")].into_iter()).unwrap_err();
        assert_eq!(refusal.reason, Some(Reason::RateLimited));
        assert!(refusal.retry_after.is_some());
        waiters.leave(first);
        waiters.leave(first);
        assert!(waiters.wait([name("a")].into_iter()).is_ok());
        assert_eq!(waiters.drain().len(), 2);
    }

    #[derive(Debug, Clone)]
    enum Step {
        Wait(BTreeSet<u8>),
        Change(u8),
        Leave(u64),
        Drain,
    }

    proptest! {
        #[test]
        fn exactly_those_who_wait_for_an_item_are_woken_and_nothing_stays_behind(
            steps in prop::collection::vec(
                prop_oneof![
                    6 => prop::collection::btree_set(0_u8..5, 1..4).prop_map(Step::Wait),
                    3 => (0_u8..5).prop_map(Step::Change),
                    2 => (0_u64..20).prop_map(Step::Leave),
                    1 => Just(Step::Drain),
                ],
                1..60,
            ),
        ) {
            let mut waiters = Waiters::new(usize::MAX);
            let mut model: BTreeMap<WaiterId, BTreeSet<u8>> = BTreeMap::new();
            for step in steps {
                match step {
                    Step::Wait(items) => {
                        let keys: Vec<String> = items.iter().map(u8::to_string).collect();
                        let waiter = waiters.wait(keys.iter().map(|key| name(key))).unwrap();
                        prop_assert!(model.insert(waiter, items).is_none());
                    }
                    Step::Change(item) => {
                        let (woken, rest) = model.into_iter().partition(|(_, items)| items.contains(&item));
                        model = rest;
                        let woken: BTreeMap<_, BTreeSet<u8>> = woken;
                        prop_assert_eq!(waiters.changed(name(&item.to_string())), woken.into_keys().collect::<Vec<_>>());
                    }
                    Step::Leave(number) => {
                        model.remove(&WaiterId(number));
                        waiters.leave(WaiterId(number));
                    }
                    Step::Drain => {
                        prop_assert_eq!(waiters.drain(), std::mem::take(&mut model).into_keys().collect::<Vec<_>>());
                    }
                }
                let kept: usize = waiters.by_item.values().flat_map(BTreeMap::values).map(BTreeSet::len).sum();
                prop_assert_eq!(kept, model.values().map(BTreeSet::len).sum::<usize>());
                prop_assert_eq!(waiters.len(), model.len());
                prop_assert!(waiters.by_item.values().all(|keys| !keys.is_empty() && keys.values().all(|set| !set.is_empty())));
            }
        }
    }
}
