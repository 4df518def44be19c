//! What the scheduler has to know of the settings. The runtime fills it; nothing here reads a setting.

use std::time::Duration;

use super::message::Pacing;
use crate::reach::Reach;

/// The scheduler's configuration.
#[derive(Debug, Clone)]
pub struct SchedulerConfig {
    /// Hosts a request may go to, each with its subdomains; empty allows every host.
    pub allowed_domains: Vec<String>,
    /// `DEPTH_LIMIT`: deepest depth that is queued, 0 for no limit.
    pub depth_limit: u32,
    /// `URLLENGTH_LIMIT`: longest URL that is queued, in bytes, 0 for no limit.
    pub url_length_limit: usize,
    /// `ALLOW_PRIVATE_ADDRESSES`; what the job's owner wants may open it.
    pub(crate) reach: Reach,
    /// Delay and concurrency of a slot.
    pub pacing: Pacing,
    /// The agent robots.txt is read for; `None` when `ROBOTSTXT_OBEY` is off.
    pub robots_agent: Option<String>,
    /// Offers of start requests are refused above this many bytes of frontier, so that the links of pages
    /// still find room below `FRONTIER_MAX_BYTES`.
    pub seeds_stop_at: usize,
    /// `FRONTIER_MAX_BYTES`: every offer is refused above this many bytes of frontier in memory.
    pub max_bytes: usize,
    /// Whether the answer to an offer brings back what is offsite: for a record of each.
    pub returns_offsite: bool,
    /// `DISK_WAIT`: how long a store may refuse to write, or to read, before the job is given up.
    pub disk_wait: Duration,
    /// Seed of the delays' jitter.
    pub seed: u64,
}
