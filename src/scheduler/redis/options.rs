//! What a worker tells when it joins a job, and what the job's members share.

use std::time::Duration;

use crate::scheduler::pacing::Pacing;

/// Which job a worker joins, and as whom.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Membership {
    /// The job's id: workers with the same one share a frontier.
    pub job: String,
    /// The spider's name; a job belongs to one spider.
    pub spider: String,
    /// The worker's name, of its own among all that ever join the job: 1 to 200 bytes. A process that joins under the
    /// name of another takes its place, and the other gets [`super::RedisError::WorkerTaken`].
    pub worker: String,
}

/// Times and pacing of a worker.
#[derive(Debug, Clone, PartialEq)]
pub struct RedisOptions {
    /// How long connecting may take.
    pub connect_timeout: Duration,
    /// How long an answer may take.
    pub reply_timeout: Duration,
    /// How long what was handed out belongs to its worker without a renewal, and how long a worker counts as alive
    /// without a sign of it. At least 100 ms.
    pub visibility: Duration,
    /// The pacing of every host, over the whole fleet. Where a host has a delay, at most one request of it is handed out and
    /// not yet sent. The jitter is that of the worker that sends.
    pub pacing: Pacing,
}

/// What the job as a whole is doing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FleetState {
    /// Work is handed out.
    Running,
    /// No work is handed out until it runs again; what is under way is finished.
    Paused,
    /// No work is handed out, and the workers are to end. The next worker that joins when no other is alive lets it run.
    Stopping,
    /// All is done.
    Finished,
}

impl Default for RedisOptions {
    fn default() -> Self {
        Self {
            connect_timeout: Duration::from_secs(5),
            reply_timeout: Duration::from_secs(10),
            visibility: Duration::from_secs(30),
            pacing: Pacing::default(),
        }
    }
}

impl FleetState {
    /// The state's name at the server and in messages.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Running => "running",
            Self::Paused => "paused",
            Self::Stopping => "stopping",
            Self::Finished => "finished",
        }
    }

    /// The state of that name.
    #[must_use]
    pub fn named(name: &[u8]) -> Option<Self> {
        [Self::Running, Self::Paused, Self::Stopping, Self::Finished].into_iter().find(|state| state.name().as_bytes() == name)
    }
}
