//! Pacing over the whole fleet: places, delay, gates, hops.

use std::thread::sleep;
use std::time::{Duration, Instant};

use super::super::{Answer, Batch, Place, PlaceFor, RedisStore};
use super::server::Server;
use super::{LONG, ZERO, ask, done, host, ids, lease, offer, paths};
use crate::scheduler::job::{Outcome, RequestId};
use crate::scheduler::pacing::Pacing;
use crate::scheduler::testing::job;

const SHORT: Duration = Duration::from_millis(400);
const DELAY: Duration = Duration::from_millis(500);

pub(super) fn place(store: &mut RedisStore, id: RequestId, what: PlaceFor) -> Place {
    match ask(store, |batch| batch.place(id, what)) {
        Answer::Place(place) => place,
        other => panic!("{other:?}"),
    }
}

fn pages(count: u64) -> Vec<crate::scheduler::job::Job> {
    (0..count).map(|n| job(n, &format!("http://a/{n}"))).collect()
}

#[test]
fn a_hosts_places_are_those_of_the_whole_fleet() {
    let server = Server::start();
    let pacing = Pacing { per_slot: 2, delay: ZERO, ..Pacing::default() };
    let (mut one, mut two) = (server.join_paced("j", "one", LONG, &pacing), server.join_paced("j", "two", LONG, &pacing));
    offer(&mut one, &pages(5));
    let first = lease(&mut one, 1).remove(0);
    assert!(!first.wants_sent);
    assert_eq!(lease(&mut two, 5).len(), 1);
    assert!(lease(&mut two, 5).is_empty());
    assert_eq!(two.view().next_due, None, "it waits for a place");
    assert!(done(&mut one, |batch| batch.freed(first.id)));
    assert!(!done(&mut one, |batch| batch.freed(first.id)), "it gave its place back before");
    assert_eq!(two.view().next_due, None);
    assert_eq!(paths(&lease(&mut two, 5)), ["/2"]);
    assert!(done(&mut one, |batch| batch.settle(first.id, Outcome::Handled)));
    assert!(lease(&mut two, 5).is_empty(), "the settled one had no place any more");
    let second = RequestId::child(None, 1);
    assert!(done(&mut two, |batch| batch.settle(second, Outcome::Handled)));
    assert_eq!(paths(&lease(&mut one, 5)), ["/3"], "a place comes back with the settle at the latest");
}

#[test]
fn with_a_delay_one_request_of_a_host_is_unsent_and_the_delay_counts_from_its_sending() {
    let server = Server::start();
    let pacing = Pacing { per_slot: 8, delay: DELAY, ..Pacing::default() };
    let (mut one, mut two) = (server.join_paced("j", "one", LONG, &pacing), server.join_paced("j", "two", LONG, &pacing));
    offer(&mut one, &[pages(3), vec![job(9, "http://b/9")]].concat());
    let given = lease(&mut one, 5);
    assert_eq!(given.iter().map(|given| (&*given.host.0, given.wants_sent)).collect::<Vec<_>>(), [("a", true), ("b", true)]);
    assert!(lease(&mut two, 5).is_empty());
    sleep(DELAY + Duration::from_millis(50));
    assert!(lease(&mut two, 5).is_empty(), "it was not sent yet");
    let sent = Instant::now();
    ask(&mut one, |batch| batch.sent(&given[0].host, given[0].id, ZERO, DELAY, 1.0));
    assert!(lease(&mut two, 5).is_empty());
    let wait = two.view().next_due.expect("the host waits for its delay");
    assert!(wait <= DELAY && !wait.is_zero(), "{wait:?}");
    while lease(&mut two, 5).is_empty() {
        assert!(sent.elapsed() < LONG, "its time comes");
        sleep(Duration::from_millis(5));
    }
    assert!(sent.elapsed() >= DELAY);
}

