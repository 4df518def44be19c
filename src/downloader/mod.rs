//! Fetching pages. So far: undoing the content codings of a body.

#[allow(dead_code, reason = "its caller is not written yet")]
pub(crate) mod decode;
