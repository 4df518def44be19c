//! Values that go into an XPath expression by name, and values that come out of one.

use super::selection::Selection;
use super::xpath;

/// Values an XPath expression may use as `$name`.
///
/// ```
/// use dragline::html::{Page, Variables};
///
/// let page = Page::parse("<p id=a>x<p id=b>it's \"y\"");
/// let wanted = Variables::new().with("text", "it's \"y\"").with("most", 3);
/// assert_eq!(page.xpath_with("//p[. = $text][position() <= $most]/@id", &wanted).get().as_deref(), Some("b"));
/// ```
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Variables(pub(crate) xpath::Variables);

impl Variables {
    /// No variables.
    pub(crate) const NONE: Self = Self(xpath::Variables::NONE);

    /// No variables.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds one, or gives it another value: a text, a number or a truth value.
    #[must_use]
    pub fn with(self, name: impl Into<String>, value: impl Into<Variable>) -> Self {
        Self(self.0.with(name, value.into().0))
    }
}

/// The value of a variable: made from a text, a number or a truth value.
#[derive(Clone, Debug, PartialEq)]
pub struct Variable(xpath::Value);

impl From<&str> for Variable {
    fn from(text: &str) -> Self {
        Self(text.into())
    }
}

impl From<&String> for Variable {
    fn from(text: &String) -> Self {
        Self(text.as_str().into())
    }
}

impl From<String> for Variable {
    fn from(text: String) -> Self {
        Self(text.into())
    }
}

impl From<f64> for Variable {
    fn from(number: f64) -> Self {
        Self(number.into())
    }
}

impl From<i32> for Variable {
    fn from(number: i32) -> Self {
        Self(f64::from(number).into())
    }
}

impl From<u32> for Variable {
    fn from(number: u32) -> Self {
        Self(f64::from(number).into())
    }
}

impl From<bool> for Variable {
    fn from(boolean: bool) -> Self {
        Self(boolean.into())
    }
}

/// What an XPath expression gives, with its type (XPath 1.0, 1).
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum XPathValue<'p> {
    /// Nodes.
    Nodes(Selection<'p>),
    /// A number.
    Number(f64),
    /// A text.
    Text(String),
    /// A truth value.
    Boolean(bool),
    /// The matches of `re:match`.
    Texts(Vec<String>),
}
