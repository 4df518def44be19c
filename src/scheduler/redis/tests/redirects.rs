//! Requests that become others while they are out, and those that no worker survives.

use std::thread::sleep;
use std::time::{Duration, Instant};

use super::super::{Ended, Place, PlaceFor, RedisAdmin, RedisOptions, RedisStore};
use super::places::place;
use super::server::Server;
use super::{LONG, ZERO, ask, done, host, lease, offer, paths};
use crate::api::failure::FailureKind;
use crate::scheduler::job::{Job, Outcome};
use crate::scheduler::pacing::Pacing;
use crate::scheduler::store::Store;
use crate::scheduler::testing::job;

const SHORT: Duration = Duration::from_millis(400);
const DELAY: Duration = Duration::from_millis(500);

/// The request as it goes on to `url`.
fn redirected(given: &Job, url: &str) -> Job {
    let mut next = given.clone();
    next.chain.push(next.key);
    next.key = job(0, url).key;
    next.request.set_url(url.parse().unwrap());
    next
}

fn one_job(store: &mut RedisStore) -> Job {
    *lease(store, 1).remove(0).job.unwrap()
}

#[test]
fn a_request_that_followed_a_redirect_comes_back_as_what_it_has_become() {
    let server = Server::start();
    let (mut lost, mut other) = (server.join("j", "lost", SHORT), server.join("j", "other", LONG));
    offer(&mut lost, &[job(0, "http://a/1")]);
    let given = one_job(&mut lost);
    assert!(done(&mut lost, |batch| batch.follow(&redirected(&given, "http://b/2"))));
    sleep(SHORT + Duration::from_millis(20));
    let leased = lease(&mut other, 5);
    assert_eq!((paths(&leased), &leased[0].host), (vec!["/2".to_owned()], &host("b")));
    assert_eq!(offer(&mut other, &[job(1, "http://b/2")]).duplicates, 1, "its target is seen");
    // Its dead letter is the target's, and so is what is put back from there.
    assert!(done(&mut other, |batch| batch.settle(given.id, Outcome::Failed(FailureKind::Timeout))));
    let mut admin = RedisAdmin::open(&server.url(), "j", RedisOptions::default()).unwrap();
    let dead = admin.ended(Ended::Failed, 0).unwrap().kept.remove(0);
    assert_eq!((dead.reason.as_str(), dead.job.unwrap().url().as_str()), ("timeout", "http://b/2"));
}

#[test]
fn a_redirect_to_a_known_target_leaves_the_request_as_it_was() {
    let server = Server::start();
    let mut one = server.join("j", "one", LONG);
    offer(&mut one, &[job(0, "http://a/1"), job(1, "http://b/2")]);
    let given = one_job(&mut one);
    assert!(!done(&mut one, |batch| batch.follow(&redirected(&given, "http://b/2"))));
    assert!(done(&mut one, |batch| batch.give_back(given.id, ZERO)));
    assert!(paths(&lease(&mut one, 5)).contains(&"/1".to_owned()));
}

#[test]
fn a_redirect_of_a_request_that_is_anothers_now_marks_nothing_as_seen() {
    let server = Server::start();
    let (mut lost, mut other) = (server.join("j", "lost", SHORT), server.join("j", "other", LONG));
    offer(&mut lost, &[job(0, "http://a/1")]);
    let given = one_job(&mut lost);
    sleep(SHORT + Duration::from_millis(20));
    let again = one_job(&mut other);
    assert!(done(&mut lost, |batch| batch.follow(&redirected(&given, "http://a/2"))), "it hears of it when it asks for a place");
    assert_eq!(place(&mut lost, given.id, PlaceFor::Hop), Place::Lost);
    assert!(done(&mut other, |batch| batch.follow(&redirected(&again, "http://a/2"))), "who has it gets through");
    assert!(!done(&mut lost, |batch| batch.replace(&redirected(&given, "http://a/3"))));
    assert!(done(&mut other, |batch| batch.give_back(given.id, ZERO)));
    assert_eq!(paths(&lease(&mut other, 1)), ["/2"]);
}

#[test]
fn a_redirect_to_another_host_obeys_that_ones_delay_and_leaves_the_first_to_others() {
    let server = Server::start();
    let pacing = Pacing { per_slot: 1, delay: DELAY, ..Pacing::default() };
    let (mut one, mut two) = (server.join_paced("j", "one", LONG, &pacing), server.join_paced("j", "two", LONG, &pacing));
    offer(&mut one, &[job(0, "http://a/1")]);
    let given = one_job(&mut one);
    ask(&mut one, |batch| batch.sent(&host("a"), given.id, DELAY, DELAY, 1.0));
    offer(&mut two, &[job(1, "http://a/3"), job(2, "http://b/4")]);
    let busy = lease(&mut two, 5);
    assert_eq!(paths(&busy), ["/4"], "the one place of the first host is taken");
    assert!(done(&mut one, |batch| batch.follow(&redirected(&given, "http://b/2"))));
    assert_eq!(paths(&lease(&mut two, 5)), ["/3"], "and free again");
    assert!(matches!(place(&mut one, given.id, PlaceFor::Hop), Place::Wait { .. }), "the other host has one unsent");
    let sent = Instant::now();
    ask(&mut two, |batch| batch.sent(&host("b"), busy[0].id, ZERO, DELAY, 1.0));
    assert!(done(&mut two, |batch| batch.freed(busy[0].id)));
    let Place::Go { after, wants_sent: true } = place(&mut one, given.id, PlaceFor::Hop) else { panic!("a turn") };
    assert!(sent.elapsed() + after >= DELAY, "{after:?}");
}

#[test]
fn a_request_that_every_worker_is_lost_with_is_given_up_as_a_dead_letter() {
    let server = Server::start();
    let mut store = server.join("j", "one", LONG);
    offer(&mut store, &[job(0, "http://a/1")]);
    let mut lives = 0;
    let mut die = |server: &Server, store: &mut RedisStore, times: u32| {
        for _ in 0..times {
            assert_eq!(paths(&lease(store, 5)), ["/1"]);
            *store = server.join("j", "one", LONG);
            store.recover().unwrap();
            lives += 1;
        }
    };
    die(&server, &mut store, 15);
    // One that went through and was put back is no such request.
    let given = one_job(&mut store);
    assert!(done(&mut store, |batch| batch.put_back(&given, ZERO)));
    die(&server, &mut store, 15);
    // Who leaves is not lost.
    lease(&mut store, 1);
    ask(&mut store, super::Batch::leave);
    assert_eq!((store.view().books.pending, store.view().given_up), (1, 0));
    die(&server, &mut store, 1);
    assert!(lease(&mut store, 5).is_empty());
    let view = store.view();
    assert!(view.books.balances());
    assert_eq!((view.books.failed, view.books.pending, view.given_up, view.held), (1, 0, 1, 0));
    let mut admin = RedisAdmin::open(&server.url(), "j", RedisOptions::default()).unwrap();
    let dead = admin.ended(Ended::Failed, 0).unwrap().kept.remove(0);
    assert_eq!((dead.reason.as_str(), dead.job.unwrap().url().path()), ("worker_lost", "/1"));
    // It can be tried again, as often as any other.
    assert_eq!(admin.requeue(Ended::Failed, |_, _| true).unwrap(), 1);
    die(&server, &mut store, 15);
    assert_eq!(store.view().books.pending, 1);
    assert_eq!(lives, 46);
}
