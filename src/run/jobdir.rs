//! `job.json`: which job a spool or a `JOBDIR` belongs to, so that a later run goes on under the same id and whoever
//! finds the spool can send what it holds. It carries no secret.

use std::fs::{self, File};
use std::io::{ErrorKind, Write as _};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use crate::apcloudy::JobId;
use crate::collector::log::LogError;
use crate::collector::{CARD, IndexStore};

/// The format's version.
const VERSION: u32 = 1;

/// A job's card.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct JobCard {
    version: u32,
    /// The job's id, a number or a text as it was given.
    pub job_id: JobId,
    /// The spider.
    pub spider: String,
    /// Where the job's records go, as [`Webhook::place`](crate::courier::Webhook) says it; unknown on cards of old.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sink: Option<String>,
    /// The first index that no log record of the job has.
    #[serde(default)]
    pub next_log_index: u64,
    /// A run came to the end of the job and delivered everything. Requests that were queued again since then count more.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub finished: bool,
}

/// A card, or a job directory, that cannot be used.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub(crate) enum JobDirError {
    /// It is of another spider or job.
    #[error("{path} belongs to job {found} of spider {spider}; use another JOBDIR, or remove this one if that job is done with")]
    Foreign { path: PathBuf, found: JobId, spider: String },
    /// A newer version of this program wrote it.
    #[error("{path} has version {found}, this program reads up to {VERSION}; use the newer program, or another JOBDIR")]
    Newer { path: PathBuf, found: u64 },
    /// It is no card.
    #[error("{path} cannot be read as a job's card: {reason}; use another JOBDIR, or remove the file to start the job anew")]
    Damaged { path: PathBuf, reason: String },
    /// The file system refuses.
    #[error("{path}: {source}; set JOBDIR to a directory that can be written")]
    Io { path: PathBuf, source: std::io::Error },
}

impl JobCard {
    /// The card of a job that begins.
    pub(crate) fn new(job_id: JobId, spider: &str) -> Self {
        Self { version: VERSION, job_id, spider: spider.to_owned(), sink: None, next_log_index: 0, finished: false }
    }

    /// The same with where the records go, and the first index its log records may have.
    pub(crate) fn for_run(self, sink: &str, next_log_index: u64) -> Self {
        Self { sink: Some(sink.to_owned()), next_log_index, ..self }
    }
}

/// Reads the card of a directory; `None` when it has none yet.
///
/// # Errors
/// When the card is damaged or newer than this program.
pub(crate) fn read(dir: &Path) -> Result<Option<JobCard>, JobDirError> {
    #[derive(Deserialize)]
    struct Versioned {
        version: u64,
    }
    let path = dir.join(CARD);
    let text = match fs::read_to_string(&path) {
        Ok(text) => text,
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
        Err(source) => return Err(JobDirError::Io { path, source }),
    };
    let damaged = |error: serde_json::Error| JobDirError::Damaged { path: path.clone(), reason: error.to_string() };
    // The version first: a newer card may look quite different.
    let Versioned { version } = serde_json::from_str(&text).map_err(damaged)?;
    if version > u64::from(VERSION) {
        return Err(JobDirError::Newer { path, found: version });
    }
    serde_json::from_str(&text).map(Some).map_err(damaged)
}

/// Claims a directory for a job: writes its card, or finds the same one there. Answers the job's id as its first run had
/// it: a batch that still waits goes out under the id of its first try, and so must have the same text, whether the id is
/// given as a number or as text this time.
///
/// # Errors
/// When the directory is another job's or cannot be written.
pub(crate) fn claim(dir: &Path, job_id: &JobId, spider: &str) -> Result<JobId, JobDirError> {
    if let Some(card) = read(dir)? {
        // The spool tells ids apart by their text, and so does this.
        if card.spider != spider || card.job_id.to_string() != job_id.to_string() {
            return Err(JobDirError::Foreign { path: dir.join(CARD), found: card.job_id, spider: card.spider });
        }
        return Ok(card.job_id);
    }
    make_private(dir).map_err(|source| JobDirError::Io { path: dir.join(CARD), source })?;
    write(dir, &JobCard::new(job_id.clone(), spider))?;
    Ok(job_id.clone())
}

