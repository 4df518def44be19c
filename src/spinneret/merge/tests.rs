//! Tests of both forms of a merge, and of their agreement.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing)]

use http::HeaderValue;
use http::header::{COOKIE, USER_AGENT};
use proptest::collection::{btree_map, vec};
use proptest::prelude::*;
use reqwest::Request;
use serde_json::json;
use url::Url;

use super::*;
use crate::spinneret::Error;

fn credential(value: Value) -> Credential {
    serde_json::from_value(value).unwrap()
}

fn cookies(parts: &Parts) -> Vec<(&str, &str)> {
    parts.cookies.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect()
}

fn pairs(pairs: &[(String, String)]) -> Vec<(&str, &str)> {
    pairs.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect()
}

fn request(url: &str, headers: &[(&'static str, &str)]) -> Request {
    let mut request = Request::new(http::Method::GET, url.parse().unwrap());
    for (name, value) in headers {
        request.headers_mut().append(*name, HeaderValue::from_str(value).unwrap());
    }
    request
}

fn header<'a>(request: &'a Request, name: &str) -> Vec<&'a str> {
    request.headers().get_all(name).iter().map(|value| value.to_str().unwrap()).collect()
}

#[test]
fn b081_a_cookie_header_alone_is_sent_as_it_is() {
    let credential = credential(json!({"cookie_header": "a=1; flag;b=2"}));
    let parts = parts(&credential, None, &Explicit::new());
    assert_eq!(pairs(&parts.headers), [("Cookie", "a=1; flag;b=2")]);
    assert!(parts.cookies.is_empty());
    assert_eq!(parts.cookie_header().unwrap(), "a=1; flag;b=2");

    let mut request = request("http://h/", &[]);
    credential.apply(&mut request).unwrap();
    assert_eq!(header(&request, "cookie"), ["a=1; flag;b=2"]);
}

#[test]
fn b081_a_cookie_header_is_taken_apart_when_the_caller_has_cookies() {
    let credential = credential(json!({"cookie_header": "a=1; b = 2 ;flag; =x; c="}));
    let parts = parts(&credential, None, &Explicit::new().cookie("b", "mine").cookie("d", "4"));
    assert!(parts.headers.is_empty());
    assert_eq!(cookies(&parts), [("a", "1"), ("b", "mine"), ("c", ""), ("d", "4")]);
    assert_eq!(parts.cookie_header().unwrap(), "a=1; b=mine; c=; d=4");

    let mut request = request("http://h/", &[("cookie", "b=mine"), ("cookie", "d=4; odd")]);
    credential.apply(&mut request).unwrap();
    assert_eq!(header(&request, "cookie"), ["b=mine; d=4; odd; a=1; c="]);
}

#[test]
fn b081_a_cookie_header_does_not_count_beside_other_cookies_of_the_credential() {
    let with_header = credential(json!({"cookie_header": "a=1", "headers": {"cOOkie": "z=26"}}));
    let with_map = credential(json!({"cookie_header": "a=1", "cookies": {"z": "26"}}));
    let told = parts(&with_header, None, &Explicit::new());
    assert_eq!(pairs(&told.headers), [("cOOkie", "z=26")]);
    assert!(told.cookies.is_empty());
    let told = parts(&with_map, None, &Explicit::new());
    assert_eq!((cookies(&told), told.headers.len()), (vec![("z", "26")], 0));

    for credential in [with_header, with_map] {
        let mut request = request("http://h/", &[]);
        credential.apply(&mut request).unwrap();
        assert_eq!(header(&request, "cookie"), ["z=26"]);
    }
}

#[test]
fn b082_a_header_of_the_caller_takes_the_place_of_the_credentials_in_his_spelling() {
    let credential = credential(json!({"headers": {"User-Agent": "identity", "X-Device": "d1"}}));
    let told = parts(&credential, None, &Explicit::new().header("user-agent", "mine").header("X-Own", "1").header("X-Own", "2"));
    assert_eq!(pairs(&told.headers), [("X-Device", "d1"), ("user-agent", "mine"), ("X-Own", "1"), ("X-Own", "2")]);

    let mut request = request("http://h/", &[("user-agent", "mine"), ("x-own", "1"), ("x-own", "2")]);
    credential.apply(&mut request).unwrap();
    assert_eq!(header(&request, "user-agent"), ["mine"]);
    assert_eq!((header(&request, "x-own"), header(&request, "x-device")), (vec!["1", "2"], vec!["d1"]));
}

