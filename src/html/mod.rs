//! HTML: a parser that builds the tree of the browsers, with bounds, and CSS and XPath on it.

pub(crate) mod arena;
pub(crate) mod css;
mod document;
mod dump;
mod fragment;
pub(crate) mod from_scraper;
pub(crate) mod hit;
mod limits;
pub(crate) mod names;
mod options;
mod parse;
pub(crate) mod span;
#[cfg(test)]
mod tests;
mod tokenizer;
mod tree;
pub(crate) mod xpath;

pub use arena::Namespace;
pub use document::{Document, NodeKind, NodeRef, QuirksMode};
pub use fragment::FragmentContext;
pub use limits::{Exceeded, Limits};
pub use options::ParseOptions;
pub use xpath::XPathError;
