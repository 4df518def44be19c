//! Asks a question of a page: CSS of whoever answers for it, XPath always of our own tree.

use std::rc::Rc;

use super::super::arena::NodeId;
use super::super::by_scraper;
use super::super::cache::{self, Report};
use super::super::css;
use super::super::error::{SelectorError, SelectorKind};
use super::super::hit::{self, Hit};
use super::super::variables::{Variables, XPathValue};
use super::super::xpath::{self, Value, XPathError};
use super::page::Other;
use super::{Page, Roots, Selection, State};

pub(super) use super::super::css::Reach;

/// A compiled question.
pub(super) enum Asked {
    Css(Css),
    XPath(Rc<xpath::Compiled>, Option<Box<Variables>>),
}

/// A selector, as each engine that is asked has compiled it.
pub(super) struct Css {
    reach: Reach,
    ours: Option<Rc<css::Compiled>>,
    theirs: Option<Rc<by_scraper::Compiled>>,
}

/// What a question finds.
#[derive(Clone, Debug)]
pub(super) enum Found {
    /// In document order and without doubles.
    Hits(Vec<Hit>),
    /// Of an expression that gives no nodes: one value for each root, or all matches.
    Scalars(Vec<Value>),
}

/// What was found, and what kept the rest from being found.
pub(super) struct Answer<T> {
    pub(super) found: T,
    pub(super) error: Option<SelectorError>,
}

impl Asked {
    pub(super) fn css(page: &Page, selector: &str, reach: Reach, report: Report) -> Result<Self, SelectorError> {
        let ours = || cache::css(selector, report);
        let (ours, theirs) = match page.other {
            Other::None => (Some(ours()?), None),
            Other::Answers(_) => (None, Some(cache::for_scraper(selector, report)?)),
            // What scraper does not know cannot be compared.
            Other::Compares(_) => (Some(ours()?), cache::for_scraper(selector, Report::Quiet).ok()),
        };
        Ok(Self::Css(Css { reach, ours, theirs }))
    }

    pub(super) fn xpath(expression: &str, variables: Option<&Variables>, report: Report) -> Result<Self, SelectorError> {
        let variables = variables.map(|variables| Box::new(variables.clone()));
        Ok(Self::XPath(cache::xpath(expression, report)?, variables))
    }
}

/// All that is found from the roots.
pub(super) fn all(page: &Page, roots: &Roots, asked: &Asked) -> Answer<Found> {
    match asked {
        Asked::Css(css) => {
            let Answer { found, error } = css.all(page, &roots.nodes());
            Answer { found: Found::Hits(found), error }
        }
        Asked::XPath(expression, variables) => {
            let found = match variables {
                Some(variables) => evaluate(page, roots.as_slice(), expression, variables),
                None => evaluate(page, roots.as_slice(), expression, &Variables::NONE),
            };
            match found {
                Ok(found) => Answer { found, error: None },
                Err(error) => Answer { found: Found::Hits(Vec::new()), error: Some(error) },
            }
        }
    }
}

/// The first that is found, where that costs less than finding all.
pub(super) fn first(page: &Page, roots: &Roots, asked: &Asked) -> Option<Answer<Option<Hit>>> {
    match asked {
        Asked::Css(css) => css.first(page, &roots.nodes()),
        Asked::XPath(..) => None,
    }
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

/// Evaluates from each root. All evaluations together may take the steps of one: else many roots, each of which looks at the whole
/// page, could take the square of it.
fn evaluate(page: &Page, roots: &[Hit], expression: &xpath::Compiled, variables: &Variables) -> Result<Found, SelectorError> {
    let document = page.document();
    let bound = xpath::Options::default().steps_for(document);
    let mut options = xpath::Options { steps_per_byte: 0, steps: bound, ..xpath::Options::default() };
    // So many can be different; what is more has doubles.
    let most = document.node_count().saturating_add(document.arena().attr_count()).saturating_mul(2).saturating_add(1024);
    let mut hits = Vec::new();
    let mut scalars = Vec::new();
    for root in roots {
        let (value, steps) = expression.evaluate_within(document, *root, &variables.0, options);
        options.steps = options.steps.saturating_sub(steps);
        match value.map_err(|error| given_up(expression.text(), error, bound))? {
            Value::Nodes(found) if hits.is_empty() => hits = found,
            Value::Nodes(found) => hits.extend(found),
            Value::Strings(found) => scalars.extend(found.into_iter().map(Value::String)),
            scalar => scalars.push(scalar),
        }
        if hits.len() > most {
            hit::sort(&mut hits, document);
        }
    }
    if !scalars.is_empty() {
        return Ok(Found::Scalars(scalars));
    }
    if roots.len() > 1 {
        hit::sort(&mut hits, document);
    }
    Ok(Found::Hits(hits))
}

/// The error, with the bound for all roots instead of what was left of it for one.
fn given_up(text: &str, error: XPathError, bound: u64) -> SelectorError {
    let error = if matches!(error, XPathError::Budget { .. }) { XPathError::Budget { steps: bound } } else { error };
    SelectorError::of_xpath(text, &error)
}

impl Css {
    fn all(&self, page: &Page, roots: &[NodeId]) -> Answer<Vec<Hit>> {
        let document = page.document();
        if let (Other::Answers(scraper), Some(theirs)) = (&page.other, &self.theirs) {
            return Answer { found: scraper.all(document, theirs, roots, self.reach), error: None };
        }
        let Some(ours) = &self.ours else { return Answer { found: Vec::new(), error: None } };
        let found = ours.select(document, roots, self.reach);
        let answer = answer(ours, found, |hits| hits);
        if let (Other::Compares(comparison), Some(theirs), None) = (&page.other, &self.theirs, &answer.error)
            && let Some(copied) = roots.iter().map(|root| comparison.copied(document, *root)).collect::<Option<Vec<_>>>()
        {
            let theirs = comparison.theirs.all(&comparison.copy, theirs, &copied, self.reach);
            comparison.found(ours.text(), (document, &answer.found), &theirs);
        }
        answer
    }

    fn first(&self, page: &Page, roots: &[NodeId]) -> Option<Answer<Option<Hit>>> {
        let document = page.document();
        match (&page.other, &self.ours, &self.theirs) {
            (Other::None, Some(ours), _) => {
                Some(answer(ours, ours.first(document, roots, self.reach), |hits| hits.into_iter().next()))
            }
            (Other::Answers(scraper), _, Some(theirs)) => {
                Some(Answer { found: scraper.first(document, theirs, roots, self.reach), error: None })
            }
            // All are compared.
            _ => None,
        }
    }
}

/// What was found, and the error if that is not all.
fn answer<T>(asked: &css::Compiled, found: css::Found, of: impl FnOnce(Vec<Hit>) -> T) -> Answer<T> {
    let error = found.exceeded.then(|| {
        let reason = format!("it was stopped after {} steps, more than the bound for this page; narrow it", found.steps);
        SelectorError::given_up(SelectorKind::Css, asked.text(), reason)
    });
    Answer { found: of(found.hits), error }
}
