//! XML: `<items>` with an `<item>` for each, and in it an element for each field. Items gather in the journal; at close the file
//! is written anew and put in place, the items that were there before first, byte for byte.
//!
//! As Scrapy writes it: a list has a `<value>` for each of its own, an object an element for each field, a boolean is `True` or
//! `False`. Null is an empty element. A name that XML does not allow is `<field name="…">`; characters that it does not allow
//! become U+FFFD, which is told once.

use std::fs::File;
use std::io::{self, BufReader, Read, Seek, SeekFrom, Write};
use std::path::Path;

use quick_xml::Reader;
use quick_xml::events::Event;
use serde_json::value::RawValue;
use tracing::warn;

use super::destination::Destination;
use super::item::{self, Fields, Projection};
use super::journal::Journal;
use super::{Empty, Existing, Feed, FeedError, FeedOptions, FeedSummary, ItemText, Layout, text};

/// What ends a file.
const END: &[u8] = b"</items>";
/// Bytes in which the end of a file is looked for: it, and white space.
const TAIL: u64 = 256;

#[derive(Debug)]
pub(super) struct Xml {
    journal: Journal,
    destination: Destination,
    before: Option<Before>,
    projection: Option<Projection>,
    layout: Layout,
    empty: Empty,
    lines: String,
}

/// The file that is appended to, up to its end tag.
#[derive(Debug)]
struct Before {
    file: File,
    end: u64,
}

impl Xml {
    pub(super) fn open(path: &Path, options: FeedOptions) -> Result<Self, FeedError> {
        let (destination, journal) = Destination::file(path, options.existing)?;
        let before = match options.existing {
            Existing::Append => Before::read(path),
            Existing::Overwrite => Ok(None),
        };
        match before {
            Ok(before) => Ok(Self::new(destination, journal, before, &options)),
            Err(error) => {
                journal.abandon();
                Err(error)
            }
        }
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
            layout: options.layout,
            empty: options.empty,
            lines: String::new(),
        }
    }
}

impl Feed for Xml {
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
        let (before, layout, name) = (self.before.take(), self.layout, &uri);
        let bytes = self.destination.finish(self.journal, |journal, out| {
            let failed = |source| FeedError::Io { doing: "write", path: name.to_owned(), source };
            match &before {
                Some(before) => before.copy(out).map_err(failed)?,
                None => out.write_all(b"<?xml version=\"1.0\" encoding=\"utf-8\"?>\n<items>").map_err(failed)?,
            }
            if layout != Layout::OneLine && before.is_none() {
                out.write_all(b"\n").map_err(failed)?;
            }
            let mut element = Element::new(layout);
            journal.each_line(|line| {
                let Ok(fields) = Fields::parse(line) else {
                    warn!(path = name, "left out a line of the journal that is not an item");
                    return Ok(());
                };
                items += 1;
                out.write_all(element.item(&fields).as_bytes()).map_err(failed)
            })?;
            if element.replaced > 0 {
                let characters = element.replaced;
                warn!(path = name, characters, "characters that XML does not allow were written as U+FFFD");
            }
            out.write_all(END).and_then(|()| out.flush()).map_err(failed)
        })?;
        Ok(FeedSummary { uri, items, bytes })
    }
}

/// Writes items; kept for its memory.
struct Element {
    layout: Layout,
    out: String,
    text: String,
    replaced: u64,
}

impl Element {
    fn new(layout: Layout) -> Self {
        Self { layout, out: String::new(), text: String::new(), replaced: 0 }
    }

    fn item(&mut self, Fields(fields): &Fields<'_>) -> &str {
        self.out.clear();
        self.indent(1);
        self.out.push_str("<item>");
        for (name, value) in fields {
            self.line(2);
            self.field(name, value, 2);
        }
        if !fields.is_empty() {
            self.line(1);
        }
        self.out.push_str("</item>");
        if self.layout != Layout::OneLine {
            self.out.push('\n');
        }
        &self.out
    }

    /// The depth of an item is bounded where its text is made.
    fn field(&mut self, name: &str, value: &RawValue, depth: usize) {
        let tag = if is_name(name) { name } else { "field" };
        self.out.push('<');
        self.out.push_str(tag);
        if tag != name {
            self.out.push_str(" name=\"");
            self.escaped(name);
            self.out.push('"');
        }
        self.out.push('>');
        let raw = value.get();
        let inner: Vec<(String, &RawValue)> = match raw.as_bytes().first() {
            Some(b'[') => {
                let values: Vec<&RawValue> = serde_json::from_str(raw).unwrap_or_default();
                values.into_iter().map(|value| ("value".to_owned(), value)).collect()
            }
            Some(b'{') => Fields::parse(raw).map(|Fields(fields)| fields).unwrap_or_default(),
            _ => {
                self.scalar(raw);
                Vec::new()
            }
        };
        for (name, value) in &inner {
            self.line(depth + 1);
            self.field(name, value, depth + 1);
        }
        if !inner.is_empty() {
            self.line(depth);
        }
        self.out.push_str("</");
        self.out.push_str(tag);
        self.out.push('>');
    }

