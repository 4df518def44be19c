#![allow(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing)]
//! Feeds through their door: files before and after, whatever the format.

use std::fs;
use std::sync::{Arc, Mutex};

use serde_json::{Value, json};

use super::*;

mod cases;
mod properties;
mod xml;

fn items(values: &[Value]) -> Vec<ItemText> {
    values.iter().map(|value| ItemText::new(python_text(value))).collect()
}

/// The text form items come in.
fn python_text(value: &Value) -> String {
    match value {
        Value::String(text) => {
            let mut out = String::new();
            super::text::encode_string(text, &mut out);
            out
        }
        Value::Array(values) => format!("[{}]", values.iter().map(python_text).collect::<Vec<_>>().join(", ")),
        Value::Object(fields) => {
            let field = |(name, value): (&String, &Value)| {
                format!("{}: {}", python_text(&Value::String(name.clone())), python_text(value))
            };
            format!("{{{}}}", fields.iter().map(field).collect::<Vec<_>>().join(", "))
        }
        other => other.to_string(),
    }
}

struct Dir(tempfile::TempDir);

impl Dir {
    fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    fn read(&self, name: &str) -> String {
        fs::read_to_string(self.path(name)).unwrap()
    }

    fn open(&self, name: &str, options: FeedOptions) -> Result<Box<dyn Feed>, FeedError> {
        let target = Target::parse(self.path(name).to_str().unwrap()).unwrap();
        open(&target, options, || panic!("a file needs no standard output"))
    }

    fn run(&self, name: &str, options: FeedOptions, values: &[Value]) -> FeedSummary {
        let mut feed = self.open(name, options).unwrap();
        feed.write(&items(values)).unwrap();
        feed.close().unwrap()
    }

    fn names(&self) -> Vec<String> {
        let mut names: Vec<_> =
            fs::read_dir(self.0.path()).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
        names.sort();
        names
    }
}

fn append() -> FeedOptions {
    FeedOptions::default()
}

fn overwrite() -> FeedOptions {
    FeedOptions { existing: Existing::Overwrite, ..FeedOptions::default() }
}

fn fields(names: &[&str]) -> FeedOptions {
    FeedOptions { fields: Some(names.iter().map(|&name| name.to_owned()).collect()), ..FeedOptions::default() }
}

#[derive(Clone, Default)]
struct Shared(Arc<Mutex<Vec<u8>>>);

