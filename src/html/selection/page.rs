//! A page: its tree, whoever answers for it, and the errors of selectors that could not be returned.

use std::cell::RefCell;
use std::fmt;
use std::str::Utf8Error;

use bytes::Bytes;

use super::super::by_scraper::ByScraper;
use super::super::compare::{Compared, Comparison};
use super::super::document::Document;
use super::super::engine::{Engine, PageOptions};
use super::super::error::SelectorError;
use super::super::hit::Hit;
use super::super::limits::Exceeded;
use super::super::variables::{Variables, XPathValue};
use super::Selection;
use super::find::{self, Answer, Reach};

/// The most errors a page keeps for its caller; later ones are only logged.
pub(crate) const KEPT_ERRORS: usize = 16;

/// A parsed page to select in. It stays on the thread that made it; its [`Document`] can be shared.
///
/// ```
/// use dragline::html::Page;
///
/// let page = Page::parse("<ul><li><a href='/1'>One</a> 10 <li><a href='/2'>Two</a> 20</ul>");
/// let rows: Vec<_> = page
///     .css("li")
///     .iter()
///     .map(|row| (row.css("a::attr(href)").get(), row.xpath("./text()").re_first(r"\d+")))
///     .collect();
/// assert_eq!(rows[1], (Some("/2".to_owned()), Some("20".to_owned())));
/// ```
pub struct Page {
    document: Document,
    pub(super) other: Other,
    errors: RefCell<Vec<SelectorError>>,
}

/// What scraper has to say.
#[derive(Debug)]
pub(super) enum Other {
    /// It was not asked.
    None,
    /// It answers.
    Answers(Box<ByScraper>),
    /// It is compared with.
    Compares(Box<Comparison>),
}

impl Page {
    /// Builds the tree of an HTML document the way a browser without scripting does; any text is a document.
    #[must_use]
    pub fn parse(text: &str) -> Self {
        Self::parse_with(text, &PageOptions::default())
    }

    /// The same with an engine and bounds.
    #[must_use]
    pub fn parse_with(text: &str, options: &PageOptions) -> Self {
        Self::from_text(Bytes::copy_from_slice(text.as_bytes()), text, options)
    }

    /// Builds the tree from bytes that the page keeps as they are, without a copy.
    ///
    /// # Errors
    /// When the bytes are not UTF-8.
    pub fn from_utf8(body: Bytes, options: &PageOptions) -> Result<Self, Utf8Error> {
        let text = match simdutf8::basic::from_utf8(&body) {
            Ok(text) => text,
            // Says where, which the fast check does not.
            Err(_) => std::str::from_utf8(&body)?,
        };
        let without_mark = text.strip_prefix('\u{feff}').unwrap_or(text);
        let source = body.slice(text.len() - without_mark.len()..);
        Ok(Self::from_text(source, without_mark, options))
    }

    /// The same from bytes that are known to be UTF-8, without a byte order mark.
    pub(crate) fn from_checked(source: Bytes, options: &PageOptions) -> Self {
        if options.engine == Engine::Dragline {
            return Self::of(Document::from_checked(source, &options.parse), Other::None);
        }
        let text = simdutf8::basic::from_utf8(&source).unwrap_or_default();
        Self::from_text(source.clone(), text, options)
    }

    /// From a text in both forms.
    fn from_text(source: Bytes, text: &str, options: &PageOptions) -> Self {
        match options.engine {
            Engine::Dragline => Self::of(Document::from_checked(source, &options.parse), Other::None),
            Engine::Scraper => {
                let (theirs, copy) = ByScraper::parse(text);
                Self::of(copy, Other::Answers(Box::new(theirs)))
            }
            Engine::Compare => {
                let document = Document::from_checked(source, &options.parse);
                let (theirs, copy) = ByScraper::parse(text);
                let comparison = Comparison::new(&document, theirs, copy);
                Self::of(document, Other::Compares(Box::new(comparison)))
            }
        }
    }

    fn of(document: Document, other: Other) -> Self {
        Self { document, other, errors: RefCell::default() }
    }

    /// The tree.
    #[must_use]
    pub fn document(&self) -> &Document {
        &self.document
    }

    /// Which bounds the page has met.
    #[must_use]
    pub fn exceeded(&self) -> Exceeded {
        self.document.exceeded()
    }

    /// Selects by CSS over the whole document; see [`Selection::css`] for the extensions and for bad selectors.
    #[must_use]
    pub fn css(&self, selector: &str) -> Selection<'_> {
        self.root().css_in(selector, Reach::Document)
    }

    /// Like [`Page::css`], with what goes wrong as an error that is neither logged nor kept. Searched at once.
    ///
    /// # Errors
    /// [`SelectorError`] for a selector that cannot be parsed, or that takes too long.
    pub fn try_css(&self, selector: &str) -> Result<Selection<'_>, SelectorError> {
        self.root().try_css_in(selector, Reach::Document)
    }

    /// Selects by XPath from the document element; see [`Selection::xpath`].
    #[must_use]
    pub fn xpath(&self, expression: &str) -> Selection<'_> {
        self.root().xpath(expression)
    }

    /// Like [`Page::xpath`], with values for the variables of the expression.
    #[must_use]
    pub fn xpath_with(&self, expression: &str, variables: &Variables) -> Selection<'_> {
        self.root().xpath_with(expression, variables)
    }

    /// Like [`Page::xpath`], with what goes wrong as an error that is neither logged nor kept. Evaluated at once.
    ///
    /// # Errors
    /// [`SelectorError`] for an expression that cannot be parsed, that uses what is not there, or that takes too long.
    pub fn try_xpath(&self, expression: &str) -> Result<Selection<'_>, SelectorError> {
        self.root().try_xpath(expression)
    }

    /// The value of an XPath expression with its type, evaluated from the document element.
    ///
    /// # Errors
    /// As [`Page::try_xpath`].
    pub fn evaluate(&self, expression: &str, variables: &Variables) -> Result<XPathValue<'_>, SelectorError> {
        find::value(self, expression, variables)
    }

    /// The document element (`html`) as a selection of one node.
    #[must_use]
    pub fn root(&self) -> Selection<'_> {
        match self.document.document_element() {
            Some(root) => Selection::one(self, Hit::Node(root.id)),
            None => Selection::none(self),
        }
    }

    /// Takes the errors of `css`, `xpath`, `re` and `re_first` calls since the last time, oldest first, at most 16.
    /// The runtime fails the callback when there are any.
    #[must_use]
    pub fn take_errors(&self) -> Vec<SelectorError> {
        self.errors.take()
    }

    /// Takes what both engines were found to differ in since the last time.
    pub(crate) fn take_compared(&self) -> Compared {
        match &self.other {
            Other::Compares(comparison) => comparison.take(),
            Other::None | Other::Answers(_) => Compared::default(),
        }
    }

    /// What was found; an error is kept.
    pub(super) fn take<T>(&self, answer: Answer<T>) -> T {
        if let Some(error) = answer.error {
            self.record(error);
        }
        answer.found
    }

    pub(crate) fn record(&self, error: SelectorError) {
        let mut errors = self.errors.borrow_mut();
        if errors.len() < KEPT_ERRORS {
            errors.push(error);
        }
    }
}

impl fmt::Debug for Page {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Page")
            .field("document", &self.document)
            .field("errors", &self.errors.borrow().len())
            .finish_non_exhaustive()
    }
}
