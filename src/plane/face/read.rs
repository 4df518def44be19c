//! Bodies: unpacked and read, as leniently as the protocol's own JSON is (wire contract, section 2).
//!
//! What cannot be read is told by kind and place, never by what stands there.

use std::io::Read as _;

use bytes::Bytes;
use flate2::read::MultiGzDecoder;
use http::HeaderMap;
use http::header::CONTENT_ENCODING;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::error::Category;
use serde_json::value::RawValue;
use serde_json::{Map, Value};

use crate::plane::model::refusal::Refusal;
use crate::spinneret::messages::ReportRequest;
use crate::spinneret::messages::tolerant::Object;
use crate::spinneret::{Code, Report};

/// Bytes of the largest body, packed or unpacked.
pub(super) const LARGEST: usize = 8 << 20;
/// Something to stand in for a moment that is missing.
const ANY_MOMENT: &str = "1970-01-01T00:00:00Z";

/// The body as it was before it was packed.
///
/// # Errors
/// `resource_exhausted`, `invalid_argument` or `unimplemented`, all without a reason.
pub(super) fn unpacked(headers: &HeaderMap, body: Bytes) -> Result<Bytes, Refusal> {
    if body.len() > LARGEST {
        return Err(Refusal::body_too_large());
    }
    let mut is_packed = false;
    for coding in headers.get_all(CONTENT_ENCODING).iter().flat_map(|value| value.as_bytes().split(|byte| *byte == b',')) {
        match coding.trim_ascii() {
            b"" => {}
            coding if coding.eq_ignore_ascii_case(b"identity") => {}
            coding if !is_packed && coding.eq_ignore_ascii_case(b"gzip") => is_packed = true,
            _ => {
                let code = Code::Unimplemented;
                return Err(Refusal {
                    code,
                    ..Refusal::malformed("the body's coding is unknown here; send it as it is, or with gzip")
                });
            }
        }
    }
    if !is_packed || body.is_empty() {
        return Ok(body);
    }
    let mut plain = Vec::new();
    let read = MultiGzDecoder::new(&*body).take(LARGEST as u64 + 1).read_to_end(&mut plain);
    if plain.len() > LARGEST {
        return Err(Refusal::body_too_large());
    }
    read.map_err(|_| Refusal::malformed("the gzip data of the body is damaged or cut off; send it again"))?;
    Ok(plain.into())
}

/// A message.
///
/// # Errors
/// `invalid_argument` without a reason.
pub(super) fn message<T: DeserializeOwned>(body: &[u8]) -> Result<T, Refusal> {
    let text = text(body)?;
    serde_json::from_str(text).map(|Object(message)| message).map_err(|error| unreadable(&error))
}

/// The reports of a call. One that lacks a moment is one by itself that cannot be taken; anything else that does not fit makes
/// the whole call unreadable.
///
/// # Errors
/// As [`message`].
pub(super) fn reports(body: &[u8]) -> Result<Vec<Result<Report, Incomplete>>, Refusal> {
    #[derive(Deserialize)]
    struct Elements {
        #[serde(default)]
        reports: Option<Vec<Box<RawValue>>>,
    }

    let text = text(body)?;
    if let Ok(Object(ReportRequest { reports })) = serde_json::from_str(text) {
        return Ok(reports.into_iter().map(Ok).collect());
    }
    let Object(Elements { reports }) = serde_json::from_str(text).map_err(|error| unreadable(&error))?;
    reports.unwrap_or_default().iter().map(|element| report(element.get())).collect()
}

/// A report that lacks a moment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Incomplete {
    pub(super) report_id: String,
    /// What is missing.
    pub(super) message: String,
}

fn report(text: &str) -> Result<Result<Report, Incomplete>, Refusal> {
    let error = match serde_json::from_str::<Object<Report>>(text) {
        Ok(Object(report)) => return Ok(Ok(report)),
        Err(error) => error,
    };
    let Ok(mut members) = serde_json::from_str::<Map<String, Value>>(text) else { return Err(unreadable(&error)) };
    let mut missing = Vec::new();
    for (name, other) in [("started_at", "startedAt"), ("finished_at", "finishedAt")] {
        members.retain(|key, value| !(value.is_null() && (key == name || key == other)));
        if !members.contains_key(name) && !members.contains_key(other) {
            members.insert(name.to_owned(), ANY_MOMENT.into());
            missing.push(name);
        }
    }
    // With the moments filled in it must fit: then they are all that is wrong with it.
    match Report::deserialize(Value::Object(members)) {
        Ok(Report { report_id, .. }) if !missing.is_empty() => Ok(Err(Incomplete {
            report_id,
            message: format!("{} {} missing", missing.join(" and "), if missing.len() > 1 { "are" } else { "is" }),
        })),
        _ => Err(unreadable(&error)),
    }
}

fn text(body: &[u8]) -> Result<&str, Refusal> {
    if body.is_empty() {
        return Err(Refusal::malformed("the body is empty; send one JSON object, {} for all defaults"));
    }
    std::str::from_utf8(body).map_err(|_| Refusal::malformed("the body is not UTF-8"))
}

