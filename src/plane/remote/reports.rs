//! Reports as the wire has them, sent once, and what became of them.
//!
//! A report has the same id however often it is sent, so the server counts it once. One that the server could not take is
//! not sent, and does not keep the others back.

use std::collections::HashMap;
use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use tokio::time::Instant;

use super::Remote;
use super::anonymous::Anonymous;
use super::faults::plane_error;
use crate::plane::{LeaseId, PlaneError, Rejected, Report, Taken};
use crate::spinneret::{ErrorKind, RejectedReport, Report as WireReport, ReportRequest, path_of};

/// Most reports of one call (wire contract, 4.2).
const LARGEST: usize = 500;

/// A proxy that wants another user or password.
const PROXY_AUTH: u16 = 407;

impl Remote {
    pub(super) async fn send_reports(&self, reports: Vec<Report>) -> Result<Taken, PlaneError> {
        let (wall, now) = (Timestamp::now(), Instant::now());
        let (mut taken, mut back) = (Taken::default(), Vec::new());
        let mut sound = Vec::with_capacity(reports.len());
        for report in reports {
            if Anonymous::owns(&report.lease) {
                continue;
            }
            let id = report.id;
            let report = written(&self.run, report, wall, now);
            match report.validate() {
                Ok(()) => sound.push(report),
                Err(error) => {
                    taken.rejected.push(Rejected { id, is_unknown_lease: false, reason: error.to_string() });
                    back.extend(report.release.then(|| LeaseId(report.lease_id.into())));
                }
            }
        }
        let mut sound = sound.into_iter();
        loop {
            let request = ReportRequest { reports: sound.by_ref().take(LARGEST).collect() };
            if request.reports.is_empty() {
                break;
            }
            // Once: who sends reports waits longer and longer by himself.
            let answer = self.client.wire().call_once(&request).await.map_err(|error| plane_error(&error))?;
            taken.duplicated += u64::try_from(answer.duplicated).unwrap_or(0);
            self.settle(&request.reports, answer.rejected, &mut taken, &mut back);
        }
        self.give_back(back).await;
        Ok(taken)
    }

    /// What became of the reports of one call. A lease whose last report the server does not take is to be given back.
    fn settle(&self, sent: &[WireReport], rejected: Vec<RejectedReport>, taken: &mut Taken, back: &mut Vec<LeaseId>) {
        for last in sent.iter().filter(|report| report.release) {
            self.lives.over(&LeaseId(last.lease_id.as_str().into()));
        }
        if rejected.is_empty() {
            return;
        }
        let by_id: HashMap<&str, &WireReport> = sent.iter().map(|report| (report.report_id.as_str(), report)).collect();
        for RejectedReport { report_id, reason, message } in rejected {
            let number = report_id.strip_prefix(&*self.run).and_then(|rest| rest.strip_prefix('-')?.parse().ok());
            let (Some(report), Some(id)) = (by_id.get(report_id.as_str()), number) else {
                tracing::debug!(target: super::TARGET, reason, "the server rejects a report that was not sent");
                continue;
            };
            let is_unknown_lease = reason == "lease_unknown";
            if report.release && !is_unknown_lease {
                back.push(LeaseId(report.lease_id.as_str().into()));
            }
            let reason = if message.is_empty() { reason } else { format!("{reason}: {message}") };
            taken.rejected.push(Rejected { id, is_unknown_lease, reason });
        }
    }
}

/// The report of a run on the wire, at this moment by the wall clock and by ours.
fn written(run: &str, report: Report, wall: Timestamp, now: Instant) -> WireReport {
    let Report {
        id,
        lease,
        path,
        method,
        status,
        error,
        markers,
        business_code,
        outcome_hint,
        sent_at,
        latency,
        bytes,
        retry_after: _,
        release,
    } = report;
    let (started_at, finished_at) = moments(sent_at, latency, wall, now);
    let error_kind = match (error, status) {
        // The answer of the proxy, not of the site.
        (None, Some(PROXY_AUTH)) => Some(ErrorKind::ProxyAuth),
        (error, _) => error,
    };
    let path = path_of(&path);
    WireReport {
        report_id: format!("{run}-{id}"),
        lease_id: (*lease.0).to_owned(),
        uri: if path.is_empty() { "/".to_owned() } else { path },
        method: method.as_str().to_owned(),
        http_status: status.map_or(0, i32::from),
        business_code: business_code.unwrap_or_default(),
        error_kind: error_kind.map(ErrorKind::as_str).unwrap_or_default().to_owned(),
        markers,
        outcome_hint: outcome_hint.unwrap_or_default(),
        latency_ms: rounded(latency),
        response_bytes: i64::try_from(bytes).unwrap_or(i64::MAX),
        started_at,
        finished_at,
        release,
    }
}

