//! The record log: an append-only spool of everything that must reach the sink.
//!
//! A directory holds segments `seg-<first sequence number>.log` and a lock file. Format version 2, all numbers
//! little-endian:
//!
//! ```text
//! segment header, 48 bytes
//!   "DRGL"  version u8  zero [u8; 3]  first_seq u64  after_seq u64  job_hash u64  log_id u64  xxh3-64 u64
//! frame, 21 bytes and the payload
//!   length u32  kind u8  seq u64  payload [u8; length]  xxh3-64 u64
//! ```
//!
//! `after_seq` is the last number before this segment, which makes a segment that vanished visible. `length` counts
//! the payload; a checksum covers everything before it in its header or frame. Bit 7 of `kind` marks the last frame of a
//! group: frames after the last marked one never happened. Numbers rise by one from frame to frame, but behind a gap;
//! between segments they may jump, because a number that could have been used before a crash is not given out again.
//!
//! | kind | payload |
//! | --- | --- |
//! | 1 item, 2 request, 3 log, 4 stats | the record's wire text |
//! | 5 end | request id u128, attempt u32, outcome u8 |
//! | 6 cut | batch id u128, first u64, last u64 |
//! | 7 delivered | batch id u128, last u64 |
//! | 8 settled | every end up to this number is settled: u64 |
//! | 9 part | batch id u128, first place u32, last place u32, fate u8: 0 delivered, 1 rejected |
//! | 10 gap | the numbers from this frame's up to this one are gone: u64; no larger one was written then than: u64 |
//!
//! Version 1 had no kinds 9 and 10 and is read as ever; it is never appended to, since every opening begins a segment
//! of its own. The number went up because a program of version 1 would take them for damage: it refuses version 2 by name
//! and changes nothing. Every later version keeps magic, version and the checksum over the first 40 bytes at their
//! places, so a version that cannot be read is never mistaken for damage, nor damage for a version.
//!
//! `log_id` is drawn at every opening. It is part of every batch id, so that neither a second run of a job with an
//! empty directory nor one that lost the end of the log to damage repeats an id the sink knows with other content.
//! A batch keeps its id, because its cut is in the log before it is first sent.
//!
//! **Damage.** What an interrupted write leaves at the end of the newest segment was never kept and is cut off. Any
//! other place that does not read costs only what lies in it: the segment is set aside as `<name>.damaged` and
//! replaced by one that holds every frame that checks, with gaps for the numbers that are gone. Groups that lost a
//! part keep the rest: after a loss records count more than their group. A cut gives the
//! records that are left, under another id that is the same at every opening: places in it have moved, so parts the
//! sink may know are no longer parts of it. Records whose cut is gone get a new batch; if the sink had them and the mark of that is gone too,
//! it gets them twice.
//!
//! After a restart: settle [`Recovered::ends`] in the frontier; send each of [`Recovered::cuts`] again as it was cut
//! ([`RecordLog::read`] gives its records), less [`Recovered::parts`]; give the records of [`Recovered::uncut`] to a
//! new batcher.

mod books;
mod entry;
mod error;
mod frame;
mod reader;
mod record_log;
mod recover;
mod salvage;
mod segment;
mod survey;
#[cfg(test)]
mod tests;

pub use entry::{BatchId, Cut, End, Entry, Fate, Part, SeqRange};
pub use error::LogError;
pub use reader::LogReader;
pub use record_log::{LogOptions, RecordLog};
pub use recover::{Damage, Missing, Recovered, TornTail};
