//! The tracing layer that turns events into log records.
//!
//! What the delivery pipeline says about itself goes the ring's narrow way: a failing sink must not make more and more
//! to deliver. The layer never blocks and cuts what is too long; how many records wait is the ring's business.

use std::fmt::Write as _;
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use tracing::{Event, Level, Subscriber};
use tracing_subscriber::Layer;
use tracing_subscriber::layer::Context;

use super::logring::LogRing;
use crate::apcloudy::{LogLevel, LogRecord};
use crate::api::stats::Stats;
use crate::event::{Said, level_of};

/// The longest message or exception of one record, in bytes; the rest is cut and its size named.
pub const MAX_TEXT_BYTES: usize = 64 * 1024;

/// Targets of the delivery pipeline, with everything below them.
const OWN_TARGETS: [&str; 3] = ["dragline::collector", "dragline::courier", "dragline::apcloudy"];

/// `LOG_LEVEL` while the job runs: events from it on are counted, those from INFO on become records. Can be changed at
/// any time.
#[derive(Debug)]
pub struct LiveLevel(AtomicU8);

impl LiveLevel {
    /// A threshold for the given `LOG_LEVEL`.
    #[must_use]
    pub fn new(level: LogLevel) -> Self {
        Self(AtomicU8::new(level as u8))
    }

    /// Follows a change of `LOG_LEVEL`.
    pub fn set(&self, level: LogLevel) {
        self.0.store(level as u8, Ordering::Relaxed);
    }

    fn counts(&self, level: LogLevel) -> bool {
        level as u8 >= self.0.load(Ordering::Relaxed)
    }

    fn takes(&self, level: LogLevel) -> bool {
        level >= LogLevel::Info && self.counts(level)
    }
}

/// Collects events into a [`LogRing`].
///
/// A record's logger is the event's target with dots. Its message is the event's message followed by the fields as
/// ` name=value`. Two fields are special: `exception` becomes the record's exception, and `critical = true` on an
/// error makes it `CRITICAL`. Each event from the level on is counted in `log_count/<level>`.
#[derive(Debug, Clone)]
pub struct LogLayer {
    ring: Arc<LogRing>,
    level: Arc<LiveLevel>,
    stats: Stats,
    now: fn() -> Duration,
}

impl LogLayer {
    /// A layer that fills the ring with events from the level on.
    #[must_use]
    pub fn new(ring: Arc<LogRing>, level: Arc<LiveLevel>, stats: Stats) -> Self {
        Self::with_clock(ring, level, stats, since_epoch)
    }

    /// As [`new`](Self::new) with another clock, which gives the time since 1970 in UTC.
    #[must_use]
    pub fn with_clock(ring: Arc<LogRing>, level: Arc<LiveLevel>, stats: Stats, now: fn() -> Duration) -> Self {
        Self { ring, level, stats, now }
    }
}

impl<S: Subscriber> Layer<S> for LogLayer {
    fn on_event(&self, event: &Event<'_>, _: Context<'_, S>) {
        let metadata = event.metadata();
        if *metadata.level() == Level::TRACE {
            return;
        }
        let level = level_of(*metadata.level());
        // An error may turn out to be critical, the only level its metadata cannot tell.
        let possible = if level == LogLevel::Error { LogLevel::Critical } else { level };
        if !self.level.counts(possible) {
            return;
        }
        if !self.level.takes(possible) {
            self.stats.inc(counter(level));
            return;
        }
        let said = Said::by(event);
        if !self.level.counts(said.level) {
            return;
        }
        self.stats.inc(counter(said.level));
        let now = (self.now)();
        let logger = metadata.target().replace("::", ".");
        let mut record = LogRecord::new(now, said.level, logger, shorten(said.message));
        record.exception = said.exception.map(|mut text| {
            text.truncate(text.trim_end().len());
            shorten(text)
        });
        if is_own(metadata.target()) {
            self.ring.push_own(record, now);
        } else {
            self.ring.push(record);
        }
    }
}

const fn counter(level: LogLevel) -> &'static str {
    match level {
        LogLevel::Debug => "log_count/DEBUG",
        LogLevel::Info => "log_count/INFO",
        LogLevel::Warning => "log_count/WARNING",
        LogLevel::Error => "log_count/ERROR",
        LogLevel::Critical => "log_count/CRITICAL",
    }
}

fn is_own(target: &str) -> bool {
    OWN_TARGETS.iter().filter_map(|own| target.strip_prefix(own)).any(|rest| rest.is_empty() || rest.starts_with("::"))
}

fn shorten(mut text: String) -> String {
    if text.len() > MAX_TEXT_BYTES {
        let keep = text.floor_char_boundary(MAX_TEXT_BYTES);
        let cut = text.len() - keep;
        text.truncate(keep);
        let _ = write!(text, "… ({cut} bytes cut)");
    }
    text
}

