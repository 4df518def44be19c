//! The numbers of a reporter: what may be set, and what has been counted.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use serde::Serialize;

use crate::spinneret::Result;
use crate::spinneret::error::Error;
use crate::spinneret::messages::RejectedReport;

/// The most reports the server takes in one call (wire contract, 4.2).
const MOST_OF_A_CALL: usize = 500;

/// What is called for every report the server will never take.
pub type OnRejected = Arc<dyn Fn(&RejectedReport) + Send + Sync>;

/// How reports are gathered and sent (wire contract, section 12). Begin with [`Default`] and set fields.
#[derive(Clone)]
#[non_exhaustive]
pub struct ReporterOptions {
    /// The longest time a report waits for others. More than zero; default 200 ms.
    pub flush_interval: Duration,
    /// A batch is sent at once when so many are queued. 1 to `max_batch_size`; default 100.
    pub batch_size: usize,
    /// The most reports of a call. 1 to 500; default 500.
    pub max_batch_size: usize,
    /// The most reports that wait, those of a call under way not counted. At least `max_batch_size`; default 10,000.
    pub max_queue_size: usize,
    /// The step of the first wait after a failure. More than zero; default 500 ms.
    pub backoff_initial: Duration,
    /// The longest step. At least `backoff_initial`; default 30 s.
    pub backoff_max: Duration,
    /// How long closing may take, and how long what is queued is still tried when every handle is gone. Default 5 s;
    /// zero drops what is queued.
    pub close_timeout: Duration,
    /// Called once for each rejected report, on the task that sends, outside every lock. It must be quick: nothing is
    /// sent meanwhile. A panic in it is caught and logged. A handle of the reporter kept in it keeps the reporter alive
    /// until it is closed.
    pub on_rejected: Option<OnRejected>,
}

impl ReporterOptions {
    /// The same with this callback in [`Self::on_rejected`].
    #[must_use]
    pub fn with_on_rejected(mut self, callback: impl Fn(&RejectedReport) + Send + Sync + 'static) -> Self {
        self.on_rejected = Some(Arc::new(callback));
        self
    }

    /// Checks every bound. Building a client does it.
    ///
    /// # Errors
    /// [`Error::Configuration`] names the field, what it is, and what it may be.
    pub fn validate(&self) -> Result<()> {
        let refuse = |field: &str, value: &dyn fmt::Debug, allowed: &str| {
            Err(Error::configuration(format!("reporter.{field} is {value:?}, it must be {allowed}")))
        };
        if self.flush_interval.is_zero() {
            return refuse("flush_interval", &self.flush_interval, "more than 0");
        }
        if !(1..=MOST_OF_A_CALL).contains(&self.max_batch_size) {
            return refuse("max_batch_size", &self.max_batch_size, &format!("1 to {MOST_OF_A_CALL}"));
        }
        if !(1..=self.max_batch_size).contains(&self.batch_size) {
            return refuse("batch_size", &self.batch_size, &format!("1 to max_batch_size, {}", self.max_batch_size));
        }
        if self.max_queue_size < self.max_batch_size {
            let allowed = format!("at least max_batch_size, {}", self.max_batch_size);
            return refuse("max_queue_size", &self.max_queue_size, &allowed);
        }
        if self.backoff_initial.is_zero() {
            return refuse("backoff_initial", &self.backoff_initial, "more than 0");
        }
        if self.backoff_max < self.backoff_initial {
            let allowed = format!("at least backoff_initial, {:?}", self.backoff_initial);
            return refuse("backoff_max", &self.backoff_max, &allowed);
        }
        Ok(())
    }
}

impl Default for ReporterOptions {
    fn default() -> Self {
        Self {
            flush_interval: Duration::from_millis(200),
            batch_size: 100,
            max_batch_size: MOST_OF_A_CALL,
            max_queue_size: 10_000,
            backoff_initial: Duration::from_millis(500),
            backoff_max: Duration::from_secs(30),
            close_timeout: Duration::from_secs(5),
            on_rejected: None,
        }
    }
}

