//! What the record log holds: records, the ends of tickets, and the ranges batches are made of.

use std::borrow::Cow;
use std::fmt;

use xxhash_rust::xxh3::xxh3_128;

use crate::apcloudy::{JobId, RecordKind};

/// A closed range of sequence numbers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct SeqRange {
    /// The first number.
    pub first: u64,
    /// The last number, included.
    pub last: u64,
}

impl SeqRange {
    /// Whether the number lies in the range.
    #[must_use]
    pub const fn contains(&self, seq: u64) -> bool {
        self.first <= seq && seq <= self.last
    }
}

/// One thing the caller appends.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Entry<'a> {
    /// An item's wire text.
    Item(Cow<'a, str>),
    /// A request record's wire text.
    Request(Cow<'a, str>),
    /// A log record's wire text.
    Log(Cow<'a, str>),
    /// The final counters' wire text.
    Stats(Cow<'a, str>),
    /// A ticket is over.
    End(End),
}

impl Entry<'_> {
    /// The list this entry belongs to and its text; none for an end.
    #[must_use]
    pub fn record(&self) -> Option<(RecordKind, &str)> {
        match self {
            Self::Item(text) => Some((RecordKind::Item, text)),
            Self::Request(text) => Some((RecordKind::Request, text)),
            Self::Log(text) => Some((RecordKind::Log, text)),
            Self::Stats(text) => Some((RecordKind::Stats, text)),
            Self::End(_) => None,
        }
    }

    /// The same entry with borrowed texts.
    pub(super) fn by_ref(&self) -> Entry<'_> {
        match self {
            Self::Item(text) => Entry::Item(Cow::Borrowed(text)),
            Self::Request(text) => Entry::Request(Cow::Borrowed(text)),
            Self::Log(text) => Entry::Log(Cow::Borrowed(text)),
            Self::Stats(text) => Entry::Stats(Cow::Borrowed(text)),
            Self::End(end) => Entry::End(*end),
        }
    }

    /// The entry with texts of its own.
    #[must_use]
    pub fn into_owned(self) -> Entry<'static> {
        let own = |text: Cow<'_, str>| Cow::Owned(text.into_owned());
        match self {
            Self::Item(text) => Entry::Item(own(text)),
            Self::Request(text) => Entry::Request(own(text)),
            Self::Log(text) => Entry::Log(own(text)),
            Self::Stats(text) => Entry::Stats(own(text)),
            Self::End(end) => Entry::End(end),
        }
    }
}

/// The end of a ticket: written in one group with the ticket's records, settled in the frontier afterwards.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct End {
    /// The request's id.
    pub request: u128,
    /// The attempt that ended, counted from 1.
    pub attempt: u32,
    /// How it ended, in the engine's own numbering.
    pub outcome: u8,
}

/// The id of a batch: the same batch always has the same id, whenever it is sent.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct BatchId(pub u128);

impl BatchId {
    /// The id of the batch of a job that starts with the given sequence number of the given log.
    #[must_use]
    pub fn of(job: &JobId, log_id: u64, first: u64) -> Self {
        let mut input = job.to_json().into_bytes();
        for number in [log_id, first] {
            input.extend_from_slice(&number.to_le_bytes());
        }
        Self(xxh3_128(&input))
    }

    /// The id of a part of a batch that is sent on its own because the whole was refused: from the place of its first
    /// record in the batch to that of its last, both counted from 0 and included. Both are hashed: a part may start
    /// where another one starts and still has an id of its own.
    #[must_use]
    pub fn of_part(batch: Self, first: u32, last: u32) -> Self {
        let mut input = batch.0.to_le_bytes().to_vec();
        for place in [first, last] {
            input.extend_from_slice(&place.to_le_bytes());
        }
        Self(xxh3_128(&input))
    }
}

impl BatchId {
    /// The id of what is left of a batch that lost the records in these ranges: the sink may know parts of it by their
    /// places, and these have moved.
    pub(super) fn after_losses(self, losses: &[SeqRange]) -> Self {
        let mut input = self.0.to_le_bytes().to_vec();
        for number in losses.iter().flat_map(|loss| [loss.first, loss.last]) {
            input.extend_from_slice(&number.to_le_bytes());
        }
        Self(xxh3_128(&input))
    }
}

impl fmt::Display for BatchId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:032x}", self.0)
    }
}

impl fmt::Debug for BatchId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "BatchId({self})")
    }
}

/// What became of a part of a batch.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Fate {
    /// The sink has it.
    Delivered,
    /// The sink refused it for good; it was put aside.
    Rejected,
}

/// A part of a batch that was refused as a whole and is sent piece by piece, with what became of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Part {
    /// The batch it is taken from.
    pub batch: BatchId,
    /// The place of its first record in the batch's list of records, counted from 0.
    pub first: u32,
    /// The place of its last record, included.
    pub last: u32,
    /// How it ended.
    pub fate: Fate,
}

/// A batch as the log knows it: an id and a range. Ends and marks inside the range are not part of the batch.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Cut {
    /// The batch.
    pub id: BatchId,
    /// The records it holds.
    pub range: SeqRange,
}
