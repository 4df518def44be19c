//! Stored answers on disk: one file each, below one directory per spider.
//!
//! A file comes whole or not at all (written aside, then renamed), and is checked before it is believed. Directories and
//! files are the owner's alone. Names are keyed hashes, so that they say nothing of what is inside; the key lies in the
//! directory and makes the hashes of two caches say nothing about each other. All work on files runs on the blocking
//! threads of the runtime, at most [`AT_ONCE`] of them. No decision about what is stored or used is made here.

mod bound;
mod entry;

use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::{self, ErrorKind, Read, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use bytes::Bytes;
use hmac::{Hmac, KeyInit, Mac};
use sha2::Sha256;
use tokio::sync::Semaphore;

use self::bound::Bound;
pub(crate) use self::entry::Head;
use self::entry::{Coding, Flaw, PREFIX, Prefix};

/// Files that are read or written at the same time.
const AT_ONCE: usize = 16;

/// Where the key of the hashes lies in the directory.
const KEY: &str = "key";

/// Bytes of the key.
const KEY_BYTES: usize = 32;

/// A cache that cannot be used, or a file of it that cannot.
#[derive(Debug, thiserror::Error)]
pub(crate) enum CacheError {
    /// The disk refuses.
    #[error("the HTTP cache cannot {what} {}: {source}; mend that, or set HTTPCACHE_DIR to a directory that can be written", .path.display())]
    Io {
        /// What was tried.
        what: &'static str,
        /// On what.
        path: PathBuf,
        /// The system's words.
        source: io::Error,
    },
    /// The key of the directory is none.
    #[error("{} is no key of an HTTP cache ({found} bytes, {KEY_BYTES} are expected); remove the directory it lies in, the pages are fetched again", .path.display())]
    Key {
        /// Where it lies.
        path: PathBuf,
        /// How long it is.
        found: usize,
    },
    /// A file holds no stored answer, or a damaged one.
    #[error("{} holds no answer that can be used: {why}", .path.display())]
    Unusable {
        /// Which.
        path: PathBuf,
        /// Why.
        why: String,
    },
}

/// The name of a stored answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct EntryName([u8; 16]);

/// An answer that was found: its head, and its body still in the file.
#[derive(Debug)]
pub(crate) struct Found {
    pub(crate) head: Head,
    prefix: Prefix,
    file: File,
    path: PathBuf,
}

/// The stored answers of a spider. Cloning shares it.
#[derive(Debug, Clone)]
pub(crate) struct CacheStore(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    dir: PathBuf,
    key: Key,
    coding: Coding,
    bound: Bound,
    /// Numbers the files that are being written.
    parts: AtomicU64,
    places: Semaphore,
}

/// Not to be shown: with it a guess at what was hashed could be tried.
struct Key([u8; KEY_BYTES]);

impl CacheStore {
    /// The store in a directory, which is made if need be. `most`: bytes all files may have together, 0 for no bound.
    ///
    /// # Errors
    /// When the directory cannot be made or its key cannot be read.
    pub(crate) fn open(dir: &Path, gzip: bool, most: u64) -> Result<Self, CacheError> {
        make_private(dir).map_err(|source| CacheError::Io { what: "make", path: dir.to_owned(), source })?;
        Ok(Self(Arc::new(Inner {
            key: Key::of(dir)?,
            dir: dir.to_owned(),
            coding: if gzip { Coding::Gzip } else { Coding::Plain },
            bound: Bound::new(most),
            parts: AtomicU64::new(0),
            places: Semaphore::new(AT_ONCE),
        })))
    }

    /// The name for what is asked: equal for equal parts, told apart otherwise.
    pub(crate) fn name(&self, parts: &[&[u8]]) -> EntryName {
        EntryName(self.0.key.hash(b"name", parts))
    }

    /// A hash of values that are compared and must not be seen.
    pub(crate) fn print(&self, parts: &[&[u8]]) -> String {
        hex(&self.0.key.hash(b"print", parts))
    }

    /// Looks an answer up and reads its head.
    ///
    /// # Errors
    /// When the file cannot be read or is not what it should be.
    pub(crate) async fn find(&self, name: EntryName) -> Result<Option<Found>, CacheError> {
        self.blocking(move |inner| inner.find(name)).await
    }

    /// Reads the body of an answer.
    ///
    /// # Errors
    /// When the file cannot be read or is damaged.
    pub(crate) async fn body(&self, found: Found) -> Result<Bytes, CacheError> {
        self.blocking(move |_| found.body()).await
    }

    /// Stores an answer in place of an earlier one of the name; answers how many others had to go for it.
    ///
    /// # Errors
    /// When it cannot be written: then the earlier one stays.
    pub(crate) async fn put(&self, name: EntryName, head: Head, body: Bytes) -> Result<u64, CacheError> {
        self.blocking(move |inner| inner.put(name, &head, &body)).await
    }

    /// Removes an answer, if there is one.
    ///
    /// # Errors
    /// When it cannot be removed.
    pub(crate) async fn remove(&self, name: EntryName) -> Result<bool, CacheError> {
        self.blocking(move |inner| inner.remove(name)).await
    }

    async fn blocking<T: Send + 'static>(
        &self,
        work: impl FnOnce(&Inner) -> Result<T, CacheError> + Send + 'static,
    ) -> Result<T, CacheError> {
        let inner = Arc::clone(&self.0);
        // Never closed.
        let _place = self.0.places.acquire().await;
        let done = tokio::task::spawn_blocking(move || work(&inner)).await;
        done.unwrap_or_else(|error| {
            Err(CacheError::Io { what: "work on", path: self.0.dir.clone(), source: io::Error::other(error.to_string()) })
        })
    }
}

