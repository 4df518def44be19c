//! What is in a body: its job, how many records of each kind, what its stats say about the job's end; or what is wrong with it.
//!
//! The body is looked through in passes that build nothing, however it is nested, and is kept as it was sent. Unknown keys are
//! everybody's right; what the store's views and lists rely on is checked.

use std::borrow::Cow;
use std::fmt;

use bytes::Bytes;
use http::StatusCode;
use serde::de::{self, Deserializer as _, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde_json::value::RawValue;

use super::refusal::Refusal;
use crate::apcloudy::{JobId, Value};
use crate::courier::intake::{Body, End};

/// The deepest nesting the database looks into.
const DEEPEST: usize = 1_000;

/// A body that may be stored.
#[derive(Debug)]
pub(crate) struct Examined {
    pub(crate) job: JobId,
    pub(crate) body: Body,
    pub(crate) counts: Counts,
    /// There when the body has stats.
    pub(crate) end: Option<End>,
}

/// Records of a body.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Counts {
    pub(crate) requests: u64,
    pub(crate) items: u64,
    pub(crate) logs: u64,
}

/// Looks a body through.
pub(crate) fn examine(bytes: Bytes) -> Result<Examined, Refusal> {
    let body = if is_strict(&bytes) {
        // Checked to be UTF-8 just now.
        Body::Strict(String::from_utf8(Vec::from(bytes)).unwrap_or_default())
    } else {
        let value = Value::parse(&bytes).map_err(|error| {
            let message = format!("the body is not JSON as it should be: {error}; send one JSON object");
            Refusal::new(StatusCode::BAD_REQUEST, "malformed_json", message)
        })?;
        Body::Loose { strict: value.write_strict(), sent: Vec::from(bytes) }
    };
    let (job, counts, end) = shape(body.strict())?;
    Ok(Examined { job, body, counts, end })
}

type Shape = (JobId, Counts, Option<End>);

fn shape(text: &str) -> Result<Shape, Refusal> {
    let [job, data] = fields(text, "the body", ["job_id", "data"])?;
    let job = job_id(job)?;
    let data = data.ok_or_else(|| Refusal::shape("data is missing; send {\"job_id\": …, \"data\": {…}}"))?;
    let [requests, items, logs, stats] = fields(data, "data", ["requests", "items", "logs", "stats"])?;
    let counts = Counts {
        requests: list(requests, "requests", |at, record| {
            let [url] = fields(record, &at(), ["url"])?;
            match url {
                Some(url) if url.starts_with('"') => Ok(()),
                Some(url) => Err(Refusal::shape(format!("{}.url is {}; send the address as a text", at(), kind(url)))),
                None => Err(Refusal::shape(format!("{} has no url; every request record needs one", at()))),
            }
        })?,
        items: list(items, "items", is_object)?,
        logs: list(logs, "logs", is_object)?,
    };
    let end = match stats {
        None | Some("null") => None,
        Some(stats) => Some(end(stats)?),
    };
    Ok((job, counts, end))
}

fn job_id(text: Option<&str>) -> Result<JobId, Refusal> {
    const ADVICE: &str = "send an integer of at most 64 bits, or a text that is not empty";
    let Some(text) = text else { return Err(Refusal::shape(format!("job_id is missing; {ADVICE}"))) };
    if text.starts_with('"') {
        return match serde_json::from_str::<String>(text) {
            Ok(id) if !id.is_empty() => Ok(JobId::Text(id)),
            _ => Err(Refusal::shape(format!("job_id is empty; {ADVICE}"))),
        };
    }
    text.parse().map(JobId::Number).map_err(|_| {
        let found = if kind(text) == "a number" { "another number" } else { kind(text) };
        Refusal::shape(format!("job_id is {found}; {ADVICE}"))
    })
}

fn end(stats: &str) -> Result<End, Refusal> {
    let [started, finished, reason] = fields(stats, "data.stats", ["start_time", "finish_time", "finish_reason"])?;
    let text = |field: Option<&str>| field.and_then(|text| serde_json::from_str::<String>(text).ok());
    let time = |field| {
        let time: jiff::Timestamp = text(field)?.parse().ok()?;
        Some(time.strftime("%Y-%m-%dT%H:%M:%S.%6f+00:00").to_string())
    };
    Ok(End { started: time(started), finished: time(finished), reason: text(reason) })
}

