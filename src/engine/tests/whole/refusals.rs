//! Refusals: a request that gets no lease waits, and nobody else does; what will never get one fails.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use super::fakes::Judged;
use super::script::{follow, item, make};
use super::stand::{Outcome, Stand};
use super::{MILLI, SECOND, identities, rule};
use crate::plane::RefusalKind;
use crate::settings::UnmatchedLease;
use crate::testkit::transport::Answer;

/// Ten pages on each of two hosts; a.test is refused until the plane relents.
fn two_hosts(why: RefusalKind, hint: bool, until: Duration) -> Outcome {
    let pages = (0..10).flat_map(|n| [follow(&format!("http://a.test/{n}")), follow(&format!("http://b.test/{n}"))]);
    Stand::new()
        .start(pages)
        .judge(
            move |ask, now| {
                if &*ask.site == "a.test" && now < until { Judged::Refuse(why, hint.then(|| until - now)) } else { Judged::Grant }
            },
        )
        .run()
}

#[test]
fn a_refused_host_waits_alone_and_a_refusal_is_no_attempt() {
    for why in [RefusalKind::NoIdentity, RefusalKind::NoProxy, RefusalKind::CircuitOpen, RefusalKind::SitePaused] {
        let done = two_hosts(why, true, 5 * SECOND);
        done.assert_whole();
        let (a, b) = (done.times("GET http://a.test"), done.times("GET http://b.test"));
        assert_eq!((a.len(), b.len()), (10, 10), "{why:?}");
        assert!(b.iter().all(|at| *at < 50 * MILLI), "{why:?}: {b:?}");
        assert!(a[0] >= 5 * SECOND && a[0] < 5 * SECOND + 50 * MILLI, "{why:?}: {a:?}");
        assert!(a[9] < 6 * SECOND, "{why:?}: {a:?}");
        assert_eq!(done.count("retry/count"), 0);
        assert_eq!(done.ended.books.handled, 20);
        assert!(done.records.iter().all(|record| record["success"] == true));
        // The gate holds the others without asking.
        let asks = done.times("ask a.test").iter().filter(|at| **at < 5 * SECOND).count();
        assert!(asks <= 10, "{why:?}: {asks} asks while it is refused");
    }
}

#[test]
fn without_a_hint_the_plane_is_asked_again_at_growing_intervals() {
    for why in [RefusalKind::NoIdentity, RefusalKind::SitePaused] {
        let done = two_hosts(why, false, 20 * SECOND);
        done.assert_whole();
        let b = done.times("GET http://b.test");
        assert!(b.iter().all(|at| *at < 50 * MILLI), "{why:?}: {b:?}");
        let asks = done.times("ask a.test").iter().filter(|at| **at < 20 * SECOND).count();
        assert!((3..60).contains(&asks), "{why:?}: {asks} asks in 20 s");
        assert_eq!(done.times("GET http://a.test").len(), 10);
    }
}

#[test]
fn a_limit_of_the_whole_plane_holds_everyone_and_then_everyone_goes() {
    let pages = (0..10).flat_map(|n| [follow(&format!("http://a.test/{n}")), follow(&format!("http://b.test/{n}"))]);
    let done =
        Stand::new()
            .start(pages)
            .judge(|_, now| {
                if now < 3 * SECOND { Judged::Refuse(RefusalKind::RateLimited, Some(3 * SECOND - now)) } else { Judged::Grant }
            })
            .run();
    done.assert_whole();
    let times = done.times("GET");
    assert!(times[0] >= 3 * SECOND && times[19] < 5 * SECOND, "{times:?}");
}

#[test]
fn a_site_without_any_grant_is_given_up_with_its_reason() {
    let done =
        Stand::new()
            .start((0..5).map(|n| follow(&format!("http://a.test/{n}"))).chain([follow("http://b.test/")]))
            .with(|s| s.lease_give_up = 60 * SECOND)
            .judge(|ask, _| {
                if &*ask.site == "a.test" { Judged::Refuse(RefusalKind::NoIdentity, Some(10 * SECOND)) } else { Judged::Grant }
            })
            .run();
    done.assert_whole();
    assert_eq!(done.times("GET http://a.test").len(), 0);
    let failed = done.said("failed lease_unavailable - http://a.test");
    assert_eq!(failed.len(), 5, "{:?}", done.lines);
    assert!(failed.iter().all(|line| line.ends_with("x0")));
    let given_up = done.times("failed lease_unavailable");
    assert!(given_up[0] >= 60 * SECOND && given_up[4] < 75 * SECOND, "{given_up:?}");
    assert!(done.records.iter().any(|r| r["error"].as_str().is_some_and(|e| e.contains("LEASE_GIVE_UP"))), "{:?}", done.records);
    assert_eq!((done.ended.books.failed, done.ended.books.handled), (5, 1));
}

