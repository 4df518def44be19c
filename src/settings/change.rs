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
            Settings { concurrent_requests: 3, download_delay: Duration::from_secs(2), depth_limit: 9, ..Settings::default() };
        let found = changes(&current, &newer);
        assert_eq!(found.live, ["CONCURRENT_REQUESTS", "DOWNLOAD_DELAY"]);
        assert_eq!(found.restart, ["DEPTH_LIMIT"]);

        let applied = current.with_live_of(&newer);
        assert_eq!(applied.concurrent_requests, 3);
        assert_eq!(applied.download_delay, Duration::from_secs(2));
        assert_eq!(applied.depth_limit, current.depth_limit);
        assert_eq!(changes(&applied, &newer).live, Vec::<&str>::new());
    }

    #[test]
    fn pace_retries_timeouts_and_limits_are_live_and_nothing_that_names_a_place_or_a_key() {
        let live: Vec<&str> = Settings::keys().iter().filter(|key| key.reload() == Reload::Live).map(|key| key.name()).collect();
        assert_eq!(
            live,
            [
                "CONCURRENT_REQUESTS",
                "CONCURRENT_REQUESTS_PER_DOMAIN",
                "DOWNLOAD_DELAY",
                "RANDOMIZE_DOWNLOAD_DELAY",
                "DOWNLOAD_DELAY_JITTER",
                "REQUESTS_PER_MINUTE",
                "DOWNLOAD_SLOTS",
                "AUTOTHROTTLE_ENABLED",
                "AUTOTHROTTLE_START_DELAY",
                "AUTOTHROTTLE_MAX_DELAY",
                "AUTOTHROTTLE_TARGET_CONCURRENCY",
                "AUTOTHROTTLE_DEBUG",
                "DOWNLOAD_TIMEOUT",
                "DOWNLOAD_IDLE_TIMEOUT",
                "REDIRECT_PRIORITY_ADJUST",
                "RETRY_ENABLED",
                "RETRY_TIMES",
                "RETRY_HTTP_CODES",
                "RETRY_EXCEPTIONS",
                "RETRY_PRIORITY_ADJUST",
                "RETRY_BACKOFF",
                "RETRY_BACKOFF_MAX",
                "RETRY_AFTER_MAX",
                "ROBOTSTXT_TIMEOUT",
                "CLOSESPIDER_TIMEOUT",
                "CLOSESPIDER_ITEMCOUNT",
                "CLOSESPIDER_PAGECOUNT",
                "CLOSESPIDER_ERRORCOUNT",
                "CLOSESPIDER_TIMEOUT_NO_ITEM",
                "CLOSESPIDER_PAGECOUNT_NO_ITEM",
                "LOG_LEVEL",
                "STALL_WARN",
                "LEASE_GIVE_UP",
            ]
        );
        for key in Settings::keys().iter().filter(|key| key.reload() == Reload::Live) {
            assert!(!["path", "URL", "secret", "table of headers"].contains(&key.type_text()), "{}", key.name());
        }
        assert!(changes(&Settings::default(), &Settings::default()).is_empty());
    }

    #[test]
    fn what_came_from_a_secret_stays_hidden_after_a_reload() {
        let mut current = Settings { user_agent: "canary".to_owned(), ..Settings::default() };
        current.from_secrets = vec!["USER_AGENT"];
        let mut newer = Settings { retry_times: 987_123, ..Settings::default() };
        newer.from_secrets = vec!["RETRY_TIMES"];
        let applied = current.with_live_of(&newer);
        assert_eq!((applied.user_agent.as_str(), applied.retry_times), ("canary", 987_123));
        assert_eq!(applied.from_secrets, ["USER_AGENT", "RETRY_TIMES"]);
        let shown = format!("{applied:?} {applied:#?}");
        assert!(!shown.contains("canary") && !shown.contains("987123") && shown.contains("user_agent: [redacted]"), "{shown}");
    }
}
