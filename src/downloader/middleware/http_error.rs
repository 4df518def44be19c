//! Which statuses reach a callback, and what the others fail with.

use http::StatusCode;

use crate::api::failure::{FailureKind, Fault};
use crate::api::request::HandleStatus;
use crate::downloader::config::StatusRules;
use crate::scheduler::job::{Job, JobKind};

/// Whether a status is one that somebody asked for. robots.txt jobs take every status: the scheduler reads it.
pub(crate) fn is_wanted(rules: &StatusRules, job: &Job, status: StatusCode) -> bool {
    status.is_success()
        || job.kind == JobKind::Robots
        || rules.allow_all
        || rules.allowed.contains(&status.as_u16())
        || asks_for(job, status)
        || (super::redirect::is_redirect(status) && !job.request.follows_redirects())
}

/// Whether the request itself asks for a status.
pub(crate) fn asks_for(job: &Job, status: StatusCode) -> bool {
    match job.request.handled_statuses() {
        HandleStatus::All => true,
        HandleStatus::Also(codes) => codes.contains(&status.as_u16()),
        HandleStatus::Successful => false,
    }
}

/// The fault of a status that nobody asked for.
pub(crate) fn fault(status: StatusCode) -> Fault {
    let reason = super::retry::reason_of(status);
    Fault::new(
        FailureKind::HttpStatus,
        format!("the answer is {reason}; handle_status or HTTPERROR_ALLOWED_CODES would give it to the callback"),
    )
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing)]
    use super::*;
    use crate::api::request::Request;
    use crate::scheduler::job::RequestId;

    #[test]
    fn a_status_passes_when_somebody_asked_for_it() {
        let none = StatusRules { allow_all: false, allowed: vec![] };
        let some = StatusRules { allow_all: false, allowed: vec![404] };
        let all = StatusRules { allow_all: true, allowed: vec![] };
        let table = [
            (&none, HandleStatus::Successful, 200, true),
            (&none, HandleStatus::Successful, 204, true),
            (&none, HandleStatus::Successful, 304, false),
            (&none, HandleStatus::Successful, 404, false),
            (&none, HandleStatus::Also(vec![404]), 404, true),
            (&none, HandleStatus::Also(vec![404]), 500, false),
            (&none, HandleStatus::All, 500, true),
            (&some, HandleStatus::Successful, 404, true),
            (&some, HandleStatus::Successful, 403, false),
            (&all, HandleStatus::Successful, 599, true),
        ];
        for (rules, handled, status, wanted) in table {
            let mut request = Request::get("http://a.example/", &()).unwrap();
            request.handle_status(handled);
            let job = Job::page(RequestId(1), 1, request);
            assert_eq!(is_wanted(rules, &job, StatusCode::from_u16(status).unwrap()), wanted, "{status}");
        }
    }

    #[test]
    fn robots_jobs_take_every_status_and_unfollowed_redirects_reach_the_callback() {
        let rules = StatusRules { allow_all: false, allowed: vec![] };
        let mut job = Job::page(RequestId(1), 1, Request::get("http://a.example/robots.txt", &()).unwrap());
        job.kind = JobKind::Robots;
        assert!(is_wanted(&rules, &job, StatusCode::FORBIDDEN));
        let mut request = Request::get("http://a.example/", &()).unwrap();
        request.no_redirect();
        let job = Job::page(RequestId(1), 1, request);
        assert!(is_wanted(&rules, &job, StatusCode::FOUND));
        assert!(!is_wanted(&rules, &job, StatusCode::NOT_FOUND));
    }
}
