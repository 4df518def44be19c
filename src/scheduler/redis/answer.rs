//! What the server answers to a batch, and how it is read.

use std::time::Duration;

use redis::Value;

use super::batch::Kind;
use super::options::FleetState;
use crate::scheduler::job::{Books, Job, RequestId, SlotKey};
use crate::scheduler::record;
use crate::scheduler::store::{Cursors, Offered, Pulled};

/// What a batch came to.
#[derive(Debug)]
pub struct Applied {
    /// One answer for each operation, in their order.
    pub answers: Vec<Answer>,
    /// The job after them.
    pub view: View,
}

/// The answer to one operation.
#[derive(Debug)]
#[non_exhaustive]
pub enum Answer {
    /// What an offer came to.
    Offered(Offered),
    /// The server is at its `maxmemory`: nothing of the offer was taken; offer it again later. Everything else of
    /// the batch was done.
    Full,
    /// The offer was one of `start()` or `idle`, and another worker runs it now: nothing of it was taken; stop running it.
    NotClaimed,
    /// Whether the operation changed anything. For operations on a request: false when this worker does not hold it (any more).
    Done(bool),
    /// The delay of a throttled host before and after an answer; none of a host that is not throttled.
    Throttled(Option<(Duration, Duration)>),
    /// Whether there is a place for a hop or robots.txt request.
    Place(Place),
    /// Those of a renewal that this worker does not hold any more: another may be at them already.
    Lost(Vec<RequestId>),
    /// Requests that may go now.
    Leased(Vec<Leased>),
    /// Who runs `start()` or `idle`.
    Claim(Claim),
    /// How many requests went back to the queue.
    Returned(u64),
    /// What one host's queue gave, by [`crate::scheduler::store::Store::pull`].
    Pulled(Pulled),
}

/// A request handed out.
#[derive(Debug)]
pub struct Leased {
    /// Its name.
    pub id: RequestId,
    /// Its host; a place of it is taken until [`super::Batch::freed`].
    pub host: SlotKey,
    /// The request; or why its record cannot be read, then it is to be settled as set aside.
    pub job: Result<Box<Job>, String>,
    /// Whether its sending has to be told by [`super::Batch::sent`]: nothing else of the host is handed out before. It must
    /// not be sent once the visibility is over without a renewal: from then on it counts as sent, and another may send.
    pub wants_sent: bool,
}

/// Whether a request that is out may be sent (again).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Place {
    /// Yes: it has a place. Its sending has to be told where `wants_sent`.
    Go {
        /// From then on, counted from when the answer came.
        after: Duration,
        /// Whether its sending has to be told by [`super::Batch::sent`].
        wants_sent: bool,
    },
    /// Not now: ask again. The host gives nothing else out for a second, so that it is not overtaken.
    Wait {
        /// When asking again is worth while, at the earliest.
        again_in: Duration,
    },
    /// This worker does not hold the request any more.
    Lost,
}

/// Who runs `start()` or `idle`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Claim {
    /// This worker, from this cursor on, until it finishes or shows no sign of life for the visibility.
    Mine {
        /// Requests of it that were taken in so far.
        cursor: u64,
    },
    /// Another worker.
    Theirs,
    /// Nobody: `start()` is finished, or it is not the time of `idle`.
    Nobody,
}

/// The job as it stands after a batch.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct View {
    /// The books.
    pub books: Books,
    /// Requests handed out, to all workers.
    pub out: u64,
    /// Those of them that this worker holds.
    pub held: u64,
    /// Workers alive, this one included.
    pub workers: u64,
    /// What the job is doing.
    pub state: FleetState,
    /// The cursors.
    pub cursors: Cursors,
    /// Whether `start()` is finished.
    pub start_finished: bool,
    /// Whether `start()` is not finished and no worker that is alive runs it: it can be claimed.
    pub start_open: bool,
    /// Whether another worker that is alive runs `idle`.
    pub idle_elsewhere: bool,
    /// When the next host may have a request that waits for a time rather than for a place; zero when some may go now.
    /// None when no host waits for a time.
    pub next_due: Option<Duration>,
    /// Requests whose visibility ended so far, over the whole job: they went back to their place in the queue.
    pub returned: u64,
    /// Requests that too many workers were lost with, one after the other: each is a dead letter (`worker_lost`).
    pub given_up: u64,
}

