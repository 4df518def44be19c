//! The rules of the web as pure functions: URLs, keys, robots.txt, character sets, headers, cookies.
//!
//! Nothing here opens a socket, keeps a clock or knows an actor. Whatever arrives from a server may be
//! wrong in any way; every function answers with a value or an error and never panics.

pub mod address;
mod authority;
pub mod canonical;
pub mod charset;
mod charset_prescan;
pub mod content_disposition;
mod cookie_parse;
mod cookie_scope;
pub mod cookies;
pub mod document_url;
pub mod download_name;
mod error;
mod ext_value;
pub mod form_data;
pub mod key;
pub mod link_header;
pub mod location;
pub mod media_type;
#[cfg(test)]
pub(crate) mod mutated;
mod percent;
pub mod reference;
pub mod referrer_policy;
pub mod refresh;
pub mod retry_after;
pub mod robots;
mod robots_match;
pub mod robots_meta;
pub mod sitemap;
pub mod trap;

pub use error::UrlError;
pub(crate) use error::parser_words;
