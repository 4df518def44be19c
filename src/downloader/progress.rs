//! What is known about an attempt while it is under way, and stays known when its task is cut off.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use http::StatusCode;
use tokio::time::Instant;

use super::message::Attempt;
use super::transport::Meter;
use crate::api::failure::{FailureKind, Fault};
use crate::api::lease::LeaseView;
use crate::plane::Grant;

/// One attempt so far; shared by its task and the table of running downloads.
#[derive(Debug)]
pub(crate) struct Progress {
    lease: LeaseView,
    sent_at: OnceLock<Instant>,
    /// Status of an answer under way, and the length of body it announced.
    head: OnceLock<(StatusCode, Option<u64>)>,
    /// When it came.
    head_at: OnceLock<Instant>,
    charged: AtomicUsize,
    cancelled: AtomicBool,
}

impl Progress {
    /// Nothing has happened yet under this lease.
    pub(crate) fn under(grant: &Grant) -> Self {
        Self {
            lease: LeaseView::of(grant),
            sent_at: OnceLock::new(),
            head: OnceLock::new(),
            head_at: OnceLock::new(),
            charged: AtomicUsize::new(0),
            cancelled: AtomicBool::new(false),
        }
    }

    /// What can be known of the lease.
    pub(crate) fn lease(&self) -> LeaseView {
        self.lease.clone()
    }

    /// When it was sent, if it was.
    pub(crate) fn sent_at(&self) -> Option<Instant> {
        self.sent_at.get().copied()
    }

    /// Notes the instant of sending, and gives it back.
    pub(crate) fn send(&self) -> Instant {
        *self.sent_at.get_or_init(Instant::now)
    }

    /// From sending to the head of the answer.
    pub(crate) fn waited(&self) -> Option<Duration> {
        Some(self.head_at.get()?.saturating_duration_since(self.sent_at()?))
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

    /// The attempt as it is now, without an answer. One that we hung up on was answered all the same.
    pub(crate) fn attempt(&self, fault: Fault) -> Attempt {
        let sent_at = self.sent_at();
        let head = self.head.get().filter(|_| fault.kind == FailureKind::TooLarge);
        Attempt {
            status: head.map(|(status, _)| status.as_u16()),
            sent_at,
            latency: sent_at.map_or(Duration::ZERO, |at| at.elapsed()),
            waited: self.waited(),
            bytes: head.and_then(|(_, announced)| *announced).unwrap_or(0),
            charged: self.charged(),
            lease: Some(self.lease()),
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

    fn answered(&self, status: StatusCode, announced: Option<u64>) {
        let _ = self.progress.head.set((status, announced));
        let _ = self.progress.head_at.set(Instant::now());
    }
}
