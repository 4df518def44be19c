//! What is cut, delivered and settled, in memory: the sums of all frames in the log.

use std::collections::{BTreeMap, VecDeque};

use super::entry::{BatchId, Cut, End, Entry, Part, SeqRange};
use super::frame::Frame;

/// How many records whose cut was lost go into one batch.
const ORPHANS: u64 = 50;
/// And how many bytes of text, if there is more than one.
const ORPHAN_BYTES: u64 = 512 * 1024;

/// A cut that waits for its delivery.
#[derive(Debug)]
struct OpenCut {
    cut: Cut,
    /// The id it was cut with; it has another one if it lost records since.
    was: BatchId,
    records: u64,
    /// In the order they were noted.
    parts: Vec<Part>,
}

/// The state every frame changes; the same code runs at append and at recovery.
#[derive(Debug, Default)]
pub(super) struct Books {
    /// Records in no batch yet: number and text bytes. Bounded by the size of a batch.
    uncut: VecDeque<(u64, u64)>,
    /// By first number.
    open: BTreeMap<u64, OpenCut>,
    cut_up_to: u64,
    /// Numbers that are gone, ascending, each with the last number that was written before that came out.
    gaps: Vec<(SeqRange, u64)>,
    /// Where cuts begin behind records whose own cut was lost.
    fences: Vec<u64>,
    unsettled: BTreeMap<u64, End>,
    last_end: u64,
    /// The newest settle mark in the log.
    settled_mark: u64,
    /// Whether an end was settled since that mark.
    settled_since: bool,
}

impl Books {
    pub(super) fn note(&mut self, seq: u64, frame: &Frame<'_>) {
        match frame {
            Frame::Entry(Entry::End(end)) => {
                self.unsettled.insert(seq, *end);
                self.last_end = seq;
            }
            Frame::Entry(_) => {
                self.uncut.push_back((seq, frame.text_bytes()));
            }
            Frame::Cut(cut) => {
                let SeqRange { first, last } = cut.range;
                if self.uncut.front().is_some_and(|(oldest, _)| *oldest < first) {
                    self.fences.push(first);
                }
                let from = self.uncut.partition_point(|(seq, _)| *seq < first);
                let to = self.uncut.partition_point(|(seq, _)| *seq <= last).max(from);
                let records = self.uncut.drain(from..to).len() as u64;
                let left = Cut { id: self.id_of_rest(seq, cut), range: cut.range };
                self.open.insert(first, OpenCut { cut: left, was: cut.id, records, parts: Vec::new() });
                self.cut_up_to = self.cut_up_to.max(cut.range.last);
            }
            Frame::Delivered { id, .. } => {
                if let Some(first) = self.known(*id).map(|open| open.cut.range.first) {
                    self.open.remove(&first);
                }
            }
            Frame::Part(part) => {
                if let Some(open) = self.open.values_mut().find(|open| open.cut.id == part.batch) {
                    open.parts.push(*part);
                }
            }
            Frame::Gap { up_to, found } => self.gaps.push((SeqRange { first: seq, last: *up_to }, *found)),
            Frame::Settled { up_to } => {
                self.settled_mark = self.settled_mark.max(*up_to);
                self.settled_since = false;
                self.unsettled = self.unsettled.split_off(&up_to.saturating_add(1));
            }
        }
    }

    pub(super) fn settle(&mut self, seq: u64) {
        self.settled_since |= self.unsettled.remove(&seq).is_some();
    }

    /// Every end up to this number is settled.
    pub(super) fn settled_up_to(&self) -> u64 {
        let first_open = self.unsettled.keys().next();
        first_open.map_or(self.last_end, |seq| seq - 1)
    }

    /// A settle mark that says more than the newest one in the log.
    pub(super) fn settle_mark_due(&self) -> Option<u64> {
        Some(self.settled_up_to()).filter(|up_to| self.settled_since && *up_to > self.settled_mark)
    }

    /// Every record up to this number is delivered.
    pub(super) fn delivered_up_to(&self) -> u64 {
        self.open.keys().next().map_or(self.cut_up_to, |first| first - 1)
    }

    pub(super) fn cut_up_to(&self) -> u64 {
        self.cut_up_to
    }