fn is_object(at: &dyn Fn() -> String, record: &str) -> Result<(), Refusal> {
    if record.starts_with('{') {
        return Ok(());
    }
    Err(Refusal::shape(format!("{} is {}; every record is an object", at(), kind(record))))
}

/// The number of records of a list that may be missing, each of them checked.
fn list(
    text: Option<&str>,
    name: &'static str,
    check: impl Fn(&dyn Fn() -> String, &str) -> Result<(), Refusal>,
) -> Result<u64, Refusal> {
    let Some(text) = text else { return Ok(0) };
    if !text.starts_with('[') {
        return Err(Refusal::shape(format!("data.{name} is {}; send a list, empty if there is nothing", kind(text))));
    }
    let mut each = Each { name, check, refusal: None, count: 0 };
    let walked = serde_json::Deserializer::from_str(text).deserialize_seq(&mut each);
    match (each.refusal, walked) {
        (Some(refusal), _) => Err(refusal),
        (None, Ok(())) => Ok(each.count),
        (None, Err(error)) => Err(unreadable(&format!("data.{name}"), &error)),
    }
}

struct Each<F> {
    name: &'static str,
    check: F,
    refusal: Option<Refusal>,
    count: u64,
}

impl<'de, F: Fn(&dyn Fn() -> String, &str) -> Result<(), Refusal>> Visitor<'de> for &mut Each<F> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a list")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<(), A::Error> {
        while let Some(record) = list.next_element::<&RawValue>()? {
            let (name, count) = (self.name, self.count);
            if let Err(refusal) = (self.check)(&|| format!("data.{name}[{count}]"), record.get()) {
                self.refusal = Some(refusal);
                return Err(de::Error::custom("refused"));
            }
            self.count += 1;
        }
        Ok(())
    }
}

/// The fields of an object with these names, as text.
fn fields<'a, const N: usize>(text: &'a str, what: &str, names: [&'static str; N]) -> Result<[Option<&'a str>; N], Refusal> {
    if !text.trim_start().starts_with('{') {
        return Err(Refusal::shape(format!("{what} is {}; send an object", kind(text.trim_start()))));
    }
    let found = serde_json::Deserializer::from_str(text).deserialize_map(Pick(names));
    match found {
        Ok(Ok(found)) => Ok(found),
        Ok(Err(twice)) => Err(Refusal::shape(format!("{what} has {twice} twice; send it once"))),
        Err(error) => Err(unreadable(what, &error)),
    }
}

/// Whatever the reader could not take after all.
fn unreadable(what: &str, error: &serde_json::Error) -> Refusal {
    Refusal::shape(format!("{what} cannot be read: {error}"))
}

struct Pick<const N: usize>([&'static str; N]);

impl<'de, const N: usize> Visitor<'de> for Pick<N> {
    /// The values in the order of the names, or a name that is there twice: readers differ in which one counts.
    type Value = Result<[Option<&'de str>; N], &'static str>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
        let mut found = [None; N];
        let mut twice = None;
        while let Some(key) = map.next_key::<Cow<'de, str>>()? {
            let slot = self.0.iter().zip(found.iter_mut()).find(|(name, _)| **name == key);
            match slot {
                Some((name, slot)) => {
                    if slot.replace(map.next_value::<&RawValue>()?.get()).is_some() {
                        twice = Some(*name);
                    }
                }
                None => {
                    map.next_value::<IgnoredAny>()?;
                }
            }
        }
        Ok(twice.map_or(Ok(found), Err))
    }
}

/// What a JSON text is, for messages.
fn kind(text: &str) -> &'static str {
    match text.bytes().next() {
        Some(b'{') => "an object",
        Some(b'[') => "a list",
        Some(b'"') => "a text",
        Some(b't' | b'f') => "a boolean",
        Some(b'n') => "null",
        Some(_) => "a number",
        None => "nothing",
    }
}

