//! Plan: which threads a run has, from the processors this process may use.
//!
//! A pure table. The hub keeps a thread to itself as soon as there are two processors, and callbacks never
//! run on the hub's thread: a stuck one would stop the watchdog that has to notice it.

use std::num::NonZero;

/// The threads of one run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Plan {
    /// The hub's thread drives the sockets as well; then no network runtime is started.
    pub hub_shares_network: bool,
    /// The collector runs on the hub's thread; the courier then has a thread of its own.
    pub delivery_on_hub: bool,
    /// Worker threads of the network runtime, at least 1; unused when the hub shares its thread.
    pub network_workers: usize,
    /// Threads that run callbacks, at least 1.
    pub parse_threads: usize,
}

impl Plan {
    /// The plan for `n` processors; 0 counts as 1.
    ///
    /// One processor: hub, network and collector share a thread. Two: one thread for each role. More: one
    /// hub, one delivery, a quarter of them for the network, the rest for callbacks.
    #[must_use]
    pub const fn for_processors(n: usize) -> Self {
        if n <= 1 {
            return Self { hub_shares_network: true, delivery_on_hub: true, network_workers: 1, parse_threads: 1 };
        }
        let network_workers = if n < 4 { 1 } else { n / 4 };
        let rest = n.saturating_sub(2 + network_workers);
        Self {
            hub_shares_network: false,
            delivery_on_hub: false,
            network_workers,
            parse_threads: if rest == 0 { 1 } else { rest },
        }
    }

    /// The plan for the processors this process may use, as affinity and cgroup quota allow; 1 if unknown.
    #[must_use]
    pub fn current() -> Self {
        Self::for_processors(std::thread::available_parallelism().map_or(1, NonZero::get))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_plan_follows_the_processors() {
        // (processors, shared, delivery on hub, network, parse)
        let table = [
            (0, true, true, 1, 1),
            (1, true, true, 1, 1),
            (2, false, false, 1, 1),
            (3, false, false, 1, 1),
            (4, false, false, 1, 1),
            (6, false, false, 1, 3),
            (8, false, false, 2, 4),
            (16, false, false, 4, 10),
            (64, false, false, 16, 46),
        ];
        for (n, hub_shares_network, delivery_on_hub, network_workers, parse_threads) in table {
            let expected = Plan { hub_shares_network, delivery_on_hub, network_workers, parse_threads };
            assert_eq!(Plan::for_processors(n), expected, "{n} processors");
        }
    }

    #[test]
    fn from_four_processors_on_there_is_one_thread_for_each() {
        for n in 4..200 {
            let plan = Plan::for_processors(n);
            assert_eq!(2 + plan.network_workers + plan.parse_threads, n);
        }
    }
}
