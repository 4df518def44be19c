//! The two table forms: JSON Lines and CSV, with the line of each row.

use std::collections::HashSet;

use serde_json::{Map, Value};

use super::{ImportError, MAX_BYTES, MAX_ROWS};

/// A row with the line it begins at.
pub(super) type Row<T> = (u64, Result<T, String>);

/// The cells of a row that are not empty, by the name of their column.
pub(super) type Cells = Vec<(String, String)>;

/// The lines that are not empty, as text.
pub(super) fn lines(data: &[u8]) -> Result<Vec<Row<&str>>, ImportError> {
    let data = checked(data)?;
    let mut rows = Vec::new();
    for (line, bytes) in (1..).zip(data.split(|byte| *byte == b'\n')) {
        let text = std::str::from_utf8(bytes).map(str::trim).map_err(|_| "the line is not UTF-8".to_owned());
        if text == Ok("") {
            continue;
        }
        if rows.len() == MAX_ROWS {
            return Err(ImportError::TooManyRows);
        }
        rows.push((line, text));
    }
    Ok(rows)
}

/// JSON Lines: one object per line.
pub(super) fn jsonl(data: &[u8]) -> Result<Vec<Row<Map<String, Value>>>, ImportError> {
    Ok(lines(data)?.into_iter().map(|(line, text)| (line, text.and_then(object))).collect())
}

fn object(text: &str) -> Result<Map<String, Value>, String> {
    match serde_json::from_str(text) {
        Ok(Value::Object(map)) => Ok(map),
        Ok(_) => Err("expected a JSON object".to_owned()),
        // The parser's own words could quote a value.
        Err(error) if error.is_eof() => Err("not JSON: the line ends too early; an object has to be on one line".to_owned()),
        Err(error) => Err(format!("not JSON: wrong at column {}", error.column())),
    }
}

/// CSV: a header and rows. `reserved` are the columns that may start with `_`.
pub(super) fn csv(data: &[u8], reserved: &[&str]) -> Result<Vec<Row<Cells>>, ImportError> {
    let data = checked(data)?;
    let mut reader = csv::ReaderBuilder::new().has_headers(false).flexible(true).from_reader(data);
    let mut record = csv::ByteRecord::new();
    if !matches!(reader.read_byte_record(&mut record), Ok(true)) {
        return Err(ImportError::Header { column: 1, problem: "there is no header; write the names of the columns first" });
    }
    let header = header(&record, reserved)?;
    let mut rows = Vec::new();
    let mut lines = Lines { data, at: 0, line: 1 };
    while matches!(reader.read_byte_record(&mut record), Ok(true)) {
        if rows.len() == MAX_ROWS {
            return Err(ImportError::TooManyRows);
        }
        let line = lines.of(record.position().map_or(0, csv::Position::byte));
        rows.push((line, cells(&header, &record)));
    }
    Ok(rows)
}

/// Counts lines as an editor does; the reader itself leaves out the breaks within quotes.
struct Lines<'a> {
    data: &'a [u8],
    at: usize,
    line: u64,
}

impl Lines<'_> {
    /// The line of the record that begins at `byte` or behind the empty lines there. Asked in ascending order.
    fn of(&mut self, byte: u64) -> u64 {
        while let Some(&next) = self.data.get(self.at) {
            let is_break = matches!(next, b'\r' | b'\n');
            if u64::try_from(self.at).is_ok_and(|at| at >= byte) && !is_break {
                break;
            }
            self.at += 1;
            if next == b'\n' || (next == b'\r' && self.data.get(self.at) != Some(&b'\n')) {
                self.line += 1;
            }
        }
        self.line
    }
}

fn header(record: &csv::ByteRecord, reserved: &[&str]) -> Result<Vec<String>, ImportError> {
    let mut seen = HashSet::new();
    let mut names = Vec::with_capacity(record.len());
    for (column, name) in (1..).zip(record) {
        let wrong = |problem| ImportError::Header { column, problem };
        let name = std::str::from_utf8(name).map_err(|_| wrong("the name is not UTF-8"))?.trim();
        if name.is_empty() {
            return Err(wrong("the name is empty"));
        }
        if name.starts_with('_') && !reserved.contains(&name) {
            return Err(wrong("only _account, _region, _tags and _labels of identities may start with _"));
        }
        if !seen.insert(name.to_owned()) {
            return Err(wrong("another column has this name"));
        }
        names.push(name.to_owned());
    }
    Ok(names)
}

fn cells(header: &[String], record: &csv::ByteRecord) -> Result<Cells, String> {
    if record.len() != header.len() {
        return Err(format!("the row has {} cells; the header has {}", record.len(), header.len()));
    }
    let mut cells = Vec::with_capacity(header.len());
    for (name, cell) in header.iter().zip(record) {
        let cell = std::str::from_utf8(cell).map_err(|_| format!("{name}: the cell is not UTF-8"))?;
        if !cell.is_empty() {
            cells.push((name.clone(), cell.to_owned()));
        }
    }
    Ok(cells)
}

/// The value of a cell: a JSON list or object if it is one, else text.
pub(super) fn cell_value(cell: String) -> Value {
    if cell.starts_with(['{', '[']) {
        return serde_json::from_str(&cell).unwrap_or(Value::String(cell));
    }
    Value::String(cell)
}

/// The data without a byte order mark, if it is not too large.
fn checked(data: &[u8]) -> Result<&[u8], ImportError> {
    if data.len() > MAX_BYTES {
        return Err(ImportError::TooLarge(data.len()));
    }
    Ok(data.strip_prefix(b"\xef\xbb\xbf").unwrap_or(data))
}
