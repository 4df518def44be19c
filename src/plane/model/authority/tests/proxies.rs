//! Proxies through the whole plane (S 148).

use std::collections::BTreeSet;

use serde_json::json;

use super::support::*;
use crate::plane::model::refusal::Reason;

#[test]
fn b148_a_proxy_serves_one_lease_and_is_given_back() {
    let mut world = Setup::new().active(3).proxies(&["", ""]).rotation(json!({"proxy": {"mode": "pool"}})).open();
    let leases: Vec<_> = (0..2).map(|_| world.acquire("search")).collect();
    let urls: BTreeSet<_> = leases.iter().map(|lease| lease.proxy.clone().unwrap().url).collect();
    assert_eq!(urls.into_iter().collect::<Vec<_>>(), ["http://user:pass@p0.test:3128", "http://user:pass@p1.test:3128"]);
    assert_eq!(world.refused("search"), (Reason::NoProxyAvailable, 1_000));
    world.release(&leases[0].lease.lease_id).unwrap();
    assert_eq!(world.acquire("search").proxy.unwrap().proxy_id, leases[0].proxy.clone().unwrap().proxy_id);
}

#[test]
fn b148_regions_have_to_match() {
    let region = json!({"proxy": {"mode": "region_match"}});
    let mut setup = Setup::new().active(2).proxies(&["eu", ""]).rotation(region);
    setup.site().identities[0].attributes.region = Some("eu".into());
    setup.site().identities[1].attributes.region = Some("us".into());
    let mut world = setup.open();
    let lease = world.acquire("search");
    assert_eq!((lease.lease.identity_id.as_str(), lease.proxy.unwrap().region.as_str()), ("i0", "eu"));
    assert_eq!(world.refused("search").0, Reason::NoProxyAvailable);
}

#[test]
fn b148_a_bound_identity_keeps_its_proxy_waits_and_changes_three_times_a_day() {
    let bind = json!({"proxy": {"mode": "bind_identity"}});
    let mut world = Setup::new().active(1).proxies(&[""; 6]).rotation(bind).open();
    let through = |world: &mut World| {
        let answer = world.acquire("search");
        world.release(&answer.lease.lease_id).unwrap();
        answer.proxy.unwrap().proxy_id
    };
    let first = through(&mut world);
    assert!((0..5).all(|_| through(&mut world) == first));
    let cool = |world: &mut World, id: &str, time| {
        let key = world.plane.catalogue.find(id).unwrap();
        let now = world.now;
        world.plane.sites[0].pool.cool(key, now + time, now);
    };
    cool(&mut world, &first, 5 * MINUTE);
    assert_eq!(world.refused("search"), (Reason::NoIdentityAvailable, 60_000));
    world.now += 5 * MINUTE;
    let mut current = through(&mut world);
    assert_eq!(current, first);
    for _ in 0..3 {
        cool(&mut world, &current, 24 * HOUR);
        let next = through(&mut world);
        assert_ne!(next, current);
        current = next;
    }
    cool(&mut world, &current, 48 * HOUR);
    assert_eq!(world.refused("search").0, Reason::NoIdentityAvailable);
    world.now = NOW + 24 * HOUR;
    assert_ne!(through(&mut world), current);
}

#[test]
fn a_proxy_the_file_reserves_is_for_its_identity_alone() {
    let mut setup = Setup::new().active(2).proxies(&["", ""]).rotation(json!({"proxy": {"mode": "pool"}}));
    setup.0.proxies[0].reserved_for = Some("i0".into());
    setup.site().identities[0].proxy = Some("p0".into());
    let mut world = setup.open();
    for _ in 0..20 {
        let batch = world.batch("search", 2).unwrap();
        for lease in batch.leases {
            let expected = if lease.lease.identity_id == "i0" { "p0" } else { "p1" };
            assert_eq!(lease.proxy.unwrap().proxy_id, expected);
            world.release(&lease.lease.lease_id).unwrap();
        }
    }
}

#[test]
fn after_three_candidates_without_a_proxy_the_attempt_ends() {
    let mut world = Setup::new().active(10).rotation(json!({"proxy": {"mode": "pool"}})).open();
    assert_eq!(world.refused("search"), (Reason::NoProxyAvailable, 1_000));
    assert_eq!(world.plane.ledger().sites["shop"].acquired, 0);
}

#[test]
fn a_proxy_comes_back_when_its_ban_or_quarantine_is_over() {
    for action in ["ban", "quarantine"] {
        let rule =
            json!({"name": "out", "when": {"outcome": "proxy_error"}, "action": action, "scope": "proxy", "duration": "1h"});
        let pool = json!({"proxy": {"mode": "pool"}});
        let mut world = Setup::new().active(1).proxies(&[""]).rotation(pool).action(json!({"rules": [rule]})).open();
        let lease = world.acquire("search").lease.lease_id;
        world.fail(&lease, "proxy_auth");
        world.release(&lease).unwrap();
        assert_eq!(world.refused("search").0, Reason::NoProxyAvailable, "{action}");
        world.pass(HOUR - 1);
        assert_eq!(world.refused("search").0, Reason::NoProxyAvailable, "{action}");
        world.pass(10 * SECOND);
        assert_eq!(world.acquire("search").proxy.unwrap().proxy_id, "p0", "{action}");
    }
}
