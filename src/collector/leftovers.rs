//! What lies in a spool directory, seen from outside: for those who name, send or remove what other runs left behind.
//!
//! Nothing here opens a record log, and nothing is removed without the spool's lock.

use std::fs::{self, File, TryLockError};
use std::io;
use std::path::{Path, PathBuf};

use super::config::{CARD, LOCK, spools};
use crate::courier::rejected::DIRECTORY;

/// Files of a spool, by what they hold.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Holds {
    /// Segments of the record log. In a `JOBDIR` they may hold nothing that is to be sent.
    pub segments: usize,
    /// Records the sink refused, one file each or for a whole refused batch.
    pub rejected: usize,
    /// Copies of segments that did not read.
    pub damaged: usize,
}

impl Holds {
    /// Looks into a directory; one that is not there holds nothing.
    ///
    /// # Errors
    /// When the directory cannot be listed.
    pub fn of(dir: &Path) -> io::Result<Self> {
        let mut holds = Self::default();
        for name in names(dir)? {
            if name.starts_with("seg-") && name.ends_with(".log") {
                holds.segments += 1;
            } else if name.starts_with("seg-") && name.ends_with(".damaged") {
                holds.damaged += 1;
            }
        }
        holds.rejected = rejected(dir)?.len();
        Ok(holds)
    }

    /// Whether there is nothing at all.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }
}

/// The files of refused records in a spool, by name.
///
/// # Errors
/// When the directory cannot be listed.
pub fn rejected(spool: &Path) -> io::Result<Vec<PathBuf>> {
    let dir = spool.join(DIRECTORY);
    let mut files: Vec<_> = names(&dir)?.into_iter().filter(|name| name.ends_with(".json")).map(|name| dir.join(name)).collect();
    files.sort();
    Ok(files)
}

/// Directories below `DATA_DIR` that are or were the spool of a run, by name.
///
/// # Errors
/// When the directory cannot be listed.
pub fn spools_below(data_dir: &Path) -> io::Result<Vec<PathBuf>> {
    let dir = spools(data_dir);
    let mut found: Vec<_> = names(&dir)?.into_iter().map(|name| dir.join(name)).filter(|path| path.is_dir()).collect();
    found.sort();
    Ok(found)
}

/// Whether a running process has the spool.
#[must_use]
pub fn is_in_use(spool: &Path) -> bool {
    File::open(spool.join(LOCK)).is_ok_and(|lock| matches!(lock.try_lock_shared(), Err(TryLockError::WouldBlock)))
}

/// Locks a spool as its run does; `None` when a process has it.
///
/// # Errors
/// When the lock cannot be made.
pub fn lock(spool: &Path) -> io::Result<Option<File>> {
    let file = File::options().create(true).truncate(false).write(true).open(spool.join(LOCK))?;
    match file.try_lock() {
        Ok(()) => Ok(Some(file)),
        Err(TryLockError::WouldBlock) => Ok(None),
        Err(TryLockError::Error(error)) => Err(error),
    }
}

/// Removes a spool in which nothing but its lock and its card is left; anything else stays. Whether it is gone. Call
/// it with the lock, or for the spool of a run that just ended.
///
/// # Errors
/// When the system refuses.
pub fn remove_if_empty(spool: &Path) -> io::Result<bool> {
    // Refuses while there is a file in it, which is what is wanted.
    let _ = fs::remove_dir(spool.join(DIRECTORY));
    let unfinished = format!("{CARD}.part");
    if names(spool)?.iter().any(|name| name != LOCK && name != CARD && *name != unfinished) {
        return Ok(false);
    }
    for name in [CARD, &unfinished, LOCK] {
        absent_is_fine(fs::remove_file(spool.join(name)))?;
    }
    absent_is_fine(fs::remove_dir(spool))?;
    Ok(true)
}

fn names(dir: &Path) -> io::Result<Vec<String>> {
    match fs::read_dir(dir) {
        Ok(files) => files.map(|file| Ok(file?.file_name().to_string_lossy().into_owned())).collect(),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(Vec::new()),
        Err(error) => Err(error),
    }
}

fn absent_is_fine(done: io::Result<()>) -> io::Result<()> {
    done.or_else(|error| if error.kind() == io::ErrorKind::NotFound { Ok(()) } else { Err(error) })
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing)]
    use super::*;

    #[test]
    fn files_are_counted_by_what_they_hold() {
        let dir = tempfile::tempdir().unwrap();
        let spool = dir.path().join("spool/job-1");
        assert_eq!(Holds::of(&spool).unwrap(), Holds::default());
        assert!(spools_below(dir.path()).unwrap().is_empty());
        fs::create_dir_all(spool.join("rejected")).unwrap();
        for name in ["lock", "job.json", "seg-1.log", "seg-2.log", "seg-1.log.damaged", "rejected/a.json", "rejected/b.part"] {
            fs::write(spool.join(name), "").unwrap();
        }
        fs::write(dir.path().join("spool/a file"), "").unwrap();
        assert_eq!(Holds::of(&spool).unwrap(), Holds { segments: 2, rejected: 1, damaged: 1 });
        assert_eq!(rejected(&spool).unwrap(), [spool.join("rejected/a.json")]);
        assert_eq!(spools_below(dir.path()).unwrap(), [spool]);
    }

    #[test]
    fn only_an_empty_spool_is_removed() {
        let dir = tempfile::tempdir().unwrap();
        let spool = dir.path().join("job-1");
        fs::create_dir_all(&spool).unwrap();
        for name in ["lock", "job.json", "job.json.part", "seg-1.log"] {
            fs::write(spool.join(name), "").unwrap();
        }
        fs::create_dir(spool.join("rejected")).unwrap();
        assert!(!remove_if_empty(&spool).unwrap());
        assert!(spool.join("job.json").exists());
        fs::remove_file(spool.join("seg-1.log")).unwrap();
        assert!(remove_if_empty(&spool).unwrap());
        assert!(!spool.exists());
        assert!(remove_if_empty(&spool).unwrap(), "two that tidy up at once do not disturb each other");
    }

    #[test]
    fn a_lock_shows_that_a_process_has_the_spool() {
        let dir = tempfile::tempdir().unwrap();
        assert!(!is_in_use(dir.path()));
        let held = lock(dir.path()).unwrap().unwrap();
        assert!(is_in_use(dir.path()));
        assert!(lock(dir.path()).unwrap().is_none());
        drop(held);
        assert!(!is_in_use(dir.path()));
    }
}
