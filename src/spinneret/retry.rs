//! How long a call may take and whether it is made again.

use std::time::Duration;

use super::Result;
use super::backoff::Backoff;
use super::error::Error;
use super::procedure::Procedure;
use super::transport::{Fault, Phase};
use crate::dice::Dice;

/// Limits of time of one attempt.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Timeouts {
    /// The longest time to connect, TLS included. Default 3 s.
    pub connect: Duration,
    /// The longest wait for the answer; what the server itself may wait is added. Default 10 s.
    pub read: Duration,
    /// The longest time a connection may take no byte of the request. Default 10 s.
    pub write: Duration,
    /// The longest wait for one of the connections when all are in use (`ClientBuilder::max_connections`). Default 10 s.
    pub pool: Duration,
    /// What is added to the time of a long poll. Default 5 s.
    pub watch_grace: Duration,
}

impl Default for Timeouts {
    fn default() -> Self {
        Self {
            connect: Duration::from_secs(3),
            read: Duration::from_secs(10),
            write: Duration::from_secs(10),
            pool: Duration::from_secs(10),
            watch_grace: Duration::from_secs(5),
        }
    }
}

/// Whether and when a failed call is made again. Only the client's own calls are: the reporter and the watchers have
/// waits of their own.
///
/// A call is made again when the server says that it cannot serve it now, or when nothing of it was sent; calls other
/// than those that acquire leases also when nobody knows whether they were served. Never for a paused site, an open
/// circuit, a limit that is reached or an error of the program.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RetryPolicy {
    /// Further attempts after the first. Default 2.
    pub max_retries: u32,
    /// The longest hint of the server that is waited for, itself included; with a longer one the error is returned at
    /// once. Default 5 s.
    pub max_retry_after: Duration,
    /// The step of the wait before the first retry; it doubles with each one, and a wait is between half its step and the
    /// step. A hint makes it longer. Default 100 ms.
    pub backoff_initial: Duration,
    /// The longest step. Default 2 s.
    pub backoff_max: Duration,
}

impl Default for RetryPolicy {
    fn default() -> Self {
        Self {
            max_retries: 2,
            max_retry_after: Duration::from_secs(5),
            backoff_initial: Duration::from_millis(100),
            backoff_max: Duration::from_secs(2),
        }
    }
}

impl RetryPolicy {
    /// One attempt.
    pub const NO_RETRY: Self =
        Self { max_retries: 0, max_retry_after: Duration::ZERO, backoff_initial: Duration::ZERO, backoff_max: Duration::ZERO };

    /// The usual policy with the two limits as plain numbers, as a file of settings holds them.
    ///
    /// # Errors
    /// [`Error::Configuration`] when one is negative, too large or not a number.
    pub fn from_numbers(max_retries: i64, max_retry_after_seconds: f64) -> Result<Self> {
        let max_retries = u32::try_from(max_retries).map_err(|_| {
            Error::configuration(format!("max_retries of the retry policy is {max_retries}; it must be 0 to {}", u32::MAX))
        })?;
        let max_retry_after = Duration::try_from_secs_f64(max_retry_after_seconds).map_err(|_| {
            Error::configuration(format!(
                "max_retry_after of the retry policy is {max_retry_after_seconds}; it must be a number of seconds, 0 or more"
            ))
        })?;
        Ok(Self { max_retries, max_retry_after, ..Self::default() })
    }

    /// The waits of one call.
    pub(super) fn backoff(&self, dice: Dice) -> Backoff {
        Backoff::new(self.backoff_initial, self.backoff_max, dice)
    }

    /// The wait before a further attempt after `retries` of them; none when there is none, or the hint is too long.
    pub(super) fn wait(&self, backoff: &mut Backoff, retries: u32, hint: Option<Duration>) -> Option<Duration> {
        let hint = hint.unwrap_or_default();
        (retries < self.max_retries && hint <= self.max_retry_after).then(|| backoff.wait(retries).max(hint))
    }
}

/// Which calls a failure allows to be made again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Again {
    /// None.
    No,
    /// Those that do no harm when they are served twice.
    IfIdempotent,
    /// All.
    Yes,
}

impl Again {
    /// After an attempt without an answer.
    pub(super) const fn after_fault(fault: &Fault) -> Self {
        match fault.phase {
            Phase::Unsent => Self::Yes,
            Phase::Ambiguous => Self::IfIdempotent,
            Phase::Permanent => Self::No,
        }
    }

    /// After an answer that is an error.
    pub(super) fn after_answer(error: &Error) -> Self {
        let details = error.details();
        match error {
            Error::CircuitOpen(_) | Error::SitePaused(_) => Self::No,
            // Of something in between: the server may have served the call all the same.
            _ if details.is_bare && matches!(details.http_status, 429 | 502..=504) => Self::IfIdempotent,
            Error::Unavailable(_) if !details.is_bare => Self::Yes,
            _ => Self::No,
        }
    }

    pub(super) const fn allows(self, procedure: Procedure) -> bool {
        match self {
            Self::No => false,
            Self::IfIdempotent => procedure.is_idempotent(),
            Self::Yes => true,
        }
    }
}
