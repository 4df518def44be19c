//! What was used last, and not more of it than is allowed. What was not used for long is forgotten, what is used is not.

use std::collections::HashMap;
use std::sync::Arc;

/// Values by name. At least `most` of them, those used last, are kept, and at most twice as many.
pub(super) struct Recent<V> {
    most: usize,
    young: HashMap<Arc<str>, V>,
    /// What was not used since the young ones were begun.
    old: HashMap<Arc<str>, V>,
}

impl<V> Recent<V> {
    pub(super) fn new(most: usize) -> Self {
        Self { most: most.max(1), young: HashMap::new(), old: HashMap::new() }
    }

    /// The value of this name, used herewith.
    pub(super) fn get(&mut self, name: &str) -> Option<&mut V> {
        if !self.old.is_empty()
            && let Some((name, value)) = self.old.remove_entry(name)
        {
            self.insert(name, value);
        }
        self.young.get_mut(name)
    }

    /// Keeps a value, in place of the one of this name.
    pub(super) fn insert(&mut self, name: Arc<str>, value: V) {
        if self.young.len() >= self.most && !self.young.contains_key(&name) {
            self.old = std::mem::take(&mut self.young);
        }
        self.old.remove(&name);
        self.young.insert(name, value);
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing)]

    use proptest::prelude::*;

    use super::*;

    #[test]
    fn what_is_used_stays_and_what_is_not_used_goes() {
        let mut recent = Recent::new(3);
        for n in 0..1_000 {
            recent.insert(format!("n{n}").into(), n);
            if n >= 7 {
                assert_eq!(recent.get("n7"), Some(&mut 7));
            }
            assert_eq!(recent.get(&format!("n{n}")), Some(&mut n.clone()));
            assert!(recent.young.len() + recent.old.len() <= 6);
        }
        assert_eq!(recent.get("n8"), None);
    }

    proptest! {
        #[test]
        fn as_many_as_are_kept_are_those_used_last(uses in prop::collection::vec(0..12_u8, 0..80), most in 1..5_usize) {
            let (mut recent, mut order) = (Recent::new(most), Vec::<u8>::new());
            for used in uses {
                let name = used.to_string();
                let is_among_the_last = order.iter().rev().take(most).any(|known| *known == used);
                let found = recent.get(&name).copied();
                prop_assert!(found.is_none_or(|value| value == used));
                prop_assert!(found.is_some() || !is_among_the_last);
                if found.is_none() {
                    recent.insert(name.as_str().into(), used);
                }
                order.retain(|known| *known != used);
                order.push(used);
                prop_assert!(recent.young.len() + recent.old.len() <= 2 * most);
            }
        }
    }
}
