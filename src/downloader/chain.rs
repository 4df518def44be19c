//! One attempt from job to verdict: merge, hooks, wire, and the decisions on what came back.
//!
//! Order on the way out: merge, `before_send` from low to high, `authorize`, wire. On the way back: cookies and
//! counters, then redirect (600), retry (550) and status filter, with the user's hooks in between by their
//! numbers. Never sends a second time and never follows a redirect: it only says what should happen.

use std::fmt;
use std::iter::{Peekable, Rev};
use std::slice;
use std::sync::Arc;
use std::time::Duration;

use http::header::{COOKIE, PROXY_AUTHORIZATION, RETRY_AFTER};
use jiff::Timestamp;
use tokio::time::Instant;

use super::authorize::Authorize;
use super::config::{DownloaderConfig, Live};
use super::markers::Look;
use super::message::{Attempt, Verdict};
use super::middleware::cookies::{self, Leg};
use super::middleware::granted;
use super::middleware::hooks::{fenced, refused};
use super::middleware::jars::Jars;
use super::middleware::retry::{self, Allowance, Jitter};
use super::middleware::{http_error, merge, redirect, stats as counters};
use super::progress::{Progress, Tally};
use super::transport::{Excess, Limits, Meter, Outgoing, Reply, Transport};
use crate::api::failure::{FailureKind, Fault};
use crate::api::middleware::{AfterResponse, Attempting, BeforeSend, Installed, OnFault};
use crate::api::stats::Stats;
use crate::plane::Grant;
use crate::scheduler::job::{Job, JobKind};
use crate::settings::Settings;
use crate::web::retry_after::retry_after;
use crate::web::robots;

/// Where redirects are decided among the numbers of middlewares.
const REDIRECT_AT: i32 = 600;

/// Where retries are.
const RETRY_AT: i32 = 550;

/// The steps of a crawl, shared by all its attempts.
pub(crate) struct Chain {
    config: DownloaderConfig,
    /// What of the settings may change: read here and not in `config`.
    live: Live,
    transport: Arc<dyn Transport>,
    stats: Stats,
    jars: Arc<Jars>,
    jitter: Jitter,
    /// From low to high.
    middlewares: Vec<Installed>,
    authorizer: Option<Arc<dyn Authorize>>,
}

/// What a chain is made of.
pub(crate) struct ChainParts {
    /// The settings.
    pub(crate) config: DownloaderConfig,
    /// The wire.
    pub(crate) transport: Arc<dyn Transport>,
    /// The job's counters.
    pub(crate) stats: Stats,
    /// The cookies.
    pub(crate) jars: Arc<Jars>,
    /// The user's middlewares, in any order.
    pub(crate) middlewares: Vec<Installed>,
    /// The spider's `authorize`.
    pub(crate) authorizer: Option<Arc<dyn Authorize>>,
    /// Seed of the waits before retries.
    pub(crate) seed: u64,
}

/// What the way out came to.
enum Prepared {
    Send(Box<Outgoing>),
    Answer(Box<Reply>),
}

type Hooks<'a> = Peekable<Rev<slice::Iter<'a, Installed>>>;

impl Chain {
    pub(crate) fn new(parts: ChainParts) -> Self {
        let ChainParts { config, transport, stats, jars, mut middlewares, authorizer, seed } = parts;
        middlewares.sort_by_key(Installed::order);
        Self { live: Live::new(&config), config, transport, stats, jars, jitter: Jitter::new(seed), middlewares, authorizer }
    }

