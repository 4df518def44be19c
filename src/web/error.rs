//! The error of everything that reads a URL. Messages never carry user names or passwords.

/// Longest part of a URL that is repeated in a message, in characters.
const SHOWN_MAX_CHARS: usize = 200;

/// What the parser of URLs found wrong, in words that never name the text: it may hold a secret.
pub(crate) const fn parser_words(error: url::ParseError) -> &'static str {
    use url::ParseError as E;
    match error {
        E::EmptyHost => "the host is missing",
        E::InvalidPort => "the port is no number up to 65535",
        E::InvalidIpv4Address | E::InvalidIpv6Address => "the IP address is wrong",
        E::RelativeUrlWithoutBase | E::RelativeUrlWithCannotBeABaseBase => "http:// or https:// is missing",
        E::IdnaError | E::InvalidDomainCharacter => "the host name holds characters that no host name can",
        _ => "it cannot be read",
    }
}

/// Why a text cannot be used as a URL.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum UrlError {
    /// The port is not a decimal number.
    #[error("port of `{url}` is not a number from 0 to 65535: correct the port or leave it out")]
    Port {
        /// The URL without credentials.
        url: String,
    },
    /// The host is in square brackets but is no IPv6 address.
    #[error("host of `{url}` is in brackets but is no IPv6 address: correct the address")]
    Ipv6 {
        /// The URL without credentials.
        url: String,
    },
    /// The reference holds nothing but white space.
    #[error("reference relative to `{base}` is empty: give a URL or a path")]
    Empty {
        /// The base URL without credentials.
        base: String,
    },
    /// The URL standard has no reading for the text.
    #[error("`{url}` is not a URL: {source}")]
    Syntax {
        /// The text without credentials.
        url: String,
        /// What the URL parser found.
        source: url::ParseError,
    },
}

/// Shortens a URL for a message and hides its user info.
pub(crate) fn shown(url: &str) -> String {
    let cut: String = url.chars().take(SHOWN_MAX_CHARS).collect();
    let Some((scheme, rest)) = cut.split_once("//") else {
        return cut;
    };
    let authority_end = rest.find(['/', '?', '#', '\\']).unwrap_or(rest.len());
    let (authority, tail) = rest.split_at(authority_end);
    match authority.rsplit_once('@') {
        Some((_, host)) => format!("{scheme}//***@{host}{tail}"),
        None => cut,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_password_never_reaches_the_message() {
        let error = UrlError::Port { url: shown("http://me:s3cret@example.test:x/p") };
        assert!(!format!("{error} {error:?}").contains("s3cret"));
        assert_eq!(shown("http://me:pw@h/p@q"), "http://***@h/p@q");
        assert_eq!(shown("http://h/p@q"), "http://h/p@q");
    }

    #[test]
    fn a_long_url_is_cut() {
        assert_eq!(shown(&"x".repeat(9_000)).len(), SHOWN_MAX_CHARS);
    }
}
