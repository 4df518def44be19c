//! A response in the hands of a callback.
//!
//! Text and tree are made on first use and kept: a page whose callback asks for neither costs neither.

use std::borrow::Cow;
use std::cell::{OnceCell, RefCell};
use std::fmt;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use encoding_rs::Encoding;
use http::{HeaderMap, StatusCode, Version};
use serde::de::DeserializeOwned;
use serde_json::Value;
use url::Url;

use super::lease::LeaseView;
use super::links::{Link, LinkExtractor, Source};
use super::request::Request;
use super::selector::{KEPT_ERRORS, Page, PageOptions, Selection, SelectorError, Variables, XPathValue, matches};
use crate::downloader::transport::{BodyFlags, Reply};
use crate::parser::message::Marks;
use crate::scheduler::job::Job;
use crate::web::media_type::content_type;
use crate::web::{charset, document_url};

/// A response: status, headers, body, and what can be read from them. Cloning shares it.
///
/// A callback only gets answers of status 200 to 299 unless the request says otherwise
/// ([`Request::handle_status`]); failures go to [`Spider::failed`](super::spider::Spider::failed).
///
/// ```
/// # use dragline::prelude::*;
/// # #[derive(Deserialize)] struct Stock { left: u32 }
/// fn read(response: &Response) -> Result<Value, CallbackError> {
///     if response.header("content-type").is_some_and(|kind| kind.starts_with("application/json")) {
///         let stock: Stock = response.json()?;
///         return Ok(json!({ "left": stock.left }));
///     }
///     let price = response.css(".price::text").re_first(r"[\d.]+");
///     if price.is_none() {
///         response.mark("no_price"); // goes out with the report on this attempt
///     }
///     Ok(json!({ "url": response.url().as_str(), "price": price, "links": response.links().len() }))
/// }
/// ```
#[derive(Clone)]
pub struct Response(Rc<Inner>);

struct Inner {
    job: Arc<Job>,
    reply: Arc<Reply>,
    latency: Duration,
    lease: Option<LeaseView>,
    marks: Rc<RefCell<Marks>>,
    html: PageOptions,
    /// The text as UTF-8 without a byte order mark: a part of the body where that is UTF-8.
    text: OnceCell<(Bytes, &'static Encoding)>,
    page: OnceCell<Page>,
    json: OnceCell<Value>,
    base: OnceCell<Url>,
    pattern_errors: RefCell<Vec<SelectorError>>,
}

/// A body that is not what the callback took it for.
#[derive(Debug, thiserror::Error)]
#[error("the body of {url} is not the JSON that was expected: {source}")]
pub struct JsonError {
    url: String,
    source: serde_json::Error,
}

impl Response {
    pub(crate) fn new(job: Arc<Job>, reply: Arc<Reply>, latency: Duration, marks: Rc<RefCell<Marks>>) -> Self {
        Self(Rc::new(Inner {
            job,
            reply,
            latency,
            lease: None,
            marks,
            html: PageOptions::default(),
            text: OnceCell::new(),
            page: OnceCell::new(),
            json: OnceCell::new(),
            base: OnceCell::new(),
            pattern_errors: RefCell::default(),
        }))
    }

    /// The same with the lease it came under. For a response that nobody else has yet.
    pub(crate) fn under(mut self, lease: Option<LeaseView>) -> Self {
        if let Some(inner) = Rc::get_mut(&mut self.0) {
            inner.lease = lease;
        }
        self
    }

    /// The same with an engine and bounds for its page. For a response that nobody else has yet.
    pub(crate) fn read_with(mut self, html: PageOptions) -> Self {
        if let Some(inner) = Rc::get_mut(&mut self.0) {
            inner.html = html;
        }
        self
    }

    /// The URL that answered: the last one of a redirect chain.
    #[must_use]
    pub fn url(&self) -> &Url {
        self.0.job.request.url()
    }

    /// The request, with the URL that answered.
    #[must_use]
    pub fn request(&self) -> &Request {
        &self.0.job.request
    }

    /// The first URL of a redirect chain; the response's own without one.
    #[must_use]
    pub fn requested_url(&self) -> &str {
        self.0.job.first_url.as_deref().unwrap_or_else(|| self.url().as_str())
    }

    /// The status.
    #[must_use]
    pub fn status(&self) -> StatusCode {
        self.0.reply.status
    }

    /// The headers as received.
    #[must_use]
    pub fn headers(&self) -> &HeaderMap {
        &self.0.reply.headers
    }

    /// One header as text; `None` without it or when it is not visible ASCII.
    #[must_use]
    pub fn header(&self, name: &str) -> Option<&str> {
        self.0.reply.headers.get(name)?.to_str().ok()
    }

