//! CSV by row, the columns named by the header.

use std::sync::Arc;

use ::csv::{Reader, ReaderBuilder, StringRecord};
use serde::de::DeserializeOwned;

use super::super::response::Response;

/// How a CSV feed is written.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct CsvOptions {
    /// What stands between the values of a row, a comma by default.
    pub delimiter: u8,
    /// What stands around a value that holds delimiters or line ends, `"` by default.
    pub quote: u8,
    /// The names of the columns, where the feed has no header.
    pub headers: Option<Vec<String>>,
}

impl Default for CsvOptions {
    fn default() -> Self {
        Self { delimiter: b',', quote: b'"', headers: None }
    }
}

impl CsvOptions {
    /// Sets the delimiter.
    #[must_use]
    pub fn delimiter(mut self, delimiter: u8) -> Self {
        self.delimiter = delimiter;
        self
    }

    /// Sets the quote.
    #[must_use]
    pub fn quote(mut self, quote: u8) -> Self {
        self.quote = quote;
        self
    }

    /// Names the columns of a feed without a header.
    #[must_use]
    pub fn headers<N: Into<String>>(mut self, names: impl IntoIterator<Item = N>) -> Self {
        self.headers = Some(names.into_iter().map(Into::into).collect());
        self
    }
}

/// A row that cannot be used; the next one may be.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum CsvError {
    /// The row has more or fewer values than there are columns.
    #[error("line {line} of {url} has {found} values where the header has {expected}")]
    Columns {
        /// The feed.
        url: String,
        /// The line the row begins on, from 1.
        line: u64,
        /// Its values.
        found: usize,
        /// The columns.
        expected: usize,
    },
    /// The row is not of the expected shape.
    #[error("line {line} of {url} is not of the expected shape: {reason}")]
    Shape {
        /// The feed.
        url: String,
        /// The line the row begins on, from 1.
        line: u64,
        /// What is wrong.
        reason: String,
    },
}

/// The rows of a CSV feed, in order. Empty lines are passed over.
#[derive(Debug)]
pub struct CsvRows<'r> {
    feed: Arc<Feed>,
    text: &'r str,
    reader: Reader<&'r [u8]>,
    /// How far lines were counted, and how many begin there or before.
    counted: (usize, u64),
}

/// A row of a CSV feed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CsvRow {
    feed: Arc<Feed>,
    values: StringRecord,
    line: u64,
}

/// What all rows share.
#[derive(Debug, PartialEq, Eq)]
struct Feed {
    url: String,
    headers: StringRecord,
}

impl Response {
    /// The rows of a CSV feed whose first row names the columns.
    ///
    /// ```
    /// # use dragline::prelude::*;
    /// # fn read(response: &Response) {
    /// for row in response.csv().flatten() {
    ///     println!("{:?} costs {:?}", row.get("title"), row.get("price"));
    /// }
    /// # }
    /// ```
    #[must_use]
    pub fn csv(&self) -> CsvRows<'_> {
        self.csv_with(&CsvOptions::default())
    }

    /// The rows of a CSV feed of another form.
    #[must_use]
    pub fn csv_with(&self, options: &CsvOptions) -> CsvRows<'_> {
        CsvRows::read(self.url().as_str(), self.text(), options)
    }
}

impl<'r> CsvRows<'r> {
    pub(super) fn read(url: &str, text: &'r str, options: &CsvOptions) -> Self {
        let mut reader = ReaderBuilder::new()
            .delimiter(options.delimiter)
            .quote(options.quote)
            .flexible(true)
            .has_headers(false)
            .from_reader(text.as_bytes());
        let headers = match &options.headers {
            Some(names) => StringRecord::from_iter(names),
            None => {
                let mut headers = StringRecord::new();
                // From memory, and text: this cannot fail.
                let _ = reader.read_record(&mut headers);
                headers.iter().map(str::trim).collect()
            }
        };
        Self { feed: Arc::new(Feed { url: url.to_owned(), headers }), text, reader, counted: (0, 1) }
    }

    /// The names of the columns.
    pub fn headers(&self) -> impl Iterator<Item = &str> {
        self.feed.headers.iter()
    }

    /// The line that the row behind this place begins on; the reader stops between CR and LF, and before empty lines.
    fn line_behind(&mut self, place: u64) -> u64 {
        let (from, before) = self.counted;
        let place = usize::try_from(place).unwrap_or(usize::MAX);
        let behind = self.text.as_bytes().get(place..).unwrap_or_default();
        let to = place + behind.iter().take_while(|byte| matches!(byte, b'\r' | b'\n')).count();
        let passed = self.text.get(from..to).unwrap_or_default();
        let count = |line_end: &str| passed.matches(line_end).count();
        let ends = count("\n") + count("\r") - count("\r\n");
        self.counted = (to, before + ends as u64);
        self.counted.1
    }
}

