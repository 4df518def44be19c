//! A model of what a store must do, and a property test that runs any store against it.
//!
//! The model keeps jobs in one ordered map and looks at all of them at each step; nothing of it resembles a real
//! store. Sequences of steps are drawn at random: offers with parents, repeats and unfiltered ones, pulls, jobs put
//! back, settles, gates, time, commits that fail, and crashes.
#![allow(clippy::unwrap_used, clippy::expect_used)]

mod state;

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use proptest::collection::vec;
use proptest::prelude::*;
use proptest::test_runner::TestRunner;

use self::state::{Entry, State};
use super::job::{Job, Outcome, RequestId, SlotKey};
use super::store::{Cursors, Pulled, Store};
use super::testing::{child, job, unfiltered};
use crate::api::failure::FailureKind;

/// What a crash takes with it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Lost {
    /// What was not committed.
    Uncommitted,
    /// Nothing: the store outlives it.
    Nothing,
}

/// How a commit fails.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Fault {
    /// Nothing reached the disk.
    Before,
    /// All of it reached the disk, but it was not told so.
    After,
}

/// Lets the next commit fail; see [`Harness::fail`].
pub(crate) type Fail<S> = Box<dyn Fn(&mut S, Fault) -> bool>;

/// A way to make a store, to let it crash, and to let its next commit fail.
pub(crate) struct Harness<S> {
    pub(crate) make: Box<dyn Fn() -> S>,
    pub(crate) crash: Box<dyn Fn(S) -> (S, Lost)>,
    /// False when its commits cannot fail.
    pub(crate) fail: Fail<S>,
}

/// Runs at least 200 sequences, with `LONG_TESTS_OF_DRAGLINE` fifty times as many.
pub(crate) fn run_model<S: Store>(harness: &Harness<S>) {
    let long = std::env::var_os("LONG_TESTS_OF_DRAGLINE").is_some();
    let cases = if long { 10_000 } else { 200 };
    let config = ProptestConfig { cases, failure_persistence: None, max_shrink_iters: 2_000, ..ProptestConfig::default() };
    TestRunner::new(config).run(&vec(step(), 1..60), |steps| run(harness, &steps)).unwrap();
}

const HOSTS: [&str; 3] = ["a", "b", "c"];

#[derive(Debug, Clone)]
enum Step {
    /// Jobs of a parent that is out, or of none.
    Offer {
        parent: Option<usize>,
        links: Vec<Link>,
    },
    /// The last offer once more, as its parent makes it that runs again.
    OfferAgain,
    Pull {
        host: usize,
    },
    PullAll {
        host: usize,
    },
    PutBack {
        which: usize,
        delay: u64,
        host: usize,
        priority: i32,
    },
    /// A redirect was followed.
    Replace {
        which: usize,
        host: usize,
        page: u8,
    },
    Settle {
        which: usize,
        outcome: Outcome,
    },
    SettleUnknown,
    Admit {
        index: u64,
    },
    MarkSeen {
        page: u8,
    },
    Gate {
        host: usize,
        ahead: u64,
    },
    Advance {
        start: u64,
        idle: u64,
    },
    Save {
        name: usize,
        state: u8,
    },
    Time {
        seconds: u64,
    },
    Commit,
    CommitFails(Fault),
    Recover,
    Crash,
}

#[derive(Debug, Clone)]
struct Link {
    /// Its place among its parent's children.
    index: u64,
    host: usize,
    page: u8,
    priority: i32,
    unfiltered: bool,
}

