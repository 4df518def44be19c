//! Batches: which records travel together.
//!
//! A batch is a range of the record log and nothing else, so it can be read again after a restart and goes out
//! with the same id. The [`Batcher`] only decides where to cut; it writes nothing and sends nothing.

use std::time::Duration;

use tokio::time::Instant;

use super::log::{BatchId, Cut, Entry, LogError, LogReader, SeqRange};
use crate::apcloudy::{BodyBuilder, JobId, RecordKind};

/// Bytes a body has around its records, the job's id not counted.
const ENVELOPE_BYTES: u64 = 80;

/// When a batch is full.
#[derive(Debug, Clone, Copy)]
pub struct BatchLimits {
    /// Requests, items and logs together (`APCLOUDY_BATCH_SIZE`); 1 or less cuts at every record.
    pub size: u64,
    /// Bytes of a body (`APCLOUDY_MAX_BATCH_BYTES`); a single larger record travels alone.
    pub max_bytes: u64,
    /// The longest time a record waits for its batch to fill.
    pub flush_after: Duration,
}

/// How many records of each kind a batch has.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Counts {
    /// Request records.
    pub requests: u64,
    /// Items.
    pub items: u64,
    /// Log records.
    pub logs: u64,
    /// Stats objects: they do not count towards the size.
    pub stats: u64,
}

impl Counts {
    /// What counts towards the size.
    #[must_use]
    pub const fn total(&self) -> u64 {
        self.requests + self.items + self.logs
    }

    fn add(&mut self, kind: RecordKind) {
        match kind {
            RecordKind::Request => self.requests += 1,
            RecordKind::Item => self.items += 1,
            RecordKind::Log => self.logs += 1,
            RecordKind::Stats => self.stats += 1,
        }
    }
}

/// A batch as it is handed to a sink.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Batch {
    /// Always the same for the same batch.
    pub id: BatchId,
    /// The job it belongs to.
    pub job: JobId,
    /// Its place in the record log.
    pub range: SeqRange,
    /// What it holds.
    pub counts: Counts,
    /// The whole body, ready to be signed.
    pub body: String,
}

impl Batch {
    /// Reads a batch from the record log: after a restart, or when its texts were too large to keep.
    ///
    /// # Errors
    /// Those of the reader.
    pub fn read(job: &JobId, cut: Cut, reader: LogReader) -> Result<Self, LogError> {
        let mut counts = Counts::default();
        let mut body = BodyBuilder::new();
        for entry in reader {
            if let Some((kind, text)) = entry?.1.record() {
                counts.add(kind);
                body.push(kind, text);
            }
        }
        Ok(Self { id: cut.id, job: job.clone(), range: cut.range, counts, body: body.finish(job) })
    }

    /// Whether there is no record in it: all of them were lost to damage.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.counts == Counts::default()
    }
}

/// A batch that was just cut: journal it, then send it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CutBatch {
    /// Id and range, for the journal.
    pub cut: Cut,
    /// What it holds.
    pub counts: Counts,
    /// Whether it is the last of the job.
    pub closing: bool,
    kept: Option<BodyBuilder>,
}

impl CutBatch {
    /// The batch to send, if its texts were kept; otherwise it is to be read with [`Batch::read`].
    #[must_use]
    pub fn into_batch(self, job: &JobId) -> Option<Batch> {
        let body = self.kept?;
        Some(Batch { id: self.cut.id, job: job.clone(), range: self.cut.range, counts: self.counts, body: body.finish(job) })
    }
}

/// Decides where one batch ends and the next begins.
///
/// Every record counts, whatever its kind: a crawl without items is sent as soon as one with items. Stats ride in
/// the closing batch: once they are there only the byte limit can cut before the close.
#[derive(Debug)]
pub struct Batcher {
    job: JobId,
    log_id: u64,
    limits: BatchLimits,
    open: Option<Open>,
}

