//! A worker of a fleet: how it joins the job at the server of the shared frontier, and how it settles what workers
//! that died on this disk had kept.
//!
//! A worker's name is that of its spool. Whoever finds the spool of a dead one takes its place for a moment: what the spool
//! says has ended is settled, what else it held goes back at once. Else the requests would wait for their visibility, and those
//! that had ended would be fetched again.

use std::io::{ErrorKind, Write as _};
use std::path::Path;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use super::leftovers::Spool;
use super::{Keeping, StartError};
use crate::apcloudy::JobId;
use crate::collector::CollectorConfig;
use crate::collector::log::{LogOptions, RecordLog};
use crate::collector::message::End;
use crate::engine::pacing::pacing;
use crate::scheduler::fleet::{FleetConfig, SharedFrontier};
use crate::scheduler::job::{RequestId, outcome};
use crate::scheduler::redis::{Batch, Membership, RedisError, RedisOptions, RedisStore, RedisUrl, RedisUrlError};
use crate::scheduler::store::{Store as _, StoreError};
use crate::settings::{FrontierStore, Settings};

/// The file of a `JOBDIR` with its worker's name.
const WORKER: &str = "worker";
/// How long connecting may take, and an answer.
const CONNECT: Duration = Duration::from_secs(3);
const REPLY: Duration = Duration::from_secs(10);

/// Where a job's shared frontier is.
pub(crate) struct Fleet<'a> {
    url: RedisUrl,
    job: String,
    spider: &'a str,
    settings: &'a Settings,
}

impl<'a> Fleet<'a> {
    /// That of the settings; `None` when the queue is this process's own.
    ///
    /// # Errors
    /// When its URL cannot be used.
    pub(crate) fn of(settings: &'a Settings, job: &JobId, spider: &'a str) -> Result<Option<Self>, StartError> {
        let FrontierStore::Redis(url) = &settings.frontier else { return Ok(None) };
        let url = url.expose().parse().map_err(|e: RedisUrlError| StartError::Usage(format!("FRONTIER: {e}")))?;
        Ok(Some(Self { url, job: job.to_string(), spider, settings }))
    }

    /// Joins the job as a worker. `ends` are of requests that ended in earlier runs of it, `name` is [`worker_name`].
    ///
    /// # Errors
    /// When the server cannot be used.
    pub(crate) fn join(&self, name: String, instance: u64, ends: &[End]) -> Result<Keeping, StartError> {
        let store = self.take_place(name, ends).map_err(refused)?;
        let (workers, books) = (store.view().workers, store.view().books);
        tracing::info!(
            frontier = %self.url,
            workers,
            pending = books.pending,
            enqueued = books.enqueued,
            "the frontier is shared: this worker has joined the job"
        );
        let wait = Some(self.settings.frontier_wait).filter(|wait| !wait.is_zero());
        let fleet = FleetConfig { wait, instance };
        let server = Box::new(store);
        Ok(Keeping::Shared(Box::new(move |config, stats, now| {
            Arc::new(Mutex::new(SharedFrontier::new(config, fleet, server, stats, now)))
        })))
    }

    /// Settles what workers of the job that died on this disk had kept, and gives back what they held. What cannot be settled
    /// now is named, and stays for a later run.
    pub(crate) fn bury(&self, spools: &[Spool], log_id: u64) {
        for spool in spools.iter().filter(|spool| !spool.in_use) {
            let Ok(Some(card)) = &spool.card else { continue };
            let Some(name) = instance_of(&spool.dir).filter(|_| card.job_id.to_string() == self.job) else { continue };
            match self.bury_one(&spool.dir, &card.job_id, name, log_id) {
                Ok(ends) => tracing::info!(
                    spool = %spool.dir.display(),
                    ends,
                    "a worker that ended without leaving: what it had kept is settled, what it held goes back"
                ),
                Err(why) => tracing::warn!(spool = %spool.dir.display(), why, "a worker that is gone cannot be settled"),
            }
        }
    }

    fn bury_one(&self, dir: &Path, job: &JobId, name: &str, log_id: u64) -> Result<usize, String> {
        let segment_bytes = CollectorConfig::from_settings(self.settings).segment_bytes;
        let options = LogOptions { segment_bytes, log_id };
        let (mut log, found) = RecordLog::open(dir, job, options).map_err(|error| error.to_string())?;
        let ends: Vec<End> = found
            .ends
            .iter()
            .map(|(_, end)| End { request: RequestId(end.request), attempt: end.attempt, outcome: outcome::outcome(end.outcome) })
            .collect();
        let mut store = self.take_place(name.to_owned(), &ends).map_err(|error| error.to_string())?;
        let mut leave = Batch::new();
        leave.leave();
        store.apply(&mut leave).map_err(|error| error.to_string())?;
        found.ends.iter().for_each(|(seq, _)| log.mark_settled(*seq));
        log.close().map_err(|error| error.to_string())?;
        Ok(ends.len())
    }