/// Whether every JSON reader takes this text: the grammar of RFC 8259 in UTF-8, whole surrogate pairs, no endless nesting.
fn is_strict(bytes: &[u8]) -> bool {
    let is_grammatical = std::str::from_utf8(bytes).is_ok_and(|text| serde_json::from_str::<IgnoredAny>(text).is_ok());
    is_grammatical && has_whole_pairs_and_is_flat(bytes)
}

/// Goes through a text that is grammatical.
fn has_whole_pairs_and_is_flat(bytes: &[u8]) -> bool {
    let (mut depth, mut in_text) = (0_usize, false);
    let mut rest = bytes;
    while let Some((byte, tail)) = rest.split_first() {
        rest = tail;
        match (in_text, byte) {
            (_, b'"') => in_text = !in_text,
            (true, b'\\') => {
                let Some((escaped, tail)) = rest.split_first() else { return false };
                rest = tail;
                if *escaped == b'u' {
                    match surrogate(rest) {
                        Some(0xD800..=0xDBFF) => {
                            match rest.get(4..).and_then(|next| next.strip_prefix(b"\\u")).and_then(surrogate) {
                                Some(0xDC00..=0xDFFF) => rest = rest.get(10..).unwrap_or_default(),
                                _ => return false,
                            }
                        }
                        Some(0xDC00..=0xDFFF) => return false,
                        _ => {}
                    }
                }
            }
            (false, b'{' | b'[') => {
                depth += 1;
                if depth > DEEPEST {
                    return false;
                }
            }
            (false, b'}' | b']') => depth = depth.saturating_sub(1),
            _ => {}
        }
    }
    true
}

