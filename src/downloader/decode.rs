//! Undoes `Content-Encoding` while a body arrives, with a bound on what comes out.
//!
//! Each coding is a stage that hands its output on in pieces of [`PIECE`] bytes, so memory stays bounded whatever the
//! ratio and however many codings are stacked. A wrong label does not cost the page: a plain body under a coding's name
//! is passed as it is, gzip under another name is recognised, an unknown coding leaves the body encoded; each of these
//! is noted. Identity bodies never come here.

mod gzip;
mod streams;

use http::HeaderValue;

use gzip::Gzip;
use streams::{Brotli, Inflate, Next, Zstd};

/// Output of one stage that is in flight, in bytes.
const PIECE: usize = 16 * 1024;

/// Codings that are undone; a longer list is left as it is.
const MAX_CODINGS: usize = 8;

/// Bytes needed to judge whether a body is what its label says.
const SNIFF_BYTES: usize = 16;

/// Why a body cannot be decoded.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub(crate) enum DecodeError {
    /// More bytes came out than the cap allows. What was decoded up to the cap is in the output.
    #[error("decoded body is larger than {limit} bytes: raise the size limit if the page is wanted")]
    TooLarge {
        /// The cap in bytes.
        limit: usize,
    },
    /// The bytes are not what the coding allows.
    #[error("body is not valid {coding}: the server sent a broken body, try again later")]
    Corrupt {
        /// The coding that failed.
        coding: Coding,
    },
}

/// A content coding that can be undone.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Coding {
    Gzip,
    /// Zlib or raw deflate, told apart by the first bytes.
    Deflate,
    Brotli,
    Zstd,
}

impl std::fmt::Display for Coding {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Gzip => "gzip",
            Self::Deflate => "deflate",
            Self::Brotli => "br",
            Self::Zstd => "zstd",
        })
    }
}

/// How a body ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum End {
    /// Every coding reached its end.
    Complete,
    /// The stream was cut: the output is only the beginning.
    DataLoss,
}

/// Something about a body that was tolerated.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Note {
    /// The body was not in the coding of its label; it was passed as it is.
    NotEncoded(Coding),
    /// The body was in another coding than its label says and was decoded by its own.
    Mislabelled {
        /// The coding of the label.
        label: Coding,
        /// The coding of the bytes.
        found: Coding,
    },
    /// These codings, outermost last, are unknown and were not undone.
    UnknownCodings(String),
    /// Bytes after the end of the coded stream were dropped.
    TrailingBytes(Coding),
    /// The checksum or the size at the end of a gzip member is wrong or missing.
    WrongTrailer,
}

/// Decodes one body. Feed it with [`Decoder::push`], end it with [`Decoder::finish`].
pub(crate) struct Decoder {
    /// Outermost coding first.
    stages: Vec<Stage>,
    limit: usize,
    notes: Vec<Note>,
}

impl Decoder {
    /// Makes the decoder for a response, or `None` when its body is sent as it is.
    ///
    /// `values` are the `Content-Encoding` fields in order, `limit` the most bytes that may come out.
    pub(crate) fn new<'a>(values: impl Iterator<Item = &'a HeaderValue>, limit: usize) -> Option<Self> {
        let mut codings: Vec<String> = Vec::new();
        for value in values {
            let names = String::from_utf8_lossy(value.as_bytes());
            let names = names.split(',').map(|name| name.trim().to_ascii_lowercase());
            codings.extend(names.filter(|name| !name.is_empty() && name != "identity"));
        }
        if codings.is_empty() {
            return None;
        }
        let mut stages = Vec::new();
        while stages.len() < MAX_CODINGS {
            let known = codings.last().and_then(|name| coding_named(name));
            let Some(coding) = known else { break };
            codings.pop();
            stages.push(Stage::new(coding, limit));
        }
        let notes = if codings.is_empty() { Vec::new() } else { vec![Note::UnknownCodings(codings.join(", "))] };
        Some(Self { stages, limit, notes })
    }

    /// Decodes the next bytes of the body onto the end of `out`, which must only be changed by this decoder.
    ///
    /// # Errors
    /// [`DecodeError`]; what was decoded before it is in `out`. The decoder is of no use afterwards.
    pub(crate) fn push(&mut self, chunk: &[u8], out: &mut Vec<u8>) -> Result<(), DecodeError> {
        let mut sink = Sink { out, limit: self.limit, notes: &mut self.notes };
        feed(&mut self.stages, chunk, &mut sink)
    }

    /// Ends the body: hands out what was held back and says whether the streams were whole.
    ///
    /// # Errors
    /// As [`Decoder::push`].
    pub(crate) fn finish(&mut self, out: &mut Vec<u8>) -> Result<End, DecodeError> {
        let mut sink = Sink { out, limit: self.limit, notes: &mut self.notes };
        finish(&mut self.stages, &mut sink)
    }

    /// What was tolerated so far.
    pub(crate) fn notes(&self) -> &[Note] {
        &self.notes
    }
}

