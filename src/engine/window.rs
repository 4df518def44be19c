//! The window: how many requests and how many body bytes may be in flight.
//!
//! Requests are counted by the engine; bytes are charged by the network threads, chunk by chunk. With no
//! room left every download pauses except the oldest, which may go on: so one always ends. The next goes over
//! the limit when that one's callback is over, or waits in a commit, which may hang on other requests. The
//! bound is the window plus one `DOWNLOAD_MAXSIZE`, and what callbacks in a commit hold.

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use futures_util::future::BoxFuture;
use tokio::sync::Notify;

use crate::downloader::transport::Meter;

/// Body bytes of the whole job.
#[derive(Debug)]
pub(crate) struct Bytes {
    limit: usize,
    used: AtomicUsize,
    peak: AtomicUsize,
    active: Mutex<Active>,
    freed: Notify,
}

#[derive(Debug, Default)]
struct Active {
    reading: BTreeSet<u64>,
    /// Whose bytes are over the limit.
    over: Option<u64>,
}

/// One download's share of the window. Dropping it frees the share.
#[derive(Debug)]
pub(crate) struct Share {
    bytes: Arc<Bytes>,
    ticket: u64,
    charged: AtomicUsize,
    reading: std::sync::atomic::AtomicBool,
}

impl Bytes {
    pub(crate) fn new(limit: usize) -> Arc<Self> {
        Arc::new(Self {
            limit,
            used: AtomicUsize::new(0),
            peak: AtomicUsize::new(0),
            active: Mutex::default(),
            freed: Notify::new(),
        })
    }

    /// Opens the share of a download; tickets rise, so the lowest open one is the oldest.
    pub(crate) fn share(self: &Arc<Self>, ticket: u64) -> Arc<Share> {
        self.active().reading.insert(ticket);
        Arc::new(Share { bytes: self.clone(), ticket, charged: AtomicUsize::new(0), reading: true.into() })
    }

    /// Bytes charged now.
    pub(crate) fn used(&self) -> usize {
        self.used.load(Ordering::Relaxed)
    }

    /// The most ever charged at once.
    pub(crate) fn peak(&self) -> usize {
        self.peak.load(Ordering::Relaxed)
    }

    /// Whether new downloads may start.
    pub(crate) fn has_room(&self) -> bool {
        self.used() < self.limit
    }

    fn try_take(&self, bytes: usize) -> bool {
        let taken = self
            .used
            .fetch_update(Ordering::AcqRel, Ordering::Acquire, |used| used.checked_add(bytes).filter(|sum| *sum <= self.limit));
        if let Ok(before) = taken {
            self.peak.fetch_max(before + bytes, Ordering::Relaxed);
        }
        taken.is_ok()
    }

    fn take(&self, bytes: usize) {
        let before = self.used.fetch_add(bytes, Ordering::AcqRel);
        self.peak.fetch_max(before + bytes, Ordering::Relaxed);
    }

    fn free(&self, bytes: usize) {
        self.used.fetch_sub(bytes, Ordering::AcqRel);
        self.freed.notify_waiters();
    }

    /// Whether a download may go over the limit: the oldest, one at a time.
    fn may_pass(&self, ticket: u64) -> bool {
        let mut active = self.active();
        let passes = active.reading.first() == Some(&ticket) && active.over.is_none_or(|over| over == ticket);
        if passes {
            active.over = Some(ticket);
        }
        passes
    }

