//! Leases as guards: what was acquired is given back, whatever happens.

mod releaser;

use std::sync::Arc;

pub(crate) use releaser::Releaser;

use super::Reporter;
use super::messages::{AcquireRequest, AcquireResponse};
use super::wire::Wire;

/// What every lease of a client needs.
#[derive(Debug, Clone)]
pub(crate) struct Ways {
    pub(crate) wire: Arc<Wire>,
    pub(crate) reporter: Reporter,
    pub(crate) releaser: Releaser,
}

/// A lease that is not acquired yet.
#[derive(Debug)]
pub struct NewLease {
    _ways: Ways,
    _request: AcquireRequest,
}

/// A lease. Dropped, it is given back by the client's background task.
#[derive(Debug)]
pub struct Lease {
    _ways: Ways,
    _response: AcquireResponse,
}
