//! The record log itself: append, flush, sync, mark, read, delete.

use std::collections::VecDeque;
use std::fs::{self, File, TryLockError};
use std::os::unix::fs::FileExt as _;
use std::path::{Path, PathBuf};

use xxhash_rust::xxh3::xxh3_64;

use super::books::Books;
use super::entry::{BatchId, Cut, Entry, Part, SeqRange};
use super::error::LogError;
use super::frame::{self, Frame, Header, MAX_PAYLOAD};
use super::reader::{LogReader, Span};
use super::recover::{self, Recovered};
use super::segment::Segment;
use crate::apcloudy::JobId;

/// Gathered groups are written at the latest when they reach this size.
const WRITE_AT_BYTES: usize = 1024 * 1024;

/// How the log behaves.
#[derive(Debug, Clone, Copy)]
pub struct LogOptions {
    /// A segment is closed before it grows beyond this size, unless one group is larger. Bytes.
    pub segment_bytes: u64,
    /// A random number that no other opening of a log uses: batches that are cut from now on get their ids from it.
    pub log_id: u64,
}

impl LogOptions {
    /// The usual sizes: segments of 8 MiB. `log_id` must be random: it keeps the batch ids of two runs of one job
    /// apart.
    #[must_use]
    pub const fn new(log_id: u64) -> Self {
        Self { segment_bytes: 8 * 1024 * 1024, log_id }
    }
}

/// An append-only, checksummed log of records in a directory that one process owns.
///
/// The order of work for a turn: any number of [`append_group`](Self::append_group), one
/// [`flush_writes`](Self::flush_writes) (from then on the groups survive a kill of the process), and before a batch
/// is sent for the first time [`sync`](Self::sync).
#[derive(Debug)]
pub struct RecordLog {
    dir: PathBuf,
    /// Held for its lock.
    _lock: File,
    options: LogOptions,
    job_hash: u64,
    segments: VecDeque<Segment>,
    /// The newest segment's file, once something was appended since opening.
    active: Option<File>,
    pending: Vec<u8>,
    stalled: bool,
    next_seq: u64,
    books: Books,
    unsynced: Unsynced,
}

#[derive(Debug, Default)]
struct Unsynced {
    /// Segments that were closed since the last sync.
    closed: Vec<(PathBuf, File)>,
    active: bool,
    dir: bool,
}

impl RecordLog {
    /// Opens or creates the log of a job in a directory and tells what it held.
    ///
    /// # Errors
    /// [`LogError::Locked`] when another process has it, [`LogError::OtherJob`] and [`LogError::NewerFormat`] when
    /// its segments are not ours, [`LogError::Io`] when one cannot be opened and read (nothing is changed then), and
    /// for the rest. Damage is no error: every readable frame is used, the damaged file is set aside and reported.
    pub fn open(dir: &Path, job: &JobId, options: LogOptions) -> Result<(Self, Recovered), LogError> {
        fs::create_dir_all(dir).map_err(LogError::io("create", dir))?;
        let lock = lock(dir)?;
        let job_hash = xxh3_64(job.to_string().as_bytes());
        let scan = recover::scan(dir, job, job_hash, options.log_id)?;
        let mut report = scan.report;
        let mut log = Self {
            dir: dir.to_owned(),
            _lock: lock,
            options,
            job_hash,
            segments: scan.segments.into(),
            active: None,
            pending: Vec::new(),
            stalled: false,
            next_seq: scan.next_seq,
            books: scan.books,
            unsynced: Unsynced::default(),
        };
        log.cut_orphans(job)?;
        report.ends = log.books.ends();
        report.cuts = log.books.cuts();
        report.parts = log.books.parts();
        report.uncut = log.uncut();
        Ok((log, report))
    }

    /// The number that makes this log's batch ids its own.
    #[must_use]
    pub fn log_id(&self) -> u64 {
        self.options.log_id
    }

