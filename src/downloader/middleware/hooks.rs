//! Runs the hooks of user middlewares inside a fence: a panic becomes a fault of the request.

use std::future::Future;
use std::panic::AssertUnwindSafe;

use futures_util::FutureExt;

use crate::api::failure::{FailureKind, Fault};

/// Runs one hook.
///
/// The text of a panic is left out of the fault: it may hold anything the hook could read.
pub(crate) async fn fenced<T>(name: &str, hook: &'static str, run: impl Future<Output = T>) -> Result<T, Fault> {
    AssertUnwindSafe(run).catch_unwind().await.map_err(|_| {
        tracing::error!(middleware = name, hook, "a downloader middleware panicked");
        Fault::new(FailureKind::Middleware, format!("{hook} of {name} panicked"))
    })
}

/// The fault of a request that a middleware refuses.
pub(crate) fn refused(name: &str, reason: &str) -> Fault {
    Fault::new(FailureKind::Middleware, format!("{name} refuses the request: {reason}"))
}
