//! Compiled selectors, expressions and patterns of this thread, by their text. At most 256 of each; failures are kept as well, so
//! that a bad selector in a loop is compiled and logged once.

use std::cell::{Cell, RefCell};
use std::collections::HashMap;
use std::rc::Rc;

use regex::Regex;

use super::error::SelectorError;
use super::{by_scraper, css, pattern, xpath};

/// A longer text, in bytes, is compiled each time.
const LONGEST: usize = 16 << 10;

/// Half of the bound: entries live in two generations, and the older one is dropped when the younger is full.
const GENERATION: usize = 128;

/// Whether a failure is logged here or left to the caller.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Report {
    Log,
    Quiet,
}

/// The compiled form of a CSS selector.
pub(crate) fn css(text: &str, report: Report) -> Result<Rc<css::Compiled>, SelectorError> {
    thread_local!(static CACHE: RefCell<Generations<css::Compiled>> = RefCell::default());
    let compile = |text: &str| css::Compiled::parse(text).map_err(|error| SelectorError::of_css(&error));
    CACHE.with_borrow_mut(|cache| cache.get(text, report, compile))
}

/// A CSS selector as scraper compiles it.
pub(crate) fn for_scraper(text: &str, report: Report) -> Result<Rc<by_scraper::Compiled>, SelectorError> {
    thread_local!(static CACHE: RefCell<Generations<by_scraper::Compiled>> = RefCell::default());
    CACHE.with_borrow_mut(|cache| cache.get(text, report, by_scraper::Compiled::parse))
}

/// The compiled form of an XPath expression.
pub(crate) fn xpath(text: &str, report: Report) -> Result<Rc<xpath::Compiled>, SelectorError> {
    thread_local!(static CACHE: RefCell<Generations<xpath::Compiled>> = RefCell::default());
    let compile = |text: &str| xpath::Compiled::parse(text).map_err(|error| SelectorError::of_xpath(text, &error));
    CACHE.with_borrow_mut(|cache| cache.get(text, report, compile))
}

/// The compiled form of a regular expression.
pub(crate) fn pattern(text: &str, report: Report) -> Result<Rc<Regex>, SelectorError> {
    thread_local!(static CACHE: RefCell<Generations<Regex>> = RefCell::default());
    CACHE.with_borrow_mut(|cache| cache.get(text, report, pattern::compile))
}

#[derive(Clone)]
struct Entry<T> {
    result: Result<Rc<T>, SelectorError>,
    logged: Cell<bool>,
}

struct Generations<T> {
    young: HashMap<Box<str>, Entry<T>>,
    old: HashMap<Box<str>, Entry<T>>,
}

impl<T> Default for Generations<T> {
    fn default() -> Self {
        Self { young: HashMap::new(), old: HashMap::new() }
    }
}

impl<T> Generations<T> {
    fn get(
        &mut self,
        text: &str,
        report: Report,
        compile: impl FnOnce(&str) -> Result<T, SelectorError>,
    ) -> Result<Rc<T>, SelectorError> {
        if text.len() > LONGEST {
            let entry = Entry { result: compile(text).map(Rc::new), logged: Cell::new(false) };
            return entry.take(report);
        }
        if let Some(entry) = self.young.get(text) {
            return entry.take(report);
        }
        let entry =
            self.old.remove(text).unwrap_or_else(|| Entry { result: compile(text).map(Rc::new), logged: Cell::new(false) });
        let result = entry.take(report);
        if self.young.len() >= GENERATION {
            self.old = std::mem::take(&mut self.young);
        }
        self.young.insert(text.into(), entry);
        result
    }
}

impl<T> Entry<T> {
    fn take(&self, report: Report) -> Result<Rc<T>, SelectorError> {
        if let Err(error) = &self.result
            && report == Report::Log
            && !self.logged.replace(true)
        {
            tracing::error!(
                selector = error.text(),
                position = error.position(),
                reason = error.reason(),
                "selector is not valid, it selects nothing"
            );
        }
        self.result.clone()
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing)]
    use super::*;

    #[test]
    fn the_cache_never_holds_more_than_its_bound() {
        let mut cache = Generations::<usize>::default();
        for n in 0..1000 {
            let text = n.to_string();
            assert_eq!(*cache.get(&text, Report::Quiet, |_| Ok(n)).unwrap(), n);
            assert!(cache.young.len() + cache.old.len() <= 2 * GENERATION);
        }
    }

    #[test]
    fn a_very_long_text_is_not_kept() {
        let mut cache = Generations::<usize>::default();
        let text = "x".repeat(LONGEST + 1);
        assert_eq!(*cache.get(&text, Report::Quiet, |text| Ok(text.len())).unwrap(), LONGEST + 1);
        assert!(cache.young.is_empty() && cache.old.is_empty());
    }

    #[test]
    fn a_text_in_use_is_compiled_once() {
        let mut cache = Generations::<usize>::default();
        let mut compiled = 0;
        for n in 0..1000 {
            let _ = cache.get("hot", Report::Quiet, |_| {
                compiled += 1;
                Ok(0)
            });
            let _ = cache.get(&n.to_string(), Report::Quiet, |_| Ok(n));
        }
        assert_eq!(compiled, 1);
    }
}
