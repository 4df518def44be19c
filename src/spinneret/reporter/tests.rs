//! Behaviours of the reporter on the paused clock, against a scripted server.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing)]

mod close;
mod failure;
mod log;
mod restart;
mod room;
mod send;

use std::sync::Arc;
use std::time::Duration;

use serde_json::Value;

use super::*;
use crate::spinneret::procedure::Procedure;
use crate::spinneret::retry::{RetryPolicy, Timeouts};
use crate::spinneret::testing::{Script, Step};

pub(super) fn sample(n: usize) -> Report {
    let at = jiff::Timestamp::from_second(1_789_000_000).unwrap();
    Report {
        report_id: format!("r{n}"),
        lease_id: format!("lse_{n}"),
        uri: format!("/search/{n}"),
        method: "GET".to_owned(),
        http_status: 200,
        business_code: String::new(),
        error_kind: String::new(),
        markers: Vec::new(),
        outcome_hint: String::new(),
        latency_ms: 120,
        response_bytes: 4_096,
        started_at: at,
        finished_at: at,
        release: false,
    }
}

fn releasing(n: usize) -> Report {
    Report { release: true, ..sample(n) }
}

fn ms(ms: u64) -> Duration {
    Duration::from_millis(ms)
}

/// A reporter and the server it speaks with.
struct Bench {
    script: Arc<Script>,
    reporter: Reporter,
    wire: Arc<Wire>,
}

impl Bench {
    fn new(change: impl FnOnce(&mut ReporterOptions)) -> Self {
        let mut options = ReporterOptions::default();
        change(&mut options);
        options.validate().unwrap();
        let script = Script::new();
        let wire = Arc::new(Wire::new(script.clone(), Timeouts::default(), RetryPolicy::default()));
        let reporter = Reporter::new(Arc::clone(&wire), Releaser::new(Arc::clone(&wire)), options);
        Self { script, reporter, wire }
    }

    fn submit(&self, numbers: impl IntoIterator<Item = usize>) {
        for n in numbers {
            self.reporter.submit(sample(n)).unwrap();
        }
    }

    /// The report ids of each call.
    fn batches(&self) -> Vec<Vec<String>> {
        let ids = |body: &Value| ids_of(body["reports"].as_array().unwrap());
        self.script.bodies(Procedure::Report).iter().map(ids).collect()
    }

    /// The leases that were given back by a call.
    fn released(&self) -> Vec<String> {
        self.script.bodies(Procedure::Release).iter().map(|body| body["lease_id"].as_str().unwrap().to_owned()).collect()
    }

    /// When each `Report` call was made, from the first of them on.
    fn times(&self) -> Vec<Duration> {
        let seen: Vec<_> = self.script.seen().into_iter().filter(|seen| seen.procedure == Procedure::Report).collect();
        seen.iter().map(|call| call.at - seen[0].at).collect()
    }

    /// The counters that must always add up do.
    fn check_sum(&self) {
        let stats = self.reporter.stats();
        assert_eq!(stats.submitted, stats.sent + stats.dropped + stats.queued + stats.in_flight, "{stats:?}");
    }
}

fn ids_of(reports: &[Value]) -> Vec<String> {
    reports.iter().map(|report| report["report_id"].as_str().unwrap().to_owned()).collect()
}

fn ids(numbers: impl IntoIterator<Item = usize>) -> Vec<String> {
    numbers.into_iter().map(|n| format!("r{n}")).collect()
}

/// Lets every task run that can, without moving the clock by more than a millisecond.
async fn settle() {
    tokio::time::sleep(ms(1)).await;
}

fn refuse(status: u16, code: &'static str, reason: &'static str, hint: Option<u64>) -> Step {
    Step::Refuse { status, code, reason, hint }
}
