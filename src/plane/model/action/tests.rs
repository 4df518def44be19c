//! The rules of section 27 as whole plans.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing)]

use super::*;
use crate::dice::Dice;
use crate::plane::model::counts::{Counted, Counts};
use crate::plane::model::score::{Observations, Score, ScoreNumbers};
use crate::plane::model::streak::{Step, Streak};
use crate::plane::model::{Blame, Ms, Outcome};
use proptest::prelude::*;

const MINUTE: Ms = 60_000;
const HOUR: Ms = 60 * MINUTE;
const DAY: Ms = 24 * HOUR;

/// One identity with its books, behind one proxy, under the default policy.
struct Desk {
    rules: Rules,
    numbers: ScoreNumbers,
    observations: Observations,
    dice: Dice,
    score: Score,
    identity: Streak,
    proxy: Streak,
    counts: Counts,
    bans: BanHistory,
    account: Option<BanHistory>,
    pending: bool,
}

impl Desk {
    fn new() -> Self {
        Self {
            rules: Rules::default(),
            numbers: ScoreNumbers::default(),
            observations: Observations::default(),
            dice: Dice::new(11),
            score: Score::default(),
            identity: Streak::default(),
            proxy: Streak::default(),
            counts: Counts::new(),
            bans: BanHistory::default(),
            account: None,
            pending: false,
        }
    }

    /// Takes in a report with its default blame.
    fn report(&mut self, outcome: Outcome, now: Ms) -> Plan<'_> {
        self.blamed(outcome, outcome.blame(), now)
    }

    fn blamed(&mut self, outcome: Outcome, blame: Blame, now: Ms) -> Plan<'_> {
        if let Some(observation) = self.observations.of_identity(outcome, blame) {
            self.score.observe(observation, now, &self.numbers);
        }
        let reset = self.rules.failure_reset();
        let identity = self.identity.take(Step::of_identity(outcome, blame), now, reset);
        let proxy = self.proxy.take(Step::of_proxy(outcome, blame), now, reset);
        for (who, window) in self.rules.counted(outcome, self.account.is_some()) {
            self.counts.add(key(who), outcome, window, now);
        }
        let health = Health { points: self.score.points(now, &self.numbers), samples: self.score.samples() };
        let facts = Facts {
            now,
            outcome,
            blame,
            pending: self.pending,
            has_proxy: true,
            streaks: Streaks { endpoint: identity, identity, proxy },
            endpoint: health,
            global: health,
            endpoint_cooldown_left: 0,
            identity_bans: &self.bans,
            account_bans: self.account.as_ref(),
        };
        let counts = &self.counts;
        self.rules.plan(&facts, |who, window| counts.total(key(who), outcome, window, now), &mut self.dice)
    }
}

const fn key(who: Who) -> Counted {
    match who {
        Who::Identity => Counted::Identity(1),
        Who::Account => Counted::Account(1),
        Who::Proxy => Counted::Proxy(1),
    }
}

/// Scope and length of a planned cooldown.
fn cooldown(planned: Option<Planned<'_>>) -> (Scope, Ms) {
    match planned {
        Some(Planned { act: Act::Cooldown(length), scope, .. }) => (scope, length),
        other => panic!("no cooldown: {other:?}"),
    }
}

#[test]
fn b154_a_rate_limit_cools_the_identity_in_its_group_by_the_ladder() {
    let mut desk = Desk::new();
    for (outcome, low) in [
        (Outcome::RateLimited, 48_000),
        (Outcome::RateLimited, 96_000),
        (Outcome::RateLimited, 192_000),
        (Outcome::Success, 0),
        // The streak of three became one.
        (Outcome::RateLimited, 96_000),
    ] {
        let plan = desk.report(outcome, HOUR);
        if outcome == Outcome::Success {
            assert_eq!(plan, Plan::default());
            continue;
        }
        let (scope, length) = cooldown(plan.identity);
        assert_eq!(scope, Scope::IdentityEndpoint);
        assert!((low..=low * 3 / 2).contains(&length), "{length} from {low}");
        assert_eq!((plan.account, plan.proxy), (None, None));
    }
}

