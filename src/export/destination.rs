//! Where a feed that is written whole at close ends up.

use std::fmt;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use super::journal::Journal;
use super::{Existing, FeedError, uri};

pub(super) enum Destination {
    File(PathBuf),
    Writer(Box<dyn Write + Send>),
}

impl Destination {
    /// The file of a feed and its journal. The file is replaced by a rename, so behind a link it is the file itself.
    pub(super) fn file(path: &Path, existing: Existing) -> Result<(Self, Journal), FeedError> {
        let path = path.canonicalize().unwrap_or_else(|_| path.to_owned());
        let journal = Journal::open(&path, existing)?;
        Ok((Self::File(path), journal))
    }

    /// The name in messages.
    pub(super) fn name(&self) -> String {
        match self {
            Self::File(path) => uri(Some(path)),
            Self::Writer(_) => uri(None),
        }
    }

    /// Writes the feed from its journal; the answer is its size.
    pub(super) fn finish(
        self,
        mut journal: Journal,
        fill: impl FnOnce(&mut Journal, &mut dyn Write) -> Result<(), FeedError>,
    ) -> Result<u64, FeedError> {
        match self {
            Self::File(_) => journal.finish(fill),
            Self::Writer(out) => {
                let mut out = Counted { out, bytes: 0 };
                fill(&mut journal, &mut out)?;
                Ok(out.bytes)
            }
        }
    }
}

impl fmt::Debug for Destination {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Destination").field(&self.name()).finish()
    }
}

/// Counts what goes through.
struct Counted {
    out: Box<dyn Write + Send>,
    bytes: u64,
}

impl Write for Counted {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let count = self.out.write(bytes)?;
        self.bytes += count as u64;
        Ok(count)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.out.flush()
    }
}
