//! Opening a directory: what is there, what is whole, what is set aside.
//!
//! A torn tail of the newest segment is what a crash leaves behind and is cut off. Anything else that does not
//! read is damage: the file is copied to `<name>.damaged`, the segment keeps its whole groups before the damage,
//! and the report names file and offset.

use std::fs::{self, File};
use std::path::{Path, PathBuf};

use super::books::Books;
use super::entry::{Cut, End, Part, SeqRange};
use super::error::LogError;
use super::frame::{self, FRAME_BYTES, HEADER_BYTES, Head, Header, HeaderRead, VERSION};
use super::segment::{Segment, first_of_name};

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
    /// Segments that are not there.
    pub missing: Vec<Missing>,
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

/// A part of a segment that did not read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Damage {
    /// The segment.
    pub file: PathBuf,
    /// The first byte that is not part of a whole group.
    pub offset: u64,
    /// How many bytes from there on are not used.
    pub bytes: u64,
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
#[derive(Debug, Default)]
pub(super) struct Scan {
    pub(super) segments: Vec<Segment>,
    pub(super) books: Books,
    /// Above every number that may have been used.
    pub(super) next_seq: u64,
    /// The id of the newest segment.
    pub(super) log_id: Option<u64>,
    pub(super) report: Recovered,
}

pub(super) fn scan(dir: &Path, job_hash: u64) -> Result<Scan, LogError> {
    let mut scan = Scan { next_seq: 1, ..Scan::default() };
    let names = list(dir, &mut scan.report)?;
    // Nothing is changed before every segment is known to be ours.
    let mut files = Vec::with_capacity(names.len());
    for (first, path) in names {
        let header = check_owner(&path, job_hash)?;
        files.push((first, path, header));
    }
    let newest = files.len().saturating_sub(1);
    for (i, (first, path, header)) in files.into_iter().enumerate() {
        scan.segment(first, path, header, i == newest)?;
    }
    let report = &mut scan.report;
    report.ends = scan.books.ends();
    report.cuts = scan.books.cuts();
    report.parts = scan.books.parts();
    report.uncut = scan.books.uncut().map(|(first, last)| SeqRange { first, last });
    Ok(scan)
}

impl Scan {
    fn segment(&mut self, first: u64, path: PathBuf, header: HeaderRead, newest: bool) -> Result<(), LogError> {
        let bytes = fs::read(&path).map_err(LogError::io("read", &path))?;
        let header = match header {
            HeaderRead::Good(header) if header.first_seq == first => header,
            HeaderRead::Short if newest => {
                self.skip(first.saturating_sub(1), bytes.len());
                fs::remove_file(&path).map_err(LogError::io("remove", &path))?;
                self.report.torn = Some(TornTail { file: path, bytes: bytes.len() as u64 });
                return Ok(());
            }
            _ => {
                self.skip(first.saturating_sub(1), bytes.len());
                self.set_aside(&path, 0, bytes.len())?;
                return fs::remove_file(&path).map_err(LogError::io("remove", &path));
            }
        };
        if let Some(previous) = self.segments.last()
            && header.after_seq > previous.last
        {
            self.report.missing.push(Missing { after: previous.last, up_to: header.after_seq });
        }
        self.log_id = Some(header.log_id);
        let mut segment = Segment::new(path, first);
        let (good, tail) = self.groups(&mut segment, &bytes);
        segment.bytes = good as u64;
        self.skip(segment.last, bytes.len() - good);
        match tail {
            Tail::Clean => {}
            Tail::Torn if newest => {
                truncate(&segment.path, good)?;
                self.report.torn = Some(TornTail { file: segment.path.clone(), bytes: (bytes.len() - good) as u64 });
            }
            Tail::Torn | Tail::Damaged => {
                self.set_aside(&segment.path, good, bytes.len() - good)?;
                truncate(&segment.path, good)?;
            }
        }
        if segment.last < segment.first {
            // Its name is that of the segment that will follow.
            return fs::remove_file(&segment.path).map_err(LogError::io("remove", &segment.path));
        }
        self.segments.push(segment);
        Ok(())
    }

