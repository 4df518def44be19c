//! One worker's place in one job at a server.

use std::cell::RefCell;
use std::time::Duration;

use redis::Value;

use super::answer::{self, Answer, Applied, Claim, View};
use super::batch::{Batch, Kind, millionths};
use super::connection::{Args, Link};
use super::error::RedisError;
use super::keys;
use super::options::{Membership, RedisOptions};
use super::script;
use super::url::RedisUrl;
use crate::scheduler::pacing::Pacing;

/// The format of what is kept at the server.
pub(super) const FORMAT: u32 = 1;

/// The shortest visibility.
const SHORTEST: Duration = Duration::from_millis(100);

/// A worker's place in a job.
///
/// Each call is one round trip and waits for it: it belongs on a thread of its own.
pub struct RedisStore {
    /// Behind a cell for the methods that only look.
    pub(super) link: RefCell<Link>,
    pub(super) member: Membership,
    /// The job's meta hash.
    pub(super) meta: Vec<u8>,
    /// Names this process among those that ever join under the worker's name.
    token: String,
    /// The last number given to a batch.
    number: u64,
    missed: u64,
    /// What this worker runs for all. It has a cursor of its own: the server cannot go back behind it unnoticed.
    runs_start: bool,
    runs_idle: bool,
    pub(super) pacing: Pacing,
    /// The hosts with rules of their own, as the server takes them.
    hosts: Vec<u8>,
    pub(super) view: View,
    /// For the plain [`crate::scheduler::store::Store`]: what is not known to have happened.
    pub(super) unsure: super::plain::Unsure,
}

impl RedisStore {
    /// Joins a job, which is made if there is none.
    ///
    /// # Errors
    /// When the server cannot be used, or the job belongs to another spider, a later version, or is none of ours.
    pub fn open(url: &RedisUrl, member: Membership, options: RedisOptions) -> Result<Self, RedisError> {
        for (what, given) in
            [("the job id", &member.job), ("the spider's name", &member.spider), ("the worker's name", &member.worker)]
        {
            if given.is_empty() || given.len() > 200 || given.contains('\0') {
                return Err(RedisError::Name { what, given: given.clone() });
            }
        }
        let options = RedisOptions { visibility: options.visibility.max(SHORTEST), ..options };
        let pacing = options.pacing.clone();
        let mut link = Link::new(url.clone(), options);
        link.check_server()?;
        let mut store = Self {
            link: RefCell::new(link),
            meta: format!("{}meta", keys::prefix(&member.job)).into_bytes(),
            member,
            token: uuid::Uuid::new_v4().simple().to_string(),
            number: 0,
            missed: 0,
            runs_start: false,
            runs_idle: false,
            hosts: packed(&pacing),
            pacing,
            view: View::empty(),
            unsure: super::plain::Unsure::default(),
        };
        store.join()?;
        store.apply(&mut Batch::new())?;
        Ok(store)
    }

    /// Does a batch at the server, all of it or nothing.
    ///
    /// # Errors
    /// When it is not known to be done. Unless the error is for good ([`RedisError::is_transient`]), give the
    /// same batch again before any other: it is done once.
    pub fn apply(&mut self, batch: &mut Batch) -> Result<Applied, RedisError> {
        let number = *batch.number.get_or_insert(self.number + 1);
        self.number = number;
        let about = batch.requests();
        let link = self.link.get_mut();
        let micros = |time: Duration| u64::try_from(time.as_micros()).unwrap_or(u64::MAX).min(1 << 52);
        let numbers = [
            number,
            micros(link.options().visibility),
            u64::try_from(self.pacing.per_slot.max(1)).unwrap_or(u64::MAX),
            micros(self.pacing.delay),
            u64::from(self.pacing.per_minute),
            u64::from(self.pacing.throttles),
            micros(self.pacing.throttle.start),
            micros(self.pacing.throttle.max),
            millionths(self.pacing.throttle.target).max(1),
            u64::from(!self.runs_start && !self.runs_idle),
            u64::try_from(about.1).unwrap_or(u64::MAX),
        ];
        let texts = [self.member.worker.as_bytes(), self.token.as_bytes(), &self.hosts];
        let args = Args::Written { texts: &texts, numbers: &numbers, parts: &[about, batch.wire()] };
        let reply = link.script(&script::APPLY, &self.meta, &args)?;
        self.read(reply, batch.kinds())
    }

    /// The job as it stood after the last batch.
    #[must_use]
    pub const fn view(&self) -> &View {
        &self.view
    }

    /// Batches of this worker that the server had answered and lost since, as a restart may show.
    #[must_use]
    pub const fn missed(&self) -> u64 {
        self.missed
    }

    /// Who this worker is.
    #[must_use]
    pub const fn member(&self) -> &Membership {
        &self.member
    }

