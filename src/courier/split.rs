//! A refused batch taken apart, until a bad record costs only itself.
//!
//! Halves of halves, from the first record to the last: one bad record among n costs at most ⌈log2 n⌉ + 1 refused tries,
//! and as many again without the first that pass. Where a batch is halved follows from its number of records alone, so
//! that after a crash the same parts are made again, with the same ids, and those that were done are left out.

use std::ops::Range;

use serde_json::value::RawValue;

use super::lists::{Body, Lists};
use crate::apcloudy::{BodyBuilder, RecordKind};
use crate::collector::batch::{Batch, Counts};
use crate::collector::log::{BatchId, Fate, Part};

/// The parts of one batch that are still to be sent.
#[derive(Debug)]
pub(super) struct Split {
    /// Where each record's text lies in the batch's body.
    records: Vec<Range<usize>>,
    counts: Counts,
    /// Places of records, the end excluded; the next part is the last one.
    todo: Vec<Range<usize>>,
    pub(super) rejected: Counts,
}

impl Split {
    /// Takes a batch apart into its halves; `None` when it holds a single record or its body does not read.
    pub(super) fn of(batch: &Batch) -> Option<Self> {
        let mut split = Self::whole(batch)?;
        split.halve().then_some(split)
    }

    /// Goes on with a batch of which some parts are done; `None` when its body does not read.
    pub(super) fn resume(batch: &Batch, done: &[Part]) -> Option<Self> {
        let mut split = Self::whole(batch)?;
        let mut over = vec![None; split.records.len()];
        for part in done {
            let places = usize::try_from(part.first).ok()?..=usize::try_from(part.last).ok()?;
            over.get_mut(places)?.fill(Some(part.fate));
        }
        for (place, fate) in (0_u32..).zip(&over) {
            if *fate == Some(Fate::Rejected) {
                split.reject(counts_at(split.counts, place, place));
            }
        }
        let mut todo = Vec::new();
        let mut look = std::mem::take(&mut split.todo);
        while let Some(places) = look.pop() {
            let fates = over.get(places.clone()).unwrap_or_default();
            if fates.iter().all(Option::is_none) {
                todo.push(places);
            } else if fates.iter().any(Option::is_none) {
                look.extend(halves(&places));
            }
        }
        // The first to be sent is the last of the list.
        todo.reverse();
        split.todo = todo;
        Some(split)
    }

    /// The part to send next; `None` when all are done.
    pub(super) fn part(&self, whole: &Batch) -> Option<Batch> {
        let (first, last) = self.places()?;
        let mut body = BodyBuilder::new();
        let records = self.todo.last().and_then(|places| self.records.get(places.clone())).unwrap_or_default();
        for (place, text) in (first..).zip(records) {
            body.push(kind_at(self.counts, place), whole.body.get(text.clone())?);
        }
        Some(Batch {
            id: BatchId::of_part(whole.id, first, last),
            job: whole.job.clone(),
            range: whole.range,
            counts: counts_at(self.counts, first, last),
            body: body.finish(&whole.job),
        })
    }

    /// The places of the next part, both included.
    pub(super) fn places(&self) -> Option<(u32, u32)> {
        let places = self.todo.last()?;
        Some((place(places.start), place(places.end.saturating_sub(1))))
    }

    /// The present part was refused: goes on with its halves. `false` when it is a single record.
    pub(super) fn halve(&mut self) -> bool {
        let Some(part) = self.todo.pop_if(|part| part.len() > 1) else { return false };
        self.todo.extend(halves(&part));
        true
    }

    /// The present part came to its end.
    pub(super) fn next(&mut self, fate: Fate) {
        if let (Fate::Rejected, Some((first, last))) = (fate, self.places()) {
            self.reject(counts_at(self.counts, first, last));
        }
        self.todo.pop();
    }

    pub(super) fn is_done(&self) -> bool {
        self.todo.is_empty()
    }

    fn whole(batch: &Batch) -> Option<Self> {
        let body: Body<'_> = serde_json::from_str(&batch.body).ok()?;
        let Lists { requests, items, logs, stats } = body.data;
        let number = |list: &[&RawValue]| list.len() as u64;
        let counts =
            Counts { requests: number(&requests), items: number(&items), logs: number(&logs), stats: u64::from(stats.is_some()) };
        // As offsets, so that the texts are there only once.
        let base = batch.body.as_ptr().addr();
        let texts = requests.into_iter().chain(items).chain(logs).chain(stats);
        let records: Vec<_> = texts
            .map(|text| {
                let from = text.get().as_ptr().addr() - base;
                from..from + text.get().len()
            })
            .collect();
        let whole = 0..records.len();
        Some(Self { records, counts, todo: vec![whole], rejected: Counts::default() })
    }

    fn reject(&mut self, counts: Counts) {
        self.rejected = sum(self.rejected, counts);
    }
}

