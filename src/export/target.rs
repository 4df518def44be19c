//! Where a feed goes, from the command line's `FILE[:format]` or `-`.

use std::path::{Path, PathBuf};

use super::FeedError;

pub(super) const FORMATS: &str = "jsonl, jsonlines, jl, json, csv, xml";

/// The format of a feed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Format {
    /// One JSON object a line.
    JsonLines,
    /// A JSON array.
    Json,
    /// Comma-separated values with a header (RFC 4180).
    Csv,
    /// XML: `<items>` with an `<item>` each.
    Xml,
}

impl Format {
    /// The format with this name or file extension, whatever its case.
    #[must_use]
    pub fn from_name(name: &str) -> Option<Self> {
        match name.to_ascii_lowercase().as_str() {
            "jsonl" | "jsonlines" | "jl" => Some(Self::JsonLines),
            "json" => Some(Self::Json),
            "csv" => Some(Self::Csv),
            "xml" => Some(Self::Xml),
            _ => None,
        }
    }
}

/// The place of a feed.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Place {
    /// A local file.
    File(PathBuf),
    /// Standard output.
    Stdout,
}

/// A place and a format.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Target {
    /// Where items go.
    pub place: Place,
    /// In what form.
    pub format: Format,
}

impl Target {
    /// The target as a person names it.
    #[must_use]
    pub fn uri(&self) -> String {
        match &self.place {
            Place::File(path) => path.display().to_string(),
            Place::Stdout => "-".to_owned(),
        }
    }

    /// Reads `FILE`, `FILE:format`, `-` or `-:format`. A file without format is of the one its extension names, standard
    /// output of JSON lines. `file://` in front is dropped. A colon belongs to the file name where what follows it
    /// cannot be a format name (`C:\x.csv`, `10:30.csv`).
    ///
    /// # Errors
    /// [`FeedError::UnknownFormat`], [`FeedError::NoFormat`], [`FeedError::NoFile`].
    pub fn parse(text: &str) -> Result<Self, FeedError> {
        let target = || text.to_owned();
        let local = text.strip_prefix("file://").unwrap_or(text);
        if local.contains("://") {
            return Err(FeedError::NoFile { target: target() });
        }
        let suffix =
            local.rsplit_once(':').filter(|(_, name)| !name.is_empty() && name.chars().all(|c| c.is_ascii_alphanumeric()));
        let (file, named) = match suffix {
            Some((file, name)) => match Format::from_name(name) {
                Some(format) => (file, Some(format)),
                None => {
                    return Err(FeedError::UnknownFormat { found: name.to_owned(), target: target() });
                }
            },
            None => (local, None),
        };
        if file.is_empty() || file.ends_with(['/', std::path::MAIN_SEPARATOR]) {
            return Err(FeedError::NoFile { target: target() });
        }
        if file == "-" {
            return Ok(Self { place: Place::Stdout, format: named.unwrap_or(Format::JsonLines) });
        }
        let format = match (named, Path::new(file).extension()) {
            (Some(format), _) => format,
            (None, Some(extension)) => {
                let found = extension.to_string_lossy();
                Format::from_name(&found)
                    .ok_or_else(|| FeedError::UnknownFormat { found: found.into_owned(), target: target() })?
            }
            (None, None) => return Err(FeedError::NoFormat { target: target() }),
        };
        Ok(Self { place: Place::File(PathBuf::from(file)), format })
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing)]
    use super::*;

    fn check(text: &str, place: &str, format: Format) {
        let place = if place == "-" { Place::Stdout } else { Place::File(place.into()) };
        assert_eq!(Target::parse(text).unwrap(), Target { place, format }, "{text}");
    }

    #[test]
    fn a_target_tells_its_place_and_format() {
        check("items.jsonl", "items.jsonl", Format::JsonLines);
        check("items.JL", "items.JL", Format::JsonLines);
        check("out/items.json", "out/items.json", Format::Json);
        check("items.XML", "items.XML", Format::Xml);
        check("items.csv", "items.csv", Format::Csv);
        check("items.txt:csv", "items.txt", Format::Csv);
        check("items:jsonlines", "items", Format::JsonLines);
        check("items.csv:json", "items.csv", Format::Json);
        check("10:30.csv", "10:30.csv", Format::Csv);
        check("-", "-", Format::JsonLines);
        check("-:csv", "-", Format::Csv);
        check("file:///tmp/a.json", "/tmp/a.json", Format::Json);
    }

    #[test]
    fn a_bad_target_is_an_error_that_names_the_formats() {
        for (text, parts) in [
            ("items.xls", &["\"xls\"", "jsonl", "csv"][..]),
            ("items.csv:parquet", &["\"parquet\"", "jsonl"]),
            ("items", &["does not tell its format", "jsonl", "FILE:format"]),
            ("", &["names no local file"]),
            (":csv", &["names no local file"]),
            ("dir/", &["names no local file"]),
            ("s3://bucket/a.csv", &["names no local file"]),
        ] {
            let error = Target::parse(text).unwrap_err().to_string();
            for part in parts {
                assert!(error.contains(part), "{text}: {error}");
            }
        }
    }
}
