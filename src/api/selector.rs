//! Extraction: a parsed page and selections on it, with Scrapy's `css`, `::text`, `::attr(x)`, `get`, `getall`, `re`.
//!
//! A selection is lazy: nothing is searched until it is read, and `get` stops at the first match. Nothing here panics on
//! a bad selector: `css` logs it once, keeps the error on the page and gives an empty selection. The tree behind a page
//! is private, so that it can be replaced.

mod cache;
mod compiled;
mod matching;
mod outer_html;
mod pattern;
mod source_order;

#[cfg(test)]
mod tests;

use std::cell::{OnceCell, RefCell};
use std::fmt;
use std::rc::Rc;

use scraper::{ElementRef, Html};

use compiled::Compiled;
use matching::{Hit, Roots};
use outer_html::outer_html;
use source_order::SourceOrder;

pub(crate) use pattern::compile as compile_pattern;

/// The most errors a page keeps for its caller; later ones are only logged.
const KEPT_ERRORS: usize = 16;

/// A parsed HTML document. Not `Send`: it lives and dies on the thread that parsed it.
///
/// ```
/// use dragline::api::selector::Page;
///
/// let page = Page::parse("<ul><li><a href='/1'>One</a> 10 <li><a href='/2'>Two</a> 20</ul>");
/// let rows: Vec<_> = page
///     .css("li")
///     .iter()
///     .map(|row| (row.css("a::attr(href)").get(), row.css("li::text").re_first(r"\d+")))
///     .collect();
/// assert_eq!(rows[1], (Some("/2".to_owned()), Some("20".to_owned())));
/// ```
pub struct Page {
    html: Html,
    order: SourceOrder,
    errors: RefCell<Vec<SelectorError>>,
}

impl Page {
    /// Builds the tree of an HTML document the way a browser without scripting does; any text is a document.
    #[must_use]
    pub fn parse(text: &str) -> Self {
        let (html, order) = source_order::parse(text);
        Self { html, order, errors: RefCell::default() }
    }

    /// Selects by CSS over the whole document; see [`Selection::css`] for the extensions and for bad selectors.
    #[must_use]
    pub fn css(&self, selector: &str) -> Selection<'_> {
        self.root().css_in(selector, Reach::Document)
    }

    /// Like [`Page::css`], with a bad selector as an error that is neither logged nor kept.
    ///
    /// # Errors
    /// [`SelectorError`] for a selector that cannot be parsed.
    pub fn try_css(&self, selector: &str) -> Result<Selection<'_>, SelectorError> {
        self.root().try_css_in(selector, Reach::Document)
    }

    /// The document element (`html`) as a selection of one node.
    #[must_use]
    pub fn root(&self) -> Selection<'_> {
        let state = self.root_element().map_or(State::None, |root| State::One(Hit::Element(root)));
        Selection { page: self, state }
    }

    /// Takes the errors of `css`, `re` and `re_first` calls since the last time, oldest first, at most 16.
    /// The runtime fails the callback when there are any.
    #[must_use]
    pub fn take_errors(&self) -> Vec<SelectorError> {
        self.errors.take()
    }

    pub(crate) fn root_element(&self) -> Option<ElementRef<'_>> {
        self.html.tree.root().children().find_map(ElementRef::wrap)
    }

    fn record(&self, error: SelectorError) {
        let mut errors = self.errors.borrow_mut();
        if errors.len() < KEPT_ERRORS {
            errors.push(error);
        }
    }
}

/// Matches of a regular expression in a text that belongs to no node, at most `most`; a bad pattern is logged.
pub(crate) fn matches(text: &str, pattern: &str, most: usize) -> Result<Vec<String>, SelectorError> {
    let regex = cache::pattern(pattern, cache::Report::Log)?;
    let mut found = Vec::new();
    pattern::find(&regex, text, |text| {
        found.push(text.to_owned());
        if found.len() < most { pattern::Next::Go } else { pattern::Next::Stop }
    });
    Ok(found)
}

impl fmt::Debug for Page {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Page").field("errors", &self.errors.borrow().len()).finish_non_exhaustive()
    }
}

/// A list of nodes of a page, in document order and without doubles: elements, text nodes or attribute values.
#[derive(Clone)]
pub struct Selection<'p> {
    page: &'p Page,
    state: State<'p>,
}

#[derive(Clone)]
enum State<'p> {
    None,
    One(Hit<'p>),
    Query(Query<'p>),
}

/// A selector that waits to be read; `hits` is filled by the first call that needs all of them.
#[derive(Clone)]
struct Query<'p> {
    roots: Roots<'p>,
    reach: Reach,
    compiled: Rc<Compiled>,
    hits: OnceCell<Vec<Hit<'p>>>,
}