#[test]
fn an_unsent_request_that_is_given_back_costs_no_delay_and_one_that_expired_does() {
    let server = Server::start();
    let pacing = Pacing { per_slot: 8, delay: DELAY, ..Pacing::default() };
    let mut lost = server.join_paced("j", "lost", SHORT, &pacing);
    let mut other = server.join_paced("j", "other", LONG, &pacing);
    offer(&mut lost, &pages(2));
    let given = lease(&mut lost, 1).remove(0);
    assert!(done(&mut lost, |batch| batch.give_back(given.id, ZERO)));
    let leased = Instant::now();
    let given = lease(&mut lost, 1).remove(0);
    assert_eq!(given.id, RequestId::child(None, 0), "at its old place");
    sleep(SHORT + Duration::from_millis(20));
    assert!(lease(&mut other, 1).is_empty(), "it may have been sent until its visibility ended");
    let wait = other.view().next_due.unwrap();
    sleep(wait + Duration::from_millis(1));
    assert_eq!(ids(&lease(&mut other, 1)), [given.id]);
    assert!(leased.elapsed() >= SHORT + DELAY);
}

#[test]
fn a_late_word_of_a_sending_counts_for_the_delay_and_takes_no_reservation() {
    let server = Server::start();
    let pacing = Pacing { per_slot: 8, delay: DELAY, ..Pacing::default() };
    let mut late = server.join_paced("j", "late", SHORT, &pacing);
    let mut other = server.join_paced("j", "other", LONG, &pacing);
    offer(&mut late, &pages(2));
    let given = lease(&mut late, 1).remove(0);
    sleep(SHORT + Duration::from_millis(20));
    assert!(lease(&mut other, 1).is_empty());
    sleep(other.view().next_due.unwrap() + Duration::from_millis(1));
    assert_eq!(ids(&lease(&mut other, 1)), [given.id]);
    ask(&mut late, |batch| batch.sent(&given.host, given.id, ZERO, ZERO, 1.0));
    assert!(lease(&mut late, 1).is_empty(), "the other one has not sent it yet");
    assert_eq!(late.view().next_due, None);
}

#[test]
fn a_gated_host_gives_nothing_to_anybody_until_the_later_end() {
    let server = Server::start();
    let (mut one, mut two) = (server.join("j", "one", LONG), server.join("j", "two", LONG));
    offer(&mut one, &[job(0, "http://a/1"), job(1, "http://b/1")]);
    ask(&mut one, |batch| batch.gate(&host("a"), DELAY));
    ask(&mut two, |batch| batch.gate(&host("a"), Duration::from_millis(50)));
    assert_eq!(lease(&mut two, 5).iter().map(|given| given.host.clone()).collect::<Vec<_>>(), [host("b")]);
    assert!(two.view().next_due.unwrap() > Duration::from_millis(50));
    sleep(DELAY + Duration::from_millis(20));
    assert_eq!(lease(&mut two, 5).len(), 1);
    offer(&mut one, &[job(2, "http://a/2")]);
    ask(&mut one, |batch| batch.gate(&host("a"), LONG));
    assert!(lease(&mut two, 5).is_empty());
    assert!(done(&mut two, |batch| batch.lift(&host("a"))));
    assert_eq!(lease(&mut one, 5).len(), 1);
}

#[test]
fn a_crawl_delay_paces_a_host_without_a_delay_of_its_own() {
    let server = Server::start();
    let mut one = server.join("j", "one", LONG);
    offer(&mut one, &pages(3));
    let given = lease(&mut one, 1).remove(0);
    let mut batch = Batch::new();
    batch.crawl_delay(&host("a"), DELAY);
    batch.sent(&host("a"), given.id, ZERO, ZERO, 1.0);
    batch.lease(5);
    let applied = one.apply(&mut batch).unwrap();
    assert!(matches!(&applied.answers[2], Answer::Leased(leased) if leased.is_empty()));
    sleep(applied.view.next_due.unwrap() + Duration::from_millis(1));
    let given = lease(&mut one, 5);
    assert_eq!((given.len(), given[0].wants_sent), (1, true));
}

