//! What the verbs ask of a frontier, wherever it is kept.

use std::fmt;
use std::io::{self, BufWriter, Write};

use serde_json::{Value, json};

use super::entry::Entry;
use crate::cli::exit::CliError;
use crate::scheduler::job::{Books, Job};
use crate::scheduler::store::Cursors;

/// A frontier.
pub(super) trait Source {
    /// How it stands.
    fn stat(&mut self) -> Result<Stat, CliError>;

    /// Shows every request of a kind, until `visit` has enough.
    fn each(&mut self, kind: Kind, visit: &mut dyn FnMut(&Entry) -> Result<(), Halt>) -> Result<(), Halt>;

    /// Puts those back into the queue that failed, or were set aside, and that `wanted` says yes to, by reason and request.
    fn requeue(&mut self, kind: Kind, wanted: &mut dyn FnMut(&str, &Job) -> bool) -> Result<u64, CliError>;

    /// Where it is, for people.
    fn place(&self) -> String;
}

/// Which requests.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    /// Waiting; at a server also those that a worker holds.
    Queued,
    /// Failed for good.
    Failed,
    /// Of a step that the spider does not know.
    SetAside,
    /// With a record that cannot be read.
    Damaged,
}

/// Why a list ended before its end.
#[derive(Debug)]
pub(super) enum Halt {
    /// All that was wanted is there.
    Enough,
    Failed(CliError),
    Write(io::Error),
}

/// How a frontier stands.
#[derive(Debug, Clone, Default)]
pub(super) struct Stat {
    pub(super) place: String,
    pub(super) format: Option<u64>,
    /// Bytes on disk.
    pub(super) bytes: Option<u64>,
    pub(super) job: Option<String>,
    pub(super) spider: Option<String>,
    pub(super) books: Books,
    pub(super) in_flight: u64,
    pub(super) cursors: Cursors,
    pub(super) seen: u64,
    /// Hosts with queued requests, the fullest first.
    pub(super) hosts: Vec<(String, u64)>,
    pub(super) oldest: Option<String>,
    pub(super) newest: Option<String>,
    /// Dead letters by reason, the most frequent first.
    pub(super) failed: Vec<(String, u64)>,
    /// What was set aside by step, the most frequent first.
    pub(super) set_aside: Vec<(String, u64)>,
    /// Records that cannot be read.
    pub(super) damaged: u64,
    pub(super) fleet: Option<Fleet>,
}

/// Those who work at a job together.
#[derive(Debug, Clone)]
pub(super) struct Fleet {
    pub(super) state: &'static str,
    /// Whether `start()` is finished.
    pub(super) start_finished: bool,
    /// Requests that came back from workers that were gone.
    pub(super) returned: u64,
    /// Name, milliseconds since the last sign of life, requests held.
    pub(super) workers: Vec<(String, u64, u64)>,
}

impl Kind {
    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::Queued => "queued",
            Self::Failed => "failed",
            Self::SetAside => "set_aside",
            Self::Damaged => "damaged",
        }
    }
}

impl Stat {
    /// As one JSON object.
    pub(super) fn to_json(&self) -> Value {
        let counts = |pairs: &[(String, u64)]| Value::Object(pairs.iter().map(|(name, n)| (name.clone(), json!(n))).collect());
        let Books { enqueued, handled, failed, dropped, set_aside, pending } = self.books;
        let fleet = self.fleet.as_ref().map(|fleet| {
            let workers =
                fleet.workers.iter().map(|(name, silent, held)| json!({"name": name, "silent_ms": silent, "held": held}));
            json!({
                "state": fleet.state,
                "start_finished": fleet.start_finished,
                "returned": fleet.returned,
                "workers": workers.collect::<Value>(),
            })
        });
        json!({
            "place": self.place,
            "format": self.format,
            "bytes": self.bytes,
            "job": self.job,
            "spider": self.spider,
            "books": {
                "enqueued": enqueued, "handled": handled, "failed": failed, "dropped": dropped, "set_aside": set_aside,
                "pending": pending,
            },
            "in_flight": self.in_flight,
            "cursors": {"start": self.cursors.start, "idle": self.cursors.idle},
            "seen": self.seen,
            "hosts": counts(&self.hosts),
            "oldest": self.oldest,
            "newest": self.newest,
            "failed": counts(&self.failed),
            "set_aside": counts(&self.set_aside),
            "damaged": self.damaged,
            "fleet": fleet,
        })
    }
}

impl fmt::Debug for dyn Source {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.place())
    }
}

impl From<CliError> for Halt {
    fn from(error: CliError) -> Self {
        Self::Failed(error)
    }
}

impl From<io::Error> for Halt {
    fn from(error: io::Error) -> Self {
        Self::Write(error)
    }
}

/// Adds to the count of a name.
pub(super) fn count(counts: &mut Vec<(String, u64)>, name: &str) {
    match counts.iter_mut().find(|(known, _)| known == name) {
        Some((_, count)) => *count += 1,
        None => counts.push((name.to_owned(), 1)),
    }
}

/// The most frequent first.
pub(super) fn sort(counts: &mut [(String, u64)]) {
    counts.sort_by(|a, b| b.1.cmp(&a.1).then_with(|| a.0.cmp(&b.0)));
}

/// Writes lines to `what`; a reader that has gone away has read enough.
pub(super) fn lines(
    to: &mut dyn Write,
    what: &str,
    write: impl FnOnce(&mut dyn Write) -> Result<(), Halt>,
) -> Result<(), CliError> {
    let mut to = BufWriter::new(to);
    let written = match write(&mut to) {
        Ok(()) | Err(Halt::Enough) => to.flush().map_err(Halt::Write),
        Err(halt) => Err(halt),
    };
    match written {
        Ok(()) | Err(Halt::Enough) => Ok(()),
        Err(Halt::Write(error)) if error.kind() == io::ErrorKind::BrokenPipe => Ok(()),
        Err(Halt::Write(error)) => Err(CliError::internal(format!("{what} cannot be written: {error}"))),
        Err(Halt::Failed(error)) => Err(error),
    }
}
