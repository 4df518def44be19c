//! What can go wrong with a server, in words that say what to do.

use crate::scheduler::store::StoreError;

/// A frontier at a server that cannot be used, for now or at all.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum RedisError {
    /// No connection, or it was lost.
    #[error("the Redis server at {address} cannot be reached ({reason})")]
    Unreachable {
        /// Host and port.
        address: String,
        /// Why.
        reason: String,
    },
    /// The server is up and not ready.
    #[error("the Redis server at {address} is not ready ({reason})")]
    NotReady {
        /// Host and port.
        address: String,
        /// Why, in the server's words.
        reason: String,
    },
    /// User or password are wrong or missing.
    #[error(
        "the Redis server at {address} does not let us in ({reason}): give user and password as \
         redis://[user]:password@{address}"
    )]
    Auth {
        /// Host and port.
        address: String,
        /// Why, in the server's words.
        reason: String,
    },
    /// The user may not do what is needed.
    #[error(
        "the user at the Redis server {address} may not do this ({reason}): allow it scripts (EVAL, EVALSHA), INFO, SCAN and all \
         commands on keys dragline:*"
    )]
    NotAllowed {
        /// Host and port.
        address: String,
        /// What, in the server's words.
        reason: String,
    },
    /// There is no such database.
    #[error("the Redis server at {address} has no database {database} ({reason}): give another number, or none")]
    Database {
        /// Host and port.
        address: String,
        /// The number.
        database: i64,
        /// Why, in the server's words.
        reason: String,
    },
    /// The server takes no writes.
    #[error("the Redis server at {address} is read-only (a replica?): give the address of the primary")]
    ReadOnly {
        /// Host and port.
        address: String,
    },
    /// The server has no memory left.
    #[error("the Redis server at {address} is at its maxmemory: raise it, or let the spider follow fewer links")]
    Full {
        /// Host and port.
        address: String,
    },
    /// The server may throw data away.
    #[error(
        "the Redis server at {address} throws keys away when its memory is full (maxmemory-policy {policy}): a frontier would \
         lose requests; set maxmemory-policy noeviction"
    )]
    Evicts {
        /// Host and port.
        address: String,
        /// The policy.
        policy: String,
    },
    /// The server is too old.
    #[error("the Redis server at {address} is version {found}; at least 6.2 is needed (Valkey: any)")]
    TooOld {
        /// Host and port.
        address: String,
        /// Its version.
        found: String,
    },
    /// There is no such job.
    #[error("the Redis server at {address} holds no job {job:?}")]
    NoSuchJob {
        /// Where.
        address: String,
        /// The job's id.
        job: String,
    },
    /// The job's keys are not ours.
    #[error("the Redis server at {address} holds {key:?}, which is no frontier of ours: use another job id or database")]
    Foreign {
        /// Host and port.
        address: String,
        /// The key.
        key: String,
    },
    /// The job was written by a later version.
    #[error("the frontier of job {job:?} has format {found}, this version knows up to {known}: use the version that wrote it")]
    Newer {
        /// The job's id.
        job: String,
        /// Its format.
        found: String,
        /// Ours.
        known: u32,
    },
    /// The job belongs to another spider.
    #[error("job {job:?} belongs to the spider {found:?}, this one is {spider:?}: use another job id")]
    OtherSpider {
        /// The job's id.
        job: String,
        /// Its spider.
        found: String,
        /// Ours.
        spider: String,
    },
    /// Another process joined under this worker's name.
    #[error("another process took over the place of worker {worker:?}: give each worker a name of its own")]
    WorkerTaken {
        /// The worker's name.
        worker: String,
    },
    /// The server does not know what this worker did last.
    #[error(
        "the Redis server at {address} has lost this job's last steps (restored from an older copy, or emptied): start the \
         worker again, it goes on from what the server knows; turn persistence on (appendonly yes, appendfsync always)"
    )]
    Rewound {
        /// Host and port.
        address: String,
    },
    /// A name that cannot be used.
    #[error("{what} {given:?} cannot be used: give 1 to 200 bytes")]
    Name {
        /// `the job id`, `the spider's name`, `the worker's name`.
        what: &'static str,
        /// What was given.
        given: String,
    },
    /// An answer that no script of ours gives.
    #[error("the Redis server at {address} gave an answer that cannot be read ({what})")]
    Reply {
        /// Host and port.
        address: String,
        /// What was expected.
        what: &'static str,
    },
    /// Anything else the server says.
    #[error("the Redis server at {address} refused: {reason}")]
    Refused {
        /// Host and port.
        address: String,
        /// The server's words.
        reason: String,
    },
}

impl RedisError {
    /// Whether it may be over in a while: then wait and give the same batch again.
    #[must_use]
    pub const fn is_transient(&self) -> bool {
        matches!(self, Self::Unreachable { .. } | Self::NotReady { .. } | Self::ReadOnly { .. } | Self::Full { .. })
    }
}

impl From<RedisError> for StoreError {
    fn from(error: RedisError) -> Self {
        Self::Io(error.to_string())
    }
}
