//! The state between items as the contract shows them and the gates.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing)]

use std::sync::Mutex;
use std::time::Duration;

use futures_util::future::BoxFuture;
use tokio::sync::mpsc;

use super::*;
use crate::actor::Tap;
use crate::broker::gate::Pass;
use crate::plane::{Ask, Refusal, RefusalKind};
use crate::spinneret::ConfigItem;

const WALL: &str = "2026-09-17T10:00:00Z";
const OPEN: &str = r#"{"namespace":"prod","version":7,"new":1,"sites":{"shop":{"paused":false,"groups":{
    "web/search":{"state":"open","open_until":"2026-09-17T10:02:00.000Z","manual":false,"reason":"risk_ratio 0.40 >= 0.40"},
    "web/a/b":{"state":"open","open_until":null,"manual":true,"reason":null},
    "app/search":{"state":"half_open","open_until":null},
    "odd":{"state":"open","open_until":null}}},"other":{"paused":false,"groups":{}}}}"#;
const CLOSED: &str = r#"{"namespace":"prod","version":8,"sites":{"shop":{"paused":false,"groups":{
    "web/search":{"state":"half_open","open_until":null,"manual":false,"reason":""}}},"other":{"paused":false,"groups":null}}}"#;
const OFF: &str =
    r#"{"namespace":"prod","version":3,"sites":{"shop":{"paused":true,"reason":"sale","paused_at":"2026-09-17T10:00:00.000Z"}}}"#;
const ON: &str = r#"{"namespace":"prod","version":4,"sites":{"shop":{"paused":false,"reason":"","paused_at":null}}}"#;

fn configured(key: &str, content: &str) -> Configured {
    let item = ConfigItem {
        namespace: "prod".to_owned(),
        group: GROUP.to_owned(),
        key: key.to_owned(),
        format: "json".to_owned(),
        version: 1,
        content: content.to_owned(),
        updated_at: None,
        has_secret_refs: false,
    };
    Configured { item, from_snapshot: false }
}

fn state(items: &[(&str, &str)]) -> RuntimeState {
    let mut state = RuntimeState::default();
    for (key, content) in items {
        state.take(&configured(key, content)).unwrap();
    }
    state
}

fn ask(site: &str, client: &str, group: &str) -> Ask {
    Ask {
        site: site.into(),
        client: client.into(),
        group: group.into(),
        path: "/".to_owned(),
        session_key: None,
        anonymous: false,
        rule: None,
    }
}

fn apply(state: &RuntimeState, before: &RuntimeState, gates: &mut Gates, now: Instant) {
    state.apply(before, gates, now, WALL.parse().unwrap());
}

fn wait(gates: &mut Gates, ask: &Ask, now: Instant) -> Option<Duration> {
    match gates.pass(ask, now) {
        Pass::Go => None,
        Pass::Hold(hold) => Some(hold.wait),
    }
}

fn refuse(gates: &mut Gates, ask: &Ask, why: RefusalKind, now: Instant) {
    let refusal = Refusal { why, retry_after: Some(Duration::from_secs(60)), message: String::new() };
    gates.refused(ask, &refusal, now);
}

#[test]
fn an_open_circuit_holds_the_asks_that_name_it_until_its_end() {
    let now = Instant::now();
    let mut gates = Gates::new(1);
    apply(&state(&[(BREAKERS, OPEN)]), &RuntimeState::default(), &mut gates, now);
    assert_eq!(wait(&mut gates, &ask("shop", "web", "search"), now), Some(Duration::from_secs(120)));
    assert_eq!(wait(&mut gates, &ask("shop", "web", "search"), now + Duration::from_secs(120)), None);
    assert!(wait(&mut gates, &ask("shop", "web", "a/b"), now + Duration::from_secs(999_999)).is_some(), "no end is named");
    for free in [ask("shop", "app", "search"), ask("shop", "web", ""), ask("other", "web", "search")] {
        assert_eq!(wait(&mut gates, &free, now), None, "{free:?}");
    }
}

