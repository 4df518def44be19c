//! A sink in memory that follows a script, for tests of everything that delivers.

use std::collections::{HashMap, HashSet, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::Notify;

use super::webhook::{Pending, Webhook};
use crate::apcloudy::Answer;
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
    released: Notify,
}

#[derive(Debug, Default)]
struct State {
    script: VecDeque<Answer>,
    lost_answers: u32,
    rejected: HashSet<BatchId>,
    blocked: bool,
    calls: u64,
    under_way: u64,
    order: Vec<BatchId>,
    bodies: HashMap<BatchId, String>,
}

/// A call that is not over; one that is dropped is over too.
struct UnderWay(Arc<Shared>);

impl Drop for UnderWay {
    fn drop(&mut self) {
        self.0.lock().under_way -= 1;
    }
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    async fn released(&self) {
        loop {
            let released = self.released.notified();
            let mut released = std::pin::pin!(released);
            released.as_mut().enable();
            if !self.lock().blocked {
                return;
            }
            released.await;
        }
    }

    fn take(&self, batch: &Batch) -> Answer {
        let mut state = self.lock();
        if let Some(answer) = state.script.pop_front().filter(|answer| *answer != Answer::Delivered) {
            return answer;
        }
        if state.rejected.contains(&batch.id) {
            return Answer::Reject { why: "scripted".to_owned() };
        }
        if state.bodies.insert(batch.id, batch.body.clone()).is_none() {
            state.order.push(batch.id);
        }
        if state.lost_answers > 0 {
            state.lost_answers -= 1;
            return Answer::Retry { after: None, why: "the answer got lost".to_owned() };
        }
        Answer::Delivered
    }
}

impl MemorySink {
    /// A sink that takes everything.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// The next `times` calls are answered so, after what was scripted before.
    #[allow(clippy::needless_pass_by_value, reason = "a script line reads as one")]
    pub fn fail(&self, times: usize, answer: Answer) {
        self.shared.lock().script.extend(std::iter::repeat_n(answer, times));
    }

    /// The next `times` calls take the batch and then fail, as if the answer got lost.
    pub fn lose_answers(&self, times: u32) {
        self.shared.lock().lost_answers += times;
    }

    /// Refuses one batch for ever.
    pub fn reject(&self, id: BatchId) {
        self.shared.lock().rejected.insert(id);
    }

    /// Makes every call wait until [`release`](Self::release).
    pub fn block(&self) {
        self.shared.lock().blocked = true;
    }

    /// Lets waiting calls go on.
    pub fn release(&self) {
        self.shared.lock().blocked = false;
        self.shared.released.notify_waiters();
    }

    /// How often a delivery was tried.
    #[must_use]
    pub fn calls(&self) -> u64 {
        self.shared.lock().calls
    }

    /// Tries that are not over.
    #[must_use]
    pub fn under_way(&self) -> u64 {
        self.shared.lock().under_way
    }

    /// The batches taken, in order of arrival.
    #[must_use]
    pub fn ids(&self) -> Vec<BatchId> {
        self.shared.lock().order.clone()
    }

    /// The bodies taken, in order of arrival.
    #[must_use]
    pub fn bodies(&self) -> Vec<String> {
        let state = self.shared.lock();
        state.order.iter().filter_map(|id| state.bodies.get(id).cloned()).collect()
    }
}

impl Webhook for MemorySink {
    fn deliver(&mut self, batch: Arc<Batch>) -> Pending {
        let mut state = self.shared.lock();
        state.calls += 1;
        state.under_way += 1;
        drop(state);
        let under_way = UnderWay(Arc::clone(&self.shared));
        Box::pin(async move {
            let shared = &under_way.0;
            shared.released().await;
            shared.take(&batch)
        })
    }

    fn place(&self) -> String {
        "memory".to_owned()
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing)]

    use std::time::Duration;

    use super::*;
    use crate::actor::run_local;
    use crate::courier::testing::{batch, deliver};

    #[test]
    fn a_script_is_followed_and_then_everything_passes() {
        let (mut sink, control) = (MemorySink::new(), MemorySink::new());
        assert_eq!(deliver(&mut sink, batch(1, 1)), Answer::Delivered);
        assert_eq!(control.calls(), 0, "two sinks share nothing");
        let control = sink.clone();
        let down = Answer::Retry { after: Some(Duration::from_secs(1)), why: "503".into() };
        control.fail(2, down.clone());
        control.reject(batch(1, 3).id);
        control.lose_answers(1);
        assert_eq!(deliver(&mut sink, batch(1, 2)), down);
        assert_eq!(deliver(&mut sink, batch(1, 2)), down);
        assert!(matches!(deliver(&mut sink, batch(1, 2)), Answer::Retry { after: None, .. }));
        assert_eq!(deliver(&mut sink, batch(1, 2)), Answer::Delivered);
        assert!(matches!(deliver(&mut sink, batch(1, 3)), Answer::Reject { .. }));
        assert_eq!(control.ids(), [batch(1, 1).id, batch(1, 2).id]);
        assert_eq!(control.bodies(), [batch(1, 1).body, batch(1, 2).body]);
    }

    #[test]
    fn a_blocked_sink_waits_for_its_release_and_a_dropped_call_is_over() {
        run_local(async {
            let control = MemorySink::new();
            control.block();
            let mut sink = control.clone();
            drop(sink.deliver(Arc::new(batch(1, 1))));
            assert_eq!((control.calls(), control.under_way()), (1, 0));
            let call = tokio::task::spawn_local(sink.deliver(Arc::new(batch(1, 1))));
            tokio::time::sleep(Duration::from_secs(60)).await;
            assert_eq!((control.under_way(), control.ids().len()), (1, 0));
            control.release();
            assert_eq!(call.await.unwrap(), Answer::Delivered);
            assert_eq!((control.under_way(), control.ids().len()), (0, 1));
        });
    }
}
