//! The journal behind a JSON or CSV feed: JSON lines in `FILE.part`, or in a nameless file for standard output.
//!
//! At close the feed is written to `FILE.tmp` from the journal. Then `FILE.part` becomes `FILE.part.done`, `FILE.tmp`
//! becomes `FILE`, and the journal is removed: whatever step a crash falls on, the next run knows whether the items of
//! the journal are in the file.

use std::fs::{self, File};
use std::io::{self, BufRead, BufReader, BufWriter, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

use serde::de::IgnoredAny;
use tracing::{info, warn};

use super::sink::Sink;
use super::{Existing, FeedError};

/// Items on their way to a feed, and what to do with them at the end.
#[derive(Debug)]
pub(super) struct Journal {
    /// The file of the feed; `None` for standard output.
    target: Option<PathBuf>,
    file: File,
    sink: Sink,
}

impl Journal {
    /// Opens the journal of a file. What a crashed run left is picked up when appending, thrown away when overwriting.
    pub(super) fn open(target: &Path, existing: Existing) -> Result<Self, FeedError> {
        if let Ok(meta) = fs::metadata(target)
            && !meta.is_file()
        {
            return Err(FeedError::Existing {
                path: target.display().to_string(),
                expected: "a regular file, as this format needs",
                reason: "use - for standard output".to_owned(),
            });
        }
        let part = beside(target, ".part");
        let mut file = File::options()
            .read(true)
            .write(true)
            .create(true)
            .truncate(false)
            .open(&part)
            .map_err(FeedError::io("open", &part))?;
        lock(&file, &part)?;
        settle_last_close(target)?;
        let left = file.metadata().map_err(FeedError::io("read", &part))?.len();
        match existing {
            Existing::Overwrite => {
                if left > 0 {
                    warn!(path = %part.display(), bytes = left, "threw away what an earlier run left unfinished");
                }
                file.set_len(0).map_err(FeedError::io("empty", &part))?;
            }
            Existing::Append => {
                if left > 0 {
                    warn!(path = %part.display(), bytes = left, "picked up what an earlier run left unfinished");
                }
                cut_torn_tail(&mut file, &part).map_err(FeedError::io("repair", &part))?;
            }
        }
        let out = file.try_clone().map_err(FeedError::io("open", &part))?;
        Ok(Self { target: Some(target.to_owned()), file, sink: Sink::new(Box::new(out), Some(part)) })
    }

    /// Opens a journal in a file without a name, in the folder for temporary files.
    pub(super) fn nameless() -> Result<Self, FeedError> {
        static NUMBER: AtomicU64 = AtomicU64::new(0);
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let path = std::env::temp_dir().join(format!("dragline-feed-{}-{number}.part", std::process::id()));
        let file = File::options().read(true).write(true).create_new(true).open(&path).map_err(FeedError::io("create", &path))?;
        fs::remove_file(&path).map_err(FeedError::io("remove", &path))?;
        let out = file.try_clone().map_err(FeedError::io("open", &path))?;
        Ok(Self { target: None, file, sink: Sink::new(Box::new(out), Some(path)) })
    }

    pub(super) fn sink(&mut self) -> &mut Sink {
        &mut self.sink
    }

    /// Whether no item was ever written.
    pub(super) fn is_empty(&mut self) -> Result<bool, FeedError> {
        self.sink.flush()?;
        let target = self.target.as_deref().unwrap_or(Path::new("-"));
        Ok(self.file.metadata().map_err(FeedError::io("read", target))?.len() == 0)
    }

    pub(super) fn flush(&mut self) -> Result<(), FeedError> {
        self.sink.flush()
    }

    /// Gives every line to `take`, from the first on. Nothing may be written while this runs.
    pub(super) fn each_line(&mut self, mut take: impl FnMut(&str) -> Result<(), FeedError>) -> Result<(), FeedError> {
        self.sink.flush()?;
        let path = beside(self.target.as_deref().unwrap_or(Path::new("-")), ".part");
        self.file.seek(SeekFrom::Start(0)).map_err(FeedError::io("read", &path))?;
        let mut reader = BufReader::with_capacity(1 << 16, &self.file);
        let mut line = String::new();
        loop {
            line.clear();
            if reader.read_line(&mut line).map_err(FeedError::io("read", &path))? == 0 {
                break;
            }
            let text = line.trim_end_matches('\n');
            if !text.is_empty() {
                take(text)?;
            }
        }
        self.file.seek(SeekFrom::End(0)).map_err(FeedError::io("read", &path))?;
        Ok(())
    }

    /// Writes the feed with `fill`, puts it in its place and ends the journal. The answer is the feed's size.
    pub(super) fn finish(
        mut self,
        fill: impl FnOnce(&mut Self, &mut dyn Write) -> Result<(), FeedError>,
    ) -> Result<u64, FeedError> {
        let Some(target) = self.target.clone() else {
            return Ok(0);
        };
        let (part, done, tmp) = (beside(&target, ".part"), beside(&target, ".part.done"), beside(&target, ".tmp"));
        let file = File::create(&tmp).map_err(FeedError::io("create", &tmp))?;
        let mut out = BufWriter::with_capacity(1 << 16, file);
        fill(&mut self, &mut out)?;
        let file = out.into_inner().map_err(|error| FeedError::io("write", &tmp)(error.into_error()))?;
        if let Ok(old) = fs::metadata(&target) {
            // Whoever could read the file that is replaced can read the new one; a refusal costs only that.
            let _ = file.set_permissions(old.permissions());
        }
        file.sync_all().map_err(FeedError::io("write", &tmp))?;
        let bytes = file.metadata().map_err(FeedError::io("read", &tmp))?.len();
        fs::rename(&part, &done).map_err(FeedError::io("rename", &part))?;
        fs::rename(&tmp, &target).map_err(FeedError::io("replace", &target))?;
        fs::remove_file(&done).map_err(FeedError::io("remove", &done))?;
        Ok(bytes)
    }

    /// Takes back an open that comes to nothing; items of an earlier run stay.
    pub(super) fn abandon(mut self) {
        if self.is_empty().unwrap_or(false) {
            // An empty file left behind does no harm: the next open takes it.
            let _ = self.discard();
        }
    }

    /// Ends a journal whose feed is not to be stored.
    pub(super) fn discard(self) -> Result<(), FeedError> {
        let Some(target) = self.target else {
            return Ok(());
        };
        let part = beside(&target, ".part");
        fs::remove_file(&part).map_err(FeedError::io("remove", &part))
    }
}

/// Finishes or undoes the close that a crash interrupted.
fn settle_last_close(target: &Path) -> Result<(), FeedError> {
    let (done, tmp) = (beside(target, ".part.done"), beside(target, ".tmp"));
    if done.exists() {
        if tmp.exists() {
            warn!(path = %target.display(), "finished the feed of an earlier run that ended while closing it");
            fs::rename(&tmp, target).map_err(FeedError::io("replace", target))?;
        }
        fs::remove_file(&done).map_err(FeedError::io("remove", &done))?;
    } else if tmp.exists() {
        info!(path = %tmp.display(), "removed the half-written feed of an earlier run, its journal is complete");
        fs::remove_file(&tmp).map_err(FeedError::io("remove", &tmp))?;
    }
    Ok(())
}

/// Two runs on one file would spoil it. The lock goes with the process.
pub(super) fn lock(file: &File, path: &Path) -> Result<(), FeedError> {
    match file.try_lock() {
        Err(fs::TryLockError::WouldBlock) => {
            let source = io::Error::new(io::ErrorKind::ResourceBusy, "another run is writing to it");
            Err(FeedError::Io { doing: "use", path: path.display().to_string(), source })
        }
        // A file system without locks is no reason not to write.
        Ok(()) | Err(fs::TryLockError::Error(_)) => Ok(()),
    }
}

/// Leaves the file at its end, after a line that is whole: the last line without a line end is completed if it is a
/// whole item, else cut with a message.
pub(super) fn cut_torn_tail(file: &mut File, path: &Path) -> io::Result<()> {
    let len = file.seek(SeekFrom::End(0))?;
    let start = last_byte(file, len, |byte| byte == b'\n')?.map_or(0, |(at, _)| at + 1);
    if start < len {
        file.seek(SeekFrom::Start(start))?;
        let mut tail = BufReader::new((&*file).take(len - start));
        let object = tail.fill_buf()?.first() == Some(&b'{');
        if object && serde_json::from_reader::<_, IgnoredAny>(tail).is_ok() {
            file.seek(SeekFrom::End(0))?;
            file.write_all(b"\n")?;
        } else {
            warn!(path = %path.display(), bytes = len - start, "cut a half-written last line");
            file.set_len(start)?;
        }
    }
    file.seek(SeekFrom::End(0)).map(|_| ())
}

/// The last byte before `end` that `wanted` accepts, with its place.
pub(super) fn last_byte(file: &mut File, mut end: u64, wanted: impl Fn(u8) -> bool) -> io::Result<Option<(u64, u8)>> {
    let mut block = vec![0; 1 << 16];
    while end > 0 {
        let size = end.min(block.len() as u64);
        end -= size;
        file.seek(SeekFrom::Start(end))?;
        let Some(part) = usize::try_from(size).ok().and_then(|size| block.get_mut(..size)) else {
            break;
        };
        file.read_exact(part)?;
        if let Some((at, byte)) = part.iter().enumerate().rev().find(|(_, byte)| wanted(**byte)) {
            return Ok(Some((end + at as u64, *byte)));
        }
    }
    Ok(None)
}

/// The path with something after its file name.
pub(super) fn beside(path: &Path, suffix: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(suffix);
    PathBuf::from(name)
}
