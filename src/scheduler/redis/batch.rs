//! A batch: what happened at a worker since the last one, in order, to be done at the server in one step.
//!
//! It is written straight in the server's protocol (RESP bulk strings), so that a job is copied once.

use std::io::Write;
use std::time::Duration;

use super::options::FleetState;
use crate::scheduler::job::{Job, JobKind, Outcome, RequestId, SlotKey, host_of};
use crate::scheduler::record;
use crate::scheduler::store::Cursors;

/// The longest time that is kept exactly as microseconds in a Lua number (140 years).
const LONGEST: Duration = Duration::from_micros(1 << 52);

/// Operations for one step of the server.
///
/// After a failed [`super::RedisStore::apply`] it is kept and given again unchanged; what happens meanwhile goes
/// into another batch.
#[derive(Debug, Default)]
pub struct Batch {
    /// Its number, once it was tried.
    pub(super) number: Option<u64>,
    kinds: Vec<Kind>,
    /// The arguments, as bulk strings.
    wire: Vec<u8>,
    args: usize,
    /// The requests it is about, as bulk strings, so that the server reads them at once.
    about: Vec<u8>,
    about_count: usize,
    record: Vec<u8>,
}

/// Who makes the requests of an offer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Origin {
    /// A callback of the requests' parent, which this worker holds. When it does not hold it any more, they count as repeated:
    /// whoever runs the parent again makes them again.
    Callback,
    /// `start()`, which this worker runs: with this offer, `cursor` of its requests are taken in or filtered.
    Start {
        /// The cursor after this offer.
        cursor: u64,
    },
    /// `idle`, which this worker runs; likewise.
    Idle {
        /// The cursor after this offer.
        cursor: u64,
    },
}

/// What a request that is out needs a place for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PlaceFor {
    /// A redirect within its host: it obeys delay and gate, and goes before queued requests.
    Hop,
    /// A robots.txt request: it obeys the gate, and no delay.
    Robots,
}

/// What an operation answers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    Offer,
    Pull,
    Place,
    Heard,
    Renew,
    Lease,
    ClaimStart,
    ClaimIdle,
    FinishStart,
    FinishIdle,
    Count,
    Other,
}

impl Batch {
    /// An empty batch.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Operations in it.
    #[must_use]
    pub fn len(&self) -> usize {
        self.kinds.len()
    }

