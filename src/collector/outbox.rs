//! The outbox: batches from their cut to their settle.
//!
//! A batch is offered once its cut and all it covers are synced. Bodies are kept for few batches; the others are
//! ranges and are read from the record log when their turn comes, so a slow sink costs no memory.

use std::collections::VecDeque;
use std::sync::Arc;

use super::batch::{Batch, Counts, CutBatch};
use super::log::{BatchId, Cut, Fate, LogError, Part, RecordLog, Recovered};
use crate::actor::{Link, Refused};
use crate::apcloudy::JobId;
use crate::courier::message::{How, Order, Settled};
use crate::courier::split::{counts_at, sum};

/// Bytes of bodies kept for batches that are not offered yet.
const KEPT_BYTES: u64 = 4 * 1024 * 1024;

/// Which run took the records of a batch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Origin {
    /// An earlier one: the spool still held them.
    Earlier,
    /// This one.
    Present,
}

/// A batch without its body.
#[derive(Debug)]
struct Parcel {
    cut: Cut,
    /// Unknown for a batch of an earlier run until it is read.
    counts: Option<Counts>,
    origin: Origin,
    /// Parts of it that are through.
    done: Vec<Part>,
}

impl Parcel {
    /// What is in the parts that came to this end.
    fn done(&self, fate: Fate, counts: Counts) -> Counts {
        let parts = self.done.iter().filter(|part| part.fate == fate);
        parts.fold(Counts::default(), |all, part| sum(all, counts_at(counts, part.first, part.last)))
    }
}

#[derive(Debug)]
struct Waiting {
    parcel: Parcel,
    batch: Option<Arc<Batch>>,
}

/// Items and records by what became of them.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Totals {
    pub(super) delivered: u64,
    pub(super) rejected: u64,
    pub(super) spooled: u64,
    pub(super) recovered: u64,
    pub(super) undelivered_records: u64,
    pub(super) left: u64,
}

/// Batches on their way to the courier and back.
#[derive(Debug)]
pub(super) struct Outbox {
    job: JobId,
    waiting: VecDeque<Waiting>,
    /// How many of them, from the first on, are journaled.
    journaled: usize,
    /// How many of those are synced.
    synced: usize,
    kept_bytes: u64,
    in_flight: VecDeque<Parcel>,
    /// Parts that are through, but the record log does not say so yet.
    unmarked_parts: VecDeque<Part>,
    /// Settled, but the record log does not say so yet.
    unmarked: VecDeque<BatchId>,
    /// What stays in the spool.
    parked: Vec<Parcel>,
    totals: Totals,
    /// Why nothing more is offered.
    stopped: Option<String>,
}

impl Outbox {
    /// An outbox that begins with the cuts of an earlier run, and those of their parts that are through.
    pub(super) fn new(job: JobId, recovered: &Recovered) -> Self {
        let waiting = recovered.cuts.iter().map(|cut| {
            let done = recovered.parts.iter().filter(|part| part.batch == cut.id).copied().collect();
            Waiting { parcel: Parcel { cut: *cut, counts: None, origin: Origin::Earlier, done }, batch: None }
        });
        let waiting: VecDeque<_> = waiting.collect();
        Self {
            job,
            journaled: waiting.len(),
            synced: waiting.len(),
            waiting,
            kept_bytes: 0,
            in_flight: VecDeque::new(),
            unmarked_parts: VecDeque::new(),
            unmarked: VecDeque::new(),
            parked: Vec::new(),
            totals: Totals::default(),
            stopped: None,
        }
    }

    /// Takes a batch that was just cut.
    pub(super) fn push(&mut self, cut: CutBatch, origin: Origin) {
        let parcel = Parcel { cut: cut.cut, counts: Some(cut.counts), origin, done: Vec::new() };
        let batch = if self.kept_bytes < KEPT_BYTES && self.stopped.is_none() { cut.into_batch(&self.job) } else { None };
        self.kept_bytes += batch.as_ref().map_or(0, |batch| batch.body.len() as u64);
        self.waiting.push_back(Waiting { parcel, batch: batch.map(Arc::new) });
    }

    /// Journals new cuts and notes what was settled.
    pub(super) fn journal(&mut self, log: &mut RecordLog) -> Result<(), LogError> {
        while let Some(part) = self.unmarked_parts.front() {
            match log.part(part) {
                Ok(()) | Err(LogError::UnknownBatch { .. }) => self.unmarked_parts.pop_front(),
                Err(error) => return Err(error),
            };
        }
        while let Some(id) = self.unmarked.front() {
            match log.delivered(*id) {
                // Known already: noting it once is enough.
                Ok(()) | Err(LogError::UnknownBatch { .. }) => self.unmarked.pop_front(),
                Err(error) => return Err(error),
            };
        }
        while let Some(next) = self.waiting.get(self.journaled) {
            match log.cut(&next.parcel.cut) {
                Ok(()) => {}
                Err(error @ LogError::BadCut { .. }) => {
                    tracing::error!(%error, "a batch cannot be journaled: after a crash it is sent under another id");
                }
                Err(error) => return Err(error),
            }
            self.journaled += 1;
        }
        Ok(())
    }

