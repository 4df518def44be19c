//! JSON lines: one value a line.

use std::iter::Enumerate;
use std::marker::PhantomData;
use std::str::Split;

use serde::de::DeserializeOwned;

use super::super::response::Response;

/// A line that cannot be used; the next one may be.
#[derive(Debug, thiserror::Error)]
#[error("line {line} of {url} is not the JSON that was expected: {source}")]
pub struct JsonLineError {
    url: String,
    line: usize,
    source: serde_json::Error,
}

impl JsonLineError {
    /// The line, from 1.
    #[must_use]
    pub fn line(&self) -> usize {
        self.line
    }
}

/// The values of JSON lines, in order. Lines of white space are passed over.
#[derive(Debug)]
pub struct JsonLines<'r, T> {
    url: String,
    lines: Enumerate<Split<'r, char>>,
    made: PhantomData<fn() -> T>,
}

impl Response {
    /// The values of a body of JSON lines.
    ///
    /// ```
    /// # use dragline::prelude::*;
    /// # #[derive(Deserialize)] struct Book { title: String }
    /// # fn read(response: &Response) {
    /// for book in response.json_lines::<Book>().flatten() {
    ///     println!("{}", book.title);
    /// }
    /// # }
    /// ```
    #[must_use]
    pub fn json_lines<T: DeserializeOwned>(&self) -> JsonLines<'_, T> {
        JsonLines::read(self.url().as_str(), self.text())
    }
}

impl<'r, T: DeserializeOwned> JsonLines<'r, T> {
    pub(super) fn read(url: &str, text: &'r str) -> Self {
        Self { url: url.to_owned(), lines: text.split('\n').enumerate(), made: PhantomData }
    }
}

impl<T: DeserializeOwned> Iterator for JsonLines<'_, T> {
    type Item = Result<T, JsonLineError>;

    fn next(&mut self) -> Option<Self::Item> {
        let (place, line) = self.lines.find(|(_, line)| !line.trim_ascii().is_empty())?;
        let read = serde_json::from_str(line);
        Some(read.map_err(|source| JsonLineError { url: self.url.clone(), line: place + 1, source }))
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing)]
    use serde_json::{Value, json};

    use super::*;

    #[test]
    fn a_broken_line_costs_only_itself() {
        let text = "{\"n\": 1}\r\n\r\n  \n{\"n\": \n[2]";
        let read: Vec<Result<Value, JsonLineError>> = JsonLines::read("https://a.test/f", text).collect();
        assert_eq!((read.len(), read[0].as_ref().unwrap(), read[2].as_ref().unwrap()), (3, &json!({"n": 1}), &json!([2])));
        let error = read[1].as_ref().unwrap_err();
        assert!(error.line() == 4 && error.to_string().starts_with("line 4 of https://a.test/f"), "{error}");
    }
}
