//! What earlier runs left behind: which spools there are, whose they are, and what is to be done with each.
//!
//! Nothing here sends or changes anything but empty spools, which it removes.

use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use super::jobdir::{self, JobCard};
use super::sink::{kind, way_to};
use crate::apcloudy::JobId;
use crate::collector::leftovers::{self, Holds};
use crate::collector::{CARD, Tidy};

/// Leftovers that get a log line of their own.
const NAMED: usize = 5;
/// An empty spool without a card may be that of a run that begins just now.
const BEGINNING: Duration = Duration::from_secs(60);

/// A spool, seen from outside.
#[derive(Debug, Clone)]
pub(crate) struct Spool {
    /// The directory.
    pub(crate) dir: PathBuf,
    /// Its card; `None` when it has none, and why it cannot be used otherwise.
    pub(crate) card: Result<Option<JobCard>, String>,
    /// What lies in it.
    pub(crate) holds: Holds,
    /// What becomes of it once it is empty.
    pub(crate) tidy: Tidy,
    /// Whether a running process has it.
    pub(crate) in_use: bool,
}

/// A directory that was named and is no spool.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub(crate) enum SpoolError {
    /// There is nothing of a spool in it.
    #[error(
        "{dir} is no spool and no JOBDIR: it holds neither segments nor `spool/`; give the directory a crawl named when it ended"
    )]
    NoSpool { dir: PathBuf },
    /// It is no directory.
    #[error("{dir} is no directory; give the directory a crawl named when it ended")]
    NoDirectory { dir: PathBuf },
    /// The file system refuses.
    #[error("{dir}: {source}; check its permissions")]
    Io { dir: PathBuf, source: std::io::Error },
}

/// What is to be done with a spool at the start of a crawl.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Errand {
    /// Its records go where this crawl's go: they are sent in the background.
    Send(JobCard),
    /// They were meant for another sink.
    Elsewhere(JobCard),
    /// Only records are left that the sink refused.
    Refused,
    /// Only copies of damaged segments are left.
    Damaged,
    /// It cannot be sent as it is.
    Unusable(String),
    /// A process has it.
    InUse,
    /// There is nothing in it.
    Empty,
}

impl Spool {
    /// Looks at a spool: its directory, or the `JOBDIR` that has it.
    ///
    /// # Errors
    /// [`SpoolError`] when the directory is neither.
    pub(crate) fn named(dir: &Path) -> Result<Self, SpoolError> {
        if !dir.is_dir() {
            return Err(SpoolError::NoDirectory { dir: dir.to_owned() });
        }
        let inner = dir.join("spool");
        if dir.join("lock").exists() || !holds(dir)?.is_empty() {
            Self::look(dir)
        } else if inner.join("lock").exists() || !holds(&inner)?.is_empty() {
            Self::look(&inner)
        } else {
            Err(SpoolError::NoSpool { dir: dir.to_owned() })
        }
    }

    /// Looks at a directory that is a spool.
    ///
    /// # Errors
    /// When it cannot be read.
    pub(crate) fn look(dir: &Path) -> Result<Self, SpoolError> {
        // The spool of a JOBDIR has its card beside it; the next run of the job uses the directory again.
        let jobdir =
            dir.parent().filter(|parent| dir.file_name().is_some_and(|name| name == "spool") && parent.join(CARD).exists());
        Ok(Self {
            card: jobdir::read(jobdir.unwrap_or(dir)).map_err(|error| error.to_string()),
            holds: holds(dir)?,
            tidy: if jobdir.is_some() { Tidy::Keep } else { Tidy::Remove },
            in_use: leftovers::is_in_use(dir),
            dir: dir.to_owned(),
        })
    }

    /// One that may hold anything.
    fn unreadable(dir: PathBuf, error: &SpoolError) -> Self {
        let holds = Holds { segments: 1, ..Holds::default() };
        Self { dir, card: Err(error.to_string()), holds, tidy: Tidy::Keep, in_use: false }
    }