    /// The protocol version.
    #[must_use]
    pub fn version(&self) -> Version {
        self.0.reply.version
    }

    /// The body, content coding removed.
    #[must_use]
    pub fn body(&self) -> &Bytes {
        &self.0.reply.body
    }

    /// What was odd about the body. What is odd about its tree ([`BodyFlags::html`]) is known once that is built.
    #[must_use]
    pub fn flags(&self) -> BodyFlags {
        let html = self.0.page.get().map(Page::exceeded).unwrap_or_default();
        BodyFlags { html, ..self.0.reply.flags }
    }

    /// From send to last byte.
    #[must_use]
    pub fn latency(&self) -> Duration {
        self.0.latency
    }

    /// The lease it came under, without what is secret in it.
    #[must_use]
    pub fn lease(&self) -> Option<&LeaseView> {
        self.0.lease.as_ref()
    }

    /// Links from a start request.
    #[must_use]
    pub fn depth(&self) -> u32 {
        self.0.job.depth
    }

    /// The body as text, by the order of browsers: byte order mark, `Content-Type`, declaration in the
    /// document, UTF-8 if valid, detection. Never fails: what does not decode becomes U+FFFD.
    #[must_use]
    pub fn text(&self) -> &str {
        // Known to be UTF-8; the fast check is what it costs to say so again.
        simdutf8::basic::from_utf8(&self.decoded().0).unwrap_or_default()
    }

    /// The encoding the text was read with.
    #[must_use]
    pub fn encoding(&self) -> &'static str {
        self.decoded().1.name()
    }

