//! Request records and the failures of the closing summary.
//!
//! What leaves a record, by `APCLOUDY_REQUEST_RECORDS`: with `final` every attempt that failed and every end of a
//! request, an answer only where nothing follows on it; with `all` every answer, every hop and every offsite request too.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use crate::apcloudy::RequestRecord;
use crate::api::failure::{FailureKind, Fault};
use crate::scheduler::job::Job;
use crate::web::canonical::wire_fingerprint;

/// Different reasons kept for the summary; further ones are counted under one name.
const REASONS: usize = 200;

/// The record of an attempt or of a request's end, in wire text form (contract 2.3 of APCloudy 0.2.0).
pub(crate) fn text(job: &Job, status: Option<u16>, fault: Option<&Fault>, took: Duration) -> String {
    let status_code = status.unwrap_or(0);
    let record = RequestRecord {
        url: job.url().as_str().to_owned(),
        parent_url: job.parent_url.as_deref().map(str::to_owned),
        method: job.method().as_str().to_owned(),
        status_code,
        response_time: took.as_secs_f64(),
        fingerprint: wire_fingerprint(job.method().as_str(), job.url().as_str()),
        error: fault.map(Fault::record_text),
        success: fault.is_none() && (200..300).contains(&status_code),
    };
    // Every field is a text, a number or a flag: there is always a text form.
    record.to_text().unwrap_or_default()
}

/// The record of a request that the frontier dropped as offsite.
pub(crate) fn offsite(job: &Job) -> String {
    text(job, None, Some(&filtered_offsite(job)), Duration::ZERO)
}

/// Why a request that leaves the allowed domains is dropped, in Scrapy's words.
pub(crate) fn filtered_offsite(job: &Job) -> Fault {
    let host = job.url().host_str().unwrap_or_default();
    Fault::new(FailureKind::Offsite, format!("Filtered offsite request to '{host}'"))
}

/// Reasons of failed requests, each with how often and one example.
#[derive(Debug, Default)]
pub(crate) struct Failures {
    reasons: HashMap<Arc<str>, (u64, String)>,
    other: u64,
}

impl Failures {
    pub(crate) fn note(&mut self, reason: &str, url: &str) {
        if let Some((count, _)) = self.reasons.get_mut(reason) {
            *count += 1;
        } else if self.reasons.len() < REASONS {
            self.reasons.insert(reason.into(), (1, url.to_owned()));
        } else {
            self.other += 1;
        }
    }

    /// The most frequent reasons first.
    pub(crate) fn top(&self) -> Vec<(String, u64, String)> {
        let mut all: Vec<_> = self.reasons.iter().map(|(reason, (n, url))| (reason.to_string(), *n, url.clone())).collect();
        if self.other > 0 {
            all.push(("other reasons".to_owned(), self.other, String::new()));
        }
        all.sort_by(|a, b| b.1.cmp(&a.1).then_with(|| a.0.cmp(&b.0)));
        all
    }
}

/// The fault of a page that its origin asks nobody to fetch.
pub(super) fn robots_forbidden() -> Fault {
    Fault::new(FailureKind::RobotsForbidden, "Forbidden by robots.txt")
}

/// The fault of a page whose host has given all it may.
pub(super) fn host_full() -> Fault {
    Fault::new(FailureKind::HostPagesLimit, "The host has given HOST_PAGES_LIMIT pages")
}

/// The fault of a page whose rules are not known for now.
pub(super) fn robots_unavailable(why: &str) -> Fault {
    Fault::new(
        FailureKind::RobotsUnavailable,
        format!("robots.txt could not be read, so the page may not be fetched for now: {why}"),
    )
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use crate::api::request::Request;
    use crate::scheduler::job::RequestId;

    fn job() -> Job {
        let request = Request::get("http://example.com/?a=1&b=2", &()).unwrap();
        Job::page(RequestId::child(None, 0), 0, request)
    }

    #[test]
    fn a_record_has_the_keys_and_the_order_of_the_contract() {
        assert_eq!(
            text(&job(), Some(200), None, Duration::from_millis(1234)),
            r#"{"url": "http://example.com/?a=1&b=2", "parent_url": null, "method": "GET", "status_code": 200, "response_time": 1.23, "fingerprint": "51b185f56f916957558db9784e0a03db9b4603bf", "error": null, "success": true}"#
        );
    }

    #[test]
    fn an_attempt_without_a_response_carries_class_and_message() {
        let fault = Fault::new(FailureKind::DataLoss, "");
        let record = text(&job(), None, Some(&fault), Duration::ZERO);
        assert!(record.contains(r#""status_code": 0"#) && record.contains(r#""error": "ResponseDataLossError: ""#), "{record}");
        assert!(record.ends_with(r#""success": false}"#));
    }

    #[test]
    fn the_summary_names_the_most_frequent_reason_first_and_is_bounded() {
        let mut failures = Failures::default();
        for n in 0..1000 {
            failures.note(&format!("reason {n}"), "http://a/");
            failures.note("common", "http://b/");
        }
        let top = failures.top();
        assert_eq!(top.first().map(|t| (t.0.as_str(), t.1)), Some(("common", 1000)));
        assert_eq!(top.len(), REASONS + 1);
        assert_eq!(top.iter().map(|t| t.1).sum::<u64>(), 2000);
    }
}
