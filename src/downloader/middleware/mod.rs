//! The built-in steps of the chain: plain functions and structs, one concept a file, none of them async.

pub(crate) mod cookies;
pub(crate) mod granted;
pub(crate) mod hooks;
pub(crate) mod http_cache;
pub(crate) mod http_error;
pub(crate) mod jars;
pub(crate) mod merge;
pub(crate) mod redirect;
pub(crate) mod retry;
pub(crate) mod stats;
