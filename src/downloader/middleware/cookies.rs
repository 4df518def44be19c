//! Cookies: one jar per identity, and the merge of jar, credential and request into one header.
//!
//! Precedence per cookie name: credential < jar < what the spider set; after a redirect the jar goes before the
//! spider, since an answer on the way may have changed the cookie. Jars are bounded in number; the one unused
//! for longest goes, and is counted. No jar is ever read for another identity.

use std::collections::HashSet;
use std::sync::{Arc, Mutex, PoisonError};

use http::header::{COOKIE, SET_COOKIE};
use http::{HeaderMap, HeaderValue};
use moka::notification::RemovalCause;
use moka::policy::EvictionPolicy;
use moka::sync::Cache;
use secrecy::ExposeSecret;
use url::Url;

use crate::api::request::Request;
use crate::api::stats::Stats;
use crate::plane::{Credential, IdentityKey};
use crate::web::cookies::Jar;

/// Jars kept at once.
const JARS_MAX: u64 = 10_000;

/// The jars of a crawl.
pub(crate) struct Jars {
    jars: Cache<IdentityKey, Arc<Mutex<Jar>>>,
}

impl Jars {
    /// No jars yet; evictions are counted in `stats`.
    pub(crate) fn new(stats: &Stats) -> Self {
        Self::with_bound(stats, JARS_MAX)
    }

    fn with_bound(stats: &Stats, most: u64) -> Self {
        let stats = stats.clone();
        let jars = Cache::builder()
            .max_capacity(most)
            .eviction_policy(EvictionPolicy::lru())
            .eviction_listener(move |_: Arc<IdentityKey>, _, cause| {
                if cause == RemovalCause::Size {
                    stats.inc("cookies/jars_evicted");
                }
            })
            .build();
        Self { jars }
    }

    /// The jar's `Cookie` value for a URL.
    pub(crate) fn header(&self, identity: &IdentityKey, url: &Url) -> Option<HeaderValue> {
        let jar = self.jars.get(identity)?;
        jar.lock().unwrap_or_else(PoisonError::into_inner).header(url)
    }

    /// Keeps the cookies of an answer from `url`.
    pub(crate) fn store(&self, identity: &IdentityKey, url: &Url, headers: &HeaderMap) {
        if !headers.contains_key(SET_COOKIE) {
            return;
        }
        let jar = match self.jars.get(identity) {
            Some(jar) => jar,
            None => self.jars.get_with(identity.clone(), Arc::default),
        };
        jar.lock().unwrap_or_else(PoisonError::into_inner).set(url, headers.get_all(SET_COOKIE).iter());
    }

    /// Does the eviction that is due.
    pub(crate) fn tidy(&self) {
        self.jars.run_pending_tasks();
    }
}

/// Where a request stands in a redirect chain.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Leg {
    First,
    Redirected,
}

/// The `Cookie` header of a request; `None` when no source has one for it.
pub(crate) fn merge(request: &Request, jar: Option<HeaderValue>, credential: &Credential, leg: Leg) -> Option<HeaderValue> {
    let by_hand = request.headers().and_then(|headers| headers.get(COOKIE));
    let granted = credential.headers.get(COOKIE);
    let is_plain = request.cookies().is_empty() && by_hand.is_none() && granted.is_none() && credential.cookies.is_empty();
    if is_plain {
        return jar;
    }
    let mut line = Line::default();
    if leg == Leg::Redirected {
        line.level(jar.iter().flat_map(pairs), Twins::Keep);
    }
    line.level(request.cookies().iter().rev().map(|(name, value)| (name.as_bytes(), value.as_bytes())), Twins::Drop);
    line.level(by_hand.into_iter().flat_map(pairs), Twins::Keep);
    if leg == Leg::First {
        line.level(jar.iter().flat_map(pairs), Twins::Keep);
    }
    line.level(credential.cookies.iter().map(|(name, value)| (name.as_bytes(), value.expose_secret().as_bytes())), Twins::Keep);
    line.level(granted.into_iter().flat_map(pairs), Twins::Keep);
    line.finish()
}

/// Whether one level may have several cookies of one name (a jar may: by path).
#[derive(Clone, Copy, PartialEq, Eq)]
enum Twins {
    Keep,
    Drop,
}

/// A `Cookie` value under construction.
#[derive(Default)]
struct Line<'a> {
    text: Vec<u8>,
    taken: HashSet<&'a [u8]>,
}

impl<'a> Line<'a> {
    /// Adds the cookies whose names no level before had.
    fn level(&mut self, cookies: impl Iterator<Item = (&'a [u8], &'a [u8])>, twins: Twins) {
        let mut here = Vec::new();
        for (name, value) in cookies {
            // A separator or a control character inside would make one cookie look like two.
            let is_sound = name.iter().chain(value).all(|byte| *byte >= b' ' && *byte != b';' && *byte != 0x7f);
            if !is_sound || self.taken.contains(name) || (twins == Twins::Drop && here.contains(&name)) {
                continue;
            }
            here.push(name);
            if !self.text.is_empty() {
                self.text.extend_from_slice(b"; ");
            }
            self.text.extend_from_slice(name);
            self.text.push(b'=');
            self.text.extend_from_slice(value);
        }
        self.taken.extend(here);
    }

