//! The framing of gzip (RFC 1952) around the deflate decoder: members, optional header fields, trailers.
//!
//! Takes the bytes as they come, also one at a time. A wrong checksum is noted, not refused: browsers show such pages.

use flate2::Decompress;

use super::streams::{Next, Step, inflate};
use super::{Coding, DecodeError, Note};

/// Members of gzip one after another (RFC 1952).
pub(super) struct Gzip {
    part: GzipPart,
    /// Bytes of the fixed header or the trailer that have arrived.
    held: Vec<u8>,
    flags: u8,
    /// Bytes of a skipped field that are still to come.
    skip: usize,
    stream: Decompress,
    checksum: flate2::Crc,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum GzipPart {
    Header,
    ExtraLength,
    Extra,
    Name,
    Comment,
    HeaderChecksum,
    Body,
    Trailer,
    /// Behind a member: another one, padding or garbage.
    After,
}

/// Length of the fixed part of a member's header.
const GZIP_HEADER: usize = 10;

impl Gzip {
    pub(super) fn new() -> Self {
        Self {
            part: GzipPart::Header,
            held: Vec::with_capacity(GZIP_HEADER),
            flags: 0,
            skip: 0,
            stream: Decompress::new(false),
            checksum: flate2::Crc::new(),
        }
    }

    pub(super) fn step(&mut self, input: &[u8], piece: &mut [u8], notes: &mut Vec<Note>) -> Result<Step, DecodeError> {
        if self.part == GzipPart::Body {
            let (step, ended) = inflate(&mut self.stream, input, piece, Coding::Gzip)?;
            self.checksum.update(piece.get(..step.produced).unwrap_or_default());
            if ended {
                self.part = GzipPart::Trailer;
            }
            return Ok(step);
        }
        let mut rest = input;
        while self.part != GzipPart::Body {
            if self.part == GzipPart::After && !self.is_next_member(rest) {
                let consumed = input.len() - rest.len();
                return Ok(Step { consumed, produced: 0, next: Next::Ended });
            }
            let Some((&byte, after)) = rest.split_first() else {
                return Ok(Step { consumed: input.len(), produced: 0, next: Next::MoreInput });
            };
            rest = after;
            self.take(byte, notes)?;
        }
        Ok(Step { consumed: input.len() - rest.len(), produced: 0, next: Next::Continue })
    }

    /// Whether all content of the members was there; a trailer that is cut off counts as wrong only.
    pub(super) fn finish(&self, notes: &mut Vec<Note>) -> bool {
        if self.part == GzipPart::Trailer && !notes.contains(&Note::WrongTrailer) {
            notes.push(Note::WrongTrailer);
        }
        matches!(self.part, GzipPart::Trailer | GzipPart::After)
    }

    /// Whether the bytes behind a member begin another one.
    fn is_next_member(&mut self, rest: &[u8]) -> bool {
        let magic = b"\x1f\x8b\x08";
        let seen = self.held.len();
        let fits = rest.iter().zip(magic.iter().skip(seen)).all(|(byte, wanted)| byte == wanted);
        if seen >= magic.len() || (fits && !rest.is_empty() && seen + rest.len() >= magic.len()) {
            self.part = GzipPart::Header;
            return true;
        }
        // Fewer bytes than the magic number has: keep them until more arrive.
        fits && !rest.is_empty()
    }

    /// Takes one byte of header or trailer.
    fn take(&mut self, byte: u8, notes: &mut Vec<Note>) -> Result<(), DecodeError> {
        match self.part {
            GzipPart::Header => {
                self.held.push(byte);
                if self.held.len() == GZIP_HEADER {
                    self.open_member()?;
                }
            }
            GzipPart::ExtraLength => {
                self.held.push(byte);
                if let [low, high] = self.held.as_slice() {
                    self.skip = usize::from(u16::from_le_bytes([*low, *high]));
                    self.enter(if self.skip == 0 { self.after(GzipPart::Extra) } else { GzipPart::Extra });
                }
            }
            GzipPart::Extra | GzipPart::HeaderChecksum => {
                self.skip = self.skip.saturating_sub(1);
                if self.skip == 0 {
                    self.enter(self.after(self.part));
                }
            }
            GzipPart::Name | GzipPart::Comment => {
                if byte == 0 {
                    self.enter(self.after(self.part));
                }
            }
            GzipPart::Trailer => {
                self.held.push(byte);
                if let Some((trailer, _)) = self.held.split_first_chunk::<8>() {
                    let ours = u64::from(self.checksum.amount()) << 32 | u64::from(self.checksum.sum());
                    if u64::from_le_bytes(*trailer) != ours && !notes.contains(&Note::WrongTrailer) {
                        notes.push(Note::WrongTrailer);
                    }
                    self.enter(GzipPart::After);
                }
            }
            GzipPart::After => self.held.push(byte),
            GzipPart::Body => {}
        }
        Ok(())
    }

    fn open_member(&mut self) -> Result<(), DecodeError> {
        let Some((&[0x1f, 0x8b, 8, flags], _)) = self.held.split_first_chunk::<4>() else {
            return Err(DecodeError::Corrupt { coding: Coding::Gzip });
        };
        self.flags = flags;
        self.stream.reset(false);
        self.checksum.reset();
        self.enter(self.after(GzipPart::Header));
        Ok(())
    }

    fn enter(&mut self, part: GzipPart) {
        self.held.clear();
        if part == GzipPart::HeaderChecksum {
            self.skip = 2;
        }
        self.part = part;
    }

    /// The part of the header that follows, by the flags of the member.
    fn after(&self, part: GzipPart) -> GzipPart {
        let optional = [
            (GzipPart::ExtraLength, 4),
            (GzipPart::Name, 8),
            (GzipPart::Comment, 16),
            (GzipPart::HeaderChecksum, 2),
        ];
        let done = match part {
            GzipPart::ExtraLength | GzipPart::Extra => 1,
            GzipPart::Name => 2,
            GzipPart::Comment => 3,
            GzipPart::HeaderChecksum => 4,
            _ => 0,
        };
        let next = optional.iter().skip(done).find(|(_, flag)| self.flags & flag != 0);
        next.map_or(GzipPart::Body, |(part, _)| *part)
    }
}
