//! What a tracing event says, for every reader of the log: level, message with its fields, exception.
//!
//! `exception` stands apart, and `critical = true` raises an error to `CRITICAL`, which tracing itself has not.

use std::fmt::{self, Write as _};

use tracing::field::{Field, Visit};
use tracing::{Event, Level};

use crate::settings::LogLevel;

/// An event, read.
#[derive(Debug)]
pub(crate) struct Said {
    pub(crate) level: LogLevel,
    /// The message, then the other fields as ` name=value`.
    pub(crate) message: String,
    pub(crate) exception: Option<String>,
}

impl Said {
    pub(crate) fn by(event: &Event<'_>) -> Self {
        let mut fields = Fields::default();
        event.record(&mut fields);
        let level = match level_of(*event.metadata().level()) {
            LogLevel::Error if fields.critical => LogLevel::Critical,
            level => level,
        };
        fields.message.push_str(&fields.rest);
        Self { level, message: fields.message, exception: fields.exception }
    }
}

/// Python's names have no level below DEBUG.
pub(crate) fn level_of(level: Level) -> LogLevel {
    match level {
        Level::ERROR => LogLevel::Error,
        Level::WARN => LogLevel::Warning,
        Level::INFO => LogLevel::Info,
        _ => LogLevel::Debug,
    }
}

#[derive(Default)]
struct Fields {
    message: String,
    rest: String,
    exception: Option<String>,
    critical: bool,
}

impl Fields {
    fn put(&mut self, field: &Field, value: fmt::Arguments<'_>) {
        let _ = match field.name() {
            "message" => self.message.write_fmt(value),
            "exception" => self.exception.get_or_insert_default().write_fmt(value),
            name => write!(self.rest, " {name}={value}"),
        };
    }
}

impl Visit for Fields {
    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        self.put(field, format_args!("{value:?}"));
    }

    fn record_str(&mut self, field: &Field, value: &str) {
        self.put(field, format_args!("{value}"));
    }

    fn record_bool(&mut self, field: &Field, value: bool) {
        if field.name() == "critical" {
            self.critical = value;
        } else {
            self.put(field, format_args!("{value}"));
        }
    }

    fn record_error(&mut self, field: &Field, value: &(dyn std::error::Error + 'static)) {
        let mut text = value.to_string();
        let mut cause = value.source();
        while let Some(error) = cause {
            let _ = write!(text, ": {error}");
            cause = error.source();
        }
        self.put(field, format_args!("{text}"));
    }
}
