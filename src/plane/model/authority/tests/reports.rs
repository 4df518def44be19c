//! Reports and what they do (S 152 to 164, 171, 172, 193, 195, 199).

use serde_json::json;

use super::support::*;
use crate::plane::model::Ms;
use crate::plane::model::refusal::Reason;
use crate::plane::seed::Start;
use crate::spinneret::Report;

/// A length may be spread by a fifth to either side.
#[track_caller]
fn spread(found: Ms, middle: Ms) {
    assert!((middle * 4 / 5..=middle * 6 / 5).contains(&found), "{found} is not about {middle}");
}

#[test]
fn b152_a_repeated_report_counts_once() {
    let mut world = Setup::new().active(1).open();
    let lease = world.acquire("search").lease.lease_id;
    let report = world.make(&lease, 200);
    let answer = world.send(vec![report.clone(), report.clone()]);
    assert_eq!((answer.accepted, answer.duplicated), (1, 1));
    let answer = world.send(vec![report]);
    assert_eq!((answer.accepted, answer.duplicated), (0, 1));
    let ledger = &world.plane.ledger().sites["shop"];
    assert_eq!((ledger.reports_accepted, ledger.reports_duplicated, ledger.identities["i0"].reports), (1, 2, 1));
}

#[test]
fn b153_b58_bad_reports_are_rejected_one_by_one() {
    let mut world = Setup::new().active(1).open();
    let lease = world.acquire("search").lease.lease_id;
    let good = world.make(&lease, 200);
    let gone = world.make("lse_00000000000000000000000000000000_0_00", 200);
    let odd = world.make("odd", 200);
    let wrong = Report { http_status: 1_000, ..world.make(&lease, 200) };
    let ids = [gone.report_id.clone(), odd.report_id.clone(), wrong.report_id.clone()];
    let batch = vec![Ok(gone), Ok(odd), Err("latency_ms is no number".to_owned()), Ok(wrong), Ok(good)];
    let answer = world.plane.report(&world.token, batch, world.now).unwrap();
    assert_eq!((answer.accepted, answer.duplicated), (1, 0));
    let rejected: Vec<_> = answer.rejected.iter().map(|one| (one.report_id.as_str(), one.reason.as_str())).collect();
    let [gone, odd, wrong] = &ids;
    assert_eq!(
        rejected,
        [
            (odd.as_str(), "lease_unknown"),
            ("", "invalid_argument"),
            (wrong.as_str(), "invalid_argument"),
            (gone.as_str(), "lease_unknown"),
        ]
    );
    assert_eq!(answer.rejected[0].message, "lease is unknown or expired");
    let ledger = world.plane.ledger();
    assert_eq!((ledger.sites["shop"].reports_rejected, ledger.stray_reports), (2, 2));
}

#[test]
fn reports_need_a_scope_and_a_number() {
    let mut world = Setup::new().active(1).open();
    let lease = world.acquire("search").lease.lease_id;
    let report = world.make(&lease, 200);
    world.token = Setup::new().token(|token| token.token.namespace = "dev".into()).open().token;
    let foreign = &world.send(vec![report.clone()]).rejected[0];
    assert_eq!((foreign.reason.as_str(), foreign.message.as_str()), ("lease_unknown", "lease is unknown or expired"));
    world.token = Setup::new().scopes(&["report:write:other"]).open().token;
    assert_eq!(world.send(vec![report.clone()]).rejected[0].reason, "scope_missing");
    world.token = Setup::new().scopes(&["lease:acquire"]).open().token;
    let refused = world.plane.report(&world.token, vec![Ok(report)], world.now).unwrap_err();
    assert_eq!(refused.reason, Some(Reason::ScopeMissing));
    assert_eq!(world.plane.report(&world.token, Vec::new(), world.now).unwrap_err().reason, Some(Reason::InvalidArgument));
}

#[test]
fn b154_rate_limits_cool_down_in_their_group_and_climb() {
    let mut world = Setup::new().active(1).open();
    let lease = world.acquire("search").lease.lease_id;
    world.report(&lease, 429);
    spread(world.cooldown(0, "search"), 60 * SECOND);
    assert_eq!((world.cooldown(0, "item"), world.site_cooldown(0)), (0, 0));
    world.report(&lease, 429);
    spread(world.cooldown(0, "search"), 120 * SECOND);
    // A success halves the streak of two to one: the next failure is the second again.
    world.report(&lease, 200);
    world.now += 10 * MINUTE;
    world.report(&lease, 429);
    spread(world.cooldown(0, "search"), 120 * SECOND);
    world.release(&lease).unwrap();
    assert_eq!(world.refused("search").0, Reason::NoIdentityAvailable);
    world.acquire("item");
}

