//! The rules of RFC 9111 for a private cache: what may be stored, what may be used again, what a validation means.
//!
//! Freshness and storability are decided by `http-cache-semantics`. It is handed nothing as it came from a site: names of
//! directives in lower case, one form of dates, ages and lifetimes within bounds (it would add two of any size). `Vary`,
//! validators and the update of a stored answer are ours. A cache of one identity is a private one: `private` answers are
//! stored, and `Authorization` forbids nothing.

use std::time::{Duration, SystemTime};

use http::header::{
    AGE, CACHE_CONTROL, CONNECTION, CONTENT_ENCODING, CONTENT_LENGTH, CONTENT_RANGE, DATE, ETAG, EXPIRES, IF_MATCH,
    IF_MODIFIED_SINCE, IF_NONE_MATCH, IF_RANGE, IF_UNMODIFIED_SINCE, LAST_MODIFIED, PRAGMA, PROXY_AUTHENTICATE,
    PROXY_AUTHORIZATION, RANGE, SET_COOKIE, TE, TRAILER, TRANSFER_ENCODING, UPGRADE, VARY,
};
use http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode, Uri};
use http_cache_semantics::{BeforeRequest, CacheOptions, CachePolicy, RequestLike, ResponseLike};
use jiff::Timestamp;

use crate::web::retry_after::parse_http_date;

/// What a number of seconds too large to be meant counts as (RFC 9111, 1.2.2).
const MOST_SECONDS: u64 = 1 << 31;

/// A stored answer, as far as these rules look at it.
#[derive(Clone, Copy)]
pub(crate) struct Stored<'a> {
    pub(crate) method: &'a Method,
    pub(crate) status: StatusCode,
    pub(crate) headers: &'a HeaderMap,
    /// When it came or was last confirmed.
    pub(crate) at: SystemTime,
}

/// What may be done with a stored answer now.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Use {
    /// It is given out; this is its age.
    Fresh(Duration),
    /// The site is asked with these headers whether it still holds; none: it has no validator.
    Validate(Vec<(HeaderName, HeaderValue)>),
}

/// What went wrong when the site was asked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Trouble {
    /// No answer at all.
    Unreachable,
    /// 500, 502, 503 or 504 (RFC 5861, 4).
    Status,
}

/// Whether an answer may be stored, and would be of any use: it stays fresh for a time, or can be validated, or stands in
/// for an error.
pub(crate) fn may_store(request: &HeaderMap, stored: Stored<'_>) -> bool {
    let policy = policy(request, stored);
    let is_useful = !policy.time_to_live(stored.at).is_zero()
        || stored.headers.contains_key(ETAG)
        || stored.headers.contains_key(LAST_MODIFIED)
        || directive(stored.headers, "stale-if-error").is_some();
    policy.is_storable() && is_useful && vary(stored.headers).is_some()
}

/// Whether nothing of request and answer may be stored, whatever else is said (RFC 9111, 5.2.1.5 and 5.2.2.5).
pub(crate) fn forbids_storing(headers: &HeaderMap) -> bool {
    directive(headers, "no-store").is_some()
}

/// Whether the request wants an answer from the cache or none (RFC 9111, 5.2.1.7).
pub(crate) fn wants_only_cached(request: &HeaderMap) -> bool {
    directive(request, "only-if-cached").is_some()
}

/// Whether the request has conditions or a range of its own: its answer is about those, and is not for others.
pub(crate) fn is_conditional(request: &HeaderMap) -> bool {
    [IF_MATCH, IF_NONE_MATCH, IF_MODIFIED_SINCE, IF_UNMODIFIED_SINCE, IF_RANGE, RANGE].iter().any(|n| request.contains_key(n))
}

/// What may be done with a stored answer to the same request.
pub(crate) fn may_use(stored: Stored<'_>, request: &HeaderMap, now: SystemTime) -> Use {
    let policy = policy(&HeaderMap::new(), stored);
    let asking = Asking { method: stored.method, headers: &directives_of(request) };
    if matches!(policy.before_request(&asking, now), BeforeRequest::Fresh(_)) {
        return Use::Fresh(policy.age(now));
    }
    let condition = |from, to| stored.headers.get(from).map(|value: &HeaderValue| (to, value.clone()));
    Use::Validate([condition(ETAG, IF_NONE_MATCH), condition(LAST_MODIFIED, IF_MODIFIED_SINCE)].into_iter().flatten().collect())
}

