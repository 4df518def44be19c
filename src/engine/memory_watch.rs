//! `MEMUSAGE_*`: looks at this process's memory once in a while, warns of much and ends the job at too much.

use std::time::Duration;

use tokio::time::Instant;

use crate::settings::Settings;

const MIB: i64 = 1024 * 1024;

/// When to look, and what is much. Bytes.
#[derive(Debug)]
pub(crate) struct MemoryWatch {
    now: fn() -> Option<i64>,
    every: Option<Duration>,
    limit: i64,
    warning: i64,
    next: Option<Instant>,
    has_warned: bool,
}

/// What a look came to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Seen {
    /// Nothing to say beside the number.
    Fine(i64),
    /// For the first time over the warning, which is this.
    Much(i64, i64),
    /// Over the limit, which is this.
    TooMuch(i64, i64),
}

impl MemoryWatch {
    /// As the settings say; `now` tells the resident memory.
    pub(crate) fn of(settings: &Settings, now: fn() -> Option<i64>) -> Self {
        let bytes = |mib: u64| i64::try_from(mib).unwrap_or(i64::MAX).saturating_mul(MIB);
        Self {
            now,
            every: settings.memusage_enabled.then_some(settings.memusage_check_interval_seconds),
            limit: bytes(settings.memusage_limit_mb),
            warning: bytes(settings.memusage_warning_mb),
            next: None,
            has_warned: false,
        }
    }

    /// Looks, if it is time to.
    pub(crate) fn look(&mut self, now: Instant) -> Option<Seen> {
        let every = self.every?;
        if self.next.is_some_and(|next| now < next) {
            return None;
        }
        self.next = Some(now + every);
        let bytes = (self.now)()?;
        Some(if self.limit > 0 && bytes > self.limit {
            Seen::TooMuch(bytes, self.limit)
        } else if self.warning > 0 && bytes > self.warning && !std::mem::replace(&mut self.has_warned, true) {
            Seen::Much(bytes, self.warning)
        } else {
            Seen::Fine(bytes)
        })
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    fn watch(limit: u64, warning: u64) -> MemoryWatch {
        let settings = Settings { memusage_limit_mb: limit, memusage_warning_mb: warning, ..Settings::default() };
        MemoryWatch::of(&settings, || Some(100 * MIB))
    }

    #[test]
    fn much_is_said_once_and_too_much_every_time() {
        let start = Instant::now();
        let at = |seconds| start + Duration::from_secs(seconds);
        for (limit, warning, first, second) in [
            (0, 0, Seen::Fine(100 * MIB), Seen::Fine(100 * MIB)),
            (100, 100, Seen::Fine(100 * MIB), Seen::Fine(100 * MIB)),
            (0, 99, Seen::Much(100 * MIB, 99 * MIB), Seen::Fine(100 * MIB)),
            (99, 50, Seen::TooMuch(100 * MIB, 99 * MIB), Seen::TooMuch(100 * MIB, 99 * MIB)),
        ] {
            let mut watch = watch(limit, warning);
            assert_eq!((watch.look(at(0)), watch.look(at(59)), watch.look(at(60))), (Some(first), None, Some(second)));
        }
    }

    #[test]
    fn off_or_without_a_number_there_is_nothing_to_see() {
        let settings = Settings { memusage_enabled: false, memusage_limit_mb: 1, ..Settings::default() };
        assert_eq!(MemoryWatch::of(&settings, || Some(100 * MIB)).look(Instant::now()), None);
        let settings = Settings { memusage_limit_mb: 1, ..Settings::default() };
        assert_eq!(MemoryWatch::of(&settings, || None).look(Instant::now()), None);
    }
}
