//! What a watcher knows: the latest item of every key, and in which order they changed.
//!
//! A plain value: no lock, no clock, no I/O.

use std::collections::HashMap;
use std::sync::Arc;

use crate::spinneret::messages::{ConfigItem, ConfigKey, WatchItem};

/// Keys that one line has room for.
const NAMES: usize = 5;

/// Where items come from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Origin {
    /// The server answered.
    Server,
    /// The disk, as long as the server does not answer.
    Snapshot,
}

/// The knowledge of one watcher.
#[derive(Debug)]
pub(super) struct State {
    keys: Vec<ConfigKey>,
    entries: HashMap<ConfigKey, Entry>,
    changes: u64,
    origin: Option<Origin>,
}

#[derive(Debug)]
struct Entry {
    item: Arc<ConfigItem>,
    /// The number of the change that brought the item.
    changed_at: u64,
    /// The highest version ever seen: a server never takes one back.
    highest: i32,
}

/// What an answer brought.
#[derive(Debug, Default)]
pub(super) struct Applied {
    /// The items that are new or different, in the order of the answer.
    pub(super) changed: Vec<Arc<ConfigItem>>,
    /// Whether one of them has a version higher than any before. An answer without one asks for no quick next poll.
    pub(super) is_progress: bool,
}

/// Which changes somebody waits for; by default all.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ChangeFilter {
    group: Option<String>,
    key: Option<String>,
}

impl ChangeFilter {
    /// Every watched item.
    #[must_use]
    pub fn any() -> Self {
        Self::default()
    }

    /// Only items of this group.
    #[must_use]
    pub fn group(mut self, group: impl Into<String>) -> Self {
        self.group = Some(group.into());
        self
    }

    /// Only items of this key, in whatever group unless one is named.
    #[must_use]
    pub fn key(mut self, key: impl Into<String>) -> Self {
        self.key = Some(key.into());
        self
    }

    fn matches(&self, key: &ConfigKey) -> bool {
        self.group.as_ref().is_none_or(|group| *group == key.group) && self.key.as_ref().is_none_or(|name| *name == key.key)
    }
}

impl From<ConfigKey> for ChangeFilter {
    fn from(key: ConfigKey) -> Self {
        Self { group: Some(key.group), key: Some(key.key) }
    }
}

impl From<&ConfigKey> for ChangeFilter {
    fn from(key: &ConfigKey) -> Self {
        Self::from(key.clone())
    }
}

impl State {
    /// Nothing known of these keys yet.
    pub(super) fn new(keys: Vec<ConfigKey>) -> Self {
        Self { keys, entries: HashMap::new(), changes: 0, origin: None }
    }

    /// Takes the items in. One that is not watched, or that is known with the same version and content, is no change.
    pub(super) fn apply(&mut self, items: Vec<ConfigItem>, origin: Origin) -> Applied {
        self.origin = Some(origin);
        let mut applied = Applied::default();
        for item in items {
            let key = key_of(&item);
            let known = self.entries.get(&key);
            if known.is_none() && !self.keys.contains(&key) {
                continue;
            }
            let highest = known.map_or(0, |known| known.highest);
            applied.is_progress |= item.version > highest;
            if known.is_some_and(|known| known.item.version == item.version && known.item.content == item.content) {
                continue;
            }
            self.changes += 1;
            let item = Arc::new(item);
            applied.changed.push(Arc::clone(&item));
            self.entries.insert(key, Entry { highest: highest.max(item.version), item, changed_at: self.changes });
        }
        applied
    }

    /// The latest item of a key.
    pub(super) fn get(&self, key: &ConfigKey) -> Option<Arc<ConfigItem>> {
        self.entries.get(key).map(|entry| Arc::clone(&entry.item))
    }

    /// The latest items, in the order of the keys.
    pub(super) fn items(&self) -> Vec<Arc<ConfigItem>> {
        self.keys.iter().filter_map(|key| self.get(key)).collect()
    }

    /// The watched keys.
    pub(super) fn keys(&self) -> &[ConfigKey] {
        &self.keys
    }

    /// The watched keys, for people.
    pub(super) fn names(&self) -> String {
        let names = self.keys.iter().take(NAMES).map(|key| format!("{}/{}", key.group, key.key));
        let names = names.collect::<Vec<_>>().join(", ");
        match self.keys.len().saturating_sub(NAMES) {
            0 => names,
            more => format!("{names} and {more} more"),
        }
    }

