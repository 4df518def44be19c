//! What the settings and the two policies say of a request and its answer: pure decisions.
//!
//! `dummy` uses every stored answer, `rfc9111` those that the rules of HTTP allow. Both store neither what was cut short
//! nor what answers a condition or a range of the request's own.

use std::time::{Duration, SystemTime};

use http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode};

use super::rfc9111::{self, Stored, Trouble};
use crate::downloader::cache_store::Head;
use crate::downloader::transport::Reply;
use crate::settings::{CachePolicy, Settings};

/// The settings of the cache.
#[derive(Debug, Clone)]
pub(crate) struct CacheRules {
    policy: CachePolicy,
    expiration: Duration,
    ignored_codes: Vec<u16>,
    ignored_schemes: Vec<String>,
    ignore_missing: bool,
    always_store: bool,
}

/// How a request stands to the cache.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    /// Its answer is looked for and stored.
    Cached,
    /// It may change what other requests get: answers to those are forgotten (RFC 9111, 4.4).
    Unsafe,
    /// Neither.
    Passed,
}

/// What a stored answer is good for now.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Good {
    /// It is given out, with this age where the policy counts one.
    AsItIs(Option<Duration>),
    /// If the site confirms it, asked with these headers.
    IfConfirmed(Vec<(HeaderName, HeaderValue)>),
    /// For nothing.
    Nothing,
}

impl CacheRules {
    pub(crate) fn of(settings: &Settings) -> Self {
        Self {
            policy: settings.httpcache_policy,
            expiration: settings.httpcache_expiration,
            ignored_codes: settings.httpcache_ignore_http_codes.clone(),
            ignored_schemes: settings.httpcache_ignore_schemes.iter().map(|s| s.to_ascii_lowercase()).collect(),
            ignore_missing: settings.httpcache_ignore_missing,
            always_store: settings.httpcache_always_store,
        }
    }

    /// How a request stands to the cache, by what goes out.
    pub(crate) fn kind(&self, scheme: &str, method: &Method, headers: &HeaderMap) -> Kind {
        if self.ignored_schemes.iter().any(|ignored| ignored == scheme) {
            return Kind::Passed;
        }
        if rfc9111::is_conditional(headers) {
            return Kind::Passed;
        }
        match (self.policy, method) {
            (CachePolicy::Dummy, _) => Kind::Cached,
            (CachePolicy::Rfc9111, &Method::GET | &Method::HEAD) if rfc9111::forbids_storing(headers) => Kind::Passed,
            (CachePolicy::Rfc9111, &Method::GET | &Method::HEAD) => Kind::Cached,
            (CachePolicy::Rfc9111, &Method::OPTIONS | &Method::TRACE) => Kind::Passed,
            (CachePolicy::Rfc9111, _) => Kind::Unsafe,
        }
    }

    /// Whether the site may not be asked for what is not stored.
    pub(crate) fn is_offline(&self, request: &HeaderMap) -> bool {
        self.ignore_missing || (self.policy == CachePolicy::Rfc9111 && rfc9111::wants_only_cached(request))
    }

    /// Whether `Vary` counts.
    pub(crate) fn varies(&self) -> bool {
        self.policy == CachePolicy::Rfc9111
    }

    /// What a stored answer is good for.
    pub(crate) fn good(&self, head: &Head, method: &Method, request: &HeaderMap, now: SystemTime) -> Good {
        let is_expired = |age: Duration| !self.expiration.is_zero() && age >= self.expiration;
        // One that was stored later than now is of a clock that was put back: its age is not known.
        if now.duration_since(head.stored_at).is_ok_and(is_expired) {
            return Good::Nothing;
        }
        match self.policy {
            CachePolicy::Dummy => Good::AsItIs(None),
            CachePolicy::Rfc9111 => match rfc9111::may_use(stored(head, method), request, now) {
                rfc9111::Use::Fresh(age) => Good::AsItIs(Some(age)),
                rfc9111::Use::Validate(conditions) => Good::IfConfirmed(conditions),
            },
        }
    }

    /// Whether an answer is stored; `request` is what went out, but for conditions of the cache's own.
    pub(crate) fn stores(&self, method: &Method, request: &HeaderMap, reply: &Reply, now: SystemTime) -> bool {
        let is_whole = !reply.flags.data_loss && reply.status != StatusCode::NOT_MODIFIED;
        if !is_whole || self.ignored_codes.contains(&reply.status.as_u16()) {
            return false;
        }
        match self.policy {
            CachePolicy::Dummy => true,
            CachePolicy::Rfc9111 if self.always_store => {
                !rfc9111::forbids_storing(request)
                    && !rfc9111::forbids_storing(&reply.headers)
                    && rfc9111::vary(&reply.headers).is_some()
            }
            CachePolicy::Rfc9111 => {
                rfc9111::may_store(request, Stored { method, status: reply.status, headers: &reply.headers, at: now })
            }
        }
    }

    /// Whether a stale answer stands in for this error.
    pub(crate) fn stands_in(&self, head: &Head, method: &Method, request: &HeaderMap, now: SystemTime, trouble: Trouble) -> bool {
        self.policy == CachePolicy::Rfc9111 && rfc9111::stands_in(stored(head, method), request, now, trouble)
    }
}