#[test]
fn b083_parameters_and_cookies_of_the_caller_win_and_the_proxy_is_passed_on() {
    let credential = credential(json!({
        "cookies": {"sid": "theirs", "z": "1"}, "query": {"sig": "theirs", "v": "2"}, "json": {"k": [1]}, "values": {"n": 1.5}
    }));
    let proxy = ProxyAssignment { url: "http://u:p@10.0.0.1:3128".to_owned(), ..ProxyAssignment::default() };
    let explicit = Explicit::new().cookie("sid", "first").cookie("sid", "mine").param("sig", "mine").param("sig", "again");
    let told = parts(&credential, Some(&proxy), &explicit);
    assert_eq!(cookies(&told), [("sid", "mine"), ("z", "1")]);
    assert_eq!(pairs(&told.params), [("v", "2"), ("sig", "mine"), ("sig", "again")]);
    assert_eq!(told.proxy.as_deref(), Some("http://u:p@10.0.0.1:3128"));
    assert_eq!((told.json.unwrap(), told.values["n"].clone()), (json!({"k": [1]}), json!(1.5)));

    assert_eq!(parts(&credential, None, &explicit).proxy, None);
    assert_eq!(parts(&credential, Some(&ProxyAssignment::default()), &explicit).proxy, None);
}

#[test]
fn a_cookie_header_beside_cookies_by_name_becomes_one_header() {
    let own = credential(json!({"headers": {"Cookie": "a=1; b=1; flag"}, "cookies": {"b": "2", "c": "2"}}));
    let told = parts(&own, None, &Explicit::new().cookie("c", "3"));
    assert_eq!(pairs(&told.headers), [("Cookie", "a=1; flag; b=2; c=3")]);
    assert!(told.cookies.is_empty());

    let told = parts(&own, None, &Explicit::new().header("COOKIE", "b=9; mine").cookie("d", "4"));
    assert_eq!(pairs(&told.headers), [("COOKIE", "b=9; mine; c=2; d=4")], "the credential's header gives way whole");

    let told = parts(&own, None, &Explicit::new().header("Cookie", "x=1").header("cookie", "y=2"));
    assert_eq!(pairs(&told.headers), [("Cookie", "x=1; y=2; b=2; c=2")]);

    let mut request = request("http://h/", &[]);
    own.apply(&mut request).unwrap();
    assert_eq!(header(&request, "cookie"), ["a=1; flag; b=2; c=2"]);
}

#[test]
fn a_cookie_header_of_the_caller_takes_the_place_of_the_credentials_text() {
    let own = credential(json!({"cookie_header": "a=1"}));
    let told = parts(&own, None, &Explicit::new().header("cookie", "x=1"));
    assert_eq!(pairs(&told.headers), [("cookie", "x=1")]);
    let told = parts(&own, None, &Explicit::new().header("cookie", "x=1").cookie("y", "2"));
    assert_eq!(pairs(&told.headers), [("cookie", "x=1; a=1; y=2")]);
    assert_eq!(parts(&Credential::default(), None, &Explicit::new()).cookie_header(), None);
}

#[test]
fn the_bytes_of_a_query_stay_and_missing_parameters_follow() {
    let own = credential(json!({"query": {"b": "x y&z", "a": "9", "é": "ü"}}));
    for (before, after) in [
        ("http://h/p?a=%7e+1&a=2&&raw'#f", "http://h/p?a=%7e+1&a=2&&raw'&b=x+y%26z&%C3%A9=%C3%BC#f"),
        ("http://h/p", "http://h/p?a=9&b=x+y%26z&%C3%A9=%C3%BC"),
        ("http://h/p?%61=1", "http://h/p?%61=1&b=x+y%26z&%C3%A9=%C3%BC"),
        ("http://h/p?a&b=&%C3%A9", "http://h/p?a&b=&%C3%A9"),
    ] {
        let before: Url = before.parse().unwrap();
        let mut request = Request::new(http::Method::GET, before);
        own.apply(&mut request).unwrap();
        assert_eq!(request.url().as_str(), after.parse::<Url>().unwrap().as_str());
    }
    let mut request = request("http://h/p", &[]);
    Credential::default().apply(&mut request).unwrap();
    assert_eq!(request.url().as_str(), "http://h/p", "no question mark for nothing");
    assert!(request.headers().is_empty());
}

#[test]
fn what_follows_from_url_and_body_is_not_the_credentials() {
    let own = credential(json!({
        "headers": {"Host": "evil", "content-length": "5", "Transfer-Encoding": "chunked", "Trailer": "x", "X-A": "1", "x-a": "2"}
    }));
    let mut request = request("http://h/", &[]);
    own.apply(&mut request).unwrap();
    assert_eq!(request.headers().len(), 1);
    assert_eq!(header(&request, "x-a"), ["1"], "of two spellings the first one counts");
}