    /// What a crawl does with it that delivers to `place`.
    pub(crate) fn errand(&self, place: &str) -> Errand {
        if self.in_use {
            return Errand::InUse;
        }
        match (&self.card, self.holds) {
            (_, holds) if holds.is_empty() => Errand::Empty,
            (_, Holds { segments: 0, rejected: 1.., .. }) => Errand::Refused,
            (_, Holds { segments: 0, .. }) => Errand::Damaged,
            (Ok(Some(card)), _) if card.sink.as_deref() == Some(place) => Errand::Send(card.clone()),
            (Ok(Some(card)), _) => Errand::Elsewhere(card.clone()),
            (Ok(None), _) => Errand::Unusable(format!(
                "it has no {CARD}, as those of older versions; `dragline deliver --job ID --spool {}` sends it",
                self.dir.display()
            )),
            (Err(why), _) => Errand::Unusable(why.clone()),
        }
    }

    /// Removes it if it is empty, nobody's, and its directory its own. Whether it is gone.
    pub(crate) fn sweep(&self) -> bool {
        let may = self.holds.is_empty() && self.tidy == Tidy::Remove && (matches!(self.card, Ok(Some(_))) || self.is_old());
        let swept = may
            && leftovers::lock(&self.dir)
                .is_ok_and(|lock| lock.is_some() && leftovers::remove_if_empty(&self.dir).is_ok_and(|gone| gone));
        if swept {
            tracing::debug!(spool = %self.dir.display(), "removed an empty spool");
        }
        swept
    }

    fn is_old(&self) -> bool {
        let changed = self.dir.metadata().and_then(|of| of.modified());
        changed.is_ok_and(|at| SystemTime::now().duration_since(at).is_ok_and(|age| age > BEGINNING))
    }

    /// The line that names it at the start of a crawl, if it is to be named.
    fn line(&self, errand: &Errand) -> Option<String> {
        let dir = self.dir.display();
        Some(match errand {
            Errand::Send(card) => format!(
                "an earlier run left records that were not delivered: job {} in {dir}; they are sent while this crawl runs",
                card.job_id
            ),
            Errand::Elsewhere(card) => format!(
                "an earlier run left records that were not delivered: job {} in {dir}, meant for {}; `dragline deliver --spool {dir}` sends them to the sink of its settings",
                card.job_id,
                card.sink.as_deref().unwrap_or("a sink that was not noted")
            ),
            Errand::Refused => format!(
                "the sink refused {} parts of an earlier run; they are in {dir}/rejected, `dragline deliver --rejected --spool {dir}` sends them again",
                self.holds.rejected
            ),
            Errand::Damaged => format!(
                "{} segments of an earlier run did not read; their copies are in {dir} and nothing reads them again: remove them when they are of no use",
                self.holds.damaged
            ),
            Errand::Unusable(why) => format!("an earlier run left records that were not delivered in {dir}: {why}"),
            Errand::InUse | Errand::Empty => return None,
        })
    }
}

/// The spools below `DATA_DIR`, all but this run's own, empty ones removed. One that cannot be read is named.
pub(crate) fn below(data_dir: &Path, own: Option<&Path>) -> Vec<Spool> {
    let dirs = leftovers::spools_below(data_dir).unwrap_or_else(|error| {
        tracing::warn!(%error, data_dir = %data_dir.display(), "spools of earlier runs cannot be looked for");
        Vec::new()
    });
    let look = |dir: PathBuf| Spool::look(&dir).unwrap_or_else(|error| Spool::unreadable(dir, &error));
    dirs.into_iter().filter(|dir| Some(dir.as_path()) != own).map(look).filter(|spool| !spool.sweep()).collect()
}

