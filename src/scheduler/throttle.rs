//! The throttle: finds a host's delay by how it answers.
//!
//! Pure. An answer aims at the delay that keeps `AUTOTHROTTLE_TARGET_CONCURRENCY` requests under way: its latency
//! divided by that number; the delay goes half the way there, and up at once. Only a 200 lowers it. A 429 or 503
//! doubles it, and what it came to is a floor under the delay that sinks slowly: a quick answer that refuses says
//! nothing of how fast the host may be asked, and to forget a refusal at once is to be refused again.
//! `Retry-After` is not judged here: it is a pause of the whole host.

use std::time::Duration;

use super::pacing::Throttle;

/// The least delay after a refusal.
const LEAST_RAISED: Duration = Duration::from_millis(100);
/// Each good answer takes this part off the floor: a half in about 44 of them.
const SINKS_BY: u32 = 64;
/// A floor below that is none.
const NO_FLOOR: Duration = Duration::from_millis(1);

/// A host's delay as its answers have it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Throttled {
    /// The delay, before jitter.
    pub(crate) delay: Duration,
    /// What the last refusal came to; the jitter does not go below it.
    pub(crate) floor: Duration,
}

/// What an answer means to the throttle.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Heard {
    /// 200: the delay may sink.
    Well,
    /// 429 or 503 from a request that knew the present delay: it rises.
    Refused,
    /// Everything else, also a refusal of a request that was sent before the last one: the delay does not sink.
    Otherwise,
}

impl Heard {
    /// What a status means, of a request that knew the present delay.
    pub(crate) const fn of(status: u16) -> Self {
        match status {
            200 => Self::Well,
            429 | 503 => Self::Refused,
            _ => Self::Otherwise,
        }
    }
}

impl Throttled {
    /// Of a host that has not answered yet; `least` is its delay by the settings.
    pub(crate) fn new(rules: &Throttle, least: Duration) -> Self {
        Self { delay: within(rules.start, rules, least), floor: Duration::ZERO }
    }

    /// Takes an answer and its latency in.
    pub(crate) fn hear(&mut self, heard: Heard, latency: Duration, rules: &Throttle, least: Duration) {
        let aim = Duration::try_from_secs_f64(latency.as_secs_f64() / rules.target).unwrap_or(Duration::MAX);
        let half_way = self.delay.saturating_add(aim) / 2;
        let to = within(aim.max(half_way), rules, least);
        match heard {
            Heard::Well => {
                let floor = self.floor.min(rules.max);
                self.floor = if floor < NO_FLOOR { Duration::ZERO } else { floor - floor / SINKS_BY };
                self.delay = to.max(self.floor);
            }
            Heard::Refused => {
                let raised = self.delay.max(self.floor).saturating_mul(2).max(LEAST_RAISED);
                self.delay = within(raised.max(to), rules, least).max(self.delay);
                self.floor = self.delay;
            }
            Heard::Otherwise => self.delay = self.delay.max(to),
        }
    }
}

/// At least the host's delay by the settings, which goes before `AUTOTHROTTLE_MAX_DELAY`.
fn within(delay: Duration, rules: &Throttle, least: Duration) -> Duration {
    delay.min(rules.max).max(least)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const MS: Duration = Duration::from_millis(1);

    fn rules() -> Throttle {
        Throttle { start: 200 * MS, max: 2_000 * MS, target: 1.0, debug: false }
    }

    #[test]
    fn an_answer_moves_the_delay_as_the_formula_says() {
        // (delay before, status, latency, target, least, delay after), in milliseconds
        let table = [
            (200, 200, 100, 1.0, 0, 150),
            (200, 200, 100, 2.0, 0, 125),
            (200, 200, 300, 1.0, 0, 300),
            (200, 200, 5_000, 1.0, 0, 2_000),
            (200, 200, 10, 1.0, 180, 180),
            (200, 404, 10, 1.0, 0, 200),
            (200, 302, 900, 1.0, 0, 900),
            (200, 500, 10, 1.0, 0, 200),
            (200, 206, 10, 1.0, 0, 200),
            (200, 429, 5, 1.0, 0, 400),
            (200, 503, 700, 1.0, 0, 700),
            (1, 429, 1, 1.0, 0, 100),
            (1_500, 429, 5, 1.0, 0, 2_000),
            (3_000, 429, 5, 1.0, 3_000, 3_000),
            (0, 200, 0, 0.001, 0, 0),
        ];
        for (before, status, latency, target, least, after) in table {
            let rules = Throttle { target, ..rules() };
            let mut host = Throttled { delay: before * MS, floor: Duration::ZERO };
            host.hear(Heard::of(status), latency * MS, &rules, least * MS);
            assert_eq!(host.delay, after * MS, "{before} {status} {latency} {target} {least}");
        }
    }

    #[test]
    fn a_refusal_is_forgotten_slowly() {
        let mut host = Throttled::new(&rules(), Duration::ZERO);
        assert_eq!(host.delay, 200 * MS);
        for after in [400, 800] {
            host.hear(Heard::Refused, 5 * MS, &rules(), Duration::ZERO);
            assert_eq!((host.delay, host.floor), (after * MS, after * MS));
        }
        for n in 0..1_000 {
            host.hear(Heard::Well, 5 * MS, &rules(), Duration::ZERO);
            assert!(n > 15 || host.delay > 600 * MS, "{n} {:?}", host.delay);
            assert!(n < 44 || host.delay < 405 * MS, "{n} {:?}", host.delay);
        }
        assert_eq!((host.delay, host.floor), (5 * MS, Duration::ZERO), "in the end it is");
    }

    proptest! {
        #[test]
        fn the_delay_stays_within_its_bounds_and_never_sinks_on_anything_but_a_200(
            answers in proptest::collection::vec((prop_oneof![Just(200_u16), Just(429), Just(503), 100_u16..600], 0_u32..100_000), 1..200),
            start in 0_u32..5_000,
            max in 1_u32..5_000,
            least in 0_u32..7_000,
            target in 0.01_f64..100.0,
        ) {
            let rules = Throttle { start: start * MS, max: max * MS, target, debug: false };
            let least = least * MS;
            let mut host = Throttled::new(&rules, least);
            for (status, latency) in answers {
                let before = host.delay;
                host.hear(Heard::of(status), latency * MS, &rules, least);
                prop_assert!(host.delay >= least && host.delay <= rules.max.max(least) && host.floor <= host.delay);
                prop_assert!(status == 200 || host.delay >= before);
                let most = rules.max.max(least);
                prop_assert!(!matches!(status, 429 | 503) || host.delay >= (before * 2).min(most));
            }
        }
    }
}
