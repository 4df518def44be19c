//! The frontier at a Redis or Valkey server, shared by any number of workers.
//!
//! One [`RedisStore`] is one worker's place in one job. It collects what happened in a [`Batch`] and lets
//! the server do all of it in one atomic step ([`RedisStore::apply`]): one round trip, one Lua script, one answer
//! for each operation. The server's clock is the only one: times travel as spans. Nothing here waits for work, knows an
//! actor, or decides when to ask again; that is the fleet's business.
//!
//! **Exactly once.** A batch gets a number when it is first tried, and the server keeps the last number and answer of each
//! worker. A batch whose answer was lost is given again *unchanged*, and the answer comes from the server's memory if it had
//! been done. So after an error nothing is lost and nothing is doubled, as long as the batch is kept.
//!
//! A server that is killed may lose its last answers (`appendfsync everysec`). What it then holds is the job as it was a
//! moment ago, whole: what ended since is run again, and a worker goes on, unless it runs `start()` or `idle`, whose
//! cursor is ahead then: it has to start again. With `appendfsync always` nothing is lost.
//!
//! **Keys** all begin with `dragline:{JOB}:`, whose hash tag puts a job into one slot of a cluster:
//!
//! | key | kind | content |
//! |---|---|---|
//! | `meta` | hash | format, spider, state, cursors, claims, the running age |
//! | `jobs` | hash | id -> record of every pending request |
//! | `seen` | set | seen keys |
//! | `q:HOST`, `w:HOST` | zset | tags of what may go, and of what waits for a time |
//! | `hosts` | zset | hosts with queued work by the time they may have a request next |
//! | `h:HOST` | string | places, queue lengths, unsent request, delay clock; gone when nothing speaks for the host |
//! | `t:HOST`, `m:HOST` | string, list | the delay its answers led to; when requests of the last minute were sent |
//! | `gates`, `pauses` | zset | gated hosts by the end of the gate, and of what nobody lifts |
//! | `out`, `flight` | hash, zset | requests handed out: place and holder; the end of their visibility |
//! | `k:ID` | set | ids of the children queued for a request that is not settled |
//! | `dead`, `aside` | hash | id -> reason and record of what failed for good, or was set aside |
//! | `reasons` | hash | dead letters by reason |
//! | `returns` | hash | id -> workers in a row that were lost while they held it |
//! | `books`, `states` | hash | the books; small states of others |
//! | `beats`, `worker:NAME` | zset, hash | last sign of life; last batch, its answer, requests held |
//!
//! A **tag** is 28 bytes that sort as requests go: priority (turned round), age, id.

mod admin;
mod answer;
mod batch;
mod connection;
mod error;
mod keys;
mod options;
mod plain;
mod script;
mod server;
mod store;
#[cfg(test)]
pub(crate) mod tests;
mod url;

pub use self::admin::{Ended, HostRow, Kept, Page, RedisAdmin, Survey, WorkerRow};
pub use self::answer::{Answer, Applied, Claim, Leased, Place, View};
pub use self::batch::{Batch, Origin, PlaceFor};
pub use self::error::RedisError;
pub use self::options::{FleetState, Membership, RedisOptions};
pub use self::store::RedisStore;
pub use self::url::{RedisUrl, RedisUrlError};
