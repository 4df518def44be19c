//! Scope: which requests the crawl wants at all, before anything is queued or leased.
//!
//! Pure checks of host, depth and length. What was seen before is the store's business, robots.txt the gate's.

use std::collections::HashSet;

use super::config::SchedulerConfig;
use super::job::Job;
use crate::api::request::Request;
use crate::reach::Reach;

/// Most filtered hosts that are told apart; further ones are filtered and counted, but not as new domains.
const MAX_FILTERED_HOSTS: usize = 10_000;

/// The limits of a crawl.
#[derive(Debug)]
pub(crate) struct Scope {
    /// Lower-case host names; empty allows every host.
    domains: Vec<String>,
    depth_limit: u32,
    url_length_limit: usize,
    reach: Reach,
    filtered: HashSet<Box<str>>,
}

/// Why a request is outside.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Outside {
    /// Its host is in no allowed domain.
    Offsite,
    /// Its URL names an address of the own machine or network.
    Private,
    /// It is deeper than the limit.
    TooDeep,
    /// Its URL is longer than the limit.
    TooLong,
}

impl Scope {
    pub(crate) fn new(config: &SchedulerConfig) -> Self {
        let domains = config.allowed_domains.iter().map(|domain| canonical_domain(domain)).filter(|d| !d.is_empty()).collect();
        Self {
            domains,
            depth_limit: config.depth_limit,
            url_length_limit: config.url_length_limit,
            reach: config.reach.clone(),
            filtered: HashSet::new(),
        }
    }

    /// Whether and why a job is outside; offsite comes first, then what is private, depth, and length.
    pub(crate) fn check(&self, job: &Job) -> Option<Outside> {
        if self.is_offsite(&job.request) {
            return Some(Outside::Offsite);
        }
        if self.is_out_of_reach(job) {
            return Some(Outside::Private);
        }
        if self.depth_limit > 0 && job.depth > self.depth_limit {
            return Some(Outside::TooDeep);
        }
        if self.url_length_limit > 0 && job.url().as_str().len() > self.url_length_limit {
            return Some(Outside::TooLong);
        }
        None
    }

    /// Whether a request's host is outside every allowed domain, and the request may not leave them.
    pub(crate) fn is_offsite(&self, request: &Request) -> bool {
        if self.domains.is_empty() || request.may_leave_site() {
            return false;
        }
        let host = request.url().host_str().unwrap_or_default();
        !self.domains.iter().any(|domain| is_within(host, domain))
    }

    /// Whether a job's URL names by itself an address that may not be asked. Names are told by whoever connects.
    pub(crate) fn is_out_of_reach(&self, job: &Job) -> bool {
        self.reach.refuses(job.url())
    }

    /// The job's owner wants this, or some worker of the job has let it in: what it leads to may be asked.
    pub(crate) fn wanted(&self, job: &Job) {
        if self.reach.wanted(job.url()) {
            let url = job.url().as_str();
            tracing::info!(url, "the crawl begins at an address of this machine or its network: it may ask such addresses");
        }
    }

    /// Notes a filtered host; true the first time.
    pub(crate) fn is_new_filtered_host(&mut self, host: &str) -> bool {
        if self.filtered.contains(host) || self.filtered.len() >= MAX_FILTERED_HOSTS {
            return false;
        }
        self.filtered.insert(Box::from(host))
    }
}

/// Whether `host` is `domain` or one of its subdomains.
fn is_within(host: &str, domain: &str) -> bool {
    host.strip_suffix(domain).is_some_and(|rest| rest.is_empty() || rest.ends_with('.'))
}

/// A domain as the URL parser would write it as a host: lower case, Punycode (WHATWG URL, 3.3).
fn canonical_domain(domain: &str) -> String {
    let trimmed = domain.trim().trim_start_matches('.');
    url::Host::parse(trimmed).map_or_else(|_| trimmed.to_ascii_lowercase(), |host| host.to_string())
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing)]
    use super::*;
    use crate::scheduler::testing::{config, job};

    fn scope(domains: &[&str], depth_limit: u32, url_length_limit: usize) -> Scope {
        Scope::new(&SchedulerConfig {
            allowed_domains: domains.iter().map(ToString::to_string).collect(),
            depth_limit,
            url_length_limit,
            ..config()
        })
    }

    #[test]
    fn a_host_is_inside_when_it_is_an_allowed_domain_or_below_one() {
        // (allowed, url, offsite)
        let table: &[(&[&str], &str, bool)] = &[
            (&[], "http://any.test/", false),
            (&["a.test"], "http://a.test/", false),
            (&["a.test"], "http://www.a.test/", false),
            (&["a.test"], "http://x.y.a.test:8080/", false),
            (&["a.test"], "http://xa.test/", true),
            (&["a.test"], "http://a.test.evil.test/", true),
            (&["a.test"], "http://test/", true),
            (&["a.test", "b.test"], "https://b.test/", false),
            (&["A.Test"], "http://a.test/", false),
            (&[".a.test"], "http://a.test/", false),
            (&["bücher.test"], "http://xn--bcher-kva.test/", false),
            (&["127.0.0.1"], "http://127.0.0.1/", false),
            (&["[::1]"], "http://[::1]/", false),
            (&["a.test"], "data:text/plain,a.test", true),
        ];
        for (allowed, url, offsite) in table {
            assert_eq!(scope(allowed, 0, 0).is_offsite(&job(0, url).request), *offsite, "{allowed:?} {url}");
        }
    }

    #[test]
    fn a_request_that_may_leave_passes() {
        let scope = scope(&["a.test"], 0, 0);
        let mut request = job(0, "http://b.test/").request;
        assert!(scope.is_offsite(&request));
        assert!(!scope.is_offsite(request.clone().allow_offsite()));
        assert!(!scope.is_offsite(request.dont_filter()));
    }

    #[test]
    fn limits_are_inclusive_and_zero_is_none() {
        let url = "http://a.test/123456";
        let mut deep = job(0, url);
        deep.depth = 3;
        assert_eq!(scope(&[], 3, url.len()).check(&deep), None);
        assert_eq!(scope(&[], 2, 0).check(&deep), Some(Outside::TooDeep));
        assert_eq!(scope(&[], 0, url.len() - 1).check(&deep), Some(Outside::TooLong));
        assert_eq!(scope(&[], 0, 0).check(&deep), None);
        assert_eq!(scope(&["b.test"], 2, 1).check(&deep), Some(Outside::Offsite));
    }

    #[test]
    fn filtered_hosts_are_new_once_and_bounded() {
        let mut scope = scope(&["a.test"], 0, 0);
        assert!(scope.is_new_filtered_host("b.test"));
        assert!(!scope.is_new_filtered_host("b.test"));
        let new = (0..2 * MAX_FILTERED_HOSTS).filter(|n| scope.is_new_filtered_host(&n.to_string())).count();
        assert_eq!(new, MAX_FILTERED_HOSTS - 1);
    }
}