    /// Makes one attempt. `sent` is called at the instant of sending, if it comes to that.
    pub(crate) async fn run(
        &self,
        job: &Job,
        grant: &Grant,
        meter: &dyn Meter,
        progress: &Progress,
        sent: impl FnOnce(Instant) + Send,
    ) -> (Verdict, Attempt) {
        let tally = Tally { meter, progress };
        let outgoing = match self.prepare(job, grant).await {
            Ok(Prepared::Send(outgoing)) => *outgoing,
            Ok(Prepared::Answer(reply)) => {
                tally.take(reply.body.len()).await;
                return self.answered(job, grant, &tally, *reply, Duration::ZERO, vec![]).await;
            }
            Err(fault) => {
                counters::exception(&self.stats, &fault);
                return (Verdict::Fail(fault.clone(), None), progress.attempt(fault));
            }
        };
        counters::request(&self.stats, &outgoing);
        let sent_at = progress.send();
        sent(sent_at);
        match self.transport.exchange(outgoing, &tally).await {
            Ok(reply) => {
                let latency = sent_at.elapsed();
                counters::response(&self.stats, &reply, counters::head_bytes(&reply).saturating_add(reply.wire_bytes));
                if self.config.cookies {
                    self.jars.store(grant, job.url(), &reply.headers);
                }
                self.warn_of_size(job, &reply);
                // As the site sent it: hooks may change it.
                let markers = self.config.markers.of(job.url(), &Look::at(&reply));
                self.answered(job, grant, &tally, reply, latency, markers).await
            }
            Err(fault) => {
                let mut attempt = progress.attempt(fault.clone());
                if let Some(status) = attempt.status {
                    attempt.markers = self.config.markers.of(job.url(), &Look::at_status(status));
                }
                counters::exception(&self.stats, &fault);
                (self.failed(job, grant, fault).await, attempt)
            }
        }
    }

    /// Takes changed settings for what is decided from now on.
    pub(crate) fn live(&self, settings: &Settings) {
        self.live.replace(settings);
    }

    /// Drops what is due to go: idle clients, jars over the bound.
    pub(crate) fn tidy(&self) {
        self.transport.tidy();
        self.jars.tidy();
    }

    /// The way out.
    async fn prepare(&self, job: &Job, grant: &Grant) -> Result<Prepared, Fault> {
        let mut outgoing = Box::new(self.merged(job, grant));
        let attempting = Attempting::new(job, grant);
        for middleware in &self.middlewares {
            let run = async { middleware.hooks().before_send(&mut outgoing, attempting).await };
            match fenced(middleware.name(), "before_send", run).await? {
                BeforeSend::Continue => {}
                BeforeSend::Answer(reply) => return Ok(Prepared::Answer(reply)),
                BeforeSend::Refuse(reason) => return Err(refused(middleware.name(), &reason)),
            }
        }
        for middleware in &self.middlewares {
            let run = async { middleware.hooks().authorize(&mut outgoing, grant).await };
            let result = fenced(middleware.name(), "authorize", run).await?;
            result.map_err(|reason| refused(middleware.name(), &reason))?;
        }
        if let Some(authorizer) = &self.authorizer {
            let run = async { authorizer.authorize(&mut outgoing, grant).await };
            let result = fenced("the spider", "authorize", run).await?;
            result.map_err(|reason| refused("authorize of the spider", &reason))?;
        }
        // Connections belong to the lease, credentials to the host: no hook changes either.
        outgoing.identity.clone_from(&grant.identity);
        outgoing.proxy.clone_from(&grant.proxy);
        outgoing.headers.remove(PROXY_AUTHORIZATION);
        if outgoing.url.origin() != job.url().origin() {
            let message = "a hook changed scheme, host or port of the request; make a request of its own for another place";
            return Err(Fault::new(FailureKind::Middleware, message));
        }
        Ok(Prepared::Send(outgoing))
    }

    fn merged(&self, job: &Job, grant: &Grant) -> Outgoing {
        let (request, credential) = (&job.request, &*grant.credential);
        let mut headers = merge::headers(&self.config.base_headers, &credential.headers, request.headers());
        let jar = if self.config.cookies { self.jars.header(grant, job.url()) } else { None };
        let leg = if job.hops == 0 { Leg::First } else { Leg::Redirected };
        if let Some(value) = cookies::merge(request, jar, credential, &self.config.base_headers, leg) {
            headers.insert(COOKIE, value);
        }
        let mut url = job.url().clone();
        merge::query(&mut url, credential);
        let live = self.live.now();
        let limits = Limits { idle: live.idle, ..self.config.limits };
        let limits = match job.kind {
            JobKind::Page => Limits { total: request.timeout_value().unwrap_or(live.total), ..limits },
            // One byte more than is used tells that there was more.
            JobKind::Robots => {
                Limits { total: live.robots_timeout, max_bytes: robots::MAX_BYTES + 1, excess: Excess::IsCut, ..limits }
            }
        };
        Outgoing {
            method: request.method().clone(),
            url,
            headers,
            body: request.body_shared(),
            proxy: grant.proxy.clone(),
            identity: grant.identity.clone(),
            limits,
        }
    }

