//! The `Referer` of a request: the page whose callback asked for it, as far as the policy lets it be told.
//!
//! Made for every send and kept nowhere: each hop of a redirect tells what its own target may know.

use http::header::REFERER;
use http::{HeaderMap, HeaderName, HeaderValue};
use url::Url;

use crate::plane::Credential;
use crate::scheduler::job::Job;
use crate::web::referrer_policy::ReferrerPolicy;

const REFERRER_POLICY: HeaderName = HeaderName::from_static("referrer-policy");

/// Puts the header in, with `policy` where neither request nor page have one. What spider or lease say themselves stands as
/// it is, except that a redirect tells no more of it than the policy allows; a default header counts only without a page.
pub(crate) fn add(headers: &mut HeaderMap, policy: ReferrerPolicy, job: &Job, credential: &Credential) {
    let policy = job.request.referring().map_or(policy, |referring| referring.policy);
    let told = |page: &str| policy.referrer(&Url::parse(page).ok()?, job.url());
    if let Some(own) = job.request.headers().and_then(|own| own.get(REFERER)) {
        if job.hops > 0 {
            match own.to_str().ok().and_then(told).and_then(value) {
                Some(value) => drop(headers.insert(REFERER, value)),
                None => drop(headers.remove(REFERER)),
            }
        }
        return;
    }
    if credential.headers.contains_key(REFERER) {
        return;
    }
    if let Some(value) = job.parent_url.as_deref().and_then(told).and_then(value) {
        headers.insert(REFERER, value);
    }
}

/// What the headers of an answer say of requests that it leads to.
pub(crate) fn policy_of(headers: &HeaderMap) -> Option<ReferrerPolicy> {
    let values = headers.get_all(REFERRER_POLICY).iter().rev();
    values.filter_map(|value| value.to_str().ok()).find_map(ReferrerPolicy::from_header)
}

fn value(text: String) -> Option<HeaderValue> {
    HeaderValue::try_from(text).ok()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing)]
    use super::*;
    use crate::api::request::Request;
    use crate::scheduler::job::RequestId;

    const DEFAULT: ReferrerPolicy = ReferrerPolicy::NoReferrerWhenDowngrade;

    fn job(url: &str, page: Option<&str>) -> Job {
        let mut job = Job::page(RequestId(1), 1, Request::get(url, &()).unwrap());
        job.parent_url = page.map(Into::into);
        job
    }

    fn sent(job: &Job) -> Option<String> {
        let mut headers = job.request.headers().cloned().unwrap_or_default();
        add(&mut headers, DEFAULT, job, &Credential::default());
        headers.get(REFERER).map(|value| value.to_str().unwrap().to_owned())
    }

    #[test]
    fn a_request_tells_the_page_it_is_from() {
        let page = Some("https://u:p@a.test/list?page=2#top");
        assert_eq!(sent(&job("https://b.test/", page)).as_deref(), Some("https://a.test/list?page=2"));
        assert_eq!(sent(&job("http://b.test/", page)), None, "not from a protected page to an unprotected one");
        assert_eq!(sent(&job("https://a.test/", None)), None, "a start request is from nowhere");
    }

    #[test]
    fn the_spiders_policy_goes_before_the_pages_and_that_before_the_settings() {
        let mut job = job("https://b.test/", Some("https://a.test/list"));
        job.request.refer_by(ReferrerPolicy::Origin);
        assert_eq!(sent(&job).as_deref(), Some("https://a.test/"));
        job.request.referrer_policy(ReferrerPolicy::NoReferrer);
        job.request.refer_by(ReferrerPolicy::UnsafeUrl);
        assert_eq!(sent(&job), None);
    }

    #[test]
    fn a_header_of_the_spiders_stands_and_a_hop_tells_no_more_than_it_may() {
        let mut own = job("http://a.test/", Some("http://a.test/list"));
        own.request.header("referer", "https://mine.test/path").unwrap();
        assert_eq!(sent(&own).as_deref(), Some("https://mine.test/path"));
        own.hops = 1;
        assert_eq!(sent(&own), None, "the hop is to an unprotected page");
        own.request.set_url(Url::parse("https://b.test/").unwrap());
        assert_eq!(sent(&own).as_deref(), Some("https://mine.test/path"));
        own.request.refer_by(ReferrerPolicy::StrictOrigin);
        assert_eq!(sent(&own).as_deref(), Some("https://mine.test/"));
    }

    #[test]
    fn a_lease_may_bring_its_own() {
        let credential =
            Credential { headers: HeaderMap::from_iter([(REFERER, HeaderValue::from_static("x"))]), ..Credential::default() };
        let mut headers = credential.headers.clone();
        add(&mut headers, DEFAULT, &job("https://b.test/", Some("https://a.test/")), &credential);
        assert_eq!(headers[REFERER], "x");
    }

    #[test]
    fn the_last_policy_of_an_answer_counts() {
        let mut headers = HeaderMap::new();
        assert_eq!(policy_of(&headers), None);
        for value in ["origin", "no-referrer, bogus", "bogus"] {
            headers.append(REFERRER_POLICY, HeaderValue::from_static(value));
        }
        assert_eq!(policy_of(&headers), Some(ReferrerPolicy::NoReferrer));
    }
}