    /// How long what was handed out belongs to this worker without a renewal.
    #[must_use]
    pub fn visibility(&self) -> Duration {
        self.link.borrow().options().visibility
    }

    /// Changes the pacing of hosts, from the next batch on.
    pub fn set_pacing(&mut self, pacing: Pacing) {
        self.hosts = packed(&pacing);
        self.pacing = pacing;
    }

    /// What was saved under a name by [`Batch::save`].
    ///
    /// # Errors
    /// When the server cannot be used.
    pub fn state(&self, name: &str) -> Result<Option<Vec<u8>>, RedisError> {
        let reply = self.link.borrow_mut().command(redis::cmd("HGET").arg(self.key("states")).arg(name))?;
        match reply {
            Value::BulkString(bytes) => Ok(Some(bytes)),
            Value::Nil => Ok(None),
            _ => Err(self.unreadable("a saved state")),
        }
    }

    /// A key of the job.
    pub(super) fn key(&self, name: &str) -> String {
        format!("{}{name}", keys::prefix(&self.member.job))
    }

    pub(super) fn unreadable(&self, what: &'static str) -> RedisError {
        RedisError::Reply { address: self.link.borrow().address(), what }
    }

    fn join(&mut self) -> Result<(), RedisError> {
        let visibility = self.visibility().as_micros().to_string();
        let args = [FORMAT.to_string(), self.member.spider.clone(), self.member.worker.clone(), self.token.clone(), visibility];
        let args: Vec<&[u8]> = args.iter().map(|arg| arg.as_bytes()).collect();
        let reply = self.link.get_mut().script(&script::JOIN, &self.meta, &Args::List(&args))?;
        let words = answer::array(reply).ok_or_else(|| self.unreadable("the answer to a worker that joins"))?;
        let word = |at: usize| match words.get(at) {
            Some(Value::BulkString(bytes)) => String::from_utf8_lossy(bytes).into_owned(),
            _ => String::new(),
        };
        let job = self.member.job.clone();
        match word(0).as_str() {
            "ok" => Ok(()),
            "foreign" => Err(RedisError::Foreign { address: self.link.borrow().address(), key: word(1) }),
            "newer" => Err(RedisError::Newer { job, found: word(1), known: FORMAT }),
            "spider" => Err(RedisError::OtherSpider { job, found: word(1), spider: self.member.spider.clone() }),
            _ => Err(self.unreadable("the answer to a worker that joins")),
        }
    }

    fn note_claims(&mut self, kinds: &[Kind], answers: &[Answer]) {
        for (kind, answer) in kinds.iter().zip(answers) {
            let is_mine = matches!(answer, Answer::Claim(Claim::Mine { .. }));
            match kind {
                Kind::ClaimStart => self.runs_start = is_mine,
                Kind::ClaimIdle => self.runs_idle = is_mine,
                Kind::FinishStart => self.runs_start = false,
                Kind::FinishIdle => self.runs_idle = false,
                _ => {}
            }
        }
    }

    fn read(&mut self, reply: Value, kinds: &[Kind]) -> Result<Applied, RedisError> {
        match &reply {
            Value::BulkString(word) if word == b"taken" => {
                return Err(RedisError::WorkerTaken { worker: self.member.worker.clone() });
            }
            Value::BulkString(word) if word == b"gone" => {
                return Err(RedisError::Rewound { address: self.link.borrow().address() });
            }
            _ => {}
        }
        let (applied, missed) = answer::applied(reply, kinds).map_err(|what| self.unreadable(what))?;
        self.note_claims(kinds, &applied.answers);
        self.view = applied.view.clone();
        self.missed += missed;
        if missed > 0 {
            tracing::warn!(
                server = self.link.borrow().address(),
                steps = missed,
                "the Redis server has lost what it had answered (set appendfsync always): requests that ended in these steps are \
                 fetched again"
            );
        }
        Ok(applied)
    }
}

impl std::fmt::Debug for RedisStore {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("RedisStore")
            .field("link", &self.link)
            .field("member", &self.member)
            .field("view", &self.view)
            .finish_non_exhaustive()
    }
}

/// The hosts with rules of their own: for each places (u32), delay in microseconds (double), whether it is throttled (a byte),
/// length of the name (u16), name.
fn packed(pacing: &Pacing) -> Vec<u8> {
    let mut bytes = Vec::new();
    for name in pacing.hosts.keys() {
        let rates = pacing.of(name);
        let Ok(length) = u16::try_from(name.len()) else { continue };
        bytes.extend(u32::try_from(rates.per_slot).unwrap_or(u32::MAX).to_be_bytes());
        bytes.extend((rates.delay.as_secs_f64() * 1e6).round().to_be_bytes());
        bytes.push(u8::from(rates.throttles));
        bytes.extend(length.to_be_bytes());
        bytes.extend(name.as_bytes());
    }
    bytes
}