impl std::fmt::Debug for Decoder {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Decoder").field("limit", &self.limit).field("notes", &self.notes).finish_non_exhaustive()
    }
}

fn coding_named(name: &str) -> Option<Coding> {
    match name {
        "gzip" | "x-gzip" => Some(Coding::Gzip),
        "deflate" => Some(Coding::Deflate),
        "br" => Some(Coding::Brotli),
        "zstd" => Some(Coding::Zstd),
        _ => None,
    }
}

/// Where decoded bytes end up.
struct Sink<'a> {
    out: &'a mut Vec<u8>,
    limit: usize,
    notes: &'a mut Vec<Note>,
}

impl Sink<'_> {
    fn append(&mut self, bytes: &[u8]) -> Result<(), DecodeError> {
        let room = self.limit.saturating_sub(self.out.len());
        self.out.extend_from_slice(bytes.get(..room).unwrap_or(bytes));
        if bytes.len() > room { Err(DecodeError::TooLarge { limit: self.limit }) } else { Ok(()) }
    }
}

/// Gives bytes to the first stage, whose output goes to the next one, the last one's to the sink.
fn feed(stages: &mut [Stage], input: &[u8], sink: &mut Sink<'_>) -> Result<(), DecodeError> {
    match stages.split_first_mut() {
        None => sink.append(input),
        Some((stage, inner)) => stage.feed(input, inner, sink),
    }
}

fn finish(stages: &mut [Stage], sink: &mut Sink<'_>) -> Result<End, DecodeError> {
    let Some((stage, inner)) = stages.split_first_mut() else {
        return Ok(End::Complete);
    };
    let own = stage.finish(inner, sink)?;
    let rest = finish(inner, sink)?;
    Ok(if own == End::DataLoss { own } else { rest })
}

/// One coding of the list.
struct Stage {
    label: Coding,
    state: State,
    /// Bytes this stage may still put out; stops bombs that only unfold between two codings.
    room: usize,
    limit: usize,
}

enum State {
    /// Waiting for enough bytes to know what the body is.
    Sniffing(Vec<u8>),
    /// Not encoded: bytes go through.
    Plain,
    Gzip(Box<Gzip>),
    Inflate(Box<Inflate>),
    Brotli(Box<Brotli>),
    Zstd(Box<Zstd>),
}

impl Stage {
    fn new(label: Coding, limit: usize) -> Self {
        Self { label, state: State::Sniffing(Vec::new()), room: limit, limit }
    }

    fn feed(&mut self, input: &[u8], inner: &mut [Stage], sink: &mut Sink<'_>) -> Result<(), DecodeError> {
        let State::Sniffing(held) = &mut self.state else {
            return self.decode(input, inner, sink);
        };
        held.extend_from_slice(input);
        if held.len() < SNIFF_BYTES {
            return Ok(());
        }
        self.begin(inner, sink)
    }

    fn finish(&mut self, inner: &mut [Stage], sink: &mut Sink<'_>) -> Result<End, DecodeError> {
        if let State::Sniffing(held) = &self.state {
            // An empty body is empty whatever its label.
            if held.is_empty() {
                return Ok(End::Complete);
            }
            self.begin(inner, sink)?;
        }
        let whole = match &self.state {
            State::Sniffing(_) | State::Plain => true,
            State::Gzip(gzip) => gzip.finish(sink.notes),
            State::Inflate(inflate) => inflate.is_ended(),
            State::Brotli(brotli) => brotli.is_ended(),
            State::Zstd(zstd) => zstd.is_ended(),
        };
        Ok(if whole { End::Complete } else { End::DataLoss })
    }

    /// Decides by the held bytes what the body is, and decodes them.
    fn begin(&mut self, inner: &mut [Stage], sink: &mut Sink<'_>) -> Result<(), DecodeError> {
        let State::Sniffing(held) = &mut self.state else {
            return Ok(());
        };
        let held = std::mem::take(held);
        let found = coding_of(&held, self.label);
        match found {
            Some(found) => {
                if found != self.label {
                    sink.notes.push(Note::Mislabelled { label: self.label, found });
                }
                self.state = State::for_coding(found, &held)?;
            }
            None if looks_readable(&held) => self.pass(sink),
            None => return Err(DecodeError::Corrupt { coding: self.label }),
        }
        let before = self.room;
        match self.decode(&held, inner, sink) {
            // No magic number tells deflate and brotli from text: failing at once on readable bytes does.
            Err(DecodeError::Corrupt { .. }) if self.room == before && looks_readable(&held) => {
                self.pass(sink);
                self.decode(&held, inner, sink)
            }
            result => result,
        }
    }

    fn pass(&mut self, sink: &mut Sink<'_>) {
        sink.notes.push(Note::NotEncoded(self.label));
        self.state = State::Plain;
    }

