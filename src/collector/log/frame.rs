//! Frames and headers as bytes.
//!
//! Decoding never trusts a length: it says what is there, that the bytes end too early, or that they are wrong.

use std::borrow::Cow;

use xxhash_rust::xxh3::xxh3_64;

use super::entry::{BatchId, Cut, End, Entry, Fate, Part, SeqRange};

pub(super) const MAGIC: &[u8; 4] = b"DRGL";
/// What is written. All versions from 1 on are read: they differ in the kinds of frames only.
pub(super) const VERSION: u8 = 2;
pub(super) const HEADER_BYTES: usize = 48;
/// Bytes of a frame around its payload.
pub(super) const FRAME_BYTES: usize = 21;
/// Length, kind and number.
pub(super) const HEAD_BYTES: usize = 13;
/// No record may be larger; a larger length in a file is damage.
pub(super) const MAX_PAYLOAD: usize = 256 * 1024 * 1024;
/// No segment begins with a larger number.
pub(super) const MAX_FIRST: u64 = 1 << 62;
const MAX_FOUND: u64 = 1 << 63;
const LAST_OF_GROUP: u8 = 0x80;

/// The start of a segment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Header {
    pub(super) first_seq: u64,
    pub(super) after_seq: u64,
    pub(super) job_hash: u64,
    pub(super) log_id: u64,
}

/// What the first bytes of a file are.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum HeaderRead {
    Good(Header),
    Newer(u8),
    Short,
    Bad,
}

impl Header {
    pub(super) fn encode(&self) -> Vec<u8> {
        let mut out = Vec::with_capacity(HEADER_BYTES);
        out.extend_from_slice(MAGIC);
        out.extend_from_slice(&[VERSION, 0, 0, 0]);
        for number in [self.first_seq, self.after_seq, self.job_hash, self.log_id] {
            out.extend_from_slice(&number.to_le_bytes());
        }
        let sum = xxh3_64(&out);
        out.extend_from_slice(&sum.to_le_bytes());
        out
    }

    pub(super) fn decode(bytes: &[u8]) -> HeaderRead {
        let magic_is_ours = bytes.starts_with(MAGIC);
        let version = bytes.get(4).copied().unwrap_or_default();
        let Some((header, _)) = bytes.split_at_checked(HEADER_BYTES) else {
            return HeaderRead::Short;
        };
        let mut rest = header;
        let sum_is_right = header.split_last_chunk::<8>().is_some_and(|(data, sum)| xxh3_64(data) == u64::from_le_bytes(*sum));
        if !sum_is_right || !magic_is_ours {
            return HeaderRead::Bad;
        }
        if (1..=VERSION).contains(&version) {
            let _ = take::<8>(&mut rest);
            let mut number = || take::<8>(&mut rest).map(u64::from_le_bytes).unwrap_or_default();
            let header = Self { first_seq: number(), after_seq: number(), job_hash: number(), log_id: number() };
            let in_bounds = header.after_seq < header.first_seq && header.first_seq <= MAX_FIRST;
            return if in_bounds { HeaderRead::Good(header) } else { HeaderRead::Bad };
        }
        if version > VERSION { HeaderRead::Newer(version) } else { HeaderRead::Bad }
    }
}

/// Everything a frame can hold.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Frame<'a> {
    Entry(Entry<'a>),
    Cut(Cut),
    Delivered {
        id: BatchId,
        last: u64,
    },
    Settled {
        up_to: u64,
    },
    Part(Part),
    /// The numbers from this frame's up to the given one are gone, or were never used. Whatever has a number up to
    /// `found` was written before that came out.
    Gap {
        up_to: u64,
        found: u64,
    },
}

impl Frame<'_> {
    /// Bytes of record text, 0 for everything that is not a record.
    pub(super) fn text_bytes(&self) -> u64 {
        match self {
            Self::Entry(entry) => entry.record().map_or(0, |(_, text)| text.len() as u64),
            _ => 0,
        }
    }

    /// The last number the frame stands for when it has the given one.
    pub(super) fn through(&self, seq: u64) -> u64 {
        if let Self::Gap { up_to, .. } = self { *up_to } else { seq }
    }
}

/// A decoded frame and its place.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Decoded<'a> {
    pub(super) seq: u64,
    pub(super) last_of_group: bool,
    pub(super) frame: Frame<'a>,
    /// Bytes the frame takes in the file.
    pub(super) size: usize,
}

impl Decoded<'_> {
    /// The last number the frame stands for: its own, but for a gap.
    pub(super) fn through(&self) -> u64 {
        self.frame.through(self.seq)
    }
}

/// The first thirteen bytes of a frame.
#[derive(Debug, Clone, Copy)]
pub(super) struct Head {
    pub(super) length: usize,
    pub(super) kind: u8,
    pub(super) seq: u64,
}

impl Head {
    /// Reads a head and refuses what no writer of this version writes.
    pub(super) fn decode(bytes: &[u8]) -> Option<Self> {
        let mut rest = bytes;
        let length = u32::from_le_bytes(take::<4>(&mut rest)?) as usize;
        let [kind] = take::<1>(&mut rest)?;
        let seq = u64::from_le_bytes(take::<8>(&mut rest)?);
        let expected = match kind & !LAST_OF_GROUP {
            1..=4 => None,
            5 => Some(21),
            6 => Some(32),
            7 => Some(24),
            8 => Some(8),
            10 => Some(16),
            9 => Some(25),
            _ => return None,
        };
        (length <= MAX_PAYLOAD && expected.is_none_or(|l| l == length)).then_some(Self { length, kind, seq })
    }

