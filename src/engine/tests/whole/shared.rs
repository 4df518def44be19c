//! Hosts that are leased for more than one site: each waits for its own, and none for the other's.

use std::time::Duration;

use super::fakes::Judged;
use super::script::{Do, follow, make};
use super::stand::{Outcome, Stand};
use super::{MILLI, SECOND, identities, rule};
use crate::plane::RefusalKind;
use crate::testkit::transport::Answer;

/// A page of this host that names its site.
fn of(site: &'static str, n: usize) -> Do {
    make(&format!("http://a.test/{site}/{n}"), |request| {
        request.lease(site, "web");
    })
}

/// So many pages of a site that is paused for 5 s, and behind them as many of one that is not, all on one host.
fn paused_beside_healthy(pages: usize, hint: Option<Duration>) -> Outcome {
    let list = (0..pages).map(|n| of("paused", n)).chain((0..100).map(|n| of("healthy", n)));
    let mut stand = Stand::new()
        .start(list)
        .with(|s| {
            s.frontier_max_bytes = 1 << 30;
            s.callback_max_effects = 20_000;
        })
        .judge(move |ask, now| {
            if &*ask.site == "paused" && now < 5 * SECOND { Judged::Refuse(RefusalKind::SitePaused, hint) } else { Judged::Grant }
        });
    for n in 0..100 {
        stand = stand.answers(&format!("http://a.test/healthy/{n}"), [Answer::html("ok").after(50 * MILLI)]);
    }
    let done = stand.run();
    done.assert_whole();
    done
}

#[test]
fn a_paused_site_does_not_hold_the_other_site_of_its_host() {
    for hint in [Some(5 * SECOND), Some(30 * SECOND), None] {
        let done = paused_beside_healthy(200, hint);
        let (paused, healthy) = (done.times("GET http://a.test/paused"), done.times("GET http://a.test/healthy"));
        assert_eq!((paused.len(), healthy.len()), (200, 100));
        assert!(paused[0] >= 5 * SECOND, "{hint:?}: {paused:?}");
        assert!(healthy[99] < 2 * SECOND, "{hint:?}: {:?}", healthy[99]);
        let asks = done.times("ask paused").iter().filter(|at| **at < 5 * SECOND).count();
        assert!(asks < 30, "{hint:?}: {asks} asks of the paused site");
    }
}

#[test]
fn a_long_queue_of_a_paused_site_costs_the_plane_no_asks_and_the_other_site_little() {
    let done = paused_beside_healthy(10_000, Some(5 * SECOND));
    let asks = done.times("ask paused").iter().filter(|at| **at < 5 * SECOND).count();
    assert!(asks <= 16, "{asks} asks of the paused site");
    let healthy = done.times("GET http://a.test/healthy");
    assert!(healthy[99] < 3 * SECOND, "{:?}", healthy[99]);
    assert!(done.count("lease/held") < 30_000, "{} asks went to the gate", done.count("lease/held"));
    assert_eq!(done.times("GET http://a.test/paused").len(), 10_000);
    assert!(done.took < 30 * SECOND, "{:?}", done.took);
}

#[test]
fn sites_of_different_ports_of_one_host_do_not_hold_each_other() {
    let list = (0..50).flat_map(|n| [81, 82].map(|port| follow(&format!("http://a.test:{port}/{n}"))));
    let mut sorted: Vec<Do> = list.collect();
    // All of the paused one first.
    sorted.sort_by_key(|step| !matches!(step, Do::Follow(url) if url.contains(":81")));
    let mut stand = Stand::new().start(sorted).judge(|ask, now| {
        let refused = &*ask.site == "one" && now < 5 * SECOND;
        if refused { Judged::Refuse(RefusalKind::CircuitOpen, Some(60 * SECOND)) } else { Judged::Grant }
    });
    stand.leases = vec![rule("a.test:81", "one"), rule("a.test:82", "two")];
    stand.identities = Some(format!("{}{}", identities("one", 50), identities("two", 50)));
    let done = stand.run();
    done.assert_whole();
    let (one, two) = (done.times("GET http://a.test:81"), done.times("GET http://a.test:82"));
    assert_eq!((one.len(), two.len()), (50, 50));
    assert!(two[49] < SECOND && one[0] >= 5 * SECOND, "{:?} {:?}", two[49], one[0]);
}

#[test]
fn an_identity_that_comes_back_to_a_shared_host_is_used_soon() {
    let list = (0..20).flat_map(|n| [of("one", n), of("two", n)]);
    let mut stand = Stand::new().start(list);
    for (site, n) in ["one", "two"].into_iter().flat_map(|site| (0..20).map(move |n| (site, n))) {
        stand = stand.answers(&format!("http://a.test/{site}/{n}"), [Answer::html("ok").after(300 * MILLI)]);
    }
    stand.identities = Some(format!("{}{}", identities("one", 1), identities("two", 1)));
    let done = stand.run();
    done.assert_whole();
    assert!(done.took < 20 * 430 * MILLI, "{:?} for twenty pages of 300 ms", done.took);
}
