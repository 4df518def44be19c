//! The last hook before the wire: the spider's own signature on a request.
//!
//! A trait of one method, so that the chain needs no spider and tests need none either.

use std::sync::Arc;

use futures_util::future::BoxFuture;

use super::transport::Outgoing;
use crate::api::spider::DynSpider;
use crate::plane::Grant;

/// Signs or completes a merged request; may read every part of the credential.
pub(crate) trait Authorize: Send + Sync {
    fn authorize<'a>(&'a self, outgoing: &'a mut Outgoing, grant: &'a Grant) -> BoxFuture<'a, Result<(), String>>;
}

/// The spider as an authorizer.
pub(crate) struct BySpider(pub(crate) Arc<dyn DynSpider>);

impl Authorize for BySpider {
    fn authorize<'a>(&'a self, outgoing: &'a mut Outgoing, grant: &'a Grant) -> BoxFuture<'a, Result<(), String>> {
        self.0.authorize(outgoing, grant)
    }
}
