//! Leases over a network: asked for ahead, so that the way to the plane costs no throughput, and nothing is exceeded.

use std::time::Duration;

use super::fakes::Judged;
use super::script::{Do, follow};
use super::stand::{Outcome, Stand};
use super::{MILLI, SECOND};
use crate::testkit::transport::Answer;

/// So many pages of 60 ms on so many hosts, with leases that take 5 to 8 ms, or nothing.
fn crawl(pages: usize, hosts: usize, per_host: usize, remote: bool, way: bool) -> Outcome {
    let url = |n: usize| format!("http://h{}.test/{n}", n % hosts);
    let mut stand = Stand::new().start((0..pages).map(|n| follow(&url(n)))).with(|s| {
        s.concurrent_requests = 64;
        s.concurrent_requests_per_domain = per_host;
    });
    for n in 0..pages {
        let jitter = u32::try_from(n * 7 % 21).unwrap();
        stand = stand.answers(&url(n), [Answer::html("ok").after((50 + jitter) * MILLI)]);
    }
    let mut asks = 0;
    stand = stand.judge(move |_, _| {
        asks += 1;
        if way { Judged::GrantAfter((5 + asks % 4) * MILLI) } else { Judged::Grant }
    });
    stand.is_remote = remote;
    let done = stand.run();
    done.assert_whole();
    done
}

/// From the hundredth page on: what comes before is measuring.
fn rate(done: &Outcome) -> f64 {
    let times = done.times("GET");
    let (first, last) = (times[100], times[times.len() - 1]);
    (times.len() - 100) as f64 / (last - first).as_secs_f64()
}

#[test]
fn the_way_to_the_plane_costs_no_throughput() {
    for (hosts, per_host) in [(1, 64), (8, 8), (16, 8)] {
        let near = crawl(1000, hosts, per_host, false, false);
        let far = crawl(1000, hosts, per_host, true, true);
        let waiting = crawl(1000, hosts, per_host, false, true);
        let part = rate(&far) / rate(&near);
        assert!(part >= 0.95, "{part} of the rate over {hosts} hosts");
        assert!(rate(&waiting) / rate(&near) < 0.94, "without asking ahead there is something to gain");
        assert!(far.most_at_once <= 64, "{}", far.most_at_once);
    }
}

#[test]
fn a_lease_that_was_asked_for_ahead_is_idle_for_a_few_milliseconds_only() {
    let done = crawl(1000, 1, 64, true, true);
    let mut idle: Vec<Duration> = Vec::new();
    for (at, lease, ask) in &done.granted {
        let (_, report) = done.reports.iter().find(|(_, r)| r.lease == *lease).unwrap();
        let sent = done.times(&format!("GET http://h0.test{}", report.path))[0];
        assert_eq!(ask.path, report.path);
        idle.push(sent.saturating_sub(*at));
    }
    idle.sort();
    let mean = idle.iter().sum::<Duration>() / u32::try_from(idle.len()).unwrap();
    assert!(mean < 6 * MILLI, "{mean:?}");
    assert!(idle[idle.len() * 99 / 100] < 40 * MILLI, "{:?}", &idle[idle.len() - 20..]);
}

#[test]
fn no_host_ever_has_more_on_the_wire_than_its_places() {
    let done = crawl(300, 1, 3, true, true);
    assert_eq!(done.most_at_once, 3);
}

#[test]
fn a_host_with_a_delay_is_never_asked_for_ahead() {
    let mut stand = Stand::new()
        .start((0..10).map(|n| follow(&format!("http://a.test/{n}"))))
        .with(|s| s.download_delay = SECOND)
        .judge(|_, _| Judged::GrantAfter(6 * MILLI));
    stand.is_remote = true;
    let done = stand.run();
    done.assert_whole();
    let times = done.times("GET");
    for pair in times.windows(2) {
        let gap = pair[1] - pair[0];
        assert!(gap >= SECOND && gap < SECOND + 10 * MILLI, "{times:?}");
    }
    for (at, sent) in done.granted.iter().map(|(at, ..)| at).zip(&times) {
        assert!(*sent - *at < MILLI, "no lease waits for a delay");
    }
}

