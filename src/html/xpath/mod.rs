//! XPath 1.0 on pages: all axes, predicates and core functions, typed results, variables, with EXSLT's `re:` and `set:` and
//! parsel's `has-class`, as Scrapy's users know them.
//!
//! An expression is compiled once and evaluated on any page. Where libxml2, which Scrapy uses, departs from the
//! specification, the specification is followed. Evaluations are bounded: one that would take too long is an error.

mod ast;
mod axes;
mod compare;
mod compile;
mod convert;
mod error;
mod eval;
mod functions;
mod lexer;
mod number;
mod order;
mod parser;
mod plan;
mod regex;
mod steps;
mod texts;
pub(crate) mod value;

pub(crate) use error::XPathError;
pub(crate) use value::{Value, Variables};

use std::cell::OnceCell;

use super::document::Document;
use super::hit::Hit;
use super::limits::{SELECTION_STEPS, SELECTION_STEPS_PER_BYTE};
use eval::{Context, Eval};

/// The most bytes of a string an evaluation may build.
pub(crate) const STRING_BYTES: usize = 16 << 20;

/// What an evaluation may cost.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Options {
    /// Steps for each byte of the page: nodes looked at, and 64 bytes of text each.
    pub(crate) steps_per_byte: u64,
    /// Steps for any page, besides.
    pub(crate) steps: u64,
    /// Bytes of the longest string, and of the texts of sets that are compared.
    pub(crate) string_bytes: usize,
}

impl Default for Options {
    fn default() -> Self {
        Self { steps_per_byte: SELECTION_STEPS_PER_BYTE, steps: SELECTION_STEPS, string_bytes: STRING_BYTES }
    }
}

impl Options {
    /// Steps an evaluation on this page may take.
    pub(crate) fn steps_for(&self, document: &Document) -> u64 {
        self.steps.saturating_add(self.steps_per_byte.saturating_mul(document.byte_count()))
    }
}

/// A compiled expression, for any page.
#[derive(Debug)]
pub(crate) struct Compiled {
    op: plan::Op,
    names: Vec<Box<str>>,
    kept: usize,
    text: Box<str>,
}

impl Compiled {
    /// Compiles an expression.
    ///
    /// # Errors
    ///
    /// If it does not follow the grammar, is longer than 64 KiB or nested deeper than 50, calls a function that does not exist
    /// or with wrong arguments, or has a prefix or a regular expression that cannot be used. The error names the place.
    pub(crate) fn parse(text: &str) -> Result<Self, XPathError> {
        let expr = parser::parse(text).map_err(|error| *error)?;
        let compile::Plan { op, names, kept } = compile::compile(text, &expr).map_err(|error| *error)?;
        Ok(Self { op, names, kept, text: text.into() })
    }

    /// The expression as written.
    pub(crate) fn text(&self) -> &str {
        &self.text
    }

    /// Evaluates on a page, from a node or an attribute of it, with the default bounds.
    ///
    /// # Errors
    ///
    /// If a variable has no value, a value is of the wrong kind, `position()` or `last()` stands outside of predicates, or a
    /// bound is met.
    pub(crate) fn evaluate(&self, document: &Document, context: Hit, variables: &Variables) -> Result<Value, XPathError> {
        self.evaluate_within(document, context, variables, Options::default()).0
    }

    /// Evaluates within given bounds, and gives the steps that were taken too.
    pub(crate) fn evaluate_within(
        &self,
        document: &Document,
        context: Hit,
        variables: &Variables,
        options: Options,
    ) -> (Result<Value, XPathError>, u64) {
        let texts = OnceCell::new();
        let eval = Eval::new(self, document, variables, &texts, options);
        let value = eval.value(&self.op, Context { hit: context, position: 0, size: 0 });
        (value.map(value::Val::finish).map_err(|error| *error), eval.steps())
    }
}
