//! A refused batch taken apart, until a bad record costs only itself.
//!
//! Halves of halves: one bad record among many is found in few calls. Parts have ids that follow from their place in
//! the batch, so that a sink knows them again when the whole batch is sent once more after a crash.

use std::ops::Range;

use serde::Deserialize;
use serde_json::value::RawValue;

use crate::apcloudy::{BodyBuilder, RecordKind};
use crate::collector::batch::{Batch, Counts};
use crate::collector::log::{BatchId, SeqRange};

/// The parts of one batch that are still to be sent.
#[derive(Debug)]
pub(super) struct Split {
    records: Vec<(RecordKind, String)>,
    /// The next part is the last one.
    todo: Vec<Range<usize>>,
    pub(super) rejected: Counts,
    pub(super) why: String,
}

impl Split {
    /// Takes a batch apart into its halves; `None` when it holds a single record or its body does not read.
    pub(super) fn of(batch: &Batch) -> Option<Self> {
        let body: Body<'_> = serde_json::from_str(&batch.body).ok()?;
        let mut records = Vec::new();
        for (kind, list) in
            [(RecordKind::Request, body.data.requests), (RecordKind::Item, body.data.items), (RecordKind::Log, body.data.logs)]
        {
            records.extend(list.into_iter().map(|text| (kind, text.get().to_owned())));
        }
        records.extend(body.data.stats.map(|text| (RecordKind::Stats, text.get().to_owned())));
        if records.len() < 2 {
            return None;
        }
        let whole = 0..records.len();
        let mut split = Self { records, todo: vec![whole], rejected: Counts::default(), why: String::new() };
        split.halve();
        Some(split)
    }

    /// The part to send next; `None` when all are done.
    pub(super) fn part(&self, whole: &Batch, _log_id: u64) -> Option<Batch> {
        let places = self.todo.last()?;
        let mut body = BodyBuilder::new();
        let mut counts = Counts::default();
        for (kind, text) in self.records.get(places.clone()).unwrap_or_default() {
            body.push(*kind, text);
            add(&mut counts, *kind);
        }
        let first = whole.range.first;
        let range = SeqRange { first: first + places.start as u64, last: first + places.end as u64 - 1 };
        Some(Batch {
            id: BatchId::of_part(whole.id, place(places.start), place(places.end.saturating_sub(1))),
            job: whole.job.clone(),
            range,
            counts,
            body: body.finish(&whole.job),
        })
    }

    /// The present part is done.
    pub(super) fn next(&mut self) {
        self.todo.pop();
    }

    /// The present part was refused: goes on with its halves. `false` when it is a single record.
    pub(super) fn halve(&mut self) -> bool {
        let Some(part) = self.todo.pop_if(|part| part.len() > 1) else { return false };
        let middle = part.start + part.len() / 2;
        self.todo.push(middle..part.end);
        self.todo.push(part.start..middle);
        true
    }

    /// The present part is in quarantine.
    pub(super) fn reject(&mut self, counts: Counts, why: String) {
        self.rejected.requests += counts.requests;
        self.rejected.items += counts.items;
        self.rejected.logs += counts.logs;
        self.rejected.stats += counts.stats;
        if self.why.is_empty() {
            self.why = why;
        }
        self.next();
    }

    pub(super) fn is_done(&self) -> bool {
        self.todo.is_empty()
    }
}

fn place(index: usize) -> u32 {
    u32::try_from(index).unwrap_or(u32::MAX)
}

fn add(counts: &mut Counts, kind: RecordKind) {
    match kind {
        RecordKind::Request => counts.requests += 1,
        RecordKind::Item => counts.items += 1,
        RecordKind::Log => counts.logs += 1,
        RecordKind::Stats => counts.stats += 1,
    }
}

#[derive(Deserialize)]
struct Body<'a> {
    #[serde(borrow)]
    data: Data<'a>,
}

#[derive(Deserialize)]
struct Data<'a> {
    #[serde(borrow, default)]
    requests: Vec<&'a RawValue>,
    #[serde(borrow, default)]
    items: Vec<&'a RawValue>,
    #[serde(borrow, default)]
    logs: Vec<&'a RawValue>,
    #[serde(borrow, default)]
    stats: Option<&'a RawValue>,
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
        while let Some(part) = split.part(&whole, 1) {
            assert!(ids.insert(part.id), "two parts have one id");
            if !split.halve() {
                assert_eq!(part.counts.total(), 1);
                singles.push(part);
                split.next();
            }
        }
        assert_eq!(singles.len(), 4);
        assert!(singles[2].body.contains(r#"{"title": "\u0416", "n": 10, "_ts": 1700000000}"#), "{}", singles[2].body);
        assert!(singles[3].body.contains(r#""index": 4}"#));
        let again = Split::of(&whole).unwrap().part(&whole, 1).unwrap();
        assert!(ids.contains(&again.id));
    }

    #[test]
    fn a_single_record_or_an_unreadable_body_is_not_split() {
        let mut one = batch(7, 1);
        one.body = r#"{"job_id": 7, "data": {"requests": [], "items": [{"a": 1}], "logs": []}}"#.into();
        assert!(Split::of(&one).is_none());
        one.body = "{".into();
        assert!(Split::of(&one).is_none());
    }
}
