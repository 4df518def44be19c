//! Reports between the crawl's words and the model's.

use std::time::Duration;

use jiff::Timestamp;

use super::Timeline;
use crate::plane;
use crate::plane::Rejected;
use crate::plane::model::Ms;
use crate::plane::model::refusal::Reason;
use crate::spinneret::{ErrorKind, RejectedReport, Report};

/// Bounds of the wire contract, characters: what is longer is cut off, so that the rest of the report counts.
const URI: usize = 2048;
const METHOD: usize = 16;
const CODE: usize = 64;
const MARKER: usize = 64;
const HINT: usize = 32;
/// Markers of one report.
const MARKERS: usize = 32;
/// A proxy that wants another user or password.
const PROXY_AUTH: u16 = 407;

/// The report as the model takes it. How long the target asked to wait has no place there.
pub(super) fn on_the_wire(report: &plane::Report, timeline: Timeline) -> Report {
    let started = timeline.moment(report.sent_at);
    let finished = started.saturating_add(millis(report.latency));
    let path = if report.path.is_empty() { "/" } else { &report.path };
    Report {
        report_id: report.id.to_string(),
        lease_id: report.lease.0.to_string(),
        uri: cut(path, URI),
        method: cut(report.method.as_str(), METHOD),
        http_status: report.status.map_or(0, |status| i32::from(status.min(999))),
        business_code: report.business_code.as_deref().map(|code| cut(code, CODE)).unwrap_or_default(),
        error_kind: error_kind(report).map(|kind| kind.as_str().to_owned()).unwrap_or_default(),
        markers: report
            .markers
            .iter()
            .filter(|marker| !marker.is_empty())
            .take(MARKERS)
            .map(|marker| cut(marker, MARKER))
            .collect(),
        outcome_hint: report.outcome_hint.as_deref().map(|hint| cut(hint, HINT)).unwrap_or_default(),
        latency_ms: i32::try_from(report.latency.as_millis()).unwrap_or(i32::MAX),
        response_bytes: i64::try_from(report.bytes).unwrap_or(i64::MAX),
        started_at: timestamp(started),
        finished_at: timestamp(finished),
        release: report.release,
    }
}

/// A report the model will never take.
pub(super) fn rejected(rejected: RejectedReport) -> Rejected {
    Rejected {
        // It is the number written above.
        id: rejected.report_id.parse().unwrap_or(0),
        is_unknown_lease: rejected.reason == Reason::LeaseUnknown.name(),
        reason: rejected.message,
    }
}

/// A 407 is the answer of the proxy, not of the site.
fn error_kind(report: &plane::Report) -> Option<ErrorKind> {
    match (report.error, report.status) {
        (None, Some(PROXY_AUTH)) => Some(ErrorKind::ProxyAuth),
        (error, _) => error,
    }
}

fn cut(text: &str, most: usize) -> String {
    // Nearly every text is short, and then its bytes are not counted as characters.
    if text.len() <= most { text.to_owned() } else { text.chars().take(most).collect() }
}

fn millis(time: Duration) -> Ms {
    Ms::try_from(time.as_millis()).unwrap_or(Ms::MAX)
}

fn timestamp(at: Ms) -> Timestamp {
    i64::try_from(at).ok().and_then(|at| Timestamp::from_millisecond(at).ok()).unwrap_or(Timestamp::MAX)
}
