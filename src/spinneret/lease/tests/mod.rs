#![allow(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing)]

mod background;
mod block;
mod interleavings;
mod release;
mod renewal;
mod reports;
mod runtimes;

use std::time::Duration;

use serde_json::Value;

use super::*;
use crate::spinneret::messages::Report;
use crate::spinneret::testing::{Logs, Script, Step};
use crate::spinneret::{Client, ReportDraft};

/// A client and the server it talks to.
struct Rig {
    script: Arc<Script>,
    client: Client,
}

impl Rig {
    fn new() -> Self {
        let script = Script::new();
        let client = Client::builder().build_over(script.clone()).unwrap();
        Self { script, client }
    }

    fn lease(&self) -> NewLease {
        self.client.lease(AcquireRequest::new("shop", "web").uri("/feed?page=2")).unwrap()
    }

    async fn acquire(&self) -> Lease {
        self.lease().acquire().await.unwrap()
    }

    /// The ids the server was asked to release.
    fn released(&self) -> Vec<String> {
        self.script.bodies(Procedure::Release).iter().map(|body| body["lease_id"].as_str().unwrap().to_owned()).collect()
    }

    fn calls(&self, procedure: Procedure) -> usize {
        self.script.bodies(procedure).len()
    }

    /// Status and `release` of every report that arrived.
    async fn reports(&self) -> Vec<(i64, bool)> {
        self.client.reporter().flush(None).await;
        self.script.reports().iter().map(|report| (report["http_status"].as_i64().unwrap(), is_releasing(report))).collect()
    }

    /// Everything that goes on in the background has ended.
    async fn settle(&self) {
        assert_eq!(self.client.ways().releaser.drain(Duration::from_secs(3600)).await, 0);
    }

    fn close_wire(&self) {
        self.client.ways().wire.close();
    }
}

fn is_releasing(report: &Value) -> bool {
    report["release"].as_bool().unwrap()
}

fn refuse(status: u16, code: &'static str, reason: &'static str) -> Step {
    Step::Refuse { status, code, reason, hint: None }
}

fn unavailable() -> Step {
    refuse(503, "unavailable", "overloaded")
}

/// Fails for good in a call, and is tried again in the background.
fn internal() -> Step {
    refuse(500, "internal", "internal")
}

fn ms(ms: u64) -> Duration {
    Duration::from_millis(ms)
}

fn secs(seconds: u64) -> Duration {
    Duration::from_secs(seconds)
}
