//! Tests of the jar: the http-state suite, public suffixes, bounds, the saved form.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing)]

use std::time::Duration;

use proptest::prelude::*;
use serde_json::Value;

use super::*;

/// Cases that are answered otherwise than by the suite, or by RFC 6265bis where the second collection has its answer;
/// with the reason.
const EXCEPTIONS: &[(&str, &str)] = &[
    ("hs-0020", "a cookie without name and value is dropped (RFC 6265bis 5.6), as the suite itself says"),
    ("hs-0024", DROPPED_ALONE),
    ("hs-0025", DROPPED_ALONE),
    ("hs-0026", DROPPED_ALONE),
    ("hs-0028", DROPPED_ALONE),
    ("hs-disabled-chromium0020", "a cookie of more than 4096 bytes is dropped (RFC 6265bis 5.6), as the suite itself says"),
    ("hs-disabled-chromium0022", "a NUL cannot be in a header field (RFC 9110 5.5)"),
    ("hs-disabled-chromium0023", "a CR cannot be in a header field (RFC 9110 5.5)"),
    ("hs-disabled-path0029", "switched off in the suite: the path of the cookie does not match the request"),
    ("hs-name0033", "`=foo=bar` and `aaa` are both nameless, so the second replaces the first (RFC 6265bis 5.6)"),
];

const DROPPED_ALONE: &str = "a header without name and value sets nothing, and takes nothing away (RFC 6265bis 5.6)";

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
    let newer: Value = serde_json::from_str(include_str!("../../../tests/data/cookies_disagreements.json")).unwrap();
    let newer = newer["cases"].as_array().unwrap();
    assert_eq!(newer.len(), 51);
    let by_newer_rules = |id: &str| newer.iter().find(|case| case["id"] == id)?.get("tough_cookie_rfc6265bis_mode");
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
        let expected = by_newer_rules(id).unwrap_or(&case["expected_header"]);
        let right = ours.as_deref() == expected.as_str();
        if right == EXCEPTIONS.iter().any(|(known, _)| *known == id) {
            report.push(format!("{id} {} {}: {ours:?}, expected {expected}", case["set_url"], case["set_cookie"]));
        }
    }
    assert!(report.is_empty(), "{} cases:\n{}", report.len(), report.join("\n"));
}

