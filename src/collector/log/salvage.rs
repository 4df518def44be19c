//! A damaged segment becomes a good one: every frame that checks, in order, and gaps where numbers are gone.
//!
//! The file is copied to `<name>.damaged` first. The new one is written beside it, synced, and takes its place with
//! one rename: a process that dies anywhere in between leaves either the damaged file or the good one.

use std::fs::{self, File};
use std::io::{BufWriter, Read as _, Write as _};
use std::path::{Path, PathBuf};

use super::error::LogError;
use super::frame::{self, Frame, HEADER_BYTES, Header};
use super::survey::{Limits, Run, Window};

/// Ends the names of files that are being written. What has such a name when a log is opened is of no use.
pub(super) const UNFINISHED: &str = ".writing";
pub(super) const DAMAGED: &str = ".damaged";

/// What a new segment is made of.
#[derive(Debug)]
pub(super) struct Plan<'a> {
    pub(super) header: Header,
    pub(super) runs: &'a [Run],
    /// Frames above this number are left out.
    pub(super) keep: u64,
    /// No number above this one was written yet.
    pub(super) found: u64,
}

/// A segment that is being written.
#[derive(Debug)]
pub(super) struct Rewrite {
    path: PathBuf,
    file: BufWriter<File>,
    /// The last number in it.
    pub(super) last: u64,
    /// Numbers that are gone.
    pub(super) lost: u64,
    /// Bytes of the old file that are in it.
    pub(super) used: u64,
    frames: u64,
    found: u64,
}

impl Rewrite {
    /// Writes what a plan names from the segment the frames come from, next to it.
    pub(super) fn begin(dir: &Path, plan: &Plan<'_>, window: Option<&mut Window>) -> Result<Self, LogError> {
        let path = dir.join(format!("{}{UNFINISHED}", super::segment::file_name(plan.header.first_seq)));
        step()?;
        let file = BufWriter::new(File::create(&path).map_err(LogError::io("create", &path))?);
        let mut new = Self { path, file, last: plan.header.first_seq - 1, lost: 0, used: 0, frames: 0, found: plan.found };
        new.put(&plan.header.encode())?;
        let Some(window) = window else { return Ok(new) };
        for run in plan.runs {
            let limits = Limits { above: run.first - 1, up_to: run.last };
            let mut at = run.from;
            while at < run.to
                && let Some(found) = window.find_at(at, limits)?
                && found.seq <= plan.keep
            {
                at = found.end;
                // What is there twice is taken once.
                if found.seq <= new.last {
                    continue;
                }
                new.gap(found.seq - 1)?;
                let size = found.end - found.at;
                let bytes = window.bytes(found.at, usize::try_from(size).unwrap_or(usize::MAX))?;
                new.put(bytes.get(..usize::try_from(size).unwrap_or(usize::MAX)).unwrap_or_default())?;
                new.used += size;
                new.frames += 1;
                new.last = found.through;
            }
        }
        Ok(new)
    }

    /// Notes that the numbers behind the last one are gone up to this one.
    pub(super) fn gap(&mut self, up_to: u64) -> Result<(), LogError> {
        let lost = up_to.saturating_sub(self.last);
        self.reserve(up_to, lost)
    }

    /// Leaves numbers out of which only some are known to be gone.
    pub(super) fn reserve(&mut self, up_to: u64, lost: u64) -> Result<(), LogError> {
        if up_to <= self.last {
            return Ok(());
        }
        let mut bytes = Vec::new();
        frame::encode(&mut bytes, self.last + 1, &Frame::Gap { up_to, found: self.found }, true);
        self.put(&bytes)?;
        self.last = up_to;
        self.lost += lost;
        self.frames += 1;
        Ok(())
    }

    pub(super) fn is_empty(&self) -> bool {
        self.frames == 0
    }

    /// Puts the new segment where the old one is.
    pub(super) fn finish(self, old: &Path, new: &Path) -> Result<(), LogError> {
        step()?;
        let file = self.file.into_inner().map_err(|error| LogError::io("write", &self.path)(error.into_error()))?;
        file.sync_all().map_err(LogError::io("sync", &self.path))?;
        step()?;
        fs::rename(&self.path, new).map_err(LogError::io("write", new))?;
        sync_dir_of(new)?;
        step()?;
        if old == new { Ok(()) } else { remove(old) }
    }

