//! The sockets of the scripted plane: HTTP/1.1, with answers that are late, never come, or end with their connection.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::header::{ACCEPT_ENCODING, HeaderName, HeaderValue};
use http::{Request, Response, StatusCode};
use http_body_util::{BodyExt as _, Limited};
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::net::TcpStream;

use super::loopback::each_connection;
use super::plane::{Call, Mishap, Refused, Shared};
use crate::http_server::{Answer as _, Asked, BodyFault, Head, Reply, ReplyBody};
use crate::plane::face::{Face, LARGEST_BODY};
use crate::plane::model::refusal::Refusal;

/// A connection that is to end without an answer.
#[derive(Debug)]
struct Lost;

impl fmt::Display for Lost {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the script ends this connection")
    }
}

impl std::error::Error for Lost {}

/// Serves for as long as it is polled.
pub(super) async fn accept(listener: std::net::TcpListener, shared: Arc<Shared>, face: Arc<Face>) {
    each_connection(listener, |stream| {
        tokio::spawn(connection(stream, Arc::clone(&shared), Arc::clone(&face)));
    })
    .await;
}

async fn connection(stream: TcpStream, shared: Arc<Shared>, face: Arc<Face>) {
    let _ = stream.set_nodelay(true);
    let Ok(peer) = stream.peer_addr().map(|peer| peer.ip()) else { return };
    shared.count_connection();
    let service = service_fn(move |request: Request<Incoming>| {
        let (shared, face) = (Arc::clone(&shared), Arc::clone(&face));
        async move {
            let (parts, body) = request.into_parts();
            let mut headers = parts.headers;
            // What is looked at is not to be packed.
            headers.remove(ACCEPT_ENCODING);
            let head = Head {
                peer,
                method: parts.method,
                path: parts.uri.path().to_owned(),
                query: parts.uri.query().unwrap_or_default().to_owned(),
                headers,
            };
            let Reply { status, headers, body } = reply(&shared, &face, head, body).await?;
            let mut response = Response::new(body);
            *response.status_mut() = status;
            *response.headers_mut() = headers;
            Ok::<Response<ReplyBody>, Lost>(response)
        }
    });
    // A client that goes away ends the connection, as the script does; there is nobody left to tell.
    let _ = http1::Builder::new().timer(TokioTimer::new()).serve_connection(TokioIo::new(stream), service).await;
}

async fn reply(shared: &Shared, face: &Face, head: Head, body: Incoming) -> Result<Reply, Lost> {
    let refused = face.refuse(&head);
    let Ok(body) = Limited::new(body, LARGEST_BODY).collect().await.map(http_body_util::Collected::to_bytes) else {
        return Ok(face.refuse_body(&head, BodyFault::TooLarge(LARGEST_BODY)));
    };
    if let Some(refused) = refused {
        return Ok(refused);
    }
    let Some(call) = Call::at(&head.path) else {
        return Ok(face.answer(asked(head, body)).await);
    };
    let (mishap, delay, mut heals) = shared.next(call);
    wait(delay).await;
    let mut is_lost = false;
    match mishap {
        Some(Mishap::Refuse(with)) => {
            shared.note_refusal(call);
            wait(delay).await;
            return Ok(refusal(&with));
        }
        Some(Mishap::LoseCall) => return Err(Lost),
        Some(Mishap::Hang) => {
            // It ends without a word only together with the plane.
            let _ = heals.changed().await;
        }
        Some(Mishap::LoseAnswer) => is_lost = true,
        None => {}
    }
    let about = body.clone();
    let mut reply = face.answer(asked(head, body)).await;
    shared.note_served(call);
    if reply.status == StatusCode::OK && Call::ACQUIRES.contains(&call) {
        reply.body = note_grants(shared, call, &about, reply.body, !is_lost);
    }
    if is_lost {
        return Err(Lost);
    }
    wait(delay).await;
    Ok(reply)
}

/// Notes what was granted, and gives the body back.
fn note_grants(shared: &Shared, call: Call, request: &[u8], body: ReplyBody, is_delivered: bool) -> ReplyBody {
    if let ReplyBody::Whole(Some(bytes)) = &body {
        shared.note_grants(call, request, bytes, is_delivered);
    }
    body
}

/// Waits the time of the wire, if it takes any.
async fn wait(delay: Duration) {
    if !delay.is_zero() {
        tokio::time::sleep(delay).await;
    }
}

fn asked(head: Head, body: Bytes) -> Asked {
    let Head { peer, method, path, query, headers } = head;
    Asked { peer, method, path, query, headers, body }
}

fn refusal(with: &Refused) -> Reply {
    let Refused { code, reason, message, retry_after } = with;
    let refusal = Refusal { code: code.clone(), reason: None, message: message.clone().into(), retry_after: None };
    let status = StatusCode::from_u16(refusal.status()).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    let mut reply = Reply::new(status, "application/json", refusal.body());
    if !reason.is_empty() {
        reply = reply.with(HeaderName::from_static("spinneret-reason"), reason);
    }
    if let Some(wait) = retry_after {
        let wait = u64::try_from(wait.as_millis()).unwrap_or(u64::MAX);
        reply.headers.insert(HeaderName::from_static("spinneret-retry-after-ms"), HeaderValue::from(wait));
    }
    reply
}