    /// Whether nothing is in it.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.kinds.is_empty()
    }

    /// Bytes in it. The server does nothing else while it does a batch: past 1 MiB it should go.
    #[must_use]
    pub fn bytes(&self) -> usize {
        self.wire.len()
    }

    /// Whether it was tried: then nothing may be added.
    #[must_use]
    pub const fn is_tried(&self) -> bool {
        self.number.is_some()
    }

    /// Takes requests in, as [`crate::scheduler::store::Store::offer`] does. A request that is pending under the same id
    /// counts as repeated. Answered by [`super::Answer::Offered`], [`super::Answer::Full`] or [`super::Answer::NotClaimed`].
    pub fn offer(&mut self, jobs: &[Job], origin: Origin) {
        self.offer_of(jobs, Some(origin));
    }

    /// [`Self::offer`] by whomever.
    pub(super) fn offer_plain(&mut self, jobs: &[Job]) {
        self.offer_of(jobs, None);
    }

    fn offer_of(&mut self, jobs: &[Job], origin: Option<Origin>) {
        self.begin(b'O', Kind::Offer);
        match origin {
            None => self.text("").number_arg(0),
            Some(Origin::Callback) => self.text("page").number_arg(0),
            Some(Origin::Start { cursor }) => self.text("start").number_arg(cursor),
            Some(Origin::Idle { cursor }) => self.text("idle").number_arg(cursor),
        };
        self.number_arg(u64::try_from(jobs.len()).unwrap_or(u64::MAX));
        for job in jobs {
            let unfiltered = u64::from(job.request.is_unfiltered());
            self.arg(&job.key.to_be_bytes()).number_arg(unfiltered + 2 * u64::from(job.request.keeps_lease()));
            match job.parent {
                Some(parent) => self.id(parent),
                None => self.text(""),
            };
            self.job(job, Duration::ZERO);
        }
    }

    /// Takes a request in as one that is handed out to this worker already (robots.txt). When this worker is lost, it is
    /// settled as dropped, since nobody else waits for it; so its id must be of this worker alone.
    pub fn admit(&mut self, job: &Job) {
        self.begin(b'A', Kind::Other);
        self.text(if job.kind == JobKind::Robots { "r" } else { "p" }).job(job, Duration::ZERO);
    }

    /// Puts a request of this worker back with what changed in it, to go after `delay` at the earliest. Its place is freed.
    pub fn put_back(&mut self, job: &Job, delay: Duration) {
        self.put_back_at(job, delay, true);
    }

    /// [`Self::put_back`] with a time from now (`relative`) or since the epoch.
    pub(super) fn put_back_at(&mut self, job: &Job, time: Duration, relative: bool) {
        self.begin(b'B', Kind::Other);
        self.about(job.id).text(if relative { "+" } else { "=" }).time(time).job(job, time);
    }

    /// Notes what a request of this worker has become: it comes back as this if the worker is lost, and this is its dead
    /// letter. With another host its place is freed.
    pub fn replace(&mut self, job: &Job) {
        self.begin(b'H', Kind::Other);
        self.about(job.id).job(job, Duration::ZERO);
    }

    /// [`Self::replace`] by a redirect's target, which is marked as seen. [`super::Answer::Done`] is false when it was seen
    /// before: then the request stays as it was. Of a request that is not this worker's (any more) nothing is marked, and the
    /// answer is true: asking for a place says that it is lost.
    pub fn follow(&mut self, job: &Job) {
        self.begin(b'K', Kind::Other);
        self.about(job.id).arg(&job.key.to_be_bytes()).job(job, Duration::ZERO);
    }

    /// Gives a request of this worker back as it is, to its old place in the queue, to go after `delay` at the earliest. Its
    /// place is freed.
    pub fn give_back(&mut self, id: RequestId, delay: Duration) {
        self.begin(b'R', Kind::Other);
        self.own(id).time(delay);
    }

    /// Ends a request of this worker: one that failed becomes a dead letter, one set aside is kept as such.
    pub fn settle(&mut self, id: RequestId, outcome: Outcome) {
        self.begin(b'S', Kind::Other);
        let (class, reason) = match outcome {
            Outcome::Handled => ("handled", ""),
            Outcome::Failed(kind) => ("failed", kind.name()),
            Outcome::Dropped(kind) => ("dropped", kind.name()),
            Outcome::SetAside => ("set_aside", ""),
        };
        self.own(id).text(class).text(reason);
    }

    /// Marks a key as seen; [`super::Answer::Done`] is false when it was seen before.
    pub fn mark_seen(&mut self, key: u128) {
        self.begin(b'M', Kind::Other);
        self.arg(&key.to_be_bytes());
    }

    /// A request was sent to the host, `ago` before this call: the host's delay, `pause` with its jitter, counts from there, also
    /// when the request is this worker's no more. Where the server found a delay by the host's answers, that one counts, times
    /// `factor`.
    pub fn sent(&mut self, host: &SlotKey, id: RequestId, ago: Duration, pause: Duration, factor: f64) {
        self.begin(b'T', Kind::Other);
        self.text(&host.0).own(id).time_down(ago).time(pause).number_arg(millionths(factor));
    }

    /// The host answered with this status, `latency` after the request was sent, which was `ago` before this call: for its
    /// throttle. Answered by [`super::Answer::Throttled`].
    pub fn heard(&mut self, host: &SlotKey, status: u16, latency: Duration, ago: Duration) {
        self.begin(b'J', Kind::Heard);
        self.text(&host.0).number_arg(u64::from(status)).time(latency).time_down(ago);
    }

    /// A request of this worker gives its place back; one that was not sent costs its host no delay.
    pub fn freed(&mut self, id: RequestId) {
        self.begin(b'F', Kind::Other);
        self.own(id);
    }

    /// Nothing of the host goes for `how_long`, over the whole fleet; the later end of two holds.
    pub fn gate(&mut self, host: &SlotKey, how_long: Duration) {
        self.begin(b'G', Kind::Other);
        self.text(&host.0).text("+").time(how_long);
    }

    /// [`Self::gate`] until a time since the epoch.
    pub(super) fn gate_until(&mut self, host: &SlotKey, until: Duration) {
        self.begin(b'G', Kind::Other);
        self.text(&host.0).text("=").time(until);
    }

    /// [`Self::gate`] that nobody lifts.
    pub fn pause(&mut self, host: &SlotKey, how_long: Duration) {
        self.begin(b'g', Kind::Other);
        self.text(&host.0).time(how_long);
    }

    /// Ends the host's gate.
    pub fn lift(&mut self, host: &SlotKey) {
        self.begin(b'L', Kind::Other);
        self.text(&host.0);
    }

    /// robots.txt of the host asks for this delay: it is the least over the whole fleet while the host has work. The largest
    /// told holds.
    pub fn crawl_delay(&mut self, host: &SlotKey, delay: Duration) {
        self.begin(b'D', Kind::Other);
        self.text(&host.0).time(delay);
    }

    /// Asks for a place for a request of this worker: [`super::Answer::Place`]. A place it had is freed first.
    pub fn place(&mut self, id: RequestId, what_for: PlaceFor) {
        self.begin(b'P', Kind::Place);
        self.own(id).text(match what_for {
            PlaceFor::Hop => "hop",
            PlaceFor::Robots => "robots",
        });
    }

    /// Lets requests of this worker belong to it for the visibility from now on: [`super::Answer::Lost`].
    pub fn renew(&mut self, ids: impl ExactSizeIterator<Item = RequestId>) {
        self.begin(b'N', Kind::Renew);
        self.number_arg(u64::try_from(ids.len()).unwrap_or(u64::MAX));
        for id in ids {
            self.own(id);
        }
    }

    /// Asks for up to `max` requests that may go now: [`super::Answer::Leased`]. Hosts take turns, the one served longest ago
    /// first; within a host the highest priority goes first, and the oldest of those. Work of lost workers is returned
    /// before.
    pub fn lease(&mut self, max: usize) {
        self.begin(b'Q', Kind::Lease);
        self.number_arg(u64::try_from(max).unwrap_or(u64::MAX).min(10_000));
    }

    /// Asks for running `start()`: [`super::Answer::Claim`].
    pub fn claim_start(&mut self) {
        self.begin(b'Z', Kind::ClaimStart);
        self.text("start");
    }

    /// `start()`, which this worker runs, has no more requests.
    pub fn finish_start(&mut self) {
        self.begin(b'z', Kind::FinishStart);
        self.text("start");
    }

    /// Asks for running `idle`, if it is the time for it: [`super::Answer::Claim`].
    pub fn claim_idle(&mut self) {
        self.begin(b'Z', Kind::ClaimIdle);
        self.text("idle");
    }

    /// `idle`, which this worker runs, has returned and its requests are offered.
    pub fn finish_idle(&mut self) {
        self.begin(b'z', Kind::FinishIdle);
        self.text("idle");
    }

    /// Ends the job: done only when nothing is pending, `start()` is finished and nobody else runs `idle`.
    pub fn conclude(&mut self) {
        self.begin(b'E', Kind::Other);
    }

    /// Lets the whole job run, pause or stop.
    pub fn set_state(&mut self, state: FleetState) {
        self.begin(b'W', Kind::Other);
        self.text(state.name());
    }

    /// Keeps a small state under a name.
    pub fn save(&mut self, name: &str, state: &[u8]) {
        self.begin(b'V', Kind::Other);
        self.text(name).arg(state);
    }

    /// This worker leaves: what it holds goes back to its place in the queue, what it runs (`start()`, `idle`) is for others.
    pub fn leave(&mut self) {
        self.begin(b'Y', Kind::Count);
    }

    /// Everything this worker holds goes back to its place; nothing else changes.
    pub(super) fn recover(&mut self) {
        self.begin(b'X', Kind::Count);
    }

    /// [`crate::scheduler::store::Store::pull`].
    pub(super) fn pull(&mut self, host: &SlotKey, now: Duration) {
        self.begin(b'U', Kind::Pull);
        self.text(&host.0).time_down(now);
    }

    /// [`crate::scheduler::store::Store::advance`].
    pub(super) fn advance(&mut self, to: Cursors) {
        self.begin(b'C', Kind::Other);
        self.number_arg(to.start).number_arg(to.idle);
    }

    pub(super) fn kinds(&self) -> &[Kind] {
        &self.kinds
    }

    /// The arguments as bulk strings, and their number.
    pub(super) fn wire(&self) -> (&[u8], usize) {
        (&self.wire, self.args)
    }

    /// The requests it is about as bulk strings, and their number.
    pub(super) fn requests(&self) -> (&[u8], usize) {
        (&self.about, self.about_count)
    }

    fn begin(&mut self, operation: u8, kind: Kind) {
        debug_assert!(!self.is_tried(), "a batch that was tried is given again as it is");
        self.kinds.push(kind);
        self.arg(&[operation]);
    }

    fn job(&mut self, job: &Job, not_before: Duration) {
        let mut record = std::mem::take(&mut self.record);
        record.clear();
        record::encode(job, not_before, &mut record);
        let host = host_of(job.url());
        self.id(job.id).text(host).arg(&rank(job.request.priority_value())).arg(&record);
        self.record = record;
    }

    fn arg(&mut self, bytes: &[u8]) -> &mut Self {
        self.args += 1;
        bulk(&mut self.wire, bytes);
        self
    }

    fn text(&mut self, text: &str) -> &mut Self {
        self.arg(text.as_bytes())
    }

    fn id(&mut self, id: RequestId) -> &mut Self {
        self.arg(&id.0.to_be_bytes())
    }

    /// A request that should be this worker's.
    fn own(&mut self, id: RequestId) -> &mut Self {
        self.about(id).id(id)
    }

    fn about(&mut self, id: RequestId) -> &mut Self {
        bulk(&mut self.about, &id.0.to_be_bytes());
        self.about_count += 1;
        self
    }

    fn number_arg(&mut self, number: u64) -> &mut Self {
        self.args += 1;
        number_bulk(&mut self.wire, number);
        self
    }

    /// A time or span in microseconds, not shortened.
    fn time(&mut self, time: Duration) -> &mut Self {
        let nanos = time.min(LONGEST).as_nanos();
        self.number_arg(u64::try_from(nanos.div_ceil(1_000)).unwrap_or(u64::MAX))
    }

    /// A time or span in microseconds, not lengthened.
    fn time_down(&mut self, time: Duration) -> &mut Self {
        self.number_arg(u64::try_from(time.min(LONGEST).as_micros()).unwrap_or(u64::MAX))
    }
}