/// Notes on the card that the job is finished.
///
/// # Errors
/// When the card cannot be written.
pub(crate) fn note_finished(dir: &Path) -> Result<(), JobDirError> {
    let Some(card) = read(dir)? else { return Ok(()) };
    write(dir, &JobCard { finished: true, ..card })
}

/// Makes a directory that only its owner can look into, since it will hold cookies. One that is there stays as it is.
fn make_private(dir: &Path) -> std::io::Result<()> {
    if let Some(parent) = dir.parent() {
        fs::create_dir_all(parent)?;
    }
    let mut builder = fs::DirBuilder::new();
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    match builder.create(dir) {
        Err(error) if error.kind() == ErrorKind::AlreadyExists && dir.is_dir() => Ok(()),
        made => made,
    }
}

/// The frontier's directory in a `JOBDIR`.
///
/// # Errors
/// When it cannot be made.
pub(crate) fn frontier(dir: &Path) -> Result<PathBuf, JobDirError> {
    let path = dir.join("frontier");
    match make_private(&path) {
        Ok(()) => Ok(path),
        Err(source) => Err(JobDirError::Io { path, source }),
    }
}

/// Writes the card: whole or not at all, since a torn one would lock its owner out.
fn write(dir: &Path, card: &JobCard) -> Result<(), JobDirError> {
    let path = dir.join(CARD);
    let text = serde_json::to_string(card).map_err(|e| JobDirError::Damaged { path: path.clone(), reason: e.to_string() })?;
    let part = dir.join(format!("{CARD}.part"));
    let written = File::create(&part).and_then(|mut file| {
        file.write_all(text.as_bytes())?;
        // Without it a power cut could leave an empty file under the new name.
        file.sync_all()
    });
    written.and_then(|()| fs::rename(&part, &path)).map_err(|source| JobDirError::Io { path, source })
}

/// The card of a run under way, as the place where its log records' indexes are kept.
#[derive(Debug)]
pub(crate) struct OpenCard {
    dir: PathBuf,
    card: JobCard,
}

impl OpenCard {
    /// A card to be written into `dir` when the spool is opened. The index goes on from the card that lies there; the
    /// rest is this run's.
    pub(crate) fn new(dir: &Path, card: JobCard) -> Self {
        Self { dir: dir.to_owned(), card }
    }

    fn write(&self) -> Result<(), LogError> {
        write(&self.dir, &self.card).map_err(|error| self.refused("write", error))
    }

    fn refused(&self, what: &'static str, error: JobDirError) -> LogError {
        let source = match error {
            JobDirError::Io { source, .. } => source,
            other => std::io::Error::other(other.to_string()),
        };
        LogError::Io { what, path: self.dir.join(CARD), source }
    }
}

impl IndexStore for OpenCard {
    fn first(&mut self) -> Result<u64, LogError> {
        if let Some(before) = read(&self.dir).map_err(|error| self.refused("read", error))? {
            self.card.next_log_index = self.card.next_log_index.max(before.next_log_index);
        }
        self.write()?;
        Ok(self.card.next_log_index)
    }

