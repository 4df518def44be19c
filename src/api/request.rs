//! What a spider asks for: one HTTP request and the step that will take its answer.
//!
//! A queued request must be small (a frontier holds hundreds of thousands), so everything that most
//! requests leave at its default lives in one optional box.

mod curl;
mod parts;
mod query;
mod referring;

use std::time::Duration;

use bytes::Bytes;
use http::{HeaderMap, HeaderName, HeaderValue, Method};
use serde::Serialize;
use serde_json::Value;
use url::Url;

pub use self::curl::CurlError;
pub(crate) use self::parts::{Extra, Parts, Referring};
use super::step::StepData;
use crate::web::reference;

/// One request of a spider, with the step that handles its response.
///
/// Setters take `&mut self` and return it, so that a pushed request can be adjusted in place:
/// `out.get(url, step)?.priority(10).header("accept", "application/json")?;`
#[derive(Clone)]
pub struct Request {
    url: Url,
    step: StepData,
    priority: i32,
    dont_filter: bool,
    referring: Option<Referring>,
    extra: Option<Box<Extra>>,
}

/// Which response statuses reach the callback instead of `failed`.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum HandleStatus {
    /// 200 to 299, and those of `HTTPERROR_ALLOWED_CODES`.
    #[default]
    Successful,
    /// These as well.
    Also(Vec<u16>),
    /// Every status.
    All,
}

/// The site and client a request leases under, when the spider says so itself instead of a `LEASES` rule.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LeaseTarget {
    /// The control plane's name of the site.
    pub site: String,
    /// The control plane's name of the client.
    pub client: String,
}

/// A request that cannot be made.
#[derive(Debug, Clone, thiserror::Error)]
#[non_exhaustive]
pub enum RequestError {
    /// The text is not an absolute URL.
    #[error(
        "{url:?} is not an absolute URL ({reason}); give one that starts with http:// or https://, or join it with the page's address first"
    )]
    Url {
        /// What was given.
        url: String,
        /// Why it is none.
        reason: String,
    },
    /// A header's name or value has characters HTTP does not allow (RFC 9110, 5.1 and 5.5).
    #[error(
        "header {name:?} of {url} is not a valid HTTP header; use visible ASCII for the name and no line breaks in the value"
    )]
    Header {
        /// The request's URL.
        url: String,
        /// The header's name as given.
        name: String,
    },
    /// The step or body could not be written as MessagePack or JSON.
    #[error("the {what} of {url} cannot be serialised: {reason}")]
    Serialise {
        /// `step`, `json body` or `form`.
        what: &'static str,
        /// The request's URL.
        url: String,
        /// The serialiser's words.
        reason: String,
    },
}

impl Request {
    /// A request with `method` for `url`, handled by `step`.
    ///
    /// # Errors
    /// When `url` is not absolute or the step cannot be serialised.
    pub fn new(method: Method, url: &str, step: &impl Serialize) -> Result<Self, RequestError> {
        let parsed = parse_url(url)?;
        let mut request = Self::to_url(parsed, step)?;
        if method != Method::GET {
            request.extra_mut().method = method;
        }
        Ok(request)
    }

    /// A GET request.
    ///
    /// # Errors
    /// As [`Request::new`].
    pub fn get(url: &str, step: &impl Serialize) -> Result<Self, RequestError> {
        Self::to_url(parse_url(url)?, step)
    }

    /// A POST request without a body yet.
    ///
    /// # Errors
    /// As [`Request::new`].
    pub fn post(url: &str, step: &impl Serialize) -> Result<Self, RequestError> {
        Self::new(Method::POST, url, step)
    }

    /// A GET request for a URL that is parsed already.
    ///
    /// # Errors
    /// When the step cannot be serialised.
    pub fn to_url(url: Url, step: &impl Serialize) -> Result<Self, RequestError> {
        let step =
            StepData::encode(step).map_err(|reason| RequestError::Serialise { what: "step", url: url.to_string(), reason })?;
        Ok(Self::from_parts(url, step))
    }

    pub(crate) fn from_parts(url: Url, step: StepData) -> Self {
        Self { url, step, priority: 0, dont_filter: false, referring: None, extra: None }
    }

    /// Sets the priority: higher goes first, 0 by default.
    pub fn priority(&mut self, priority: i32) -> &mut Self {
        self.priority = priority;
        self
    }

