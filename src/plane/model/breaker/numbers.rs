//! The numbers of a breaker policy (wire contract, section 28).

use crate::plane::model::Ms;

/// Which automatic cooldowns an opening takes back.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum RevertCooldowns {
    None,
    /// Those of an identity in this endpoint group.
    Endpoint,
    /// Those of an identity on the whole site as well.
    All,
}

/// When a breaker opens, for how long, and what closes it; the defaults are the contract's. Times are milliseconds.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct BreakerNumbers {
    pub(crate) enabled: bool,
    pub(crate) window: Ms,
    /// 1 to 60, each at least a second long.
    pub(crate) buckets: u32,
    /// Fewer reports within the window decide nothing.
    pub(crate) min_requests: u32,
    /// Opens at this share of risk outcomes or more; 0: never for this reason.
    pub(crate) risk_ratio: f64,
    /// Opens when so many identities met a captcha; 0: never for this reason.
    pub(crate) captcha_identities: u32,
    /// Opens at this share of successes or less; 0: never for this reason.
    pub(crate) success_ratio: f64,
    /// How long the first opening lasts; each one in a row lasts twice as long.
    pub(crate) open: Ms,
    pub(crate) max_open: Ms,
    /// Closed for so long, the next opening is a first one again.
    pub(crate) reset_opens_after: Ms,
    /// Leases per ten seconds while half-open.
    pub(crate) probes: u32,
    /// So many probe reports decide.
    pub(crate) close_min_samples: u32,
    /// Closes at this share of successes among them or more.
    pub(crate) close_success_ratio: f64,
    pub(crate) revert: RevertCooldowns,
}

impl Default for BreakerNumbers {
    fn default() -> Self {
        const MINUTE: Ms = 60_000;
        Self {
            enabled: true,
            window: MINUTE,
            buckets: 12,
            min_requests: 50,
            risk_ratio: 0.4,
            captcha_identities: 10,
            success_ratio: 0.2,
            open: 2 * MINUTE,
            max_open: 60 * MINUTE,
            reset_opens_after: 30 * MINUTE,
            probes: 5,
            close_min_samples: 5,
            close_success_ratio: 0.8,
            revert: RevertCooldowns::Endpoint,
        }
    }
}

impl BreakerNumbers {
    /// How long the opening of this number lasts, from 1.
    pub(super) fn open_for(&self, opens: u32) -> Ms {
        let doublings = opens.saturating_sub(1).min(63);
        self.open.saturating_mul(1 << doublings).min(self.max_open)
    }

    /// The length of one bucket, and how many make the window.
    pub(super) fn frame(&self) -> (Ms, u64) {
        let buckets = u64::from(self.buckets.clamp(1, 60));
        let length = (self.window / buckets).max(1_000);
        (length, (self.window / length).clamp(1, buckets))
    }
}
