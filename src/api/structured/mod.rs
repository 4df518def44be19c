//! Data that pages carry for machines: JSON-LD, microdata, Open Graph.
//!
//! Everything is read as it stands; no vocabulary is checked and nothing is fetched. Addresses come absolute. What a page can
//! make of it is bounded by the size of the page.

mod json_ld;
mod microdata;
mod open_graph;

use serde::Serialize;
use serde_json::Value;

use super::selector::Page;
pub use microdata::{MicrodataItem, MicrodataValue};
pub use open_graph::OpenGraph;

/// What a page says about itself for machines. Serialises to one object with the three kinds.
///
/// ```
/// use dragline::api::structured::StructuredData;
/// use dragline::api::Page;
///
/// let page = Page::parse(
///     r#"<meta property="og:title" content="Tides">
///     <script type="application/ld+json">{"@graph": [{"@type": "Book", "name": "Tides", "author": {"@type": "Person"}}]}</script>
///     <div itemscope itemtype="https://schema.org/Offer"><b itemprop="price">9.90</b></div>"#,
/// );
/// let data = StructuredData::of(&page, |href| Some(href.to_owned()));
/// assert_eq!(data.json_ld_of_type("Book").next().unwrap()["name"], "Tides");
/// assert_eq!(data.microdata_of_type("Offer").next().unwrap().text("price"), Some("9.90"));
/// assert_eq!(data.open_graph.get("og:title"), Some("Tides"));
/// ```
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
#[non_exhaustive]
pub struct StructuredData {
    /// The values of each `script` of type `application/ld+json`, in document order; an array gives its elements.
    pub json_ld: Vec<Value>,
    /// The items that are no property of another one, in document order.
    pub microdata: Vec<MicrodataItem>,
    /// Open Graph and what is written like it (`twitter:`, `product:`, …).
    pub open_graph: OpenGraph,
    /// Scripts of JSON-LD that are no JSON, not even with comments, line breaks in texts and stray commas forgiven.
    pub json_ld_broken: usize,
    /// Whether microdata was left out because it would have grown far beyond the page.
    pub microdata_cut: bool,
}

impl StructuredData {
    /// Reads a page. `absolute` resolves the addresses in microdata; `None` leaves one empty.
    #[must_use]
    pub fn of(page: &Page, absolute: impl Fn(&str) -> Option<String>) -> Self {
        let (json_ld, json_ld_broken) = json_ld::read(page);
        let (microdata, microdata_cut) = microdata::read(page, &absolute);
        Self { json_ld, microdata, open_graph: OpenGraph::read(page), json_ld_broken, microdata_cut }
    }

    /// Every JSON-LD object of a type, wherever it stands: in `@graph`, or as a property of another one, which comes before it.
    /// The type is given without its vocabulary: `Product` finds `https://schema.org/Product` too.
    pub fn json_ld_of_type<'a>(&'a self, name: &'a str) -> impl Iterator<Item = &'a Value> {
        json_ld::of_type(&self.json_ld, name)
    }

    /// Every microdata item of a type, given as for [`StructuredData::json_ld_of_type`]; one that holds another comes before it.
    pub fn microdata_of_type<'a>(&'a self, name: &'a str) -> impl Iterator<Item = &'a MicrodataItem> {
        microdata::every(&self.microdata).filter(move |item| item.is_a(name))
    }
}

/// Whether a type is this one, but for the vocabulary in front.
fn is_of_type(full: &str, name: &str) -> bool {
    full.strip_suffix(name).is_some_and(|before| before.is_empty() || before.ends_with(['/', '#', ':']))
}

#[cfg(test)]
mod tests;
