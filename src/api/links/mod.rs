//! Links of a page, as a browser sees them: by default every `a` and `area` with an `href`, resolved against the `base`
//! element, in document order, each URL once. Only http and https; everything else is not a page to crawl.
//!
//! [`LinkExtractor`] says which are wanted. URLs are kept as written (WHATWG form, fragment included, query not reordered);
//! canonical forms are the business of the duplicate filter. A query is encoded in the encoding of its page, as browsers do.

mod extensions;
mod places;

use std::collections::HashSet;
use std::fmt;
use std::sync::Arc;

use encoding_rs::UTF_8;
use regex::Regex;
use url::{Host, Url};

use super::selector::{NodeKind, NodeRef, Page, Selection, SelectorError, compile_pattern};
use crate::web::canonical::canonicalize;
use crate::web::reference::join_url;
use extensions::Extensions;
pub use extensions::IGNORED_EXTENSIONS;
use places::{Candidate, Candidates, Places};
pub(crate) use places::{Source, room_for_urls};

/// A link of a page.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Link {
    /// Where it leads, absolute; http or https.
    pub url: Url,
    /// The text inside the element as it stands, white space included, up to 2 KiB; empty for an `area`.
    pub text: String,
    /// Whether `rel` holds `nofollow`.
    pub nofollow: bool,
}

impl Link {
    /// What stands behind `#` in its URL.
    #[must_use]
    pub fn fragment(&self) -> Option<&str> {
        self.url.fragment()
    }
}

/// Finds the links of pages that are wanted; the options are those of Scrapy's `LinkExtractor`.
///
/// As it comes it takes every `a[href]` and `area[href]` but for files that are not pages ([`IGNORED_EXTENSIONS`]). Patterns
/// are regular expressions that are searched in the absolute URL. Make it once, for example in a `LazyLock` or in a field of
/// the spider: the patterns are compiled then.
///
/// ```
/// use dragline::api::{LinkExtractor, Page};
/// use url::Url;
///
/// let books = LinkExtractor::new().allow(r"/book/\d+$").deny("/book/1$").restrict_css("main");
/// let page = Page::parse("<a href=/book/9>no</a><main><a href=1>no</a> <a href=2>Two</a> <a href=cover.jpg>no</a></main>");
/// let links = books.links_of(&page, &Url::parse("https://shop.example/book/").unwrap());
/// assert_eq!(links.len(), 1);
/// assert_eq!((links[0].url.as_str(), links[0].text.as_str()), ("https://shop.example/book/2", "Two"));
/// ```
///
/// A pattern or selector that cannot be read makes an extractor that finds nothing; its error is treated as that of a
/// selector: it fails the callback when that ends. Use [`LinkExtractor::checked`] where patterns come from outside.
#[derive(Clone)]
pub struct LinkExtractor {
    places: Places,
    allow: Vec<Regex>,
    deny: Vec<Regex>,
    allow_domains: Vec<String>,
    deny_domains: Vec<String>,
    deny_extensions: Extensions,
    texts: Vec<Regex>,
    skip_nofollow: bool,
    canonical: bool,
    doubles: bool,
    error: Option<SelectorError>,
}

impl Default for LinkExtractor {
    fn default() -> Self {
        Self::new()
    }
}

impl LinkExtractor {
    /// An extractor that only leaves out the files of [`IGNORED_EXTENSIONS`].
    #[must_use]
    pub fn new() -> Self {
        Self { deny_extensions: Extensions::of(IGNORED_EXTENSIONS), ..Self::every() }
    }

    /// An extractor that leaves out nothing.
    pub(crate) fn every() -> Self {
        Self {
            places: Places::default(),
            allow: Vec::new(),
            deny: Vec::new(),
            allow_domains: Vec::new(),
            deny_domains: Vec::new(),
            deny_extensions: Extensions::default(),
            texts: Vec::new(),
            skip_nofollow: false,
            canonical: false,
            doubles: false,
            error: None,
        }
    }

    /// Takes only URLs that match this regular expression or another allowed one.
    #[must_use]
    pub fn allow(mut self, pattern: &str) -> Self {
        let pattern = self.compiled(pattern);
        self.allow.extend(pattern);
        self
    }

