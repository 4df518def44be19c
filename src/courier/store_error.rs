//! Why the job store cannot be used, in words that name the file and what to do.

use std::path::{Path, PathBuf};

use rusqlite::ErrorCode;

/// Why the job store cannot be used.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum StoreError {
    /// The file is not a database, or a damaged one.
    #[error(
        "{path} is not a readable job store ({source}); move it away and start again: a new one is made, and what was not yet delivered is still in the spool"
    )]
    Damaged {
        /// The file.
        path: PathBuf,
        /// What SQLite says.
        source: rusqlite::Error,
    },
    /// The file was written by a newer program.
    #[error("{path} has schema version {found}, this program knows up to {supported}; use a newer program or another file")]
    Newer {
        /// The file.
        path: PathBuf,
        /// Its version.
        found: i64,
        /// The newest version known here.
        supported: i64,
    },
    /// The file is a database of something else.
    #[error("{path} is an SQLite database but no job store; choose another file")]
    Foreign {
        /// The file.
        path: PathBuf,
    },
    /// There is no such file, and none is to be made.
    #[error("{path} does not exist; a crawl with the embedded sink or `serve` makes a job store, --db names another")]
    Missing {
        /// The file.
        path: PathBuf,
    },
    /// The file was taken away while it was open.
    #[error(
        "{path} was removed or replaced while it was open: what was written into it is gone with it; start again, which makes a new one"
    )]
    Gone {
        /// The file.
        path: PathBuf,
    },
    /// The directory cannot be made.
    #[error("cannot create {path}: {source}")]
    Directory {
        /// The directory.
        path: PathBuf,
        /// The reason.
        source: std::io::Error,
    },
    /// Anything else SQLite reports.
    #[error("cannot {what} {path}: {source}")]
    Sqlite {
        /// The operation, as an infinitive.
        what: &'static str,
        /// The file.
        path: PathBuf,
        /// What SQLite says.
        source: rusqlite::Error,
    },
}

/// What SQLite says, with the file and what was done to it.
pub(super) fn explain(what: &'static str, path: &Path, source: rusqlite::Error) -> StoreError {
    let path = path.to_owned();
    match source.sqlite_error_code() {
        Some(ErrorCode::DatabaseCorrupt | ErrorCode::NotADatabase) => StoreError::Damaged { path, source },
        _ => StoreError::Sqlite { what, path, source },
    }
}