#[test]
fn b155_captchas_cool_the_site_then_ban_longer_each_time() {
    let mut world = Setup::new().active(1).open();
    let lease = world.acquire("search").lease.lease_id;
    world.mark(&lease, "captcha_page");
    spread(world.site_cooldown(0), 30 * MINUTE);
    world.mark(&lease, "captcha_page");
    assert_eq!(world.state("i0"), "active");
    world.mark(&lease, "captcha_page");
    assert_eq!(world.state("i0"), "banned");
    assert_eq!(world.plane.sites[0].identities[0].state.end(), Some(NOW + 12 * HOUR));
    // Again after the ban: escalated, 72 h, then for ever. The counts of a day go on.
    for (pause, end) in [(25 * HOUR, Some(72 * HOUR)), (80 * HOUR, None)] {
        world.pass(pause);
        assert_eq!(world.state("i0"), "pending", "the default state after a ban");
        let lease = world.acquire("search").lease.lease_id;
        for _ in 0..3 {
            world.mark(&lease, "captcha_page");
        }
        assert_eq!(world.plane.sites[0].identities[0].state.end(), end.map(|end| world.now + end));
        assert_eq!(world.state("i0"), "banned");
    }
}

#[test]
fn b156_a_login_that_failed_expires_and_a_ban_takes_the_whole_account() {
    let mut world = Setup::new().active(2).open();
    let lease = world.acquire("search").lease;
    world.report(&lease.lease_id, 401);
    assert_eq!(world.state(&lease.identity_id), "expired");
    let lease = world.acquire("search").lease;
    world.mark(&lease.lease_id, "login_redirect");
    assert_eq!(world.state(&lease.identity_id), "expired");
    assert_eq!(world.refused("search"), (Reason::NoIdentityAvailable, 60_000));

    let banned = json!({"rules": [{"when": {"business_code": 13}, "outcome": "banned"}]});
    let mut world = Setup::new().active(4).account("a", 0..3).signal(banned).open();
    let lease = loop {
        let lease = world.acquire("search").lease;
        if lease.identity_id != "i3" {
            break lease.lease_id;
        }
    };
    let report = Report { business_code: "13".into(), ..world.make(&lease, 200) };
    world.send(vec![report]);
    let states = ["i0", "i1", "i2", "i3"].map(|id| world.state(id));
    assert_eq!(states, ["banned", "banned", "banned", "active"]);
}

#[test]
fn b157_a_proxy_error_cools_the_proxy_and_nobody_else() {
    for kind in ["proxy_auth", "conn_refused"] {
        let pool = json!({"proxy": {"mode": "pool"}});
        let mut world = Setup::new().active(1).proxies(&[""]).rotation(pool).open();
        let lease = world.acquire("search").lease.lease_id;
        world.fail(&lease, kind);
        spread(world.plane.sites[0].pool.cooldown(0) - world.now, 120 * SECOND);
        assert_eq!((world.cooldown(0, "search"), world.site_cooldown(0), world.state("i0")), (0, 0, "active".to_owned()));
        assert_eq!(world.plane.sites[0].identities[0].score.samples(), 0);
    }
    let pool = json!({"proxy": {"mode": "pool"}});
    let mut world = Setup::new().active(1).proxies(&[""]).rotation(pool).open();
    let lease = world.acquire("search").lease.lease_id;
    world.fail(&lease, "timeout");
    assert_eq!(world.plane.sites[0].pool.cooldown(0), 0);
    assert_eq!(world.plane.sites[0].proxy_health.get(0).unwrap().score.samples(), 1);
    assert_eq!(world.plane.sites[0].identities[0].score.samples(), 0);
}

#[test]
fn b158_what_blames_nobody_leaves_health_alone() {
    let mut world = Setup::new().active(1).open();
    let lease = world.acquire("search").lease.lease_id;
    for status in [404, 301, 500, 400] {
        world.report(&lease, status);
    }
    world.fail(&lease, "other");
    let identity = &world.plane.sites[0].identities[0];
    assert_eq!((identity.score.samples(), identity.streak.failures()), (0, 0));
}

#[test]
fn b159_a_pending_identity_is_active_after_its_first_success() {
    let mut world = Setup::new().identities(1, Start::Pending).open();
    let lease = world.acquire("search").lease;
    assert!(lease.probe);
    world.mark(&lease.lease_id, "captcha_page");
    assert_eq!(world.state("i0"), "pending");
    world.report(&lease.lease_id, 200);
    assert_eq!(world.state("i0"), "active");
    assert_eq!(world.plane.sites[0].identities[0].activated, Some(NOW));
}

#[test]
fn b160_the_eighteenth_forbidden_puts_into_quarantine() {
    let mut world = Setup::new().active(1).open();
    let lease = world.acquire("search").lease.lease_id;
    for many in 1..=18 {
        assert_eq!((world.state("i0").as_str(), world.cooldown(0, "search")), ("active", 0), "before {many}");
        world.report(&lease, 403);
    }
    assert_eq!(world.state("i0"), "quarantined");
    assert_eq!(world.plane.sites[0].identities[0].state.end(), Some(NOW + 24 * HOUR));
    world.pass(24 * HOUR);
    assert_eq!(world.state("i0"), "pending");
}

