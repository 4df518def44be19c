//! Where on a page links are looked for: regions, elements, attributes. What is found there is not judged here.

use std::sync::Arc;

use encoding_rs::Encoding;
use url::Url;

use super::{base_url, is_web};
use crate::api::selector::{NodeRef, Page, Selection};
use crate::web::document_url::{is_off_the_web, join};

/// A page whose addresses are to be resolved.
pub(crate) struct Source<'p> {
    pub(crate) page: &'p Page,
    pub(crate) base: Url,
    pub(crate) encoding: &'static Encoding,
    /// Takes out of a URL what the page repeats of its lease.
    pub(crate) clean: &'p dyn Fn(&mut Url),
}

impl<'p> Source<'p> {
    pub(crate) fn new(page: &'p Page, document: &Url, encoding: &'static Encoding) -> Self {
        Self { page, base: base_url(page, document), encoding, clean: &|_| () }
    }
}

/// Bytes of URLs that are taken from a page. Each link may repeat a base as long as the page, so that all together would be
/// as long as its square.
pub(crate) fn room_for_urls(page: &Page) -> usize {
    usize::try_from(page.document().byte_count()).unwrap_or(usize::MAX).saturating_mul(32).saturating_add(1 << 20)
}

/// An address that leads to the web, and where it stands.
#[derive(Clone)]
pub(super) struct Candidate<'p> {
    pub(super) url: Url,
    pub(super) element: NodeRef<'p>,
}

/// What stands at the places of a page.
pub(super) struct Candidates<'p> {
    pub(super) found: Vec<Candidate<'p>>,
    /// Addresses of other schemes, such that do not parse, and what is beyond the bound for a page.
    pub(super) skipped: usize,
}

/// Changes an attribute's value, or leaves it out.
pub(super) type ProcessValue = Arc<dyn Fn(&str) -> Option<String> + Send + Sync>;

#[derive(Clone)]
pub(super) struct Places {
    tags: Vec<String>,
    attrs: Vec<String>,
    /// Selects the elements of those names that have one of those attributes.
    elements: String,
    regions_css: Option<String>,
    regions_xpath: Option<String>,
    keep_white_space: bool,
    process: Option<ProcessValue>,
}

impl Default for Places {
    fn default() -> Self {
        Self {
            tags: ["a", "area"].map(str::to_owned).into(),
            attrs: vec!["href".to_owned()],
            elements: "a[href], area[href]".to_owned(),
            regions_css: None,
            regions_xpath: None,
            keep_white_space: false,
            process: None,
        }
    }
}

/// The same places give the same candidates.
impl PartialEq for Places {
    fn eq(&self, other: &Self) -> bool {
        let process = match (&self.process, &other.process) {
            (Some(one), Some(other)) => Arc::ptr_eq(one, other),
            (one, other) => one.is_none() && other.is_none(),
        };
        process
            && self.elements == other.elements
            && self.regions_css == other.regions_css
            && self.regions_xpath == other.regions_xpath
            && self.keep_white_space == other.keep_white_space
    }
}

impl Places {
    pub(super) fn set_tags(&mut self, tags: Vec<String>) {
        self.tags = tags;
        self.elements = elements(&self.tags, &self.attrs);
    }

    pub(super) fn set_attrs(&mut self, attrs: Vec<String>) {
        self.attrs = attrs;
        self.elements = elements(&self.tags, &self.attrs);
    }

    pub(super) fn set_process(&mut self, process: ProcessValue) {
        self.process = Some(process);
    }

    pub(super) fn keep_white_space(&mut self) {
        self.keep_white_space = true;
    }

    pub(super) fn add_css(&mut self, selector: &str) {
        self.regions_css = Some(match self.regions_css.take() {
            Some(before) => format!("{before}, {selector}"),
            None => selector.to_owned(),
        });
    }

    pub(super) fn add_xpath(&mut self, expression: &str) {
        self.regions_xpath = Some(match self.regions_xpath.take() {
            Some(before) => format!("{before} | ({expression})"),
            None => format!("({expression})"),
        });
    }

