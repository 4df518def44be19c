//! Requests and answers as they go over the wire, member by member.

use super::*;

const CALLS: &str = include_str!("../../../../tests/data/spinneret/calls.json");

/// Whether the answer has this shape: the same members, values equal but for the places with `@`.
fn fits(pattern: &Value, found: &Value) -> bool {
    match (pattern, found) {
        (Value::String(place), found) if place.starts_with('@') => match (place.as_str(), found) {
            ("@number", Value::Number(number)) => number.as_i64().is_some_and(|number| number > 0),
            ("@text", Value::String(text)) => !text.is_empty(),
            ("@moment", Value::String(text)) => text.ends_with('Z') && text.parse::<jiff::Timestamp>().is_ok(),
            ("@lease", Value::String(text)) => is_lease_id(text),
            _ => false,
        },
        (Value::Object(pattern), Value::Object(found)) => {
            pattern.len() == found.len()
                && pattern.iter().all(|(name, pattern)| found.get(name).is_some_and(|found| fits(pattern, found)))
        }
        (Value::Array(pattern), Value::Array(found)) => {
            pattern.len() == found.len() && pattern.iter().zip(found).all(|(pattern, found)| fits(pattern, found))
        }
        (pattern, found) => pattern == found,
    }
}

/// `^lse_[0-9a-f]{32}_[0-9a-z]+_[0-9a-f]{2}$`
pub(super) fn is_lease_id(text: &str) -> bool {
    let parts: Vec<&str> = text.split('_').collect();
    let hex = |text: &str| text.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'));
    let [lse, uuid, site, shard] = parts[..] else { return false };
    let is_site = !site.is_empty() && site.bytes().all(|byte| byte.is_ascii_digit() || byte.is_ascii_lowercase());
    lse == "lse" && uuid.len() == 32 && hex(uuid) && is_site && shard.len() == 2 && hex(shard)
}

#[tokio::test]
async fn every_call_is_answered_member_by_member_as_written_down() {
    let data: Value = serde_json::from_str(CALLS).unwrap();
    let stage = Stage::of(plane_of(&data["plane"].to_string(), "plane.json"), FaceOptions::default()).await;
    let tokens: Vec<(&str, &str)> = data["plane"]["tokens"]
        .as_array()
        .unwrap()
        .iter()
        .map(|token| (token["name"].as_str().unwrap(), token["token"].as_str().unwrap()))
        .collect();
    let mut lease = String::new();
    for call in data["calls"].as_array().unwrap() {
        let name = call["name"].as_str().unwrap();
        let token = call["token"].as_str().unwrap_or("node");
        let token = tokens.iter().find(|(name, _)| *name == token).map_or("spn_nobody", |(_, text)| text);
        let body = call["body"].to_string().replace("@lease", &lease);
        let headers = format!("\r\nauthorization: Bearer {token}\r\nconnect-protocol-version: 1");
        let raw = stage.call(call["procedure"].as_str().unwrap(), &headers, body.as_bytes()).await;
        let answer = raw.json();
        assert_eq!(raw.header("content-type"), Some("application/json"), "{name}");
        assert_eq!(u64::from(raw.status), call["status"].as_u64().unwrap_or(200), "{name}: {answer}");
        assert_eq!(raw.header("spinneret-reason"), call["reason"].as_str(), "{name}");
        match (call["hint"].as_str(), raw.header("spinneret-retry-after-ms")) {
            (Some("@some"), Some(hint)) => assert!(hint.parse::<u64>().unwrap() > 0, "{name}: {hint}"),
            (expected, found) => assert_eq!(found, expected, "{name}"),
        }
        if let Some(code) = call["code"].as_str() {
            assert!(answer["message"].as_str().is_some_and(|message| !message.is_empty()), "{name}: {answer}");
            assert_eq!(answer["code"], code, "{name}");
            continue;
        }
        assert!(fits(&call["answer"], &answer), "{name}\nexpected {}\nfound    {answer}", call["answer"]);
        if let Some(place) = call["keep"]["lease"].as_str() {
            lease = answer.pointer(place).unwrap().as_str().unwrap().to_owned();
        }
    }
    stage.end().await;
}
