//! What can be wrong with a seed.

use std::path::PathBuf;

/// A file that no plane can begin with.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SeedError {
    /// A file cannot be read.
    #[error("{}{} cannot be read: {source}; check the path and who may read it", named_at(key.as_deref()), path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// The key that names it; none for the first file.
        key: Option<String>,
        /// Why.
        source: std::io::Error,
    },
    /// A file is not what its format asks for.
    #[error("{}:{line}: {reason}", path.display())]
    Syntax {
        /// The file.
        path: PathBuf,
        /// The line, from 1.
        line: u64,
        /// What is wrong. Quotes nothing.
        reason: String,
    },
    /// A key or a value is not allowed.
    #[error("{}{}: {key}: {reason}", path.display(), line.map(|line| format!(":{line}")).unwrap_or_default())]
    Wrong {
        /// The file.
        path: PathBuf,
        /// The line, from 1, where it is known.
        line: Option<u64>,
        /// The path of keys to it; tables of a list are told apart by their names.
        key: String,
        /// What was found and what is allowed. Quotes no secret.
        reason: String,
    },
    /// What it says cannot be put together.
    #[error("{}: {reason}", path.display())]
    Unusable {
        /// The file.
        path: PathBuf,
        /// Why.
        reason: String,
    },
}

fn named_at(key: Option<&str>) -> String {
    key.map(|key| format!("{key}: ")).unwrap_or_default()
}
