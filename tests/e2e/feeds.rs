//! Feeds: what `-o` and `-O` write, and what standard output carries.

use std::collections::BTreeSet;

use serde_json::Value;

use super::harness::{Ended, Folder};
use super::server::{Answer, Server};
use super::user_crate::start;

/// Three pages; the last one has a field the others lack, and text that formats must escape.
fn server() -> Server {
    Server::start(|asked| match asked.path() {
        "/late" => Answer::html(r#"{"zone": "a \"b\",\nc", "ünï": [1, null]}"#),
        path => Answer::html(format!("<title>{path}</title>")),
    })
}

fn crawl(folder: &Folder, server: &Server, paths: &str, feeds: &[&str]) -> Ended {
    let (base, paths) = (format!("base={}", server.url("")), format!("paths={paths}"));
    let call = ["crawl", "paths", "-a", &base, "-a", &paths, "-s", "CONCURRENT_REQUESTS=1"];
    start(folder, &[&call[..], feeds].concat()).end().with_code(0)
}

fn paths(items: &[Value]) -> Vec<&str> {
    items.iter().map(|item| item["path"].as_str().unwrap()).collect()
}

/// The rows of a CSV feed, the header first.
fn rows(text: &str) -> Vec<Vec<String>> {
    let mut reader = csv::ReaderBuilder::new().has_headers(false).from_reader(text.as_bytes());
    reader.records().map(|row| row.unwrap().iter().map(str::to_owned).collect()).collect()
}

#[test]
fn several_feeds_hold_the_same_items() {
    let (folder, server) = (Folder::new(), server());
    let feeds = ["-o", "a.jsonl", "-o", "b.json", "-o", "c.csv", "-o", "d.txt:jsonl"];
    let ended = crawl(&folder, &server, "/one,/two,/late", &feeds);
    for feed in ["a.jsonl", "b.json", "c.csv", "d.txt"] {
        ended.says(&[&format!("{feed}: 3 items")]);
    }
    let lines = folder.items("a.jsonl");
    let whole: Vec<Value> = serde_json::from_str(&folder.read("b.json")).unwrap();
    assert_eq!(lines, whole);
    assert_eq!(folder.read("d.txt"), folder.read("a.jsonl"));
    assert_eq!(paths(&lines).into_iter().collect::<BTreeSet<_>>(), ["/one", "/two", "/late"].into());
    let late = lines.iter().find(|item| item["path"] == "/late").unwrap();
    assert_eq!((&late["zone"], &late["ünï"]), (&"a \"b\",\nc".into(), &serde_json::json!([1, null])));

    let rows = rows(&folder.read("c.csv"));
    assert_eq!(rows[0], ["path", "status", "bytes", "zone", "ünï"], "late columns are columns of all rows");
    assert!(rows.len() == 4 && rows.iter().all(|row| row.len() == 5), "{rows:?}");
    let late = rows.iter().find(|row| row[0] == "/late").unwrap();
    assert_eq!(late[3], "a \"b\",\nc");
    assert!(rows.iter().any(|row| row[0] == "/one" && row[1] == "200" && row[3].is_empty()));
    assert_eq!(folder.files().len(), 5, "the feeds and the store, nothing else: {:?}", folder.files());
}

#[test]
fn standard_output_carries_items_and_nothing_else() {
    let (folder, server) = (Folder::new(), server());
    let ended = crawl(&folder, &server, "/one,/late", &["-o", "-"]);
    let items: Vec<Value> = ended.out.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(items.len(), 2, "{ended}");
    ended.says(&["page /one: not an item", "start: not an item"]);

    let csv = crawl(&folder, &server, "/one,/two", &["-o", "-:csv"]);
    assert_eq!(rows(&csv.out).len(), 3, "{csv}");
    let json = crawl(&folder, &server, "/one,/two", &["-O", "-:json"]);
    assert_eq!(serde_json::from_str::<Vec<Value>>(&json.out).unwrap().len(), 2, "{json}");

    let shown = crawl(&folder, &server, "/one", &["-s", "LOG_STDOUT=false"]);
    assert_eq!(shown.out, "start: not an item\npage /one: not an item\n", "asked not to capture");
}

#[test]
fn a_second_crawl_appends_or_replaces_as_it_is_told() {
    let (folder, server) = (Folder::new(), server());
    for paths in ["/one", "/late,/two"] {
        crawl(&folder, &server, paths, &["-o", "a.jsonl", "-o", "b.json", "-o", "c.csv"]);
    }
    assert_eq!(folder.items("a.jsonl").len(), 3);
    assert_eq!(serde_json::from_str::<Vec<Value>>(&folder.read("b.json")).unwrap(), folder.items("a.jsonl"));
    let table = rows(&folder.read("c.csv"));
    assert_eq!(table[0], ["path", "status", "bytes", "zone", "ünï"], "a column that came later is one of all rows");
    assert!(table.len() == 4 && table.iter().all(|row| row.len() == 5), "{table:?}");

    crawl(&folder, &server, "/two", &["-O", "a.jsonl", "-O", "b.json", "-O", "c.csv"]);
    assert_eq!(paths(&folder.items("a.jsonl")), ["/two"]);
    assert_eq!(paths(&serde_json::from_str::<Vec<Value>>(&folder.read("b.json")).unwrap()), ["/two"]);
    assert_eq!(rows(&folder.read("c.csv")).len(), 2);
}

#[test]
fn a_torn_feed_is_mended_when_it_is_appended_to() {
    let (folder, server) = (Folder::new(), server());
    folder.write("a.jsonl", "{\"path\": \"/old\"}\n{\"path\": \"/to");
    folder.write("b.json", "[\n{\"path\": \"/old\"}\n]");
    crawl(&folder, &server, "/one", &["-o", "a.jsonl", "-o", "b.json"]);
    assert_eq!(paths(&folder.items("a.jsonl")), ["/old", "/one"]);
    assert_eq!(paths(&serde_json::from_str::<Vec<Value>>(&folder.read("b.json")).unwrap()), ["/old", "/one"]);
}
