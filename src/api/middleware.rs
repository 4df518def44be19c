//! Downloader middlewares: what an author puts between the frontier and the wire.
//!
//! Hooks see the request with everything merged, and the answer with its body decoded. They may change,
//! answer, refuse or repeat it; they can neither send by themselves nor choose another identity or proxy.
//! Futures are boxed here and only for middlewares that are installed: without any, nothing is paid.

use std::fmt;
use std::future::{Future, ready};
use std::sync::Arc;
use std::time::Duration;

use futures_util::future::BoxFuture;

use super::failure::Fault;
use super::request::Request;
use crate::downloader::transport::{Outgoing, Reply};
use crate::plane::Grant;
use crate::scheduler::job::Job;

/// What becomes of a request before it is sent.
#[derive(Debug)]
#[non_exhaustive]
pub enum BeforeSend {
    /// Go on to the next middleware, then to the wire.
    Continue,
    /// Do not send: this is the answer. It passes the response hooks like one from the wire.
    Answer(Box<Reply>),
    /// Do not send: the request fails with this reason.
    Refuse(String),
}

/// What becomes of an answer.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum AfterResponse {
    /// Go on, with the answer as it is now.
    Continue,
    /// Repeat the request, if it has retries left (`RETRY_TIMES`); otherwise it fails with this reason.
    Retry {
        /// Why, for `retry/reason_count/…`.
        reason: String,
        /// How long to wait; the usual back-off when `None`.
        after: Option<Duration>,
    },
    /// The request fails with this reason.
    Refuse(String),
}

/// What becomes of a failed attempt.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum OnFault {
    /// Go on: the next middleware, then the rules for retries.
    Continue,
    /// Repeat the request, if it has retries left (`RETRY_TIMES`); otherwise the fault stands.
    Retry {
        /// Why, for `retry/reason_count/…`.
        reason: String,
        /// How long to wait; the usual back-off when `None`.
        after: Option<Duration>,
    },
}

/// The attempt a hook is called for.
#[derive(Clone, Copy)]
pub struct Attempting<'a> {
    job: &'a Job,
    grant: &'a Grant,
}

/// A downloader middleware.
///
/// Middlewares are ordered by number as in Scrapy: `before_send` runs from low to high, `after_response` and
/// `on_fault` from high to low. The built-in steps keep their places in that order: redirects are decided at
/// 600, refreshes at 580 and retries at 550, so that one above 600 sees every answer, one between them sees no followed
/// redirect, and one below 550 sees only what is not retried. Every `before_send` sees the merged request.
///
/// [`App::middleware`](crate::App::middleware) registers one; `DOWNLOADER_MIDDLEWARES = { name = ORDER }` switches it on. A panic
/// in a hook fails the request, not the crawl.
///
/// ```
/// use dragline::api::{AfterResponse, Attempting, BeforeSend, Middleware, Outgoing, Reply};
///
/// struct Captcha;
///
/// impl Middleware for Captcha {
///     async fn before_send(&self, request: &mut Outgoing, _: Attempting<'_>) -> BeforeSend {
///         request.headers.insert("x-requested-with", http::HeaderValue::from_static("XMLHttpRequest"));
///         BeforeSend::Continue
///     }
///
///     async fn after_response(&self, reply: &mut Reply, _: Attempting<'_>) -> AfterResponse {
///         if reply.headers.contains_key("x-captcha") {
///             return AfterResponse::Retry { reason: "captcha".to_owned(), after: None };
///         }
///         AfterResponse::Continue
///     }
/// }
/// ```
pub trait Middleware: Send + Sync + 'static {
    /// Sees a request that is about to be sent, and may change it.
    fn before_send(&self, request: &mut Outgoing, attempting: Attempting<'_>) -> impl Future<Output = BeforeSend> + Send {
        let _ = (request, attempting);
        ready(BeforeSend::Continue)
    }

    /// Sees an answer, and may change it.
    fn after_response(&self, reply: &mut Reply, attempting: Attempting<'_>) -> impl Future<Output = AfterResponse> + Send {
        let _ = (reply, attempting);
        ready(AfterResponse::Continue)
    }

    /// Sees an attempt that gave no answer.
    fn on_fault(&self, fault: &Fault, attempting: Attempting<'_>) -> impl Future<Output = OnFault> + Send {
        let _ = (fault, attempting);
        ready(OnFault::Continue)
    }

    /// Signs or completes a request, after every `before_send`. It may read every part of the credential.
    ///
    /// # Errors
    /// The text of why the request cannot go out; it must hold no part of the credential.
    fn authorize(&self, request: &mut Outgoing, grant: &Grant) -> impl Future<Output = Result<(), String>> + Send {
        let _ = (request, grant);
        ready(Ok(()))
    }
}

