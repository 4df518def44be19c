//! Cases that broke the feeds of other crawlers.

use serde::ser::Error as _;
use serde::{Serialize, Serializer};

use super::*;
use crate::apcloudy::to_text_counting;

#[test]
fn case_f01_columns_that_only_later_items_have_are_written() {
    let values = [json!({"name": "A"}), json!({"name": "B", "age": 30}), json!({"age": 1, "note": "l1\nl2, \"q\""})];
    let dir = Dir::new();
    let summary = dir.run("a.csv", append(), &values);
    assert_eq!(dir.read("a.csv"), "name,age,note\r\nA,,\r\nB,30,\r\n,1,\"l1\nl2, \"\"q\"\"\"\r\n");
    assert_eq!((summary.items, summary.bytes), (3, dir.read("a.csv").len() as u64));
    assert_eq!(dir.names(), ["a.csv"]);

    let dir = Dir::new();
    dir.run("a.csv", fields(&["age", "name"]), &values);
    assert_eq!(dir.read("a.csv"), "age,name\r\n,A\r\n30,B\r\n1,\r\n", "with `fields` others are left out on purpose");
}

/// An item of a spider. `refuses` makes its own serialisation fail.
#[derive(Serialize)]
struct Numbered {
    i: Number,
}

enum Number {
    Is(f64),
    Refuses,
}

impl Serialize for Number {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Is(number) => serializer.serialize_f64(*number),
            Self::Refuses => Err(S::Error::custom("no number")),
        }
    }
}

/// The numbers in a feed; what is no number is `None`. Fails when the file does not parse.
fn numbers_in(name: &str, text: &str) -> Vec<Option<f64>> {
    match name.rsplit_once('.').unwrap().1 {
        "json" => serde_json::from_str::<Vec<Value>>(text).unwrap().iter().map(|item| item["i"].as_f64()).collect(),
        "jsonl" => text.lines().map(|line| serde_json::from_str::<Value>(line).unwrap()["i"].as_f64()).collect(),
        "csv" => ::csv::Reader::from_reader(text.as_bytes()).records().map(|row| row.unwrap()[0].parse().ok()).collect(),
        _ => {
            let mut reader = quick_xml::Reader::from_str(text);
            let mut found = Vec::new();
            loop {
                match reader.read_event().unwrap() {
                    quick_xml::events::Event::Start(start) if start.name().as_ref() == "i" => {
                        found.push(reader.read_text(start.name()).unwrap().parse().ok());
                    }
                    quick_xml::events::Event::Eof => return found,
                    _ => {}
                }
            }
        }
    }
}

#[test]
fn case_f02_an_item_that_cannot_be_written_costs_only_itself() {
    for name in ["a.json", "a.jsonl", "a.xml", "a.csv"] {
        let dir = Dir::new();
        let mut feed = dir.open(name, append()).unwrap();
        let mut errors = Vec::new();
        for i in [Number::Is(1.0), Number::Refuses, Number::Is(3.0)] {
            // As `Out::item` does; what fails there is counted as `item_error_count` by the parser.
            match to_text_counting(&Numbered { i }) {
                Ok((text, _)) => feed.write(&[ItemText::new(text)]).unwrap(),
                Err(error) => errors.push(error.to_string()),
            }
        }
        feed.close().unwrap();
        assert_eq!(numbers_in(name, &dir.read(name)), [Some(1.0), Some(3.0)], "{name}");
        assert!(matches!(&errors[..], [error] if error.contains("field i: no number")), "{errors:?}");
    }
}

/// The case asks that an item with a NaN is left out. It is an item all the same, and its other fields are good: here the number is
/// written as null, as the wire of the sink has it, and counted (`item_nonfinite_count`).
#[test]
fn case_f02_a_float_that_json_cannot_hold_is_null_and_counted() {
    for name in ["a.json", "a.jsonl", "a.xml", "a.csv"] {
        let dir = Dir::new();
        let mut feed = dir.open(name, append()).unwrap();
        let mut counted = 0;
        for i in [1.0, f64::NAN, 3.0] {
            let (text, nonfinite) = to_text_counting(&Numbered { i: Number::Is(i) }).unwrap();
            counted += nonfinite;
            feed.write(&[ItemText::new(text)]).unwrap();
        }
        feed.close().unwrap();
        assert_eq!(numbers_in(name, &dir.read(name)), [Some(1.0), None, Some(3.0)], "{name}");
        assert_eq!(counted, 1);
    }
}

/// JSON lines take a text as it is: what makes texts, above, makes no others.
#[test]
fn case_f02_a_text_that_is_no_json_is_refused_where_the_file_is_made_of_it() {
    for name in ["a.json", "a.xml", "a.csv"] {
        let dir = Dir::new();
        let mut feed = dir.open(name, append()).unwrap();
        feed.write(&items(&[json!({"i": 1})])).unwrap();
        for bad in ["{\"i\": NaN}", "[1]", "{\"i\": 2", "{\"i\": \n2}"] {
            let error = feed.write(&[ItemText::new("{\"j\": 2}"), ItemText::new(bad)]).unwrap_err().to_string();
            assert!(error.contains(name), "{error}");
        }
        feed.write(&items(&[json!({"i": 3})])).unwrap();
        feed.close().unwrap();
        assert_eq!(numbers_in(name, &dir.read(name)), [Some(1.0), Some(3.0)], "{name}");
    }
}
