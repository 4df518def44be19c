//! Connections: accepted within the bound, watched for taking too long, ended when the server stops.

use std::collections::BTreeMap;
use std::convert::Infallible;
use std::future::poll_fn;
use std::io;
use std::net::IpAddr;
use std::pin::{Pin, pin};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use http::header::{CONNECTION, HeaderValue};
use http::{Request, Response};
use hyper::body::{Body, Frame, Incoming, SizeHint};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, watch};
use tokio::task::JoinSet;
use tokio::time::{Instant, Sleep, sleep, sleep_until, timeout};

use super::exchange::{head_of, respond};
use super::pulse::{Pulse, WhenFull};
use super::{Answer, ReplyBody, Served};

/// How long open requests may take to end after a stop.
const STOP_LIMIT: Duration = Duration::from_secs(2);
/// The rest after the system refused a connection (out of file descriptors, say).
const ACCEPT_REST: Duration = Duration::from_millis(50);
/// Bytes of one request's line and headers; more of them get a 431.
const HEAD: usize = 1 << 20;
/// Connections that are being told to come again, and how long that may take.
const TURNED_AWAY: usize = 64;
const TURN_AWAY: Duration = Duration::from_secs(2);
/// How long one that was asked to leave is waited for.
const LEAVING: Duration = Duration::from_millis(100);

/// The connections that are open.
#[derive(Debug, Default)]
struct Crowd {
    next: u64,
    open: BTreeMap<u64, Arc<Pulse>>,
}

/// One of them; gone when dropped.
struct Member {
    crowd: Arc<Mutex<Crowd>>,
    number: u64,
    pulse: Arc<Pulse>,
    _permit: OwnedSemaphorePermit,
}

impl Member {
    fn join(crowd: &Arc<Mutex<Crowd>>, permit: OwnedSemaphorePermit) -> Self {
        let pulse = Arc::new(Pulse::new());
        let mut open = lock(crowd);
        let number = open.next;
        open.next += 1;
        open.open.insert(number, Arc::clone(&pulse));
        drop(open);
        Self { crowd: Arc::clone(crowd), number, pulse, _permit: permit }
    }
}

impl Drop for Member {
    fn drop(&mut self) {
        lock(&self.crowd).open.remove(&self.number);
    }
}

fn lock(crowd: &Mutex<Crowd>) -> MutexGuard<'_, Crowd> {
    crowd.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Asks the one to leave that is spared most easily, if there is one.
fn make_room(crowd: &Mutex<Crowd>) -> bool {
    let crowd = lock(crowd);
    let ranked = crowd.open.iter().filter_map(|(number, pulse)| Some((pulse.spare()?, *number)));
    let pulse = ranked.min().and_then(|(_, number)| crowd.open.get(&number));
    pulse.inspect(|pulse| pulse.dismiss()).is_some()
}

/// Accepts until it is told to stop, then lets what is open end.
pub(super) async fn accept<A: Answer>(listener: TcpListener, served: Arc<Served<A>>, mut stopped: watch::Receiver<bool>) {
    let room = Arc::new(Semaphore::new(served.bounds.connections));
    let aside = Arc::new(Semaphore::new(TURNED_AWAY));
    let crowd = Arc::new(Mutex::new(Crowd::default()));
    let mut open = JoinSet::new();
    loop {
        let next = async {
            let permit = match served.patience.when_full {
                WhenFull::Wait => Arc::clone(&room).acquire_owned().await.ok(),
                WhenFull::MakeRoom => None,
            };
            (permit, listener.accept().await)
        };
        let (permit, accepted) = tokio::select! {
            // An error means that the `RunningServer` is gone: stop as well.
            _ = stopped.changed() => break,
            next = next => next,
        };
        let Ok((stream, peer)) = accepted else {
            sleep(ACCEPT_REST).await;
            continue;
        };
        let permit = match permit {
            None => place(&room, &crowd).await,
            permit => permit,
        };
        let served = Arc::clone(&served);
        match (permit, Arc::clone(&aside).try_acquire_owned()) {
            (Some(permit), _) => {
                let (member, stopped) = (Member::join(&crowd, permit), stopped.clone());
                open.spawn(connection(stream, peer.ip(), served, member, stopped));
            }
            (None, Ok(aside)) => {
                open.spawn(async move {
                    // Who does not ask within the time is not told.
                    let _ = timeout(TURN_AWAY, turn_away(stream, peer.ip(), &served)).await;
                    drop(aside);
                });
            }
            // More than that is a flood: it is closed without a word.
            (None, Err(_)) => drop(stream),
        }
        while open.try_join_next().is_some() {}
    }
    drop(listener);
    // What is still open after the limit is aborted when the set is dropped.
    let _ = timeout(STOP_LIMIT, async { while open.join_next().await.is_some() {} }).await;
}

