//! Permits: the bound of a link, and the [`Slot`] that carries one permit with each order.
//!
//! actix bounds nothing across clones of an address, so the bound lives here: an order takes a permit
//! before it is queued, whoever sends it, and gives it back when its slot is dropped. Waiting senders
//! are served first come, first served. Nothing here knows what the orders are.

use std::fmt;
use std::sync::atomic::{AtomicBool, Ordering, fence};
use std::sync::{Arc, Mutex};

use tokio::sync::{Notify, Semaphore, TryAcquireError};

use super::lane::lock;

/// One permit of a link's bound, given back when this is dropped.
///
/// A worker that starts something long for an order keeps the slot beside it: then the bound covers
/// the work in progress and not only the queue. The slot of a posted fact is empty and bounds nothing.
pub struct Slot {
    permits: Option<Arc<Permits>>,
    /// Set once a worker holds the slot; `None` while it waits in the lane.
    generation: Option<u32>,
}

impl Slot {
    /// A slot that holds no permit, as facts have.
    #[must_use]
    pub const fn empty() -> Self {
        Self { permits: None, generation: None }
    }

    /// Whether this slot holds a permit.
    #[must_use]
    pub const fn holds_permit(&self) -> bool {
        self.permits.is_some()
    }

    /// Marks the slot as held by the worker, so that it can be written off with its incarnation.
    pub(crate) fn hand_out(&mut self) {
        if let Some(permits) = &self.permits {
            let mut handed = lock(&permits.handed);
            handed.out += 1;
            self.generation = Some(handed.generation);
        }
    }
}

impl fmt::Debug for Slot {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Slot").field("holds_permit", &self.holds_permit()).finish()
    }
}

impl Drop for Slot {
    fn drop(&mut self) {
        if let Some(permits) = self.permits.take() {
            permits.give_back(self.generation);
        }
    }
}

/// Why a permit could not be taken at once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum NoSlot {
    Full,
    Closed,
}

type OnRoom = Arc<dyn Fn() + Send + Sync>;

/// The permits of one inbox, shared by all its links.
pub(crate) struct Permits {
    room: Semaphore,
    bound: usize,
    handed: Mutex<Handed>,
    /// An offer was refused and nobody has been told of room since.
    refused: AtomicBool,
    on_room: Mutex<Vec<OnRoom>>,
    /// Somebody waits in [`Permits::settled`]; keeps the usual path free of the notify.
    draining: AtomicBool,
    settled: Notify,
}

/// Slots held outside the lane. A generation ends when an incarnation is written off.
struct Handed {
    generation: u32,
    out: usize,
}

impl Permits {
    /// A bound of 0 would refuse everything for ever and is raised to 1.
    pub(crate) fn new(bound: usize) -> Arc<Self> {
        let bound = bound.clamp(1, Semaphore::MAX_PERMITS);
        Arc::new(Self {
            room: Semaphore::new(bound),
            bound,
            handed: Mutex::new(Handed { generation: 0, out: 0 }),
            refused: AtomicBool::new(false),
            on_room: Mutex::new(Vec::new()),
            draining: AtomicBool::new(false),
            settled: Notify::new(),
        })
    }

    pub(crate) fn try_take(self: &Arc<Self>) -> Result<Slot, NoSlot> {
        match self.take_now() {
            Err(NoSlot::Full) => self.note_refusal(),
            taken => taken,
        }
    }

    /// Notes that room must be told, and looks again: a slot that came free between the refusal and the
    /// note was told to nobody.
    fn note_refusal(self: &Arc<Self>) -> Result<Slot, NoSlot> {
        self.refused.store(true, Ordering::SeqCst);
        fence(Ordering::SeqCst);
        self.take_now()
    }