    /// The way back of an answer.
    async fn answered(
        &self,
        job: &Job,
        grant: &Grant,
        tally: &Tally<'_>,
        reply: Reply,
        latency: Duration,
        markers: Vec<String>,
    ) -> (Verdict, Attempt) {
        let asked = asked_wait(&reply);
        let status = reply.status.as_u16();
        let sent_at = tally.progress.sent_at();
        let bytes = sent_at.map_or(0, |_| reply.body.len() as u64);
        let mut verdict = self.judge(job, grant, tally, Box::new(reply), asked).await;
        if let Verdict::Deliver(reply) | Verdict::Fail(_, Some(reply)) = &mut verdict {
            granted::clear_headers(&mut reply.headers, job.url(), &grant.credential);
        }
        let attempt = Attempt {
            sent_at,
            latency,
            bytes,
            charged: tally.progress.charged(),
            retry_after: asked,
            markers,
            lease: Some(tally.progress.lease()),
            ..Attempt::answered(status)
        };
        (verdict, attempt)
    }

    async fn judge(
        &self,
        job: &Job,
        grant: &Grant,
        tally: &Tally<'_>,
        mut reply: Box<Reply>,
        asked: Option<Duration>,
    ) -> Verdict {
        let mut hooks = self.middlewares.iter().rev().peekable();
        if let Some(end) = self.respond(&mut hooks, REDIRECT_AT, job, grant, tally, &mut reply).await {
            return end.with(reply);
        }
        match redirect::decide(self.config.redirect, job, &grant.credential, reply.status, &reply.headers) {
            Some(Ok(hop)) => {
                counters::redirect(&self.stats, reply.status);
                return Verdict::Redirect { to: hop.to, becomes_get: hop.becomes_get };
            }
            Some(Err(fault)) => {
                counters::redirect_refused(&self.stats, &fault);
                return Verdict::Fail(fault, Some(reply));
            }
            None => {}
        }
        if let Some(end) = self.respond(&mut hooks, RETRY_AT, job, grant, tally, &mut reply).await {
            return end.with(reply);
        }
        if self.live.now().retry.codes.contains(&reply.status.as_u16()) {
            match retry::allowance(&self.live.now().retry, job) {
                Allowance::Left => return self.retry(job, retry::reason_of(reply.status).into_owned(), asked, None),
                Allowance::UsedUp => counters::retries_used_up(&self.stats),
                Allowance::Off => {}
            }
        }
        if let Some(end) = self.respond(&mut hooks, i32::MIN, job, grant, tally, &mut reply).await {
            return end.with(reply);
        }
        if http_error::is_wanted(&self.config.statuses, job, reply.status) {
            return Verdict::Deliver(reply);
        }
        counters::ignored(&self.stats, reply.status);
        Verdict::Fail(http_error::fault(reply.status), Some(reply))
    }

