//! Links of a page, as a browser sees them: every `a` and `area` with an `href`, resolved against the `base` element,
//! in document order, each URL once. Only http and https; everything else is not a page to crawl.
//!
//! URLs are kept as written (WHATWG form, fragment included, query not reordered); canonical forms are the business of
//! the duplicate filter. Query characters outside ASCII are encoded as UTF-8.

use std::collections::HashSet;

use regex::Regex;
use url::{Host, Url};

use super::selector::{NodeKind, NodeRef, Page, Selection, SelectorError, compile_pattern};

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

/// The URL that relative links of a page are resolved against: the first `base` element with an `href`, itself resolved
/// against the document's URL, unless that is not http or https (HTML, "document base URL").
#[must_use]
pub fn base_url(page: &Page, document: &Url) -> Url {
    page.css("base[href]")
        .attr("href")
        .and_then(|href| document.join(href).ok())
        .filter(is_web)
        .unwrap_or_else(|| document.clone())
}

/// Every link of a page, in document order, the first of each URL. `document` is the URL the page was loaded from.
#[must_use]
pub fn extract_links(page: &Page, document: &Url) -> Vec<Link> {
    let base = base_url(page, document);
    first_of_each(page.css("a[href], area[href]").nodes().filter_map(|element| link(element, &base)).collect())
}

/// The links of a page that a filter lets pass.
#[must_use]
pub fn links_with(page: &Page, document: &Url, filter: &LinkFilter) -> Vec<Link> {
    let base = base_url(page, document);
    let anchors = match &filter.restrict_css {
        Some(regions) => page.css(regions).css("a[href], area[href]"),
        None => page.css("a[href], area[href]"),
    };
    let links = anchors.nodes().filter_map(|element| link(element, &base));
    first_of_each(links.filter(|link| filter.allows(&link.url)).collect())
}

/// The address in each node of a selection: the `href` of an element (elements without one are passed over), or the
/// text of an attribute value or text node. White space around it is left to the URL parser.
pub fn hrefs<'s, 'p: 's>(selection: &'s Selection<'p>) -> impl Iterator<Item = &'p str> + 's {
    selection.strings("href")
}

/// Which links of a page are wanted, after Scrapy's `LinkExtractor`. Without any rule everything passes except files
/// that are not pages ([`IGNORED_EXTENSIONS`]).
#[derive(Clone, Debug)]
pub struct LinkFilter {
    allow: Vec<Regex>,
    deny: Vec<Regex>,
    allow_domains: Vec<String>,
    deny_domains: Vec<String>,
    deny_extensions: Vec<String>,
    restrict_css: Option<String>,
}

impl Default for LinkFilter {
    fn default() -> Self {
        Self::new()
    }
}

impl LinkFilter {
    /// A filter that only leaves out the files of [`IGNORED_EXTENSIONS`].
    #[must_use]
    pub fn new() -> Self {
        Self {
            allow: Vec::new(),
            deny: Vec::new(),
            allow_domains: Vec::new(),
            deny_domains: Vec::new(),
            deny_extensions: IGNORED_EXTENSIONS.iter().map(|&extension| extension.to_owned()).collect(),
            restrict_css: None,
        }
    }

    /// Lets pass only URLs that match this regular expression or another allowed one.
    ///
    /// # Errors
    /// [`SelectorError`] for a pattern that cannot be compiled.
    pub fn allow(mut self, pattern: &str) -> Result<Self, SelectorError> {
        self.allow.push(compile_pattern(pattern)?);
        Ok(self)
    }

    /// Leaves out URLs that match this regular expression, also where `allow` matches.
    ///
    /// # Errors
    /// [`SelectorError`] for a pattern that cannot be compiled.
    pub fn deny(mut self, pattern: &str) -> Result<Self, SelectorError> {
        self.deny.push(compile_pattern(pattern)?);
        Ok(self)
    }

    /// Lets pass only hosts equal to this domain or another allowed one, or below it.
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

    /// Replaces the file extensions left out (`pdf`, `tar.gz`; with or without a dot in front). Only the path counts.
    #[must_use]
    pub fn deny_extensions<I: IntoIterator<Item = S>, S: AsRef<str>>(mut self, extensions: I) -> Self {
        let normal = |extension: S| extension.as_ref().trim_start_matches('.').to_ascii_lowercase();
        self.deny_extensions = extensions.into_iter().map(normal).collect();
        self
    }