    /// The keys with the versions that are held, 0 for none.
    pub(super) fn versions(&self) -> Vec<WatchItem> {
        let version = |key| self.entries.get(key).map_or(0, |entry| entry.item.version.max(0));
        self.keys.iter().map(|key| WatchItem { group: key.group.clone(), key: key.key.clone(), version: version(key) }).collect()
    }

    /// How many changes there were.
    pub(super) const fn changes(&self) -> u64 {
        self.changes
    }

    /// Of the matching items that changed after this many changes the one that changed first, and the number of its change.
    pub(super) fn first_after(&self, since: u64, filter: &ChangeFilter) -> Option<(u64, Arc<ConfigItem>)> {
        let later = self.entries.iter().filter(|(key, entry)| entry.changed_at > since && filter.matches(key));
        let (_, first) = later.min_by_key(|(_, entry)| entry.changed_at)?;
        Some((first.changed_at, Arc::clone(&first.item)))
    }

    /// Whether what is known comes from the disk, be it nothing.
    pub(super) fn is_from_snapshot(&self) -> bool {
        self.origin == Some(Origin::Snapshot)
    }

    /// Whether the first load is over.
    pub(super) const fn is_loaded(&self) -> bool {
        self.origin.is_some()
    }
}

/// The name of an item.
pub(super) fn key_of(item: &ConfigItem) -> ConfigKey {
    ConfigKey { group: item.group.clone(), key: item.key.clone() }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing)]

    use proptest::prelude::*;

    use super::*;

    fn key(group: &str, key: &str) -> ConfigKey {
        ConfigKey { group: group.to_owned(), key: key.to_owned() }
    }

    fn item(name: &str, version: i32, content: &str) -> ConfigItem {
        let (group, key) = name.split_once('/').unwrap();
        ConfigItem { group: group.into(), key: key.into(), version, content: content.into(), ..ConfigItem::default() }
    }

    fn names(items: &[Arc<ConfigItem>]) -> Vec<String> {
        items.iter().map(|item| format!("{}/{}@{}", item.group, item.key, item.version)).collect()
    }

    #[test]
    fn b111_the_same_version_and_content_is_no_change_and_other_content_is_one() {
        let mut state = State::new(vec![key("g", "a")]);
        assert_eq!(names(&state.apply(vec![item("g/a", 3, "x")], Origin::Server).changed), ["g/a@3"]);
        assert!(state.apply(vec![item("g/a", 3, "x")], Origin::Server).changed.is_empty());
        assert_eq!(state.changes(), 1);
        let other = state.apply(vec![item("g/a", 3, "y")], Origin::Server);
        assert_eq!((other.changed.len(), other.is_progress), (1, false));
        assert_eq!(state.get(&key("g", "a")).unwrap().content, "y");
    }

    #[test]
    fn items_that_nobody_watches_leave_no_trace() {
        let mut state = State::new(vec![key("g", "a")]);
        let applied = state.apply(vec![item("g/b", 1, "x"), item("h/a", 1, "x")], Origin::Server);
        assert!(applied.changed.is_empty() && !applied.is_progress);
        assert!(state.items().is_empty() && state.changes() == 0 && state.is_loaded());
    }

    #[test]
    fn items_and_versions_come_in_the_order_of_the_keys() {
        let mut state = State::new(vec![key("g", "b"), key("g", "a"), key("g", "c")]);
        state.apply(vec![item("g/a", 2, ""), item("g/b", 7, "")], Origin::Snapshot);
        assert_eq!(names(&state.items()), ["g/b@7", "g/a@2"]);
        let versions: Vec<(String, i32)> = state.versions().into_iter().map(|item| (item.key, item.version)).collect();
        assert_eq!(versions, [("b".into(), 7), ("a".into(), 2), ("c".into(), 0)]);
    }

    #[test]
    fn a_version_that_falls_back_is_a_change_without_progress() {
        let mut state = State::new(vec![key("g", "a")]);
        assert!(state.apply(vec![item("g/a", 5, "")], Origin::Server).is_progress);
        let back = state.apply(vec![item("g/a", 4, "")], Origin::Server);
        let again = state.apply(vec![item("g/a", 5, "")], Origin::Server);
        assert_eq!((back.changed.len(), back.is_progress, again.changed.len(), again.is_progress), (1, false, 1, false));
        assert!(state.apply(vec![item("g/a", 6, "")], Origin::Server).is_progress);
    }

    #[test]
    fn b116_loading_nothing_from_disk_counts_as_loaded_from_disk() {
        let mut state = State::new(vec![key("g", "a")]);
        assert!(!state.is_loaded() && !state.is_from_snapshot());
        state.apply(Vec::new(), Origin::Snapshot);
        assert!(state.is_loaded() && state.is_from_snapshot());
        state.apply(Vec::new(), Origin::Server);
        assert!(state.is_loaded() && !state.is_from_snapshot());
    }

    #[test]
    fn a_version_below_zero_is_not_sent() {
        let mut state = State::new(vec![key("g", "a")]);
        state.apply(vec![item("g/a", -4, "")], Origin::Server);
        assert_eq!(state.versions()[0].version, 0);
    }

    const NAMES: [&str; 5] = ["g/a", "g/b", "h/a", "h/b", "x/unwatched"];

    /// The slow way: the whole history, searched from its start.
    #[derive(Default)]
    struct Model {
        history: Vec<ConfigItem>,
        highest: HashMap<ConfigKey, i32>,
    }

    impl Model {
        fn latest(&self, key: &ConfigKey) -> Option<(u64, &ConfigItem)> {
            let found = self.history.iter().enumerate().rev().find(|(_, item)| key_of(item) == *key);
            found.map(|(n, item)| (n as u64 + 1, item))
        }

        fn apply(&mut self, items: &[ConfigItem]) -> (Vec<ConfigItem>, bool) {
            let (mut changed, mut is_progress) = (Vec::new(), false);
            for item in items.iter().filter(|item| item.group != "x") {
                let highest = self.highest.entry(key_of(item)).or_default();
                is_progress |= item.version > *highest;
                let is_same = self
                    .latest(&key_of(item))
                    .is_some_and(|(_, known)| (known.version, &known.content) == (item.version, &item.content));
                if !is_same {
                    let highest = self.highest.entry(key_of(item)).or_default();
                    *highest = item.version.max(*highest);
                    self.history.push(item.clone());
                    changed.push(item.clone());
                }
            }
            (changed, is_progress)
        }

        fn first_after(&self, since: u64, group: Option<&str>, name: Option<&str>) -> Option<(u64, ConfigItem)> {
            let fits = |item: &ConfigItem| group.is_none_or(|g| g == item.group) && name.is_none_or(|k| k == item.key);
            let latest = |item: &ConfigItem| self.latest(&key_of(item)).map(|(n, item)| (n, item.clone()));
            let mut all: Vec<_> = self.history.iter().filter(|item| fits(item)).filter_map(latest).collect();
            all.sort_by_key(|(n, _)| *n);
            all.into_iter().find(|(n, _)| *n > since)
        }
    }

    fn answers() -> impl Strategy<Value = Vec<(Vec<ConfigItem>, bool)>> {
        let one = (0..NAMES.len(), 0..4_i32, 0..3_u8).prop_map(|(n, version, text)| item(NAMES[n], version, &text.to_string()));
        prop::collection::vec((prop::collection::vec(one, 0..5), any::<bool>()), 0..12)
    }

    proptest! {
        #[test]
        fn the_state_agrees_with_a_search_of_the_whole_history(answers in answers()) {
            let keys: Vec<ConfigKey> = NAMES[..4].iter().map(|name| key_of(&item(name, 0, ""))).collect();
            let mut state = State::new(keys.clone());
            let mut model = Model::default();
            for (items, is_disk) in answers {
                let before = state.changes();
                let (changed, is_progress) = model.apply(&items);
                let applied = state.apply(items, if is_disk { Origin::Snapshot } else { Origin::Server });
                prop_assert_eq!(applied.changed.iter().map(|item| (**item).clone()).collect::<Vec<_>>(), changed);
                prop_assert_eq!(applied.is_progress, is_progress);
                prop_assert_eq!(state.changes(), model.history.len() as u64);
                prop_assert_eq!(state.is_from_snapshot(), is_disk);
                for (key, held) in keys.iter().zip(state.versions()) {
                    let latest = model.latest(key).map(|(_, item)| item.clone());
                    prop_assert_eq!(held.version, latest.as_ref().map_or(0, |item| item.version));
                    prop_assert_eq!(state.get(key).map(|item| (*item).clone()), latest);
                }
                for since in [0, before, before.saturating_sub(2), state.changes()] {
                    for (group, name) in [(None, None), (Some("g"), None), (None, Some("a")), (Some("h"), Some("b"))] {
                        let mut filter = ChangeFilter::any();
                        if let Some(group) = group { filter = filter.group(group); }
                        if let Some(name) = name { filter = filter.key(name); }
                        let found = state.first_after(since, &filter).map(|(n, item)| (n, (*item).clone()));
                        prop_assert_eq!(found, model.first_after(since, group, name));
                    }
                }
            }
        }
    }
}
