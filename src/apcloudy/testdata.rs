//! Real requests of the Python client, read from `tests/data/apcloudy/payloads.json`.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing)]

use serde::Deserialize;

use super::to_text;

#[derive(Debug, Deserialize)]
pub(crate) struct Capture {
    pub(crate) name: String,
    pub(crate) headers: Vec<(String, String)>,
    pub(crate) body: String,
    pub(crate) secret: String,
    pub(crate) signature_valid: bool,
    pub(crate) captured: bool,
}

impl Capture {
    pub(crate) fn header(&self, name: &str) -> &str {
        &self.headers.iter().find(|(n, _)| n == name).unwrap().1
    }
}

pub(crate) fn captures() -> Vec<Capture> {
    serde_json::from_str(include_str!("../../tests/data/apcloudy/payloads.json")).unwrap()
}

/// Parses a body and writes it again; `Err` tells why or what came out instead.
pub(crate) fn fixed_point(body: &str) -> Result<(), String> {
    let parsed: serde_json::Value = serde_json::from_str(body).map_err(|e| e.to_string())?;
    let written = to_text(&parsed).map_err(|e| e.to_string())?;
    if written == body { Ok(()) } else { Err(written) }
}

#[test]
fn captured_bodies_are_fixed_points_but_for_what_our_writer_cannot_express() {
    let failing: Vec<String> =
        captures().into_iter().filter(|capture| fixed_point(&capture.body).is_err()).map(|capture| capture.name).collect();
    // Lone surrogates cannot be in a Rust string; NaN and 2**70 are not in serde_json's number; the last one is
    // a body with a space taken out on purpose.
    let expected = ["exotic_items", "exotic_items_v017", "numbers_nan_infinity_not_strict_json", "tampered_body_one_space"];
    assert_eq!(failing, expected);
}
