//! A frontier without an engine, for measuring what it takes to know many hosts.

use std::time::Duration;

use tokio::time::Instant;

use crate::api::stats::Stats;
use crate::engine::message::Fact;
use crate::reach::Reach;
use crate::scheduler::host_pages::HostPages;
use crate::scheduler::job::{Books, Job, Outcome, RequestId, SlotKey};
use crate::scheduler::message::{Order, Pacing};
use crate::scheduler::store::Store;
use crate::scheduler::{Clock, Frontier, SchedulerConfig};
use crate::settings::PrivateAddresses;

/// A frontier with its slots and a store, driven by hand: no delay, no robots.txt, no limit of the scope.
#[derive(Debug)]
pub struct KnownHosts {
    frontier: Frontier,
    offers: u64,
    pulls: u64,
    granted: u64,
}

impl KnownHosts {
    /// A frontier over `store` whose hosts have so many places each.
    #[must_use]
    pub fn new(store: Box<dyn Store>, per_host: usize) -> Self {
        let config = SchedulerConfig {
            allowed_domains: Vec::new(),
            depth_limit: 0,
            url_length_limit: 0,
            segment_repeats_limit: 0,
            host_pages: HostPages::default(),
            reach: Reach::of(PrivateAddresses::Allow),
            pacing: Pacing { per_slot: per_host, ..Pacing::default() },
            robots_agent: None,
            seeds_stop_at: usize::MAX,
            max_bytes: usize::MAX,
            returns_offsite: false,
            counts_depths: false,
            disk_wait: Duration::from_secs(60),
            seed: 1,
        };
        let now = Instant::now();
        let frontier = Frontier::new(config, store, Stats::new(), Clock::start(now), now);
        Self { frontier, offers: 0, pulls: 0, granted: 0 }
    }

    /// Offers requests and ends the turn; how many were queued.
    pub fn offer(&mut self, jobs: Vec<Job>) -> u64 {
        self.offers += 1;
        let offer = self.offers;
        let facts = self.turn(Order::Offer { offer, jobs, seeds: false });
        facts.iter().map(|fact| if let Fact::Accepted(accepted) = fact { accepted.stored } else { 0 }).sum()
    }

    /// Lets `most` more requests go and ends the turn; those that went.
    pub fn pull(&mut self, most: u64) -> Vec<(SlotKey, RequestId)> {
        self.pulls += 1;
        self.granted += most;
        let (seq, upto) = (self.pulls, self.granted);
        went(self.turn(Order::Pull { seq, upto }))
    }

    /// Settles requests as handled, gives their places back, and ends the turn; those that could go by that.
    pub fn settle(&mut self, done: Vec<(SlotKey, RequestId)>) -> Vec<(SlotKey, RequestId)> {
        let now = Instant::now();
        for (slot, id) in done {
            self.frontier.order(Order::Settle { id, outcome: Outcome::Handled }, now);
            self.frontier.order(Order::Freed { id, slot, unsent: false }, now);
        }
        went(self.frontier.turn(now).facts)
    }

    /// The books.
    #[must_use]
    pub fn books(&self) -> Books {
        self.frontier.books()
    }

    fn turn(&mut self, order: Order) -> Vec<Fact> {
        let now = Instant::now();
        self.frontier.order(order, now);
        self.frontier.turn(now).facts
    }
}

fn went(facts: Vec<Fact>) -> Vec<(SlotKey, RequestId)> {
    let ready = facts.into_iter().filter_map(|fact| if let Fact::Ready(ready) = fact { Some(ready.jobs) } else { None });
    ready.flatten().map(|due| (due.slot, due.job.id)).collect()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use crate::scheduler::MemoryStore;
    use crate::scheduler::testing::job;

    #[test]
    fn requests_go_as_far_as_their_hosts_have_places_and_are_settled() {
        let mut hosts = KnownHosts::new(Box::new(MemoryStore::new(usize::MAX)), 1);
        let jobs = (0..6).map(|n| job(n, &format!("https://{}.test/{n}", n % 3))).collect();
        assert_eq!(hosts.offer(jobs), 6);
        let first = hosts.pull(9);
        assert_eq!(first.len(), 3);
        let second = hosts.settle(first);
        assert_eq!(second.len(), 3, "there was credit left");
        assert!(hosts.settle(second).is_empty());
        let books = hosts.books();
        assert_eq!((books.handled, books.pending, books.balances()), (6, 0, true));
    }
}
