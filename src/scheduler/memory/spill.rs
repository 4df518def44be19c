//! The file that a memory store spills records to: a temporary one, which nobody reads after the store is gone.
//!
//! Records are written once, in segments; a segment goes when the last of it was dropped. Nothing is synced, and nothing
//! survives: the folder is removed with the store, and what a killed process left behind by the next one that comes.
//! Each folder is locked by its process as long as it lives.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io;
use std::os::unix::fs::{DirBuilderExt as _, FileExt};
use std::path::{Path, PathBuf};

/// A segment of this many bytes gets no more.
const SEGMENT: u64 = 128 << 20;

/// What folders of ours are called, before their own name.
const PREFIX: &str = "frontier-spill-";

/// The file in each folder that its process holds locked, and beside them the one that is locked while folders are made
/// and cleared away.
const LOCK: &str = "lock";
const DOOR: &str = "frontier-spill.lock";

/// Records on disk.
#[derive(Debug)]
pub(super) struct Spill {
    /// The folder that holds ours.
    above: PathBuf,
    /// Made when the first record is spilled.
    home: Option<Home>,
    segments: BTreeMap<u64, Segment>,
    next: u64,
}

/// Where bytes were written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Place {
    segment: u64,
    offset: u64,
    pub(super) len: usize,
}

#[derive(Debug)]
struct Home {
    dir: PathBuf,
    _lock: File,
}

#[derive(Debug)]
struct Segment {
    file: File,
    len: u64,
    /// Places that were not released.
    used: u64,
}

impl Spill {
    /// Spills into a folder of its own in `above`, which is made when it is needed. What earlier processes left there
    /// is removed.
    pub(super) fn below(above: &Path) -> Self {
        if let Err(error) = clear(above) {
            tracing::warn!(dir = %above.display(), %error, "could not remove what an earlier run spilled");
        }
        Self { above: above.to_owned(), home: None, segments: BTreeMap::new(), next: 0 }
    }

    /// Writes some records.
    ///
    /// # Errors
    /// When the folder cannot be made or the disk takes no more; then nothing was written.
    pub(super) fn write(&mut self, bytes: &[u8]) -> io::Result<Place> {
        if self.segments.last_key_value().is_none_or(|(_, segment)| segment.len >= SEGMENT) {
            self.begin()?;
        }
        let Some(mut entry) = self.segments.last_entry() else {
            return Err(io::Error::other("no segment was begun"));
        };
        let number = *entry.key();
        let segment = entry.get_mut();
        if let Err(error) = segment.file.write_all_at(bytes, segment.len) {
            // What was written of it would take room from others; the next write goes to the same place.
            drop(segment.file.set_len(segment.len));
            return Err(error);
        }
        let place = Place { segment: number, offset: segment.len, len: bytes.len() };
        segment.len += bytes.len() as u64;
        segment.used += 1;
        Ok(place)
    }

    /// Appends `len` bytes to `into`, from `from` on in what was written at `place`.
    ///
    /// # Errors
    /// When they cannot be read.
    pub(super) fn read(&self, place: Place, from: usize, len: usize, into: &mut Vec<u8>) -> io::Result<()> {
        let segment = self.segments.get(&place.segment).ok_or_else(|| io::Error::other("its segment is gone"))?;
        let start = into.len();
        into.resize(start + len, 0);
        let read = segment.file.read_exact_at(into.get_mut(start..).unwrap_or_default(), place.offset + from as u64);
        if read.is_err() {
            into.truncate(start);
        }
        read
    }

    /// Nothing at `place` is wanted any more.
    pub(super) fn release(&mut self, place: Place) {
        let Some(segment) = self.segments.get_mut(&place.segment) else { return };
        segment.used = segment.used.saturating_sub(1);
        if segment.used == 0 {
            self.segments.remove(&place.segment);
            if let Some(home) = &self.home {
                remove(&home.dir.join(place.segment.to_string()));
            }
        }
    }

    /// Bytes on disk.
    pub(super) fn bytes(&self) -> u64 {
        self.segments.values().map(|segment| segment.len).sum()
    }

    /// The folder that holds ours.
    pub(super) fn above(&self) -> &Path {
        &self.above
    }

    /// Begins a segment.
    fn begin(&mut self) -> io::Result<()> {
        let home = match &mut self.home {
            Some(home) => home,
            none => none.insert(Home::make(&self.above)?),
        };
        let file = File::options().read(true).write(true).create_new(true).open(home.dir.join(self.next.to_string()))?;
        self.segments.insert(self.next, Segment { file, len: 0, used: 0 });
        self.next += 1;
        Ok(())
    }
}

impl Drop for Spill {
    fn drop(&mut self) {
        self.segments.clear();
        if let Some(home) = &self.home
            && let Err(error) = fs::remove_dir_all(&home.dir)
        {
            tracing::warn!(dir = %home.dir.display(), %error, "could not remove the folder of spilled jobs");
        }
    }
}

