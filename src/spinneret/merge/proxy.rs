//! The proxy of a lease, for `reqwest`, and a client that goes through it.

use std::sync::OnceLock;

use reqwest::{ClientBuilder, Proxy};
use url::Url;

use crate::roots::{client_config, roots};
use crate::spinneret::Result;
use crate::spinneret::error::Error;
use crate::spinneret::messages::{AcquireResponse, ProxyAssignment};

/// A client of `reqwest` that goes through this proxy, or directly without one, whatever the environment says. It trusts
/// the certificates that browsers trust, compiled in.
///
/// # Errors
/// As [`ProxyAssignment::to_reqwest`].
pub(crate) fn http(proxy: Option<&ProxyAssignment>) -> Result<ClientBuilder> {
    // Made once: reading the roots takes longer than everything else about a client.
    static TLS: OnceLock<rustls::ClientConfig> = OnceLock::new();
    let tls = match TLS.get() {
        Some(tls) => tls.clone(),
        None => {
            let unusable = |error: String| Error::configuration(format!("TLS cannot be set up: {error}"));
            let roots = roots([]).map_err(|error| unusable(error.to_string()))?;
            let tls = client_config(roots, &["h2", "http/1.1"]).map_err(|error| unusable(error.to_string()))?;
            TLS.get_or_init(|| tls).clone()
        }
    };
    let builder = reqwest::Client::builder().tls_backend_preconfigured(tls).no_proxy();
    Ok(match proxy {
        Some(proxy) => builder.proxy(proxy.to_reqwest()?),
        None => builder,
    })
}

impl AcquireResponse {
    /// As [`Lease::http`](crate::spinneret::Lease::http), for a lease without a guard.
    ///
    /// # Errors
    /// As [`ProxyAssignment::to_reqwest`].
    pub fn http(&self) -> Result<ClientBuilder> {
        http(self.proxy.as_ref())
    }
}

impl ProxyAssignment {
    /// This proxy for a client of `reqwest`, all schemes through it, with its user and password.
    ///
    /// A `socks5` proxy resolves the names itself (what `reqwest` calls `socks5h`): asking this machine's resolver would
    /// tell it what is crawled, and may find another address than the proxy does.
    ///
    /// A client of `reqwest` keeps its connections whatever proxy made them: make one client for each proxy. Neither
    /// this proxy nor that client should be logged: their `Debug` forms show the URL.
    ///
    /// # Errors
    /// [`Error::Configuration`] names the proxy, never its URL, when that is not of one of the schemes `http`, `https`
    /// and `socks5`, or has no host. Mend the proxy in the control plane.
    pub fn to_reqwest(&self) -> Result<Proxy> {
        let unusable = || {
            Error::configuration(format!(
                "the URL of proxy {} (not shown) cannot be used; it must be http://, https:// or socks5:// with host and port; \
                 mend the proxy in the control plane",
                self.proxy_id.escape_debug()
            ))
        };
        let (scheme, rest) = self.url.split_once("://").ok_or_else(unusable)?;
        let scheme = match scheme.to_ascii_lowercase().as_str() {
            "http" => "http",
            "https" => "https",
            "socks5" | "socks5h" => "socks5h",
            _ => return Err(unusable()),
        };
        let url = Url::parse(&format!("{scheme}://{rest}")).map_err(|_| unusable())?;
        if url.host_str().is_none_or(str::is_empty) {
            return Err(unusable());
        }
        Proxy::all(url).map_err(|_| unusable())
    }
}
