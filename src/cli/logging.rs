//! The process's log: text or JSON lines on standard error or in a file, at a level that can change while it runs.
//!
//! The subscriber is installed once. What it writes to and which further layer sees the events (the collector's)
//! can be replaced at any time; everything below both levels costs one cached comparison.

use std::fs::{File, OpenOptions};
use std::io::Write as _;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU8, Ordering};
use std::sync::{Arc, LazyLock, Mutex, PoisonError, RwLock};

use tracing::level_filters::LevelFilter;
use tracing::{Event, Metadata};
use tracing_subscriber::Registry;
use tracing_subscriber::layer::{Context, Layer, SubscriberExt as _};

use super::line::Line;
use super::terminal;
use crate::event::level_of;
use crate::settings::{LogFormat, LogLevel, Settings};

/// Above every level.
const NOTHING: u8 = u8::MAX;

/// Crates whose events below WARNING are about their own insides.
const NOISY: [&str; 9] = ["actix", "actix_rt", "h2", "html5ever", "hyper", "hyper_util", "mio", "reqwest", "rustls"];

static LOG: LazyLock<Logging> = LazyLock::new(|| Logging(Arc::default()));

/// How the log is written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct LogOptions {
    pub(crate) level: LogLevel,
    pub(crate) format: LogFormat,
    pub(crate) place: LogPlace,
}

/// Where the log is written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum LogPlace {
    /// Nowhere; an attached layer still sees the events.
    Off,
    /// Standard error.
    Stderr,
    /// A file.
    File { path: PathBuf, append: bool },
}

/// A log file that cannot be opened.
#[derive(Debug, thiserror::Error)]
#[error("log file {path} (LOG_FILE) cannot be opened: {source}; check that its folder exists and is writable")]
pub(crate) struct LogError {
    path: PathBuf,
    source: std::io::Error,
}

/// A layer that sees what is logged, such as the collector's.
pub(crate) type Tap = Box<dyn Layer<Registry> + Send + Sync>;

/// The process's log. Cloning shares it.
#[derive(Clone)]
pub(crate) struct Logging(Arc<Hub>);

struct Hub {
    level: AtomicU8,
    /// Nothing below it is of use to anyone now: derived from the level, the output and the tap.
    threshold: AtomicU8,
    output: RwLock<Output>,
    tap: RwLock<Option<Tap>>,
}

enum Output {
    Off,
    Stderr(LogFormat),
    File(LogFormat, Mutex<File>),
}

impl LogOptions {
    pub(crate) fn of(settings: &Settings) -> Self {
        let place = match &settings.log_file {
            _ if !settings.log_enabled => LogPlace::Off,
            Some(path) => LogPlace::File { path: path.clone(), append: settings.log_file_append },
            None => LogPlace::Stderr,
        };
        Self { level: settings.log_level, format: settings.log_format, place }
    }
}

/// Installs the log, or changes the one that is installed.
///
/// # Errors
/// When the file cannot be opened; then nothing has changed.
pub(crate) fn install(options: &LogOptions) -> Result<Logging, LogError> {
    let output = match &options.place {
        LogPlace::Off => Output::Off,
        LogPlace::Stderr => Output::Stderr(options.format),
        LogPlace::File { path, append } => {
            let opened = OpenOptions::new().create(true).append(*append).write(true).truncate(!append).open(path);
            let file = opened.map_err(|source| LogError { path: path.clone(), source })?;
            Output::File(options.format, Mutex::new(file))
        }
    };
    let log = current();
    *log.0.output.write().unwrap_or_else(PoisonError::into_inner) = output;
    // Fails when it is installed already, which is what the second call of a process means.
    let _ = tracing::subscriber::set_global_default(tracing_subscriber::registry().with(Front(Arc::clone(&log.0))));
    log.set_level(options.level);
    Ok(log)
}

/// The process's log, installed or not.
pub(crate) fn current() -> Logging {
    LOG.clone()
}

impl Logging {
    /// Changes the level of what is written.
    pub(crate) fn set_level(&self, level: LogLevel) {
        self.0.level.store(level as u8, Ordering::Relaxed);
        self.0.refresh();
    }

    /// Lets a layer see every event from the level on, written or not; replaces the one before.
    pub(crate) fn attach(&self, tap: Tap) {
        *self.0.tap.write().unwrap_or_else(PoisonError::into_inner) = Some(tap);
        self.0.refresh();
    }

