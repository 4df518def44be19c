//! Counts of what was asked: all requests by status, and the first [`STATS_PATHS`] addresses one by one.
//!
//! Requests that the server itself turns away (too long, too large, no HTTP) and addresses under `/__` are not counted.
//! Memory is bounded: later addresses, and those longer than [`STATS_LONGEST`] bytes, are counted together as `elsewhere`.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Mutex, MutexGuard, PoisonError};

use serde_json::{Map, Value, json};

/// How many addresses are counted one by one.
pub const STATS_PATHS: usize = 20_000;

/// The longest address, in bytes, that is counted on its own.
pub const STATS_LONGEST: usize = 512;

#[derive(Debug, Default)]
struct Counts {
    requests: u64,
    by_status: BTreeMap<u16, u64>,
    /// Each address with its statuses; nearly always one or two.
    paths: HashMap<Box<str>, Vec<(u16, u64)>>,
    elsewhere: u64,
}

/// The counters of one running site.
#[derive(Debug, Default)]
pub(crate) struct Stats {
    counts: Mutex<Counts>,
}

impl Stats {
    /// Counts one answer. `target` is the path with its query.
    pub(crate) fn count(&self, target: &str, status: u16) {
        let mut counts = self.lock();
        counts.requests += 1;
        *counts.by_status.entry(status).or_default() += 1;
        if let Some(statuses) = counts.paths.get_mut(target) {
            match statuses.iter_mut().find(|(known, _)| *known == status) {
                Some((_, number)) => *number += 1,
                None => statuses.push((status, 1)),
            }
        } else if counts.paths.len() < STATS_PATHS && target.len() <= STATS_LONGEST {
            counts.paths.insert(target.into(), vec![(status, 1)]);
        } else {
            counts.elsewhere += 1;
        }
    }

    /// All counters as the JSON of `/__stats`, addresses in order.
    pub(crate) fn to_json(&self) -> Value {
        let counts = self.lock();
        let statuses = |pairs: &mut dyn Iterator<Item = (u16, u64)>| -> Map<String, Value> {
            pairs.map(|(status, number)| (status.to_string(), json!(number))).collect()
        };
        let mut paths: Vec<(&str, Value)> = Vec::with_capacity(counts.paths.len());
        for (path, by_status) in &counts.paths {
            let number: u64 = by_status.iter().map(|(_, number)| number).sum();
            let mut by_status = by_status.clone();
            by_status.sort_unstable();
            paths.push((path, json!({"count": number, "statuses": statuses(&mut by_status.into_iter())})));
        }
        paths.sort_unstable_by_key(|(path, _)| *path);
        json!({
            "requests": counts.requests,
            "by_status": statuses(&mut counts.by_status.iter().map(|(status, number)| (*status, *number))),
            "paths": paths.into_iter().map(|(path, value)| (path.to_owned(), value)).collect::<Map<_, _>>(),
            "elsewhere": counts.elsewhere,
            "note": format!("the first {STATS_PATHS} addresses of at most {STATS_LONGEST} bytes are counted one by one, all others together as elsewhere"),
        })
    }

    fn lock(&self) -> MutexGuard<'_, Counts> {
        // Counters stay usable whatever happened to a thread that held them.
        self.counts.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing)]
    use super::*;

    #[test]
    fn an_address_is_counted_with_each_of_its_statuses() {
        let stats = Stats::default();
        for status in [503, 200, 200] {
            stats.count("/a?b=1", status);
        }
        let json = stats.to_json();
        assert_eq!(json["paths"]["/a?b=1"], json!({"count": 3, "statuses": {"200": 2, "503": 1}}));
        assert_eq!(json["by_status"], json!({"200": 2, "503": 1}));
        assert_eq!((json["requests"].as_u64(), json["elsewhere"].as_u64()), (Some(3), Some(0)));
    }

    #[test]
    fn addresses_beyond_the_bound_are_counted_together() {
        let stats = Stats::default();
        for number in 0..STATS_PATHS + 5 {
            stats.count(&format!("/{number}"), 200);
        }
        stats.count("/0", 200);
        stats.count(&"x".repeat(STATS_LONGEST + 1), 404);
        let json = stats.to_json();
        assert_eq!(json["elsewhere"], 6);
        assert_eq!(json["paths"].as_object().unwrap().len(), STATS_PATHS);
        assert_eq!(json["requests"].as_u64(), Some(STATS_PATHS as u64 + 7));
    }
}
