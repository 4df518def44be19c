//! The downloads under way. They live outside the actor, so that a successor can still end them.
//!
//! Every order is answered by exactly one `Fetched`, whatever becomes of its task: finished, cancelled,
//! panicked, or dropped with its runtime.

use std::collections::VecDeque;
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};

use dashmap::DashMap;
use futures_util::future::{AbortHandle, Abortable, Aborted};
use tokio::runtime::Handle;

use super::chain::{Chain, ChainParts};
use super::message::{Attempt, Fetched, Order, Sent, Verdict};
use super::progress::Progress;
use crate::actor::{Facts, Slot};
use crate::api::failure::{FailureKind, Fault};
use crate::engine::message::Fact;
use crate::engine::ticket::Tag;
use crate::settings::Settings;

/// Cancels remembered for orders that are still queued behind them.
const EARLY_CANCELS: usize = 1024;

/// What all incarnations of the downloader share.
pub(crate) struct Downloads {
    chain: Chain,
    runtime: Handle,
    facts: Facts<Fact>,
    running: DashMap<Tag, Running>,
    early: Mutex<Early>,
}

/// One download under way.
struct Running {
    abort: AbortHandle,
    progress: Arc<Progress>,
}

/// Cancels that overtook their orders: control goes before data.
#[derive(Default)]
struct Early {
    tags: VecDeque<Tag>,
    /// Orders still to come that were queued when everything was cancelled.
    orders: usize,
}

impl Downloads {
    /// Downloads run on `runtime`; what they come to is posted to `facts`.
    pub(crate) fn new(parts: ChainParts, runtime: Handle, facts: Facts<Fact>) -> Arc<Self> {
        Arc::new(Self { chain: Chain::new(parts), runtime, facts, running: DashMap::new(), early: Mutex::default() })
    }

    /// Starts an attempt; its slot is kept until it is over.
    pub(crate) fn start(self: &Arc<Self>, order: Order, slot: Slot) {
        let Order::Fetch { tag, job, grant, wants_sent, meter } = order;
        let (abort, registration) = AbortHandle::new_pair();
        let progress = Arc::new(Progress::under(&grant));
        let answer =
            Answer { downloads: Arc::clone(self), tag, progress: Arc::clone(&progress), slot: Some(slot), is_given: false };
        if self.is_cancelled_early(tag) {
            progress.cancel();
            return;
        }
        self.running.insert(tag, Running { abort, progress: Arc::clone(&progress) });
        let downloads = Arc::clone(self);
        self.runtime.spawn(async move {
            let sent = |at| {
                if wants_sent {
                    downloads.facts.post(Fact::Sent(Sent { tag, at }));
                }
            };
            let run = downloads.chain.run(&job, &grant, &*meter, &progress, sent);
            // On its own line: the attempt is dropped, its connection closed, before the answer is given.
            let ended = Abortable::new(run, registration).await;
            match ended {
                Ok((verdict, attempt)) => answer.give(verdict, attempt),
                // The answer says by itself, when dropped, how the attempt ended.
                Err(Aborted) => drop(answer),
            }
        });
    }

    /// Ends one attempt, or sees to it that it never begins.
    pub(crate) fn cancel(&self, tag: Tag) {
        if let Some(running) = self.running.get(&tag) {
            running.end();
            return;
        }
        let mut early = self.early.lock().unwrap_or_else(PoisonError::into_inner);
        if early.tags.len() == EARLY_CANCELS {
            early.tags.pop_front();
        }
        early.tags.push_back(tag);
    }

    /// Ends every attempt, those of `queued` orders that are not handled yet included.
    pub(crate) fn cancel_all(&self, queued: usize) {
        self.early.lock().unwrap_or_else(PoisonError::into_inner).orders = queued;
        for running in &self.running {
            running.end();
        }
    }

    /// Attempts under way.
    #[cfg(test)]
    pub(crate) fn count(&self) -> usize {
        self.running.len()
    }

    /// Drops what has been idle for too long.
    pub(crate) fn tidy(&self) {
        self.chain.tidy();
    }

    /// Takes changed settings for what is decided from now on.
    pub(crate) fn live(&self, settings: &Settings) {
        self.chain.live(settings);
    }

    fn is_cancelled_early(&self, tag: Tag) -> bool {
        let mut early = self.early.lock().unwrap_or_else(PoisonError::into_inner);
        if early.orders > 0 {
            early.orders -= 1;
            return true;
        }
        match early.tags.iter().position(|known| *known == tag) {
            Some(at) => early.tags.remove(at).is_some(),
            None => false,
        }
    }
}

impl Running {
    fn end(&self) {
        self.progress.cancel();
        self.abort.abort();
    }
}

/// The one answer that an order is owed.
struct Answer {
    downloads: Arc<Downloads>,
    tag: Tag,
    progress: Arc<Progress>,
    slot: Option<Slot>,
    is_given: bool,
}

impl Answer {
    fn give(mut self, verdict: Verdict, attempt: Attempt) {
        self.post(verdict, attempt);
    }

    fn post(&mut self, verdict: Verdict, attempt: Attempt) {
        self.is_given = true;
        self.downloads.running.remove(&self.tag);
        // Free the place first: the engine fills it as soon as it reads the answer.
        drop(self.slot.take());
        self.downloads.facts.post(Fact::Fetched(Box::new(Fetched { tag: self.tag, verdict, attempt })));
    }
}

impl Drop for Answer {
    fn drop(&mut self) {
        if self.is_given {
            return;
        }
        let fault = if self.progress.is_cancelled() {
            Fault::new(FailureKind::Cancelled, "the job stopped the request")
        } else {
            tracing::error!(tag = ?self.tag, "a download ended without an answer");
            Fault::new(FailureKind::Internal, "the download ended without an answer")
        };
        let attempt = self.progress.attempt(fault.clone());
        self.post(Verdict::Fail(fault, None), attempt);
    }
}

impl fmt::Debug for Downloads {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Downloads").field("running", &self.running.len()).finish_non_exhaustive()
    }
}
