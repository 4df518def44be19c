//! One event: an attempt as it was recorded, read from a line of JSON.

use std::sync::Arc;

use jiff::Timestamp;
use serde_json::{Map, Value};

use super::error::Wrong;
use super::places::Places;
use super::record;
use crate::nearest::nearest;
use crate::plane::model::Ms;
use crate::spinneret::ErrorKind;

/// What a line may say.
const FIELDS: [&str; 15] = [
    "at",
    "site",
    "client",
    "uri",
    "endpoint_group",
    "identity",
    "session_key",
    "method",
    "status",
    "error_kind",
    "markers",
    "business_code",
    "outcome_hint",
    "latency_ms",
    "response_bytes",
];

/// Where simulated time begins when events tell seconds: any moment does, it is never shown.
const ORIGIN: Ms = 1_767_225_600_000;

/// Seconds after which an event is surely wrong: ten years.
const LATEST: f64 = 315_360_000.0;

/// What stands in where an event names nothing, and what is left out.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Defaults {
    /// The site of events that name none; events of other sites are left out.
    pub(crate) site: Option<String>,
    /// The client of events that name none.
    pub(crate) client: Option<String>,
}

/// An attempt.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Event {
    pub(crate) line: u64,
    /// When it was over.
    pub(crate) at: Ms,
    pub(crate) site: Arc<str>,
    pub(crate) client: Arc<str>,
    /// Never empty.
    pub(crate) uri: String,
    /// Empty: the URI decides.
    pub(crate) group: String,
    /// Nothing: the plane picks.
    pub(crate) identity: Option<Arc<str>>,
    pub(crate) session_key: String,
    pub(crate) method: String,
    pub(crate) status: i32,
    pub(crate) error_kind: String,
    pub(crate) markers: Vec<String>,
    pub(crate) business_code: String,
    pub(crate) outcome_hint: String,
    pub(crate) latency_ms: i32,
    pub(crate) response_bytes: i64,
}

/// How the events of a file tell the time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) enum Clock {
    /// As moments.
    Moments,
    /// As seconds since the start.
    #[default]
    Seconds,
}

/// All events of a file.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Timeline {
    pub(crate) events: Vec<Event>,
    clock: Option<Clock>,
    /// Records that tell of requests that were never sent.
    pub(crate) unsent: u64,
    /// Events of other sites than the one asked for.
    pub(crate) elsewhere: u64,
    last: Ms,
}

impl Timeline {
    /// Takes in a line.
    pub(super) fn add(&mut self, places: &Places<'_>, text: &str, line: u64) -> Result<(), Wrong> {
        let value: Value = serde_json::from_str(text).map_err(|error| Wrong::line(format!("not valid JSON: {error}")))?;
        let Value::Object(map) = value else {
            return Err(Wrong::line(format!("found {}, expected one JSON object on each line", kind(&value))));
        };
        let fields = Fields(&map);
        let event = if record::is_record(&map) {
            match record::event(&fields, places, line)? {
                Some(event) => event,
                None => {
                    self.unsent += 1;
                    return Ok(());
                }
            }
        } else {
            fields.check(&FIELDS)?;
            event(&fields, places, line)?
        };
        if places.defaults.site.as_deref().is_some_and(|wanted| *wanted != *event.site) {
            self.elsewhere += 1;
            return Ok(());
        }
        let at = self.moment(&fields, Ms::try_from(event.latency_ms).unwrap_or(0), record::is_record(&map))?;
        self.last = at;
        self.events.push(Event { at, ..event });
        Ok(())
    }

    /// A moment as the file tells it: RFC 3339, or seconds since the start.
    pub(crate) fn tell(&self, at: Ms) -> String {
        match self.clock.unwrap_or_default() {
            Clock::Moments => crate::plane::simulate::show::moment(at),
            Clock::Seconds => {
                let since = at.saturating_sub(ORIGIN);
                format!("{}.{:03}", since / 1_000, since % 1_000)
            }
        }
    }

    /// Where the simulation begins.
    pub(crate) fn start(&self) -> Ms {
        let first = self.events.iter().map(Event::begin).min();
        match self.clock {
            Some(Clock::Moments) => first.unwrap_or(ORIGIN),
            _ => first.unwrap_or(ORIGIN).min(ORIGIN),
        }
    }

    fn moment(&mut self, fields: &Fields<'_>, latency: Ms, is_record: bool) -> Result<Ms, Wrong> {
        let (clock, at) = match fields.0.get("at") {
            Some(Value::Number(number)) => {
                let seconds = number.as_f64().filter(|seconds| (0.0..=LATEST).contains(seconds));
                let seconds =
                    seconds.ok_or_else(|| Wrong::field("at", format!("found {number}, allowed are 0 to {LATEST} seconds")))?;
                #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "bounded above")]
                let since = (seconds * 1_000.0).round() as Ms;
                (Clock::Seconds, ORIGIN + since)
            }
            Some(Value::String(text)) => {
                let moment = text.parse::<Timestamp>().ok().and_then(|moment| Ms::try_from(moment.as_millisecond()).ok());
                let wrong = "expected a moment with its offset, such as 2027-01-31T12:00:00Z, or seconds as a number";
                (Clock::Moments, moment.ok_or_else(|| Wrong::field("at", format!("found {text:?}, {wrong}")))?)
            }
            // A record does not say when: it begins when the one before it was over.
            None if is_record => {
                let clock = self.clock.unwrap_or_default();
                (clock, self.last.max(if clock == Clock::Seconds { ORIGIN } else { 0 }).saturating_add(latency))
            }
            None => {
                return Err(Wrong::field(
                    "at",
                    "left out; write a moment such as 2027-01-31T12:00:00Z, or seconds since the start",
                ));
            }
            Some(other) => {
                return Err(Wrong::field(
                    "at",
                    format!("found {}, expected a moment as text or seconds as a number", kind(other)),
                ));
            }
        };
        if self.clock.is_some_and(|known| known != clock) {
            return Err(Wrong::field("at", "moments and seconds in one file; write all of them alike"));
        }
        self.clock = Some(clock);
        Ok(at)
    }
}

