//! One request and its answer: the head judged, the body read within its bounds, the answer framed.

use std::net::IpAddr;
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use http::header::{CONTENT_LENGTH, EXPECT, HeaderValue};
use http::{Method, Request, Response};
use http_body_util::BodyExt as _;
use hyper::body::{Body as _, Incoming};
use tokio::sync::SemaphorePermit;

use super::pulse::Pulse;
use super::{Answer, Asked, BLOCK, BodyFault, Bounds, Head, Reply, ReplyBody, SMALL, Served};

/// How long a body that nobody wants is read: who still sends when the connection closes may lose the answer.
const DRAIN_TIME: Duration = Duration::from_secs(2);
/// Bytes of such a body that are read at most.
const DRAIN_BYTES: usize = 64 << 20;

/// The request without its body, and the body.
pub(super) fn head_of(peer: IpAddr, request: Request<Incoming>) -> (Head, Incoming) {
    let (parts, body) = request.into_parts();
    let head = Head {
        peer,
        method: parts.method,
        path: parts.uri.path().to_owned(),
        query: parts.uri.query().unwrap_or_default().to_owned(),
        headers: parts.headers,
    };
    (head, body)
}

/// Answers a request.
pub(super) async fn respond<A: Answer>(
    served: &Served<A>,
    peer: IpAddr,
    request: Request<Incoming>,
    pulse: &Pulse,
) -> Response<ReplyBody> {
    let (head, body) = head_of(peer, request);
    let is_head = head.method == Method::HEAD;
    let Reply { status, mut headers, mut body } = reply(served, head, body, pulse).await;
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

async fn reply<A: Answer>(served: &Served<A>, head: Head, mut body: Incoming, pulse: &Pulse) -> Reply {
    let Bounds { target, body: most, body_time, .. } = served.bounds;
    let refusal = if head.path.len() + head.query.len() > target {
        Some(served.site.refuse_target(target))
    } else {
        served.site.refuse(&head)
    };
    if let Some(refusal) = refusal {
        drain(&head, &mut body).await;
        return refusal;
    }
    let reading = async {
        let room = served.room(&body).await?;
        Ok((room, read(&mut body, most).await?))
    };
    let (mut room, bytes) = match tokio::time::timeout(body_time, reading).await.unwrap_or(Err(BodyFault::TooSlow(body_time))) {
        Ok(read) => read,
        Err(fault) => {
            if fault == BodyFault::TooLarge(most) {
                drain(&head, &mut body).await;
            }
            return served.site.refuse_body(&head, fault);
        }
    };
    pulse.answers();
    // An answer may take long: what was kept for a body of unknown length is given back.
    drop(room.as_mut().and_then(|room| room.split(room.num_permits().saturating_sub(bytes.len().div_ceil(BLOCK)))));
    let Head { peer, method, path, query, headers } = head;
    let reply = served.site.answer(Asked { peer, method, path, query, headers, body: bytes }).await;
    drop(room);
    reply
}

impl<A> Served<A> {
    /// Waits for the memory that this body may take.
    async fn room(&self, body: &Incoming) -> Result<Option<SemaphorePermit<'_>>, BodyFault> {
        let most = self.bounds.body;
        let least = usize::try_from(body.size_hint().lower()).unwrap_or(usize::MAX);
        if least > most {
            return Err(BodyFault::TooLarge(most));
        }
        let bytes = body.size_hint().upper().map_or(most, |upper| usize::try_from(upper).unwrap_or(most).min(most));
        if bytes <= SMALL {
            return Ok(None);
        }
        let blocks = u32::try_from(bytes.div_ceil(BLOCK).min(self.blocks)).unwrap_or(u32::MAX);
        // Nobody closes this semaphore.
        Ok(self.memory.acquire_many(blocks).await.ok())
    }
}

async fn read(body: &mut Incoming, most: usize) -> Result<Bytes, BodyFault> {
    let mut bytes = BytesMut::with_capacity(usize::try_from(body.size_hint().lower()).unwrap_or(0).min(SMALL));
    while let Some(frame) = body.frame().await {
        let Ok(data) = frame.map_err(|_| BodyFault::CutOff)?.into_data() else { continue };
        if bytes.len() + data.len() > most {
            return Err(BodyFault::TooLarge(most));
        }
        bytes.extend_from_slice(&data);
    }
    Ok(bytes.freeze())
}

/// Reads what is left of a body, within bounds. Who waits to be told to send is told not to.
async fn drain(head: &Head, body: &mut Incoming) {
    let announced = usize::try_from(body.size_hint().lower()).unwrap_or(usize::MAX);
    if head.headers.contains_key(EXPECT) || announced > DRAIN_BYTES {
        return;
    }
    let dropping = async {
        let mut left = DRAIN_BYTES;
        while let Some(Ok(frame)) = body.frame().await {
            match left.checked_sub(frame.data_ref().map_or(0, Bytes::len)) {
                Some(less) => left = less,
                None => break,
            }
        }
    };
    let _ = tokio::time::timeout(DRAIN_TIME, dropping).await;
}
