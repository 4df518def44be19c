//! The cases: each runs alone in a process and answers figures by name.

use std::collections::BTreeMap;
use std::hint::black_box;
use std::path::Path;
use std::time::{Duration, Instant};

use dragline::scheduler::job::{Job, Outcome, RequestId};
use dragline::scheduler::store::{Pulled, Store};
use dragline::testkit::hosts::KnownHosts;
use xxhash_rust::xxh3::xxh3_128;

use crate::machine;
use crate::server;
use crate::stores::{Kind, Place};
use crate::work::{BATCH, Finds, Mix, Parent, Web};

/// Pulls and settles of one turn.
const TURN: u64 = 16;
/// Offers made ahead, so that making them is not measured.
const AHEAD: u64 = 64;
/// Pulls and settles that are measured at most.
const MOST_DRAINED: u64 = 500_000;
/// How long a store may tidy up before its memory and disk are measured.
const REST: Duration = Duration::from_secs(2);

pub(crate) type Figures = BTreeMap<String, f64>;

/// A case.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Case {
    /// A queue that grows and is worked off: so many hosts, all new or one in twenty.
    Queue { hosts: u64, is_all_new: bool },
    /// Keys only.
    Seen,
    /// Hosts with one request each, in a whole frontier.
    Hosts,
}

impl Case {
    pub(crate) fn name(&self) -> String {
        match self {
            Self::Queue { hosts, is_all_new } => format!("queue-{hosts}-{}", if *is_all_new { "new" } else { "known" }),
            Self::Seen => "seen".to_owned(),
            Self::Hosts => "hosts".to_owned(),
        }
    }

    pub(crate) fn named(name: &str) -> Self {
        match name.split('-').collect::<Vec<_>>()[..] {
            ["queue", hosts, mix] => Self::Queue { hosts: hosts.parse().unwrap(), is_all_new: mix == "new" },
            ["seen"] => Self::Seen,
            ["hosts"] => Self::Hosts,
            _ => panic!("no case is called {name}"),
        }
    }

    /// Runs it with `count` new requests, keys or hosts.
    pub(crate) fn run(&self, kind: Kind, count: u64, dir: &Path) -> Figures {
        if kind == Kind::Redis {
            return server::run(self, count);
        }
        let place = Place::new(kind, dir);
        match self {
            Self::Queue { hosts, is_all_new } => {
                queue(&place, Web { hosts: *hosts }, if *is_all_new { Mix::AllNew } else { Mix::OneInTwenty }, count)
            }
            Self::Seen => seen(&place, count),
            Self::Hosts => hosts(&place, count),
        }
    }
}

/// Wall time of parts.
#[derive(Debug, Default)]
pub(crate) struct Watch {
    wall: Duration,
    pub(crate) count: u64,
}

impl Watch {
    pub(crate) fn time<T>(&mut self, count: u64, what: impl FnOnce() -> T) -> T {
        let began = Instant::now();
        let result = what();
        self.wall += began.elapsed();
        self.count += count;
        result
    }

    /// Nanoseconds for each.
    pub(crate) fn each(&self) -> f64 {
        self.wall.as_secs_f64() * 1e9 / self.count.max(1) as f64
    }
}

fn queue(place: &Place, web: Web, mix: Mix, count: u64) -> Figures {
    let mut figures = Figures::new();
    let mut finds = Finds::new(mix);
    // What making requests takes is there before.
    drop((0..AHEAD * BATCH).map(|page| web.job(page, page, &Parent::start(web))).collect::<Vec<Job>>());
    let base = machine::resident();
    let mut store = place.open();
    machine::forget_peak();

    let mut offers = Watch::default();
    let (mut making, began) = (Duration::ZERO, machine::process_cpu());
    let mut parent = Parent::start(web);
    let mut parents = 0;
    while finds.found() < count {
        let made = machine::thread_cpu();
        let ahead: Vec<(u64, Vec<u64>)> = (0..AHEAD).map(|_| (finds.found(), finds.batch())).collect();
        making += machine::thread_cpu().saturating_sub(made);
        for (found, pages) in ahead {
            let made = machine::thread_cpu();
            // A page for each twenty new ones, so that the queue grows the same.
            if found / BATCH > parents
                && let Some(next) = pull(&mut *store, web, parents)
            {
                store.settle(parent.id, Outcome::Handled).unwrap();
                parent = Parent::of(&next);
                parents += 1;
            }
            let first = parent.made;
            parent.made += BATCH;
            let mut jobs: Vec<Job> = (first..).zip(&pages).map(|(index, page)| web.job(*page, index, &parent)).collect();
            making += machine::thread_cpu().saturating_sub(made);
            offers.time(BATCH, || {
                black_box(store.offer(&mut jobs).unwrap());
                store.commit().unwrap();
            });
        }
    }
    let offering = machine::process_cpu().saturating_sub(began).saturating_sub(making);
    let pending = store.books().pending;
    assert!(store.books().balances() && store.books().enqueued == finds.found(), "{:?}", store.books());
    figures.insert("offer_ns".into(), offers.each());
    figures.insert("offer_cpu_ns".into(), offering.as_secs_f64() * 1e9 / offers.count as f64);
    if place.lasts() {
        std::thread::sleep(REST);
    }
    let queued = pending.max(1) as f64;
    figures.insert("queued".into(), pending as f64);
    figures.insert("rss_b".into(), (machine::resident() - base) / queued);
    figures.insert("peak_b".into(), (machine::peak() - base) / queued);
    figures.insert("counted_b".into(), store.weight() as f64 / queued);
    figures.insert("beside_b".into(), place.bytes() / queued);
    drain(&mut *store, web, parents, pending.min(MOST_DRAINED), &mut figures);
    if place.lasts() {
        let books = store.books();
        drop(store);
        let mut opening = Watch::default();
        let store = opening.time(1, || place.open());
        figures.insert("open_s".into(), opening.each() / 1e9);
        assert_eq!((store.books(), store.books().balances()), (books, true));
    }
    figures
}