#[test]
fn an_exhausted_site_beside_healthy_ones_slows_nobody_down() {
    let crawl = |exhausted: bool| {
        let url = |n: usize| format!("http://h{}.test/{n}", n % 10);
        let mut stand = Stand::new().start((0..1000).map(|n| follow(&url(n)))).with(|s| {
            s.concurrent_requests = 40;
            s.concurrent_requests_per_domain = 8;
            s.acquire_pending_per_site = 16;
        });
        for n in 0..1000 {
            stand = stand.answers(&url(n), [Answer::html("ok").after(60 * MILLI)]);
        }
        stand = stand.judge(move |ask, _| {
            let slow = exhausted && &*ask.site == "h0.test";
            Judged::GrantAfter(if slow { 5 * SECOND } else { 6 * MILLI })
        });
        stand.is_remote = true;
        let done = stand.run();
        done.assert_whole();
        let mut healthy: Vec<Duration> = (1..10).flat_map(|host| done.times(&format!("GET http://h{host}.test/"))).collect();
        healthy.sort();
        assert_eq!(healthy.len(), 900);
        healthy[899]
    };
    let (alone, beside) = (crawl(false), crawl(true));
    assert!(beside.as_secs_f64() <= alone.as_secs_f64() / 0.9, "{beside:?} instead of {alone:?}");
}

#[test]
fn no_request_of_the_only_site_comes_back_because_too_many_are_asked_for() {
    let mut stand = Stand::new().start((0..2000).map(|n| follow(&format!("http://h0.test/{n}")))).with(|s| {
        s.concurrent_requests = 64;
        s.concurrent_requests_per_domain = 64;
        s.acquire_pending_per_site = 32;
    });
    for n in 0..2000 {
        stand = stand.answers(&format!("http://h0.test/{n}"), [Answer::html("ok").after(5 * MILLI)]);
    }
    stand = stand.judge(|_, _| Judged::GrantAfter(8 * MILLI));
    stand.is_remote = true;
    let done = stand.run();
    done.assert_whole();
    assert_eq!(done.count("lease/crowded"), 0);
    // And it is no slower for it: 32 asks of 8 ms are 4000 leases a second.
    assert!(rate(&done) > 3500.0, "{}", rate(&done));
}

#[test]
fn a_site_whose_asks_hang_holds_no_other_site_up() {
    let crawl = |hangs: bool| {
        let next = |n: usize| follow(&format!("http://h1.test/{n}"));
        // The other site comes when the first one's asks have just gone out again, as many as there may be.
        let hanging = (0..40).map(|n| follow(&format!("http://h0.test/{n}"))).filter(|_| hangs);
        let start = hanging.chain([Do::Flush, Do::Sleep(5 * SECOND + 20 * MILLI), next(0)]);
        let mut stand = Stand::new().start(start).with(|s| {
            s.concurrent_requests = 64;
            s.concurrent_requests_per_domain = 64;
            s.acquire_pending_per_site = 16;
        });
        for n in 0..99 {
            stand = stand.page(&format!("http://h1.test/{n}"), [next(n + 1)]);
        }
        stand = stand.judge(|ask, _| Judged::GrantAfter(if &*ask.site == "h0.test" { 5 * SECOND } else { 6 * MILLI }));
        stand.is_remote = true;
        let done = stand.run();
        done.assert_whole();
        assert!(!hangs || done.times("ask h0.test").iter().filter(|at| **at < 5 * SECOND + 20 * MILLI).count() == 32);
        let times = done.times("GET http://h1.test/");
        assert_eq!(times.len(), 100);
        times[99]
    };
    let (alone, beside) = (crawl(false), crawl(true));
    // Until the asks are no longer young, and the next tick.
    assert!(beside <= alone + 310 * MILLI, "{beside:?} instead of {alone:?}");
}