/// Whether a stored answer that is stale may stand in for an error (RFC 9111, 4.2.4; RFC 5861, 4): after an error status if
/// `stale-if-error` allows it, without any answer unless something forbids it.
pub(crate) fn stands_in(stored: Stored<'_>, request: &HeaderMap, now: SystemTime, trouble: Trouble) -> bool {
    let forbids = |name: &str| directive(stored.headers, name).is_some();
    if forbids("no-cache") || forbids("must-revalidate") || directive(request, "no-cache").is_some() {
        return false;
    }
    let allowed = directive(stored.headers, "stale-if-error").or_else(|| directive(request, "stale-if-error"));
    let max_stale = match (allowed, trouble) {
        (Some(seconds), _) => format!("max-stale={}", bounded_seconds(&seconds).unwrap_or(0)),
        (None, Trouble::Unreachable) => "max-stale".to_owned(),
        (None, Trouble::Status) => return false,
    };
    let Ok(max_stale) = HeaderValue::try_from(max_stale) else { return false };
    let request = HeaderMap::from_iter([(CACHE_CONTROL, max_stale)]);
    matches!(may_use(stored, &request, now), Use::Fresh(_))
}

/// The age of a stored answer, as `Age` says it.
pub(crate) fn age(stored: Stored<'_>, now: SystemTime) -> Duration {
    policy(&HeaderMap::new(), stored).age(now)
}

/// Whether a 304 is about the stored answer whose validators were sent. One that names a validator must name the same; one
/// that names none, as many servers do, can only mean the one it was asked about.
pub(crate) fn confirms(stored: &HeaderMap, answer: &HeaderMap) -> bool {
    let weak = |value: &HeaderValue| {
        let bytes = value.as_bytes().trim_ascii();
        bytes.strip_prefix(b"W/").unwrap_or(bytes).to_vec()
    };
    match (stored.get(ETAG), answer.get(ETAG)) {
        (Some(stored), Some(answer)) => weak(stored) == weak(answer),
        (None, Some(_)) => false,
        (_, None) => match (stored.get(LAST_MODIFIED), answer.get(LAST_MODIFIED)) {
            (Some(stored), Some(answer)) => stored.as_bytes().trim_ascii() == answer.as_bytes().trim_ascii(),
            _ => true,
        },
    }
}

/// Takes the headers of a 304 over into the stored ones (RFC 9111, 3.2): each name as a whole, but those that describe the
/// body, which stays.
pub(crate) fn refresh(stored: &mut HeaderMap, answer: &HeaderMap) {
    // The age is that of the confirmation from now on.
    stored.remove(AGE);
    for name in answer.keys() {
        if [CONTENT_LENGTH, CONTENT_ENCODING, CONTENT_RANGE, TRANSFER_ENCODING].contains(name) {
            continue;
        }
        stored.remove(name);
        for value in answer.get_all(name) {
            stored.append(name.clone(), value.clone());
        }
    }
}

/// Removes what belongs to the connection (RFC 9111, 3.1) and what sets cookies: those are the jar's, and are no other
/// request's.
pub(crate) fn strip(headers: &mut HeaderMap) {
    let named: Vec<HeaderName> = headers
        .get_all(CONNECTION)
        .iter()
        .flat_map(|value| value.as_bytes().split(|byte| *byte == b','))
        .filter_map(|name| HeaderName::from_bytes(name.trim_ascii()).ok())
        .collect();
    let always =
        [CONNECTION, PROXY_AUTHENTICATE, PROXY_AUTHORIZATION, TE, TRAILER, TRANSFER_ENCODING, UPGRADE, SET_COOKIE].into_iter();
    let others = ["keep-alive", "proxy-connection", "proxy-authentication-info", "set-cookie2"].map(HeaderName::from_static);
    for name in named.into_iter().chain(always).chain(others) {
        headers.remove(name);
    }
}

/// The request headers `Vary` lists, in lower case, each once; `None`: every request is another one (`*`).
pub(crate) fn vary(response: &HeaderMap) -> Option<Vec<HeaderName>> {
    let mut names = Vec::new();
    for value in response.get_all(VARY) {
        for name in value.as_bytes().split(|byte| *byte == b',').map(<[u8]>::trim_ascii).filter(|name| !name.is_empty()) {
            if name == b"*" {
                return None;
            }
            // What is no name of a header is in no request.
            if let Ok(name) = HeaderName::from_bytes(name)
                && !names.contains(&name)
            {
                names.push(name);
            }
        }
    }
    Some(names)
}