impl Iterator for CsvRows<'_> {
    type Item = Result<CsvRow, CsvError>;

    fn next(&mut self) -> Option<Self::Item> {
        let mut values = StringRecord::new();
        let is_more = self.reader.read_record(&mut values).unwrap_or(false);
        if !is_more {
            return None;
        }
        let line = self.line_behind(values.position().map_or(0, ::csv::Position::byte));
        if values.len() != self.feed.headers.len() {
            let (found, expected) = (values.len(), self.feed.headers.len());
            return Some(Err(CsvError::Columns { url: self.feed.url.clone(), line, found, expected }));
        }
        Some(Ok(CsvRow { feed: Arc::clone(&self.feed), values, line }))
    }
}

impl CsvRow {
    /// The value in a column; of several columns of a name the first.
    #[must_use]
    pub fn get(&self, column: &str) -> Option<&str> {
        self.at(self.feed.headers.iter().position(|name| name == column)?)
    }

    /// The value in the column with this number, from 0.
    #[must_use]
    pub fn at(&self, column: usize) -> Option<&str> {
        self.values.get(column)
    }

    /// Names and values, in the order of the columns.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &str)> {
        self.feed.headers.iter().zip(&self.values)
    }

    /// The line the row begins on, from 1.
    #[must_use]
    pub fn line(&self) -> u64 {
        self.line
    }

    /// The row as a struct with the columns as fields; an empty value is a `None`.
    ///
    /// # Errors
    /// When a column is missing, or its value is of another type.
    pub fn to<T: DeserializeOwned>(&self) -> Result<T, CsvError> {
        self.values.deserialize(Some(&self.feed.headers)).map_err(|error| CsvError::Shape {
            url: self.feed.url.clone(),
            line: self.line,
            reason: error.to_string(),
        })
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing)]
    use proptest::prelude::*;
    use serde::Deserialize;

    use super::*;

    fn rows(text: &str, options: &CsvOptions) -> Vec<Result<Vec<String>, String>> {
        let rows = CsvRows::read("https://a.test/f.csv", text, options);
        rows.map(|row| row.map(|row| row.values.iter().map(str::to_owned).collect()).map_err(|e| e.to_string())).collect()
    }

    #[test]
    fn rows_are_named_by_the_header() {
        let text = "id, name ,note\r\n1,Ann,\"a, \"\"b\"\"\nc\"\r\n\r\n2,Bo,";
        let rows: Vec<CsvRow> = CsvRows::read("u", text, &CsvOptions::default()).map(Result::unwrap).collect();
        assert_eq!((rows[0].get("name"), rows[0].get("note"), rows[0].line()), (Some("Ann"), Some("a, \"b\"\nc"), 2));
        assert_eq!(rows[1].iter().collect::<Vec<_>>(), [("id", "2"), ("name", "Bo"), ("note", "")]);
        assert_eq!((rows[1].at(1), rows[1].at(3), rows[1].get("none"), rows[1].line()), (Some("Bo"), None, None, 5));
    }

    #[test]
    fn a_row_of_another_length_is_named_and_the_rest_is_read() {
        let found = rows("a,b\n1,2\n3\n4,5,6\n7,8\n", &CsvOptions::default());
        assert!(found[0].is_ok() && found[3].is_ok(), "{found:?}");
        assert_eq!(found[1].as_ref().unwrap_err(), "line 3 of https://a.test/f.csv has 1 values where the header has 2");
        assert!(found[2].as_ref().unwrap_err().contains("line 4"), "{found:?}");
    }

    #[test]
    fn a_feed_may_have_other_signs_and_no_header() {
        let options = CsvOptions::default().delimiter(b';').quote(b'\'').headers(["x", "y"]);
        assert_eq!(rows("1;'a;b'\n", &options), [Ok(vec!["1".to_owned(), "a;b".to_owned()])]);
        assert!(rows("", &CsvOptions::default()).is_empty());
        assert!(rows("only,a,header", &CsvOptions::default()).is_empty());
    }

    #[test]
    fn a_row_becomes_a_struct() {
        #[derive(Debug, Deserialize, PartialEq)]
        struct Book {
            title: String,
            stock: Option<u32>,
        }
        let rows: Vec<CsvRow> =
            CsvRows::read("u", "stock,title,x\n3,Sea,1\n,Wind,2\nmany,Tide,3", &CsvOptions::default()).flatten().collect();
        assert_eq!(rows[0].to::<Book>().unwrap(), Book { title: "Sea".into(), stock: Some(3) });
        assert_eq!(rows[1].to::<Book>().unwrap(), Book { title: "Wind".into(), stock: None });
        assert!(rows[2].to::<Book>().unwrap_err().to_string().starts_with("line 4 of u"));
    }

    proptest! {
        #[test]
        fn any_text_ends(text in "[\",;\n\ra\u{e9}]{0,200}") {
            let bytes = text.len();
            prop_assert!(rows(&text, &CsvOptions::default()).len() <= bytes + 1);
        }
    }
}