    fn decode(&mut self, input: &[u8], inner: &mut [Stage], sink: &mut Sink<'_>) -> Result<(), DecodeError> {
        let mut piece = [0_u8; PIECE];
        let mut rest = input;
        loop {
            let step = match &mut self.state {
                State::Sniffing(_) | State::Plain => return emit(&mut self.room, self.limit, rest, inner, sink),
                State::Gzip(gzip) => gzip.step(rest, &mut piece, sink.notes)?,
                State::Inflate(inflate) => inflate.step(rest, &mut piece)?,
                State::Brotli(brotli) => brotli.step(rest, &mut piece)?,
                State::Zstd(zstd) => zstd.step(rest, &mut piece)?,
            };
            rest = rest.get(step.consumed..).unwrap_or_default();
            let produced = piece.get(..step.produced).unwrap_or_default();
            emit(&mut self.room, self.limit, produced, inner, sink)?;
            match step.next {
                Next::Continue => {}
                Next::MoreInput => return Ok(()),
                Next::Ended => {
                    let note = Note::TrailingBytes(self.label);
                    if !rest.is_empty() && !sink.notes.contains(&note) {
                        sink.notes.push(note);
                    }
                    return Ok(());
                }
            }
        }
    }
}

/// Hands decoded bytes to the next stage within the bound of this one.
fn emit(
    room: &mut usize,
    limit: usize,
    bytes: &[u8],
    inner: &mut [Stage],
    sink: &mut Sink<'_>,
) -> Result<(), DecodeError> {
    let Some(left) = room.checked_sub(bytes.len()) else {
        feed(inner, bytes.get(..*room).unwrap_or_default(), sink)?;
        return Err(DecodeError::TooLarge { limit });
    };
    *room = left;
    if bytes.is_empty() { Ok(()) } else { feed(inner, bytes, sink) }
}

impl State {
    fn for_coding(coding: Coding, head: &[u8]) -> Result<Self, DecodeError> {
        Ok(match coding {
            Coding::Gzip => Self::Gzip(Box::new(Gzip::new())),
            Coding::Deflate => Self::Inflate(Box::new(Inflate::new(is_zlib(head)))),
            Coding::Brotli => Self::Brotli(Box::new(Brotli::new())),
            Coding::Zstd => Self::Zstd(Box::new(Zstd::new()?)),
        })
    }
}

/// The coding of a body by its first bytes and its label; `None` when it cannot be what the label says.
fn coding_of(head: &[u8], label: Coding) -> Option<Coding> {
    // A cut body shows only the first byte of its magic number.
    let starts = |magic: &[u8]| head.starts_with(magic) || magic.starts_with(head);
    if head.starts_with(b"\x1f\x8b\x08") || (label == Coding::Gzip && starts(b"\x1f\x8b")) {
        return Some(Coding::Gzip);
    }
    if head.starts_with(b"\x28\xb5\x2f\xfd") {
        return Some(Coding::Zstd);
    }
    match label {
        Coding::Gzip | Coding::Zstd if label == Coding::Zstd && is_zstd_start(head) => Some(Coding::Zstd),
        Coding::Gzip | Coding::Zstd => is_zlib(head).then_some(Coding::Deflate),
        Coding::Deflate | Coding::Brotli => Some(label),
    }
}

fn is_zstd_start(head: &[u8]) -> bool {
    let skippable = head.first().is_some_and(|byte| (0x50..=0x5f).contains(byte));
    b"\x28\xb5\x2f\xfd".starts_with(head) || (skippable && head.get(1..4) == Some(b"\x2a\x4d\x18"))
}

/// Whether the bytes begin with a zlib header (RFC 1950 2.2).
fn is_zlib(head: &[u8]) -> bool {
    let Some((&[method, flags], _)) = head.split_first_chunk::<2>() else {
        return false;
    };
    method & 0x0f == 8 && method >> 4 <= 7 && u16::from_be_bytes([method, flags]) % 31 == 0
}

/// Whether the bytes can be an unencoded body: text, or a file that no coding starts like.
fn looks_readable(head: &[u8]) -> bool {
    let files: [&[u8]; 5] = [b"\x89PNG", b"\xff\xd8\xff", b"PK\x03\x04", b"\xff\xfe", b"\xfe\xff"];
    let is_text = |byte: &u8| *byte >= b' ' || matches!(byte, b'\t' | b'\n' | 0x0c | b'\r');
    let start = head.get(..SNIFF_BYTES).unwrap_or(head);
    files.iter().any(|magic| head.starts_with(magic)) || (start.iter().all(is_text) && mostly_ascii(start))
}

/// Text of a page begins with markup or words; half of it outside ASCII only when it is UTF-8.
fn mostly_ascii(start: &[u8]) -> bool {
    let ascii = start.iter().filter(|byte| byte.is_ascii()).count();
    let utf8 = match std::str::from_utf8(start) {
        Ok(_) => true,
        Err(error) => error.error_len().is_none(),
    };
    utf8 || ascii * 2 > start.len()
}

#[cfg(test)]
mod tests;
