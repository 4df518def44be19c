//! Acquire: from an ask of the engine to its one answer, alone or in a batch with others.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use tokio::time::Instant;

use super::call::Call;
use super::coalesce::{Batch, Key, Shared, share};
use super::gate::{Hold, Pass};
use super::message::{Leased, Refused};
use super::{LeaseBroker, millis};
use crate::actor::{Cx, Slot};
use crate::engine::message::Fact;
use crate::engine::ticket::Tag;
use crate::plane::{Ask, Grant, LeaseId, Refusal, RefusalKind};

/// Where the plane's configuration may switch something on again at any time, the engine is told to ask again
/// after this: such an ask goes no further than to the gate.
const LOOK: Duration = Duration::from_millis(250);

/// Where only one path was refused the engine is told to ask again after this: what it has next may be another.
const LOOK_ELSEWHERE: Duration = Duration::from_secs(1);

/// An ask of the engine without an answer yet.
pub(super) struct Waiter {
    tag: Tag,
    ask: Ask,
    since: Instant,
    /// Held until the answer: asks in progress count against the link's bound.
    _slot: Slot,
}

impl LeaseBroker {
    pub(super) fn acquire(&mut self, tag: Tag, ask: Ask, slot: Slot, cx: &mut Cx<'_, Self>) {
        self.note_site(&ask.site);
        // A plane behind a network gives anonymous leases without a call: whatever holds that plane holds none of them.
        let is_local = self.is_local(&ask);
        if !is_local
            && !self.gates.are_open()
            && let Pass::Hold(hold) = self.gates.pass(&ask, Instant::now())
        {
            self.held(tag, &ask, hold);
            return;
        }
        if is_local || self.presence.is_none() {
            self.ask_in_process(tag, ask, slot, cx);
            return;
        }
        let key = Key::of(&ask);
        let waiter = Waiter { tag, ask, since: Instant::now(), _slot: slot };
        match key {
            Some(key) => self.coalescer.gather(key, waiter),
            None => self.ask_alone(waiter, cx),
        }
    }

    /// Makes the calls for what this turn asked for.
    pub(super) fn begin_calls(&mut self, cx: &mut Cx<'_, Self>) {
        let batches = self.coalescer.begin();
        if !batches.is_empty() {
            self.send(batches.into(), cx);
        }
    }

    /// An in-process plane mostly answers at once; nothing is gathered for it and no clock is read.
    fn ask_in_process(&mut self, tag: Tag, ask: Ask, slot: Slot, cx: &mut Cx<'_, Self>) {
        match self.call(ask.clone(), 1) {
            Call::Over(answer) => self.answered_in_process(tag, &ask, answer),
            Call::Waiting(waiting) => {
                let begun = Instant::now();
                cx.spawn(waiting, move |broker, answer, _| {
                    if let Some(Ok(_)) = &answer {
                        broker.parts.stats.max("lease/wait_ms_max", millis(begun.elapsed()));
                    }
                    broker.answered_in_process(tag, &ask, answer.unwrap_or_else(|| Err(lost_call())));
                    drop(slot); // held until here, as a waiter's
                });
            }
        }
    }

    fn answered_in_process(&mut self, tag: Tag, ask: &Ask, answer: Result<Vec<Grant>, Refusal>) {
        let mut grants = match answer {
            Ok(grants) => grants.into_iter(),
            Err(refusal) => return self.refuse(tag, ask, refusal),
        };
        match grants.next() {
            Some(grant) => self.grant(tag, ask, grant),
            None => self.refuse(tag, ask, none_came()),
        }
        grants.for_each(|spare| self.parts.releasing.want(spare.lease));
    }

    /// An ask that nobody else's grant would do for.
    fn ask_alone(&mut self, waiter: Waiter, cx: &mut Cx<'_, Self>) {
        let begun = Instant::now();
        match self.call(waiter.ask.clone(), 1) {
            Call::Over(answer) => drop(self.settle(vec![waiter], answer, begun)),
            Call::Waiting(waiting) => cx.spawn(waiting, move |broker, answer, _| {
                let again = broker.settle(vec![waiter], answer.unwrap_or_else(|| Err(lost_call())), begun);
                debug_assert!(again.is_empty(), "one ask is served or refused");
            }),
        }
    }

    /// Makes the calls, and those that follow from answers that come at once.
    fn send(&mut self, mut batches: VecDeque<Batch<Waiter>>, cx: &mut Cx<'_, Self>) {
        while let Some(batch) = batches.pop_front() {
            let Some(first) = batch.asks.first() else { continue };
            let count = batch.asks.len();
            if count > 1 {
                self.parts.stats.inc("lease/batches");
                self.parts.stats.max("lease/batch_size_max", i64::try_from(count).unwrap_or(i64::MAX));
            }
            let begun = Instant::now();
            match self.call(first.ask.clone(), count) {
                Call::Over(answer) => batches.extend(self.over(batch, answer, begun)),
                Call::Waiting(waiting) => cx.spawn(waiting, move |broker, answer, cx| {
                    let next = broker.over(batch, answer.unwrap_or_else(|| Err(lost_call())), begun);
                    broker.send(next.into(), cx);
                }),
            }
        }
    }