/// A priority as bytes that sort the highest first.
pub(super) fn rank(priority: i32) -> [u8; 4] {
    (!(priority.cast_unsigned() ^ 0x8000_0000)).to_be_bytes()
}

/// Writes a bulk string.
pub(super) fn bulk(wire: &mut Vec<u8>, bytes: &[u8]) {
    head(wire, b'$', u64::try_from(bytes.len()).unwrap_or(u64::MAX));
    wire.extend_from_slice(bytes);
    wire.extend_from_slice(b"\r\n");
}

/// Writes a number as a bulk string.
pub(super) fn number_bulk(wire: &mut Vec<u8>, number: u64) {
    head(wire, b'$', u64::from(number.checked_ilog10().unwrap_or(0)) + 1);
    write_number(wire, number);
}

/// Writes the head of a bulk string or of an array.
pub(super) fn head(wire: &mut Vec<u8>, sign: u8, number: u64) {
    wire.push(sign);
    write_number(wire, number);
}

fn write_number(wire: &mut Vec<u8>, number: u64) {
    // A vector takes everything.
    let _ = write!(wire, "{number}\r\n");
}

/// A number that is not negative, in millionths.
#[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "within 0 and 2^52")]
pub(super) fn millionths(number: f64) -> u64 {
    (number * 1e6).round().clamp(0.0, 4_503_599_627_370_496.0) as u64
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn ranks_sort_the_highest_priority_first(a: i32, b: i32) {
            prop_assert_eq!(rank(a).cmp(&rank(b)), b.cmp(&a));
        }
    }

    #[test]
    fn arguments_are_written_as_the_protocol_has_them() {
        let mut batch = Batch::new();
        batch.mark_seen(1);
        batch.lease(0);
        batch.lease(9_999);
        batch.sent(&SlotKey("a".into()), RequestId(0), Duration::from_nanos(1_999), Duration::from_nanos(1_001), 1.25);
        let mut expected = b"$1\r\nM\r\n$16\r\n".to_vec();
        expected.extend_from_slice(&1_u128.to_be_bytes());
        expected.extend_from_slice(b"\r\n$1\r\nQ\r\n$1\r\n0\r\n$1\r\nQ\r\n$4\r\n9999\r\n$1\r\nT\r\n$1\r\na\r\n$16\r\n");
        expected.extend_from_slice(&[0; 16]);
        expected.extend_from_slice(b"\r\n$1\r\n1\r\n$1\r\n2\r\n$7\r\n1250000\r\n");
        assert_eq!(batch.wire(), (&expected[..], 12));
        assert_eq!(batch.len(), 4);
    }
}
