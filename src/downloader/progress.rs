//! What is known about an attempt while it is under way, and stays known when its task is cut off.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use tokio::time::Instant;

use super::message::Attempt;
use super::transport::Meter;
use crate::api::failure::Fault;

/// One attempt so far; shared by its task and the table of running downloads.
#[derive(Debug, Default)]
pub(crate) struct Progress {
    sent_at: OnceLock<Instant>,
    charged: AtomicUsize,
    cancelled: AtomicBool,
}

impl Progress {
    /// Notes the instant of sending, and gives it back.
    pub(crate) fn send(&self) -> Instant {
        *self.sent_at.get_or_init(Instant::now)
    }

    /// Notes that the engine gave the attempt up.
    pub(crate) fn cancel(&self) {
        self.cancelled.store(true, Ordering::Relaxed);
    }

    pub(crate) fn is_cancelled(&self) -> bool {
        self.cancelled.load(Ordering::Relaxed)
    }

    /// Bytes charged to the window so far.
    pub(crate) fn charged(&self) -> usize {
        self.charged.load(Ordering::Relaxed)
    }

    /// The attempt as it is now, without an answer.
    pub(crate) fn attempt(&self, fault: Fault) -> Attempt {
        let sent_at = self.sent_at.get().copied();
        Attempt {
            sent_at,
            latency: sent_at.map_or(Duration::ZERO, |at| at.elapsed()),
            charged: self.charged(),
            ..Attempt::failed(fault)
        }
    }
}

/// The engine's meter, with a count of what one attempt was charged.
#[derive(Debug)]
pub(crate) struct Tally<'a> {
    pub(crate) meter: &'a dyn Meter,
    pub(crate) progress: &'a Progress,
}

impl Tally<'_> {
    /// Charges at once or waits for room.
    pub(crate) async fn take(&self, bytes: usize) {
        if bytes > 0 && !self.try_charge(bytes) {
            self.charge(bytes).await;
        }
    }

    fn count(&self, bytes: usize) {
        self.progress.charged.fetch_add(bytes, Ordering::Relaxed);
    }
}

impl Meter for Tally<'_> {
    fn charge(&self, bytes: usize) -> BoxFuture<'_, ()> {
        self.meter.charge(bytes).inspect(move |()| self.count(bytes)).boxed()
    }

    fn try_charge(&self, bytes: usize) -> bool {
        let charged = self.meter.try_charge(bytes);
        if charged {
            self.count(bytes);
        }
        charged
    }
}
