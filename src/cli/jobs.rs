//! `jobs`: the jobs of a store, one JSON object on a line; `jobs prune` deletes some.

use std::io::Write;
use std::path::Path;

use clap::{Args, Subcommand};

use super::exit::CliError;
use super::options::StoreOption;
use super::records::{known, lines, open, store_error};
use super::{logging, text};
use crate::courier::{JobStore, Pruned, StoreError};

/// Lists the jobs of a job store, the newest first, as JSON lines.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  dragline jobs                       id, spider, times, reason, and what is stored of each
  dragline jobs --db /var/lib/dragline/jobs.db | head -1
  dragline jobs prune --keep 20       deletes all finished jobs but the newest 20
  dragline jobs prune --job 7 --job 8")]
pub(crate) struct JobsArgs {
    #[command(subcommand)]
    action: Option<JobsAction>,
    #[command(flatten)]
    store: StoreOption,
}

/// What to do with jobs.
#[derive(Debug, Subcommand)]
pub(crate) enum JobsAction {
    Prune(PruneArgs),
}

/// Deletes jobs with all their records, and gives the room back to the disk.
///
/// Each deleted job is a JSON line on standard output. A job that has not ended stays unless --job names it.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  dragline jobs prune --keep 20       deletes all finished jobs but the newest 20
  dragline jobs prune --job 7 --job 8")]
pub(crate) struct PruneArgs {
    /// Keeps the newest N finished jobs
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..), required_unless_present = "job", conflicts_with = "job")]
    keep: Option<u64>,
    /// Deletes this job, ended or not; may be repeated
    #[arg(long, value_name = "JOB")]
    job: Vec<String>,
}

/// Runs the verb.
///
/// # Errors
/// When there is no such store or job, or the output cannot be written.
pub(crate) fn jobs(args: &JobsArgs, to: &mut dyn Write) -> Result<(), CliError> {
    let db = args.store.path()?;
    match &args.action {
        Some(JobsAction::Prune(what)) => prune(&db, what, to),
        None => {
            let store = open(&db)?;
            lines(to, |to| {
                store.each_job(|job| {
                    serde_json::to_writer(&mut *to, job).map_err(std::io::Error::from)?;
                    Ok(writeln!(to)?)
                })
            })
        }
    }
}

fn prune(db: &Path, args: &PruneArgs, to: &mut dyn Write) -> Result<(), CliError> {
    // Asked first: nothing is made or changed for a call that is refused.
    let ids = open(db)?.job_ids().map_err(store_error)?;
    let store = JobStore::open(db).map_err(store_error)?;
    for job in &args.job {
        known(&store, job, &ids)?;
    }
    let before = store.file_bytes();
    let pruned = match args.keep {
        Some(keep) => store.prune(keep),
        None => store.prune_jobs(&args.job),
    };
    let pruned = pruned.map_err(store_error)?;
    let reclaimed = if pruned.is_empty() { Ok(()) } else { store.reclaim() };
    logging::current().show(&said(&pruned, &store, before.saturating_sub(store.file_bytes()), reclaimed.err().as_ref()));
    lines(to, |to| {
        for job in &pruned {
            serde_json::to_writer(&mut *to, job).map_err(std::io::Error::from)?;
            writeln!(to)?;
        }
        Ok(())
    })
}

fn said(pruned: &[Pruned], store: &JobStore, freed: u64, trouble: Option<&StoreError>) -> String {
    let path = store.path().display();
    if pruned.is_empty() {
        return format!("{path}: nothing to delete; a job that has not ended is deleted with --job");
    }
    let batches = text::grouped(pruned.iter().map(|job| job.batches).sum());
    let bytes = text::grouped(pruned.iter().map(|job| job.bytes).sum());
    let room = match trouble {
        None => format!("the file is {} bytes smaller", text::grouped(freed)),
        Some(error) => format!("their room is used again, but not given back to the disk: {error}"),
    };
    format!("{path}: deleted {} jobs with {batches} batches of {bytes} bytes; {room}", pruned.len())
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing)]
    use clap::Parser as _;

    use super::*;
    use crate::apcloudy::JobId;
    use crate::cli::{Cli, Verb};

    fn run(db: &Path, line: &str) -> Result<String, CliError> {
        let line = format!("dragline jobs {line} --db {}", db.display());
        let Verb::Jobs(args) = Cli::try_parse_from(line.split_whitespace()).map_err(CliError::usage)?.verb else { panic!() };
        let mut to = Vec::new();
        jobs(&args, &mut to)?;
        Ok(String::from_utf8(to).unwrap())
    }

    fn ids(db: &Path) -> Vec<String> {
        let id = |line: &str| serde_json::from_str::<serde_json::Value>(line).unwrap()["id"].as_str().unwrap().to_owned();
        run(db, "").unwrap().lines().map(id).collect()
    }

    #[test]
    fn jobs_are_listed_and_pruned() {
        let dir = tempfile::tempdir().unwrap();
        let db = dir.path().join("jobs.db");
        assert_eq!(run(&db, "").unwrap_err().code(), 64);
        assert_eq!(run(&db, "prune --keep 1").unwrap_err().code(), 64);
        assert!(!db.exists());
        let store = JobStore::open(&db).unwrap();
        for n in 1..=4 {
            let job = JobId::from(n);
            store.job_started(&job, "shop", &format!("2026-11-0{n}T00:00:00.000000+00:00")).unwrap();
            if n != 1 {
                store.job_finished(&job, "2026-11-30T00:00:00.000000+00:00", "finished").unwrap();
            }
        }
        store.store("a", &2.into(), "{\"job_id\": 2, \"data\": {\"items\": [{}]}}").unwrap();
        assert_eq!(ids(&db), ["2", "4", "3", "1"], "as `items` without a job takes them");
        for bad in ["prune", "prune --keep 0", "prune --keep 1 --job 2", "prune --job 9"] {
            assert_eq!(run(&db, bad).unwrap_err().code(), 64, "{bad}");
        }
        assert!(run(&db, "prune --job 9").unwrap_err().to_string().contains("it has"));
        assert_eq!(run(&db, "prune --keep 2").unwrap(), "{\"id\":\"3\",\"batches\":0,\"bytes\":0}\n");
        assert_eq!(ids(&db), ["2", "4", "1"]);
        let line = "{\"id\":\"1\",\"batches\":0,\"bytes\":0}\n{\"id\":\"2\",\"batches\":1,\"bytes\":38}\n";
        assert_eq!(run(&db, "prune --job 1 --job 2").unwrap(), line);
        assert_eq!(run(&db, "prune --keep 5").unwrap(), "");
        assert_eq!(ids(&db), ["4"]);
    }
}
