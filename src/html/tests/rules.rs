//! Rules of the tree construction that no case of the public suites tells from their opposite.

use crate::html::from_scraper::from_scraper;
use crate::html::{Document, FragmentContext, Limits, ParseOptions};

/// What is below the `html` element, without an empty `head`.
fn below_root(dump: &str) -> String {
    let lines = dump.lines().filter(|line| !matches!(*line, "<html>" | "  <head>") && !line.starts_with("<!DOCTYPE"));
    lines.map(|line| line.strip_prefix("  ").unwrap_or(line)).collect::<Vec<_>>().join("\n")
}

fn tree(page: &str) -> String {
    below_root(&Document::parse_with(page, &ParseOptions::default().limits(Limits::NONE)).dump())
}

/// Pages and their trees; html5ever gives the same.
const AGREED: [(&str, &str); 13] = [
    // "After after frameset": white space is text of "in body", which makes formatting elements again.
    ("<b><frameset></frameset></html> ", "<frameset>\n<b>\n  \" \""),
    // A comment in foreign content goes there in every mode.
    ("<math></body><!--x-->", "<body>\n  <math math>\n    <!-- x -->"),
    // A `form` of a table in a template is left out.
    ("x<template><table><form></template>", "<body>\n  \"x\"\n  <template>\n    content\n      <table>"),
    // A template says that the page is none of frames.
    ("<p><template></template><frameset>", "<body>\n  <p>\n    <template>\n      content"),
    // The end of a form ends a paragraph in it.
    ("<form><p></form>x", "<body>\n  <form>\n    <p>\n  \"x\""),
    // `xmp` makes formatting elements again, as other raw texts do not.
    ("<p><b></p><xmp>x", "<body>\n  <p>\n    <b>\n  <b>\n    <xmp>\n      \"x\""),
    // The end tag of a part of a table that is not open ends no row.
    ("<table><tr></tfoot><td>", "<body>\n  <table>\n    <tbody>\n      <tr>\n        <td>"),
    // Formatting elements of a caption and of a template stay there.
    ("<table><caption><b></caption>x", "<body>\n  \"x\"\n  <table>\n    <caption>\n      <b>"),
    ("x<template><b></template>y", "<body>\n  \"x\"\n  <template>\n    content\n      <b>\n  \"y\""),
    // A form of a template ends as any block, and is not the form of the page.
    ("x<template><form></form>y", "<body>\n  \"x\"\n  <template>\n    content\n      <form>\n      \"y\""),
    ("x<template><form></template><form>", "<body>\n  \"x\"\n  <template>\n    content\n      <form>\n  <form>"),
    // What does not belong into a doctype makes the page quirky: a table may stand in a paragraph.
    ("<!DOCTYPE html x><p><table>", "<body>\n  <p>\n    <table>"),
    ("<!DOCTYPE html SYSTEM 'a' x><p><table>", "<body>\n  <p>\n  <table>"),
];

/// The same where html5ever errs.
const OURS: [(&str, &str); 5] = [
    // `search` is special.
    ("<b><search>y</b>x", "<body>\n  <b>\n  <search>\n    <b>\n      \"y\"\n    \"x\""),
    // `annotation-xml` ends each scope.
    (
        "<p><math><annotation-xml encoding=text/html></p>",
        "<body>\n  <p>\n    <math math>\n      <math annotation-xml>\n        encoding=\"text/html\"\n        <p>",
    ),
    // An `annotation-xml` of HTML is where HTML ends SVG in it.
    (
        "<math><annotation-xml encoding=text/html><svg><p>",
        "<body>\n  <math math>\n    <math annotation-xml>\n      encoding=\"text/html\"\n      <svg svg>\n      <p>",
    ),
    // Elements of SVG that hold HTML are special.
    ("<foo><svg><desc></foo>x", "<body>\n  <foo>\n    <svg svg>\n      <svg desc>\n        \"x\""),
    // A doctype ends a text of a table.
    ("<table> <!DOCTYPE html>x", "<body>\n  \"x\"\n  <table>\n    \" \""),
];

#[test]
fn rules_without_a_case_hold() {
    for (page, expected) in AGREED {
        assert_eq!(tree(page), expected, "{page}");
        assert_eq!(below_root(&from_scraper(&super::oracle::document(page)).document.dump()), expected, "html5ever on {page}");
    }
}

/// The adoption agency's bookmark: the `b` that is left after eight turns is listed behind the `i`, so it is made again in it.
#[test]
fn an_element_made_again_is_listed_at_the_bookmark() {
    let page = format!("<b><i>{}</b>{}x", "<div>".repeat(9), "</div>".repeat(9));
    let found = tree(&page);
    assert!(found.ends_with("\n    <b>\n      \"x\""), "{found}");
    assert_eq!(found, below_root(&from_scraper(&super::oracle::document(&page)).document.dump()));
}

#[test]
fn rules_that_html5ever_lacks_hold() {
    for (page, expected) in OURS {
        assert_eq!(tree(page), expected, "{page}");
        assert_ne!(below_root(&from_scraper(&super::oracle::document(page)).document.dump()), expected, "html5ever on {page}");
    }
}

#[test]
fn a_fragment_stays_in_its_frameset() {
    let page = Document::fragment("<frameset></frameset>x<frame>", &FragmentContext::html("html"), &ParseOptions::default());
    assert_eq!(below_root(&page.dump()), "<frameset>\n<frame>");
}

#[test]
fn a_byte_order_mark_is_no_text() {
    let page = |bytes: &'static [u8]| Document::from_utf8(bytes.into(), &ParseOptions::default()).map(|page| page.dump());
    assert_eq!(page(b"\xEF\xBB\xBFx").map(|dump| below_root(&dump)), Ok("<body>\n  \"x\"".to_owned()));
    assert_eq!(page(b"x\xEF\xBB\xBF").map(|dump| below_root(&dump)), Ok("<body>\n  \"x\u{feff}\"".to_owned()));
}
