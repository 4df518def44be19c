//! One file of the record log, as kept in memory.

use std::fs::File;
use std::os::unix::fs::FileExt as _;
use std::path::{Path, PathBuf};

use super::entry::Entry;
use super::error::LogError;
use super::frame::{Frame, HEADER_BYTES, Header, MAX_FIRST};
use super::survey::Limits;

/// Frames between two noted offsets lie at most this far apart, or are a single one.
const MARK_EVERY: u64 = 128 * 1024;

/// A segment's place, content and size. Bytes that are not yet written are not counted.
#[derive(Debug)]
pub(super) struct Segment {
    pub(super) path: PathBuf,
    pub(super) first: u64,
    /// The newest number, or the one before the first.
    pub(super) last: u64,
    pub(super) bytes: u64,
    last_record: u64,
    last_end: u64,
    /// Number and offset of some frames, ascending.
    marks: Vec<(u64, u64)>,
}

impl Segment {
    pub(super) fn new(path: PathBuf, first: u64) -> Self {
        Self {
            path,
            first,
            last: first.saturating_sub(1),
            bytes: HEADER_BYTES as u64,
            last_record: 0,
            last_end: 0,
            marks: Vec::new(),
        }
    }

    /// Creates the file with its header.
    pub(super) fn create(dir: &Path, header: &Header) -> Result<(Self, File), LogError> {
        let path = dir.join(file_name(header.first_seq));
        let file = File::create_new(&path).map_err(LogError::io("create", &path))?;
        if let Err(source) = file.write_all_at(&header.encode(), 0) {
            // An empty file would only be reported as torn at the next start.
            let _ = std::fs::remove_file(&path);
            return Err(LogError::io("write", &path)(source));
        }
        Ok((Self::new(path, header.first_seq), file))
    }

    pub(super) fn note(&mut self, seq: u64, offset: u64, frame: &Frame<'_>) {
        self.last = frame.through(seq);
        match frame {
            Frame::Entry(Entry::End(_)) => self.last_end = seq,
            Frame::Entry(_) => self.last_record = seq,
            _ => {}
        }
        if self.marks.last().is_none_or(|(_, at)| offset - at >= MARK_EVERY) {
            self.marks.push((seq, offset));
        }
    }

    /// What the number of the next frame is believed to be.
    pub(super) const fn next_limits(&self) -> Limits {
        Limits::after(self.last)
    }

    /// An offset from which reading reaches the number.
    pub(super) fn offset_before(&self, seq: u64) -> u64 {
        let after = self.marks.partition_point(|(marked, _)| *marked <= seq);
        let mark = after.checked_sub(1).and_then(|i| self.marks.get(i));
        mark.map_or(HEADER_BYTES as u64, |(_, offset)| *offset)
    }

    pub(super) fn is_done(&self, delivered_up_to: u64, settled_up_to: u64) -> bool {
        self.last_record <= delivered_up_to && self.last_end <= settled_up_to
    }
}

pub(super) fn file_name(first_seq: u64) -> String {
    format!("seg-{first_seq:020}.log")
}

/// The first number in a segment's name; none for any other file.
pub(super) fn first_of_name(name: &str) -> Option<u64> {
    let digits = name.strip_prefix("seg-")?.strip_suffix(".log")?;
    let first = (digits.len() == 20).then(|| digits.parse().ok()).flatten()?;
    (1..=MAX_FIRST).contains(&first).then_some(first)
}
