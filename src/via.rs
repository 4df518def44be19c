//! Which proxy a client of one server goes through, decided once. The proxies of leases are another matter.
//!
//! A proxy's URL may hold a password: no message and no `Debug` shows it.

use std::ffi::OsString;
use std::fmt;

use hyper_util::client::proxy::matcher::Matcher;
use reqwest::Proxy;
use secrecy::{ExposeSecret as _, SecretString};
use url::Url;

/// Which proxy calls go through.
#[derive(Debug, Clone, Default)]
pub enum ProxyChoice {
    /// The one of `HTTPS_PROXY`, `HTTP_PROXY` or `ALL_PROXY`, in either case, unless `NO_PROXY` covers the host of the
    /// server.
    #[default]
    Environment,
    /// None, whatever the environment says.
    None,
    /// This one: `http://`, `https://`, `socks5://` or `socks5h://`, with user and password if it wants them.
    Url(SecretString),
}

/// A proxy that calls go through.
#[derive(Clone)]
pub(crate) struct Via {
    url: SecretString,
    shown: String,
}

/// What names a proxy that cannot be used.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Unusable {
    /// The choice itself.
    Given,
    /// This variable of the environment.
    Variable(&'static str),
}

impl Via {
    /// The proxy on the way to `target`; none for the direct way.
    pub(crate) fn of(
        choice: &ProxyChoice,
        environment: impl Fn(&str) -> Option<OsString>,
        target: &Url,
    ) -> Result<Option<Self>, Unusable> {
        match choice {
            ProxyChoice::None => Ok(None),
            ProxyChoice::Url(url) => Self::usable(url.expose_secret(), target).map(Some).ok_or(Unusable::Given),
            ProxyChoice::Environment => Self::of_environment(environment, target),
        }
    }

    fn of_environment(environment: impl Fn(&str) -> Option<OsString>, target: &Url) -> Result<Option<Self>, Unusable> {
        let set = |name: &str| environment(name).and_then(|value| value.into_string().ok()).filter(|value| !value.is_empty());
        let no = set("NO_PROXY").or_else(|| set("no_proxy")).unwrap_or_default();
        // A server that NO_PROXY covers needs none, whatever the other variables hold.
        if intercept("http://proxy.invalid:1", &no, target).is_none() {
            return Ok(None);
        }
        let names: [&'static str; 4] = match target.scheme() {
            "https" => ["HTTPS_PROXY", "https_proxy", "ALL_PROXY", "all_proxy"],
            _ => ["HTTP_PROXY", "http_proxy", "ALL_PROXY", "all_proxy"],
        };
        // Within CGI a header of the request, `Proxy:`, ends up in HTTP_PROXY.
        let is_cgi = environment("REQUEST_METHOD").is_some();
        let mut given = names.into_iter().filter(|name| !(is_cgi && *name == "HTTP_PROXY"));
        let Some((name, url)) = given.find_map(|name| Some((name, set(name)?))) else {
            return Ok(None);
        };
        Self::usable(&url, target).map(Some).ok_or(Unusable::Variable(name))
    }

    /// `Debug` of the HTTP client may show the parts of a URL, so this is the only thing made of it.
    pub(crate) fn proxy(&self) -> reqwest::Result<Proxy> {
        Proxy::all(self.url.expose_secret())
    }

    /// Host and port, for messages.
    pub(crate) fn shown(&self) -> String {
        self.shown.clone()
    }

    fn usable(url: &str, target: &Url) -> Option<Self> {
        const SCHEMES: [&str; 6] = ["http", "https", "socks4", "socks4a", "socks5", "socks5h"];
        // As in the variables of the environment, a proxy without a scheme is one of HTTP.
        let url = url.trim();
        let url = if url.contains("://") { url.to_owned() } else { format!("http://{url}") };
        let (scheme, _) = url.split_once("://")?;
        if !SCHEMES.contains(&scheme.to_ascii_lowercase().as_str()) || Proxy::all(&url).is_err() {
            return None;
        }
        let shown = intercept(&url, "", target)?;
        Some(Self { url: url.into(), shown })
    }
}

/// Host and port of the proxy, if the target goes through it.
fn intercept(proxy: &str, no: &str, target: &Url) -> Option<String> {
    let matcher = Matcher::builder().all(proxy.to_owned()).no(no.to_owned()).build();
    let intercept = matcher.intercept(&target.as_str().parse().ok()?)?;
    let (host, port) = (intercept.uri().host()?, intercept.uri().port_u16());
    Some(port.map_or_else(|| host.to_owned(), |port| format!("{host}:{port}")))
}

impl fmt::Debug for Via {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Via").field(&self.shown).finish()
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing)]

    use super::*;

    fn via(target: &str, variables: &[(&str, &str)]) -> Result<Option<String>, Unusable> {
        let environment = |name: &str| variables.iter().find(|(known, _)| *known == name).map(|(_, value)| value.into());
        Via::of(&ProxyChoice::Environment, environment, &target.parse().unwrap()).map(|via| via.map(|via| via.shown()))
    }

    #[test]
    fn the_environment_names_the_proxy_of_the_scheme_unless_the_host_is_exempt() {
        let both = [("HTTP_PROXY", "http://user:c4n4ry@plain:3128"), ("https_proxy", "secure:3129")];
        assert_eq!(via("http://sp.example/", &both), Ok(Some("plain:3128".to_owned())));
        assert_eq!(via("https://sp.example/", &both), Ok(Some("secure:3129".to_owned())));
        assert_eq!(via("http://sp.example/", &[("ALL_PROXY", "socks5h://all:1080")]), Ok(Some("all:1080".to_owned())));
        assert_eq!(via("http://sp.example/", &[]), Ok(None));
        assert_eq!(via("http://sp.example/", &[("HTTP_PROXY", "")]), Ok(None));
        for exempt in ["sp.example", ".example", "*"] {
            assert_eq!(via("http://sp.example/", &[both[0], ("NO_PROXY", exempt)]), Ok(None), "{exempt}");
        }
        assert_eq!(via("http://10.1.2.3:80/", &[both[0], ("no_proxy", "10.0.0.0/8")]), Ok(None));
        assert_eq!(via("http://sp.example/", &[both[0], ("REQUEST_METHOD", "GET")]), Ok(None), "within CGI");
    }

    #[test]
    fn a_proxy_that_cannot_be_used_is_told_by_what_names_it() {
        for bad in ["ftp://c4n4ry:21", "http://", "http://c4n4ry c4n4ry:1"] {
            let error = via("http://sp.example/", &[("HTTP_PROXY", bad)]).unwrap_err();
            assert_eq!(error, Unusable::Variable("HTTP_PROXY"), "{bad}");
            let choice = ProxyChoice::Url(bad.into());
            let error = Via::of(&choice, |_| None, &"http://sp.example".parse().unwrap()).unwrap_err();
            assert_eq!(error, Unusable::Given, "{bad}");
        }
        assert_eq!(via("http://sp.example/", &[("HTTP_PROXY", "ftp://x:1"), ("NO_PROXY", "sp.example")]), Ok(None));
    }

    #[test]
    fn no_debug_form_shows_a_password() {
        let choice = ProxyChoice::Url("http://user:c4n4ry@plain:3128".into());
        let via = Via::of(&choice, |_| None, &"http://sp.example".parse().unwrap()).unwrap().unwrap();
        let shown = format!("{via:?} {choice:?}");
        assert!(shown.contains("plain:3128") && !shown.contains("c4n4ry"), "{shown}");
    }
}
