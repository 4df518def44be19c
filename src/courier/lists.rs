//! The lists of a batch's body, each record as its text: nothing is taken apart further.

use serde::Deserialize;
use serde_json::value::RawValue;

/// A body. Keys it does not know are passed over.
#[derive(Deserialize)]
pub(super) struct Body<'a> {
    #[serde(borrow)]
    pub(super) data: Lists<'a>,
}

/// What a body carries. A list that is missing counts as empty.
#[derive(Deserialize)]
pub(super) struct Lists<'a> {
    #[serde(borrow, default)]
    pub(super) requests: Vec<&'a RawValue>,
    #[serde(borrow, default)]
    pub(super) items: Vec<&'a RawValue>,
    #[serde(borrow, default)]
    pub(super) logs: Vec<&'a RawValue>,
    #[serde(borrow, default)]
    pub(super) stats: Option<&'a RawValue>,
}
