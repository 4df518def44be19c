//! Breakers through acquires and reports (S 165 to 170, 196 to 198).

use serde_json::{Value, json};

use super::support::*;
use crate::plane::model::config_center::ItemName;
use crate::plane::model::refusal::Reason;
use crate::plane::model::scope::Scopes;

/// A world in which health and actions do not get in the way of counting: identities take many leases, and no rule acts.
fn quiet() -> Setup {
    let calm = json!({"rules": [], "health": {"endpoint_low_score": 0, "quarantine_score": 0}});
    Setup::new().active(3).rotation(json!({"rotation": {"max_concurrent_leases": 10000}})).action(calm)
}

/// Fifty reports, so many of them 429, all within one moment.
fn storm(world: &mut World, risk: usize) {
    for index in 0..50 {
        // The risk first: the last one is evaluated by the job.
        world.cycle("search", if index < risk { 429 } else { 200 });
    }
    world.pass(5 * SECOND);
}

fn breakers(world: &mut World) -> (i32, Value) {
    let name = ItemName { group: "_runtime", key: "breakers" };
    let item = world.plane.config_center().get(&Scopes::everything(), "", name).unwrap();
    (item.version, serde_json::from_str(&item.content).unwrap())
}

#[test]
fn b165_b166_a_storm_opens_then_probes_close_it() {
    let mut world = quiet().open();
    storm(&mut world, 20);
    assert_eq!(world.refused("search"), (Reason::CircuitOpen, 120_000));
    world.acquire("item");
    world.pass(60 * SECOND);
    assert_eq!(world.refused("search"), (Reason::CircuitOpen, 60_000));
    world.pass(60 * SECOND);
    let probes: Vec<_> = (0..5).map(|_| world.acquire("search").lease).collect();
    assert!(probes.iter().all(|lease| lease.probe));
    world.now += 4 * SECOND;
    assert_eq!(world.refused("search"), (Reason::CircuitOpen, 6_000));
    for (index, lease) in probes.iter().enumerate() {
        world.report(&lease.lease_id, if index == 0 { 500 } else { 200 });
    }
    world.pass(5 * SECOND);
    assert!(!world.acquire("search").lease.probe);
}

#[test]
fn b165_a_probe_is_one_lease_of_the_healthiest_and_knows_no_session() {
    let rotation = json!({"rotation": {"max_concurrent_leases": 10000, "sticky": {"enabled": true, "ttl": "10m"}}});
    let calm = json!({"rules": [], "health": {"endpoint_low_score": 0, "quarantine_score": 0}});
    let mut world = Setup::new().active(20).rotation(rotation).action(calm).open();
    let key = |key: &str| crate::spinneret::AcquireRequest::new("shop", "web").endpoint_group("search").session_key(key);
    let kept = world.request(&key("k")).unwrap().lease;
    let best = loop {
        let lease = world.acquire("search").lease;
        if lease.identity_id != kept.identity_id {
            break lease;
        }
    };
    world.report(&best.lease_id, 200);
    world.plane.open_breaker("shop", "web", "search", Some(SECOND), "", world.now).unwrap();
    world.now += SECOND;
    let batch = world.batch("search", 5).unwrap();
    assert_eq!((batch.leases.len(), batch.requested), (1, 5));
    for lease in [batch.leases[0].lease.clone(), world.request(&key("k")).unwrap().lease, world.request(&key("l")).unwrap().lease]
    {
        assert_eq!((lease.identity_id.as_str(), lease.probe, lease.sticky), (best.identity_id.as_str(), true, false));
    }
    world.plane.close_breaker("shop", "web", "search", "", world.now).unwrap();
    let again = world.request(&key("k")).unwrap().lease;
    assert_eq!((again.identity_id.as_str(), again.sticky), (kept.identity_id.as_str(), true));
    assert!(!world.request(&key("l")).unwrap().lease.sticky, "what a probe leased was not remembered");
}

#[test]
fn b166_b197_failed_probes_open_it_again_for_twice_as_long() {
    let mut world = quiet().open();
    storm(&mut world, 50);
    world.now += 2 * MINUTE;
    let probes: Vec<_> = (0..5).map(|_| world.acquire("search").lease).collect();
    for (index, lease) in probes.iter().enumerate() {
        world.report(&lease.lease_id, if index < 2 { 500 } else { 200 });
    }
    world.pass(5 * SECOND);
    assert_eq!(world.refused("search"), (Reason::CircuitOpen, 240_000));
}