#[test]
fn a_site_is_held_until_it_is_switched_on() {
    let now = Instant::now();
    let mut gates = Gates::new(1);
    let off = state(&[(SWITCHES, OFF), (BREAKERS, CLOSED)]);
    apply(&off, &RuntimeState::default(), &mut gates, now);
    let Pass::Hold(hold) = gates.pass(&ask("shop", "web", ""), now + Duration::from_secs(999_999)) else { panic!("not held") };
    assert_eq!((hold.why, hold.by_runtime), (RefusalKind::SitePaused, true));
    assert!(hold.message.contains("shop") && hold.message.ends_with(": sale"), "{}", hold.message);
    assert_eq!(wait(&mut gates, &ask("other", "web", ""), now), None);
    apply(&state(&[(SWITCHES, ON)]), &off, &mut gates, now);
    assert_eq!(wait(&mut gates, &ask("shop", "web", ""), now), None);
    assert!(wait(&mut gates, &ask("shop", "web", ""), now).is_some(), "step by step");
}

#[test]
fn without_the_switches_the_breakers_tell_of_a_pause() {
    let now = Instant::now();
    let mut gates = Gates::new(1);
    let paused = r#"{"sites":{"shop":{"paused":true,"groups":{}}}}"#;
    apply(&state(&[(BREAKERS, paused)]), &RuntimeState::default(), &mut gates, now);
    assert!(wait(&mut gates, &ask("shop", "web", ""), now).is_some());
    let mut gates = Gates::new(1);
    apply(&state(&[(BREAKERS, paused), (SWITCHES, ON)]), &RuntimeState::default(), &mut gates, now);
    assert_eq!(wait(&mut gates, &ask("shop", "web", ""), now), None, "the switches have the last word");
}

#[test]
fn earlier_refusals_are_lifted_by_an_item_that_knows_better() {
    let it = ask("shop", "web", "search");
    let by_path = ask("shop", "web", "");
    let nothing = RuntimeState::default();
    let open = state(&[(BREAKERS, OPEN)]);
    let elsewhere = r#"{"sites":{"other":{"paused":false,"groups":{}}}}"#;
    let one_left = r#"{"sites":{"shop":{"paused":false,"groups":{"web/a/b":{"state":"open","open_until":null}}}}}"#;
    // (who was refused, why, what the items said before, what they say now, whether that lifts it)
    for (n, (ask, why, before, after, lifted)) in [
        (&it, RefusalKind::SitePaused, &nothing, state(&[(SWITCHES, ON)]), true),
        (&it, RefusalKind::SitePaused, &nothing, state(&[(SWITCHES, OFF)]), false),
        (&it, RefusalKind::SitePaused, &nothing, state(&[(SWITCHES, elsewhere)]), false),
        (&it, RefusalKind::SitePaused, &nothing, state(&[(BREAKERS, CLOSED)]), true),
        (&it, RefusalKind::SitePaused, &nothing, nothing.clone(), false),
        (&it, RefusalKind::CircuitOpen, &nothing, state(&[(BREAKERS, CLOSED)]), true),
        (&it, RefusalKind::CircuitOpen, &nothing, state(&[(BREAKERS, OPEN)]), false),
        (&it, RefusalKind::CircuitOpen, &nothing, state(&[(SWITCHES, ON)]), false),
        (&it, RefusalKind::NoIdentity, &nothing, state(&[(BREAKERS, CLOSED), (SWITCHES, ON)]), false),
        (&by_path, RefusalKind::CircuitOpen, &open, state(&[(BREAKERS, CLOSED)]), true),
        (&by_path, RefusalKind::CircuitOpen, &open, state(&[(BREAKERS, one_left)]), true),
        (&by_path, RefusalKind::CircuitOpen, &open, open.clone(), false),
    ]
    .into_iter()
    .enumerate()
    {
        let now = Instant::now();
        let mut gates = Gates::new(1);
        refuse(&mut gates, ask, why, now);
        apply(&after, before, &mut gates, now);
        assert_eq!(wait(&mut gates, ask, now).is_none(), lifted, "case {n}");
    }
}

#[test]
fn what_is_not_told_any_more_is_not_held_any_more() {
    let now = Instant::now();
    let mut gates = Gates::new(1);
    let told = state(&[(BREAKERS, OPEN), (SWITCHES, OFF)]);
    apply(&told, &RuntimeState::default(), &mut gates, now);
    apply(&RuntimeState::default(), &told, &mut gates, now);
    assert_eq!(wait(&mut gates, &ask("shop", "web", "search"), now), None);
}