    /// Records in no batch although later ones are in one: damage took their cut. They come as ranges of bounded size
    /// with no record of another batch in between.
    pub(super) fn orphans(&self) -> Vec<SeqRange> {
        let mut fences = self.fences.clone();
        fences.sort_unstable();
        let part_of = |seq: u64| fences.partition_point(|fence| *fence <= seq);
        let mut ranges: Vec<SeqRange> = Vec::new();
        let (mut records, mut size) = (0, 0);
        for (seq, bytes) in self.uncut.iter().take_while(|(seq, _)| *seq <= self.cut_up_to) {
            let room = records < ORPHANS && size + bytes <= ORPHAN_BYTES;
            match ranges.last_mut().filter(|range| room && part_of(range.last) == part_of(*seq)) {
                Some(range) => range.last = *seq,
                None => {
                    ranges.push(SeqRange { first: *seq, last: *seq });
                    (records, size) = (0, 0);
                }
            }
            records += 1;
            size += bytes;
        }
        ranges
    }

    /// Every orphan has a batch now.
    pub(super) fn forget_fences(&mut self) {
        self.fences.clear();
    }

    /// The numbers of records in no batch, from the given one downwards.
    pub(super) fn uncut_back_from(&self, last: u64) -> impl Iterator<Item = u64> {
        let to = self.uncut.partition_point(|(seq, _)| *seq <= last);
        self.uncut.range(..to).rev().map(|(seq, _)| *seq)
    }

    /// The first and last record in no batch.
    pub(super) fn uncut(&self) -> Option<(u64, u64)> {
        Some((self.uncut.front()?.0, self.uncut.back()?.0))
    }

    /// How many records a waiting batch holds.
    pub(super) fn records_of(&self, cut: &Cut) -> u64 {
        self.open.get(&cut.range.first).filter(|open| open.cut == *cut).map_or(0, |open| open.records)
    }

    pub(super) fn find(&self, id: BatchId) -> Option<Cut> {
        self.open_cut(id).map(|open| open.cut)
    }

    pub(super) fn cuts(&self) -> Vec<Cut> {
        self.open.values().map(|open| open.cut).collect()
    }

    /// The parts of waiting batches, by batch and in the order they were noted.
    pub(super) fn parts(&self) -> Vec<Part> {
        self.open.values().flat_map(|open| open.parts.iter().copied()).collect()
    }

    pub(super) fn ends(&self) -> Vec<(u64, End)> {
        self.unsettled.iter().map(|(seq, end)| (*seq, *end)).collect()
    }

    /// The lowest number of a record, or of a batch with one, that the sink does not have.
    pub(super) fn oldest_undelivered(&self) -> Option<u64> {
        let uncut = self.uncut.front().map(|(seq, _)| *seq);
        uncut.into_iter().chain(self.open.keys().next().copied()).min()
    }

    pub(super) fn is_clear(&self) -> bool {
        self.uncut.is_empty() && self.open.is_empty() && self.unsettled.is_empty()
    }

    /// Whether a batch waits that was cut with this id or goes out with it.
    pub(super) fn knows(&self, id: BatchId) -> bool {
        self.known(id).is_some()
    }

    fn known(&self, id: BatchId) -> Option<&OpenCut> {
        self.open.values().find(|open| open.cut.id == id || open.was == id)
    }

    /// The id a batch goes out with: its own, unless numbers of it went after it had been cut.
    fn id_of_rest(&self, seq: u64, cut: &Cut) -> BatchId {
        let SeqRange { first, last } = cut.range;
        let from = self.gaps.partition_point(|(gap, _)| gap.last < first);
        let inside = self.gaps.iter().skip(from).take_while(|(gap, _)| gap.first <= last);
        let losses: Vec<_> = inside
            .filter(|(_, found)| seq <= *found)
            .map(|(gap, _)| SeqRange { first: gap.first.max(first), last: gap.last.min(last) })
            .collect();
        if losses.is_empty() { cut.id } else { cut.id.after_losses(&losses) }
    }

    /// Deliveries come in order, so the first look nearly always hits.
    fn open_cut(&self, id: BatchId) -> Option<&OpenCut> {
        self.open.values().find(|open| open.cut.id == id)
    }
}
