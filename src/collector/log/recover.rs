//! Opening a directory: what is there, what is whole, what is set aside.
//!
//! A write that was interrupted at the end of the newest segment is what a crash leaves behind and is cut off.
//! Anything else that does not read is damage: the file is set aside, and a good segment with every readable frame
//! takes its place. The report names file, offset and how much is gone. Opening a second time finds nothing more.

use std::fs::{self, File};
use std::path::{Path, PathBuf};

use super::books::Books;
use super::entry::{BatchId, Cut, End, Part, SeqRange};
use super::error::LogError;
use super::frame::{FRAME_BYTES, Frame, HEADER_BYTES, Header, HeaderRead, VERSION};
use super::salvage::{self, DAMAGED, Plan, Rewrite, UNFINISHED};
use super::segment::{Segment, file_name, first_of_name};
use super::survey::{Survey, Tail, Window};
use crate::apcloudy::JobId;

/// How many records before a delivery are tried as the first of its batch.
const LARGEST_BATCH: usize = 10_000;

/// More numbers than gaps in one segment stand for.
const MARGIN: u64 = 1 << 24;

/// What a directory held when it was opened.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub struct Recovered {
    /// Ends without a settle mark, with their numbers: settle them, do not fetch them again.
    pub ends: Vec<(u64, End)>,
    /// Batches that were cut and not delivered: they go out again with the same id and range.
    pub cuts: Vec<Cut>,
    /// What became of parts of those batches, by batch and in the order they were noted: these are not sent again.
    pub parts: Vec<Part>,
    /// Records in no batch yet.
    pub uncut: Option<SeqRange>,
    /// What a crash left at the end, already cut off.
    pub torn: Option<TornTail>,
    /// What did not read and was set aside.
    pub damaged: Vec<Damage>,
    /// Segments that are not there. They are named once.
    pub missing: Vec<Missing>,
    /// Numbers that are gone, as far as known: in damaged and in missing segments.
    pub lost: u64,
    /// Files set aside now or at an earlier start.
    pub set_aside: Vec<PathBuf>,
}

/// An unfinished write at the end of the newest segment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TornTail {
    /// The segment.
    pub file: PathBuf,
    /// How many bytes were cut off.
    pub bytes: u64,
}

/// A segment that did not read as a whole, and was replaced by one with all its readable frames.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Damage {
    /// The segment.
    pub file: PathBuf,
    /// The first byte that does not carry on what comes before it.
    pub offset: u64,
    /// How many bytes were not used, here or further on.
    pub bytes: u64,
    /// How many numbers are gone, as far as known: those of records, ends and the log's own marks.
    pub lost: u64,
    /// The copy of the file as it was found.
    pub set_aside: PathBuf,
}

/// Numbers that should be there and are not.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Missing {
    /// The last number before the gap.
    pub after: u64,
    /// The last number of the gap.
    pub up_to: u64,
}

/// What opening hands to the log.
#[derive(Debug)]
pub(super) struct Scan<'a> {
    dir: &'a Path,
    job: &'a JobId,
    job_hash: u64,
    /// For segments whose own id is gone.
    log_id: u64,
    /// No number above this one was written.
    horizon: u64,
    /// Ids that batches may come from.
    log_ids: Vec<u64>,
    /// The last number that was read or is known to be gone.
    last: u64,
    pub(super) segments: Vec<Segment>,
    pub(super) books: Books,
    /// Above every number that may have been used.
    pub(super) next_seq: u64,
    pub(super) report: Recovered,
}

/// A segment before its frames are looked at.
#[derive(Debug)]
struct Candidate {
    path: PathBuf,
    named: u64,
    header: HeaderRead,
}

/// What is known of the segment that follows.
#[derive(Debug, Clone, Copy)]
struct Next {
    first: u64,
    /// The last number before it, if its header reads.
    after: Option<u64>,
}

pub(super) fn scan<'a>(dir: &'a Path, job: &'a JobId, job_hash: u64, log_id: u64) -> Result<Scan<'a>, LogError> {
    let mut scan = Scan {
        dir,
        job,
        job_hash,
        log_id,
        horizon: 0,
        log_ids: Vec::new(),
        last: 0,
        segments: Vec::new(),
        books: Books::default(),
        next_seq: 1,
        report: Recovered::default(),
    };
    let (names, unfinished) = list(dir, &mut scan.report)?;
    // Nothing is changed before every segment is known to be ours.
    let mut files = Vec::with_capacity(names.len());
    for (named, path) in names {
        let header = check_owner(&path, job_hash)?;
        let bytes = fs::metadata(&path).map_err(LogError::io("read", &path))?.len();
        let file = Candidate { path, named, header };
        scan.horizon = scan.horizon.max(file.first() + bytes / FRAME_BYTES as u64 + MARGIN);
        files.push(file);
    }
    for path in unfinished {
        salvage::remove(&path)?;
    }
    // A file under a wrong name has its place where its numbers belong, behind the one with the right name.
    files.sort_by_key(|file| (file.first(), file.is_misnamed(), file.named));
    let mut files = files.into_iter().peekable();
    while let Some(file) = files.next() {
        scan.segment(file, files.peek().map(Candidate::as_next))?;
    }
    scan.report.lost = scan.report.damaged.iter().map(|damage| damage.lost).sum::<u64>()
        + scan.report.missing.iter().map(|missing| missing.up_to - missing.after).sum::<u64>();
    Ok(scan)
}

