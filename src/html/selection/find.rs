//! Asks a question of a page: CSS of whoever answers for it, XPath always of our own tree.

use std::rc::Rc;

use super::super::by_scraper;
use super::super::cache::{self, Report};
use super::super::error::SelectorError;
use super::super::hit::{self, Hit};
use super::super::variables::{Variables, XPathValue};
use super::super::xpath::{self, Value};
use super::page::Other;
use super::{Page, Roots, Selection, State};

pub(super) use super::super::by_scraper::Reach;

/// A compiled question.
pub(super) enum Asked {
    Css { reach: Reach, theirs: Rc<by_scraper::Compiled> },
    XPath { expression: Rc<xpath::Expression>, text: Box<str>, variables: Option<Box<Variables>> },
}

/// What a question finds.
#[derive(Clone, Debug)]
pub(super) enum Found {
    /// In document order and without doubles.
    Hits(Vec<Hit>),
    /// Of an expression that gives no nodes: one value for each root, or all matches.
    Scalars(Vec<Value>),
}

impl Asked {
    pub(super) fn css(_page: &Page, selector: &str, reach: Reach, report: Report) -> Result<Self, SelectorError> {
        Ok(Self::Css { reach, theirs: cache::for_scraper(selector, report)? })
    }

    pub(super) fn xpath(expression: &str, variables: Option<&Variables>, report: Report) -> Result<Self, SelectorError> {
        let compiled = cache::xpath(expression, report)?;
        Ok(Self::XPath { expression: compiled, text: expression.into(), variables: variables.map(|v| Box::new(v.clone())) })
    }
}

/// All that is found from the roots.
pub(super) fn all(page: &Page, roots: &Roots, asked: &Asked) -> Result<Found, SelectorError> {
    let roots = roots.as_slice();
    match asked {
        Asked::Css { reach, theirs } => {
            let Other::Answers(by) = &page.other else { return Ok(Found::Hits(Vec::new())) };
            let ids: Vec<_> = roots.iter().filter_map(|r| match r { Hit::Node(id) => Some(*id), _ => None }).collect();
            Ok(Found::Hits(by.all(page.document(), theirs, &ids, *reach)))
        }
        Asked::XPath { expression, text, variables } => {
            let none = Variables::default();
            let variables = variables.as_deref().unwrap_or(&none);
            let mut hits = Vec::new();
            let mut scalars = Vec::new();
            for root in roots {
                let value = expression.evaluate(page.document(), *root, &variables.0);
                match value.map_err(|error| SelectorError::of_xpath(text, &error))? {
                    Value::Nodes(found) => hits.extend(found),
                    Value::Strings(found) => scalars.extend(found.into_iter().map(Value::String)),
                    scalar => scalars.push(scalar),
                }
            }
            if !scalars.is_empty() {
                return Ok(Found::Scalars(scalars));
            }
            if roots.len() > 1 {
                hit::sort(&mut hits, page.document());
            }
            Ok(Found::Hits(hits))
        }
    }
}

/// The first that is found, where that costs less than finding all.
pub(super) fn first(page: &Page, roots: &Roots, asked: &Asked) -> Option<Result<Option<Hit>, SelectorError>> {
    let _ = (page, roots, asked);
    None
}

/// The value of an expression with its type, from the document element.
pub(super) fn value<'p>(page: &'p Page, expression: &str, variables: &Variables) -> Result<XPathValue<'p>, SelectorError> {
    let compiled = cache::xpath(expression, Report::Quiet)?;
    let Some(root) = page.document().document_element() else { return Ok(XPathValue::Nodes(Selection::none(page))) };
    let value = compiled.evaluate(page.document(), Hit::Node(root.id), &variables.0);
    Ok(match value.map_err(|error| SelectorError::of_xpath(expression, &error))? {
        Value::Nodes(hits) => XPathValue::Nodes(Selection { page, state: State::Found(Rc::new(Found::Hits(hits))) }),
        Value::Number(number) => XPathValue::Number(number),
        Value::String(text) => XPathValue::Text(text),
        Value::Boolean(boolean) => XPathValue::Boolean(boolean),
        Value::Strings(texts) => XPathValue::Texts(texts),
    })
}
