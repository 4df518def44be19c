//! A report in the making: everything that is not said is derived.

use std::time::Duration;

use jiff::Timestamp;

use super::Result;
use super::error_kind::ErrorKind;
use super::messages::Report;

/// What is known of a request that ended. [`Self::build`] makes the report.
#[derive(Debug, Clone, Default)]
pub struct ReportDraft {
    report_id: Option<String>,
    uri: Option<String>,
    method: Option<String>,
    http_status: Option<i32>,
    business_code: Option<String>,
    error_kind: Option<ErrorKind>,
    markers: Vec<String>,
    outcome_hint: Option<String>,
    latency: Option<Duration>,
    response_bytes: Option<i64>,
    started_at: Option<Timestamp>,
    finished_at: Option<Timestamp>,
    release: bool,
}

impl ReportDraft {
    /// A response with this status.
    #[must_use]
    pub fn status(status: u16) -> Self {
        Self { http_status: Some(i32::from(status)), ..Self::default() }
    }

    /// Ends the lease with this report.
    #[must_use]
    pub const fn release(mut self) -> Self {
        self.release = true;
        self
    }

    /// Whether the lease is to end with this report.
    pub(crate) const fn is_releasing(&self) -> bool {
        self.release
    }

    /// The report, for a lease acquired for `acquired_uri`.
    pub(crate) fn build(self, lease_id: &str, acquired_uri: &str) -> Result<Report> {
        let now = self.finished_at.unwrap_or_else(Timestamp::now);
        Ok(Report {
            report_id: self.report_id.unwrap_or_else(|| uuid::Uuid::new_v4().to_string()),
            lease_id: lease_id.to_owned(),
            uri: self.uri.unwrap_or_else(|| acquired_uri.to_owned()),
            method: self.method.unwrap_or_default(),
            http_status: self.http_status.unwrap_or_default(),
            business_code: self.business_code.unwrap_or_default(),
            error_kind: self.error_kind.map(|kind| kind.to_string()).unwrap_or_default(),
            markers: self.markers,
            outcome_hint: self.outcome_hint.unwrap_or_default(),
            latency_ms: self.latency.and_then(|latency| i32::try_from(latency.as_millis()).ok()).unwrap_or_default(),
            response_bytes: self.response_bytes.unwrap_or_default(),
            started_at: self.started_at.unwrap_or(now),
            finished_at: now,
            release: self.release,
        })
    }
}
