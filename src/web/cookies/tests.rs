//! Tests of the jar: the http-state suite, public suffixes, bounds, the saved form.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing)]

use proptest::prelude::*;
use serde_json::Value;

use super::*;

/// Cases that are answered otherwise, with the reason.
const EXCEPTIONS: &[(&str, &str)] = &[
    ("hs-disabled-chromium0022", "a NUL cannot be in a header field (RFC 9110 5.5)"),
    ("hs-disabled-chromium0023", "a CR cannot be in a header field (RFC 9110 5.5)"),
    ("hs-disabled-path0029", "switched off in the suite: the path of the cookie does not match the request"),
];

fn url(text: &str) -> Url {
    Url::parse(text).unwrap()
}

fn set(jar: &mut Jar, from: &str, values: &[&str]) {
    let values: Vec<HeaderValue> = values.iter().map(|value| HeaderValue::from_bytes(value.as_bytes()).unwrap()).collect();
    jar.set(&url(from), values.iter());
}

fn sent(jar: &Jar, to: &str) -> Option<String> {
    jar.header(&url(to)).map(|value| String::from_utf8(value.as_bytes().to_vec()).unwrap())
}

#[test]
fn the_http_state_suite_is_answered() {
    let data: Value = serde_json::from_str(include_str!("../../../tests/data/cookies_http_state.json")).unwrap();
    let cases = data["cases"].as_array().unwrap();
    assert_eq!(cases.len(), 222);
    let mut report = Vec::new();
    for case in cases {
        let id = case["id"].as_str().unwrap();
        let mut jar = Jar::new();
        let values: Vec<HeaderValue> = case["set_cookie"]
            .as_array()
            .unwrap()
            .iter()
            .filter_map(|value| HeaderValue::from_bytes(value.as_str().unwrap().as_bytes()).ok())
            .collect();
        jar.set(&url(case["set_url"].as_str().unwrap()), values.iter());
        let ours = sent(&jar, case["request_url"].as_str().unwrap());
        let right = ours.as_deref() == case["expected_header"].as_str();
        if right == EXCEPTIONS.iter().any(|(known, _)| *known == id) {
            report
                .push(format!("{id} {} {}: {ours:?}, expected {}", case["set_url"], case["set_cookie"], case["expected_header"]));
        }
    }
    assert!(report.is_empty(), "{} cases:\n{}", report.len(), report.join("\n"));
}

#[test]
fn the_public_suffix_list_is_followed() {
    let data: Value = serde_json::from_str(include_str!("../../../tests/data/public_suffix.json")).unwrap();
    for case in data["cases"].as_array().unwrap() {
        let host = case["host"].as_str().unwrap();
        assert_eq!(registrable_domain(host).as_deref(), case["registrable_domain"].as_str(), "{host}");
    }
}

#[test]
fn a_cookie_for_a_public_suffix_is_refused() {
    let mut jar = Jar::new();
    set(&mut jar, "http://shop.example.co.uk/", &["a=1; Domain=co.uk", "b=2; Domain=.example.co.uk", "c=3; Domain=uk"]);
    assert_eq!(sent(&jar, "http://other.example.co.uk/").as_deref(), Some("b=2"));
    assert_eq!(sent(&jar, "http://victim.co.uk/"), None);
    set(&mut jar, "http://localhost/", &["d=4; Domain=localhost"]);
    assert_eq!(sent(&jar, "http://localhost/").as_deref(), Some("d=4"));
}

#[test]
fn secure_cookies_stay_on_secure_connections_and_longer_paths_come_first() {
    let mut jar = Jar::new();
    set(&mut jar, "https://h.test/a/b", &["s=1; Secure; Path=/", "p=2; Path=/a/b", "q=3; Path=/"]);
    assert_eq!(sent(&jar, "https://h.test/a/b").as_deref(), Some("p=2; s=1; q=3"));
    assert_eq!(sent(&jar, "http://h.test/a/b").as_deref(), Some("p=2; q=3"));
    assert_eq!(sent(&jar, "https://h.test/ab").as_deref(), Some("s=1; q=3"));
}

