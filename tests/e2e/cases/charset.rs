//! Which encoding a page is in.

use super::stand::Case;

fn only_page(id: &str) -> serde_json::Value {
    let case = Case::read(id);
    let stand = case.stand();
    let crawled = stand.check(&case.start());
    crawled.item("http://a.test/").clone()
}

#[test]
fn case_c01_a_byte_order_mark_beats_the_header() {
    let page = only_page("C01");
    assert_eq!((&page["encoding"], &page["title"]), (&"UTF-8".into(), &"Привет".into()));
    assert!(page["text"].as_str().unwrap().starts_with("<!DOCTYPE"), "{page}");
}

#[test]
fn case_c02_a_charset_that_only_the_document_names_is_used() {
    let page = only_page("C02");
    assert_eq!((&page["encoding"], &page["title"]), (&"windows-1251".into(), &"Привет мир".into()));
}
