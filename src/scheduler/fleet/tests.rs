//! Workers of a fleet at a server in memory, their engines played by hand, on a paused clock.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing)]

mod hops;
mod troubles;

use std::collections::HashSet;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use tokio::time::{Instant, sleep, sleep_until};

use super::fake::{Fake, World};
use super::{FleetConfig, SharedFrontier};
use crate::actor::run_local;
use crate::api::stats::Stats;
use crate::engine::message::Fact;
use crate::engine::ticket::Tag;
use crate::scheduler::Queue as _;
use crate::scheduler::config::SchedulerConfig;
use crate::scheduler::job::{Job, JobKind, Outcome, RequestId};
use crate::scheduler::message::{Accepted, Control, Due, Fleet, Order, Pacing, Ready, Rest, RobotsAnswer, Verdict};
use crate::scheduler::redis::FleetState;
use crate::scheduler::testing::{child, config, job, unfiltered};
use crate::web::robots::Robots;

const MS: Duration = Duration::from_millis(1);
const SECOND: Duration = Duration::from_secs(1);
const VISIBILITY: Duration = Duration::from_secs(30);

/// A worker with its engine played by hand.
struct Worker {
    frontier: SharedFrontier,
    stats: Stats,
    wake: Option<Instant>,
    facts: Vec<Fact>,
    offers: u64,
    pulls: u64,
}

impl Worker {
    fn new(world: &Arc<Mutex<World>>, name: &str, config: SchedulerConfig, wait: Option<Duration>) -> Self {
        let stats = Stats::new();
        let server = Box::new(Fake::new(world, name, VISIBILITY));
        let fleet = FleetConfig { wait, instance: name.len() as u64 };
        let frontier = SharedFrontier::new(config, fleet, server, stats.clone(), Instant::now());
        Self { frontier, stats, wake: None, facts: Vec::new(), offers: 0, pulls: 0 }
    }

    fn joined(world: &Arc<Mutex<World>>, name: &str) -> Self {
        Self::new(world, name, config(), Some(60 * SECOND))
    }

    fn turn(&mut self) {
        let turn = self.frontier.turn(Instant::now());
        self.facts.extend(turn.facts);
        self.wake = turn.wake;
    }

    fn order(&mut self, order: Order) {
        self.frontier.order(order, Instant::now());
    }

    fn control(&mut self, control: Control) {
        self.frontier.control(control, Instant::now());
        self.turn();
    }

    /// Wakes it as its timer would, until then.
    async fn run_until(&mut self, until: Instant) {
        while let Some(wake) = self.wake.filter(|wake| *wake <= until) {
            sleep_until(wake).await;
            self.turn();
        }
        sleep_until(until).await;
        self.turn();
    }

    async fn run(&mut self, time: Duration) {
        self.run_until(Instant::now() + time).await;
    }

    fn offer_as(&mut self, jobs: Vec<Job>, seeds: bool) {
        self.offers += 1;
        self.order(Order::Offer { offer: self.offers, jobs, seeds });
        self.turn();
    }

    fn offer(&mut self, urls: &[&str]) {
        // Requests of two workers are never the same.
        let first = self.frontier.instance * 10_000 + self.offers * 100;
        let parent = RequestId(7);
        let jobs = urls.iter().zip(first..).map(|(url, n)| child(parent, n, url)).collect();
        self.offer_as(jobs, false);
    }

    fn pull(&mut self, credits: u64) {
        self.pulls += 1;
        let upto = self.frontier.handed + credits;
        self.order(Order::Pull { seq: self.pulls, upto });
        self.turn();
    }

    fn taken<T>(&mut self, take: impl Fn(&mut Vec<Fact>, usize) -> Option<T>) -> Vec<T> {
        let mut taken = Vec::new();
        let mut at = 0;
        while at < self.facts.len() {
            match take(&mut self.facts, at) {
                Some(one) => taken.push(one),
                None => at += 1,
            }
        }
        taken
    }

