//! Values: what an expression gives (XPath 1.0, 1 and 4), and what it may be given by name.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::rc::Rc;

use super::number;
use crate::html::arena::{Kind, NodeId};
use crate::html::document::Document;
use crate::html::hit::Hit;

/// The result of an expression.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Value {
    /// Nodes and attributes, in document order, without doubles and without the page itself, as lxml gives them.
    Nodes(Vec<Hit>),
    /// A string.
    String(String),
    /// A number.
    Number(f64),
    /// A boolean.
    Boolean(bool),
    /// The matches of `re:match`, which are nodes of no page.
    Strings(Vec<String>),
}

impl Value {
    /// The one text Scrapy's selectors give for a result that is no set: `3.0` for a number, `1` or `0` for a boolean. `None`
    /// for nodes and for matches.
    pub(crate) fn scrapy_text(&self) -> Option<String> {
        match self {
            Self::Nodes(_) | Self::Strings(_) => None,
            Self::String(text) => Some(text.clone()),
            Self::Number(number) => Some(number::scrapy_text(*number)),
            Self::Boolean(boolean) => Some(String::from(if *boolean { "1" } else { "0" })),
        }
    }
}

/// Values an expression may use as `$name`.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Variables {
    values: BTreeMap<String, Value>,
}

impl Variables {
    /// No variables.
    pub(crate) const NONE: Self = Self { values: BTreeMap::new() };

    /// Adds one, or gives it another value. Nodes must be those of the page the expression will be evaluated on.
    #[must_use]
    pub(crate) fn with(mut self, name: impl Into<String>, value: impl Into<Value>) -> Self {
        self.values.insert(name.into(), value.into());
        self
    }

    pub(super) fn get(&self, name: &str) -> Option<&Value> {
        self.values.get(name)
    }
}

impl From<f64> for Value {
    fn from(number: f64) -> Self {
        Self::Number(number)
    }
}

impl From<bool> for Value {
    fn from(boolean: bool) -> Self {
        Self::Boolean(boolean)
    }
}

impl From<&str> for Value {
    fn from(text: &str) -> Self {
        Self::String(text.to_owned())
    }
}

impl From<String> for Value {
    fn from(text: String) -> Self {
        Self::String(text)
    }
}

/// A value while an expression is evaluated: borrows from the page, the expression and the variables.
#[derive(Clone, Debug)]
pub(super) enum Val<'e> {
    Nodes(Rc<Vec<Hit>>),
    String(Cow<'e, str>),
    Number(f64),
    Boolean(bool),
    Strings(Rc<Vec<String>>),
}

impl Val<'_> {
    /// The kind as errors name it.
    pub(super) const fn kind(&self) -> &'static str {
        match self {
            Self::Nodes(_) => "node-set",
            Self::String(_) => "string",
            Self::Number(_) => "number",
            Self::Boolean(_) => "boolean",
            Self::Strings(_) => "set of matches",
        }
    }

    /// The value as a result.
    pub(super) fn finish(self) -> Value {
        match self {
            Self::Nodes(hits) => {
                let mut hits = Rc::unwrap_or_clone(hits);
                // It is the first in document order, if it is there.
                if hits.first() == Some(&Hit::Node(NodeId::DOCUMENT)) {
                    hits.remove(0);
                }
                Value::Nodes(hits)
            }
            Self::String(text) => Value::String(text.into_owned()),
            Self::Number(number) => Value::Number(number),
            Self::Boolean(boolean) => Value::Boolean(boolean),
            Self::Strings(texts) => Value::Strings(Rc::unwrap_or_clone(texts)),
        }
    }
}

/// The string-value of a node (5): of elements and the page all text below, of others their own. `charge` is told of each node visited how many bytes it adds, and may end the walk.
pub(crate) fn string_value<E>(
    document: &Document,
    hit: Hit,
    mut charge: impl FnMut(usize) -> Result<(), E>,
) -> Result<Cow<'_, str>, E> {
    let arena = document.arena();
    let node = match hit {
        Hit::Attr { .. } => return Ok(Cow::Borrowed(hit.attr(arena).map_or("", |attr| arena.text(attr.value())))),
        Hit::Node(node) => node,
    };
    match arena.kind(node) {
        Kind::Text | Kind::Comment | Kind::ProcessingInstruction => Ok(Cow::Borrowed(arena.text(arena.data(node)))),
        Kind::Doctype => Ok(Cow::Borrowed("")),
        Kind::Document | Kind::Element => {
            let mut all = Cow::Borrowed("");
            let mut id = arena.following(node, node);
            while id.is_some() {
                let text = if arena.is_text(id) { arena.text(arena.data(id)) } else { "" };
                charge(text.len())?;
                if all.is_empty() {
                    all = Cow::Borrowed(text);
                } else if !text.is_empty() {
                    all.to_mut().push_str(text);
                }
                id = arena.following(id, node);
            }
            Ok(all)
        }
    }
}
