//! Compiled selectors of this thread, by their text: at most 256. Failures are kept as well, so that a bad selector in a
//! loop is read and logged once.

use std::cell::{Cell, RefCell};
use std::collections::HashMap;
use std::sync::Arc;

use super::{Compiled, CssError};

/// Half of the bound: entries live in two generations, and the older one is dropped when the younger is full.
const GENERATION: usize = 128;

/// Whether a failure is logged here or left to the caller.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Report {
    Log,
    Quiet,
}

/// The compiled form of a selector.
pub(crate) fn compile(text: &str, report: Report) -> Result<Arc<Compiled>, CssError> {
    thread_local!(static CACHE: RefCell<Generations> = RefCell::default());
    if text.len() > super::LONGEST {
        // Too long to be kept, and an error anyway.
        return Compiled::parse(text).map(Arc::new);
    }
    CACHE.with_borrow_mut(|cache| cache.get(text, report, Compiled::parse))
}

struct Entry {
    result: Result<Arc<Compiled>, CssError>,
    logged: Cell<bool>,
}

#[derive(Default)]
struct Generations {
    young: HashMap<Box<str>, Entry>,
    old: HashMap<Box<str>, Entry>,
}

impl Generations {
    fn get(
        &mut self,
        text: &str,
        report: Report,
        read: impl FnOnce(&str) -> Result<Compiled, CssError>,
    ) -> Result<Arc<Compiled>, CssError> {
        if let Some(entry) = self.young.get(text) {
            return entry.take(report);
        }
        let entry = self.old.remove(text).unwrap_or_else(|| Entry { result: read(text).map(Arc::new), logged: Cell::new(false) });
        let result = entry.take(report);
        if self.young.len() >= GENERATION {
            self.old = std::mem::take(&mut self.young);
        }
        self.young.insert(text.into(), entry);
        result
    }
}

impl Entry {
    fn take(&self, report: Report) -> Result<Arc<Compiled>, CssError> {
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
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn the_cache_never_holds_more_than_its_bound() {
        let mut cache = Generations::default();
        for n in 0..1000 {
            assert!(cache.get(&format!("a{n}"), Report::Quiet, Compiled::parse).is_ok());
            assert!(cache.young.len() + cache.old.len() <= 2 * GENERATION);
        }
    }

    #[test]
    fn a_text_in_use_is_read_once() {
        let mut cache = Generations::default();
        let mut read = 0;
        for n in 0..1000 {
            let hot = cache.get("hot", Report::Quiet, |text| {
                read += 1;
                Compiled::parse(text)
            });
            assert!(hot.is_ok());
            let bad = cache.get(&format!("bad{n}["), Report::Log, Compiled::parse).unwrap_err();
            assert_eq!(bad.text(), format!("bad{n}["));
        }
        assert_eq!(read, 1);
    }
}