/// The error an answer is, if a stale one may stand in for it.
pub(crate) fn trouble(status: StatusCode) -> Option<Trouble> {
    matches!(status.as_u16(), 500 | 502 | 503 | 504).then_some(Trouble::Status)
}

/// A stored answer as the rules of RFC 9111 see it.
pub(crate) fn stored<'a>(head: &'a Head, method: &'a Method) -> Stored<'a> {
    Stored { method, status: head.status, headers: &head.headers, at: head.stored_at }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use bytes::Bytes;
    use http::Version;

    use super::*;
    use crate::downloader::transport::BodyFlags;
    use crate::settings::Layers;

    fn rules(pairs: &[&str]) -> CacheRules {
        let layers = pairs.iter().fold(Layers::new(), |layers, pair| layers.set(pair));
        CacheRules::of(&layers.resolve().unwrap().settings)
    }

    fn with_policy(policy: &str) -> CacheRules {
        CacheRules { policy: if policy == "dummy" { CachePolicy::Dummy } else { CachePolicy::Rfc9111 }, ..rules(&[]) }
    }

    fn map(pairs: &[(&'static str, &'static str)]) -> HeaderMap {
        pairs.iter().map(|(name, value)| (HeaderName::from_static(name), HeaderValue::from_static(value))).collect()
    }

    fn reply(status: u16, headers: &[(&'static str, &'static str)]) -> Reply {
        Reply {
            status: StatusCode::from_u16(status).unwrap(),
            version: Version::HTTP_11,
            headers: map(headers),
            body: Bytes::new(),
            wire_bytes: 0,
            flags: BodyFlags::default(),
        }
    }

    #[test]
    fn how_requests_stand_to_the_cache() {
        for (policy, scheme, method, headers, kind) in [
            ("dummy", "https", "GET", map(&[]), Kind::Cached),
            ("dummy", "https", "POST", map(&[]), Kind::Cached),
            ("dummy", "https", "GET", map(&[("cache-control", "no-store")]), Kind::Cached),
            ("dummy", "https", "GET", map(&[("range", "bytes=0-1")]), Kind::Passed),
            ("dummy", "file", "GET", map(&[]), Kind::Passed),
            ("rfc9111", "https", "GET", map(&[]), Kind::Cached),
            ("rfc9111", "https", "HEAD", map(&[]), Kind::Cached),
            ("rfc9111", "https", "GET", map(&[("if-none-match", "\"a\"")]), Kind::Passed),
            ("rfc9111", "https", "GET", map(&[("cache-control", "no-store")]), Kind::Passed),
            ("rfc9111", "https", "OPTIONS", map(&[]), Kind::Passed),
            ("rfc9111", "https", "POST", map(&[]), Kind::Unsafe),
            ("rfc9111", "https", "PURGE", map(&[]), Kind::Unsafe),
        ] {
            let found = with_policy(policy).kind(scheme, &method.parse().unwrap(), &headers);
            assert_eq!(found, kind, "{policy} {scheme} {method} {headers:?}");
        }
    }

    #[test]
    fn which_answers_are_stored() {
        let partial = Reply { flags: BodyFlags { data_loss: true, ..BodyFlags::default() }, ..reply(200, &[]) };
        let ignoring = CacheRules { ignored_codes: vec![503], ..with_policy("dummy") };
        let always = CacheRules { always_store: true, ..with_policy("rfc9111") };
        for (rules, reply, stores) in [
            (with_policy("dummy"), reply(200, &[("cache-control", "no-store")]), true),
            (with_policy("dummy"), reply(503, &[]), true),
            (with_policy("dummy"), reply(304, &[]), false),
            (with_policy("dummy"), partial, false),
            (ignoring, reply(503, &[]), false),
            (with_policy("rfc9111"), reply(200, &[]), false),
            (with_policy("rfc9111"), reply(200, &[("etag", "\"a\"")]), true),
            (always.clone(), reply(200, &[]), true),
            (always.clone(), reply(503, &[]), true),
            (always.clone(), reply(200, &[("cache-control", "no-store")]), false),
            (always, reply(200, &[("vary", "*")]), false),
        ] {
            assert_eq!(rules.stores(&Method::GET, &map(&[]), &reply, SystemTime::now()), stores, "{rules:?} {:?}", reply.headers);
        }
    }

    #[test]
    fn the_settings_are_read() {
        let read = rules(&[
            "HTTPCACHE_POLICY=rfc9111",
            "HTTPCACHE_EXPIRATION_SECS=60",
            "HTTPCACHE_IGNORE_HTTP_CODES=404",
            "HTTPCACHE_IGNORE_SCHEMES=HTTP",
            "HTTPCACHE_IGNORE_MISSING=true",
            "HTTPCACHE_ALWAYS_STORE=true",
        ]);
        assert_eq!(read.expiration, Duration::from_secs(60));
        assert_eq!(read.ignored_codes, [404]);
        assert_eq!(read.kind("http", &Method::GET, &map(&[])), Kind::Passed);
        assert!(read.is_offline(&map(&[])) && read.always_store && read.varies());
        let other = with_policy("rfc9111");
        assert!(other.is_offline(&map(&[("cache-control", "only-if-cached")])) && !other.is_offline(&map(&[])));
    }
}