/// When the attempt began and ended by the wall clock: never in the future, the end never before the beginning.
fn moments(sent_at: Instant, latency: Duration, wall: Timestamp, now: Instant) -> (Timestamp, Timestamp) {
    let since = sent_at.checked_add(latency).map_or(Duration::ZERO, |ended| now.saturating_duration_since(ended));
    let finished = before(wall, since);
    (before(finished, latency), finished)
}

fn before(moment: Timestamp, time: Duration) -> Timestamp {
    SignedDuration::try_from(time).ok().and_then(|time| moment.checked_sub(time).ok()).unwrap_or(moment)
}

/// In milliseconds, rounded.
fn rounded(time: Duration) -> i32 {
    i32::try_from(time.saturating_add(Duration::from_micros(500)).as_millis()).unwrap_or(i32::MAX)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing)]

    use serde_json::json;

    use super::*;

    fn wall() -> Timestamp {
        "2026-09-16T08:30:10Z".parse().unwrap()
    }

    fn ms(ms: u64) -> Duration {
        Duration::from_millis(ms)
    }

    fn report(sent_at: Instant) -> Report {
        Report {
            id: 7,
            lease: LeaseId("lse_1".into()),
            path: "/feed".to_owned(),
            method: http::Method::GET,
            status: Some(200),
            error: None,
            markers: vec!["captcha".to_owned()],
            business_code: Some("E7".to_owned()),
            outcome_hint: Some("empty".to_owned()),
            sent_at,
            latency: Duration::from_micros(250_500),
            bytes: 1234,
            retry_after: Some(ms(1)),
            release: true,
        }
    }

    #[test]
    fn a_report_is_written_with_everything_the_attempt_told() {
        let now = Instant::now() + Duration::from_secs(60);
        let written = serde_json::to_value(written("ab", report(now - ms(1250)), wall(), now)).unwrap();
        let golden = json!({
            "report_id": "ab-7", "lease_id": "lse_1", "uri": "/feed", "method": "GET", "http_status": 200,
            "business_code": "E7", "error_kind": "", "markers": ["captcha"], "outcome_hint": "empty", "latency_ms": 251,
            "response_bytes": 1234, "started_at": "2026-09-16T08:30:08.750000Z", "finished_at": "2026-09-16T08:30:09.000500Z",
            "release": true
        });
        assert_eq!(written, golden);
    }

    #[test]
    fn an_attempt_without_a_response_tells_its_kind_of_error_and_a_407_is_the_proxys() {
        let now = Instant::now();
        for (status, error, told) in [
            (None, Some(ErrorKind::Timeout), (0, "timeout")),
            (None, Some(ErrorKind::Dns), (0, "dns")),
            (Some(407), None, (407, "proxy_auth")),
            (Some(407), Some(ErrorKind::Other), (407, "other")),
            (Some(200), Some(ErrorKind::ConnReset), (200, "conn_reset")),
            (Some(503), None, (503, "")),
        ] {
            let written = written("ab", Report { status, error, ..report(now) }, wall(), now);
            assert_eq!((written.http_status, written.error_kind.as_str()), told);
        }
    }

    #[test]
    fn a_report_tells_a_path_and_no_query() {
        let now = Instant::now();
        for (path, uri) in [("/a?token=x#y", "/a"), ("", "/"), ("https://h/a/b?c", "/a/b"), ("?x", "/")] {
            assert_eq!(written("ab", Report { path: path.to_owned(), ..report(now) }, wall(), now).uri, uri);
        }
        let long = Report { path: format!("/{}", "ü".repeat(3000)), ..report(now) };
        assert!(written("ab", long, wall(), now).validate().is_ok());
    }

    #[test]
    fn no_attempt_ends_in_the_future_or_before_it_began() {
        let now = Instant::now() + Duration::from_secs(10);
        for sent_at in [now - ms(5_000), now, now + ms(5_000)] {
            for latency in [ms(0), ms(1), ms(5_000), ms(60_000), Duration::MAX] {
                let (started, finished) = moments(sent_at, latency, wall(), now);
                assert!(started <= finished && finished <= wall(), "{started} {finished}");
            }
        }
        assert_eq!(rounded(Duration::MAX), i32::MAX);
        let (started, finished) = moments(now - ms(3_000), ms(1_000), wall(), now);
        assert_eq!((wall().duration_since(started).as_millis(), wall().duration_since(finished).as_millis()), (3_000, 2_000));
    }
}
