//! What can go wrong with the record log.

use std::io;
use std::path::{Path, PathBuf};

use super::entry::BatchId;

/// Why the record log refused.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum LogError {
    /// The operating system said no.
    #[error("cannot {what} {path}: {source}")]
    Io {
        /// The operation, as an infinitive.
        what: &'static str,
        /// The file or directory.
        path: PathBuf,
        /// The reason.
        source: io::Error,
    },
    /// Another process uses the directory.
    #[error("another process uses the record log {dir}; stop it or choose another directory")]
    Locked {
        /// The log's directory.
        dir: PathBuf,
    },
    /// The segment is of a version this program does not know.
    #[error("{file} has record log version {found}, this program reads versions up to {supported}; use a newer program")]
    NewerFormat {
        /// The segment.
        file: PathBuf,
        /// Its version.
        found: u8,
        /// The newest version known here.
        supported: u8,
    },
    /// The segment belongs to another job.
    #[error("{file} holds records of another job; give each job its own directory, or deliver that one first")]
    OtherJob {
        /// The segment.
        file: PathBuf,
    },
    /// A record is too large to be written.
    #[error("a record of {bytes} bytes is larger than the {limit} bytes a record may have")]
    TooLarge {
        /// Its size.
        bytes: usize,
        /// The largest size.
        limit: usize,
    },
    /// A group must have at least one entry.
    #[error("an empty group cannot be appended")]
    EmptyGroup,
    /// A write failed before and has not been repeated with success.
    #[error("an earlier write to {file} failed; nothing is appended until a flush succeeds")]
    Stalled {
        /// The segment.
        file: PathBuf,
    },
    /// A frame that was good when the log was opened is not good now.
    #[error("{file} is damaged at byte {offset}; restart to set the damaged part aside")]
    Damaged {
        /// The segment.
        file: PathBuf,
        /// Where.
        offset: u64,
    },
    /// A batch was named that was never cut or is already delivered.
    #[error("batch {id} is not waiting for delivery")]
    UnknownBatch {
        /// The batch.
        id: BatchId,
    },
    /// A cut does not start after the previous one or reaches past the last record.
    #[error("batch {id} covers {first} to {last}, allowed are numbers from {from} to {to}")]
    BadCut {
        /// The batch.
        id: BatchId,
        /// Its first number.
        first: u64,
        /// Its last number.
        last: u64,
        /// The lowest first number allowed.
        from: u64,
        /// The highest last number allowed.
        to: u64,
    },
}

impl LogError {
    /// Whether reading again would come to the same: the bytes are not what they were, or not there any more.
    pub(in crate::collector) fn is_lasting(&self) -> bool {
        const EIO: i32 = 5;
        match self {
            Self::Damaged { .. } => true,
            // A whole directory that is away may come back.
            Self::Io { path, source, .. } if source.kind() == io::ErrorKind::NotFound => path.parent().is_some_and(Path::is_dir),
            Self::Io { source, .. } => source.kind() == io::ErrorKind::UnexpectedEof || source.raw_os_error() == Some(EIO),
            _ => false,
        }
    }

    pub(super) fn io(what: &'static str, path: &Path) -> impl FnOnce(io::Error) -> Self {
        let path = path.to_owned();
        move |source| Self::Io { what, path, source }
    }
}