#[test]
fn a_plane_that_is_away_for_long_makes_no_site_give_up() {
    let pages = (0..10).map(|n| follow(&format!("http://a.test/{n}")));
    let mut stand = Stand::new()
        .start(pages)
        .with(|s| {
            s.lease_give_up = 60 * SECOND;
            s.spinneret_unavailable_timeout = Duration::ZERO;
        })
        .judge(|_, now| {
            // 40 s of its own before the plane goes, 10 s after it came back: less than it may have.
            let why = match now.as_secs() {
                0..40 | 600..610 => RefusalKind::NoIdentity,
                40..600 => RefusalKind::Unreachable,
                _ => return Judged::Grant,
            };
            Judged::Refuse(why, Some(2 * SECOND))
        });
    stand.is_remote = true;
    stand.leases = vec![rule("a.test", "shop")];
    stand.identities = Some(identities("shop", 20));
    let done = stand.run();
    done.assert_whole();
    assert_eq!((done.ended.books.handled, done.ended.books.failed), (10, 0));
    let asks = done.times("ask shop").len();
    assert!((250..500).contains(&asks), "{asks} asks in ten minutes");
}

#[test]
fn a_long_queue_of_a_refused_site_costs_the_plane_few_asks() {
    for (why, hint) in [
        (RefusalKind::SitePaused, Some(30 * SECOND)),
        (RefusalKind::NoIdentity, Some(SECOND)),
        (RefusalKind::NoIdentity, None),
        (RefusalKind::Overloaded, Some(150 * MILLI)),
        (RefusalKind::CircuitOpen, Some(SECOND)),
    ] {
        for is_remote in [false, true] {
            let mut stand = Stand::new()
                .start((0..10_000).map(|n| follow(&format!("http://a.test/{n}"))))
                .with(|s| s.frontier_max_bytes = 1 << 30)
                .judge(move |_, _| Judged::Refuse(why, hint));
            stand.is_remote = is_remote;
            stand.leases = vec![rule("a.test", "shop")];
            stand.identities = Some(identities("shop", 100));
            let done = stand.run_and(|desk| async move {
                tokio::time::sleep(30 * SECOND).await;
                desk.stop();
            });
            done.assert_sound();
            assert_eq!(done.ended.books.pending, 10_000);
            let in_vain = done.times("ask shop").len();
            let held = done.count("lease/held");
            assert!(in_vain <= 250, "{why:?} {hint:?} {is_remote}: {in_vain} asks in 30 s");
            assert!(held <= 10_000, "{why:?} {hint:?} {is_remote}: {held} times to the gate");
        }
    }
}

#[test]
fn a_node_the_plane_does_not_take_stops_the_job_with_exit_3() {
    for why in [RefusalKind::Unauthorized, RefusalKind::Forbidden] {
        let reason = "control_plane_unauthorized";
        let done = Stand::new()
            .start((0..200).map(|n| follow(&format!("http://a.test/{n}"))))
            .judge(move |_, _| Judged::Refuse(why, None))
            .run();
        done.assert_sound();
        assert_eq!((done.ended.reason.as_str(), done.ended.code), (reason, 3));
        let note = done.ended.note.clone().unwrap();
        assert!(note.contains(why.name()) && note.contains("token"), "{note}");
        assert_eq!(done.asked.len(), 0);
        assert!(done.took < 2 * SECOND, "{:?}", done.took);
        let books = done.ended.books;
        assert!(books.pending > 0 && books.failed == 0, "no request did anything wrong: {books:?}");
    }
}

#[test]
fn one_request_the_plane_will_never_grant_fails_alone() {
    let done = Stand::new()
        .start([follow("http://a.test/bad"), follow("http://a.test/good")])
        .judge(|ask, _| if ask.path == "/bad" { Judged::Refuse(RefusalKind::Invalid, None) } else { Judged::Grant })
        .run();
    done.assert_whole();
    assert_eq!(done.said("failed"), ["failed lease_refused - http://a.test/bad x0"]);
    assert_eq!(done.ended.books.handled, 1);
}