    /// Notes every whole group; gives the end of the last one and what follows it.
    fn groups(&mut self, segment: &mut Segment, bytes: &[u8]) -> (usize, Tail) {
        let mut good = HEADER_BYTES;
        let mut at = good;
        let mut expected = segment.first;
        let mut group = Vec::new();
        while let Some(frame) = frame::decode(bytes.get(at..).unwrap_or_default()).filter(|f| f.seq == expected) {
            let (size, last) = (frame.size, frame.last_of_group);
            group.push((at as u64, frame));
            at += size;
            expected += 1;
            if last {
                good = at;
                for (offset, frame) in group.drain(..) {
                    segment.note(frame.seq, offset, &frame.frame);
                    self.books.note(frame.seq, &frame.frame);
                }
            }
        }
        let rest = bytes.get(at..).unwrap_or_default();
        let tail = if good == bytes.len() {
            Tail::Clean
        } else if looks_damaged(rest, expected) {
            Tail::Damaged
        } else {
            Tail::Torn
        };
        (good, tail)
    }

    /// Numbers in bytes that cannot be read may have been used: no batch id may repeat, so none is given again.
    fn skip(&mut self, last: u64, unread: usize) {
        let unread = (unread / FRAME_BYTES) as u64;
        self.next_seq = self.next_seq.max(last + unread + 1);
    }

    fn set_aside(&mut self, path: &Path, offset: usize, bytes: usize) -> Result<(), LogError> {
        let copy = free_name(path);
        let unfinished = copy.with_extension("copying");
        fs::copy(path, &unfinished).map_err(LogError::io("copy to", &unfinished))?;
        File::open(&unfinished)
            .and_then(|file| file.sync_all())
            .and_then(|()| fs::rename(&unfinished, &copy))
            .map_err(LogError::io("write", &copy))?;
        self.report.set_aside.push(copy.clone());
        self.report.damaged.push(Damage { file: path.to_owned(), offset: offset as u64, bytes: bytes as u64, set_aside: copy });
        Ok(())
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Tail {
    Clean,
    Torn,
    Damaged,
}

/// A crash leaves an unfinished frame or rubbish with nothing after it. A complete frame that does not check, or a
/// good frame further on, is something else.
fn looks_damaged(rest: &[u8], expected: u64) -> bool {
    let complete = Head::decode(rest).is_some_and(|head| head.seq == expected && head.frame_bytes() <= rest.len());
    let later = expected..=expected + (rest.len() / FRAME_BYTES) as u64 + 1;
    complete
        || (0..rest.len()).any(|at| {
            let here = rest.get(at..).unwrap_or_default();
            Head::decode(here).is_some_and(|head| later.contains(&head.seq)) && frame::decode(here).is_some()
        })
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

fn list(dir: &Path, report: &mut Recovered) -> Result<Vec<(u64, PathBuf)>, LogError> {
    let mut segments = Vec::new();
    for file in fs::read_dir(dir).map_err(LogError::io("list", dir))? {
        let file = file.map_err(LogError::io("list", dir))?;
        let name = file.file_name();
        let name = name.to_string_lossy();
        if let Some(first) = first_of_name(&name) {
            segments.push((first, file.path()));
        } else if name.ends_with(".damaged") {
            report.set_aside.push(file.path());
        }
    }
    segments.sort_unstable();
    report.set_aside.sort_unstable();
    Ok(segments)
}

fn truncate(path: &Path, bytes: usize) -> Result<(), LogError> {
    File::options()
        .write(true)
        .open(path)
        .and_then(|file| file.set_len(bytes as u64).and_then(|()| file.sync_all()))
        .map_err(LogError::io("truncate", path))
}

fn free_name(path: &Path) -> PathBuf {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let mut copy = path.with_file_name(format!("{name}.damaged"));
    let mut n = 1;
    while copy.exists() {
        n += 1;
        copy = path.with_file_name(format!("{name}.{n}.damaged"));
    }
    copy
}