/// Works off `count` requests.
fn drain(store: &mut dyn Store, web: Web, from: u64, count: u64, figures: &mut Figures) {
    let (mut pulls, mut settles) = (Watch::default(), Watch::default());
    let (mut making, began) = (Duration::ZERO, machine::process_cpu());
    let now = Duration::from_secs(1);
    let mut page = from;
    while pulls.count < count {
        let made = machine::thread_cpu();
        let slots: Vec<_> = (page..page + TURN).map(|page| web.slot(page)).collect();
        page += TURN;
        let mut out: Vec<RequestId> = Vec::with_capacity(slots.len());
        making += machine::thread_cpu().saturating_sub(made);
        pulls.time(TURN, || {
            for slot in &slots {
                if let Pulled::Job(job) = store.pull(slot, now).unwrap() {
                    out.push(black_box(job).id);
                }
            }
        });
        settles.time(TURN, || {
            for id in &out {
                store.settle(*id, Outcome::Handled).unwrap();
            }
            store.commit().unwrap();
        });
    }
    let cpu = machine::process_cpu().saturating_sub(began).saturating_sub(making);
    figures.insert("pull_ns".into(), pulls.each());
    figures.insert("settle_ns".into(), settles.each());
    figures.insert("drain_ns".into(), pulls.each() + settles.each());
    figures.insert("drain_cpu_ns".into(), cpu.as_secs_f64() * 1e9 / pulls.count as f64);
    assert!(store.books().balances(), "{:?}", store.books());
}

fn pull(store: &mut dyn Store, web: Web, page: u64) -> Option<Box<Job>> {
    match store.pull(&web.slot(page), Duration::from_secs(1)).unwrap() {
        Pulled::Job(job) => Some(job),
        _ => None,
    }
}

fn seen(place: &Place, count: u64) -> Figures {
    let mut store = place.open();
    // What is made once is there before, and small sets are left out: they cost what a page of memory costs.
    (0..1_000_u64).for_each(|n| drop(store.mark_seen(xxh3_128(&(u64::MAX - n).to_le_bytes()))));
    store.commit().unwrap();
    let first = count / 4;
    let base = machine::resident();
    machine::forget_peak();
    let (mut worst, mut worst_peak) = (0.0_f64, 0.0_f64);
    let mut marks = Watch::default();
    let mut next_look = first;
    for from in (0..count).step_by(BATCH as usize) {
        let to = (from + BATCH).min(count);
        let keys: Vec<u128> = (from..to).map(|n| xxh3_128(&n.to_le_bytes())).collect();
        marks.time(to - from, || {
            for key in keys {
                black_box(store.mark_seen(key).unwrap());
            }
            store.commit().unwrap();
        });
        if to >= next_look {
            next_look = to + count / 200;
            worst = worst.max((machine::resident() - base) / to as f64);
            worst_peak = worst_peak.max((machine::peak() - base) / to as f64);
            machine::forget_peak();
        }
    }
    if place.lasts() {
        std::thread::sleep(REST);
    }
    Figures::from([
        ("mark_ns".into(), marks.each()),
        ("rss_b".into(), (machine::resident() - base) / count as f64),
        ("worst_b".into(), worst),
        ("peak_b".into(), worst_peak),
        ("beside_b".into(), place.bytes() / count as f64),
    ])
}

fn hosts(place: &Place, count: u64) -> Figures {
    let web = Web { hosts: count };
    let mut frontier = KnownHosts::new(place.open(), 1);
    let parent = Parent::start(web);
    drop((0..AHEAD * BATCH).map(|page| web.job(page, page, &parent)).collect::<Vec<Job>>());
    let base = machine::resident();
    let (mut offers, mut pulls, mut settles) = (Watch::default(), Watch::default(), Watch::default());
    for from in (0..count).step_by(BATCH as usize) {
        let jobs: Vec<Job> = (from..(from + BATCH).min(count)).map(|page| web.job(page, page, &parent)).collect();
        offers.time(BATCH, || frontier.offer(jobs));
    }
    if place.lasts() {
        std::thread::sleep(REST);
    }
    let resident = machine::resident() - base;
    while pulls.count < count.min(MOST_DRAINED) {
        let out = pulls.time(TURN, || frontier.pull(TURN));
        settles.time(TURN, || frontier.settle(out));
    }
    let books = frontier.books();
    assert!(books.balances() && books.handled == pulls.count.min(count), "{books:?}");
    Figures::from([
        ("rss_b".into(), resident / count as f64),
        ("offer_ns".into(), offers.each()),
        ("pull_ns".into(), pulls.each()),
        ("settle_ns".into(), settles.each()),
    ])
}