#[test]
fn b155_captchas_cool_the_site_then_ban_and_bans_escalate() {
    let mut desk = Desk::new();
    let (scope, length) = cooldown(desk.report(Outcome::Captcha, DAY).identity);
    assert_eq!(scope, Scope::IdentitySite);
    assert!((24 * MINUTE..=36 * MINUTE).contains(&length), "{length}");
    assert!(matches!(desk.report(Outcome::Captcha, DAY + HOUR).identity.unwrap().act, Act::Cooldown(_)));
    for (at, length, source) in [
        (DAY + 2 * HOUR, Length::For(12 * HOUR), Source::Rule),
        (3 * DAY, Length::For(72 * HOUR), Source::Escalation),
        (20 * DAY, Length::Forever, Source::Escalation),
    ] {
        if at > 2 * DAY {
            desk.report(Outcome::Captcha, at);
            desk.report(Outcome::Captcha, at);
        }
        let plan = desk.report(Outcome::Captcha, at);
        let planned = plan.identity.unwrap();
        assert_eq!((planned.act, planned.source, planned.scope), (Act::Ban(length), source, Scope::Identity));
        assert_eq!((planned.rule, planned.rule_index), ("repeated-captcha", Some(3)));
        desk.bans.record(at);
    }
}

#[test]
fn b155_a_second_ban_after_a_week_is_not_escalated() {
    let mut desk = Desk::new();
    desk.bans.record(DAY);
    for _ in 0..2 {
        desk.report(Outcome::Captcha, 9 * DAY);
    }
    let plan = desk.report(Outcome::Captcha, 9 * DAY);
    assert_eq!(plan.identity.unwrap().act, Act::Ban(Length::For(12 * HOUR)));
    assert_eq!(plan.identity.unwrap().act.until(9 * DAY), Some(9 * DAY + 12 * HOUR));
}

#[test]
fn b156_a_refused_login_expires_and_a_ban_takes_the_account() {
    let mut desk = Desk::new();
    let planned = desk.report(Outcome::AuthInvalid, DAY).identity.unwrap();
    assert_eq!((planned.act, planned.scope, planned.rule), (Act::Expire, Scope::Identity, "auth-invalid"));

    desk.account = Some(BanHistory::default());
    let plan = desk.report(Outcome::Banned, DAY);
    assert_eq!(plan.identity, None);
    let planned = plan.account.unwrap();
    assert_eq!((planned.act, planned.scope), (Act::Ban(Length::Forever), Scope::Account));
    assert_eq!((planned.act.severity(), planned.act.until(DAY)), (5, None));

    desk.account = None;
    let planned = desk.report(Outcome::Banned, DAY).identity.unwrap();
    assert_eq!((planned.act, planned.scope), (Act::Ban(Length::Forever), Scope::Identity));
}

#[test]
fn b157_a_proxys_error_cools_the_proxy_on_the_site_at_a_constant_length() {
    let mut desk = Desk::new();
    for _ in 0..5 {
        let plan = desk.report(Outcome::ProxyError, DAY);
        assert_eq!((plan.identity, plan.account), (None, None));
        let (scope, length) = cooldown(plan.proxy);
        assert_eq!(scope, Scope::ProxySite);
        assert!((96_000..=144_000).contains(&length), "{length}");
    }
    assert_eq!(desk.identity.failures(), 0);
    assert_eq!(desk.report(Outcome::NetworkError, DAY), Plan::default());
}

#[test]
fn b158_outcomes_that_blame_nobody_plan_nothing() {
    let mut desk = Desk::new();
    for outcome in [Outcome::Unknown, Outcome::ClientError, Outcome::TargetError] {
        assert_eq!(desk.report(outcome, DAY), Plan::default());
    }
    assert_eq!(desk.score, Score::default());
}

#[test]
fn b159_a_success_activates_a_pending_identity_and_a_captcha_does_not() {
    let mut desk = Desk::new();
    desk.pending = true;
    assert!(matches!(desk.report(Outcome::Captcha, DAY).identity.unwrap().act, Act::Cooldown(_)));
    let planned = desk.report(Outcome::Success, DAY).identity.unwrap();
    assert_eq!((planned.act, planned.rule, planned.source), (Act::Activate, "lifecycle.activate", Source::Lifecycle));
    // Any other action on the identity drops the activation.
    let deed = Deed::Cooldown(Ladder::default());
    let outcomes = Outcomes::of(&[Outcome::Success]);
    let rule = Rule { name: "rest".into(), outcomes, often: None, deed, scope: Scope::IdentitySite };
    desk.rules = Rules::new(vec![rule], Vec::new(), HealthLimits::default());
    assert_eq!(desk.blamed(Outcome::Success, Blame::Identity, DAY).identity.unwrap().rule, "rest");
}

