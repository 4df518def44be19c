//! XPath: the conformance data, tables of the specification's rules, a naive evaluator to compare with, and attacks.

mod attacks;
mod conformance;
mod properties;
mod speed;
mod tables;

use std::convert::Infallible;

use crate::html::Document;
use crate::html::from_scraper::from_scraper;
use crate::html::hit::Hit;
use crate::html::xpath::value::string_value;
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

/// The string-value of a node, whatever it costs.
fn text_of(document: &Document, hit: Hit) -> String {
    let Ok(text) = string_value(document, hit, |_| Ok::<(), Infallible>(()));
    text.into_owned()
}

/// The texts of a result as Scrapy gives them.
fn texts(document: &Document, value: &Value) -> Vec<String> {
    match value {
        Value::Nodes(hits) => hits.iter().map(|hit| text_of(document, *hit)).collect(),
        Value::Strings(texts) => texts.clone(),
        scalar => scalar.scrapy_text().into_iter().collect(),
    }
}