    /// Everything journaled is safe from a power cut.
    pub(super) const fn synced(&mut self) {
        self.synced = self.journaled;
    }

    /// Whether a sync would let something go.
    pub(super) const fn wants_sync(&self) -> bool {
        self.synced < self.journaled
    }

    /// Offers what is synced, as long as the courier has room.
    pub(super) fn offer(&mut self, log: &mut RecordLog, courier: &Link<Order>) -> Result<(), LogError> {
        while self.synced > 0 && self.stopped.is_none() && (courier.free() > 0 || courier.is_closed()) {
            if self.waiting.front().is_some_and(|next| next.batch.is_none()) {
                // What fails from here on is the reading.
                log.flush_writes()?;
            }
            let Some(Waiting { parcel, batch }) = self.waiting.pop_front() else { return Ok(()) };
            self.synced -= 1;
            self.journaled -= 1;
            self.kept_bytes -= batch.as_ref().map_or(0, |batch| batch.body.len() as u64).min(self.kept_bytes);
            let read = match batch {
                Some(batch) => Ok(batch),
                None => log.read(parcel.cut.range).and_then(|reader| Batch::read(&self.job, parcel.cut, reader)).map(Arc::new),
            };
            let batch = match read {
                Ok(batch) => batch,
                Err(error) if error.is_lasting() => {
                    tracing::error!(%error, batch = %parcel.cut.id, "a batch cannot be read: it stays in the spool");
                    self.parked.push(parcel);
                    continue;
                }
                Err(error) => {
                    self.put_back(parcel, None);
                    return Err(error);
                }
            };
            if batch.is_empty() {
                self.unmarked.push_back(parcel.cut.id);
                continue;
            }
            let parcel = Parcel { counts: Some(batch.counts), ..parcel };
            let order = Order::Cut { batch, done: parcel.done.clone() };
            // Before the offer: a panic must not lose what the courier has.
            self.in_flight.push_back(parcel);
            let Err(refused) = courier.offer(order) else { continue };
            let full = refused.is_full();
            let (Refused::Full(Order::Cut { batch, .. }) | Refused::Closed(Order::Cut { batch, .. })) = refused;
            if let Some(parcel) = self.in_flight.pop_back() {
                self.put_back(parcel, Some(batch));
            }
            if full {
                return Ok(());
            }
            self.stopped = Some("the courier has ended".to_owned());
        }
        Ok(())
    }

    /// A part of a batch came to its end.
    pub(super) fn part(&mut self, part: Part) {
        if let Some(parcel) = self.in_flight.iter_mut().find(|parcel| parcel.cut.id == part.batch) {
            parcel.done.push(part);
            self.unmarked_parts.push_back(part);
        }
    }

    /// A batch came to its end.
    pub(super) fn settled(&mut self, settled: Settled) {
        let place = self.in_flight.iter().position(|parcel| parcel.cut.id == settled.id);
        let Some(parcel) = place.and_then(|place| self.in_flight.remove(place)) else {
            tracing::warn!(batch = %settled.id, "a batch was settled twice");
            return;
        };
        let rejected = match settled.how {
            How::Delivered => Counts::default(),
            How::Split { rejected } => rejected,
            How::Rejected => settled.counts,
            How::Spooled(why) => {
                self.stopped = Some(why);
                self.parked.push(parcel);
                return;
            }
        };
        let items = settled.counts.items - rejected.items.min(settled.counts.items);
        match parcel.origin {
            Origin::Earlier => self.totals.recovered += items,
            Origin::Present => {
                self.totals.delivered += items;
                self.totals.rejected += rejected.items;
            }
        }
        self.totals.undelivered_records += rejected.total() + rejected.stats;
        self.unmarked.push_back(settled.id);
    }

    /// Why nothing more is offered, if that is so.
    pub(super) fn stopped(&self) -> Option<&str> {
        self.stopped.as_deref()
    }

    /// Why nothing that is here will leave the spool in this run, if that is so.
    pub(super) fn stuck(&self) -> Option<&str> {
        let unreadable = !self.parked.is_empty() && self.in_flight.is_empty() && self.waiting.is_empty();
        self.stopped().or(unreadable.then_some("a batch in it cannot be read any more, which the next start mends"))
    }

