//! CSV (RFC 4180, UTF-8, CRLF) with a header that has a column for every field of every item, late ones too.
//!
//! Items gather in the journal; at close the file is written anew and put in place. Appending to a file with another
//! header keeps its columns and rows and adds the new columns behind. Values as Scrapy writes them: null is empty, a
//! list of texts is joined by commas, other nested values are JSON, booleans are `True` and `False`.

use std::collections::HashMap;
use std::fs::File;
use std::io::{self, BufReader, Write};
use std::path::Path;

use ::csv::{ByteRecord, ReaderBuilder, Terminator, WriterBuilder};
use serde_json::value::RawValue;
use tracing::warn;

use super::destination::Destination;
use super::item::{self, Fields};
use super::journal::Journal;
use super::{Empty, Existing, Feed, FeedError, FeedOptions, FeedSummary, ItemText, text};

#[derive(Debug)]
pub(super) struct Csv {
    destination: Destination,
    journal: Journal,
    columns: Columns,
    before: Option<Before>,
    empty: Empty,
    lines: String,
}

/// The columns in their order. Bounded by the distinct field names of the crawl.
#[derive(Debug, Default)]
struct Columns {
    names: Vec<String>,
    places: HashMap<String, usize>,
    /// Whether `fields` was given: then no field of an item adds a column.
    fixed: bool,
}

/// The file that is appended to.
#[derive(Debug)]
struct Before {
    file: File,
    columns: usize,
}

impl Columns {
    fn add(&mut self, name: &str) {
        if !self.places.contains_key(name) {
            self.places.insert(name.to_owned(), self.names.len());
            self.names.push(name.to_owned());
        }
    }

    fn add_all(&mut self, Fields(fields): &Fields<'_>) {
        if !self.fixed {
            for (name, _) in fields {
                self.add(name);
            }
        }
    }

    fn start(existing: &[String], options: &FeedOptions) -> Self {
        let mut columns = Self::default();
        for name in existing {
            columns.places.entry(name.clone()).or_insert(columns.names.len());
            columns.names.push(name.clone());
        }
        for name in options.fields.iter().flatten() {
            columns.add(name);
        }
        columns.fixed = options.fields.is_some();
        columns
    }
}

impl Csv {
    pub(super) fn open(path: &Path, options: FeedOptions) -> Result<Self, FeedError> {
        let (destination, mut journal) = Destination::file(path, options.existing)?;
        let before = match options.existing {
            Existing::Append => read_before(path),
            Existing::Overwrite => Ok((Vec::new(), None)),
        };
        let (header, before) = match before {
            Ok(before) => before,
            Err(error) => {
                journal.abandon();
                return Err(error);
            }
        };
        let mut columns = Columns::start(&header, &options);
        journal.each_line(|line| {
            if let Ok(fields) = Fields::parse(line) {
                columns.add_all(&fields);
            }
            Ok(())
        })?;
        Ok(Self { destination, journal, columns, before, empty: options.empty, lines: String::new() })
    }

    pub(super) fn to_writer(out: Box<dyn Write + Send>, options: FeedOptions) -> Result<Self, FeedError> {
        Ok(Self {
            destination: Destination::Writer(out),
            journal: Journal::nameless()?,
            columns: Columns::start(&[], &options),
            before: None,
            empty: options.empty,
            lines: String::new(),
        })
    }
}

impl Feed for Csv {
    fn write(&mut self, items: &[ItemText]) -> Result<(), FeedError> {
        self.journal.sink().make_room()?;
        self.lines.clear();
        let mut parsed = Vec::with_capacity(items.len());
        for item in items {
            let fields = item::check(item.as_str())
                .and_then(|()| Fields::parse(item.as_str()).map_err(|error| error.to_string()))
                .map_err(|reason| FeedError::Item { path: self.destination.name(), reason })?;
            parsed.push(fields);
            self.lines.push_str(item.as_str());
            self.lines.push('\n');
        }
        // Only now: a call that fails leaves no columns behind.
        for fields in &parsed {
            self.columns.add_all(fields);
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
        let table = Table { columns: &self.columns, before: self.before.take(), name: &uri };
        let bytes = self.destination.finish(self.journal, |journal, out| table.write(journal, out, &mut items))?;
        Ok(FeedSummary { uri, items, bytes })
    }
}

struct Table<'c> {
    columns: &'c Columns,
    before: Option<Before>,
    name: &'c str,
}