impl Write for Shared {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().unwrap().write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

fn to_stdout(target: &str, options: FeedOptions, values: &[Value]) -> (String, FeedSummary) {
    let out = Shared::default();
    let mut feed = open(&Target::parse(target).unwrap(), options, || Ok(Box::new(out.clone()))).unwrap();
    feed.write(&items(values)).unwrap();
    let summary = feed.close().unwrap();
    let bytes = out.0.lock().unwrap().clone();
    (String::from_utf8(bytes).unwrap(), summary)
}

#[test]
fn json_lines_are_written_as_they_come() {
    let dir = Dir::new();
    let summary = dir.run("a.jsonl", append(), &[json!({"a": 1, "b": "é"}), json!({"c": [1, {"d": null}]})]);
    assert_eq!(dir.read("a.jsonl"), "{\"a\": 1, \"b\": \"\\u00e9\"}\n{\"c\": [1, {\"d\": null}]}\n");
    assert_eq!(summary.items, 2);
    assert_eq!(summary.bytes, dir.read("a.jsonl").len() as u64);
    assert_eq!(summary.uri, dir.path("a.jsonl").to_str().unwrap());
}

#[test]
fn json_lines_append_or_overwrite() {
    let dir = Dir::new();
    dir.run("a.jsonl", append(), &[json!({"n": 1})]);
    dir.run("a.jsonl", append(), &[json!({"n": 2})]);
    assert_eq!(dir.read("a.jsonl"), "{\"n\": 1}\n{\"n\": 2}\n");
    dir.run("a.jsonl", overwrite(), &[json!({"n": 3})]);
    assert_eq!(dir.read("a.jsonl"), "{\"n\": 3}\n");
}

#[test]
fn a_torn_last_line_is_cut_and_a_whole_one_without_line_end_is_kept() {
    for (before, kept) in [
        ("{\"n\": 1}\n{\"n\": 2, \"te", "{\"n\": 1}\n"),
        ("{\"n\": 1}\n{\"n\": 2}", "{\"n\": 1}\n{\"n\": 2}\n"),
        ("{\"half", ""),
        ("12", ""),
        ("{\"n\": 1}\n", "{\"n\": 1}\n"),
        ("", ""),
    ] {
        let dir = Dir::new();
        fs::write(dir.path("a.jsonl"), before).unwrap();
        dir.run("a.jsonl", append(), &[json!({"n": 9})]);
        assert_eq!(dir.read("a.jsonl"), format!("{kept}{{\"n\": 9}}\n"), "{before}");
    }
}

#[test]
fn a_torn_tail_longer_than_a_block_is_cut_whole() {
    let dir = Dir::new();
    fs::write(dir.path("a.jsonl"), format!("{{\"n\": 1}}\n{{\"n\": \"{}", "x".repeat(200_000))).unwrap();
    dir.run("a.jsonl", append(), &[]);
    assert_eq!(dir.read("a.jsonl"), "{\"n\": 1}\n");
}

#[test]
fn flushed_items_are_in_the_file_before_it_is_closed() {
    let dir = Dir::new();
    let mut feed = dir.open("a.jsonl", append()).unwrap();
    feed.write(&items(&[json!({"n": 1})])).unwrap();
    assert_eq!(dir.read("a.jsonl"), "");
    feed.flush().unwrap();
    assert_eq!(dir.read("a.jsonl"), "{\"n\": 1}\n");
}

#[test]
fn a_file_is_written_by_one_run_at_a_time() {
    let dir = Dir::new();
    for name in ["a.jsonl", "a.json", "a.csv", "a.xml"] {
        let feed = dir.open(name, append()).unwrap();
        let error = dir.open(name, append()).unwrap_err().to_string();
        assert!(error.contains("another run") && error.contains(name), "{error}");
        drop(feed);
        dir.open(name, append()).unwrap();
    }
}

#[test]
fn fields_choose_and_order_in_every_format() {
    let dir = Dir::new();
    let values = [json!({"name": "A", "x": 0}), json!({"name": "é", "age": 30})];
    dir.run("a.jsonl", fields(&["age", "name"]), &values);
    assert_eq!(dir.read("a.jsonl"), "{\"name\": \"A\"}\n{\"age\": 30, \"name\": \"\\u00e9\"}\n");
    dir.run("a.json", fields(&["age", "name"]), &values);
    assert_eq!(dir.read("a.json"), "[\n{\"name\": \"A\"},\n{\"age\": 30, \"name\": \"\\u00e9\"}\n]");
    dir.run("a.csv", fields(&["age", "name"]), &values);
    assert_eq!(dir.read("a.csv"), "age,name\r\n,A\r\n30,é\r\n");
}

#[test]
fn utf8_writes_characters_instead_of_escapes() {
    let dir = Dir::new();
    let options = || FeedOptions { encoding: Encoding::parse("UTF-8").unwrap(), ..FeedOptions::default() };
    dir.run("a.jsonl", options(), &[json!({"é": "😀\n\u{1}"})]);
    assert_eq!(dir.read("a.jsonl"), "{\"é\": \"😀\\n\\u0001\"}\n");
    dir.run("a.json", options(), &[json!({"é": "😀"})]);
    assert_eq!(dir.read("a.json"), "[\n{\"é\": \"😀\"}\n]");
    assert!(Encoding::parse("latin-1").unwrap_err().to_string().contains("latin-1"));
}

#[test]
fn a_json_array_keeps_its_items_when_appended_to() {
    for (before, expected) in [
        ("[{\"n\": 0}]", json!([{"n": 0}, {"n": 1}])),
        ("[\n{\"n\": 0},\n{\"m\": [\"]\"]}\n]\n", json!([{"n": 0}, {"m": ["]"]}, {"n": 1}])),
        ("[]", json!([{"n": 1}])),
        (" [ \n ] ", json!([{"n": 1}])),
        ("", json!([{"n": 1}])),
        ("\n", json!([{"n": 1}])),
    ] {
        let dir = Dir::new();
        fs::write(dir.path("a.json"), before).unwrap();
        let summary = dir.run("a.json", append(), &[json!({"n": 1})]);
        assert_eq!(serde_json::from_str::<Value>(&dir.read("a.json")).unwrap(), expected, "{before}");
        assert_eq!(summary.items, 1);
        assert_eq!(dir.names(), ["a.json"]);
    }
}

#[test]
fn a_file_that_is_no_array_is_refused_and_left_alone() {
    for before in ["{\"a\": 1}", "[1, 2", "[1 2]", "null", "a,b\n1,2\n", "[1]]"] {
        let dir = Dir::new();
        fs::write(dir.path("a.json"), before).unwrap();
        let error = dir.open("a.json", append()).unwrap_err().to_string();
        assert!(error.contains("a.json") && error.contains("not a json array") && error.contains("-O"), "{error}");
        assert_eq!(dir.read("a.json"), before);
        assert_eq!(dir.names(), ["a.json"]);
        dir.run("a.json", overwrite(), &[json!({"n": 1})]);
        assert_eq!(dir.read("a.json"), "[\n{\"n\": 1}\n]");
    }
}

#[test]
fn the_layout_of_an_array_is_that_of_scrapy() {
    for (layout, expected) in [
        (Layout::OneLine, "[{\"n\": 1},{\"n\": [2]}]"),
        (Layout::ItemPerLine, "[\n{\"n\": 1},\n{\"n\": [2]}\n]"),
        (Layout::Indented(1), "[\n{\n \"n\": 1\n},\n{\n \"n\": [\n  2\n ]\n}\n]"),
    ] {
        let dir = Dir::new();
        dir.run("a.json", FeedOptions { layout, ..append() }, &[json!({"n": 1}), json!({"n": [2]})]);
        assert_eq!(dir.read("a.json"), expected);
    }
}

#[test]
fn a_csv_file_with_another_header_gets_the_union() {
    let dir = Dir::new();
    fs::write(dir.path("a.csv"), "b,a\n1,\"x,\ny\"\n,2\n").unwrap();
    dir.run("a.csv", append(), &[json!({"a": 3, "c": "new"})]);
    assert_eq!(dir.read("a.csv"), "b,a,c\r\n1,\"x,\ny\",\r\n,2,\r\n,3,new\r\n");
    dir.run("a.csv", fields(&["d", "a"]), &[json!({"a": 4, "c": "left out? no: a column", "d": 5, "e": 6})]);
    assert_eq!(dir.read("a.csv"), "b,a,c,d\r\n1,\"x,\ny\",,\r\n,2,,\r\n,3,new,\r\n,4,left out? no: a column,5\r\n");
}

#[test]
fn a_csv_file_with_ragged_rows_is_refused_and_left_alone() {
    let dir = Dir::new();
    fs::write(dir.path("a.csv"), "a,b\n1,2,3\n").unwrap();
    let error = dir.open("a.csv", append()).unwrap_err().to_string();
    assert!(error.contains("a.csv") && error.contains("line: 2"), "{error}");
    assert_eq!(dir.read("a.csv"), "a,b\n1,2,3\n");
    assert_eq!(dir.names(), ["a.csv"]);
}

#[test]
fn cells_are_those_of_scrapy() {
    for (value, expected) in [
        (json!(null), ""),
        (json!(true), "True"),
        (json!(false), "False"),
        (json!(1.50), "1.5"),
        (json!("é\"\n"), "é\"\n"),
        (json!(["a", "b,c"]), "a,b,c"),
        (json!([]), ""),
        (json!(["a", 1]), "[\"a\", 1]"),
        (json!({"k": ["é"]}), "{\"k\": [\"é\"]}"),
    ] {
        let dir = Dir::new();
        dir.run("a.csv", append(), &[json!({"k": 0, "v": value})]);
        let mut reader = ::csv::Reader::from_path(dir.path("a.csv")).unwrap();
        assert_eq!(&reader.records().next().unwrap().unwrap()[1], expected);
    }
}

#[test]
fn the_journal_of_a_crashed_run_is_picked_up_or_thrown_away() {
    for (name, both, last) in
        [("a.json", "[\n{\"n\": 1},\n{\"m\": 2}\n]", "[\n{\"m\": 2}\n]"), ("a.csv", "n,m\r\n1,\r\n,2\r\n", "m\r\n2\r\n")]
    {
        for (options, expected) in [(append(), both), (overwrite(), last)] {
            let dir = Dir::new();
            let mut feed = dir.open(name, append()).unwrap();
            feed.write(&items(&[json!({"n": 1})])).unwrap();
            feed.flush().unwrap();
            drop(feed);
            let part = dir.path(&format!("{name}.part"));
            let mut left = fs::read(&part).unwrap();
            left.extend_from_slice(b"{\"torn\": ");
            fs::write(&part, left).unwrap();
            dir.run(name, options, &[json!({"m": 2})]);
            assert_eq!(dir.read(name), expected);
            assert_eq!(dir.names(), [name]);
        }
    }
}

#[test]
fn a_crash_at_any_step_of_a_close_neither_loses_nor_doubles() {
    let (part, done, tmp) = ("a.json.part", "a.json.part.done", "a.json.tmp");
    let (old, new) = ("[\n{\"n\": 0}\n]", "[\n{\"n\": 0},\n{\"n\": 1}\n]");
    let line = "{\"n\": 1}\n";
    for state in [
        &[("a.json", old), (part, line), (tmp, "[\n{\"n\": 0},\n{\"n")][..],
        &[("a.json", old), (part, line), (tmp, new)],
        &[("a.json", old), (done, line), (tmp, new)],
        &[("a.json", new), (done, line)],
    ] {
        let dir = Dir::new();
        for (name, content) in state {
            fs::write(dir.path(name), content).unwrap();
        }
        dir.run("a.json", append(), &[]);
        assert_eq!(dir.read("a.json"), new, "{state:?}");
        assert_eq!(dir.names(), ["a.json"]);
    }
}

#[test]
fn a_feed_without_items_is_stored_or_not() {
    for (name, stored) in [("a.jsonl", ""), ("a.json", "[\n]"), ("a.csv", "")] {
        let dir = Dir::new();
        dir.run(name, append(), &[]);
        assert_eq!(dir.read(name), stored);
        let dir = Dir::new();
        let omit = || FeedOptions { empty: Empty::Omit, ..append() };
        assert_eq!(dir.run(name, omit(), &[]).bytes, 0);
        assert!(dir.names().is_empty(), "{:?}", dir.names());
        dir.run(name, omit(), &[json!({"n": 1})]);
        let before = dir.read(name);
        dir.run(name, omit(), &[]);
        assert_eq!(dir.read(name), before);
    }
    let dir = Dir::new();
    dir.run("a.csv", fields(&["x", "y"]), &[]);
    assert_eq!(dir.read("a.csv"), "x,y\r\n");
}

#[test]
fn standard_output_takes_every_format() {
    let values = [json!({"a": "é"}), json!({"b": 2})];
    let (text, summary) = to_stdout("-", append(), &values);
    assert_eq!(text, "{\"a\": \"\\u00e9\"}\n{\"b\": 2}\n");
    assert_eq!((summary.uri.as_str(), summary.items, summary.bytes), ("-", 2, text.len() as u64));
    let (text, summary) = to_stdout("-:json", append(), &values);
    assert_eq!(text, "[\n{\"a\": \"\\u00e9\"},\n{\"b\": 2}\n]");
    assert_eq!((summary.items, summary.bytes), (2, text.len() as u64));
    let (text, summary) = to_stdout("-:csv", append(), &values);
    assert_eq!(text, "a,b\r\né,\r\n,2\r\n");
    assert_eq!((summary.items, summary.bytes), (2, text.len() as u64));
}

#[test]
fn a_folder_that_does_not_exist_is_named_at_open() {
    let dir = Dir::new();
    for name in ["no/a.jsonl", "no/a.json", "no/a.csv", "no/a.xml"] {
        let error = dir.open(name, append()).unwrap_err().to_string();
        assert!(error.contains(name) && error.contains("folder"), "{error}");
    }
}

#[cfg(unix)]
#[test]
fn behind_a_link_the_file_itself_is_replaced() {
    let dir = Dir::new();
    fs::write(dir.path("real.json"), "[]").unwrap();
    std::os::unix::fs::symlink(dir.path("real.json"), dir.path("a.json")).unwrap();
    dir.run("a.json", append(), &[json!({"n": 1})]);
    assert_eq!(dir.read("real.json"), "[\n{\"n\": 1}\n]");
    assert!(fs::symlink_metadata(dir.path("a.json")).unwrap().is_symlink());
}
