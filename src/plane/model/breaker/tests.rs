//! The breaker's rules of section 28, with the vectors of section 36.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing)]

use super::*;
use crate::plane::model::streak::{Step, Streak};
use proptest::prelude::*;

const MINUTE: Ms = 60_000;
/// The start of a bucket.
const START: Ms = 1_000 * MINUTE;

/// A breaker that has seen so many reports of each kind, each of another identity, at one moment.
fn fed(reports: &[(Outcome, u32)]) -> Breaker {
    let mut breaker = Breaker::new();
    feed(&mut breaker, reports, START);
    breaker
}

fn feed(breaker: &mut Breaker, reports: &[(Outcome, u32)], now: Ms) {
    for (outcome, times) in reports {
        for identity in 0..*times {
            breaker.record(*outcome, identity, now, &BreakerNumbers::default());
        }
    }
}

/// A breaker opened by half its reports being rate limits.
fn opened() -> Breaker {
    let mut breaker = fed(&[(Outcome::RateLimited, 25), (Outcome::Success, 25)]);
    assert!(breaker.evaluate(START, &BreakerNumbers::default()).is_some());
    breaker
}

/// Probes it with so many reports of which so many succeed, and evaluates.
fn probe(breaker: &mut Breaker, samples: u32, successes: u32, now: Ms) -> Option<Transition> {
    for sample in 0..samples {
        breaker.record_probe(if sample < successes { Outcome::Success } else { Outcome::Captcha });
    }
    breaker.evaluate(now, &BreakerNumbers::default())
}

fn hint(breaker: &mut Breaker, now: Ms) -> Ms {
    match breaker.admit(now, &BreakerNumbers::default()).0 {
        Admission::Refused { hint } => hint,
        other => panic!("{other:?}"),
    }
}

#[test]
fn b192_a_breaker_opens_by_the_vectors() {
    use Outcome::{Captcha, Forbidden, Success, TargetError};
    for (reports, expected) in [
        (&[(Forbidden, 20), (Success, 30)][..], Some("risk_ratio 0.40 >= 0.40")),
        (&[(Forbidden, 49)], None),
        (&[(Forbidden, 19), (Success, 31)], None),
        (&[(Success, 10), (TargetError, 40)], Some("success_ratio 0.20 <= 0.20")),
        (&[(Success, 11), (TargetError, 39)], None),
        (&[(Captcha, 10), (Success, 60)], Some("captcha_identities 10 >= 10")),
        (&[(Captcha, 9), (Success, 60)], None),
        (&[(Captcha, 50)], Some("risk_ratio 1.00 >= 0.40; captcha_identities 50 >= 10; success_ratio 0.00 <= 0.20")),
    ] {
        let mut breaker = fed(reports);
        let transition = breaker.evaluate(START, &BreakerNumbers::default());
        assert_eq!(transition.as_ref().map(|transition| &*transition.reason), expected, "{reports:?}");
        if let Some(transition) = transition {
            assert_eq!(transition.to, Phase::Open(Some(START + 2 * MINUTE)));
            assert_eq!((transition.trigger, &**breaker.reason()), (Trigger::Auto, expected.unwrap()));
        }
    }
}

#[test]
fn b192_one_identity_with_many_captchas_is_one() {
    let mut breaker = fed(&[(Outcome::Success, 60)]);
    for _ in 0..20 {
        breaker.record(Outcome::Captcha, 7, START, &BreakerNumbers::default());
    }
    assert_eq!(breaker.sums(START, &BreakerNumbers::default()).captcha_identities, 1);
    assert_eq!(breaker.evaluate(START, &BreakerNumbers::default()), None);
}

#[test]
fn a_condition_set_to_nought_is_off() {
    let off = BreakerNumbers { risk_ratio: 0.0, captcha_identities: 0, success_ratio: 0.0, ..BreakerNumbers::default() };
    assert_eq!(fed(&[(Outcome::Captcha, 99)]).evaluate(START, &off), None);
}

#[test]
fn b192_openings_in_a_row_double_up_to_an_hour() {
    let mut breaker = opened();
    let mut now = START;
    for (opening, minutes) in [(1, 2), (2, 4), (3, 8), (4, 16), (5, 32), (6, 60), (7, 60)] {
        assert_eq!(breaker.opens(), opening);
        assert_eq!(breaker.phase(), Phase::Open(Some(now + minutes * MINUTE)));
        now += minutes * MINUTE;
        assert_eq!(breaker.evaluate(now, &BreakerNumbers::default()).unwrap().to, Phase::HalfOpen);
        assert!(probe(&mut breaker, 5, 3, now).is_some());
    }
}

