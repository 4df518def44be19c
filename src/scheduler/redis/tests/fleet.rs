//! Workers of one job: what one does, the others see.

use std::thread::sleep;
use std::time::Duration;

use super::super::{Answer, FleetState, RedisAdmin, RedisOptions};
use super::server::Server;
use super::{LONG, ZERO, ask, done, ids, lease, offer, paths};
use crate::api::failure::FailureKind;
use crate::scheduler::job::{JobKind, Outcome, RequestId};
use crate::scheduler::store::Store;
use crate::scheduler::testing::{child, job, unfiltered, with_priority};

const SHORT: Duration = Duration::from_millis(400);

#[test]
fn what_one_worker_offers_another_is_given_and_nobody_twice() {
    let server = Server::start();
    let (mut one, mut two) = (server.join("j", "one", LONG), server.join("j", "two", LONG));
    offer(&mut one, &[job(0, "http://a/1"), job(1, "http://a/2"), with_priority(job(2, "http://a/3"), 1)]);
    assert_eq!(offer(&mut two, &[job(3, "http://a/2")]).duplicates, 1);
    assert_eq!(paths(&lease(&mut two, 2)), ["/3", "/1"]);
    assert_eq!(paths(&lease(&mut one, 2)), ["/2"]);
    let view = one.view();
    assert_eq!((view.books.pending, view.out, view.held, view.workers), (3, 3, 1, 2));
    assert!(view.books.balances() && view.busy_elsewhere());
}

#[test]
fn jobs_on_one_server_do_not_touch() {
    let server = Server::start();
    let (mut a, mut b) = (server.join("a", "w", LONG), server.join("a:b", "w", LONG));
    offer(&mut a, &[job(0, "http://a/1")]);
    assert_eq!(offer(&mut b, &[job(0, "http://a/1")]).stored, 1);
    let given = lease(&mut a, 5);
    assert!(done(&mut a, |batch| batch.settle(given[0].id, Outcome::Handled)));
    assert_eq!(lease(&mut b, 5).len(), 1);
    RedisAdmin::open(&server.url(), "a", RedisOptions::default()).unwrap().forget().unwrap();
    assert_eq!(RedisAdmin::jobs(&server.url(), RedisOptions::default()).unwrap(), ["a:b"]);
    assert_eq!(ask(&mut b, |batch| batch.lease(0)).given(), 0);
    assert_eq!(b.view().books.pending, 1);
}

#[test]
fn only_the_holder_may_end_renew_or_put_back_a_request() {
    let server = Server::start();
    let (mut one, mut two) = (server.join("j", "one", LONG), server.join("j", "two", LONG));
    offer(&mut one, &[job(0, "http://a/1")]);
    let mine = lease(&mut one, 1).remove(0);
    assert!(!done(&mut two, |batch| batch.settle(mine.id, Outcome::Handled)));
    assert!(!done(&mut two, |batch| batch.put_back(mine.job.as_ref().unwrap(), ZERO)));
    assert!(!done(&mut two, |batch| batch.give_back(mine.id, ZERO)));
    assert!(!done(&mut two, |batch| batch.freed(mine.id)));
    assert!(matches!(ask(&mut two, |batch| batch.renew([mine.id].into_iter())), Answer::Lost(lost) if lost == [mine.id]));
    assert!(matches!(ask(&mut one, |batch| batch.renew([mine.id].into_iter())), Answer::Lost(lost) if lost.is_empty()));
    assert!(done(&mut one, |batch| batch.settle(mine.id, Outcome::Handled)));
    assert_eq!(one.view().books.handled, 1);
}