#[test]
fn b160_the_eighteenth_forbidden_report_quarantines() {
    let mut desk = Desk::new();
    for report in 1..18 {
        assert_eq!(desk.report(Outcome::Forbidden, DAY + report), Plan::default(), "report {report}");
    }
    let planned = desk.report(Outcome::Forbidden, DAY + 18).identity.unwrap();
    assert_eq!((planned.act, planned.scope), (Act::Quarantine(24 * HOUR), Scope::Identity));
    assert_eq!((planned.rule, planned.source, planned.rule_index), ("health.quarantine", Source::Health, None));
}

#[test]
fn b160_nothing_happens_before_ten_samples_and_rate_limits_never_quarantine() {
    let mut desk = Desk::new();
    desk.observations.set(Outcome::Forbidden, 0.0);
    desk.numbers.alpha = 0.9;
    for report in 1..10 {
        assert_eq!(desk.report(Outcome::Forbidden, DAY + report), Plan::default(), "report {report}");
    }
    assert!(matches!(desk.report(Outcome::Forbidden, DAY + 10).identity.unwrap().act, Act::Quarantine(_)));

    let mut limited = Desk::new();
    for report in 0..300 {
        let plan = limited.report(Outcome::RateLimited, DAY + report);
        assert_eq!(plan.identity.unwrap().source, Source::Rule);
    }
}

#[test]
fn a_low_score_in_the_group_rests_it_unless_it_rests_long_enough_already() {
    let (rules, bans) = (Rules::default(), BanHistory::default());
    let low = Facts {
        now: DAY,
        outcome: Outcome::RateLimited,
        blame: Blame::Both,
        pending: false,
        has_proxy: false,
        streaks: Streaks { endpoint: 9, identity: 9, proxy: 0 },
        endpoint: Health { points: 14.99, samples: 10 },
        global: Health { points: 20.0, samples: 90 },
        endpoint_cooldown_left: 6 * HOUR - 1,
        identity_bans: &bans,
        account_bans: None,
    };
    let plan = |facts: &Facts<'_>| rules.plan(facts, |_, _| 0, &mut Dice::new(1)).identity.unwrap().rule;
    assert_eq!(plan(&low), "health.endpoint_low");
    assert_eq!(plan(&Facts { endpoint_cooldown_left: 6 * HOUR, ..low }), "rate-limited");
    assert_eq!(plan(&Facts { endpoint: Health { points: 14.99, samples: 9 }, ..low }), "rate-limited");
    assert_eq!(plan(&Facts { endpoint: Health { points: 15.0, samples: 10 }, ..low }), "rate-limited");
    // A quarantine outweighs any cooldown.
    assert_eq!(plan(&Facts { global: Health { points: 19.99, samples: 10 }, ..low }), "health.quarantine");
}

#[test]
fn a_failure_acts_on_low_health_even_if_the_proxy_is_to_blame() {
    let (rules, bans) = (Rules::default(), BanHistory::default());
    let low = Health { points: 12.0, samples: 10 };
    let facts = |outcome, blame| Facts {
        now: DAY,
        outcome,
        blame,
        pending: false,
        has_proxy: false,
        streaks: Streaks::default(),
        endpoint: low,
        global: low,
        endpoint_cooldown_left: 0,
        identity_bans: &bans,
        account_bans: None,
    };
    let plan = |outcome, blame| rules.plan(&facts(outcome, blame), |_, _| 0, &mut Dice::new(1)).identity;
    assert_eq!(plan(Outcome::Forbidden, Blame::Proxy).unwrap().rule, "health.quarantine");
    assert_eq!(plan(Outcome::NetworkError, Blame::Both).unwrap().rule, "health.quarantine");
    for outcome in [Outcome::NetworkError, Outcome::Success, Outcome::Unknown] {
        assert_eq!(plan(outcome, Blame::Proxy), None, "{outcome:?}");
    }
}