    /// Lets the request pass the duplicate filter, and the offsite filter as well.
    pub fn dont_filter(&mut self) -> &mut Self {
        self.dont_filter = true;
        self
    }

    /// Sets one header; it wins over default headers and over the lease's.
    ///
    /// # Errors
    /// When name or value is not valid in HTTP.
    pub fn header(&mut self, name: &str, value: &str) -> Result<&mut Self, RequestError> {
        let (Ok(key), Ok(value)) = (HeaderName::try_from(name), HeaderValue::from_str(value)) else {
            return Err(RequestError::Header { url: self.url.to_string(), name: name.to_owned() });
        };
        self.extra_mut().headers.insert(key, value);
        Ok(self)
    }

    /// Sets one cookie for this request only; it wins over the jar's and the lease's.
    pub fn cookie(&mut self, name: impl Into<String>, value: impl Into<String>) -> &mut Self {
        self.extra_mut().cookies.push((name.into(), value.into()));
        self
    }

    /// Sets the body as bytes.
    pub fn body(&mut self, body: impl Into<Bytes>) -> &mut Self {
        self.extra_mut().body = body.into();
        self
    }

    /// Sets a JSON body and its content type.
    ///
    /// # Errors
    /// When the value cannot be written as JSON.
    pub fn json(&mut self, value: &impl Serialize) -> Result<&mut Self, RequestError> {
        let body = serde_json::to_vec(value).map_err(|e| RequestError::Serialise {
            what: "json body",
            url: self.url.to_string(),
            reason: e.to_string(),
        })?;
        let extra = self.extra_mut();
        extra.body = body.into();
        extra.headers.insert(http::header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
        Ok(self)
    }

    /// Sets a form body (`application/x-www-form-urlencoded`, WHATWG URL 5.2) and its content type.
    pub fn form<K: AsRef<str>, V: AsRef<str>>(&mut self, fields: impl IntoIterator<Item = (K, V)>) -> &mut Self {
        let mut writer = url::form_urlencoded::Serializer::new(String::new());
        writer.extend_pairs(fields);
        let extra = self.extra_mut();
        extra.body = writer.finish().into();
        extra.headers.insert(http::header::CONTENT_TYPE, HeaderValue::from_static("application/x-www-form-urlencoded"));
        self
    }

    /// Attaches a value the callback finds again in `response.request().meta_value(key)`.
    pub fn meta(&mut self, key: impl Into<String>, value: impl Into<Value>) -> &mut Self {
        self.extra_mut().meta.insert(key.into(), value.into());
        self
    }

    /// Limits the whole exchange; the default is `DOWNLOAD_TIMEOUT`.
    pub fn timeout(&mut self, limit: Duration) -> &mut Self {
        self.extra_mut().timeout = Some(limit);
        self
    }

    /// Limits the decoded body, in bytes; the default is `DOWNLOAD_MAXSIZE`, and more than that may be allowed here. A larger body
    /// fails the request. While it is read, memory holds so much beside `WINDOW_BYTES`.
    pub fn max_bytes(&mut self, limit: u64) -> &mut Self {
        self.extra_mut().max_bytes = Some(limit);
        self
    }

    /// Sets how often a failed attempt is repeated; the default is `RETRY_TIMES`, 0 never repeats.
    pub fn retries(&mut self, times: u32) -> &mut Self {
        self.extra_mut().retries = Some(times);
        self
    }

    /// Leases under this site and client, whatever the `LEASES` rules say.
    pub fn lease(&mut self, site: impl Into<String>, client: impl Into<String>) -> &mut Self {
        self.extra_mut().lease = Some(LeaseTarget { site: site.into(), client: client.into() });
        self
    }

    /// Asks for the same identity for all requests of the same key.
    pub fn session_key(&mut self, key: impl Into<String>) -> &mut Self {
        self.extra_mut().session_key = Some(key.into());
        self
    }

    /// Sends this request under the lease of the response whose callback makes it: same identity, same proxy.
    ///
    /// For what belongs together: the next page of a list, the steps of a login. The lease lives until the last such
    /// request of it has had its report; meanwhile it is renewed and serves nobody else, so the request goes before
    /// others of its host. Of a response that was redirected it is the lease of the last hop.
    ///
    /// The request gets a lease of its own, which `lease/kept_lost` counts, where the kept one cannot serve it: the URL
    /// is outside the scope of the rule that gave the lease, the lease expired or could not be renewed, or the job was
    /// started again meanwhile. A repeated attempt always has a lease of its own. Without a lease, as in `start`, this
    /// changes nothing.
    pub fn keep_lease(&mut self) -> &mut Self {
        self.extra_mut().keep_lease = true;
        self
    }

    /// Chooses which statuses reach the callback.
    pub fn handle_status(&mut self, statuses: HandleStatus) -> &mut Self {
        self.extra_mut().handle_status = statuses;
        self
    }

    /// Gives redirect answers to the callback instead of following them.
    pub fn no_redirect(&mut self) -> &mut Self {
        self.extra_mut().no_redirect = true;
        self
    }

    /// Fetches the page even if robots.txt forbids it.
    pub fn ignore_robots(&mut self) -> &mut Self {
        self.extra_mut().ignore_robots = true;
        self
    }

    /// Lets this request leave the spider's allowed domains.
    pub fn allow_offsite(&mut self) -> &mut Self {
        self.extra_mut().allow_offsite = true;
        self
    }

    /// Asks the site, whatever the HTTP cache holds, and stores no answer there.
    pub fn dont_cache(&mut self) -> &mut Self {
        self.extra_mut().dont_cache = true;
        self
    }

    /// The URL; a fragment is kept here and never sent.
    #[must_use]
    pub fn url(&self) -> &Url {
        &self.url
    }

    /// The method, GET unless set.
    #[must_use]
    pub fn method(&self) -> &Method {
        self.extra.as_ref().map_or(&Method::GET, |x| &x.method)
    }

    /// The headers the spider set itself.
    #[must_use]
    pub fn headers(&self) -> Option<&HeaderMap> {
        self.extra.as_ref().map(|x| &x.headers)
    }

    /// The cookies the spider set itself.
    #[must_use]
    pub fn cookies(&self) -> &[(String, String)] {
        self.extra.as_ref().map_or(&[], |x| &x.cookies)
    }

    /// The body, empty unless set.
    #[must_use]
    pub fn body_bytes(&self) -> &[u8] {
        self.extra.as_ref().map_or(&[], |x| &x.body)
    }

    /// One value attached by [`Request::meta`].
    #[must_use]
    pub fn meta_value(&self, key: &str) -> Option<&Value> {
        self.extra.as_ref().and_then(|x| x.meta.get(key))
    }

    /// The priority, 0 unless set.
    #[must_use]
    pub fn priority_value(&self) -> i32 {
        self.priority
    }

    /// Whether the duplicate filter is passed.
    #[must_use]
    pub fn is_unfiltered(&self) -> bool {
        self.dont_filter
    }

    /// The encoded step.
    #[must_use]
    pub fn step(&self) -> &StepData {
        &self.step
    }

    pub(crate) fn set_url(&mut self, url: Url) {
        self.url = url;
    }

    pub(crate) fn set_method(&mut self, method: Method) {
        if self.extra.is_some() || method != Method::GET {
            self.extra_mut().method = method;
        }
    }

    pub(crate) fn body_shared(&self) -> Bytes {
        self.extra.as_ref().map_or_else(Bytes::new, |x| x.body.clone())
    }

    /// Drops the body and the headers that describe it (a redirect that turns into GET).
    pub(crate) fn drop_body(&mut self) {
        if let Some(extra) = &mut self.extra {
            extra.body = Bytes::new();
            for name in [
                http::header::CONTENT_TYPE,
                http::header::CONTENT_LENGTH,
                http::header::CONTENT_ENCODING,
                http::header::TRANSFER_ENCODING,
            ] {
                extra.headers.remove(name);
            }
        }
    }

    /// Whether the request wants the lease of the response whose callback made it, and has not had it yet.
    pub(crate) fn keeps_lease(&self) -> bool {
        self.extra.as_ref().is_some_and(|x| x.keep_lease)
    }

    /// The lease was given, or is lost: the next attempt asks for one of its own.
    pub(crate) fn forget_kept_lease(&mut self) {
        if let Some(extra) = &mut self.extra {
            extra.keep_lease = false;
        }
    }

    /// Drops what must not follow a redirect to another origin.
    pub(crate) fn drop_credentials(&mut self) {
        if let Some(extra) = &mut self.extra {
            extra.headers.remove(http::header::AUTHORIZATION);
            extra.headers.remove(http::header::COOKIE);
            extra.cookies.clear();
        }
    }

    /// Drops what it says of its lease: that was meant for the host it has left.
    pub(crate) fn drop_lease_target(&mut self) {
        if let Some(extra) = &mut self.extra {
            extra.lease = None;
            extra.session_key = None;
        }
    }

    pub(crate) fn timeout_value(&self) -> Option<Duration> {
        self.extra.as_ref().and_then(|x| x.timeout)
    }

    pub(crate) fn max_bytes_value(&self) -> Option<u64> {
        self.extra.as_ref().and_then(|x| x.max_bytes)
    }

    pub(crate) fn retries_value(&self) -> Option<u32> {
        self.extra.as_ref().and_then(|x| x.retries)
    }

    pub(crate) fn lease_target(&self) -> Option<&LeaseTarget> {
        self.extra.as_ref().and_then(|x| x.lease.as_ref())
    }

    pub(crate) fn session_key_value(&self) -> Option<&str> {
        self.extra.as_ref().and_then(|x| x.session_key.as_deref())
    }

    pub(crate) fn handled_statuses(&self) -> &HandleStatus {
        const DEFAULT: &HandleStatus = &HandleStatus::Successful;
        self.extra.as_ref().map_or(DEFAULT, |x| &x.handle_status)
    }

    pub(crate) fn follows_redirects(&self) -> bool {
        !self.extra.as_ref().is_some_and(|x| x.no_redirect)
    }

    pub(crate) fn ignores_robots(&self) -> bool {
        self.extra.as_ref().is_some_and(|x| x.ignore_robots)
    }

    pub(crate) fn passes_cache(&self) -> bool {
        self.extra.as_ref().is_some_and(|x| x.dont_cache)
    }

    pub(crate) fn may_leave_site(&self) -> bool {
        self.dont_filter || self.extra.as_ref().is_some_and(|x| x.allow_offsite)
    }

    /// Bytes this request holds on the heap and in place, for the frontier's bound.
    pub(crate) fn weight(&self) -> usize {
        size_of::<Self>()
            + self.url.as_str().len()
            + self.step.len()
            + self.extra.as_ref().map_or(0, |x| {
                size_of::<Extra>()
                    + x.body.len()
                    + x.headers.iter().map(|(k, v)| k.as_str().len() + v.len() + 32).sum::<usize>()
                    + x.cookies.iter().map(|(k, v)| k.len() + v.len() + 48).sum::<usize>()
                    + x.meta.len() * 96
            })
    }

    fn extra_mut(&mut self) -> &mut Extra {
        self.extra.get_or_insert_default()
    }
}

impl std::fmt::Debug for Request {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        // Header and cookie values may be credentials: only their number is shown.
        f.debug_struct("Request")
            .field("method", self.method())
            .field("url", &self.url.as_str())
            .field("step", &self.step)
            .field("priority", &self.priority)
            .field("headers", &self.headers().map_or(0, HeaderMap::len))
            .field("cookies", &self.cookies().len())
            .field("body_bytes", &self.body_bytes().len())
            .finish_non_exhaustive()
    }
}

