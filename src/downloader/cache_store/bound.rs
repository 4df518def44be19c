//! The bound of all stored answers together: counted while they are written, and the oldest go when it is reached.
//!
//! Looks at the directory once before the first answer is stored, and again only when files have to go. Touches nothing
//! but what a store wrote there.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, SystemTime};

/// A file that was being written for so long is left over from a process that ended.
const LEFT_OVER: Duration = Duration::from_secs(3600);

/// Bytes in use, and how many there may be.
#[derive(Debug)]
pub(super) struct Bound {
    /// 0: any number.
    most: u64,
    /// `None`: nobody has looked yet.
    used: Mutex<Option<u64>>,
}

impl Bound {
    pub(super) fn new(most: u64) -> Self {
        Self { most, used: Mutex::new(None) }
    }

    /// Whether one file is more than all may have.
    pub(super) fn is_beyond(&self, size: u64) -> bool {
        self.most > 0 && size > self.most
    }

    /// A file of `before` bytes (0: there was none) has `after` bytes now. Answers how many files had to go.
    pub(super) fn changed(&self, dir: &Path, before: u64, after: u64) -> u64 {
        if self.most == 0 {
            return 0;
        }
        let mut used = self.lock();
        let now = match *used {
            Some(used) => used.saturating_sub(before).saturating_add(after),
            None => {
                let files = files(dir);
                files.iter().map(|file| file.size).fold(0, u64::saturating_add)
            }
        };
        *used = Some(now);
        if now <= self.most {
            return 0;
        }
        let (left, gone) = clear(dir, self.most / 10 * 9);
        *used = Some(left);
        gone
    }

    /// A file of so many bytes is gone.
    pub(super) fn removed(&self, size: u64) {
        if let Some(used) = self.lock().as_mut() {
            *used = used.saturating_sub(size);
        }
    }

    fn lock(&self) -> MutexGuard<'_, Option<u64>> {
        self.used.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

struct Stored {
    path: PathBuf,
    size: u64,
    written: SystemTime,
}

/// Removes the files that were written longest ago until the rest has at most `most` bytes; what is left, and how many
/// went. One that cannot be removed counts as left.
fn clear(dir: &Path, most: u64) -> (u64, u64) {
    let mut files = files(dir);
    files.sort_by_key(|file| file.written);
    let mut left = files.iter().map(|file| file.size).fold(0, u64::saturating_add);
    let mut gone = 0;
    for file in files {
        if left <= most {
            break;
        }
        if fs::remove_file(&file.path).is_ok() {
            left = left.saturating_sub(file.size);
            gone += 1;
        }
    }
    (left, gone)
}

/// The files a store wrote. Those that nobody will finish are removed on the way.
fn files(dir: &Path) -> Vec<Stored> {
    let mut found = Vec::new();
    let folders = fs::read_dir(dir).into_iter().flatten().filter_map(Result::ok).filter(|entry| is_hex(entry, 2));
    for file in folders.filter_map(|folder| fs::read_dir(folder.path()).ok()).flatten().filter_map(Result::ok) {
        let Ok(known) = file.metadata() else { continue };
        let written = known.modified().unwrap_or(SystemTime::UNIX_EPOCH);
        if is_hex(&file, 32) {
            found.push(Stored { path: file.path(), size: known.len(), written });
        } else if file.path().extension().is_some_and(|e| e == "part") && written.elapsed().is_ok_and(|age| age > LEFT_OVER) {
            let _ = fs::remove_file(file.path());
        }
    }
    found
}

fn is_hex(entry: &fs::DirEntry, len: usize) -> bool {
    let name = entry.file_name();
    name.len() == len && name.to_str().is_some_and(|name| name.bytes().all(|byte| byte.is_ascii_hexdigit()))
}
