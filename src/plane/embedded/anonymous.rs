//! Anonymous leases: one identity for each host, without credential, limit, rest or ban; only counted.
//!
//! They cost next to nothing, since a crawl without identities has one for every request. Never reads the clock.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashMap, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use tokio::time::Instant;

use crate::plane::{About, Ask, Credential, Grant, IdentityKey, LeaseId, PlaneLedger, Rejected, Report, Taken};

/// The name of every host's anonymous identity; no identity of a file can have it.
pub(super) const ANONYMOUS: &str = "(anonymous)";

/// How long a lease lasts.
const TTL: Duration = Duration::from_secs(300);
/// Report ids remembered per open lease, to count a repeated report once.
const SEEN: usize = 1024;
/// What every lease's name begins with; those of the model begin otherwise.
const PREFIX: &str = "any_";

/// An open lease.
#[derive(Debug)]
struct Lease {
    expires_at: Instant,
    seen: VecDeque<u64>,
}

/// All open leases, and the ledger of all there were.
#[derive(Debug)]
pub(super) struct Anonymous {
    open: HashMap<u64, Lease>,
    /// Expiries; an entry whose lease is gone or was renewed is stale and skipped.
    due: BinaryHeap<Reverse<(Instant, u64)>>,
    prefix: String,
    ledger: PlaneLedger,
    /// Shared by every grant.
    name: Arc<str>,
    nothing: Arc<Credential>,
}

impl Anonymous {
    /// No leases; `instance` sets their names apart from those of an earlier run.
    pub(super) fn new(instance: u32) -> Self {
        Self {
            open: HashMap::new(),
            due: BinaryHeap::new(),
            prefix: format!("{PREFIX}{instance:08x}_"),
            ledger: PlaneLedger::default(),
            name: ANONYMOUS.into(),
            nothing: Arc::default(),
        }
    }

    /// Whether a lease is an anonymous one, of whatever run.
    pub(super) fn owns(lease: &LeaseId) -> bool {
        lease.0.starts_with(PREFIX)
    }

    /// Opens a lease.
    pub(super) fn grant(&mut self, ask: &Ask, now: Instant) -> Grant {
        self.sweep(now);
        self.ledger.acquired += 1;
        let number = self.ledger.acquired;
        let expires_at = now + TTL;
        self.open.insert(number, Lease { expires_at, seen: VecDeque::new() });
        self.watch(expires_at, number);
        Grant {
            lease: LeaseId(self.spelled(number).into()),
            identity: IdentityKey { site: Arc::clone(&ask.site), name: Arc::clone(&self.name) },
            credential: Arc::clone(&self.nothing),
            proxy: None,
            about: About::default(),
            expires_at,
            renew_before: TTL / 4,
        }
    }

    /// Takes a report, which may end its lease.
    pub(super) fn report(&mut self, report: &Report, taken: &mut Taken, now: Instant) {
        self.sweep(now);
        let lease = self.number(&report.lease).and_then(|number| Some((number, self.open.get_mut(&number)?)));
        let Some((number, lease)) = lease else {
            let reason = "lease is unknown or over".to_owned();
            taken.rejected.push(Rejected { id: report.id, is_unknown_lease: true, reason });
            return;
        };
        if lease.seen.contains(&report.id) {
            taken.duplicated += 1;
        } else {
            self.ledger.reports += 1;
            if !report.release {
                if lease.seen.len() == SEEN {
                    lease.seen.pop_front();
                }
                lease.seen.push_back(report.id);
            }
        }
        if report.release {
            self.end(number);
        }
    }

    /// Ends a lease; one that is over stays over.
    pub(super) fn release(&mut self, lease: &LeaseId, now: Instant) {
        self.sweep(now);
        if let Some(number) = self.number(lease) {
            self.end(number);
        }
    }

    /// Prolongs a lease to `now` and its whole time; `None` when it is not open.
    pub(super) fn renew(&mut self, lease: &LeaseId, now: Instant) -> Option<Instant> {
        self.sweep(now);
        let number = self.number(lease)?;
        let lease = self.open.get_mut(&number)?;
        let expires_at = now + TTL;
        if expires_at != lease.expires_at {
            lease.expires_at = expires_at;
            self.watch(expires_at, number);
        }
        Some(expires_at)
    }

    /// Ends the leases whose time is over.
    pub(super) fn sweep(&mut self, now: Instant) {
        while let Some(Reverse((at, number))) = self.due.peek().copied().filter(|Reverse((at, _))| *at <= now) {
            self.due.pop();
            if self.open.get(&number).is_some_and(|lease| lease.expires_at == at) {
                self.open.remove(&number);
                self.ledger.expired += 1;
            }
        }
    }