/// Names what was found at the start of a crawl that delivers to `place`; answers what it has to send.
pub(crate) fn name(found: Vec<Spool>, place: &str) -> Vec<(Spool, JobCard)> {
    let mut to_send = Vec::new();
    let mut lines = Vec::new();
    for spool in found {
        let errand = spool.errand(place);
        lines.extend(spool.line(&errand));
        if let Errand::Send(card) = errand {
            to_send.push((spool, card));
        }
    }
    for line in lines.iter().take(NAMED) {
        tracing::warn!("{line}");
    }
    if let Some(more) = lines.len().checked_sub(NAMED).filter(|more| *more > 0) {
        tracing::warn!("{more} more spools of earlier runs; `dragline deliver` names and sends them all");
    }
    to_send
}

/// The line that says that what lies in a `JOBDIR` was meant for another sink than `place`, where it goes now.
///
/// # Errors
/// When it was meant for the other kind of sink: who forgot a variable must not empty a spool into the wrong one.
pub(crate) fn turned(jobdir: &Path, place: &str) -> Result<Option<String>, String> {
    let Ok(spool) = Spool::look(&jobdir.join("spool")) else { return Ok(None) };
    let Ok(Some(card)) = &spool.card else { return Ok(None) };
    let Some(meant) = card.sink.as_deref().filter(|meant| spool.holds.segments > 0 && *meant != place) else { return Ok(None) };
    let dir = spool.dir.display();
    let left = format!("an earlier run of this job left records in {dir} that were meant for {meant}");
    if kind(meant) != kind(place) {
        return Err(format!(
            "{left}, and these settings deliver to {place}; {}, or send them first: dragline deliver --spool {dir} --any-sink",
            way_to(meant)
        ));
    }
    Ok(Some(format!("{left}; they go to {place} now")))
}

/// The first index no log record has of a job that an earlier run began without a `JOBDIR`.
pub(crate) fn next_log_index(found: &[Spool], job: &JobId) -> u64 {
    let cards = found.iter().filter_map(|spool| spool.card.as_ref().ok()?.as_ref());
    cards.filter(|card| card.job_id.to_string() == job.to_string()).map(|card| card.next_log_index).max().unwrap_or(0)
}

