//! A sink in memory that follows a script, for tests of everything that delivers.

use std::collections::{HashMap, HashSet, VecDeque};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};

use super::webhook::{Delivery, SinkError, Webhook};
use crate::collector::batch::Batch;
use crate::collector::log::BatchId;

/// Keeps every batch. Clones share the same memory, so a test holds one and the code under test another.
#[derive(Debug, Clone, Default)]
pub struct MemorySink {
    shared: Arc<Shared>,
}

#[derive(Debug, Default)]
struct Shared {
    state: Mutex<State>,
    released: Condvar,
}

#[derive(Debug, Default)]
struct State {
    script: VecDeque<SinkError>,
    lost_answers: u32,
    rejected: HashSet<BatchId>,
    blocked: bool,
    calls: u64,
    order: Vec<BatchId>,
    bodies: HashMap<BatchId, String>,
}

impl MemorySink {
    /// A sink that takes everything.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// The next `times` calls fail with `error`, after what was scripted before.
    pub fn fail(&self, times: usize, error: SinkError) {
        self.lock().script.extend(std::iter::repeat_n(error, times));
    }

    /// The next `times` calls take the batch and then fail, as if the answer got lost.
    pub fn lose_answers(&self, times: u32) {
        self.lock().lost_answers += times;
    }

    /// Refuses one batch for ever.
    pub fn reject(&self, id: BatchId) {
        self.lock().rejected.insert(id);
    }

    /// Makes every call wait until [`release`](Self::release).
    pub fn block(&self) {
        self.lock().blocked = true;
    }

    /// Lets waiting calls go on.
    pub fn release(&self) {
        self.lock().blocked = false;
        self.shared.released.notify_all();
    }

    /// How often a delivery was tried.
    #[must_use]
    pub fn calls(&self) -> u64 {
        self.lock().calls
    }

    /// The batches taken, in order of arrival.
    #[must_use]
    pub fn ids(&self) -> Vec<BatchId> {
        self.lock().order.clone()
    }

    /// The bodies taken, in order of arrival.
    #[must_use]
    pub fn bodies(&self) -> Vec<String> {
        let state = self.lock();
        state.order.iter().filter_map(|id| state.bodies.get(id).cloned()).collect()
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.shared.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Webhook for MemorySink {
    fn deliver(&mut self, batch: &Batch) -> Result<Delivery, SinkError> {
        let mut state = self.lock();
        state.calls += 1;
        while state.blocked {
            state = self.shared.released.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
        if let Some(error) = state.script.pop_front() {
            return Err(error);
        }
        if state.rejected.contains(&batch.id) {
            return Err(SinkError::Reject { why: "scripted".to_owned() });
        }
        let known = state.bodies.insert(batch.id, batch.body.clone()).is_some();
        if !known {
            state.order.push(batch.id);
        }
        if state.lost_answers > 0 {
            state.lost_answers -= 1;
            return Err(SinkError::Retry { after: None, why: "the answer got lost".to_owned() });
        }
        Ok(if known { Delivery::AlreadyHad } else { Delivery::Delivered })
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing)]

    use std::thread;
    use std::time::Duration;

    use super::*;
    use crate::courier::testing::batch;

    #[test]
    fn a_script_is_followed_and_then_everything_passes() {
        let (mut sink, control) = (MemorySink::new(), MemorySink::new());
        assert_eq!(sink.deliver(&batch(1, 1)), Ok(Delivery::Delivered));
        assert_eq!(control.calls(), 0, "two sinks share nothing");
        let control = sink.clone();
        let down = SinkError::Retry { after: Some(Duration::from_secs(1)), why: "503".into() };
        control.fail(2, down.clone());
        control.reject(batch(1, 3).id);
        control.lose_answers(1);
        assert_eq!(sink.deliver(&batch(1, 2)), Err(down.clone()));
        assert_eq!(sink.deliver(&batch(1, 2)), Err(down));
        assert!(matches!(sink.deliver(&batch(1, 2)), Err(SinkError::Retry { after: None, .. })));
        assert_eq!(sink.deliver(&batch(1, 2)), Ok(Delivery::AlreadyHad));
        assert!(matches!(sink.deliver(&batch(1, 3)), Err(SinkError::Reject { .. })));
        assert_eq!(control.ids(), [batch(1, 1).id, batch(1, 2).id]);
        assert_eq!(control.bodies(), [batch(1, 1).body, batch(1, 2).body]);
    }

    #[test]
    fn a_blocked_sink_waits_for_its_release() {
        let control = MemorySink::new();
        control.block();
        let mut sink = control.clone();
        let thread = thread::spawn(move || sink.deliver(&batch(1, 1)));
        while control.calls() == 0 {
            thread::yield_now();
        }
        assert!(control.ids().is_empty());
        control.release();
        assert_eq!(thread.join().unwrap(), Ok(Delivery::Delivered));
    }
}
