//! Policy: how often an actor may be restarted after a panic, and how soon. Numbers only.

use std::time::Duration;

/// How often and how fast an actor is restarted after panics.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Policy {
    /// Most restarts within [`within`](Self::within); one more panic and supervision gives up.
    pub max_restarts: u32,
    /// The window over which restarts are counted.
    pub within: Duration,
    /// Wait before the first restart in the window; doubled for each further one.
    pub first_backoff: Duration,
    /// Longest wait before a restart.
    pub max_backoff: Duration,
}

impl Policy {
    /// No restart: the first panic gives up, as for an actor whose state cannot be rebuilt.
    pub const FATAL: Self =
        Self { max_restarts: 0, within: Duration::ZERO, first_backoff: Duration::ZERO, max_backoff: Duration::ZERO };

    /// The wait before a restart when `restarts` lie within the window already.
    pub(crate) fn backoff(&self, restarts: usize) -> Duration {
        let doubled = u32::try_from(restarts).ok().and_then(|n| 2u32.checked_pow(n)).unwrap_or(u32::MAX);
        self.first_backoff.saturating_mul(doubled).min(self.max_backoff)
    }
}

impl Default for Policy {
    /// Five restarts a minute, after 100 ms at first and 5 s at most.
    fn default() -> Self {
        Self {
            max_restarts: 5,
            within: Duration::from_secs(60),
            first_backoff: Duration::from_millis(100),
            max_backoff: Duration::from_secs(5),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_back_off_doubles_up_to_its_limit_and_never_overflows() {
        let policy = Policy::default();
        let table = [(0, 100), (1, 200), (2, 400), (5, 3_200), (6, 5_000), (31, 5_000), (32, 5_000), (usize::MAX, 5_000)];
        for (restarts, ms) in table {
            assert_eq!(policy.backoff(restarts), Duration::from_millis(ms), "{restarts} restarts");
        }
        let endless = Policy { first_backoff: Duration::MAX, max_backoff: Duration::MAX, ..policy };
        assert_eq!(endless.backoff(40), Duration::MAX);
        assert_eq!(Policy::FATAL.backoff(0), Duration::ZERO);
    }
}