impl Home {
    fn make(above: &Path) -> io::Result<Self> {
        fs::create_dir_all(above)?;
        let _door = door(above)?;
        let dir = above.join(format!("{PREFIX}{}", uuid::Uuid::new_v4().simple()));
        // Cookies and headers of requests lie in it: they are nobody else's business.
        fs::DirBuilder::new().mode(0o700).create(&dir)?;
        let lock = File::create(dir.join(LOCK))?;
        lock.try_lock()?;
        Ok(Self { dir, _lock: lock })
    }
}

/// Removes the folders in `above` whose processes are gone.
fn clear(above: &Path) -> io::Result<()> {
    let entries = match fs::read_dir(above) {
        Ok(entries) => entries,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        Err(error) => return Err(error),
    };
    let folders: Vec<PathBuf> = entries
        .filter_map(|entry| entry.ok().map(|entry| entry.path()))
        .filter(|path| path.is_dir() && path.file_name().is_some_and(|name| name.to_string_lossy().starts_with(PREFIX)))
        .collect();
    if folders.is_empty() {
        return Ok(());
    }
    // A folder is not seen between its making and its locking.
    let _door = door(above)?;
    for dir in folders {
        let is_left = match File::open(dir.join(LOCK)) {
            Ok(lock) => lock.try_lock().is_ok(),
            Err(error) => error.kind() == io::ErrorKind::NotFound,
        };
        if is_left {
            match fs::remove_dir_all(&dir) {
                // Its process removed it just now.
                Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                removed => removed?,
            }
        }
    }
    Ok(())
}

fn door(above: &Path) -> io::Result<File> {
    let door = File::options().create(true).truncate(false).write(true).open(above.join(DOOR))?;
    door.lock()?;
    Ok(door)
}

fn remove(path: &Path) {
    if let Err(error) = fs::remove_file(path) {
        tracing::warn!(path = %path.display(), %error, "could not remove a file of spilled jobs");
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing)]
    use std::os::unix::fs::PermissionsExt as _;

    use super::*;

    fn folders(above: &Path) -> usize {
        fs::read_dir(above).unwrap().filter(|entry| entry.as_ref().unwrap().path().is_dir()).count()
    }

    #[test]
    fn what_was_written_is_read_and_the_folder_goes_with_the_store() {
        let above = tempfile::tempdir().unwrap();
        let dir = above.path().join("new");
        let mut spill = Spill::below(&dir);
        assert!(!dir.exists(), "nothing is made before it is needed");
        let places = [spill.write(b"first").unwrap(), spill.write(b"second").unwrap()];
        let mut read = b"> ".to_vec();
        spill.read(places[1], 1, 4, &mut read).unwrap();
        spill.read(places[0], 0, 5, &mut read).unwrap();
        assert_eq!(read, b"> econfirst");
        let folder = &spill.home.as_ref().unwrap().dir;
        assert_eq!(fs::metadata(folder).unwrap().permissions().mode() & 0o777, 0o700, "others cannot look into it");
        assert!(spill.read(places[1], 3, 4, &mut read).is_err());
        assert_eq!(read, b"> econfirst", "a failed read leaves nothing behind");
        assert_eq!(spill.bytes(), 11);
        places.into_iter().for_each(|place| spill.release(place));
        assert_eq!(spill.bytes(), 0);
        let files: Vec<_> = fs::read_dir(&spill.home.as_ref().unwrap().dir).unwrap().map(|e| e.unwrap().file_name()).collect();
        assert_eq!(files, [LOCK], "its room on the disk is free again");
        assert!(spill.read(places[0], 0, 1, &mut read).is_err());
        assert_eq!(folders(&dir), 1);
        spill.write(b"third").unwrap();
        drop(spill);
        assert_eq!(folders(&dir), 0);
    }

    #[test]
    fn what_a_killed_run_left_is_removed_and_what_a_living_one_holds_is_not() {
        let above = tempfile::tempdir().unwrap();
        let mut living = Spill::below(above.path());
        let place = living.write(b"held").unwrap();
        let mut killed = Spill::below(above.path());
        killed.write(b"left").unwrap();
        // Its locks go with the process, its folder does not.
        drop(killed.home.take());
        std::mem::forget(killed);
        fs::create_dir(above.path().join("frontier-spill-unlocked")).unwrap();
        fs::create_dir(above.path().join("another")).unwrap();
        assert_eq!(folders(above.path()), 4);
        let next = Spill::below(above.path());
        assert_eq!(folders(above.path()), 2, "one is in use, and one is not ours");
        let mut read = Vec::new();
        living.read(place, 0, 4, &mut read).unwrap();
        assert_eq!(read, b"held");
        drop((next, living));
        assert_eq!(folders(above.path()), 1);
    }

    #[test]
    fn a_folder_that_cannot_be_made_is_an_error_each_time() {
        let above = tempfile::tempdir().unwrap();
        let file = above.path().join("file");
        fs::write(&file, "").unwrap();
        let mut spill = Spill::below(&file.join("below"));
        assert!(spill.write(b"x").is_err());
        fs::remove_file(&file).unwrap();
        assert!(spill.write(b"x").is_ok(), "it is tried again");
    }
}
