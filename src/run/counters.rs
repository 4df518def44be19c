//! The job's counters as the frontier keeps them, so that the stats of the last run are those of the job.
//!
//! Never kept: what tells of one run or its process, such as times and memory.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::api::stats::Stats;
use crate::scheduler::Take;

/// The name of the state.
pub(crate) const COUNTERS: &str = "counters";

/// The format's version.
const VERSION: u32 = 1;

#[derive(Serialize, Deserialize)]
struct Saved {
    version: u32,
    counters: BTreeMap<String, i64>,
}

/// Counters that cannot be read.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub(crate) enum CountersError {
    /// They are no counters.
    #[error("the counters of earlier runs cannot be read: {0}")]
    Damaged(#[from] serde_json::Error),
    /// A newer version of this program wrote them.
    #[error("the counters of earlier runs have version {found}, this program reads {VERSION}")]
    Newer {
        /// The version found.
        found: u32,
    },
}

/// Goes on from what an earlier run saved.
///
/// # Errors
/// When it cannot be read; then nothing was changed.
pub(crate) fn restore(stats: &Stats, saved: &[u8]) -> Result<(), CountersError> {
    #[derive(Deserialize)]
    struct Versioned {
        version: u32,
    }
    let Versioned { version } = serde_json::from_slice(saved)?;
    if version != VERSION {
        return Err(CountersError::Newer { found: version });
    }
    let Saved { counters, .. } = serde_json::from_slice(saved)?;
    stats.go_on_from(counters);
    Ok(())
}

/// Gives the counters whenever they are not those of the last time.
pub(crate) fn take(stats: Stats) -> Take {
    let mut last = BTreeMap::new();
    Box::new(move || {
        let counters = stats.counters();
        if counters == last {
            return None;
        }
        last.clone_from(&counters);
        // Texts and numbers only: nothing in it can fail to be written.
        serde_json::to_vec(&Saved { version: VERSION, counters }).ok()
    })
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn counters_are_given_when_they_changed_and_the_next_run_goes_on_from_them() {
        let stats = Stats::new();
        stats.add("item_scraped_count", 12);
        stats.set("finish_reason", "shutdown");
        let mut take = take(stats.clone());
        let bytes = take().unwrap();
        assert_eq!(String::from_utf8_lossy(&bytes), r#"{"version":1,"counters":{"item_scraped_count":12}}"#);
        assert!(take().is_none());
        stats.inc("item_scraped_count");
        let bytes = take().unwrap();
        let next = Stats::new();
        restore(&next, &bytes).unwrap();
        next.inc("item_scraped_count");
        assert_eq!(next.count("item_scraped_count"), 14);
    }

    #[test]
    fn what_cannot_be_read_changes_nothing() {
        for saved in [r#"{"version":2,"counters":{"a":1}}"#, "torn", r#"{"version":1,"counters":{"a":"x"}}"#] {
            let stats = Stats::new();
            let error = restore(&stats, saved.as_bytes()).unwrap_err().to_string();
            assert!(error.starts_with("the counters of earlier runs"), "{error}");
            assert_eq!(stats.snapshot().len(), 0);
        }
    }
}
