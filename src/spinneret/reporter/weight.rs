//! How many bytes a report takes in the body of a call: never less than it really does.
//!
//! Bounds are in characters; one character takes up to four bytes, and up to six where JSON escapes it. Five hundred
//! reports at every bound are 9 MB in one case and 13 MB in the other, more than the server reads, so a batch is cut by
//! bytes too. Reports as they usually are never come near that.

use crate::spinneret::messages::Report;

/// What a batch may weigh: the largest body the server reads (wire contract, 1.6), less what is around the reports.
pub(super) const MOST: usize = 8 * 1024 * 1024 - 64;

/// Field names, punctuation, numbers and times of a report; measured: 366 at most.
const FRAME: usize = 512;
/// As many bytes as five hundred reports can all have. Below, nobody needs to know better.
const LIGHT: usize = MOST / 500;

/// The bytes of a report, its comma included.
pub(super) fn of(report: &Report) -> usize {
    let roughly = FRAME + texts(report).map(|text| text.len() * 6 + 3).sum::<usize>();
    if roughly <= LIGHT { roughly } else { FRAME + texts(report).map(|text| encoded(text) + 3).sum::<usize>() }
}

fn texts(report: &Report) -> impl Iterator<Item = &str> {
    let own = [
        &report.report_id,
        &report.lease_id,
        &report.uri,
        &report.method,
        &report.business_code,
        &report.error_kind,
        &report.outcome_hint,
    ];
    own.into_iter().chain(&report.markers).map(String::as_str)
}

/// The bytes of a text in JSON, its quotes not counted (RFC 8259, section 7).
fn encoded(text: &str) -> usize {
    let byte = |byte: u8| match byte {
        b'"' | b'\\' => 2,
        0..0x20 => 6,
        _ => 1,
    };
    text.bytes().map(byte).sum()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing)]

    use proptest::prelude::*;

    use super::*;
    use crate::spinneret::reporter::tests::sample;

    /// A report with every text at its bound.
    fn largest(of: char) -> Report {
        let long = |times: usize| of.to_string().repeat(times);
        Report {
            report_id: "r".repeat(64),
            lease_id: long(128),
            uri: long(2048),
            method: long(16),
            http_status: 999,
            business_code: long(64),
            error_kind: "conn_refused".to_owned(),
            markers: vec![long(64); 32],
            outcome_hint: long(32),
            latency_ms: i32::MAX,
            response_bytes: i64::MAX,
            release: false,
            ..sample(0)
        }
    }

    fn bytes(report: &Report) -> usize {
        serde_json::to_vec(report).unwrap().len() + 1
    }

    #[test]
    fn five_hundred_of_the_largest_reports_do_not_fit_into_one_call() {
        assert!(bytes(&largest('\u{1f577}')) * 500 > MOST, "four bytes a character");
        assert!(bytes(&largest('\u{1}')) * 500 > MOST, "six bytes a character");
        assert!(bytes(&largest('a')) * 500 < MOST, "one byte a character");
    }

    #[test]
    fn reports_with_a_long_path_of_four_byte_characters_fit_five_hundred_times() {
        let report = Report { uri: "\u{1f577}".repeat(2048), ..sample(0) };
        assert!(of(&report) * 500 < MOST);
        assert!((4_000_000..5_000_000).contains(&(bytes(&report) * 500)), "{}", bytes(&report) * 500);
    }

    #[test]
    fn a_report_of_the_usual_size_is_not_measured_closely_and_always_fits() {
        assert!(of(&sample(1)) * 500 < MOST / 2);
        assert_eq!(of(&Report { uri: "a".repeat(2048), ..sample(0) }).max(LIGHT), LIGHT);
    }

    #[test]
    fn a_report_is_never_heavier_than_its_weight() {
        for of_char in ['a', '"', '\\', '\n', '\u{1}', '\u{7f}', '\u{e9}', '\u{1f577}'] {
            let report = largest(of_char);
            assert!(bytes(&report) <= of(&report), "{of_char:?}: {} > {}", bytes(&report), of(&report));
        }
    }

    proptest! {
        #[test]
        fn the_weight_bounds_the_bytes_of_any_report(
            uri in "\\PC{0,2048}|[\\x00-\\x7f]{0,2048}",
            markers in prop::collection::vec("[\\x00-\\x7f]{1,64}", 0..32),
        ) {
            let report = Report { uri, markers, ..sample(0) };
            prop_assert!(bytes(&report) <= of(&report));
        }
    }
}