#[test]
fn the_oldest_cookie_goes_when_a_domain_is_full() {
    let mut jar = Jar::new();
    for n in 0..60 {
        set(&mut jar, "http://h.test/", &[&format!("c{n}=1")]);
    }
    assert_eq!(jar.len(), MAX_PER_DOMAIN);
    let header = sent(&jar, "http://h.test/").unwrap();
    assert!(header.starts_with("c10=1; c11=1") && header.ends_with("c59=1"), "{header}");
}

#[test]
fn the_whole_jar_is_bounded() {
    let mut jar = Jar::new();
    for n in 0..MAX_TOTAL + 7 {
        set(&mut jar, &format!("http://h{n}.test/"), &["a=1"]);
    }
    assert_eq!(jar.len(), MAX_TOTAL);
    assert_eq!(sent(&jar, "http://h6.test/"), None);
    assert!(sent(&jar, "http://h7.test/").is_some());
}

#[test]
fn a_saved_jar_gives_the_same_headers() {
    let mut jar = Jar::new();
    set(
        &mut jar,
        "https://a.example.org/x/y",
        &["one=1; Domain=example.org; Path=/", "two=\"q, é\"; Secure; HttpOnly; Max-Age=900", "three=3; Path=/x"],
    );
    set(&mut jar, "http://127.0.0.1:8080/", &["ip=4"]);
    set(&mut jar, "http://[::1]/", &["six=6"]);
    let again = Jar::from_json(&jar.to_json()).unwrap();
    assert_eq!(again.len(), 5);
    for to in ["https://a.example.org/x/y", "https://b.example.org/", "http://127.0.0.1/", "http://[::1]/"] {
        assert!(sent(&jar, to).is_some(), "{to}");
        assert_eq!(sent(&again, to), sent(&jar, to), "{to}");
    }
}

#[test]
fn the_saved_form_is_a_format() {
    let mut jar = Jar::new();
    set(&mut jar, "https://a.example.org/x/y", &["one=1; Domain=example.org; Path=/; Secure"]);
    assert_eq!(
        jar.to_json(),
        r#"{"version":1,"cookies":[{"name":"one","value":"1","domain":"example.org","scope":"domain","path":"/","secure":true,"http_only":false}]}"#
    );
    assert!(matches!(Jar::from_json("{\"version\":9}"), Err(JarError::Version { found: 9 })));
    assert!(matches!(Jar::from_json("["), Err(JarError::Json { .. })));
}

#[test]
fn debug_shows_no_cookie_and_the_header_is_sensitive() {
    let mut jar = Jar::new();
    set(&mut jar, "http://h.test/", &["session=s3cret"]);
    assert!(!format!("{jar:?}").contains("s3cret"));
    assert!(!format!("{:?}", jar.header(&url("http://h.test/"))).contains("s3cret"));
}

#[test]
fn an_expired_cookie_deletes_the_stored_one() {
    let mut jar = Jar::new();
    set(&mut jar, "http://h.test/", &["a=1", "b=2"]);
    set(&mut jar, "http://h.test/", &["a=; Max-Age=0", "b=; Expires=Thu, 01 Jan 1970 00:00:00 GMT"]);
    assert!(jar.is_empty());
}

proptest! {
    #[test]
    fn any_header_is_taken(bytes in proptest::collection::vec(32_u8..=255, 0..80)) {
        let mut jar = Jar::new();
        let text: Vec<u8> = bytes.into_iter().filter(|byte| *byte != 127).collect();
        let value = HeaderValue::from_bytes(&text).unwrap();
        jar.set(&url("http://h.test/"), [&value].into_iter());
        let _ = jar.header(&url("http://h.test/"));
        let _ = Jar::from_json(&jar.to_json()).unwrap();
    }
}