/// How far the leftmost part of a selector may look.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Reach {
    /// Anywhere in the document: the page itself is searched.
    Document,
    /// Only the node searched and what is below it, as in Scrapy.
    Subtree,
}

impl<'p> Selection<'p> {
    /// Selects by CSS inside each node of this selection, the node itself included, as Scrapy does: for a selected `a`,
    /// `css("::attr(href)")` is its own attribute. Ancestors outside of the node do not count.
    ///
    /// Beyond CSS: `sel::text` gives the text nodes that are children of the matches, `sel ::text` also those of their
    /// descendants, `sel::attr(name)` an attribute value; each item of a comma list may have its own. Text nodes and
    /// attribute values contain nothing, so selecting in them gives nothing.
    ///
    /// A selector that cannot be parsed is logged once at error level, kept for [`Page::take_errors`], and gives an
    /// empty selection.
    #[must_use]
    pub fn css(&self, selector: &str) -> Selection<'p> {
        self.css_in(selector, Reach::Subtree)
    }

    /// Like [`Selection::css`], with a bad selector as an error that is neither logged nor kept.
    ///
    /// # Errors
    /// [`SelectorError`] for a selector that cannot be parsed.
    pub fn try_css(&self, selector: &str) -> Result<Selection<'p>, SelectorError> {
        self.try_css_in(selector, Reach::Subtree)
    }

    /// The first node as text: outer HTML of an element (attributes in the order of the source, the rest as WHATWG HTML
    /// 13.3 writes it), a text node or attribute value as it is.
    /// Stops at the first match.
    #[must_use]
    pub fn get(&self) -> Option<String> {
        self.first_hit().map(|hit| hit.to_text(&self.page.order))
    }

    /// Every node as text, as [`Selection::get`] gives it.
    #[must_use]
    pub fn getall(&self) -> Vec<String> {
        self.hits().iter().map(|hit| hit.to_text(&self.page.order)).collect()
    }

    /// What a reader sees of the first node: all text below it without scripts and styles, runs of white space as one
    /// blank, trimmed. `None` when nothing is selected.
    #[must_use]
    pub fn text(&self) -> Option<String> {
        self.first_hit().map(Hit::visible_text)
    }

    /// An attribute of the first node, if that is an element that has it.
    #[must_use]
    pub fn attr(&self, name: &str) -> Option<&'p str> {
        match self.first_hit()? {
            Hit::Element(element) => element.attr(name),
            Hit::Text(_) | Hit::Attr(..) => None,
        }
    }

    /// The name of the first node in lower case, if that is an element.
    #[must_use]
    pub fn name(&self) -> Option<&'p str> {
        match self.first_hit()? {
            Hit::Element(element) => Some(element.value().name()),
            Hit::Text(_) | Hit::Attr(..) => None,
        }
    }

    /// The outer HTML of the first node, if that is an element.
    #[must_use]
    pub fn html(&self) -> Option<String> {
        match self.first_hit()? {
            Hit::Element(element) => Some(outer_html(*element, &self.page.order)),
            Hit::Text(_) | Hit::Attr(..) => None,
        }
    }

    /// The number of nodes.
    #[must_use]
    pub fn len(&self) -> usize {
        self.hits().len()
    }

    /// Whether nothing is selected. Stops at the first match.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.first_hit().is_none()
    }

    /// The first node alone, or an empty selection.
    #[must_use]
    pub fn first(&self) -> Selection<'p> {
        let state = self.first_hit().map_or(State::None, State::One);
        Selection { page: self.page, state }
    }

    /// Each node as a selection of its own.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = Selection<'p>> + '_ {
        self.hits().iter().map(|hit| Selection { page: self.page, state: State::One(*hit) })
    }

    /// Matches a regular expression against every node's text (as [`Selection::get`] gives it, with `&gt;`, `&quot;` and
    /// `&nbsp;` of HTML undone) and gives, in order: the group named `extract` of the first match in each node, if the
    /// pattern has it; else all groups of all matches, a group without a match as empty text; else the whole matches.
    ///
    /// A pattern that cannot be compiled is treated as a bad selector: see [`Selection::css`].
    #[must_use]
    pub fn re(&self, pattern: &str) -> Vec<String> {
        let Some(regex) = self.pattern(pattern) else {
            return Vec::new();
        };
        let mut found = Vec::new();
        for hit in self.hits() {
            pattern::find(&regex, &hit.pattern_text(&self.page.order), |text| {
                found.push(text.to_owned());
                pattern::Next::Go
            });
        }
        found
    }

    /// The first of what [`Selection::re`] gives; stops there.
    #[must_use]
    pub fn re_first(&self, pattern: &str) -> Option<String> {
        let regex = self.pattern(pattern)?;
        for hit in self.hits() {
            let mut first = None;
            pattern::find(&regex, &hit.pattern_text(&self.page.order), |text| {
                first = Some(text.to_owned());
                pattern::Next::Stop
            });
            if first.is_some() {
                return first;
            }
        }
        None
    }

    /// The string behind each node, without allocation: text, attribute value, or the named attribute of an element.
    pub(crate) fn strings<'s>(&'s self, attribute: &'s str) -> impl Iterator<Item = &'p str> + 's {
        self.hits().iter().filter_map(move |hit| hit.as_str(attribute))
    }

    pub(crate) fn elements(&self) -> impl Iterator<Item = ElementRef<'p>> + '_ {
        self.hits().iter().filter_map(|hit| match hit {
            Hit::Element(element) => Some(*element),
            Hit::Text(_) | Hit::Attr(..) => None,
        })
    }

    fn css_in(&self, selector: &str, reach: Reach) -> Selection<'p> {
        match cache::selector(selector, cache::Report::Log) {
            Ok(compiled) => self.query(compiled, reach),
            Err(error) => {
                self.page.record(error);
                Selection { page: self.page, state: State::None }
            }
        }
    }

    fn try_css_in(&self, selector: &str, reach: Reach) -> Result<Selection<'p>, SelectorError> {
        let compiled = cache::selector(selector, cache::Report::Quiet)?;
        Ok(self.query(compiled, reach))
    }

    fn query(&self, compiled: Rc<Compiled>, reach: Reach) -> Selection<'p> {
        let roots = match &self.state {
            State::None => Roots::Many(Vec::new()),
            State::One(Hit::Element(element)) => Roots::One(*element),
            State::One(_) => Roots::Many(Vec::new()),
            State::Query(_) => Roots::Many(self.elements().collect()),
        };
        let query = Query { roots, reach, compiled, hits: OnceCell::new() };
        Selection { page: self.page, state: State::Query(query) }
    }

    fn pattern(&self, pattern: &str) -> Option<Rc<regex::Regex>> {
        match cache::pattern(pattern, cache::Report::Log) {
            Ok(regex) => Some(regex),
            Err(error) => {
                self.page.record(error);
                None
            }
        }
    }

    fn first_hit(&self) -> Option<Hit<'p>> {
        match &self.state {
            State::None => None,
            State::One(hit) => Some(*hit),
            State::Query(query) => match query.hits.get() {
                Some(hits) => hits.first().copied(),
                None => matching::first(&query.roots, query.compiled.groups(query.reach)),
            },
        }
    }

    fn hits(&self) -> &[Hit<'p>] {
        match &self.state {
            State::None => &[],
            State::One(hit) => std::slice::from_ref(hit),
            State::Query(query) => query.hits.get_or_init(|| matching::all(&query.roots, query.compiled.groups(query.reach))),
        }
    }
}

