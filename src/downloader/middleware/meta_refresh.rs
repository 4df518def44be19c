//! Refreshes that a page asks for (580), followed like redirects. Decides; never sends.
//!
//! A page is parsed only when its bytes name a refresh ([`may_declare`]), and only its first part. What cannot be followed
//! leaves the page to its callback: other than a redirect's, its body is worth something.

use std::borrow::Cow;
use std::time::Duration;

use encoding_rs::{Encoding, UTF_8};
use http::header::{CONTENT_TYPE, REFRESH, SET_COOKIE};
use http::{HeaderMap, Method};

use super::granted;
use super::http_error::asks_for;
use super::referer::policy_of;
use crate::api::failure::Fault;
use crate::api::links::base_url;
use crate::downloader::config::{RedirectRules, RefreshRules};
use crate::downloader::message::Hop;
use crate::downloader::transport::Reply;
use crate::html::Page;
use crate::plane::Credential;
use crate::scheduler::job::{Job, JobKind};
use crate::web::charset;
use crate::web::refresh::{LOOKED_AT, Refresh, declared, may_declare};

/// What a page leads to; `None` when it stays.
pub(crate) fn decide(
    rules: &RefreshRules,
    redirects: RedirectRules,
    job: &Job,
    credential: &Credential,
    reply: &Reply,
) -> Option<Result<Hop, Fault>> {
    let is_followed = rules.enabled
        && job.kind == JobKind::Page
        && job.request.follows_redirects()
        && *job.method() != Method::HEAD
        && is_page(&reply.headers)
        && (reply.status.is_success() || !asks_for(job, reply.status));
    if !is_followed {
        return None;
    }
    let (after, mut to) = of_header(reply, job).or_else(|| of_body(rules, reply, job))?;
    if after >= rules.max_delay || !matches!(to.scheme(), "http" | "https") || !to.has_host() {
        return None;
    }
    if granted::clear(&mut to, credential).is_err() || is_reload(job, &to, reply) {
        return None;
    }
    if let Err(fault) = super::redirect::check_hops(redirects, job) {
        return Some(Err(fault));
    }
    let becomes_get = *job.method() != Method::GET;
    Some(Ok(Hop { to, becomes_get, after, referrer_policy: policy_of(&reply.headers) }))
}

/// A page that names itself is what it is, however often it is loaded. Only one that sets a cookie may be another one the
/// next time, and then it is loaded once more.
fn is_reload(job: &Job, to: &url::Url, reply: &Reply) -> bool {
    let is_itself = {
        let (mut here, mut there) = (job.url().clone(), to.clone());
        here.set_fragment(None);
        there.set_fragment(None);
        here == there
    };
    is_itself && (!reply.headers.contains_key(SET_COOKIE) || job.chain.contains(&job.key))
}

/// A header is not a page's only: what says that it is something else is none.
fn is_page(headers: &HeaderMap) -> bool {
    let Some(value) = headers.get(CONTENT_TYPE) else { return true };
    let essence = value.as_bytes().split(|byte| matches!(byte, b';' | b',')).next().unwrap_or_default().trim_ascii();
    [&b"text/html"[..], b"application/xhtml+xml", b"application/vnd.wap.xhtml+xml"]
        .iter()
        .any(|known| essence.eq_ignore_ascii_case(known))
}

fn of_header(reply: &Reply, job: &Job) -> Option<(Duration, url::Url)> {
    let bytes = reply.headers.get(REFRESH)?.as_bytes();
    let text = match std::str::from_utf8(bytes) {
        Ok(text) => Cow::Borrowed(text),
        // As a `Location`: bytes beyond ASCII are kept as received.
        Err(_) => Cow::Owned(bytes.iter().map(|byte| escaped(*byte)).collect()),
    };
    target(&Refresh::parse(&text)?, job.url(), UTF_8)
}

