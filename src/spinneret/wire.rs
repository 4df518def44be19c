//! Calls: encoded, sent, made again where the wire contract allows it, decoded.
//!
//! Everything that talks to the server holds one `Arc<Wire>`; after [`Wire::close`] it refuses every call.

use std::fmt;
use std::pin::pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use secrecy::SecretString;
use tokio::runtime::Handle;
use tokio::sync::Notify;
use tokio::time::{Instant, sleep, timeout_at};

use super::Result;
use super::answer::{self, Redactor};
use super::error::Error;
use super::error_kind::ErrorKind;
use super::procedure::{Procedure, Rpc};
use super::retry::{Again, RetryPolicy, Timeouts};
use super::transport::{Attempt, Fault, Phase, Reply, Transport, seconds};
use crate::dice::Dice;

/// The way to one server.
pub(crate) struct Wire {
    transport: Arc<dyn Transport>,
    timeouts: Timeouts,
    retry: RetryPolicy,
    /// How long a call may take, all attempts and waits together.
    deadline: Option<Duration>,
    redactor: Redactor,
    dice: Mutex<Dice>,
    is_closed: AtomicBool,
    closing: Notify,
}

impl Wire {
    pub(crate) fn new(transport: Arc<dyn Transport>, timeouts: Timeouts, retry: RetryPolicy) -> Self {
        let seed = getrandom::u64().unwrap_or_else(|_| u64::from(std::process::id()));
        Self {
            transport,
            timeouts,
            retry,
            deadline: None,
            redactor: Redactor::default(),
            dice: Mutex::new(Dice::new(seed)),
            is_closed: AtomicBool::new(false),
            closing: Notify::new(),
        }
    }

    /// Hides this token in what the server or something in between writes.
    pub(crate) fn hiding(mut self, token: SecretString) -> Self {
        self.redactor = Redactor::new(token);
        self
    }

    /// Ends calls of [`Self::call`] after so long, all attempts and waits together.
    pub(crate) const fn with_deadline(mut self, deadline: Option<Duration>) -> Self {
        self.deadline = deadline;
        self
    }

    /// Makes a call with the client's own policy.
    pub(crate) async fn call<R: Rpc>(&self, request: &R) -> Result<R::Answer> {
        self.call_with(request, &self.retry, self.deadline).await
    }

    /// Makes a call once: background loops have a back-off of their own.
    pub(crate) async fn call_once<R: Rpc>(&self, request: &R) -> Result<R::Answer> {
        self.call_with(request, &RetryPolicy::NO_RETRY, None).await
    }

    async fn call_with<R: Rpc>(&self, request: &R, retry: &RetryPolicy, deadline: Option<Duration>) -> Result<R::Answer> {
        request.validate()?;
        let mut closing = pin!(self.closing.notified());
        // From here on no end is missed.
        closing.as_mut().enable();
        if self.is_closed() {
            return Err(Error::client_closed());
        }
        if Handle::try_current().is_err() {
            return Err(Error::configuration(
                "a call was made outside of a tokio runtime; await it within one, or use the blocking client",
            ));
        }
        let body =
            serde_json::to_vec(request).map_err(|_| Error::invalid(format!("{} cannot be written as JSON", R::PROCEDURE)))?;
        let attempt =
            Attempt { procedure: R::PROCEDURE, body: Bytes::from(body), read_timeout: request.read_timeout(&self.timeouts) };
        let limit = deadline.and_then(|whole| Some(Limit { whole, end: Instant::now().checked_add(whole)? }));
        tokio::select! {
            biased;
            () = closing => Err(Error::client_closed()),
            answer = self.attempts::<R>(attempt, retry, limit) => answer,
        }
    }

    async fn attempts<R: Rpc>(&self, attempt: Attempt, retry: &RetryPolicy, limit: Option<Limit>) -> Result<R::Answer> {
        let (mut retries, mut backoff) = (0, None);
        loop {
            let (again, error) = match self.send(attempt.clone(), limit).await {
                Ok(reply) => match answer::read::<R>(&reply, &self.redactor) {
                    Ok(answer) => return Ok(answer),
                    Err(error) => (Again::after_answer(&error), error),
                },
                Err(fault) => (Again::after_fault(&fault), Error::transport(R::PROCEDURE, fault)),
            };
            if !again.allows(R::PROCEDURE) {
                return Err(error);
            }
            let backoff = backoff.get_or_insert_with(|| retry.backoff(self.dice()));
            let Some(wait) = retry.wait(backoff, retries, error.retry_after()) else {
                return Err(error);
            };
            if limit.is_some_and(|limit| limit.end.saturating_duration_since(Instant::now()) <= wait) {
                return Err(error);
            }
            retries += 1;
            log(R::PROCEDURE, retries + 1, wait, &error);
            sleep(wait).await;
        }
    }

    async fn send(&self, attempt: Attempt, limit: Option<Limit>) -> Result<Reply, Fault> {
        let sending = self.transport.send(attempt);
        match limit {
            None => sending.await,
            Some(limit) => timeout_at(limit.end, sending).await.unwrap_or_else(|_| Err(limit.fault())),
        }
    }

    /// Dice for the waits of one call.
    fn dice(&self) -> Dice {
        Dice::new(self.dice.lock().unwrap_or_else(PoisonError::into_inner).roll())
    }

    /// Refuses every call from now on; those under way end.
    pub(crate) fn close(&self) {
        self.is_closed.store(true, Ordering::SeqCst);
        self.closing.notify_waiters();
        self.transport.close();
    }

    pub(crate) fn is_closed(&self) -> bool {
        self.is_closed.load(Ordering::SeqCst)
    }
}

impl fmt::Debug for Wire {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Wire").field("transport", &self.transport).field("is_closed", &self.is_closed()).finish_non_exhaustive()
    }
}

/// The end of a call.
#[derive(Debug, Clone, Copy)]
struct Limit {
    whole: Duration,
    end: Instant,
}

impl Limit {
    /// There is no time left: nothing is tried again after this.
    fn fault(self) -> Fault {
        let message = format!("no answer within the deadline of {} for all attempts of a call", seconds(self.whole));
        Fault { kind: ErrorKind::Timeout, phase: Phase::Permanent, message, source: None }
    }
}

/// What is told of a retry: nothing that the request or the answer holds.
fn log(procedure: Procedure, attempt: u32, wait: Duration, error: &Error) {
    let kind = error.error_kind().map_or_else(|| error.code().as_str(), |kind| kind.as_str());
    tracing::debug!(target: "spinneret", %procedure, attempt, delay_ms = wait.as_millis(), error_kind = kind, "the call is made again");
}

#[cfg(test)]
mod tests;
