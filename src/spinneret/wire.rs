//! Calls: encoded, sent, made again where the wire contract allows it, decoded.
//!
//! Everything that talks to the server holds one `Arc<Wire>`; after [`Wire::close`] it refuses every call.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use bytes::Bytes;
use secrecy::SecretString;

use super::Result;
use super::answer::{self, Redactor};
use super::error::Error;
use super::procedure::Rpc;
use super::retry::{RetryPolicy, Timeouts};
use super::transport::{Attempt, Transport};

/// The way to one server.
pub(crate) struct Wire {
    transport: Arc<dyn Transport>,
    timeouts: Timeouts,
    retry: RetryPolicy,
    redactor: Redactor,
    is_closed: AtomicBool,
}

impl Wire {
    pub(crate) fn new(transport: Arc<dyn Transport>, timeouts: Timeouts, retry: RetryPolicy) -> Self {
        Self { transport, timeouts, retry, redactor: Redactor::default(), is_closed: AtomicBool::new(false) }
    }

    /// Hides this token in what the server or something in between writes.
    pub(crate) fn hiding(mut self, token: SecretString) -> Self {
        self.redactor = Redactor::new(token);
        self
    }

    /// Makes a call with the client's own policy.
    pub(crate) async fn call<R: Rpc>(&self, request: &R) -> Result<R::Answer> {
        self.call_with(request, &self.retry).await
    }

    /// Makes a call once: background loops have a back-off of their own.
    pub(crate) async fn call_once<R: Rpc>(&self, request: &R) -> Result<R::Answer> {
        self.call_with(request, &RetryPolicy::NO_RETRY).await
    }

    async fn call_with<R: Rpc>(&self, request: &R, _retry: &RetryPolicy) -> Result<R::Answer> {
        request.validate()?;
        if self.is_closed() {
            return Err(Error::client_closed());
        }
        let body =
            serde_json::to_vec(request).map_err(|_| Error::invalid(format!("{} cannot be written as JSON", R::PROCEDURE)))?;
        let attempt =
            Attempt { procedure: R::PROCEDURE, body: Bytes::from(body), read_timeout: request.read_timeout(&self.timeouts) };
        let reply = self.transport.send(attempt).await.map_err(|fault| Error::transport(R::PROCEDURE, fault))?;
        answer::read::<R>(&reply, &self.redactor)
    }

    /// Refuses every call from now on.
    pub(crate) fn close(&self) {
        self.is_closed.store(true, Ordering::Release);
        self.transport.close();
    }

    pub(crate) fn is_closed(&self) -> bool {
        self.is_closed.load(Ordering::Acquire)
    }
}

impl fmt::Debug for Wire {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Wire").field("transport", &self.transport).field("is_closed", &self.is_closed()).finish_non_exhaustive()
    }
}