#[test]
fn an_opening_soon_after_a_close_counts_on_and_a_late_one_begins_anew() {
    for (rest, opens) in [(29 * MINUTE, 2), (30 * MINUTE, 1)] {
        let mut breaker = opened();
        assert!(breaker.close_manually("fine again", START + MINUTE).is_some());
        let now = START + MINUTE + rest;
        feed(&mut breaker, &[(Outcome::Forbidden, 50)], now);
        assert!(breaker.evaluate(now, &BreakerNumbers::default()).is_some());
        assert_eq!(breaker.opens(), opens);
    }
}

#[test]
fn b165_an_open_breaker_hints_the_rest_and_then_hands_out_five_probes_per_ten_seconds() {
    let (mut breaker, numbers) = (opened(), BreakerNumbers::default());
    assert_eq!(hint(&mut breaker, START), 2 * MINUTE);
    assert_eq!(hint(&mut breaker, START + 2 * MINUTE - 1), 1);
    let half = START + 2 * MINUTE;
    let (admission, transition) = breaker.admit(half, &numbers);
    assert_eq!((admission, transition.unwrap().to), (Admission::Probe { span: half }, Phase::HalfOpen));
    for issued in 0..5 {
        let now = half + issued * 100;
        assert_eq!(breaker.admit(now, &numbers), (Admission::Probe { span: half }, None));
        breaker.issue_probe();
    }
    assert_eq!(hint(&mut breaker, half + 4_000), 6_000);
    assert_eq!(hint(&mut breaker, half + 9_999), 1);
    assert_eq!(breaker.admit(half + 10_000, &numbers).0, Admission::Probe { span: half + 10_000 });
    assert_eq!(breaker.probes().issued, 0);
}

#[test]
fn a_probe_that_came_to_nothing_gives_its_place_back_within_its_span() {
    let (mut breaker, numbers, half) = (opened(), BreakerNumbers::default(), START + 2 * MINUTE);
    for _ in 0..5 {
        assert!(matches!(breaker.admit(half, &numbers).0, Admission::Probe { .. }));
        breaker.issue_probe();
    }
    breaker.return_probe(half);
    assert_eq!(breaker.admit(half, &numbers).0, Admission::Probe { span: half });
    breaker.admit(half + 10_000, &numbers);
    breaker.issue_probe();
    breaker.return_probe(half);
    assert_eq!(breaker.probes().issued, 1);
}

#[test]
fn b166_four_of_five_probes_close_and_three_open_for_twice_as_long() {
    let half = START + 2 * MINUTE;
    let mut breaker = opened();
    breaker.evaluate(half, &BreakerNumbers::default());
    assert_eq!(probe(&mut breaker, 4, 4, half), None);
    let transition = probe(&mut breaker, 1, 0, half + MINUTE).unwrap();
    assert_eq!((transition.to, transition.trigger), (Phase::Closed, Trigger::Probe));
    assert_eq!(breaker.closed_at(), Some(half + MINUTE));

    let mut breaker = opened();
    breaker.evaluate(half, &BreakerNumbers::default());
    let transition = probe(&mut breaker, 5, 3, half).unwrap();
    assert_eq!((transition.to, transition.trigger), (Phase::Open(Some(half + 4 * MINUTE)), Trigger::Probe));
    assert_eq!(&*transition.reason, "probe_success_ratio 0.60 < 0.80");
    // The next round begins without samples.
    assert_eq!(breaker.evaluate(half + 4 * MINUTE, &BreakerNumbers::default()).unwrap().to, Phase::HalfOpen);
    assert_eq!(breaker.probes(), Probes::default());
}

#[test]
fn b167_an_open_breaker_suppresses_and_counts() {
    let mut breaker = opened();
    assert!(breaker.suppresses(START + MINUTE));
    breaker.record_probe(Outcome::Success);
    breaker.record(Outcome::Success, 1, START + 1_000, &BreakerNumbers::default());
    assert_eq!(breaker.probes(), Probes::default());
    assert_eq!(breaker.sums(START + 1_000, &BreakerNumbers::default()).total, 51);
    assert_eq!(breaker.evaluate(START + 1_000, &BreakerNumbers::default()), None);
}

