//! Extraction: selections on a page, with Scrapy's `css`, `xpath`, `::text`, `::attr(x)`, `get`, `getall`, `re`.
//!
//! A selection is lazy: nothing is searched until it is read, and `get` of a CSS selector stops at the first match. Nothing
//! here panics on a bad selector: it is logged once, its error is kept on the page, and it selects nothing.

mod find;
mod item;
mod page;

use std::borrow::Cow;
use std::cell::OnceCell;
use std::fmt;
use std::rc::Rc;

use regex::Regex;

use super::arena::NodeId;
use super::cache;
use super::document::NodeRef;
use super::error::SelectorError;
use super::hit::Hit;
use super::pattern::{self, Next};
use super::variables::Variables;
use super::xpath::Value;
pub(crate) use page::KEPT_ERRORS;
pub use page::Page;

use find::{Asked, Found, Reach};
use item::{Item, Items};

/// A list of nodes of a page, in document order and without doubles: elements, texts, attribute values, comments; or the
/// values of an XPath expression that gives no nodes.
#[derive(Clone)]
pub struct Selection<'p> {
    page: &'p Page,
    state: State,
}

#[derive(Clone)]
enum State {
    None,
    One(Hit),
    /// What is no node, and no set.
    Scalar(Value),
    /// What was found already.
    Found(Rc<Found>),
    Query(Query),
}

/// A question that waits to be read; `found` is filled by the first call that needs all of it.
#[derive(Clone)]
struct Query {
    roots: Roots,
    asked: Rc<Asked>,
    found: OnceCell<Found>,
}

/// Where a question is asked; in document order.
#[derive(Clone)]
enum Roots {
    One(Hit),
    Many(Vec<Hit>),
}

impl Roots {
    /// The nodes among them; attributes contain nothing.
    fn nodes(&self) -> Cow<'_, [NodeId]> {
        match self {
            Self::One(Hit::Node(root)) => std::slice::from_ref(root).into(),
            Self::One(Hit::Attr { .. }) => Cow::Borrowed(&[]),
            Self::Many(roots) => roots.iter().filter_map(|hit| if let Hit::Node(id) = hit { Some(*id) } else { None }).collect(),
        }
    }

    fn as_slice(&self) -> &[Hit] {
        match self {
            Self::One(root) => std::slice::from_ref(root),
            Self::Many(roots) => roots,
        }
    }
}

impl<'p> Selection<'p> {
    fn none(page: &'p Page) -> Self {
        Self { page, state: State::None }
    }

    fn one(page: &'p Page, hit: Hit) -> Self {
        Self { page, state: State::One(hit) }
    }