    /// Selects by CSS; `::text` and `::attr(name)` as in Scrapy. A selector that does not parse, or takes too long on this page,
    /// fails the callback when it ends; use [`Response::try_css`] for selectors that come from outside.
    #[must_use]
    pub fn css(&self, selector: &str) -> Selection<'_> {
        self.page().css(selector)
    }

    /// Selects by CSS, at once.
    ///
    /// # Errors
    /// When the selector does not parse, or takes too long on this page.
    pub fn try_css(&self, selector: &str) -> Result<Selection<'_>, SelectorError> {
        self.page().try_css(selector)
    }

    /// Selects by XPath 1.0 from the document element; see [`Selection::xpath`]. An expression that does not parse, or takes too
    /// long on this page, fails the callback when it ends; use [`Response::try_xpath`] for expressions that come from outside.
    ///
    /// ```
    /// # use dragline::prelude::*;
    /// # fn read(response: &Response) -> (Vec<String>, Option<f64>) {
    /// let prices = response.xpath("//tr[td='Total']").css(".price::text").getall();
    /// (prices, response.xpath("count(//img)").number())
    /// # }
    /// ```
    #[must_use]
    pub fn xpath(&self, expression: &str) -> Selection<'_> {
        self.page().xpath(expression)
    }

    /// Like [`Response::xpath`], with values for the variables (`$name`) of the expression.
    #[must_use]
    pub fn xpath_with(&self, expression: &str, variables: &Variables) -> Selection<'_> {
        self.page().xpath_with(expression, variables)
    }

    /// Selects by XPath, at once.
    ///
    /// # Errors
    /// When the expression does not parse, uses what is not there, or takes too long on this page.
    pub fn try_xpath(&self, expression: &str) -> Result<Selection<'_>, SelectorError> {
        self.page().try_xpath(expression)
    }

    /// The value of an XPath expression with its type: nodes, a number, a text or a truth value.
    ///
    /// # Errors
    /// As [`Response::try_xpath`].
    pub fn xpath_value(&self, expression: &str) -> Result<XPathValue<'_>, SelectorError> {
        self.page().evaluate(expression, &Variables::default())
    }

    /// Matches of a regular expression in the text: its groups, or the whole match without any.
    #[must_use]
    pub fn re(&self, pattern: &str) -> Vec<String> {
        self.matches(pattern, usize::MAX)
    }

    /// The first match of a regular expression in the text.
    #[must_use]
    pub fn re_first(&self, pattern: &str) -> Option<String> {
        self.matches(pattern, 1).into_iter().next()
    }

    /// Reads the body as JSON.
    ///
    /// # Errors
    /// When it is none, or not of this shape.
    pub fn json<T: DeserializeOwned>(&self) -> Result<T, JsonError> {
        serde_json::from_str(self.text()).map_err(|source| JsonError { url: self.url().to_string(), source })
    }

    /// The body as a JSON value, read on the first call and kept.
    ///
    /// # Errors
    /// When it is none.
    pub fn json_value(&self) -> Result<&Value, JsonError> {
        match self.0.json.get() {
            Some(value) => Ok(value),
            None => {
                let value = self.json()?;
                Ok(self.0.json.get_or_init(|| value))
            }
        }
    }

    /// Every link of the page, absolute, in document order, each once. Without the query parameters of the lease, where the
    /// page repeats them. [`LinkExtractor::links`] gives those that are wanted.
    #[must_use]
    pub fn links(&self) -> Vec<Link> {
        LinkExtractor::every().links(self)
    }

    /// What relative URLs on the page are relative to: `<base href>` if there is one.
    #[must_use]
    pub fn base_url(&self) -> &Url {
        self.0.base.get_or_init(|| super::links::base_url(self.page(), self.url()))
    }

    /// An absolute URL from one found on the page, without the query parameters of the lease. Its query is encoded as
    /// the page is, as browsers do.
    ///
    /// # Errors
    /// When the two do not join.
    pub fn join(&self, href: &str) -> Result<Url, url::ParseError> {
        let mut url = document_url::join(self.base_url(), href, self.decoded().1)?;
        self.clear(&mut url);
        Ok(url)
    }

    /// Adds a marker to the attempt's lease report: 1 to 64 characters, at most 32 markers in one report, each once.
    /// What is longer is cut, what is too many is left out; `reporter/cut` counts both.
    pub fn mark(&self, marker: impl Into<String>) {
        self.0.marks.borrow_mut().markers.push(marker.into());
    }

    /// Sets the site's own code in the attempt's lease report; at most 64 characters, more are cut.
    pub fn business_code(&self, code: impl Into<String>) {
        self.0.marks.borrow_mut().business_code = Some(code.into());
    }

    /// Sets the callback's judgement in the attempt's lease report; at most 32 characters, more are cut.
    pub fn outcome_hint(&self, hint: impl Into<String>) {
        self.0.marks.borrow_mut().outcome_hint = Some(hint.into());
    }

    /// The page's tree, built on the first call; from the body as it lies there, where that is UTF-8.
    #[must_use]
    pub fn page(&self) -> &Page {
        self.0.page.get_or_init(|| Page::from_checked(self.decoded().0.clone(), &self.0.html))
    }

    /// The page's tree, if it was built.
    pub(crate) fn built_page(&self) -> Option<&Page> {
        self.0.page.get()
    }

    /// Selector errors of calls that cannot return one.
    pub(crate) fn take_selector_errors(&self) -> Vec<SelectorError> {
        let mut errors = self.0.pattern_errors.take();
        errors.extend(self.0.page.get().map(Page::take_errors).unwrap_or_default());
        errors
    }

    /// The page as extractors of links want it.
    pub(super) fn with_source<T>(&self, use_it: impl FnOnce(&Source<'_>) -> T) -> T {
        let clean = |url: &mut Url| self.clear(url);
        let base = self.base_url().clone();
        use_it(&Source { page: self.page(), base, encoding: self.decoded().1, clean: &clean })
    }

    /// Takes out of a URL what it repeats of the lease's query.
    pub(super) fn clear(&self, url: &mut Url) {
        if let Some(lease) = &self.0.lease {
            lease.clear(url, self.url());
        }
    }

    fn matches(&self, pattern: &str, most: usize) -> Vec<String> {
        matches(self.text(), pattern, most).unwrap_or_else(|error| {
            self.note(error);
            Vec::new()
        })
    }

    /// Keeps an error of a pattern that was used on this response: it fails the callback when that ends.
    pub(super) fn note(&self, error: SelectorError) {
        let mut errors = self.0.pattern_errors.borrow_mut();
        if errors.len() < KEPT_ERRORS {
            errors.push(error);
        }
    }

    fn decoded(&self) -> &(Bytes, &'static Encoding) {
        self.0.text.get_or_init(|| {
            let body = &self.0.reply.body;
            let content_type = content_type(&self.0.reply.headers);
            let tld = self.url().domain().and_then(|d| d.rsplit('.').next());
            match charset::decode(body, content_type.as_deref(), tld) {
                // All of the body but a byte order mark.
                (Cow::Borrowed(text), encoding) => (body.slice(body.len().saturating_sub(text.len())..), encoding),
                (Cow::Owned(text), encoding) => (text.into(), encoding),
            }
        })
    }
}

impl fmt::Debug for Response {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Response")
            .field("status", &self.status().as_u16())
            .field("url", &self.url().as_str())
            .field("lease", &self.0.lease)
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
#[path = "response_tests.rs"]
pub(crate) mod tests;
