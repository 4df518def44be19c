//! What every store must do, as one suite: a store runs it with a function that makes it.
//!
//! The function gets the bound in bytes and gives an empty store.
#![allow(clippy::unwrap_used, clippy::expect_used)]

use std::time::Duration;

use super::job::{Books, Job, Outcome, RequestId, SlotKey};
use super::store::{Cursors, Offered, Pulled, Store, StoreError};
use super::testing::{child, job, unfiltered, with_priority};
use crate::api::failure::FailureKind;

const ROOM: usize = usize::MAX;
const NOW: Duration = Duration::from_secs(1_000);
const SECOND: Duration = Duration::from_secs(1);

/// Runs all of it.
pub(crate) fn run<S: Store>(make: impl Fn(usize) -> S) {
    a_key_is_queued_once(&mut make(ROOM));
    the_highest_priority_goes_first_and_the_oldest_within_one(&mut make(ROOM));
    slots_have_lines_of_their_own(&mut make(ROOM));
    a_job_put_back_waits_for_its_time(&mut make(ROOM));
    a_job_put_back_is_replaced_and_may_change_its_slot(&mut make(ROOM));
    the_books_balance_at_every_step(&mut make(ROOM));
    a_settle_counts_once(&mut make(ROOM));
    children_offered_twice_by_an_unsettled_parent_are_queued_once(&mut make(ROOM));
    a_crash_at_any_step_loses_nothing(&make);
    a_recovered_job_is_at_its_old_place(&mut make(ROOM));
    an_admitted_job_is_out_and_comes_back_only_after_a_crash(&mut make(ROOM));
    the_cursors_only_move_forward(&mut make(ROOM));
    gates_hold_until_their_time_and_the_later_one_counts(&mut make(ROOM));
    a_state_is_kept_by_its_name(&mut make(ROOM));
    jobs_keep_all_their_fields(&mut make(ROOM));
    what_keeps_a_lease_and_is_not_queued_is_named(&mut make(ROOM));
}

/// Offers jobs that must find room.
pub(crate) fn offer(store: &mut impl Store, jobs: impl IntoIterator<Item = Job>) -> Offered {
    let mut jobs: Vec<Job> = jobs.into_iter().collect();
    let offered = store.offer(&mut jobs).unwrap();
    assert!(jobs.is_empty(), "what was taken is not kept by the caller");
    offered
}

/// Pulls the slot's next job, if one is due.
pub(crate) fn pull(store: &mut impl Store, host: &str, now: Duration) -> Option<Box<Job>> {
    match store.pull(&SlotKey(host.into()), now).unwrap() {
        Pulled::Job(job) => Some(job),
        Pulled::NotBefore(_) | Pulled::Empty => None,
    }
}

fn urls(store: &mut impl Store, host: &str) -> Vec<String> {
    std::iter::from_fn(|| pull(store, host, NOW)).map(|job| job.url().path().to_owned()).collect()
}

fn counts(stored: u64, duplicates: u64, repeated: u64) -> Offered {
    Offered { stored, duplicates, repeated, kept_dropped: Vec::new() }
}

fn a_key_is_queued_once(store: &mut impl Store) {
    let offered = offer(store, [job(0, "http://a/1"), job(1, "http://a/1"), job(2, "http://a/2")]);
    assert_eq!(offered, counts(2, 1, 0));
    assert_eq!(offer(store, [job(3, "http://a/2")]), counts(0, 1, 0));
    assert_eq!(offer(store, [unfiltered(job(4, "http://a/2")), unfiltered(job(5, "http://a/3"))]), counts(2, 0, 0));
    assert_eq!(offer(store, [job(6, "http://a/3")]), counts(0, 1, 0), "what passes the filter marks it");
    assert!(store.mark_seen(77).unwrap());
    assert!(!store.mark_seen(77).unwrap());
    let mut redirected = job(7, "http://a/9");
    redirected.key = 77;
    assert_eq!(offer(store, [redirected]), counts(0, 1, 0));
}

fn what_keeps_a_lease_and_is_not_queued_is_named(store: &mut impl Store) {
    let keeping = |mut job: Job| {
        job.request.keep_lease();
        job
    };
    let offered = offer(store, [keeping(job(0, "http://a/1")), keeping(job(1, "http://a/1")), job(2, "http://a/1")]);
    assert_eq!((offered.stored, offered.duplicates), (1, 2));
    assert_eq!(offered.kept_dropped, [job(1, "http://a/1").id]);
}

