//! A job seen from outside: what it holds, and what an operator does to it. It joins nothing and holds no work.

use std::time::Duration;

use redis::{Cmd, Value};

use super::answer;
use super::batch;
use super::connection::{Args, Link};
use super::error::RedisError;
use super::keys;
use super::options::{FleetState, RedisOptions};
use super::script;
use super::store::FORMAT;
use super::url::RedisUrl;
use crate::scheduler::job::{Books, Job, RequestId, SlotKey, host_of};
use crate::scheduler::record;
use crate::scheduler::store::Cursors;

/// Records that travel at a time.
const PORTION: usize = 500;

/// An operator's access to a job.
#[derive(Debug)]
pub struct RedisAdmin {
    link: Link,
    job: String,
    meta: Vec<u8>,
}

/// What a job holds.
#[derive(Debug, Clone)]
pub struct Survey {
    /// Whose job it is.
    pub spider: String,
    /// When it was made, since the Unix epoch.
    pub created: Duration,
    /// What it is doing.
    pub state: FleetState,
    /// The books.
    pub books: Books,
    /// The cursors.
    pub cursors: Cursors,
    /// Whether `start()` is finished.
    pub start_finished: bool,
    /// Requests handed out.
    pub out: u64,
    /// Requests whose visibility ended: they went back.
    pub returned: u64,
    /// Keys in the seen set.
    pub seen: u64,
    /// Hosts with queued work.
    pub hosts: u64,
    /// Dead letters by reason, the most frequent first.
    pub reasons: Vec<(String, u64)>,
    /// Its workers.
    pub workers: Vec<WorkerRow>,
}

/// A worker of a job.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WorkerRow {
    /// Its name.
    pub name: String,
    /// Since when it gave no sign of life.
    pub silent_for: Duration,
    /// Requests it holds.
    pub held: u64,
}

/// A host with queued work, and its queued requests.
pub type HostRow = (SlotKey, u64);

/// Which requests that ended are meant.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ended {
    /// Dead letters: failed for good.
    Failed,
    /// Set aside: their step is unknown to the spider.
    SetAside,
}

/// A request that is kept, as it was last.
#[derive(Debug)]
pub struct Kept {
    /// Its id.
    pub id: RequestId,
    /// Why it is not queued; empty for one that is pending or was set aside.
    pub reason: String,
    /// The request, or why it cannot be read.
    pub job: Result<Box<Job>, String>,
}

/// A part of a long list. Requests that come or go meanwhile may or may not be in it, all others are in it at least once.
#[derive(Debug)]
pub struct Page {
    /// The part, in no order.
    pub kept: Vec<Kept>,
    /// Where the next one begins; none after the last.
    pub next: Option<u64>,
}

impl RedisAdmin {
    /// Opens a job.
    ///
    /// # Errors
    /// When the server cannot be used, or there is no such job, or it is not of a format this version knows.
    pub fn open(url: &RedisUrl, job: &str, options: RedisOptions) -> Result<Self, RedisError> {
        let mut link = Link::new(url.clone(), options);
        link.check_server()?;
        let mut admin = Self { link, job: job.to_owned(), meta: format!("{}meta", keys::prefix(job)).into_bytes() };
        let address = admin.link.address();
        let [format] = admin.meta_fields(["format"])?;
        match format.map(|text| text.parse::<u32>()) {
            None => Err(RedisError::NoSuchJob { address, job: admin.job }),
            Some(Ok(found)) if found > FORMAT => {
                Err(RedisError::Newer { job: admin.job, found: found.to_string(), known: FORMAT })
            }
            Some(Ok(_)) => Ok(admin),
            Some(Err(_)) => Err(RedisError::Foreign { address, key: String::from_utf8_lossy(&admin.meta).into_owned() }),
        }
    }

