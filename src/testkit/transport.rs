//! A transport that answers from a script: faults, delays and pages by method and URL, on virtual time.
//!
//! Charges bodies to the meter as the real one does and keeps what it was asked.

use std::collections::{HashMap, VecDeque};
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use futures_util::future::BoxFuture;
use http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode, Version};

use crate::api::failure::{FailureKind, Fault};
use crate::downloader::transport::{BodyFlags, Meter, Outgoing, Over, Reply, Transport};

/// One scripted end of an exchange.
#[derive(Debug, Clone)]
pub struct Answer {
    end: Result<Reply, Fault>,
    delay: Duration,
    hangs: bool,
}

/// Answers requests that no script covers.
type Otherwise = Box<dyn Fn(&Outgoing) -> Answer + Send + Sync>;

/// A transport without a network. Cloning shares script and record.
#[derive(Clone)]
pub struct ScriptedTransport(Arc<Inner>);

struct Inner {
    script: Mutex<HashMap<(Method, String), VecDeque<Answer>>>,
    asked: Mutex<Vec<Outgoing>>,
    otherwise: Otherwise,
}

impl Answer {
    /// An answer of this status and body.
    ///
    /// # Panics
    /// When the status is not from 100 to 999: a mistake in the test.
    #[must_use]
    pub fn new(status: u16, body: impl Into<Bytes>) -> Self {
        #[allow(clippy::expect_used, reason = "a wrong status is a mistake in the script, best found at once")]
        let status = StatusCode::from_u16(status).expect("a status has three digits");
        let body = body.into();
        let wire_bytes = body.len() as u64;
        let reply =
            Reply { status, version: Version::HTTP_11, headers: HeaderMap::new(), body, wire_bytes, flags: BodyFlags::default() };
        Self { end: Ok(reply), delay: Duration::ZERO, hangs: false }
    }

    /// A 200 with an HTML body.
    #[must_use]
    pub fn html(body: impl Into<Bytes>) -> Self {
        Self::new(200, body).header("content-type", "text/html; charset=utf-8")
    }

    /// A redirect.
    #[must_use]
    pub fn redirect(status: u16, location: &str) -> Self {
        Self::new(status, Bytes::new()).header("location", location)
    }

    /// No answer but this fault.
    #[must_use]
    pub fn fault(kind: FailureKind) -> Self {
        Self { end: Err(Fault::new(kind, format!("scripted {kind}"))), delay: Duration::ZERO, hangs: false }
    }

    /// No answer until the request's total limit, then a timeout.
    #[must_use]
    pub fn hang() -> Self {
        Self { hangs: true, ..Self::fault(FailureKind::Timeout) }
    }

    /// With another header; names and values that HTTP does not allow are left out.
    #[must_use]
    pub fn header(mut self, name: &str, value: &str) -> Self {
        if let (Ok(reply), Ok(name), Ok(value)) = (&mut self.end, HeaderName::try_from(name), HeaderValue::from_str(value)) {
            reply.headers.append(name, value);
        }
        self
    }

    /// After this time, or a timeout at the request's total limit if that comes first.
    #[must_use]
    pub fn after(mut self, delay: Duration) -> Self {
        self.delay = delay;
        self
    }
}

impl Default for ScriptedTransport {
    /// 404 for everything that is not in the script.
    fn default() -> Self {
        Self::with_default(|_| Answer::new(404, "not in the script"))
    }
}

impl ScriptedTransport {
    /// 404 for everything that is not in the script.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// `otherwise` answers what is not in the script.
    pub fn with_default(otherwise: impl Fn(&Outgoing) -> Answer + Send + Sync + 'static) -> Self {
        Self(Arc::new(Inner { script: Mutex::default(), asked: Mutex::default(), otherwise: Box::new(otherwise) }))
    }

    /// Answers GETs of `url`, one answer each; the last one stays.
    pub fn get(&self, url: &str, answers: impl IntoIterator<Item = Answer>) -> &Self {
        self.on(Method::GET, url, answers)
    }

    /// Answers `method` on `url` (without fragment), one answer each; the last one stays.
    pub fn on(&self, method: Method, url: &str, answers: impl IntoIterator<Item = Answer>) -> &Self {
        // The same spelling as the request will have.
        let key = url::Url::parse(url).map_or_else(|_| url.to_owned(), String::from);
        lock(&self.0.script).entry((method, key)).or_default().extend(answers);
        self
    }

    /// Everything that was asked, in the order of asking.
    #[must_use]
    pub fn asked(&self) -> Vec<Outgoing> {
        lock(&self.0.asked).clone()
    }

    /// `METHOD URL` of everything that was asked.
    #[must_use]
    pub fn lines(&self) -> Vec<String> {
        lock(&self.0.asked).iter().map(|outgoing| format!("{} {}", outgoing.method, outgoing.url)).collect()
    }

