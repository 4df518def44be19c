//! The HTTP side of APCloudy: one signed POST at a time, and what came of it.
//!
//! Signs at the moment of sending, follows no redirect, keeps one connection. Never waits between tries and never
//! decides whether there is another one. Keys, secrets and a proxy's password show in no error, answer or `Debug`.

use std::fmt;
use std::future::Future;
use std::io;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use bytes::Bytes;
use http::header::{CONTENT_TYPE, HeaderValue};
use http::{HeaderMap, HeaderName};
use jiff::Timestamp;
use reqwest::{Body, Response, redirect, retry};
use secrecy::{ExposeSecret as _, SecretString};

use super::answer::Answer;
use super::endpoint::{Endpoint, EndpointError};
use super::fault::About;
use super::sign::Signer;
use crate::roots::{RootsError, client_config, roots};
use crate::upload::{Late, Limits, Progress, Upload};
use crate::via::{ProxyChoice, Unusable, Via};

/// Bytes of an answer's body that are read, so that the connection can be used again.
const ANSWER_BYTES: usize = 64 * 1024;
/// How long the rest of an answer is waited for whose status says that the batch was taken.
const TAKEN_BODY: Duration = Duration::from_millis(200);
/// How long an unused connection is kept.
const KEPT: Duration = Duration::from_secs(60);

/// Shorter keys would be found in any text.
const SECRET_BYTES: usize = 4;

const API_KEY: HeaderName = HeaderName::from_static("x-api-key");
const TIMESTAMP: HeaderName = HeaderName::from_static("x-timestamp");
const SIGNATURE: HeaderName = HeaderName::from_static("x-signature");
const IDEMPOTENCY_KEY: HeaderName = HeaderName::from_static("idempotency-key");

/// Where batches go and how.
#[derive(Clone)]
pub struct ClientConfig {
    /// The base URL, `APCLOUDY_URL`.
    pub url: String,
    /// The public key, `APCLOUDY_API_KEY`.
    pub api_key: SecretString,
    /// The key of the signatures, `APCLOUDY_SECRET_KEY`.
    pub secret_key: SecretString,
    /// A PEM file of certificates to trust beside the compiled-in roots, `APCLOUDY_CA_FILE`.
    pub ca_file: Option<PathBuf>,
    /// Another one: the file that `SSL_CERT_FILE` names.
    pub extra_ca: Option<PathBuf>,
    /// The proxy in between.
    pub proxy: ProxyChoice,
    /// The longest time to connect, TLS included.
    pub connect_timeout: Duration,
    /// The longest silence: of a connection that takes no more of the body, or brings no answer.
    pub idle_timeout: Duration,
}

impl ClientConfig {
    /// The usual way: 10 s to connect, 10 s of silence, the proxy of the environment, no further roots.
    #[must_use]
    pub fn new(url: impl Into<String>, api_key: SecretString, secret_key: SecretString) -> Self {
        Self {
            url: url.into(),
            api_key,
            secret_key,
            ca_file: None,
            extra_ca: None,
            proxy: ProxyChoice::Environment,
            connect_timeout: Duration::from_secs(10),
            idle_timeout: Duration::from_secs(10),
        }
    }

    /// Also trusts what the file of `SSL_CERT_FILE` holds, when that is set. Reads the environment.
    #[must_use]
    pub fn with_environment_roots(mut self) -> Self {
        self.extra_ca = std::env::var_os("SSL_CERT_FILE").filter(|name| !name.is_empty()).map(PathBuf::from);
        self
    }
}

impl fmt::Debug for ClientConfig {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // One that cannot be used may hold a password.
        let url = Endpoint::of(&self.url).map_or_else(|_| "[not usable]".to_owned(), |endpoint| endpoint.to_string());
        f.debug_struct("ClientConfig")
            .field("url", &url)
            .field("ca_file", &self.ca_file)
            .field("extra_ca", &self.extra_ca)
            .field("proxy", &self.proxy)
            .field("connect_timeout", &self.connect_timeout)
            .field("idle_timeout", &self.idle_timeout)
            .finish_non_exhaustive()
    }
}