#[test]
fn a_lost_workers_requests_return_to_their_places_and_are_not_its_any_more() {
    let server = Server::start();
    let (mut lost, mut other) = (server.join("j", "lost", SHORT), server.join("j", "other", LONG));
    offer(&mut lost, &[job(0, "http://a/1"), job(1, "http://a/2"), job(2, "http://a/3")]);
    assert_eq!(paths(&lease(&mut lost, 2)), ["/1", "/2"]);
    assert_eq!(paths(&lease(&mut other, 1)), ["/3"]);
    offer(&mut other, &[job(3, "http://a/4")]);
    sleep(SHORT + Duration::from_millis(20));
    assert_eq!(paths(&lease(&mut other, 5)), ["/1", "/2", "/4"]);
    assert_eq!((other.view().returned, other.view().held, other.view().out), (2, 4, 4));
    let first = RequestId::child(None, 0);
    assert!(!done(&mut lost, |batch| batch.settle(first, Outcome::Handled)), "it is another's now");
    assert!(done(&mut other, |batch| batch.settle(first, Outcome::Handled)));
    assert_eq!(lost.view().held, 0);
    assert!(other.view().books.balances());
}

#[test]
fn a_renewed_request_stays_with_its_worker() {
    let server = Server::start();
    let (mut one, mut two) = (server.join("j", "one", SHORT), server.join("j", "two", SHORT));
    offer(&mut one, &[job(0, "http://a/1")]);
    let held = ids(&lease(&mut one, 1));
    for _ in 0..6 {
        sleep(SHORT / 4);
        assert!(matches!(ask(&mut one, |batch| batch.renew(held.iter().copied())), Answer::Lost(lost) if lost.is_empty()));
        assert!(lease(&mut two, 1).is_empty());
    }
    assert!(done(&mut one, |batch| batch.settle(held[0], Outcome::Handled)));
}

#[test]
fn a_worker_that_leaves_gives_everything_back_at_once() {
    let server = Server::start();
    let (mut one, mut two) = (server.join("j", "one", LONG), server.join("j", "two", LONG));
    offer(&mut one, &[job(0, "http://a/1"), job(1, "http://b/2")]);
    assert_eq!(lease(&mut one, 5).len(), 2);
    assert!(matches!(ask(&mut one, super::Batch::leave), Answer::Returned(2)));
    assert_eq!(one.view().workers, 1);
    assert_eq!(lease(&mut two, 5).len(), 2);
    assert_eq!(two.view().workers, 1);
}

#[test]
fn a_lost_workers_robots_request_is_dropped_as_nobody_waits_for_it() {
    let server = Server::start();
    let (mut lost, mut other) = (server.join("j", "lost", SHORT), server.join("j", "other", LONG));
    let mut robots = job(0, "http://a/robots.txt");
    robots.kind = JobKind::Robots;
    assert!(done(&mut lost, |batch| batch.admit(&robots)));
    sleep(SHORT + Duration::from_millis(20));
    assert!(lease(&mut other, 5).is_empty());
    let books = other.view().books;
    assert_eq!((books.enqueued, books.dropped, books.pending), (1, 1, 0));
}

#[test]
fn a_lost_parents_children_are_queued_once_by_whoever_runs_it_again() {
    let server = Server::start();
    let (mut lost, mut other) = (server.join("j", "lost", SHORT), server.join("j", "other", LONG));
    offer(&mut lost, &[job(0, "http://a/p")]);
    let parent = lease(&mut lost, 1).remove(0).id;
    offer(&mut lost, &[child(parent, 0, "http://b/1")]);
    sleep(SHORT + Duration::from_millis(20));
    assert_eq!(ids(&lease(&mut other, 1)), [parent], "the host served longest ago");
    let late = [unfiltered(child(parent, 0, "http://b/1")), unfiltered(child(parent, 7, "http://b/7"))];
    assert_eq!(offer(&mut lost, &late).repeated, 2, "whoever has the parent now makes them");
    let offered = offer(&mut other, &[child(parent, 0, "http://b/1"), child(parent, 1, "http://b/2")]);
    assert_eq!((offered.stored, offered.repeated), (1, 1));
    assert!(done(&mut other, |batch| batch.settle(parent, Outcome::Handled)));
    assert_eq!(lease(&mut other, 5).len(), 2);
}

