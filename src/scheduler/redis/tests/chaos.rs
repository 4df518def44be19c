//! A fleet of workers that are killed at random: every request is handled once, the books balance, hosts are paced.

use std::collections::{HashMap, HashSet};
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread::sleep;
use std::time::{Duration, Instant};

use proptest::prelude::*;

use super::super::{Answer, Batch, Leased, Origin, RedisStore};
use super::server::Server;
use super::{LONG, ZERO, lease, offer};
use crate::api::failure::FailureKind;
use crate::scheduler::job::{Job, Outcome, RequestId, SlotKey};
use crate::scheduler::pacing::Pacing;
use crate::scheduler::testing::{child, job, unfiltered};

const VISIBILITY: Duration = Duration::from_millis(120);
const PLACES: usize = 3;
const SEEDS: u64 = 12;

/// What one worker does in its turn.
#[derive(Debug, Clone, Copy)]
enum Deed {
    Lease(usize),
    /// Sends what it holds, gives the places back.
    Send,
    /// Ends what was sent, with children for some.
    Settle,
    PutBack(u64),
    GiveBack,
    Renew,
    Leave,
    /// It is gone without a word; another comes in its place.
    Die,
    Wait(u64),
}

struct Worker {
    store: RedisStore,
    unsent: Vec<Leased>,
    sent: Vec<Leased>,
    /// When what it holds is its no more, unless it renews.
    deadline: Instant,
}

struct World<'a> {
    server: &'a Server,
    pacing: Pacing,
    workers: Vec<Worker>,
    born: u32,
    /// How often each request was handled.
    handled: HashMap<RequestId, u32>,
    accepted: u64,
    sends: HashMap<SlotKey, Vec<Instant>>,
}