/// Why there is no client.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ClientError {
    /// The base URL cannot be used.
    #[error(transparent)]
    Endpoint(#[from] EndpointError),
    /// A key is missing.
    #[error("{setting} is empty; give the key of the project, or leave APCLOUDY_URL out to keep records in the job store")]
    NoKey {
        /// The setting's name.
        setting: &'static str,
    },
    /// The API key cannot be a header.
    #[error("APCLOUDY_API_KEY holds a line break or a character outside ASCII; no header can carry it")]
    ApiKey,
    /// A certificate file cannot be read.
    #[error("the certificate file {} cannot be read: {source}; see APCLOUDY_CA_FILE and SSL_CERT_FILE", file.display())]
    CaFile {
        /// Which one.
        file: PathBuf,
        /// Why not.
        source: io::Error,
    },
    /// A certificate file holds no certificate.
    #[error(
        "the certificate file {} holds no certificate: found {found}; it must hold PEM blocks that begin with -----BEGIN CERTIFICATE-----",
        file.display()
    )]
    NoCertificate {
        /// Which one.
        file: PathBuf,
        /// What it holds instead.
        found: String,
    },
    /// The proxy's URL cannot be used.
    #[error("the proxy's URL cannot be used; it must be http://, https://, socks5:// or socks5h:// with host and port")]
    Proxy,
    /// A variable of the environment names no proxy.
    #[error(
        "the environment variable {variable} holds no proxy's URL (not shown); it must be http://, https://, socks5:// or \
         socks5h:// with host and port; mend or unset it, or name the backend in NO_PROXY"
    )]
    EnvironmentProxy {
        /// Which one.
        variable: &'static str,
    },
    /// TLS cannot be set up.
    #[error("TLS cannot be set up: {0}")]
    Tls(String),
    /// The client cannot be made.
    #[error("the HTTP client cannot be made")]
    Build,
}

impl From<Unusable> for ClientError {
    fn from(named_by: Unusable) -> Self {
        match named_by {
            Unusable::Given => Self::Proxy,
            Unusable::Variable(variable) => Self::EnvironmentProxy { variable },
        }
    }
}

impl From<RootsError> for ClientError {
    fn from(error: RootsError) -> Self {
        match error {
            RootsError::Unreadable { file, source } => Self::CaFile { file, source },
            RootsError::NoCertificate { file, found } => Self::NoCertificate { file, found },
        }
    }
}

type Clock = Arc<dyn Fn() -> SystemTime + Send + Sync>;

/// Posts batches. Clones share one connection.
#[derive(Clone)]
pub struct Client {
    shared: Arc<Shared>,
    clock: Clock,
}

struct Shared {
    http: reqwest::Client,
    endpoint: Endpoint,
    api_key: HeaderValue,
    signer: Signer,
    /// What no answer may show, even if the other side repeats it.
    secrets: [SecretString; 2],
    about: About,
}

impl Client {
    /// A client; nothing is sent yet.
    ///
    /// # Errors
    /// [`ClientError`] names the setting or file that cannot be used.
    pub fn new(config: ClientConfig) -> Result<Self, ClientError> {
        let endpoint = Endpoint::of(&config.url)?;
        for (key, setting) in [(&config.api_key, "APCLOUDY_API_KEY"), (&config.secret_key, "APCLOUDY_SECRET_KEY")] {
            if key.expose_secret().is_empty() {
                return Err(ClientError::NoKey { setting });
            }
        }
        let given = config.api_key.expose_secret();
        let mut api_key = HeaderValue::from_str(given).ok().filter(|_| given.is_ascii()).ok_or(ClientError::ApiKey)?;
        api_key.set_sensitive(true);
        let via = Via::of(&config.proxy, |name| std::env::var_os(name), endpoint.url())?;
        let about = About {
            authority: endpoint.authority().to_owned(),
            proxy: via.as_ref().map(Via::shown),
            connect_timeout: config.connect_timeout,
            idle_timeout: config.idle_timeout,
        };
        let shared = Shared {
            http: http(&config, via.as_ref())?,
            endpoint,
            api_key,
            signer: Signer::new(config.secret_key.clone()),
            secrets: [config.secret_key, config.api_key],
            about,
        };
        Ok(Self { shared: Arc::new(shared), clock: Arc::new(SystemTime::now) })
    }

    /// The same client with another clock for timestamps and `Retry-After` dates, for tests.
    #[must_use]
    pub fn with_clock(mut self, clock: impl Fn() -> SystemTime + Send + Sync + 'static) -> Self {
        self.clock = Arc::new(clock);
        self
    }

    /// Where batches go.
    #[must_use]
    pub fn endpoint(&self) -> &Endpoint {
        &self.shared.endpoint
    }

    /// Sends a body once, signed with the time at which the future is first polled. The same body is sent with the
    /// same `idempotency_key` again until it is settled. Must be polled within a tokio runtime.
    pub fn post(&self, body: Bytes, idempotency_key: &str) -> impl Future<Output = Answer> + Send + use<> {
        let (client, key) = (self.clone(), HeaderValue::from_str(idempotency_key));
        async move {
            match key {
                Ok(key) => client.exchange(body, key).await,
                Err(_) => Answer::Reject { why: "the batch's id cannot be a header".to_owned() },
            }
        }
    }