fn surrogate(digits: &[u8]) -> Option<u16> {
    u16::from_str_radix(std::str::from_utf8(digits.get(..4)?).ok()?, 16).ok()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing)]

    use super::*;
    use crate::apcloudy::testdata::captures;

    fn examined(text: &str) -> Result<Examined, Refusal> {
        examine(Bytes::copy_from_slice(text.as_bytes()))
    }

    #[test]
    fn every_captured_body_is_taken_as_it_was_sent() {
        let mut loose = Vec::new();
        for capture in captures() {
            let examined = examined(&capture.body).unwrap_or_else(|refusal| panic!("{}: {refusal:?}", capture.name));
            assert_eq!(examined.body.sent(), capture.body.as_bytes());
            assert!(examined.counts != Counts::default(), "{}", capture.name);
            serde_json::from_str::<serde_json::Value>(examined.body.strict()).unwrap();
            if matches!(examined.body, Body::Loose { .. }) {
                loose.push(capture.name);
            }
        }
        assert_eq!(loose, ["exotic_items", "exotic_items_v017", "numbers_nan_infinity_not_strict_json"]);
    }

    #[test]
    fn job_counts_and_end_are_found() {
        let found = examined(
            r#"{"x": 1, "job_id": "7\u00e9", "data": {"items": [{"a": 1}, {}], "requests": [{"url": "u", "y": [2]}], "logs": [{}],
                "stats": {"start_time": "2026-11-30T16:50:37.5+00:00", "finish_time": "2026-11-30T17:00:00Z", "finish_reason": "done"}}}"#,
        )
        .unwrap();
        assert_eq!(found.job, JobId::from("7é"));
        assert_eq!(found.counts, Counts { requests: 1, items: 2, logs: 1 });
        let end = found.end.unwrap();
        assert_eq!(end.started.as_deref(), Some("2026-11-30T16:50:37.500000+00:00"));
        assert_eq!(end.finished.as_deref(), Some("2026-11-30T17:00:00.000000+00:00"));
        assert_eq!(end.reason.as_deref(), Some("done"));
        for (text, job) in [(r#"{"job_id": -5, "data": {}}"#, -5), (r#" {"data":{"stats":null},"job_id":0} "#, 0)] {
            let found = examined(text).unwrap();
            assert_eq!((found.job, found.counts, found.end), (JobId::from(job), Counts::default(), None));
        }
        let odd = examined(r#"{"job_id": 1, "data": {"stats": {"finish_time": "soon", "finish_reason": 4}}}"#).unwrap();
        assert_eq!(odd.end, Some(End::default()));
    }

    #[test]
    fn a_wrong_shape_is_named_where_it_is() {
        for (text, part) in [
            ("[]", "the body is a list"),
            ("7", "the body is a number"),
            ("{}", "job_id is missing"),
            (r#"{"job_id": 1}"#, "data is missing"),
            (r#"{"job_id": "", "data": {}}"#, "job_id is empty"),
            (r#"{"job_id": null, "data": {}}"#, "job_id is null"),
            (r#"{"job_id": true, "data": {}}"#, "job_id is a boolean"),
            (r#"{"job_id": 1.0, "data": {}}"#, "job_id is another number"),
            (r#"{"job_id": 1180591620717411303424, "data": {}}"#, "job_id is another number"),
            (r#"{"job_id": [1], "data": {}}"#, "job_id is a list"),
            (r#"{"job_id": NaN, "data": {}}"#, "job_id is null"),
            (r#"{"job_id": 1, "data": []}"#, "data is a list"),
            (r#"{"job_id": 1, "data": {}, "data": {}}"#, "the body has data twice"),
            (r#"{"job_id": 1, "data": {"items": {}}}"#, "data.items is an object"),
            (r#"{"job_id": 1, "data": {"logs": null}}"#, "data.logs is null"),
            (r#"{"job_id": 1, "data": {"requests": "x"}}"#, "data.requests is a text"),
            (r#"{"job_id": 1, "data": {"items": [{}, {}, 3]}}"#, "data.items[2] is a number"),
            (r#"{"job_id": 1, "data": {"logs": [[]]}}"#, "data.logs[0] is a list"),
            (r#"{"job_id": 1, "data": {"requests": [{"url": "u"}, {"method": "GET"}]}}"#, "data.requests[1] has no url"),
            (r#"{"job_id": 1, "data": {"requests": [{"url": 5}]}}"#, "data.requests[0].url is a number"),
            (r#"{"job_id": 1, "data": {"requests": ["u"]}}"#, "data.requests[0] is a text"),
            (r#"{"job_id": 1, "data": {"stats": [1]}}"#, "data.stats is a list"),
        ] {
            let refusal = examined(text).unwrap_err();
            assert_eq!((refusal.status.as_u16(), refusal.code), (422, "wrong_shape"), "{text}: {refusal:?}");
            assert!(refusal.message.contains(part), "{text}: {refusal:?}");
        }
    }

    #[test]
    fn what_is_no_json_is_named_with_its_place() {
        let deep = format!("{{\"job_id\": 1, \"data\": {{\"items\": [{}{}]}}}}", "[".repeat(2_000), "]".repeat(2_000));
        for (text, part) in [
            (&b""[..], "at byte 0"),
            (b"{\"job_id\": 1, \"data\": {\"items\": [", "at byte 33"),
            (b"{\"job_id\": 1,, ", "at byte 13"),
            (b"{\"job_id\": 1, \"data\": {}} x", "at byte 26"),
            (b"{\"job_id\": \"\xff\", \"data\": {}}", "at byte 12"),
            (deep.as_bytes(), "deep"),
        ] {
            let refusal = examine(Bytes::copy_from_slice(text)).unwrap_err();
            assert_eq!((refusal.status.as_u16(), refusal.code), (400, "malformed_json"), "{refusal:?}");
            assert!(refusal.message.contains(part), "{refusal:?}");
        }
    }

    #[test]
    fn strict_is_what_every_reader_takes() {
        let nested = |n: usize| format!("{}{}", "[".repeat(n), "]".repeat(n));
        for (text, strict) in [
            (r#"{"a": "\ud83d\ude00 \\ud800 \"{[", "b": 1e999, "c": 1180591620717411303424}"#.to_owned(), true),
            (r#"["\u0000\u00ff"]"#.to_owned(), true),
            (nested(DEEPEST), true),
            (nested(DEEPEST + 1), false),
            (r#"["\ud800"]"#.to_owned(), false),
            (r#"["\ud800\u0041"]"#.to_owned(), false),
            (r#"["\ud800\ud800\udc00"]"#.to_owned(), false),
            (r#"["\uDC00"]"#.to_owned(), false),
            ("[NaN]".to_owned(), false),
            ("[1,]".to_owned(), false),
        ] {
            assert_eq!(is_strict(text.as_bytes()), strict, "{text}");
        }
    }
}