#[test]
fn values_are_marked_as_sensitive() {
    let own = credential(json!({"headers": {"User-Agent": "c4n4ry"}, "cookie_header": "a=c4n4ry"}));
    for present in [&[][..], &[("cookie", "b=2")]] {
        let mut request = request("http://h/", present);
        own.apply(&mut request).unwrap();
        assert!(request.headers()[USER_AGENT].is_sensitive() && request.headers()[COOKIE].is_sensitive());
        assert!(!format!("{request:?}").contains("c4n4ry"), "{request:?}");
    }
}

#[test]
fn an_impossible_value_is_an_error_that_does_not_show_it_and_changes_nothing() {
    for (own, named) in [
        (json!({"headers": {"A": "1", "X-Token": "c4n4ry\r\nX-Evil: 1"}, "query": {"q": "1"}}), "x-token"),
        (json!({"headers": {"A": "1"}, "cookies": {"sid": "c4n4ry\n"}, "query": {"q": "1"}}), "cookie"),
        (json!({"headers": {"A": "1"}, "cookie_header": "sid=c4n4ry\0", "query": {"q": "1"}}), "cookie"),
        (json!({"headers": {"A": "1", "c4n4ry: c4n4ry": "2"}, "query": {"q": "1"}}), "name 2 of the 2"),
    ] {
        let mut request = request("http://h/", &[("x-mine", "1")]);
        let error = credential(own).apply(&mut request).unwrap_err();
        assert!(matches!(error, Error::InvalidArgument(_)));
        assert!(error.to_string().contains(named), "{error}");
        assert!(!format!("{error} {error:?}").contains("c4n4ry"), "{error}");
        assert_eq!((request.url().as_str(), request.headers().len()), ("http://h/", 1));
    }
}

#[test]
fn values_beyond_ascii_are_sent_as_utf_8() {
    let own = credential(json!({"cookies": {"name": "é"}}));
    let mut request = request("http://h/", &[]);
    own.apply(&mut request).unwrap();
    assert_eq!(request.headers()[COOKIE].as_bytes(), "name=é".as_bytes());
}

#[test]
fn a_proxy_of_each_scheme_is_made_and_socks_resolves_at_the_proxy() {
    for (url, scheme) in [
        ("http://u:p%40x@10.0.0.1:3128", "http"),
        ("HTTPS://proxy.example:443", "https"),
        ("socks5://u:p@10.0.0.1:1080", "socks5h"),
        ("socks5h://10.0.0.1:1080", "socks5h"),
    ] {
        let proxy = ProxyAssignment { url: url.to_owned(), ..ProxyAssignment::default() }.to_reqwest().unwrap();
        let shown = format!("{proxy:?}");
        assert!(shown.contains(&format!("{scheme:?}")), "{shown}");
    }
}

#[test]
fn a_proxy_that_cannot_be_used_is_named_without_its_url() {
    for url in [
        "",
        "c4n4ry",
        "c4n4ry:c4n4ry@h:1",
        "ftp://c4n4ry@h:1",
        "http://",
        "c4n4ry://h:1",
        "http://c4n4ry:c4n4ry@:1",
        "http://c4n4ry h",
    ] {
        let proxy = ProxyAssignment { url: url.to_owned(), proxy_id: "pxy_7".to_owned(), ..ProxyAssignment::default() };
        let error = proxy.to_reqwest().unwrap_err();
        assert!(matches!(error, Error::Configuration(_)) && error.to_string().contains("pxy_7"), "{error}");
        assert!(!format!("{error} {error:?}").contains("c4n4ry"), "{error}");
    }
}

#[test]
fn b085_debug_forms_show_no_value() {
    let own = credential(json!({
        "cookies": {"sid": "c4n4ry-1"}, "headers": {"X-A": "c4n4ry-2"}, "query": {"q": "c4n4ry-3"},
        "json": {"k": "c4n4ry-4"}, "values": {"k": "c4n4ry-5"}
    }));
    let proxy = ProxyAssignment { url: "http://u:c4n4ry-6@h:1".to_owned(), ..ProxyAssignment::default() };
    let explicit = Explicit::new().header("X-B", "c4n4ry-7").cookie("c", "c4n4ry-8").param("p", "c4n4ry-9");
    let told = parts(&own, Some(&proxy), &explicit);
    let response = AcquireResponse { credential: own.clone(), proxy: Some(proxy.clone()), ..AcquireResponse::default() };
    assert_eq!(response.parts(&explicit), told);
    let all: [&dyn fmt::Debug; 5] = [&told, &explicit, &own, &proxy, &response];
    for shown in all.iter().flat_map(|value| [format!("{value:?}"), format!("{value:#?}")]) {
        assert!(!shown.contains("c4n4ry") && !shown.contains("//u"), "{shown}");
    }
    assert!(format!("{explicit:?}").contains("X-B"), "names help and are no secret");
}