    fn note(&mut self, next: u64) -> Result<(), LogError> {
        self.card.next_log_index = next;
        self.write()
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[cfg(unix)]
    #[test]
    fn only_the_owner_looks_into_what_is_made_and_what_was_there_keeps_its_rights() {
        use std::os::unix::fs::PermissionsExt as _;
        let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
        let above = tempfile::tempdir().unwrap();
        let made = above.path().join("new/job");
        claim(&made, &JobId::Number(7), "shop").unwrap();
        assert_eq!((mode(&made), mode(&frontier(&made).unwrap())), (0o700, 0o700));
        let theirs = above.path().join("theirs");
        fs::create_dir(&theirs).unwrap();
        fs::set_permissions(&theirs, fs::Permissions::from_mode(0o750)).unwrap();
        claim(&theirs, &JobId::Number(7), "shop").unwrap();
        assert_eq!((mode(&theirs), mode(&frontier(&theirs).unwrap())), (0o750, 0o700), "cookies lie in the frontier");
    }

    #[test]
    fn a_directory_is_claimed_once_and_found_again() {
        let dir = tempfile::tempdir().unwrap();
        let dir = dir.path().join("job");
        assert!(read(&dir).unwrap().is_none());
        claim(&dir, &JobId::Number(7), "shop").unwrap();
        assert_eq!(claim(&dir, &JobId::Number(7), "shop").unwrap(), JobId::Number(7));
        assert_eq!(claim(&dir, &JobId::from("7"), "shop").unwrap(), JobId::Number(7), "as its first run had it");
        let card = read(&dir).unwrap().unwrap();
        assert_eq!((card.job_id, card.spider.as_str()), (JobId::Number(7), "shop"));
        let text = fs::read_to_string(dir.join(CARD)).unwrap();
        assert_eq!(text, r#"{"version":1,"job_id":7,"spider":"shop","next_log_index":0}"#);
    }

    #[test]
    fn a_card_of_an_older_program_is_read() {
        let dir = tempfile::tempdir().unwrap();
        fs::write(dir.path().join(CARD), r#"{"version":1,"job_id":"7","spider":"shop"}"#).unwrap();
        let card = read(dir.path()).unwrap().unwrap();
        assert_eq!((card.job_id, card.sink, card.next_log_index), (JobId::from("7"), None, 0));
    }

    #[test]
    fn a_directory_of_another_job_is_refused_with_the_way_out() {
        let dir = tempfile::tempdir().unwrap();
        claim(dir.path(), &JobId::from("a"), "shop").unwrap();
        for error in [claim(dir.path(), &JobId::from("b"), "shop"), claim(dir.path(), &JobId::from("a"), "news")] {
            let text = error.unwrap_err().to_string();
            assert!(text.contains("job a of spider shop") && text.contains("another JOBDIR"), "{text}");
        }
        for newer in [r#"{"version":9,"job_id":"a","spider":"shop"}"#, r#"{"version":9,"id":{"a":1}}"#] {
            fs::write(dir.path().join(CARD), newer).unwrap();
            assert!(read(dir.path()).unwrap_err().to_string().contains("version 9"));
        }
        fs::write(dir.path().join(CARD), "torn").unwrap();
        assert!(read(dir.path()).unwrap_err().to_string().contains("remove the file"));
    }

    #[test]
    fn an_open_card_keeps_the_index_over_runs_and_tells_the_sink_of_the_last() {
        let dir = tempfile::tempdir().unwrap();
        let card = |sink: &str| JobCard::new(JobId::from("7"), "shop").for_run(sink, 0);
        claim(dir.path(), &JobId::Number(7), "shop").unwrap();
        let mut open = OpenCard::new(dir.path(), card("embedded /a/jobs.db"));
        assert_eq!(open.first().unwrap(), 0);
        open.note(1040).unwrap();
        let mut again = OpenCard::new(dir.path(), card("apcloudy https://host/path"));
        assert_eq!(again.first().unwrap(), 1040);
        let text = fs::read_to_string(dir.path().join(CARD)).unwrap();
        assert_eq!(
            text,
            r#"{"version":1,"job_id":"7","spider":"shop","sink":"apcloudy https://host/path","next_log_index":1040}"#
        );
    }

    #[test]
    fn a_card_that_cannot_be_written_is_an_error_of_the_disk() {
        let dir = tempfile::tempdir().unwrap();
        let mut open = OpenCard::new(&dir.path().join("gone"), JobCard::new(JobId::from("7"), "shop"));
        let error = open.first().unwrap_err();
        assert!(matches!(error, LogError::Io { what: "write", .. }), "{error}");
        assert!(error.to_string().contains("gone/job.json"), "{error}");
    }
}
