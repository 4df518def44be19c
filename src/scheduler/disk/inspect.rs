//! A frontier on disk as no crawl uses it: what is queued and what ended, one by one, and putting back what ended.

use std::path::Path;
use std::time::Duration;

use super::base::Base;
use super::changes::Changes;
use super::error::DiskError;
use super::open::head;
use super::place::Place;
use super::rows::{self, Head, Space};
use crate::scheduler::job::{Job, Outcome, RequestId};
use crate::scheduler::record;

/// Requests put back in one commit.
const CHUNK: usize = 1_000;

/// A frontier that is looked at. It has the lock as long as it lives.
#[derive(Debug)]
pub struct Inspection {
    // The lock goes last.
    pub(super) base: Base,
    pub(super) head: Head,
    pub(super) place: Place,
}

/// Why a request that ended is kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kept {
    /// It failed for good.
    Failed,
    /// The spider does not know its step.
    SetAside,
    /// Its record cannot be read.
    Damaged,
}

/// A request of the frontier.
#[derive(Debug)]
pub struct Record {
    /// Its age: a smaller number came first. It is the key that messages about damage name.
    pub age: u64,
    /// How it ended; none while it is queued.
    pub ended: Option<Outcome>,
    /// When it may go, as time since the Unix epoch; zero for at once.
    pub not_before: Duration,
    /// The request, or why it cannot be read.
    pub job: Result<Box<Job>, String>,
}

impl Inspection {
    /// Opens the frontier at `dir`; none when there is none.
    ///
    /// # Errors
    /// When a crawl has it open, when it is not a frontier of this format, or cannot be read.
    pub fn open(dir: &Path) -> Result<Option<Self>, DiskError> {
        let Some(place) = Place::visit(dir)? else {
            return Ok(None);
        };
        let base = Base::open(place.dir(), &place.database())?;
        let head = head(place.dir(), &base)?;
        Ok(Some(Self { base, head, place }))
    }

    /// The requests in the queue, oldest first. A request that was put back counts as new.
    pub fn queued(&self) -> impl Iterator<Item = Result<Record, DiskError>> + '_ {
        self.base.scan(Space::Jobs, &[]).map(|row| {
            let (key, value) = row?;
            let body = rows::open(Space::Jobs, &key, &value);
            let (job, not_before) = read(body);
            Ok(Record { age: rows::number(&key).unwrap_or_default(), ended: None, not_before, job })
        })
    }

    /// The requests that ended and are kept for a reason, oldest first.
    pub fn kept(&self, kept: Kept) -> impl Iterator<Item = Result<Record, DiskError>> + '_ {
        self.kept_from(kept, 0)
    }

    fn kept_from(&self, kept: Kept, age: u64) -> impl Iterator<Item = Result<Record, DiskError>> + '_ {
        let kept = rows::Kept::from(kept);
        let rows = self.base.scan(Space::Ended, &rows::ended_key(kept, age));
        let rows = rows.map(|row| {
            let (key, value) = row?;
            let place = rows::kept_and_age(&key);
            let body = rows::open_ended(&key, &value);
            let job = match place {
                Some((rows::Kept::Damaged, _)) => Err("its record is damaged".to_owned()),
                _ => read(body.map(|(_, record)| record)).0,
            };
            let age = place.map(|(_, age)| age).unwrap_or_default();
            let record = Record { age, ended: body.map(|(outcome, _)| outcome), not_before: Duration::ZERO, job };
            Ok((place.map(|(kept, _)| kept), record))
        });
        rows.take_while(move |row| row.as_ref().map_or(true, |(of, _)| of.is_none_or(|of| of == kept)))
            .map(|row| row.map(|(_, record)| record))
    }

    /// Puts the failed requests back that `which` wants, as if they were new; how many.
    ///
    /// # Errors
    /// When the frontier cannot be read or written. What was put back before is.
    pub fn requeue_failed(&mut self, which: impl FnMut(&Record) -> bool) -> Result<u64, DiskError> {
        self.requeue(Kept::Failed, which)
    }

    /// Puts the requests back that were set aside and that `which` wants; how many. Damaged ones stay.
    ///
    /// # Errors
    /// As [`Inspection::requeue_failed`].
    pub fn requeue_set_aside(&mut self, which: impl FnMut(&Record) -> bool) -> Result<u64, DiskError> {
        self.requeue(Kept::SetAside, which)
    }

    fn requeue(&mut self, kept: Kept, mut which: impl FnMut(&Record) -> bool) -> Result<u64, DiskError> {
        let mut moved = 0;
        let mut from = 0;
        loop {
            let mut chunk = Vec::new();
            let mut is_last = true;
            for record in self.kept_from(kept, from) {
                let record = record?;
                if chunk.len() == CHUNK {
                    is_last = false;
                    from = record.age;
                    break;
                }
                if which(&record)
                    && let Ok(job) = record.job
                {
                    chunk.push((record.age, job));
                }
            }
            moved += u64::try_from(chunk.len()).unwrap_or(u64::MAX);
            self.put_back(kept, chunk)?;
            if is_last {
                return Ok(moved);
            }
        }
    }

    fn put_back(&mut self, kept: Kept, chunk: Vec<(u64, Box<Job>)>) -> Result<(), DiskError> {
        if chunk.is_empty() {
            return Ok(());
        }
        let mut changes = Changes::default();
        let mut head = Head { commit: self.head.commit + 1, ..self.head };
        for (age, mut job) in chunk {
            // It gets as many attempts as a new one, and a name of its own: the record log may still say that the old one ended.
            job.attempts = 0;
            job.id = RequestId::child(Some(job.id), u64::MAX);
            head.last_age += 1;
            changes.put_job(head.last_age, |into| record::encode(&job, Duration::ZERO, into));
            changes.forget(kept.into(), age);
            let ended = if kept == Kept::Failed { &mut head.books.failed } else { &mut head.books.set_aside };
            *ended = ended.saturating_sub(1);
            head.books.pending += 1;
        }
        self.base.write(&changes.batch(&head), true)?;
        self.head = head;
        Ok(())
    }
}

impl From<Kept> for rows::Kept {
    fn from(kept: Kept) -> Self {
        match kept {
            Kept::Failed => Self::Failed,
            Kept::SetAside => Self::SetAside,
            Kept::Damaged => Self::Damaged,
        }
    }
}

/// A record's request, and when it may go.
fn read(body: Option<&[u8]>) -> (Result<Box<Job>, String>, Duration) {
    match body
        .ok_or_else(|| "its record fails its checksum".to_owned())
        .and_then(|body| record::decode(body).map_err(|e| e.to_string()))
    {
        Ok((job, not_before)) => (Ok(Box::new(job)), not_before),
        Err(error) => (Err(error), Duration::ZERO),
    }
}
