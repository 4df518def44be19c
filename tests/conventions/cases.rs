//! The cases in `tests/data/cases`, against the tests that bear their numbers.

use std::path::Path;

use super::none;
use super::source::files_below;

#[test]
fn every_case_has_a_test_of_its_number() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let tests: String =
        ["src", "tests"].iter().flat_map(|folder| files_below(&root.join(folder))).map(|(_, text)| text).collect();
    let mut names: Vec<String> = std::fs::read_dir(root.join("tests/data/cases"))
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    names.sort_unstable();
    assert!(names.len() >= 39, "{names:?}");
    let has_test = |name: &String| {
        let (number, _) = name.split_once('-').unwrap_or((name, ""));
        tests.contains(&format!("fn case_{}_", number.to_lowercase()))
    };
    let missing: Vec<String> = names.into_iter().filter(|name| !has_test(name)).collect();
    none(&missing, "these cases have no test; begin the name of one with `case_` and the number, as in `case_u01_…`");
}