fn step() -> impl Strategy<Value = Step> {
    let link = (0_u64..5, 0..HOSTS.len(), 0_u8..8, -1..2, prop::bool::weighted(0.3));
    let link = link.prop_map(|(index, host, page, priority, unfiltered)| Link { index, host, page, priority, unfiltered });
    let outcome = prop_oneof![
        3 => Just(Outcome::Handled),
        1 => Just(Outcome::Failed(FailureKind::Timeout)),
        1 => Just(Outcome::Dropped(FailureKind::Offsite)),
        1 => Just(Outcome::SetAside),
    ];
    let host = 0..HOSTS.len();
    prop_oneof![
        8 => (prop::option::weighted(0.6, 0_usize..8), vec(link, 0..5)).prop_map(|(parent, links)| Step::Offer { parent, links }),
        3 => Just(Step::OfferAgain),
        8 => host.clone().prop_map(|host| Step::Pull { host }),
        2 => host.clone().prop_map(|host| Step::PullAll { host }),
        4 => (0_usize..8, 0_u64..4, host.clone(), -1..2)
            .prop_map(|(which, delay, host, priority)| Step::PutBack { which, delay, host, priority }),
        2 => (0_usize..8, host.clone(), 0_u8..8).prop_map(|(which, host, page)| Step::Replace { which, host, page }),
        5 => (0_usize..8, outcome).prop_map(|(which, outcome)| Step::Settle { which, outcome }),
        1 => Just(Step::SettleUnknown),
        1 => (0_u64..3).prop_map(|index| Step::Admit { index }),
        1 => (0_u8..12).prop_map(|page| Step::MarkSeen { page }),
        1 => (host, 0_u64..4).prop_map(|(host, ahead)| Step::Gate { host, ahead }),
        1 => (0_u64..9, 0_u64..9).prop_map(|(start, idle)| Step::Advance { start, idle }),
        1 => (0..STATES.len(), any::<u8>()).prop_map(|(name, state)| Step::Save { name, state }),
        3 => (0_u64..3).prop_map(|seconds| Step::Time { seconds }),
        6 => Just(Step::Commit),
        1 => Just(Step::CommitFails(Fault::Before)),
        1 => Just(Step::CommitFails(Fault::After)),
        1 => Just(Step::Recover),
        2 => Just(Step::Crash),
    ]
}

const STATES: [&str; 2] = ["cookies", "counters"];

/// A run: the store, the model as it stands, and as it stood at the last commit.
struct Run<'a, S> {
    harness: &'a Harness<S>,
    store: S,
    model: State,
    committed: State,
    now: Duration,
    /// Jobs that are out, as the store gave them, in the order of their ids.
    out: BTreeMap<RequestId, Job>,
    last_offer: Vec<Job>,
    starts: u64,
}

fn run<S: Store>(harness: &Harness<S>, steps: &[Step]) -> Result<(), TestCaseError> {
    let mut run = Run {
        harness,
        store: (harness.make)(),
        model: State::default(),
        committed: State::default(),
        now: Duration::from_secs(1_000),
        out: BTreeMap::new(),
        last_offer: Vec::new(),
        starts: 0,
    };
    for step in steps {
        run = run.step(step)?;
        run.compare()?;
    }
    run.store.commit().map_err(failed)?;
    run.committed = run.model.clone();
    run = run.crash()?;
    run.compare()?;
    run.now += Duration::from_secs(1_000);
    for host in HOSTS {
        while run.pull(host)? {}
    }
    run.compare()
}

fn failed(error: super::store::StoreError) -> TestCaseError {
    TestCaseError::fail(error.to_string())
}

