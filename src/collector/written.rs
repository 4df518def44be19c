//! Which groups were written lately, so that one ordered twice is written once.

use std::collections::{HashSet, VecDeque};

use crate::engine::ticket::Tag;

/// The newest groups of the record log, up to a bound.
///
/// The engine orders a group again when the collector panicked before it said `Kept`, or when it hears of the panic
/// before it hears of the `Kept`. A ticket waits for one group at a time, so no more groups than twice the window can
/// lie between the two orders.
#[derive(Debug)]
pub(super) struct Written {
    bound: usize,
    order: VecDeque<(Tag, u32)>,
    known: HashSet<(Tag, u32)>,
}

impl Written {
    pub(super) fn new(bound: usize) -> Self {
        Self { bound: bound.max(1), order: VecDeque::new(), known: HashSet::new() }
    }

    pub(super) fn contains(&self, group: (Tag, u32)) -> bool {
        self.known.contains(&group)
    }

    pub(super) fn note(&mut self, group: (Tag, u32)) {
        if !self.known.insert(group) {
            return;
        }
        self.order.push_back(group);
        if self.order.len() > self.bound
            && let Some(oldest) = self.order.pop_front()
        {
            self.known.remove(&oldest);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_newest_groups_are_known_and_the_number_is_bounded() {
        let mut written = Written::new(3);
        let group = |ticket| (Tag { ticket, epoch: 1 }, 0);
        for ticket in [1, 2, 2, 3, 4] {
            written.note(group(ticket));
        }
        assert!(!written.contains(group(1)));
        assert!((2..5).all(|ticket| written.contains(group(ticket))));
        assert!(!written.contains((Tag { ticket: 4, epoch: 1 }, 1)));
        assert_eq!(written.order.len(), written.known.len());
    }
}
