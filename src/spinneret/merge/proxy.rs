//! The proxy of a lease, for `reqwest`.

use reqwest::Proxy;
use url::Url;

use crate::spinneret::Result;
use crate::spinneret::error::Error;
use crate::spinneret::messages::ProxyAssignment;

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
