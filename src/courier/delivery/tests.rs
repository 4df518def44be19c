//! The state alone: a sink by a rule, and a driver that lets time pass by itself.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing)]

mod apart;
mod tries;

use std::collections::HashMap;
use std::sync::Mutex;

use futures_util::FutureExt as _;
use tempfile::TempDir;

use super::*;
use crate::apcloudy::{BodyBuilder, JobId, RecordKind};
use crate::collector::log::{BatchId, SeqRange};

const SECOND: Duration = Duration::from_secs(1);

type Calls = Arc<Mutex<Vec<(BatchId, Vec<usize>)>>>;
type Judge = Box<dyn FnMut(&[usize], &Batch) -> Answer + Send>;

/// A sink by a rule over the numbers of the records. What it takes it knows by id.
struct Ruled {
    judge: Judge,
    calls: Calls,
    taken: Arc<Mutex<HashMap<BatchId, Vec<usize>>>>,
}

impl Webhook for Ruled {
    fn deliver(&mut self, batch: Arc<Batch>) -> Pending {
        let numbers = numbers(&batch.body);
        self.calls.lock().unwrap().push((batch.id, numbers.clone()));
        let answer = (self.judge)(&numbers, &batch);
        if answer == Answer::Delivered {
            let before = self.taken.lock().unwrap().insert(batch.id, numbers.clone());
            assert!(before.is_none_or(|before| before == numbers), "one id, two contents");
        }
        Box::pin(std::future::ready(answer))
    }

    fn place(&self) -> String {
        "apcloudy http://h/".to_owned()
    }
}

/// A state with its sink and the spool, and a clock of its own.
struct Bench {
    state: CourierState,
    calls: Calls,
    taken: Arc<Mutex<HashMap<BatchId, Vec<usize>>>>,
    dir: Arc<TempDir>,
    stats: Stats,
    now: Instant,
    reports: Vec<Report>,
}

impl Bench {
    fn new(judge: impl FnMut(&[usize], &Batch) -> Answer + Send + 'static) -> Self {
        Self::with(OnFatal::Spool, judge)
    }

    fn with(on_fatal: OnFatal, judge: impl FnMut(&[usize], &Batch) -> Answer + Send + 'static) -> Self {
        let (calls, taken, stats) = (Calls::default(), Arc::default(), Stats::new());
        let dir = Arc::new(TempDir::new().unwrap());
        let sink = Ruled { judge: Box::new(judge), calls: Arc::clone(&calls), taken: Arc::clone(&taken) };
        let options = CourierOptions { spool: dir.path().to_owned(), on_fatal, seed: 3 };
        let state = CourierState::new(Box::new(sink), options, stats.clone());
        Self { state, calls, taken, dir, stats, now: Instant::now(), reports: Vec::new() }
    }

    fn take(&mut self, batch: &Batch, done: &[Part]) {
        let order = Order::Cut { batch: Arc::new(batch.clone()), done: done.to_vec() };
        self.state.take(order, Slot::empty(), self.now);
    }

    /// Does one thing; a wait passes. `false` when there is nothing to do.
    fn step(&mut self) -> bool {
        let mut step = self.state.step(self.now);
        if let Step::Call(pending, _) = step {
            let answer = pending.now_or_never().expect("the rule answers at once");
            step = self.state.answered(answer, self.now);
        }
        self.reports.extend(self.state.take_reports());
        match step {
            Step::Call(..) => panic!("two calls at once"),
            Step::Again => true,
            Step::Wait(at) => {
                assert!(at > self.now);
                self.now = at;
                true
            }
            Step::Idle => !self.state.queue.is_empty(),
        }
    }

    fn run(&mut self) {
        for _ in 0..10_000 {
            if !self.step() {
                return;
            }
        }
        panic!("it never ends: {:?}", self.state);
    }

    fn calls(&self) -> usize {
        self.calls.lock().unwrap().len()
    }

    /// The numbers of all records the sink has, sorted.
    fn taken(&self) -> Vec<usize> {
        let mut all: Vec<_> = self.taken.lock().unwrap().values().flatten().copied().collect();
        all.sort_unstable();
        all
    }

    fn settled(&self) -> Vec<How> {
        let settled = |report: &Report| match report {
            Report::Settled(settled) => Some(settled.how.clone()),
            Report::Part(_) | Report::Refused(_) => None,
        };
        self.reports.iter().filter_map(settled).collect()
    }

    fn parts(&self) -> Vec<Part> {
        let part = |report: &Report| match report {
            Report::Part(part) => Some(*part),
            Report::Settled(_) | Report::Refused(_) => None,
        };
        self.reports.iter().filter_map(part).collect()
    }

    /// The numbers of the records that were put aside, sorted, and the files they are in.
    fn aside(&self) -> (Vec<usize>, Vec<String>) {
        let (mut all, mut names) = (Vec::new(), Vec::new());
        for file in std::fs::read_dir(self.dir.path().join("rejected")).into_iter().flatten() {
            let path = file.unwrap().path();
            let form: serde_json::Value = serde_json::from_str(&std::fs::read_to_string(&path).unwrap()).unwrap();
            all.extend(numbers(&form["body"].to_string()));
            names.push(path.file_name().unwrap().to_str().unwrap().to_owned());
        }
        all.sort_unstable();
        names.sort();
        (all, names)
    }
}

fn numbers(body: &str) -> Vec<usize> {
    let body: serde_json::Value = serde_json::from_str(body).unwrap();
    let lists = ["requests", "items", "logs"].map(|list| body["data"][list].as_array().unwrap().clone());
    let stats = body["data"].get("stats").cloned();
    lists.into_iter().flatten().chain(stats).map(|record| record["n"].as_u64().unwrap() as usize).collect()
}

/// A batch of records numbered by their places: requests, items and logs in turns of thirds, and stats if asked for.
fn batch_of(n: usize, stats: bool) -> Batch {
    let job = JobId::from(7);
    let mut body = BodyBuilder::new();
    let mut counts = Counts::default();
    for place in 0..n {
        let kind = match place * 3 / n {
            _ if stats && place + 1 == n => RecordKind::Stats,
            0 => RecordKind::Request,
            1 => RecordKind::Item,
            _ => RecordKind::Log,
        };
        match kind {
            RecordKind::Request => counts.requests += 1,
            RecordKind::Item => counts.items += 1,
            RecordKind::Log => counts.logs += 1,
            RecordKind::Stats => counts.stats += 1,
        }
        body.push(kind, &format!("{{\"n\": {place}}}"));
    }
    let range = SeqRange { first: 1, last: n as u64 };
    Batch { id: BatchId::of(&job, 1, n as u64), range, counts, body: body.finish(&job), job }
}