    /// A call of a line is over; the calls to make next.
    fn over(&mut self, batch: Batch<Waiter>, answer: Result<Vec<Grant>, Refusal>, begun: Instant) -> Vec<Batch<Waiter>> {
        let Batch { key, asks } = batch;
        let mut waiting = self.settle(asks, answer, begun);
        waiting.extend(self.coalescer.over(&key));
        // All of a line are under the same gates.
        if let Some(hold) = waiting.front().and_then(|first| self.gates.holds(&first.ask, Instant::now())) {
            for waiter in waiting {
                self.gates.withdrawn(&waiter.ask);
                self.held(waiter.tag, &waiter.ask, hold.clone());
            }
            return Vec::new();
        }
        self.coalescer.launch(&key, waiting)
    }

    /// Answers who asked; gives those that a good answer brought nothing for.
    fn settle(&mut self, asks: Vec<Waiter>, answer: Result<Vec<Grant>, Refusal>, begun: Instant) -> VecDeque<Waiter> {
        let now = Instant::now();
        self.parts.stats.inc("lease/acquire_calls");
        self.parts.stats.max("lease/acquire_ms_max", millis(now.duration_since(begun)));
        match &answer {
            Err(refusal) if matches!(refusal.why, RefusalKind::Unreachable | RefusalKind::Unanswered) => {
                let site = asks.first().map_or("", |first| &*first.ask.site);
                self.missed(begun, now, &format!("a lease of site {site} was asked for"), &refusal.message);
            }
            _ => self.heard(now),
        }
        let refusal = match answer {
            Ok(grants) if !grants.is_empty() => {
                let Shared { served, again, spare } = share(asks, grants);
                for (waiter, grant) in served {
                    self.parts.stats.max("lease/wait_ms_max", millis(now.duration_since(waiter.since)));
                    self.grant(waiter.tag, &waiter.ask, grant);
                }
                spare.into_iter().for_each(|grant| self.parts.releasing.want(grant.lease));
                return again;
            }
            Ok(_) => none_came(),
            Err(refusal) => refusal,
        };
        for waiter in asks {
            self.refuse(waiter.tag, &waiter.ask, refusal.clone());
        }
        VecDeque::new()
    }

    /// Whether an ask is answered without the plane that others ask.
    fn is_local(&self, ask: &Ask) -> bool {
        ask.anonymous && self.presence.is_some()
    }

    fn grant(&mut self, tag: Tag, ask: &Ask, grant: Grant) {
        if !self.is_local(ask) {
            self.gates.granted(ask);
        }
        self.acquired += 1;
        self.facts.push(Fact::Leased(Leased { tag, grant }));
    }

    fn refuse(&mut self, tag: Tag, ask: &Ask, refusal: Refusal) {
        self.parts.stats.inc(format!("lease/refused/{}", refusal.why.name()));
        if refusal.why == RefusalKind::Unanswered {
            self.parts.stats.inc("lease/acquire_ambiguous");
        }
        let wait = self.gates.refused(ask, &refusal, Instant::now());
        let (site, client, group) = (&*ask.site, &*ask.client, &*ask.group);
        tracing::debug!(site, client, group, why = refusal.why.name(), ?wait, "lease refused: {}", refusal.message);
        let wait = self.wait(ask, refusal.why, wait);
        self.facts.push(Fact::Refused(Refused { tag, refusal, wait, is_held: false }));
    }

    /// Answers an ask that a gate holds: the plane is not asked.
    fn held(&mut self, tag: Tag, ask: &Ask, hold: Hold) {
        self.parts.stats.inc("lease/held");
        if hold.by_runtime {
            self.parts.stats.inc("lease/held_by_runtime");
        }
        let wait = self.wait(ask, hold.why, hold.wait);
        let refusal = Refusal { why: hold.why, retry_after: Some(wait), message: hold.message };
        self.facts.push(Fact::Refused(Refused { tag, refusal, wait, is_held: true }));
    }

    /// When the engine is to ask again for what a gate holds for `wait`.
    fn wait(&self, ask: &Ask, why: RefusalKind, wait: Duration) -> Duration {
        match why {
            RefusalKind::SitePaused | RefusalKind::CircuitOpen if self.is_told => wait.min(LOOK),
            RefusalKind::NoIdentity | RefusalKind::NoProxy | RefusalKind::CircuitOpen
                if ask.group.is_empty() && !ask.anonymous =>
            {
                wait.min(LOOK_ELSEWHERE)
            }
            _ => wait,
        }
    }

    /// Begins a call for `count` leases. What comes when the broker is gone is given back.
    fn call(&self, ask: Ask, count: usize) -> Call<Result<Vec<Grant>, Refusal>> {
        let plane = Arc::clone(&self.parts.plane);
        let late = Arc::clone(&plane);
        let call = async move {
            if count > 1 { plane.acquire_batch(ask, count).await } else { plane.acquire(ask).await.map(|grant| vec![grant]) }
        };
        self.parts.net.begin(call, move |answer| {
            Box::pin(async move {
                let leases: Vec<LeaseId> = answer.into_iter().flatten().map(|grant| grant.lease).collect();
                for lease in leases {
                    // Nobody will use it, and an answer would change nothing: left alone it expires.
                    let _ = late.release(lease).await;
                }
            })
        })
    }
}

fn lost_call() -> Refusal {
    Refusal {
        why: RefusalKind::Unreachable,
        retry_after: None,
        message: "the call to the control plane failed; the log has its panic".to_owned(),
    }
}

/// What an answer without a lease and without a reason means.
fn none_came() -> Refusal {
    let message = "the control plane granted none of the leases it was asked for".to_owned();
    Refusal { why: RefusalKind::NoIdentity, retry_after: None, message }
}
