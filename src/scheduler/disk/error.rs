//! What can go wrong with a frontier on disk, each with what to do about it.

use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::scheduler::store::StoreError;

/// Why a frontier on disk cannot be opened or written.
#[derive(Debug, Clone, thiserror::Error)]
#[non_exhaustive]
pub enum DiskError {
    /// The directory holds something that no frontier wrote.
    #[error(
        "{} is not a frontier: it holds {found} and no valid format file; set JOBDIR to an empty directory, or move what lies there away",
        path.display()
    )]
    Foreign {
        /// The directory.
        path: PathBuf,
        /// What lies there.
        found: String,
    },
    /// A newer program wrote it.
    #[error(
        "{} is a frontier of format {found}, this program reads up to {known}; use the program that wrote it, or another JOBDIR",
        path.display()
    )]
    Newer {
        /// The directory.
        path: PathBuf,
        /// Its format.
        found: u64,
        /// The newest format known here.
        known: u64,
    },
    /// Another process has it open.
    #[error(
        "{} is in use by {holder}; wait until that run has ended or stop it, one process at a time can use a JOBDIR",
        path.display()
    )]
    Locked {
        /// The directory.
        path: PathBuf,
        /// Who has it, as far as is known.
        holder: String,
    },
    /// Something that everything else depends on cannot be read.
    #[error(
        "{}: {what}; bring the directory back from a copy, or move it away to begin the job anew (what was delivered stays delivered)",
        path.display()
    )]
    Damaged {
        /// The directory.
        path: PathBuf,
        /// Which part, and what is wrong with it.
        what: String,
    },
    /// No room is left.
    #[error("{}: no space left on the device; free some, the crawl goes on as soon as there is room", path.display())]
    Full {
        /// The directory.
        path: PathBuf,
    },
    /// It cannot be written by this user, or lies on a read-only file system.
    #[error("{}: cannot be written ({reason}); mount it writable or give this user the right to write", path.display())]
    ReadOnly {
        /// The directory.
        path: PathBuf,
        /// The system's words.
        reason: String,
    },
    /// The disk takes what is written slower than it comes.
    #[error("{}: the disk did not take what was to be written within {waited:?}; it is tried again", path.display())]
    Slow {
        /// The directory.
        path: PathBuf,
        /// How long was waited.
        waited: Duration,
    },
    /// Any other failure of the system.
    #[error("{}: cannot {what}: {reason}; it is tried again", path.display())]
    Io {
        /// The directory.
        path: PathBuf,
        /// What was tried.
        what: &'static str,
        /// The system's words.
        reason: String,
    },
}

impl DiskError {
    /// The error of `path` for what the system said.
    pub(super) fn io(path: &Path, what: &'static str, error: &io::Error) -> Self {
        let path = path.to_owned();
        match error.kind() {
            io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => Self::Full { path },
            io::ErrorKind::ReadOnlyFilesystem | io::ErrorKind::PermissionDenied => {
                Self::ReadOnly { path, reason: error.to_string() }
            }
            _ => Self::Io { path, what, reason: error.to_string() },
        }
    }

    /// The error of `path` for what the database said.
    pub(super) fn database(path: &Path, what: &'static str, error: &fjall::Error) -> Self {
        let damaged = |what: String| Self::Damaged { path: path.to_owned(), what };
        match error {
            fjall::Error::Io(error) | fjall::Error::Storage(fjall::LsmError::Io(error)) if what == "read" && is_loss(error) => {
                damaged(format!("some of it cannot be read ({error}); the next run copies what can"))
            }
            fjall::Error::Io(error) | fjall::Error::Storage(fjall::LsmError::Io(error)) => Self::io(path, what, error),
            // The cause was logged by the thread it happened to; no room is by far the most likely one, and can be seen.
            fjall::Error::Poisoned if is_full(path) => Self::Full { path: path.to_owned() },
            fjall::Error::Poisoned => {
                Self::Io { path: path.to_owned(), what, reason: "an earlier write in the background failed".to_owned() }
            }
            fjall::Error::Locked => Self::Locked { path: path.to_owned(), holder: "another process".to_owned() },
            fjall::Error::InvalidVersion(_) => damaged("the database's version marker is damaged".to_owned()),
            fjall::Error::JournalRecovery(why) => damaged(format!("a journal is damaged ({why:?})")),
            other if what == "read" => damaged(format!("some of it cannot be read ({other:?}); the next run copies what can")),
            other => damaged(format!("the database is damaged ({other:?})")),
        }
    }

    /// Whether what is there is unreadable, not merely out of reach.
    pub(super) fn is_damage(&self) -> bool {
        matches!(self, Self::Damaged { .. })
    }
}

impl From<DiskError> for StoreError {
    fn from(error: DiskError) -> Self {
        Self::Io(error.to_string())
    }
}

/// Whether what was to be read is gone for good, and not merely out of reach for now.
fn is_loss(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::UnexpectedEof | io::ErrorKind::InvalidData)
        || error.raw_os_error() == Some(rustix::io::Errno::IO.raw_os_error())
}

/// Whether less than a mebibyte is left to this user where `path` lies.
fn is_full(path: &Path) -> bool {
    rustix::fs::statvfs(path).is_ok_and(|fs| fs.f_bavail.saturating_mul(fs.f_frsize) < 1 << 20)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_system_says_becomes_an_error_with_a_way_out() {
        let of = |kind: io::ErrorKind| DiskError::io(Path::new("/j/frontier"), "write", &kind.into()).to_string();
        assert!(of(io::ErrorKind::StorageFull).starts_with("/j/frontier: no space left on the device; free some"));
        assert!(of(io::ErrorKind::ReadOnlyFilesystem).contains("mount it writable"));
        assert!(of(io::ErrorKind::PermissionDenied).contains("the right to write"));
        assert!(of(io::ErrorKind::TimedOut).starts_with("/j/frontier: cannot write: timed out"));
        let inside = fjall::Error::Storage(fjall::LsmError::Io(io::ErrorKind::StorageFull.into()));
        assert!(matches!(DiskError::database(Path::new("/j"), "write", &inside), DiskError::Full { .. }));
        let torn = fjall::Error::JournalRecovery(fjall::JournalRecoveryError::ChecksumMismatch);
        let torn = DiskError::database(Path::new("/j"), "open", &torn);
        let storage = |error: io::Error| fjall::Error::Storage(fjall::LsmError::Io(error));
        for (error, is_loss) in [
            (io::Error::from_raw_os_error(rustix::io::Errno::IO.raw_os_error()), true),
            (io::ErrorKind::UnexpectedEof.into(), true),
            (io::Error::from_raw_os_error(rustix::io::Errno::MFILE.raw_os_error()), false),
            (io::ErrorKind::PermissionDenied.into(), false),
        ] {
            let error = storage(error);
            assert_eq!(DiskError::database(Path::new("/j"), "read", &error).is_damage(), is_loss, "{error:?}");
            assert!(!DiskError::database(Path::new("/j"), "write", &error).is_damage(), "{error:?}");
        }
        assert!(torn.is_damage() && torn.to_string().contains("move it away"), "{torn}");
    }
}
