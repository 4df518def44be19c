//! The proxy of a lease as the HTTP client takes it: schemes, names, user and password.
//!
//! Whatever is wrong with the URL is an error here: a client that could not read it would go out without the proxy.
//! Nothing of the URL is in an error.

use std::fmt::Write;

use reqwest::Proxy;
use url::Url;

use super::client::ClientError;
use crate::plane::ProxyUrl;

/// The port of a SOCKS proxy whose URL names none (RFC 1928).
const SOCKS_PORT: u16 = 1080;

/// The connector of a proxy.
pub(super) fn connector(proxy: &ProxyUrl) -> Result<Proxy, ClientError> {
    let url = readable(proxy.expose()).ok_or(ClientError::Proxy)?;
    // The client reads the URL by this type in the end, and goes without a proxy where it cannot.
    if url.parse::<http::Uri>().is_err() {
        return Err(ClientError::Proxy);
    }
    Proxy::all(url).map_err(|_| ClientError::Proxy)
}

/// Whether a proxy answers requests for `http` URLs itself, with statuses of its own.
pub(super) fn speaks_http(proxy: &ProxyUrl) -> bool {
    scheme(proxy.expose()).is_some_and(|(scheme, _)| scheme.starts_with("http"))
}

/// Scheme in lower case, and what follows `://`.
fn scheme(given: &str) -> Option<(String, &str)> {
    let (scheme, rest) = given.split_once("://")?;
    Some((scheme.to_ascii_lowercase(), rest))
}

/// The URL in the one spelling that every layer of the client reads alike. A SOCKS proxy resolves the names: asking this
/// machine's resolver would tell it, and may find another address.
fn readable(given: &str) -> Option<String> {
    let (scheme, rest) = scheme(given)?;
    let (scheme, default_port) = match scheme.as_str() {
        "http" => ("http", 80),
        "https" => ("https", 443),
        "socks5" | "socks5h" => ("socks5h", SOCKS_PORT),
        "socks4" | "socks4a" => ("socks4a", SOCKS_PORT),
        _ => return None,
    };
    // Hosts are read by the rules of HTTP URLs, ports by those of a scheme that has no default.
    let url = Url::parse(&format!("http://{rest}")).ok()?;
    let port = Url::parse(&format!("socks5://{rest}")).ok()?.port().unwrap_or(default_port);
    let host = url.host_str().filter(|host| !host.is_empty())?;
    let mut text = format!("{scheme}://");
    if !url.username().is_empty() || url.password().is_some() {
        push_strict(&mut text, url.username())?;
        if let Some(password) = url.password() {
            text.push(':');
            push_strict(&mut text, password)?;
        }
        text.push('@');
    }
    write!(text, "{host}:{port}").ok()?;
    Some(text)
}

/// Writes user or password with everything encoded that is not a letter or a digit; `None` when it is no UTF-8.
fn push_strict(text: &mut String, given: &str) -> Option<()> {
    let mut rest = given.as_bytes();
    let mut bytes = Vec::with_capacity(rest.len());
    while let Some((first, after)) = rest.split_first() {
        rest = after;
        let escape = after.split_first_chunk::<2>().filter(|_| *first == b'%');
        match escape.and_then(|(digits, beyond)| Some((std::str::from_utf8(digits).ok()?, beyond))) {
            Some((digits, beyond)) if digits.bytes().all(|digit| digit.is_ascii_hexdigit()) => {
                bytes.push(u8::from_str_radix(digits, 16).ok()?);
                rest = beyond;
            }
            _ => bytes.push(*first),
        }
    }
    std::str::from_utf8(&bytes).ok()?;
    for byte in bytes {
        if byte.is_ascii_alphanumeric() {
            text.push(char::from(byte));
        } else {
            write!(text, "%{byte:02X}").ok()?;
        }
    }
    Some(())
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing)]
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn names_are_resolved_at_the_proxy() {
        for url in ["socks5://127.0.0.1:1080", "socks5h://127.0.0.1:1080", "SOCKS5://127.0.0.1"] {
            assert_eq!(readable(url).unwrap(), "socks5h://127.0.0.1:1080", "{url}");
            assert!(format!("{:?}", connector(&ProxyUrl(url.into())).unwrap()).contains("socks5h"));
        }
    }

    #[test]
    fn every_spelling_of_a_proxy_is_read_alike() {
        for (given, read) in [
            ("http://proxy.example", "http://proxy.example:80"),
            ("HTTPS://Proxy.Example/path", "https://proxy.example:443"),
            ("https://proxy.example:80", "https://proxy.example:80"),
            ("socks5://u@[::1]:80/", "socks5h://u@[::1]:80"),
            ("socks4://h", "socks4a://h:1080"),
            ("http://us%65r:p%40ss%3A%2f@h:1", "http://user:p%40ss%3A%2F@h:1"),
            ("http://user:p|ss^'{}\"`%zz@h:1", "http://user:p%7Css%5E%27%7B%7D%22%60%25zz@h:1"),
            ("http://:only@h:1", "http://:only@h:1"),
            ("socks5://bücher.example:1", "socks5h://xn--bcher-kva.example:1"),
        ] {
            assert_eq!(readable(given).as_deref(), Some(read), "{given}");
        }
    }

    #[test]
    fn a_proxy_that_cannot_be_read_is_an_error_without_its_url() {
        for url in [
            "ftp://user:canary@127.0.0.1:1",
            "canary",
            "http://",
            "http://user:canary@[zz]:1",
            "http://user:canary@:1",
            "http://user:canary%ff@h:1",
            "socks5://user:canary@h:99999",
            "//user:canary@h:1",
        ] {
            let error = connector(&ProxyUrl(url.into())).unwrap_err();
            assert_eq!(error, ClientError::Proxy, "{url}");
            assert!(!format!("{error} {error:?}").contains("canary"));
        }
    }

    proptest! {
        #[test]
        fn a_proxy_is_never_left_out(user in "\\PC{1,12}", password in "\\PC{0,12}") {
            let mut url = Url::parse("http://127.0.0.1:8080").unwrap();
            // A percent sign begins an escape, and most escapes alone are no UTF-8.
            url.set_username(&user.replace('%', "%25")).unwrap();
            url.set_password(Some(&password.replace('%', "%25"))).unwrap();
            for scheme in ["http", "https", "socks5"] {
                let given = url.as_str().replacen("http", scheme, 1);
                let read = readable(&given).unwrap();
                prop_assert!(read.parse::<http::Uri>().unwrap().authority().is_some());
                connector(&ProxyUrl(given.as_str().into())).unwrap();
            }
        }
    }
}