    /// Selects by CSS inside each node of this selection, the node itself included, as Scrapy does: for a selected `a`,
    /// `css("::attr(href)")` is its own attribute. Ancestors outside of the node do not count.
    ///
    /// Beyond CSS: `sel::text` gives the text nodes that are children of the matches, `sel ::text` also those of their
    /// descendants, `sel::attr(name)` an attribute value; each item of a comma list may have its own. Text nodes and
    /// attribute values contain nothing, so selecting in them gives nothing.
    ///
    /// A selector that cannot be parsed is logged once at error level, kept for [`Page::take_errors`], and gives an
    /// empty selection. One that would take too long on this page gives, when it is read, what was found until then (an
    /// XPath expression nothing); its error is kept too.
    #[must_use]
    pub fn css(&self, selector: &str) -> Selection<'p> {
        self.css_in(selector, Reach::Subtree)
    }

    /// Like [`Selection::css`], with what goes wrong as an error that is neither logged nor kept. Searched at once.
    ///
    /// # Errors
    /// [`SelectorError`] for a selector that cannot be parsed, or that takes too long.
    pub fn try_css(&self, selector: &str) -> Result<Selection<'p>, SelectorError> {
        self.try_css_in(selector, Reach::Subtree)
    }

    /// Selects by XPath 1.0 from each node of this selection: `.//a` looks below it, `//a` everywhere, `..` is its parent.
    /// From a page the node is the document element, as in Scrapy.
    ///
    /// Nodes come in document order and each once, also those found from several nodes. An expression that gives a number,
    /// a text or a truth value gives one for each node; [`Selection::get`] writes it as Scrapy does (`3.0`, `1` for true),
    /// [`Selection::number`] and [`Selection::boolean`] keep its type.
    ///
    /// Errors are treated as those of [`Selection::css`].
    ///
    /// ```
    /// use dragline::html::Page;
    ///
    /// let page = Page::parse("<dl><dt>Tide<dd>4.2 m<dt>Wind<dd>NW</dl>");
    /// assert_eq!(page.xpath("//dt[.='Wind']/following-sibling::dd[1]/text()").get().as_deref(), Some("NW"));
    /// assert_eq!(page.css("dl").xpath("count(dt)").number(), Some(2.0));
    /// assert_eq!(page.xpath("//dl").css("dd::text").getall(), ["4.2 m", "NW"]);
    /// ```
    #[must_use]
    pub fn xpath(&self, expression: &str) -> Selection<'p> {
        self.xpath_asked(expression, None)
    }

    /// Like [`Selection::xpath`], with values for the variables (`$name`) of the expression.
    #[must_use]
    pub fn xpath_with(&self, expression: &str, variables: &Variables) -> Selection<'p> {
        self.xpath_asked(expression, Some(variables))
    }

    /// Like [`Selection::xpath`], with what goes wrong as an error that is neither logged nor kept. Evaluated at once.
    ///
    /// # Errors
    /// [`SelectorError`] for an expression that cannot be parsed, that uses what is not there, or that takes too long.
    pub fn try_xpath(&self, expression: &str) -> Result<Selection<'p>, SelectorError> {
        self.try_xpath_with(expression, &Variables::default())
    }

    /// Like [`Selection::try_xpath`], with values for the variables of the expression.
    ///
    /// # Errors
    /// As there.
    pub fn try_xpath_with(&self, expression: &str, variables: &Variables) -> Result<Selection<'p>, SelectorError> {
        self.at_once(&Asked::xpath(expression, Some(variables), cache::Report::Quiet)?)
    }

    /// The first node as text: outer HTML of an element (attributes in the order of the source, the rest as WHATWG HTML
    /// 13.3 writes it), a text node or attribute value as it is, a number or truth value as Scrapy writes it.
    /// Stops at the first match of a CSS selector.
    #[must_use]
    pub fn get(&self) -> Option<String> {
        self.with_first(|item| item.to_text())
    }

    /// Every node as text, as [`Selection::get`] gives it.
    #[must_use]
    pub fn getall(&self) -> Vec<String> {
        self.items().map(Item::to_text).collect()
    }

    /// What a reader sees of the first node: all text below it without scripts and styles, runs of white space as one
    /// blank, trimmed. `None` when nothing is selected.
    #[must_use]
    pub fn text(&self) -> Option<String> {
        self.with_first(|item| item.visible_text())
    }

    /// An attribute of the first node, if that is an element that has it.
    #[must_use]
    pub fn attr(&self, name: &str) -> Option<&'p str> {
        self.first_node()?.attr(name)
    }

    /// The attributes of the first node, names and values, in the order of the source; of an element that has none and of what
    /// is no element, nothing.
    pub fn attrs(&self) -> impl Iterator<Item = (&'p str, &'p str)> + use<'p> {
        self.first_node().into_iter().flat_map(NodeRef::attrs)
    }

    /// The name of the first node in lower case (but for some of SVG), if that is an element.
    #[must_use]
    pub fn name(&self) -> Option<&'p str> {
        self.first_node().filter(NodeRef::is_element)?.name()
    }

    /// The outer HTML of the first node, if that is an element.
    #[must_use]
    pub fn html(&self) -> Option<String> {
        self.first_node().filter(NodeRef::is_element).map(NodeRef::html)
    }

    /// The number that an XPath expression gave; `None` where it gave something else.
    #[must_use]
    pub fn number(&self) -> Option<f64> {
        self.with_first(|item| item.number())?
    }

    /// The truth value that an XPath expression gave; `None` where it gave something else.
    #[must_use]
    pub fn boolean(&self) -> Option<bool> {
        self.with_first(|item| item.boolean())?
    }

    /// The number of nodes.
    #[must_use]
    pub fn len(&self) -> usize {
        self.items().len()
    }

    /// Whether nothing is selected. Stops at the first match of a CSS selector.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.with_first(|_| ()).is_none()
    }

    /// The first node alone, or an empty selection.
    #[must_use]
    pub fn first(&self) -> Selection<'p> {
        let state = self.with_first(|item| item.state()).unwrap_or(State::None);
        Selection { page: self.page, state }
    }

    /// Each node as a selection of its own.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = Selection<'p>> + '_ {
        self.items().map(|item| Selection { page: self.page, state: item.state() })
    }

    /// The nodes themselves; without attribute values and what else is no node.
    pub fn nodes(&self) -> impl Iterator<Item = NodeRef<'p>> + '_ {
        self.items().filter_map(|item| item.node())
    }

    /// The texts and attribute values as they stand, borrowed from the page; without elements.
    pub fn strs(&self) -> impl Iterator<Item = &'p str> + '_ {
        self.items().filter_map(|item| item.as_str(None))
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
        for item in self.items() {
            pattern::find(&regex, &item.pattern_text(), |text| {
                found.push(text.to_owned());
                Next::Go
            });
        }
        found
    }

    /// The first of what [`Selection::re`] gives; stops there.
    #[must_use]
    pub fn re_first(&self, pattern: &str) -> Option<String> {
        let regex = self.pattern(pattern)?;
        self.items().find_map(|item| {
            let mut first = None;
            pattern::find(&regex, &item.pattern_text(), |text| {
                first = Some(text.to_owned());
                Next::Stop
            });
            first
        })
    }

    /// The string behind each node, without allocation: text, attribute value, or the named attribute of an element.
    pub(crate) fn strings<'s>(&'s self, attribute: &'s str) -> impl Iterator<Item = &'p str> + 's {
        self.items().filter_map(move |item| item.as_str(Some(attribute)))
    }

    /// The same with the node of each; the element, where it is an attribute's value.
    pub(crate) fn strings_of_nodes<'s>(&'s self, attribute: &'s str) -> impl Iterator<Item = (&'p str, NodeRef<'p>)> + 's {
        self.items().filter_map(move |item| Some((item.as_str(Some(attribute))?, item.owner()?)))
    }

    fn css_in(&self, selector: &str, reach: Reach) -> Selection<'p> {
        match Asked::css(self.page, selector, reach, cache::Report::Log) {
            Ok(asked) => self.query(asked),
            Err(error) => {
                self.page.record(error);
                Selection::none(self.page)
            }
        }
    }

    fn try_css_in(&self, selector: &str, reach: Reach) -> Result<Selection<'p>, SelectorError> {
        self.at_once(&Asked::css(self.page, selector, reach, cache::Report::Quiet)?)
    }

    fn xpath_asked(&self, expression: &str, variables: Option<&Variables>) -> Selection<'p> {
        match Asked::xpath(expression, variables, cache::Report::Log) {
            Ok(asked) => self.query(asked),
            Err(error) => {
                self.page.record(error);
                Selection::none(self.page)
            }
        }
    }

    fn at_once(&self, asked: &Asked) -> Result<Selection<'p>, SelectorError> {
        let answer = find::all(self.page, &self.roots(), asked);
        match answer.error {
            Some(error) => Err(error),
            None => Ok(Selection { page: self.page, state: State::Found(Rc::new(answer.found)) }),
        }
    }

    fn query(&self, asked: Asked) -> Selection<'p> {
        let query = Query { roots: self.roots(), asked: Rc::new(asked), found: OnceCell::new() };
        Selection { page: self.page, state: State::Query(query) }
    }

    fn roots(&self) -> Roots {
        let found = match &self.state {
            State::None | State::Scalar(_) => return Roots::Many(Vec::new()),
            State::One(hit) => return Roots::One(*hit),
            State::Found(found) => found,
            State::Query(query) => query.all(self.page),
        };
        match found {
            Found::Hits(hits) => Roots::Many(hits.clone()),
            Found::Scalars(_) => Roots::Many(Vec::new()),
        }
    }

    fn pattern(&self, pattern: &str) -> Option<Rc<Regex>> {
        cache::pattern(pattern, cache::Report::Log).map_err(|error| self.page.record(error)).ok()
    }

    fn first_node(&self) -> Option<NodeRef<'p>> {
        self.with_first(|item| item.node())?
    }

    fn with_first<T>(&self, use_it: impl FnOnce(Item<'p, '_>) -> T) -> Option<T> {
        if let State::Query(query) = &self.state
            && query.found.get().is_none()
            && let Some(first) = query.first(self.page)
        {
            return first.map(|hit| use_it(Item::Hit(self.page, hit)));
        }
        self.items().next().map(use_it)
    }

    fn items(&self) -> Items<'p, '_> {
        let found = match &self.state {
            State::None => return Items::hits(self.page, &[]),
            State::One(hit) => return Items::hits(self.page, std::slice::from_ref(hit)),
            State::Scalar(value) => return Items::scalars(self.page, std::slice::from_ref(value)),
            State::Found(found) => found,
            State::Query(query) => query.all(self.page),
        };
        match found {
            Found::Hits(hits) => Items::hits(self.page, hits),
            Found::Scalars(values) => Items::scalars(self.page, values),
        }
    }
}

#[cfg(test)]
impl Selection<'_> {
    pub(in crate::html) fn hits_for_tests(&self) -> Vec<Hit> {
        self.items().filter_map(|item| if let Item::Hit(_, hit) = item { Some(hit) } else { None }).collect()
    }
}

impl Query {
    fn all(&self, page: &Page) -> &Found {
        self.found.get_or_init(|| page.take(find::all(page, &self.roots, &self.asked)))
    }

    /// The first hit alone, where it is cheaper to find than all.
    fn first(&self, page: &Page) -> Option<Option<Hit>> {
        find::first(page, &self.roots, &self.asked).map(|answer| page.take(answer))
    }
}

/// Matches of a regular expression in a text that belongs to no node, at most `most`; a bad pattern is logged.
pub(crate) fn matches(text: &str, pattern: &str, most: usize) -> Result<Vec<String>, SelectorError> {
    let regex = cache::pattern(pattern, cache::Report::Log)?;
    let mut found = Vec::new();
    pattern::find(&regex, text, |text| {
        found.push(text.to_owned());
        if found.len() < most { Next::Go } else { Next::Stop }
    });
    Ok(found)
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
        f.debug_list().entries(self.items().map(Item::to_text)).finish()
    }
}