fn the_highest_priority_goes_first_and_the_oldest_within_one(store: &mut impl Store) {
    let jobs = [("/a", 0), ("/b", 5), ("/c", -1), ("/d", 5), ("/e", 0), ("/f", i32::MAX)];
    offer(store, jobs.iter().zip(0..).map(|((path, p), n)| with_priority(job(n, &format!("http://a{path}")), *p)));
    assert_eq!(urls(store, "a"), ["/f", "/b", "/d", "/a", "/e", "/c"]);
}

fn slots_have_lines_of_their_own(store: &mut impl Store) {
    offer(store, [job(0, "http://a/1"), job(1, "http://b:81/2"), job(2, "https://a:8443/3")]);
    let mut slots = store.slots();
    slots.sort();
    assert_eq!(slots.iter().map(|(slot, _)| &*slot.0).collect::<Vec<_>>(), ["a", "b"]);
    assert!(matches!(store.pull(&SlotKey("c".into()), NOW), Ok(Pulled::Empty)));
    assert_eq!(urls(store, "b"), ["/2"]);
    assert_eq!(urls(store, "a"), ["/1", "/3"]);
    assert!(store.slots().is_empty(), "a slot without queued jobs is none");
}

fn a_job_put_back_waits_for_its_time(store: &mut impl Store) {
    offer(store, [job(0, "http://a/1"), job(1, "http://a/2")]);
    let first = pull(store, "a", NOW).unwrap();
    store.put_back(*first, NOW + 5 * SECOND).unwrap();
    let second = pull(store, "a", NOW).unwrap();
    assert_eq!(second.url().path(), "/2");
    assert!(matches!(store.pull(&SlotKey("a".into()), NOW + 4 * SECOND), Ok(Pulled::NotBefore(at)) if at == NOW + 5 * SECOND));
    assert_eq!(store.slots(), [(SlotKey("a".into()), NOW + 5 * SECOND)]);
    store.put_back(*second, NOW).unwrap();
    offer(store, [job(2, "http://a/3")]);
    let order: Vec<String> =
        std::iter::from_fn(|| pull(store, "a", NOW + 5 * SECOND)).map(|j| j.url().path().to_owned()).collect();
    assert_eq!(order, ["/1", "/2", "/3"], "by the time of the offer or of the putting back");
}

fn a_job_put_back_is_replaced_and_may_change_its_slot(store: &mut impl Store) {
    offer(store, [job(0, "http://a/1")]);
    let mut moved = pull(store, "a", NOW).unwrap();
    moved.request.set_url("http://b/2".parse().unwrap());
    moved.attempts = 3;
    moved.request.priority(-7);
    store.put_back(*moved, Duration::ZERO).unwrap();
    assert!(pull(store, "a", NOW).is_none());
    let again = pull(store, "b", NOW).unwrap();
    assert_eq!((again.url().as_str(), again.attempts, again.request.priority_value()), ("http://b/2", 3, -7));
    assert!(store.settle(again.id, Outcome::Handled).unwrap());
    store.put_back(*again, Duration::ZERO).unwrap();
    assert!(pull(store, "b", NOW).is_none(), "what is not out cannot be put back");
    assert!(store.books().balances());
}

fn the_books_balance_at_every_step(store: &mut impl Store) {
    offer(store, (0..4).map(|n| job(n, &format!("http://a/{n}"))));
    let outcomes = [
        Outcome::Handled,
        Outcome::Failed(FailureKind::Timeout),
        Outcome::Dropped(FailureKind::RobotsForbidden),
        Outcome::SetAside,
    ];
    for outcome in outcomes {
        assert!(store.books().balances());
        let job = pull(store, "a", NOW).unwrap();
        assert!(store.books().balances());
        store.settle(job.id, outcome).unwrap();
    }
    let books = Books { enqueued: 4, handled: 1, failed: 1, dropped: 1, set_aside: 1, pending: 0 };
    assert_eq!(store.books(), books);
}

fn a_settle_counts_once(store: &mut impl Store) {
    offer(store, [job(0, "http://a/1")]);
    let queued = RequestId::child(None, 0);
    assert!(!store.settle(queued, Outcome::Handled).unwrap(), "it was never pulled");
    let id = pull(store, "a", NOW).unwrap().id;
    assert!(store.settle(id, Outcome::Handled).unwrap());
    assert!(!store.settle(id, Outcome::Handled).unwrap());
    assert_eq!(store.books().handled, 1);
}