    /// Whether nothing is on its way: everything is settled, or what is left cannot go.
    pub(super) fn is_idle(&self) -> bool {
        let marked = self.unmarked.is_empty() && self.unmarked_parts.is_empty();
        self.in_flight.is_empty() && marked && (self.waiting.is_empty() || self.stopped.is_some())
    }

    /// Counts everything at the end; what is not settled stays in the spool.
    pub(super) fn finish(&mut self, log: &mut RecordLog) -> Totals {
        let mut totals = self.totals;
        let waiting = self.waiting.drain(..).map(|waiting| waiting.parcel);
        for parcel in waiting.chain(self.in_flight.drain(..)).chain(self.parked.drain(..)) {
            if parcel.counts.is_none() && parcel.done.is_empty() {
                // A spool of an earlier run may be large: its records are counted without a look at them.
                let records = log.records_of(&parcel.cut);
                totals.undelivered_records += records;
                totals.left += records;
                continue;
            }
            let counts = parcel.counts.unwrap_or_else(|| {
                let read = log.read(parcel.cut.range).and_then(|reader| Batch::read(&self.job, parcel.cut, reader));
                read.map_or_else(|_| Counts::default(), |batch| batch.counts)
            });
            let (delivered, rejected) = (parcel.done(Fate::Delivered, counts), parcel.done(Fate::Rejected, counts));
            let records = |counts: Counts| counts.total() + counts.stats;
            let undelivered = records(counts).saturating_sub(records(delivered));
            totals.undelivered_records += undelivered;
            totals.left += undelivered.saturating_sub(records(rejected));
            if parcel.origin == Origin::Present {
                totals.delivered += delivered.items;
                totals.rejected += rejected.items;
                totals.spooled += counts.items.saturating_sub(delivered.items + rejected.items);
            } else {
                totals.recovered += delivered.items;
            }
        }
        totals
    }

