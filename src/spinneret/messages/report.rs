//! Reports: what became of the requests made under a lease.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use crate::spinneret::Result;
use crate::spinneret::procedure::{Procedure, Rpc};

/// What one request was like. Made by a lease, or by [`ReportDraft`](crate::spinneret::ReportDraft).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Report {
    /// The key under which the server knows repetitions; made once and kept for every retry.
    pub report_id: String,
    /// The lease, 1 to 128 characters.
    pub lease_id: String,
    /// The path that was asked for, 1 to 2048 characters.
    pub uri: String,
    /// The method, at most 16 characters.
    pub method: String,
    /// The status, 0 to 999; 0 without a response.
    pub http_status: i32,
    /// The status code found in the body, at most 64 characters.
    pub business_code: String,
    /// How the transport failed (one of the eight words of the wire contract, the empty one included).
    pub error_kind: String,
    /// What was seen, at most 32 words of 1 to 64 characters.
    pub markers: Vec<String>,
    /// A proposed outcome, at most 32 characters.
    pub outcome_hint: String,
    /// How long it took.
    pub latency_ms: i32,
    /// Bytes of the body.
    pub response_bytes: i64,
    /// When the request was sent.
    pub started_at: Timestamp,
    /// When it ended; not before `started_at`.
    pub finished_at: Timestamp,
    /// Whether the lease ends with this report.
    pub release: bool,
}

/// A batch of reports, 1 to 500.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ReportRequest {
    /// The reports.
    pub reports: Vec<Report>,
}

/// What became of a batch.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct ReportResponse {
    /// How many are new.
    pub accepted: i32,
    /// How many the server had already.
    pub duplicated: i32,
    /// Those it will never take.
    pub rejected: Vec<RejectedReport>,
}

/// A report the server will never take.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct RejectedReport {
    /// Which.
    pub report_id: String,
    /// `invalid_argument`, `lease_unknown` or `scope_missing`.
    pub reason: String,
    /// What a person reads.
    pub message: String,
}

impl Rpc for ReportRequest {
    type Answer = ReportResponse;
    const PROCEDURE: Procedure = Procedure::Report;

    fn validate(&self) -> Result<()> {
        Ok(())
    }
}