    /// Runs the response hooks down to a number.
    async fn respond(
        &self,
        hooks: &mut Hooks<'_>,
        down_to: i32,
        job: &Job,
        grant: &Grant,
        tally: &Tally<'_>,
        reply: &mut Reply,
    ) -> Option<End> {
        while let Some(middleware) = hooks.next_if(|middleware| middleware.order() >= down_to) {
            let before = reply.body.len();
            let run = async { middleware.hooks().after_response(reply, Attempting::new(job, grant)).await };
            let decided = fenced(middleware.name(), "after_response", run).await;
            // A body that a hook made longer takes its place in the window as well.
            tally.take(reply.body.len().saturating_sub(before)).await;
            match decided {
                Ok(AfterResponse::Continue) => {}
                Ok(AfterResponse::Retry { reason, after }) => {
                    return Some(match retry::allowance(&self.live.now().retry, job) {
                        Allowance::Left => End::Verdict(self.retry(job, reason, None, after)),
                        Allowance::UsedUp => {
                            counters::retries_used_up(&self.stats);
                            End::Fail(refused(middleware.name(), &format!("{reason}, with no retry left")))
                        }
                        Allowance::Off => End::Fail(refused(middleware.name(), &format!("{reason}, and RETRY_ENABLED is off"))),
                    });
                }
                Ok(AfterResponse::Refuse(reason)) => return Some(End::Fail(refused(middleware.name(), &reason))),
                Err(fault) => return Some(End::Fail(fault)),
            }
        }
        None
    }

    /// The way back of a fault.
    async fn failed(&self, job: &Job, grant: &Grant, fault: Fault) -> Verdict {
        let mut hooks = self.middlewares.iter().rev().peekable();
        if let Some(verdict) = self.faulted(&mut hooks, RETRY_AT, job, grant, &fault).await {
            return verdict;
        }
        if retry::is_retryable(&fault) {
            match retry::allowance(&self.live.now().retry, job) {
                Allowance::Left => return self.retry(job, retry::class_path(fault.kind).into_owned(), None, None),
                Allowance::UsedUp => counters::retries_used_up(&self.stats),
                Allowance::Off => {}
            }
        }
        let verdict = self.faulted(&mut hooks, i32::MIN, job, grant, &fault).await;
        verdict.unwrap_or(Verdict::Fail(fault, None))
    }

    /// Runs the fault hooks down to a number.
    async fn faulted(&self, hooks: &mut Hooks<'_>, down_to: i32, job: &Job, grant: &Grant, fault: &Fault) -> Option<Verdict> {
        while let Some(middleware) = hooks.next_if(|middleware| middleware.order() >= down_to) {
            let run = async { middleware.hooks().on_fault(fault, Attempting::new(job, grant)).await };
            match fenced(middleware.name(), "on_fault", run).await {
                Ok(OnFault::Continue) => {}
                Ok(OnFault::Retry { reason, after }) => {
                    match retry::allowance(&self.live.now().retry, job) {
                        Allowance::Left => return Some(self.retry(job, reason, None, after)),
                        Allowance::UsedUp => counters::retries_used_up(&self.stats),
                        Allowance::Off => {}
                    }
                    return Some(Verdict::Fail(fault.clone(), None));
                }
                Err(panicked) => return Some(Verdict::Fail(panicked, None)),
            }
        }
        None
    }

    fn retry(&self, job: &Job, reason: String, asked: Option<Duration>, fixed: Option<Duration>) -> Verdict {
        counters::retry(&self.stats, &reason);
        let after = fixed.unwrap_or_else(|| retry::wait(&self.live.now().retry, job.attempts, asked, &self.jitter));
        Verdict::Retry { reason, after }
    }

    fn warn_of_size(&self, job: &Job, reply: &Reply) {
        let size = reply.body.len();
        if self.config.warn_bytes > 0 && size >= self.config.warn_bytes {
            tracing::warn!(url = job.url().as_str(), size, "the body is larger than DOWNLOAD_WARNSIZE");
        }
    }
}

/// How a response hook ended the chain.
enum End {
    Verdict(Verdict),
    Fail(Fault),
}

impl End {
    fn with(self, reply: Box<Reply>) -> Verdict {
        match self {
            Self::Verdict(verdict) => verdict,
            Self::Fail(fault) => Verdict::Fail(fault, Some(reply)),
        }
    }
}

/// The wait a server asks for; on an answer that brings what was asked for it means nothing.
fn asked_wait(reply: &Reply) -> Option<Duration> {
    if reply.status.is_success() {
        return None;
    }
    let value = reply.headers.get(RETRY_AFTER)?.to_str().ok()?;
    retry_after(value, Timestamp::now())
}

impl fmt::Debug for Chain {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Chain").field("middlewares", &self.middlewares).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests;
