//! The wire itself: one exchange by `reqwest`, its body read chunk by chunk within every limit.
//!
//! Follows no redirect, repeats nothing, keeps no cookie, reads no environment: all of that is decided above.

use std::time::Duration;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use futures_util::future::BoxFuture;
use http::header::{AUTHORIZATION, CONTENT_ENCODING, PROXY_AUTHORIZATION, TRANSFER_ENCODING};
use http::{HeaderMap, HeaderValue, StatusCode, Version};
use tokio::time::{Instant, timeout_at};
use url::Url;

use super::client::{ClientError, ClientKey, Clients};
use super::config::ClientConfig;
use super::decode::{DecodeError, Decoder, End, Note};
use super::proxy::speaks_http;
use super::resolver::Names;
use super::transport::{BodyFlags, Excess, Limits, Meter, Outgoing, Reply, Transport};
use super::wire_fault::{BodyEnd, Late, Target, unsupported};
use crate::api::failure::{FailureKind, Fault};
use crate::reach::out_of_reach;

/// Encoded bytes decoded between two charges: bounds what can unfold before the window is asked.
const DECODE_STEP: usize = 4 * 1024;

/// Most memory taken for a body on the word of `Content-Length` alone.
const TRUSTED_LENGTH: u64 = 1024 * 1024;

/// A limit too long for the clock counts as this, as good as none.
const FAR: Duration = Duration::from_secs(60 * 60 * 24 * 365);

/// The transport of real crawls.
#[derive(Debug)]
pub struct ReqwestTransport {
    clients: Clients,
}

impl ReqwestTransport {
    /// A transport without connections yet.
    ///
    /// # Errors
    /// When TLS cannot be set up.
    pub fn new(config: ClientConfig, names: Names) -> Result<Self, ClientError> {
        Ok(Self { clients: Clients::new(config, names)? })
    }

    async fn run(&self, outgoing: Outgoing, meter: &dyn Meter) -> Result<Reply, Fault> {
        let Outgoing { method, mut url, mut headers, body, proxy, identity, limits } = outgoing;
        if !matches!(url.scheme(), "http" | "https") {
            return Err(unsupported(url.scheme()));
        }
        let is_proxied = proxy.is_some();
        if self.clients.names().refuse(&url, is_proxied) {
            return Err(out_of_reach(url.host_str().unwrap_or_default()));
        }
        // A tunnel's 407 is an error of its own, and SOCKS has none: only an HTTP proxy without tunnel can answer itself.
        let is_to_proxy = url.scheme() == "http" && proxy.as_ref().is_some_and(speaks_http);
        let client = self.clients.get(ClientKey { proxy, identity }).map_err(|error| {
            let kind = if error == ClientError::Proxy { FailureKind::Proxy } else { FailureKind::Internal };
            Fault::new(kind, error.to_string())
        })?;
        // The proxy's own credential is added by its client; any other would reach the target.
        headers.remove(PROXY_AUTHORIZATION);
        move_user(&mut url, &mut headers);
        if url.fragment().is_some() {
            url.set_fragment(None);
        }
        let target = Target { method: method.clone(), url: url.clone(), is_proxied, is_to_proxy };
        let mut request = reqwest::Request::new(method, url);
        *request.headers_mut() = headers;
        if !body.is_empty() {
            *request.body_mut() = Some(body.into());
        }
        let mut clock = Clock::new(&limits);
        let response = clock.within(client.execute(request)).await.map_err(|late| target.late(late))?;
        let response = response.map_err(|error| target.before_head(&error))?;
        if is_to_proxy && response.status() == StatusCode::PROXY_AUTHENTICATION_REQUIRED {
            return Err(target.proxy_auth("407"));
        }
        read(response, &target, &limits, &mut clock, meter).await
    }
}

impl Transport for ReqwestTransport {
    fn exchange<'a>(&'a self, outgoing: Outgoing, meter: &'a dyn Meter) -> BoxFuture<'a, Result<Reply, Fault>> {
        Box::pin(self.run(outgoing, meter))
    }

    fn tidy(&self) {
        self.clients.tidy();
    }
}

