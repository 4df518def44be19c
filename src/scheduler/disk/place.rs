//! The directory of a frontier: whose it is, of which format, and who has it open.
//!
//! `format` says both in one line of text. It says "unfinished" until the first commit is on disk, so that a creation
//! cut short is begun anew, and only then: nothing else is ever deleted here. `lock` is held while it is open.

use std::fs::{self, File, OpenOptions, TryLockError};
use std::io::{ErrorKind, Read, Write};
use std::os::unix::fs::DirBuilderExt as _;
use std::path::{Path, PathBuf};
use std::time::Duration;

use super::error::DiskError;
use super::rows::FORMAT;

const FORMAT_FILE: &str = "format";
const LOCK_FILE: &str = "lock";
const DATABASE: &str = "db";
/// A copy of what can be read of a damaged database; it is whole when there is no other.
const NEW_DATABASE: &str = "db.new";
const LEAD: &str = "dragline frontier ";
const UNFINISHED: &str = " unfinished";

/// How often the lock is tried, 100 ms apart: a process that was killed is gone a moment later.
const LOCK_TRIES: u32 = 5;

/// A directory that this process has the lock of.
#[derive(Debug)]
pub(super) struct Place {
    dir: PathBuf,
    /// Held until the end.
    _lock: File,
}

/// What is in a directory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Contents {
    /// Nothing that was ever committed.
    Nothing,
    /// A frontier of this format.
    Frontier,
}

impl Place {
    /// Takes the lock of a directory after a look at what is in it; makes the directory when there is none.
    pub(super) fn claim(dir: &Path) -> Result<(Self, Contents), DiskError> {
        // Cookies and headers of requests lie in it: they are nobody else's business.
        match fs::DirBuilder::new().recursive(true).mode(0o700).create(dir) {
            Ok(()) => {}
            // A file in the place of the directory.
            Err(error) if error.kind() == ErrorKind::AlreadyExists => {
                return Err(DiskError::Foreign { path: dir.to_owned(), found: "no directory but a file".to_owned() });
            }
            Err(error) => return Err(DiskError::io(dir, "make the directory", &error)),
        }
        // Before the lock, which leaves a file in what may be somebody else's directory.
        look(dir)?;
        let place = Self { dir: dir.to_owned(), _lock: lock(dir)? };
        // The one who had the lock may have finished what it began.
        let contents = look(dir)?;
        place.ready(contents)?;
        Ok((place, contents))
    }

    /// As [`Self::claim`], for a directory that must hold a frontier already; a creation cut short counts as none.
    pub(super) fn visit(dir: &Path) -> Result<Option<Self>, DiskError> {
        if !dir.exists() || look(dir)? == Contents::Nothing {
            return Ok(None);
        }
        let place = Self { dir: dir.to_owned(), _lock: lock(dir)? };
        place.ready(Contents::Frontier)?;
        Ok(Some(place))
    }

    fn ready(&self, contents: Contents) -> Result<(), DiskError> {
        match contents {
            Contents::Nothing => self.begin(),
            Contents::Frontier if !self.database().exists() => self.finish_replacing(),
            Contents::Frontier => Ok(()),
        }
    }

    pub(super) fn dir(&self) -> &Path {
        &self.dir
    }

    /// Where the database lies.
    pub(super) fn database(&self) -> PathBuf {
        self.dir.join(DATABASE)
    }

    /// Whether a database lies there.
    pub(super) fn has_database(&self) -> bool {
        has_database(&self.dir, DATABASE)
    }

    /// Where a copy of the database may be made, which is to take its place.
    pub(super) fn new_database(&self) -> Result<PathBuf, DiskError> {
        let new = self.dir.join(NEW_DATABASE);
        self.remove(&new)?;
        Ok(new)
    }

    /// Puts the finished copy in the place of the database, and says where that one is now.
    pub(super) fn replace_database(&self) -> Result<PathBuf, DiskError> {
        let named = |n: u32| self.dir.join(format!("{DATABASE}.damaged-{n}"));
        let aside = (1..).map(named).find(|path| !path.exists()).unwrap_or_else(|| named(0));
        fs::rename(self.database(), &aside).map_err(|error| self.failed("move the damaged database", &error))?;
        self.finish_replacing()?;
        Ok(aside)
    }

