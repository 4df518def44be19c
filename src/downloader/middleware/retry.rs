//! Whether an attempt is repeated, and after what time.
//!
//! Full-jitter back-off: a wait is drawn evenly from zero to `RETRY_BACKOFF` times two to the number of
//! attempts before, at most `RETRY_BACKOFF_MAX`. A `Retry-After` is the least wait, up to `RETRY_AFTER_MAX`.

use std::borrow::Cow;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use http::StatusCode;

use crate::api::failure::{FailureKind, Fault};
use crate::dice;
use crate::downloader::config::RetryRules;
use crate::scheduler::job::Job;

/// Draws the waits; seeded, so that a run can be repeated.
#[derive(Debug)]
pub(crate) struct Jitter(AtomicU64);

/// What the rules say about one attempt.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Allowance {
    /// It may be repeated.
    Left,
    /// It was repeated as often as allowed.
    UsedUp,
    /// It is never repeated.
    Off,
}

/// Whether the request has attempts left.
pub(crate) fn allowance(rules: &RetryRules, job: &Job) -> Allowance {
    let times = job.request.retries_value().unwrap_or(rules.times);
    if !rules.enabled {
        Allowance::Off
    } else if job.attempts < times {
        Allowance::Left
    } else {
        Allowance::UsedUp
    }
}

/// How long to wait before the next attempt.
pub(crate) fn wait(rules: &RetryRules, attempts: u32, asked: Option<Duration>, jitter: &Jitter) -> Duration {
    let doubled = 2_u32.checked_pow(attempts).unwrap_or(u32::MAX);
    let bound = rules.backoff.saturating_mul(doubled).min(rules.backoff_max);
    let own = bound.mul_f64(jitter.fraction());
    asked.map_or(own, |asked| own.max(asked.min(rules.retry_after_max)))
}

/// A status with its reason phrase, as retries are counted by it.
pub(crate) fn reason_of(status: StatusCode) -> Cow<'static, str> {
    Cow::Borrowed(match status.as_u16() {
        429 => "429 Too Many Requests",
        500 => "500 Internal Server Error",
        502 => "502 Bad Gateway",
        503 => "503 Service Unavailable",
        504 => "504 Gateway Timeout",
        code => return Cow::Owned(format!("{code} {}", status.canonical_reason().unwrap_or("Unknown Status"))),
    })
}

/// The class path of a fault, as Scrapy counts exceptions and retries by it; ours where Scrapy has no such class.
pub(crate) fn class_path(kind: FailureKind) -> Cow<'static, str> {
    Cow::Borrowed(match kind.error_class() {
        "CannotResolveHostError" => "scrapy.exceptions.CannotResolveHostError",
        "DownloadConnectionRefusedError" => "scrapy.exceptions.DownloadConnectionRefusedError",
        "DownloadTimeoutError" => "scrapy.exceptions.DownloadTimeoutError",
        "DownloadFailedError" => "scrapy.exceptions.DownloadFailedError",
        "ResponseDataLossError" => "scrapy.exceptions.ResponseDataLossError",
        "HttpError" => "scrapy.spidermiddlewares.httperror.HttpError",
        class @ ("SpiderError" | "InternalError") => return Cow::Owned(format!("dragline.{class}")),
        class => return Cow::Owned(format!("scrapy.exceptions.{class}")),
    })
}

/// Whether a fault is of a kind that is repeated.
pub(crate) fn is_retryable(rules: &RetryRules, fault: &Fault) -> bool {
    rules.kinds.contains(&fault.kind)
}

impl Jitter {
    pub(crate) fn new(seed: u64) -> Self {
        Self(AtomicU64::new(seed))
    }