#[test]
fn b168_an_automatic_opening_takes_cooldowns_back_and_a_manual_one_does_not() {
    let numbers = BreakerNumbers::default();
    let mut before = Streak::default();
    before.take(Step::Raise, START - MINUTE, MINUTE);
    let applied = Applied {
        at: START - 1_000,
        identity: 4,
        reach: Reach::Endpoint,
        until: START + MINUTE,
        previous_until: START - 500,
        previous_streak: before,
    };
    let old = Applied { at: START - 2 * MINUTE, identity: 5, ..applied };
    let site = Applied { reach: Reach::Site, ..applied };

    let mut breaker = fed(&[(Outcome::Forbidden, 50)]);
    for cooldown in [old, applied, site] {
        breaker.note_cooldown(cooldown, &numbers);
    }
    let reverts = breaker.evaluate(START, &numbers).unwrap().reverts;
    assert_eq!(
        reverts,
        [Revert {
            identity: 4,
            reach: Reach::Endpoint,
            applied_until: START + MINUTE,
            previous_until: START - 500,
            previous_streak: before,
        }]
    );

    let mut breaker = Breaker::new();
    breaker.note_cooldown(applied, &numbers);
    assert_eq!(breaker.open_manually(None, "maintenance", START).reverts, []);
}

#[test]
fn b169_a_manual_opening_without_an_end_stays_until_it_is_closed() {
    let (mut breaker, numbers) = (Breaker::new(), BreakerNumbers::default());
    let transition = breaker.open_manually(None, "maintenance", START);
    assert_eq!((transition.to, transition.trigger), (Phase::Open(None), Trigger::Manual));
    for days in [0, 1, 400] {
        let now = START + days * 1_440 * MINUTE;
        assert_eq!(hint(&mut breaker, now), 60_000);
        assert!(breaker.suppresses(now) && breaker.is_manual());
        assert_eq!(breaker.evaluate(now, &numbers), None);
    }
    assert_eq!(breaker.close_manually("done", START).unwrap().to, Phase::Closed);
    assert_eq!(breaker.admit(START, &numbers), (Admission::Free, None));
    assert_eq!((breaker.is_manual(), breaker.close_manually("done", START)), (false, None));
}

#[test]
fn a_manual_opening_with_an_end_is_followed_by_probes() {
    let (mut breaker, numbers) = (Breaker::new(), BreakerNumbers::default());
    breaker.open_manually(Some(MINUTE), "maintenance", START);
    assert_eq!((hint(&mut breaker, START), breaker.opens()), (MINUTE, 0));
    assert!(matches!(breaker.admit(START + MINUTE, &numbers).0, Admission::Probe { .. }));
    assert!(breaker.is_manual());
    assert_eq!(probe(&mut breaker, 5, 5, START + MINUTE).unwrap().to, Phase::Closed);
    assert!(!breaker.is_manual());
    let transition = breaker.open_manually(Some(Ms::MAX), "for long", START);
    assert_eq!(transition.to, Phase::Open(Some(START + LONGEST_MANUAL)));
}

#[test]
fn b170_every_transition_raises_the_version() {
    let (mut breaker, numbers) = (opened(), BreakerNumbers::default());
    assert_eq!(breaker.version(), 1);
    breaker.evaluate(START + MINUTE, &numbers);
    hint(&mut breaker, START + MINUTE);
    assert_eq!(breaker.version(), 1);
    breaker.admit(START + 2 * MINUTE, &numbers);
    assert_eq!(breaker.version(), 2);
    probe(&mut breaker, 5, 5, START + 2 * MINUTE);
    breaker.open_manually(None, "maintenance", START);
    breaker.close_manually("done", START);
    assert_eq!(breaker.version(), 5);
}

#[test]
fn b196_a_closed_breaker_does_not_trip_again_on_old_samples() {
    let (mut breaker, numbers) = (opened(), BreakerNumbers::default());
    breaker.close_manually("fine again", START + 1);
    assert_eq!(breaker.sums(START + 1, &numbers), Sums::default());
    assert_eq!(breaker.evaluate(START + 1, &numbers), None);
    // The bucket of the close began before it and stays out; the next one counts.
    feed(&mut breaker, &[(Outcome::Forbidden, 50)], START + 4_999);
    assert_eq!(breaker.evaluate(START + 4_999, &numbers), None);
    feed(&mut breaker, &[(Outcome::Forbidden, 50)], START + 5_000);
    assert!(breaker.evaluate(START + 5_000, &numbers).is_some());
}

#[test]
fn b197_an_opening_that_is_over_suppresses_no_more() {
    let breaker = opened();
    assert!(breaker.suppresses(START + 2 * MINUTE - 1));
    assert!(!breaker.suppresses(START + 2 * MINUTE));
    assert!(matches!(breaker.phase(), Phase::Open(_)));
}