#[test]
fn b167_b197_reports_of_others_are_suppressed_only_while_it_is_open() {
    let mut world = Setup::new().active(2).open();
    let lease = world.acquire("search").lease;
    world.plane.open_breaker("shop", "web", "search", Some(MINUTE), "test", world.now).unwrap();
    let identity = world.plane.sites[0].by_id[lease.identity_id.as_str()];
    world.report(&lease.lease_id, 429);
    world.report(&lease.lease_id, 401);
    assert_eq!((world.cooldown(identity, "search"), world.state(&lease.identity_id)), (0, "active".to_owned()));
    assert_eq!(world.plane.ledger().sites["shop"].identities[&lease.identity_id].reports, 2);
    // The time is over; nobody acquired since.
    world.now += MINUTE;
    world.report(&lease.lease_id, 429);
    assert!(world.cooldown(identity, "search") > 0);
}

#[test]
fn b164_a_suppressed_report_releases_all_the_same() {
    let mut world = Setup::new().active(1).open();
    let lease = world.acquire("search").lease.lease_id;
    world.plane.open_breaker("shop", "web", "search", None, "", world.now).unwrap();
    let report = crate::spinneret::Report { release: true, ..world.make(&lease, 429) };
    world.send(vec![report]);
    assert_eq!(world.release(&lease), Ok(false));
    world.acquire("item");
}

#[test]
fn b168_an_automatic_opening_gives_the_cooled_ones_back() {
    let mut world = Setup::new().active(60).open();
    for _ in 0..50 {
        world.cycle("search", 429);
    }
    world.pass(5 * SECOND);
    assert_eq!(world.refused("search").0, Reason::CircuitOpen);
    let site = &world.plane.sites[0];
    let search = &site.groups[site.clients[0].groups[1] as usize];
    let touched =
        (0..60).filter_map(|key| search.states.get(key)).filter(|state| state.cooldown > 0 || state.streak.failures() > 0);
    assert_eq!(touched.count(), 0);
    world.now += 2 * MINUTE;
    world.acquire("search");

    let mut world = Setup::new().active(1).open();
    world.cycle("search", 429);
    world.plane.open_breaker("shop", "web", "search", Some(MINUTE), "", world.now).unwrap();
    assert!(world.cooldown(0, "search") > 0, "one by hand gives nothing back");
}

#[test]
fn b169_a_manual_opening_without_end_stays_until_it_is_closed() {
    let mut world = quiet().open();
    world.plane.open_breaker("shop", "web", "search", None, "sale", world.now).unwrap();
    for _ in 0..3 {
        world.pass(24 * HOUR);
        assert_eq!(world.refused("search"), (Reason::CircuitOpen, 60_000));
    }
    assert!(world.plane.close_breaker("shop", "web", "search", "over", world.now).unwrap());
    assert!(!world.acquire("search").lease.probe);
    let unknown = world.plane.open_breaker("shop", "web", "serch", None, "", world.now).unwrap_err();
    assert_eq!(unknown.reason, Some(Reason::EndpointGroupUnknown));
}

#[test]
fn b170_runtime_lists_what_is_not_closed_and_counts_every_change() {
    let mut world = quiet().open();
    let (version, content) = breakers(&mut world);
    assert_eq!(content["version"], json!(version - 1));
    assert_eq!(content["sites"], json!({"shop": {"paused": false, "groups": {}}}));
    world.plane.open_breaker("shop", "web", "search", None, "sale", world.now).unwrap();
    let (opened, content) = breakers(&mut world);
    assert_eq!(opened, version + 1);
    let expected = json!({"web/search": {"state": "open", "open_until": null, "manual": true, "reason": "sale"}});
    assert_eq!(content["sites"]["shop"]["groups"], expected);
    world.plane.pause("shop", "maintenance", world.now).unwrap();
    let (paused, content) = breakers(&mut world);
    assert_eq!((paused, &content["sites"]["shop"]["paused"]), (version + 2, &json!(true)));
    assert!(!world.plane.pause("shop", "maintenance", world.now).unwrap(), "the same again is no change");
    world.plane.close_breaker("shop", "web", "search", "", world.now).unwrap();
    assert_eq!(breakers(&mut world).0, version + 3);
    let name = ItemName { group: "_runtime", key: "site_switches" };
    let switches = world.plane.config_center().get(&Scopes::everything(), "", name).unwrap();
    assert!(switches.content.contains("maintenance"));
    let scopes = Scopes::parse(["config:read:crawler"]).unwrap();
    let refused = world.plane.config_center().get(&scopes, "", name).unwrap_err();
    assert_eq!(refused.reason, Some(Reason::ScopeMissing));
}

