//! `items`, `requests`, `logs`, `stats`: the records of one job, one JSON text on a line, as they were delivered.

use std::io::{self, BufWriter, Write};
use std::path::Path;

use clap::Args;

use super::exit::CliError;
use super::options::StoreOption;
use crate::apcloudy::RecordKind;
use crate::courier::{JobStore, StoreError};

/// Ids that an error names.
const NAMED: usize = 10;

/// Which job of which store.
#[derive(Debug, Args)]
pub(crate) struct RecordsArgs {
    /// The job's id; left out: the last job
    #[arg(value_name = "JOB")]
    job: Option<String>,
    #[command(flatten)]
    store: StoreOption,
}

/// Why a list ended before its end.
#[derive(Debug)]
pub(super) enum Cut {
    Store(StoreError),
    Write(io::Error),
}

impl From<StoreError> for Cut {
    fn from(error: StoreError) -> Self {
        Self::Store(error)
    }
}

impl From<io::Error> for Cut {
    fn from(error: io::Error) -> Self {
        Self::Write(error)
    }
}

/// Writes the records of one kind.
///
/// # Errors
/// When there is no such store or job, or the output cannot be written.
pub(crate) fn records(args: &RecordsArgs, kind: RecordKind, to: &mut dyn Write) -> Result<(), CliError> {
    let store = open(&args.store.path()?)?;
    let job = args.job(&store)?;
    lines(to, |to| store.each_record(&job, kind, |record| Ok(writeln!(to, "{record}")?)))
}

/// Writes the stats.
///
/// # Errors
/// When there is no such store or job, the job has no stats, or the output cannot be written.
pub(crate) fn stats(args: &RecordsArgs, to: &mut dyn Write) -> Result<(), CliError> {
    let store = open(&args.store.path()?)?;
    let job = args.job(&store)?;
    match store.stats_text(&job).map_err(store_error)? {
        Some(stats) => lines(to, |to| Ok(writeln!(to, "{stats}")?)),
        None => Err(CliError::usage(format!("job {job} has no stats: they come with its last batch, when it closes"))),
    }
}

/// Opens a store that is there.
pub(super) fn open(path: &Path) -> Result<JobStore, CliError> {
    JobStore::open_to_read(path).map_err(store_error)
}

pub(super) fn store_error(error: StoreError) -> CliError {
    match error {
        StoreError::Sqlite { .. } => CliError::internal(error),
        _ => CliError::usage(error),
    }
}

/// Writes lines; a reader that has gone away has read enough.
pub(super) fn lines(to: &mut dyn Write, write: impl FnOnce(&mut dyn Write) -> Result<(), Cut>) -> Result<(), CliError> {
    let mut to = BufWriter::new(to);
    match write(&mut to).and_then(|()| Ok(to.flush()?)) {
        Err(Cut::Write(error)) if error.kind() == io::ErrorKind::BrokenPipe => Ok(()),
        Err(Cut::Write(error)) => Err(CliError::internal(format!("standard output cannot be written: {error}"))),
        Err(Cut::Store(error)) => Err(store_error(error)),
        Ok(()) => Ok(()),
    }
}

/// Whether the job is known; the error names those that are.
pub(super) fn known(store: &JobStore, job: &str, ids: &[String]) -> Result<(), CliError> {
    if ids.iter().any(|id| id == job) {
        return Ok(());
    }
    let mut named = ids.iter().take(NAMED).map(String::as_str).collect::<Vec<_>>().join(", ");
    if ids.len() > NAMED {
        named.push_str(&format!(" and {} more (`dragline jobs` lists all)", ids.len() - NAMED));
    }
    let known = if ids.is_empty() { "it has none".to_owned() } else { format!("it has {named}") };
    Err(CliError::usage(format!("{} has no job {job:?}; {known}", store.path().display())))
}

