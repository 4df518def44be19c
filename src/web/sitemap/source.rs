//! The text of a sitemap as a bounded stream: unpacked once or twice, decoded to UTF-8.
//!
//! Gzip is told by its first bytes, never by a name or a type. A stream that is damaged gives what came before the damage.

use std::fmt;
use std::io::{BufRead, BufReader, Chain, Cursor, Read};

use encoding_rs::{Decoder, Encoding, UTF_8, UTF_16BE, UTF_16LE};
use flate2::bufread::GzDecoder;

use super::{Cut, MAX_FIELD_BYTES};
use crate::web::charset_prescan::declared_encoding;
use crate::web::media_type::MediaType;

/// Bytes looked at to tell the encoding.
const HEAD_BYTES: usize = 1024;
/// Bytes decoded at once.
const CHUNK_BYTES: usize = 16 * 1024;
/// Gzip members without content that are passed over; some writers end a file with one.
const MAX_EMPTY_MEMBERS: u32 = 1_000;
/// Longest piece of markup or text that is read as one.
const MAX_PIECE_BYTES: usize = 1024 * 1024;

/// The text. As a `BufRead` it ends where the document ends, where it is damaged, or where a bound is met.
pub(super) struct Source<'a> {
    raw: Raw<'a>,
    /// Bytes that were read to tell the encoding.
    head: Vec<u8>,
    decoder: Decoder,
    text: String,
    at: usize,
    /// Unpacked bytes that may still be read.
    left: u64,
    /// Bytes that the piece being read may still have.
    piece_left: usize,
    is_over: bool,
    cut: Option<Cut>,
}

enum Raw<'a> {
    Plain(&'a [u8]),
    Once(Box<Layer<&'a [u8]>>),
    Twice(Box<Layer<BufReader<Layer<&'a [u8]>>>>),
}

/// An unpacked stream whose first bytes were looked at.
type Layer<R> = Chain<Cursor<Vec<u8>>, Gunzip<R>>;

impl<'a> Source<'a> {
    pub(super) fn new(body: &'a [u8], content_type: Option<&str>, limit: u64) -> Self {
        let mut raw = Raw::new(body, limit);
        let head = read_up_to(&mut raw, HEAD_BYTES);
        let decoder = encoding_of(&head, content_type).new_decoder_with_bom_removal();
        Self {
            raw,
            head,
            decoder,
            text: String::new(),
            at: 0,
            left: limit,
            piece_left: MAX_PIECE_BYTES,
            is_over: false,
            cut: None,
        }
    }

    /// Skips white space; the character after it, if that is ASCII, else something that is no markup.
    pub(super) fn first_character(&mut self) -> Option<u8> {
        loop {
            self.next_piece();
            let buffer = self.fill_buf().unwrap_or_default();
            let first = *buffer.first()?;
            let blank = buffer.iter().take_while(|byte| byte.is_ascii_whitespace()).count();
            if blank == 0 {
                return Some(first);
            }
            self.consume(blank);
        }
    }

    /// The next line, at most [`MAX_FIELD_BYTES`] of it. `None` at the end.
    pub(super) fn line(&mut self) -> Option<String> {
        let mut line: Vec<u8> = Vec::new();
        let mut is_any = false;
        loop {
            self.next_piece();
            let buffer = self.fill_buf().unwrap_or_default();
            if buffer.is_empty() {
                break;
            }
            is_any = true;
            let end = memchr::memchr2(b'\n', b'\r', buffer);
            let part = buffer.get(..end.unwrap_or(buffer.len())).unwrap_or_default();
            let room = MAX_FIELD_BYTES.saturating_sub(line.len());
            line.extend(part.iter().take(room));
            let used = part.len() + usize::from(end.is_some());
            self.consume(used);
            if end.is_some() {
                break;
            }
        }
        is_any.then(|| String::from_utf8_lossy(&line).into_owned())
    }

    /// Allows the next piece of markup its bytes.
    pub(super) fn next_piece(&mut self) {
        self.piece_left = MAX_PIECE_BYTES;
    }

    /// Why the text ended before the document did.
    pub(super) fn cut(&self) -> Option<Cut> {
        self.cut.or_else(|| self.raw.cut())
    }

    /// Decodes more; leaves the text empty at the end only.
    fn refill(&mut self) {
        self.text.clear();
        self.at = 0;
        while self.text.is_empty() && !self.is_over {
            let mut chunk = std::mem::take(&mut self.head);
            if chunk.is_empty() {
                chunk = read_up_to(&mut self.raw, CHUNK_BYTES);
            }
            self.is_over = chunk.is_empty();
            let bytes = u64::try_from(chunk.len()).unwrap_or(u64::MAX);
            if bytes > self.left {
                chunk.truncate(usize::try_from(self.left).unwrap_or(usize::MAX));
                self.is_over = true;
                self.cut = Some(Cut::Bytes);
            }
            self.left = self.left.saturating_sub(bytes);
            if let Some(room) = self.decoder.max_utf8_buffer_length(chunk.len()) {
                self.text.reserve(room);
                let _ = self.decoder.decode_to_string(&chunk, &mut self.text, self.is_over);
            }
        }
    }
}

impl Read for Source<'_> {
    fn read(&mut self, out: &mut [u8]) -> std::io::Result<usize> {
        let read = self.fill_buf()?.read(out)?;
        self.consume(read);
        Ok(read)
    }
}

impl BufRead for Source<'_> {
    fn fill_buf(&mut self) -> std::io::Result<&[u8]> {
        if self.piece_left == 0 {
            self.cut = Some(Cut::Bytes);
            self.is_over = true;
            self.text.clear();
            self.at = 0;
        }
        if self.at >= self.text.len() {
            self.refill();
        }
        let rest = self.text.as_bytes().get(self.at..).unwrap_or_default();
        Ok(rest.get(..self.piece_left).unwrap_or(rest))
    }

    fn consume(&mut self, bytes: usize) {
        self.at += bytes;
        self.piece_left = self.piece_left.saturating_sub(bytes);
    }
}