#[test]
fn each_scope_climbs_by_its_own_streak() {
    let (bans, health) = (BanHistory::default(), Health { points: 70.0, samples: 0 });
    let facts = Facts {
        now: DAY,
        outcome: Outcome::Captcha,
        blame: Blame::Both,
        pending: false,
        has_proxy: true,
        streaks: Streaks { endpoint: 1, identity: 2, proxy: 3 },
        endpoint: health,
        global: health,
        endpoint_cooldown_left: 0,
        identity_bans: &bans,
        account_bans: Some(&bans),
    };
    let deed = Deed::Cooldown(Ladder { multiplier: 2.0, ..Ladder::default() });
    for (scope, rung) in [
        (Scope::IdentityEndpoint, 60_000),
        (Scope::IdentitySite, 120_000),
        (Scope::Identity, 120_000),
        (Scope::Account, 120_000),
        (Scope::ProxySite, 240_000),
        (Scope::Proxy, 240_000),
    ] {
        let rules = Rules::new(vec![rule("rest", deed, scope)], Vec::new(), HealthLimits::default());
        let plan = rules.plan(&facts, |_, _| 0, &mut Dice::new(1));
        let (_, length) = cooldown(plan.iter().next().copied());
        assert!((rung * 8 / 10..=rung * 12 / 10).contains(&length), "{scope:?}: {length}");
        assert_eq!(plan.iter().count(), 1);
    }
}

#[test]
fn b171_planning_changes_nothing_but_the_dice() {
    let rules = Rules::default();
    let bans = BanHistory::default();
    let health = Health { points: 1.0, samples: 99 };
    let facts = Facts {
        now: DAY,
        outcome: Outcome::Captcha,
        blame: Blame::Identity,
        pending: false,
        has_proxy: true,
        streaks: Streaks::default(),
        endpoint: health,
        global: health,
        endpoint_cooldown_left: 0,
        identity_bans: &bans,
        account_bans: None,
    };
    let first = rules.plan(&facts, |_, _| 3, &mut Dice::new(5));
    assert_eq!(first.identity.unwrap().act, Act::Ban(Length::For(12 * HOUR)));
    assert_eq!(first, rules.plan(&facts, |_, _| 3, &mut Dice::new(5)));
    assert_eq!(bans.within(DAY, 30 * DAY), 0);
}

#[test]
fn b195_a_failure_blamed_on_the_proxy_plans_nothing_for_the_identity() {
    let mut desk = Desk::new();
    desk.account = Some(BanHistory::default());
    for outcome in [Outcome::RateLimited, Outcome::Captcha, Outcome::Banned, Outcome::AuthInvalid] {
        assert_eq!(desk.blamed(outcome, Blame::Proxy, DAY), Plan::default(), "{outcome:?}");
    }
    assert_eq!(desk.identity.failures(), 4);
}

#[test]
fn three_empty_answers_within_ten_minutes_rest_the_group() {
    let mut desk = Desk::new();
    assert_eq!(desk.report(Outcome::Empty, DAY), Plan::default());
    assert_eq!(desk.report(Outcome::Empty, DAY + MINUTE), Plan::default());
    let (scope, length) = cooldown(desk.report(Outcome::Empty, DAY + 9 * MINUTE).identity);
    assert_eq!(scope, Scope::IdentityEndpoint);
    assert!((4 * MINUTE..=6 * MINUTE).contains(&length), "{length}");
    assert_eq!(desk.report(Outcome::Empty, DAY + 11 * MINUTE), Plan::default());
}

/// A rule on captchas.
fn rule(name: &str, deed: Deed, scope: Scope) -> Rule {
    Rule { name: name.into(), outcomes: Outcomes::of(&[Outcome::Captcha]), often: None, deed, scope }
}

