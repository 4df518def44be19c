//! The gate before the pool, with those who wait at it (wire contract, section 31).
//!
//! Decides nothing: [`Gate`] does. Who waits is woken when its turn comes, and leaves its place when its call goes away.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::oneshot;
use tokio::time::{Instant, sleep_until};

use crate::dice::Dice;
use crate::plane::model::Ms;
use crate::plane::model::gate::{Entry, Gate, Place, Turn, shed_hint};
use crate::plane::model::refusal::Refusal;

/// The gate of a server.
#[derive(Debug)]
pub(super) struct Turnstile {
    state: Mutex<State>,
    /// What the gate's milliseconds are counted from.
    start: Instant,
}

#[derive(Debug)]
struct State {
    gate: Gate,
    dice: Dice,
    /// Who waits, told how many units it went in with.
    room: BTreeMap<Place, oneshot::Sender<u32>>,
}

/// Someone who is in. Leaves when dropped.
#[derive(Debug)]
pub(super) struct Pass<'a> {
    turnstile: &'a Turnstile,
    units: u32,
}

/// Someone who waits. Gives its place up when dropped.
#[derive(Debug)]
struct Waiting<'a> {
    turnstile: &'a Turnstile,
    place: Place,
    turn: oneshot::Receiver<u32>,
}

impl Turnstile {
    /// A gate of so many units; 0 lets everybody in.
    pub(super) fn new(units: u32, dice: Dice) -> Self {
        Self { state: Mutex::new(State { gate: Gate::new(units), dice, room: BTreeMap::new() }), start: Instant::now() }
    }

    /// Goes in with an attempt for so many leases, or waits for it, at most what is `left` of the call's time.
    ///
    /// # Errors
    /// `overloaded`; nothing was consumed.
    pub(super) async fn enter(&self, count: u32, left: Duration) -> Result<Pass<'_>, Refusal> {
        let left = Ms::try_from(left.as_millis()).unwrap_or(Ms::MAX);
        let (mut waiting, until) = {
            let mut state = self.lock();
            match state.gate.ask(count, left, self.now()) {
                Entry::In(units) => return Ok(Pass { turnstile: self, units }),
                Entry::Shed => return Err(state.overloaded()),
                Entry::Waits(place, until) => {
                    let (tell, turn) = oneshot::channel();
                    state.room.insert(place, tell);
                    (Waiting { turnstile: self, place, turn }, until)
                }
            }
        };
        tokio::select! {
            units = &mut waiting.turn => waiting.pass(units.ok()),
            () = sleep_until(self.start + Duration::from_millis(until)) => {
                // Its own end is among what is due now; whoever fits behind it goes in.
                let mut state = self.lock();
                let turns = state.gate.turns(self.now());
                state.tell(turns, self.now());
                drop(state);
                let units = waiting.turn.try_recv().ok();
                waiting.pass(units)
            }
        }
    }

    /// Sends somebody away who did not even get here.
    pub(super) fn refuse(&self) -> Refusal {
        self.lock().overloaded()
    }

    fn now(&self) -> Ms {
        Ms::try_from(self.start.elapsed().as_millis()).unwrap_or(Ms::MAX)
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<'a> Waiting<'a> {
    fn pass(self, units: Option<u32>) -> Result<Pass<'a>, Refusal> {
        let turnstile = self.turnstile;
        units.map(|units| Pass { turnstile, units }).ok_or_else(|| turnstile.lock().overloaded())
    }
}

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        let now = self.turnstile.now();
        let mut state = self.turnstile.lock();
        let turns = match (state.room.remove(&self.place), self.turn.try_recv()) {
            (Some(_), _) => state.gate.give_up(self.place, now),
            // It was let in and never knew.
            (None, Ok(units)) => state.gate.leave(units, now),
            (None, Err(_)) => return,
        };
        state.tell(turns, now);
    }
}

impl Drop for Pass<'_> {
    fn drop(&mut self) {
        let now = self.turnstile.now();
        let mut state = self.turnstile.lock();
        let turns = state.gate.leave(self.units, now);
        state.tell(turns, now);
    }
}

impl State {
    fn tell(&mut self, mut turns: Vec<Turn>, now: Ms) {
        while !turns.is_empty() {
            let mut back = 0;
            for turn in std::mem::take(&mut turns) {
                match turn {
                    Turn::In(place, units) => {
                        let told = self.room.remove(&place).is_some_and(|tell| tell.send(units).is_ok());
                        back += if told { 0 } else { units };
                    }
                    Turn::Shed(place) => drop(self.room.remove(&place)),
                }
            }
            if back > 0 {
                turns = self.gate.leave(back, now);
            }
        }
    }

    fn overloaded(&mut self) -> Refusal {
        Refusal::overloaded(shed_hint(&mut self.dice))
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing)]

    use std::pin::pin;

    use futures_util::FutureExt as _;

    use super::*;
    use crate::plane::model::refusal::Reason;

    fn turnstile(units: u32) -> Turnstile {
        Turnstile::new(units, Dice::new(1))
    }

    fn busy(turnstile: &Turnstile) -> u32 {
        turnstile.lock().gate.busy()
    }

    const SECOND: Duration = Duration::from_secs(1);

    #[tokio::test(start_paused = true)]
    async fn b151_who_cannot_wait_is_sent_away_with_a_hint_of_100_to_199() {
        let gate = turnstile(4);
        let _three = gate.enter(3, Duration::ZERO).await.unwrap();
        for _ in 0..50 {
            let refusal = gate.enter(2, Duration::ZERO).await.unwrap_err();
            assert_eq!(refusal.reason, Some(Reason::Overloaded));
            assert!((100..200).contains(&refusal.retry_after.unwrap()));
        }
        assert!(gate.enter(1, Duration::ZERO).await.is_ok());
    }

    #[tokio::test(start_paused = true)]
    async fn who_waits_goes_in_when_its_turn_comes_or_is_sent_away_after_50_ms() {
        let gate = turnstile(4);
        let four = gate.enter(9, Duration::ZERO).await.unwrap();
        let begin = Instant::now();
        assert!(gate.enter(1, SECOND).await.is_err());
        assert_eq!(begin.elapsed(), Duration::from_millis(50));
        let mut next = pin!(gate.enter(2, SECOND));
        let mut after = pin!(gate.enter(1, SECOND));
        assert!(next.as_mut().now_or_never().is_none() && after.as_mut().now_or_never().is_none());
        drop(four);
        let (next, after) = (next.await.unwrap(), after.await.unwrap());
        assert_eq!(busy(&gate), 3);
        drop((next, after));
        assert_eq!(busy(&gate), 0);
    }

    #[tokio::test(start_paused = true)]
    async fn who_goes_away_gives_place_and_units_back() {
        let gate = turnstile(4);
        let four = gate.enter(4, Duration::ZERO).await.unwrap();
        let mut heavy = Box::pin(gate.enter(4, SECOND));
        let mut told = Box::pin(gate.enter(1, SECOND));
        assert!(heavy.as_mut().now_or_never().is_none() && told.as_mut().now_or_never().is_none());
        drop(heavy);
        drop(four);
        // It is in, and does not know yet.
        assert_eq!(busy(&gate), 1);
        drop(told);
        assert_eq!(busy(&gate), 0);
        assert!(gate.lock().room.is_empty());
    }
}