impl World<'_> {
    fn join(&mut self) -> Worker {
        self.born += 1;
        let store = self.server.join_paced("j", &format!("w{}", self.born), VISIBILITY, &self.pacing);
        Worker { store, unsent: Vec::new(), sent: Vec::new(), deadline: Instant::now() }
    }

    fn act(&mut self, at: usize, deed: Deed) {
        let mut batch = Batch::new();
        let mut settling = Vec::new();
        let worker = &mut self.workers[at];
        let now = Instant::now();
        match deed {
            Deed::Lease(max) => batch.lease(max),
            Deed::Send => {
                // What is not surely its own any more is not sent, as a worker must not.
                let is_own = now + Duration::from_millis(20) < worker.deadline;
                for leased in worker.unsent.drain(..) {
                    if is_own {
                        self.sends.entry(leased.host.clone()).or_default().push(Instant::now());
                        batch.sent(&leased.host, leased.id, ZERO, self.pacing.delay, 1.0);
                        batch.freed(leased.id);
                        worker.sent.push(leased);
                    } else {
                        batch.give_back(leased.id, ZERO);
                    }
                }
            }
            Deed::Settle => {
                for leased in worker.sent.drain(..) {
                    let job = leased.job.unwrap();
                    if job.depth == 0 {
                        let urls = ["http://a/", "http://c/"];
                        let children: Vec<Job> =
                            (0..2).map(|n| unfiltered(child(job.id, n, urls[usize::try_from(n).unwrap()]))).collect();
                        batch.offer(&children, Origin::Callback);
                    }
                    settling.push((batch.len(), job.id));
                    batch.settle(job.id, Outcome::Handled);
                }
            }
            Deed::PutBack(millis) => {
                for leased in worker.sent.drain(..) {
                    batch.put_back(&leased.job.unwrap(), Duration::from_millis(millis));
                }
            }
            Deed::GiveBack => worker.unsent.drain(..).for_each(|leased| batch.give_back(leased.id, ZERO)),
            Deed::Renew => {
                batch.renew(worker.unsent.iter().chain(&worker.sent).map(|leased| leased.id).collect::<Vec<_>>().into_iter())
            }
            Deed::Leave => {
                batch.leave();
                worker.unsent.clear();
                worker.sent.clear();
            }
            Deed::Die => {
                let successor = self.join();
                self.workers[at] = successor;
                return;
            }
            Deed::Wait(millis) => sleep(Duration::from_millis(millis)),
        }
        let before = Instant::now();
        let applied = self.workers[at].store.apply(&mut batch).unwrap();
        assert!(applied.view.books.balances(), "{:?}", applied.view);
        for (place, id) in settling {
            if matches!(applied.answers[place], Answer::Done(true)) {
                *self.handled.entry(id).or_default() += 1;
            }
        }
        let worker = &mut self.workers[at];
        for answer in applied.answers {
            match answer {
                Answer::Offered(offered) => self.accepted += offered.stored,
                Answer::Leased(leased) => {
                    if worker.unsent.is_empty() && worker.sent.is_empty() {
                        worker.deadline = before + VISIBILITY;
                    }
                    // What it is given again it had lost in the meantime.
                    let again: HashSet<RequestId> = leased.iter().map(|leased| leased.id).collect();
                    worker.unsent.retain(|old| !again.contains(&old.id));
                    worker.sent.retain(|old| !again.contains(&old.id));
                    worker.unsent.extend(leased);
                }
                Answer::Lost(lost) => {
                    worker.unsent.retain(|leased| !lost.contains(&leased.id));
                    worker.sent.retain(|leased| !lost.contains(&leased.id));
                    worker.deadline = before + VISIBILITY;
                }
                _ => {}
            }
        }
    }

    /// Lets one worker do the rest.
    fn drain(&mut self) {
        let until = Instant::now() + Duration::from_secs(20);
        while self.workers[0].store.view().books.pending > 0 {
            assert!(Instant::now() < until, "nothing gets lost: {:?}", self.workers[0].store.view());
            for deed in [Deed::Lease(20), Deed::Send, Deed::Settle] {
                self.act(0, deed);
            }
            sleep(Duration::from_millis(2));
        }
    }

    fn check(&self) {
        let view = self.workers[0].store.view();
        assert_eq!((view.out, view.books.enqueued, view.books.handled), (0, self.accepted, self.accepted));
        let handled: HashSet<RequestId> = self.handled.keys().copied().collect();
        assert_eq!(u64::try_from(handled.len()).unwrap(), self.accepted, "every request was handled");
        assert!(self.handled.values().all(|times| *times == 1), "once: {:?}", self.handled);
        assert_eq!(self.accepted, SEEDS * 3, "each seed and its two children");
        for (host, sends) in &self.sends {
            for pair in sends.windows(2) {
                let gap = pair[1].duration_since(pair[0]);
                assert!(gap + Duration::from_millis(10) >= self.pacing.delay, "{host:?}: {gap:?}");
            }
        }
    }
}

fn deed() -> impl Strategy<Value = Deed> {
    prop_oneof![
        6 => (1_usize..6).prop_map(Deed::Lease),
        4 => Just(Deed::Send),
        4 => Just(Deed::Settle),
        1 => (0_u64..60).prop_map(Deed::PutBack),
        1 => Just(Deed::GiveBack),
        2 => Just(Deed::Renew),
        1 => Just(Deed::Leave),
        1 => Just(Deed::Die),
        3 => (1_u64..40).prop_map(Deed::Wait),
    ]
}

fn config() -> ProptestConfig {
    let cases = if std::env::var_os("LONG_TESTS_OF_DRAGLINE").is_some() { 300 } else { 12 };
    ProptestConfig { cases, max_shrink_iters: 40, failure_persistence: None, ..ProptestConfig::default() }
}

