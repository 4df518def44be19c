//! Feeds: items written to a file or to standard output as JSON lines, a JSON array, CSV or XML.
//!
//! A feed gets items as finished JSON texts and never loses one silently: what cannot be written is an error, and after
//! an error of `write` nothing of that call was taken. JSON, CSV and XML files are rewritten whole at `close` from a journal
//! (`FILE.part`, JSON lines), so that the file itself is valid at any time; memory stays flat.

mod csv;
mod destination;
mod item;
mod journal;
mod json;
mod jsonl;
mod sink;
mod target;
mod text;
mod xml;

use std::io;
use std::io::Write;
use std::path::{Path, PathBuf};

pub use target::{Format, Place, Target};

/// One item: a JSON object as text in the form Python's `json.dumps` gives by default, so ASCII and on one line
/// (`{"a": 1, "b": "\u00e9"}`).
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct ItemText(String);

impl ItemText {
    /// Takes a text that is known to be a JSON object on one line; nothing is checked.
    #[must_use]
    pub fn new(text: impl Into<String>) -> Self {
        Self(text.into())
    }

    /// The text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

/// Where items go. Opened with [`open`]; one owner, no lock.
pub trait Feed: Send + std::fmt::Debug {
    /// Takes items. They may stay in memory (up to 64 KiB and one call) until [`Feed::flush`].
    ///
    /// # Errors
    /// [`FeedError`]; then nothing of this call was taken, and it may be repeated.
    fn write(&mut self, items: &[ItemText]) -> Result<(), FeedError>;

    /// Hands everything taken to the operating system: it survives the end of the process from here on.
    ///
    /// # Errors
    /// [`FeedError`]; what is not written yet is kept, and the call may be repeated.
    fn flush(&mut self) -> Result<(), FeedError>;

    /// Writes what is left and finishes the file.
    ///
    /// # Errors
    /// [`FeedError`]; the journal of a JSON, CSV or XML feed stays and is picked up by the next run that appends.
    fn close(self: Box<Self>) -> Result<FeedSummary, FeedError>;
}

/// What became of a feed.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct FeedSummary {
    /// The path, or `-`.
    pub uri: String,
    /// Items written by this run, those picked up from a journal of a crashed run included.
    pub items: u64,
    /// Size of the file at the end; for standard output, what was written to it.
    pub bytes: u64,
}

/// How characters outside of ASCII are written in JSON. CSV and XML are always UTF-8.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Encoding {
    /// As `\uXXXX` escapes.
    #[default]
    Ascii,
    /// As they are.
    Utf8,
}

impl Encoding {
    /// Reads `FEED_EXPORT_ENCODING`: empty or `utf-8`.
    ///
    /// # Errors
    /// [`FeedError::Encoding`] for any other name.
    pub fn parse(name: &str) -> Result<Self, FeedError> {
        match name.to_ascii_lowercase().as_str() {
            "" | "ascii" | "us-ascii" => Ok(Self::Ascii),
            "utf-8" | "utf8" => Ok(Self::Utf8),
            _ => Err(FeedError::Encoding { found: name.to_owned() }),
        }
    }
}

/// How a JSON array or XML is laid out (`FEED_EXPORT_INDENT`). JSON lines and CSV have one line per item whatever it says.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Layout {
    /// The whole of it on one line.
    OneLine,
    /// One item per line.
    #[default]
    ItemPerLine,
    /// Items spread over lines, indented by this many blanks a level.
    Indented(u8),
}

/// What happens to a file that exists.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Existing {
    /// Its items stay, new ones follow (`-o`).
    #[default]
    Append,
    /// It is replaced (`-O`).
    Overwrite,
}

/// Whether a feed without items leaves a file.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Empty {
    /// A valid file without items.
    #[default]
    Store,
    /// No file.
    Omit,
}

