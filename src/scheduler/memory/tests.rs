#![allow(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing)]
use proptest::prelude::*;

use super::*;
use crate::scheduler::suite;
use crate::scheduler::testing::{child, job, unfiltered, with_priority};

const MIB: usize = 1 << 20;

#[test]
fn it_does_what_every_store_must() {
    suite::run(MemoryStore::new);
}

#[test]
fn a_full_store_takes_nothing_of_a_batch() {
    suite::a_full_store_takes_nothing_of_a_batch(&mut MemoryStore::new(MIB));
}

#[test]
fn a_drained_store_holds_nothing_but_what_it_has_seen() {
    let mut store = MemoryStore::new(usize::MAX);
    for n in 0..1_000 {
        suite::offer(&mut store, [job(n, &format!("http://{n}.test/"))]);
    }
    for n in 0..1_000 {
        let parent = suite::pull(&mut store, &format!("{n}.test"), Duration::ZERO).unwrap();
        suite::offer(&mut store, [child(parent.id, 0, &format!("http://{n}.test/"))]);
        store.settle(parent.id, Outcome::Handled).unwrap();
    }
    assert_eq!((store.job_bytes, store.child_count), (0, 0));
    assert!(store.lines.is_empty() && store.out.is_empty() && store.children.is_empty());
}

/// Bytes this process has resident.
#[cfg(target_os = "linux")]
fn resident() -> usize {
    let statm = std::fs::read_to_string("/proc/self/statm").unwrap();
    statm.split(' ').nth(1).unwrap().parse::<usize>().unwrap() * 4096
}

#[test]
#[cfg(target_os = "linux")]
fn two_hundred_thousand_jobs_and_a_million_seen_keys_stay_well_under_150_mb() {
    // In a process of its own: the other tests of this one come and go meanwhile.
    let this = std::env::current_exe().unwrap();
    let name = "scheduler::memory::tests::measure_two_hundred_thousand_jobs";
    let run = std::process::Command::new(this).args(["--exact", name, "--ignored", "--nocapture"]).output().unwrap();
    let told = String::from_utf8_lossy(&run.stdout);
    assert!(run.status.success() && told.contains("1 passed"), "{told}{}", String::from_utf8_lossy(&run.stderr));
}

#[test]
#[cfg(target_os = "linux")]
#[ignore = "run by the test above"]
fn measure_two_hundred_thousand_jobs() {
    let before = resident();
    let mut store = MemoryStore::new(usize::MAX);
    for n in 0..1_000_000_u64 {
        store.mark_seen(xxhash_rust::xxh3::xxh3_128(&n.to_le_bytes())).unwrap();
    }
    for start in (0..200_000).step_by(20) {
        let jobs = (start..start + 20).map(|n| job(n, &format!("https://shop.example/category/{}/item-{n}.html", n % 100)));
        suite::offer(&mut store, jobs);
    }
    assert_eq!((store.seen.len(), store.books().pending), (1_200_000, 200_000));
    let held = store.weight();
    let real = resident().saturating_sub(before);
    println!("weight() {} KiB, resident {} KiB", held / 1024, real / 1024);
    assert!(held < 130_000_000 && real < 135_000_000, "{held} held, {real} resident");
    assert!(held.abs_diff(real) < real / 5, "weight() tells {held} of {real} bytes");
}

#[derive(Debug, Clone)]
enum Op {
    Offer { page: u8, host: u8, priority: i32, unfiltered: bool, of_last: bool },
    Pull { host: u8 },
    PutBack { which: usize, host: u8, delay: u64 },
    Settle { which: usize },
    Tick(u64),
    Crash,
}

fn op() -> impl Strategy<Value = Op> {
    prop_oneof![
        6 => (any::<u8>(), 0_u8..3, -2_i32..3, any::<bool>(), any::<bool>()).prop_map(
            |(page, host, priority, unfiltered, of_last)| Op::Offer { page: page % 32, host, priority, unfiltered, of_last }
        ),
        6 => (0_u8..3).prop_map(|host| Op::Pull { host }),
        2 => (any::<usize>(), 0_u8..3, 0_u64..20).prop_map(|(which, host, delay)| Op::PutBack { which, host, delay }),
        2 => any::<usize>().prop_map(|which| Op::Settle { which }),
        1 => (1_u64..10).prop_map(Op::Tick),
        1 => Just(Op::Crash),
    ]
}

/// A frontier as one would write it down: lists, searched from end to end.
#[derive(Default)]
struct Model {
    queued: Vec<Waiting>,
    out: Vec<Waiting>,
    seen: Vec<u128>,
    children: Vec<(RequestId, RequestId)>,
    age: u64,
    books: Books,
}

