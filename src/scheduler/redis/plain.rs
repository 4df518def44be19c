//! The plain store over a server: each method is a batch of its own.
//!
//! A fleet does better with [`Batch`]; this is what every store must do, and what the shared suite runs. When a
//! call fails without an answer, what it asked for stays in line: it is given again before anything else, and
//! whoever asks for the very same then gets the answer of that one time.

use std::time::Duration;

use redis::Value;

use super::answer::{self, Answer, Applied};
use super::batch::Batch;
use super::connection::{Args, Link};
use super::error::RedisError;
use super::script;
use super::store::RedisStore;
use crate::scheduler::job::{Books, Job, Outcome, RequestId, SlotKey};
use crate::scheduler::store::{Cursors, Medium, Offered, Pulled, Store, StoreError};

/// What is not known to have happened, and what happened after its caller had given up.
#[derive(Debug, Default)]
pub(super) struct Unsure {
    batch: Option<Batch>,
    late: Option<(Batch, Applied)>,
}

impl RedisStore {
    fn step(&mut self, write: impl FnOnce(&mut Batch)) -> Result<Answer, StoreError> {
        let mut batch = Batch::new();
        write(&mut batch);
        if self.unsure.batch.as_ref().is_some_and(|unsure| unsure.wire() == batch.wire()) {
            // The same once more: under its old number it happens once.
            batch = self.unsure.batch.take().unwrap_or(batch);
        } else {
            self.settle_unsure()?;
            if let Some((_, applied)) = self.unsure.late.take_if(|(late, _)| late.wire() == batch.wire()) {
                return only(applied);
            }
        }
        match self.apply(&mut batch) {
            Ok(applied) => only(applied),
            Err(error) => {
                self.unsure.batch = error.is_transient().then_some(batch);
                Err(error.into())
            }
        }
    }

    /// Gives what is in line again.
    fn settle_unsure(&mut self) -> Result<(), StoreError> {
        let Some(mut batch) = self.unsure.batch.take() else {
            return Ok(());
        };
        match self.apply(&mut batch) {
            Ok(applied) => {
                if let [Answer::Pulled(Pulled::Job(job))] = applied.answers.as_slice() {
                    // Nobody heard of it.
                    let id = job.id;
                    self.step(|batch| batch.give_back(id, Duration::ZERO))?;
                } else {
                    self.unsure.late = Some((batch, applied));
                }
                Ok(())
            }
            Err(error) => {
                self.unsure.batch = error.is_transient().then_some(batch);
                Err(error.into())
            }
        }
    }

    fn done(&mut self, write: impl FnOnce(&mut Batch)) -> Result<bool, StoreError> {
        Ok(matches!(self.step(write)?, Answer::Done(true)))
    }

    fn read_slots(&self) -> Result<Vec<(SlotKey, Duration)>, RedisError> {
        let mut link = self.link.borrow_mut();
        let reply = link.script(&script::SLOTS, &self.meta, &Args::List(&[]))?;
        pairs(reply).ok_or_else(|| unreadable(&link, "the hosts with work"))
    }

    fn read_gates(&mut self, now: Duration) -> Result<Vec<(SlotKey, Duration)>, RedisError> {
        let key = self.key("gates");
        let link = self.link.get_mut();
        let now = u64::try_from(now.as_micros()).unwrap_or(u64::MAX);
        link.command(redis::cmd("ZREMRANGEBYSCORE").arg(&key).arg("-inf").arg(now))?;
        let reply = link.command(redis::cmd("ZRANGE").arg(&key).arg(0).arg(-1).arg("WITHSCORES"))?;
        pairs(reply).ok_or_else(|| unreadable(link, "the gates"))
    }
}

