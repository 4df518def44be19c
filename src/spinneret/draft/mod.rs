//! A report in the making: everything that is not said is derived (wire contract, section 11).
//!
//! Knows no lease, no queue and no socket. What is said wins over what is derived, in whatever order it is said.

mod business_code;
mod path;
mod sources;
mod stopwatch;
#[cfg(test)]
mod tests;

use std::fmt;
use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use uuid::Uuid;

pub use business_code::BusinessCode;
pub(crate) use path::of as path_of;
pub use stopwatch::Stopwatch;

use super::Result;
use super::error::Error;
use super::error_kind::ErrorKind;
use super::messages::Report;

/// What is known of a request that ended. [`Self::build`] makes the report, or a lease does.
///
/// ```
/// use dragline::spinneret::{ReportDraft, Stopwatch};
///
/// let stopwatch = Stopwatch::start();
/// // … the request is made, and its body read …
/// let report = ReportDraft::status(200)
///     .method("GET")
///     .uri("https://shop.example/products/12?page=2")
///     .business_code(0)
///     .timed(stopwatch)
///     .build("lse_1", "")?;
/// assert_eq!((report.uri.as_str(), report.business_code.as_str()), ("/products/12", "0"));
/// assert!(report.started_at <= report.finished_at);
/// # Ok::<(), dragline::spinneret::Error>(())
/// ```
///
/// The texts and numbers are checked when the report is built; see [`Report`] for the bounds. `Debug` shows nothing that
/// was found in a body.
#[derive(Clone, PartialEq, Eq, Default)]
#[must_use = "a draft is no report: give it to a lease"]
pub struct ReportDraft {
    report_id: Option<String>,
    /// Already a path: a signed query would be a secret.
    uri: Option<String>,
    method: Option<String>,
    http_status: u16,
    business_code: Option<BusinessCode>,
    error_kind: Option<ErrorKind>,
    markers: Vec<String>,
    outcome_hint: Option<String>,
    latency: Option<Duration>,
    response_bytes: u64,
    started_at: Option<Timestamp>,
    finished_at: Option<Timestamp>,
    reading: Option<stopwatch::Reading>,
    release: bool,
}

impl ReportDraft {
    /// Nothing known yet: no response, and no failure either.
    pub fn new() -> Self {
        Self::default()
    }

    /// The key under which the server knows repetitions: 1 to 64 of `A-Z a-z 0-9 _ . : -`. Without it a random UUID is
    /// made, once.
    pub fn report_id(mut self, id: impl Into<String>) -> Self {
        self.report_id = Some(id.into());
        self
    }

    /// What was asked for, a URL or a path; without it, what the lease was acquired for. Only the path is kept, at most
    /// 2048 characters.
    pub fn uri(mut self, uri: impl AsRef<str>) -> Self {
        self.uri = Some(path::of(uri.as_ref()));
        self
    }

    /// The method, at most 16 characters, sent as it is given.
    pub fn method(mut self, method: impl AsRef<str>) -> Self {
        self.method = Some(method.as_ref().to_owned());
        self
    }

    /// The status, 0 to 999; 0 without a response. Nothing is derived from it, unlike [`Self::status`].
    pub const fn http_status(mut self, status: u16) -> Self {
        self.http_status = status;
        self
    }

    /// The status code found in the body, at most 64 characters: a text or a number.
    ///
    /// A truth value is neither:
    /// ```compile_fail
    /// dragline::spinneret::ReportDraft::status(200).business_code(true);
    /// ```
    pub fn business_code(mut self, code: impl Into<BusinessCode>) -> Self {
        self.business_code = Some(code.into());
        self
    }

    /// How the transport failed.
    pub const fn error_kind(mut self, kind: ErrorKind) -> Self {
        self.error_kind = Some(kind);
        self
    }

    /// The transport did not fail, whatever was derived.
    pub const fn without_error_kind(mut self) -> Self {
        self.error_kind = None;
        self
    }

    /// One thing that was seen (`captcha_page`), a word of 1 to 64 characters; at most 32 of them.
    pub fn marker(mut self, marker: impl Into<String>) -> Self {
        self.markers.push(marker.into());
        self
    }

    /// Several things that were seen, beside those named before.
    pub fn markers<M: Into<String>>(mut self, markers: impl IntoIterator<Item = M>) -> Self {
        self.markers.extend(markers.into_iter().map(Into::into));
        self
    }

    /// A proposed outcome (`success`, `captcha`), at most 32 characters. The server follows it only where the site's
    /// policy trusts hints and none of its rules speaks.
    pub fn outcome_hint(mut self, outcome: impl Into<String>) -> Self {
        self.outcome_hint = Some(outcome.into());
        self
    }

