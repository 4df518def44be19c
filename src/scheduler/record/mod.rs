//! A job as bytes: what every frontier store keeps of it, in memory, on disk and at a Redis server.
//!
//! The layout is a version byte, then what [`peek`] needs, then the rest of what every job has, then rare fields,
//! each with its tag and length, in rising order of tags. Numbers are LEB128 varints (signed ones zigzag), ids
//! and keys 16 bytes in little endian, texts UTF-8. There is no checksum: stores that need one add it.
//!
//! Versions, flags, tags and their meaning are part of the format on disk: they are added to and never changed.
//! Whoever adds a flag or tag raises the version, since an older reader refuses what it does not know. A record is written
//! in the lowest version that has all of its fields, so that a program of before can go on with what it knows.

mod read;
mod wire;
mod write;

use std::time::Duration;

use self::read::Reader;
use super::job::{Job, JobKind, RequestId};

/// The newest version that is written and read.
pub(crate) const VERSION: u8 = 2;

/// What is said of a job without reading all of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Peek<'a> {
    pub(crate) id: RequestId,
    pub(crate) kind: JobKind,
    pub(crate) parent: Option<RequestId>,
    /// When it may go, as time since the Unix epoch; zero for at once.
    pub(crate) not_before: Duration,
    pub(crate) priority: i32,
    pub(crate) url: &'a str,
    /// Its slot: a part of `url` without a dot at its end, empty for a URL without a host.
    pub(crate) host: &'a str,
    /// Its seen key.
    pub(crate) key: u128,
    flags: u64,
}

/// A record that cannot be read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub(crate) enum RecordError {
    /// A newer version wrote it.
    #[error("the record has format {found}, and this version of dragline reads up to {VERSION}; use the version that wrote it")]
    Newer {
        /// Its version byte.
        found: u8,
    },
    /// It is cut off.
    #[error("the record ends within its {field}")]
    Short {
        /// What was being read.
        field: &'static str,
    },
    /// A field holds what cannot have been written there.
    #[error("the record's {field} is damaged: {found}")]
    Damaged {
        /// The field.
        field: &'static str,
        /// What is wrong with it.
        found: String,
    },
    /// A tag that this version does not have.
    #[error("the record has an unknown field, tag {tag}; it is damaged")]
    UnknownField {
        /// The tag.
        tag: u8,
    },
}

/// Appends a job that may go at `not_before` (time since the Unix epoch).
pub(crate) fn encode(job: &Job, not_before: Duration, into: &mut Vec<u8>) {
    write::job(job, not_before, into);
}

/// Reads a job and when it may go.
///
/// # Errors
/// When the bytes are not all of a record of a version up to [`VERSION`].
pub(crate) fn decode(bytes: &[u8]) -> Result<(Job, Duration), RecordError> {
    let (peek, mut reader) = open(bytes)?;
    let job = read::job(&peek, &mut reader)?;
    Ok((job, peek.not_before))
}

/// Reads what names and places a job, without parsing its URL or copying anything.
///
/// # Errors
/// As [`decode`], as far as this part of the record goes.
pub(crate) fn peek(bytes: &[u8]) -> Result<Peek<'_>, RecordError> {
    open(bytes).map(|(peek, _)| peek)
}

fn open(bytes: &[u8]) -> Result<(Peek<'_>, Reader<'_>), RecordError> {
    let mut reader = Reader::new(bytes);
    let peek = read::peek(&mut reader)?;
    Ok((peek, reader))
}

#[cfg(test)]
mod tests;