    /// The ids of all jobs at the server's database (of a cluster: at the node of this address).
    ///
    /// # Errors
    /// When the server cannot be used.
    pub fn jobs(url: &RedisUrl, options: RedisOptions) -> Result<Vec<String>, RedisError> {
        let mut link = Link::new(url.clone(), options);
        let mut jobs = Vec::new();
        let mut cursor = Some(0);
        while let Some(at) = cursor {
            let mut scan = redis::cmd("SCAN");
            scan.arg(at).arg("MATCH").arg(format!("{}*}}:meta", keys::ROOT)).arg("COUNT").arg(1000);
            let (names, next) = scanned(&mut link, &scan)?;
            jobs.extend(names.iter().filter_map(bytes).filter_map(keys::job_of));
            cursor = next;
        }
        jobs.sort();
        jobs.dedup();
        Ok(jobs)
    }

    /// What the job is doing.
    ///
    /// # Errors
    /// When the server cannot be used.
    pub fn state(&mut self) -> Result<FleetState, RedisError> {
        let [state] = self.meta_fields(["state"])?;
        let state = state.ok_or_else(|| self.gone())?;
        FleetState::named(state.as_bytes()).ok_or_else(|| self.unreadable("the job's state"))
    }

    /// Lets the whole job run, pause or stop; gives what it was doing before. Workers hear of it with their next batch.
    ///
    /// # Errors
    /// When the server cannot be used, or the job is gone.
    pub fn set_state(&mut self, state: FleetState) -> Result<FleetState, RedisError> {
        let args: [&[u8]; 1] = [state.name().as_bytes()];
        match self.link.script(&script::STATE, &self.meta, &Args::List(&args))? {
            Value::BulkString(before) => FleetState::named(&before).ok_or_else(|| self.unreadable("the job's state")),
            _ => Err(self.gone()),
        }
    }

    /// What the job holds.
    ///
    /// # Errors
    /// When the server cannot be used.
    pub fn survey(&mut self) -> Result<Survey, RedisError> {
        let [spider, created, start, idle, start_done, returned] =
            self.meta_fields(["spider", "created", "start_cursor", "idle_cursor", "start_done", "returned"])?;
        let number = |text: Option<String>| text.and_then(|text| text.parse().ok()).unwrap_or(0);
        let state = self.state()?;
        let books = self.read(redis::cmd("HGETALL").arg(self.key("books")))?;
        let book = |name: &str| books.iter().find(|(field, _)| field == name).map_or(0, |(_, count)| *count);
        let mut reasons = self.read(redis::cmd("HGETALL").arg(self.key("reasons")))?;
        reasons.sort_by(|a, b| b.1.cmp(&a.1).then_with(|| a.0.cmp(&b.0)));
        Ok(Survey {
            spider: spider.unwrap_or_default(),
            created: Duration::from_micros(number(created)),
            state,
            books: Books {
                enqueued: book("enqueued"),
                handled: book("handled"),
                failed: book("failed"),
                dropped: book("dropped"),
                set_aside: book("set_aside"),
                pending: book("pending"),
            },
            cursors: Cursors { start: number(start), idle: number(idle) },
            start_finished: start_done.as_deref() == Some("1"),
            returned: number(returned),
            out: self.size("HLEN", "out")?,
            seen: self.size("SCARD", "seen")?,
            hosts: self.size("ZCARD", "hosts")?,
            reasons,
            workers: self.workers()?,
        })
    }

    /// Hosts with queued work and how many requests each has, a part of them and where the next begins: begin with 0.
    ///
    /// # Errors
    /// When the server cannot be used.
    pub fn hosts(&mut self, from: u64) -> Result<(Vec<HostRow>, Option<u64>), RedisError> {
        let mut scan = redis::cmd("ZSCAN");
        scan.arg(self.key("hosts")).arg(from).arg("COUNT").arg(PORTION);
        let (values, next) = scanned(&mut self.link, &scan)?;
        let (pairs, _) = values.as_chunks::<2>();
        let mut hosts = Vec::with_capacity(pairs.len());
        for [host, _] in pairs {
            let host = text(host);
            let queued = self.size("ZCARD", &format!("q:{host}"))? + self.size("ZCARD", &format!("w:{host}"))?;
            hosts.push((SlotKey(host.into()), queued));
        }
        Ok((hosts, next))
    }

