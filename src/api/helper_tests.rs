#![allow(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing)]
//! Forms, loaders, JSONPath and feeds as a callback calls them: on a response.

use std::collections::BTreeMap;

use serde::Deserialize;
use serde_json::{Value, json};

use super::form::FormError;
use super::json_path::JsonPathError;
use super::loader::{LoaderRules, Processor};
use super::response::Response;
use super::response::tests::response;
use super::selector::PageOptions;

fn page(content_type: &'static str, body: &[u8]) -> Response {
    response(content_type, body.to_vec(), PageOptions::default())
}

#[test]
fn a_form_is_found_by_what_is_in_it_and_sent_in_the_encoding_of_its_page() {
    let page = page(
        "text/html; charset=windows-1251",
        b"<base href=/b/><form id=one></form><form id=two action=go method=post><input name=q value='\xcf'><input name=u></form>",
    );
    let mut form = page.form("input[name=q]").unwrap();
    assert_eq!((form.id(), page.forms().len(), form.value("q").as_deref()), ("two", 2, Some("\u{41f}")));
    let request = form.fill("u", "\u{20ac}").unwrap().submit(&()).unwrap();
    assert_eq!((request.url().as_str(), request.body_bytes()), ("http://a.example/b/go", &b"q=%CF&u=%88"[..]));
    assert_eq!(page.form_by_xpath("//form[2]").unwrap().id(), "two");
    let error = page.form("#three").unwrap_err().to_string();
    assert!(error.contains("\"#three\"") && error.contains("2 on the page"), "{error}");
    assert!(matches!(page.form("form["), Err(FormError::Selector(_))) && page.take_selector_errors().is_empty());
}

#[test]
fn json_is_read_once_and_asked_by_path() {
    #[derive(Debug, Deserialize, PartialEq)]
    struct Book {
        n: u32,
    }
    let page = page("application/json", br#"{"books": [{"n": 1}, {"n": "x"}, {"n": 3}], "next": "/2"}"#);
    assert!(std::ptr::eq(page.json_value().unwrap(), page.json_value().unwrap()));
    assert_eq!(page.json_path("$.next").unwrap(), [&json!("/2")]);
    let books: Vec<_> = page.json_items::<Book>("$.books[*]").unwrap().collect();
    assert_eq!((books[0].as_ref().unwrap(), books[2].as_ref().unwrap()), (&Book { n: 1 }, &Book { n: 3 }));
    let error = books[1].as_ref().unwrap_err().to_string();
    assert!(error.starts_with("item 2 of \"$.books[*]\" in http://a.example/d/"), "{error}");
    let rules = LoaderRules::new().default_output(Processor::take_first());
    assert_eq!(page.loader(&rules).json_path("next", "$.next").load_value().unwrap(), json!({"next": "/2"}));
    assert!(matches!(page.json_path("next"), Err(JsonPathError::Path { .. })));

    let html = self::page("text/html", b"<p>");
    assert!(matches!(html.json_path("$"), Err(JsonPathError::Json(_))));
    let error = html.loader(&rules).json_path("a", "$").load_value().unwrap_err().to_string();
    assert!(error.contains("\"a\"") && error.contains("http://a.example/d/"), "{error}");
}

#[test]
fn feeds_are_read_in_their_encoding_and_without_their_mark() {
    let rows = page("text/csv; charset=iso-8859-1", b"name;n\r\ncaf\xe9;1\r\n");
    let options = super::CsvOptions::default().delimiter(b';');
    let row = rows.csv_with(&options).next().unwrap().unwrap();
    let expected: BTreeMap<String, String> = [("name", "caf\u{e9}"), ("n", "1")].map(|(k, v)| (k.into(), v.into())).into();
    assert_eq!(row.to::<BTreeMap<String, String>>().unwrap(), expected);
    assert_eq!(page("text/csv", "\u{feff}a,b\n1,2".as_bytes()).csv().headers().collect::<Vec<_>>(), ["a", "b"]);

    let xml = page("application/xml", b"<?xml version='1.0' encoding='windows-1251'?><f><item>\xcf</item></f>");
    assert_eq!(xml.xml_items("item").map(|item| item.unwrap().text()).collect::<Vec<_>>(), ["\u{41f}"]);

    let lines = page("application/jsonl", "\u{feff}{\"n\": 1}\n[]\n".as_bytes());
    assert_eq!(lines.json_lines::<Value>().map(Result::unwrap).collect::<Vec<_>>(), [json!({"n": 1}), json!([])]);
}