fn since_epoch() -> Duration {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing)]

    use tracing::subscriber::with_default;
    use tracing_subscriber::layer::SubscriberExt as _;

    use super::*;

    fn collect(level: LogLevel, emit: impl FnOnce(&LiveLevel)) -> Vec<LogRecord> {
        collect_and_count(level, emit).0
    }

    fn collect_and_count(level: LogLevel, emit: impl FnOnce(&LiveLevel)) -> (Vec<LogRecord>, Stats) {
        let ring = Arc::new(LogRing::new(100));
        let level = Arc::new(LiveLevel::new(level));
        let clock = || Duration::from_millis(1_700_000_000_500);
        let stats = Stats::new();
        let layer = LogLayer::with_clock(Arc::clone(&ring), Arc::clone(&level), stats.clone(), clock);
        with_default(tracing_subscriber::registry().with(layer), || emit(&level));
        let mut records = Vec::new();
        ring.drain(&mut records);
        (records, stats)
    }

    fn messages(records: &[LogRecord]) -> Vec<(&str, &str)> {
        records.iter().map(|r| (r.level.as_ref(), r.message.as_str())).collect()
    }

    #[test]
    fn an_event_becomes_a_record_with_pythons_names() {
        let records = collect(LogLevel::Debug, |_| {
            let why = std::io::Error::other("no route");
            tracing::warn!(target: "shop::spider", attempt = 2, host = "h", error = &why as &dyn std::error::Error, "page {}", "lost");
        });
        assert_eq!(
            records[0].to_text().unwrap(),
            r#"{"time": "2023-11-14 22:13:20", "timestamp": 1700000000.5, "level": "WARNING", "logger": "shop.spider", "message": "page lost attempt=2 host=h error=no route", "exception": null, "index": 0}"#
        );
    }

    #[test]
    fn the_threshold_is_info_or_higher_and_follows_changes() {
        let records = collect(LogLevel::Debug, |level| {
            tracing::trace!(target: "shop", "t");
            tracing::debug!(target: "shop", "d");
            tracing::info!(target: "shop", "i");
            level.set(LogLevel::Error);
            tracing::warn!(target: "shop", "w");
            tracing::error!(target: "shop", "e");
            level.set(LogLevel::Critical);
            tracing::error!(target: "shop", "e");
            tracing::error!(target: "shop", critical = true, "c");
            level.set(LogLevel::Debug);
            tracing::debug!(target: "shop", "d");
            tracing::info!(target: "shop", "i");
        });
        assert_eq!(messages(&records), [("INFO", "i"), ("ERROR", "e"), ("CRITICAL", "c"), ("INFO", "i")]);
    }

    #[test]
    fn events_are_counted_from_the_level_on_whether_they_become_records_or_not() {
        let emit = |_: &LiveLevel| {
            tracing::trace!(target: "shop", "t");
            tracing::debug!(target: "shop", "d");
            tracing::info!(target: "shop", "i");
            tracing::info!(target: "dragline::courier", "i");
            tracing::error!(target: "shop", "e");
            tracing::error!(target: "shop", critical = true, "c");
        };
        for (level, counts, records) in [
            (LogLevel::Debug, r#"{"log_count/DEBUG":1,"log_count/INFO":2,"log_count/ERROR":1,"log_count/CRITICAL":1}"#, 4),
            (LogLevel::Info, r#"{"log_count/INFO":2,"log_count/ERROR":1,"log_count/CRITICAL":1}"#, 4),
            (LogLevel::Warning, r#"{"log_count/ERROR":1,"log_count/CRITICAL":1}"#, 2),
            (LogLevel::Critical, r#"{"log_count/CRITICAL":1}"#, 1),
        ] {
            let (collected, stats) = collect_and_count(level, emit);
            assert_eq!(serde_json::to_string(&stats.snapshot()).unwrap(), counts);
            assert_eq!(collected.len(), records, "{level:?}");
        }
    }

    #[test]
    fn the_exception_field_has_a_place_of_its_own() {
        let records = collect(LogLevel::Info, |_| {
            tracing::error!(target: "shop", exception = "line 1\nline 2\n", step = "detail", "callback failed");
        });
        assert_eq!(records[0].exception.as_deref(), Some("line 1\nline 2"));
        assert_eq!(records[0].message, "callback failed step=detail");
    }

    #[test]
    fn the_pipeline_ships_few_of_its_own_lines() {
        let records = collect(LogLevel::Info, |_| {
            for _ in 0..10 {
                tracing::debug!(target: "dragline::courier", "too low");
                tracing::error!(target: "dragline::courier", "a");
                tracing::error!(target: "dragline::apcloudy::webhook", "b");
                tracing::error!(target: "dragline::collector::log", "c");
                tracing::error!(target: "dragline::courier_times", "d");
                tracing::error!(target: "dragline::engine", "e");
            }
        });
        let of = |message: &str| records.iter().filter(|r| r.message == message).count();
        assert_eq!(of("a") + of("b") + of("c"), 20);
        assert_eq!((of("d"), of("e"), of("too low")), (10, 10, 0));
        assert!(records.iter().map(|r| r.index).eq(0..40));
    }

    #[test]
    fn a_text_that_is_too_long_is_cut_and_says_so() {
        let records = collect(LogLevel::Info, |_| tracing::info!(target: "shop", "{}", "é".repeat(MAX_TEXT_BYTES)));
        let message = &records[0].message;
        assert!(message.len() < MAX_TEXT_BYTES + 40);
        assert!(message.ends_with(&format!("… ({MAX_TEXT_BYTES} bytes cut)")));
    }
}