    /// The counts so far.
    pub(super) fn ledger(&self) -> PlaneLedger {
        PlaneLedger { open: self.open.len() as u64, ..self.ledger }
    }

    fn end(&mut self, number: u64) {
        if self.open.remove(&number).is_some() {
            self.ledger.released += 1;
        }
    }

    fn watch(&mut self, at: Instant, number: u64) {
        // Most leases are given back long before they expire: without this the heap would hold five minutes' worth.
        if self.due.len() >= 2 * self.open.len() + 64 {
            self.due = self.open.iter().map(|(number, lease)| Reverse((lease.expires_at, *number))).collect();
        }
        // After a rebuild the entry may be there already; the second is stale once the first has ended it.
        self.due.push(Reverse((at, number)));
    }

    fn spelled(&self, number: u64) -> String {
        const HEX: &[u8; 16] = b"0123456789abcdef";
        let mut name = String::with_capacity(self.prefix.len() + 16);
        name.push_str(&self.prefix);
        for shift in (0..16).rev() {
            let digit = (number >> (shift * 4)) & 0xf;
            name.push(HEX.get(usize::try_from(digit).unwrap_or(0)).map_or('0', |b| char::from(*b)));
        }
        name
    }

    /// The number in a name of this run; every other spelling is unknown.
    fn number(&self, lease: &LeaseId) -> Option<u64> {
        let digits = lease.0.strip_prefix(self.prefix.as_str())?;
        let canonical = digits.len() == 16 && digits.bytes().all(|b| matches!(b, b'0'..=b'9' | b'a'..=b'f'));
        if canonical { u64::from_str_radix(digits, 16).ok() } else { None }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing)]
    use super::*;
    use crate::plane::embedded::tests::{ask, report};

    #[tokio::test(start_paused = true)]
    async fn a_name_is_read_back_only_as_it_was_written() {
        let mut leases = Anonymous::new(0xa1);
        let lease = leases.grant(&ask("h", "/"), Instant::now()).lease;
        assert_eq!(&*lease.0, "any_000000a1_0000000000000001");
        for other in [
            "any_000000a1_1",
            "any_000000a2_0000000000000001",
            "any_000000a1_000000000000000A",
            "",
            "any_000000a1_+000000000000001",
        ] {
            leases.release(&LeaseId(other.into()), Instant::now());
            assert_eq!(leases.ledger().open, 1, "{other}");
        }
        leases.release(&lease, Instant::now());
        assert_eq!((leases.ledger().open, leases.ledger().released), (0, 1));
    }

    #[tokio::test(start_paused = true)]
    async fn released_leases_leave_nothing_behind() {
        let mut leases = Anonymous::new(0);
        let now = Instant::now();
        for _ in 0..10_000 {
            let lease = leases.grant(&ask("h", "/"), now).lease;
            leases.release(&lease, now);
        }
        assert!(leases.due.len() <= 66, "{}", leases.due.len());
    }

    #[tokio::test(start_paused = true)]
    async fn a_lease_renewed_often_expires_once() {
        let mut leases = Anonymous::new(0);
        let start = Instant::now();
        let lease = leases.grant(&ask("h", "/"), start).lease;
        for second in 1..500 {
            leases.renew(&lease, start + Duration::from_secs(second)).unwrap();
        }
        assert!(leases.due.len() <= 70, "{}", leases.due.len());
        let end = start + Duration::from_secs(499) + TTL;
        leases.sweep(end - Duration::from_millis(1));
        assert_eq!(leases.ledger().open, 1);
        leases.sweep(end);
        leases.sweep(end + TTL);
        assert_eq!(leases.ledger(), PlaneLedger { acquired: 1, expired: 1, ..PlaneLedger::default() });
        assert_eq!(leases.renew(&lease, end), None);
    }

    #[tokio::test(start_paused = true)]
    async fn a_repeated_report_counts_once_and_ends_its_lease_all_the_same() {
        let mut leases = Anonymous::new(0);
        let now = Instant::now();
        let lease = leases.grant(&ask("h", "/"), now).lease;
        let mut taken = Taken::default();
        for release in [false, false, true, true] {
            leases.report(&report(7, &lease, release), &mut taken, now);
        }
        assert_eq!((taken.duplicated, taken.rejected.len(), taken.rejected[0].is_unknown_lease), (2, 1, true));
        let counts = PlaneLedger { acquired: 1, released: 1, reports: 1, ..PlaneLedger::default() };
        assert_eq!(leases.ledger(), counts);
    }
}
