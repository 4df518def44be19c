//! The bounds of a report: what a callback or a rule said of a response, cut to what the plane takes (wire contract, 4.2).
//!
//! A report that breaks a bound would be rejected whole; so what is too long is cut, what is too many is left out, and
//! both are counted.

use crate::parser::message::Marks;

/// Most markers in a report.
const MARKERS: usize = 32;
/// Characters of a marker.
const MARKER: usize = 64;
/// Characters of a business code.
const CODE: usize = 64;
/// Characters of an outcome hint.
const HINT: usize = 32;
/// Characters of a path.
const PATH: usize = 2048;

/// What goes into a report, and how much did not.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Bounded {
    pub(super) path: String,
    pub(super) markers: Vec<String>,
    pub(super) business_code: Option<String>,
    pub(super) outcome_hint: Option<String>,
    /// Values that were cut or left out.
    pub(super) cut: u64,
}

/// The markers of rules first, then what the callback said, each once.
pub(super) fn bounded(path: &str, by_rules: &[String], marks: Marks) -> Bounded {
    let mut cut = 0;
    let mut fit = |text: &str, most: usize| match text.char_indices().nth(most) {
        Some((end, _)) => {
            cut += 1;
            text.get(..end).unwrap_or_default().to_owned()
        }
        None => text.to_owned(),
    };
    let (path, business_code, outcome_hint) = (
        fit(path, PATH),
        marks.business_code.filter(|code| !code.is_empty()).map(|code| fit(&code, CODE)),
        marks.outcome_hint.filter(|hint| !hint.is_empty()).map(|hint| fit(&hint, HINT)),
    );
    let mut markers: Vec<String> = Vec::new();
    let mut left_out = 0;
    for marker in by_rules.iter().chain(&marks.markers) {
        let marker = fit(marker, MARKER);
        if marker.is_empty() {
            left_out += 1;
        } else if !markers.contains(&marker) {
            if markers.len() < MARKERS {
                markers.push(marker);
            } else {
                left_out += 1;
            }
        }
    }
    Bounded { path, markers, business_code, outcome_hint, cut: cut + left_out }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn list(texts: &[&str]) -> Vec<String> {
        texts.iter().map(|text| (*text).to_owned()).collect()
    }

    #[test]
    fn what_fits_is_left_as_it_is_and_each_marker_comes_once() {
        let marks = Marks {
            markers: list(&["captcha", "empty_list", "captcha"]),
            business_code: Some("4004".into()),
            outcome_hint: Some("empty".into()),
        };
        let bounded = bounded("/a", &list(&["rule", "empty_list"]), marks);
        assert_eq!(bounded.markers, ["rule", "empty_list", "captcha"]);
        assert_eq!(
            (bounded.path.as_str(), bounded.business_code.as_deref(), bounded.outcome_hint.as_deref()),
            ("/a", Some("4004"), Some("empty"))
        );
        assert_eq!(bounded.cut, 0);
    }

    #[test]
    fn what_is_too_long_is_cut_by_characters_and_counted() {
        let long = "ä".repeat(3000);
        let marks = Marks { markers: vec![long.clone()], business_code: Some(long.clone()), outcome_hint: Some(long.clone()) };
        let bounded = bounded(&long, &[], marks);
        let count = |text: &str| text.chars().count();
        assert_eq!(bounded.markers.iter().map(|m| count(m)).collect::<Vec<_>>(), [64]);
        assert_eq!(bounded.business_code.as_deref().map(count), Some(64));
        assert_eq!(bounded.outcome_hint.as_deref().map(count), Some(32));
        assert_eq!(count(&bounded.path), 2048);
        assert_eq!(bounded.cut, 4);
    }

    #[test]
    fn what_is_too_many_or_empty_is_left_out_and_counted() {
        let rules: Vec<String> = (0..20).map(|n| format!("rule{n}")).collect();
        let markers = (0..20).map(|n| format!("mark{n}")).chain([String::new()]).collect();
        let bounded = bounded("/", &rules, Marks { markers, ..Marks::default() });
        assert_eq!(bounded.markers.len(), 32);
        assert_eq!(bounded.markers.get(20).map(String::as_str), Some("mark0"), "those of rules first");
        assert_eq!(bounded.cut, 9);
    }
}
