//! The address batches are posted to, made of a base URL.
//!
//! Never holds a user, a password or a query: what it shows can go into any message.

use std::fmt;

use url::{Position, Url};

use crate::web::parser_words;

/// What is appended to the base.
const PATH: &str = "/api/webhook/consume";

/// Where batches go. Shown as its base: `https://host/prefix`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Endpoint {
    base: String,
    url: Url,
}

/// Why a base URL cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum EndpointError {
    /// There is nothing.
    #[error("APCLOUDY_URL is empty; give the base address of the backend, such as https://apcloudy.example")]
    Empty,
    /// It is no absolute URL.
    #[error("APCLOUDY_URL is no URL ({why}); give the base address of the backend, such as https://apcloudy.example")]
    NotAUrl {
        /// What is wrong with it.
        why: &'static str,
    },
    /// The scheme is not one of HTTP.
    #[error("APCLOUDY_URL begins with {scheme:?}; it must begin with http:// or https://")]
    Scheme {
        /// The scheme found, followed by a colon.
        scheme: String,
    },
    /// It holds a user or a password.
    #[error(
        "APCLOUDY_URL must hold no user and no password; the key goes into APCLOUDY_API_KEY, the secret into APCLOUDY_SECRET_KEY"
    )]
    UserInfo,
    /// It holds a query or a fragment.
    #[error("APCLOUDY_URL must end before {found:?}: a query or a fragment cannot be kept when {PATH} is appended")]
    Query {
        /// `?` or `#`
        found: char,
    },
}

impl Endpoint {
    /// Makes the address of a base URL: slashes at its end go, a path prefix stays, `/api/webhook/consume` is
    /// appended.
    ///
    /// # Errors
    /// [`EndpointError`] when the base is no `http` or `https` URL, or holds user info, a query or a fragment.
    pub fn of(base: &str) -> Result<Self, EndpointError> {
        let base = base.trim();
        if base.is_empty() {
            return Err(EndpointError::Empty);
        }
        let mut url = Url::parse(base).map_err(|error| EndpointError::NotAUrl { why: parser_words(error) })?;
        if !matches!(url.scheme(), "http" | "https") {
            return Err(EndpointError::Scheme { scheme: format!("{}:", url.scheme()) });
        }
        if !url.username().is_empty() || url.password().is_some() {
            return Err(EndpointError::UserInfo);
        }
        if url.query().is_some() {
            return Err(EndpointError::Query { found: '?' });
        }
        if url.fragment().is_some() {
            return Err(EndpointError::Query { found: '#' });
        }
        let base = url[..Position::AfterPath].trim_end_matches('/').to_owned();
        let path = format!("{}{PATH}", url.path().trim_end_matches('/'));
        url.set_path(&path);
        Ok(Self { base, url })
    }

    /// The whole address.
    #[must_use]
    pub const fn url(&self) -> &Url {
        &self.url
    }

    /// Host and port for messages: `host`, or `host:8000` when the port is not the scheme's own.
    #[must_use]
    pub fn authority(&self) -> &str {
        self.url.authority()
    }
}

impl fmt::Display for Endpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.base)
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing)]

    use proptest::prelude::*;

    use super::*;

    #[test]
    fn slashes_at_the_end_go_and_a_prefix_stays() {
        for (base, url, shown) in [
            ("http://h", "http://h/api/webhook/consume", "http://h"),
            ("http://h/", "http://h/api/webhook/consume", "http://h"),
            ("http://h////", "http://h/api/webhook/consume", "http://h"),
            ("http://h/run/ok///", "http://h/run/ok/api/webhook/consume", "http://h/run/ok"),
            ("http://h//a//b/", "http://h//a//b/api/webhook/consume", "http://h//a//b"),
            (" HTTPS://H.example:443/x%20y \n", "https://h.example/x%20y/api/webhook/consume", "https://h.example/x%20y"),
            ("http://127.0.0.1:8902/", "http://127.0.0.1:8902/api/webhook/consume", "http://127.0.0.1:8902"),
            ("http://[::1]:80/a", "http://[::1]/api/webhook/consume".replace("/api", "/a/api").as_str(), "http://[::1]/a"),
            ("https://пример.example", "https://xn--e1afmkfd.example/api/webhook/consume", "https://xn--e1afmkfd.example"),
        ] {
            let endpoint = Endpoint::of(base).unwrap();
            assert_eq!((endpoint.url().as_str(), endpoint.to_string().as_str()), (url, shown), "{base}");
        }
        assert_eq!(Endpoint::of("http://h:8000/x").unwrap().authority(), "h:8000");
    }

    #[test]
    fn a_base_that_cannot_be_used_is_refused_in_clear_words() {
        for (base, words) in [
            ("", "is empty"),
            ("  ", "is empty"),
            ("canary.example/x", "http:// or https:// is missing"),
            ("/canary", "http:// or https:// is missing"),
            ("localhost:8000", "begins with \"localhost:\""),
            ("ftp://h/canary", "begins with \"ftp:\""),
            ("file:///canary", "begins with \"file:\""),
            ("https://", "the host is missing"),
            ("https://h:99999/canary", "the port"),
            ("https://ho st/canary", "characters"),
            ("https://canary@h/", "no user and no password"),
            ("https://:canary@h/", "no user and no password"),
            ("https://canary:canary@h/", "no user and no password"),
            ("https://h/?key=canary", "end before '?'"),
            ("https://h/?", "end before '?'"),
            ("https://h/#canary", "end before '#'"),
        ] {
            let error = Endpoint::of(base).expect_err(base).to_string();
            assert!(error.starts_with("APCLOUDY_URL ") && error.contains(words), "{base}: {error}");
            assert!(!error.contains("canary"), "{error}");
        }
    }

    proptest! {
        #[test]
        fn any_base_gives_an_address_or_an_error(base in "\\PC{0,30}", rest in "[a-z:/@?#.\\[\\]%0-9 -]{0,20}") {
            for base in [base.clone(), format!("http://{rest}"), format!("https://h/{base}")] {
                if let Ok(endpoint) = Endpoint::of(&base) {
                    prop_assert!(endpoint.url().path().ends_with("/api/webhook/consume"));
                    prop_assert!(endpoint.url().query().is_none() && endpoint.url().username().is_empty());
                    prop_assert!(!endpoint.to_string().ends_with('/'));
                    prop_assert_eq!(&Endpoint::of(&endpoint.to_string()).unwrap(), &endpoint);
                }
            }
        }
    }
}