impl RecordsArgs {
    fn job(&self, store: &JobStore) -> Result<String, CliError> {
        let ids = store.job_ids().map_err(store_error)?;
        match (&self.job, ids.first()) {
            (Some(job), _) => known(store, job, &ids).map(|()| job.clone()),
            (None, Some(last)) => Ok(last.clone()),
            (None, None) => Err(CliError::usage(format!("{} has no job yet", store.path().display()))),
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing)]
    use std::path::PathBuf;

    use clap::Parser as _;

    use super::*;
    use crate::apcloudy::JobId;
    use crate::cli::{Cli, Verb};

    fn shown(db: &Path, verb: &str, job: &str) -> Result<String, CliError> {
        let line = format!("dragline {verb} --db {} {job}", db.display());
        let mut to = Vec::new();
        match Cli::try_parse_from(line.split_whitespace()).unwrap().verb {
            Verb::Items(args) => records(&args, RecordKind::Item, &mut to)?,
            Verb::Stats(args) => stats(&args, &mut to)?,
            other => panic!("{other:?}"),
        }
        Ok(String::from_utf8(to).unwrap())
    }

    fn filled(dir: &tempfile::TempDir) -> PathBuf {
        let path = dir.path().join("jobs.db");
        let store = JobStore::open(&path).unwrap();
        for (job, at) in [("old", "2020-01-01T00:00:00.000000+00:00"), ("new", "2099-01-01T00:00:00.000000+00:00")] {
            let id = JobId::from(job);
            store.job_started(&id, "shop", at).unwrap();
            for n in 0..2 {
                let body = format!("{{\"job_id\": \"{job}\", \"data\": {{\"items\": [{{\"n\": {n}, \"of\": \"{job}\"}}]}}}}");
                store.store(&format!("{job}{n}"), &id, &body).unwrap();
            }
        }
        let body = r#"{"job_id": "old", "data": {"stats": {"finish_reason": "finished", "x": 1.0}}}"#;
        store.store("stats", &JobId::from("old"), body).unwrap();
        path
    }

    #[test]
    fn records_are_lines_of_the_last_job_or_of_the_named_one() {
        let dir = tempfile::tempdir().unwrap();
        let db = filled(&dir);
        assert_eq!(shown(&db, "items", "").unwrap(), "{\"n\": 0, \"of\": \"new\"}\n{\"n\": 1, \"of\": \"new\"}\n");
        assert_eq!(shown(&db, "items", "old").unwrap(), "{\"n\": 0, \"of\": \"old\"}\n{\"n\": 1, \"of\": \"old\"}\n");
        assert_eq!(shown(&db, "stats", "old").unwrap(), "{\"finish_reason\": \"finished\", \"x\": 1.0}\n");
    }

    #[test]
    fn what_is_not_there_is_named() {
        let dir = tempfile::tempdir().unwrap();
        let db = filled(&dir);
        let none = dir.path().join("none.db");
        let empty = dir.path().join("empty.db");
        drop(JobStore::open(&empty).unwrap());
        for (db, verb, job, parts) in [
            (&db, "items", "nobody", &["jobs.db", "\"nobody\"", "new, old"][..]),
            (&db, "stats", "new", &["new", "no stats"]),
            (&none, "items", "", &["none.db", "does not exist"]),
            (&empty, "items", "", &["empty.db", "no job yet"]),
            (&empty, "items", "x", &["empty.db", "it has none"]),
        ] {
            let error = shown(db, verb, job).unwrap_err();
            assert_eq!(error.code(), 64, "{error}");
            assert!(parts.iter().all(|part| error.to_string().contains(part)), "{error}");
        }
        assert!(!none.exists());
    }

    struct Gone(usize);

    impl Write for Gone {
        fn write(&mut self, _: &[u8]) -> io::Result<usize> {
            self.0 += 1;
            Err(io::ErrorKind::BrokenPipe.into())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn a_reader_that_leaves_ends_the_list() {
        let mut to = Gone(0);
        let mut made = 0;
        lines(&mut to, |to| {
            for _ in 0..1_000_000 {
                made += 1;
                writeln!(to, "a line")?;
            }
            Ok(())
        })
        .unwrap();
        assert!(made < 10_000 && to.0 > 0, "{made}");
    }
}