impl Table<'_> {
    fn write(self, journal: &mut Journal, out: &mut dyn Write, items: &mut u64) -> Result<(), FeedError> {
        let failed = |error| FeedError::Io { doing: "write", path: self.name.to_owned(), source: io_error(error) };
        let names = &self.columns.names;
        let mut writer = WriterBuilder::new().terminator(Terminator::CRLF).from_writer(out);
        if !names.is_empty() {
            writer.write_record(names).map_err(failed)?;
        }
        if let Some(before) = &self.before {
            let missing = names.len().saturating_sub(before.columns);
            let mut rows = ReaderBuilder::new().from_reader(BufReader::with_capacity(
                1 << 16,
                before.rewound().map_err(|source| FeedError::Io { doing: "read", path: self.name.to_owned(), source })?,
            ));
            let mut row = ByteRecord::new();
            while rows.read_byte_record(&mut row).map_err(failed)? {
                row.extend(std::iter::repeat_n("", missing));
                writer.write_byte_record(&row).map_err(failed)?;
            }
        }
        let mut cells = vec![String::new(); names.len()];
        let mut without_columns: u64 = 0;
        journal.each_line(|line| {
            let fields = match Fields::parse(line) {
                Ok(Fields(fields)) => fields,
                Err(error) => {
                    let reason = error.to_string();
                    warn!(path = self.name, reason, "left out a line of the journal that is not an item");
                    return Ok(());
                }
            };
            cells.iter_mut().for_each(String::clear);
            for (name, value) in &fields {
                if let Some(value_cell) = self.columns.places.get(name).and_then(|place| cells.get_mut(*place)) {
                    value_cell.clear();
                    cell(value, value_cell);
                }
            }
            *items += 1;
            if cells.is_empty() {
                without_columns += 1;
                return Ok(());
            }
            writer.write_record(&cells).map_err(failed)
        })?;
        if without_columns > 0 {
            warn!(path = self.name, items = without_columns, "no item has a field, so the csv file has no rows");
        }
        writer.flush().map_err(|source| FeedError::Io { doing: "write", path: self.name.to_owned(), source })
    }
}

impl Before {
    fn rewound(&self) -> io::Result<&File> {
        use std::io::Seek;
        let mut file = &self.file;
        file.rewind()?;
        Ok(file)
    }
}

/// The header of an existing file, which is read to its end once so that a file that cannot be kept is known now.
fn read_before(path: &Path) -> Result<(Vec<String>, Option<Before>), FeedError> {
    let file = match File::open(path) {
        Ok(file) => file,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok((Vec::new(), None)),
        Err(error) => return Err(FeedError::io("read", path)(error)),
    };
    let other = |error: ::csv::Error| FeedError::Existing {
        path: path.display().to_string(),
        expected: "a csv file with as many values in each row as in its header",
        reason: error.to_string(),
    };
    let mut reader = ReaderBuilder::new().from_reader(BufReader::with_capacity(1 << 16, &file));
    let header: Vec<String> = reader.headers().map_err(other)?.iter().map(str::to_owned).collect();
    let mut row = ByteRecord::new();
    while reader.read_byte_record(&mut row).map_err(other)? {}
    drop(reader);
    if header.is_empty() {
        return Ok((header, None));
    }
    let columns = header.len();
    Ok((header, Some(Before { file, columns })))
}

/// Writes a value as a cell.
fn cell(value: &RawValue, out: &mut String) {
    let raw = value.get();
    match raw.as_bytes().first() {
        Some(b'"') => text::decode_string(raw, out),
        Some(b'n') => {}
        Some(b't') => out.push_str("True"),
        Some(b'f') => out.push_str("False"),
        Some(b'[') => match serde_json::from_str::<Vec<&RawValue>>(raw) {
            Ok(values) if values.iter().all(|value| value.get().starts_with('"')) => {
                for (place, value) in values.iter().enumerate() {
                    if place > 0 {
                        out.push(',');
                    }
                    text::decode_string(value.get(), out);
                }
            }
            _ => text::unescape(raw, out),
        },
        Some(b'{') => text::unescape(raw, out),
        _ => out.push_str(raw),
    }
}

fn io_error(error: ::csv::Error) -> io::Error {
    match error.into_kind() {
        ::csv::ErrorKind::Io(error) => error,
        other => io::Error::other(format!("{other:?}")),
    }
}
