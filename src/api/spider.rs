//! The spider: what its author writes, and the object-safe twin the parsers run.

use std::error::Error;
use std::fmt;
use std::future::Future;

use futures_util::future::{BoxFuture, LocalBoxFuture};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

use super::context::Context;
use super::failure::Failure;
use super::out::{Out, OutCore};
use super::response::Response;
use super::signal::Signal;
use super::step::{Step, StepData};
use crate::downloader::transport::Outgoing;
use crate::plane::Grant;

/// What a callback returns. Its requests and items count only when it is `Ok`.
pub type CallbackResult = Result<(), CallbackError>;

/// A spider's own settings: above the settings file, below environment and command line.
pub type SpiderSettings = Vec<(&'static str, Value)>;

/// Why a callback failed. Made from any error by `?`, or from a text by [`CallbackError::new`].
pub struct CallbackError(Box<dyn Error>);

/// A crawler for one kind of site. [The crate's front page](crate) has a whole one.
///
/// A spider is itself the serde struct of its arguments: its fields are what `-a NAME=VALUE` sets. One value
/// serves all callbacks of a job, on several threads: shared state goes into atomics or locks, marked
/// `#[serde(skip)]`.
pub trait Spider: DeserializeOwned + Send + Sync + Sized + 'static {
    /// Its name on the command line.
    const NAME: &'static str;

    /// The steps: which callback a response goes to, with its arguments. See [`steps!`](crate::steps).
    type Step: Step;

    /// What it scrapes: anything that serialises to a JSON object.
    type Item: Serialize + 'static;

    /// Hosts the crawl stays on, their subdomains included; empty: any. Besides `ALLOWED_DOMAINS`.
    fn allowed_domains(&self) -> Vec<String> {
        Vec::new()
    }

    /// The spider's own settings.
    #[must_use]
    fn settings() -> SpiderSettings {
        Vec::new()
    }

    /// Makes the first requests. With `out.send(request).await` it is suspended while the frontier has
    /// enough, so that a million requests never stand in memory at once.
    fn start(&self, out: &mut Out<Self>) -> impl Future<Output = CallbackResult>;

    /// Handles a response. Usually `self.dispatch(step, response, out).await`, which [`steps!`](crate::steps) writes.
    fn parse(&self, step: Self::Step, response: Response, out: &mut Out<Self>) -> impl Future<Output = CallbackResult>;

    /// Handles a request that failed for good. It is already logged and counted; the default does nothing.
    fn failed(&self, step: Self::Step, failure: Failure, out: &mut Out<Self>) -> impl Future<Output = CallbackResult> {
        let _ = (step, failure, out);
        async { Ok(()) }
    }

    /// Nothing is queued or in flight: requests made here keep the job going.
    fn idle(&self, out: &mut Out<Self>) -> impl Future<Output = CallbackResult> {
        let _ = out;
        async { Ok(()) }
    }

    /// Sees lifecycle events.
    fn signal(&self, signal: &Signal<'_>, context: &Context) {
        let _ = (signal, context);
    }

    /// Signs or completes a request after the lease's credential was merged; it may read every part of it.
    /// An error fails the request.
    fn authorize(&self, request: &mut Outgoing, grant: &Grant) -> impl Future<Output = Result<(), String>> + Send {
        let _ = (request, grant);
        std::future::ready(Ok(()))
    }
}

impl CallbackError {
    /// An error with this message.
    pub fn new(message: impl Into<String>) -> Self {
        Self(message.into().into())
    }
}

impl CallbackError {
    /// Whether the callback only passes on that the job stops.
    pub(crate) fn is_stop(&self) -> bool {
        matches!(self.0.downcast_ref::<super::out::OutError>(), Some(super::out::OutError::Commit(_)))
    }
}

impl<E: Error + 'static> From<E> for CallbackError {
    fn from(error: E) -> Self {
        Self(Box::new(error))
    }
}

impl fmt::Display for CallbackError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.0)?;
        let mut source = self.0.source();
        while let Some(inner) = source {
            write!(f, ": {inner}")?;
            source = inner.source();
        }
        Ok(())
    }
}

impl fmt::Debug for CallbackError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// A step that this spider does not have.
#[derive(Debug)]
pub(crate) struct UnknownStep;

/// A running callback: gives back what it made, and how it ended.
pub(crate) type Running<'a> = LocalBoxFuture<'a, (OutCore, CallbackResult)>;

/// The object-safe twin of [`Spider`]: decodes steps, boxes futures.
pub(crate) trait DynSpider: Send + Sync {
    fn allowed_domains(&self) -> Vec<String>;
    fn start(&self, out: OutCore) -> Running<'_>;
    fn parse(&self, step: &StepData, response: Response, out: OutCore) -> Result<Running<'_>, UnknownStep>;
    fn failed(&self, step: &StepData, failure: Failure, out: OutCore) -> Result<Running<'_>, UnknownStep>;
    fn idle(&self, out: OutCore) -> Running<'_>;
    fn signal(&self, signal: &Signal<'_>, context: &Context);
    fn authorize<'a>(&'a self, request: &'a mut Outgoing, grant: &'a Grant) -> BoxFuture<'a, Result<(), String>>;
}

impl<S: Spider> DynSpider for S {
    fn allowed_domains(&self) -> Vec<String> {
        Spider::allowed_domains(self)
    }

    fn start(&self, out: OutCore) -> Running<'_> {
        Box::pin(async move {
            let mut out = Out::<S>::new(out);
            let result = Spider::start(self, &mut out).await;
            (out.into_core(), result)
        })
    }

    fn parse(&self, step: &StepData, response: Response, out: OutCore) -> Result<Running<'_>, UnknownStep> {
        let step = step.decode::<S::Step>().map_err(|_| UnknownStep)?;
        Ok(Box::pin(async move {
            let mut out = Out::<S>::new(out);
            let result = Spider::parse(self, step, response, &mut out).await;
            (out.into_core(), result)
        }))
    }

    fn failed(&self, step: &StepData, failure: Failure, out: OutCore) -> Result<Running<'_>, UnknownStep> {
        let step = step.decode::<S::Step>().map_err(|_| UnknownStep)?;
        Ok(Box::pin(async move {
            let mut out = Out::<S>::new(out);
            let result = Spider::failed(self, step, failure, &mut out).await;
            (out.into_core(), result)
        }))
    }

    fn idle(&self, out: OutCore) -> Running<'_> {
        Box::pin(async move {
            let mut out = Out::<S>::new(out);
            let result = Spider::idle(self, &mut out).await;
            (out.into_core(), result)
        })
    }

    fn signal(&self, signal: &Signal<'_>, context: &Context) {
        Spider::signal(self, signal, context);
    }

    fn authorize<'a>(&'a self, request: &'a mut Outgoing, grant: &'a Grant) -> BoxFuture<'a, Result<(), String>> {
        Box::pin(Spider::authorize(self, request, grant))
    }
}
