//! The HTTP cache around the wire: what is asked of it before a request goes out, and what it makes of the answer.
//!
//! With the cache switched off nothing here does anything.

use std::time::Duration;

use http::StatusCode;

use super::{Chain, asked_wait, counters};
use crate::api::failure::{FailureKind, Fault};
use crate::downloader::message::{Attempt, Verdict};
use crate::downloader::middleware::http_cache::{Asked, Came, Looked, Then};
use crate::downloader::middleware::retry::{self, Allowance};
use crate::downloader::progress::Tally;
use crate::downloader::transport::{Outgoing, Reply};
use crate::plane::Grant;
use crate::scheduler::job::Job;

/// Why a request goes out again whose stored answer was confirmed and is gone.
const GONE: &str = "httpcache_gone";

/// What the report on an attempt says of its answer: what came over the wire, whatever the request gets.
pub(super) struct Seen {
    status: StatusCode,
    bytes: u64,
    pub(super) latency: Duration,
    pub(super) markers: Vec<String>,
    /// `Retry-After`, read.
    pub(super) asked: Option<Duration>,
}

impl Seen {
    /// Of an answer from the wire.
    pub(super) fn of(reply: &Reply, latency: Duration, markers: Vec<String>) -> Self {
        Self { status: reply.status, bytes: reply.body.len() as u64, latency, markers, asked: asked_wait(reply) }
    }

    /// Of one that a middleware gave.
    pub(super) fn given(reply: &Reply) -> Self {
        Self { bytes: 0, ..Self::of(reply, Duration::ZERO, vec![]) }
    }

    /// Of one from the cache: a wait that it asked for is over.
    fn stored(status: StatusCode) -> Self {
        Self { status, bytes: 0, latency: Duration::ZERO, markers: vec![], asked: None }
    }

    pub(super) fn attempt(self, tally: &Tally<'_>) -> Attempt {
        Attempt {
            sent_at: tally.progress.sent_at(),
            latency: self.latency,
            waited: tally.progress.waited(),
            bytes: self.bytes,
            charged: tally.progress.charged(),
            retry_after: self.asked,
            markers: self.markers,
            lease: Some(tally.progress.lease()),
            ..Attempt::answered(self.status.as_u16())
        }
    }
}

impl Chain {
    /// Looks for a stored answer; the error is the end of a request that does not go out.
    pub(super) async fn look_up(
        &self,
        job: &Job,
        grant: &Grant,
        outgoing: &mut Outgoing,
        tally: &Tally<'_>,
    ) -> Result<Option<Asked>, Box<(Verdict, Attempt)>> {
        let Some(cache) = &self.cache else { return Ok(None) };
        match cache.look_up(job, grant, outgoing, tally).await {
            Looked::Ask(asked) => Ok(Some(asked)),
            Looked::Missing(fault) => {
                counters::exception(&self.stats, &fault);
                Err(Box::new((Verdict::Fail(fault.clone(), None), tally.progress.attempt(fault))))
            }
            Looked::Hit(reply, name) => {
                let seen = Seen::stored(reply.status);
                let ended = self.answered(job, grant, tally, *reply, seen).await;
                cache.settle(Then::Used(name), is_tried_again(&ended.0)).await;
                Err(Box::new(ended))
            }
        }
    }

    /// An answer came over the wire.
    pub(super) async fn came(
        &self,
        asked: Option<Asked>,
        job: &Job,
        grant: &Grant,
        tally: &Tally<'_>,
        reply: Reply,
        seen: Seen,
    ) -> (Verdict, Attempt) {
        let (Some(cache), Some(asked)) = (&self.cache, asked) else {
            return self.answered(job, grant, tally, reply, seen).await;
        };
        match cache.came(asked, job, grant, reply, tally).await {
            Came::Reply(reply, then) => {
                let ended = self.answered(job, grant, tally, reply, seen).await;
                cache.settle(then, is_tried_again(&ended.0)).await;
                ended
            }
            Came::Again if job.attempts == 0 || retry::allowance(&self.live.now().retry, job) == Allowance::Left => {
                (self.retry(job, GONE.to_owned(), None, Some(Duration::ZERO)), seen.attempt(tally))
            }
            Came::Again => {
                let message = "the site says that the stored answer still holds, and that can be neither read nor removed; see to \
                               HTTPCACHE_DIR";
                (Verdict::Fail(Fault::new(FailureKind::NotCached, message), None), seen.attempt(tally))
            }
        }
    }

    /// What becomes of a request that had no answer, if a stored one may stand in for it.
    pub(super) async fn in_spite_of_fault(
        &self,
        asked: Option<Asked>,
        job: &Job,
        grant: &Grant,
        tally: &Tally<'_>,
    ) -> Option<Verdict> {
        let (cache, asked) = (self.cache.as_ref()?, asked?);
        let (reply, then) = cache.in_spite_of_fault(asked, tally).await?;
        let seen = Seen::stored(reply.status);
        let (verdict, _) = self.answered(job, grant, tally, reply, seen).await;
        cache.settle(then, is_tried_again(&verdict)).await;
        Some(verdict)
    }
}

fn is_tried_again(verdict: &Verdict) -> bool {
    matches!(verdict, Verdict::Retry { .. })
}