    fn take_now(self: &Arc<Self>) -> Result<Slot, NoSlot> {
        match self.room.try_acquire() {
            Ok(permit) => {
                permit.forget();
                Ok(self.slot())
            }
            Err(TryAcquireError::NoPermits) => Err(NoSlot::Full),
            Err(TryAcquireError::Closed) => Err(NoSlot::Closed),
        }
    }

    /// Waits for a permit; `None` when the link was closed.
    pub(crate) async fn take(self: &Arc<Self>) -> Option<Slot> {
        let permit = self.room.acquire().await.ok()?;
        permit.forget();
        Some(self.slot())
    }

    fn slot(self: &Arc<Self>) -> Slot {
        Slot { permits: Some(Arc::clone(self)), generation: None }
    }

    fn give_back(&self, generation: Option<u32>) {
        if let Some(generation) = generation {
            let mut handed = lock(&self.handed);
            if handed.generation != generation {
                return; // written off with its incarnation: the permit was given back then
            }
            handed.out -= 1;
        }
        self.add(1);
    }

    fn add(&self, slots: usize) {
        self.room.add_permits(slots);
        // Pairs with the fences after `refused` and `draining` are set: either we see the flag, or the one
        // who set it sees the permit.
        fence(Ordering::SeqCst);
        self.tell_room();
        self.notify_settled();
    }

    fn tell_room(&self) {
        // The permit may have gone straight to a waiting sender: that is not room for an offer.
        if self.refused.load(Ordering::SeqCst) && self.room.available_permits() > 0 && self.refused.swap(false, Ordering::SeqCst)
        {
            let told: Vec<OnRoom> = lock(&self.on_room).clone();
            for f in told {
                f();
            }
        }
    }

    pub(crate) fn on_room(&self, f: OnRoom) {
        lock(&self.on_room).push(f);
    }

    /// Gives back the slots an abandoned incarnation holds and counts them; they do nothing when dropped later.
    pub(crate) fn write_off(&self) -> usize {
        let out = {
            let mut handed = lock(&self.handed);
            handed.generation = handed.generation.wrapping_add(1);
            std::mem::take(&mut handed.out)
        };
        if out > 0 {
            self.add(out);
        }
        out
    }

    pub(crate) fn close(&self) {
        self.room.close();
    }

    pub(crate) fn is_closed(&self) -> bool {
        self.room.is_closed()
    }

    pub(crate) fn free(&self) -> usize {
        self.room.available_permits()
    }

    pub(crate) const fn bound(&self) -> usize {
        self.bound
    }

    /// Slots held outside the lane.
    pub(crate) fn handed(&self) -> usize {
        lock(&self.handed).out
    }

    pub(crate) fn begin_drain(&self) {
        self.draining.store(true, Ordering::SeqCst);
        fence(Ordering::SeqCst);
    }

    /// Wakes a drain so that it looks again.
    pub(crate) fn notify_settled(&self) {
        if self.draining.load(Ordering::SeqCst) {
            self.settled.notify_waiters();
        }
    }

    pub(crate) const fn settled(&self) -> &Notify {
        &self.settled
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing)]
    use super::*;

    #[test]
    fn a_slot_that_comes_free_between_the_refusal_and_its_note_is_taken() {
        let permits = Permits::new(1);
        let held = permits.try_take().unwrap();
        assert_eq!(permits.take_now().unwrap_err(), NoSlot::Full);
        drop(held); // nobody is noted as refused yet, so nobody is told
        assert!(permits.note_refusal().is_ok());
    }

    #[test]
    fn a_slot_that_was_written_off_comes_back_once() {
        let permits = Permits::new(2);
        let (mut old, queued) = (permits.try_take().unwrap(), permits.try_take().unwrap());
        old.hand_out();
        assert_eq!(permits.write_off(), 1);
        assert_eq!((permits.free(), permits.handed()), (1, 0));
        drop(old);
        assert_eq!(permits.free(), 1, "given back when it was written off");
        drop(queued);
        assert_eq!(permits.free(), 2, "what waits in the lane is not written off");
    }
}