impl Found {
    /// Bytes of the body.
    pub(crate) fn body_len(&self) -> u64 {
        self.prefix.body_len
    }

    fn body(mut self) -> Result<Bytes, CacheError> {
        let most = self.prefix.stored_len;
        let mut stored = Vec::with_capacity(usize::try_from(most).unwrap_or(0));
        let read = (&mut self.file).take(most).read_to_end(&mut stored);
        read.map_err(|source| CacheError::Io { what: "read", path: self.path.clone(), source })?;
        self.prefix.body(stored).map_err(|flaw| unusable(&self.path, flaw))
    }
}

impl Inner {
    fn find(&self, name: EntryName) -> Result<Option<Found>, CacheError> {
        let path = self.path(name);
        let mut file = match File::open(&path) {
            Ok(file) => file,
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
            Err(source) => return Err(CacheError::Io { what: "read", path, source }),
        };
        let mut bytes = [0; PREFIX];
        let io = |what, source: io::Error| match source.kind() {
            ErrorKind::UnexpectedEof => unusable(&path, Flaw::Part("length")),
            _ => CacheError::Io { what, path: path.clone(), source },
        };
        file.read_exact(&mut bytes).map_err(|source| io("read", source))?;
        let prefix = Prefix::read(&bytes).map_err(|flaw| unusable(&path, flaw))?;
        let size = file.metadata().map_err(|source| io("look at", source))?.len();
        // The body takes the memory it announces: that must lie there.
        let head_end = PREFIX as u64 + u64::from(prefix.head_len);
        if size.checked_sub(head_end) != Some(prefix.stored_len) {
            return Err(unusable(&path, Flaw::Part("length")));
        }
        let mut head = vec![0; usize::try_from(prefix.head_len).unwrap_or(0)];
        file.read_exact(&mut head).map_err(|source| io("read", source))?;
        let head = prefix.head(&bytes, &head).map_err(|flaw| unusable(&path, flaw))?;
        Ok(Some(Found { head, prefix, file, path }))
    }

