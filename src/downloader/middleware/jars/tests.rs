//! Whose word counts about a cookie: the site's, the plane's, and in which order they came.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing)]

use std::time::Duration;

use super::*;
use crate::api::request::Request;
use crate::downloader::middleware::cookies::{Leg, merge};
use crate::plane::{About, LeaseId};

pub(super) fn lease(identity: &str, cookies: &[(&str, &str)], expires_in: u64) -> Grant {
    let cookies = cookies.iter().map(|(name, value)| ((*name).to_owned(), (*value).into())).collect();
    Grant {
        lease: LeaseId("lease".into()),
        identity: IdentityKey { site: "shop".into(), name: identity.into() },
        credential: Arc::new(Credential { cookies, ..Credential::default() }),
        proxy: None,
        about: About::default(),
        expires_at: Instant::now() + Duration::from_secs(expires_in),
        renew_before: Duration::ZERO,
    }
}

fn url() -> Url {
    Url::parse("https://shop.example/a").unwrap()
}

fn answer(cookie: &str) -> HeaderMap {
    HeaderMap::from_iter([(SET_COOKIE, HeaderValue::from_str(cookie).unwrap())])
}

pub(super) fn says(jars: &Jars, grant: &Grant, cookie: &str) {
    jars.store(grant, &url(), &answer(cookie));
}

/// The `Cookie` header of a request under this lease.
pub(super) fn sent(jars: &Jars, grant: &Grant) -> String {
    sent_on(jars, grant, &[], Leg::First)
}

fn sent_on(jars: &Jars, grant: &Grant, own: &[(&str, &str)], leg: Leg) -> String {
    let mut request = Request::get(url().as_str(), &()).unwrap();
    for (name, value) in own {
        request.cookie(*name, *value);
    }
    let jar = jars.header(grant, &url());
    let value = merge(&request, jar, &grant.credential, &HeaderMap::new(), leg);
    value.map(|value| value.to_str().unwrap().to_owned()).unwrap_or_default()
}

fn jars() -> Jars {
    Jars::new(&Stats::new())
}

#[tokio::test(start_paused = true)]
async fn a_cookie_of_the_site_goes_before_the_credentials() {
    let jars = jars();
    let grant = lease("a", &[("sid", "plane"), ("device", "1")], 60);
    assert_eq!(sent(&jars, &grant), "sid=plane; device=1");
    says(&jars, &grant, "sid=site; Path=/");
    assert_eq!(sent(&jars, &grant), "sid=site; device=1");
    let same_words = lease("a", &[("sid", "plane"), ("device", "1")], 90);
    assert_eq!(sent(&jars, &same_words), "sid=site; device=1", "another lease of the same credential");
}

#[tokio::test(start_paused = true)]
async fn a_cookie_that_the_plane_refreshes_goes_before_the_sites_older_one() {
    let jars = jars();
    let first = lease("a", &[("sid", "plane-1"), ("device", "1")], 60);
    says(&jars, &first, "sid=site-1; Path=/");
    says(&jars, &first, "seen=yes; Path=/");
    let second = lease("a", &[("sid", "plane-2"), ("device", "1")], 60);
    assert_eq!(sent(&jars, &second), "seen=yes; sid=plane-2; device=1", "only the cookie that changed is dropped");
    assert_eq!(sent(&jars, &second), "seen=yes; sid=plane-2; device=1");
}

#[tokio::test(start_paused = true)]
async fn after_both_refreshed_a_cookie_the_last_word_counts() {
    let jars = jars();
    let first = lease("a", &[("sid", "plane-1")], 60);
    says(&jars, &first, "sid=site-1; Path=/");
    let second = lease("a", &[("sid", "plane-2")], 60);
    assert_eq!(sent(&jars, &second), "sid=plane-2");
    says(&jars, &second, "sid=site-2; Path=/");
    assert_eq!(sent(&jars, &second), "sid=site-2");
    let third = lease("a", &[("sid", "plane-3")], 60);
    assert_eq!(sent(&jars, &third), "sid=plane-3");
}

#[tokio::test(start_paused = true)]
async fn a_cookie_that_the_plane_delivers_for_the_first_time_replaces_the_sites() {
    let jars = jars();
    let before = lease("a", &[], 60);
    says(&jars, &before, "sid=anonymous; Path=/");
    assert_eq!(sent(&jars, &before), "sid=anonymous");
    assert_eq!(sent(&jars, &lease("a", &[("sid", "logged-in")], 61)), "sid=logged-in");
}

