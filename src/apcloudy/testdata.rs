//! Real requests of the Python client, read from `tests/data/apcloudy/payloads.json`.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing)]

use serde::Deserialize;

#[derive(Debug, Deserialize)]
pub(crate) struct Capture {
    pub(crate) name: String,
    pub(crate) version: String,
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
