//! XPath: the conformance data, tables of the specification's rules, a naive evaluator to compare with, and attacks.

mod attacks;
mod conformance;
mod properties;
mod speed;
mod tables;

use crate::html::Document;
use crate::html::from_scraper::from_scraper;
use crate::html::hit::Hit;
use crate::html::xpath::{Compiled, Value, Variables, XPathError};

fn page(html: &str) -> Document {
    from_scraper(&scraper::Html::parse_document(html)).document
}

/// The `html` element: where expressions start, as in Scrapy.
fn top(document: &Document) -> Hit {
    Hit::Node(document.document_element().unwrap().id)
}

fn evaluate(document: &Document, xpath: &str) -> Result<Value, XPathError> {
    Compiled::parse(xpath)?.evaluate(document, top(document), &Variables::NONE)
}

/// Nodes as a test names them: elements by id or name, others by their text.
fn names(document: &Document, value: &Value) -> Vec<String> {
    let Value::Nodes(hits) = value else { panic!("{value:?}") };
    hits.iter()
        .map(|hit| match hit {
            Hit::Node(id) => {
                let node = document.node(*id).unwrap();
                node.attr("id").or(node.data()).or(node.name()).unwrap_or_default().to_owned()
            }
            Hit::Attr { .. } => {
                let attr = hit.attr(document.arena()).unwrap();
                format!("@{}={}", document.arena().name_text(attr.name()), document.arena().text(attr.value()))
            }
        })
        .collect()
}