    fn readies(&mut self) -> Vec<Ready> {
        self.taken(|facts, at| match &facts[at] {
            Fact::Ready(_) => match facts.remove(at) {
                Fact::Ready(ready) => Some(ready),
                _ => None,
            },
            _ => None,
        })
    }

    /// Jobs handed out since the last call.
    fn jobs(&mut self) -> Vec<Due> {
        self.readies().into_iter().flat_map(|ready| ready.jobs).collect()
    }

    fn paths(&mut self) -> Vec<String> {
        self.jobs().iter().map(|due| due.job.url().path().to_owned()).collect()
    }

    fn accepted(&mut self) -> Vec<Accepted> {
        self.taken(|facts, at| match &facts[at] {
            Fact::Accepted(_) => match facts.remove(at) {
                Fact::Accepted(accepted) => Some(accepted),
                _ => None,
            },
            _ => None,
        })
    }

    fn fleet(&mut self) -> Vec<Fleet> {
        self.taken(|facts, at| match &facts[at] {
            Fact::Fleet(news) => {
                let news = news.clone();
                facts.remove(at);
                Some(news)
            }
            _ => None,
        })
    }

    fn rest(&mut self) -> Rest {
        self.readies().last().expect("it was told of the job").rest
    }

    fn end(&mut self, due: &Due) {
        if due.verdict == Verdict::Go {
            if due.wants_sent {
                self.order(Order::Sent { id: due.job.id, slot: due.slot.clone(), at: Instant::now() });
            }
            self.order(Order::Freed { id: due.job.id, slot: due.slot.clone(), unsent: false });
        }
        self.order(Order::Settle { id: due.job.id, outcome: Outcome::Handled });
        self.turn();
    }
}

fn started() -> Arc<Mutex<World>> {
    let world = World::new();
    World::without_start(&world);
    world
}

fn paced(delay: Duration) -> SchedulerConfig {
    SchedulerConfig { pacing: Pacing { per_slot: 8, delay, jitter: 0.0, ..Pacing::default() }, ..config() }
}

fn rules(text: &str) -> RobotsAnswer {
    RobotsAnswer::Rules(Arc::new(Robots::parse(text.as_bytes())))
}

#[test]
fn each_request_goes_to_one_worker_and_the_books_are_one() {
    run_local(async {
        let world = started();
        let (mut a, mut b) = (Worker::joined(&world, "a"), Worker::joined(&world, "bb"));
        a.offer(&["http://a.test/1", "http://a.test/2", "http://b.test/3", "http://a.test/1"]);
        let accepted = a.accepted().remove(0);
        assert_eq!((accepted.stored, accepted.duplicates), (3, 1));
        b.offer(&["http://b.test/3", "http://c.test/4"]);
        assert_eq!(b.accepted()[0].duplicates, 1, "one seen set");
        a.pull(2);
        b.pull(8);
        let (of_a, of_b) = (a.jobs(), b.jobs());
        assert_eq!((of_a.len(), of_b.len()), (2, 2));
        let all: HashSet<RequestId> = of_a.iter().chain(&of_b).map(|due| due.job.id).collect();
        assert_eq!(all.len(), 4);
        of_a.iter().for_each(|due| a.end(due));
        of_b.iter().for_each(|due| b.end(due));
        let settled = a.facts.iter().filter(|fact| matches!(fact, Fact::Settled(_))).count();
        assert_eq!(settled, 2, "the record log may forget them");
        let books = world.lock().unwrap().books;
        assert!(books.balances());
        assert_eq!((books.enqueued, books.handled, books.pending), (4, 4, 0));
    });
}

