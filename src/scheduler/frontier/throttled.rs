//! Throttled hosts: what their answers come to, and what an earlier run knew of them.

use std::time::Duration;

use tokio::time::Instant;

use super::{Frontier, Take};
use crate::scheduler::job::SlotKey;
use crate::scheduler::pacing::Pacing;
use crate::scheduler::slots::Answer;
use crate::scheduler::slots::known::Known;
use crate::scheduler::store::Store;

/// The state that holds what the throttle knows of hosts.
pub(super) const THROTTLE: &str = "throttle";

impl Frontier {
    /// Paces hosts otherwise from now on.
    pub(super) fn set_pacing(&mut self, pacing: Pacing, now: Instant) {
        if self.is_durable && pacing.throttles_any() && !self.states.keeps(THROTTLE) {
            self.states.keep(THROTTLE, saving(self.slots.known()), now);
        }
        self.slots.set_pacing(pacing, now);
    }

    /// An answer moves the delay of a host that is throttled.
    pub(super) fn heard(&mut self, slot: &SlotKey, (status, latency): (u16, Duration), sent: Instant, now: Instant) {
        if let Some(delays) = self.slots.heard(&slot.0, Answer { status, latency, sent }, now) {
            self.intake.counters.throttled(slot, (status, latency), delays, self.slots.tells_throttle());
        }
    }
}

/// Takes what is new for saving.
pub(super) fn saving(known: &Known) -> Take {
    let known = known.clone();
    Box::new(move || known.take())
}

/// What an earlier run learnt of hosts; what cannot be read is learnt anew.
pub(super) fn known(store: &dyn Store) -> Known {
    let known = match store.saved(THROTTLE) {
        Ok(None) => return Known::default(),
        Ok(Some(bytes)) => Known::restore(&bytes),
        Err(error) => Err(error.to_string()),
    };
    known.unwrap_or_else(|error| {
        tracing::error!(error, "every host is throttled anew");
        Known::default()
    })
}