impl<S: Store> Run<'_, S> {
    fn step(mut self, step: &Step) -> Result<Self, TestCaseError> {
        match step {
            Step::Offer { parent, links } => {
                let parent = parent.and_then(|n| self.which(n));
                let jobs = links.iter().map(|link| self.job(parent, link)).collect();
                self.offer(jobs)?;
            }
            Step::OfferAgain => {
                self.rerun_parent()?;
                let jobs = self.last_offer.clone();
                self.offer(jobs)?;
            }
            Step::Pull { host } => drop(self.pull(HOSTS.get(*host).unwrap())?),
            Step::PullAll { host } => while self.pull(HOSTS.get(*host).unwrap())? {},
            Step::PutBack { which, delay, host, priority } => {
                if let Some(mut job) = self.which(*which).and_then(|id| self.out.remove(&id)) {
                    let url = format!("http://{}{}", HOSTS.get(*host).unwrap(), job.url().path());
                    job.request.set_url(url.parse().unwrap());
                    job.request.priority(*priority);
                    job.attempts += 1;
                    let not_before = if *delay == 0 { Duration::ZERO } else { self.now + Duration::from_secs(*delay) };
                    self.model.put_back(&job, not_before);
                    self.store.put_back(job.clone(), not_before).map_err(failed)?;
                    // It is not out any more: nothing may come of this.
                    self.store.put_back(job, not_before).map_err(failed)?;
                }
            }
            Step::Replace { which, host, page } => {
                if let Some(job) = self.which(*which).and_then(|id| self.out.get_mut(&id)) {
                    job.request.set_url(format!("http://{}/to/{page}", HOSTS.get(*host).unwrap()).parse().unwrap());
                    self.store.replace(job).map_err(failed)?;
                    // Without a disk or a server it is given back as it was pulled.
                    if self.store.medium().is_durable() {
                        self.model.replace(job);
                    }
                }
            }
            Step::Settle { which, outcome } => {
                if let Some(id) = self.which(*which) {
                    self.out.remove(&id);
                    prop_assert_eq!(self.store.settle(id, *outcome).map_err(failed)?, self.model.settle(id, *outcome));
                    prop_assert!(!self.store.settle(id, *outcome).map_err(failed)?, "settled twice");
                }
            }
            Step::SettleUnknown => {
                let queued = self.model.jobs.values().find(|entry| !entry.out).map_or(RequestId(7), |entry| entry.id);
                if !self.out.contains_key(&queued) {
                    prop_assert!(!self.store.settle(queued, Outcome::Handled).map_err(failed)?);
                }
            }
            Step::Admit { index } => {
                let robots = Job { id: RequestId::robots("r", *index as u32), ..job(0, "http://c/robots.txt") };
                // While it is queued again nobody admits it: the scheduler knows the ones it has.
                if self.model.jobs.values().all(|entry| entry.id != robots.id || entry.out) {
                    self.store.admit(&robots).map_err(failed)?;
                    if self.model.out(robots.id).is_none() {
                        self.model.count_new();
                        self.model.add(&robots, Duration::ZERO, true);
                        self.out.insert(robots.id, robots);
                    }
                }
            }
            Step::MarkSeen { page } => {
                let key = job(0, &format!("http://a/{page}")).key;
                prop_assert_eq!(self.store.mark_seen(key).map_err(failed)?, self.model.seen.insert(key));
            }
            Step::Gate { host, ahead } => {
                let slot = SlotKey((*HOSTS.get(*host).unwrap()).into());
                let until = self.now + Duration::from_secs(*ahead);
                self.store.gate(&slot, until).map_err(failed)?;
                let gate = self.model.gates.entry(slot).or_default();
                *gate = until.max(*gate);
            }
            Step::Advance { start, idle } => {
                let to = Cursors { start: *start, idle: *idle };
                self.store.advance(to).map_err(failed)?;
                self.model.cursors.advance(to);
            }
            Step::Save { name, state } => {
                let name = *STATES.get(*name).unwrap();
                self.store.save(name, vec![*state; 3]).map_err(failed)?;
                self.model.states.insert(name, vec![*state; 3]);
            }
            Step::Time { seconds } => self.now += Duration::from_secs(*seconds),
            Step::Commit => {
                self.store.commit().map_err(failed)?;
                self.committed = self.model.clone();
            }
            Step::CommitFails(fault) => {
                if (self.harness.fail)(&mut self.store, *fault) {
                    prop_assert!(self.store.commit().is_err(), "the commit was to fail");
                    if *fault == Fault::After {
                        self.committed = self.model.clone();
                    }
                }
            }
            Step::Recover => {
                prop_assert_eq!(self.store.recover().map_err(failed)?, self.model.recover());
                self.out.clear();
            }
            Step::Crash => return self.crash(),
        }
        Ok(self)
    }

    fn crash(mut self) -> Result<Self, TestCaseError> {
        let (store, lost) = (self.harness.crash)(self.store);
        self.store = store;
        if lost == Lost::Uncommitted {
            self.model = self.committed.clone();
        }
        self.model.recover();
        self.store.recover().map_err(failed)?;
        self.out.clear();
        self.committed = self.model.clone();
        Ok(self)
    }

    /// The `n`-th job that is out.
    fn which(&self, n: usize) -> Option<RequestId> {
        self.out.keys().nth(n % self.out.len().max(1)).copied()
    }

    fn job(&mut self, parent: Option<RequestId>, link: &Link) -> Job {
        let url = format!("http://{}/{}", HOSTS.get(link.host).unwrap(), link.page);
        let mut made = match parent {
            Some(parent) => child(parent, link.index, &url),
            None => {
                self.starts += 1;
                job(self.starts, &url)
            }
        };
        made.request.priority(link.priority);
        if link.unfiltered { unfiltered(made) } else { made }
    }

    /// Pulls the parent of the last offer, when it is in the queue again.
    fn rerun_parent(&mut self) -> Result<(), TestCaseError> {
        let parent = self.last_offer.first().and_then(|job| job.parent);
        let queued = self.model.jobs.values().find(|entry| Some(entry.id) == parent && !entry.out);
        if let Some((id, host)) = queued.map(|entry| (entry.id, entry.host.clone())) {
            while !self.out.contains_key(&id) && self.pull(&host)? {}
        }
        Ok(())
    }

    fn offer(&mut self, jobs: Vec<Job>) -> Result<(), TestCaseError> {
        // The same id twice is offered by a parent only, whose children are known as long as it is out.
        let known: BTreeSet<RequestId> = self.model.jobs.values().map(|entry| entry.id).collect();
        let is_sibling = |job: &Job| {
            let siblings = job.parent.and_then(|parent| self.model.children.get(&parent));
            siblings.is_some_and(|siblings| siblings.contains(&job.id))
        };
        let is_out = |job: &Job| job.parent.is_some_and(|parent| self.out.contains_key(&parent));
        let mut new = BTreeSet::new();
        let is_new = |job: &Job| is_sibling(job) || !known.contains(&job.id) && (new.insert(job.id) || is_out(job));
        let jobs: Vec<Job> = jobs.into_iter().filter(is_new).collect();
        self.last_offer.clone_from(&jobs);
        let expected = self.model.offer(&jobs);
        let mut offered = jobs;
        prop_assert_eq!(self.store.offer(&mut offered).map_err(failed)?, expected);
        prop_assert!(offered.is_empty());
        Ok(())
    }

    fn pull(&mut self, host: &str) -> Result<bool, TestCaseError> {
        let pulled = self.store.pull(&SlotKey(host.into()), self.now).map_err(failed)?;
        match (self.model.first(host, self.now), pulled) {
            (Ok(expected), Pulled::Job(job)) => {
                let got = Entry {
                    id: job.id,
                    host: SlotKey::of(job.url()).0.to_string(),
                    path: job.url().path().to_owned(),
                    priority: job.request.priority_value(),
                    attempts: job.attempts,
                    not_before: expected.not_before,
                    out: false,
                };
                prop_assert_eq!(&got, &*expected);
                expected.out = true;
                self.out.insert(job.id, *job);
                Ok(true)
            }
            (Err(Some(earliest)), Pulled::NotBefore(at)) if at == earliest => Ok(false),
            (Err(None), Pulled::Empty) => Ok(false),
            (expected, got) => Err(TestCaseError::fail(format!("{host}: expected {expected:?}, got {got:?}"))),
        }
    }

    fn compare(&mut self) -> Result<(), TestCaseError> {
        let books = self.store.books();
        prop_assert!(books.balances());
        prop_assert_eq!(books, self.model.books);
        prop_assert_eq!(books.pending, self.model.jobs.len() as u64);
        prop_assert_eq!(self.store.cursors(), self.model.cursors);
        let slots = self.store.slots().into_iter().map(|(slot, at)| (slot.0.to_string(), at.max(self.now)));
        prop_assert_eq!(slots.collect::<BTreeMap<_, _>>(), self.model.slots(self.now));
        let now = self.now;
        self.model.gates.retain(|_, until| *until > now);
        prop_assert_eq!(&self.store.gates(now).into_iter().collect::<BTreeMap<_, _>>(), &self.model.gates);
        for name in STATES {
            prop_assert_eq!(self.store.saved(name).map_err(failed)?, self.model.states.get(name).cloned());
        }
        Ok(())
    }
}