fn of_body(rules: &RefreshRules, reply: &Reply, job: &Job) -> Option<(Duration, url::Url)> {
    let body = &reply.body;
    let is_wide = matches!(body.get(..2), Some([0xfe, 0xff] | [0xff, 0xfe]));
    if !is_wide && !may_declare(body) {
        return None;
    }
    let content_type = reply.headers.get(CONTENT_TYPE).and_then(|value| value.to_str().ok());
    let tld = job.url().domain().and_then(|domain| domain.rsplit('.').next());
    let (text, encoding) = charset::decode(head(body), content_type, tld);
    if is_wide && !may_declare(text.as_bytes()) {
        return None;
    }
    let page = Page::parse_with(&text, &rules.html);
    let refresh = declared(&page, &rules.ignored)?;
    target(&refresh, &base_url(&page, job.url()), encoding)
}

fn target(refresh: &Refresh, base: &url::Url, encoding: &'static Encoding) -> Option<(Duration, url::Url)> {
    Some((refresh.after, refresh.target(base, encoding)?))
}

fn escaped(byte: u8) -> String {
    if byte.is_ascii() { char::from(byte).to_string() } else { format!("%{byte:02X}") }
}

/// The part of a body that is looked at, not cut within a character of UTF-8.
fn head(body: &[u8]) -> &[u8] {
    let Some((head, _)) = body.split_at_checked(LOOKED_AT) else { return body };
    match std::str::from_utf8(head) {
        Err(error) if error.error_len().is_none() => head.get(..error.valid_up_to()).unwrap_or(head),
        _ => head,
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing)]
    use bytes::Bytes;
    use http::{HeaderValue, StatusCode, Version};

    use super::*;
    use crate::api::failure::FailureKind;
    use crate::api::request::{HandleStatus, Request};
    use crate::downloader::config::DownloaderConfig;
    use crate::downloader::transport::BodyFlags;
    use crate::scheduler::job::RequestId;
    use crate::settings::Settings;
    use crate::web::referrer_policy::ReferrerPolicy;

    const META: &str = "<meta http-equiv=refresh content='0;url=/next'>";

    fn reply(headers: &[(&'static str, &'static str)], body: impl Into<Bytes>) -> Reply {
        Reply {
            status: StatusCode::OK,
            version: Version::HTTP_11,
            headers: headers.iter().map(|(name, value)| (name.parse().unwrap(), HeaderValue::from_static(value))).collect(),
            body: body.into(),
            wire_bytes: 0,
            flags: BodyFlags::default(),
        }
    }

    fn job() -> Job {
        Job::page(RequestId(1), 1, Request::get("http://a.test/d/p?q=1#f", &()).unwrap())
    }

    fn decided(job: &Job, reply: &Reply) -> Option<Result<Hop, Fault>> {
        let config = DownloaderConfig::from_settings(&Settings::default());
        decide(&config.refresh, config.redirect, job, &Credential::default(), reply)
    }

    fn led(reply: &Reply) -> Option<(String, u64)> {
        decided(&job(), reply).map(|hop| hop.unwrap()).map(|hop| (hop.to.into(), hop.after.as_secs()))
    }

    #[test]
    fn a_page_leads_where_its_header_or_its_first_meta_says() {
        let html = ("content-type", "text/html; charset=utf-8");
        for (headers, body, to) in [
            (&[html][..], META, Some(("http://a.test/next", 0))),
            (&[], META, Some(("http://a.test/next", 0))),
            (
                &[html],
                "<base href='http://b.test/r/'><meta http-equiv=Refresh content='3; url=x'>",
                Some(("http://b.test/r/x", 3)),
            ),
            (&[html, ("refresh", "7;url=x")], META, Some(("http://a.test/d/x", 7))),
            (&[html, ("refresh", "junk")], META, Some(("http://a.test/next", 0))),
            (&[html], "<noscript><meta http-equiv=refresh content='0;url=/n'></noscript>", None),
            (&[html], "<!-- <meta http-equiv=refresh content='0;url=/n'> -->", None),
            (&[html], "<meta http-equiv=refresh content='100;url=/n'>", None),
            (&[html], "<meta http-equiv=refresh content='99;url=/n'>", Some(("http://a.test/n", 99))),
            (&[html], "<meta http-equiv=refresh content='0'>", None),
            (&[html], "<meta http-equiv=refresh content='0;url=mailto:x@y'>", None),
            (&[html], "<meta http-equiv=refresh content='0;url=javascript:x'>", None),
            (&[html], "<meta http-equiv=refresh content='0;url=http://[zz]/'>", None),
            (&[("content-type", "text/plain"), ("refresh", "0;url=x")], META, None),
            (&[html, ("location", "/elsewhere")], "", None),
        ] {
            let reply = reply(headers, body);
            assert_eq!(led(&reply), to.map(|(to, after)| (to.to_owned(), after)), "{headers:?} {body}");
        }
    }

    #[test]
    fn pages_in_other_encodings_are_read_as_browsers_do() {
        let mut wide = vec![0xff, 0xfe];
        wide.extend(META.encode_utf16().flat_map(u16::to_le_bytes));
        assert_eq!(led(&reply(&[], wide)).unwrap().0, "http://a.test/next");
        let latin = b"<meta http-equiv=refresh content='0;url=/\xe9?q=\xe9'>".to_vec();
        assert_eq!(
            led(&reply(&[("content-type", "text/html; charset=iso-8859-1")], latin)).unwrap().0,
            "http://a.test/%C3%A9?q=%E9"
        );
        let mut raw = reply(&[("content-type", "text/html")], "");
        raw.headers.insert(REFRESH, HeaderValue::from_bytes(b"0;url=/caf\xe9").unwrap());
        assert_eq!(led(&raw).unwrap().0, "http://a.test/caf%E9");
    }

    #[test]
    fn a_request_that_wants_the_page_itself_gets_it() {
        let page = reply(&[], META);
        let mut own = job();
        own.request.no_redirect();
        assert!(decided(&own, &page).is_none());
        let mut head = job();
        head.request.set_method(Method::HEAD);
        assert!(decided(&head, &page).is_none());
        let mut robots = job();
        robots.kind = JobKind::Robots;
        assert!(decided(&robots, &page).is_none());
        let missing = Reply { status: StatusCode::NOT_FOUND, ..reply(&[], META) };
        assert!(decided(&job(), &missing).is_some());
        let mut handled = job();
        handled.request.handle_status(HandleStatus::All);
        assert!(decided(&handled, &missing).is_none() && decided(&handled, &page).is_some());
    }

    #[test]
    fn a_post_leads_to_a_get_and_the_hop_takes_the_pages_policy() {
        let mut post = job();
        post.request.set_method(Method::POST);
        let page = reply(&[("referrer-policy", "origin")], META);
        let hop = decided(&post, &page).unwrap().unwrap();
        assert!(hop.becomes_get && hop.referrer_policy == Some(ReferrerPolicy::Origin));
        assert!(!decided(&job(), &page).unwrap().unwrap().becomes_get);
    }

    #[test]
    fn a_page_that_names_itself_is_loaded_once_more_at_most() {
        let body = "<meta http-equiv=refresh content='5;url=/d/p?q=1'>";
        assert_eq!(led(&reply(&[], body)), None);
        let with_cookie = reply(&[("set-cookie", "s=1")], body);
        assert_eq!(led(&with_cookie).unwrap(), ("http://a.test/d/p?q=1".to_owned(), 5));
        let mut again = job();
        (again.hops, again.chain) = (1, vec![again.key]);
        assert!(decided(&again, &with_cookie).is_none());
    }

    #[test]
    fn hops_are_bounded_with_those_of_redirects() {
        let mut late = job();
        late.hops = 20;
        assert_eq!(decided(&late, &reply(&[], META)).unwrap().unwrap_err().kind, FailureKind::RedirectLimit);
        assert!(decided(&late, &reply(&[], "<p>")).is_none());
    }

    #[test]
    fn a_credential_in_the_address_is_not_carried_on() {
        let credential = Credential { query: vec![("key".into(), "canary-value".into())], ..Credential::default() };
        let config = DownloaderConfig::from_settings(&Settings::default());
        let of = |address: &str| {
            let page = reply(&[], format!("<meta http-equiv=refresh content='0;url={address}'>"));
            decide(&config.refresh, config.redirect, &job(), &credential, &page).map(|hop| hop.unwrap().to.to_string())
        };
        assert_eq!(of("/z?key=canary-value&p=2").as_deref(), Some("http://a.test/z?p=2"));
        assert_eq!(of("/s/canary-value"), None, "the page stays where it is");
    }
}