    /// Lets the attached layer go.
    pub(crate) fn detach(&self) {
        *self.0.tap.write().unwrap_or_else(PoisonError::into_inner) = None;
        self.0.refresh();
    }

    /// Whether lines of this level can be read on standard error.
    pub(crate) fn shows(&self, level: LogLevel) -> bool {
        matches!(*self.0.output(), Output::Stderr(_)) && level as u8 >= self.0.level.load(Ordering::Relaxed)
    }

    /// Whether standard error carries JSON lines and nothing else should be on it.
    pub(crate) fn is_json_on_stderr(&self) -> bool {
        matches!(*self.0.output(), Output::Stderr(LogFormat::Json))
    }

    /// Tells the user something now: logged, and if that cannot be read on standard error, written there as well.
    pub(crate) fn say(&self, text: &str) {
        tracing::info!(target: "dragline", "{text}");
        if !self.shows(LogLevel::Info) && !self.is_json_on_stderr() {
            terminal::print(text);
        }
    }

    /// Tells why the program ends without its work done.
    pub(crate) fn fail(&self, text: &str) {
        if self.is_json_on_stderr() {
            tracing::error!(target: "dragline", "{text}");
        } else {
            terminal::print(&format!("error: {text}"));
        }
    }

    /// Shows a text of several lines: as it is, or as one JSON line among others.
    pub(crate) fn show(&self, text: &str) {
        if self.is_json_on_stderr() {
            tracing::info!(target: "dragline", "{text}");
        } else {
            terminal::print(text);
        }
    }
}

impl Hub {
    fn refresh(&self) {
        let level = self.level.load(Ordering::Relaxed);
        let tapped = self.tap.read().unwrap_or_else(PoisonError::into_inner).is_some();
        let threshold = match (&*self.output(), tapped) {
            (Output::Off, false) => NOTHING,
            _ => level,
        };
        self.threshold.store(threshold, Ordering::Relaxed);
        tracing::callsite::rebuild_interest_cache();
    }

    fn output(&self) -> std::sync::RwLockReadGuard<'_, Output> {
        self.output.read().unwrap_or_else(PoisonError::into_inner)
    }

    fn wants(&self, metadata: &Metadata<'_>) -> bool {
        let level = match level_of(*metadata.level()) {
            // Only the event itself tells whether it is critical.
            LogLevel::Error => LogLevel::Critical,
            _ if *metadata.level() == tracing::Level::TRACE => return false,
            level => level,
        };
        let crate_name = metadata.target().split("::").next().unwrap_or_default();
        level as u8 >= self.threshold.load(Ordering::Relaxed) && (level >= LogLevel::Warning || !NOISY.contains(&crate_name))
    }

    fn write(&self, event: &Event<'_>) {
        let output = self.output();
        let format = match &*output {
            Output::Off => return,
            Output::Stderr(format) | Output::File(format, _) => *format,
        };
        let line = Line::of(event);
        if (line.level as u8) < self.level.load(Ordering::Relaxed) {
            return;
        }
        let text = line.format(format, jiff::Timestamp::now());
        match &*output {
            Output::Off => {}
            Output::Stderr(_) => terminal::print(&text),
            Output::File(_, file) => {
                // A full disk must not stop the crawl, and there is no other place to say so.
                let _ = file.lock().unwrap_or_else(PoisonError::into_inner).write_all(text.as_bytes());
            }
        }
    }
}

impl Default for Hub {
    fn default() -> Self {
        Self {
            level: AtomicU8::new(LogLevel::Info as u8),
            threshold: AtomicU8::new(NOTHING),
            output: RwLock::new(Output::Off),
            tap: RwLock::new(None),
        }
    }
}

/// The hub as the subscriber's only layer.
struct Front(Arc<Hub>);

impl Layer<Registry> for Front {
    fn enabled(&self, metadata: &Metadata<'_>, _: Context<'_, Registry>) -> bool {
        self.0.wants(metadata)
    }

    fn max_level_hint(&self) -> Option<LevelFilter> {
        const DEBUG: u8 = LogLevel::Debug as u8;
        const INFO: u8 = LogLevel::Info as u8;
        const WARNING: u8 = LogLevel::Warning as u8;
        Some(match self.0.threshold.load(Ordering::Relaxed) {
            DEBUG => LevelFilter::DEBUG,
            INFO => LevelFilter::INFO,
            WARNING => LevelFilter::WARN,
            NOTHING => LevelFilter::OFF,
            _ => LevelFilter::ERROR,
        })
    }