    fn put_back(&mut self, parcel: Parcel, batch: Option<Arc<Batch>>) {
        self.synced += 1;
        self.journaled += 1;
        self.kept_bytes += batch.as_ref().map_or(0, |batch| batch.body.len() as u64);
        self.waiting.push_front(Waiting { parcel, batch });
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing)]

    use std::path::{Path, PathBuf};

    use tempfile::TempDir;

    use super::*;
    use crate::actor::Tap;
    use crate::collector::log::{Entry, LogOptions, SeqRange};

    /// What is done to a segment.
    type Harm<'a> = Option<&'a dyn Fn(&Path)>;

    /// A log with one batch of nine items in several segments, of which the first was delivered alone.
    fn in_pieces(dir: &TempDir) -> (Cut, Part) {
        let options = LogOptions { segment_bytes: 150, log_id: 1 };
        let (mut log, _) = RecordLog::open(dir.path(), &JobId::from(7), options).unwrap();
        let items = (0..9).map(|n| log.append_group(&[Entry::Item(format!("{{\"n\": {n}}}").into())]).unwrap());
        let ranges: Vec<_> = items.collect();
        let range = SeqRange { first: ranges[0].first, last: ranges[8].last };
        let cut = Cut { id: BatchId::of(&JobId::from(7), 1, range.first), range };
        log.cut(&cut).unwrap();
        let part = Part { batch: cut.id, first: 0, last: 0, fate: Fate::Delivered };
        log.part(&part).unwrap();
        log.sync().unwrap();
        (cut, part)
    }

    fn segments(dir: &TempDir) -> Vec<PathBuf> {
        let files = std::fs::read_dir(dir.path()).unwrap().map(|file| file.unwrap().path());
        let mut files: Vec<_> = files.filter(|file| file.extension().is_some_and(|end| end == "log")).collect();
        files.sort();
        files
    }

    #[test]
    fn a_batch_in_pieces_goes_on_only_where_all_its_records_are_there() {
        let flip = |file: &Path| {
            let mut bytes = std::fs::read(file).unwrap();
            // In the text of the second of three records.
            bytes[48 + 31 + 15] ^= 1;
            std::fs::write(file, bytes).unwrap();
        };
        let remove = |file: &Path| std::fs::remove_file(file).unwrap();
        let harms: [(usize, Harm<'_>); 3] = [(0, None), (1, Some(&remove)), (1, Some(&flip))];
        for (n, (segment, harm)) in harms.into_iter().enumerate() {
            let dir = TempDir::new().unwrap();
            let (cut, part) = in_pieces(&dir);
            assert!(segments(&dir).len() >= 3);
            if let Some(harm) = harm {
                harm(&segments(&dir)[segment]);
            }
            let courier = Tap::<Order>::new("courier", 4);
            let mut ids = Vec::new();
            // A second start comes to the same.
            for _ in 0..2 {
                let (mut log, recovered) = RecordLog::open(dir.path(), &JobId::from(7), LogOptions::new(2)).unwrap();
                let mut outbox = Outbox::new(JobId::from(7), &recovered);
                outbox.offer(&mut log, &courier.link()).unwrap();
                let (Order::Cut { batch, done }, _) = courier.take().unwrap();
                let whole = harm.is_none();
                assert_eq!((batch.id == cut.id, done.first() == Some(&part)), (whole, whole), "harm {n}");
                assert_eq!((batch.counts.items == 9, done.len()), (whole, recovered.parts.len()), "harm {n}");
                // Its own parts are known at the next start.
                assert_eq!(done.len(), usize::from(whole) + ids.len(), "harm {n}");
                ids.push(batch.id);
                outbox.part(Part { batch: batch.id, first: 1, last: 1, fate: Fate::Delivered });
                outbox.journal(&mut log).unwrap();
                log.flush_writes().unwrap();
                if ids.len() == 2 {
                    outbox.settled(Settled { id: batch.id, counts: batch.counts, how: How::Delivered });
                    outbox.journal(&mut log).unwrap();
                    assert_eq!(log.close().unwrap().cuts, []);
                }
            }
            assert_eq!(ids[0], ids[1]);
        }
    }

    /// A log that was opened again, with two batches of six items each in segments of their own.
    fn two_batches(dir: &TempDir) -> (RecordLog, Outbox) {
        let job = JobId::from(7);
        let (mut log, _) = RecordLog::open(dir.path(), &job, LogOptions { segment_bytes: 400, log_id: 1 }).unwrap();
        for _ in 0..2 {
            let group: Vec<_> =
                (0..6).map(|n| Entry::Item(format!("{{\"n\": {n}, \"text\": \"long enough\"}}").into())).collect();
            let range = log.append_group(&group).unwrap();
            log.cut(&Cut { id: BatchId::of(&job, 1, range.first), range }).unwrap();
        }
        log.sync().unwrap();
        drop(log);
        let (log, recovered) = RecordLog::open(dir.path(), &job, LogOptions::new(2)).unwrap();
        let outbox = Outbox::new(job, &recovered);
        (log, outbox)
    }

    #[test]
    fn a_batch_that_cannot_be_read_any_more_stays_and_the_others_go() {
        let remove = |file: &Path| std::fs::remove_file(file).unwrap();
        let cut_off = |file: &Path| std::fs::File::options().write(true).open(file).unwrap().set_len(100).unwrap();
        let harms: [&dyn Fn(&Path); 2] = [&remove, &cut_off];
        for harm in harms {
            let dir = TempDir::new().unwrap();
            let (mut log, mut outbox) = two_batches(&dir);
            harm(&segments(&dir)[0]);
            let courier = Tap::<Order>::new("courier", 4);
            outbox.offer(&mut log, &courier.link()).unwrap();
            let (Order::Cut { batch, .. }, _) = courier.take().unwrap();
            assert!(courier.take().is_none());
            assert_eq!(outbox.stuck(), None, "the other one is on its way");
            outbox.settled(Settled { id: batch.id, counts: batch.counts, how: How::Delivered });
            outbox.journal(&mut log).unwrap();
            assert!(outbox.is_idle() && outbox.stuck().is_some_and(|why| why.contains("cannot be read")));
            let totals = outbox.finish(&mut log);
            assert_eq!((totals.recovered, totals.left, totals.undelivered_records), (6, 6, 6));
        }
    }

    #[test]
    fn a_directory_that_is_away_is_waited_for() {
        let dir = TempDir::new().unwrap();
        let (mut log, mut outbox) = two_batches(&dir);
        let away = dir.path().with_extension("away");
        std::fs::rename(dir.path(), &away).unwrap();
        let courier = Tap::<Order>::new("courier", 4);
        outbox.offer(&mut log, &courier.link()).unwrap_err();
        std::fs::rename(&away, dir.path()).unwrap();
        outbox.offer(&mut log, &courier.link()).unwrap();
        assert!(courier.take().is_some() && courier.take().is_some());
    }

    #[test]
    fn what_an_earlier_run_left_is_counted_at_the_end_without_a_look_at_it() {
        let dir = TempDir::new().unwrap();
        let (mut log, mut outbox) = two_batches(&dir);
        segments(&dir).iter().for_each(|file| std::fs::remove_file(file).unwrap());
        let totals = outbox.finish(&mut log);
        assert_eq!((totals.left, totals.undelivered_records, totals.spooled), (12, 12, 0));
    }
}