impl fmt::Debug for ReporterOptions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ReporterOptions")
            .field("flush_interval", &self.flush_interval)
            .field("batch_size", &self.batch_size)
            .field("max_batch_size", &self.max_batch_size)
            .field("max_queue_size", &self.max_queue_size)
            .field("backoff_initial", &self.backoff_initial)
            .field("backoff_max", &self.backoff_max)
            .field("close_timeout", &self.close_timeout)
            .field("on_rejected", &self.on_rejected.is_some())
            .finish()
    }
}

/// What a reporter has done since it was made.
///
/// At every moment `submitted = sent + dropped + queued + in_flight`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
#[non_exhaustive]
pub struct ReporterStats {
    /// Reports taken.
    pub submitted: u64,
    /// Reports in successful calls.
    pub sent: u64,
    /// Reports new to the server.
    pub accepted: u64,
    /// Reports the server had already.
    pub duplicated: u64,
    /// Reports the server will never take.
    pub rejected: u64,
    /// Reports given up: no room, a failure for good, no time at the end, in doubt for too long.
    pub dropped: u64,
    /// Calls that failed.
    pub failed_sends: u64,
    /// Reports that wait now.
    pub queued: u64,
    /// Reports of the call that is under way now.
    pub in_flight: u64,
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing)]

    use super::*;

    type Change = fn(&mut ReporterOptions);

    /// A negative `close_timeout` or size cannot be written: the types have no such value.
    #[test]
    fn b102_options_outside_their_bounds_are_refused_by_name() {
        let wrong: [(Change, &str); 10] = [
            (|o| o.flush_interval = Duration::ZERO, "reporter.flush_interval is 0ns, it must be more than 0"),
            (|o| o.max_batch_size = 0, "reporter.max_batch_size is 0, it must be 1 to 500"),
            (|o| o.max_batch_size = 501, "reporter.max_batch_size is 501, it must be 1 to 500"),
            (|o| o.batch_size = 0, "reporter.batch_size is 0, it must be 1 to max_batch_size, 500"),
            (|o| o.batch_size = 501, "reporter.batch_size is 501, it must be 1 to max_batch_size, 500"),
            (|o| o.max_batch_size = 99, "reporter.batch_size is 100, it must be 1 to max_batch_size, 99"),
            (|o| o.max_queue_size = 499, "reporter.max_queue_size is 499, it must be at least max_batch_size, 500"),
            (|o| o.max_queue_size = 0, "reporter.max_queue_size is 0, it must be at least max_batch_size, 500"),
            (|o| o.backoff_initial = Duration::ZERO, "reporter.backoff_initial is 0ns, it must be more than 0"),
            (
                |o| o.backoff_max = Duration::from_millis(499),
                "reporter.backoff_max is 499ms, it must be at least backoff_initial, 500ms",
            ),
        ];
        for (change, message) in wrong {
            let mut options = ReporterOptions::default();
            change(&mut options);
            let error = options.validate().unwrap_err();
            assert!(matches!(error, Error::Configuration(_)), "{error}");
            assert_eq!(error.message(), message);
        }
    }

    #[test]
    fn b102_options_at_their_bounds_are_taken() {
        let right: [Change; 5] = [
            |_| {},
            |o| o.flush_interval = Duration::from_nanos(1),
            |o| (o.batch_size, o.max_batch_size, o.max_queue_size) = (1, 1, 1),
            |o| (o.batch_size, o.max_queue_size) = (500, 500),
            |o| o.close_timeout = Duration::ZERO,
        ];
        for change in right {
            let mut options = ReporterOptions::default();
            change(&mut options);
            options.validate().unwrap();
        }
    }

    #[test]
    fn the_defaults_are_those_of_the_contract() {
        let text = format!("{:?}", ReporterOptions::default());
        assert_eq!(
            text,
            "ReporterOptions { flush_interval: 200ms, batch_size: 100, max_batch_size: 500, max_queue_size: 10000, \
             backoff_initial: 500ms, backoff_max: 30s, close_timeout: 5s, on_rejected: false }"
        );
    }
}