fn children_offered_twice_by_an_unsettled_parent_are_queued_once(store: &mut impl Store) {
    offer(store, [job(0, "http://a/p")]);
    let parent = pull(store, "a", NOW).unwrap();
    let batch = || [child(parent.id, 0, "http://b/1"), unfiltered(child(parent.id, 1, "http://b/1"))];
    assert_eq!(offer(store, batch()), counts(2, 0, 0));
    assert_eq!(offer(store, batch()), counts(0, 0, 2));
    // Also across a crash and a change of the parent, and beside children that are new.
    store.recover().unwrap();
    let parent = pull(store, "a", NOW).unwrap();
    let more = [unfiltered(child(parent.id, 1, "http://b/1")), child(parent.id, 2, "http://b/2")];
    assert_eq!(offer(store, more), counts(1, 0, 1));
    store.put_back(*parent.clone(), NOW).unwrap();
    pull(store, "a", NOW).unwrap();
    assert_eq!(offer(store, batch()), counts(0, 0, 2));
    store.settle(parent.id, Outcome::Handled).unwrap();
    assert_eq!(urls(store, "b").len(), 3);
}

/// Offer, then `Kept`, then settle: a crash may come after any step, then the parent runs again.
fn a_crash_at_any_step_loses_nothing<S: Store>(make: &impl Fn(usize) -> S) {
    for crash_after in 0..3 {
        let store = &mut make(ROOM);
        offer(store, [job(0, "http://a/p")]);
        let mut runs = 0;
        while let Some(parent) = pull(store, "a", NOW) {
            runs += 1;
            let crash = |step| runs == 1 && step == crash_after;
            if crash(0) {
                store.recover().unwrap();
                continue;
            }
            offer(store, [unfiltered(child(parent.id, 0, "http://b/1")), child(parent.id, 1, "http://b/2")]);
            if crash(1) {
                store.recover().unwrap();
                continue;
            }
            store.settle(parent.id, Outcome::Handled).unwrap();
            if crash(2) {
                store.recover().unwrap();
            }
        }
        assert_eq!(urls(store, "b"), ["/1", "/2"], "crash after step {crash_after}");
        let books = store.books();
        assert!(books.balances());
        assert_eq!((books.enqueued, books.handled, books.pending), (3, 1, 2));
    }
}

fn a_recovered_job_is_at_its_old_place(store: &mut impl Store) {
    offer(store, (0..3).map(|n| job(n, &format!("http://a/{n}"))));
    pull(store, "a", NOW).unwrap();
    pull(store, "a", NOW).unwrap();
    assert_eq!(store.recover().unwrap(), 2);
    assert_eq!(store.recover().unwrap(), 0);
    offer(store, [job(3, "http://a/3")]);
    assert_eq!(urls(store, "a"), ["/0", "/1", "/2", "/3"]);
    assert!(store.books().balances());
}

fn an_admitted_job_is_out_and_comes_back_only_after_a_crash(store: &mut impl Store) {
    let robots = job(0, "http://a/robots.txt");
    store.admit(&robots).unwrap();
    store.admit(&robots).unwrap();
    assert_eq!((store.books().enqueued, store.books().pending), (1, 1));
    assert!(pull(store, "a", NOW).is_none());
    assert_eq!(offer(store, [job(1, "http://a/robots.txt")]), counts(1, 0, 0), "it is no seen page");
    pull(store, "a", NOW).unwrap();
    assert_eq!(store.recover().unwrap(), 2);
    let ids = [pull(store, "a", NOW).unwrap().id, pull(store, "a", NOW).unwrap().id];
    assert_eq!(ids, [robots.id, RequestId::child(None, 1)]);
    assert!(store.settle(robots.id, Outcome::Handled).unwrap());
    assert!(store.books().balances());
}

fn the_cursors_only_move_forward(store: &mut impl Store) {
    assert_eq!(store.cursors(), Cursors::default());
    store.advance(Cursors { start: 7, idle: 1 }).unwrap();
    store.advance(Cursors { start: 5, idle: 3 }).unwrap();
    assert_eq!(store.cursors(), Cursors { start: 7, idle: 3 });
}

fn gates_hold_until_their_time_and_the_later_one_counts(store: &mut impl Store) {
    let (a, b) = (SlotKey("a".into()), SlotKey("b".into()));
    store.gate(&a, NOW + SECOND).unwrap();
    store.gate(&a, NOW).unwrap();
    store.gate(&b, NOW).unwrap();
    assert_eq!(store.gates(NOW), [(a, NOW + SECOND)]);
    assert!(store.gates(NOW + SECOND).is_empty());
}

