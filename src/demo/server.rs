//! The HTTP server under the demo sites: HTTP/1.1 with keep-alive on a loopback socket, one task per connection.
//!
//! Bounds: [`CONNECTIONS`] open connections (more wait to be accepted), [`LONGEST_TARGET`] bytes of path and query, [`LARGEST_BODY`]
//! bytes of request body, [`STOP_LIMIT`] to stop. It knows no page; an [`Answer`] does.

use std::convert::Infallible;
use std::future::Future;
use std::io::ErrorKind;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use http::header::{CONTENT_LENGTH, CONTENT_TYPE, HeaderName, HeaderValue};
use http::{HeaderMap, Method, Request, Response, StatusCode};
use http_body_util::{BodyExt as _, Limited};
use hyper::body::{Body, Frame, Incoming, SizeHint};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{Semaphore, mpsc, watch};
use tokio::task::{JoinHandle, JoinSet};
use url::Url;

use super::SiteError;

/// Connections open at one time.
const CONNECTIONS: usize = 1_024;
/// Bytes of path and query; longer ones get a 414.
const LONGEST_TARGET: usize = 8_192;
/// Bytes of request body; larger ones get a 413.
const LARGEST_BODY: usize = 16_384;
/// How long a request body may take; slower ones get a 408.
const BODY_TIME: Duration = Duration::from_secs(10);
/// How long open requests may take to end after a stop.
const STOP_LIMIT: Duration = Duration::from_secs(2);
/// The rest after the system refused a connection (out of file descriptors, say).
const ACCEPT_REST: Duration = Duration::from_millis(50);

/// What a site was asked.
#[derive(Debug)]
pub(crate) struct Asked {
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

/// A site: one answer for each request. A HEAD request is answered as a GET; the server drops the body.
pub(crate) trait Answer: Send + Sync + 'static {
    fn answer(&self, asked: Asked) -> impl Future<Output = Reply> + Send;
}

/// A demo site that is listening. Dropping it stops it without waiting.
#[derive(Debug)]
pub struct RunningSite {
    addr: SocketAddr,
    url: Url,
    stop: watch::Sender<bool>,
    task: JoinHandle<()>,
}

impl RunningSite {
    /// The address of the home page, with a slash at its end. A site that listens everywhere names the loopback address.
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

/// Listens and serves.
pub(crate) async fn start<A: Answer>(listen: SocketAddr, site: Arc<A>) -> Result<RunningSite, SiteError> {
    let listener = TcpListener::bind(listen).await.map_err(|source| match source.kind() {
        ErrorKind::AddrInUse => SiteError::PortInUse { addr: listen },
        _ => SiteError::Listen { addr: listen, source },
    })?;
    let addr = listener.local_addr().map_err(|source| SiteError::Listen { addr: listen, source })?;
    let url = Url::parse(&format!("http://{}/", reachable(addr))).map_err(|_| SiteError::Address { addr })?;
    let (stop, stopped) = watch::channel(false);
    let task = tokio::spawn(accept(listener, site, stopped));
    Ok(RunningSite { addr, url, stop, task })
}

fn reachable(addr: SocketAddr) -> SocketAddr {
    let ip = match addr.ip() {
        IpAddr::V4(ip) if ip.is_unspecified() => IpAddr::V4(Ipv4Addr::LOCALHOST),
        IpAddr::V6(ip) if ip.is_unspecified() => IpAddr::V6(Ipv6Addr::LOCALHOST),
        _ => return addr,
    };
    SocketAddr::new(ip, addr.port())
}

async fn accept<A: Answer>(listener: TcpListener, site: Arc<A>, mut stopped: watch::Receiver<bool>) {
    let room = Arc::new(Semaphore::new(CONNECTIONS));
    let mut open = JoinSet::new();
    loop {
        let next = async {
            let permit = Arc::clone(&room).acquire_owned().await;
            (permit, listener.accept().await)
        };
        tokio::select! {
            // An error means that the `RunningSite` is gone: stop as well.
            _ = stopped.changed() => break,
            (permit, accepted) = next => match accepted {
                Ok((stream, _)) => {
                    let (site, stopped) = (Arc::clone(&site), stopped.clone());
                    open.spawn(async move {
                        connection(stream, site, stopped).await;
                        drop(permit);
                    });
                }
                Err(_) => tokio::time::sleep(ACCEPT_REST).await,
            }
        }
        while open.try_join_next().is_some() {}
    }
    drop(listener);
    // What is still open after the limit is aborted when the set is dropped.
    let _ = tokio::time::timeout(STOP_LIMIT, async { while open.join_next().await.is_some() {} }).await;
}

async fn connection<A: Answer>(stream: TcpStream, site: Arc<A>, mut stopped: watch::Receiver<bool>) {
    // Without it a small answer may wait for the acknowledgement of the one before.
    let _ = stream.set_nodelay(true);
    let service = service_fn(move |request| {
        let site = Arc::clone(&site);
        async move { Ok::<_, Infallible>(respond(site.as_ref(), request).await) }
    });
    let mut connection = pin!(http1::Builder::new().timer(TokioTimer::new()).serve_connection(TokioIo::new(stream), service));
    // A client that goes away or speaks no HTTP ends the connection; there is nobody left to tell.
    tokio::select! {
        _ = connection.as_mut() => return,
        _ = stopped.changed() => connection.as_mut().graceful_shutdown(),
    }
    let _ = connection.await;
}

async fn respond<A: Answer>(site: &A, request: Request<Incoming>) -> Response<ReplyBody> {
    let (head, body) = request.into_parts();
    let is_head = head.method == Method::HEAD;
    let (path, query) = (head.uri.path(), head.uri.query().unwrap_or_default());
    let reply = if path.len() + query.len() > LONGEST_TARGET {
        Reply::new(
            StatusCode::URI_TOO_LONG,
            "text/plain; charset=utf-8",
            format!("the address is longer than {LONGEST_TARGET} bytes\n"),
        )
    } else {
        match tokio::time::timeout(BODY_TIME, Limited::new(body, LARGEST_BODY).collect()).await {
            Ok(Ok(body)) => {
                let asked = Asked {
                    path: path.to_owned(),
                    query: query.to_owned(),
                    method: head.method,
                    headers: head.headers,
                    body: body.to_bytes(),
                };
                site.answer(asked).await
            }
            Err(_) => Reply::new(StatusCode::REQUEST_TIMEOUT, "text/plain; charset=utf-8", "the body did not arrive in time\n"),
            Ok(Err(_)) => Reply::new(
                StatusCode::PAYLOAD_TOO_LARGE,
                "text/plain; charset=utf-8",
                format!("the body is cut off or larger than {LARGEST_BODY} bytes\n"),
            ),
        }
    };
    let Reply { status, mut headers, mut body } = reply;
    if is_head {
        if let Some(length) = body.size_hint().exact() {
            headers.insert(CONTENT_LENGTH, HeaderValue::from(length));
        }
        body = ReplyBody::Whole(None);
    }
    let mut response = Response::new(body);
    *response.status_mut() = status;
    *response.headers_mut() = headers;
    response
}