fn unreadable(error: &serde_json::Error) -> Refusal {
    let what = match error.classify() {
        Category::Data => "does not fit the message",
        Category::Syntax | Category::Eof | Category::Io => "is not JSON",
    };
    Refusal::malformed(format!("the body {what}, at line {} column {}", error.line(), error.column()))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing)]

    use std::io::Write as _;

    use http::HeaderValue;
    use serde_json::json;

    use super::*;
    use crate::spinneret::messages::RenewRequest;
    use crate::spinneret::{AcquireBatchRequest, WatchConfigRequest};

    fn read<T: DeserializeOwned>(value: &Value) -> Option<T> {
        message(value.to_string().as_bytes()).ok()
    }

    #[test]
    fn b024_both_spellings_unknown_fields_nulls_and_numbers_as_texts_are_read() {
        for body in [
            json!({"site": "shop", "client": "web", "endpoint_group": "g", "session_key": "k", "wait_ms": 5, "count": 3}),
            json!({"site": "shop", "client": "web", "endpointGroup": "g", "sessionKey": "k", "waitMs": "5", "count": "3", "new": [1]}),
            json!({"site": "shop", "client": "web", "uri": null, "endpointGroup": "g", "session_key": "k", "wait_ms": 5.0, "count": 3}),
        ] {
            let batch: AcquireBatchRequest = read(&body).unwrap();
            let each = &batch.each;
            assert_eq!(
                (&*each.site, &*each.endpoint_group, &*each.session_key, each.wait_ms, batch.count),
                ("shop", "g", "k", 5, 3)
            );
        }
        let renew: RenewRequest = read(&json!({"leaseId": "a", "extendMs": "300000"})).unwrap();
        assert_eq!((&*renew.lease_id, renew.extend_ms), ("a", 300_000));
        let watch: WatchConfigRequest =
            read(&json!({"items": [{"group": "g", "key": "k", "version": "7"}], "timeoutMs": 9})).unwrap();
        assert_eq!((watch.items[0].version, watch.timeout_ms), (7, 9));
        assert_eq!(read::<RenewRequest>(&json!({})), Some(RenewRequest::default()));
        for wrong in
            [json!({"lease_id": 5}), json!({"extend_ms": "x"}), json!({"lease_id": "a", "leaseId": "a"}), json!([]), json!(7)]
        {
            assert_eq!(read::<RenewRequest>(&wrong), None, "{wrong}");
        }
    }

    #[test]
    fn b026_what_is_no_json_is_refused_without_a_reason_and_without_repeating_it() {
        for body in
            [&b""[..], b"  ", b"{", b"{} {}", b"{\"site\": \"c4n4ry\", }", b"\xff", b"null", b"{\"lease_id\": [\"c4n4ry\"]}"]
        {
            let refusal = message::<RenewRequest>(body).unwrap_err();
            assert_eq!((refusal.code.as_str(), refusal.reason), ("invalid_argument", None));
            assert!(!refusal.message.contains("c4n4ry"), "{refusal}");
        }
    }

    fn one(members: &Value) -> Value {
        let mut report =
            json!({"report_id": "r1", "lease_id": "l", "uri": "/", "started_at": ANY_MOMENT, "finished_at": ANY_MOMENT});
        report.as_object_mut().unwrap().extend(members.as_object().unwrap().clone());
        report
    }

    #[test]
    fn b025_response_bytes_are_a_number_or_its_text() {
        for bytes in [json!(48213), json!("48213")] {
            let body = json!({"reports": [one(&json!({"response_bytes": bytes}))]}).to_string();
            assert_eq!(reports(body.as_bytes()).unwrap()[0].as_ref().unwrap().response_bytes, 48213);
        }
    }

    #[test]
    fn b058_a_report_without_its_moments_is_one_by_itself_and_one_of_another_type_spoils_the_call() {
        let body =
            json!({"reports": [one(&json!({})), one(&json!({"finished_at": null, "report_id": "r2"})), {"reportId": "r3"}]});
        let read = reports(body.to_string().as_bytes()).unwrap();
        assert!(read[0].is_ok());
        let incomplete = |id: &str, message: &str| Incomplete { report_id: id.to_owned(), message: message.to_owned() };
        assert_eq!(read[1], Err(incomplete("r2", "finished_at is missing")));
        assert_eq!(read[2], Err(incomplete("r3", "started_at and finished_at are missing")));
        for wrong in
            [json!({"http_status": "x"}), json!({"markers": "a"}), json!({"started_at": 5}), json!({"started_at": "soon"})]
        {
            let body = json!({"reports": [one(&json!({})), one(&wrong)]}).to_string();
            assert_eq!(reports(body.as_bytes()).unwrap_err().reason, None, "{wrong}");
        }
        assert!(reports(b"{\"reports\": [5]}").is_err() && reports(b"{\"reports\": [null]}").is_err());
        assert_eq!(reports(b"{}").unwrap(), []);
    }

    #[test]
    fn a_packed_body_is_unpacked_up_to_the_bound() {
        let pack = |bytes: &[u8]| {
            let mut packer = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
            packer.write_all(bytes).unwrap();
            Bytes::from(packer.finish().unwrap())
        };
        let coded = |coding: &'static str| HeaderMap::from_iter([(CONTENT_ENCODING, HeaderValue::from_static(coding))]);
        assert_eq!(unpacked(&coded("gzip"), pack(b"{}")).unwrap(), "{}");
        assert_eq!(unpacked(&coded("identity"), Bytes::from_static(b"{}")).unwrap(), "{}");
        let code = |headers: &HeaderMap, body| unpacked(headers, body).unwrap_err().code;
        assert_eq!(code(&coded("gzip"), pack(&vec![b' '; LARGEST + 1])), Code::ResourceExhausted);
        assert_eq!(code(&HeaderMap::new(), vec![b' '; LARGEST + 1].into()), Code::ResourceExhausted);
        assert_eq!(code(&coded("gzip"), Bytes::from_static(b"{}")), Code::InvalidArgument);
        assert_eq!(code(&coded("br"), Bytes::from_static(b"{}")), Code::Unimplemented);
        assert_eq!(code(&coded("gzip, gzip"), pack(b"{}")), Code::Unimplemented);
    }
}