impl View {
    /// Before the first batch.
    pub(super) const fn empty() -> Self {
        Self {
            books: Books { enqueued: 0, handled: 0, failed: 0, dropped: 0, set_aside: 0, pending: 0 },
            out: 0,
            held: 0,
            workers: 0,
            state: FleetState::Running,
            cursors: Cursors { start: 0, idle: 0 },
            start_finished: false,
            start_open: false,
            idle_elsewhere: false,
            next_due: None,
            returned: 0,
            given_up: 0,
        }
    }

    /// Whether requests are pending that this worker does not hold and that may come to it: nobody may finish yet.
    #[must_use]
    pub const fn busy_elsewhere(&self) -> bool {
        self.books.pending > self.held || !self.start_finished || self.idle_elsewhere
    }

    /// Whether nothing is pending, `start()` is finished and nobody else runs `idle`: the time of `idle`, or the end.
    #[must_use]
    pub const fn is_idle(&self) -> bool {
        self.books.pending == 0 && self.start_finished && !self.idle_elsewhere
    }
}

/// Reads the answer to a batch with operations of these kinds, and how many batches before it the server has lost.
pub(super) fn applied(reply: Value, kinds: &[Kind]) -> Result<(Applied, u64), &'static str> {
    let mut parts = Row::new(reply, "an answer of three parts")?;
    let answers = array(parts.next()?).ok_or("an array of answers")?;
    if answers.len() != kinds.len() {
        return Err("one answer for each operation");
    }
    let answers = kinds.iter().zip(answers).map(|(kind, value)| answer(*kind, value)).collect::<Result<_, _>>()?;
    let applied = Applied { answers, view: view(parts.next()?)? };
    Ok((applied, parts.count()?))
}

fn answer(kind: Kind, value: Value) -> Result<Answer, &'static str> {
    match kind {
        Kind::Offer => offered(value),
        Kind::Pull => pulled(value).map(Answer::Pulled),
        Kind::Place => place(value).map(Answer::Place),
        Kind::Heard => throttled(value).map(Answer::Throttled),
        Kind::Renew => ids(value).map(Answer::Lost),
        Kind::Lease => leased(value).map(Answer::Leased),
        Kind::ClaimStart | Kind::ClaimIdle => claim(value).map(Answer::Claim),
        Kind::Count => count(&value).map(Answer::Returned).ok_or("a count"),
        Kind::FinishStart | Kind::FinishIdle | Kind::Other => {
            count(&value).map(|done| Answer::Done(done > 0)).ok_or("a yes or no")
        }
    }
}

fn offered(value: Value) -> Result<Answer, &'static str> {
    match &value {
        Value::BulkString(word) if word == b"full" => return Ok(Answer::Full),
        Value::BulkString(word) if word == b"unclaimed" => return Ok(Answer::NotClaimed),
        _ => {}
    }
    let mut row = Row::new(value, "the counts of an offer")?;
    Ok(Answer::Offered(Offered {
        stored: row.count()?,
        duplicates: row.count()?,
        repeated: row.count()?,
        kept_dropped: ids(row.next()?)?,
    }))
}

fn pulled(value: Value) -> Result<Pulled, &'static str> {
    let mut row = Row::new(value, "a pulled request")?;
    Ok(match row.count()? {
        2 => {
            let Value::BulkString(bytes) = row.next()? else { return Err("a record") };
            let (job, _) = record::decode(&bytes).map_err(|_| "a record that can be read")?;
            Pulled::Job(Box::new(job))
        }
        1 => Pulled::NotBefore(Duration::from_micros(row.count()?)),
        _ => Pulled::Empty,
    })
}

fn throttled(value: Value) -> Result<Option<(Duration, Duration)>, &'static str> {
    let mut row = Row::new(value, "the delay of a host")?;
    if row.values.len() == 0 {
        return Ok(None);
    }
    Ok(Some((Duration::from_micros(row.count()?), Duration::from_micros(row.count()?))))
}