#[test]
fn a_hop_gets_the_hosts_next_turn_and_keeps_it() {
    let server = Server::start();
    let pacing = Pacing { per_slot: 8, delay: DELAY, ..Pacing::default() };
    let (mut one, mut two) = (server.join_paced("j", "one", LONG, &pacing), server.join_paced("j", "two", LONG, &pacing));
    offer(&mut one, &pages(3));
    let hopping = lease(&mut one, 1).remove(0).id;
    ask(&mut one, |batch| batch.sent(&host("a"), hopping, ZERO, DELAY, 1.0));
    assert!(done(&mut one, |batch| batch.freed(hopping)));
    let Place::Go { after, wants_sent: true } = place(&mut one, hopping, PlaceFor::Hop) else { panic!("a turn") };
    assert!(!after.is_zero() && after <= DELAY, "{after:?}");
    sleep(after + Duration::from_millis(1));
    assert!(lease(&mut two, 1).is_empty(), "the turn is the hop's");
    ask(&mut one, |batch| batch.sent(&host("a"), hopping, ZERO, DELAY, 1.0));
    sleep(DELAY + Duration::from_millis(5));
    let other = lease(&mut two, 1).remove(0).id;
    // Now another is unsent: the hop waits, and is not overtaken once that one is out.
    assert!(matches!(place(&mut one, hopping, PlaceFor::Hop), Place::Wait { .. }));
    ask(&mut two, |batch| batch.sent(&host("a"), other, DELAY, DELAY, 1.0));
    assert!(lease(&mut two, 1).is_empty());
    assert!(matches!(place(&mut one, hopping, PlaceFor::Hop), Place::Go { after: ZERO, wants_sent: true }));
    assert_eq!(place(&mut two, hopping, PlaceFor::Hop), Place::Lost);
}

#[test]
fn a_robots_request_obeys_the_gate_and_no_delay() {
    let server = Server::start();
    let pacing = Pacing { per_slot: 1, delay: DELAY, ..Pacing::default() };
    let mut one = server.join_paced("j", "one", LONG, &pacing);
    let robots = job(7, "http://a/robots.txt");
    assert!(done(&mut one, |batch| batch.admit(&robots)));
    ask(&mut one, |batch| batch.sent(&host("a"), RequestId(1), ZERO, DELAY, 1.0));
    assert_eq!(place(&mut one, robots.id, PlaceFor::Robots), Place::Go { after: ZERO, wants_sent: false });
    offer(&mut one, &pages(1));
    sleep(DELAY);
    assert!(lease(&mut one, 1).is_empty(), "the one place is taken");
    assert!(done(&mut one, |batch| batch.freed(robots.id)));
    ask(&mut one, |batch| batch.gate(&host("a"), DELAY));
    assert!(matches!(place(&mut one, robots.id, PlaceFor::Robots), Place::Wait { again_in } if !again_in.is_zero()));
}

#[test]
fn hosts_take_turns() {
    let server = Server::start();
    let pacing = Pacing { per_slot: 100, delay: ZERO, ..Pacing::default() };
    let mut one = server.join_paced("j", "one", LONG, &pacing);
    let jobs: Vec<_> =
        (0..30).map(|n| job(n, &format!("http://{}/{n}", ["a", "b", "c"][usize::try_from(n % 3).unwrap()]))).collect();
    offer(&mut one, &jobs);
    let mut hosts: Vec<String> = Vec::new();
    for _ in 0..6 {
        let given = lease(&mut one, 2);
        assert_ne!(given[0].host, given[1].host);
        hosts.extend(given.iter().map(|given| given.host.0.to_string()));
    }
    for name in ["a", "b", "c"] {
        assert_eq!(hosts.iter().filter(|host| *host == name).count(), 4, "{hosts:?}");
    }
    assert_eq!(lease(&mut one, 100).len(), 18, "one batch takes what is there");
}

#[test]
fn a_host_without_work_leaves_nothing_behind() {
    let server = Server::start();
    let pacing = Pacing { per_slot: 8, delay: DELAY, ..Pacing::default() };
    let mut one = server.join_paced("j", "one", LONG, &pacing);
    offer(&mut one, &pages(1));
    let given = lease(&mut one, 1).remove(0);
    let mut batch = Batch::new();
    batch.sent(&given.host, given.id, ZERO, DELAY, 1.0);
    batch.settle(given.id, Outcome::Handled);
    one.apply(&mut batch).unwrap();
    let mut plain = server.plain();
    let mut keys = || {
        let mut keys: Vec<String> = redis::cmd("KEYS").arg("*:?:*").query(&mut plain).unwrap();
        keys.sort();
        keys
    };
    assert_eq!(keys(), ["dragline:{j}:h:a"], "its delay is not over");
    sleep(DELAY + Duration::from_millis(20));
    assert!(keys().is_empty());
}