    /// Requests that are pending, queued or handed out, a part of them: begin with 0.
    ///
    /// # Errors
    /// When the server cannot be used.
    pub fn pending(&mut self, from: u64) -> Result<Page, RedisError> {
        self.page("jobs", from, |record| (String::new(), record))
    }

    /// Requests that ended and are kept, a part of them: begin with 0.
    ///
    /// # Errors
    /// When the server cannot be used.
    pub fn ended(&mut self, which: Ended, from: u64) -> Result<Page, RedisError> {
        self.page(which.key(), from, |value| match value.iter().position(|byte| *byte == 0) {
            Some(end) => {
                let (reason, record) = value.split_at(end);
                (String::from_utf8_lossy(reason).into_owned(), record.get(1..).unwrap_or_default())
            }
            None => (String::new(), value),
        })
    }

    /// Puts requests that ended back into the queue, with their attempts counted anew: those `wanted` says yes to, by reason
    /// and request. Gives how many went back.
    ///
    /// # Errors
    /// When the server cannot be used; those that went back before are queued.
    pub fn requeue(&mut self, which: Ended, mut wanted: impl FnMut(&str, &Job) -> bool) -> Result<u64, RedisError> {
        let mut back = 0;
        let mut cursor = Some(0);
        while let Some(at) = cursor {
            let page = self.ended(which, at)?;
            cursor = page.next;
            let mut args: Vec<Vec<u8>> = vec![which.key().into()];
            for Kept { reason, job, .. } in page.kept {
                let Some(mut job) = job.ok().filter(|job| wanted(&reason, job)) else {
                    continue;
                };
                job.attempts = 0;
                let mut record = Vec::new();
                record::encode(&job, Duration::ZERO, &mut record);
                let host = host_of(job.url());
                let rank = batch::rank(job.request.priority_value());
                args.extend([job.id.0.to_be_bytes().to_vec(), host.into(), rank.to_vec(), record]);
            }
            if args.len() > 1 {
                let list: Vec<&[u8]> = args.iter().map(Vec::as_slice).collect();
                let reply = self.link.script(&script::REQUEUE, &self.meta, &Args::List(&list))?;
                back += answer::count(&reply).ok_or_else(|| self.unreadable("how many went back"))?;
            }
        }
        Ok(back)
    }

    /// Deletes the job: all its keys, in portions. Workers that are at it end with [`RedisError::Rewound`]. Gives the number
    /// of keys.
    ///
    /// # Errors
    /// When the server cannot be used; then some keys may be left, and another call deletes them.
    pub fn forget(mut self) -> Result<u64, RedisError> {
        let prefix = keys::prefix(&self.job);
        let mut deleted = 0;
        let mut cursor = Some(0);
        while let Some(at) = cursor {
            let mut scan = redis::cmd("SCAN");
            scan.arg(at).arg("MATCH").arg(format!("{prefix}*")).arg("COUNT").arg(1000);
            let (names, next) = scanned(&mut self.link, &scan)?;
            cursor = next;
            let names: Vec<&[u8]> = names.iter().filter_map(bytes).filter(|name| *name != self.meta).collect();
            if !names.is_empty() {
                let reply = self.link.command(redis::cmd("UNLINK").arg(names))?;
                deleted += answer::count(&reply).unwrap_or(0);
            }
        }
        // The last one, so that a call that failed before can be made again.
        let reply = self.link.command(redis::cmd("UNLINK").arg(&self.meta))?;
        Ok(deleted + answer::count(&reply).unwrap_or(0))
    }

