//! The calls over HTTP/1.1: one POST at a time on kept connections.
//!
//! Follows no redirect, keeps no cookie, tries nothing twice. (A kept connection that turns out to be closed before it took
//! anything of a request is replaced by another one; that is the same attempt.) No message shows the token or a
//! proxy's password.

use std::fmt;
use std::path::PathBuf;
use std::sync::{PoisonError, RwLock};
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use futures_util::FutureExt as _;
use futures_util::future::BoxFuture;
use http::header::{ACCEPT, ACCEPT_ENCODING, AUTHORIZATION, CONTENT_TYPE, HeaderName, HeaderValue, USER_AGENT};
use http::{HeaderMap, Method};
use reqwest::{Body, Request, Response, redirect, retry};
use secrecy::{ExposeSecret as _, SecretString};
use tokio::sync::SemaphorePermit;
use tokio::time::{Instant, timeout, timeout_at};
use url::Url;

use super::fault::About;
use super::gzip::{self, LARGEST};
use super::slots::Slots;
use super::{Attempt, Fault, Reply, Transport};
use crate::later::later;
use crate::roots::{RootsError, client_config, roots};
use crate::spinneret::procedure::Procedure;
use crate::spinneret::retry::Timeouts;
use crate::upload::{Limits, Progress, Upload};
use crate::via::Via;

/// How long an unused connection is kept: less than the 120 s after which the server closes it.
const KEPT: Duration = Duration::from_secs(90);
/// How long sending a whole request, or reading the whole body of an answer, may take however steadily it moves.
const WHOLE: Duration = Duration::from_secs(60);
/// How much is read of what comes with an error status: a page without end must not hide the status.
const LARGEST_PAGE: usize = 1024 * 1024;
/// The HTTP client's own limit for connecting comes first; ours holds for a client that has none.
const SLACK: Duration = Duration::from_millis(250);

const CONNECT_PROTOCOL_VERSION: HeaderName = HeaderName::from_static("connect-protocol-version");
const NODE: HeaderName = HeaderName::from_static("x-spinneret-node");
const JSON: HeaderValue = HeaderValue::from_static("application/json");

/// What is said with every call.
pub(crate) struct Salutation {
    /// `Bearer` and the token, marked as sensitive.
    pub(crate) authorization: HeaderValue,
    pub(crate) node: HeaderValue,
    pub(crate) user_agent: HeaderValue,
}

/// What connections are made of.
#[derive(Debug, Clone)]
pub(crate) struct Line {
    pub(crate) timeouts: Timeouts,
    pub(crate) ca_files: Vec<PathBuf>,
    pub(crate) via: Option<Via>,
    /// The most calls under way at one time.
    pub(crate) connections: usize,
}

/// Why there is no way to the server.
#[derive(Debug, thiserror::Error)]
pub(crate) enum LineError {
    #[error("{0}; see SPINNERET_CA_FILE (ClientBuilder::ca_file) and SSL_CERT_FILE")]
    Roots(#[from] RootsError),
    #[error("TLS cannot be set up: {0}")]
    Tls(rustls::Error),
    #[error("the HTTP client cannot be made: its settings do not fit each other")]
    Build,
}

/// The way over sockets.
pub(crate) struct HttpTransport {
    /// None after the end.
    http: RwLock<Option<reqwest::Client>>,
    /// One for each call that may be under way.
    slots: Slots,
    urls: Vec<Url>,
    headers: HeaderMap,
    about: About,
}

impl HttpTransport {
    /// Connections of its own; nothing is sent yet.
    pub(crate) fn new(base: &Url, salutation: Salutation, line: Line) -> Result<Self, LineError> {
        Ok(Self::over(http(&line)?, base, salutation, line.timeouts, line.via.as_ref(), line.connections))
    }

    /// The connections of a client that was given.
    pub(crate) fn over(
        http: reqwest::Client,
        base: &Url,
        salutation: Salutation,
        timeouts: Timeouts,
        via: Option<&Via>,
        connections: usize,
    ) -> Self {
        let about = About { authority: base.authority().to_owned(), proxy: via.map(Via::shown), timeouts };
        Self {
            http: RwLock::new(Some(http)),
            slots: Slots::new(connections),
            urls: Procedure::ALL.iter().map(|procedure| url(base, *procedure)).collect(),
            headers: headers(salutation),
            about,
        }
    }

    async fn exchange(&self, attempt: Attempt) -> Result<Reply, Fault> {
        let _slot = match self.slots.try_take(attempt.procedure) {
            Some(slot) => slot,
            None => self.slot(attempt.procedure).await?,
        };
        let http = self.http.read().unwrap_or_else(PoisonError::into_inner).clone();
        let (Some(http), Some(url)) = (http, self.urls.get(attempt.procedure as usize)) else {
            return Err(self.about.useless("the connections are closed"));
        };
        let (progress, limits) = (Progress::default(), self.limits(attempt.read_timeout));
        let mut request = Request::new(Method::POST, url.clone());
        *request.headers_mut() = self.headers.clone();
        *request.body_mut() = Some(Body::wrap(Upload::new(attempt.body, progress.clone())));
        let mut response = match progress.wait(http.execute(request), limits).await {
            Ok(Ok(response)) => response,
            Ok(Err(error)) => return Err(self.about.fault(error, progress.has_begun())),
            Err(late) => return Err(self.about.late(late, attempt.read_timeout)),
        };
        let body = self.body(&mut response, attempt.read_timeout).await?;
        let (status, headers) = (response.status(), std::mem::take(response.headers_mut()));
        let body = match gzip::unpacked(&headers, body) {
            Ok(body) => body,
            // The status says more than a page that nobody can read.
            Err(_) if !status.is_success() => Bytes::new(),
            Err(error) => return Err(self.about.useless(&error.to_string())),
        };
        Ok(Reply { status: status.as_u16(), headers, body })
    }