#[test]
fn a_worker_without_work_finds_what_another_offers_within_a_second() {
    run_local(async {
        let world = started();
        let (mut a, mut b) = (Worker::joined(&world, "a"), Worker::joined(&world, "bb"));
        a.offer(&["http://a.test/1"]);
        a.pull(1);
        let first = a.jobs().remove(0);
        b.pull(1);
        b.run(20 * SECOND).await;
        let before = world.lock().unwrap().exchanges;
        b.run(10 * SECOND).await;
        assert!(world.lock().unwrap().exchanges - before <= 11, "an idle worker asks once a second");
        assert!(b.jobs().is_empty());
        a.offer(&["http://b.test/2"]);
        b.run(SECOND).await;
        assert_eq!(b.paths(), ["/2"]);
        a.end(&first);
    });
}

#[test]
fn a_delay_holds_over_all_workers_and_counts_from_the_sending() {
    run_local(async {
        let world = started();
        let mut workers: Vec<Worker> =
            ["a", "bb", "ccc"].iter().map(|name| Worker::new(&world, name, paced(SECOND), None)).collect();
        workers[0].offer(&["http://a.test/1", "http://a.test/2", "http://a.test/3", "http://a.test/4"]);
        let mut sent = Vec::new();
        for worker in &mut workers {
            worker.pull(4);
        }
        for _ in 0..1_000 {
            for worker in &mut workers {
                worker.run(5 * MS).await;
                for due in worker.jobs() {
                    assert!(due.wants_sent);
                    // Some time passes before it goes out.
                    sleep(30 * MS).await;
                    sent.push(Instant::now());
                    worker.end(&due);
                }
            }
        }
        assert_eq!(sent.len(), 4);
        assert!(sent.windows(2).all(|two| two[1] - two[0] >= SECOND), "{sent:?}");
        assert!(sent.windows(2).all(|two| two[1] - two[0] < 1_200 * MS), "and not much more: {sent:?}");
    });
}

#[test]
fn start_runs_on_one_worker_and_goes_on_at_another_when_that_leaves() {
    run_local(async {
        let world = World::new();
        let (mut a, mut b) = (Worker::joined(&world, "a"), Worker::joined(&world, "bb"));
        a.pull(0);
        b.pull(0);
        assert_eq!((a.rest(), b.rest()), (Rest::Elsewhere, Rest::Elsewhere));
        a.pull(1);
        b.pull(1);
        assert_eq!(a.fleet(), [Fleet::Elected { cursor: 0 }]);
        assert_eq!(b.fleet(), []);
        a.offer_as(vec![job(0, "http://a.test/0"), job(1, "http://a.test/1")], true);
        a.control(Control::Stop);
        a.pull(0);
        b.run(2 * SECOND).await;
        assert_eq!(b.fleet(), [Fleet::Elected { cursor: 2 }]);
        b.order(Order::StartOver);
        b.turn();
        assert_eq!(world.lock().unwrap().books.pending, 2);
    });
}

#[test]
fn start_goes_on_at_another_worker_when_the_first_dies_and_what_it_still_says_is_dropped() {
    run_local(async {
        let world = World::new();
        let (mut a, mut b) = (Worker::joined(&world, "a"), Worker::joined(&world, "bb"));
        a.pull(1);
        assert_eq!(a.fleet(), [Fleet::Elected { cursor: 0 }]);
        a.offer_as(vec![unfiltered(job(0, "http://a.test/0"))], true);
        a.accepted();
        b.pull(1);
        b.run(VISIBILITY + 2 * SECOND).await;
        assert_eq!(b.fleet(), [Fleet::Elected { cursor: 1 }]);
        // It was only asleep.
        a.offer_as(vec![unfiltered(job(1, "http://a.test/1"))], true);
        let accepted = a.accepted().remove(0);
        assert_eq!((accepted.stored, accepted.error.is_none()), (0, true));
        b.offer_as(vec![unfiltered(job(1, "http://a.test/1"))], true);
        assert_eq!(b.accepted()[0].stored, 1);
        assert_eq!(world.lock().unwrap().books.enqueued, 2);
        a.order(Order::StartOver);
        a.turn();
        a.pull(0);
        assert_eq!(a.rest(), Rest::Elsewhere, "start is not over");
    });
}

