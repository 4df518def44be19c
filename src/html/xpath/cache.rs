//! Compiled expressions by their text: a crawl uses the same few again and again. Bounded, and shared by all threads.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use super::{Compiled, XPathError};

/// Expressions of each of the two generations.
const GENERATION: usize = 256;

/// Two generations of expressions: when the young one is full it becomes the old one, and what was old and not used since is
/// dropped. So at most twice [`GENERATION`] are kept, and those in use stay.
#[derive(Debug, Default)]
pub(super) struct Cache {
    generations: Mutex<Generations>,
}

#[derive(Debug, Default)]
struct Generations {
    young: HashMap<Box<str>, Arc<Compiled>>,
    old: HashMap<Box<str>, Arc<Compiled>>,
}

impl Cache {
    /// The expression of a text, compiled at most once as long as it is in use.
    ///
    /// # Errors
    ///
    /// As [`Compiled::parse`]; errors are not kept.
    pub(super) fn get(&self, text: &str) -> Result<Arc<Compiled>, XPathError> {
        if let Some(found) = self.find(text) {
            return Ok(found);
        }
        // Without the lock: another thread may do the same meanwhile, which costs time only.
        let made = Arc::new(Compiled::parse(text)?);
        self.lock().add(text.into(), Arc::clone(&made));
        Ok(made)
    }

    fn find(&self, text: &str) -> Option<Arc<Compiled>> {
        let mut generations = self.lock();
        if let Some(found) = generations.young.get(text) {
            return Some(Arc::clone(found));
        }
        let (text, found) = generations.old.remove_entry(text)?;
        generations.add(text, Arc::clone(&found));
        Some(found)
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Generations> {
        // Nothing panics while the lock is held, and the maps would be whole if it did.
        self.generations.lock().unwrap_or_else(PoisonError::into_inner)
    }

    #[cfg(test)]
    fn len(&self) -> usize {
        let generations = self.lock();
        generations.young.len() + generations.old.len()
    }
}

impl Generations {
    fn add(&mut self, text: Box<str>, compiled: Arc<Compiled>) {
        if self.young.len() >= GENERATION {
            self.old = std::mem::take(&mut self.young);
        }
        self.young.insert(text, compiled);
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn an_expression_in_use_stays_and_the_rest_is_bounded() {
        let cache = Cache::default();
        let used = cache.get("//a/@href").unwrap();
        for n in 0..5 * GENERATION {
            cache.get(&format!("//a[{n}]")).unwrap();
            if n % 100 == 0 {
                assert!(Arc::ptr_eq(&used, &cache.get("//a/@href").unwrap()), "{n}");
            }
            assert!(cache.len() <= 2 * GENERATION);
        }
        assert!(cache.get("//a[").is_err());
        assert!(cache.get("//a[").is_err());
    }
}
