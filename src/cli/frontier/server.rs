//! The frontier of a job at a Redis server.

use std::time::Duration;

use super::entry::{self, Entry};
use super::source::{Fleet, Halt, Kind, Source, Stat, count, sort};
use crate::cli::exit::CliError;
use crate::scheduler::job;
use crate::scheduler::redis::{Ended, RedisAdmin, RedisError};

/// A job, opened.
#[derive(Debug)]
pub(super) struct Job {
    pub(super) admin: RedisAdmin,
    pub(super) id: String,
    /// The server, without a password.
    pub(super) place: String,
}

/// A job as a frontier.
#[derive(Debug)]
pub(super) struct Server(Job);

impl Server {
    pub(super) const fn open(job: Job) -> Self {
        Self(job)
    }

    /// Hosts with queued work, the fullest first.
    fn hosts(&mut self) -> Result<Vec<(String, u64)>, CliError> {
        let mut hosts = std::collections::BTreeMap::new();
        let mut next = Some(0);
        while let Some(at) = next {
            let (some, more) = self.0.admin.hosts(at).map_err(error)?;
            hosts.extend(some.into_iter().filter(|(_, queued)| *queued > 0).map(|(host, queued)| (host.0.to_string(), queued)));
            next = more;
        }
        let mut hosts: Vec<_> = hosts.into_iter().collect();
        sort(&mut hosts);
        Ok(hosts)
    }
}

impl Source for Server {
    fn stat(&mut self) -> Result<Stat, CliError> {
        let survey = self.0.admin.survey().map_err(error)?;
        let mut set_aside = Vec::new();
        if survey.books.set_aside > 0 {
            let counted = self.each(Kind::SetAside, &mut |entry| {
                count(&mut set_aside, &entry.job.as_ref().map_or_else(|_| "-".to_owned(), |job| entry::step(job)));
                Ok(())
            });
            if let Err(Halt::Failed(error)) = counted {
                return Err(error);
            }
        }
        sort(&mut set_aside);
        let millis = |time: Duration| u64::try_from(time.as_millis()).unwrap_or(u64::MAX);
        Ok(Stat {
            place: self.place(),
            job: Some(self.0.id.clone()),
            spider: Some(survey.spider),
            books: survey.books,
            in_flight: survey.out,
            cursors: survey.cursors,
            seen: survey.seen,
            hosts: self.hosts()?,
            failed: survey.reasons,
            set_aside,
            fleet: Some(Fleet {
                state: survey.state.name(),
                start_finished: survey.start_finished,
                returned: survey.returned,
                workers: survey.workers.into_iter().map(|row| (row.name, millis(row.silent_for), row.held)).collect(),
            }),
            ..Stat::default()
        })
    }

    fn each(&mut self, kind: Kind, visit: &mut dyn FnMut(&Entry) -> Result<(), Halt>) -> Result<(), Halt> {
        let mut next = Some(0);
        while let Some(at) = next {
            let page = match kind {
                Kind::Queued => self.0.admin.pending(at),
                Kind::Failed => self.0.admin.ended(Ended::Failed, at),
                Kind::SetAside => self.0.admin.ended(Ended::SetAside, at),
                Kind::Damaged => return Ok(()),
            };
            let page = page.map_err(error)?;
            for kept in page.kept {
                visit(&Entry { kind, reason: kept.reason, not_before: Duration::ZERO, job: kept.job })?;
            }
            next = page.next;
        }
        Ok(())
    }

    fn requeue(&mut self, kind: Kind, wanted: &mut dyn FnMut(&str, &job::Job) -> bool) -> Result<u64, CliError> {
        let which = match kind {
            Kind::Failed => Ended::Failed,
            Kind::SetAside => Ended::SetAside,
            Kind::Queued | Kind::Damaged => return Ok(0),
        };
        self.0.admin.requeue(which, wanted).map_err(error)
    }

    fn place(&self) -> String {
        self.0.place.clone()
    }
}

/// What the user can mend in the call, what a server that comes back mends, and the rest.
pub(super) fn error(error: RedisError) -> CliError {
    match error {
        RedisError::Reply { .. } | RedisError::Refused { .. } => CliError::internal(error),
        _ if error.is_transient() => CliError::GaveUp(error.to_string()),
        _ => CliError::usage(error),
    }
}
