//! The read-only config group `_runtime`: which breakers are not closed, which sites are paused (wire contract, section 29).
//!
//! An item is rendered when its counter is raised and stays as it is until then: a site created in between appears with the
//! next version.

use std::collections::BTreeMap;
use std::sync::Arc;

use jiff::Timestamp;
use jiff::fmt::temporal::DateTimePrinter;
use serde::{Serialize, Serializer};

use super::Ms;

/// The group's name.
pub(crate) const GROUP: &str = "_runtime";
/// The item about breakers.
pub(crate) const BREAKERS: &str = "breakers";
/// The item about paused sites.
pub(crate) const SITE_SWITCHES: &str = "site_switches";

/// Highest counter: the item's version is one above it.
const LAST: i32 = i32::MAX - 1;
/// Moments have exactly three fractional digits.
const MILLISECONDS: DateTimePrinter = DateTimePrinter::new().precision(Some(3));

/// A site of the namespace, as it is now.
#[derive(Debug, Clone, Default)]
pub(crate) struct SiteNow<'a> {
    /// Its name.
    pub(crate) name: &'a str,
    /// Whether somebody paused it.
    pub(crate) pause: Option<PauseNow<'a>>,
    /// The endpoint groups whose breakers are not closed, in any order.
    pub(crate) groups: Vec<GroupNow<'a>>,
}

/// A pause.
#[derive(Debug, Clone, Copy)]
pub(crate) struct PauseNow<'a> {
    /// Why, as given.
    pub(crate) reason: &'a str,
    /// Since when.
    pub(crate) since: Ms,
}

/// An endpoint group whose breaker is not closed.
#[derive(Debug, Clone, Copy)]
pub(crate) struct GroupNow<'a> {
    /// The client.
    pub(crate) client: &'a str,
    /// The endpoint group.
    pub(crate) group: &'a str,
    /// The breaker's state.
    pub(crate) state: NotClosed,
    /// Whether somebody opened it by hand.
    pub(crate) manual: bool,
    /// Why.
    pub(crate) reason: &'a str,
}

/// The states of a breaker that are listed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum NotClosed {
    /// Until then, or without end.
    Open(Option<Ms>),
    /// Lets probes through.
    HalfOpen,
}

/// What changed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Raise {
    /// A breaker: raises `breakers`.
    Breakers,
    /// A pause, or its reason: raises both items.
    Both,
}

/// Both items of one namespace.
#[derive(Debug)]
pub(crate) struct RuntimeItems {
    namespace: Arc<str>,
    breakers: Rendered,
    site_switches: Rendered,
}

#[derive(Debug)]
struct Rendered {
    counter: i32,
    content: Arc<str>,
}

impl RuntimeItems {
    /// Both items with this counter: 0 for a fresh server. One that restarts and remembers nothing begins above what it may
    /// have given out, since readers never go back.
    pub(crate) fn new(namespace: Arc<str>, counter: i32, sites: &[SiteNow<'_>]) -> Self {
        let counter = counter.clamp(0, LAST);
        let breakers = Rendered { counter, content: render_breakers(&namespace, counter, sites) };
        let site_switches = Rendered { counter, content: render_site_switches(&namespace, counter, sites) };
        Self { namespace, breakers, site_switches }
    }

    /// Raises what changed and renders it anew; answers the keys of the new items.
    pub(crate) fn raise(&mut self, what: Raise, sites: &[SiteNow<'_>]) -> &'static [&'static str] {
        let next = |counter: i32| counter.saturating_add(1).min(LAST);
        self.breakers.counter = next(self.breakers.counter);
        self.breakers.content = render_breakers(&self.namespace, self.breakers.counter, sites);
        if what == Raise::Breakers {
            return &[BREAKERS];
        }
        self.site_switches.counter = next(self.site_switches.counter);
        self.site_switches.content = render_site_switches(&self.namespace, self.site_switches.counter, sites);
        &[BREAKERS, SITE_SWITCHES]
    }

    /// Version and content of an item; every other key does not exist.
    pub(crate) fn find(&self, key: &str) -> Option<(i32, &Arc<str>)> {
        let item = match key {
            BREAKERS => &self.breakers,
            SITE_SWITCHES => &self.site_switches,
            _ => return None,
        };
        Some((item.counter + 1, &item.content))
    }
}

#[derive(Serialize)]
struct Document<'a, S> {
    namespace: &'a str,
    version: i32,
    sites: BTreeMap<&'a str, S>,
}

#[derive(Serialize)]
struct SiteBreakers<'a> {
    paused: bool,
    groups: BTreeMap<String, GroupBreaker<'a>>,
}

#[derive(Serialize)]
struct GroupBreaker<'a> {
    state: &'static str,
    #[serde(serialize_with = "moment")]
    open_until: Option<Ms>,
    manual: bool,
    reason: &'a str,
}

#[derive(Serialize)]
struct SiteSwitch<'a> {
    paused: bool,
    reason: &'a str,
    #[serde(serialize_with = "moment")]
    paused_at: Option<Ms>,
}