impl Event {
    /// When it was sent.
    pub(crate) fn begin(&self) -> Ms {
        self.at.saturating_sub(Ms::try_from(self.latency_ms).unwrap_or(0))
    }
}

fn event(fields: &Fields<'_>, places: &Places<'_>, line: u64) -> Result<Event, Wrong> {
    let site = places.site(fields.text("site", 64)?)?;
    let client = places.client(site, fields.text("client", 32)?)?;
    let group = fields.text("endpoint_group", 64)?.unwrap_or_default();
    if !group.is_empty() {
        Places::group(site, client, group)?;
    }
    let uri = fields.text("uri", 2_048)?.unwrap_or_default();
    if uri.is_empty() && group.is_empty() {
        return Err(Wrong::line("neither uri nor endpoint_group; one of them says what the lease was for"));
    }
    let identity = fields.text("identity", 256)?.map(|name| Places::identity(site, name)).transpose()?;
    let error_kind = fields.text("error_kind", 32)?.unwrap_or_default();
    if !error_kind.is_empty() && ErrorKind::of(error_kind).is_none() {
        let known = ErrorKind::ALL.map(ErrorKind::as_str).join(", ");
        return Err(Wrong::field("error_kind", format!("found {error_kind:?}, allowed are {known}")));
    }
    let status = fields.whole("status", 999)?;
    if status == 0 && error_kind.is_empty() {
        return Err(Wrong::line("neither status nor error_kind; one of them says how the attempt ended"));
    }
    Ok(Event {
        line,
        at: 0,
        site: Arc::clone(&site.name),
        client: Arc::clone(&client.name),
        uri: if uri.is_empty() { "/".to_owned() } else { uri.to_owned() },
        group: group.to_owned(),
        identity,
        session_key: fields.text("session_key", 256)?.unwrap_or_default().to_owned(),
        method: fields.text("method", 16)?.unwrap_or("GET").to_owned(),
        status: i32::try_from(status).unwrap_or(0),
        error_kind: error_kind.to_owned(),
        markers: fields.texts("markers")?,
        business_code: fields.text("business_code", 64)?.unwrap_or_default().to_owned(),
        outcome_hint: fields.text("outcome_hint", 32)?.unwrap_or_default().to_owned(),
        latency_ms: i32::try_from(fields.whole("latency_ms", i64::from(i32::MAX))?).unwrap_or(0),
        response_bytes: fields.whole("response_bytes", i64::MAX)?,
    })
}

/// The fields of a line.
#[derive(Debug, Clone, Copy)]
pub(super) struct Fields<'a>(pub(super) &'a Map<String, Value>);

impl<'a> Fields<'a> {
    pub(super) fn check(&self, allowed: &[&str]) -> Result<(), Wrong> {
        let Some(odd) = self.0.keys().find(|key| !allowed.contains(&key.as_str())) else { return Ok(()) };
        let guess = nearest(odd, allowed.iter().copied()).map_or_else(String::new, |near| format!("did you mean {near}? "));
        Err(Wrong::line(format!("unknown field {odd:?}; {guess}allowed are {}", allowed.join(", "))))
    }

    /// A text; what is `null` or not there is none.
    pub(super) fn text(&self, field: &str, most: usize) -> Result<Option<&'a str>, Wrong> {
        match self.0.get(field) {
            None | Some(Value::Null) => Ok(None),
            Some(Value::String(text)) if text.len() <= most => Ok(Some(text)),
            Some(Value::String(text)) => Err(Wrong::field(field, format!("found {} bytes, allowed are {most}", text.len()))),
            Some(other) => Err(Wrong::field(field, format!("found {}, expected a text", kind(other)))),
        }
    }

    /// A whole number, 0 if it is not there.
    pub(super) fn whole(&self, field: &str, most: i64) -> Result<i64, Wrong> {
        match self.0.get(field) {
            None | Some(Value::Null) => Ok(0),
            Some(Value::Number(number)) => {
                let number_in = number.as_i64().filter(|number| (0..=most).contains(number));
                number_in
                    .ok_or_else(|| Wrong::field(field, format!("found {number}, allowed are whole numbers from 0 to {most}")))
            }
            Some(other) => Err(Wrong::field(field, format!("found {}, expected a whole number", kind(other)))),
        }
    }

    fn texts(&self, field: &str) -> Result<Vec<String>, Wrong> {
        let wrong =
            |found: String| Wrong::field(field, format!("found {found}, expected a list of up to 32 texts of 1 to 64 bytes"));
        match self.0.get(field) {
            None | Some(Value::Null) => Ok(Vec::new()),
            Some(Value::Array(list)) if list.len() <= 32 => {
                let text = |value: &Value| match value {
                    Value::String(text) if (1..=64).contains(&text.len()) => Ok(text.clone()),
                    Value::String(text) => Err(wrong(format!("a text of {} bytes", text.len()))),
                    other => Err(wrong(format!("{} in the list", kind(other)))),
                };
                list.iter().map(text).collect()
            }
            Some(Value::Array(list)) => Err(wrong(format!("a list of {}", list.len()))),
            Some(other) => Err(wrong(kind(other).to_owned())),
        }
    }
}

/// What a value is, for messages.
pub(super) const fn kind(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "true or false",
        Value::Number(_) => "a number",
        Value::String(_) => "a text",
        Value::Array(_) => "a list",
        Value::Object(_) => "an object",
    }
}