    fn finish(self) -> Option<HeaderValue> {
        if self.text.is_empty() {
            return None;
        }
        let mut value = HeaderValue::from_bytes(&self.text).ok()?;
        value.set_sensitive(true);
        Some(value)
    }
}

/// Names and values of a `Cookie` header.
fn pairs(header: &HeaderValue) -> impl Iterator<Item = (&[u8], &[u8])> {
    header.as_bytes().split(|byte| *byte == b';').map(<[u8]>::trim_ascii).filter(|pair| !pair.is_empty()).map(|pair| {
        match memchr::memchr(b'=', pair) {
            Some(at) => {
                let (name, value) = pair.split_at(at);
                (name, value.get(1..).unwrap_or_default())
            }
            None => (pair, [].as_slice()),
        }
    })
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing)]
    use super::*;

    fn identity(name: &str) -> IdentityKey {
        IdentityKey { site: "shop".into(), name: name.into() }
    }

    fn answer(cookie: &'static str) -> HeaderMap {
        HeaderMap::from_iter([(SET_COOKIE, HeaderValue::from_static(cookie))])
    }

    fn request(by_hand: Option<&str>, cookies: &[(&str, &str)]) -> Request {
        let mut request = Request::get("https://shop.example/", &()).unwrap();
        if let Some(text) = by_hand {
            request.header("cookie", text).unwrap();
        }
        for (name, value) in cookies {
            request.cookie(*name, *value);
        }
        request
    }

    #[test]
    fn each_level_wins_over_the_one_below_it_by_name() {
        let jar = || Some(HeaderValue::from_static("a=jar; b=jar; b=jar2"));
        let credential = |cookies: &[(&str, &str)]| Credential {
            cookies: cookies.iter().map(|(n, v)| ((*n).to_owned(), (*v).into())).collect(),
            ..Credential::default()
        };
        let table = [
            // (by hand, cookies, credential, merged)
            (None, vec![], vec![], "a=jar; b=jar; b=jar2"),
            (None, vec![("a", "own")], vec![], "a=own; b=jar; b=jar2"),
            (None, vec![("a", "first"), ("a", "own")], vec![], "a=own; b=jar; b=jar2"),
            (Some("b=hand"), vec![], vec![], "b=hand; a=jar"),
            (Some("a=hand"), vec![("a", "own")], vec![], "a=own; b=jar; b=jar2"),
            (None, vec![], vec![("a", "grant"), ("c", "grant")], "a=jar; b=jar; b=jar2; c=grant"),
            (None, vec![("c", "own")], vec![("c", "grant")], "c=own; a=jar; b=jar; b=jar2"),
        ];
        for (by_hand, cookies, granted, merged) in table {
            let value = merge(&request(by_hand, &cookies), jar(), &credential(&granted), Leg::First).unwrap();
            assert_eq!(value, merged);
        }
        assert_eq!(merge(&request(None, &[]), None, &Credential::default(), Leg::First), None);
        let after_redirect = merge(&request(None, &[("a", "own"), ("d", "own")]), jar(), &Credential::default(), Leg::Redirected);
        assert_eq!(after_redirect.unwrap(), "a=jar; b=jar; b=jar2; d=own");
    }

    #[test]
    fn a_cookie_that_would_look_like_two_is_left_out() {
        let value = merge(&request(None, &[("a", "1; b=2"), ("c", "3")]), None, &Credential::default(), Leg::First);
        assert_eq!(value.unwrap(), "c=3");
    }

    #[test]
    fn a_jar_is_read_for_its_own_identity_only() {
        let jars = Jars::new(&Stats::new());
        let url = Url::parse("https://shop.example/a").unwrap();
        jars.store(&identity("a"), &url, &answer("sid=canary-a"));
        assert_eq!(jars.header(&identity("a"), &url).unwrap(), "sid=canary-a");
        assert_eq!(jars.header(&identity("b"), &url), None);
        assert_eq!(jars.header(&identity("a"), &Url::parse("https://other.example/a").unwrap()), None);
    }

    #[test]
    fn jars_beyond_the_bound_go_and_are_counted() {
        let stats = Stats::new();
        let jars = Jars::with_bound(&stats, 4);
        let url = Url::parse("https://shop.example/a").unwrap();
        for n in 0..20 {
            jars.store(&identity(&n.to_string()), &url, &answer("a=b"));
            jars.tidy();
        }
        assert_eq!(stats.count("cookies/jars_evicted"), 16);
        assert!(jars.header(&identity("19"), &url).is_some());
        assert!(jars.header(&identity("0"), &url).is_none());
    }
}