impl Store for RedisStore {
    fn offer(&mut self, jobs: &mut Vec<Job>) -> Result<Offered, StoreError> {
        match self.step(|batch| batch.offer_plain(jobs))? {
            Answer::Offered(offered) => {
                jobs.clear();
                Ok(offered)
            }
            _ => Err(RedisError::Full { address: self.link.get_mut().address() }.into()),
        }
    }

    fn admit(&mut self, job: &Job) -> Result<(), StoreError> {
        self.done(|batch| batch.admit(job)).map(|_| ())
    }

    fn pull(&mut self, slot: &SlotKey, now: Duration) -> Result<Pulled, StoreError> {
        match self.step(|batch| batch.pull(slot, now))? {
            Answer::Pulled(pulled) => Ok(pulled),
            _ => Ok(Pulled::Empty),
        }
    }

    fn put_back(&mut self, job: Job, not_before: Duration) -> Result<(), StoreError> {
        self.done(|batch| batch.put_back_at(&job, not_before, false)).map(|_| ())
    }

    fn replace(&mut self, job: &Job) -> Result<(), StoreError> {
        self.done(|batch| batch.replace(job)).map(|_| ())
    }

    fn mark_seen(&mut self, key: u128) -> Result<bool, StoreError> {
        self.done(|batch| batch.mark_seen(key))
    }

    fn settle(&mut self, id: RequestId, outcome: Outcome) -> Result<bool, StoreError> {
        self.done(|batch| batch.settle(id, outcome))
    }

    fn books(&self) -> Books {
        self.view.books
    }

    fn slots(&self) -> Vec<(SlotKey, Duration)> {
        self.read_slots().unwrap_or_else(|error| {
            tracing::error!(%error, "could not read which hosts have work");
            Vec::new()
        })
    }

    fn weight(&self) -> usize {
        0
    }

    fn medium(&self) -> Medium {
        Medium::Redis
    }

    fn cursors(&self) -> Cursors {
        self.view.cursors
    }

    fn advance(&mut self, to: Cursors) -> Result<(), StoreError> {
        self.done(|batch| batch.advance(to)).map(|_| ())
    }

    fn gate(&mut self, slot: &SlotKey, until: Duration) -> Result<(), StoreError> {
        self.done(|batch| batch.gate_until(slot, until)).map(|_| ())
    }

    fn gates(&mut self, now: Duration) -> Vec<(SlotKey, Duration)> {
        self.read_gates(now).unwrap_or_else(|error| {
            tracing::error!(%error, "could not read which hosts are gated");
            Vec::new()
        })
    }

    fn save(&mut self, name: &'static str, state: Vec<u8>) -> Result<(), StoreError> {
        self.done(|batch| batch.save(name, &state)).map(|_| ())
    }

    fn saved(&self, name: &str) -> Result<Option<Vec<u8>>, StoreError> {
        Ok(self.state(name)?)
    }

    /// Everything is at the server when it is answered; what is not known to be is given again.
    fn commit(&mut self) -> Result<(), StoreError> {
        self.settle_unsure()
    }

    fn recover(&mut self) -> Result<u64, StoreError> {
        match self.step(Batch::recover)? {
            Answer::Returned(count) => Ok(count),
            _ => Ok(0),
        }
    }
}

fn only(applied: Applied) -> Result<Answer, StoreError> {
    applied.answers.into_iter().next().ok_or_else(|| StoreError::Io("the server gave no answer".to_owned()))
}

fn unreadable(link: &Link, what: &'static str) -> RedisError {
    RedisError::Reply { address: link.address(), what }
}

/// Hosts, each followed by a time.
fn pairs(reply: Value) -> Option<Vec<(SlotKey, Duration)>> {
    let values = answer::array(reply)?;
    let (pairs, _) = values.as_chunks::<2>();
    pairs
        .iter()
        .map(|[host, time]| match host {
            Value::BulkString(host) => {
                Some((SlotKey(String::from_utf8_lossy(host).into()), Duration::from_micros(answer::count(time)?)))
            }
            _ => None,
        })
        .collect()
}
