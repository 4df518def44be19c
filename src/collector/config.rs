//! What the collector takes from the settings.

use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use super::batch::BatchLimits;
use crate::settings::{OnFatal, Settings};

/// Orders the courier holds at most: batches in memory beside the one that is being sent.
pub const COURIER_BOUND: usize = 4;
/// The card of the job a spool or a `JOBDIR` belongs to.
pub const CARD: &str = "job.json";
/// The file whose lock a run holds as long as it uses the spool.
pub(super) const LOCK: &str = "lock";
/// Bytes of a job's id in a directory's name: with three characters each and the instance's number a name has at most 255.
const ID_BYTES: usize = 79;
/// Fewer remembered groups would not cover the links of a small window.
const REMEMBERED_LEAST: usize = 4096;

/// Whether the ends of requests are written to the record log.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ends {
    /// A frontier on disk or at a server settles them after a crash.
    Journaled,
    /// The frontier is lost with the process: nobody would read them.
    Skipped,
}

/// What becomes of an empty spool at the end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Tidy {
    /// Its directory is this run's alone and goes with it.
    Remove,
    /// The job's next run uses the directory again.
    Keep,
}

/// How the collector works.
#[derive(Debug, Clone)]
pub struct CollectorConfig {
    /// When a batch is full.
    pub limits: BatchLimits,
    /// Time between two syncs of the record log (`SPOOL_SYNC_MS`).
    pub sync_every: Duration,
    /// Size of a segment of the record log. Bytes.
    pub segment_bytes: u64,
    /// Most bytes on disk that wait for the sink (`SPOOL_MAX_BYTES`). Keeping stops a sixteenth before, so that what a turn
    /// still appends has room.
    pub spool_max_bytes: u64,
    /// How long a disk may refuse writes (`DISK_WAIT`).
    pub disk_wait: Duration,
    /// How long the courier may take at the close. The collector answers half a second later at the latest.
    pub close_within: Duration,
    /// What follows when the sink takes nothing until someone changes something (`APCLOUDY_ON_FATAL`).
    pub on_fatal: OnFatal,
    /// Whether ends are written.
    pub ends: Ends,
    /// Groups remembered as written: at least twice what the engine may have under way.
    pub remembered: usize,
    /// Seconds since 1970 in UTC.
    pub clock: fn() -> u64,
}

impl CollectorConfig {
    /// The collector's part of the settings. Delivery gets half of `CLOSE_TIMEOUT`.
    #[must_use]
    pub fn from_settings(settings: &Settings) -> Self {
        let segment_bytes = (settings.spool_max_bytes / 8).clamp(64 * 1024, 8 * 1024 * 1024);
        Self {
            limits: BatchLimits {
                size: u64::try_from(settings.apcloudy_batch_size).unwrap_or(1),
                max_bytes: settings.apcloudy_max_batch_bytes,
                flush_after: settings.apcloudy_flush_interval,
            },
            sync_every: settings.spool_sync_ms,
            segment_bytes,
            spool_max_bytes: settings.spool_max_bytes,
            disk_wait: settings.disk_wait,
            close_within: settings.close_timeout / 2,
            on_fatal: settings.apcloudy_on_fatal,
            ends: if settings.jobdir.is_some() || settings.frontier.is_shared() { Ends::Journaled } else { Ends::Skipped },
            remembered: settings.window_limit().saturating_mul(4).max(REMEMBERED_LEAST),
            clock: unix_seconds,
        }
    }
}

/// Where a job's spool lies, and whether it is removed when it is empty at the end: in `JOBDIR`, else in a directory of
/// this run below `DATA_DIR`. `instance` must differ between two runs.
#[must_use]
pub fn spool_dir(settings: &Settings, job: &str, instance: u64) -> (PathBuf, Tidy) {
    match &settings.jobdir {
        Some(jobdir) => (jobdir.join("spool"), Tidy::Keep),
        None => (spools(&settings.data_dir).join(format!("{}-{instance:016x}", escape(job))), Tidy::Remove),
    }
}

/// The directory of all spools without a `JOBDIR`.
pub(super) fn spools(data_dir: &Path) -> PathBuf {
    data_dir.join("spool")
}

/// A job's id as a file name: what is not a letter, a digit, `_`, `-` or an inner dot is written as `%XX`; a long one is
/// cut, the instance's number tells it apart.
fn escape(job: &str) -> String {
    let mut name = String::new();
    for (i, byte) in job.bytes().enumerate().take(ID_BYTES) {
        if byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-') || (byte == b'.' && i > 0) {
            name.push(char::from(byte));
        } else {
            name.push_str(&format!("%{byte:02X}"));
        }
    }
    name
}

fn unix_seconds() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_job_id_never_leaves_its_directory() {
        for (job, name) in [
            ("shop-7", "shop-7"),
            ("../../etc", "%2E.%2F..%2Fetc"),
            ("a/b c", "a%2Fb%20c"),
            ("", ""),
            ("ж", "%D0%B6"),
            ("v1.2", "v1.2"),
        ] {
            assert_eq!(escape(job), name);
        }
        let (dir, _) = spool_dir(&Settings::default(), &"/".repeat(5000), u64::MAX);
        assert_eq!(dir.file_name().map(std::ffi::OsStr::len), Some(254), "no file system takes more than 255");
    }

    #[test]
    fn the_spool_lies_in_the_jobdir_or_in_a_directory_of_its_own() {
        let mut settings = Settings::default();
        let (dir, tidy) = spool_dir(&settings, "a/b", 0xab);
        assert_eq!((dir.as_path(), tidy), (Path::new(".dragline/spool/a%2Fb-00000000000000ab"), Tidy::Remove));
        assert_eq!(CollectorConfig::from_settings(&settings).ends, Ends::Skipped);
        settings.jobdir = Some("jobs/7".into());
        assert_eq!(spool_dir(&settings, "a/b", 1), ("jobs/7/spool".into(), Tidy::Keep));
        let config = CollectorConfig::from_settings(&settings);
        assert_eq!((config.ends, config.limits.size), (Ends::Journaled, 50));
        settings.apcloudy_batch_size = -3;
        assert_eq!(CollectorConfig::from_settings(&settings).limits.size, 1);
    }
}
