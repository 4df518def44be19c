//! HTTP clients: one per proxy and identity, so that neither ever shares a connection with another.
//!
//! A client costs some KiB and 20 µs, all are made from one TLS configuration; the number is bounded and
//! what is unused goes. TLS sessions are not shared either: a resumed one would link two identities. The certificate of
//! an `https://` proxy is verified as a target's is, and not at all with `DOWNLOAD_VERIFY_CERTIFICATES` off.

use std::fmt;
use std::sync::Arc;

use moka::policy::EvictionPolicy;
use moka::sync::Cache;
use reqwest::{Client, redirect, retry};
use rustls::client::Resumption;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::CryptoProvider;
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::{DigitallySignedStruct, SignatureScheme};

use super::config::ClientConfig;
use super::proxy::connector;
use super::resolver::Names;
use crate::plane::{IdentityKey, ProxyUrl};
use crate::roots::{client_config, roots};

/// Idle connections kept for one host; more than any host is given at once.
const IDLE_PER_HOST: usize = 64;

/// TLS sessions kept by one client.
const TLS_SESSIONS: usize = 32;

/// Longest response head over HTTP/2, in bytes.
const H2_HEAD_BYTES: u32 = 256 * 1024;

/// Why there is no client. Holds neither a proxy's URL nor a part of one.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ClientError {
    /// The TLS configuration cannot be made.
    #[error("TLS cannot be set up: {0}")]
    Tls(String),
    /// The URL of a lease's proxy cannot be used.
    #[error("the lease's proxy URL cannot be used: it must be http://, https://, socks5:// or socks5h:// with host and port")]
    Proxy,
    /// The client cannot be made.
    #[error("the HTTP client cannot be made")]
    Build,
}

/// What a client's connections belong to.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct ClientKey {
    pub(crate) proxy: Option<ProxyUrl>,
    pub(crate) identity: IdentityKey,
}

/// The clients in use.
pub(crate) struct Clients {
    cache: Cache<ClientKey, Client>,
    tls: rustls::ClientConfig,
    config: ClientConfig,
    names: Names,
}

impl Clients {
    pub(crate) fn new(config: ClientConfig, names: Names) -> Result<Self, ClientError> {
        let cache = Cache::builder()
            .max_capacity(config.max_clients)
            .time_to_idle(config.idle)
            .eviction_policy(EvictionPolicy::lru())
            .build();
        Ok(Self { cache, tls: tls_config(config.verify_certificates)?, config, names })
    }

    /// The client of a key, made if there is none.
    pub(crate) fn get(&self, key: ClientKey) -> Result<Client, ClientError> {
        if let Some(client) = self.cache.get(&key) {
            return Ok(client);
        }
        let proxy = key.proxy.clone();
        self.cache.try_get_with(key, || self.build(proxy.as_ref())).map_err(|error| (*error).clone())
    }

    /// The names of targets.
    pub(crate) fn names(&self) -> &Names {
        &self.names
    }

    /// Drops the clients that nobody used for too long.
    pub(crate) fn tidy(&self) {
        self.cache.run_pending_tasks();
    }

    fn build(&self, proxy: Option<&ProxyUrl>) -> Result<Client, ClientError> {
        let mut tls = self.tls.clone();
        tls.resumption = Resumption::in_memory_sessions(TLS_SESSIONS);
        let builder = Client::builder()
            .tls_backend_preconfigured(tls)
            .no_proxy()
            .redirect(redirect::Policy::none())
            .retry(retry::never())
            .referer(false)
            .connect_timeout(self.config.connect_timeout)
            .pool_max_idle_per_host(IDLE_PER_HOST)
            .pool_idle_timeout(self.config.idle)
            .tcp_nodelay(true)
            .http1_allow_obsolete_multiline_headers_in_responses(true)
            .http1_allow_spaces_after_header_name_in_responses(true)
            .http1_ignore_invalid_headers_in_responses(true)
            .http2_max_header_list_size(H2_HEAD_BYTES);
        let builder = match proxy {
            Some(proxy) => builder.proxy(connector(proxy)?).dns_resolver(Arc::new(self.names.of_proxies())),
            None => builder.dns_resolver(Arc::new(self.names.clone())),
        };
        builder.build().map_err(|_| ClientError::Build)
    }
}

impl fmt::Debug for Clients {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Clients").field("kept", &self.cache.entry_count()).finish_non_exhaustive()
    }
}

fn tls_config(verify: bool) -> Result<rustls::ClientConfig, ClientError> {
    let roots = roots([]).map_err(|error| ClientError::Tls(error.to_string()))?;
    let mut config = client_config(roots, &["h2", "http/1.1"]).map_err(|error| ClientError::Tls(error.to_string()))?;
    if !verify {
        tracing::warn!(
            "DOWNLOAD_VERIFY_CERTIFICATES is off: anyone on the way can read and change every page, cookies and credentials \
             included; certificates of proxies are not verified either"
        );
        let provider = Arc::clone(config.crypto_provider());
        config.dangerous().set_certificate_verifier(Arc::new(AcceptAny(provider)));
    }
    Ok(config)
}

/// Takes every certificate; the handshake must still be signed by the key in it.
#[derive(Debug)]
struct AcceptAny(Arc<CryptoProvider>);

impl ServerCertVerifier for AcceptAny {
    fn verify_server_cert(
        &self,
        _: &CertificateDer<'_>,
        _: &[CertificateDer<'_>],
        _: &ServerName<'_>,
        _: &[u8],
        _: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        rustls::crypto::verify_tls12_signature(message, cert, signed, &self.0.signature_verification_algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        rustls::crypto::verify_tls13_signature(message, cert, signed, &self.0.signature_verification_algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.0.signature_verification_algorithms.supported_schemes()
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing)]
    use std::time::Duration;

    use super::*;

    fn clients(max_clients: u64) -> Clients {
        let config = ClientConfig {
            connect_timeout: Duration::from_secs(1),
            verify_certificates: true,
            max_clients,
            idle: Duration::from_secs(60),
        };
        Clients::new(config, Names::of_system()).unwrap()
    }

    fn key(name: &str, proxy: Option<&str>) -> ClientKey {
        let identity = IdentityKey { site: "shop".into(), name: name.into() };
        ClientKey { proxy: proxy.map(|url| ProxyUrl(url.into())), identity }
    }

    #[test]
    fn clients_are_bounded_in_number() {
        let clients = clients(4);
        for n in 0..20 {
            clients.get(key(&n.to_string(), None)).unwrap();
            clients.tidy();
        }
        assert_eq!(clients.cache.entry_count(), 4);
        assert!(clients.cache.contains_key(&key("19", None)));
    }

    #[test]
    fn each_proxy_and_each_identity_has_a_client_of_its_own() {
        let clients = clients(16);
        for (name, proxy) in [("a", None), ("b", None), ("a", Some("http://127.0.0.1:1")), ("a", Some("socks5://127.0.0.1:1"))] {
            clients.get(key(name, proxy)).unwrap();
            clients.get(key(name, proxy)).unwrap();
        }
        clients.tidy();
        assert_eq!(clients.cache.entry_count(), 4);
    }

    #[test]
    fn a_proxy_that_cannot_be_used_is_refused_without_its_url() {
        for url in ["ftp://user:canary@127.0.0.1:1", "canary", "http://", "http://user:canary@[zz]:1"] {
            let error = clients(1).get(key("a", Some(url))).unwrap_err();
            assert_eq!(error, ClientError::Proxy, "{url}");
            assert!(!format!("{error} {error:?}").contains("canary"));
        }
    }
}
