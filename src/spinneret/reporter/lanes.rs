//! Reports in the order they came, kept in three lanes so that the oldest of a class is found at once.
//!
//! A report's place is a growing number, so the lanes together are one queue: the oldest of all is the one with the
//! smallest place, and what is put back finds its old place again. Decides nothing about bounds or time.

use std::collections::VecDeque;

use tokio::time::Instant;

use crate::spinneret::messages::Report;

/// Who is dropped first when there is no room.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Class {
    /// Dropped first.
    Ordinary,
    /// The server waits for it, because it ends a lease or tells how a trial went: dropped when nothing ordinary is left.
    Kept,
    /// Somebody waited for the room it has: never dropped for others.
    Awaited,
}

/// What the queue remembers of a report.
#[derive(Debug, Clone, Copy)]
pub(super) struct Mark {
    pub(super) place: u64,
    pub(super) class: Class,
    pub(super) queued_at: Instant,
    /// When it was first sent without learning whether it arrived.
    pub(super) doubtful_since: Option<Instant>,
}

/// A report that waits.
#[derive(Debug)]
pub(super) struct Entry {
    pub(super) report: Report,
    pub(super) mark: Mark,
}

/// The reports that wait.
#[derive(Debug, Default)]
pub(super) struct Lanes {
    ordinary: VecDeque<Entry>,
    kept: VecDeque<Entry>,
    awaited: VecDeque<Entry>,
    releasing: usize,
}

impl Lanes {
    pub(super) fn len(&self) -> usize {
        self.ordinary.len() + self.kept.len() + self.awaited.len()
    }

    pub(super) fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Whether a report waits that ends its lease.
    pub(super) const fn has_releasing(&self) -> bool {
        self.releasing > 0
    }

    /// Adds a report whose place is behind all others.
    pub(super) fn push(&mut self, entry: Entry) {
        self.releasing += usize::from(entry.report.release);
        self.lane(entry.mark.class).push_back(entry);
    }

    /// Puts reports back, which are in order and all of them older than what waits.
    pub(super) fn put_back(&mut self, entries: impl DoubleEndedIterator<Item = Entry>) {
        for entry in entries.rev() {
            self.releasing += usize::from(entry.report.release);
            self.lane(entry.mark.class).push_front(entry);
        }
    }

    pub(super) fn oldest(&self) -> Option<&Entry> {
        let fronts = [self.ordinary.front(), self.kept.front(), self.awaited.front()];
        fronts.into_iter().flatten().min_by_key(|entry| entry.mark.place)
    }

    pub(super) fn pop(&mut self) -> Option<Entry> {
        let class = self.oldest()?.mark.class;
        self.pop_of(class)
    }

    /// The report to do without: the oldest ordinary one, else the oldest that somebody waits for.
    pub(super) fn pop_droppable(&mut self) -> Option<Entry> {
        self.pop_of(Class::Ordinary).or_else(|| self.pop_of(Class::Kept))
    }

    fn pop_of(&mut self, class: Class) -> Option<Entry> {
        let entry = self.lane(class).pop_front()?;
        self.releasing -= usize::from(entry.report.release);
        Some(entry)
    }

    const fn lane(&mut self, class: Class) -> &mut VecDeque<Entry> {
        match class {
            Class::Ordinary => &mut self.ordinary,
            Class::Kept => &mut self.kept,
            Class::Awaited => &mut self.awaited,
        }
    }
}
