//! Reading a range of the record log again: after a restart, or when memory did not keep the texts.

use std::collections::VecDeque;
use std::fs::File;
use std::io::{BufReader, Read as _, Seek as _, SeekFrom};
use std::path::PathBuf;

use super::entry::{Entry, SeqRange};
use super::error::LogError;
use super::frame::{self, Frame, HEAD_BYTES, Head};

/// The part of a segment that is still to be read.
#[derive(Debug)]
pub(super) struct Span {
    pub(super) path: PathBuf,
    pub(super) offset: u64,
    pub(super) end: u64,
}

/// Gives the entries of a range in order, each with its number. Marks of the log itself are skipped. The first
/// error ends it.
#[derive(Debug)]
pub struct LogReader {
    range: SeqRange,
    spans: VecDeque<Span>,
    file: Option<BufReader<File>>,
    buffer: Vec<u8>,
    done: bool,
}

impl LogReader {
    pub(super) fn new(range: SeqRange, spans: VecDeque<Span>) -> Self {
        Self { range, spans, file: None, buffer: Vec::new(), done: false }
    }

    fn advance(&mut self) -> Result<Option<(u64, Entry<'static>)>, LogError> {
        while let Some(span) = self.spans.front_mut() {
            if span.offset >= span.end {
                self.spans.pop_front();
                self.file = None;
                continue;
            }
            let file = match self.file.take() {
                Some(file) => self.file.insert(file),
                None => {
                    let mut file = File::open(&span.path).map_err(LogError::io("open", &span.path))?;
                    file.seek(SeekFrom::Start(span.offset)).map_err(LogError::io("read", &span.path))?;
                    self.file.insert(BufReader::with_capacity(64 * 1024, file))
                }
            };
            let damaged = || LogError::Damaged { file: span.path.clone(), offset: span.offset };
            let mut start = [0; HEAD_BYTES];
            file.read_exact(&mut start).map_err(LogError::io("read", &span.path))?;
            let head = Head::decode(&start).ok_or_else(damaged)?;
            let size = head.frame_bytes() as u64;
            if span.offset + size > span.end {
                return Err(damaged());
            }
            let rest = head.frame_bytes() - HEAD_BYTES;
            if head.seq < self.range.first {
                #[allow(clippy::cast_possible_wrap, reason = "a frame is below 300 MiB")]
                file.seek_relative(rest as i64).map_err(LogError::io("read", &span.path))?;
                span.offset += size;
                continue;
            }
            if head.seq > self.range.last {
                return Ok(None);
            }
            self.buffer.clear();
            self.buffer.extend_from_slice(&start);
            self.buffer.resize(head.frame_bytes(), 0);
            let tail = self.buffer.get_mut(HEAD_BYTES..).unwrap_or_default();
            file.read_exact(tail).map_err(LogError::io("read", &span.path))?;
            let decoded = frame::decode(&self.buffer).ok_or_else(damaged)?;
            span.offset += size;
            if let Frame::Entry(entry) = decoded.frame {
                return Ok(Some((decoded.seq, entry.into_owned())));
            }
        }
        Ok(None)
    }
}

impl Iterator for LogReader {
    type Item = Result<(u64, Entry<'static>), LogError>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.done {
            return None;
        }
        let next = self.advance().transpose();
        self.done = !matches!(next, Some(Ok(_)));
        next
    }
}