/// Reads the body and puts the answer together.
async fn read(
    mut response: reqwest::Response,
    target: &Target,
    limits: &Limits,
    clock: &mut Clock,
    meter: &dyn Meter,
) -> Result<Reply, Fault> {
    let (status, version) = (response.status(), response.version());
    let announced = response.content_length();
    meter.answered(status, announced);
    let headers = std::mem::take(response.headers_mut());
    if let Some(bytes) = announced
        && bytes > limits.max_bytes as u64
        && limits.excess == Excess::Fails
    {
        return Err(target.announced(bytes, limits.max_bytes));
    }
    let mut body = Body::new(&headers, limits, announced);
    let mut wire_bytes = 0_u64;
    let mut flags = BodyFlags::default();
    loop {
        match clock.within(response.chunk()).await.map_err(|late| target.late(late))? {
            Ok(Some(chunk)) => {
                wire_bytes = wire_bytes.saturating_add(chunk.len() as u64);
                if body.push(chunk, target, limits, clock, meter).await? == Room::Full {
                    let body = body.cut();
                    return Ok(Reply { status, version, headers, body, wire_bytes, flags });
                }
            }
            Ok(None) => break,
            Err(error) => match target.in_body(&error) {
                // The end of the connection is the end of such a body, even when TLS was not ended properly.
                BodyEnd::Early if announced.is_none() && is_closed_by_end(version, &headers) => break,
                BodyEnd::Early if limits.fail_on_data_loss => return Err(target.data_loss(wire_bytes, announced)),
                BodyEnd::Early => {
                    flags.data_loss = true;
                    break;
                }
                BodyEnd::Fault(fault) => return Err(fault),
            },
        }
    }
    let body = body.finish(target, limits, clock, meter, &mut flags, wire_bytes).await?;
    Ok(Reply { status, version, headers, body, wire_bytes, flags })
}

/// Whether a body ends with its connection (RFC 9112, 6.3, the last rule).
fn is_closed_by_end(version: Version, headers: &HeaderMap) -> bool {
    version < Version::HTTP_2 && !headers.contains_key(TRANSFER_ENCODING)
}

/// Moves user and password from the URL into a header, unless the request has one.
fn move_user(url: &mut Url, headers: &mut HeaderMap) {
    if url.username().is_empty() && url.password().is_none() {
        return;
    }
    if !headers.contains_key(AUTHORIZATION) {
        let pair = format!("{}:{}", unescaped(url.username()), unescaped(url.password().unwrap_or_default()));
        if let Ok(mut value) = HeaderValue::from_str(&format!("Basic {}", STANDARD.encode(pair))) {
            value.set_sensitive(true);
            headers.insert(AUTHORIZATION, value);
        }
    }
    // Fails only for URLs without a host, which have no user either.
    let _ = url.set_username("");
    let _ = url.set_password(None);
}

/// Undoes percent-encoding: a form's value in which nothing else has a meaning.
fn unescaped(text: &str) -> String {
    let text = text.replace('+', "%2B").replace('&', "%26").replace('=', "%3D");
    url::form_urlencoded::parse(text.as_bytes()).next().map(|(name, _)| name.into_owned()).unwrap_or_default()
}

/// The limits of time of one exchange. Waiting for room in the window counts for neither.
struct Clock {
    deadline: Instant,
    total: Duration,
    idle: Duration,
}

impl Clock {
    fn new(limits: &Limits) -> Self {
        Self { deadline: Instant::now() + limits.total.min(FAR), total: limits.total, idle: limits.idle.min(FAR) }
    }

    async fn within<T>(&self, step: impl Future<Output = T>) -> Result<T, Late> {
        let idle_at = Instant::now() + self.idle;
        timeout_at(idle_at.min(self.deadline), step)
            .await
            .map_err(|_| if idle_at < self.deadline { Late::Idle(self.idle) } else { Late::Total(self.total) })
    }

    async fn charge(&mut self, meter: &dyn Meter, bytes: usize) {
        if bytes == 0 || meter.try_charge(bytes) {
            return;
        }
        let paused_at = Instant::now();
        meter.charge(bytes).await;
        self.deadline += paused_at.elapsed();
    }
}

/// Whether a body takes more.
#[derive(PartialEq, Eq)]
enum Room {
    Left,
    Full,
}