    /// Joins under a name, settles what is known to have ended, and lets the rest that was held under it go back.
    fn take_place(&self, worker: String, ends: &[End]) -> Result<RedisStore, Refused> {
        let member = Membership { job: self.job.clone(), spider: self.spider.to_owned(), worker };
        let mut store = RedisStore::open(&self.url, member, self.options())?;
        for end in ends {
            store.settle(end.request, end.outcome)?;
        }
        store.recover()?;
        store.commit()?;
        Ok(store)
    }

    fn options(&self) -> RedisOptions {
        let settings = self.settings;
        RedisOptions {
            connect_timeout: CONNECT,
            reply_timeout: REPLY,
            visibility: settings.frontier_visibility,
            pacing: pacing(settings),
        }
    }
}

/// The name of the worker that has this spool: kept in a `JOBDIR`, whose next run is the same worker, else by chance.
///
/// # Errors
/// When it cannot be kept.
pub(crate) fn worker_name(settings: &Settings, instance: u64) -> Result<String, StartError> {
    let fresh = format!("{instance:016x}");
    let Some(dir) = &settings.jobdir else { return Ok(fresh) };
    let path = dir.join(WORKER);
    let io = |error: std::io::Error| {
        StartError::Usage(format!("{}: {error}; set JOBDIR to a directory that can be written", path.display()))
    };
    match std::fs::read_to_string(&path) {
        Ok(name) if !name.trim().is_empty() => return Ok(name.trim().to_owned()),
        Err(error) if error.kind() != ErrorKind::NotFound => return Err(io(error)),
        _ => {}
    }
    let mut file = std::fs::File::create(&path).map_err(io)?;
    file.write_all(fresh.as_bytes()).and_then(|()| file.sync_all()).map_err(io)?;
    Ok(fresh)
}

/// The instance a spool's directory is named after.
fn instance_of(spool: &Path) -> Option<&str> {
    let (_, instance) = spool.file_name()?.to_str()?.rsplit_once('-')?;
    (instance.len() == 16 && instance.bytes().all(|byte| byte.is_ascii_hexdigit())).then_some(instance)
}

/// A server that does not take the worker.
#[derive(Debug, thiserror::Error)]
enum Refused {
    #[error(transparent)]
    Server(#[from] RedisError),
    #[error(transparent)]
    Store(#[from] StoreError),
}

fn refused(error: Refused) -> StartError {
    let text = format!("FRONTIER: {error}");
    match error {
        // The caller can mend these: another address, job id or user.
        Refused::Server(
            RedisError::Auth { .. }
            | RedisError::NotAllowed { .. }
            | RedisError::Database { .. }
            | RedisError::Evicts { .. }
            | RedisError::TooOld { .. }
            | RedisError::Foreign { .. }
            | RedisError::Newer { .. }
            | RedisError::OtherSpider { .. }
            | RedisError::Name { .. },
        ) => StartError::Usage(text),
        _ => StartError::Disk(text),
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used)]
    use super::*;

    #[test]
    fn a_worker_is_named_after_its_spool_and_that_of_a_jobdir_keeps_its_name() {
        let settings = Settings::default();
        let name = worker_name(&settings, 0xab).unwrap();
        let (spool, _) = crate::collector::spool_dir(&settings, "a-b", 0xab);
        assert_eq!(instance_of(&spool), Some(name.as_str()));
        assert_eq!(instance_of(Path::new("x/spool")), None);
        let dir = tempfile::tempdir().unwrap();
        let settings = Settings { jobdir: Some(dir.path().to_owned()), ..settings };
        assert_eq!(worker_name(&settings, 1).unwrap(), worker_name(&settings, 2).unwrap());
    }

    #[test]
    fn a_server_that_is_not_there_is_no_misuse_and_no_message_has_the_password() {
        let url = |text: &str| Settings { frontier: FrontierStore::Redis(text.into()), ..Settings::default() };
        let settings = url("redis://:canary@127.0.0.1:1/0");
        let fleet = Fleet::of(&settings, &JobId::from(1), "x").unwrap().unwrap();
        match fleet.join("w".to_owned(), 1, &[]).map(drop) {
            Err(StartError::Disk(text)) => assert!(text.contains("127.0.0.1:1") && !text.contains("canary"), "{text}"),
            other => panic!("{other:?}"),
        }
        assert!(matches!(Fleet::of(&url("redis://h/x"), &JobId::from(1), "x").map(drop), Err(StartError::Usage(_))));
    }
}
