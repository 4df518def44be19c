//! A batch to deliver, for the tests of sinks.
#![allow(clippy::expect_used)]

use std::sync::Arc;

use futures_util::FutureExt as _;

use super::webhook::Webhook;
use crate::apcloudy::{Answer, BodyBuilder, JobId, RecordKind};
use crate::collector::batch::{Batch, Counts};
use crate::collector::log::{BatchId, SeqRange};

/// Delivers to a sink that answers at once.
pub(crate) fn deliver(sink: &mut impl Webhook, batch: Batch) -> Answer {
    sink.deliver(Arc::new(batch)).now_or_never().expect("this sink answers at once")
}

/// The batch of a job that starts at a number: one item, one good and one failed request, one log line.
pub(crate) fn batch(job: i64, first: u64) -> Batch {
    let job = JobId::from(job);
    let mut body = BodyBuilder::new();
    body.push(RecordKind::Item, &format!("{{\"title\": \"\\u0416\", \"n\": {first}, \"_ts\": 1700000000}}"));
    for (status, error, success) in [(200, "null", true), (0, "\"DownloadTimeoutError: slow\"", false)] {
        body.push(
            RecordKind::Request,
            &format!("{{\"url\": \"http://h/{first}/{status}\", \"parent_url\": null, \"method\": \"GET\", \"status_code\": {status}, \"response_time\": 0.5, \"fingerprint\": \"ab\", \"error\": {error}, \"success\": {success}}}"),
        );
    }
    body.push(RecordKind::Log, "{\"time\": \"2026-11-30 16:50:47\", \"level\": \"INFO\", \"logger\": \"a.b\", \"message\": \"m\", \"exception\": null, \"index\": 4}");
    Batch {
        id: BatchId::of(&job, 1, first),
        range: SeqRange { first, last: first },
        counts: Counts { requests: 2, items: 1, logs: 1, stats: 0 },
        body: body.finish(&job),
        job,
    }
}
