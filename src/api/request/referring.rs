//! How much a request tells of the page it is from.

use super::{Referring, Request};
use crate::web::referrer_policy::ReferrerPolicy;

impl Request {
    /// Says how much of the page it is from this request tells in its `Referer`, on every hop; otherwise the page says it, or
    /// `REFERRER_POLICY`.
    pub fn referrer_policy(&mut self, policy: ReferrerPolicy) -> &mut Self {
        self.referring = Some(Referring { policy, own: true });
        self
    }

    /// What the spider or its page says of the `Referer`.
    pub(crate) fn referring(&self) -> Option<Referring> {
        self.referring
    }

    /// The page the request is from, or the answer that redirected it, says how much it tells. A spider's own word goes first.
    pub(crate) fn refer_by(&mut self, policy: ReferrerPolicy) {
        if !self.referring.is_some_and(|known| known.own) {
            self.referring = Some(Referring { policy, own: false });
        }
    }
}