/// A middleware in its place. Cloning shares it.
#[derive(Clone)]
pub struct Installed {
    name: Arc<str>,
    order: i32,
    hooks: Arc<dyn DynMiddleware>,
}

impl<'a> Attempting<'a> {
    pub(crate) fn new(job: &'a Job, grant: &'a Grant) -> Self {
        Self { job, grant }
    }

    /// The request as the spider made it, with the URL of the present hop.
    #[must_use]
    pub fn request(&self) -> &'a Request {
        &self.job.request
    }

    /// The lease it goes out under.
    #[must_use]
    pub fn grant(&self) -> &'a Grant {
        self.grant
    }

    /// Attempts made before this one.
    #[must_use]
    pub fn attempts(&self) -> u32 {
        self.job.attempts
    }

    /// Redirects followed so far.
    #[must_use]
    pub fn hops(&self) -> u32 {
        self.job.hops
    }

    /// Links from a start request.
    #[must_use]
    pub fn depth(&self) -> u32 {
        self.job.depth
    }
}

impl fmt::Debug for Attempting<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Attempting").field("request", self.request()).field("attempts", &self.attempts()).finish_non_exhaustive()
    }
}

impl Installed {
    /// Installs `middleware` at `order`; the name is shown where it refuses or fails.
    pub fn new(name: impl Into<Arc<str>>, order: i32, middleware: impl Middleware) -> Self {
        Self { name: name.into(), order, hooks: Arc::new(middleware) }
    }

    /// The same middleware at another place, as `DOWNLOADER_MIDDLEWARES` may say.
    #[must_use]
    pub fn at(self, order: i32) -> Self {
        Self { order, ..self }
    }

    /// Its name.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Its place.
    #[must_use]
    pub fn order(&self) -> i32 {
        self.order
    }

    pub(crate) fn hooks(&self) -> &dyn DynMiddleware {
        &*self.hooks
    }
}

impl fmt::Debug for Installed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Installed").field("name", &self.name).field("order", &self.order).finish_non_exhaustive()
    }
}

/// The object-safe twin of [`Middleware`].
pub(crate) trait DynMiddleware: Send + Sync {
    fn before_send<'a>(&'a self, request: &'a mut Outgoing, attempting: Attempting<'a>) -> BoxFuture<'a, BeforeSend>;
    fn after_response<'a>(&'a self, reply: &'a mut Reply, attempting: Attempting<'a>) -> BoxFuture<'a, AfterResponse>;
    fn on_fault<'a>(&'a self, fault: &'a Fault, attempting: Attempting<'a>) -> BoxFuture<'a, OnFault>;
    fn authorize<'a>(&'a self, request: &'a mut Outgoing, grant: &'a Grant) -> BoxFuture<'a, Result<(), String>>;
}

impl<M: Middleware> DynMiddleware for M {
    fn before_send<'a>(&'a self, request: &'a mut Outgoing, attempting: Attempting<'a>) -> BoxFuture<'a, BeforeSend> {
        Box::pin(Middleware::before_send(self, request, attempting))
    }

    fn after_response<'a>(&'a self, reply: &'a mut Reply, attempting: Attempting<'a>) -> BoxFuture<'a, AfterResponse> {
        Box::pin(Middleware::after_response(self, reply, attempting))
    }

    fn on_fault<'a>(&'a self, fault: &'a Fault, attempting: Attempting<'a>) -> BoxFuture<'a, OnFault> {
        Box::pin(Middleware::on_fault(self, fault, attempting))
    }

    fn authorize<'a>(&'a self, request: &'a mut Outgoing, grant: &'a Grant) -> BoxFuture<'a, Result<(), String>> {
        Box::pin(Middleware::authorize(self, request, grant))
    }
}
