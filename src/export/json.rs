//! A JSON array. Items gather in the journal; at close the array is written anew and put in place, the items of an
//! array that was there before first, byte for byte.

use std::fs::File;
use std::io::{self, BufReader, Read, Seek, SeekFrom, Write};
use std::path::Path;

use serde::de::IgnoredAny;
use tracing::warn;

use super::destination::Destination;
use super::item::{self, Projection};
use super::journal::{Journal, last_byte};
use super::{Empty, Encoding, Existing, Feed, FeedError, FeedOptions, FeedSummary, ItemText, Layout, text};

#[derive(Debug)]
pub(super) struct Json {
    journal: Journal,
    destination: Destination,
    before: Option<Before>,
    projection: Option<Projection>,
    encoding: Encoding,
    layout: Layout,
    empty: Empty,
    lines: String,
}

/// The items of the array that is appended to: the bytes from `start` to `end`.
#[derive(Debug)]
struct Before {
    file: File,
    start: u64,
    end: u64,
}

impl Json {
    pub(super) fn open(path: &Path, options: FeedOptions) -> Result<Self, FeedError> {
        let (destination, journal) = Destination::file(path, options.existing)?;
        let before = match options.existing {
            Existing::Append => Before::read(path),
            Existing::Overwrite => Ok(None),
        };
        let before = match before {
            Ok(before) => before,
            Err(error) => {
                journal.abandon();
                return Err(error);
            }
        };
        Ok(Self::new(destination, journal, before, &options))
    }

    pub(super) fn to_writer(out: Box<dyn Write + Send>, options: FeedOptions) -> Result<Self, FeedError> {
        Ok(Self::new(Destination::Writer(out), Journal::nameless()?, None, &options))
    }

    fn new(destination: Destination, journal: Journal, before: Option<Before>, options: &FeedOptions) -> Self {
        Self {
            destination,
            journal,
            before,
            projection: options.fields.as_deref().map(Projection::new),
            encoding: options.encoding,
            layout: options.layout,
            empty: options.empty,
            lines: String::new(),
        }
    }
}

impl Feed for Json {
    fn write(&mut self, items: &[ItemText]) -> Result<(), FeedError> {
        self.journal.sink().make_room()?;
        self.lines.clear();
        for item in items {
            let mut result = item::check(item.as_str());
            match &self.projection {
                Some(projection) if result.is_ok() => {
                    result = projection.apply(item.as_str(), &mut self.lines).map_err(|error| error.to_string());
                }
                _ => self.lines.push_str(item.as_str()),
            }
            result.map_err(|reason| FeedError::Item { path: self.destination.name(), reason })?;
            self.lines.push('\n');
        }
        self.journal.sink().push(self.lines.as_bytes());
        Ok(())
    }

    fn flush(&mut self) -> Result<(), FeedError> {
        self.journal.flush()
    }

    fn close(mut self: Box<Self>) -> Result<FeedSummary, FeedError> {
        let uri = self.destination.name();
        if self.empty == Empty::Omit && self.before.is_none() && self.journal.is_empty()? {
            self.journal.discard()?;
            return Ok(FeedSummary { uri, items: 0, bytes: 0 });
        }
        let mut items = 0;
        let array = Array { before: self.before.take(), layout: self.layout, encoding: self.encoding, name: &uri };
        let bytes = self.destination.finish(self.journal, |journal, out| array.write(journal, out, &mut items))?;
        Ok(FeedSummary { uri, items, bytes })
    }
}

struct Array<'n> {
    before: Option<Before>,
    layout: Layout,
    encoding: Encoding,
    name: &'n str,
}

impl Array<'_> {
    fn write(self, journal: &mut Journal, out: &mut dyn Write, count: &mut u64) -> Result<(), FeedError> {
        let failed = |source| FeedError::Io { doing: "write", path: self.name.to_owned(), source };
        let newline = if self.layout == Layout::OneLine { "" } else { "\n" };
        let mut separator = newline.to_owned();
        out.write_all(b"[").map_err(failed)?;
        if let Some(before) = &self.before {
            before.copy(out).map_err(failed)?;
            separator = format!(",{newline}");
        }
        let (mut chars, mut lines) = (String::new(), String::new());
        journal.each_line(|line| {
            if let Err(reason) = item::check(line) {
                warn!(path = self.name, reason, "left out a line of the journal that is not an item");
                return Ok(());
            }
            let mut item = line;
            if self.encoding == Encoding::Utf8 {
                chars.clear();
                text::unescape(item, &mut chars);
                item = &chars;
            }
            if let Layout::Indented(width) = self.layout {
                lines.clear();
                text::indent(item, usize::from(width), &mut lines);
                item = &lines;
            }
            out.write_all(separator.as_bytes()).and_then(|()| out.write_all(item.as_bytes())).map_err(failed)?;
            separator = format!(",{newline}");
            *count += 1;
            Ok(())
        })?;
        out.write_all(newline.as_bytes()).and_then(|()| out.write_all(b"]")).map_err(failed)?;
        out.flush().map_err(failed)
    }
}

impl Before {
    /// Finds the items of an existing array; `None` where there is no file, or nothing in it.
    fn read(path: &Path) -> Result<Option<Self>, FeedError> {
        let mut file = match File::open(path) {
            Ok(file) => file,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(FeedError::io("read", path)(error)),
        };
        let other = |reason: String| FeedError::Existing { path: path.display().to_string(), expected: "a json array", reason };
        let failed = |source| FeedError::io("read", path)(source);
        let len = file.metadata().map_err(failed)?.len();
        let Some((close, last)) = last_byte(&mut file, len, visible).map_err(failed)? else {
            return Ok(None);
        };
        file.seek(SeekFrom::Start(0)).map_err(failed)?;
        let mut open = 0;
        let mut first = 0;
        for byte in BufReader::new(&file).bytes() {
            first = byte.map_err(failed)?;
            if visible(first) {
                break;
            }
            open += 1;
        }
        if (first, last) != (b'[', b']') {
            return Err(other("it does not start with [ and end with ]".to_owned()));
        }
        file.seek(SeekFrom::Start(0)).map_err(failed)?;
        serde_json::from_reader::<_, IgnoredAny>(BufReader::with_capacity(1 << 16, &file))
            .map_err(|error| other(error.to_string()))?;
        let start = open + 1;
        let end = match last_byte(&mut file, close, visible).map_err(failed)? {
            Some((at, _)) if at >= start => at + 1,
            _ => return Ok(None),
        };
        Ok(Some(Self { file, start, end }))
    }

    fn copy(&self, out: &mut dyn Write) -> io::Result<()> {
        let mut file = &self.file;
        file.seek(SeekFrom::Start(self.start))?;
        let copied = io::copy(&mut file.take(self.end - self.start), out)?;
        if copied == self.end - self.start { Ok(()) } else { Err(io::ErrorKind::UnexpectedEof.into()) }
    }
}

fn visible(byte: u8) -> bool {
    !matches!(byte, b' ' | b'\t' | b'\n' | b'\r')
}