fn holds(dir: &Path) -> Result<Holds, SpoolError> {
    Holds::of(dir).map_err(|source| SpoolError::Io { dir: dir.to_owned(), source })
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing)]
    use std::fs;

    use tempfile::TempDir;

    use super::*;

    const HERE: &str = "embedded /data/jobs.db";

    fn spool(dir: &TempDir, name: &str, files: &[&str], card: &str) -> Spool {
        let path = dir.path().join("spool").join(name);
        fs::create_dir_all(path.join("rejected")).unwrap();
        for file in files {
            fs::write(path.join(file), "").unwrap();
        }
        if !card.is_empty() {
            fs::write(path.join(CARD), card).unwrap();
        }
        Spool::look(&path).unwrap()
    }

    fn card(job: &str, sink: &str) -> String {
        format!(r#"{{"version":1,"job_id":"{job}","spider":"s","sink":"{sink}","next_log_index":1040}}"#)
    }

    #[test]
    fn each_spool_has_its_errand_and_its_line() {
        let dir = TempDir::new().unwrap();
        let segment = "seg-1.log";
        for (name, files, card, parts) in [
            ("a", &[segment][..], card("7", HERE), &["job 7 in", "spool/a", "sent while this crawl runs"][..]),
            ("b", &[segment], card("7", "apcloudy https://h/"), &["meant for apcloudy https://h/", "`dragline deliver --spool"]),
            ("c", &[segment], r#"{"version":1,"job_id":7,"spider":"s"}"#.to_owned(), &["not noted", "deliver --spool"]),
            ("d", &[segment], String::new(), &["no job.json", "deliver --job ID --spool"]),
            ("e", &[segment], "torn".to_owned(), &["cannot be read as a job's card"]),
            ("f", &[segment], r#"{"version":2}"#.to_owned(), &["version 2"]),
            ("g", &["rejected/x.json", "seg-1.log.damaged"], card("7", HERE), &["refused 1 parts", "deliver --rejected --spool"]),
            ("h", &["seg-1.log.damaged"], card("7", HERE), &["1 segments", "did not read"]),
        ] {
            let spool = spool(&dir, name, files, &card);
            let errand = spool.errand(HERE);
            assert_eq!(matches!(errand, Errand::Send(_)), name == "a", "{name}");
            let line = spool.line(&errand).unwrap();
            assert!(parts.iter().all(|part| line.contains(part)), "{name}: {line}");
        }
        let held = leftovers::lock(&dir.path().join("spool/a")).unwrap().unwrap();
        let busy = Spool::look(&dir.path().join("spool/a")).unwrap();
        assert_eq!((busy.errand(HERE), busy.line(&Errand::InUse)), (Errand::InUse, None));
        drop(held);
        let found = below(dir.path(), Some(&dir.path().join("spool/b")));
        assert_eq!(found.len(), 7);
        assert_eq!(next_log_index(&found, &JobId::from(7)), 1040);
        assert_eq!(next_log_index(&found, &JobId::from(8)), 0);
        let to_send = name(found, HERE);
        assert_eq!(to_send.len(), 1);
        assert_eq!(to_send[0].0.dir, dir.path().join("spool/a"));
    }

    #[test]
    fn an_empty_spool_is_removed_unless_it_may_just_begin() {
        let dir = TempDir::new().unwrap();
        spool(&dir, "ended", &["lock"], &card("7", HERE));
        spool(&dir, "begins", &["lock"], "");
        let held = spool(&dir, "held", &[], &card("8", HERE)).dir;
        let lock = leftovers::lock(&held).unwrap().unwrap();
        let found = below(dir.path(), None);
        let names: Vec<_> = found.iter().map(|spool| spool.dir.file_name().unwrap().to_str().unwrap()).collect();
        assert_eq!(names, ["begins", "held"]);
        assert_eq!(found[0].errand(HERE), Errand::Empty);
        drop(lock);
    }

    #[test]
    fn a_jobdir_whose_records_go_elsewhere_now_is_named() {
        let dir = TempDir::new().unwrap();
        assert_eq!(turned(dir.path(), HERE), Ok(None), "there is nothing yet");
        fs::create_dir_all(dir.path().join("spool")).unwrap();
        fs::write(dir.path().join(CARD), card("7", "apcloudy https://h/")).unwrap();
        assert_eq!(turned(dir.path(), HERE), Ok(None), "nothing is left");
        fs::write(dir.path().join("spool/seg-1.log"), "").unwrap();
        assert_eq!(turned(dir.path(), "apcloudy https://h/"), Ok(None), "the same sink");
        let refused = turned(dir.path(), HERE).unwrap_err();
        assert!(refused.contains("set APCLOUDY_URL and its keys") && refused.contains("--any-sink"), "{refused}");
        let line = turned(dir.path(), "apcloudy https://other/").unwrap().unwrap();
        assert!(line.contains("apcloudy https://h/") && line.contains("apcloudy https://other/"), "{line}");
    }

    #[test]
    fn a_directory_that_is_named_may_be_the_spool_or_the_jobdir() {
        let dir = TempDir::new().unwrap();
        let job = dir.path().join("job");
        fs::create_dir_all(job.join("spool")).unwrap();
        jobdir::claim(&job, &JobId::from(7), "s").unwrap();
        assert!(Spool::named(&job).unwrap_err().to_string().contains("no spool and no JOBDIR"));
        assert!(Spool::named(&dir.path().join("gone")).unwrap_err().to_string().contains("no directory"));
        fs::write(job.join("spool/lock"), "").unwrap();
        fs::write(job.join("spool/seg-1.log"), "").unwrap();
        for named in [&job, &job.join("spool")] {
            let spool = Spool::named(named).unwrap();
            assert_eq!((spool.dir, spool.tidy), (job.join("spool"), Tidy::Keep));
            assert_eq!(spool.card.unwrap().unwrap().job_id, JobId::from(7));
        }
        let other = spool(&dir, "own", &["seg-1.log"], &card("7", HERE));
        assert_eq!(Spool::named(&other.dir).unwrap().tidy, Tidy::Remove);
    }
}
