//! Looking through a segment whose bytes may be anything: which frames are there, and where are holes.
//!
//! It never believes a length or a number without the checksum behind it, holds one window of the file in memory, and
//! reads each byte a bounded number of times. It changes nothing.

use std::fs::File;
use std::os::unix::fs::FileExt as _;
use std::path::{Path, PathBuf};

use super::error::LogError;
use super::frame::{self, Decoded, FRAME_BYTES, HEAD_BYTES, Head};

/// What is read at once, if a frame is not larger.
const CHUNK: usize = 256 * 1024;
/// How far a number may lie beyond the one that is expected: no segment has as many.
const REACH: u64 = 1 << 32;
/// Frames that begin well and do not check may cost this many times the size of the file.
const TRIES: u64 = 16;

/// A file and the part of it that is in memory.
#[derive(Debug)]
pub(super) struct Window {
    path: PathBuf,
    file: File,
    len: u64,
    start: u64,
    buffer: Vec<u8>,
}

/// Which numbers are believed.
#[derive(Debug, Clone, Copy)]
pub(super) struct Limits {
    /// Numbers up to this one were read before.
    pub(super) above: u64,
    pub(super) up_to: u64,
}

impl Limits {
    /// Numbers not far behind one.
    pub(super) const fn after(last: u64) -> Self {
        Self { above: last, up_to: last + REACH }
    }

    fn allow(&self, seq: u64) -> bool {
        self.above < seq && seq <= self.up_to
    }
}

/// A frame that checks.
#[derive(Debug, Clone, Copy)]
pub(super) struct Found {
    pub(super) at: u64,
    pub(super) end: u64,
    pub(super) seq: u64,
    /// The last number it stands for: its own, but for a gap.
    pub(super) through: u64,
    last_of_group: bool,
}

impl Window {
    pub(super) fn open(path: &Path) -> Result<Self, LogError> {
        let file = File::open(path).map_err(LogError::io("open", path))?;
        let len = file.metadata().map_err(LogError::io("read", path))?.len();
        Ok(Self { path: path.to_owned(), file, len, start: 0, buffer: Vec::new() })
    }

    pub(super) fn len(&self) -> u64 {
        self.len
    }

    /// At least `want` bytes from an offset on, or all that follow it.
    pub(super) fn bytes(&mut self, at: u64, want: usize) -> Result<&[u8], LogError> {
        let left = usize::try_from(self.len.saturating_sub(at)).unwrap_or(usize::MAX);
        let want = want.min(left);
        let held = at.checked_sub(self.start).and_then(|skip| usize::try_from(skip).ok());
        let skip = match held.filter(|skip| self.buffer.len().checked_sub(*skip).is_some_and(|held| held >= want)) {
            Some(skip) => skip,
            None => {
                self.buffer.clear();
                self.buffer.shrink_to(CHUNK);
                self.buffer.resize(want.max(CHUNK).min(left), 0);
                self.start = at;
                if let Err(source) = self.file.read_exact_at(&mut self.buffer, at) {
                    self.buffer.clear();
                    return Err(LogError::io("read", &self.path)(source));
                }
                0
            }
        };
        Ok(self.buffer.get(skip..).unwrap_or_default())
    }

    /// The frame at an offset, if it is whole and its number is believed.
    pub(super) fn decode(&mut self, at: u64, limits: Limits) -> Result<Option<Decoded<'_>>, LogError> {
        let left = self.len.saturating_sub(at);
        let head = Head::decode(self.bytes(at, HEAD_BYTES)?);
        let Some(head) = head.filter(|head| limits.allow(head.seq) && head.frame_bytes() as u64 <= left) else {
            return Ok(None);
        };
        let decoded = frame::decode(self.bytes(at, head.frame_bytes())?);
        Ok(decoded.filter(|decoded| decoded.through() <= limits.up_to))
    }

    pub(super) fn find_at(&mut self, at: u64, limits: Limits) -> Result<Option<Found>, LogError> {
        Ok(self.decode(at, limits)?.map(|decoded| Found {
            at,
            end: at + decoded.size as u64,
            seq: decoded.seq,
            through: decoded.through(),
            last_of_group: decoded.last_of_group,
        }))
    }

    /// The next offset at which a believable frame seems to begin.
    fn candidate(&mut self, mut at: u64, limits: Limits) -> Result<Option<u64>, LogError> {
        while self.len.saturating_sub(at) >= FRAME_BYTES as u64 {
            let bytes = self.bytes(at, FRAME_BYTES)?;
            let begins = |bytes: &[u8]| Head::decode(bytes).is_some_and(|head| limits.allow(head.seq));
            if let Some(skip) = bytes.windows(HEAD_BYTES).position(begins) {
                return Ok(Some(at + skip as u64));
            }
            at += (bytes.len() - (HEAD_BYTES - 1)) as u64;
        }
        Ok(None)
    }

    /// The frame at an offset or the first one behind it.
    fn find_from(&mut self, at: u64, limits: Limits, tries: &mut u64) -> Result<Option<Found>, LogError> {
        if let Some(found) = self.find_at(at, limits)? {
            return Ok(Some(found));
        }
        let mut at = at + 1;
        while let Some(begins) = self.candidate(at, limits)? {
            if let Some(found) = self.find_at(begins, limits)? {
                return Ok(Some(found));
            }
            let size = Head::decode(self.bytes(begins, HEAD_BYTES)?).map_or(0, |head| head.frame_bytes() as u64);
            // One that reaches beyond the end was not read for it.
            if size <= self.len - begins {
                let Some(left) = tries.checked_sub(size) else { return Ok(None) };
                *tries = left;
            }
            at = begins + 1;
        }
        Ok(None)
    }
}