    fn answer(&self, outgoing: &Outgoing) -> Answer {
        let mut url = outgoing.url.clone();
        url.set_fragment(None);
        let mut script = lock(&self.0.script);
        match script.get_mut(&(outgoing.method.clone(), url.into())) {
            Some(answers) if answers.len() > 1 => answers.pop_front(),
            Some(answers) => answers.front().cloned(),
            None => None,
        }
        .unwrap_or_else(|| (self.0.otherwise)(outgoing))
    }
}

impl Transport for ScriptedTransport {
    fn exchange<'a>(&'a self, outgoing: Outgoing, meter: &'a dyn Meter) -> BoxFuture<'a, Result<Reply, Fault>> {
        Box::pin(async move {
            let limits = outgoing.limits;
            let answer = self.answer(&outgoing);
            lock(&self.0.asked).push(outgoing);
            if answer.hangs || answer.delay > limits.total {
                tokio::time::sleep(limits.total).await;
                return Err(Fault::new(FailureKind::Timeout, "scripted timeout"));
            }
            if !answer.delay.is_zero() {
                tokio::time::sleep(answer.delay).await;
            }
            let mut reply = answer.end?;
            meter.answered(reply.status, Some(reply.body.len() as u64));
            if reply.body.len() > limits.max_bytes {
                if limits.over == Over::Cut {
                    reply.body.truncate(limits.max_bytes);
                    reply.flags.data_loss = true;
                    return Ok(reply);
                }
                return Err(Fault::new(FailureKind::TooLarge, "scripted body over the limit"));
            }
            if !reply.body.is_empty() && !meter.try_charge(reply.body.len()) {
                meter.charge(reply.body.len()).await;
            }
            Ok(reply)
        })
    }
}

impl fmt::Debug for ScriptedTransport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ScriptedTransport").field("asked", &lock(&self.0.asked).len()).finish_non_exhaustive()
    }
}

/// A meter that is never full.
#[cfg(test)]
#[derive(Debug)]
pub(crate) struct Free;

#[cfg(test)]
impl Meter for Free {
    fn charge(&self, _: usize) -> BoxFuture<'_, ()> {
        Box::pin(std::future::ready(()))
    }

    fn try_charge(&self, _: usize) -> bool {
        true
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing)]
    use tokio::time::Instant;

    use super::*;
    use crate::downloader::transport::Limits;
    use crate::plane::IdentityKey;

    async fn ask(wire: &ScriptedTransport, url: &str) -> Result<u16, FailureKind> {
        let outgoing = Outgoing {
            method: Method::GET,
            url: url::Url::parse(url).unwrap(),
            headers: HeaderMap::new(),
            body: Bytes::new(),
            proxy: None,
            identity: IdentityKey { site: "s".into(), name: "n".into() },
            limits: Limits {
                total: Duration::from_secs(10),
                idle: Duration::from_secs(10),
                max_bytes: 17,
                over: Over::Fail,
                fail_on_data_loss: true,
                decode: true,
            },
        };
        wire.exchange(outgoing, &Free).await.map(|reply| reply.status.as_u16()).map_err(|fault| fault.kind)
    }

    #[tokio::test(start_paused = true)]
    async fn answers_come_in_order_and_the_last_one_stays() {
        let wire = ScriptedTransport::new();
        wire.get("http://a.example", [Answer::new(500, ""), Answer::fault(FailureKind::Lost), Answer::html("ok")]);
        let mut got = Vec::new();
        for url in ["http://a.example/", "http://a.example/#part", "http://a.example/", "http://a.example/", "http://a.example/x"]
        {
            got.push(ask(&wire, url).await);
        }
        assert_eq!(got, [Ok(500), Err(FailureKind::Lost), Ok(200), Ok(200), Ok(404)]);
        assert_eq!(wire.lines()[4], "GET http://a.example/x");
    }

    #[tokio::test(start_paused = true)]
    async fn delays_and_limits_are_kept_on_virtual_time() {
        let wire = ScriptedTransport::new();
        let slow = Answer::html("ok").after(Duration::from_secs(9));
        let too_slow = Answer::html("ok").after(Duration::from_secs(11));
        wire.get("http://a.example/", [slow, too_slow, Answer::hang(), Answer::html("more than seventeen bytes")]);
        for (expected, seconds) in
            [(Ok(200), 9), (Err(FailureKind::Timeout), 10), (Err(FailureKind::Timeout), 10), (Err(FailureKind::TooLarge), 0)]
        {
            let begun = Instant::now();
            assert_eq!(ask(&wire, "http://a.example/").await, expected);
            assert_eq!(begun.elapsed().as_secs(), seconds);
        }
    }
}