    fn workers(&mut self) -> Result<Vec<WorkerRow>, RedisError> {
        let time = answer::array(self.link.command(&redis::cmd("TIME"))?).unwrap_or_default();
        let part = |at: usize| time.get(at).and_then(answer::count).unwrap_or(0);
        let now = part(0) * 1_000_000 + part(1);
        let mut workers = Vec::new();
        let mut range = redis::cmd("ZRANGE");
        range.arg(self.key("beats")).arg(0).arg(-1).arg("WITHSCORES");
        for (name, beat) in self.read(&range)? {
            let mut get = redis::cmd("HGET");
            get.arg(self.key(&format!("worker:{name}"))).arg("held");
            let held = answer::count(&self.link.command(&get)?).unwrap_or(0);
            workers.push(WorkerRow { name, silent_for: Duration::from_micros(now.saturating_sub(beat)), held });
        }
        Ok(workers)
    }

    fn page(&mut self, key: &str, from: u64, split: impl Fn(&[u8]) -> (String, &[u8])) -> Result<Page, RedisError> {
        let mut scan = redis::cmd("HSCAN");
        scan.arg(self.key(key)).arg(from).arg("COUNT").arg(PORTION);
        let (values, next) = scanned(&mut self.link, &scan)?;
        let (pairs, _) = values.as_chunks::<2>();
        let kept = pairs
            .iter()
            .filter_map(|[id, value]| {
                let (reason, record) = split(bytes(value)?);
                let job = record::decode(record).map(|(job, _)| Box::new(job)).map_err(|error| error.to_string());
                Some(Kept { id: answer::id(id)?, reason, job })
            })
            .collect();
        Ok(Page { kept, next })
    }

    fn meta_fields<const N: usize>(&mut self, names: [&str; N]) -> Result<[Option<String>; N], RedisError> {
        let reply = self.link.command(redis::cmd("HMGET").arg(&self.meta).arg(&names[..]))?;
        let mut values = answer::array(reply).unwrap_or_default().into_iter();
        Ok(names.map(|_| values.next().as_ref().and_then(bytes).map(|text| String::from_utf8_lossy(text).into_owned())))
    }

    /// Names, each followed by a number.
    fn read(&mut self, command: &Cmd) -> Result<Vec<(String, u64)>, RedisError> {
        let values = answer::array(self.link.command(command)?).unwrap_or_default();
        let (pairs, _) = values.as_chunks::<2>();
        Ok(pairs.iter().map(|[name, number]| (text(name), answer::count(number).unwrap_or(0))).collect())
    }

    fn size(&mut self, command: &str, key: &str) -> Result<u64, RedisError> {
        let reply = self.link.command(redis::cmd(command).arg(self.key(key)))?;
        answer::count(&reply).ok_or_else(|| self.unreadable("a size"))
    }

    fn key(&self, name: &str) -> String {
        format!("{}{name}", keys::prefix(&self.job))
    }

    fn gone(&self) -> RedisError {
        RedisError::NoSuchJob { address: self.link.address(), job: self.job.clone() }
    }

    fn unreadable(&self, what: &'static str) -> RedisError {
        RedisError::Reply { address: self.link.address(), what }
    }
}

impl Ended {
    const fn key(self) -> &'static str {
        match self {
            Self::Failed => "dead",
            Self::SetAside => "aside",
        }
    }
}

/// One step of a SCAN, HSCAN or ZSCAN: values, and the next cursor.
fn scanned(link: &mut Link, command: &Cmd) -> Result<(Vec<Value>, Option<u64>), RedisError> {
    let mut parts = answer::array(link.command(command)?).unwrap_or_default().into_iter();
    let cursor = parts.next().as_ref().and_then(answer::count);
    match (cursor, parts.next().and_then(answer::array)) {
        (Some(cursor), Some(values)) => Ok((values, (cursor != 0).then_some(cursor))),
        _ => Err(RedisError::Reply { address: link.address(), what: "a part of a list" }),
    }
}

fn bytes(value: &Value) -> Option<&[u8]> {
    match value {
        Value::BulkString(bytes) => Some(bytes),
        _ => None,
    }
}

fn text(value: &Value) -> String {
    bytes(value).map(|bytes| String::from_utf8_lossy(bytes).into_owned()).unwrap_or_default()
}
