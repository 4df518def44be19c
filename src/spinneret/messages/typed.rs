//! What the server delivers as JSON, read as a type of the caller's own.
//!
//! An error tells the place and what kind of thing is wrong there, never what stands there: it may be a secret, and the
//! errors of a JSON library quote it.

use serde::Deserialize;
use serde_json::Value;
use serde_json::error::Category;

use super::{ConfigItem, Credential};
use crate::spinneret::code::Code;
use crate::spinneret::error::Details;
use crate::spinneret::{Error, Result};

impl ConfigItem {
    /// The content as JSON, read as this type.
    ///
    /// ```
    /// use dragline::spinneret::ConfigItem;
    ///
    /// #[derive(serde::Deserialize)]
    /// struct Search {
    ///     pages: u32,
    /// }
    ///
    /// let item = ConfigItem { content: r#"{"pages": 5}"#.to_owned(), ..ConfigItem::default() };
    /// let search: Search = item.json_as()?;
    /// assert_eq!(search.pages, 5);
    /// # Ok::<(), dragline::spinneret::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::FailedPrecondition`] with the reason `unexpected_content` names the item and the place, never the content.
    /// Go on with what was there before, and mend the item.
    pub fn json_as<'de, T: Deserialize<'de>>(&'de self) -> Result<T> {
        serde_json::from_str(&self.content).map_err(|error| {
            let Self { group, key, version, .. } = self;
            let (line, column) = (error.line(), error.column());
            let what = match error.classify() {
                Category::Data => "not of the type that was asked for",
                Category::Eof => "no whole JSON",
                Category::Syntax | Category::Io => "no JSON",
            };
            unexpected(format!(
                "the content of {group}/{key}, version {version} (not shown), is {what}, at line {line} column {column}; mend \
                 the item in the control plane, or the type"
            ))
        })
    }
}

impl Credential {
    /// [`Self::json`], read as this type; without any it is read as `null`.
    ///
    /// # Errors
    /// [`Error::FailedPrecondition`] with the reason `unexpected_content`, without what is there. Mend what the identity's
    /// type delivers, or the type.
    pub fn json_as<'de, T: Deserialize<'de>>(&'de self) -> Result<T> {
        T::deserialize(self.json.as_ref().unwrap_or(&Value::Null)).map_err(|_| mismatch("json"))
    }

    /// [`Self::values`], read as this type.
    ///
    /// # Errors
    /// As [`Self::json_as`].
    pub fn values_as<'de, T: Deserialize<'de>>(&'de self) -> Result<T> {
        T::deserialize(&self.values).map_err(|_| mismatch("values"))
    }
}

fn mismatch(segment: &str) -> Error {
    unexpected(format!(
        "{segment} of the credential (not shown) is not of the type that was asked for; mend what the identity's type delivers, \
         or the type"
    ))
}

fn unexpected(message: String) -> Error {
    Error::of(Details::new(Code::FailedPrecondition, "unexpected_content", message))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing)]

    use serde_json::json;

    use super::*;

    #[derive(Debug, PartialEq, Deserialize)]
    #[serde(deny_unknown_fields)]
    struct Device<'a> {
        id: &'a str,
        #[serde(default)]
        ports: Vec<u16>,
    }

    fn item(content: &str) -> ConfigItem {
        ConfigItem { group: "g".into(), key: "k".into(), version: 3, content: content.into(), ..ConfigItem::default() }
    }

    fn is_silent(error: &Error, words: &str) {
        assert!(matches!(error, Error::FailedPrecondition(_)) && error.reason() == "unexpected_content", "{error:?}");
        let source = std::error::Error::source(error);
        let shown = format!("{error} {error:?}");
        assert!(shown.contains(words) && !shown.contains("c4n4ry") && source.is_none(), "{shown}");
    }

    #[test]
    fn content_is_read_as_the_callers_type_or_the_place_is_told_without_it() {
        let good = item(r#"{"id": "a", "ports": [80]}"#);
        assert_eq!(good.json_as::<Device<'_>>().unwrap(), Device { id: "a", ports: vec![80] });
        for (content, words) in [
            (
                r#"{"id": "a", "c4n4ry": 1}"#,
                "g/k, version 3 (not shown), is not of the type that was asked for, at line 1 column 20",
            ),
            (r#"{"id": "a", "ports": ["c4n4ry"]}"#, "not of the type"),
            ("{\"id\":\n \"c4n4ry", "is no whole JSON, at line 2 column 8"),
            ("", "is no whole JSON, at line 1 column 0"),
            ("id: c4n4ry", "is no JSON, at line 1 column 1"),
        ] {
            is_silent(&item(content).json_as::<Device<'_>>().unwrap_err(), words);
        }
    }

    #[test]
    fn json_and_values_of_a_credential_are_read_as_the_callers_type() {
        let device = json!({"id": "a", "ports": [1, 2]});
        let credential =
            Credential { json: Some(device.clone()), values: device.as_object().unwrap().clone(), ..Credential::default() };
        let expected = Device { id: "a", ports: vec![1, 2] };
        assert_eq!(credential.json_as::<Device<'_>>().unwrap(), expected);
        assert_eq!(credential.values_as::<Device<'_>>().unwrap(), expected);
        assert_eq!(Credential::default().json_as::<Option<Device<'_>>>().unwrap(), None);

        let wrong = json!({"id": "c4n4ry", "ports": "c4n4ry"});
        let wrong = Credential { values: wrong.as_object().unwrap().clone(), json: Some(wrong), ..Credential::default() };
        is_silent(&wrong.json_as::<Device<'_>>().unwrap_err(), "json of the credential (not shown)");
        is_silent(&wrong.values_as::<Device<'_>>().unwrap_err(), "values of the credential (not shown)");
        is_silent(&Credential::default().json_as::<Device<'_>>().unwrap_err(), "json of the credential");
    }
}
