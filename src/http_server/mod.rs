//! A small HTTP/1.1 server: keep-alive, one task per connection, everything bounded.
//!
//! It serves the demo sites and the webhook. [`Bounds`] say how much it takes; what is beyond them is refused, and what is refused
//! is read and dropped for a moment, so that the other side gets to read the answer. It knows no page; an [`Answer`] does.

mod connections;
mod exchange;
mod pulse;
#[cfg(test)]
mod tests;

use std::convert::Infallible;
use std::future::Future;
use std::io::ErrorKind;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use http::header::{CONTENT_TYPE, HeaderName, HeaderValue, RETRY_AFTER};
use http::{HeaderMap, Method, StatusCode};
use hyper::body::{Body, Frame, SizeHint};
use tokio::net::TcpListener;
use tokio::sync::{Semaphore, mpsc, watch};
use tokio::task::JoinHandle;
use url::Url;

pub(crate) use self::pulse::{Patience, WhenFull};

/// The unit of the memory for bodies.
const BLOCK: usize = 1024;
/// Bytes of a body that waits for no memory: the number of connections is bound enough for these. Who sends a large one slowly
/// cannot keep out those with little to say.
const SMALL: usize = 64 << 10;

/// How much a server takes at one time.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Bounds {
    /// Connections open at one time; [`Patience`] says what becomes of more.
    pub(crate) connections: usize,
    /// Bytes of path and query; longer ones get a 414.
    pub(crate) target: usize,
    /// Bytes of one request body; larger ones get a 413.
    pub(crate) body: usize,
    /// Bytes of all request bodies above 64 KiB that are read or answered at one time; the others wait, within their time.
    pub(crate) bodies: usize,
    /// How long a request body may take; slower ones get a 408.
    pub(crate) body_time: Duration,
}

/// Why a server does not listen.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub(crate) enum ListenError {
    /// Another program holds the port.
    #[error("port {} on {} is already in use; stop the program that holds it, choose another port, or ask for port 0 to get a free one", addr.port(), addr.ip())]
    PortInUse { addr: SocketAddr },
    /// The address cannot be listened on for another reason.
    #[error("cannot listen on {addr}: {source}")]
    Listen { addr: SocketAddr, source: std::io::Error },
    /// The address cannot be written as a URL (an IPv6 address with a zone).
    #[error("the address {addr} cannot be part of a URL; listen on one without a zone")]
    Address { addr: SocketAddr },
}

/// What is known of a request before its body.
#[derive(Debug)]
pub(crate) struct Head {
    /// Who is at the other end of the connection.
    pub(crate) peer: IpAddr,
    pub(crate) method: Method,
    pub(crate) path: String,
    pub(crate) query: String,
    pub(crate) headers: HeaderMap,
}

/// Why a body was not taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum BodyFault {
    /// It is larger than these bytes.
    TooLarge(usize),
    /// It did not arrive within this time.
    TooSlow(Duration),
    /// The connection broke off, or the framing is wrong.
    CutOff,
}

/// What a site was asked.
#[derive(Debug)]
pub(crate) struct Asked {
    /// Who is at the other end of the connection.
    pub(crate) peer: IpAddr,
    pub(crate) method: Method,
    pub(crate) path: String,
    pub(crate) query: String,
    pub(crate) headers: HeaderMap,
    pub(crate) body: Bytes,
}

impl Asked {
    /// The first value of a query parameter, decoded.
    pub(crate) fn parameter(&self, name: &str) -> Option<String> {
        field(self.query.as_bytes(), name)
    }

    /// The first value of a form field in the body, decoded.
    pub(crate) fn form_field(&self, name: &str) -> Option<String> {
        field(&self.body, name)
    }

    /// The value of a cookie, as sent.
    pub(crate) fn cookie(&self, name: &str) -> Option<&str> {
        let lines = self.headers.get_all(http::header::COOKIE).iter().filter_map(|line| line.to_str().ok());
        lines
            .flat_map(|line| line.split(';'))
            .filter_map(|pair| pair.trim().split_once('='))
            .find(|(key, _)| *key == name)
            .map(|(_, value)| value)
    }
}

fn field(pairs: &[u8], name: &str) -> Option<String> {
    url::form_urlencoded::parse(pairs).find(|(key, _)| key == name).map(|(_, value)| value.into_owned())
}

/// What a site answers.
#[derive(Debug)]
pub(crate) struct Reply {
    pub(crate) status: StatusCode,
    pub(crate) headers: HeaderMap,
    pub(crate) body: ReplyBody,
}

impl Reply {
    pub(crate) fn new(status: StatusCode, content_type: &'static str, body: impl Into<Bytes>) -> Self {
        let mut headers = HeaderMap::new();
        headers.insert(CONTENT_TYPE, HeaderValue::from_static(content_type));
        Self { status, headers, body: ReplyBody::Whole(Some(body.into())) }
    }

    pub(crate) fn html(status: StatusCode, body: String) -> Self {
        Self::new(status, "text/html; charset=utf-8", body)
    }

    /// The reply with one more header; a value that no header can hold is left out.
    pub(crate) fn with(mut self, name: HeaderName, value: &str) -> Self {
        if let Ok(value) = HeaderValue::from_str(value) {
            self.headers.insert(name, value);
        }
        self
    }
}

