//! The numbers of log records: they go on over the restarts of a job, and none is given twice, also after a kill.
//!
//! Indexes are reserved in blocks before they are used. A run that is killed leaves the rest of its block unused; one
//! that ends in order notes where it stopped.

use std::fmt;

use super::log::LogError;

/// Indexes reserved with one write.
const BLOCK: u64 = 1000;

/// Where a job keeps the first index that no log record has.
pub trait IndexStore: Send + fmt::Debug {
    /// The first free index. Called once, when the spool is locked.
    ///
    /// # Errors
    /// When it cannot be read.
    fn first(&mut self) -> Result<u64, LogError>;

    /// Notes, to survive a kill, that every index below `next` may be used.
    ///
    /// # Errors
    /// When it cannot be written.
    fn note(&mut self, next: u64) -> Result<(), LogError>;
}

/// What was reserved so far; without a store everything is.
#[derive(Debug)]
pub(super) struct Numbers {
    store: Option<Box<dyn IndexStore>>,
    noted: u64,
}

impl Numbers {
    pub(super) fn open(mut store: Option<Box<dyn IndexStore>>) -> Result<Self, LogError> {
        let noted = store.as_mut().map_or(Ok(0), |store| store.first())?;
        Ok(Self { store, noted })
    }

    /// The index the first record gets.
    pub(super) const fn first(&self) -> u64 {
        self.noted
    }

    /// Reserves everything below `next`, before records with such indexes are written.
    pub(super) fn reserve(&mut self, next: u64) -> Result<(), LogError> {
        if next > self.noted {
            self.note(next.saturating_add(BLOCK))?;
        }
        Ok(())
    }

    /// Gives back what was reserved beyond `next`.
    pub(super) fn end(&mut self, next: u64) -> Result<(), LogError> {
        if next == self.noted { Ok(()) } else { self.note(next) }
    }

    fn note(&mut self, next: u64) -> Result<(), LogError> {
        if let Some(store) = &mut self.store {
            store.note(next)?;
        }
        self.noted = next;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing)]
    use std::sync::{Arc, Mutex};

    use super::*;

    #[derive(Debug, Clone, Default)]
    struct Noted(Arc<Mutex<(Vec<u64>, bool)>>);

    impl IndexStore for Noted {
        fn first(&mut self) -> Result<u64, LogError> {
            Ok(self.0.lock().unwrap().0.last().copied().unwrap_or(0))
        }

        fn note(&mut self, next: u64) -> Result<(), LogError> {
            let mut state = self.0.lock().unwrap();
            if state.1 {
                return Err(LogError::EmptyGroup);
            }
            state.0.push(next);
            Ok(())
        }
    }

    #[test]
    fn a_block_is_noted_before_its_first_index_is_used() {
        let noted = Noted::default();
        let mut numbers = Numbers::open(Some(Box::new(noted.clone()))).unwrap();
        for (next, notes) in [(0, 0), (1, 1), (64, 1), (1001, 1), (1002, 2), (2002, 2), (9000, 3)] {
            numbers.reserve(next).unwrap();
            assert_eq!(noted.0.lock().unwrap().0.len(), notes, "{next}");
        }
        assert_eq!(noted.0.lock().unwrap().0, [1001, 2002, 10_000]);
        // A kill here leaves the rest of the block unused; an end in order does not.
        assert_eq!(Numbers::open(Some(Box::new(noted.clone()))).unwrap().first(), 10_000);
        numbers.end(9000).unwrap();
        assert_eq!(Numbers::open(Some(Box::new(noted))).unwrap().first(), 9000);
    }

    #[test]
    fn a_block_that_cannot_be_noted_is_not_given() {
        let noted = Noted::default();
        let mut numbers = Numbers::open(Some(Box::new(noted.clone()))).unwrap();
        noted.0.lock().unwrap().1 = true;
        assert!(numbers.reserve(5).is_err());
        noted.0.lock().unwrap().1 = false;
        numbers.reserve(5).unwrap();
        assert_eq!(noted.0.lock().unwrap().0, [1005]);
    }

    #[test]
    fn without_a_store_nothing_is_noted() {
        let mut numbers = Numbers::open(None).unwrap();
        numbers.reserve(5).unwrap();
        assert_eq!(numbers.first(), 1005);
    }
}
