//! The base URL of a server: what is accepted, and its host as it was typed.
//!
//! Never holds a user, a password or a query, so it can go into any message. No error shows a text that was refused: a
//! token may have been given by mistake.

use std::fmt;

use url::{Host, Url};

use crate::web::parser_words;

/// What the setting is called.
const SETTING: &str = "SPINNERET_URL (ClientBuilder::url)";

/// The base URL, shown as it was typed without white space and slashes at its ends.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Address {
    base: String,
    host: String,
    url: Url,
}

/// Why a base URL cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum AddressError {
    #[error("{SETTING} is not set; give the base address of the server, such as https://spinneret.example:8443")]
    Missing,
    #[error("{SETTING} is empty; give the base address of the server, such as https://spinneret.example:8443")]
    Empty,
    #[error("{SETTING} begins with {0:?}; it must begin with http:// or https://")]
    Scheme(String),
    #[error(
        "{SETTING} does not begin with http:// or https://; give the whole base address, such as https://spinneret.example:8443"
    )]
    NoScheme,
    #[error("{SETTING} holds white space or a control character; a base address holds none")]
    Space,
    #[error("{SETTING} is no URL: {0}; give the base address of the server, such as https://spinneret.example:8443")]
    NotAUrl(&'static str),
    #[error("{SETTING} holds a user or a password; the token goes into SPINNERET_TOKEN, and nothing else is needed")]
    UserInfo,
    #[error("{SETTING} holds {0:?}; it must end before it, since paths are appended")]
    Rest(char),
}

impl Address {
    /// Takes a base address: white space around it and slashes at its end go, a path prefix stays.
    pub(crate) fn of(text: &str) -> Result<Self, AddressError> {
        let base = text.trim().trim_end_matches('/');
        if text.trim().is_empty() {
            return Err(AddressError::Empty);
        }
        if base.chars().any(|c| c.is_whitespace() || c.is_control()) {
            return Err(AddressError::Space);
        }
        let (scheme, _) = text.trim().split_once("://").ok_or(AddressError::NoScheme)?;
        if !["http", "https"].contains(&scheme.to_ascii_lowercase().as_str()) {
            return Err(scheme_error(scheme));
        }
        let host = base.get(scheme.len() + 3..).unwrap_or_default();
        let host = host.split(['/', '\\', '?', '#']).next().unwrap_or_default();
        if host.is_empty() {
            return Err(AddressError::NotAUrl("the host is missing"));
        }
        if host.contains('@') {
            return Err(AddressError::UserInfo);
        }
        if let Some(found) = base.chars().find(|c| ['?', '#'].contains(c)) {
            return Err(AddressError::Rest(found));
        }
        let url = Url::parse(base).map_err(|error| AddressError::NotAUrl(parser_words(error)))?;
        if matches!(url.host(), None | Some(Host::Domain(""))) {
            return Err(AddressError::NotAUrl("the host is missing"));
        }
        Ok(Self { base: base.to_owned(), host: host.to_owned(), url })
    }

    /// The base of every call.
    pub(crate) const fn url(&self) -> &Url {
        &self.url
    }

    /// The base as it was typed.
    pub(crate) fn base(&self) -> &str {
        &self.base
    }

    /// Host and port as they were typed: `h:8443`. Snapshots are kept by it.
    pub(crate) fn host(&self) -> &str {
        &self.host
    }
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.base)
    }
}

/// A scheme is shown only if it is one.
fn scheme_error(scheme: &str) -> AddressError {
    let is_scheme = scheme.len() <= 16
        && scheme.starts_with(|c: char| c.is_ascii_alphabetic())
        && scheme.chars().all(|c| c.is_ascii_alphanumeric() || "+-.".contains(c));
    if is_scheme { AddressError::Scheme(format!("{scheme}://")) } else { AddressError::NoScheme }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing)]

    use proptest::prelude::*;

    use super::*;

    #[test]
    fn b001_slashes_and_white_space_go_and_the_host_is_kept_as_typed() {
        for (text, base, host, url) in [
            ("https://h:8443/", "https://h:8443", "h:8443", "https://h:8443/"),
            (" http://h \n", "http://h", "h", "http://h/"),
            ("http://h:80//", "http://h:80", "h:80", "http://h/"),
            ("HTTPS://Host.Example:443/sp/", "HTTPS://Host.Example:443/sp", "Host.Example:443", "https://host.example/sp"),
            ("http://[::1]:8080/a/b", "http://[::1]:8080/a/b", "[::1]:8080", "http://[::1]:8080/a/b"),
            ("http://x/prefix", "http://x/prefix", "x", "http://x/prefix"),
            ("http://x/a@b", "http://x/a@b", "x", "http://x/a@b"),
        ] {
            let address = Address::of(text).unwrap();
            assert_eq!((address.base(), address.host(), address.url().as_str()), (base, host, url), "{text}");
            assert_eq!(address.to_string(), base);
        }
    }

    #[test]
    fn b005_a_url_that_cannot_be_a_base_is_refused_in_clear_words() {
        for (text, words) in [
            ("", "is empty"),
            ("  ", "is empty"),
            ("ftp://x", "begins with \"ftp://\""),
            ("spinneret.internal", "does not begin with http:// or https://"),
            ("c4n4ry://x", "begins with \"c4n4ry://\""),
            ("spn_c4n4ry://x", "does not begin with"),
            ("http:x", "does not begin with"),
            ("localhost:8000", "does not begin with"),
            ("http://", "the host is missing"),
            ("http:///x", "the host is missing"),
            ("http://:80", "the host is missing"),
            ("http://?a", "the host is missing"),
            ("http://x/?a=c4n4ry", "holds '?'"),
            ("http://x/?", "holds '?'"),
            ("http://x/#c4n4ry", "holds '#'"),
            ("http://u:c4n4ry@x", "a user or a password"),
            ("http://c4n4ry@x", "a user or a password"),
            ("http://@x", "a user or a password"),
            ("http://x:99999", "the port"),
            ("http://x y", "white space"),
            ("http://x\u{7}y", "control character"),
            ("http://ho<st", "characters that no host name can"),
            ("http://[::g]", "IP address"),
        ] {
            let error = Address::of(text).expect_err(text).to_string();
            assert!(error.starts_with("SPINNERET_URL (ClientBuilder::url) ") && error.contains(words), "{text}: {error}");
            assert!(text.starts_with("c4n4ry:") || !error.contains("c4n4ry"), "{error}");
        }
    }

    proptest! {
        #[test]
        fn any_text_gives_an_address_or_an_error(text in "\\PC{0,30}", rest in "[a-z:/@?#.\\[\\]\\\\%0-9 -]{0,20}") {
            for text in [text.clone(), format!("http://{rest}"), format!("https://h/{text}"), format!("http:{rest}")] {
                if let Ok(address) = Address::of(&text) {
                    prop_assert!(address.url().query().is_none() && address.url().fragment().is_none());
                    prop_assert!(address.url().username().is_empty() && address.url().password().is_none());
                    prop_assert!(!address.base().ends_with('/') && !address.host().is_empty());
                    prop_assert_eq!(&Address::of(address.base()).unwrap(), &address);
                }
            }
        }
    }
}
