//! The schedule of attempts as a whole: its bounds for any failures, and what is told of it.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing)]

use proptest::prelude::*;

use super::*;
use crate::spinneret::testing::Logs;

#[test]
fn b048_steps_double_up_to_the_longest() {
    let policy = RetryPolicy { backoff_initial: 100 * MS, backoff_max: 1_000 * MS, ..RetryPolicy::default() };
    let mut backoff = policy.backoff(Dice::new(3));
    for _ in 0..500 {
        for (attempt, low, high) in [(0, 50, 100), (3, 400, 800), (10, 500, 1_000)] {
            let wait = backoff.wait(attempt);
            assert!((MS * low..=MS * high).contains(&wait), "{attempt}: {wait:?}");
        }
    }
}

#[derive(Debug, Clone)]
enum Outcome {
    Unsent,
    Ambiguous,
    Permanent,
    Bare,
    Unavailable(Option<u64>),
    Paused(u64),
    Exhausted(u64),
}

impl Outcome {
    fn step(&self) -> Step {
        match *self {
            Self::Unsent => Step::Fault(ErrorKind::ConnRefused, Phase::Unsent),
            Self::Ambiguous => Step::Fault(ErrorKind::ConnReset, Phase::Ambiguous),
            Self::Permanent => Step::Fault(ErrorKind::Tls, Phase::Permanent),
            Self::Bare => Step::Bare { status: 503, body: "" },
            Self::Unavailable(hint) => refuse(503, "unavailable", "overloaded", hint),
            Self::Paused(hint) => refuse(503, "unavailable", "site_paused", Some(hint)),
            Self::Exhausted(hint) => refuse(429, "resource_exhausted", "rate_limited", Some(hint)),
        }
    }

    /// Whether another attempt may follow, and the hint for it.
    fn next(&self, is_acquire: bool, policy: &RetryPolicy) -> Option<Duration> {
        let hint = match *self {
            Self::Unsent => Duration::ZERO,
            Self::Ambiguous | Self::Bare if !is_acquire => Duration::ZERO,
            Self::Unavailable(hint) => Duration::from_millis(hint.unwrap_or_default()),
            _ => return None,
        };
        (hint <= policy.max_retry_after).then_some(hint)
    }
}

fn outcome() -> impl Strategy<Value = Outcome> {
    let hint = prop_oneof![0_u64..300, 1_900_u64..2_100, Just(60_000)];
    prop_oneof![
        3 => Just(Outcome::Unsent),
        2 => Just(Outcome::Ambiguous),
        1 => Just(Outcome::Permanent),
        1 => Just(Outcome::Bare),
        4 => prop::option::of(hint.clone()).prop_map(Outcome::Unavailable),
        1 => hint.clone().prop_map(Outcome::Paused),
        1 => hint.prop_map(Outcome::Exhausted),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn the_schedule_stays_within_its_bounds(
        outcomes in prop::collection::vec(outcome(), 1..7),
        is_acquire in any::<bool>(),
        max_retries in 0_u32..6,
    ) {
        let policy = RetryPolicy { max_retries, max_retry_after: 2_000 * MS, ..RetryPolicy::default() };
        let script = Script::new();
        let procedure = if is_acquire { Procedure::Acquire } else { Procedure::Renew };
        for outcome in &outcomes {
            script.next(procedure, outcome.step());
        }
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build().unwrap();
        let is_ok = runtime.block_on(async {
            let wire = Wire::new(Arc::clone(&script) as Arc<dyn Transport>, Timeouts::default(), policy);
            if is_acquire { wire.call(&acquire()).await.is_ok() } else { wire.call(&renew()).await.is_ok() }
        });

        let hints: Vec<Duration> = outcomes.iter().map_while(|outcome| outcome.next(is_acquire, &policy)).collect();
        let expected = hints.len().min(max_retries as usize);
        let waits = waits(&script);
        prop_assert_eq!(waits.len(), expected, "{:?}", outcomes);
        prop_assert_eq!(is_ok, expected == outcomes.len());
        prop_assert!(script.seen().len() <= 1 + max_retries as usize);
        for (n, (wait, hint)) in waits.iter().zip(&hints).enumerate() {
            let step = (100 * MS * 2_u32.pow(u32::try_from(n).unwrap())).min(2_000 * MS);
            prop_assert!(*wait >= (step / 2).max(*hint), "{} {:?} {:?}", n, wait, hint);
            prop_assert!(*wait <= step.max(*hint) + 2 * MS, "{} {:?} {:?}", n, wait, hint);
        }
        if is_acquire {
            let unknown = outcomes.iter().position(|outcome| matches!(outcome, Outcome::Ambiguous | Outcome::Bare));
            prop_assert!(unknown.is_none_or(|at| script.seen().len() <= at + 1), "{:?}", outcomes);
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_retry_is_told_with_its_number_its_wait_and_its_kind_alone() {
    let logs = Logs::of_target("spinneret");
    let script = Script::new();
    script
        .next(Procedure::Acquire, Step::Fault(ErrorKind::ConnRefused, Phase::Unsent))
        .next(Procedure::Acquire, refuse(503, "unavailable", "overloaded", Some(400)));
    wire(&script).call(&acquire()).await.unwrap();
    let lines = logs.all();
    assert_eq!(lines.len(), 2, "{lines:?}");
    for (line, words) in lines.iter().zip([["attempt=2", "conn_refused"], ["attempt=3", "delay_ms=400"]]) {
        assert!(line.contains("DEBUG spinneret: ") && line.contains("LeaseService/Acquire"), "{line}");
        assert!(words.iter().all(|word| line.contains(word)), "{line}");
        assert!(!line.contains("shop") && !line.contains("scripted"), "{line}");
    }
}
