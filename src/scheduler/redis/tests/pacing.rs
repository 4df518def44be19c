//! Hosts with rules of their own, the throttle, the last minute and pauses, over the whole fleet.

use std::collections::HashMap;
use std::sync::Arc;
use std::thread::sleep;
use std::time::Duration;

use super::super::{Answer, RedisStore};
use super::server::Server;
use super::{LONG, ZERO, ask, done, host, lease, offer, paths};
use crate::dice::Dice;
use crate::scheduler::job::SlotKey;
use crate::scheduler::pacing::{HostPacing, Pacing, Throttle};
use crate::scheduler::testing::job;
use crate::scheduler::throttle::{Heard, Throttled};

const MS: Duration = Duration::from_millis(1);

fn throttling() -> Pacing {
    let throttle = Throttle { start: 200 * MS, max: 2_000 * MS, target: 1.5, debug: false };
    Pacing { throttles: true, throttle, ..Pacing::default() }
}

fn heard(store: &mut RedisStore, host: &SlotKey, status: u16, latency: Duration) -> Option<(Duration, Duration)> {
    match ask(store, |batch| batch.heard(host, status, latency, ZERO)) {
        Answer::Throttled(delays) => delays,
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_named_host_has_its_own_places_and_delay_at_every_worker() {
    let server = Server::start();
    let slow = HostPacing { per_slot: Some(1), delay: Some(300 * MS), ..HostPacing::default() };
    let wide = HostPacing { per_slot: Some(3), ..HostPacing::default() };
    let hosts = HashMap::from([("slow".into(), slow), ("wide".into(), wide)]);
    let pacing = Pacing { per_slot: 2, hosts: Arc::new(hosts), ..Pacing::default() };
    let mut one = server.join_paced("j", "one", LONG, &pacing);
    let mut two = server.join_paced("j", "two", LONG, &pacing);
    let pages = ["slow", "wide", "other"].iter().flat_map(|host| (0..5).map(move |n| format!("http://{host}/{n}")));
    let pages: Vec<_> = pages.enumerate().map(|(n, url)| job(n as u64, &url)).collect();
    offer(&mut one, &pages);
    let mut given: Vec<_> = lease(&mut one, 3).into_iter().chain(lease(&mut two, 100)).collect();
    given.sort_by_key(|given| given.host.clone());
    let names: Vec<&str> = given.iter().map(|given| &*given.host.0).collect();
    assert_eq!(names, ["other", "other", "slow", "wide", "wide", "wide"]);
    let slow = given.swap_remove(2);
    assert!(slow.wants_sent && given.iter().all(|given| !given.wants_sent));
    let holder = if one.view().held > two.view().held { &mut one } else { &mut two };
    if !done(holder, |batch| batch.freed(slow.id)) {
        done(&mut two, |batch| batch.freed(slow.id));
        done(&mut one, |batch| batch.freed(slow.id));
    }
    ask(&mut one, |batch| batch.sent(&slow.host, slow.id, ZERO, 300 * MS, 1.0));
    assert!(lease(&mut two, 100).is_empty());
    sleep(two.view().next_due.unwrap() + MS);
    assert_eq!(paths(&lease(&mut two, 100)), ["/1"]);
    // A worker whose rules have changed goes by them, once something happens to the host.
    two.set_pacing(Pacing { per_slot: 4, ..Pacing::default() });
    ask(&mut two, |batch| batch.lift(&host("other")));
    assert_eq!(lease(&mut two, 100).iter().filter(|given| &*given.host.0 == "other").count(), 2);
}

#[test]
fn the_servers_throttle_finds_what_ours_does() {
    let server = Server::start();
    for seed in 0..4 {
        let target = [1.0, 0.25, 8.0, 1.5][seed];
        let pacing = Pacing { throttle: Throttle { target, ..throttling().throttle }, delay: 20 * MS, ..throttling() };
        let mut one = server.join_paced(&format!("j{seed}"), "one", LONG, &pacing);
        let (name, mut dice) = (host("a"), Dice::new(seed as u64));
        let mut ours = Throttled::new(&pacing.throttle, pacing.delay);
        for n in 0..60 {
            let status = [200, 200, 200, 429, 404, 503, 200, 301][usize::try_from(dice.roll() % 8).unwrap()];
            let latency = Duration::from_micros(dice.roll() % 3_000_000);
            let before = ours.delay;
            ours.hear(Heard::of(status), latency, &pacing.throttle, pacing.delay);
            let (was, is) = heard(&mut one, &name, status, latency).unwrap();
            let near = |a: Duration, b: Duration| a.abs_diff(b) <= Duration::from_micros(60);
            assert!(
                near(was, before) && near(is, ours.delay),
                "{n}: {status} {latency:?}: {was:?} {is:?}, ours {before:?} {ours:?}"
            );
        }
    }
}

#[test]
fn a_throttled_host_waits_by_what_any_workers_answers_led_to() {
    let server = Server::start();
    let (mut one, mut two) =
        (server.join_paced("j", "one", LONG, &throttling()), server.join_paced("j", "two", LONG, &throttling()));
    offer(&mut one, &(0..4).map(|n| job(n, &format!("http://a/{n}"))).collect::<Vec<_>>());
    let given = lease(&mut one, 5).remove(0);
    assert!(given.wants_sent);
    ask(&mut one, |batch| batch.sent(&given.host, given.id, ZERO, ZERO, 1.0));
    assert!(lease(&mut two, 5).is_empty());
    let wait = two.view().next_due.unwrap();
    assert!(wait <= 200 * MS && wait > 100 * MS, "the start delay: {wait:?}");
    sleep(wait + MS);
    let given = lease(&mut two, 5).remove(0);
    assert_eq!(heard(&mut one, &given.host, 429, MS).unwrap().1, 400 * MS);
    // The jitter does not go below what a refusal came to.
    ask(&mut two, |batch| batch.sent(&given.host, given.id, ZERO, ZERO, 0.5));
    let wait = two.view().next_due.unwrap();
    assert!(wait <= 400 * MS && wait > 300 * MS, "{wait:?}");
    // A refusal of what was sent before says nothing new.
    let late = ask(&mut one, |batch| batch.heard(&given.host, 429, MS, Duration::from_secs(9)));
    assert!(matches!(late, Answer::Throttled(Some((_, now))) if now == 400 * MS), "{late:?}");
    let plain = Pacing::default();
    let mut three = server.join_paced("j", "three", LONG, &plain);
    assert_eq!(heard(&mut three, &host("a"), 429, MS), None);
}

#[test]
fn a_host_has_no_more_than_its_requests_of_a_minute_over_the_whole_fleet() {
    let server = Server::start();
    let pacing = Pacing { per_minute: 2, ..Pacing::default() };
    let (mut one, mut two) = (server.join_paced("j", "one", LONG, &pacing), server.join_paced("j", "two", LONG, &pacing));
    offer(&mut one, &(0..4).map(|n| job(n, &format!("http://a/{n}"))).collect::<Vec<_>>());
    for (n, store) in [&mut one, &mut two].into_iter().enumerate() {
        let given = lease(store, 5);
        assert_eq!((given.len(), given[0].wants_sent), (1, true), "the next one waits for the sending of this");
        let ago = Duration::from_secs(50 - 10 * n as u64);
        ask(store, |batch| batch.sent(&given[0].host, given[0].id, ago, ZERO, 1.0));
    }
    assert!(lease(&mut one, 5).is_empty());
    let wait = one.view().next_due.unwrap();
    assert!(wait <= Duration::from_secs(10) && wait > Duration::from_secs(5), "{wait:?}");
    // A robots.txt counts and does not wait.
    let robots = job(9, "http://a/robots.txt");
    assert!(done(&mut one, |batch| batch.admit(&robots)));
    let place = super::places::place(&mut one, robots.id, super::super::PlaceFor::Robots);
    assert!(matches!(place, super::super::Place::Go { .. }), "{place:?}");
    done(&mut one, |batch| batch.freed(robots.id));
    let wait = one.view().next_due.unwrap();
    assert!(wait > Duration::from_secs(15), "{wait:?}");
    two.set_pacing(Pacing { per_minute: 9, ..Pacing::default() });
    ask(&mut two, |batch| batch.lift(&host("a")));
    assert_eq!(lease(&mut two, 5).len(), 1);
}

#[test]
fn nobody_lifts_a_pause_and_robots_waits_for_it_too() {
    let server = Server::start();
    let (mut one, mut two) = (server.join("j", "one", LONG), server.join("j", "two", LONG));
    offer(&mut one, &[job(0, "http://a/1")]);
    ask(&mut one, |batch| batch.pause(&host("a"), 400 * MS));
    ask(&mut one, |batch| batch.pause(&host("a"), 100 * MS));
    ask(&mut one, |batch| batch.gate(&host("a"), LONG));
    ask(&mut two, |batch| batch.lift(&host("a")));
    let robots = job(7, "http://a/robots.txt");
    assert!(done(&mut one, |batch| batch.admit(&robots)));
    let place = super::places::place(&mut one, robots.id, super::super::PlaceFor::Robots);
    assert!(matches!(place, super::super::Place::Wait { .. }), "{place:?}");
    assert!(lease(&mut two, 5).is_empty());
    let wait = two.view().next_due.unwrap();
    assert!(wait <= 400 * MS && wait > 100 * MS, "{wait:?}");
    sleep(wait + MS);
    assert_eq!(lease(&mut two, 5).len(), 1);
    assert_eq!(redis::cmd("KEYS").arg("*:pauses").query::<Vec<String>>(&mut server.plain()).unwrap(), [""; 0]);
}
