//! What the engine orders from the broker, and what the broker answers.

use std::time::Duration;

use tokio::time::Instant;

use super::runtime::RuntimeState;
use crate::engine::ticket::Tag;
use crate::plane::{Ask, Grant, LeaseId, Refusal};

/// Orders of the engine.
#[derive(Debug)]
pub enum Order {
    /// Get a lease. Answered by [`Leased`] or [`Refused`]; a lease whose ticket is gone is released by the engine.
    Acquire {
        /// For which ticket.
        tag: Tag,
        /// What for.
        ask: Ask,
    },
}

/// Commands that never wait behind orders.
#[derive(Debug)]
pub enum Control {
    /// Give a lease back without a report.
    Release(LeaseId),
    /// Keep a lease alive until it is handed back; the broker renews it before it expires.
    Renew {
        /// Which.
        lease: LeaseId,
        /// For which ticket.
        tag: Tag,
        /// When to renew.
        at: Instant,
        /// When the lease ends without that; no later than then [`RenewFailed`] is told.
        expires_at: Instant,
    },
    /// Forget a renewal: the lease was reported or released.
    Renewed(LeaseId),
    /// A lease of this site came back: who waits for an identity or a proxy of it may ask.
    CameBack(std::sync::Arc<str>),
    /// What the plane says is switched off now; replaces what it said before.
    Runtime(RuntimeState),
    /// The plane answered a call of somebody else.
    Heard,
    /// The plane did not answer a call of somebody else.
    Missed {
        /// When the call began.
        begun: Instant,
        /// What was tried, for people.
        tried: &'static str,
        /// How it failed.
        error: String,
    },
    /// Own timer.
    Tick,
}

/// A lease was granted.
#[derive(Debug)]
pub struct Leased {
    /// For which ticket.
    pub tag: Tag,
    /// The grant.
    pub grant: Grant,
}

/// A lease was refused.
#[derive(Debug)]
pub struct Refused {
    /// For which ticket.
    pub tag: Tag,
    /// Why.
    pub refusal: Refusal,
    /// When to ask again: the plane's hint, else the broker's back-off, or earlier where that may be over
    /// sooner. An ask that comes before its time is answered without the plane.
    pub wait: Duration,
    /// A gate answered, and not the plane.
    pub is_held: bool,
}

/// A lease could not be renewed: its attempt has to end.
#[derive(Debug)]
pub struct RenewFailed {
    /// For which ticket.
    pub tag: Tag,
    /// Which lease.
    pub lease: LeaseId,
    /// Why.
    pub why: String,
}
