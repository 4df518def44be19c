//! The identities file: what the embedded control plane leases, as its owner writes it.
//!
//! TOML, read once at start and checked whole: an unknown key, a wrong type or a value out of range is an
//! error that names file, line and key and says what is allowed. Secrets go straight into redacting types;
//! no message quotes a value, since any value may be one.

mod check;
mod raw;

use std::path::{Path, PathBuf};

use crate::permissions::is_open_to_others;
use crate::plane::embedded::roster::Roster;

/// An identities file that cannot be used.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum IdentitiesError {
    /// It cannot be read.
    #[error("the identities file {} cannot be read: {source}; check the path in IDENTITIES", path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// Why.
        source: std::io::Error,
    },
    /// It is not TOML, or has a key or a type that is not allowed.
    #[error("{}:{line}: {}{reason}", path.display(), key.as_ref().map(|k| format!("{k}: ")).unwrap_or_default())]
    Shape {
        /// The file.
        path: PathBuf,
        /// The line, from 1.
        line: usize,
        /// The key, where it is known.
        key: Option<String>,
        /// What is wrong and what is allowed.
        reason: String,
    },
    /// A value is not allowed.
    #[error("{}:{line}: {key}: {reason}", path.display())]
    Value {
        /// The file.
        path: PathBuf,
        /// The line of the table it is in, from 1.
        line: usize,
        /// The key with the names of the tables around it.
        key: String,
        /// What is allowed.
        reason: String,
    },
}

/// Reads the identities file at `path`.
///
/// A file that others than its owner may read is used, with a warning in the log.
///
/// # Errors
/// When it cannot be read or says something that is not allowed.
pub fn load(path: &Path) -> Result<Roster, IdentitiesError> {
    let read = |source| IdentitiesError::Read { path: path.to_owned(), source };
    let text = std::fs::read_to_string(path).map_err(read)?;
    if is_open_to_others(path) {
        tracing::warn!(path = %path.display(), "the identities file can be read by other users; run chmod 600 on it");
    }
    parse(&text, path)
}

/// Reads the text of an identities file; `path` is for messages.
///
/// # Errors
/// When it says something that is not allowed.
pub fn parse(text: &str, path: &Path) -> Result<Roster, IdentitiesError> {
    let file = raw::read(text).map_err(|e| IdentitiesError::Shape {
        path: path.to_owned(),
        line: line_of(text, e.at),
        key: e.key,
        reason: e.reason,
    })?;
    check::roster(file).map_err(|e| IdentitiesError::Value {
        path: path.to_owned(),
        line: line_of(text, e.at),
        key: e.key,
        reason: e.reason,
    })
}

fn line_of(text: &str, at: usize) -> usize {
    text.bytes().take(at).filter(|b| *b == b'\n').count() + 1
}

#[cfg(test)]
mod tests;
