//! Items and their versions. A version number is given once and never again, whatever is deleted in between.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use super::super::Ms;
use super::super::refusal::Refusal;
use super::references::has_references;
use super::{Format, ItemName};

/// Longest names, characters.
const GROUP: usize = 128;
const KEY: usize = 256;
/// Longest content, bytes. The contract names no bound; this one lets every item fit into an answer.
const CONTENT: usize = 1024 * 1024;
/// Versions kept of one item to roll back to; older ones are forgotten.
const KEPT: usize = 100;

/// One published version.
#[derive(Clone)]
pub(super) struct Version {
    pub(super) version: i32,
    pub(super) format: Format,
    pub(super) content: Arc<str>,
    pub(super) published_at: Ms,
    pub(super) has_references: bool,
}

impl std::fmt::Debug for Version {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Version({}, {} bytes)", self.version, self.content.len())
    }
}

/// An item: the last of its versions is the published one. Deleted, it has none, but still its highest number.
#[derive(Debug)]
struct Item {
    highest: i32,
    versions: VecDeque<Version>,
}

/// All items of a namespace, by group and key.
#[derive(Debug)]
pub(super) struct Items {
    floor: i32,
    by_group: BTreeMap<Box<str>, BTreeMap<Box<str>, Item>>,
}

impl Items {
    /// No items; all versions will be above the floor.
    pub(super) fn above(floor: i32) -> Self {
        Self { floor: floor.max(0), by_group: BTreeMap::new() }
    }

    /// The published version.
    pub(super) fn find(&self, name: ItemName<'_>) -> Option<&Version> {
        self.by_group.get(name.group)?.get(name.key)?.versions.back()
    }

    #[cfg(test)]
    pub(super) fn names(&self) -> impl Iterator<Item = ItemName<'_>> {
        self.by_group.iter().flat_map(|(group, items)| {
            let there = items.iter().filter(|(_, item)| !item.versions.is_empty());
            there.map(move |(key, _)| ItemName { group, key })
        })
    }

    pub(super) fn publish(&mut self, name: ItemName<'_>, format: Format, content: &str, now: Ms) -> Result<i32, Refusal> {
        check_name(name)?;
        if name.group.starts_with('_') {
            return Err(Refusal::invalid_argument("groups that begin with _ are the server's own; choose another group"));
        }
        if content.len() > CONTENT {
            return Err(Refusal::invalid_argument(format!("the content of {name} is longer than {CONTENT} bytes")));
        }
        let has_references = has_references(name, content)?;
        let floor = self.floor;
        let items = self.by_group.entry(name.group.into()).or_default();
        let item = items.entry(name.key.into()).or_insert_with(|| Item { highest: floor, versions: VecDeque::new() });
        let next = Version { version: 0, format, content: content.into(), published_at: now, has_references };
        item.push(name, next)
    }

    pub(super) fn roll_back(&mut self, name: ItemName<'_>, version: i32, now: Ms) -> Result<i32, Refusal> {
        check_name(name)?;
        let item = self.by_group.get_mut(name.group).and_then(|items| items.get_mut(name.key));
        let found = item.and_then(|item| {
            let old = item.versions.iter().find(|old| old.version == version)?.clone();
            Some((item, Version { published_at: now, ..old }))
        });
        let (item, next) =
            found.ok_or_else(|| Refusal::not_found(format!("there is no version {version} of the config item {name}")))?;
        item.push(name, next)
    }

    pub(super) fn delete(&mut self, name: ItemName<'_>) -> bool {
        let item = self.by_group.get_mut(name.group).and_then(|items| items.get_mut(name.key));
        item.is_some_and(|item| !std::mem::take(&mut item.versions).is_empty())
    }
}

impl Item {
    /// Appends what is to be published, with the next number.
    fn push(&mut self, name: ItemName<'_>, next: Version) -> Result<i32, Refusal> {
        let version = self.highest.checked_add(1).ok_or_else(|| {
            Refusal::failed_precondition(format!("the config item {name} has no version numbers left; use another key"))
        })?;
        self.highest = version;
        self.versions.push_back(Version { version, ..next });
        if self.versions.len() > KEPT {
            self.versions.pop_front();
        }
        Ok(version)
    }
}