    /// The second half of [`Self::replace_database`], also when the process ended after the first.
    fn finish_replacing(&self) -> Result<(), DiskError> {
        let new = self.dir.join(NEW_DATABASE);
        let placed = fs::rename(new, self.database()).and_then(|()| File::open(&self.dir)?.sync_all());
        placed.map_err(|error| self.failed("place the new database", &error))
    }

    /// Says that the first commit is on disk.
    pub(super) fn finish(&self) -> Result<(), DiskError> {
        self.write(&format!("{LEAD}{FORMAT}\n"))
    }

    /// Removes what a creation cut short left, and says that one begins.
    fn begin(&self) -> Result<(), DiskError> {
        self.remove(&self.database())?;
        self.write(&format!("{LEAD}{FORMAT}{UNFINISHED}\n"))
    }

    fn remove(&self, unfinished: &Path) -> Result<(), DiskError> {
        match fs::remove_dir_all(unfinished) {
            Err(error) if error.kind() != ErrorKind::NotFound => Err(self.failed("remove an unfinished database", &error)),
            _ => Ok(()),
        }
    }

    fn failed(&self, what: &'static str, error: &std::io::Error) -> DiskError {
        DiskError::io(&self.dir, what, error)
    }

    /// Writes the format file whole or not at all.
    fn write(&self, line: &str) -> Result<(), DiskError> {
        let path = self.dir.join(FORMAT_FILE);
        let part = self.dir.join("format.part");
        let written = File::create(&part).and_then(|mut file| {
            file.write_all(line.as_bytes())?;
            file.sync_all()
        });
        let placed = written.and_then(|()| fs::rename(&part, &path)).and_then(|()| File::open(&self.dir)?.sync_all());
        placed.map_err(|error| DiskError::io(&self.dir, "write the format file", &error))
    }
}

fn look(dir: &Path) -> Result<Contents, DiskError> {
    let foreign = |found: String| DiskError::Foreign { path: dir.to_owned(), found };
    let path = dir.join(FORMAT_FILE);
    let mut text = String::new();
    // A format file is a line; what is longer is none.
    match File::open(&path).and_then(|file| file.take(256).read_to_string(&mut text)) {
        Ok(_) => {}
        Err(error) if error.kind() == ErrorKind::NotFound => return without_format(dir),
        Err(error) if error.kind() == ErrorKind::InvalidData => return Err(foreign("a format file that is no text".to_owned())),
        Err(error) => return Err(DiskError::io(dir, "read the format file", &error)),
    }
    let Some(version) = text.strip_prefix(LEAD).map(str::trim_end) else {
        return Err(foreign(format!("a format file that says {:?}", text.chars().take(40).collect::<String>())));
    };
    let (version, contents) = match version.strip_suffix(UNFINISHED) {
        Some(version) => (version, Contents::Nothing),
        None => (version, Contents::Frontier),
    };
    match version.parse::<u64>() {
        Ok(found) if found == u64::from(FORMAT) => {}
        Ok(found) if found > u64::from(FORMAT) => {
            return Err(DiskError::Newer { path: dir.to_owned(), found, known: FORMAT.into() });
        }
        _ => return Err(foreign(format!("a format file of version {version:?}"))),
    }
    let has = |database: &str| has_database(dir, database);
    if contents == Contents::Frontier && !has(DATABASE) && (dir.join(DATABASE).exists() || !has(NEW_DATABASE)) {
        let what = "its database is gone, only the format file is left".to_owned();
        return Err(DiskError::Damaged { path: dir.to_owned(), what });
    }
    Ok(contents)
}

fn has_database(dir: &Path, name: &str) -> bool {
    dir.join(name).join("version").exists()
}

/// A directory without a format file is taken when it is empty, except for files that a claim leaves.
fn without_format(dir: &Path) -> Result<Contents, DiskError> {
    let failed = |error: std::io::Error| DiskError::io(dir, "list the directory", &error);
    for entry in fs::read_dir(dir).map_err(failed)? {
        let name = entry.map_err(failed)?.file_name();
        if name != LOCK_FILE && name != "format.part" {
            let found = name.to_string_lossy().into_owned();
            return Err(DiskError::Foreign { path: dir.to_owned(), found });
        }
    }
    Ok(Contents::Nothing)
}