    fn scalar(&mut self, raw: &str) {
        match raw.as_bytes().first() {
            Some(b'"') => {
                let mut text = std::mem::take(&mut self.text);
                text.clear();
                text::decode_string(raw, &mut text);
                self.escaped(&text);
                self.text = text;
            }
            Some(b'n') => {}
            Some(b't') => self.out.push_str("True"),
            Some(b'f') => self.out.push_str("False"),
            _ => self.out.push_str(raw),
        }
    }

    fn escaped(&mut self, text: &str) {
        for c in text.chars() {
            match c {
                '<' => self.out.push_str("&lt;"),
                '>' => self.out.push_str("&gt;"),
                '&' => self.out.push_str("&amp;"),
                '"' => self.out.push_str("&quot;"),
                // A reader makes other line ends of it.
                '\r' => self.out.push_str("&#13;"),
                '\t' | '\n' => self.out.push(c),
                '\0'..='\u{1f}' | '\u{fffe}' | '\u{ffff}' => {
                    self.replaced += 1;
                    self.out.push(char::REPLACEMENT_CHARACTER);
                }
                other => self.out.push(other),
            }
        }
    }

    /// A new line before what lies so deep, where fields have lines of their own.
    fn line(&mut self, depth: usize) {
        if matches!(self.layout, Layout::Indented(_)) {
            self.out.push('\n');
            self.indent(depth);
        }
    }

    fn indent(&mut self, depth: usize) {
        if let Layout::Indented(width) = self.layout {
            self.out.extend(std::iter::repeat_n(' ', depth * usize::from(width)));
        }
    }
}

/// Whether a field's name may be that of an element: the names of XML 1.0 in ASCII, without a colon, which would be a prefix.
fn is_name(name: &str) -> bool {
    let mut bytes = name.bytes();
    bytes.next().is_some_and(|first| first.is_ascii_alphabetic() || first == b'_')
        && bytes.all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-' | b'.'))
}

impl Before {
    /// Finds the end of the items of an existing file; `None` where there is no file, or nothing in it.
    fn read(path: &Path) -> Result<Option<Self>, FeedError> {
        let mut file = match File::open(path) {
            Ok(file) => file,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(FeedError::io("read", path)(error)),
        };
        let failed = |source| FeedError::io("read", path)(source);
        let other = |reason: String| FeedError::Existing { path: path.display().to_string(), expected: "xml with items", reason };
        let len = file.metadata().map_err(failed)?.len();
        if len == 0 {
            return Ok(None);
        }
        check(&file).map_err(other)?;
        let from = len.saturating_sub(TAIL);
        let mut tail = Vec::new();
        file.seek(SeekFrom::Start(from)).and_then(|_| file.read_to_end(&mut tail)).map_err(failed)?;
        let end = memchr::memmem::rfind(&tail, END);
        let is_last = |end: usize| tail.get(end + END.len()..).is_some_and(|rest| rest.trim_ascii().is_empty());
        match end.filter(|end| is_last(*end)) {
            Some(end) => Ok(Some(Self { file, end: from + end as u64 })),
            None => Err(other("it does not end with </items>".to_owned())),
        }
    }

    fn copy(&self, out: &mut dyn Write) -> io::Result<()> {
        let mut file = &self.file;
        file.seek(SeekFrom::Start(0))?;
        let copied = io::copy(&mut file.take(self.end), out)?;
        if copied == self.end { Ok(()) } else { Err(io::ErrorKind::UnexpectedEof.into()) }
    }
}

/// Whether a file is one element `items`, with what may stand around it.
fn check(file: &File) -> Result<(), String> {
    let mut reader = Reader::from_reader(BufReader::with_capacity(1 << 16, file));
    let (mut buffer, mut depth, mut roots) = (Vec::new(), 0_u64, 0_u64);
    loop {
        buffer.clear();
        match reader.read_event_into(&mut buffer).map_err(|error| error.to_string())? {
            Event::Start(start) => {
                if depth == 0 {
                    roots += 1;
                    if start.name().as_ref() != "items" {
                        return Err("its first element is not <items>".to_owned());
                    }
                }
                depth += 1;
            }
            Event::End(_) => depth = depth.saturating_sub(1),
            Event::Empty(_) if depth == 0 => return Err("its first element is empty".to_owned()),
            Event::Text(text) if depth == 0 && !text.trim_ascii().is_empty() => return Err("it begins with text".to_owned()),
            Event::Eof => break,
            _ => {}
        }
    }
    if roots == 1 && depth == 0 { Ok(()) } else { Err("it is not one element <items> with its end".to_owned()) }
}
