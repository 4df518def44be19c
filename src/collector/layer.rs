//! The tracing layer that turns events into log records.
//!
//! It ignores the delivery pipeline's own targets: a failing sink must not make more to deliver. It never blocks
//! and cuts what is too long; how many records wait is the ring's business.

use std::fmt::Write as _;
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use tracing::{Event, Subscriber};
use tracing_subscriber::Layer;
use tracing_subscriber::layer::Context;

use super::logring::LogRing;
use crate::apcloudy::{LogLevel, LogRecord};
use crate::event::{Said, level_of};

/// The longest message or exception of one record, in bytes; the rest is cut and its size named.
pub const MAX_TEXT_BYTES: usize = 64 * 1024;

/// Targets whose events never become records, with everything below them.
const OWN_TARGETS: [&str; 3] = ["dragline::collector", "dragline::courier", "dragline::apcloudy"];

/// The level from which on events become records: the higher of INFO and `LOG_LEVEL`. Can be changed at any time.
#[derive(Debug)]
pub struct LiveLevel(AtomicU8);

impl LiveLevel {
    /// A threshold for the given `LOG_LEVEL`.
    #[must_use]
    pub fn new(level: LogLevel) -> Self {
        Self(AtomicU8::new(level.max(LogLevel::Info) as u8))
    }

    /// Follows a change of `LOG_LEVEL`.
    pub fn set(&self, level: LogLevel) {
        self.0.store(level.max(LogLevel::Info) as u8, Ordering::Relaxed);
    }

    fn takes(&self, level: LogLevel) -> bool {
        level as u8 >= self.0.load(Ordering::Relaxed)
    }
}

/// Collects events into a [`LogRing`].
///
/// A record's logger is the event's target with dots. Its message is the event's message followed by the fields as
/// ` name=value`. Two fields are special: `exception` becomes the record's exception, and `critical = true` on an
/// error makes it `CRITICAL`.
#[derive(Debug, Clone)]
pub struct LogLayer {
    ring: Arc<LogRing>,
    level: Arc<LiveLevel>,
    now: fn() -> Duration,
}

impl LogLayer {
    /// A layer that fills the ring with events from the level on.
    #[must_use]
    pub fn new(ring: Arc<LogRing>, level: Arc<LiveLevel>) -> Self {
        Self::with_clock(ring, level, since_epoch)
    }

    /// As [`new`](Self::new) with another clock, which gives the time since 1970 in UTC.
    #[must_use]
    pub fn with_clock(ring: Arc<LogRing>, level: Arc<LiveLevel>, now: fn() -> Duration) -> Self {
        Self { ring, level, now }
    }
}

impl<S: Subscriber> Layer<S> for LogLayer {
    fn on_event(&self, event: &Event<'_>, _: Context<'_, S>) {
        let metadata = event.metadata();
        let level = level_of(*metadata.level());
        // An error may turn out to be critical, the only level its metadata cannot tell.
        let possible = if level == LogLevel::Error { LogLevel::Critical } else { level };
        if !self.level.takes(possible) || is_own(metadata.target()) {
            return;
        }
        let said = Said::by(event);
        if !self.level.takes(said.level) {
            return;
        }
        let logger = metadata.target().replace("::", ".");
        let mut record = LogRecord::new((self.now)(), said.level, logger, shorten(said.message));
        record.exception = said.exception.map(shorten);
        self.ring.push(record);
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
        let ring = Arc::new(LogRing::new(100));
        let level = Arc::new(LiveLevel::new(level));
        let clock = || Duration::from_millis(1_700_000_000_500);
        let layer = LogLayer::with_clock(Arc::clone(&ring), Arc::clone(&level), clock);
        with_default(tracing_subscriber::registry().with(layer), || emit(&level));
        let mut records = Vec::new();
        ring.drain(&mut records);
        records
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
    fn the_exception_field_has_a_place_of_its_own() {
        let records = collect(LogLevel::Info, |_| {
            tracing::error!(target: "shop", exception = "line 1\nline 2", step = "detail", "callback failed");
        });
        assert_eq!(records[0].exception.as_deref(), Some("line 1\nline 2"));
        assert_eq!(records[0].message, "callback failed step=detail");
    }

    #[test]
    fn the_pipeline_never_ships_its_own_lines() {
        let records = collect(LogLevel::Info, |_| {
            tracing::error!(target: "dragline::courier", "a");
            tracing::error!(target: "dragline::courier::webhook", "b");
            tracing::error!(target: "dragline::collector::log", "c");
            tracing::error!(target: "dragline::courier_times", "d");
            tracing::error!(target: "dragline::engine", "e");
        });
        assert_eq!(messages(&records), [("ERROR", "d"), ("ERROR", "e")]);
    }

    #[test]
    fn a_text_that_is_too_long_is_cut_and_says_so() {
        let records = collect(LogLevel::Info, |_| tracing::info!(target: "shop", "{}", "é".repeat(MAX_TEXT_BYTES)));
        let message = &records[0].message;
        assert!(message.len() < MAX_TEXT_BYTES + 40);
        assert!(message.ends_with(&format!("… ({MAX_TEXT_BYTES} bytes cut)")));
    }
}
