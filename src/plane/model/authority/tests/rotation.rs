//! Quotas and strategies through the whole plane (S 142, 143, 194).

use serde_json::json;

use super::support::*;
use crate::plane::model::refusal::Reason;
use crate::plane::seed::Start;

#[test]
fn b142_a_quota_is_refused_until_its_window_slides() {
    let quota = json!({"rotation": {"quota": [{"limit": 2, "window": "1m"}]}});
    let mut world = Setup::new().active(1).rotation(quota).open();
    world.cycle("search", 200);
    world.cycle("search", 200);
    assert_eq!(world.refused("search"), (Reason::NoIdentityAvailable, 60_000));
    world.cycle("item", 200);
    world.now += 90 * SECOND - 1;
    assert_eq!(world.refused("search").0, Reason::NoIdentityAvailable);
    world.now += 2;
    world.cycle("search", 200);
    assert_eq!(world.refused("search").0, Reason::NoIdentityAvailable);
}

#[test]
fn b142_a_young_identity_has_half_its_quota_but_one_at_least() {
    for (limit, allowed) in [(4, 2), (1, 1)] {
        let rotation = json!({"rotation": {
            "quota": [{"limit": limit, "window": "1h"}], "warmup": {"duration": "10m", "quota_factor": 0.5},
        }});
        let mut world = Setup::new().active(1).rotation(rotation).open();
        for _ in 0..allowed {
            world.cycle("search", 200);
        }
        assert_eq!(world.refused("search").0, Reason::NoIdentityAvailable);
    }
}

#[test]
fn b194_the_second_report_of_a_lease_costs_a_unit_more() {
    let quota = json!({"rotation": {"quota": [{"limit": 3, "window": "1h"}]}});
    let mut world = Setup::new().active(1).rotation(quota).open();
    let lease = world.acquire("search").lease.lease_id;
    world.report(&lease, 200);
    world.report(&lease, 200);
    world.release(&lease).unwrap();
    world.cycle("search", 200);
    assert_eq!(world.refused("search").0, Reason::NoIdentityAvailable);
}

#[test]
fn b143_least_recently_used_and_round_robin_take_turns() {
    for strategy in ["least_recently_used", "round_robin"] {
        let mut world = Setup::new().active(3).rotation(json!({"rotation": {"strategy": strategy}})).open();
        let order: Vec<String> = (0..7)
            .map(|_| {
                world.now += 1;
                world.cycle("search", 200)
            })
            .collect();
        assert_eq!(order, ["i0", "i1", "i2", "i0", "i1", "i2", "i0"], "{strategy}");
    }
}

#[test]
fn b143_best_health_keeps_to_the_best() {
    let mut world = Setup::new().active(3).rotation(json!({"rotation": {"strategy": "best_health"}})).open();
    let batch = world.batch("search", 3).unwrap();
    let second = batch.leases.iter().find(|lease| lease.lease.identity_id == "i1").unwrap().lease.lease_id.clone();
    world.report(&second, 200);
    for lease in &batch.leases {
        world.release(&lease.lease.lease_id).unwrap();
    }
    assert!((0..5).all(|_| world.cycle("search", 200) == "i1"));
}

#[test]
fn b143_weighted_random_draws_by_the_square_of_health() {
    let rotation = json!({"rotation": {"max_concurrent_leases": 10000, "probe": {"max_leases": 10000}}});
    let mut setup = Setup::new().identities(1, Start::Pending).active(2).rotation(rotation);
    setup.site().identities[2].id = "low".into();
    let mut world = setup.open();
    // A score of 35: seven forbidden in a row from 70 give 36.9, so it is set.
    let site = &mut world.plane.sites[0];
    let numbers = crate::plane::model::score::ScoreNumbers { alpha: 1.0, ..Default::default() };
    let search = site.clients[0].groups[1] as usize;
    site.groups[search].states.entry(2).score.observe(35.0, NOW, &numbers);
    let mut counts = [0.0_f64; 3];
    for _ in 0..9_000 {
        let lease = world.acquire("search").lease;
        counts[["i0", "i1", "low"].iter().position(|id| *id == lease.identity_id).unwrap()] += 1.0;
        world.release(&lease.lease_id).unwrap();
    }
    let weights = [490.0, 4_900.0, 1_225.0];
    let expected = weights.map(|weight| weight / 6_615.0 * 9_000.0);
    let statistic: f64 = counts.iter().zip(expected).map(|(count, expected)| (count - expected).powi(2) / expected).sum();
    assert!(statistic < 13.8, "{counts:?}");
}

#[test]
fn a_policy_may_lease_one_type_only() {
    let mut setup = Setup::new()
        .active(2)
        .rotation(json!({"identity_types": ["member"], "bind": {"site": "shop", "client": "web", "endpoint_group": "item"}}));
    setup.site().identities[1].kind = "member".into();
    let mut world = setup.open();
    assert_eq!(world.acquire("item").lease.identity_type, "member");
    assert_eq!(world.refused("item").0, Reason::NoIdentityAvailable);
    assert_eq!(world.acquire("search").lease.identity_id, "i0");
}