    pub(super) fn frame_bytes(&self) -> usize {
        self.length + FRAME_BYTES
    }
}

/// Appends one frame.
pub(super) fn encode(out: &mut Vec<u8>, seq: u64, frame: &Frame<'_>, last_of_group: bool) {
    let from = out.len();
    let mut fixed = Vec::new();
    let (kind, payload): (u8, &[u8]) = match frame {
        Frame::Entry(Entry::Item(text)) => (1, text.as_bytes()),
        Frame::Entry(Entry::Request(text)) => (2, text.as_bytes()),
        Frame::Entry(Entry::Log(text)) => (3, text.as_bytes()),
        Frame::Entry(Entry::Stats(text)) => (4, text.as_bytes()),
        Frame::Entry(Entry::End(end)) => {
            fixed.extend_from_slice(&end.request.to_le_bytes());
            fixed.extend_from_slice(&end.attempt.to_le_bytes());
            fixed.push(end.outcome);
            (5, &fixed)
        }
        Frame::Cut(cut) => {
            fixed.extend_from_slice(&cut.id.0.to_le_bytes());
            fixed.extend_from_slice(&cut.range.first.to_le_bytes());
            fixed.extend_from_slice(&cut.range.last.to_le_bytes());
            (6, &fixed)
        }
        Frame::Delivered { id, last } => {
            fixed.extend_from_slice(&id.0.to_le_bytes());
            fixed.extend_from_slice(&last.to_le_bytes());
            (7, &fixed)
        }
        Frame::Settled { up_to } => {
            fixed.extend_from_slice(&up_to.to_le_bytes());
            (8, &fixed)
        }
        Frame::Part(part) => {
            fixed.extend_from_slice(&part.batch.0.to_le_bytes());
            fixed.extend_from_slice(&part.first.to_le_bytes());
            fixed.extend_from_slice(&part.last.to_le_bytes());
            fixed.push(match part.fate {
                Fate::Delivered => 0,
                Fate::Rejected => 1,
            });
            (9, &fixed)
        }
        Frame::Gap { up_to, found } => {
            fixed.extend_from_slice(&up_to.to_le_bytes());
            fixed.extend_from_slice(&found.to_le_bytes());
            (10, &fixed)
        }
    };
    // The callers refuse payloads above MAX_PAYLOAD, which fits.
    let length = u32::try_from(payload.len()).unwrap_or(u32::MAX);
    out.reserve(payload.len() + FRAME_BYTES);
    out.extend_from_slice(&length.to_le_bytes());
    out.push(if last_of_group { kind | LAST_OF_GROUP } else { kind });
    out.extend_from_slice(&seq.to_le_bytes());
    out.extend_from_slice(payload);
    let sum = xxh3_64(out.get(from..).unwrap_or_default());
    out.extend_from_slice(&sum.to_le_bytes());
}

/// Decodes the frame at the start of `bytes`; none when it is cut short or not good.
pub(super) fn decode(bytes: &[u8]) -> Option<Decoded<'_>> {
    let head = Head::decode(bytes)?;
    let (whole, _) = bytes.split_at_checked(head.frame_bytes())?;
    let (data, sum) = whole.split_last_chunk::<8>()?;
    if xxh3_64(data) != u64::from_le_bytes(*sum) {
        return None;
    }
    let mut payload = data.get(HEAD_BYTES..)?;
    let text = |bytes| std::str::from_utf8(bytes).ok().map(Cow::Borrowed);
    let frame = match head.kind & !LAST_OF_GROUP {
        1 => Frame::Entry(Entry::Item(text(payload)?)),
        2 => Frame::Entry(Entry::Request(text(payload)?)),
        3 => Frame::Entry(Entry::Log(text(payload)?)),
        4 => Frame::Entry(Entry::Stats(text(payload)?)),
        5 => Frame::Entry(Entry::End(End {
            request: u128::from_le_bytes(take(&mut payload)?),
            attempt: u32::from_le_bytes(take(&mut payload)?),
            outcome: u8::from_le_bytes(take(&mut payload)?),
        })),
        6 => Frame::Cut(Cut {
            id: BatchId(u128::from_le_bytes(take(&mut payload)?)),
            range: SeqRange { first: u64::from_le_bytes(take(&mut payload)?), last: u64::from_le_bytes(take(&mut payload)?) },
        }),
        7 => Frame::Delivered {
            id: BatchId(u128::from_le_bytes(take(&mut payload)?)),
            last: u64::from_le_bytes(take(&mut payload)?),
        },
        8 => Frame::Settled { up_to: u64::from_le_bytes(take(&mut payload)?) },
        9 => Frame::Part(Part {
            batch: BatchId(u128::from_le_bytes(take(&mut payload)?)),
            first: u32::from_le_bytes(take(&mut payload)?),
            last: u32::from_le_bytes(take(&mut payload)?),
            fate: match take(&mut payload)? {
                [0] => Fate::Delivered,
                [1] => Fate::Rejected,
                _ => return None,
            },
        }),
        10 => {
            let up_to = u64::from_le_bytes(take(&mut payload)?);
            let found = u64::from_le_bytes(take(&mut payload)?);
            if up_to < head.seq || found > MAX_FOUND {
                return None;
            }
            Frame::Gap { up_to, found }
        }
        _ => return None,
    };
    Some(Decoded { seq: head.seq, last_of_group: head.kind & LAST_OF_GROUP != 0, frame, size: whole.len() })
}

fn take<const N: usize>(bytes: &mut &[u8]) -> Option<[u8; N]> {
    let (taken, rest) = bytes.split_first_chunk::<N>()?;
    *bytes = rest;
    Some(*taken)
}