#[derive(Debug)]
struct Open {
    range: SeqRange,
    counts: Counts,
    bytes: u64,
    kept: Option<BodyBuilder>,
    since: Instant,
}

impl Batcher {
    /// A batcher for the record log with the given id.
    #[must_use]
    pub fn new(job: JobId, log_id: u64, limits: BatchLimits) -> Self {
        Self { job, log_id, limits, open: None }
    }

    /// Takes the entry with the given number; the numbers rise. Pushes what became full: none, one or two batches.
    pub fn add(&mut self, seq: u64, entry: &Entry<'_>, now: Instant, full: &mut Vec<CutBatch>) {
        let Some((kind, text)) = entry.record() else {
            return;
        };
        // The separator counts too.
        let bytes = text.len() as u64 + 2;
        if self.open.as_ref().is_some_and(|open| open.bytes + bytes > self.limits.max_bytes) {
            full.extend(self.cut(false));
        }
        let empty = ENVELOPE_BYTES + self.job.to_json().len() as u64;
        let open = self.open.get_or_insert_with(|| Open {
            range: SeqRange { first: seq, last: seq },
            counts: Counts::default(),
            bytes: empty,
            kept: Some(BodyBuilder::new()),
            since: now,
        });
        open.range.last = seq;
        open.bytes += bytes;
        open.counts.add(kind);
        if open.bytes > self.limits.max_bytes {
            open.kept = None;
        }
        if let Some(kept) = &mut open.kept {
            kept.push(kind, text);
        }
        let large = open.bytes >= self.limits.max_bytes;
        let many = open.counts.total() >= self.limits.size.max(1) && open.counts.stats == 0;
        if large || many {
            full.extend(self.cut(false));
        }
    }

    /// When the open batch is to be cut although it is not full.
    #[must_use]
    pub fn due(&self) -> Option<Instant> {
        let open = self.open.as_ref().filter(|open| open.counts.stats == 0)?;
        Some(open.since + self.limits.flush_after)
    }

    /// Cuts the open batch if it is due.
    pub fn tick(&mut self, now: Instant) -> Option<CutBatch> {
        self.due().filter(|due| *due <= now)?;
        self.cut(false)
    }

    /// Cuts what is there at the end of the job.
    pub fn close(&mut self) -> Option<CutBatch> {
        self.cut(true)
    }

    /// What the open batch holds.
    #[must_use]
    pub fn open_counts(&self) -> Counts {
        self.open.as_ref().map_or_else(Counts::default, |open| open.counts)
    }