/// The options of a feed. The defaults are Scrapy's.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FeedOptions {
    /// How characters outside of ASCII are written.
    pub encoding: Encoding,
    /// The fields to write, in this order; `None` is all. Others are left out on purpose.
    pub fields: Option<Vec<String>>,
    /// Layout of a JSON array or of XML.
    pub layout: Layout,
    /// What a feed without items leaves.
    pub empty: Empty,
    /// What happens to a file that exists.
    pub existing: Existing,
}

/// Opens a feed. `stdout` is asked for what a target of `-` writes to, and not at all for a file.
///
/// # Errors
/// [`FeedError`] when the file cannot be opened, or when it is to be appended to and is not of the format.
pub fn open(
    target: &Target,
    options: FeedOptions,
    stdout: impl FnOnce() -> io::Result<Box<dyn Write + Send>>,
) -> Result<Box<dyn Feed>, FeedError> {
    let writer = || stdout().map_err(FeedError::io("open", Path::new("-")));
    Ok(match (target.format, &target.place) {
        (Format::JsonLines, Place::File(path)) => Box::new(jsonl::JsonLines::open(path, options)?),
        (Format::JsonLines, Place::Stdout) => Box::new(jsonl::JsonLines::to_writer(writer()?, options)),
        (Format::Json, Place::File(path)) => Box::new(json::Json::open(path, options)?),
        (Format::Json, Place::Stdout) => Box::new(json::Json::to_writer(writer()?, options)?),
        (Format::Csv, Place::File(path)) => Box::new(csv::Csv::open(path, options)?),
        (Format::Csv, Place::Stdout) => Box::new(csv::Csv::to_writer(writer()?, options)?),
        (Format::Xml, Place::File(path)) => Box::new(xml::Xml::open(path, options)?),
        (Format::Xml, Place::Stdout) => Box::new(xml::Xml::to_writer(writer()?, options)?),
    })
}

/// Why a feed cannot be opened or written.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum FeedError {
    /// The operating system refused something.
    #[error("cannot {doing} {path}: {source}; check that the folder exists, is writable and has room")]
    Io {
        /// What was tried.
        doing: &'static str,
        /// The file, or `-`.
        path: String,
        /// The answer.
        source: io::Error,
    },
    /// An item is not a JSON object.
    #[error("item is not a json object and cannot be written to {path}: {reason}")]
    Item {
        /// The file, or `-`.
        path: String,
        /// What is wrong with it; no content of the item.
        reason: String,
    },
    /// The file to append to is of another format.
    #[error("cannot append to {path}: it is not {expected} ({reason}); overwrite it with -O, or give another file")]
    Existing {
        /// The file.
        path: String,
        /// What it should be.
        expected: &'static str,
        /// What was found.
        reason: String,
    },
    /// The format is unknown.
    #[error("unknown feed format {found:?} in {target:?}: use one of {formats}", formats = target::FORMATS)]
    UnknownFormat {
        /// What the target asks for.
        found: String,
        /// The whole target.
        target: String,
    },
    /// The target does not tell its format.
    #[error("feed {target:?} does not tell its format: give the file an extension or append one of {formats} as FILE:format",
        formats = target::FORMATS)]
    NoFormat {
        /// The whole target.
        target: String,
    },
    /// The target names no file.
    #[error("feed {target:?} names no local file: give FILE, FILE:format or - for standard output")]
    NoFile {
        /// The whole target.
        target: String,
    },
    /// The encoding is unknown.
    #[error("unknown feed encoding {found:?}: leave it empty for ascii escapes, or use \"utf-8\"")]
    Encoding {
        /// What was found.
        found: String,
    },
}

impl FeedError {
    fn io(doing: &'static str, path: &Path) -> impl FnOnce(io::Error) -> Self {
        let path = path.display().to_string();
        move |source| Self::Io { doing, path, source }
    }
}

/// The name of a feed in messages.
fn uri(path: Option<&PathBuf>) -> String {
    path.map_or_else(|| "-".to_owned(), |path| path.display().to_string())
}

#[cfg(test)]
mod tests;