#[test]
fn b162_three_identities_on_one_proxy_blame_the_proxy() {
    let pool = json!({"proxy": {"mode": "pool"}});
    let mut setup = Setup::new().active(3).proxies(&[""]).rotation(pool);
    setup.0.proxies[0].proxy.max_concurrency = 3;
    let mut world = setup.open();
    let batch = world.batch("search", 3).unwrap();
    let keys: Vec<u32> = batch.leases.iter().map(|lease| world.plane.sites[0].by_id[lease.lease.identity_id.as_str()]).collect();
    for lease in &batch.leases {
        world.report(&lease.lease.lease_id, 429);
    }
    assert!(world.cooldown(keys[0], "search") > 0 && world.cooldown(keys[1], "search") > 0);
    // The third sees the company: blamed is the proxy. Its streak counts all the same (S 195).
    assert_eq!(world.cooldown(keys[2], "search"), 0);
    assert_eq!(world.plane.sites[0].identities[keys[2] as usize].streak.failures(), 1);
}

#[test]
fn b163_a_late_report_has_no_effect() {
    let mut world = Setup::new().active(1).open();
    let lease = world.acquire("search").lease.lease_id;
    world.report(&lease, 200);
    world.release(&lease).unwrap();
    world.now += 10 * MINUTE;
    world.report(&lease, 429);
    assert!(world.cooldown(0, "search") > 0);
    world.now += 1;
    world.report(&lease, 401);
    assert_eq!(world.state("i0"), "active", "eleven minutes late, for the statistics only");
    world.now += 2 * HOUR;
    let report = world.make(&lease, 200);
    assert_eq!(world.send(vec![report]).rejected[0].reason, "lease_unknown");
}

#[test]
fn b171_a_shadow_policy_changes_no_state() {
    let mut world = Setup::new().active(1).action(json!({"mode": "shadow"})).open();
    let lease = world.acquire("search").lease.lease_id;
    world.report(&lease, 429);
    world.report(&lease, 401);
    world.mark(&lease, "captcha_page");
    assert_eq!((world.cooldown(0, "search"), world.site_cooldown(0), world.state("i0")), (0, 0, "active".to_owned()));
    assert!(world.plane.sites[0].identities[0].score.samples() > 0, "health is kept all the same");
}

#[test]
fn b172_a_hint_counts_where_it_is_trusted_and_no_rule_matches() {
    for (trusted, status, state) in [(false, 404, "active"), (true, 404, "expired"), (true, 200, "active")] {
        let mut signal = json!({"trust_outcome_hint": trusted, "extends": "default-signal"});
        signal["name"] = json!("hinted");
        let mut world = Setup::new().active(1).signal(signal).open();
        let lease = world.acquire("search").lease.lease_id;
        let report = Report { outcome_hint: "auth_invalid".into(), ..world.make(&lease, status) };
        world.send(vec![report]);
        assert_eq!(world.state("i0"), state, "{trusted} {status}");
    }
}

#[test]
fn b193_a_releasing_report_cools_down_before_it_ends_the_lease() {
    let mut world = Setup::new().active(1).open();
    world.cycle("search", 429);
    assert_eq!(world.plane.ledger().sites["shop"].open, 0);
    let (reason, hint) = world.refused("search");
    assert_eq!(reason, Reason::NoIdentityAvailable);
    assert!((48_000..=60_000).contains(&hint), "{hint}");
}

#[test]
fn b199_a_banned_account_is_asked_every_ten_minutes_and_a_cooling_one_later() {
    let cooldown = json!({"rules": [{
        "name": "rest", "when": {"outcome": "rate_limited"}, "action": "cooldown", "scope": "account", "base": "1h", "max": "1h",
    }]});
    let mut world = Setup::new().active(3).account("a", 0..3).action(cooldown).open();
    world.cycle("search", 429);
    assert_eq!(world.refused("item"), (Reason::NoIdentityAvailable, 60_000));
    let rest = world.plane.sites[0].accounts[0].cooldown - world.now;
    spread(rest, HOUR);
    world.now += rest;
    world.acquire("item");

    let mut setup = Setup::new().active(1).account("a", 0..1);
    setup.site().accounts[0].state = crate::plane::seed::AccountStart::Banned;
    let mut world = setup.open();
    assert_eq!(world.refused("search"), (Reason::NoIdentityAvailable, 60_000));
    let site = &world.plane.sites[0];
    let search = &site.groups[site.clients[0].groups[1] as usize];
    assert_eq!(search.queue.earliest(), Some(NOW + 10 * MINUTE));
}

#[test]
fn b155_bans_of_an_account_grow_longer_too() {
    let policy = json!({
        "rules": [{"name": "out", "when": {"outcome": "forbidden"}, "action": "ban", "scope": "account", "duration": "1h"}],
        "escalation": [{"when": {"bans": {"gte": 2, "within": "7d"}}, "duration": "72h"}],
    });
    let mut world = Setup::new().active(2).account("a", 0..2).action(policy).open();
    for length in [HOUR, 72 * HOUR] {
        world.cycle("search", 403);
        let ends: Vec<_> = world.plane.sites[0].identities.iter().map(|identity| identity.state.end()).collect();
        assert_eq!(ends, [Some(world.now + length); 2]);
        assert_eq!(world.refused("search").0, Reason::NoIdentityAvailable);
        world.pass(length);
    }
    assert_eq!(["i0", "i1"].map(|id| world.state(id)), ["pending", "pending"]);
    world.acquire("search");
}
