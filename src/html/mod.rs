//! HTML: a parser that builds the tree of the browsers, with bounds, and CSS and XPath on it.

pub(crate) mod arena;
mod by_scraper;
mod cache;
mod compare;
pub(crate) mod css;
mod document;
mod dump;
mod engine;
mod error;
mod fragment;
pub(crate) mod from_scraper;
pub(crate) mod hit;
mod limits;
pub(crate) mod names;
mod options;
mod parse;
mod pattern;
mod selection;
mod serialize;
pub(crate) mod span;
mod text;
mod tokenizer;
mod tree;
mod variables;
pub(crate) mod xpath;

#[cfg(test)]
mod tests;

pub use arena::Namespace;
pub use document::{Document, NodeKind, NodeRef, QuirksMode};
pub use engine::{Engine, PageOptions};
pub use error::{SelectorError, SelectorKind};
pub use fragment::FragmentContext;
pub use limits::{Exceeded, Limits};
pub use options::ParseOptions;
pub use selection::{Page, Selection};
pub use variables::{Variable, Variables, XPathValue};
pub use xpath::XPathError;

pub(crate) use compare::Compared;
pub(crate) use pattern::compile as compile_pattern;
pub(crate) use selection::matches;