#[test]
fn an_identity_that_comes_back_is_used_at_once() {
    let mut stand =
        Stand::new().start((0..8).map(|n| follow(&format!("http://a.test/{n}")))).page("http://a.test/0", [item("0")]);
    for n in 0..8 {
        stand = stand.answers(&format!("http://a.test/{n}"), [Answer::html("ok").after(SECOND)]);
    }
    stand.identities = Some(identities("shop", 1));
    stand.leases = vec![rule("a.test", "shop")];
    let done = stand.run();
    done.assert_whole();
    assert_eq!(done.most_at_once, 1);
    let times = done.times("GET");
    assert_eq!(times.len(), 8);
    // A report waits for others for REPORT_FLUSH (200 ms) before the plane hears that the lease is over.
    assert!(times[7] < 7 * SECOND + 8 * 400 * MILLI, "{times:?}");
    let names: Vec<Arc<str>> = done.granted.iter().map(|(_, _, ask)| ask.site.clone()).collect();
    assert!(names.iter().all(|name| &**name == "shop"));
}

#[test]
fn a_requests_own_unknown_site_fails_that_request_alone() {
    for why in [RefusalKind::SiteUnknown, RefusalKind::ClientUnknown, RefusalKind::GroupUnknown, RefusalKind::Invalid] {
        let own = make("http://a.test/own", |request| {
            request.lease("nowhere", "app");
        });
        let done = Stand::new()
            .start([own, follow("http://a.test/other")])
            .judge(move |ask, _| if &*ask.site == "nowhere" { Judged::Refuse(why, None) } else { Judged::Grant })
            .run();
        done.assert_whole();
        assert_eq!(done.said("failed"), ["failed lease_refused - http://a.test/own x0"]);
        let error = done.records_of("http://a.test/own")[0].1.unwrap();
        assert!(error.contains(why.name()) && error.contains("http://a.test/own"), "{error}");
        assert_eq!((done.ended.books.handled, done.ended.books.failed), (1, 1));
        assert_eq!(done.ended.leases.refused, 1);
    }
}

#[test]
fn what_no_rule_covers_is_dropped_counted_and_asks_for_nothing() {
    for robots in [false, true] {
        let mut stand = Stand::new()
            .start((0..5).map(|n| follow(&format!("http://a.test/{n}"))).chain([follow("http://shop.test/")]))
            .with(|s| s.robotstxt_obey = robots)
            .answers("http://shop.test/robots.txt", [Answer::new(404, "")]);
        stand.unmatched = UnmatchedLease::Refuse;
        stand.leases = vec![rule("shop.test", "anonymous")];
        stand.identities = Some(identities("anonymous", 1));
        let done = stand.run();
        done.assert_whole();
        assert_eq!((done.ended.books.dropped, done.ended.books.failed), (5 + u64::from(robots), 0), "{:?}", done.ended.books);
        assert_eq!(done.count("engine/dropped/lease_unmatched"), 5 + i64::from(robots));
        assert_eq!(done.count("lease/unmatched"), 5 + i64::from(robots));
        assert_eq!(done.times("ask a.test").len(), 0);
        assert!(done.said("failed lease_unmatched").len() == 5, "{:?}", done.lines);
        assert_eq!(done.ended.code, 0);
    }
}

#[test]
fn asks_under_way_are_bounded_by_site_and_others_go_on() {
    let pages = (0..40).flat_map(|n| [follow(&format!("http://a.test/{n}")), follow(&format!("http://b.test/{n}"))]);
    let asked = Arc::new(AtomicUsize::new(0));
    let most = asked.clone();
    let mut stand = Stand::new()
        .start(pages)
        .with(|s| {
            s.acquire_pending_per_site = 4;
            s.concurrent_requests = 16;
            s.concurrent_requests_per_domain = 16;
        })
        .judge(move |ask, now| {
            if &*ask.site != "a.test" {
                return Judged::Grant;
            }
            // Each answer of this site takes two seconds: how many came in the same two?
            if now < 2 * SECOND {
                most.fetch_add(1, Ordering::SeqCst);
            }
            Judged::GrantAfter(2 * SECOND)
        });
    stand.is_remote = true;
    let done = stand.run();
    done.assert_whole();
    assert_eq!(asked.load(Ordering::SeqCst), 4);
    let b = done.times("GET http://b.test");
    assert!(b.len() == 40 && b[39] < 500 * MILLI, "{b:?}");
    assert_eq!(done.times("GET http://a.test").len(), 40);
    assert!(done.took >= 19 * SECOND && done.took < 45 * SECOND, "ten rounds of four: {:?}", done.took);
}