/// The halves of a range, the second one first.
fn halves(places: &Range<usize>) -> [Range<usize>; 2] {
    let middle = places.start + places.len() / 2;
    [middle..places.end, places.start..middle]
}

/// What lies at these places, both included, of a list of so many requests, items, logs and stats, in this order.
pub(crate) fn counts_at(whole: Counts, first: u32, last: u32) -> Counts {
    let (first, end) = (u64::from(first), u64::from(last) + 1);
    let mut from = 0;
    let mut within = |length: u64| {
        let to = from + length;
        let n = end.min(to).saturating_sub(first.max(from));
        from = to;
        n
    };
    Counts { requests: within(whole.requests), items: within(whole.items), logs: within(whole.logs), stats: within(whole.stats) }
}

pub(crate) const fn sum(a: Counts, b: Counts) -> Counts {
    Counts { requests: a.requests + b.requests, items: a.items + b.items, logs: a.logs + b.logs, stats: a.stats + b.stats }
}

fn kind_at(counts: Counts, place: u32) -> RecordKind {
    match counts_at(counts, place, place) {
        Counts { requests: 1, .. } => RecordKind::Request,
        Counts { items: 1, .. } => RecordKind::Item,
        Counts { logs: 1, .. } => RecordKind::Log,
        _ => RecordKind::Stats,
    }
}

fn place(index: usize) -> u32 {
    u32::try_from(index).unwrap_or(u32::MAX)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing)]

    use std::collections::HashSet;

    use super::*;
    use crate::courier::testing::batch;

    #[test]
    fn parts_keep_the_texts_and_cover_the_batch() {
        let whole = batch(7, 10);
        let mut split = Split::of(&whole).unwrap();
        let mut ids = HashSet::from([whole.id]);
        let mut singles = Vec::new();
        while let Some(part) = split.part(&whole) {
            assert!(ids.insert(part.id), "two parts have one id");
            if !split.halve() {
                assert_eq!(part.counts.total(), 1);
                singles.push(part);
                split.next(Fate::Delivered);
            }
        }
        assert_eq!(singles.len(), 4);
        assert!(singles[2].body.contains(r#"{"title": "\u0416", "n": 10, "_ts": 1700000000}"#), "{}", singles[2].body);
        assert!(singles[3].body.contains(r#""index": 4}"#));
        let again = Split::of(&whole).unwrap().part(&whole).unwrap();
        assert!(ids.contains(&again.id));
        assert_eq!(again.id, BatchId::of_part(whole.id, 0, 1));
    }

    #[test]
    fn a_single_record_or_an_unreadable_body_is_not_split() {
        let mut one = batch(7, 1);
        one.body = r#"{"job_id": 7, "data": {"requests": [], "items": [{"a": 1}], "logs": []}}"#.into();
        assert!(Split::of(&one).is_none());
        for body in ["{", r#"{"job_id": 7, "data": {"requests": [], "items": [], "logs": []}}"#] {
            one.body = body.into();
            assert!(Split::of(&one).is_none());
        }
    }

    #[test]
    fn places_are_counted_by_kind() {
        let whole = Counts { requests: 2, items: 3, logs: 1, stats: 1 };
        for (first, last, counts) in [
            (0, 6, (2, 3, 1, 1)),
            (0, 0, (1, 0, 0, 0)),
            (1, 2, (1, 1, 0, 0)),
            (4, 6, (0, 1, 1, 1)),
            (6, 6, (0, 0, 0, 1)),
            (7, 9, (0, 0, 0, 0)),
        ] {
            let (requests, items, logs, stats) = counts;
            assert_eq!(counts_at(whole, first, last), Counts { requests, items, logs, stats }, "{first} to {last}");
        }
    }

    #[test]
    fn a_batch_goes_on_with_the_parts_that_are_not_done() {
        let whole = batch(7, 1);
        let part = |first, last, fate| Part { batch: whole.id, first, last, fate };
        let rest = |done: &[Part]| {
            let mut split = Split::resume(&whole, done).unwrap();
            let mut places = Vec::new();
            while let Some(next) = split.places() {
                places.push(next);
                split.next(Fate::Delivered);
            }
            (places, split.rejected.total())
        };
        for (done, places, rejected) in [
            (vec![], vec![(0, 3)], 0),
            (vec![part(0, 1, Fate::Delivered)], vec![(2, 3)], 0),
            (vec![part(0, 0, Fate::Rejected)], vec![(1, 1), (2, 3)], 1),
            (vec![part(0, 0, Fate::Rejected), part(1, 1, Fate::Delivered), part(2, 3, Fate::Delivered)], vec![], 1),
            // What no version of this has written.
            (vec![part(1, 2, Fate::Rejected)], vec![(0, 0), (3, 3)], 2),
        ] {
            assert_eq!(rest(&done), (places, rejected), "{done:?}");
        }
        assert!(Split::resume(&whole, &[part(2, 9, Fate::Delivered)]).is_none(), "not of this batch");
    }
}