#[test]
fn idle_is_one_workers_at_a_time_and_its_word_ends_the_job_for_all() {
    run_local(async {
        let world = started();
        let (mut a, mut b) = (Worker::joined(&world, "a"), Worker::joined(&world, "bb"));
        a.offer(&["http://a.test/1"]);
        a.pull(2);
        b.pull(2);
        let first = a.jobs().remove(0);
        b.run(3 * SECOND).await;
        assert_eq!(b.rest(), Rest::Elsewhere, "one request is in flight elsewhere");
        a.end(&first);
        a.run(2 * SECOND).await;
        assert_eq!(a.rest(), Rest::Ours);
        assert_eq!(a.fleet(), [Fleet::IdleFrom(0)]);
        b.run(2 * SECOND).await;
        assert_eq!(b.rest(), Rest::Elsewhere);
        // It makes one more, whose place in the count goes with the job.
        a.offer_as(vec![child(RequestId::IDLE, 0, "http://a.test/2")], false);
        a.order(Order::IdleOver);
        a.turn();
        let second = a.jobs().remove(0);
        assert_eq!(second.job.url().path(), "/2");
        a.control(Control::Stop);
        a.end(&second);
        b.run(2 * SECOND).await;
        assert_eq!(b.fleet(), [Fleet::IdleFrom(1)]);
        assert_eq!(b.rest(), Rest::Ours);
        let mut c = Worker::joined(&world, "ccc");
        c.pull(2);
        assert_eq!(c.rest(), Rest::Elsewhere);
        b.frontier.control(Control::Finish, Instant::now());
        b.control(Control::Stop);
        c.run(2 * SECOND).await;
        assert_eq!(c.rest(), Rest::Over);
        assert_eq!(world.lock().unwrap().state, FleetState::Finished);
    });
}

#[test]
fn a_stop_of_the_job_reaches_every_worker_with_its_reason() {
    run_local(async {
        let world = started();
        let (mut a, mut b) = (Worker::joined(&world, "a"), Worker::joined(&world, "bb"));
        a.offer(&["http://a.test/1", "http://a.test/2"]);
        b.pull(1);
        assert_eq!(b.jobs().len(), 1);
        a.frontier.control(Control::StopAll { reason: "closespider_itemcount".to_owned() }, Instant::now());
        a.control(Control::Stop);
        assert_eq!(world.lock().unwrap().state, FleetState::Stopping);
        b.run(1_100 * MS).await;
        assert_eq!(b.fleet(), [Fleet::Stops("closespider_itemcount".to_owned())]);
        b.run(3 * SECOND).await;
        assert_eq!(b.fleet(), [], "told once");
        assert!(a.fleet().is_empty(), "its own stop is no news");
    });
}

#[test]
fn a_paused_job_gives_nothing_out_until_it_goes_on() {
    run_local(async {
        let world = started();
        let mut a = Worker::joined(&world, "a");
        world.lock().unwrap().state = FleetState::Paused;
        a.offer(&["http://a.test/1"]);
        a.pull(1);
        a.run(5 * SECOND).await;
        assert!(a.jobs().is_empty());
        world.lock().unwrap().state = FleetState::Running;
        a.run(1_100 * MS).await;
        assert_eq!(a.paths(), ["/1"]);
    });
}

#[test]
fn a_worker_that_leaves_gives_everything_back_and_the_rest_goes_on() {
    run_local(async {
        let world = started();
        let (mut a, mut b) = (Worker::joined(&world, "a"), Worker::joined(&world, "bb"));
        a.offer(&["http://a.test/1", "http://a.test/2"]);
        a.pull(2);
        let jobs = a.jobs();
        a.control(Control::Stop);
        for due in jobs {
            a.order(Order::Freed { id: due.job.id, slot: due.slot, unsent: false });
            a.order(Order::PutBack { job: due.job, delay: Duration::ZERO });
        }
        a.turn();
        a.pull(0);
        let last = a.readies().pop().unwrap();
        assert!(last.books.balances() && last.books.pending == 2, "it says what is left: {:?}", last.books);
        assert_eq!(a.wake, None, "it has left");
        b.pull(2);
        assert_eq!(b.paths(), ["/1", "/2"]);
    });
}