/// Frames that follow each other in the file and in their numbers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Run {
    pub(super) first: u64,
    pub(super) last: u64,
    pub(super) from: u64,
    pub(super) to: u64,
}

/// How a segment ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Tail {
    /// With the last frame of a group.
    Clean,
    /// As a write that was interrupted ends: in a group, and the last frame may be a part of one. What is whole
    /// ends at this offset and with this number.
    Torn { offset: u64, last: u64 },
    /// With bytes that no write leaves behind.
    Damaged,
}

/// What is in a segment.
#[derive(Debug)]
pub(super) struct Survey {
    /// By first number. They may overlap when bytes are there twice.
    pub(super) runs: Vec<Run>,
    /// The first byte that does not carry on what comes before it, the tail not counted.
    pub(super) hole: Option<u64>,
    /// The end of the last frame.
    pub(super) rest: u64,
    pub(super) tail: Tail,
    /// Frames in the tail that can be told by their heads.
    pub(super) known: u64,
}

impl Survey {
    /// Looks through the bytes from `start` on, where the frame with the number `first` should be. Numbers up to
    /// `after` are in other segments.
    pub(super) fn of(window: &mut Window, start: u64, first: u64, after: u64) -> Result<Self, LogError> {
        let mut expected = first.max(after + 1);
        let limits = Limits { above: after, up_to: expected + REACH };
        let mut tries = window.len().saturating_mul(TRIES);
        let mut runs: Vec<Run> = Vec::new();
        let (mut at, mut hole, mut newest) = (start, None, after);
        let mut whole = (start, expected - 1);
        while let Some(found) = window.find_from(at, limits, &mut tries)? {
            if found.at != at || found.seq != expected {
                hole.get_or_insert(at);
            }
            if found.seq != expected {
                whole = (found.at, found.seq - 1);
            }
            at = found.end;
            expected = found.through + 1;
            newest = newest.max(found.through);
            if found.last_of_group {
                whole = (at, found.through);
            }
            match runs.last_mut().filter(|run| run.to == found.at && run.last + 1 == found.seq) {
                Some(run) => (run.last, run.to) = (found.through, found.end),
                None => runs.push(Run { first: found.seq, last: found.through, from: found.at, to: found.end }),
            }
        }
        let in_order = runs.last().is_none_or(|run| run.last == newest);
        runs.sort_by_key(|run| (run.first, run.from));
        let (tail, known) = end_of(window, at, expected, whole)?;
        let tail = if matches!(tail, Tail::Torn { .. }) && !in_order { Tail::Damaged } else { tail };
        Ok(Self { runs, hole, rest: at, tail, known })
    }
}

/// How the file ends behind the last frame, and how many frames can be told there.
fn end_of(window: &mut Window, rest: u64, expected: u64, whole: (u64, u64)) -> Result<(Tail, u64), LogError> {
    let len = window.len();
    let torn = Tail::Torn { offset: whole.0, last: whole.1 };
    if rest >= len {
        return Ok((if whole.0 == rest { Tail::Clean } else { torn }, 0));
    }
    let (mut at, mut known) = (rest, 0);
    loop {
        let bytes = window.bytes(at, HEAD_BYTES)?;
        let short = bytes.len() < HEAD_BYTES;
        let head = Head::decode(bytes).filter(|head| head.seq == expected + known);
        let fits = head.is_some_and(|head| head.frame_bytes() as u64 <= len - at);
        if known == 0 && !fits && (short || head.is_some()) {
            return Ok((torn, 0));
        }
        let Some(head) = head.filter(|_| fits) else { return Ok((Tail::Damaged, known)) };
        known += 1;
        at += head.frame_bytes() as u64;
    }
}
