//! Leases as guards: what was acquired is given back, whatever happens.
//!
//! [`NewLease`] becomes a [`Lease`] by one call; a lease becomes nothing again by a report, a call, or by being dropped.
//! What cannot be finished where it was begun (a dropped lease, a future nobody waits for any more) is finished by the
//! [`Releaser`] in the background. Decisions are in `state`, `expiry` and `errands`, which do no I/O and know no lock.

mod completing;
mod errands;
mod expiry;
mod held;
mod life;
mod new_lease;
mod releaser;
mod renewal;
mod settle;
mod state;
#[cfg(test)]
mod tests;

use std::sync::Arc;

use tracing::warn;

pub(crate) use expiry::Expiry;
pub use held::Lease;
pub use new_lease::NewLease;
pub(crate) use releaser::Releaser;

use self::completing::Completing;
use self::life::Life;
use self::new_lease::Options;
use super::error::Error;
use super::messages::{AcquireBatchRequest, AcquireRequest, AcquireResponse};
use super::procedure::{Procedure, Rpc as _};
use super::wire::Wire;
use super::{Client, Reporter, Result};

/// What every lease of a client needs.
#[derive(Debug, Clone)]
pub(crate) struct Ways {
    pub(crate) wire: Arc<Wire>,
    pub(crate) reporter: Reporter,
    pub(crate) releaser: Releaser,
}

impl Client {
    /// Prepares a lease: the request is checked, nothing is sent. [`NewLease::acquire`] or [`NewLease::run`] asks for it.
    ///
    /// # Errors
    /// [`Error::InvalidArgument`] names the field that breaks its bound.
    pub fn lease(&self, request: AcquireRequest) -> Result<NewLease> {
        request.validate()?;
        Ok(NewLease::new(self.ways().clone(), request))
    }

    /// Asks for several leases of distinct identities at once; fewer may come, at least one.
    ///
    /// Each is a guard of its own. The call is finished in the background when the future is dropped half-way; the leases
    /// that come of it are given back.
    ///
    /// # Errors
    /// As [`NewLease::acquire`].
    pub async fn leases(&self, request: AcquireBatchRequest) -> Result<Vec<Lease>> {
        let ways = self.ways().clone();
        let releaser = ways.releaser.clone();
        releaser.settle_in();
        Completing::new(releaser, async move {
            let answer = ways.wire.call(&request).await?;
            guards(&ways, answer.leases, &request.each.uri)
        })
        .await
    }
}

/// A guard of each lease of a batch. One without an id is left out, for the others must be given back all the same.
fn guards(ways: &Ways, granted: Vec<AcquireResponse>, acquired_uri: &str) -> Result<Vec<Lease>> {
    let guard = |granted| Life::start(ways.clone(), granted, acquired_uri, Options::default(), Procedure::AcquireBatch);
    let leases: Vec<Lease> = granted
        .into_iter()
        .filter_map(|granted| {
            guard(granted).inspect_err(|_| warn!(target: "spinneret.lease", "a granted lease has no id and is of no use")).ok()
        })
        .collect();
    if leases.is_empty() { Err(nameless(Procedure::AcquireBatch)) } else { Ok(leases) }
}

/// A grant without an id cannot be reported on, prolonged or given back.
fn nameless(procedure: Procedure) -> Error {
    Error::invalid_response(procedure, 200, "it grants no lease with an id")
}
