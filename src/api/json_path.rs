//! JSONPath (RFC 9535) on answers that are JSON.
//!
//! The body is read once, on the first question; what is found is borrowed from it.

use serde::de::DeserializeOwned;
use serde_json::Value;

use super::response::{JsonError, Response};

/// A question to a JSON document that has no answer.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum JsonPathError {
    /// The path is none.
    #[error("{path:?} is no JSONPath ({reason}); write one like $.items[*].name, $..price or $.items[?@.stock > 0]")]
    Path {
        /// What was given.
        path: String,
        /// What is wrong, and where.
        reason: String,
    },
    /// The body is no JSON.
    #[error(transparent)]
    Json(#[from] JsonError),
}

/// An element of a JSON document that is not of the shape that was expected.
#[derive(Debug, thiserror::Error)]
#[error("item {number} of {path:?} in {url} is not of the expected shape: {source}")]
pub struct JsonItemError {
    url: String,
    path: String,
    /// From 1.
    number: usize,
    source: serde_json::Error,
}

/// What a path finds in a value, in the order of the document.
///
/// # Errors
/// When the path is none.
pub fn select<'v>(value: &'v Value, path: &str) -> Result<Vec<&'v Value>, JsonPathError> {
    let parsed = serde_json_path::JsonPath::parse(path);
    let parsed = parsed.map_err(|error| JsonPathError::Path { path: path.to_owned(), reason: error.to_string() })?;
    Ok(parsed.query(value).all())
}

impl Response {
    /// What a JSONPath finds in the body, in the order of the document.
    ///
    /// ```
    /// # use dragline::prelude::*;
    /// # fn read(response: &Response) -> Result<(), CallbackError> {
    /// let names: Vec<&str> = response.json_path("$.books[?@.stock > 0].title")?.into_iter().filter_map(Value::as_str).collect();
    /// let next = response.json_path("$.links.next")?.first().and_then(|next| next.as_str());
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// When the body is no JSON, or the path is none.
    pub fn json_path(&self, path: &str) -> Result<Vec<&Value>, JsonPathError> {
        select(self.json_value()?, path)
    }

    /// What a JSONPath finds in the body, each as a `T`: one that is not of this shape is an error of its own.
    ///
    /// ```
    /// # use dragline::prelude::*;
    /// # #[derive(Deserialize)] struct Book { title: String }
    /// # fn read(response: &Response) -> Result<(), CallbackError> {
    /// for book in response.json_items::<Book>("$.books[*]")? {
    ///     match book {
    ///         Ok(book) => println!("{}", book.title),
    ///         Err(error) => eprintln!("{error}"),
    ///     }
    /// }
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// As [`Response::json_path`].
    pub fn json_items<'r, T: DeserializeOwned>(
        &'r self,
        path: &'r str,
    ) -> Result<impl Iterator<Item = Result<T, JsonItemError>> + 'r, JsonPathError> {
        let found = self.json_path(path)?;
        Ok(found.into_iter().enumerate().map(move |(place, value)| {
            T::deserialize(value).map_err(|source| JsonItemError {
                url: self.url().to_string(),
                path: path.to_owned(),
                number: place + 1,
                source,
            })
        }))
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing)]
    use serde_json::json;

    use super::*;

    #[test]
    fn a_path_finds_values_in_the_order_of_the_document() {
        let shop = json!({"books": [{"t": "b", "p": 3}, {"t": "a", "p": 1.5, "old": true}], "n": {"t": "x"}});
        for (path, found) in [
            ("$.books[*].t", json!(["b", "a"])),
            ("$..t", json!(["b", "a", "x"])),
            ("$.books[-1:].p", json!([1.5])),
            ("$.books[?@.p > 2].t", json!(["b"])),
            ("$.books[?@.old].t", json!(["a"])),
            ("$.books[?match(@.t, '[a-a]')].p", json!([1.5])),
            ("$.none", json!([])),
            ("$", json!([shop])),
        ] {
            let values: Vec<Value> = select(&shop, path).unwrap().into_iter().cloned().collect();
            assert_eq!(Value::Array(values), found, "{path}");
        }
    }

    #[test]
    fn a_bad_path_is_named_with_a_good_one() {
        for path in ["", "books", "$.books[", "$..", "$[?@.a = 1]"] {
            let error = select(&json!({}), path).unwrap_err().to_string();
            assert!(error.contains(&format!("{path:?}")) && error.contains("$.items[*].name"), "{error}");
        }
    }
}
