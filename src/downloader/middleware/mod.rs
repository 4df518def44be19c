//! The built-in steps of the chain: plain functions and structs, one concept a file, none of them async.

pub(crate) mod cookies;
pub(crate) mod cookies_log;
pub(crate) mod granted;
pub(crate) mod hooks;
pub(crate) mod http_auth;
pub(crate) mod http_cache;
pub(crate) mod http_error;
pub(crate) mod jars;
pub(crate) mod merge;
pub(crate) mod meta_refresh;
pub(crate) mod redirect;
pub(crate) mod referer;
pub(crate) mod retry;
pub(crate) mod stats;