    /// Waits for another call to end.
    async fn slot(&self, procedure: Procedure) -> Result<SemaphorePermit<'_>, Fault> {
        let slot = timeout(self.about.timeouts.pool, self.slots.take(procedure)).await;
        slot.ok().flatten().ok_or_else(|| self.about.crowded())
    }

    const fn limits(&self, read: Duration) -> Limits {
        let Timeouts { connect, write, .. } = self.about.timeouts;
        Limits { connect: connect.saturating_add(SLACK), write, whole: WHOLE, read }
    }

    /// The whole body: no piece may be waited for longer than `silence`, and all of it not longer than [`WHOLE`].
    async fn body(&self, response: &mut Response, silence: Duration) -> Result<Bytes, Fault> {
        let last = later(Instant::now(), WHOLE);
        // Nearly every answer comes in one piece, which is not copied.
        let (mut first, mut all) = (Bytes::new(), BytesMut::new());
        loop {
            let (end, limit) = match later(Instant::now(), silence) {
                end if end <= last => (end, silence),
                _ => (last, WHOLE),
            };
            let piece = match timeout_at(end, response.chunk()).await {
                Ok(Ok(Some(piece))) => piece,
                Ok(Ok(None)) if all.is_empty() => return Ok(first),
                Ok(Ok(None)) => return Ok(all.freeze()),
                Ok(Err(error)) => return Err(self.about.fault(error, true)),
                Err(_) => return Err(self.about.stalled(limit)),
            };
            let size = first.len() + all.len() + piece.len();
            if size > LARGEST_PAGE && !response.status().is_success() {
                return Ok(if all.is_empty() { first } else { all.freeze() });
            }
            if size > LARGEST {
                return Err(self.about.useless(&format!("the answer is larger than {} MiB", LARGEST >> 20)));
            }
            if first.is_empty() && all.is_empty() {
                first = piece;
            } else {
                all.extend_from_slice(&std::mem::take(&mut first));
                all.extend_from_slice(&piece);
            }
        }
    }
}

impl Transport for HttpTransport {
    fn send(&self, attempt: Attempt) -> BoxFuture<'_, Result<Reply, Fault>> {
        self.exchange(attempt).boxed()
    }

    fn close(&self) {
        *self.http.write().unwrap_or_else(PoisonError::into_inner) = None;
    }
}

impl fmt::Debug for HttpTransport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("HttpTransport").field("authority", &self.about.authority).finish_non_exhaustive()
    }
}

/// `Bearer` and the token; none when no header can carry it.
pub(crate) fn bearer(token: &SecretString) -> Option<HeaderValue> {
    let mut value = HeaderValue::from_str(&format!("Bearer {}", token.expose_secret())).ok()?;
    value.set_sensitive(true);
    Some(value)
}

fn headers(salutation: Salutation) -> HeaderMap {
    let mut headers = HeaderMap::with_capacity(8);
    headers.insert(CONTENT_TYPE, JSON);
    headers.insert(ACCEPT, JSON);
    headers.insert(ACCEPT_ENCODING, HeaderValue::from_static("gzip"));
    headers.insert(CONNECT_PROTOCOL_VERSION, HeaderValue::from_static("1"));
    headers.insert(AUTHORIZATION, salutation.authorization);
    headers.insert(NODE, salutation.node);
    headers.insert(USER_AGENT, salutation.user_agent);
    headers
}

/// Where a call goes: its path after that of the base.
fn url(base: &Url, procedure: Procedure) -> Url {
    let mut url = base.clone();
    url.set_path(&format!("{}/{}", base.path().trim_end_matches('/'), procedure.path()));
    url
}

fn http(line: &Line) -> Result<reqwest::Client, LineError> {
    let tls = client_config(roots(line.ca_files.iter().map(PathBuf::as_path))?, &["http/1.1"]).map_err(LineError::Tls)?;
    let builder = reqwest::Client::builder()
        .tls_backend_preconfigured(tls)
        .http1_only()
        .redirect(redirect::Policy::none())
        .retry(retry::never())
        .referer(false)
        // Unpacked here, whatever another part of the program has asked the HTTP client to be able to.
        .no_gzip()
        .no_brotli()
        .no_deflate()
        .no_zstd()
        .connect_timeout(line.timeouts.connect)
        .pool_idle_timeout(KEPT)
        // A call takes the first connection that is free, and leaves the one it had begun to make to others: after a stall
        // there would be more of those than there can be calls.
        .pool_max_idle_per_host(line.connections)
        .tcp_nodelay(true)
        .no_proxy();
    let builder = match &line.via {
        Some(via) => builder.proxy(via.proxy().map_err(|_| LineError::Build)?),
        None => builder,
    };
    builder.build().map_err(|_| LineError::Build)
}

#[cfg(test)]
mod tests;