    fn put(&self, name: EntryName, head: &Head, body: &[u8]) -> Result<u64, CacheError> {
        let path = self.path(name);
        let io = |what, path: &Path, source| CacheError::Io { what, path: path.to_owned(), source };
        let file = entry::encode(head, body, self.coding).map_err(|source| io("pack", &path, source))?;
        if self.bound.is_beyond(file.len() as u64) {
            return Err(unusable(&path, "it alone is larger than HTTPCACHE_MAX_BYTES"));
        }
        if let Some(folder) = path.parent() {
            make_private(folder).map_err(|source| io("make", folder, source))?;
        }
        let number = self.parts.fetch_add(1, Ordering::Relaxed);
        let part = path.with_extension(format!("{}-{number}.part", std::process::id()));
        let before = fs::metadata(&path).map_or(0, |old| old.len());
        let written = private_file(&part)
            .and_then(|mut into| into.write_all(&file))
            .and_then(|()| fs::rename(&part, &path))
            .map_err(|source| io("write", &path, source));
        if written.is_err() {
            // What is left of it would only take room.
            let _ = fs::remove_file(&part);
        }
        written?;
        Ok(self.bound.changed(&self.dir, before, file.len() as u64))
    }

    fn remove(&self, name: EntryName) -> Result<bool, CacheError> {
        let path = self.path(name);
        let size = fs::metadata(&path).map_or(0, |old| old.len());
        match fs::remove_file(&path) {
            Ok(()) => {
                self.bound.removed(size);
                Ok(true)
            }
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(false),
            Err(source) => Err(CacheError::Io { what: "remove", path, source }),
        }
    }

    fn path(&self, name: EntryName) -> PathBuf {
        let text = hex(&name.0);
        self.dir.join(text.get(..2).unwrap_or_default()).join(text)
    }
}

impl Key {
    /// The key of a directory; a new one is drawn for a new directory. Of several that begin at once the first one wins.
    fn of(dir: &Path) -> Result<Self, CacheError> {
        let path = dir.join(KEY);
        let io = |what, source| CacheError::Io { what, path: path.clone(), source };
        if !path.exists() {
            let mut fresh = [0; KEY_BYTES];
            getrandom::fill(&mut fresh).map_err(|error| io("draw", io::Error::other(error.to_string())))?;
            let part = dir.join(format!("{KEY}.{}.part", std::process::id()));
            let _ = fs::remove_file(&part);
            private_file(&part).and_then(|mut file| file.write_all(&fresh)).map_err(|source| io("write", source))?;
            // A link, unlike a rename, does not go over what is there; not every file system has links.
            let linked = match fs::hard_link(&part, &path) {
                Err(error) if error.kind() != ErrorKind::AlreadyExists => fs::rename(&part, &path),
                _ => Ok(()),
            };
            let _ = fs::remove_file(&part);
            linked.map_err(|source| io("write", source))?;
        }
        let bytes = fs::read(&path).map_err(|source| io("read", source))?;
        let found = bytes.len();
        Ok(Self(bytes.try_into().map_err(|_| CacheError::Key { path, found })?))
    }

    fn hash(&self, what: &[u8], parts: &[&[u8]]) -> [u8; 16] {
        // HMAC takes a key of any length.
        #[allow(clippy::expect_used, reason = "only a cipher's key has a length of its own")]
        let mut mac: Hmac<Sha256> = Hmac::new_from_slice(&self.0).expect("HMAC takes a key of any length");
        mac.update(what);
        for part in parts {
            mac.update(&(part.len() as u64).to_le_bytes());
            mac.update(part);
        }
        let whole = mac.finalize().into_bytes();
        let mut half = [0; 16];
        half.iter_mut().zip(whole).for_each(|(to, from)| *to = from);
        half
    }
}

impl std::fmt::Debug for Key {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Key")
    }
}

fn unusable(path: &Path, why: impl ToString) -> CacheError {
    CacheError::Unusable { path: path.to_owned(), why: why.to_string() }
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Makes a directory, and those above it, that only the owner can look into; one that is there stays as it is.
fn make_private(dir: &Path) -> io::Result<()> {
    if dir.is_dir() {
        return Ok(());
    }
    let mut builder = DirBuilder::new();
    builder.recursive(true);
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    builder.create(dir)
}

/// A new file that only the owner can read.
fn private_file(path: &Path) -> io::Result<File> {
    let mut options = OpenOptions::new();
    options.write(true).create_new(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    options.open(path)
}

#[cfg(test)]
mod tests;