impl Candidate {
    fn good(&self) -> Option<Header> {
        match self.header {
            HeaderRead::Good(header) => Some(header),
            _ => None,
        }
    }

    fn first(&self) -> u64 {
        self.good().map_or(self.named, |header| header.first_seq)
    }

    fn is_misnamed(&self) -> bool {
        self.first() != self.named
    }

    fn as_next(&self) -> Next {
        Next { first: self.first(), after: self.good().map(|header| header.after_seq) }
    }
}

impl Scan<'_> {
    fn segment(&mut self, file: Candidate, next: Option<Next>) -> Result<(), LogError> {
        if let Some(header) = file.good() {
            if header.after_seq > self.last && !self.segments.is_empty() {
                self.missing(header.after_seq)?;
            }
            self.log_ids.push(header.log_id);
        }
        let mut window = Window::open(&file.path)?;
        let start = if file.good().is_some() { HEADER_BYTES as u64 } else { 0 };
        let survey = Survey::of(&mut window, start, file.first(), self.last)?;
        let whole = file.good().is_some() && !file.is_misnamed() && file.first() > self.last && survey.hole.is_none();
        let path = match survey.tail {
            Tail::Clean if whole => Some(file.path),
            // Every frame before it is followed by a segment: what does not read was whole once.
            Tail::Torn { .. } if whole && next.is_some() && survey.rest == window.len() => Some(file.path),
            Tail::Torn { offset, .. } if whole && next.is_none() => {
                salvage::truncate(&file.path, offset)?;
                self.torn(&file.path, window.len() - offset);
                Some(file.path)
            }
            _ if next.is_none() && file.header == HeaderRead::Short => {
                let path = self.replace(&file, None, &survey, &mut window)?.0;
                self.torn(&file.path, window.len());
                path
            }
            _ => {
                let copy = salvage::set_aside(&file.path)?;
                let (path, lost, used) = self.replace(&file, next, &survey, &mut window)?;
                let offset = if start == 0 || file.is_misnamed() { 0 } else { survey.hole.unwrap_or(survey.rest) };
                let bytes = salvage::unused(window.len(), used, start > 0);
                if !self.report.set_aside.contains(&copy) {
                    self.report.set_aside.push(copy.clone());
                }
                self.report.damaged.push(Damage { file: file.path, offset, bytes, lost, set_aside: copy });
                path
            }
        };
        if let Some(path) = path {
            self.load(path)?;
        }
        Ok(())
    }

    /// Names what is missing, and puts a segment in its place that says so.
    fn missing(&mut self, up_to: u64) -> Result<(), LogError> {
        let after = self.last;
        self.report.missing.push(Missing { after, up_to });
        let path = self.dir.join(file_name(after + 1));
        // A segment that was cut off behind its header may stand there already.
        if self.segments.pop_if(|segment| segment.path == path).is_none() && path.exists() {
            // Another segment under a wrong name: what is missing is named again next time.
            return Ok(());
        }
        let header = Header { first_seq: after + 1, after_seq: after, job_hash: self.job_hash, log_id: self.log_id };
        let mut new = Rewrite::begin(self.dir, &Plan { header, runs: &[], keep: 0, found: self.horizon }, None)?;
        new.gap(up_to)?;
        new.finish(&path, &path)?;
        self.load(path)
    }

    fn torn(&mut self, file: &Path, bytes: u64) {
        // Numbers in bytes that were not read may have been used.
        self.next_seq = self.next_seq.max(self.last + 1) + bytes / FRAME_BYTES as u64;
        self.report.torn = Some(TornTail { file: file.to_owned(), bytes });
    }

    /// Writes a good segment in the place of a damaged one, if there is anything to keep. Gives its path, how many
    /// numbers are gone and how many bytes were used.
    fn replace(
        &self,
        file: &Candidate,
        next: Option<Next>,
        survey: &Survey,
        window: &mut Window,
    ) -> Result<(Option<PathBuf>, u64, u64), LogError> {
        let begins = survey.runs.first().map_or(u64::MAX, |run| run.first);
        let first_seq = file.first().max(self.last + 1).min(begins);
        let (after_seq, log_id) = file.good().map_or((self.last, self.log_id), |header| (header.after_seq, header.log_id));
        let header = Header { first_seq, after_seq: after_seq.min(first_seq - 1), job_hash: self.job_hash, log_id };
        let keep = match survey.tail {
            Tail::Torn { last, .. } if next.is_none() => Some(last),
            _ => None,
        };
        let plan = Plan { header, runs: &survey.runs, keep: keep.unwrap_or(u64::MAX), found: self.horizon };
        let mut new = Rewrite::begin(self.dir, &plan, Some(window))?;
        let last = new.last;
        let unread = (window.len().saturating_sub(survey.rest) / FRAME_BYTES as u64).max(survey.known);
        match (next, keep) {
            // It never got as far as holding anything.
            (None, _) if file.header == HeaderRead::Short => {}
            // What was cut off never happened, but what was lost before it did.
            (None, Some(keep)) => {
                new.gap(keep)?;
                let cut_off = survey.runs.last().map_or(0, |run| run.last.saturating_sub(new.last));
                new.reserve(new.last + cut_off + unread.max(1), 0)?;
            }
            // The gap also ends a group whose end is gone, and keeps numbers that may have been used from coming back.
            (None, None) => new.reserve(last + unread.max(1), survey.known)?,
            (Some(Next { after: Some(after), .. }), _) => new.gap(after)?,
            (Some(Next { first, after: None }), _) => {
                let up_to = (last + unread).min(first.saturating_sub(1));
                new.reserve(up_to, survey.known.min(up_to.saturating_sub(last)))?;
            }
        }
        let (lost, used) = (new.lost, new.used);
        if new.is_empty() && next.is_some() {
            new.discard(&file.path)?;
            return Ok((None, lost, used));
        }
        let path = self.dir.join(file_name(first_seq));
        new.finish(&file.path, &path)?;
        Ok((Some(path), lost, used))
    }

    /// Notes every frame of a good segment.
    fn load(&mut self, path: PathBuf) -> Result<(), LogError> {
        let mut window = Window::open(&path)?;
        let HeaderRead::Good(header) = Header::decode(window.bytes(0, HEADER_BYTES)?) else {
            return Err(LogError::Damaged { file: path, offset: 0 });
        };
        let mut segment = Segment::new(path, header.first_seq);
        let mut at = HEADER_BYTES as u64;
        while at < window.len() {
            let Some(found) = window.decode(at, segment.next_limits())?.filter(|found| found.seq == segment.last + 1) else {
                return Err(LogError::Damaged { file: segment.path, offset: at });
            };
            if let Frame::Gap { found: before, .. } = found.frame {
                // What is cut from now on is cut in the knowledge of the gap.
                self.next_seq = self.next_seq.max(before + 1);
            }
            if let Frame::Delivered { id, last } = found.frame
                && let Some(cut) = self.lost_cut(id, last)
            {
                self.books.note(found.seq, &Frame::Cut(cut));
            }
            segment.note(found.seq, at, &found.frame);
            self.books.note(found.seq, &found.frame);
            at += found.size as u64;
        }
        segment.bytes = at;
        self.last = segment.last;
        // A segment without frames keeps its name: the next one needs another.
        self.next_seq = self.next_seq.max(self.last.max(segment.first) + 1);
        self.segments.push(segment);
        Ok(())
    }

    /// The cut of a delivered batch when damage took the cut and left the delivery: its first number gives the id.
    fn lost_cut(&self, id: BatchId, last: u64) -> Option<Cut> {
        if self.books.knows(id) {
            return None;
        }
        let is_it = |first: &u64| self.log_ids.iter().any(|log_id| BatchId::of(self.job, *log_id, *first) == id);
        let first = self.books.uncut_back_from(last).take(LARGEST_BATCH).find(is_it)?;
        Some(Cut { id, range: SeqRange { first, last } })
    }
}

