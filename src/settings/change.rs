//! What a reload changes: keys that take effect now, and keys that need a restart.

use super::key::Reload;
use super::table::Settings;

/// Names of the keys two settings differ in, in the order of the table.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Changes {
    /// Take effect at once, through [`Settings::with_live_of`].
    pub live: Vec<&'static str>,
    /// Keep their old value until a restart; to be named in a warning.
    pub restart: Vec<&'static str>,
}

impl Changes {
    /// Whether nothing differs.
    pub fn is_empty(&self) -> bool {
        self.live.is_empty() && self.restart.is_empty()
    }
}

/// Compares the settings in use with newly resolved ones.
pub fn changes(current: &Settings, newer: &Settings) -> Changes {
    let mut changes = Changes::default();
    for (key, reload) in current.differing(newer) {
        match reload {
            Reload::Live => changes.live.push(key),
            Reload::Restart => changes.restart.push(key),
        }
    }
    changes
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing)]

    use super::*;
    use std::time::Duration;

    #[test]
    fn a_reload_takes_live_keys_and_names_the_others() {
        let current = Settings::default();
        let newer =
            Settings { concurrent_requests: 3, download_delay: Duration::from_secs(2), retry_times: 9, ..Settings::default() };
        let found = changes(&current, &newer);
        assert_eq!(found.live, ["CONCURRENT_REQUESTS", "DOWNLOAD_DELAY"]);
        assert_eq!(found.restart, ["RETRY_TIMES"]);

        let applied = current.with_live_of(&newer);
        assert_eq!(applied.concurrent_requests, 3);
        assert_eq!(applied.download_delay, Duration::from_secs(2));
        assert_eq!(applied.retry_times, current.retry_times);
        assert_eq!(changes(&applied, &newer).live, Vec::<&str>::new());
    }

    #[test]
    fn exactly_the_pacing_keys_and_the_log_level_are_live() {
        let live: Vec<&str> = Settings::keys().iter().filter(|key| key.reload() == Reload::Live).map(|key| key.name()).collect();
        assert_eq!(
            live,
            ["CONCURRENT_REQUESTS", "CONCURRENT_REQUESTS_PER_DOMAIN", "DOWNLOAD_DELAY", "RANDOMIZE_DOWNLOAD_DELAY", "LOG_LEVEL",]
        );
        assert!(changes(&Settings::default(), &Settings::default()).is_empty());
    }
}
