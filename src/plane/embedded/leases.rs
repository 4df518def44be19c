//! Leases: the open leases of the embedded plane, when each is over, and the ledger of all.
//!
//! Knows neither sites nor identities: what a lease holds is handed back when it ends. Never reads the clock.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashMap, VecDeque};
use std::time::Duration;

use tokio::time::Instant;

use crate::plane::{LeaseId, PlaneLedger};

/// Report ids remembered per open lease, to count a repeated report once.
const SEEN: usize = 1024;

/// A delay counts as this at most: the clock has an end, and a hint from outside may be any number.
const FAR: Duration = Duration::from_secs(365 * 24 * 60 * 60);

/// `delay` after `now`.
pub(super) fn after(now: Instant, delay: Duration) -> Instant {
    now.checked_add(delay.min(FAR)).unwrap_or(now)
}

/// What a lease keeps from others, as indexes of the plane's tables; anonymous leases keep nothing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Holding {
    pub(super) site: usize,
    pub(super) identity: usize,
    pub(super) group: usize,
    pub(super) proxy: Option<usize>,
}

/// An open lease.
#[derive(Debug)]
pub(super) struct Lease {
    pub(super) holding: Option<Holding>,
    pub(super) expires_at: Instant,
    ttl: Duration,
    seen: VecDeque<u64>,
}

/// How a report was taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Taken {
    /// For the first time.
    First(Option<Holding>),
    /// It was counted before.
    Again,
}

/// All open leases.
#[derive(Debug)]
pub(super) struct Leases {
    open: HashMap<u64, Lease>,
    /// Expiries; an entry whose lease is gone or was renewed is stale and skipped.
    due: BinaryHeap<Reverse<(Instant, u64)>>,
    prefix: String,
    ledger: PlaneLedger,
}

impl Leases {
    /// No leases; `instance` sets the ids apart from those of an earlier run.
    pub(super) fn new(instance: u32) -> Self {
        Self {
            open: HashMap::new(),
            due: BinaryHeap::new(),
            prefix: format!("lse_{instance:08x}_"),
            ledger: PlaneLedger::default(),
        }
    }

    /// Opens a lease until `now + ttl`.
    pub(super) fn open(&mut self, holding: Option<Holding>, ttl: Duration, now: Instant) -> (LeaseId, Instant) {
        self.ledger.acquired += 1;
        let number = self.ledger.acquired;
        let expires_at = after(now, ttl);
        self.open.insert(number, Lease { holding, expires_at, ttl, seen: VecDeque::new() });
        self.watch(expires_at, number);
        (LeaseId(self.name(number).into()), expires_at)
    }

    /// Takes one report; `None` when the lease is not open.
    pub(super) fn report(&mut self, lease: &LeaseId, report: u64) -> Option<Taken> {
        let number = self.number(lease)?;
        let lease = self.open.get_mut(&number)?;
        if lease.seen.contains(&report) {
            return Some(Taken::Again);
        }
        if lease.seen.len() == SEEN {
            lease.seen.pop_front();
        }
        lease.seen.push_back(report);
        self.ledger.reports += 1;
        Some(Taken::First(lease.holding))
    }

    /// Takes a report that ends its lease; `None` when the lease is not open.
    pub(super) fn report_last(&mut self, lease: &LeaseId, report: u64) -> Option<(Taken, Lease)> {
        let ended = self.release(lease)?;
        if ended.seen.contains(&report) {
            return Some((Taken::Again, ended));
        }
        self.ledger.reports += 1;
        Some((Taken::First(ended.holding), ended))
    }

    /// Ends a lease; `None` when it is not open.
    pub(super) fn release(&mut self, lease: &LeaseId) -> Option<Lease> {
        let number = self.number(lease)?;
        let ended = self.open.remove(&number)?;
        self.ledger.released += 1;
        Some(ended)
    }

    /// Prolongs a lease to `now` and its whole time, never shortens it; `None` when it is not open.
    pub(super) fn renew(&mut self, lease: &LeaseId, now: Instant) -> Option<Instant> {
        let number = self.number(lease)?;
        let lease = self.open.get_mut(&number)?;
        let expires_at = after(now, lease.ttl).max(lease.expires_at);
        if expires_at != lease.expires_at {
            lease.expires_at = expires_at;
            self.watch(expires_at, number);
        }
        Some(expires_at)
    }

