//! What was written reads back the same, whatever the items and however many runs.

use proptest::prelude::*;
use serde_json::{Map, Value};

use super::*;

fn value() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        "(?s).{0,8}".prop_map(Value::from),
        "[,\"\r\n é]{0,6}".prop_map(Value::from),
    ];
    leaf.prop_recursive(2, 8, 3, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..3).prop_map(Value::from),
            prop::collection::vec(("[a-c]", inner), 0..3).prop_map(|fields| Value::Object(fields.into_iter().collect())),
        ]
    })
}

fn object() -> impl Strategy<Value = Value> {
    prop::collection::vec(("[a-e\u{e9},\"\n]{1,2}", value()), 1..5)
        .prop_map(|fields| Value::Object(fields.into_iter().collect::<Map<_, _>>()))
}

/// What a reader of the file expects in a cell, built from values rather than from text.
fn expected_cell(value: Option<&Value>) -> String {
    match value {
        None | Some(Value::Null) => String::new(),
        Some(Value::Bool(yes)) => if *yes { "True" } else { "False" }.to_owned(),
        Some(Value::String(text)) => text.clone(),
        Some(Value::Array(values)) if values.iter().all(Value::is_string) => {
            values.iter().map(|value| value.as_str().unwrap()).collect::<Vec<_>>().join(",")
        }
        Some(other) => other.to_string(),
    }
}

/// Nested cells are compared as JSON: the blanks between tokens are no difference.
fn same_cell(found: &str, value: Option<&Value>) -> bool {
    found == expected_cell(value)
        || value.is_some_and(|value| serde_json::from_str::<Value>(found).is_ok_and(|found| found == *value))
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn a_csv_file_reads_back_as_the_rows_that_were_written(runs in prop::collection::vec(prop::collection::vec(object(), 0..4), 1..4)) {
        let dir = Dir::new();
        for run in &runs {
            dir.run("a.csv", append(), run);
        }
        let values: Vec<&Value> = runs.iter().flatten().collect();
        let mut reader = ::csv::Reader::from_path(dir.path("a.csv")).unwrap();
        let header: Vec<String> = reader.headers().unwrap().iter().map(str::to_owned).collect();
        let mut order: Vec<&String> = Vec::new();
        for name in values.iter().flat_map(|value| value.as_object().unwrap().keys()) {
            if !order.contains(&name) {
                order.push(name);
            }
        }
        prop_assert_eq!(header.iter().collect::<Vec<_>>(), order);
        let rows: Vec<::csv::StringRecord> = reader.records().collect::<Result<_, _>>().unwrap();
        prop_assert_eq!(rows.len(), values.len());
        for (row, value) in rows.iter().zip(values) {
            for (name, found) in header.iter().zip(row) {
                prop_assert!(same_cell(found, value.get(name)), "{} {:?} {:?}", name, found, value);
            }
        }
    }

    #[test]
    fn json_and_json_lines_read_back_as_written(
        runs in prop::collection::vec(prop::collection::vec(object(), 0..4), 1..4),
        utf8 in any::<bool>(),
        layout in prop_oneof![Just(Layout::OneLine), Just(Layout::ItemPerLine), (0_u8..4).prop_map(Layout::Indented)],
    ) {
        let dir = Dir::new();
        let encoding = if utf8 { Encoding::Utf8 } else { Encoding::Ascii };
        for run in &runs {
            let options = || FeedOptions { encoding, layout, ..append() };
            dir.run("a.json", options(), run);
            dir.run("a.jsonl", options(), run);
        }
        let values: Vec<Value> = runs.into_iter().flatten().collect();
        let array: Vec<Value> = serde_json::from_str(&dir.read("a.json")).unwrap();
        prop_assert_eq!(&array, &values);
        let lines: Vec<Value> = dir.read("a.jsonl").split_terminator('\n').map(|line| serde_json::from_str(line).unwrap()).collect();
        prop_assert_eq!(&lines, &values);
    }
}