    /// An even draw from 0 to 1.
    fn fraction(&self) -> f64 {
        let z = dice::scramble(self.0.fetch_add(dice::STEP, Ordering::Relaxed));
        // 32 bits are plenty for a wait and convert without loss.
        f64::from(u32::try_from(z >> 32).unwrap_or(0)) / f64::from(u32::MAX)
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing)]
    use proptest::prelude::*;

    use super::*;
    use crate::api::request::Request;
    use crate::scheduler::job::RequestId;

    fn rules() -> RetryRules {
        RetryRules {
            enabled: true,
            times: 2,
            codes: vec![503],
            kinds: vec![FailureKind::Timeout],
            backoff: Duration::from_secs(1),
            backoff_max: Duration::from_secs(60),
            retry_after_max: Duration::from_secs(300),
        }
    }

    #[test]
    fn the_requests_own_number_of_retries_wins() {
        // (attempts before, own retries, allowance)
        let table = [
            (0, None, Allowance::Left),
            (1, None, Allowance::Left),
            (2, None, Allowance::UsedUp),
            (0, Some(0), Allowance::UsedUp),
            (4, Some(5), Allowance::Left),
            (5, Some(5), Allowance::UsedUp),
        ];
        for (attempts, own, expected) in table {
            let mut request = Request::get("http://a.example/", &()).unwrap();
            if let Some(own) = own {
                request.retries(own);
            }
            let job = Job { attempts, ..Job::page(RequestId(1), 1, request) };
            assert_eq!(allowance(&rules(), &job), expected, "{attempts} {own:?}");
            assert_eq!(allowance(&RetryRules { enabled: false, ..rules() }, &job), Allowance::Off);
        }
    }

    #[test]
    fn a_retry_after_is_the_least_wait_up_to_its_bound() {
        let jitter = Jitter::new(1);
        for (asked, least, most) in [(None, 0, 1), (Some(30), 30, 30), (Some(0), 0, 1), (Some(9_999), 300, 300)] {
            let wait = wait(&rules(), 0, asked.map(Duration::from_secs), &jitter);
            assert!(wait >= Duration::from_secs(least) && wait <= Duration::from_secs(most), "{asked:?} {wait:?}");
        }
    }

    #[test]
    fn only_the_kinds_that_are_named_are_repeated() {
        for (kind, expected) in [(FailureKind::Timeout, true), (FailureKind::Lost, false)] {
            assert_eq!(is_retryable(&rules(), &Fault::new(kind, "x")), expected, "{kind}");
        }
    }

    #[test]
    fn the_same_seed_draws_the_same_waits() {
        let draw = |seed| {
            let jitter = Jitter::new(seed);
            [0; 8].map(|_| wait(&rules(), 3, None, &jitter))
        };
        assert_eq!(draw(7), draw(7));
        assert_ne!(draw(7), draw(8));
    }

    #[test]
    fn reasons_are_spelled_as_statuses_and_class_paths() {
        for (status, reason) in [(503, "503 Service Unavailable"), (408, "408 Request Timeout"), (522, "522 Unknown Status")] {
            assert_eq!(reason_of(StatusCode::from_u16(status).unwrap()), reason);
        }
        assert_eq!(class_path(FailureKind::IdleTimeout), "scrapy.exceptions.DownloadTimeoutError");
        assert_eq!(class_path(FailureKind::UnsupportedScheme), "scrapy.exceptions.NotSupported");
        assert_eq!(class_path(FailureKind::TooLarge), "scrapy.exceptions.DownloadCancelledError");
        assert_eq!(class_path(FailureKind::RobotsForbidden), "scrapy.exceptions.IgnoreRequest");
        assert_eq!(class_path(FailureKind::Internal), "dragline.InternalError");
    }

    proptest! {
        #[test]
        fn a_wait_stays_within_its_bound(seed: u64, attempts: u32, asked in proptest::option::of(0_u64..1_000_000)) {
            let wait = wait(&rules(), attempts, asked.map(Duration::from_secs), &Jitter::new(seed));
            let bound = 2_f64.powf(f64::from(attempts.min(6))).min(60.0);
            prop_assert!(wait <= Duration::from_secs_f64(bound).max(Duration::from_secs(asked.unwrap_or(0).min(300))));
        }
    }
}