proptest! {
    #![proptest_config(config())]
    #[test]
    fn a_fleet_under_kills_handles_every_request_once_and_paces_every_host(
        delay in prop_oneof![Just(0_u64), Just(25)],
        deeds in proptest::collection::vec((0_usize..4, deed()), 20..120),
    ) {
        let server = Server::start();
        let pacing = Pacing { per_slot: PLACES, delay: Duration::from_millis(delay), ..Pacing::default() };
        let mut world = World {
            server: &server, pacing, workers: Vec::new(), born: 0, handled: HashMap::new(), accepted: 0, sends: HashMap::new(),
        };
        for _ in 0..4 {
            let worker = world.join();
            world.workers.push(worker);
        }
        let url = |n: u64| format!("http://{}/{n}", if n.is_multiple_of(2) { "b" } else { "a" });
        let seeds: Vec<Job> = (0..SEEDS).map(|n| job(n, &url(n))).collect();
        world.accepted = offer(&mut world.workers[0].store, &seeds).stored;
        for (at, deed) in deeds {
            world.act(at, deed);
        }
        world.drain();
        world.check();
    }
}

/// One worker in a thread of its own, until the job is done: after some work it is gone without a word, and another comes.
fn work(server: &Server, thread: usize, pacing: &Pacing, sends: &Mutex<Vec<Instant>>, handled: &AtomicU64) {
    let until = Instant::now() + LONG;
    for life in 0_u64.. {
        let mut store = server.join_paced("j", &format!("{thread}.{life}"), VISIBILITY, pacing);
        for step in 0_u64.. {
            assert!(Instant::now() < until, "it comes to an end: {:?}", store.view());
            let leased_at = Instant::now();
            for leased in lease(&mut store, 2) {
                // A worker must be sure that it still holds what it sends.
                if leased_at.elapsed() > VISIBILITY / 2 {
                    continue;
                }
                sends.lock().unwrap().push(Instant::now());
                if (step + life) % 5 == 4 {
                    break;
                }
                let mut batch = Batch::new();
                batch.sent(&leased.host, leased.id, ZERO, pacing.delay, 1.0);
                batch.freed(leased.id);
                batch.settle(leased.id, Outcome::Handled);
                let applied = store.apply(&mut batch).unwrap();
                handled.fetch_add(u64::from(matches!(applied.answers[2], Answer::Done(true))), Ordering::SeqCst);
            }
            if store.view().books.pending == 0 {
                return;
            }
            if (step + life) % 5 == 4 && store.view().held > 0 {
                break;
            }
            sleep(Duration::from_millis(2));
        }
    }
}

#[test]
fn workers_at_the_same_time_pace_a_host_together_and_handle_every_request_once() {
    let server = Server::start();
    let pacing = Pacing { per_slot: 4, delay: Duration::from_millis(30), ..Pacing::default() };
    let pages: Vec<Job> = (0..40).map(|n| job(n, &format!("http://a/{n}"))).collect();
    offer(&mut server.join_paced("j", "seeds", LONG, &pacing), &pages);
    let (sends, handled) = (Mutex::new(Vec::new()), AtomicU64::new(0));
    std::thread::scope(|scope| {
        for thread in 0..4 {
            let (server, pacing, sends, handled) = (&server, &pacing, &sends, &handled);
            scope.spawn(move || work(server, thread, pacing, sends, handled));
        }
    });
    assert_eq!(handled.into_inner(), 40);
    let mut sends = sends.into_inner().unwrap();
    sends.sort();
    assert!(sends.len() > 40, "some were lost on the way: {}", sends.len());
    for pair in sends.windows(2) {
        let gap = pair[1].duration_since(pair[0]);
        assert!(gap + Duration::from_millis(10) >= pacing.delay, "{gap:?}");
    }
    let books = server.join("j", "look", LONG).view().books;
    assert_eq!((books.enqueued, books.handled, books.pending), (40, 40, 0));
}

#[test]
fn a_request_that_failed_at_one_worker_is_a_dead_letter_of_the_job() {
    let server = Server::start();
    let mut one = server.join("j", "one", LONG);
    offer(&mut one, &[job(0, "http://a/1")]);
    let id = lease(&mut one, 1).remove(0).id;
    assert!(super::done(&mut one, |batch| batch.settle(id, Outcome::Failed(FailureKind::Timeout))));
    assert_eq!(server.join("j", "two", LONG).view().books.failed, 1);
}
