//! Files that are whole or not there, and that nobody but their owner reads.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Read as _, Write as _};
use std::path::{Path, PathBuf};

/// The largest file that is read or written.
pub(super) const MAX_BYTES: usize = 32 * 1024 * 1024;
/// The longest name of a file that the usual file systems have.
const MAX_NAME: usize = 255;

/// The bytes of a file; `None` without one.
///
/// The directories above it may be links, the file itself may not: what we write is a file. A pipe or a device in its place
/// is refused without waiting for it.
pub(super) fn read(path: &Path) -> io::Result<Option<Vec<u8>>> {
    let file = match open(path) {
        Ok(file) => file,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(error),
    };
    if !file.metadata()?.is_file() {
        return Err(io::Error::new(io::ErrorKind::InvalidInput, "it is not a regular file"));
    }
    let mut bytes = Vec::new();
    file.take(MAX_BYTES as u64 + 1).read_to_end(&mut bytes)?;
    if bytes.len() > MAX_BYTES { Err(too_large()) } else { Ok(Some(bytes)) }
}

/// Puts a file in the place of whatever file is there, and makes the directories above it. On failure what was there stays,
/// and nothing else is left behind.
pub(super) fn replace(path: &Path, bytes: &[u8]) -> io::Result<()> {
    if bytes.len() > MAX_BYTES {
        return Err(too_large());
    }
    let (Some(dir), Some(name)) = (path.parent(), path.file_name().and_then(|name| name.to_str())) else {
        return Err(io::Error::new(io::ErrorKind::InvalidInput, "it is no path of a file"));
    };
    make_dirs(dir)?;
    let unfinished = Unfinished::create(dir, name)?;
    unfinished.finish(path, bytes)?;
    sync_dir(dir);
    Ok(())
}

/// Takes a file away; whether there was one.
pub(super) fn remove(path: &Path) -> io::Result<bool> {
    use io::ErrorKind::{InvalidFilename, NotADirectory, NotFound};
    match fs::remove_file(path) {
        Ok(()) => {
            path.parent().map(sync_dir);
            Ok(true)
        }
        // All three say that there is no such file, nor can be.
        Err(error) if matches!(error.kind(), NotFound | NotADirectory | InvalidFilename) => Ok(false),
        Err(error) => Err(error),
    }
}

/// A file on its way: gone when dropped, unless finished.
struct Unfinished {
    path: PathBuf,
    file: File,
    is_done: bool,
}

impl Unfinished {
    fn create(dir: &Path, name: &str) -> io::Result<Self> {
        let random = getrandom::u64().map_err(|_| io::Error::other("the system gives no randomness"))?;
        let path = dir.join(unfinished_name(name, random));
        let file = create(&path)?;
        Ok(Self { path, file, is_done: false })
    }

    fn finish(mut self, path: &Path, bytes: &[u8]) -> io::Result<()> {
        keep_private(&self.file)?;
        self.file.write_all(bytes)?;
        self.file.sync_all()?;
        fs::rename(&self.path, path)?;
        self.is_done = true;
        Ok(())
    }
}

impl Drop for Unfinished {
    fn drop(&mut self) {
        if !self.is_done {
            // There is a better error on its way already.
            fs::remove_file(&self.path).unwrap_or_default();
        }
    }
}

/// `.<name>.<random>.tmp`. A name is shortened for it where the whole would be too long for a file.
fn unfinished_name(name: &str, random: u64) -> String {
    let end = format!(".{random:016x}.tmp");
    let start: String = name.chars().take(MAX_NAME - 1 - end.len()).collect();
    format!(".{start}{end}")
}

/// Makes a directory and all above it that are missing.
fn make_dirs(dir: &Path) -> io::Result<()> {
    match make_dir(dir) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            let Some(above) = dir.parent().filter(|above| !above.as_os_str().is_empty()) else { return Err(error) };
            make_dirs(above)?;
            make_dir(dir)
        }
        done => done,
    }
}

