//! HTML: a parser that builds the tree of the browsers, with bounds, and CSS and XPath on it.
//!
//! Usable alone: nothing here knows a crawl. Text goes in, a [`Page`] comes out, and selections borrow from it. Any text is a
//! page; nothing panics and nothing recurses on what it holds.
//!
//! # Selecting
//!
//! ```
//! use dragline::html::Page;
//!
//! let page = Page::parse(
//!     "<h1>Tides</h1><table id=t><tr><td>High<td>4.2 m<tr><td>Low<td>0.9 m</table><p><a href='/more?a=1&amp;b=2'>More",
//! );
//!
//! // CSS, with Scrapy's ::text and ::attr(name).
//! assert_eq!(page.css("h1::text").get().as_deref(), Some("Tides"));
//! assert_eq!(page.css("a::attr(href)").get().as_deref(), Some("/more?a=1&b=2"));
//!
//! // XPath 1.0; the tree has the tbody that a browser adds.
//! assert_eq!(page.xpath("//table/tbody/tr[td[1] = 'Low']/td[2]/text()").get().as_deref(), Some("0.9 m"));
//! assert_eq!(page.xpath("count(//tr)").number(), Some(2.0));
//!
//! // Both nest and mix, and `re` reads from what they found.
//! let heights: Vec<String> = page
//!     .css("#t tr")
//!     .iter()
//!     .filter_map(|row| row.xpath("td[2]").css("::text").re_first(r"[\d.]+"))
//!     .collect();
//! assert_eq!(heights, ["4.2", "0.9"]);
//! ```
//!
//! `get` and `getall` give owned strings; [`Selection::strs`], [`Selection::attr`] and [`Selection::nodes`] borrow from the
//! page. A selector that cannot be used gives an empty selection and an error that [`Page::take_errors`] hands out;
//! [`Page::try_css`] and [`Page::try_xpath`] return it. Values go into an expression as [`Variables`], not by quoting.
//!
//! # Walking
//!
//! A [`Document`] is the tree alone: owned, `Send` and `Sync`. [`NodeRef`] leads from node to node and writes HTML.
//!
//! ```
//! use dragline::html::{Document, NodeKind};
//!
//! let document = Document::parse("<ul><li>one<li>two <b>and</b> a half</ul>");
//! let list = document.body().and_then(|body| body.first_child()).unwrap();
//! assert_eq!(list.children().map(|item| item.text()).collect::<Vec<_>>(), ["one", "two and a half"]);
//! assert_eq!(list.last_child().unwrap().inner_html(), "two <b>and</b> a half");
//! assert_eq!(list.descendants().filter(|node| node.kind() == NodeKind::Text).count(), 4);
//! ```
//!
//! # Bounds
//!
//! The standard bounds nothing, and half a megabyte of `<div>` costs other parsers seconds. Here a page that would cost too
//! much keeps what was parsed and says which of its [`Limits`] it has met.
//!
//! ```
//! use dragline::html::{Limits, Page, PageOptions};
//!
//! let deep = Page::parse(&"<div>".repeat(100_000));
//! assert!(deep.exceeded().depth);
//! assert_eq!(deep.css("div").len(), 100_000);
//!
//! let mut limits = Limits::default();
//! limits.nodes = 100;
//! let cut = Page::parse_with(&"<br>".repeat(1_000), &PageOptions::default().limits(limits));
//! assert!(cut.exceeded().is_cut());
//! ```
//!
//! Selections have bounds too: one that takes too many steps on a page is an error ([`SelectorError::is_given_up`]).
//! [`Engine`] puts html5ever and scraper behind the same calls, which have none of these bounds.

pub(crate) mod arena;
mod by_scraper;
mod cache;
mod compare;
pub(crate) mod css;
mod document;
mod dump;
mod engine;
mod error;
mod form_owner;
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

pub(crate) use compare::Compared;
pub(crate) use pattern::compile as compile_pattern;
pub(crate) use selection::{KEPT_ERRORS, matches};