    /// Adds a group: after a crash all of it is there or none. It is in memory until the next flush; a flush also
    /// happens here when a MiB is waiting or a segment is full.
    ///
    /// # Errors
    /// [`LogError::EmptyGroup`], [`LogError::TooLarge`], [`LogError::Stalled`] after a failed flush, [`LogError::Io`]
    /// when writing failed. The group is not in the log then.
    pub fn append_group(&mut self, entries: &[Entry<'_>]) -> Result<SeqRange, LogError> {
        let mut size = 0;
        for entry in entries {
            let bytes = entry.record().map_or(0, |(_, text)| text.len());
            if bytes > MAX_PAYLOAD {
                return Err(LogError::TooLarge { bytes, limit: MAX_PAYLOAD });
            }
            size += bytes + frame::FRAME_BYTES;
        }
        let Some(last) = entries.len().checked_sub(1) else {
            return Err(LogError::EmptyGroup);
        };
        self.make_room(size)?;
        let first = self.next_seq;
        for (i, entry) in entries.iter().enumerate() {
            self.encode(&Frame::Entry(entry.by_ref()), i == last);
        }
        Ok(SeqRange { first, last: self.next_seq - 1 })
    }

    /// Whether appending this group writes out what was appended before: from then on that survives a kill.
    #[must_use]
    pub fn writes_before(&self, entries: &[Entry<'_>]) -> bool {
        let size: usize = entries.iter().map(|entry| entry.record().map_or(0, |(_, text)| text.len()) + frame::FRAME_BYTES).sum();
        !self.pending.is_empty() && (self.is_full_for(size) || self.pending.len() >= WRITE_AT_BYTES)
    }

    /// Journals a batch before it is first sent.
    ///
    /// # Errors
    /// [`LogError::BadCut`] when the batch leaves out a record or names numbers that are not there; else as
    /// [`append_group`](Self::append_group).
    pub fn cut(&mut self, cut: &Cut) -> Result<(), LogError> {
        let SeqRange { first, last } = cut.range;
        let newest = self.next_seq - 1;
        let oldest_uncut = self.books.uncut().map_or(newest, |(first, _)| first);
        let from = self.books.cut_up_to() + 1;
        if first < from || first > oldest_uncut || last < first || last > newest {
            return Err(LogError::BadCut { id: cut.id, first, last, from, to: newest });
        }
        self.mark(&Frame::Cut(*cut))
    }

    /// Notes that the sink has a batch, or that what it refused was put aside.
    ///
    /// # Errors
    /// [`LogError::UnknownBatch`] when it is not waiting; else as [`append_group`](Self::append_group).
    pub fn delivered(&mut self, id: BatchId) -> Result<(), LogError> {
        let cut = self.books.find(id).ok_or(LogError::UnknownBatch { id })?;
        self.mark(&Frame::Delivered { id, last: cut.range.last })
    }

    /// Notes what became of a part of a batch that is sent piece by piece. [`delivered`](Self::delivered) follows when
    /// the last part is through.
    ///
    /// # Errors
    /// [`LogError::UnknownBatch`] when the batch is not waiting; else as [`append_group`](Self::append_group).
    pub fn part(&mut self, part: &Part) -> Result<(), LogError> {
        self.books.find(part.batch).ok_or(LogError::UnknownBatch { id: part.batch })?;
        self.mark(&Frame::Part(*part))
    }

    /// Notes that the frontier has persisted the settle of the end with this number. The mark reaches the log with
    /// a later flush; until then the end is reported again at open, which is harmless.
    pub fn mark_settled(&mut self, seq: u64) {
        self.books.settle(seq);
    }

    /// Writes all gathered groups with one call to the system. Once it returns they survive `kill -9`.
    ///
    /// # Errors
    /// [`LogError::Io`]: the groups stay in memory and the next flush writes them; until one succeeds nothing can
    /// be appended.
    pub fn flush_writes(&mut self) -> Result<(), LogError> {
        if self.pending.is_empty() {
            return Ok(());
        }
        if let Some(up_to) = self.books.settle_mark_due()
            && !self.stalled
        {
            self.encode(&Frame::Settled { up_to }, true);
        }
        self.write_pending()
    }

    /// Flushes and makes everything survive a power cut.
    ///
    /// # Errors
    /// [`LogError::Io`]; what was not synced stays due. A system may forget what it failed to sync, so a repetition
    /// that succeeds promises nothing about a power cut: say so and go on, the records survive the process.
    pub fn sync(&mut self) -> Result<(), LogError> {
        self.flush_writes()?;
        while let Some((path, file)) = self.unsynced.closed.last() {
            file.sync_data().map_err(LogError::io("sync", path))?;
            self.unsynced.closed.pop();
        }
        if self.unsynced.active
            && let (Some(file), Some(segment)) = (&self.active, self.segments.back())
        {
            file.sync_data().map_err(LogError::io("sync", &segment.path))?;
        }
        self.unsynced.active = false;
        if self.unsynced.dir {
            File::open(&self.dir).and_then(|dir| dir.sync_all()).map_err(LogError::io("sync", &self.dir))?;
            self.unsynced.dir = false;
        }
        Ok(())
    }

    /// Whether a power cut could lose something.
    #[must_use]
    pub fn needs_sync(&self) -> bool {
        !self.pending.is_empty() || self.unsynced.active || self.unsynced.dir || !self.unsynced.closed.is_empty()
    }

    /// Reads the entries of a range again. Flushes first.
    ///
    /// # Errors
    /// [`LogError::Io`] when the flush fails.
    pub fn read(&mut self, range: SeqRange) -> Result<LogReader, LogError> {
        self.flush_writes()?;
        let spans = self
            .segments
            .iter()
            .filter(|segment| segment.first <= range.last && segment.last >= range.first)
            .map(|segment| Span { path: segment.path.clone(), offset: segment.offset_before(range.first), end: segment.bytes })
            .collect();
        Ok(LogReader::new(range, spans))
    }

    /// Removes the oldest segments as long as every record in them is delivered and every end settled. Gives the
    /// number of bytes freed. The newest segment stays: it carries the numbering on.
    ///
    /// # Errors
    /// [`LogError::Io`]; the segment stays and is tried again.
    pub fn delete_delivered(&mut self) -> Result<u64, LogError> {
        self.delete_but(1)
    }

    /// Ends the log: syncs, and removes every segment when nothing in them is needed. Tells what is left.
    ///
    /// # Errors
    /// [`LogError::Io`]; what is on disk is still good.
    pub fn close(mut self) -> Result<Recovered, LogError> {
        if let Some(up_to) = self.books.settle_mark_due()
            && !self.stalled
        {
            self.mark(&Frame::Settled { up_to })?;
        }
        self.sync()?;
        if self.books.is_clear() {
            self.active = None;
            self.delete_but(0)?;
        }
        Ok(Recovered {
            ends: self.books.ends(),
            cuts: self.books.cuts(),
            parts: self.books.parts(),
            uncut: self.uncut(),
            ..Recovered::default()
        })
    }

    /// Bytes of all segments, written or waiting.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        self.segments.iter().map(|segment| segment.bytes).sum::<u64>() + self.pending.len() as u64
    }

    /// How many records a waiting batch holds; 0 for any other.
    #[must_use]
    pub fn records_of(&self, cut: &Cut) -> u64 {
        self.books.records_of(cut)
    }

    /// Bytes on disk, or on the way there, that wait for the sink: of the segment with the oldest record it does not
    /// have, and of all after it. 0 when it has everything.
    #[must_use]
    pub fn held_bytes(&self) -> u64 {
        let Some(oldest) = self.books.oldest_undelivered() else { return 0 };
        let held = self.segments.iter().filter(|segment| segment.last >= oldest).map(|segment| segment.bytes);
        held.sum::<u64>() + self.pending.len() as u64
    }

    /// Makes the next write fail, or work again.
    #[cfg(test)]
    pub(super) fn break_file_for_test(&mut self, broken: bool) {
        let path = self.segments.back().map(|s| s.path.clone()).unwrap_or_default();
        self.active = File::options().read(true).write(!broken).open(path).ok();
    }

    fn uncut(&self) -> Option<SeqRange> {
        self.books.uncut().map(|(first, last)| SeqRange { first, last })
    }

    /// Records whose cut was lost while a later one was not get batches of their own: nothing else may lie in the
    /// range of a batch.
    fn cut_orphans(&mut self, job: &JobId) -> Result<(), LogError> {
        let orphans = self.books.orphans();
        for range in &orphans {
            let id = BatchId::of(job, self.options.log_id, range.first);
            self.mark(&Frame::Cut(Cut { id, range: *range }))?;
        }
        if !orphans.is_empty() {
            self.books.forget_fences();
            self.sync()?;
        }
        Ok(())
    }

    fn delete_but(&mut self, keep: usize) -> Result<u64, LogError> {
        let (delivered, settled) = (self.books.delivered_up_to(), self.books.settled_up_to());
        let mut freed = 0;
        while self.segments.len() > keep
            && let Some(oldest) = self.segments.front()
            && oldest.is_done(delivered, settled)
        {
            fs::remove_file(&oldest.path).map_err(LogError::io("remove", &oldest.path))?;
            freed += oldest.bytes;
            self.segments.pop_front();
            self.unsynced.dir = true;
        }
        Ok(freed)
    }

    fn mark(&mut self, frame: &Frame<'_>) -> Result<(), LogError> {
        self.make_room(64)?;
        self.encode(frame, true);
        Ok(())
    }

    /// Has an open segment with room for a group, or fails and changes nothing.
    fn make_room(&mut self, size: usize) -> Result<(), LogError> {
        if self.stalled {
            let file = self.segments.back().map(|s| s.path.clone()).unwrap_or_default();
            return Err(LogError::Stalled { file });
        }
        if self.active.is_some() && !self.is_full_for(size) {
            return if self.pending.len() >= WRITE_AT_BYTES { self.write_pending() } else { Ok(()) };
        }
        self.write_pending()?;
        let header = Header {
            first_seq: self.next_seq,
            after_seq: self.segments.back().map_or(0, |s| s.last),
            job_hash: self.job_hash,
            log_id: self.options.log_id,
        };
        let (segment, file) = Segment::create(&self.dir, &header)?;
        if let (Some(closed), Some(segment)) = (self.active.replace(file), self.segments.back()) {
            self.unsynced.closed.push((segment.path.clone(), closed));
        }
        self.segments.push_back(segment);
        self.unsynced.active = true;
        self.unsynced.dir = true;
        Ok(())
    }

    fn is_full_for(&self, size: usize) -> bool {
        let used = self.segments.back().map_or(0, |s| s.bytes) + self.pending.len() as u64;
        used + size as u64 > self.options.segment_bytes && used > frame::HEADER_BYTES as u64
    }

    fn encode(&mut self, frame: &Frame<'_>, last_of_group: bool) {
        let seq = self.next_seq;
        if let Some(segment) = self.segments.back_mut() {
            segment.note(seq, segment.bytes + self.pending.len() as u64, frame);
        }
        frame::encode(&mut self.pending, seq, frame, last_of_group);
        self.books.note(seq, frame);
        self.next_seq += 1;
    }

    fn write_pending(&mut self) -> Result<(), LogError> {
        if self.pending.is_empty() {
            return Ok(());
        }
        let (Some(file), Some(segment)) = (&self.active, self.segments.back_mut()) else {
            return Ok(());
        };
        // At its place and not at the end: a repetition overwrites what a failed write left behind.
        self.stalled = true;
        file.write_all_at(&self.pending, segment.bytes).map_err(LogError::io("write", &segment.path))?;
        self.stalled = false;
        segment.bytes += self.pending.len() as u64;
        self.pending.clear();
        self.unsynced.active = true;
        Ok(())
    }
}

fn lock(dir: &Path) -> Result<File, LogError> {
    let path = dir.join("lock");
    let file = File::options().create(true).truncate(false).write(true).open(&path).map_err(LogError::io("open", &path))?;
    match file.try_lock() {
        Ok(()) => Ok(file),
        Err(TryLockError::WouldBlock) => Err(LogError::Locked { dir: dir.to_owned() }),
        Err(TryLockError::Error(source)) => Err(LogError::io("lock", &path)(source)),
    }
}