#[test]
fn b198_a_half_open_breaker_without_probe_reports_stays_and_keeps_probing() {
    let (mut breaker, numbers) = (opened(), BreakerNumbers::default());
    let mut handed = 0;
    for second in 0..3_600 {
        let now = START + 2 * MINUTE + second * 1_000;
        breaker.evaluate(now, &numbers);
        while let (Admission::Probe { .. }, _) = breaker.admit(now, &numbers) {
            breaker.issue_probe();
            handed += 1;
        }
        assert_eq!(breaker.phase(), Phase::HalfOpen);
    }
    assert_eq!(handed, 360 * 5);
}

#[test]
fn a_disabled_policy_closes_what_was_automatic_and_lets_manual_openings_end() {
    let off = BreakerNumbers { enabled: false, ..BreakerNumbers::default() };
    let mut half = opened();
    half.evaluate(START + 2 * MINUTE, &BreakerNumbers::default());
    for mut breaker in [opened(), half] {
        let transition = breaker.evaluate(START + MINUTE, &off).unwrap();
        assert_eq!((transition.to, &*transition.reason), (Phase::Closed, "breaker disabled by policy"));
    }
    let mut manual = Breaker::new();
    manual.open_manually(Some(MINUTE), "maintenance", START);
    assert_eq!(manual.evaluate(START + MINUTE - 1, &off), None);
    let mut acquired = manual.clone();
    assert_eq!(manual.evaluate(START + MINUTE, &off).unwrap().to, Phase::Closed);
    let (admission, transition) = acquired.admit(START + MINUTE, &off);
    assert_eq!((admission, transition.unwrap().to), (Admission::Free, Phase::Closed));
    assert_eq!(fed(&[(Outcome::Captcha, 99)]).evaluate(START, &off), None);
}

#[test]
fn risk_reports_evaluate_once_a_second_and_quiet_groups_are_left_alone() {
    let (mut breaker, numbers) = (Breaker::new(), BreakerNumbers::default());
    assert!(!breaker.wants_evaluation(START));
    assert_eq!(breaker.evaluate_after_risk(START, &numbers), None);
    feed(&mut breaker, &[(Outcome::Forbidden, 50)], START);
    assert_eq!(breaker.evaluate_after_risk(START + 999, &numbers), None);
    assert!(breaker.wants_evaluation(START + 2 * MINUTE) && !breaker.wants_evaluation(START + 2 * MINUTE + 1));
    assert!(breaker.evaluate_after_risk(START + 1_000, &numbers).is_some());
    assert!(breaker.wants_evaluation(START + 99 * MINUTE));
}

proptest! {
    #[test]
    fn a_breaker_keeps_its_promises_whatever_comes(
        steps in prop::collection::vec((0_u8..8, 0_usize..12, 0_u64..90_000), 1..300), enabled in any::<bool>(),
    ) {
        let numbers = BreakerNumbers { enabled, min_requests: 3, ..BreakerNumbers::default() };
        let (mut breaker, mut now, mut issued) = (Breaker::new(), START, Vec::new());
        for (step, outcome, pause) in steps {
            now += pause;
            let (before, version) = (breaker.phase(), breaker.version());
            match step {
                0..3 => breaker.record(Outcome::ALL[outcome], outcome as u32, now, &numbers),
                3 => breaker.record_probe(Outcome::ALL[outcome]),
                4 => drop(breaker.evaluate(now, &numbers)),
                5 if outcome == 0 => drop(breaker.open_manually((pause > 0).then_some(pause), "by hand", now)),
                5 if outcome == 1 => drop(breaker.close_manually("by hand", now)),
                _ => match breaker.admit(now, &numbers).0 {
                    Admission::Free => prop_assert_eq!(breaker.phase(), Phase::Closed),
                    Admission::Refused { hint } => prop_assert!(hint >= 1 && breaker.phase() != Phase::Closed),
                    Admission::Probe { span } => {
                        prop_assert_eq!(breaker.phase(), Phase::HalfOpen);
                        prop_assert!(now - span < PROBE_WINDOW);
                        breaker.issue_probe();
                        issued.push((span, breaker.version()));
                        let same = issued.iter().filter(|other| **other == (span, breaker.version()));
                        prop_assert!(same.count() <= 5);
                    }
                },
            }
            prop_assert!(breaker.phase() == before || breaker.version() > version);
            if let Phase::Open(Some(until)) = breaker.phase() && !breaker.is_manual() {
                prop_assert!(until <= now + numbers.max_open);
            }
            prop_assert!(!breaker.suppresses(now) || matches!(breaker.phase(), Phase::Open(_)));
        }
    }
}