/// The value of a `Cache-Control` directive, empty for one without.
fn directive(headers: &HeaderMap, wanted: &str) -> Option<String> {
    let values = headers.get_all(CACHE_CONTROL).iter().filter_map(|value| value.to_str().ok());
    values.flat_map(directives).find(|(name, _)| name == wanted).map(|(_, value)| value)
}

/// The directives of one value: names in lower case, values without their quotes.
fn directives(value: &str) -> Vec<(String, String)> {
    let (mut parts, mut part, mut is_quoted, mut is_escaped) = (Vec::new(), String::new(), false, false);
    for c in value.chars() {
        match c {
            _ if is_escaped => is_escaped = false,
            '\\' if is_quoted => {
                is_escaped = true;
                continue;
            }
            '"' => {
                is_quoted = !is_quoted;
                continue;
            }
            ',' if !is_quoted => {
                parts.push(std::mem::take(&mut part));
                continue;
            }
            _ => {}
        }
        part.push(c);
    }
    parts.push(part);
    let split = |part: &String| {
        let (name, value) = part.split_once('=').unwrap_or((part, ""));
        (name.trim().to_ascii_lowercase(), value.trim().to_owned())
    };
    parts.iter().map(split).filter(|(name, _)| !name.is_empty()).collect()
}

fn bounded_seconds(text: &str) -> Option<u64> {
    let is_number = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    is_number.then(|| text.parse().map_or(MOST_SECONDS, |seconds: u64| seconds.min(MOST_SECONDS)))
}

/// What a policy reads of headers that speak of caching, in one form.
fn directives_of(headers: &HeaderMap) -> HeaderMap {
    let mut read = HeaderMap::new();
    let values = headers.get_all(CACHE_CONTROL).iter().filter_map(|value| value.to_str().ok());
    let written: Vec<String> = values
        .flat_map(directives)
        .map(|(name, value)| match bounded_seconds(&value) {
            Some(seconds) => format!("{name}={seconds}"),
            // Names of headers, or nonsense: the directive holds for all, which is never too little.
            None if value.is_empty() || !name.ends_with("-age") => name,
            None => format!("{name}=0"),
        })
        .collect();
    if let Ok(value) = HeaderValue::try_from(written.join(", "))
        && !value.is_empty()
    {
        read.insert(CACHE_CONTROL, value);
    }
    if headers.get_all(PRAGMA).iter().any(|value| value.as_bytes().to_ascii_lowercase().windows(8).any(|w| w == b"no-cache")) {
        read.insert(PRAGMA, HeaderValue::from_static("no-cache"));
    }
    read
}

fn policy(request: &HeaderMap, stored: Stored<'_>) -> CachePolicy {
    let mut headers = directives_of(stored.headers);
    let of_now = Timestamp::try_from(stored.at).unwrap_or(Timestamp::UNIX_EPOCH);
    for name in [EXPIRES, DATE, LAST_MODIFIED] {
        let Some(value) = stored.headers.get(&name) else { continue };
        let at = value.to_str().ok().and_then(|text| parse_http_date(text, of_now));
        let text = match at {
            Some(at) => at.strftime("%a, %d %b %Y %H:%M:%S GMT").to_string(),
            // A date that is none has passed.
            None if name == EXPIRES => "0".to_owned(),
            None => continue,
        };
        if let Ok(value) = HeaderValue::try_from(text) {
            headers.insert(name, value);
        }
    }
    if let Some(age) = stored.headers.get(AGE).and_then(|value| bounded_seconds(value.to_str().ok()?.trim())) {
        headers.insert(AGE, age.into());
    }
    let asked = Asking { method: stored.method, headers: &directives_of(request) };
    let answered = Answered { status: stored.status, headers: &headers };
    let options = CacheOptions { shared: false, ..CacheOptions::default() };
    CachePolicy::new_options(&asked, &answered, stored.at, options)
}

/// A request for what the answer is stored for: its name has decided that it is the same.
struct Asking<'a> {
    method: &'a Method,
    headers: &'a HeaderMap,
}

impl RequestLike for Asking<'_> {
    fn uri(&self) -> Uri {
        Uri::from_static("/")
    }

    fn is_same_uri(&self, _: &Uri) -> bool {
        true
    }

    fn method(&self) -> &Method {
        self.method
    }

    fn headers(&self) -> &HeaderMap {
        self.headers
    }
}

struct Answered<'a> {
    status: StatusCode,
    headers: &'a HeaderMap,
}

impl ResponseLike for Answered<'_> {
    fn status(&self) -> StatusCode {
        self.status
    }

    fn headers(&self) -> &HeaderMap {
        self.headers
    }
}

#[cfg(test)]
mod tests;