impl<'p> IntoIterator for &Selection<'p> {
    type Item = Selection<'p>;
    type IntoIter = std::vec::IntoIter<Selection<'p>>;

    fn into_iter(self) -> Self::IntoIter {
        self.iter().collect::<Vec<_>>().into_iter()
    }
}

impl<'p> IntoIterator for Selection<'p> {
    type Item = Selection<'p>;
    type IntoIter = std::vec::IntoIter<Selection<'p>>;

    fn into_iter(self) -> Self::IntoIter {
        (&self).into_iter()
    }
}

impl fmt::Debug for Selection<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.hits().iter().map(|hit| hit.to_text(&self.page.order))).finish()
    }
}

/// What kind of text could not be compiled.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum SelectorKind {
    /// A CSS selector.
    Css,
    /// A regular expression.
    Pattern,
}

impl fmt::Display for SelectorKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Css => "css selector",
            Self::Pattern => "regular expression",
        })
    }
}

/// A selector or regular expression that cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{kind} {text:?} is not valid at byte {position}: {reason}")]
pub struct SelectorError {
    kind: SelectorKind,
    text: String,
    position: usize,
    reason: String,
}

impl SelectorError {
    pub(crate) fn new(kind: SelectorKind, text: &str, position: usize, reason: impl Into<String>) -> Self {
        Self { kind, text: text.to_owned(), position, reason: reason.into() }
    }

    /// What was to be compiled.
    #[must_use]
    pub fn kind(&self) -> SelectorKind {
        self.kind
    }

    /// The text as the spider gave it.
    #[must_use]
    pub fn text(&self) -> &str {
        &self.text
    }

    /// Offset in bytes of the part that was not understood.
    #[must_use]
    pub fn position(&self) -> usize {
        self.position
    }

    /// Why it was not understood.
    #[must_use]
    pub fn reason(&self) -> &str {
        &self.reason
    }
}