fn lock(dir: &Path) -> Result<File, DiskError> {
    let failed = |error: std::io::Error| DiskError::io(dir, "lock the directory", &error);
    let path = dir.join(LOCK_FILE);
    let mut file = OpenOptions::new().read(true).write(true).create(true).truncate(false).open(path).map_err(failed)?;
    for left in (0..LOCK_TRIES).rev() {
        match file.try_lock() {
            Ok(()) => {
                // Only told to others; what fails here is of no account.
                let _ = file.set_len(0).and_then(|()| file.write_all(std::process::id().to_string().as_bytes()));
                return Ok(file);
            }
            Err(TryLockError::WouldBlock) if left > 0 => std::thread::sleep(Duration::from_millis(100)),
            Err(TryLockError::WouldBlock) => break,
            Err(TryLockError::Error(error)) => return Err(failed(error)),
        }
    }
    let mut holder = String::new();
    let _ = file.take(20).read_to_string(&mut holder);
    let holder = match holder.parse::<u32>() {
        Ok(id) => format!("process {id}"),
        Err(_) => "another process".to_owned(),
    };
    Err(DiskError::Locked { path: dir.to_owned(), holder })
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use std::os::unix::fs::PermissionsExt as _;

    use super::*;

    #[test]
    fn an_empty_directory_is_claimed_and_a_creation_cut_short_begun_anew() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("frontier");
        let (place, contents) = Place::claim(&path).unwrap();
        assert_eq!(contents, Contents::Nothing);
        assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o700, "others cannot look into it");
        fs::create_dir(place.database()).unwrap();
        fs::write(place.database().join("0.jnl"), "").unwrap();
        drop(place);
        assert!(Place::visit(&path).unwrap().is_none());
        let (place, contents) = Place::claim(&path).unwrap();
        assert_eq!((contents, place.database().exists()), (Contents::Nothing, false));
        fs::create_dir(place.database()).unwrap();
        fs::write(place.database().join("version"), "").unwrap();
        place.finish().unwrap();
        drop(place);
        assert_eq!(fs::read_to_string(path.join("format")).unwrap(), "dragline frontier 1\n");
        assert_eq!(Place::claim(&path).unwrap().1, Contents::Frontier);
    }

    #[test]
    fn a_directory_in_use_is_refused_with_the_process_that_has_it() {
        let dir = tempfile::tempdir().unwrap();
        let (place, _) = Place::claim(dir.path()).unwrap();
        let text = Place::claim(dir.path()).unwrap_err().to_string();
        assert!(text.contains(&format!("in use by process {}", std::process::id())), "{text}");
        drop(place);
        Place::claim(dir.path()).unwrap();
    }

    #[test]
    fn what_is_not_ours_or_too_new_is_refused_and_left_alone() {
        for (file, content, expected) in [
            ("notes.txt", "mine", "it holds notes.txt"),
            ("db", "x", "it holds db"),
            ("format", "ext4\n", "says \"ext4"),
            ("format", "dragline frontier x\n", "version \"x\""),
            ("format", "dragline frontier 0\n", "version \"0\""),
            ("format", "dragline frontier 2\n", "is a frontier of format 2, this program reads up to 1"),
            ("format", "dragline frontier 2 unfinished\n", "format 2"),
            ("format", "dragline frontier 1\n", "its database is gone"),
        ] {
            let dir = tempfile::tempdir().unwrap();
            fs::write(dir.path().join(file), content).unwrap();
            let text = Place::claim(dir.path()).unwrap_err().to_string();
            assert!(text.contains(expected), "{text}");
            let text = Place::visit(dir.path()).unwrap_err().to_string();
            assert!(text.contains(expected), "{text}");
            assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 1, "nothing was added");
            assert_eq!(fs::read_to_string(dir.path().join(file)).unwrap(), content);
        }
        let dir = tempfile::tempdir().unwrap();
        fs::write(dir.path().join("format"), [0xff, 0xfe]).unwrap();
        assert!(Place::claim(dir.path()).unwrap_err().to_string().contains("no text"));
        fs::write(dir.path().join("file"), "").unwrap();
        assert!(matches!(Place::claim(&dir.path().join("file")).unwrap_err(), DiskError::Foreign { .. }));
    }
}
