//! The one plane behind one lock, and the watches that wait for it.
//!
//! What is held is short: no call waits inside. The time of the plane never goes back, whatever the clock does, nor does it
//! stand still when somebody sets the system's clock back.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::oneshot;
use tokio::time::Instant;

use crate::plane::model::config_center::{ConfigItem, Look, WaiterId, WatchedItem};
use crate::plane::model::refusal::Refusal;
use crate::plane::model::scope::Scopes;
use crate::plane::model::{Ms, Plane};

/// Tells the time: milliseconds since the Unix epoch.
#[derive(Clone)]
pub(crate) struct Clock(pub(crate) Arc<dyn Fn() -> Ms + Send + Sync>);

impl Clock {
    /// The time as this tells it.
    pub(crate) fn new(now: impl Fn() -> Ms + Send + Sync + 'static) -> Self {
        Self(Arc::new(now))
    }
}

impl Default for Clock {
    /// The system's. Set back, it goes on from where it was: leases and cool-downs that began before still end.
    fn default() -> Self {
        let wall = || Ms::try_from(jiff::Timestamp::now().as_millisecond()).unwrap_or(0);
        let steady = Mutex::new(Steady { wall: wall(), at: Instant::now() });
        Self::new(move || steady.lock().unwrap_or_else(PoisonError::into_inner).follow(wall(), Instant::now()))
    }
}

/// The latest moment of the wall clock, and when that was.
#[derive(Debug, Clone, Copy)]
struct Steady {
    wall: Ms,
    at: Instant,
}

impl Steady {
    /// The time when the wall clock says `wall`: the wall clock's, unless that is behind what it said before and what has
    /// passed since.
    fn follow(&mut self, wall: Ms, now: Instant) -> Ms {
        let passed = Ms::try_from(now.saturating_duration_since(self.at).as_millis()).unwrap_or(Ms::MAX);
        let steady = self.wall.saturating_add(passed);
        if wall < steady {
            return steady;
        }
        *self = Self { wall, at: now };
        wall
    }
}

impl fmt::Debug for Clock {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Clock")
    }
}

/// The plane, for one at a time.
pub(crate) struct Desk {
    books: Mutex<Books>,
    clock: Clock,
}

struct Books {
    plane: Plane,
    now: Ms,
    watches: BTreeMap<WaiterId, oneshot::Sender<()>>,
}

/// What a look at watched items found.
pub(crate) enum Looked<'a> {
    Changed(Vec<ConfigItem>),
    Waits(Watch<'a>),
}

/// A watch that waits. Leaves when dropped.
pub(crate) struct Watch<'a> {
    desk: &'a Desk,
    waiter: WaiterId,
    woken: oneshot::Receiver<()>,
}

impl Desk {
    pub(crate) fn new(plane: Plane, clock: Clock) -> Self {
        let now = (clock.0)();
        Self { books: Mutex::new(Books { plane, now, watches: BTreeMap::new() }), clock }
    }

    /// Does something with the plane, at the time it is; wakes those who waited for it.
    pub(crate) fn with<T>(&self, act: impl FnOnce(&mut Plane, Ms) -> T) -> T {
        let mut books = self.lock();
        let now = books.now;
        let done = act(&mut books.plane, now);
        let woken = books.plane.take_woken();
        books.wake(woken);
        done
    }

    /// Wakes those whose waits a change ended that [`Plane::take_woken`] does not tell of.
    pub(crate) fn wake(&self, woken: Vec<WaiterId>) {
        self.lock().wake(woken);
    }

    /// Looks at watched items once, and waits if nothing is new.
    pub(crate) fn look(&self, scopes: &Scopes, items: &[WatchedItem<'_>]) -> Result<Looked<'_>, Refusal> {
        let mut books = self.lock();
        match books.plane.config_center().look(scopes, items)? {
            Look::Changed(items) => Ok(Looked::Changed(items)),
            Look::Waits(waiter) => {
                let (tell, woken) = oneshot::channel();
                books.watches.insert(waiter, tell);
                Ok(Looked::Waits(Watch { desk: self, waiter, woken }))
            }
        }
    }

    fn lock(&self) -> MutexGuard<'_, Books> {
        let mut books = self.books.lock().unwrap_or_else(PoisonError::into_inner);
        books.now = books.now.max((self.clock.0)());
        books
    }
}

impl Books {
    fn wake(&mut self, woken: Vec<WaiterId>) {
        for waiter in woken {
            if let Some(tell) = self.watches.remove(&waiter) {
                // Who is gone needs no telling.
                let _ = tell.send(());
            }
        }
    }
}

impl Watch<'_> {
    /// Waits until something changed.
    pub(crate) async fn woken(&mut self) {
        // It ends without a word only together with the desk.
        let _ = (&mut self.woken).await;
    }
}

impl Drop for Watch<'_> {
    fn drop(&mut self) {
        let mut books = self.desk.lock();
        if books.watches.remove(&self.waiter).is_some() {
            books.plane.config_center().leave(self.waiter);
        }
    }
}

impl fmt::Debug for Desk {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Desk").finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use std::sync::atomic::{AtomicU64, Ordering};
    use std::time::Duration;

    use super::*;
    use crate::dice::Dice;
    use crate::plane::seed::Seed;

    #[test]
    fn the_time_of_the_plane_never_goes_back() {
        let clock = Arc::new(AtomicU64::new(50));
        let told = Arc::clone(&clock);
        let plane = Plane::new(Seed::default(), 50, Dice::new(1)).unwrap();
        let desk = Desk::new(plane, Clock::new(move || told.load(Ordering::Relaxed)));
        for (moment, expected) in [(60, 60), (40, 60), (61, 61)] {
            clock.store(moment, Ordering::Relaxed);
            assert_eq!(desk.with(|_, now| now), expected);
        }
    }

    #[test]
    fn a_clock_that_is_set_back_goes_on_from_where_it_was() {
        let begin = Instant::now();
        let mut steady = Steady { wall: 1_000_000, at: begin };
        let at = |seconds| begin + Duration::from_secs(seconds);
        assert_eq!(steady.follow(1_010_000, at(10)), 1_010_000);
        // An hour ahead, and then back to what it should be: nobody waits an hour for the next second.
        assert_eq!(steady.follow(4_620_000, at(20)), 4_620_000);
        assert_eq!(steady.follow(1_030_000, at(30)), 4_630_000);
        assert_eq!(steady.follow(1_040_000, at(40)), 4_640_000);
        assert_eq!(steady.follow(9_000_000, at(50)), 9_000_000);
        assert_eq!(steady.follow(9_001_000, at(51)), 9_001_000);
    }
}
