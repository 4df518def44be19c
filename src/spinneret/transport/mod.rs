//! One exchange with the server, whatever carries it.
//!
//! Knows bytes, a status and headers. Never waits between attempts and never decides whether there is another one.

mod fault;
mod gzip;
mod http;
#[cfg(test)]
pub(crate) mod loopback;
mod slots;

use std::error::Error as StdError;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use ::http::HeaderMap;
use bytes::Bytes;
use futures_util::future::BoxFuture;

pub(crate) use self::fault::seconds;
pub(crate) use self::http::{HttpTransport, Line, Salutation, bearer};
use super::error_kind::ErrorKind;
use super::procedure::Procedure;

/// Carries one attempt of a call.
pub(crate) trait Transport: fmt::Debug + Send + Sync + 'static {
    /// Sends the body and reads the answer. Dropping the future ends the attempt.
    fn send(&self, attempt: Attempt) -> BoxFuture<'_, Result<Reply, Fault>>;

    /// Lets connections of its own go.
    fn close(&self) {}
}

/// One attempt.
#[derive(Clone)]
pub(crate) struct Attempt {
    pub(crate) procedure: Procedure,
    /// The JSON text.
    pub(crate) body: Bytes,
    /// How long the answer may take.
    pub(crate) read_timeout: Duration,
}

/// What came back: any status. The body is decoded from its content coding.
pub(crate) struct Reply {
    pub(crate) status: u16,
    pub(crate) headers: HeaderMap,
    pub(crate) body: Bytes,
}

/// An attempt without an answer.
#[derive(Debug, Clone)]
pub(crate) struct Fault {
    pub(crate) kind: ErrorKind,
    pub(crate) phase: Phase,
    /// What went wrong, in plain words and without a secret.
    pub(crate) message: String,
    pub(crate) source: Option<Arc<dyn StdError + Send + Sync>>,
}

/// How far the attempt came, which decides whether it may be made again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Phase {
    /// Provably nothing was sent: every call may be made again.
    Unsent,
    /// Perhaps the server has it: only an idempotent call may be made again.
    Ambiguous,
    /// Making it again cannot help: a proxy's refusal, an untrusted certificate.
    Permanent,
}