fn name() -> impl Strategy<Value = String> {
    prop_oneof![3 => "[abcABC]{1,2}", 1 => Just("Cookie".to_owned()), 1 => Just("cookie".to_owned())]
}

fn text() -> impl Strategy<Value = String> {
    prop_oneof!["[a-z0-9 =;]{0,8}", "[ab]=[0-9]; [ab]=[0-9]"]
}

prop_compose! {
    fn any_credential()(
        headers in btree_map(name(), text(), 0..4),
        cookies in btree_map("[a-d]", "[0-9]{0,2}", 0..3),
        cookie_header in text(),
        query in btree_map("[a-d]", text(), 0..3),
    ) -> Credential {
        Credential { headers, cookies, cookie_header, query, ..Credential::default() }
    }
}

prop_compose! {
    fn any_explicit()(
        headers in vec((name(), text()), 0..4),
        cookies in btree_map("[a-d]", "[0-9]{0,2}", 0..3),
        params in vec(("[a-d]", text()), 0..3),
    ) -> Explicit {
        Explicit { headers, cookies, params }
    }
}

proptest! {
    #[test]
    fn parts_never_lose_a_value_of_the_caller(own in any_credential(), explicit in any_explicit()) {
        let told = parts(&own, None, &explicit);
        for (name, value) in explicit.headers.iter().filter(|(name, _)| !cookies::is_cookie(name)) {
            prop_assert!(told.headers.contains(&(name.clone(), value.clone())));
            let others = explicit.headers.iter().filter(|(other, _)| other.eq_ignore_ascii_case(name)).count();
            prop_assert_eq!(told.headers.iter().filter(|(other, _)| other.eq_ignore_ascii_case(name)).count(), others);
        }
        let mine: Vec<_> = told.params.iter().filter(|(name, _)| explicit.params.iter().any(|(own, _)| own == name)).collect();
        prop_assert_eq!(mine, explicit.params.iter().collect::<Vec<_>>());

        let sent = told.cookie_header().unwrap_or_default();
        let sent: Vec<_> = cookies::parse(&sent).collect();
        for (name, value) in &explicit.cookies {
            let found: Vec<_> = sent.iter().filter(|(other, _)| other == name).collect();
            prop_assert!(found == [&(name.as_str(), value.as_str())], "{:?}", found);
        }
        for (_, text) in explicit.headers.iter().filter(|(name, _)| cookies::is_cookie(name)) {
            for (name, value) in cookies::parse(text).filter(|(name, _)| !explicit.cookies.contains_key(*name)) {
                prop_assert!(sent.contains(&(name, value)));
            }
        }
        let is_header = told.headers.iter().filter(|(name, _)| cookies::is_cookie(name)).count();
        prop_assert!(is_header <= 1 && (is_header == 0 || told.cookies.is_empty()), "one source of cookies");
    }

    #[test]
    fn a_request_keeps_what_it_had(own in any_credential(), present in vec((name(), "[a-z]=[0-9]"), 0..4), query in "[a-d=&%2]{0,8}") {
        let mut request = Request::new(http::Method::GET, "http://h/p".parse().unwrap());
        request.url_mut().set_query(Some(&query).filter(|query| !query.is_empty()).map(|query| query.as_str()));
        for (name, value) in &present {
            request.headers_mut().append(http::HeaderName::try_from(name).unwrap(), HeaderValue::try_from(value).unwrap());
        }
        let (before, query) = (request.headers().clone(), request.url().query().unwrap_or_default().to_owned());
        own.apply(&mut request).unwrap();
        for name in before.keys().filter(|name| *name != COOKIE) {
            prop_assert!(before.get_all(name).iter().eq(request.headers().get_all(name)));
        }
        let sent: Vec<_> = request.headers().get_all(COOKIE).iter().map(|value| value.to_str().unwrap()).collect();
        let sent: Vec<_> = sent.iter().flat_map(|text| cookies::parse(text)).collect();
        for text in before.get_all(COOKIE) {
            prop_assert!(cookies::parse(text.to_str().unwrap()).all(|pair| sent.contains(&pair)));
        }
        prop_assert!(request.url().query().unwrap_or_default().starts_with(&query));
        // A second time nothing is missing any more.
        let (headers, url) = (request.headers().clone(), request.url().clone());
        own.apply(&mut request).unwrap();
        prop_assert_eq!(headers, request.headers().clone());
        prop_assert_eq!(&url, request.url());
    }
}