/// The names that win for a captcha blamed on both, for identity, account and proxy.
fn winners(rules: Vec<Rule>, has_account: bool) -> [Option<(String, Scope)>; 3] {
    let mut desk = Desk::new();
    desk.rules = Rules::new(rules, Vec::new(), HealthLimits::default());
    desk.account = has_account.then(BanHistory::default);
    let plan = desk.blamed(Outcome::Captcha, Blame::Both, DAY);
    [plan.identity, plan.account, plan.proxy].map(|planned| planned.map(|planned| (planned.rule.to_owned(), planned.scope)))
}

#[test]
fn one_action_wins_for_each_subject() {
    let ban = |hours| Deed::Ban(Length::For(hours * HOUR));
    let quarantine = |hours| Deed::Quarantine(Some(hours * HOUR));
    let won = |name: &str, scope| Some((name.to_owned(), scope));
    let rest = Deed::Cooldown(Ladder::default());

    // Severity before length.
    let rules = vec![
        rule("rest", rest, Scope::IdentityEndpoint),
        rule("away", quarantine(900), Scope::Identity),
        rule("end", Deed::Expire, Scope::Identity),
        rule("away-proxy", Deed::Quarantine(None), Scope::Proxy),
        rule("rest-proxy", rest, Scope::ProxySite),
        rule("out", ban(1), Scope::Account),
        rule("out-for-ever", Deed::Ban(Length::Forever), Scope::Account),
    ];
    let [identity, account, proxy] = winners(rules.clone(), true);
    assert_eq!(identity, won("end", Scope::Identity));
    assert_eq!(account, won("out-for-ever", Scope::Account));
    assert_eq!(proxy, won("away-proxy", Scope::Proxy));
    // Without an account its rules act on the identity.
    assert_eq!(winners(rules, false)[0], won("out-for-ever", Scope::Identity));

    // The longer, then the lower index.
    let rules = vec![rule("a", ban(2), Scope::Identity), rule("b", ban(3), Scope::Identity), rule("c", ban(3), Scope::Identity)];
    assert_eq!(winners(rules, false)[0], won("b", Scope::Identity));

    // Of the same length, the broader: lengths of a millisecond cannot be spread.
    let short = Deed::Cooldown(Ladder { base: 1, ..Ladder::default() });
    let rules = vec![rule("narrow", short, Scope::IdentityEndpoint), rule("broad", short, Scope::Account)];
    assert_eq!(winners(rules, false)[0], won("broad", Scope::IdentitySite));
    let rules = vec![rule("whole", short, Scope::Identity), rule("site", short, Scope::IdentitySite)];
    assert_eq!(winners(rules, false)[0], won("whole", Scope::IdentitySite));
    let rules = vec![rule("site", short, Scope::ProxySite), rule("all", short, Scope::Proxy)];
    assert_eq!(winners(rules, false)[2], won("all", Scope::Proxy));
}

proptest! {
    #[test]
    fn a_plan_never_acts_on_whom_the_blame_spares(
        outcome in 0_usize..12, blame in 0_usize..4, has_proxy in any::<bool>(), has_account in any::<bool>(),
        streak in 0_u32..40, count in 0_u32..6, seed in any::<u64>(), left in 0_u64..10 * HOUR,
    ) {
        let (rules, bans) = (Rules::default(), BanHistory::default());
        let blame = [Blame::Nobody, Blame::Identity, Blame::Proxy, Blame::Both][blame];
        let health = Health { points: 70.0, samples: 20 };
        let facts = Facts {
            now: DAY, outcome: Outcome::ALL[outcome], blame, pending: false, has_proxy,
            streaks: Streaks { endpoint: streak, identity: streak, proxy: streak },
            endpoint: health, global: health, endpoint_cooldown_left: left,
            identity_bans: &bans, account_bans: has_account.then_some(&bans),
        };
        let plan = rules.plan(&facts, |_, _| count, &mut Dice::new(seed));
        prop_assert!(blame.has_identity() || (plan.identity.is_none() && plan.account.is_none()));
        prop_assert!((blame.has_proxy() && has_proxy) || plan.proxy.is_none());
        prop_assert!(has_account || plan.account.is_none());
        for planned in plan.iter() {
            if let Act::Cooldown(length) = planned.act {
                prop_assert!((1..=6 * HOUR * 12 / 10).contains(&length));
            }
            prop_assert!(planned.act.until(DAY).is_none_or(|until| until > DAY));
        }
    }
}