fn a_state_is_kept_by_its_name(store: &mut impl Store) {
    assert_eq!(store.saved("cookies").unwrap(), None);
    store.save("cookies", b"one".to_vec()).unwrap();
    store.save("counters", b"two".to_vec()).unwrap();
    store.save("cookies", b"three".to_vec()).unwrap();
    store.commit().unwrap();
    assert_eq!(store.saved("cookies").unwrap().as_deref(), Some(&b"three"[..]));
    assert_eq!(store.saved("counters").unwrap().as_deref(), Some(&b"two"[..]));
}

fn jobs_keep_all_their_fields(store: &mut impl Store) {
    let mut full = child(RequestId(9), 3, "https://u:p@a:444/x?y#z");
    full.request.header("x-a", "1").unwrap().cookie("c", "2").body("body").meta("m", 3).retries(4);
    full.request.set_method(http::Method::POST);
    full.parent_url = Some("http://a/from".into());
    (full.depth, full.attempts, full.hops, full.chain) = (5, 6, 7, vec![1, u128::MAX]);
    full.first_url = Some("http://a/first".into());
    offer(store, [full.clone()]);
    let got = pull(store, "a", NOW).unwrap();
    // The request's own comparison would be its debug output without values; the rest is compared by hand.
    assert_eq!(format!("{got:?}"), format!("{full:?}"));
    assert_eq!(got.request.headers(), full.request.headers());
    assert_eq!((got.request.cookies(), got.request.body_bytes()), (full.request.cookies(), full.request.body_bytes()));
    assert_eq!(got.request.meta_value("m"), full.request.meta_value("m"));
    assert_eq!(got.request.retries_value(), Some(4));
    assert_eq!((got.chain.as_slice(), got.id, got.key), (full.chain.as_slice(), full.id, full.key));
}

/// A name that is out is not given out a second time; nobody waits for the other one for ever. For stores on the index.
pub(crate) fn a_name_that_is_out_is_not_given_out_again(store: &mut impl Store) {
    let twice = |n: u32| unfiltered(job(0, &format!("http://a/{n}")));
    offer(store, [twice(1), twice(2), job(1, "http://a/3"), twice(4)]);
    let first = pull(store, "a", NOW).unwrap();
    assert_eq!(pull(store, "a", NOW).unwrap().url().path(), "/3");
    let books = Books { enqueued: 4, dropped: 1, pending: 3, ..Books::default() };
    assert_eq!(store.books(), books);
    assert!(store.settle(first.id, Outcome::Handled).unwrap());
    assert_eq!(pull(store, "a", NOW).unwrap().url().path(), "/4", "it is free again");
    store.commit().unwrap();
}

/// A request whose record cannot be read back is set aside, and the others go on. For stores on the index.
pub(crate) fn what_cannot_be_read_back_is_set_aside(store: &mut impl Store) {
    let mut deep = job(0, "http://a/deep");
    deep.request.meta("deep", (0..500).fold(serde_json::Value::Null, |inner, _| vec![inner].into()));
    offer(store, [deep, job(1, "http://a/1")]);
    assert_eq!(urls(store, "a"), ["/1"]);
    assert_eq!(store.books(), Books { enqueued: 2, set_aside: 1, pending: 1, ..Books::default() });
    assert!(store.slots().is_empty());
    store.commit().unwrap();
}

/// A full store refuses the whole batch, gives it back, and takes again what fits. For bounded stores.
pub(crate) fn a_full_store_takes_nothing_of_a_batch(store: &mut impl Store) {
    let mut next = 0;
    let mut batch = || {
        let jobs: Vec<Job> = (next..next + 10).map(|n| job(n, &format!("http://a/{n:08}"))).collect();
        next += 10;
        jobs
    };
    let (refused, before) = loop {
        let mut jobs = batch();
        let before = store.books();
        match store.offer(&mut jobs) {
            Ok(_) => assert!(store.books().enqueued < 1_000_000, "the bound must come"),
            Err(StoreError::Full { held, bound }) => {
                assert!(held <= bound, "{held} of {bound}");
                break (jobs, before);
            }
            Err(other) => panic!("{other}"),
        }
    };
    assert_eq!(refused.len(), 10, "the batch is back");
    assert_eq!(store.books(), before);
    // What is known needs no room.
    assert_eq!(offer(store, [job(9_999_999, "http://a/00000000")]), counts(0, 1, 0));
    // Room comes with what is settled; how much is wanted depends on what has to grow.
    let mut refused = refused;
    let taken = loop {
        let id = pull(store, "a", NOW).expect("an empty store has room").id;
        store.settle(id, Outcome::Handled).unwrap();
        if let Ok(taken) = store.offer(&mut refused) {
            break taken;
        }
        assert_eq!(refused.len(), 10, "the batch is back each time");
    };
    assert_eq!(taken, counts(10, 0, 0));
}
