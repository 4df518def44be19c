//! Which answers are marked with what.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing)]

use bytes::Bytes;
use http::header::CONTENT_TYPE;
use http::{HeaderValue, StatusCode, Version};

use super::*;
use crate::downloader::transport::BodyFlags;

fn rule(marker: &str) -> MarkerRule {
    MarkerRule { marker: marker.into(), domains: vec![], status: vec![], css: None, regex: None }
}

fn css(marker: &str, css: &str) -> MarkerRule {
    MarkerRule { css: Some(css.into()), ..rule(marker) }
}

fn regex(marker: &str, regex: &str) -> MarkerRule {
    MarkerRule { regex: Some(regex.into()), ..rule(marker) }
}

fn reply(status: u16, content_type: &str, body: impl Into<Bytes>) -> Reply {
    let headers = (!content_type.is_empty()).then(|| (CONTENT_TYPE, HeaderValue::from_str(content_type).unwrap()));
    Reply {
        status: StatusCode::from_u16(status).unwrap(),
        version: Version::HTTP_11,
        headers: headers.into_iter().collect(),
        body: body.into(),
        wire_bytes: 0,
        flags: BodyFlags::default(),
    }
}

fn marked(rules: &[MarkerRule], url: &str, reply: &Reply) -> Vec<String> {
    Markers::compile(rules).unwrap().of(&Url::parse(url).unwrap(), &Look::at(reply))
}

const URL: &str = "https://shop.example/a";

#[test]
fn every_condition_of_a_rule_must_hold() {
    let full = MarkerRule {
        domains: vec!["shop.example".into()],
        status: vec![200, 403],
        css: Some("form.captcha".into()),
        regex: Some("(?i)robot".into()),
        ..rule("captcha_page")
    };
    let page = "<p>Are you a ROBOT?<form class=captcha></form>";
    let table = [
        (URL, 403, page, true),
        ("https://www.shop.example/", 200, page, true),
        ("https://myshop.example/", 200, page, false),
        ("https://shop.example.evil.example/", 200, page, false),
        (URL, 429, page, false),
        (URL, 200, "<p>Are you a ROBOT?", false),
        (URL, 200, "<form class=captcha></form>", false),
    ];
    for (url, status, body, is_marked) in table {
        let found = marked(std::slice::from_ref(&full), url, &reply(status, "text/html", body));
        assert_eq!(!found.is_empty(), is_marked, "{url} {status} {body}");
    }
}

#[test]
fn a_marker_is_given_once_whatever_number_of_rules_gives_it() {
    let rules = [
        css("captcha", "form"),
        regex("captcha", "robot"),
        MarkerRule { status: vec![403], ..rule("blocked") },
        regex("blocked", "robot"),
        css("empty_list", "ul:empty"),
    ];
    assert_eq!(
        marked(&rules, URL, &reply(403, "text/html", "robot<form></form><ul></ul>")),
        ["blocked", "captcha", "empty_list"]
    );
    assert_eq!(marked(&rules, URL, &reply(200, "text/html", "<ul><li></ul>")), Vec::<String>::new());
    let many: Vec<_> = (0..50).map(|n| regex(&format!("m{n}"), "x")).collect();
    assert_eq!(marked(&many, URL, &reply(200, "", "x")).len(), 32);
}

#[test]
fn the_text_is_decoded_as_the_page_says() {
    let rules = [regex("empty", "ничего не найдено")];
    let (body, ..) = encoding_rs::WINDOWS_1251.encode("<p>ничего не найдено");
    assert_eq!(marked(&rules, URL, &reply(200, "text/html; charset=windows-1251", body.into_owned())), ["empty"]);
    let wide: Vec<u8> = "\u{feff}ничего не найдено".encode_utf16().flat_map(u16::to_le_bytes).collect();
    assert_eq!(marked(&rules, URL, &reply(200, "", wide)), ["empty"]);
}

#[test]
fn a_body_that_is_no_text_is_marked_by_its_status_alone() {
    let rules = [regex("robot", "robot"), css("tree", "html"), MarkerRule { status: vec![200], ..rule("status") }];
    for (content_type, body) in
        [("image/png", "robot"), ("application/octet-stream", "robot"), ("", "\0robot"), ("text/html", "GIF\0robot")]
    {
        assert_eq!(marked(&rules, URL, &reply(200, content_type, body)), ["status"], "{content_type}");
    }
    assert_eq!(marked(&rules, URL, &reply(200, "application/json", "{\"robot\":1}")), ["status", "robot", "tree"]);
    assert_eq!(Markers::compile(&rules).unwrap().of(&Url::parse(URL).unwrap(), &Look::at_status(200)), ["status"]);
}

#[test]
fn only_the_first_mebibyte_is_looked_at() {
    let rules = [regex("late", "needle"), css("tree", "b.needle")];
    let page = |before: usize| format!("{}needle <b class=needle>", "é".repeat(before / 2));
    assert_eq!(marked(&rules, URL, &reply(200, "text/html", page(LOOKED_AT - 64))), ["late", "tree"]);
    assert_eq!(marked(&rules, URL, &reply(200, "text/html", page(LOOKED_AT))), Vec::<String>::new());
    // Cut within a character, the text is still read as UTF-8.
    let odd = format!("x{}", page(LOOKED_AT));
    assert_eq!(marked(&[regex("utf8", "^xéé")], URL, &reply(200, "text/html", odd)), ["utf8"]);
}

#[test]
fn a_rule_that_cannot_be_used_is_named_by_number_field_and_reason() {
    let table = [
        (regex("a", "(unclosed"), "regex", "MARKERS rule 2: regex = \"(unclosed\" cannot be used: unclosed group; "),
        (regex("a", "(?=ahead)"), "regex", "look-around"),
        (regex("a", r"\w{5000}"), "regex", "larger than 1048576 bytes"),
        (css("a", "div["), "css", "MARKERS rule 2: css = \"div[\" cannot be used: "),
    ];
    for (bad, field, words) in table {
        let error = Markers::compile(&[rule("good"), bad.clone()]).unwrap_err();
        assert_eq!((error.rule(), error.field()), (2, field));
        assert!(error.to_string().contains(words), "{error}");
        let good = Markers::of_good(&[MarkerRule { status: vec![200], ..rule("good") }, bad]);
        assert_eq!(good.of(&Url::parse(URL).unwrap(), &Look::at_status(200)), ["good"]);
    }
}

#[test]
fn a_pattern_takes_time_in_proportion_to_the_text() {
    let body = "a".repeat(LOOKED_AT);
    let begun = std::time::Instant::now();
    assert!(marked(&[regex("bomb", "(a|aa)*b$")], URL, &reply(200, "text/plain", body)).is_empty());
    assert!(begun.elapsed() < std::time::Duration::from_secs(20), "{:?}", begun.elapsed());
}
