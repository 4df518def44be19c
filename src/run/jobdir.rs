//! `job.json`: which job a `JOBDIR` belongs to, so that a later run of it goes on under the same id.

use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use crate::apcloudy::JobId;

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
}

/// A job directory that cannot be used.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub(crate) enum JobDirError {
    /// It is of another spider or job.
    #[error("{path} belongs to job {found} of spider {spider}; use another JOBDIR, or remove this one if that job is done with")]
    Foreign { path: PathBuf, found: JobId, spider: String },
    /// A newer version of this program wrote it.
    #[error("{path} has version {found}, this program reads up to {VERSION}; use the newer program, or another JOBDIR")]
    Newer { path: PathBuf, found: u32 },
    /// It is no card.
    #[error("{path} cannot be read as a job's card: {reason}; use another JOBDIR, or remove the file to start the job anew")]
    Damaged { path: PathBuf, reason: String },
    /// The file system refuses.
    #[error("{path}: {source}; set JOBDIR to a directory that can be written")]
    Io { path: PathBuf, source: std::io::Error },
}

/// Reads the card of a directory; `None` when it has none yet.
///
/// # Errors
/// When the card is damaged or newer than this program.
pub(crate) fn read(dir: &Path) -> Result<Option<JobCard>, JobDirError> {
    let path = dir.join("job.json");
    let text = match std::fs::read_to_string(&path) {
        Ok(text) => text,
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
        Err(source) => return Err(JobDirError::Io { path, source }),
    };
    let card: JobCard =
        serde_json::from_str(&text).map_err(|e| JobDirError::Damaged { path: path.clone(), reason: e.to_string() })?;
    if card.version > VERSION {
        return Err(JobDirError::Newer { path, found: card.version });
    }
    Ok(Some(card))
}

/// Claims a directory for a job: writes its card, or finds the same one there.
///
/// # Errors
/// When the directory is another job's or cannot be written.
pub(crate) fn claim(dir: &Path, job_id: &JobId, spider: &str) -> Result<(), JobDirError> {
    let path = dir.join("job.json");
    if let Some(card) = read(dir)? {
        // The spool tells ids apart by their text, and so does this.
        if card.spider != spider || card.job_id.to_string() != job_id.to_string() {
            return Err(JobDirError::Foreign { path, found: card.job_id, spider: card.spider });
        }
        return Ok(());
    }
    let io = |source| JobDirError::Io { path: path.clone(), source };
    std::fs::create_dir_all(dir).map_err(io)?;
    let card = JobCard { version: VERSION, job_id: job_id.clone(), spider: spider.to_owned() };
    let text = serde_json::to_string(&card).map_err(|e| JobDirError::Damaged { path: path.clone(), reason: e.to_string() })?;
    // Whole or not at all: a torn card would lock its owner out.
    let part = dir.join("job.json.part");
    std::fs::write(&part, text).map_err(io)?;
    std::fs::rename(&part, &path).map_err(io)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn a_directory_is_claimed_once_and_found_again() {
        let dir = tempfile::tempdir().unwrap();
        let dir = dir.path().join("job");
        assert!(read(&dir).unwrap().is_none());
        claim(&dir, &JobId::Number(7), "shop").unwrap();
        claim(&dir, &JobId::Number(7), "shop").unwrap();
        let card = read(&dir).unwrap().unwrap();
        assert_eq!((card.job_id, card.spider.as_str()), (JobId::Number(7), "shop"));
        assert_eq!(std::fs::read_to_string(dir.join("job.json")).unwrap(), r#"{"version":1,"job_id":7,"spider":"shop"}"#);
    }

    #[test]
    fn a_directory_of_another_job_is_refused_with_the_way_out() {
        let dir = tempfile::tempdir().unwrap();
        claim(dir.path(), &JobId::from("a"), "shop").unwrap();
        for error in [claim(dir.path(), &JobId::from("b"), "shop"), claim(dir.path(), &JobId::from("a"), "news")] {
            let text = error.unwrap_err().to_string();
            assert!(text.contains("job a of spider shop") && text.contains("another JOBDIR"), "{text}");
        }
        std::fs::write(dir.path().join("job.json"), r#"{"version":9,"job_id":"a","spider":"shop"}"#).unwrap();
        assert!(read(dir.path()).unwrap_err().to_string().contains("version 9"));
        std::fs::write(dir.path().join("job.json"), "torn").unwrap();
        assert!(read(dir.path()).unwrap_err().to_string().contains("remove the file"));
    }
}