#[test]
fn a_snapshot_and_an_unreadable_content_say_nothing() {
    let mut state = RuntimeState::default();
    state.take(&Configured { from_snapshot: true, ..configured(SWITCHES, OFF) }).unwrap();
    assert!(!state.is_known());
    state.take(&configured(SWITCHES, OFF)).unwrap();
    assert!(state.is_known());
    for bad in ["", "[]", "{}", r#"{"sites":[]}"#, r#"{"sites":{"shop":{"paused":"yes"}}}"#] {
        assert!(state.take(&configured(SWITCHES, bad)).is_err(), "{bad}");
        assert!(!state.is_known());
    }
    assert!(state.take(&configured(BREAKERS, r#"{"sites":{"a":{"groups":{"b/c":{"open_until":"soon"}}}}}"#)).is_err());
    state.take(&configured("else", "x")).unwrap();
    state
        .take(&Configured {
            item: ConfigItem { group: "mine".to_owned(), ..configured(SWITCHES, "x").item },
            from_snapshot: false,
        })
        .unwrap();
}

#[derive(Debug)]
struct ScriptedFeed {
    first: Vec<Configured>,
    changes: tokio::sync::Mutex<mpsc::UnboundedReceiver<Configured>>,
    asked: Mutex<Vec<ConfigKey>>,
}

impl ConfigFeed for ScriptedFeed {
    fn get(&self, key: &ConfigKey) -> Option<Configured> {
        self.asked.lock().unwrap().push(key.clone());
        self.first.iter().find(|configured| configured.item.key == key.key).cloned()
    }

    fn changed(&self) -> BoxFuture<'_, Option<Configured>> {
        Box::pin(async { self.changes.lock().await.recv().await })
    }
}

#[tokio::test]
async fn the_broker_is_told_of_every_change_and_of_the_end() {
    let (change, changes) = mpsc::unbounded_channel();
    let feed = Arc::new(ScriptedFeed {
        first: vec![configured(BREAKERS, CLOSED), Configured { from_snapshot: true, ..configured(SWITCHES, OFF) }],
        changes: tokio::sync::Mutex::new(changes),
        asked: Mutex::default(),
    });
    let tap: Tap<(), Control> = Tap::new("broker", 1);
    for (key, content) in [(SWITCHES, OFF), (SWITCHES, OFF), (SWITCHES, "broken"), (SWITCHES, ON)] {
        change.send(configured(key, content)).unwrap();
    }
    drop(change);
    watch_runtime(Arc::clone(&feed) as _, tap.controls()).await;
    let mut told = Vec::new();
    while let Some(Control::Runtime(state)) = tap.take_control() {
        told.push(state);
    }
    let expected = [
        state(&[(BREAKERS, CLOSED)]),
        state(&[(BREAKERS, CLOSED), (SWITCHES, OFF)]),
        state(&[(BREAKERS, CLOSED)]),
        state(&[(BREAKERS, CLOSED), (SWITCHES, ON)]),
        RuntimeState::default(),
    ];
    assert_eq!(told, expected);
    assert_eq!(*feed.asked.lock().unwrap(), runtime_keys());
}

#[test]
fn what_goes_off_and_on_is_told_of_the_sites_that_are_asked_for() {
    let off = state(&[(BREAKERS, OPEN), (SWITCHES, OFF)]);
    let on = state(&[(BREAKERS, CLOSED), (SWITCHES, ON)]);
    let nothing = RuntimeState::default();
    assert_eq!(
        off.news(&nothing, |site| site == "shop"),
        [
            "site shop is paused at the control plane: sale; its requests wait",
            "the breaker of shop/web/a/b is open; requests of that endpoint group wait",
            "the breaker of shop/web/search is open until 2026-09-17T10:02:00Z: risk_ratio 0.40 >= 0.40; requests of that \
             endpoint group wait",
        ]
    );
    assert_eq!(
        on.news(&off, |_| true),
        [
            "site shop is paused no more; its requests go on",
            "the breaker of shop/web/a/b is open no more; requests of that endpoint group go on",
            "the breaker of shop/web/search is open no more; requests of that endpoint group go on",
        ]
    );
    for (state, before) in [(&off, &off), (&on, &nothing), (&nothing, &off)] {
        assert_eq!(state.news(before, |_| true), Vec::<String>::new());
    }
    assert_eq!(off.news(&nothing, |site| site == "other"), Vec::<String>::new());
}