    /// Leaves out URLs that match this regular expression, also where `allow` matches.
    #[must_use]
    pub fn deny(mut self, pattern: &str) -> Self {
        let pattern = self.compiled(pattern);
        self.deny.extend(pattern);
        self
    }

    /// Takes only links to hosts equal to this domain or another allowed one, or below it.
    #[must_use]
    pub fn allow_domain(mut self, domain: &str) -> Self {
        self.allow_domains.push(normal_domain(domain));
        self
    }

    /// Leaves out hosts equal to this domain or below it.
    #[must_use]
    pub fn deny_domain(mut self, domain: &str) -> Self {
        self.deny_domains.push(normal_domain(domain));
        self
    }

    /// Replaces the file extensions left out (`pdf`, `tar.gz`; with or without a dot in front). Only the path counts. An empty
    /// list lets every file pass.
    #[must_use]
    pub fn deny_extensions<S: AsRef<str>>(mut self, extensions: impl IntoIterator<Item = S>) -> Self {
        self.deny_extensions = Extensions::of(extensions);
        self
    }

    /// Takes links only from inside the elements that this selector, or another region given before or behind, matches; the
    /// elements themselves included.
    #[must_use]
    pub fn restrict_css(mut self, selector: &str) -> Self {
        match Page::parse("").try_css(selector) {
            Ok(_) => self.places.add_css(selector),
            Err(error) => self.spoil(error),
        }
        self
    }

    /// The same with an XPath expression.
    #[must_use]
    pub fn restrict_xpath(mut self, expression: &str) -> Self {
        match Page::parse("").try_xpath(expression) {
            Ok(_) => self.places.add_xpath(expression),
            Err(error) => self.spoil(error),
        }
        self
    }

    /// Takes only links whose text matches this regular expression or another one given so.
    #[must_use]
    pub fn restrict_text(mut self, pattern: &str) -> Self {
        let pattern = self.compiled(pattern);
        self.texts.extend(pattern);
        self
    }

    /// Replaces the elements that are looked at, `a` and `area`; `*` is any.
    #[must_use]
    pub fn tags<S: AsRef<str>>(mut self, tags: impl IntoIterator<Item = S>) -> Self {
        self.places.set_tags(tags.into_iter().map(|tag| tag.as_ref().to_ascii_lowercase()).collect());
        self
    }

    /// Replaces the attributes that are read, `href`. An element that has several gives several links.
    #[must_use]
    pub fn attrs<S: AsRef<str>>(mut self, attrs: impl IntoIterator<Item = S>) -> Self {
        self.places.set_attrs(attrs.into_iter().map(|attr| attr.as_ref().to_ascii_lowercase()).collect());
        self
    }

    /// Gives URLs in their canonical form: query sorted, fragment dropped, escapes unified ([`canonicalize`]). Some
    /// servers answer otherwise to it than to the URL as written.
    #[must_use]
    pub fn canonicalize(mut self) -> Self {
        self.canonical = true;
        self
    }

    /// Gives a URL as often as it stands on the page (Scrapy's `unique=False`).
    #[must_use]
    pub fn keep_doubles(mut self) -> Self {
        self.doubles = true;
        self
    }

    /// Leaves out links whose `rel` holds `nofollow`.
    #[must_use]
    pub fn skip_nofollow(mut self) -> Self {
        self.skip_nofollow = true;
        self
    }

    /// Hands values to [`LinkExtractor::process_value`] with the white space around them (Scrapy's `strip=False`). In a URL it
    /// never counts.
    #[must_use]
    pub fn keep_white_space(mut self) -> Self {
        self.places.keep_white_space();
        self
    }

    /// Changes each attribute's value before it is resolved, or leaves it out by `None`.
    ///
    /// ```
    /// use dragline::api::{LinkExtractor, Page};
    /// use url::Url;
    ///
    /// let scripted = LinkExtractor::new().process_value(|value| {
    ///     Some(value.strip_prefix("javascript:go('")?.split_once('\'')?.0.to_owned())
    /// });
    /// let page = Page::parse("<a href=\"javascript:go('/next'); return false\">Next</a><a href=/other>Other</a>");
    /// let links = scripted.links_of(&page, &Url::parse("https://shop.example/").unwrap());
    /// assert_eq!(links[0].url.as_str(), "https://shop.example/next");
    /// assert_eq!(links.len(), 1);
    /// ```
    #[must_use]
    pub fn process_value(mut self, process: impl Fn(&str) -> Option<String> + Send + Sync + 'static) -> Self {
        self.places.set_process(Arc::new(process));
        self
    }