    /// There is nothing to keep: the old file goes.
    pub(super) fn discard(self, old: &Path) -> Result<(), LogError> {
        step()?;
        fs::remove_file(&self.path).map_err(LogError::io("remove", &self.path))?;
        remove(old)
    }

    fn put(&mut self, bytes: &[u8]) -> Result<(), LogError> {
        self.file.write_all(bytes).map_err(LogError::io("write", &self.path))
    }
}

/// Copies a file to where nothing touches it, unless an interrupted start has done so already.
pub(super) fn set_aside(path: &Path) -> Result<PathBuf, LogError> {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let mut copy = path.with_file_name(format!("{name}{DAMAGED}"));
    let mut n = 1;
    while copy.exists() {
        if is_same(path, &copy)? {
            return Ok(copy);
        }
        n += 1;
        copy = path.with_file_name(format!("{name}.{n}{DAMAGED}"));
    }
    let unfinished = path.with_file_name(format!("{name}{DAMAGED}{UNFINISHED}"));
    step()?;
    // Not fs::copy, which would copy the permissions too.
    let copied = File::open(path).and_then(|mut from| {
        let mut to = File::create(&unfinished)?;
        std::io::copy(&mut from, &mut to)?;
        to.sync_all()
    });
    copied.map_err(LogError::io("copy to", &unfinished))?;
    step()?;
    fs::rename(&unfinished, &copy).map_err(LogError::io("write", &copy))?;
    sync_dir_of(&copy)?;
    step()?;
    Ok(copy)
}

pub(super) fn remove(path: &Path) -> Result<(), LogError> {
    fs::remove_file(path).map_err(LogError::io("remove", path))?;
    sync_dir_of(path)
}

/// Cuts off what a crash left behind.
pub(super) fn truncate(path: &Path, bytes: u64) -> Result<(), LogError> {
    let file = File::options().write(true).open(path);
    file.and_then(|file| file.set_len(bytes).and_then(|()| file.sync_all())).map_err(LogError::io("truncate", path))
}

/// The bytes of the old file that are not in the new one, its header not counted.
pub(super) fn unused(len: u64, used: u64, header_is_good: bool) -> u64 {
    let header = if header_is_good { HEADER_BYTES as u64 } else { 0 };
    len.saturating_sub(used + header)
}

fn is_same(path: &Path, copy: &Path) -> Result<bool, LogError> {
    let len = |path: &Path| fs::metadata(path).map(|data| data.len()).map_err(LogError::io("read", path));
    if len(path)? != len(copy)? {
        return Ok(false);
    }
    let open = |path: &Path| File::open(path).map_err(LogError::io("read", path));
    let (left, right) = (open(path)?, open(copy)?);
    let read = |file: &File, into: &mut Vec<u8>, path: &Path| {
        into.clear();
        file.take(64 * 1024).read_to_end(into).map_err(LogError::io("read", path))
    };
    let (mut a, mut b) = (Vec::new(), Vec::new());
    loop {
        read(&left, &mut a, path)?;
        read(&right, &mut b, copy)?;
        if a != b || a.is_empty() {
            return Ok(a == b);
        }
    }
}

fn sync_dir_of(path: &Path) -> Result<(), LogError> {
    let dir = path.parent().unwrap_or(path);
    File::open(dir).and_then(|dir| dir.sync_all()).map_err(LogError::io("sync", dir))
}

#[cfg(not(test))]
#[allow(clippy::unnecessary_wraps, reason = "where the tests end a process")]
const fn step() -> Result<(), LogError> {
    Ok(())
}

#[cfg(test)]
pub(super) use fault::{die_at, step};

#[cfg(test)]
mod fault {
    use std::cell::Cell;
    use std::io;
    use std::path::Path;

    use super::LogError;

    thread_local! {
        static LEFT: Cell<Option<u32>> = const { Cell::new(None) };
    }

    /// Makes this thread's opening of a log end at one of its steps; `None` lets it through.
    pub(in super::super) fn die_at(step: Option<u32>) {
        LEFT.set(step);
    }

    pub(in super::super) fn step() -> Result<(), LogError> {
        match LEFT.get() {
            Some(0) => Err(LogError::io("go on with", Path::new("test"))(io::Error::other("the process ends here"))),
            left => {
                LEFT.set(left.map(|left| left - 1));
                Ok(())
            }
        }
    }
}
