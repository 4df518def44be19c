//! The frontier of a JOBDIR.

use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use super::entry::{self, Entry};
use super::source::{Halt, Kind, Source, Stat, count, sort};
use crate::cli::exit::CliError;
use crate::run::jobdir;
use crate::scheduler::disk::{DiskError, Inspection, Kept, Record};
use crate::scheduler::job::{Job, Outcome};

/// A directory, locked.
#[derive(Debug)]
pub(super) struct Directory {
    dir: PathBuf,
    inspection: Inspection,
    job: Option<String>,
    spider: Option<String>,
}

impl Directory {
    /// Opens the frontier at `dir`, which is a part of `jobdir`.
    pub(super) fn open(dir: PathBuf, jobdir: &Path) -> Result<Self, CliError> {
        let Some(inspection) = Inspection::open(&dir).map_err(error)? else {
            return Err(CliError::usage(format!("{} holds no frontier: no crawl has begun with this JOBDIR", dir.display())));
        };
        // Only told: a frontier can be looked at without the card.
        let card = jobdir::read(jobdir).ok().flatten();
        let (job, spider) = card.map(|card| (card.job_id.to_string(), card.spider)).unzip();
        Ok(Self { dir, inspection, job, spider })
    }
}

impl Source for Directory {
    fn stat(&mut self) -> Result<Stat, CliError> {
        let survey = self.inspection.survey().map_err(error)?;
        let mut set_aside = Vec::new();
        for record in self.inspection.kept(Kept::SetAside) {
            match record.map_err(error)?.job {
                Ok(job) => count(&mut set_aside, &entry::step(&job)),
                Err(_) => count(&mut set_aside, "-"),
            }
        }
        sort(&mut set_aside);
        let mut failed: Vec<_> = survey.failed.into_iter().map(|(outcome, count)| (reason(Some(outcome)), count)).collect();
        sort(&mut failed);
        let url = |url: Option<String>| url.map(|url| entry::shown_text(&url));
        Ok(Stat {
            place: self.place(),
            format: Some(survey.format.into()),
            bytes: Some(bytes_in(&self.dir)),
            job: self.job.clone(),
            spider: self.spider.clone(),
            books: survey.books,
            in_flight: survey.in_flight,
            cursors: survey.cursors,
            seen: survey.seen,
            hosts: survey.slots.into_iter().map(|slot| (slot.slot.0.to_string(), slot.queued)).collect(),
            oldest: url(survey.oldest),
            newest: url(survey.newest),
            failed,
            set_aside,
            damaged: survey.damaged + survey.unreadable,
            fleet: None,
        })
    }

    fn each(&mut self, kind: Kind, visit: &mut dyn FnMut(&Entry) -> Result<(), Halt>) -> Result<(), Halt> {
        match kind {
            Kind::Queued => show(kind, self.inspection.queued(), visit),
            Kind::Failed => show(kind, self.inspection.kept(Kept::Failed), visit),
            Kind::SetAside => show(kind, self.inspection.kept(Kept::SetAside), visit),
            Kind::Damaged => show(kind, self.inspection.kept(Kept::Damaged), visit),
        }
    }

    fn requeue(&mut self, kind: Kind, wanted: &mut dyn FnMut(&str, &Job) -> bool) -> Result<u64, CliError> {
        let which = |record: &Record| record.job.as_ref().is_ok_and(|job| wanted(&reason(record.ended), job));
        match kind {
            Kind::Failed => self.inspection.requeue_failed(which),
            Kind::SetAside => self.inspection.requeue_set_aside(which),
            Kind::Queued | Kind::Damaged => Ok(0),
        }
        .map_err(error)
    }

    fn place(&self) -> String {
        self.dir.display().to_string()
    }
}

fn show(
    kind: Kind,
    records: impl Iterator<Item = Result<Record, DiskError>>,
    visit: &mut dyn FnMut(&Entry) -> Result<(), Halt>,
) -> Result<(), Halt> {
    for record in records {
        let record = record.map_err(error)?;
        visit(&Entry { kind, reason: reason(record.ended), not_before: record.not_before, job: record.job })?;
    }
    Ok(())
}

/// Bytes of all files of a directory.
fn bytes_in(dir: &Path) -> u64 {
    let entries = std::fs::read_dir(dir).into_iter().flatten().flatten();
    let of = |entry: std::fs::DirEntry| match entry.metadata() {
        Ok(meta) if meta.is_dir() => bytes_in(&entry.path()),
        // Journals are made longer than what they hold: what counts is the room they take.
        Ok(meta) => meta.blocks() * 512,
        Err(_) => 0,
    };
    entries.map(of).sum()
}

fn reason(ended: Option<Outcome>) -> String {
    match ended {
        Some(Outcome::Failed(kind) | Outcome::Dropped(kind)) => kind.name().to_owned(),
        _ => String::new(),
    }
}

fn error(error: DiskError) -> CliError {
    match error {
        DiskError::Foreign { .. } | DiskError::Newer { .. } | DiskError::Locked { .. } => CliError::usage(error),
        DiskError::Full { .. } | DiskError::ReadOnly { .. } | DiskError::Slow { .. } => CliError::GaveUp(error.to_string()),
        _ => CliError::internal(error),
    }
}