fn place(value: Value) -> Result<Place, &'static str> {
    let mut row = Row::new(value, "a place")?;
    Ok(match row.count()? {
        2 => Place::Go { after: Duration::from_micros(row.count()?), wants_sent: row.count()? > 0 },
        1 => Place::Wait { again_in: Duration::from_micros(row.count()?) },
        _ => Place::Lost,
    })
}

fn claim(value: Value) -> Result<Claim, &'static str> {
    let mut row = Row::new(value, "a claim")?;
    Ok(match row.count()? {
        2 => Claim::Mine { cursor: row.count()? },
        1 => Claim::Theirs,
        _ => Claim::Nobody,
    })
}

fn leased(value: Value) -> Result<Vec<Leased>, &'static str> {
    let values = array(value).ok_or("the requests handed out")?;
    let mut leased = Vec::with_capacity(values.len() / 4);
    let mut row = Row { values: values.into_iter(), what: "a request handed out" };
    while let Some(first) = row.values.next() {
        let id = id(&first).ok_or("an id")?;
        let host = match row.next()? {
            Value::BulkString(bytes) => SlotKey(String::from_utf8_lossy(&bytes).into()),
            _ => return Err("a host"),
        };
        let job = match row.next()? {
            Value::BulkString(bytes) => record::decode(&bytes).map(|(job, _)| Box::new(job)).map_err(|error| error.to_string()),
            _ => return Err("a record"),
        };
        leased.push(Leased { id, host, job, wants_sent: row.count()? > 0 });
    }
    Ok(leased)
}

pub(super) fn view(value: Value) -> Result<View, &'static str> {
    let mut row = Row::new(value, "the state of the job")?;
    let books = Books {
        enqueued: row.count()?,
        handled: row.count()?,
        failed: row.count()?,
        dropped: row.count()?,
        set_aside: row.count()?,
        pending: row.count()?,
    };
    Ok(View {
        books,
        out: row.count()?,
        held: row.count()?,
        workers: row.count()?,
        state: match row.next()? {
            Value::BulkString(name) => FleetState::named(&name).ok_or("a state this version knows")?,
            _ => return Err("a state"),
        },
        cursors: Cursors { start: row.count()?, idle: row.count()? },
        start_finished: row.count()? > 0,
        start_open: row.count()? > 0,
        idle_elsewhere: row.count()? > 0,
        next_due: row.count()?.checked_sub(1).map(Duration::from_micros),
        returned: row.count()?,
        given_up: row.count()?,
    })
}

fn ids(value: Value) -> Result<Vec<RequestId>, &'static str> {
    array(value).and_then(|values| values.iter().map(id).collect()).ok_or("ids")
}

/// An id of 16 bytes.
pub(super) fn id(value: &Value) -> Option<RequestId> {
    match value {
        Value::BulkString(bytes) => Some(RequestId(u128::from_be_bytes(bytes.as_slice().try_into().ok()?))),
        _ => None,
    }
}

/// A number that is not negative, however the server sends it; nothing is none.
pub(super) fn count(value: &Value) -> Option<u64> {
    match value {
        Value::Int(number) => u64::try_from(*number).ok(),
        Value::BulkString(text) => std::str::from_utf8(text).ok()?.parse().ok(),
        Value::Nil => Some(0),
        _ => None,
    }
}

pub(super) fn array(value: Value) -> Option<Vec<Value>> {
    match value {
        Value::Array(values) => Some(values),
        _ => None,
    }
}

/// The values of an array, read one after the other.
struct Row {
    values: std::vec::IntoIter<Value>,
    what: &'static str,
}

impl Row {
    fn new(value: Value, what: &'static str) -> Result<Self, &'static str> {
        Ok(Self { values: array(value).ok_or(what)?.into_iter(), what })
    }

    fn next(&mut self) -> Result<Value, &'static str> {
        self.values.next().ok_or(self.what)
    }

    fn count(&mut self) -> Result<u64, &'static str> {
        count(&self.next()?).ok_or(self.what)
    }
}