#[test]
fn the_public_suffix_list_is_followed() {
    let data: Value = serde_json::from_str(include_str!("../../../tests/data/public_suffix.json")).unwrap();
    let cases = data["cases"].as_array().unwrap();
    assert_eq!(cases.len(), 77);
    for case in cases {
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

#[test]
fn a_cookie_for_encrypted_connections_is_set_and_covered_over_them_only() {
    let mut jar = Jar::new();
    set(&mut jar, "http://h.test/", &["a=1; Secure"]);
    assert!(jar.is_empty());
    set(&mut jar, "https://www.h.test/", &["a=1; Secure; Domain=h.test; Path=/x"]);
    set(&mut jar, "http://www.h.test/", &["a=2; Path=/x", "a=3; Path=/x/y; Domain=h.test", "a=4; Path=/y"]);
    assert_eq!(sent(&jar, "https://www.h.test/x/y").as_deref(), Some("a=1"));
    assert_eq!(sent(&jar, "http://www.h.test/y").as_deref(), Some("a=4"), "another path does not cover it");
}

#[test]
fn a_prefix_of_a_name_is_a_promise() {
    for (from, value, is_kept) in [
        ("https://h.test/", "__Secure-a=1; Secure", true),
        ("https://h.test/", "__Secure-a=1", false),
        ("https://h.test/", "__secure-a=1", false),
        ("https://h.test/", "__Host-a=1; Secure; Path=/", true),
        ("https://h.test/", "__Host-a=1; Secure", false),
        ("https://h.test/", "__Host-a=1; Secure; Path=/; Domain=h.test", false),
        ("https://h.test/", "__Host-a", false),
        ("https://h.test/", "=__Secure-a=1; Secure", false),
    ] {
        let mut jar = Jar::new();
        set(&mut jar, from, &[value]);
        assert_eq!(jar.len() == 1, is_kept, "{value}");
    }
}

#[test]
fn a_nameless_cookie_is_sent_as_its_value() {
    let mut jar = Jar::new();
    set(&mut jar, "http://h.test/", &["foo", "a=b", "=bar"]);
    assert_eq!(sent(&jar, "http://h.test/").as_deref(), Some("bar; a=b"));
    assert_eq!(sent(&Jar::from_json(&jar.to_json()).unwrap(), "http://h.test/").as_deref(), Some("bar; a=b"));
}

#[test]
fn a_value_that_is_no_text_goes_back_in_its_bytes() {
    let mut jar = Jar::new();
    jar.set(&url("http://h.test/"), [HeaderValue::from_bytes(b"n=caf\xe9; Path=/").unwrap()].iter());
    for jar in [&jar, &Jar::from_json(&jar.to_json()).unwrap()] {
        assert_eq!(jar.header(&url("http://h.test/")).unwrap().as_bytes(), b"n=caf\xe9");
    }
}

#[test]
fn what_is_over_makes_room_before_what_is_old() {
    let mut jar = Jar::new();
    set(&mut jar, "http://h.test/", &["first=1"]);
    let gone = SetCookie { expires: Some(Timestamp::now() + Duration::from_millis(1)), ..parsed("gone=1") };
    jar.insert(&url("http://h.test/"), gone, Timestamp::UNIX_EPOCH);
    std::thread::sleep(Duration::from_millis(3));
    for n in 2..=MAX_PER_DOMAIN {
        set(&mut jar, "http://h.test/", &[&format!("c{n}=1")]);
    }
    assert_eq!(jar.len(), MAX_PER_DOMAIN);
    assert!(sent(&jar, "http://h.test/").unwrap().starts_with("first=1; c2=1"));
}

fn parsed(header: &str) -> SetCookie {
    SetCookie::from_bytes(header.as_bytes(), Timestamp::UNIX_EPOCH).unwrap()
}

/// Hosts near each other, so that the rules decide and not chance.
fn hosts() -> impl Strategy<Value = &'static str> {
    proptest::sample::select(vec![
        "h.test",
        "a.h.test",
        "b.a.h.test",
        "ah.test",
        "test",
        "shop.co.uk",
        "other.co.uk",
        "co.uk",
        "me.github.io",
        "you.github.io",
        "github.io",
        "127.0.0.1",
        "0.0.1",
        "1.127.0.0.1.test",
        "[::1]",
        "localhost",
        "a.localhost",
        "h.test.",
        "xn--bcher-kva.test",
    ])
}

proptest! {
    /// What a browser's user is promised: no attribute opens a cookie to more than its site.
    #[test]
    fn the_scope_of_a_cookie_never_widens(
        from in hosts(), to in hosts(), domain in proptest::option::of(hosts()), dotted in any::<bool>(),
        paths in proptest::array::uniform3("(/[ab]{0,2}){0,3}"), has_path in any::<bool>(), secure in any::<bool>(),
        schemes in proptest::array::uniform2(proptest::sample::select(vec!["http", "https"])), saved in any::<bool>(),
    ) {
        let [set_at, cookie_path, asked] = paths;
        let mut header = "n=v".to_owned();
        if let Some(domain) = domain {
            header.push_str(&format!("; Domain={}{domain}", if dotted { "." } else { "" }));
        }
        if has_path {
            header.push_str(&format!("; Path={cookie_path}"));
        }
        if secure {
            header.push_str("; Secure");
        }
        let mut jar = Jar::new();
        let from_url = format!("{}://{from}{set_at}", schemes[0]);
        set(&mut jar, &from_url, &[&header]);
        if saved {
            jar = Jar::from_json(&jar.to_json()).unwrap();
        }
        let to_url = url(&format!("{}://{to}{asked}", schemes[1]));
        let (from_host, to_host) = (url(&from_url).host_str().unwrap().to_owned(), to_url.host_str().unwrap().to_owned());
        if sent(&jar, to_url.as_str()).is_some() {
            let site = registrable_domain(&from_host);
            prop_assert!(from_host == to_host || (site.is_some() && site == registrable_domain(&to_host)), "another site");
            if from_host != to_host {
                let domain = domain.expect("without a Domain it stays with its host");
                let is_at_or_below = |host: &str| host == domain || host.ends_with(&format!(".{domain}"));
                prop_assert!(is_at_or_below(&to_host), "outside of its Domain");
                prop_assert!(is_at_or_below(&from_host), "not below its Domain");
            }
            prop_assert!(!secure || schemes == ["https", "https"], "without encryption");
            if has_path && !cookie_path.is_empty() {
                let asked = to_url.path();
                prop_assert!(asked.starts_with(&cookie_path), "outside of its Path");
                let rest = &asked[cookie_path.len()..];
                prop_assert!(rest.is_empty() || rest.starts_with('/') || cookie_path.ends_with('/'), "a part of a folder's name");
            }
        }
    }

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