    /// The extractor, if all of its patterns and selectors can be used.
    ///
    /// # Errors
    /// The first one that cannot.
    pub fn checked(self) -> Result<Self, SelectorError> {
        match self.error {
            Some(error) => Err(error),
            None => Ok(self),
        }
    }

    /// The links of a page that was loaded from `document` and is in UTF-8; see `LinkExtractor::links` for responses.
    #[must_use]
    pub fn links_of(&self, page: &Page, document: &Url) -> Vec<Link> {
        self.extract(&Source::new(page, document, UTF_8)).links
    }

    /// Whether a URL passes the rules about URLs; those about places in a page, texts and `rel` have no say here.
    #[must_use]
    pub fn allows(&self, url: &Url) -> bool {
        let text = url.as_str();
        let in_domain = |domains: &[String]| domains.iter().any(|domain| host_in_domain(url, domain));
        self.error.is_none()
            && (self.allow_domains.is_empty() || in_domain(&self.allow_domains))
            && !in_domain(&self.deny_domains)
            && !self.deny_extensions.has(url.path())
            && (self.allow.is_empty() || self.allow.iter().any(|pattern| pattern.is_match(text)))
            && !self.deny.iter().any(|pattern| pattern.is_match(text))
    }

    /// The links at its places that it takes, and how many addresses there lead to no page.
    pub(crate) fn extract(&self, source: &Source<'_>) -> Extracted {
        let Candidates { mut found, skipped } = self.candidates(source);
        found.retain(|candidate| self.wants(candidate));
        Extracted { links: self.links_at(found), skipped }
    }

    /// The links that each of several extractors takes, in their order; one that an earlier one takes is not offered to later
    /// ones. Where extractors look at the same places, these are read once.
    pub(crate) fn share_out<'e>(extractors: impl Iterator<Item = &'e Self>, source: &Source<'_>) -> (Vec<Vec<Link>>, usize) {
        let mut read: Vec<(&Places, Candidates<'_>)> = Vec::new();
        let mut taken: HashSet<Url> = HashSet::new();
        let mut shares = Vec::new();
        for extractor in extractors {
            let known = read.iter().position(|(places, _)| **places == extractor.places && extractor.error.is_none());
            let at = known.unwrap_or_else(|| {
                read.push((&extractor.places, extractor.candidates(source)));
                read.len() - 1
            });
            let found = read.get(at).map(|(_, candidates)| candidates.found.as_slice()).unwrap_or_default();
            let wanted = found.iter().filter(|candidate| !taken.contains(&candidate.url) && extractor.wants(candidate));
            let wanted: Vec<Candidate<'_>> = wanted.cloned().collect();
            taken.extend(wanted.iter().map(|candidate| candidate.url.clone()));
            shares.push(extractor.links_at(wanted));
        }
        let skipped = read.iter().map(|(_, candidates)| candidates.skipped).sum();
        (shares, skipped)
    }

    fn candidates<'p>(&self, source: &Source<'p>) -> Candidates<'p> {
        match &self.error {
            None => self.places.candidates(source),
            Some(error) => {
                source.page.record(error.clone());
                Candidates { found: Vec::new(), skipped: 0 }
            }
        }
    }

    fn wants(&self, candidate: &Candidate<'_>) -> bool {
        self.allows(&candidate.url)
            && !(self.skip_nofollow && is_nofollow(candidate.element))
            && (self.texts.is_empty() || self.has_text(candidate.element))
    }

    fn links_at(&self, mut wanted: Vec<Candidate<'_>>) -> Vec<Link> {
        if self.canonical {
            wanted.iter_mut().for_each(|candidate| make_canonical(&mut candidate.url));
        }
        if !self.doubles {
            first_of_each(&mut wanted);
        }
        let link = |Candidate { url, element }| Link { url, text: link_text(element), nofollow: is_nofollow(element) };
        wanted.into_iter().map(link).collect()
    }

    fn has_text(&self, element: NodeRef<'_>) -> bool {
        let text = link_text(element);
        self.texts.iter().any(|pattern| pattern.is_match(&text))
    }

    fn compiled(&mut self, pattern: &str) -> Option<Regex> {
        compile_pattern(pattern).map_err(|error| self.spoil(error)).ok()
    }

    /// Keeps the first error.
    fn spoil(&mut self, error: SelectorError) {
        self.error.get_or_insert(error);
    }
}