/// A body at once, or in pieces as they are computed.
#[derive(Debug)]
pub(crate) enum ReplyBody {
    Whole(Option<Bytes>),
    Pieces(mpsc::Receiver<Bytes>),
}

impl Body for ReplyBody {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        match self.get_mut() {
            Self::Whole(bytes) => Poll::Ready(bytes.take().map(|bytes| Ok(Frame::data(bytes)))),
            Self::Pieces(pieces) => pieces.poll_recv(cx).map(|piece| piece.map(|bytes| Ok(Frame::data(bytes)))),
        }
    }

    fn is_end_stream(&self) -> bool {
        matches!(self, Self::Whole(None))
    }

    fn size_hint(&self) -> SizeHint {
        match self {
            Self::Whole(bytes) => SizeHint::with_exact(bytes.as_ref().map_or(0, |bytes| bytes.len() as u64)),
            Self::Pieces(_) => SizeHint::new(),
        }
    }
}

/// One answer for each request. A HEAD request is answered as a GET; the server drops the body.
pub(crate) trait Answer: Send + Sync + 'static {
    fn answer(&self, asked: Asked) -> impl Future<Output = Reply> + Send;

    /// The answer to a request whose body need not be read, if it is one.
    fn refuse(&self, _head: &Head) -> Option<Reply> {
        None
    }

    /// The answer to an address that is longer than these bytes.
    fn refuse_target(&self, most: usize) -> Reply {
        let text = format!("the address is longer than {most} bytes\n");
        Reply::new(StatusCode::URI_TOO_LONG, "text/plain; charset=utf-8", text)
    }

    /// The answer to a connection that there is no room for, to the first request on it.
    fn refuse_full(&self, _head: &Head) -> Reply {
        let text = "this server has no room for another connection; come again in a moment\n";
        Reply::new(StatusCode::SERVICE_UNAVAILABLE, "text/plain; charset=utf-8", text).with(RETRY_AFTER, "1")
    }

    /// The answer to a body that was not taken.
    fn refuse_body(&self, _head: &Head, fault: BodyFault) -> Reply {
        let (status, text) = match fault {
            BodyFault::TooLarge(most) => (StatusCode::PAYLOAD_TOO_LARGE, format!("the body is larger than {most} bytes\n")),
            BodyFault::TooSlow(_) => (StatusCode::REQUEST_TIMEOUT, "the body did not arrive in time\n".to_owned()),
            BodyFault::CutOff => (StatusCode::BAD_REQUEST, "the body is cut off\n".to_owned()),
        };
        Reply::new(status, "text/plain; charset=utf-8", text)
    }
}

/// A server that is listening. Dropping it stops it without waiting.
#[derive(Debug)]
pub struct RunningServer {
    addr: SocketAddr,
    url: Url,
    stop: watch::Sender<bool>,
    task: JoinHandle<()>,
}

impl RunningServer {
    /// The address of the root, with a slash at its end. A server that listens everywhere names the loopback address.
    #[must_use]
    pub fn url(&self) -> Url {
        self.url.clone()
    }

    /// Where it listens, with the real port.
    #[must_use]
    pub const fn addr(&self) -> SocketAddr {
        self.addr
    }

    /// Stops listening, lets the open requests end for at most 2 s, then cuts them off.
    pub async fn stop(self) {
        self.stop.send_replace(true);
        // The task only fails when the runtime is going down, and then it has stopped too.
        let _ = self.task.await;
    }
}

/// Listens and serves, with the usual patience.
pub(crate) async fn start<A: Answer>(listen: SocketAddr, bounds: Bounds, site: Arc<A>) -> Result<RunningServer, ListenError> {
    start_with(listen, bounds, Patience::default(), site).await
}

/// Listens and serves.
pub(crate) async fn start_with<A: Answer>(
    listen: SocketAddr,
    bounds: Bounds,
    patience: Patience,
    site: Arc<A>,
) -> Result<RunningServer, ListenError> {
    let listener = TcpListener::bind(listen).await.map_err(|source| match source.kind() {
        ErrorKind::AddrInUse => ListenError::PortInUse { addr: listen },
        _ => ListenError::Listen { addr: listen, source },
    })?;
    let addr = listener.local_addr().map_err(|source| ListenError::Listen { addr: listen, source })?;
    let url = Url::parse(&format!("http://{}/", reachable(addr))).map_err(|_| ListenError::Address { addr })?;
    let (stop, stopped) = watch::channel(false);
    let blocks = bounds.bodies.max(bounds.body).div_ceil(BLOCK).min(Semaphore::MAX_PERMITS);
    let served = Arc::new(Served { site, bounds, patience, memory: Semaphore::new(blocks), blocks });
    let task = tokio::spawn(connections::accept(listener, served, stopped));
    Ok(RunningServer { addr, url, stop, task })
}

fn reachable(addr: SocketAddr) -> SocketAddr {
    let ip = match addr.ip() {
        IpAddr::V4(ip) if ip.is_unspecified() => IpAddr::V4(Ipv4Addr::LOCALHOST),
        IpAddr::V6(ip) if ip.is_unspecified() => IpAddr::V6(Ipv6Addr::LOCALHOST),
        _ => return addr,
    };
    SocketAddr::new(ip, addr.port())
}

#[derive(Debug)]
struct Served<A> {
    site: Arc<A>,
    bounds: Bounds,
    patience: Patience,
    /// Blocks of memory for large bodies that are free.
    memory: Semaphore,
    blocks: usize,
}