    fn cut(&mut self, closing: bool) -> Option<CutBatch> {
        let open = self.open.take()?;
        Some(CutBatch {
            cut: Cut { id: BatchId::of(&self.job, self.log_id, open.range.first), range: open.range },
            counts: open.counts,
            closing,
            kept: open.kept,
        })
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing)]

    use proptest::prelude::*;

    use super::*;
    use crate::collector::log::{End, LogOptions, RecordLog};

    const SECOND: Duration = Duration::from_secs(1);

    fn batcher(size: u64, max_bytes: u64) -> Batcher {
        let limits = BatchLimits { size, max_bytes, flush_after: 10 * SECOND };
        Batcher::new(JobId::from(7), 1, limits)
    }

    fn item(n: usize) -> Entry<'static> {
        Entry::Item(format!("{{\"n\": {n}}}").into())
    }

    fn end() -> Entry<'static> {
        Entry::End(End { request: 1, attempt: 1, outcome: 0 })
    }

    fn feed(batcher: &mut Batcher, entries: &[Entry<'_>], now: Instant) -> Vec<CutBatch> {
        let mut full = Vec::new();
        for (seq, entry) in (1..).zip(entries) {
            batcher.add(seq, entry, now, &mut full);
        }
        full
    }

    #[test]
    fn requests_and_logs_fill_a_batch_as_items_do_and_ends_do_not() {
        let mut batcher = batcher(3, 1 << 20);
        let entries = [Entry::Request("{}".into()), end(), Entry::Log("{}".into()), end(), item(1), item(2)];
        let full = feed(&mut batcher, &entries, Instant::now());
        assert_eq!(full.len(), 1);
        assert_eq!(full[0].cut.range, SeqRange { first: 1, last: 5 });
        assert_eq!(full[0].counts, Counts { requests: 1, items: 1, logs: 1, stats: 0 });
        assert_eq!(batcher.open_counts().items, 1);
    }

    #[test]
    fn a_size_of_one_or_nothing_cuts_at_every_record() {
        for size in [0, 1] {
            assert_eq!(feed(&mut batcher(size, 1 << 20), &[item(1), item(2)], Instant::now()).len(), 2);
        }
    }

    #[test]
    fn a_partial_batch_is_cut_ten_seconds_after_its_first_record() {
        let start = Instant::now();
        let mut batcher = batcher(50, 1 << 20);
        assert_eq!(batcher.due(), None);
        batcher.add(1, &item(1), start, &mut Vec::new());
        batcher.add(2, &item(2), start + 5 * SECOND, &mut Vec::new());
        assert_eq!(batcher.tick(start + 9 * SECOND), None);
        let cut = batcher.tick(start + 10 * SECOND).unwrap();
        assert_eq!((cut.cut.range.last, cut.closing), (2, false));
        assert_eq!(batcher.due(), None);
    }

    #[test]
    fn stats_wait_for_the_close_and_ride_in_the_closing_batch() {
        let start = Instant::now();
        let mut batcher = batcher(2, 1 << 20);
        let entries = [item(1), Entry::Stats("{\"s\": 1}".into()), item(2), item(3)];
        assert!(feed(&mut batcher, &entries, start).is_empty());
        assert_eq!(batcher.tick(start + 60 * SECOND), None);
        let closing = batcher.close().unwrap();
        assert!(closing.closing);
        let batch = closing.into_batch(&JobId::from(7)).unwrap();
        assert!(batch.body.ends_with(r#""logs": [], "stats": {"s": 1}}}"#));
        assert_eq!(batcher.close(), None);
    }

    #[test]
    fn a_record_above_the_byte_limit_travels_alone_and_is_not_kept() {
        let mut batcher = batcher(50, 200);
        let full = feed(&mut batcher, &[item(1), Entry::Item("9".repeat(300).into()), item(2)], Instant::now());
        let ranges: Vec<_> = full.iter().map(|b| (b.cut.range.first, b.cut.range.last)).collect();
        assert_eq!(ranges, [(1, 1), (2, 2)]);
        assert!(full[0].clone().into_batch(&JobId::from(7)).is_some());
        assert!(full[1].clone().into_batch(&JobId::from(7)).is_none());
    }

    #[test]
    fn the_id_of_a_batch_comes_from_job_log_and_first_number() {
        let job = JobId::from(7);
        let id = BatchId::of(&job, 1, 10);
        // A golden value: ids must not change between versions, or a repeat would count as new.
        assert_eq!(id.to_string(), "2818ca40e7f799d0b9fe58343b4aaf7c");
        for other in [
            BatchId::of(&JobId::from("7"), 1, 10),
            BatchId::of(&job, 2, 10),
            BatchId::of(&job, 1, 11),
            BatchId::of_part(id, 0, 0),
        ] {
            assert_ne!(id, other);
        }
    }

    fn any_entry() -> impl Strategy<Value = Entry<'static>> {
        (0..6u8, 0..120usize).prop_map(|(kind, size)| {
            let text = "x".repeat(size + 2).into();
            match kind {
                0 | 1 => Entry::Item(text),
                2 => Entry::Request(text),
                3 => Entry::Log(text),
                _ => end(),
            }
        })
    }

    proptest! {
        #[test]
        fn no_record_is_lost_or_doubled_and_limits_hold(
            entries in prop::collection::vec(any_entry(), 0..120),
            size in 0..12u64,
            max_bytes in 100..600u64,
            ticks in prop::collection::vec(any::<bool>(), 120),
        ) {
            let mut batcher = batcher(size, max_bytes);
            let mut cuts = Vec::new();
            let mut now = Instant::now();
            for (seq, entry) in (1..).zip(&entries) {
                batcher.add(seq, entry, now, &mut cuts);
                if ticks[seq as usize - 1] {
                    now += 11 * SECOND;
                    cuts.extend(batcher.tick(now));
                }
            }
            cuts.extend(batcher.close());
            let mut after = 0;
            let mut records = 0;
            for cut in &cuts {
                prop_assert!(cut.cut.range.first > after && cut.cut.range.last >= cut.cut.range.first);
                after = cut.cut.range.last;
                records += cut.counts.total();
                prop_assert!(cut.counts.total() <= size.max(1));
                let inside = entries[cut.cut.range.first as usize - 1..cut.cut.range.last as usize].iter();
                prop_assert_eq!(inside.filter(|e| e.record().is_some()).count() as u64, cut.counts.total());
                match cut.clone().into_batch(&JobId::from(7)) {
                    Some(batch) => prop_assert!(batch.body.len() as u64 <= max_bytes),
                    None => prop_assert_eq!(cut.counts.total(), 1),
                }
            }
            prop_assert_eq!(records, entries.iter().filter(|e| e.record().is_some()).count() as u64);
        }
    }

    #[test]
    fn a_batch_read_from_the_log_equals_the_one_kept_in_memory() {
        let dir = tempfile::tempdir().unwrap();
        let job = JobId::from(7);
        let (mut log, _) = RecordLog::open(dir.path(), &job, LogOptions::new(1)).unwrap();
        let mut batcher = batcher(4, 1 << 20);
        let mut full = Vec::new();
        for n in 0..4 {
            let group = [Entry::Request("{\"r\": 1}".into()), item(n), end()];
            let range = log.append_group(&group).unwrap();
            for (seq, entry) in (range.first..).zip(&group) {
                batcher.add(seq, entry, Instant::now(), &mut full);
            }
        }
        assert_eq!(full.len(), 2);
        for cut in full {
            log.cut(&cut.cut).unwrap();
            let read = Batch::read(&job, cut.cut, log.read(cut.cut.range).unwrap()).unwrap();
            assert_eq!(Some(read), cut.into_batch(&job));
        }
    }

    #[test]
    fn a_restart_sends_the_same_batches_under_the_same_ids() {
        let dir = tempfile::tempdir().unwrap();
        let job = JobId::from(7);
        let now = Instant::now();
        let (mut log, _) = RecordLog::open(dir.path(), &job, LogOptions::new(1)).unwrap();
        let mut before = batcher(4, 1 << 20);
        let mut sent = Vec::new();
        for n in 0..6 {
            let group = [item(n), end()];
            let range = log.append_group(&group).unwrap();
            for (seq, entry) in (range.first..).zip(&group) {
                before.add(seq, entry, now, &mut sent);
            }
        }
        let sent = sent.pop().unwrap();
        log.cut(&sent.cut).unwrap();
        log.flush_writes().unwrap();
        drop(log);

        let (mut log, recovered) = RecordLog::open(dir.path(), &job, LogOptions::new(1)).unwrap();
        assert_eq!(recovered.cuts, [sent.cut]);
        let again = Batch::read(&job, sent.cut, log.read(sent.cut.range).unwrap()).unwrap();
        assert_eq!(Some(again), sent.into_batch(&job));
        let mut after = Batcher::new(job.clone(), log.log_id(), batcher(4, 1 << 20).limits);
        for entry in log.read(recovered.uncut.unwrap()).unwrap() {
            let (seq, entry) = entry.unwrap();
            after.add(seq, &entry, now, &mut Vec::new());
        }
        assert_eq!(after.close(), before.close());
    }
}