/// A body under way.
enum Body {
    /// As it comes. A body of one chunk is that chunk, without a copy.
    Plain {
        first: Bytes,
        rest: Vec<u8>,
        expected: usize,
    },
    Coded {
        decoder: Box<Decoder>,
        out: Vec<u8>,
    },
}

impl Body {
    fn new(headers: &HeaderMap, limits: &Limits, announced: Option<u64>) -> Self {
        let codings = headers.get_all(CONTENT_ENCODING);
        let decoder = if limits.decode { Decoder::new(codings.iter(), limits.max_bytes) } else { None };
        match decoder {
            Some(decoder) => Self::Coded { decoder: Box::new(decoder), out: Vec::new() },
            None => {
                let expected = usize::try_from(announced.unwrap_or(0).min(TRUSTED_LENGTH)).unwrap_or(0);
                Self::Plain { first: Bytes::new(), rest: Vec::new(), expected }
            }
        }
    }

    async fn push(
        &mut self,
        mut chunk: Bytes,
        target: &Target,
        limits: &Limits,
        clock: &mut Clock,
        meter: &dyn Meter,
    ) -> Result<Room, Fault> {
        match self {
            Self::Plain { first, rest, expected } => {
                let held = first.len().max(rest.len());
                let size = held.saturating_add(chunk.len());
                let mut room = Room::Left;
                if size > limits.max_bytes {
                    if limits.excess == Excess::Fails {
                        return Err(target.received(size, limits.max_bytes));
                    }
                    chunk.truncate(limits.max_bytes.saturating_sub(held));
                    room = Room::Full;
                }
                clock.charge(meter, chunk.len()).await;
                if first.is_empty() {
                    *first = chunk;
                    return Ok(room);
                }
                if rest.is_empty() {
                    rest.reserve((*expected).max(size));
                    rest.extend_from_slice(first);
                }
                rest.extend_from_slice(&chunk);
                Ok(room)
            }
            Self::Coded { decoder, out } => {
                for piece in chunk.chunks(DECODE_STEP) {
                    let before = out.len();
                    let pushed = decoder.push(piece, out);
                    clock.charge(meter, out.len() - before).await;
                    match pushed {
                        Ok(()) => {}
                        // What was decoded up to the limit is in the output.
                        Err(DecodeError::TooLarge { .. }) if limits.excess == Excess::IsCut => return Ok(Room::Full),
                        Err(error) => return Err(target.undecodable(error)),
                    }
                }
                Ok(Room::Left)
            }
        }
    }

    /// What came so far, as the whole.
    fn cut(self) -> Bytes {
        match self {
            Self::Plain { first, rest, .. } if rest.is_empty() => first,
            Self::Plain { rest, .. } => rest.into(),
            Self::Coded { out, .. } => out.into(),
        }
    }

    async fn finish(
        self,
        target: &Target,
        limits: &Limits,
        clock: &mut Clock,
        meter: &dyn Meter,
        flags: &mut BodyFlags,
        wire_bytes: u64,
    ) -> Result<Bytes, Fault> {
        let (mut decoder, mut out) = match self {
            Self::Coded { decoder, out } => (decoder, out),
            plain @ Self::Plain { .. } => return Ok(plain.cut()),
        };
        let before = out.len();
        let end = decoder.finish(&mut out).map_err(|error| target.undecodable(error))?;
        clock.charge(meter, out.len() - before).await;
        if end == End::DataLoss {
            if limits.fail_on_data_loss {
                return Err(target.data_loss(wire_bytes, None));
            }
            flags.data_loss = true;
        }
        let is_other = |note: &Note| matches!(note, Note::NotEncoded(_) | Note::Mislabelled { .. } | Note::UnknownCodings(_));
        let is_raw = |note: &Note| matches!(note, Note::NotEncoded(_) | Note::UnknownCodings(_));
        flags.not_as_labelled = decoder.notes().iter().any(is_other);
        flags.decoded = !decoder.notes().iter().any(is_raw) && wire_bytes > 0;
        if out.capacity() > out.len().saturating_mul(2) {
            out.shrink_to_fit();
        }
        Ok(out.into())
    }
}

#[cfg(test)]
mod tests;
