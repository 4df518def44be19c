//! Reports: what became of the requests made under a lease.

use std::fmt;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use super::bounds::{self, Broken};
use super::hidden::PathOnly;
use super::{timestamp, tolerant};
use crate::spinneret::procedure::{Procedure, Rpc};
use crate::spinneret::{ErrorKind, Result};

/// What one request was like. Made by a lease, or by [`ReportDraft`](crate::spinneret::ReportDraft). `Debug` shows of the
/// URI the path, and nothing that was found in a body.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Report {
    /// The key under which the server knows repetitions, 1 to 64 characters of `A-Z a-z 0-9 _ . : -`; made once and kept
    /// for every retry.
    #[serde(default, alias = "reportId", deserialize_with = "tolerant::or_default")]
    pub report_id: String,
    /// The lease, 1 to 128 characters.
    #[serde(default, alias = "leaseId", deserialize_with = "tolerant::or_default")]
    pub lease_id: String,
    /// The path that was asked for, 1 to 2048 characters.
    #[serde(default, deserialize_with = "tolerant::or_default")]
    pub uri: String,
    /// The method, at most 16 characters.
    #[serde(default, deserialize_with = "tolerant::or_default")]
    pub method: String,
    /// The status, 0 to 999; 0 without a response.
    #[serde(default, alias = "httpStatus", deserialize_with = "tolerant::integer")]
    pub http_status: i32,
    /// The status code found in the body, at most 64 characters.
    #[serde(default, alias = "businessCode", deserialize_with = "tolerant::or_default")]
    pub business_code: String,
    /// How the transport failed (one of the eight words of the wire contract, the empty one included).
    #[serde(default, alias = "errorKind", deserialize_with = "tolerant::or_default")]
    pub error_kind: String,
    /// What was seen, at most 32 words of 1 to 64 characters.
    #[serde(default, deserialize_with = "tolerant::or_default")]
    pub markers: Vec<String>,
    /// A proposed outcome, at most 32 characters.
    #[serde(default, alias = "outcomeHint", deserialize_with = "tolerant::or_default")]
    pub outcome_hint: String,
    /// How long it took, in milliseconds, not negative.
    #[serde(default, alias = "latencyMs", deserialize_with = "tolerant::integer")]
    pub latency_ms: i32,
    /// Bytes of the body, not negative.
    #[serde(default, alias = "responseBytes", deserialize_with = "tolerant::integer")]
    pub response_bytes: i64,
    /// When the request was sent.
    #[serde(alias = "startedAt", serialize_with = "timestamp::write", deserialize_with = "timestamp::read")]
    pub started_at: Timestamp,
    /// When it ended; not before `started_at`.
    #[serde(alias = "finishedAt", serialize_with = "timestamp::write", deserialize_with = "timestamp::read")]
    pub finished_at: Timestamp,
    /// Whether the lease ends with this report.
    #[serde(default, deserialize_with = "tolerant::or_default")]
    pub release: bool,
}

impl Report {
    /// Checks every bound of the wire contract.
    ///
    /// # Errors
    /// [`Error::InvalidArgument`](crate::spinneret::Error::InvalidArgument) names the field, what it holds and what is
    /// allowed.
    pub fn validate(&self) -> Result<()> {
        Ok(self.check_bounds()?)
    }

    fn check_bounds(&self) -> Result<(), Broken> {
        bounds::text("report_id", &self.report_id, 1..=64)?;
        let is_allowed = |character: char| character.is_ascii_alphanumeric() || "_.:-".contains(character);
        bounds::alphabet("report_id", &self.report_id, is_allowed, "A-Z a-z 0-9 _ . : -")?;
        bounds::text("lease_id", &self.lease_id, 1..=128)?;
        bounds::text("uri", &self.uri, 1..=2048)?;
        bounds::text("method", &self.method, 0..=16)?;
        bounds::number("http_status", self.http_status, 0..=999)?;
        bounds::text("business_code", &self.business_code, 0..=64)?;
        check_error_kind(&self.error_kind)?;
        bounds::count("markers", self.markers.len(), 0..=32)?;
        for (index, marker) in self.markers.iter().enumerate() {
            if bounds::text("marker", marker, 1..=64).is_err() {
                bounds::text(&format!("markers[{index}]"), marker, 1..=64)?;
            }
        }
        bounds::text("outcome_hint", &self.outcome_hint, 0..=32)?;
        bounds::number("latency_ms", self.latency_ms, 0..=i32::MAX)?;
        bounds::number("response_bytes", self.response_bytes, 0..=i64::MAX)?;
        if self.finished_at < self.started_at {
            let (started, finished) = (self.started_at, self.finished_at);
            return Err(Broken::new(format!("finished_at is {finished}, allowed are {started} (started_at) and later")));
        }
        Ok(())
    }
}

impl fmt::Debug for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Report")
            .field("report_id", &self.report_id)
            .field("lease_id", &self.lease_id)
            .field("method", &self.method)
            .field("uri", &PathOnly(&self.uri))
            .field("http_status", &self.http_status)
            .field("error_kind", &self.error_kind)
            .field("latency_ms", &self.latency_ms)
            .field("release", &self.release)
            .finish_non_exhaustive()
    }
}

/// A batch of reports, 1 to 500.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct ReportRequest {
    /// The reports.
    #[serde(deserialize_with = "tolerant::messages")]
    pub reports: Vec<Report>,
}

/// What became of a batch.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct ReportResponse {
    /// How many are new.
    #[serde(deserialize_with = "tolerant::integer")]
    pub accepted: i32,
    /// How many the server had already.
    #[serde(deserialize_with = "tolerant::integer")]
    pub duplicated: i32,
    /// Those it will never take.
    #[serde(deserialize_with = "tolerant::messages")]
    pub rejected: Vec<RejectedReport>,
}

/// A report the server will never take.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct RejectedReport {
    /// Which.
    #[serde(deserialize_with = "tolerant::or_default")]
    pub report_id: String,
    /// `invalid_argument`, `lease_unknown` or `scope_missing`.
    #[serde(deserialize_with = "tolerant::or_default")]
    pub reason: String,
    /// What a person reads.
    #[serde(deserialize_with = "tolerant::or_default")]
    pub message: String,
}

impl Rpc for ReportRequest {
    type Answer = ReportResponse;
    const PROCEDURE: Procedure = Procedure::Report;

    fn validate(&self) -> Result<()> {
        bounds::count("reports", self.reports.len(), 1..=500)?;
        for (index, report) in self.reports.iter().enumerate() {
            report.check_bounds().map_err(|broken| broken.at("reports", index))?;
        }
        Ok(())
    }
}

fn check_error_kind(kind: &str) -> Result<(), Broken> {
    if kind.is_empty() || ErrorKind::of(kind).is_some() {
        return Ok(());
    }
    let start: String = kind.chars().take(16).collect();
    let known = ErrorKind::ALL.map(ErrorKind::as_str).join(", ");
    Err(Broken::new(format!("error_kind is {start:?}, allowed are the empty text, {known}")))
}