#[test]
fn b196_a_closed_breaker_does_not_trip_on_what_was_before() {
    let mut world = quiet().open();
    storm(&mut world, 50);
    world.plane.close_breaker("shop", "web", "search", "", world.now).unwrap();
    world.cycle("search", 429);
    world.pass(5 * SECOND);
    world.acquire("search");
}

#[test]
fn b198_without_reports_of_probes_it_goes_on_probing() {
    let mut world = quiet().open();
    storm(&mut world, 50);
    world.now += 2 * MINUTE;
    for _ in 0..20 {
        for _ in 0..5 {
            assert!(world.acquire("search").lease.probe);
        }
        assert_eq!(world.refused("search"), (Reason::CircuitOpen, 10_000));
        world.pass(10 * SECOND);
    }
    assert_eq!(breakers(&mut world).1["sites"]["shop"]["groups"]["web/search"]["state"], json!("half_open"));
}

#[test]
fn the_plane_says_when_it_has_something_to_do() {
    let mut world = quiet().open();
    assert_eq!(world.plane.next_due(), None);
    world.cycle("search", 200);
    assert_eq!(world.plane.next_due(), Some(NOW + 5 * SECOND), "the breaker");
    world.pass(10 * MINUTE);
    assert_eq!(world.plane.next_due(), None);
    world.acquire("search");
    assert_eq!(world.plane.next_due(), Some(world.now + 120 * SECOND), "the lease");
}

#[test]
fn b167_a_probe_is_heard_even_when_its_breaker_has_opened_again() {
    let mut world = Setup::new().active(1).open();
    world.plane.open_breaker("shop", "web", "search", Some(SECOND), "", world.now).unwrap();
    world.now += SECOND;
    let probe = world.acquire("search").lease;
    assert!(probe.probe);
    world.plane.open_breaker("shop", "web", "search", None, "", world.now).unwrap();
    world.report(&probe.lease_id, 429);
    assert!(world.cooldown(0, "search") > 0);
}

#[test]
fn b163_a_late_report_counts_for_the_breaker_but_is_no_probe_any_more() {
    let mut world = Setup::new().active(1).open();
    world.plane.open_breaker("shop", "web", "search", Some(SECOND), "", world.now).unwrap();
    world.now += SECOND;
    let probe = world.acquire("search").lease.lease_id;
    world.report(&probe, 200);
    world.release(&probe).unwrap();
    let seen = |world: &World| {
        let group = world.plane.sites[0].groups.iter().find(|group| *group.name == *"search").unwrap();
        (group.breaker.probes().samples, group.breaker.sums(world.now, &group.rules.breaker).total)
    };
    assert_eq!(seen(&world), (1, 1));
    world.now += 11 * MINUTE;
    world.report(&probe, 200);
    assert_eq!(seen(&world), (1, 1), "the one of eleven minutes ago has left the window, this one is in it");
}

#[test]
fn b168_a_cooldown_that_another_group_made_longer_is_not_taken_back() {
    let policy = json!({"min_requests": 2, "revert_recent_cooldowns": "all"});
    let rotation = json!({"rotation": {"max_concurrent_leases": 9}});
    let mut world = Setup::new().active(1).rotation(rotation).breaker(policy).open();
    let [search, item] = ["search", "item"].map(|group| world.acquire(group).lease.lease_id);
    world.mark(&search, "captcha_page");
    world.mark(&item, "captcha_page");
    let longer = world.site_cooldown(0);
    assert!(longer >= 48 * MINUTE);
    world.now += SECOND;
    world.report(&search, 429);
    assert_eq!(world.refused("search").0, Reason::CircuitOpen);
    assert_eq!((world.cooldown(0, "search"), world.site_cooldown(0)), (0, longer - SECOND));
    assert_eq!(world.plane.sites[0].identities[0].streak.failures(), 3);

    // What only this group did is.
    let policy = json!({"min_requests": 2, "revert_recent_cooldowns": "all"});
    let mut world = Setup::new().active(1).breaker(policy).open();
    let search = world.acquire("search").lease.lease_id;
    world.mark(&search, "captcha_page");
    world.now += SECOND;
    world.mark(&search, "captcha_page");
    assert_eq!(world.refused("search").0, Reason::CircuitOpen);
    assert_eq!((world.site_cooldown(0), world.plane.sites[0].identities[0].streak.failures()), (0, 0));
}
