//! The downloader: one attempt per ticket, through the middlewares.

#[allow(dead_code, reason = "its caller is not written yet")]
pub(crate) mod decode;
pub mod message;
pub mod transport;
