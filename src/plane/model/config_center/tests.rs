//! What nodes and publishers see of a config centre, by the numbers of the contract's list (section 35).

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing, clippy::panic)]

use std::collections::BTreeMap;

use proptest::prelude::*;

use super::super::refusal::Reason;
use super::super::runtime_items::{GroupNow, NotClosed};
use super::super::scope::Scopes;
use super::*;
use crate::spinneret::Code;

const fn name<'a>(group: &'a str, key: &'a str) -> ItemName<'a> {
    ItemName { group, key }
}

const SEARCH: ItemName<'_> = name("crawler", "search.json");
const OTHER: ItemName<'_> = name("crawler", "other.yaml");
const BREAKERS: ItemName<'_> = name("_runtime", "breakers");
const SWITCHES: ItemName<'_> = name("_runtime", "site_switches");

fn center() -> ConfigCenter {
    ConfigCenter::new("prod".into(), 0, &[])
}

fn all() -> Scopes {
    Scopes::everything()
}

fn scopes(texts: &[&str]) -> Scopes {
    Scopes::parse(texts.iter().copied()).unwrap()
}

fn publish(center: &mut ConfigCenter, name: ItemName<'_>, content: &str) -> Published {
    center.publish(name, Format::Json, content, 1_000).unwrap()
}

/// Publishes, whoever it may wake.
fn put(center: &mut ConfigCenter, name: ItemName<'_>, content: &str) {
    drop(publish(center, name, content));
}

