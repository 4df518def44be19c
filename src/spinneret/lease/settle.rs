//! The two calls that end a lease, and what their answers mean.
//!
//! A lease that is gone already is as good as released. A panic in a transport is logged and counts as an answer: it must
//! not take a caller, or the leases of others, with it.

use std::panic::AssertUnwindSafe;

use futures_util::FutureExt as _;
use tracing::{debug, error, warn};

use crate::spinneret::Result;
use crate::spinneret::error::Error;
use crate::spinneret::messages::{ReleaseRequest, Report, ReportRequest};
use crate::spinneret::procedure::Rpc;
use crate::spinneret::wire::Wire;

/// Gives a lease back, with the client's own policy of retries. Only what is no answer yet is an error.
pub(super) async fn release(wire: &Wire, lease_id: &str) -> Result<()> {
    let request = ReleaseRequest { lease_id: lease_id.to_owned() };
    match call(wire, &request, lease_id).await {
        None => Ok(()),
        Some(Ok(answer)) => {
            if !answer.released {
                debug!(target: "spinneret.lease", lease_id, "lease had already ended");
            }
            Ok(())
        }
        Some(Err(error)) if is_gone(&error) => {
            debug!(target: "spinneret.lease", lease_id, %error, "lease was gone before its release");
            Ok(())
        }
        Some(Err(error)) => Err(error),
    }
}

/// Delivers a report without the reporter, with the client's own policy of retries.
pub(super) async fn deliver(wire: &Wire, report: Report) -> Result<()> {
    let lease_id = report.lease_id.clone();
    match call(wire, &ReportRequest { reports: vec![report] }, &lease_id).await {
        None => Ok(()),
        Some(Ok(answer)) => {
            if let Some(rejected) = answer.rejected.first() {
                let (reason, message) = (&rejected.reason, &rejected.message);
                warn!(target: "spinneret.lease", lease_id, reason, message, "the last report of a lease was rejected");
            }
            Ok(())
        }
        Some(Err(error)) => Err(error),
    }
}

/// Whether the server says that the lease is not there any more (or, at the end of its lifetime, cannot go on).
pub(super) const fn is_gone(error: &Error) -> bool {
    matches!(error, Error::LeaseUnknown(_) | Error::LeaseReleased(_) | Error::LeaseExpired(_))
}

async fn call<R: Rpc>(wire: &Wire, request: &R, lease_id: &str) -> Option<Result<R::Answer>> {
    let answer = AssertUnwindSafe(wire.call(request)).catch_unwind().await;
    answer
        .inspect_err(|_| error!(target: "spinneret.lease", lease_id, "{} panicked: the lease ends by itself", R::PROCEDURE))
        .ok()
}