    /// Takes links only from inside the elements this selector, or another one given before, matches.
    ///
    /// # Errors
    /// [`SelectorError`] for a selector that cannot be parsed.
    pub fn restrict_css(mut self, selector: &str) -> Result<Self, SelectorError> {
        Page::parse("").try_css(selector)?;
        self.restrict_css = Some(match self.restrict_css.take() {
            Some(before) => format!("{before}, {selector}"),
            None => selector.to_owned(),
        });
        Ok(self)
    }

    /// Whether a URL passes the rules; `restrict_css` is about places in a page and has no say here.
    #[must_use]
    pub fn allows(&self, url: &Url) -> bool {
        let text = url.as_str();
        let in_domain = |domains: &[String]| domains.iter().any(|domain| host_in_domain(url, domain));
        (self.allow.is_empty() || self.allow.iter().any(|pattern| pattern.is_match(text)))
            && !self.deny.iter().any(|pattern| pattern.is_match(text))
            && (self.allow_domains.is_empty() || in_domain(&self.allow_domains))
            && !in_domain(&self.deny_domains)
            && !self.is_ignored_file(url)
    }

    fn is_ignored_file(&self, url: &Url) -> bool {
        let file = url.path().rsplit('/').next().unwrap_or_default();
        let Some((_, extension)) = file.rsplit_once('.') else {
            return false;
        };
        self.deny_extensions.iter().any(|denied| {
            // An extension of two parts, such as `tar.gz`, is compared with the end of the file name.
            extension.eq_ignore_ascii_case(denied)
                || (denied.contains('.')
                    && file
                        .len()
                        .checked_sub(denied.len())
                        .and_then(|at| file.split_at_checked(at))
                        .is_some_and(|(stem, end)| stem.ends_with('.') && end.eq_ignore_ascii_case(denied)))
        })
    }
}

/// Extensions of files that hold no links: images, sound, film, office documents, archives, programs, fonts, styles.
pub const IGNORED_EXTENSIONS: &[&str] = &[
    // images
    "mng", "pct", "bmp", "gif", "jpg", "jpeg", "png", "pst", "psp", "tif", "tiff", "ai", "drw", "dxf", "eps", "ps", "svg", "cdr",
    "ico", "webp", "avif", "heic", "psd", // sound
    "mp3", "wma", "ogg", "oga", "wav", "ra", "aac", "mid", "au", "aiff", "flac", "m4a", "opus", // film
    "3gp", "asf", "asx", "avi", "mov", "mp4", "mpg", "mpeg", "qt", "rm", "swf", "wmv", "m4v", "flv", "webm", "mkv",
    "ogv", // documents
    "xls", "xlsm", "xlsx", "xltm", "xltx", "potm", "potx", "ppt", "pptm", "pptx", "pps", "doc", "docb", "docm", "docx", "dotm",
    "dotx", "odt", "ods", "odg", "odp", "pdf", "rtf", "epub", "mobi", // archives and disk images
    "7z", "7zip", "bz2", "rar", "tar", "tar.gz", "tgz", "gz", "xz", "zst", "zip", "jar", "cab", "iso", "dmg",
    "img", // programs and packages
    "apk", "ipa", "bin", "exe", "msi", "msu", "deb", "rpm", // styles, scripts, fonts
    "css", "js", "woff", "woff2", "ttf", "otf", "eot",
];

fn link(element: NodeRef<'_>, base: &Url) -> Option<Link> {
    let url = base.join(element.attr("href")?).ok().filter(is_web)?;
    let nofollow = element.attr("rel").is_some_and(|rel| {
        rel.split(|c: char| c.is_ascii_whitespace() || c == ',').any(|word| word.eq_ignore_ascii_case("nofollow"))
    });
    Some(Link { url, text: link_text(element), nofollow })
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

fn first_of_each(mut links: Vec<Link>) -> Vec<Link> {
    let mut seen = HashSet::with_capacity(links.len());
    let kept: Vec<bool> = links.iter().map(|link| seen.insert(link.url.as_str())).collect();
    let mut kept = kept.into_iter();
    links.retain(|_| kept.next().unwrap_or(true));
    links
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
#[path = "links_tests.rs"]
mod tests;
