//! What was asked for, and whether it is so.

use crate::cases::Case;
use crate::stores::Kind;
use crate::{All, MILLION};

/// Something that must be at least, or at most, so much.
#[derive(Debug)]
pub(crate) struct Goal {
    what: String,
    found: f64,
    limit: f64,
    is_least: bool,
}

impl Goal {
    pub(crate) fn is_met(&self) -> bool {
        if self.is_least { self.found >= self.limit } else { self.found <= self.limit }
    }

    pub(crate) fn line(&self) -> String {
        let Self { what, found, limit, is_least } = self;
        let (word, verdict) = (if *is_least { "at least" } else { "at most" }, if self.is_met() { "met" } else { "MISSED" });
        format!("{what:<74} {found:>12.1}  {word:<8} {limit:>9.1}  {verdict}")
    }
}

/// The goals, as far as they were measured.
pub(crate) fn of(kind: Kind, all: &All) -> Vec<Goal> {
    let mut goals = Vec::new();
    for ((case, count), figures) in all {
        let mut add = |what: &str, found: Option<f64>, limit: f64, is_least: bool| {
            let what = format!("{} {count} {}: {what}", kind.name(), case.name());
            goals.extend(found.map(|found| Goal { what, found, limit, is_least }));
        };
        let get = |name: &str| figures.get(name).copied();
        let rate = |name: &str| get(name).map(|ns| 1e9 / ns);
        let other = |case: Case, name: &str| all.get(&(case, *count)).and_then(|figures| figures.get(name).copied());
        let less = |name: &str, part: Option<f64>| get(name).zip(part).map(|(all, part)| all - part);
        match (kind, case) {
            (Kind::Memory, Case::Queue { hosts, is_all_new }) => {
                add("offers/s", rate("offer_ns"), 1e6, true);
                if *is_all_new && *hosts == 1 {
                    let seen = other(Case::Seen, "rss_b");
                    add("bytes a queued request, seen set apart", less("rss_b", seen), 200.0, false);
                }
            }
            (Kind::Memory, Case::Seen) => {
                add("bytes a seen URL, at any size", get("worst_b"), 32.0, false);
                add("bytes a seen URL, while growing", get("peak_b"), 48.0, false);
            }
            (Kind::Disk, Case::Queue { hosts, is_all_new }) => {
                add("offers/s", rate("offer_ns"), if *is_all_new { 80_000.0 } else { 150_000.0 }, true);
                add("pulls and settles/s", rate("drain_ns"), 100_000.0, true);
                if *hosts == 1 {
                    add("bytes of memory a queued and seen request", get("rss_b"), 64.0, false);
                }
            }
            (Kind::Redis, Case::Queue { .. }) => add("offers, pulls and settles/s", rate("cycle_ns"), 20_000.0, true),
            (Kind::Memory | Kind::Disk, Case::Hosts) => {
                let jobs = other(Case::Queue { hosts: 1, is_all_new: true }, "rss_b");
                add("bytes a known host, its request apart", less("rss_b", jobs), 400.0, false);
            }
            (Kind::Disk | Kind::Redis, _) => {}
        }
        let smaller = all.get(&(case.clone(), MILLION)).filter(|_| *count > MILLION);
        for name in ["offer_ns", "pull_ns", "settle_ns", "mark_ns", "cycle_ns"] {
            let before = smaller.and_then(|figures| figures.get(name).copied());
            let ratio = before.zip(get(name)).map(|(before, now)| now / before);
            add(&format!("{name} over that at a million"), ratio, 1.5, false);
        }
    }
    goals
}