    /// The addresses at these places, in document order.
    pub(super) fn candidates<'p>(&self, source: &Source<'p>) -> Candidates<'p> {
        let mut candidates = Candidates { found: Vec::new(), skipped: 0 };
        if self.tags.is_empty() || self.attrs.is_empty() {
            return candidates;
        }
        let page = source.page;
        match (&self.regions_css, &self.regions_xpath) {
            (None, None) => self.collect(page.css(&self.elements).nodes(), source, &mut candidates),
            (Some(regions), None) => self.collect(self.inside(&page.css(regions)).nodes(), source, &mut candidates),
            (None, Some(regions)) => self.collect(self.inside(&page.xpath(regions)).nodes(), source, &mut candidates),
            (Some(css), Some(xpath)) => {
                let (by_css, by_xpath) = (self.inside(&page.css(css)), self.inside(&page.xpath(xpath)));
                let mut elements: Vec<NodeRef<'p>> = by_css.nodes().chain(by_xpath.nodes()).collect();
                elements.sort_by_key(|element| element.document.place(element.id));
                elements.dedup();
                self.collect(elements.into_iter(), source, &mut candidates);
            }
        }
        candidates
    }

    fn inside<'p>(&self, regions: &Selection<'p>) -> Selection<'p> {
        regions.css(&self.elements)
    }

    fn collect<'p>(&self, elements: impl Iterator<Item = NodeRef<'p>>, source: &Source<'p>, into: &mut Candidates<'p>) {
        let mut room = room_for_urls(source.page);
        for element in elements {
            for value in self.attrs.iter().filter_map(|name| element.attr(name)) {
                let read = if room == 0 { Read::Skipped } else { self.url(value, source) };
                match read {
                    Read::Leads(url) => {
                        room = room.saturating_sub(url.as_str().len());
                        into.found.push(Candidate { url, element });
                    }
                    Read::LeftOut => {}
                    Read::Skipped => into.skipped += 1,
                }
            }
        }
    }

    fn url(&self, value: &str, source: &Source<'_>) -> Read {
        let changed;
        let value = match &self.process {
            None => value,
            Some(process) => {
                let value = if self.keep_white_space { value } else { value.trim_ascii() };
                let Some(value) = process(value) else { return Read::LeftOut };
                changed = value;
                &changed
            }
        };
        if is_off_the_web(value) {
            return Read::Skipped;
        }
        match join(&source.base, value, source.encoding) {
            Ok(mut url) if is_web(&url) => {
                (source.clean)(&mut url);
                Read::Leads(url)
            }
            _ => Read::Skipped,
        }
    }
}

/// What became of an attribute's value.
enum Read {
    Leads(Url),
    /// By the author's own function.
    LeftOut,
    Skipped,
}

/// A selector for elements of any of these names with any of these attributes, and maybe some more.
fn elements(tags: &[String], attrs: &[String]) -> String {
    let mut out = String::new();
    for tag in tags {
        for attr in attrs {
            if !out.is_empty() {
                out.push_str(", ");
            }
            if tag == "*" {
                out.push('*');
            } else {
                push_identifier(tag, &mut out);
            }
            // CSS sees `xlink:href` as a name with a namespace; what has no such attribute is passed over later.
            if !attr.contains(':') {
                out.push('[');
                push_identifier(attr, &mut out);
                out.push(']');
            }
        }
    }
    out
}

/// Writes a name as a CSS identifier (CSSOM, "serialize an identifier": what is not plain is escaped).
fn push_identifier(name: &str, out: &mut String) {
    for (at, c) in name.chars().enumerate() {
        let is_plain = c.is_ascii_alphabetic() || c == '_' || !c.is_ascii() || (at > 0 && (c.is_ascii_digit() || c == '-'));
        if is_plain {
            out.push(c);
        } else {
            out.push_str(&format!("\\{:x} ", u32::from(c)));
        }
    }
}