/// Makes one directory, unless there is one.
fn make_dir(dir: &Path) -> io::Result<()> {
    match create_dir(dir) {
        Ok(()) => Ok(()),
        // What is there decides, not the error: a read-only file system may name itself first.
        Err(_) if dir.is_dir() => Ok(()),
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
            Err(io::Error::new(io::ErrorKind::NotADirectory, "what should be a directory above it is none"))
        }
        Err(error) => Err(error),
    }
}

/// Makes sure that the names in a directory survive a loss of power, where the system can.
fn sync_dir(dir: &Path) {
    File::open(dir).and_then(|dir| dir.sync_all()).unwrap_or_default();
}

fn too_large() -> io::Error {
    io::Error::new(io::ErrorKind::FileTooLarge, "it is larger than 32 MiB")
}

#[cfg(unix)]
fn open(path: &Path) -> io::Result<File> {
    use std::os::unix::fs::OpenOptionsExt as _;

    use rustix::fs::OFlags;
    let flags = OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::NOCTTY;
    OpenOptions::new().read(true).custom_flags(flags.bits().cast_signed()).open(path)
}

#[cfg(not(unix))]
fn open(path: &Path) -> io::Result<File> {
    File::open(path)
}

#[cfg(unix)]
fn create(path: &Path) -> io::Result<File> {
    use std::os::unix::fs::OpenOptionsExt as _;
    OpenOptions::new().write(true).create_new(true).mode(0o600).open(path)
}

#[cfg(not(unix))]
fn create(path: &Path) -> io::Result<File> {
    OpenOptions::new().write(true).create_new(true).open(path)
}

/// The umask takes from the mode that a file is made with: it may have taken the owner's own rights.
#[cfg(unix)]
fn keep_private(file: &File) -> io::Result<()> {
    use std::os::unix::fs::PermissionsExt as _;
    file.set_permissions(fs::Permissions::from_mode(0o600))
}

#[cfg(not(unix))]
fn keep_private(_: &File) -> io::Result<()> {
    Ok(())
}

#[cfg(unix)]
fn create_dir(dir: &Path) -> io::Result<()> {
    use std::os::unix::fs::{DirBuilderExt as _, PermissionsExt as _};
    fs::DirBuilder::new().mode(0o700).create(dir)?;
    // The umask again. A link that came between is left alone.
    let about = fs::symlink_metadata(dir)?;
    if about.is_dir() && about.permissions().mode() & 0o777 != 0o700 {
        fs::set_permissions(dir, fs::Permissions::from_mode(0o700))?;
    }
    Ok(())
}

#[cfg(not(unix))]
fn create_dir(dir: &Path) -> io::Result<()> {
    fs::create_dir(dir)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing)]

    use tempfile::TempDir;

    use super::*;

    #[test]
    fn unfinished_files_are_hidden_and_named_after_the_finished_one() {
        assert_eq!(unfinished_name("search.json.json", 0xab), ".search.json.json.00000000000000ab.tmp");
        let long = unfinished_name(&"k".repeat(255), u64::MAX);
        assert_eq!(long.len(), 255);
        assert!(long.starts_with(".kkk") && long.ends_with("k.ffffffffffffffff.tmp"), "{long}");
    }

    #[test]
    fn two_writers_have_a_file_of_their_own_each() {
        let dir = TempDir::new().unwrap();
        let (one, other) = (Unfinished::create(dir.path(), "x").unwrap(), Unfinished::create(dir.path(), "x").unwrap());
        assert_ne!(one.path, other.path);
        drop((one, other));
        assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 0);
    }

    #[cfg(unix)]
    #[test]
    fn b121_nobody_else_gets_at_a_file_even_before_its_mode_is_set() {
        use std::os::unix::fs::PermissionsExt as _;
        let dir = TempDir::new().unwrap();
        let file = create(&dir.path().join("x")).unwrap();
        assert_eq!(file.metadata().unwrap().permissions().mode() & 0o077, 0);
        assert_eq!(create(&dir.path().join("x")).unwrap_err().kind(), io::ErrorKind::AlreadyExists);
    }
}