#[derive(Clone)]
struct Waiting {
    id: RequestId,
    host: String,
    priority: i32,
    age: u64,
    not_before: Duration,
}

impl Model {
    fn offer(&mut self, job: &Job) -> Offered {
        let mut offered = Offered::default();
        if job.parent.is_some_and(|parent| self.children.contains(&(parent, job.id))) {
            offered.repeated = 1;
        } else if !job.request.is_unfiltered() && self.seen.contains(&job.key) {
            offered.duplicates = 1;
        } else {
            offered.stored = 1;
            self.seen.push(job.key);
            if let Some(parent) = job.parent
                && self.out.iter().any(|o| o.id == parent)
            {
                self.children.push((parent, job.id));
            }
            self.age += 1;
            self.books.enqueued += 1;
            self.books.pending += 1;
            self.queued.push(Waiting {
                id: job.id,
                host: job.url().host_str().unwrap().to_owned(),
                priority: job.request.priority_value(),
                age: self.age,
                not_before: Duration::ZERO,
            });
        }
        offered
    }

    fn pull(&mut self, host: &str, now: Duration) -> Option<RequestId> {
        let due = self.queued.iter().enumerate().filter(|(_, w)| w.host == host && w.not_before <= now);
        let (at, _) = due.max_by_key(|(_, w)| (w.priority, std::cmp::Reverse(w.age)))?;
        let taken = self.queued.remove(at);
        self.out.push(taken.clone());
        Some(taken.id)
    }
}

proptest! {
    #[test]
    fn it_behaves_like_a_list_searched_from_end_to_end(ops in proptest::collection::vec(op(), 1..200)) {
        let mut store = MemoryStore::new(usize::MAX);
        let mut model = Model::default();
        let mut out: Vec<Job> = Vec::new();
        let mut now = Duration::from_secs(100);
        let mut index = 0;
        for op in ops {
            match op {
                Op::Offer { page, host, priority, unfiltered: passes, of_last } => {
                    let url = format!("http://{host}.test/{page}");
                    let parent = if of_last { out.last() } else { None };
                    // Few children per parent, so that offers repeat.
                    let job = parent.map_or_else(|| { index += 1; job(index, &url) }, |p| child(p.id, u64::from(page % 4), &url));
                    let job = with_priority(if passes { unfiltered(job) } else { job }, priority);
                    let expected = model.offer(&job);
                    prop_assert_eq!(suite::offer(&mut store, [job]), expected);
                }
                Op::Pull { host } => {
                    let host = format!("{host}.test");
                    let got = suite::pull(&mut store, &host, now);
                    prop_assert_eq!(got.as_ref().map(|j| j.id), model.pull(&host, now));
                    out.extend(got.map(|j| *j));
                }
                Op::PutBack { which, host, delay } => if !out.is_empty() {
                    let mut job = out.swap_remove(which % out.len());
                    job.request.set_url(format!("http://{host}.test/back").parse().unwrap());
                    let not_before = now + Duration::from_secs(delay);
                    let at = model.out.iter().position(|w| w.id == job.id).unwrap();
                    let mut waiting = model.out.remove(at);
                    model.age += 1;
                    (waiting.age, waiting.not_before, waiting.host) = (model.age, not_before, format!("{host}.test"));
                    model.queued.push(waiting);
                    store.put_back(job, not_before).unwrap();
                },
                Op::Settle { which } => if !out.is_empty() {
                    let job = out.swap_remove(which % out.len());
                    model.out.retain(|w| w.id != job.id);
                    model.children.retain(|(parent, _)| *parent != job.id);
                    model.books.settle(Outcome::Handled);
                    prop_assert!(store.settle(job.id, Outcome::Handled).unwrap());
                },
                Op::Tick(seconds) => now += Duration::from_secs(seconds),
                Op::Crash => {
                    prop_assert_eq!(store.recover().unwrap(), u64::try_from(out.len()).unwrap());
                    out.clear();
                    for mut waiting in model.out.drain(..) {
                        waiting.not_before = Duration::ZERO;
                        model.queued.push(waiting);
                    }
                }
            }
            prop_assert_eq!(store.books(), model.books);
            prop_assert!(store.books().balances());
            let mut hosts: Vec<String> = store.slots().iter().map(|(slot, _)| slot.0.to_string()).collect();
            let mut expected: Vec<String> = model.queued.iter().map(|w| w.host.clone()).collect();
            hosts.sort();
            expected.sort();
            expected.dedup();
            prop_assert_eq!(hosts, expected);
        }
    }
}