fn held(name: ItemName<'_>, version: i32) -> WatchedItem<'_> {
    WatchedItem { name, version }
}

fn waits(look: Look) -> WaiterId {
    let Look::Waits(waiter) = look else { panic!("{look:?}") };
    waiter
}

/// The contents of what changed.
fn changed(look: Look) -> Vec<(i32, String)> {
    let Look::Changed(items) = look else { panic!("{look:?}") };
    items.into_iter().map(|item| (item.version, item.content.to_string())).collect()
}

fn reason<T: std::fmt::Debug>(result: Result<T, Refusal>) -> (Code, Option<Reason>) {
    let refusal = result.unwrap_err();
    (refusal.code, refusal.reason)
}

const SCOPE_MISSING: (Code, Option<Reason>) = (Code::PermissionDenied, Some(Reason::ScopeMissing));
const INVALID: (Code, Option<Reason>) = (Code::InvalidArgument, Some(Reason::InvalidArgument));
const PRECONDITION: (Code, Option<Reason>) = (Code::FailedPrecondition, Some(Reason::FailedPrecondition));

#[test]
fn an_item_is_delivered_with_all_that_is_known_of_it() {
    let mut center = center();
    assert_eq!(publish(&mut center, SEARCH, "{}"), Published { version: 1, woken: Vec::new() });
    let expected = ConfigItem {
        namespace: "prod".into(),
        group: "crawler".into(),
        key: "search.json".into(),
        format: Format::Json,
        version: 1,
        content: "{}".into(),
        updated_at: Some(1_000),
        has_secret_refs: false,
    };
    assert_eq!(center.get(&all(), "", SEARCH), Ok(expected));
    assert!(center.holds(SEARCH, Format::Json, "{}") && !center.holds(SEARCH, Format::Yaml, "{}"));
    assert!(!center.holds(SEARCH, Format::Json, "") && !center.holds(OTHER, Format::Json, "{}"));
    assert_eq!(reason(center.get(&all(), "", OTHER)), (Code::NotFound, Some(Reason::NotFound)));
    assert_eq!(center.names().collect::<Vec<_>>(), [SEARCH]);
}

#[test]
fn b173_a_watch_returns_at_once_or_waits_until_the_publishing_that_wakes_it() {
    let mut center = center();
    put(&mut center, SEARCH, "1");
    assert_eq!(changed(center.look(&all(), &[held(SEARCH, 0), held(OTHER, 0)]).unwrap()), [(1, "1".into())]);
    let watched = [held(SEARCH, 1), held(OTHER, 0)];
    let waiter = waits(center.look(&all(), &watched).unwrap());
    assert_eq!(center.waiting(), 1);
    assert_eq!(publish(&mut center, name("crawler", "third"), "").woken, []);
    assert_eq!(publish(&mut center, SEARCH, "2").woken, [waiter]);
    assert_eq!(changed(center.look(&all(), &watched).unwrap()), [(2, "2".into())]);
    let waiter = waits(center.look(&all(), &[held(SEARCH, 2), held(OTHER, 0)]).unwrap());
    assert_eq!(publish(&mut center, OTHER, "new").woken, [waiter], "an item that was not there before");
    let waiter = waits(center.look(&all(), &[held(SEARCH, 2)]).unwrap());
    center.leave(waiter);
    assert_eq!(center.waiting(), 0, "at the timeout");
}

#[test]
fn b173_a_watch_waits_as_long_as_it_says_and_shorter_than_its_callers_deadline() {
    let center = center();
    let wait = |timeout, deadline| center.begin_watch(&all(), "", &[held(SEARCH, 0)], timeout, deadline);
    for (timeout, deadline, expected) in [
        (0, None, 30_000),
        (1, None, 1),
        (60_000, None, 60_000),
        (0, Some(90_000), 30_000),
        (60_000, Some(60_000), 59_500),
        (60_000, Some(400), 200),
        (60_000, Some(0), 0),
    ] {
        assert_eq!(wait(timeout, deadline), Ok(expected));
    }
    assert_eq!(reason(wait(-1, None)), INVALID);
    assert_eq!(reason(wait(60_001, None)), INVALID);
}

#[test]
fn b174_a_rollback_wakes_watchers_a_deletion_does_not_and_new_items_go_on_above_the_old() {
    let mut center = center();
    put(&mut center, SEARCH, "1");
    put(&mut center, SEARCH, "2");
    let waiter = waits(center.look(&all(), &[held(SEARCH, 2)]).unwrap());
    assert_eq!(center.roll_back(SEARCH, 1, 0), Ok(Published { version: 3, woken: vec![waiter] }));
    assert_eq!(changed(center.look(&all(), &[held(SEARCH, 2)]).unwrap()), [(3, "1".into())]);
    let waiter = waits(center.look(&all(), &[held(SEARCH, 3)]).unwrap());
    assert!(center.delete(SEARCH));
    assert_eq!(center.waiting(), 1);
    let late = waits(center.look(&all(), &[held(SEARCH, 0)]).unwrap());
    assert_eq!(publish(&mut center, SEARCH, "again"), Published { version: 4, woken: vec![waiter, late] });
}

#[test]
fn nobody_is_moved_back_to_a_lower_version() {
    let mut center = center();
    put(&mut center, SEARCH, "1");
    waits(center.look(&all(), &[held(SEARCH, 9)]).unwrap());
    let mut restarted = ConfigCenter::new("prod".into(), 500, &[]);
    assert_eq!(publish(&mut restarted, SEARCH, "1").version, 501);
    assert_eq!(changed(restarted.look(&all(), &[held(SEARCH, 9)]).unwrap()), [(501, "1".into())]);
    assert_eq!(restarted.get(&all(), "", BREAKERS).unwrap().version, 501);
}

#[test]
fn b175_another_namespace_than_the_tokens_is_refused() {
    let mut center = center();
    put(&mut center, SEARCH, "1");
    assert_eq!(center.get(&all(), "prod", SEARCH).unwrap().version, 1);
    assert_eq!(reason(center.get(&all(), "test", SEARCH)), SCOPE_MISSING);
    assert_eq!(reason(center.batch(&all(), "test", &[SEARCH])), SCOPE_MISSING);
    assert_eq!(reason(center.begin_watch(&all(), "test", &[held(SEARCH, 0)], 0, None)), SCOPE_MISSING);
    assert_eq!(reason(center.get(&all(), &"x".repeat(65), SEARCH)), INVALID);
}

#[test]
fn b176_references_to_secrets_are_resolved_for_those_who_may_read_them() {
    let mut center = center();
    center.secrets_mut().put("api/key", "c4n4ry".into(), None).unwrap();
    put(&mut center, SEARCH, r#"{"key":"${secret:api/key}"}"#);
    let item = center.get(&scopes(&["config:read", "secret:read:prod/api/*"]), "", SEARCH).unwrap();
    assert_eq!((&*item.content, item.has_secret_refs), (r#"{"key":"c4n4ry"}"#, true));
    assert!(!format!("{item:?} {center:?}").contains("c4n4ry"));

    let without = scopes(&["config:read", "secret:read:test/*"]);
    assert_eq!(reason(center.get(&without, "", SEARCH)), SCOPE_MISSING);
    assert_eq!(reason(center.batch(&without, "", &[OTHER, SEARCH])), SCOPE_MISSING);
    assert_eq!(reason(center.look(&without, &[held(SEARCH, 0)])), SCOPE_MISSING);
    waits(center.look(&without, &[held(SEARCH, 1)]).unwrap());

    put(&mut center, OTHER, "${secret:api/other}");
    assert_eq!(reason(center.get(&all(), "", OTHER)), PRECONDITION);
    assert_eq!(reason(center.get(&without, "", OTHER)), SCOPE_MISSING, "what may not be read is not said to be missing");
    put(&mut center, OTHER, "${secret:api/key#2}");
    assert_eq!(reason(center.get(&all(), "", OTHER)), PRECONDITION);
    assert_eq!(reason(center.publish(OTHER, Format::Text, "${secret:}", 0)), INVALID);
}

#[test]
fn a_new_secret_is_delivered_with_the_old_version_and_wakes_nobody() {
    let mut center = center();
    center.secrets_mut().put("key", "one".into(), None).unwrap();
    put(&mut center, SEARCH, "${secret:key} ${secret:key#1}");
    waits(center.look(&all(), &[held(SEARCH, 1)]).unwrap());
    center.secrets_mut().put("key", "two".into(), None).unwrap();
    assert_eq!(center.waiting(), 1);
    let item = center.get(&all(), "", SEARCH).unwrap();
    assert_eq!((item.version, &*item.content), (1, "two one"));
}

#[test]
fn b177_a_batch_lists_what_is_missing_and_fails_whole_for_a_group_that_may_not_be_read() {
    let mut center = center();
    put(&mut center, SEARCH, "1");
    let missing = name("crawler", "nothing");
    let batch = center.batch(&all(), "", &[missing, SEARCH, name("_runtime", "locks")]).unwrap();
    assert_eq!(batch.items.iter().map(|item| &*item.key).collect::<Vec<_>>(), ["search.json"]);
    assert_eq!(batch.missing, [missing, name("_runtime", "locks")]);
    let narrow = scopes(&["config:read:crawler"]);
    assert_eq!(reason(center.batch(&narrow, "", &[SEARCH, name("other", "k")])), SCOPE_MISSING);
    assert_eq!(reason(center.get(&narrow, "", name("other", "k"))), SCOPE_MISSING);
    assert_eq!(reason(center.begin_watch(&narrow, "", &[held(SEARCH, 0), held(name("other", "k"), 0)], 0, None)), SCOPE_MISSING);
}

#[test]
fn b178_an_item_watched_twice_is_an_error_and_one_asked_for_twice_is_served_once() {
    let mut center = center();
    put(&mut center, OTHER, "o");
    put(&mut center, SEARCH, "s");
    let missing = name("x", "y");
    let batch = center.batch(&all(), "", &[SEARCH, missing, OTHER, SEARCH, missing]).unwrap();
    assert_eq!(batch.items.iter().map(|item| &*item.content).collect::<Vec<_>>(), ["s", "o"], "in the order asked");
    assert_eq!(batch.missing, [missing]);
    let watch = |items: &[WatchedItem<'_>]| center.begin_watch(&all(), "", items, 0, None);
    assert_eq!(reason(watch(&[held(SEARCH, 0), held(SEARCH, 1)])), INVALID);
    assert_eq!(reason(watch(&[held(SEARCH, -1)])), INVALID);
    assert_eq!(reason(watch(&[])), INVALID);
    assert_eq!(reason(center.batch(&all(), "", &[SEARCH; 201])), INVALID);
    assert_eq!(reason(center.batch(&all(), "", &[SEARCH, name("", "k")])), INVALID);
    assert!(center.batch(&all(), "", &[SEARCH; 200]).is_ok());
}

#[test]
fn b170_runtime_items_are_read_with_a_scope_for_their_group_only() {
    let groups = vec![GroupNow {
        client: "web",
        group: "search",
        state: NotClosed::HalfOpen,
        manual: false,
        reason: "${secret:not/a/reference}",
    }];
    let shop = SiteNow { name: "shop", pause: None, groups };
    let mut center = center();
    put(&mut center, SEARCH, "1");
    let watched = [held(BREAKERS, 1), held(SEARCH, 1)];
    let about_breakers = waits(center.look(&all(), &watched).unwrap());
    let about_switches = waits(center.look(&all(), &[held(SWITCHES, 1)]).unwrap());
    assert_eq!(center.raise(Raise::Breakers, &[shop]), [about_breakers]);
    let found = changed(center.look(&all(), &watched).unwrap());
    assert!(found.len() == 1 && found[0].0 == 2 && found[0].1.contains(r#""web/search":{"state":"half_open""#), "{found:?}");
    assert_eq!(center.raise(Raise::Both, &[]), [about_switches]);

    let item = center.get(&scopes(&["config:read:_run*"]), "", BREAKERS).unwrap();
    assert_eq!((item.format, item.version, item.updated_at, item.has_secret_refs), (Format::Json, 3, None, false));
    assert_eq!(reason(center.get(&scopes(&["config:read:crawler"]), "", BREAKERS)), SCOPE_MISSING);
    assert_eq!(reason(center.get(&all(), "", name("_runtime", "other"))), (Code::NotFound, Some(Reason::NotFound)));
    assert_eq!(reason(center.publish(BREAKERS, Format::Json, "{}", 0)), INVALID);
}

#[test]
fn what_is_too_much_for_one_answer_comes_in_several_polls_but_fails_a_batch() {
    let mut center = ConfigCenter { answer_bytes: 10, ..center() };
    let third = name("crawler", "third");
    for (name, content) in [(SEARCH, "123456"), (OTHER, "12345"), (third, "1234")] {
        put(&mut center, name, content);
    }
    let mut watched = [held(SEARCH, 0), held(OTHER, 0), held(third, 0)];
    assert_eq!(changed(center.look(&all(), &watched).unwrap()), [(1, "123456".into())]);
    watched[0].version = 1;
    assert_eq!(changed(center.look(&all(), &watched).unwrap()), [(1, "12345".into()), (1, "1234".into())]);
    assert_eq!(reason(center.batch(&all(), "", &[SEARCH, OTHER])), (Code::ResourceExhausted, None));
    assert!(center.batch(&all(), "", &[SEARCH, third, SEARCH]).is_ok());

    center.secrets_mut().put("long", "x".repeat(11).as_str().into(), None).unwrap();
    put(&mut center, SEARCH, "${secret:long}");
    assert_eq!(reason(center.get(&all(), "", SEARCH)), PRECONDITION);
    assert_eq!(reason(center.look(&all(), &watched)), PRECONDITION);
}

#[test]
fn more_than_20000_waiting_watches_are_refused() {
    let mut center = center();
    for _ in 0..20_000 {
        waits(center.look(&all(), &[held(SEARCH, 0)]).unwrap());
    }
    assert_eq!(reason(center.look(&all(), &[held(SEARCH, 0)])), (Code::ResourceExhausted, Some(Reason::RateLimited)));
    assert_eq!(publish(&mut center, SEARCH, "1").woken.len(), 20_000);
    assert_eq!(center.waiting(), 0);
}

#[test]
fn b180_a_shutdown_ends_every_wait_with_canceled() {
    let mut center = center();
    let first = waits(center.look(&all(), &[held(SEARCH, 0)]).unwrap());
    let second = waits(center.look(&all(), &[held(BREAKERS, 1)]).unwrap());
    assert_eq!(center.end_all_waits(), [first, second]);
    assert_eq!(publish(&mut center, SEARCH, "1").woken, []);
    let refusal = Refusal::canceled();
    assert_eq!((refusal.code.as_str(), refusal.status()), ("canceled", 499));
}

#[derive(Debug, Clone)]
enum Step {
    Publish(usize),
    RollBack(usize, i32),
    Delete(usize),
    /// A watcher looks, if it does not wait.
    Look(usize),
    /// Its time is over.
    TimeOut(usize),
}

#[derive(Debug, Default)]
struct Watcher {
    held: BTreeMap<ItemName<'static>, i32>,
    waits: Option<WaiterId>,
}

const KEYS: [ItemName<'static>; 3] = [SEARCH, OTHER, name("crawler", "third")];

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        3 => (0..3_usize).prop_map(Step::Publish),
        1 => (0..3_usize, 1..6).prop_map(|(item, version)| Step::RollBack(item, version)),
        1 => (0..3_usize).prop_map(Step::Delete),
        5 => (0..4_usize).prop_map(Step::Look),
        1 => (0..4_usize).prop_map(Step::TimeOut),
    ]
}

proptest! {
    /// Watcher `n` watches the first two items, or the last two.
    #[test]
    fn a_watcher_that_waits_holds_the_published_versions_and_no_change_slips_past(steps in prop::collection::vec(step(), 1..120)) {
        let mut center = center();
        let mut watchers: Vec<Watcher> = (0..4).map(|_| Watcher::default()).collect();
        let names = |watcher: usize| [KEYS[watcher % 2], KEYS[watcher % 2 + 1]];
        for step in steps {
            let published = match step {
                Step::Publish(item) => Some(publish(&mut center, KEYS[item], "x")),
                Step::RollBack(item, version) => center.roll_back(KEYS[item], version, 0).ok(),
                Step::Delete(item) => {
                    center.delete(KEYS[item]);
                    None
                }
                Step::Look(number) if watchers[number].waits.is_none() => {
                    let watcher = &mut watchers[number];
                    let items = names(number).map(|name| held(name, watcher.held.get(&name).copied().unwrap_or(0)));
                    match center.look(&all(), &items).unwrap() {
                        Look::Waits(waiter) => watcher.waits = Some(waiter),
                        Look::Changed(items) => {
                            for item in items {
                                let name = KEYS.into_iter().find(|name| *name.key == *item.key).unwrap();
                                let before = watcher.held.insert(name, item.version).unwrap_or(0);
                                prop_assert!(before < item.version);
                            }
                        }
                    }
                    None
                }
                Step::Look(_) => None,
                Step::TimeOut(number) => {
                    if let Some(waiter) = watchers[number].waits.take() {
                        center.leave(waiter);
                    }
                    None
                }
            };
            for waiter in published.map(|published| published.woken).unwrap_or_default() {
                let woken = watchers.iter_mut().find(|watcher| watcher.waits == Some(waiter));
                woken.expect("only who waits is woken").waits = None;
            }
            prop_assert_eq!(center.waiting(), watchers.iter().filter(|watcher| watcher.waits.is_some()).count());
            for (number, watcher) in watchers.iter().enumerate().filter(|(_, watcher)| watcher.waits.is_some()) {
                for name in names(number) {
                    if let Ok(item) = center.get(&all(), "", name) {
                        prop_assert_eq!(watcher.held.get(&name), Some(&item.version));
                    }
                }
            }
        }
    }
}
