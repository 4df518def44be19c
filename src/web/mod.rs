//! The rules of the web as pure functions: URLs, keys, robots.txt, character sets, headers, cookies.
//!
//! Nothing here opens a socket, keeps a clock or knows an actor. Whatever arrives from a server may be
//! wrong in any way; every function answers with a value or an error and never panics.

pub mod address;
mod authority;
pub mod canonical;
pub mod charset;
mod charset_prescan;
mod cookie_parse;
pub mod cookies;
mod error;
pub mod key;
pub mod location;
pub mod media_type;
mod percent;
pub mod retry_after;
pub mod robots;
mod robots_match;

pub use error::UrlError;
pub(crate) use error::parser_words;