    /// How long it took, rounded to milliseconds; at most 2,147,483,647 of them. Kept even if the two times disagree.
    pub const fn latency(mut self, latency: Duration) -> Self {
        self.latency = Some(latency);
        self
    }

    /// Bytes of the decoded body.
    pub const fn response_bytes(mut self, bytes: u64) -> Self {
        self.response_bytes = bytes;
        self
    }

    /// When the request was sent. Without it, the end less the time it took.
    pub const fn started_at(mut self, at: Timestamp) -> Self {
        self.started_at = Some(at);
        self
    }

    /// When the request ended, not before it was sent. Without it, now.
    pub const fn finished_at(mut self, at: Timestamp) -> Self {
        self.finished_at = Some(at);
        self
    }

    /// The request ends now, and took what the stopwatch shows. Call it when the body is read.
    pub fn timed(mut self, stopwatch: Stopwatch) -> Self {
        self.reading = Some(stopwatch.read());
        self
    }

    /// Ends the lease with this report.
    pub const fn release(mut self) -> Self {
        self.release = true;
        self
    }

    /// The report, for the lease of this name that was acquired for `acquired_uri` (empty if for no URI).
    ///
    /// # Errors
    /// [`Error::InvalidArgument`] names the field that breaks its bound. A lease that was acquired without a URI needs
    /// one in every report.
    pub fn build(self, lease_id: &str, acquired_uri: &str) -> Result<Report> {
        let times = self.times();
        let report = Report {
            report_id: self.report_id.unwrap_or_else(|| Uuid::new_v4().to_string()),
            lease_id: lease_id.to_owned(),
            uri: self.uri.unwrap_or_else(|| path::of(acquired_uri)),
            method: self.method.unwrap_or_default(),
            http_status: i32::from(self.http_status),
            business_code: self.business_code.map(BusinessCode::into_text).unwrap_or_default(),
            error_kind: self.error_kind.map(|kind| kind.to_string()).unwrap_or_default(),
            markers: self.markers,
            outcome_hint: self.outcome_hint.unwrap_or_default(),
            latency_ms: times.latency_ms?,
            response_bytes: i64::try_from(self.response_bytes).unwrap_or(i64::MAX),
            started_at: times.started_at,
            finished_at: times.finished_at,
            release: self.release,
        };
        if report.uri.is_empty() {
            return Err(Error::invalid("a report needs a uri: the lease was acquired without one, so say it in the draft"));
        }
        report.validate()?;
        Ok(report)
    }

    /// The two times and the time between, what is not said derived from what is.
    fn times(&self) -> Times {
        let read_at = self.reading.map(|reading| reading.at);
        // A clock that was set back must not make a report impossible: without a time of its own, the end is no earlier
        // than the start.
        let derived_end = || {
            let now = read_at.unwrap_or_else(Timestamp::now);
            self.started_at.map_or(now, |started| now.max(started))
        };
        let finished_at = self.finished_at.unwrap_or_else(derived_end);
        let took = self.reading.map(|reading| reading.elapsed).or(self.latency).unwrap_or_default();
        let started_at = self.started_at.unwrap_or_else(|| before(finished_at, took));
        let latency_ms = match (self.latency, self.reading) {
            (Some(said), _) => rounded_ms(said).ok_or_else(|| {
                let most = i32::MAX;
                Error::invalid(format!("latency is {} ms; at most {most} ms is allowed", said.as_millis()))
            }),
            (None, Some(reading)) => Ok(rounded_ms(reading.elapsed).unwrap_or(i32::MAX)),
            (None, None) => {
                let between = Duration::try_from(finished_at.duration_since(started_at)).unwrap_or_default();
                Ok(rounded_ms(between).unwrap_or(i32::MAX))
            }
        };
        Times { started_at, finished_at, latency_ms }
    }
}

impl fmt::Debug for ReportDraft {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ReportDraft")
            .field("uri", &self.uri)
            .field("method", &self.method)
            .field("http_status", &self.http_status)
            .field("error_kind", &self.error_kind)
            .field("release", &self.release)
            .finish_non_exhaustive()
    }
}

struct Times {
    started_at: Timestamp,
    finished_at: Timestamp,
    latency_ms: Result<i32>,
}

/// This long before, or the beginning of the calendar.
fn before(at: Timestamp, took: Duration) -> Timestamp {
    SignedDuration::try_from(took).ok().and_then(|took| at.checked_sub(took).ok()).unwrap_or(Timestamp::MIN)
}

/// Milliseconds, rounded; `None` when the wire has no room for them.
fn rounded_ms(duration: Duration) -> Option<i32> {
    i32::try_from(duration.as_nanos().saturating_add(500_000) / 1_000_000).ok()
}
