//! Redirects by status and `Location` (RFC 9110, 15.4). Decides; never sends.

use std::time::Duration;

use http::header::LOCATION;
use http::{HeaderMap, Method, StatusCode};

use super::granted;
use super::http_error::asks_for;
use super::referer::policy_of;
use crate::api::failure::{FailureKind, Fault};
use crate::downloader::config::RedirectRules;
use crate::downloader::message::Hop;
use crate::plane::Credential;
use crate::scheduler::job::Job;
use crate::web::location::resolve_location;

/// Whether a status says that the resource is elsewhere.
pub(crate) fn is_redirect(status: StatusCode) -> bool {
    matches!(status.as_u16(), 301 | 302 | 303 | 307 | 308)
}

/// What a redirect answer leads to; `None` when the answer is not one to follow.
///
/// The target is resolved against the job's own URL, which has no query of the credential in it, and a
/// credential that the server repeats in `Location` is taken out.
pub(crate) fn decide(
    rules: RedirectRules,
    job: &Job,
    credential: &Credential,
    status: StatusCode,
    headers: &HeaderMap,
) -> Option<Result<Hop, Fault>> {
    if !is_redirect(status) || !rules.enabled || !job.request.follows_redirects() || asks_for(job, status) {
        return None;
    }
    let location = headers.get(LOCATION)?;
    let hop = follow(rules, job, credential, status, location.as_bytes());
    Some(hop.map(|hop| Hop { referrer_policy: policy_of(headers), ..hop }))
}

fn follow(rules: RedirectRules, job: &Job, credential: &Credential, status: StatusCode, location: &[u8]) -> Result<Hop, Fault> {
    let mut to = resolve_location(job.url(), location).map_err(|_| {
        // What cannot be read is not repeated: it may hold anything.
        target(format!("the Location of this {} answer is no URL", status.as_u16()))
    })?;
    granted::clear(&mut to, credential).map_err(|_| {
        target(format!(
            "the Location of this {} answer repeats a query value of the lease in its path or host; following it would show the \
             value in queue and records; the request is better made without redirects",
            status.as_u16()
        ))
    })?;
    if !matches!(to.scheme(), "http" | "https") || !to.has_host() {
        return Err(target(format!("a redirect to the scheme {:?} is not followed, only http and https are", to.scheme())));
    }
    check_hops(rules, job)?;
    Ok(Hop { to, becomes_get: becomes_get(status, job.method()), after: Duration::ZERO, referrer_policy: None })
}

/// Whether the request may go on to yet another URL.
pub(super) fn check_hops(rules: RedirectRules, job: &Job) -> Result<(), Fault> {
    if job.hops >= rules.max_hops {
        let message =
            format!("max redirections reached: {} were followed, REDIRECT_MAX_TIMES allows {}", job.hops, rules.max_hops);
        return Err(Fault::new(FailureKind::RedirectLimit, message));
    }
    Ok(())
}

/// 303 turns everything but HEAD into GET, 301 and 302 turn POST into GET, 307 and 308 nothing.
fn becomes_get(status: StatusCode, method: &Method) -> bool {
    match status.as_u16() {
        303 => *method != Method::GET && *method != Method::HEAD,
        301 | 302 => *method == Method::POST,
        _ => false,
    }
}

fn target(message: String) -> Fault {
    Fault::new(FailureKind::RedirectTarget, message)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing)]
    use http::HeaderValue;

    use super::*;
    use crate::api::request::{HandleStatus, Request};
    use crate::scheduler::job::RequestId;

    const RULES: RedirectRules = RedirectRules { enabled: true, max_hops: 20 };

    fn job(method: Method) -> Job {
        Job::page(RequestId(1), 1, Request::new(method, "http://a.example/x/y?q=1", &()).unwrap())
    }

    fn decided(job: &Job, status: u16, location: Option<&str>) -> Option<Result<Hop, Fault>> {
        let headers = location.map(|l| (LOCATION, HeaderValue::from_str(l).unwrap())).into_iter().collect();
        decide(RULES, job, &Credential::default(), StatusCode::from_u16(status).unwrap(), &headers)
    }

    #[test]
    fn the_method_follows_the_rules_of_rfc_9110() {
        let table = [
            (301, Method::GET, false),
            (301, Method::POST, true),
            (301, Method::PUT, false),
            (302, Method::POST, true),
            (302, Method::HEAD, false),
            (303, Method::GET, false),
            (303, Method::POST, true),
            (303, Method::PUT, true),
            (303, Method::DELETE, true),
            (303, Method::HEAD, false),
            (307, Method::POST, false),
            (308, Method::POST, false),
        ];
        for (status, method, expected) in table {
            let hop = decided(&job(method.clone()), status, Some("z")).unwrap().unwrap();
            assert_eq!((hop.to.as_str(), hop.becomes_get), ("http://a.example/x/z", expected), "{status} {method}");
        }
    }

    #[test]
    fn other_statuses_and_answers_without_location_are_not_followed() {
        for status in [200, 300, 304, 305, 306, 404] {
            assert!(decided(&job(Method::GET), status, Some("/z")).is_none(), "{status}");
        }
        assert!(decided(&job(Method::GET), 302, None).is_none());
    }

    #[test]
    fn a_request_that_wants_the_answer_itself_gets_it() {
        let mut unfollowed = job(Method::GET);
        unfollowed.request.no_redirect();
        assert!(decided(&unfollowed, 302, Some("/z")).is_none());
        let mut handled = job(Method::GET);
        handled.request.handle_status(HandleStatus::Also(vec![302]));
        assert!(decided(&handled, 302, Some("/z")).is_none());
        assert!(decided(&handled, 301, Some("/z")).is_some());
    }

    #[test]
    fn only_http_targets_are_followed_and_only_so_far() {
        for location in ["ftp://a.example/", "javascript:alert(1)", "http://[zz]/", "  "] {
            let fault = decided(&job(Method::GET), 302, Some(location)).unwrap().unwrap_err();
            assert_eq!(fault.kind, FailureKind::RedirectTarget, "{location}");
        }
        let mut late = job(Method::GET);
        late.hops = 19;
        assert!(decided(&late, 302, Some("/z")).unwrap().is_ok());
        late.hops = 20;
        assert_eq!(decided(&late, 302, Some("/z")).unwrap().unwrap_err().kind, FailureKind::RedirectLimit);
    }

    #[test]
    fn a_credential_in_the_location_is_not_carried_on() {
        let credential = Credential { query: vec![("key".into(), "canary".into())], ..Credential::default() };
        let headers = HeaderMap::from_iter([(LOCATION, HeaderValue::from_static("/z?key=canary&p=2"))]);
        let hop = decide(RULES, &job(Method::GET), &credential, StatusCode::FOUND, &headers).unwrap().unwrap();
        assert_eq!(hop.to.as_str(), "http://a.example/z?p=2");
    }

    #[test]
    fn a_location_that_cannot_be_cleared_of_the_credential_is_not_followed() {
        let credential = Credential { query: vec![("key".into(), "canary-value".into())], ..Credential::default() };
        let headers = HeaderMap::from_iter([(LOCATION, HeaderValue::from_static("/s/canary%2Dvalue"))]);
        let fault = decide(RULES, &job(Method::GET), &credential, StatusCode::FOUND, &headers).unwrap().unwrap_err();
        assert_eq!(fault.kind, FailureKind::RedirectTarget);
        assert!(!fault.message.contains("canary"), "{fault}");
    }
}