    /// Ends one lease whose time is over at `now`, the earliest first.
    pub(super) fn expire(&mut self, now: Instant) -> Option<Lease> {
        loop {
            let Reverse((at, number)) = *self.due.peek()?;
            if at > now {
                return None;
            }
            self.due.pop();
            if self.open.get(&number).is_some_and(|lease| lease.expires_at == at) {
                self.ledger.expired += 1;
                return self.open.remove(&number);
            }
        }
    }

    /// The counts so far.
    pub(super) fn ledger(&self) -> PlaneLedger {
        PlaneLedger { open: self.open.len() as u64, ..self.ledger }
    }

    fn watch(&mut self, at: Instant, number: u64) {
        // Most leases are given back long before they expire: without this the heap would hold a ttl's worth.
        if self.due.len() >= 2 * self.open.len() + 64 {
            self.due = self.open.iter().map(|(number, lease)| Reverse((lease.expires_at, *number))).collect();
        }
        // After a rebuild the entry may be there already; the second is stale once the first has ended it.
        self.due.push(Reverse((at, number)));
    }

    fn name(&self, number: u64) -> String {
        const HEX: &[u8; 16] = b"0123456789abcdef";
        let mut name = String::with_capacity(self.prefix.len() + 16);
        name.push_str(&self.prefix);
        for shift in (0..16).rev() {
            let digit = (number >> (shift * 4)) & 0xf;
            name.push(HEX.get(usize::try_from(digit).unwrap_or(0)).map_or('0', |b| char::from(*b)));
        }
        name
    }

    /// The number in a name this plane made; every other spelling is unknown.
    fn number(&self, lease: &LeaseId) -> Option<u64> {
        let digits = lease.0.strip_prefix(self.prefix.as_str())?;
        let canonical = digits.len() == 16 && digits.bytes().all(|b| matches!(b, b'0'..=b'9' | b'a'..=b'f'));
        if canonical { u64::from_str_radix(digits, 16).ok() } else { None }
    }

    #[cfg(test)]
    pub(super) fn watched(&self) -> usize {
        self.due.len()
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing)]
    use super::*;

    const TTL: Duration = Duration::from_secs(300);

    #[tokio::test(start_paused = true)]
    async fn a_name_is_read_back_only_as_it_was_written() {
        let mut leases = Leases::new(0xa1);
        let (id, _) = leases.open(None, TTL, Instant::now());
        assert_eq!(&*id.0, "lse_000000a1_0000000000000001");
        for other in [
            "lse_000000a1_1",
            "lse_000000a2_0000000000000001",
            "lse_000000a1_000000000000000A",
            "",
            "lse_000000a1_+000000000000001",
        ] {
            assert!(leases.release(&LeaseId(other.into())).is_none(), "{other}");
        }
        assert!(leases.release(&id).is_some());
    }

    #[tokio::test(start_paused = true)]
    async fn released_leases_leave_nothing_behind() {
        let mut leases = Leases::new(0);
        let now = Instant::now();
        for _ in 0..10_000 {
            let (id, _) = leases.open(None, TTL, now);
            leases.release(&id).unwrap();
        }
        assert!(leases.watched() <= 66, "{}", leases.watched());
    }

    #[tokio::test(start_paused = true)]
    async fn a_lease_renewed_often_expires_once() {
        let mut leases = Leases::new(0);
        let start = Instant::now();
        let (id, _) = leases.open(None, TTL, start);
        for second in 1..500 {
            leases.renew(&id, start + Duration::from_secs(second)).unwrap();
        }
        assert!(leases.watched() <= 70, "{}", leases.watched());
        let end = start + Duration::from_secs(499) + TTL;
        assert!(leases.expire(end - Duration::from_millis(1)).is_none());
        assert_eq!(leases.expire(end).unwrap().expires_at, end);
        assert!(leases.expire(end + TTL).is_none());
        assert_eq!(leases.ledger(), PlaneLedger { acquired: 1, released: 0, expired: 1, open: 0, reports: 0, cooled: 0 });
    }
}