fn check_owner(path: &Path, job_hash: u64) -> Result<HeaderRead, LogError> {
    use std::io::Read as _;
    let mut start = Vec::with_capacity(HEADER_BYTES);
    File::open(path)
        .and_then(|file| file.take(HEADER_BYTES as u64).read_to_end(&mut start))
        .map_err(LogError::io("read", path))?;
    let file = || path.to_owned();
    match Header::decode(&start) {
        HeaderRead::Newer(found) => Err(LogError::NewerFormat { file: file(), found, supported: VERSION }),
        HeaderRead::Good(header) if header.job_hash != job_hash => Err(LogError::OtherJob { file: file() }),
        read => Ok(read),
    }
}

type Segments = Vec<(u64, PathBuf)>;

/// Segments, and files whose writing was interrupted.
fn list(dir: &Path, report: &mut Recovered) -> Result<(Segments, Vec<PathBuf>), LogError> {
    let (mut segments, mut unfinished) = (Vec::new(), Vec::new());
    for file in fs::read_dir(dir).map_err(LogError::io("list", dir))? {
        let file = file.map_err(LogError::io("list", dir))?;
        let name = file.file_name();
        let name = name.to_string_lossy();
        if let Some(first) = first_of_name(&name) {
            segments.push((first, file.path()));
        } else if name.starts_with("seg-") && name.ends_with(UNFINISHED) {
            unfinished.push(file.path());
        } else if name.ends_with(DAMAGED) {
            report.set_aside.push(file.path());
        }
    }
    segments.sort_unstable();
    report.set_aside.sort_unstable();
    Ok((segments, unfinished))
}
