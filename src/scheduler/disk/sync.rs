//! The thread that makes commits survive a power cut, some time after they survive the end of the process.
//!
//! It syncs the newest journal through a file of its own, so that commits go on meanwhile; an older one was synced when
//! the next was begun, and tables are when they are written. Then it notes the commit in a small file: a frontier that
//! opens at an earlier one has lost something that was safe.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Seek, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

use xxhash_rust::xxh3::xxh3_64;

use super::error::DiskError;

const SYNCED_FILE: &str = "synced";

/// The running thread; it ends with this, after a last sync.
#[derive(Debug)]
pub(super) struct Syncer {
    shared: Arc<Shared>,
    stop: Option<Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

#[derive(Debug, Default)]
struct Shared {
    written: AtomicU64,
    failed: Mutex<Option<DiskError>>,
}

/// What the thread has open.
struct Files {
    dir: PathBuf,
    database: PathBuf,
    journal: Option<(u64, File)>,
    synced: Option<File>,
}

impl Syncer {
    /// Starts the thread for the frontier at `dir` with its database.
    pub(super) fn start(dir: &Path, database: &Path, every: Duration) -> Result<Self, DiskError> {
        // Then commits sync by themselves; what is left is to note them.
        let every = if every.is_zero() { Duration::from_secs(1) } else { every };
        let shared = Arc::new(Shared::default());
        let (stop, stopped) = channel();
        let mut files = Files { dir: dir.to_owned(), database: database.to_owned(), journal: None, synced: None };
        let of_thread = Arc::clone(&shared);
        let thread = std::thread::Builder::new().name("frontier-sync".to_owned()).spawn(move || {
            let mut done = 0;
            loop {
                let ends = stopped.recv_timeout(every) != Err(RecvTimeoutError::Timeout);
                let written = of_thread.written.load(Ordering::Acquire);
                if written != done {
                    match files.sync(written) {
                        Ok(()) => done = written,
                        Err(error) => {
                            let error = DiskError::io(&files.dir, "sync the journal", &error);
                            *of_thread.failed.lock().unwrap_or_else(PoisonError::into_inner) = Some(error);
                            files.journal = None;
                        }
                    }
                }
                if ends {
                    return;
                }
            }
        });
        let thread = thread.map_err(|error| DiskError::io(dir, "start a thread", &error))?;
        Ok(Self { shared, stop: Some(stop), thread: Some(thread) })
    }

    /// Tells that a commit was written.
    pub(super) fn wrote(&self, commit: u64) {
        self.shared.written.store(commit, Ordering::Release);
    }

    /// The last failure, once. What was written before it may be lost to a power cut although later syncs succeed.
    pub(super) fn failed(&self) -> Option<DiskError> {
        self.shared.failed.lock().unwrap_or_else(PoisonError::into_inner).take()
    }

    #[cfg(test)]
    pub(super) fn has_failed(&self) -> bool {
        self.shared.failed.lock().unwrap_or_else(PoisonError::into_inner).is_some()
    }
}

impl Drop for Syncer {
    fn drop(&mut self) {
        self.stop = None;
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

impl Files {
    fn sync(&mut self, commit: u64) -> io::Result<()> {
        let newest = newest_journal(&self.database)?;
        if let Some(newest) = newest
            && self.journal.as_ref().is_none_or(|(open, _)| *open != newest)
        {
            self.journal = Some((newest, OpenOptions::new().write(true).open(self.database.join(format!("{newest}.jnl")))?));
        }
        if let Some((_, journal)) = &self.journal {
            journal.sync_data()?;
        }
        note_synced(&mut self.synced, &self.dir, commit)
    }
}

fn newest_journal(database: &Path) -> io::Result<Option<u64>> {
    let mut newest = None;
    for entry in fs::read_dir(database)? {
        let name = entry?.file_name();
        let number = name.to_str().and_then(|name| name.strip_suffix(".jnl")?.parse::<u64>().ok());
        newest = newest.max(number);
    }
    Ok(newest)
}

fn note_synced(file: &mut Option<File>, dir: &Path, commit: u64) -> io::Result<()> {
    let file = match file {
        Some(file) => file,
        none => none.insert(OpenOptions::new().write(true).create(true).truncate(false).open(dir.join(SYNCED_FILE))?),
    };
    let number = commit.to_be_bytes();
    file.rewind()?;
    file.write_all(&[number, xxh3_64(&number).to_be_bytes()].concat())
}

/// Notes the commit a frontier was opened at, which may be before the one that was noted.
pub(super) fn note(dir: &Path, commit: u64) -> Result<(), DiskError> {
    note_synced(&mut None, dir, commit).map_err(|error| DiskError::io(dir, "note the last commit", &error))
}

/// The commit noted last; none when there is no note that can be read.
pub(super) fn noted(dir: &Path) -> Option<u64> {
    let bytes = fs::read(dir.join(SYNCED_FILE)).ok()?;
    let (number, sum) = bytes.split_first_chunk::<8>()?;
    (*sum == xxh3_64(number).to_be_bytes()).then(|| u64::from_be_bytes(*number))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn a_commit_is_noted_after_its_journal_was_synced() {
        let dir = tempfile::tempdir().unwrap();
        let database = dir.path().join("db");
        fs::create_dir(&database).unwrap();
        fs::write(database.join("9.jnl"), "").unwrap();
        fs::write(database.join("10.jnl"), "").unwrap();
        assert_eq!(newest_journal(&database).unwrap(), Some(10));
        assert_eq!(noted(dir.path()), None);
        let syncer = Syncer::start(dir.path(), &database, Duration::from_millis(5)).unwrap();
        syncer.wrote(7);
        let since = std::time::Instant::now();
        while noted(dir.path()) != Some(7) {
            assert!(since.elapsed() < Duration::from_secs(20));
            std::thread::sleep(Duration::from_millis(1));
        }
        syncer.wrote(8);
        drop(syncer);
        assert_eq!(noted(dir.path()), Some(8), "the end syncs once more");
        note(dir.path(), 3).unwrap();
        assert_eq!(noted(dir.path()), Some(3));
        fs::write(dir.path().join("synced"), "torn").unwrap();
        assert_eq!(noted(dir.path()), None);
    }

    #[test]
    fn a_failed_sync_is_told_once_and_its_commit_is_not_noted() {
        let dir = tempfile::tempdir().unwrap();
        let syncer = Syncer::start(dir.path(), &dir.path().join("gone"), Duration::from_millis(5)).unwrap();
        syncer.wrote(7);
        let since = std::time::Instant::now();
        let error = loop {
            if let Some(error) = syncer.failed() {
                break error.to_string();
            }
            assert!(since.elapsed() < Duration::from_secs(20));
            std::thread::sleep(Duration::from_millis(1));
        };
        assert!(error.contains("cannot sync the journal"), "{error}");
        drop(syncer);
        assert_eq!(noted(dir.path()), None);
    }
}