    fn active(&self) -> std::sync::MutexGuard<'_, Active> {
        // Nothing panics while the lock is held; a poisoned set is still whole.
        self.active.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Share {
    /// The download is over: its bytes stay charged, another one is now the oldest.
    pub(crate) fn read(&self) {
        if self.reading.swap(false, Ordering::AcqRel) {
            self.bytes.active().reading.remove(&self.ticket);
            self.bytes.freed.notify_waiters();
        }
    }

    /// Its callback waits for other requests: another download may go over the limit meanwhile.
    pub(crate) fn give_way(&self) {
        let mut active = self.bytes.active();
        if active.over == Some(self.ticket) {
            active.over = None;
            drop(active);
            self.bytes.freed.notify_waiters();
        }
    }

    fn note(&self, bytes: usize) {
        self.charged.fetch_add(bytes, Ordering::Relaxed);
    }
}

impl Meter for Share {
    fn charge(&self, bytes: usize) -> BoxFuture<'_, ()> {
        Box::pin(async move {
            loop {
                let freed = self.bytes.freed.notified();
                let mut freed = std::pin::pin!(freed);
                freed.as_mut().enable();
                if self.try_charge(bytes) {
                    return;
                }
                if self.bytes.may_pass(self.ticket) {
                    self.bytes.take(bytes);
                    self.note(bytes);
                    return;
                }
                freed.await;
            }
        })
    }

    fn try_charge(&self, bytes: usize) -> bool {
        let taken = self.bytes.try_take(bytes);
        if taken {
            self.note(bytes);
        }
        taken
    }
}

impl Drop for Share {
    fn drop(&mut self) {
        self.read();
        self.give_way();
        self.bytes.free(self.charged.load(Ordering::Relaxed));
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use std::time::Duration;

    use proptest::prelude::*;

    use super::*;
    use crate::actor::run_local;

    #[test]
    fn only_the_oldest_download_passes_a_full_window() {
        run_local(async {
            let bytes = Bytes::new(100);
            let (old, young) = (bytes.share(1), bytes.share(2));
            assert!(old.try_charge(60) && young.try_charge(40));
            assert!(!young.try_charge(1));
            old.charge(500).await;
            assert_eq!(bytes.used(), 600);
            assert!(tokio::time::timeout(Duration::from_secs(9), young.charge(1)).await.is_err());
            old.read();
            assert!(tokio::time::timeout(Duration::from_secs(9), young.charge(1)).await.is_err(), "one at a time goes over");
            old.give_way();
            young.charge(1).await;
            assert_eq!(bytes.used(), 601);
            drop(old);
            assert_eq!(bytes.used(), 41);
            drop(young);
            assert_eq!((bytes.used(), bytes.peak()), (0, 601));
        });
    }

    #[test]
    fn a_waiting_download_goes_on_when_bytes_are_freed() {
        run_local(async {
            let bytes = Bytes::new(10);
            let (first, second) = (bytes.share(1), bytes.share(2));
            assert!(first.try_charge(10));
            first.read();
            let third = bytes.share(3);
            let waiting = tokio::task::spawn_local(async move {
                third.charge(5).await;
                third
            });
            tokio::task::yield_now().await;
            assert!(!waiting.is_finished());
            drop(first);
            let third = waiting.await.unwrap();
            assert_eq!(bytes.used(), 5);
            drop((second, third));
        });
    }

    proptest! {
        #[test]
        fn the_window_never_passes_its_limit_by_more_than_one_download(
            chunks in proptest::collection::vec((0_u64..6, 1_usize..50), 1..200),
        ) {
            let bytes = Bytes::new(100);
            let mut shares: std::collections::BTreeMap<u64, Arc<Share>> = Default::default();
            for (ticket, size) in chunks {
                if let Some(share) = shares.get(&ticket) && size == 1 {
                    share.read();
                    shares.remove(&ticket);
                    continue;
                }
                let share = shares.entry(ticket).or_insert_with(|| bytes.share(ticket)).clone();
                if !share.try_charge(size) && bytes.may_pass(ticket) {
                    bytes.take(size);
                    share.note(size);
                }
                let oldest = shares.values().next().map_or(0, |s| s.charged.load(Ordering::Relaxed));
                let rest: usize = shares.values().skip(1).map(|s| s.charged.load(Ordering::Relaxed)).sum();
                prop_assert_eq!(bytes.used(), oldest + rest);
                let most = shares.values().map(|s| s.charged.load(Ordering::Relaxed)).max().unwrap_or(0);
                prop_assert!(bytes.used() <= 100 + most, "{} with {most} of one", bytes.used());
            }
            drop(shares);
            prop_assert_eq!(bytes.used(), 0);
        }
    }
}