    async fn exchange(&self, body: Bytes, key: HeaderValue) -> Answer {
        let shared = &self.shared;
        let (progress, idle) = (Progress::default(), shared.about.idle_timeout);
        let headers = shared.headers(&body, key, (self.clock)());
        let request = shared
            .http
            .post(shared.endpoint.url().clone())
            .headers(headers)
            .body(Body::wrap(Upload::new(body, progress.clone())));
        // The client's own limit ends the wait for a connection; this one only comes after it.
        let connect = shared.about.connect_timeout.saturating_add(idle);
        let limits = Limits { connect, write: idle, whole: Duration::MAX, read: idle };
        let mut response = match progress.wait(request.send(), limits).await {
            Ok(Ok(response)) => response,
            Ok(Err(error)) => return shared.about.answer(&error),
            Err(late) => return shared.about.silent(late != Late::Connect),
        };
        // Taken is taken: a slow body says nothing more, and the job may end meanwhile.
        let limit = if response.status().is_success() { idle.min(TAKEN_BODY) } else { idle };
        let body = shared.clean(&answer_body(&mut response, limit).await);
        let now = Timestamp::try_from((self.clock)()).unwrap_or(Timestamp::UNIX_EPOCH);
        Answer::of_response(response.status(), response.headers(), body.as_bytes(), now)
    }
}

impl Shared {
    fn headers(&self, body: &[u8], key: HeaderValue, now: SystemTime) -> HeaderMap {
        let timestamp = now.duration_since(UNIX_EPOCH).unwrap_or_default().as_secs();
        let signature = self.signer.sign(&timestamp.to_string(), body);
        let mut headers = HeaderMap::with_capacity(5);
        headers.insert(API_KEY, self.api_key.clone());
        headers.insert(TIMESTAMP, HeaderValue::from(timestamp));
        if let Ok(signature) = HeaderValue::from_str(&signature) {
            headers.insert(SIGNATURE, signature);
        }
        headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
        headers.insert(IDEMPOTENCY_KEY, key);
        headers
    }

    /// What the other side says, without the keys that it may repeat.
    fn clean(&self, body: &[u8]) -> String {
        let mut text = String::from_utf8_lossy(body).into_owned();
        for secret in self.secrets.iter().map(|secret| secret.expose_secret()) {
            if secret.len() >= SECRET_BYTES && text.contains(secret) {
                text = text.replace(secret, "[key]");
            }
        }
        text
    }
}

impl fmt::Debug for Client {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Client").field("endpoint", &self.shared.endpoint.to_string()).finish_non_exhaustive()
    }
}

/// The beginning of an answer's body. What does not come within the limit is missing: the status has decided already.
async fn answer_body(response: &mut Response, limit: Duration) -> Vec<u8> {
    let mut body = Vec::new();
    let read = async {
        while let Ok(Some(piece)) = response.chunk().await {
            let room = ANSWER_BYTES.saturating_sub(body.len());
            body.extend_from_slice(piece.get(..room).unwrap_or(&piece));
            if room <= piece.len() {
                break;
            }
        }
    };
    let _ = tokio::time::timeout(limit, read).await;
    body
}

fn http(config: &ClientConfig, via: Option<&Via>) -> Result<reqwest::Client, ClientError> {
    let files = [&config.ca_file, &config.extra_ca];
    let roots = roots(files.into_iter().filter_map(|file| file.as_deref()))?;
    let tls = client_config(roots, &["h2", "http/1.1"]).map_err(|error| ClientError::Tls(error.to_string()))?;
    let builder = reqwest::Client::builder()
        .tls_backend_preconfigured(tls)
        .user_agent(concat!("dragline/", env!("CARGO_PKG_VERSION")))
        .redirect(redirect::Policy::none())
        .retry(retry::never())
        .referer(false)
        .connect_timeout(config.connect_timeout)
        .pool_max_idle_per_host(1)
        .pool_idle_timeout(KEPT)
        // A dead connection that many requests share is found by its pings: no request ends it.
        .http2_keep_alive_interval(config.idle_timeout / 2)
        .http2_keep_alive_timeout(config.idle_timeout / 2)
        .tcp_nodelay(true)
        .no_proxy();
    let builder = match via {
        Some(via) => builder.proxy(via.proxy().map_err(|_| ClientError::Proxy)?),
        None => builder,
    };
    builder.build().map_err(|_| ClientError::Build)
}

#[cfg(test)]
mod tests;
