//! What the engine orders from the collector, and what the collector answers.

use serde_json::{Map, Value};

use crate::engine::ticket::Tag;
use crate::scheduler::job::{Outcome, RequestId};

/// Orders of the engine.
#[derive(Debug)]
pub enum Order {
    /// Keep this group: all of it or nothing survives a crash. Answered by `Kept`.
    Group(std::sync::Arc<Group>),
}

/// One atomic group of records.
#[derive(Debug, Clone)]
pub struct Group {
    /// The ticket that waits for it.
    pub tag: Tag,
    /// Which group of that ticket, from 0: a group that is ordered twice is written once.
    pub part: u32,
    /// Items as JSON objects in wire text form, without `_ts`.
    pub items: Vec<String>,
    /// Request records in wire text form.
    pub records: Vec<String>,
    /// The end of the request, if this group is its last.
    pub end: Option<End>,
}

/// The end of a request, as the record log keeps it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct End {
    /// Which request.
    pub request: RequestId,
    /// Its last attempt.
    pub attempt: u32,
    /// How it ended.
    pub outcome: Outcome,
}

/// Commands that never wait behind orders.
#[derive(Debug)]
pub enum Control {
    /// Ends up to here are settled in the frontier.
    Settled(Vec<RequestId>),
    /// The close may take no longer than this; a shorter limit of the settings holds.
    CloseWithin(std::time::Duration),
    /// The job's closing stats: cut what is open, deliver all, close the feeds, then say `Closed`.
    Close(Map<String, Value>),
    /// The courier has something to say.
    Courier(crate::courier::message::Report),
    /// Own timer: flush interval, sync, log ring.
    Tick,
}

/// Facts of the collector.
#[derive(Debug)]
pub enum Fact {
    /// These groups are written and survive a `kill -9`.
    Kept(Vec<(Tag, u32)>),
    /// The spool is at its bound, or the disk refuses writes: nothing is kept until it is not.
    Blocked {
        /// What a person reads.
        why: String,
    },
    /// Keeping goes on.
    Unblocked,
    /// The disk refused writes for longer than `DISK_WAIT`.
    GaveUp(String),
    /// The sink takes nothing any more, and the job is to stop for it.
    DeliveryStopped(String),
    /// Everything is closed.
    Closed(Closed),
}

/// What the collector leaves behind.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Closed {
    /// Items taken. Always `items == delivered + spooled + rejected`.
    pub items: u64,
    /// Items the sink has.
    pub delivered: u64,
    /// Items that are only in the spool.
    pub spooled: u64,
    /// Items the sink refused for good: they are put aside in the spool.
    pub rejected: u64,
    /// Records of any kind not delivered: in the spool or put aside there, those of an earlier run among them.
    pub undelivered_records: u64,
    /// Those of them that a later run can still send.
    pub left: u64,
    /// Items of an earlier run that the sink has now. Every other count of items is of this run alone.
    pub recovered: u64,
    /// Feeds: where, and how many items.
    pub feeds: Vec<(String, u64)>,
    /// Feeds that could not be written.
    pub feed_errors: Vec<String>,
}