impl fmt::Debug for LinkExtractor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LinkExtractor")
            .field("allow", &self.allow)
            .field("deny", &self.deny)
            .field("allow_domains", &self.allow_domains)
            .field("deny_domains", &self.deny_domains)
            .field("error", &self.error)
            .finish_non_exhaustive()
    }
}

/// What an extractor makes of a page.
pub(crate) struct Extracted {
    pub(crate) links: Vec<Link>,
    /// Addresses that are not http or https, or do not parse.
    pub(crate) skipped: usize,
}

/// The URL that relative links of a page are resolved against: the first `base` element with an `href`, itself resolved
/// against the document's URL, unless that is not http or https (HTML, "document base URL").
#[must_use]
pub fn base_url(page: &Page, document: &Url) -> Url {
    base_element(page)
        .and_then(|base| join_url(document, base.attr("href")?).ok())
        .filter(is_web)
        .unwrap_or_else(|| document.clone())
}

/// The address in each node of a selection: the `href` of an element (elements without one are passed over), or the
/// text of an attribute value or text node. White space around it is left to the URL parser.
pub fn hrefs<'s, 'p: 's>(selection: &'s Selection<'p>) -> impl Iterator<Item = &'p str> + 's {
    selection.strings("href")
}

/// What lies in a `template` is no part of the document.
fn base_element(page: &Page) -> Option<NodeRef<'_>> {
    let is_inert = |base: &NodeRef<'_>| base.ancestors().any(|ancestor| ancestor.name() == Some("template"));
    let all = page.css("base[href]");
    let first = all.first().nodes().next()?;
    if is_inert(&first) { all.nodes().find(|base| !is_inert(base)) } else { Some(first) }
}

/// Whether the `rel` of an element holds `nofollow`.
pub(super) fn is_nofollow(element: NodeRef<'_>) -> bool {
    element.attr("rel").is_some_and(|rel| {
        rel.split(|c: char| c.is_ascii_whitespace() || c == ',').any(|word| word.eq_ignore_ascii_case("nofollow"))
    })
}

/// Anchors can be made to nest (`<a><object><a>`), so the text of one is bounded: else all of them together could be
/// as long as the square of the page.
fn link_text(element: NodeRef<'_>) -> String {
    const MAX_NODES: usize = 1000;
    const MAX_BYTES: usize = 2048;
    let mut text = String::new();
    for part in element.descendants().take(MAX_NODES).filter(|node| node.kind() == NodeKind::Text).filter_map(NodeRef::data) {
        let room = MAX_BYTES - text.len();
        if part.len() > room {
            let end = (0..=room).rev().find(|end| part.is_char_boundary(*end)).unwrap_or(0);
            text.push_str(part.get(..end).unwrap_or_default());
            break;
        }
        text.push_str(part);
    }
    text
}

fn first_of_each(candidates: &mut Vec<Candidate<'_>>) {
    let mut seen = HashSet::with_capacity(candidates.len());
    let kept: Vec<bool> = candidates.iter().map(|candidate| seen.insert(candidate.url.as_str())).collect();
    let mut kept = kept.into_iter();
    candidates.retain(|_| kept.next().unwrap_or(true));
}

/// A URL without a canonical form stays as it is.
fn make_canonical(url: &mut Url) {
    if let Some(canonical) = canonicalize(url.as_str()).ok().and_then(|text| Url::parse(&text).ok()) {
        *url = canonical;
    }
}

fn is_web(url: &Url) -> bool {
    matches!(url.scheme(), "http" | "https")
}

/// A domain as hosts are written in a URL: lower case, punycode, no dot around it.
fn normal_domain(domain: &str) -> String {
    let domain = domain.trim().trim_matches('.');
    match Host::parse(domain) {
        Ok(host) => host.to_string(),
        Err(_) => domain.to_ascii_lowercase(),
    }
}

fn host_in_domain(url: &Url, domain: &str) -> bool {
    let host = url.host_str().unwrap_or_default().trim_end_matches('.');
    host == domain || host.strip_suffix(domain).is_some_and(|rest| rest.ends_with('.'))
}

#[cfg(test)]
mod tests;