#[tokio::test(start_paused = true)]
async fn a_lease_left_over_from_before_a_refresh_changes_nothing() {
    let jars = jars();
    let old = lease("a", &[("sid", "plane-1")], 60);
    says(&jars, &old, "other=1; Path=/");
    let new = lease("a", &[("sid", "plane-2")], 70);
    sent(&jars, &new);
    says(&jars, &new, "sid=site-2; Path=/");
    assert_eq!(sent(&jars, &old), "other=1; sid=site-2");
    says(&jars, &old, "sid=late; Path=/");
    says(&jars, &old, "third=3; Path=/");
    assert_eq!(sent(&jars, &new), "other=1; sid=site-2; third=3", "an answer to the old session says nothing about the new one");
    let back = lease("a", &[("sid", "plane-1")], 80);
    assert_eq!(sent(&jars, &back), "other=1; third=3; sid=plane-1", "the plane took its refresh back");
}

#[tokio::test(start_paused = true)]
async fn a_cookie_that_the_site_deletes_is_the_credentials_again() {
    let jars = jars();
    let grant = lease("a", &[("sid", "plane")], 60);
    says(&jars, &grant, "sid=site; Path=/");
    says(&jars, &grant, "sid=; Path=/; Max-Age=0");
    assert_eq!(sent(&jars, &grant), "sid=plane");
}

#[tokio::test(start_paused = true)]
async fn a_cookie_in_a_credentials_header_counts_like_one_of_its_map() {
    let jars = jars();
    let with = |value: &'static str| {
        let mut grant = lease("a", &[("device", "1")], 60);
        let headers = HeaderMap::from_iter([(http::header::COOKIE, HeaderValue::from_static(value))]);
        grant.credential = Arc::new(Credential { headers, ..Credential::clone(&grant.credential) });
        grant
    };
    let first = with("sid=plane-1; device=2");
    says(&jars, &first, "sid=site; Path=/");
    assert_eq!(sent(&jars, &first), "sid=site; device=1");
    assert_eq!(sent(&jars, &with("device=2; sid=plane-2")), "device=1; sid=plane-2");
}

#[tokio::test(start_paused = true)]
async fn a_refresh_of_one_identity_leaves_another_alone() {
    let jars = jars();
    let (a, b) = (lease("a", &[("sid", "plane-a")], 60), lease("b", &[("sid", "plane-b")], 60));
    says(&jars, &a, "sid=canary-a; Path=/");
    assert_eq!(sent(&jars, &b), "sid=plane-b");
    says(&jars, &b, "sid=canary-b; Path=/");
    assert_eq!(sent(&jars, &lease("a", &[("sid", "plane-a2")], 60)), "sid=plane-a2");
    assert_eq!(sent(&jars, &b), "sid=canary-b");
    let other_host = Url::parse("https://other.example/a").unwrap();
    assert_eq!(jars.header(&b, &other_host), None);
}

#[tokio::test(start_paused = true)]
async fn on_a_redirect_the_jar_goes_before_the_spider_and_the_planes_new_word_before_the_jar() {
    let jars = jars();
    let first = lease("a", &[("sid", "plane-1"), ("c", "plane")], 60);
    says(&jars, &first, "c=2; Path=/");
    assert_eq!(sent_on(&jars, &first, &[("c", "own")], Leg::First), "c=own; sid=plane-1");
    assert_eq!(sent_on(&jars, &first, &[("c", "own")], Leg::Redirected), "c=2; sid=plane-1");
    let second = lease("a", &[("sid", "plane-1"), ("c", "plane-2")], 60);
    assert_eq!(sent_on(&jars, &second, &[], Leg::Redirected), "sid=plane-1; c=plane-2");
    assert_eq!(sent_on(&jars, &lease("b", &[], 60), &[], Leg::Redirected), "", "another lease, another jar");
}

#[tokio::test(start_paused = true)]
async fn jars_beyond_the_bound_go_and_are_counted() {
    let stats = Stats::new();
    let jars = Jars::with_bound(&stats, 4);
    for n in 0..20 {
        says(&jars, &lease(&n.to_string(), &[], 60), "a=b");
        jars.tidy();
    }
    assert_eq!(stats.count("cookies/jars_evicted"), 16);
    assert!(jars.header(&lease("19", &[], 60), &url()).is_some());
    assert!(jars.header(&lease("0", &[], 60), &url()).is_none());
}