impl fmt::Debug for Source<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Source").field("left", &self.left).field("cut", &self.cut).finish_non_exhaustive()
    }
}

impl<'a> Raw<'a> {
    fn new(body: &'a [u8], limit: u64) -> Self {
        if !is_gzip(body) {
            return Self::Plain(body);
        }
        let once = layer(body, limit);
        if !is_gzip(once.get_ref().0.get_ref()) {
            return Self::Once(Box::new(once));
        }
        Self::Twice(Box::new(layer(BufReader::new(once), limit)))
    }

    fn cut(&self) -> Option<Cut> {
        match self {
            Self::Plain(_) => None,
            Self::Once(layer) => layer.get_ref().1.cut,
            Self::Twice(layer) => {
                let outer = &layer.get_ref().1;
                // A cut file is also the end of the one inside it.
                let inner = outer.inner.as_ref().map(|decoder| decoder.get_ref().get_ref().get_ref().1.cut);
                inner.flatten().or(outer.cut)
            }
        }
    }
}

impl Read for Raw<'_> {
    fn read(&mut self, out: &mut [u8]) -> std::io::Result<usize> {
        match self {
            Self::Plain(bytes) => bytes.read(out),
            Self::Once(layer) => layer.read(out),
            Self::Twice(layer) => layer.read(out),
        }
    }
}

/// Gzip members one after the other. Ends without an error at damage, at its bound, and at anything after a member that is
/// no other one (padding, line ends).
struct Gunzip<R> {
    inner: Option<GzDecoder<R>>,
    /// Whether the member being read has given something.
    has_output: bool,
    /// Members that have given nothing.
    empty: u32,
    is_first: bool,
    is_over: bool,
    left: u64,
    cut: Option<Cut>,
}

impl<R: BufRead> Gunzip<R> {
    fn new(packed: R, limit: u64) -> Self {
        let inner = Some(GzDecoder::new(packed));
        Self { inner, has_output: false, empty: 0, is_first: true, is_over: false, left: limit, cut: None }
    }

    /// Goes on with the next member; false when nothing else follows.
    fn next_member(&mut self) -> bool {
        if !self.has_output {
            self.empty += 1;
            if self.empty >= MAX_EMPTY_MEMBERS {
                self.cut = Some(Cut::Damaged);
                return false;
            }
        }
        let Some(mut packed) = self.inner.take().map(GzDecoder::into_inner) else { return false };
        let is_member = packed.fill_buf().is_ok_and(|rest| rest.first() == Some(&0x1f));
        self.inner = Some(GzDecoder::new(packed));
        self.has_output = false;
        self.is_first = false;
        is_member
    }
}

impl<R: BufRead> Read for Gunzip<R> {
    fn read(&mut self, out: &mut [u8]) -> std::io::Result<usize> {
        let mut one_more = [0; 1];
        let room = usize::try_from(self.left).unwrap_or(usize::MAX).min(out.len());
        // At the bound, a byte that is not given tells whether something was left out.
        let out = if self.left == 0 { &mut one_more[..] } else { out.get_mut(..room).unwrap_or_default() };
        if out.is_empty() {
            return Ok(0);
        }
        while !self.is_over
            && let Some(decoder) = &mut self.inner
        {
            match decoder.read(out) {
                Ok(0) => self.is_over = !self.next_member(),
                Ok(_) if self.left == 0 => {
                    self.cut = Some(Cut::Bytes);
                    self.is_over = true;
                }
                Ok(read) => {
                    self.has_output = true;
                    self.left = self.left.saturating_sub(u64::try_from(read).unwrap_or(u64::MAX));
                    return Ok(read);
                }
                Err(_) => {
                    if self.is_first || self.has_output {
                        self.cut = Some(Cut::Damaged);
                    }
                    self.is_over = true;
                }
            }
        }
        Ok(0)
    }
}

fn layer<R: BufRead>(packed: R, limit: u64) -> Layer<R> {
    let mut unpacked = Gunzip::new(packed, limit);
    let head = read_up_to(&mut unpacked, HEAD_BYTES);
    Cursor::new(head).chain(unpacked)
}

fn is_gzip(bytes: &[u8]) -> bool {
    bytes.starts_with(&[0x1f, 0x8b])
}

/// As many bytes as there are, up to a bound. The readers of this module do not fail.
fn read_up_to(reader: &mut impl Read, most: usize) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(most);
    let _ = reader.take(u64::try_from(most).unwrap_or(u64::MAX)).read_to_end(&mut bytes);
    bytes
}

/// Byte order mark, bytes that can only be UTF-16, charset of the header, declaration, UTF-8.
fn encoding_of(head: &[u8], content_type: Option<&str>) -> &'static Encoding {
    if let Some((encoding, _)) = Encoding::for_bom(head) {
        return encoding;
    }
    if head.starts_with(b"<\0") {
        return UTF_16LE;
    }
    if head.starts_with(b"\0<") {
        return UTF_16BE;
    }
    let named = content_type.and_then(MediaType::parse).and_then(|media_type| media_type.charset());
    // Every other encoding leaves ASCII as it is: bytes that are no UTF-16 are not read as such, whatever is declared.
    let is_possible = |encoding: &&'static Encoding| encoding.is_ascii_compatible();
    named.filter(is_possible).or_else(|| declared_encoding(head).filter(is_possible)).unwrap_or(UTF_8)
}
