//! Request and log records in the order of keys APCloudy expects.

use std::borrow::Cow;
use std::time::Duration;

use serde::{Deserialize, Serialize, Serializer};

use super::text::{TextError, to_text};

/// One attempt at a request, as the backend lists it. The order of the fields is the order on the wire.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RequestRecord {
    /// The URL that was fetched, made safe, with its fragment; after redirects the final one.
    pub url: String,
    /// The URL of the page whose callback asked for this one; none for start requests and robots.txt.
    pub parent_url: Option<String>,
    /// The method in upper case.
    pub method: String,
    /// The HTTP status; 0 without a response.
    pub status_code: u16,
    /// Seconds from sending to the last byte, on a clock that never jumps; written with two decimals.
    #[serde(serialize_with = "two_decimals")]
    pub response_time: f64,
    /// SHA-1 in hex over the method and the canonical URL.
    pub fingerprint: String,
    /// `ErrorClass: message` without a response, else none.
    pub error: Option<String>,
    /// Whether the status is 200 to 299.
    pub success: bool,
}

impl RequestRecord {
    /// The record's wire text.
    ///
    /// # Errors
    /// Never in practice: every field has a text form.
    pub fn to_text(&self) -> Result<String, TextError> {
        to_text(self)
    }
}

/// How much is logged, from the most to the least talkative, named and numbered as Python does.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(u8)]
pub enum LogLevel {
    /// Everything, for looking into one crawl.
    Debug = 10,
    /// What happens, but no line per page.
    Info = 20,
    /// What was dropped, slowed down or repeated.
    Warning = 30,
    /// What failed.
    Error = 40,
    /// What ends the crawl.
    Critical = 50,
}

impl LogLevel {
    /// All levels with their names, from the most talkative.
    pub const ALL: &'static [(&'static str, Self)] = &[
        ("DEBUG", Self::Debug),
        ("INFO", Self::Info),
        ("WARNING", Self::Warning),
        ("ERROR", Self::Error),
        ("CRITICAL", Self::Critical),
    ];

    /// The level's name in capitals, as records and settings spell it.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Debug => "DEBUG",
            Self::Info => "INFO",
            Self::Warning => "WARNING",
            Self::Error => "ERROR",
            Self::Critical => "CRITICAL",
        }
    }
}

/// One log line, as the backend lists it. The order of the fields is the order on the wire.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct LogRecord {
    /// UTC, `YYYY-MM-DD HH:MM:SS`, cut to the second.
    pub time: String,
    /// Unix seconds with their fraction.
    pub timestamp: f64,
    /// `DEBUG`, `INFO`, `WARNING`, `ERROR`, `CRITICAL`, or `Level 25` for a level without a name.
    pub level: Cow<'static, str>,
    /// The dotted name of the source.
    pub logger: String,
    /// The formatted text.
    pub message: String,
    /// The text of an error chain or a panic, else none.
    pub exception: Option<String>,
    /// 0, 1, 2 … over the whole job; set when the record enters the log ring.
    pub index: u64,
}

impl LogRecord {
    /// A record of the given instant, `since_epoch` being the time since 1970 in UTC. The index is 0 until the
    /// record is put in order.
    #[must_use]
    pub fn new(since_epoch: Duration, level: LogLevel, logger: String, message: String) -> Self {
        let seconds = i64::try_from(since_epoch.as_secs()).unwrap_or(i64::MAX);
        let time =
            jiff::Timestamp::from_second(seconds).unwrap_or(jiff::Timestamp::MAX).strftime("%Y-%m-%d %H:%M:%S").to_string();
        Self {
            time,
            timestamp: since_epoch.as_secs_f64(),
            level: Cow::Borrowed(level.name()),
            logger,
            message,
            exception: None,
            index: 0,
        }
    }

    /// The record's wire text.
    ///
    /// # Errors
    /// Never in practice: every field has a text form.
    pub fn to_text(&self) -> Result<String, TextError> {
        to_text(self)
    }
}

fn two_decimals<S: Serializer>(seconds: &f64, serializer: S) -> Result<S::Ok, S::Error> {
    let rounded = (seconds * 100.0).round() / 100.0;
    serializer.serialize_f64(if rounded.is_finite() { rounded } else { 0.0 })
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing)]

    use super::*;
    use crate::apcloudy::Value;
    use crate::apcloudy::testdata::captures;

    /// Reads the Python client's records of one list as ours and writes them again.
    fn rewritten<T: serde::de::DeserializeOwned + Serialize>(list: &str) -> usize {
        let mut count = 0;
        for capture in captures().into_iter().filter(|capture| capture.captured && capture.version == "0.2.0") {
            let body = Value::parse(capture.body.as_bytes()).unwrap();
            for theirs in body.get("data").unwrap().get(list).unwrap().as_list().unwrap() {
                let ours: T = serde_json::from_str(&theirs.write()).unwrap();
                assert_eq!(to_text(&ours).unwrap(), theirs.write(), "{}", capture.name);
                count += 1;
            }
        }
        count
    }

    #[test]
    fn our_records_are_the_python_clients_to_the_byte() {
        let (requests, logs) = (rewritten::<RequestRecord>("requests"), rewritten::<LogRecord>("logs"));
        assert!(requests >= 50 && logs >= 50, "{requests} requests, {logs} logs");
    }

    #[test]
    fn seconds_have_two_decimals_at_most() {
        for (seconds, written) in [
            (0.0, "0.0"),
            (0.004_9, "0.0"),
            (0.005, "0.01"),
            (0.1, "0.1"),
            (1.999, "2.0"),
            (12.345_6, "12.35"),
            (86_400.0, "86400.0"),
            (f64::NAN, "0.0"),
        ] {
            let record = RequestRecord {
                url: String::new(),
                parent_url: None,
                method: "GET".into(),
                status_code: 0,
                response_time: seconds,
                fingerprint: String::new(),
                error: None,
                success: false,
            };
            let text = record.to_text().unwrap();
            assert!(text.contains(&format!("\"response_time\": {written}, ")), "{text}");
        }
    }

    #[test]
    fn a_request_record_has_the_wire_order_and_two_decimals() {
        let record = RequestRecord {
            url: "http://h/ä#f".into(),
            parent_url: None,
            method: "GET".into(),
            status_code: 200,
            response_time: 0.034_999,
            fingerprint: "ab".into(),
            error: Some("IgnoreRequest: no".into()),
            success: true,
        };
        assert_eq!(
            record.to_text().unwrap(),
            r#"{"url": "http://h/\u00e4#f", "parent_url": null, "method": "GET", "status_code": 200, "response_time": 0.03, "fingerprint": "ab", "error": "IgnoreRequest: no", "success": true}"#
        );
        let endless = RequestRecord { response_time: f64::INFINITY, ..record };
        assert!(endless.to_text().unwrap().contains(r#""response_time": 0.0,"#));
    }

    #[test]
    fn a_log_record_has_the_wire_order_and_utc_time() {
        let at = Duration::new(1_796_057_447, 921_124_500);
        let record = LogRecord::new(at, LogLevel::Warning, "shop.spider".into(), "a\nb".into());
        assert_eq!(
            record.to_text().unwrap(),
            r#"{"time": "2026-11-30 16:50:47", "timestamp": 1796057447.9211245, "level": "WARNING", "logger": "shop.spider", "message": "a\nb", "exception": null, "index": 0}"#
        );
    }
}