#[test]
fn each_worker_reads_robots_txt_for_itself_and_its_pages_wait() {
    run_local(async {
        let world = started();
        let obeying = || SchedulerConfig { robots_agent: Some("dragline".into()), ..config() };
        let (mut a, mut b) = (Worker::new(&world, "a", obeying(), None), Worker::new(&world, "bb", obeying(), None));
        a.offer(&["http://a.test/ok", "http://a.test/no/1", "http://a.test/no/2"]);
        a.pull(3);
        let robots = a.jobs();
        assert_eq!(robots.len(), 1, "its pages wait");
        assert_eq!((robots[0].job.kind, robots[0].job.url().path()), (JobKind::Robots, "/robots.txt"));
        // The others wait at the server for a moment, for whoever knows the rules.
        b.run(300 * MS).await;
        b.pull(3);
        let other = b.jobs();
        assert_eq!((other.len(), other[0].job.kind), (1, JobKind::Robots));
        assert_ne!(other[0].job.id, robots[0].job.id);
        a.control(Control::Robots { origin: "http://a.test".into(), rules: rules("User-agent: *\nDisallow: /no/") });
        a.end(&robots[0]);
        a.pull(3);
        a.run(SECOND).await;
        let pages = a.jobs();
        let verdicts: Vec<_> = pages.iter().map(|due| (due.job.url().path(), due.verdict.clone())).collect();
        assert_eq!(
            verdicts.iter().filter(|(path, verdict)| *path == "/ok" && *verdict == Verdict::Go).count(),
            1,
            "{verdicts:?}"
        );
        assert!(verdicts.iter().all(|(path, verdict)| path.starts_with("/no/") == (*verdict == Verdict::Forbidden)));
        pages.iter().for_each(|due| a.end(due));
        // An answer that does not come is one, too.
        b.end(&other[0]);
        b.pull(3);
        b.run(SECOND).await;
        let rest = b.jobs();
        assert!(rest.iter().all(|due| matches!(due.verdict, Verdict::RobotsUnavailable(_))));
        rest.iter().for_each(|due| b.end(due));
        let books = world.lock().unwrap().books;
        assert!(books.balances() && books.pending == 0 && books.enqueued == 5, "{books:?}");
    });
}

#[test]
fn a_crawl_delay_of_robots_txt_holds_for_the_fleet() {
    run_local(async {
        let world = started();
        let obeying = || SchedulerConfig { robots_agent: Some("dragline".into()), ..config() };
        let (mut a, mut b) = (Worker::new(&world, "a", obeying(), None), Worker::new(&world, "bb", obeying(), None));
        let answer = || Control::Robots { origin: "http://a.test".into(), rules: rules("User-agent: *\nCrawl-delay: 2") };
        a.offer(&["http://a.test/1", "http://a.test/2", "http://a.test/3"]);
        let mut sent = Vec::new();
        a.pull(3);
        b.pull(3);
        for _ in 0..1_000 {
            for worker in [&mut a, &mut b] {
                worker.run(5 * MS).await;
                for due in worker.jobs() {
                    if due.job.kind == JobKind::Robots {
                        worker.control(answer());
                    } else {
                        sent.push(Instant::now());
                    }
                    worker.end(&due);
                    worker.pull(3);
                }
            }
        }
        assert_eq!(sent.len(), 3);
        assert!(sent.windows(2).all(|two| two[1] - two[0] >= 2 * SECOND), "{sent:?}");
    });
}