/// A place among the connections; that of one who can be spared if there is no other.
async fn place(room: &Arc<Semaphore>, crowd: &Mutex<Crowd>) -> Option<OwnedSemaphorePermit> {
    if let Ok(permit) = Arc::clone(room).try_acquire_owned() {
        return Some(permit);
    }
    if !make_room(crowd) {
        return None;
    }
    timeout(LEAVING, Arc::clone(room).acquire_owned()).await.ok()?.ok()
}

async fn connection<A: Answer>(
    stream: TcpStream,
    peer: IpAddr,
    served: Arc<Served<A>>,
    member: Member,
    mut stopped: watch::Receiver<bool>,
) {
    // Without it a small answer may wait for the acknowledgement of the one before.
    let _ = stream.set_nodelay(true);
    let (pulse, patience) = (&member.pulse, served.patience);
    let service = service_fn(|request| {
        pulse.begins();
        let (served, answering) = (Arc::clone(&served), Answering(Arc::clone(pulse)));
        async move {
            let response = respond(&served, peer, request, &answering.0).await;
            Ok::<_, Infallible>(response.map(|body| Watched { body, _answering: answering }))
        }
    });
    let stream = Heard { stream, pulse: Arc::clone(pulse) };
    let mut connection = pin!(protocol().serve_connection(TokioIo::new(stream), service));
    let mut alarm = pin!(sleep_until(pulse.due(&patience).unwrap_or_else(Instant::now)));
    let mut too_long = pin!(poll_fn(|cx| overdue(alarm.as_mut(), || pulse.due(&patience), cx)));
    let mut is_stopping = false;
    loop {
        tokio::select! {
            // The connection comes first: the others look at what it has just done.
            biased;
            // A client that goes away or speaks no HTTP ends the connection; there is nobody left to tell.
            _ = connection.as_mut() => return,
            () = too_long.as_mut() => return,
            () = pulse.dismissed() => {
                // A request that came meanwhile is answered.
                if pulse.spare().is_some() {
                    return;
                }
            }
            _ = stopped.changed(), if !is_stopping => {
                is_stopping = true;
                connection.as_mut().graceful_shutdown();
            }
        }
    }
}

/// Ready when a moment has come that may move on at any time.
fn overdue(mut alarm: Pin<&mut Sleep>, due: impl Fn() -> Option<Instant>, cx: &mut Context<'_>) -> Poll<()> {
    loop {
        let Some(due) = due() else { return Poll::Pending };
        // An alarm that rings early costs less than one that is set anew with every request.
        if due < alarm.deadline() {
            alarm.as_mut().reset(due);
        }
        std::task::ready!(alarm.as_mut().poll(cx));
        if due <= Instant::now() {
            return Poll::Ready(());
        }
        alarm.as_mut().reset(due);
    }
}

/// Tells a connection that there is no room for it.
async fn turn_away<A: Answer>(stream: TcpStream, peer: IpAddr, served: &Served<A>) {
    let service = service_fn(|request: Request<Incoming>| {
        let (head, _) = head_of(peer, request);
        let reply = served.site.refuse_full(&head);
        let mut response = Response::new(reply.body);
        (*response.status_mut(), *response.headers_mut()) = (reply.status, reply.headers);
        response.headers_mut().insert(CONNECTION, HeaderValue::from_static("close"));
        std::future::ready(Ok::<_, Infallible>(response))
    });
    // As above: there is nobody left to tell.
    let _ = protocol().serve_connection(TokioIo::new(stream), service).await;
}

fn protocol() -> http1::Builder {
    let mut builder = http1::Builder::new();
    // Heads are timed here, since the time between two requests is another one.
    builder.timer(TokioTimer::new()).header_read_timeout(None::<Duration>).max_buf_size(HEAD);
    builder
}

/// A stream that tells when something comes.
struct Heard {
    stream: TcpStream,
    pulse: Arc<Pulse>,
}

impl AsyncRead for Heard {
    fn poll_read(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buffer: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        let before = buffer.filled().len();
        let polled = Pin::new(&mut self.stream).poll_read(cx, buffer);
        if buffer.filled().len() > before {
            self.pulse.heard();
        }
        polled
    }
}

impl AsyncWrite for Heard {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write(cx, bytes)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        slices: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write_vectored(cx, slices)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(cx)
    }
}

/// A request that is being answered, until dropped.
struct Answering(Arc<Pulse>);

impl Drop for Answering {
    fn drop(&mut self) {
        self.0.ends();
    }
}

/// A body that keeps its connection busy until it is handed over.
struct Watched {
    body: ReplyBody,
    _answering: Answering,
}

impl Body for Watched {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        Pin::new(&mut self.body).poll_frame(cx)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}