/// Whether the name keeps to the contract's lengths (section 4.3).
pub(super) fn check_name(name: ItemName<'_>) -> Result<(), Refusal> {
    for (what, text, longest) in [("group", name.group, GROUP), ("key", name.key, KEY)] {
        if text.is_empty() || text.chars().nth(longest).is_some() {
            return Err(Refusal::invalid_argument(format!("a config item's {what} has 1 to {longest} characters")));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing)]

    use proptest::prelude::*;

    use super::super::super::refusal::Reason;
    use super::*;

    const NAME: ItemName<'_> = ItemName { group: "crawler", key: "search.json" };

    fn publish(items: &mut Items, content: &str) -> i32 {
        items.publish(NAME, Format::Text, content, 5).unwrap()
    }

    #[test]
    fn a_rollback_is_a_new_version_with_old_content() {
        let mut items = Items::above(0);
        assert_eq!((publish(&mut items, "one"), publish(&mut items, "two")), (1, 2));
        assert_eq!(items.roll_back(NAME, 1, 9), Ok(3));
        let found = items.find(NAME).unwrap();
        assert_eq!((found.version, &*found.content, found.published_at), (3, "one", 9));
        for (version, name) in [(4, NAME), (0, NAME), (1, ItemName { key: "other", ..NAME })] {
            assert_eq!(items.roll_back(name, version, 9).unwrap_err().reason, Some(Reason::NotFound));
        }
    }

    #[test]
    fn a_deleted_item_is_gone_with_its_versions_but_its_numbers_go_on() {
        let mut items = Items::above(0);
        publish(&mut items, "one");
        assert!(items.delete(NAME) && !items.delete(NAME) && !items.delete(ItemName { group: "x", ..NAME }));
        assert!(items.find(NAME).is_none() && items.names().next().is_none());
        assert!(items.roll_back(NAME, 1, 9).is_err());
        assert_eq!(publish(&mut items, "new"), 2);
        assert_eq!(items.names().collect::<Vec<_>>(), [NAME]);
    }

    #[test]
    fn old_versions_are_forgotten_in_time() {
        let mut items = Items::above(0);
        for _ in 0..=KEPT {
            publish(&mut items, "x");
        }
        assert!(items.roll_back(NAME, 1, 9).is_err());
        assert!(items.roll_back(NAME, 2, 9).is_ok());
    }

    #[test]
    fn names_and_contents_outside_the_bounds_are_refused() {
        let mut items = Items::above(0);
        let long = "ü".repeat(257);
        let name = |group, key| ItemName { group, key };
        let fits = |characters: usize| &long[..2 * characters];
        for (name, content) in [
            (name("", "k"), ""),
            (name("g", ""), ""),
            (name(fits(129), "k"), ""),
            (name("g", &long), ""),
            (name("_runtime", "breakers"), ""),
            (name("_own", "k"), ""),
            (name("g", "k"), "x".repeat(CONTENT + 1).as_str()),
        ] {
            let refusal = items.publish(name, Format::Text, content, 0).unwrap_err();
            assert_eq!(refusal.reason, Some(Reason::InvalidArgument), "{name}");
        }
        assert_eq!(items.publish(name(fits(128), fits(256)), Format::Text, "", 0), Ok(1));
    }

    #[test]
    fn numbers_that_are_used_up_are_said_to_be() {
        let mut items = Items::above(i32::MAX - 1);
        assert_eq!(publish(&mut items, "last"), i32::MAX);
        let refusal = items.publish(NAME, Format::Text, "x", 0).unwrap_err();
        assert_eq!(refusal.reason, Some(Reason::FailedPrecondition));
        assert_eq!(&*items.find(NAME).unwrap().content, "last");
    }

    #[derive(Debug, Clone)]
    enum Step {
        Publish(u8),
        RollBack(i32),
        Delete,
    }

    proptest! {
        #[test]
        fn versions_strictly_grow_whatever_happens(
            floor in 0_i32..5,
            steps in prop::collection::vec(
                prop_oneof![any::<u8>().prop_map(Step::Publish), (0_i32..40).prop_map(Step::RollBack), Just(Step::Delete)],
                1..60,
            ),
        ) {
            let mut items = Items::above(floor);
            let mut last = floor;
            let mut contents: BTreeMap<i32, String> = BTreeMap::new();
            for step in steps {
                let (given, content) = match step {
                    Step::Publish(content) => {
                        let content = content.to_string();
                        (items.publish(NAME, Format::Text, &content, 0), content)
                    }
                    Step::RollBack(version) => match contents.get(&version).cloned() {
                        Some(content) => (items.roll_back(NAME, version, 0), content),
                        None => {
                            prop_assert!(items.roll_back(NAME, version, 0).is_err());
                            continue;
                        }
                    },
                    Step::Delete => {
                        prop_assert_eq!(items.delete(NAME), !contents.is_empty());
                        contents.clear();
                        continue;
                    }
                };
                prop_assert_eq!(given, Ok(last + 1));
                last += 1;
                prop_assert_eq!(&*items.find(NAME).unwrap().content, content.as_str());
                contents.insert(last, content);
            }
        }
    }
}
