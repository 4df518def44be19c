//! A line of ages, first in, first out: eight bytes each and no more than as much again.
//!
//! It starts as a small ring that doubles, and goes on in pieces, so that a line of millions is never copied.

use std::collections::VecDeque;

use super::heap::allocation;

/// Ages of a piece.
const PIECE: usize = 1_024;

/// Ages in the order they came.
#[derive(Debug, Default)]
pub(super) struct Ages {
    front: VecDeque<u64>,
    /// What comes after a full `front`: never empty.
    #[allow(clippy::box_collection, reason = "most lines have none, and are small without")]
    more: Option<Box<VecDeque<VecDeque<u64>>>>,
}

impl Ages {
    pub(super) fn push(&mut self, age: u64) {
        if self.more.is_none() && self.front.len() < PIECE {
            self.front.push_back(age);
            return;
        }
        let more = self.more.get_or_insert_default();
        match more.back_mut() {
            Some(last) if last.len() < PIECE => last.push_back(age),
            _ => {
                let mut piece = VecDeque::with_capacity(PIECE);
                piece.push_back(age);
                more.push_back(piece);
            }
        }
    }

    pub(super) fn first(&self) -> Option<u64> {
        self.front.front().copied()
    }

    pub(super) fn pop(&mut self) -> Option<u64> {
        let age = self.front.pop_front();
        if self.front.is_empty()
            && let Some(mut more) = self.more.take()
        {
            self.front = more.pop_front().unwrap_or_default();
            self.more = if more.is_empty() { None } else { Some(more) };
        }
        let (len, capacity) = (self.front.len(), self.front.capacity());
        if self.more.is_none() && capacity > 16 && len < capacity / 4 {
            self.front.shrink_to(2 * len);
        }
        age
    }

    pub(super) fn is_empty(&self) -> bool {
        self.front.is_empty()
    }

    /// Bytes on the heap.
    pub(super) fn heap(&self) -> usize {
        let pieces = self.more.as_ref().map_or(0, |more| {
            allocation(size_of::<VecDeque<u64>>())
                + allocation(more.capacity() * size_of::<VecDeque<u64>>())
                + more.len() * allocation(PIECE * size_of::<u64>())
        });
        allocation(self.front.capacity() * size_of::<u64>()) + pieces
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing)]
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn an_age_takes_at_most_sixteen_bytes_in_a_long_line() {
        let mut ages = Ages::default();
        for n in 1..100_000 {
            ages.push(n);
            let held = ages.heap();
            assert!(n < 16 || held <= 20 * usize::try_from(n).unwrap(), "{held} bytes for {n}");
        }
        assert!(ages.heap() < 9 * 100_000);
        (1..99_990).for_each(|n| assert_eq!(ages.pop(), Some(n)));
        assert!(ages.heap() < 512, "{}", ages.heap());
    }

    proptest! {
        #[test]
        fn it_is_a_queue(steps in proptest::collection::vec((any::<bool>(), 0_usize..1_500), 0..30)) {
            let (mut ages, mut model, mut next) = (Ages::default(), VecDeque::new(), 0);
            for (is_push, times) in steps {
                for _ in 0..times {
                    if is_push {
                        next += 1;
                        ages.push(next);
                        model.push_back(next);
                    } else {
                        prop_assert_eq!(ages.pop(), model.pop_front());
                    }
                    prop_assert_eq!(ages.first(), model.front().copied());
                    prop_assert_eq!(ages.is_empty(), model.is_empty());
                }
            }
        }
    }
}
