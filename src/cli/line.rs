//! One log line: what an event says, as text in Scrapy's form or as a JSON object.

use std::fmt::Write as _;

use serde_json::json;
use tracing::Event;

use crate::event::Said;
use crate::settings::{LogFormat, LogLevel};

/// A log line, not yet formatted.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Line {
    pub(crate) level: LogLevel,
    pub(crate) logger: String,
    pub(crate) message: String,
    pub(crate) exception: Option<String>,
}

impl Line {
    /// Reads an event: its message and fields; `exception` stands apart, `critical = true` raises an error.
    pub(crate) fn of(event: &Event<'_>) -> Self {
        let said = Said::by(event);
        Self {
            level: said.level,
            logger: event.metadata().target().replace("::", "."),
            message: said.message,
            exception: said.exception,
        }
    }

    /// The line with its line feed.
    pub(crate) fn format(&self, format: LogFormat, now: jiff::Timestamp) -> String {
        match format {
            LogFormat::Text => self.text(now),
            LogFormat::Json => {
                let mut line = json!({
                    "time": now.strftime("%Y-%m-%dT%H:%M:%S.%3fZ").to_string(),
                    "level": self.level.name(),
                    "logger": self.logger,
                    "message": self.message,
                });
                if let (Some(exception), Some(fields)) = (&self.exception, line.as_object_mut()) {
                    fields.insert("exception".to_owned(), exception.as_str().into());
                }
                format!("{line}\n")
            }
        }
    }

    fn text(&self, now: jiff::Timestamp) -> String {
        let time = now.strftime("%Y-%m-%d %H:%M:%S");
        let mut line = format!("{time} [{}] {}: ", self.logger, self.level.name());
        push_printable(&mut line, &self.message);
        if let Some(exception) = &self.exception {
            line.push('\n');
            push_printable(&mut line, exception.trim_end());
        }
        line.push('\n');
        line
    }
}

/// Pages and URLs get into messages: their control characters must not reach a terminal.
fn push_printable(line: &mut String, text: &str) {
    for c in text.chars() {
        if c.is_control() && !matches!(c, '\n' | '\t') {
            let _ = write!(line, "{}", c.escape_default());
        } else {
            line.push(c);
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing)]
    use super::*;

    fn line(message: &str) -> Line {
        Line { level: LogLevel::Warning, logger: "dragline.engine".to_owned(), message: message.to_owned(), exception: None }
    }

    fn noon() -> jiff::Timestamp {
        "2026-11-30T12:00:01.5Z".parse().unwrap()
    }

    #[test]
    fn a_text_line_has_scrapys_form_in_utc() {
        assert_eq!(line("a page").format(LogFormat::Text, noon()), "2026-11-30 12:00:01 [dragline.engine] WARNING: a page\n");
    }

    #[test]
    fn a_json_line_is_one_object() {
        let mut failed = line("two\nlines");
        failed.exception = Some("why".to_owned());
        assert_eq!(
            failed.format(LogFormat::Json, noon()),
            "{\"time\":\"2026-11-30T12:00:01.500Z\",\"level\":\"WARNING\",\"logger\":\"dragline.engine\",\"message\":\"two\\nlines\",\"exception\":\"why\"}\n"
        );
    }

    #[test]
    fn control_characters_of_a_page_stay_off_the_terminal() {
        let text = line("a\u{1b}[31mred\u{7}\r").format(LogFormat::Text, noon());
        assert!(text.ends_with("WARNING: a\\u{1b}[31mred\\u{7}\\r\n"), "{text}");
    }
}
