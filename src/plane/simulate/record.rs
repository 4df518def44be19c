//! Request records of a job store as events, as `dragline requests` writes them.
//!
//! A record has neither a moment nor an identity: it counts as sent when the one before it was over, and the plane picks. Those
//! of requests that were never sent (filtered, robots.txt, no lease) are passed over.

use std::sync::Arc;

use serde_json::{Map, Value};
use url::Url;

use super::error::Wrong;
use super::event::{Event, Fields, kind};
use super::places::Places;
use crate::spinneret::ErrorKind;

const FIELDS: [&str; 9] =
    ["at", "url", "parent_url", "method", "status_code", "response_time", "fingerprint", "error", "success"];

/// The longest time of one request, seconds: a day.
const LONGEST: f64 = 86_400.0;

/// Whether a line is a record.
pub(super) fn is_record(map: &Map<String, Value>) -> bool {
    map.contains_key("url") && map.contains_key("status_code")
}

/// A record as an event; nothing for a request that was never sent.
pub(super) fn event(fields: &Fields<'_>, places: &Places<'_>, line: u64) -> Result<Option<Event>, Wrong> {
    fields.check(&FIELDS)?;
    let site = places.site(None)?;
    let client = places.client(site, None)?;
    let url = fields.text("url", usize::MAX)?.unwrap_or_default();
    let url = Url::parse(url).map_err(|error| Wrong::field("url", format!("not a URL: {error}")))?;
    let status = i32::try_from(fields.whole("status_code", 999)?).unwrap_or(0);
    let error = fields.text("error", usize::MAX)?.unwrap_or_default();
    let error_kind = match (status, error_kind(error)) {
        (0, None) => return Ok(None),
        (0, Some(kind)) => kind.as_str(),
        _ => "",
    };
    let seconds = match fields.0.get("response_time") {
        None | Some(Value::Null) => 0.0,
        Some(Value::Number(number)) => number
            .as_f64()
            .filter(|seconds| (0.0..=LONGEST).contains(seconds))
            .ok_or_else(|| Wrong::field("response_time", format!("found {number}, allowed are 0 to {LONGEST} seconds")))?,
        Some(other) => return Err(Wrong::field("response_time", format!("found {}, expected seconds as a number", kind(other)))),
    };
    #[allow(clippy::cast_possible_truncation, reason = "bounded above")]
    let latency_ms = (seconds * 1_000.0).round() as i32;
    let path = url.path();
    Ok(Some(Event {
        line,
        at: 0,
        site: Arc::clone(&site.name),
        client: Arc::clone(&client.name),
        uri: if path.is_empty() { "/".to_owned() } else { path.chars().take(2_048).collect() },
        group: String::new(),
        identity: None,
        session_key: String::new(),
        method: fields.text("method", 16)?.unwrap_or("GET").to_owned(),
        status,
        error_kind: error_kind.to_owned(),
        markers: Vec::new(),
        business_code: String::new(),
        outcome_hint: String::new(),
        latency_ms,
        response_bytes: 0,
    }))
}

/// The kind of an error by its class; nothing for one that is no attempt's.
fn error_kind(error: &str) -> Option<ErrorKind> {
    let class = error.split(':').next().unwrap_or_default().trim();
    match class {
        "CannotResolveHostError" => Some(ErrorKind::Dns),
        "DownloadConnectionRefusedError" => Some(ErrorKind::ConnRefused),
        "DownloadTimeoutError" => Some(ErrorKind::Timeout),
        "DownloadFailedError" | "ResponseDataLossError" => Some(ErrorKind::ConnReset),
        "DownloadCancelledError" => Some(ErrorKind::Other),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_class_of_an_error_gives_its_kind_and_what_was_never_sent_none() {
        for (error, kind) in [
            ("DownloadTimeoutError: no answer within 30s", Some(ErrorKind::Timeout)),
            ("CannotResolveHostError: x", Some(ErrorKind::Dns)),
            ("DownloadConnectionRefusedError", Some(ErrorKind::ConnRefused)),
            ("DownloadFailedError: reset", Some(ErrorKind::ConnReset)),
            ("IgnoreRequest: robots.txt", None),
            ("NotSupported: ftp", None),
            ("", None),
        ] {
            assert_eq!(error_kind(error), kind, "{error}");
        }
    }
}