#[test]
fn a_paused_or_stopped_job_gives_nothing_out_and_finishes_what_is_out() {
    let server = Server::start();
    let mut one = server.join("j", "one", LONG);
    let mut admin = RedisAdmin::open(&server.url(), "j", RedisOptions::default()).unwrap();
    offer(&mut one, &[job(0, "http://a/1"), job(1, "http://a/2")]);
    let out = lease(&mut one, 1).remove(0).id;
    for (state, name) in [(FleetState::Paused, "paused"), (FleetState::Stopping, "stopping")] {
        admin.set_state(state).unwrap();
        assert!(lease(&mut one, 1).is_empty(), "{name}");
        assert_eq!((one.view().state, state.name()), (state, name));
    }
    assert!(done(&mut one, |batch| batch.settle(out, Outcome::Handled)));
    let mut two = server.join("j", "two", LONG);
    assert_eq!(two.view().state, FleetState::Stopping, "one is still at it");
    ask(&mut one, super::Batch::leave);
    ask(&mut two, super::Batch::leave);
    let mut three = server.join("j", "three", LONG);
    assert_eq!(three.view().state, FleetState::Running, "who comes when all have stopped starts it again");
    assert_eq!(paths(&lease(&mut three, 5)), ["/2"]);
    assert_eq!(admin.set_state(FleetState::Paused).unwrap(), FleetState::Running);
    assert!(lease(&mut three, 5).is_empty());
    assert!(done(&mut three, |batch| batch.set_state(FleetState::Stopping)));
    assert_eq!(admin.state().unwrap(), FleetState::Stopping);
}

#[test]
fn a_batch_is_done_in_its_order() {
    let server = Server::start();
    let mut one = server.join("j", "one", LONG);
    offer(&mut one, &[job(0, "http://a/1")]);
    let first = lease(&mut one, 1).remove(0).id;
    let mut batch = super::Batch::new();
    batch.offer(&[child(first, 0, "http://a/2")], super::Origin::Callback);
    batch.settle(first, Outcome::Failed(FailureKind::Timeout));
    batch.settle(first, Outcome::Handled);
    batch.offer(&[child(first, 0, "http://a/2")], super::Origin::Callback);
    batch.lease(5);
    let answers = one.apply(&mut batch).unwrap().answers;
    assert!(matches!(&answers[0], Answer::Offered(offered) if offered.stored == 1));
    assert!(matches!(&answers[1..3], [Answer::Done(true), Answer::Done(false)]));
    assert!(matches!(&answers[3], Answer::Offered(offered) if offered.repeated == 1), "its parent has ended");
    assert!(matches!(&answers[4], Answer::Leased(leased) if paths(leased) == ["/2"]));
}

#[test]
fn large_batches_go_through_whole() {
    let server = Server::start();
    let mut one = server.join("j", "one", LONG);
    let jobs: Vec<_> = (0..9_000).map(|n| job(n, &format!("http://h{}/{n}", n % 3_000))).collect();
    assert_eq!(offer(&mut one, &jobs).stored, 9_000);
    let parent = lease(&mut one, 1).remove(0).id;
    let children: Vec<_> = (0..9_000).map(|n| child(parent, n, &format!("http://one/{n}"))).collect();
    assert_eq!(offer(&mut one, &children).stored, 9_000);
    assert_eq!(offer(&mut one, &children).repeated, 9_000);
    let given = lease(&mut one, 9_500);
    assert_eq!(given.len(), 8_999 + 8, "eight places of the one host");
    let mut batch = super::Batch::new();
    given.iter().for_each(|given| batch.settle(given.id, Outcome::Handled));
    one.apply(&mut batch).unwrap();
    let books = one.books();
    assert_eq!((books.enqueued, books.handled, books.pending), (18_000, 9_007, 8_993));
}

#[test]
fn a_store_may_go_to_a_thread_of_its_own() {
    fn check<T: Send>() {}
    check::<super::RedisStore>();
}

impl Answer {
    fn given(&self) -> usize {
        match self {
            Self::Leased(leased) => leased.len(),
            other => panic!("{other:?}"),
        }
    }
}