fn parse_url(text: &str) -> Result<Url, RequestError> {
    reference::parse_url(text).map_err(|e| RequestError::Url { url: text.to_owned(), reason: e.to_string() })
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing)]
    use super::*;

    #[test]
    fn a_plain_request_keeps_its_rare_fields_out_of_line() {
        let request = Request::get("https://shop.example/a", &()).unwrap();
        assert!(request.extra.is_none());
        assert_eq!(request.method(), Method::GET);
        assert!(size_of::<Request>() <= 136, "{}", size_of::<Request>());
    }

    #[test]
    fn a_relative_url_is_refused_with_the_way_out() {
        let error = Request::get("/a", &()).unwrap_err().to_string();
        assert!(error.contains("\"/a\"") && error.contains("http://"), "{error}");
    }

    #[test]
    fn debug_output_shows_no_header_or_cookie_value() {
        let mut request = Request::get("https://shop.example/", &()).unwrap();
        request.header("authorization", "Bearer canary-1").unwrap().cookie("sid", "canary-2");
        assert!(!format!("{request:?}").contains("canary"));
    }

    #[test]
    fn a_form_sets_body_and_content_type() {
        let mut request = Request::post("https://shop.example/login", &()).unwrap();
        request.form([("user", "a b"), ("x", "ä")]);
        assert_eq!(request.body_bytes(), b"user=a+b&x=%C3%A4");
        assert_eq!(request.headers().unwrap()["content-type"], "application/x-www-form-urlencoded");
    }
}
