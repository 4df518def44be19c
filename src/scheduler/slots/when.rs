//! Times of slots in eight bytes, as a million of them are kept.

use std::num::NonZeroU64;
use std::time::Duration;

use tokio::time::Instant;

/// A time, in nanoseconds from the first one that was ever told; also within an `Option` it takes eight bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct When(NonZeroU64);

/// What the first time is called: two hundred years fit on each side of it.
const FIRST: u64 = 1 << 63;

/// Ties [`When`]s to instants.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Era(Option<Instant>);

impl Era {
    /// The short form of `at`.
    pub(super) fn when(&mut self, at: Instant) -> When {
        let first = *self.0.get_or_insert(at);
        match at.checked_duration_since(first) {
            Some(after) => When::of(FIRST.saturating_add(nanos(after))),
            None => When::of(FIRST.saturating_sub(nanos(first.duration_since(at)))),
        }
    }

    /// The instant of a time that [`Self::when`] gave or that was reckoned from one.
    pub(super) fn instant(&self, when: When) -> Option<Instant> {
        let first = self.0?;
        match when.0.get().checked_sub(FIRST) {
            Some(after) => first.checked_add(Duration::from_nanos(after)),
            None => first.checked_sub(Duration::from_nanos(FIRST - when.0.get())),
        }
    }
}

impl When {
    fn of(nanos: u64) -> Self {
        Self(NonZeroU64::new(nanos).unwrap_or(NonZeroU64::MIN))
    }

    /// `wait` later.
    pub(super) fn after(self, wait: Duration) -> Self {
        Self(self.0.saturating_add(nanos(wait)))
    }
}

fn nanos(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn times_come_back_as_they_were_and_keep_their_order() {
        let mut era = Era::default();
        let first = Instant::now() + Duration::from_secs(5);
        let times = [-4_000_000_000_i64, -1, 0, 1, 999, 3_155_760_000_000_000_000];
        let whens = times.map(|time| {
            let by = Duration::from_nanos(time.unsigned_abs());
            // The first one told is the middle.
            assert_eq!(era.when(first), When::of(FIRST));
            let at = if time < 0 { first - by } else { first + by };
            assert_eq!(era.instant(era.clone().when(at)), Some(at));
            era.when(at)
        });
        assert!(whens.is_sorted());
        assert_eq!(whens[2].after(Duration::from_nanos(999)), whens[4]);
        assert_eq!(whens[5].after(Duration::MAX), When::of(u64::MAX));
        assert_eq!(size_of::<Option<When>>(), 8);
    }
}