    fn on_event(&self, event: &Event<'_>, context: Context<'_, Registry>) {
        if let Some(tap) = &*self.0.tap.read().unwrap_or_else(PoisonError::into_inner) {
            tap.on_event(event, context);
        }
        self.0.write(event);
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing)]
    use tracing::Subscriber;
    use tracing::subscriber::with_default;

    use super::*;

    fn hub(output: Output, level: LogLevel) -> (Logging, impl Subscriber + Send + Sync) {
        let log = Logging(Arc::default());
        *log.0.output.write().unwrap() = output;
        log.set_level(level);
        let subscriber = tracing_subscriber::registry().with(Front(Arc::clone(&log.0)));
        (log, subscriber)
    }

    fn file_log(level: LogLevel, emit: impl FnOnce(&Logging)) -> String {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("log");
        let (log, subscriber) = hub(Output::File(LogFormat::Text, Mutex::new(File::create(&path).unwrap())), level);
        with_default(subscriber, || emit(&log));
        std::fs::read_to_string(path).unwrap()
    }

    fn ends(log: &str) -> Vec<&str> {
        log.lines().map(|line| line.split_once(" [").unwrap().1).collect()
    }

    #[test]
    fn the_level_decides_and_can_change() {
        let text = file_log(LogLevel::Warning, |log| {
            tracing::info!(target: "shop", "a");
            tracing::warn!(target: "shop::spider", n = 2, "b");
            log.set_level(LogLevel::Debug);
            tracing::debug!(target: "shop", "c");
            tracing::trace!(target: "shop", "d");
            log.set_level(LogLevel::Critical);
            tracing::error!(target: "shop", "e");
            tracing::error!(target: "shop", critical = true, "f");
        });
        assert_eq!(ends(&text), ["shop.spider] WARNING: b n=2", "shop] DEBUG: c", "shop] CRITICAL: f"]);
    }

    #[test]
    fn libraries_are_heard_from_warning_on() {
        let text = file_log(LogLevel::Debug, |_| {
            tracing::debug!(target: "hyper::client", "a");
            tracing::warn!(target: "hyper::client", "b");
            tracing::debug!(target: "hyperactive", "c");
        });
        assert_eq!(ends(&text), ["hyper.client] WARNING: b", "hyperactive] DEBUG: c"]);
    }

    struct Seen(Arc<Mutex<Vec<String>>>);

    impl<S: Subscriber> Layer<S> for Seen {
        fn on_event(&self, event: &Event<'_>, _: Context<'_, S>) {
            self.0.lock().unwrap().push(Line::of(event).message);
        }
    }

    #[test]
    fn a_tap_sees_events_although_the_log_is_off() {
        let seen = Arc::new(Mutex::new(Vec::new()));
        let (log, subscriber) = hub(Output::Off, LogLevel::Debug);
        with_default(subscriber, || {
            tracing::info!(target: "shop", "before");
            log.attach(Box::new(Seen(Arc::clone(&seen))));
            tracing::debug!(target: "shop", "kept");
            log.set_level(LogLevel::Info);
            tracing::debug!(target: "shop", "too low");
            log.detach();
            tracing::info!(target: "shop", "after");
        });
        assert_eq!(*seen.lock().unwrap(), ["kept"]);
    }

    #[test]
    fn a_file_in_a_folder_that_is_not_there_is_named() {
        let place = LogPlace::File { path: "/nowhere/at/all.log".into(), append: true };
        let error = install(&LogOptions { level: LogLevel::Info, format: LogFormat::Text, place }).err().unwrap().to_string();
        assert!(error.contains("/nowhere/at/all.log") && error.contains("LOG_FILE") && error.contains("folder"), "{error}");
    }

    #[test]
    fn settings_choose_the_place() {
        let mut settings = Settings { log_file: Some("a.log".into()), log_file_append: false, ..Settings::default() };
        assert_eq!(LogOptions::of(&settings).place, LogPlace::File { path: "a.log".into(), append: false });
        settings.log_enabled = false;
        assert_eq!(LogOptions::of(&settings).place, LogPlace::Off);
        assert_eq!(LogOptions::of(&Settings::default()).place, LogPlace::Stderr);
    }
}