fn render_breakers(namespace: &str, version: i32, sites: &[SiteNow<'_>]) -> Arc<str> {
    let sites = sites.iter().map(|site| {
        let groups = site.groups.iter().map(|group| {
            let (state, open_until) = match group.state {
                NotClosed::Open(until) => ("open", until),
                NotClosed::HalfOpen => ("half_open", None),
            };
            let breaker = GroupBreaker { state, open_until, manual: group.manual, reason: group.reason };
            (format!("{}/{}", group.client, group.group), breaker)
        });
        (site.name, SiteBreakers { paused: site.pause.is_some(), groups: groups.collect() })
    });
    render(&Document { namespace, version, sites: sites.collect() })
}

fn render_site_switches(namespace: &str, version: i32, sites: &[SiteNow<'_>]) -> Arc<str> {
    let sites = sites.iter().map(|site| {
        let (reason, paused_at) = site.pause.map_or(("", None), |pause| (pause.reason, Some(pause.since)));
        (site.name, SiteSwitch { paused: site.pause.is_some(), reason, paused_at })
    });
    render(&Document { namespace, version, sites: sites.collect() })
}

#[allow(clippy::expect_used, reason = "texts, numbers and maps keyed by texts are always JSON")]
fn render<T: Serialize>(document: &T) -> Arc<str> {
    serde_json::to_string(document).expect("texts, numbers and maps keyed by texts are always JSON").into()
}

/// A moment with three fractional digits and `Z`; one beyond the calendar is its last.
fn moment<S: Serializer>(at: &Option<Ms>, serializer: S) -> Result<S::Ok, S::Error> {
    let Some(at) = at else { return serializer.serialize_none() };
    let at = i64::try_from(*at).ok().and_then(|at| Timestamp::from_millisecond(at).ok()).unwrap_or(Timestamp::MAX);
    serializer.serialize_str(&MILLISECONDS.timestamp_to_string(&at))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing)]

    use super::*;

    fn at(moment: &str) -> Ms {
        u64::try_from(moment.parse::<Timestamp>().unwrap().as_millisecond()).unwrap()
    }

    fn group<'a>(client: &'a str, group: &'a str, state: NotClosed, manual: bool, reason: &'a str) -> GroupNow<'a> {
        GroupNow { client, group, state, manual, reason }
    }

    #[test]
    fn b170_breakers_lists_every_site_and_the_groups_that_are_not_closed() {
        let until = at("2026-09-17T10:02:00Z");
        let shop = SiteNow {
            name: "shop",
            pause: None,
            groups: vec![
                group("web", "search", NotClosed::Open(Some(until)), false, "risk_ratio 0.55 >= 0.40"),
                group("app", "_default", NotClosed::HalfOpen, false, ""),
                group("web", "login", NotClosed::Open(None), true, "by \"hand\""),
            ],
        };
        let other = SiteNow { name: "books", pause: Some(PauseNow { reason: "x", since: 0 }), groups: Vec::new() };
        let items = RuntimeItems::new("prod".into(), 7, &[shop, other]);
        let (version, content) = items.find("breakers").unwrap();
        assert_eq!(version, 8);
        assert_eq!(
            &**content,
            concat!(
                r#"{"namespace":"prod","version":7,"sites":{"books":{"paused":true,"groups":{}},"shop":{"paused":false,"groups":{"#,
                r#""app/_default":{"state":"half_open","open_until":null,"manual":false,"reason":""},"#,
                r#""web/login":{"state":"open","open_until":null,"manual":true,"reason":"by \"hand\""},"#,
                r#""web/search":{"state":"open","open_until":"2026-09-17T10:02:00.000Z","manual":false,"#,
                r#""reason":"risk_ratio 0.55 >= 0.40"}}}}}"#,
            )
        );
    }

    #[test]
    fn site_switches_tells_who_is_paused_since_when_and_why() {
        let pause = PauseNow { reason: "maintenance", since: at("2026-09-17T10:00:00.050Z") };
        let shop = SiteNow { name: "shop", pause: Some(pause), groups: Vec::new() };
        let items = RuntimeItems::new("prod".into(), 3, &[shop, SiteNow { name: "books", ..SiteNow::default() }]);
        let (version, content) = items.find("site_switches").unwrap();
        assert_eq!(version, 4);
        assert_eq!(
            &**content,
            concat!(
                r#"{"namespace":"prod","version":3,"sites":{"books":{"paused":false,"reason":"","paused_at":null},"#,
                r#""shop":{"paused":true,"reason":"maintenance","paused_at":"2026-09-17T10:00:00.050Z"}}}"#,
            )
        );
    }

    #[test]
    fn b170_a_transition_raises_one_version_and_a_pause_both() {
        let versions = |items: &RuntimeItems| (items.find(BREAKERS).unwrap().0, items.find(SITE_SWITCHES).unwrap().0);
        let mut items = RuntimeItems::new("prod".into(), 0, &[]);
        assert_eq!(versions(&items), (1, 1));
        assert_eq!(items.raise(Raise::Breakers, &[]), [BREAKERS]);
        assert_eq!(versions(&items), (2, 1));
        assert_eq!(items.raise(Raise::Both, &[]), [BREAKERS, SITE_SWITCHES]);
        assert_eq!(versions(&items), (3, 2));
        assert_eq!(items.find("locks"), None);
    }

    #[test]
    fn the_content_is_that_of_its_version() {
        let mut items = RuntimeItems::new("prod".into(), 0, &[]);
        let site = SiteNow { name: "shop", ..SiteNow::default() };
        items.raise(Raise::Breakers, std::slice::from_ref(&site));
        assert!(items.find(BREAKERS).unwrap().1.contains(r#""version":1,"sites":{"shop""#));
        assert!(items.find(SITE_SWITCHES).unwrap().1.contains(r#""version":0,"sites":{}"#), "as rendered with its version");
    }

    #[test]
    fn moments_and_counters_beyond_all_bounds_are_the_last_ones() {
        let groups = vec![group("w", "g", NotClosed::Open(Some(u64::MAX)), false, "")];
        let mut items = RuntimeItems::new("prod".into(), i32::MAX, &[SiteNow { name: "s", pause: None, groups }]);
        assert!(items.find(BREAKERS).unwrap().1.contains(r#""open_until":"9999-12-30T22:00:00.999Z""#), "{items:?}");
        items.raise(Raise::Both, &[]);
        assert_eq!(items.find(BREAKERS).unwrap().0, i32::MAX);
    }
}
