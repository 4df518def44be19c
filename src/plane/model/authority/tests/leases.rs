//! Leases: who may, where, how long (S 131 to 151).

use serde_json::json;

use super::support::*;
use crate::plane::model::Ms;
use crate::plane::model::refusal::Reason;
use crate::plane::seed::{Given, Start};
use crate::spinneret::{AcquireRequest, Report};

#[test]
fn b131_unknown_places_and_bad_uris_are_told_apart() {
    let mut world = Setup::new().active(1).open();
    for (site, client, group, uri, reason) in [
        ("", "web", "", "/", Reason::InvalidArgument),
        ("shoe", "web", "", "/", Reason::SiteUnknown),
        ("shop", "app", "", "/", Reason::ClientUnknown),
        ("shop", "web", "serch", "/", Reason::EndpointGroupUnknown),
        ("shop", "web", "", "search", Reason::UriInvalid),
        ("shop", "web", "", "/a b", Reason::UriInvalid),
    ] {
        let request = AcquireRequest::new(site, client).endpoint_group(group).uri(uri);
        assert_eq!(world.request(&request).unwrap_err().reason, Some(reason), "{site}/{client}/{group} {uri}");
    }
    let long = AcquireRequest { wait_ms: 5_001, ..AcquireRequest::new("shoe", "web") };
    assert_eq!(world.request(&long).unwrap_err().reason, Some(Reason::InvalidArgument), "before the site");
}

#[test]
fn b132_b133_the_uri_finds_the_group() {
    for (uri, group) in [
        ("/search/items?q=1", "search"),
        ("https://h/search/x", "search"),
        ("/item/7", "item"),
        ("/item/", "_default"),
        ("/elsewhere", "_default"),
        ("", "_default"),
    ] {
        let mut world = Setup::new().active(1).open();
        let lease = world.request(&AcquireRequest::new("shop", "web").uri(uri)).unwrap();
        assert_eq!(lease.lease.endpoint_group, group, "{uri}");
    }
}

#[test]
fn b134_a_lease_has_an_id_of_the_form_and_renews_in_its_last_quarter() {
    let mut world = Setup::new().active(1).open();
    let answer = world.acquire("search");
    let parts: Vec<&str> = answer.lease.lease_id.split('_').collect();
    assert_eq!((parts.len(), parts[0], parts[1].len(), parts[2], parts[3].len()), (4, "lse", 32, "0", 2));
    assert_eq!(answer.hints.renew_before_ms, 30_000);
    assert_eq!(answer.lease.expires_at.unwrap().as_millisecond() as Ms, NOW + 120 * SECOND);
    assert_eq!((answer.lease.identity_type.as_str(), answer.lease.probe, answer.lease.sticky), ("plain", false, false));
    assert_eq!(answer.credential.headers["x-id"], answer.lease.identity_id);
    assert!(answer.proxy.is_none());
}

#[test]
fn b135_a_batch_is_of_distinct_identities_and_may_be_short() {
    let mut world = Setup::new().active(5).open();
    let batch = world.batch("search", 3).unwrap();
    let mut ids: Vec<_> = batch.leases.iter().map(|lease| lease.lease.identity_id.clone()).collect();
    ids.sort();
    ids.dedup();
    assert_eq!((ids.len(), batch.requested), (3, 3));
    let batch = world.batch("search", 3).unwrap();
    assert_eq!((batch.leases.len(), batch.requested), (2, 3));
    assert_eq!(world.batch("search", 3).unwrap_err().reason, Some(Reason::NoIdentityAvailable));
    assert_eq!(world.batch("search", 51).unwrap_err().reason, Some(Reason::InvalidArgument));
}

#[test]
fn b136_an_exclusive_identity_is_away_from_all_groups() {
    let mut world = Setup::new().active(1).open();
    let lease = world.acquire("search").lease.lease_id;
    assert_eq!(world.refused("item"), (Reason::NoIdentityAvailable, 60_000));
    assert_eq!(world.refused("search"), (Reason::NoIdentityAvailable, 60_000));
    world.pass(SECOND);
    assert_eq!(world.release(&lease), Ok(true));
    world.acquire("item");
}

#[test]
fn b136_an_identity_takes_as_many_leases_as_it_may_and_a_pending_one_two() {
    let three = json!({"rotation": {"max_concurrent_leases": 3}});
    let mut world = Setup::new().active(1).rotation(three.clone()).open();
    let leases: Vec<_> = ["search", "item", "search"].map(|group| world.acquire(group).lease.lease_id).into();
    assert_eq!(world.refused("item"), (Reason::NoIdentityAvailable, 5_000));
    world.release(&leases[0]).unwrap();
    world.acquire("item");
    let mut world = Setup::new().identities(1, Start::Pending).rotation(three).open();
    assert!(world.acquire("search").lease.probe && world.acquire("search").lease.probe);
    assert_eq!(world.refused("search").0, Reason::NoIdentityAvailable);
}

#[test]
fn b137_renewals_prolong_up_to_the_cap() {
    let mut world = Setup::new().active(1).open();
    let lease = world.acquire("search").lease.lease_id;
    let mut renew = |at: Ms, extend| {
        world.now = NOW + at * SECOND;
        world.renew(&lease, extend).map(|until| (until - NOW) / SECOND)
    };
    assert_eq!(renew(100, 0), Ok(220));
    assert_eq!(renew(200, 600_000), Ok(800));
    assert_eq!(renew(300, 1_000), Ok(800));
    assert_eq!(renew(700, 1_800_000), Ok(1_800));
    assert_eq!(renew(701, 0), Err(Reason::LeaseLifetimeExceeded));
    assert_eq!(renew(1_800, 0), Err(Reason::LeaseExpired));
    world.pass(SECOND);
    assert_eq!(world.renew(&lease, 0), Err(Reason::LeaseExpired));
    let lease = world.acquire("search").lease.lease_id;
    world.release(&lease).unwrap();
    assert_eq!(world.renew(&lease, 0), Err(Reason::LeaseReleased));
    assert_eq!(world.renew(&lease, 1_800_001), Err(Reason::InvalidArgument));
}

#[test]
fn b137_a_renewed_exclusive_lease_keeps_its_identity_to_itself() {
    let mut world = Setup::new().active(1).open();
    let lease = world.acquire("search").lease.lease_id;
    world.pass(100 * SECOND);
    world.renew(&lease, 0).unwrap();
    world.pass(60 * SECOND);
    assert_eq!(world.refused("search").0, Reason::NoIdentityAvailable);
    world.pass(60 * SECOND);
    world.acquire("search");
}

#[test]
fn b138_releasing_twice_then_too_late_then_somebody_elses() {
    let mut world = Setup::new().active(1).open();
    let lease = world.acquire("search").lease.lease_id;
    assert_eq!(world.release(&lease), Ok(true));
    assert_eq!(world.release(&lease), Ok(false));
    world.pass(11 * MINUTE);
    assert_eq!(world.release(&lease), Err(Reason::LeaseUnknown));
    let lease = world.acquire("search").lease.lease_id;
    for foreign in ["nonsense", "lse_00000000000000000000000000000000_zz_00", "lse_00000000000000000000000000000000_0_00"] {
        assert_eq!(world.release(foreign), Err(Reason::LeaseUnknown));
    }
    for other in [Setup::new().scopes(&["lease:acquire:other"]), Setup::new().token(|token| token.token.namespace = "dev".into())]
    {
        world.token = other.open().token;
        assert_eq!(world.release(&lease), Err(Reason::LeaseUnknown));
        assert_eq!(world.renew(&lease, 0), Err(Reason::LeaseUnknown));
    }
}

#[test]
fn b139_a_forgotten_lease_ends_by_itself() {
    let mut world = Setup::new().active(1).open();
    world.acquire("search");
    assert_eq!(world.plane.next_due(), Some(NOW + 120 * SECOND));
    world.now += 120 * SECOND - 1;
    assert_eq!(world.refused("search"), (Reason::NoIdentityAvailable, 50));
    world.now += 1;
    world.acquire("search");
    let ledger = &world.plane.ledger().sites["shop"];
    assert_eq!((ledger.acquired, ledger.released, ledger.expired, ledger.open, ledger.abandoned), (2, 0, 1, 1, 1));
    assert_eq!((ledger.identities["i0"].expired, ledger.identities["i0"].open), (1, 1));
}

#[test]
fn b140_an_identity_rests_from_its_anchor_in_its_scope() {
    for (anchor, scope, here, there) in [
        ("released", "endpoint_group", 30, 0),
        ("released", "site", 30, 30),
        ("acquired", "endpoint_group", 20, 0),
        ("acquired", "site", 20, 20),
    ] {
        let rotation = json!({"reuse_interval": "30s", "reuse_anchor": anchor, "reuse_scope": scope});
        for (group, wait) in [("search", here), ("item", there)] {
            let mut world = Setup::new().active(1).rotation(json!({"rotation": rotation})).open();
            let lease = world.acquire("search").lease.lease_id;
            world.pass(10 * SECOND);
            world.release(&lease).unwrap();
            if wait > 0 {
                assert_eq!(world.refused(group).1, wait * SECOND, "{anchor} {scope} {group}");
                world.now += wait * SECOND - 1;
                assert_eq!(world.refused(group).0, Reason::NoIdentityAvailable);
                world.now += 1;
            }
            world.acquire(group);
        }
    }
}

#[test]
fn b141_a_session_keeps_its_identity_beyond_the_reuse_interval() {
    let rotation = json!({"rotation": {"sticky": {"enabled": true, "ttl": "1m"}, "reuse_interval": "10m"}});
    let mut world = Setup::new().active(4).rotation(rotation).open();
    let request = AcquireRequest::new("shop", "web").endpoint_group("search").session_key("user 42/ü");
    let first = world.request(&request).unwrap().lease;
    assert!(!first.sticky);
    world.release(&first.lease_id).unwrap();
    for _ in 0..3 {
        world.pass(59 * SECOND);
        let again = world.request(&request).unwrap().lease;
        assert_eq!((again.identity_id, again.sticky), (first.identity_id.clone(), true));
        world.release(&again.lease_id).unwrap();
    }
    // Cooling down, it falls back, and the key follows.
    let lease = world.request(&request).unwrap().lease;
    world.report(&lease.lease_id, 429);
    world.release(&lease.lease_id).unwrap();
    let other = world.request(&request).unwrap().lease;
    assert!(!other.sticky && other.identity_id != first.identity_id);
    world.release(&other.lease_id).unwrap();
    let again = world.request(&request).unwrap().lease;
    assert_eq!((again.identity_id, again.sticky), (other.identity_id, true));
    // For several at once the key is not looked at.
    let batch = crate::spinneret::AcquireBatchRequest::new(request, 2);
    let batch = world.plane.acquire_batch(&world.token, &batch, world.now).unwrap();
    assert!(batch.leases.iter().all(|lease| !lease.lease.sticky));
}

#[test]
fn b141_a_batch_neither_reads_nor_writes_a_session() {
    let rotation = json!({"rotation": {"sticky": {"enabled": true, "ttl": "10m"}, "strategy": "round_robin"}});
    let mut world = Setup::new().active(3).rotation(rotation).open();
    let request = AcquireRequest::new("shop", "web").endpoint_group("search").session_key("k");
    let first = world.request(&request).unwrap().lease;
    world.release(&first.lease_id).unwrap();
    let batch = crate::spinneret::AcquireBatchRequest::new(request.clone(), 2);
    let batch = world.plane.acquire_batch(&world.token, &batch, world.now).unwrap();
    let ids: Vec<_> = batch.leases.iter().map(|lease| (lease.lease.identity_id.as_str(), lease.lease.sticky)).collect();
    assert_eq!((first.identity_id.as_str(), &ids[..]), ("i0", &[("i1", false), ("i2", false)][..]));
    let again = world.request(&request).unwrap().lease;
    assert_eq!((again.identity_id.as_str(), again.sticky), ("i0", true));
}

#[test]
fn b135_a_batch_looks_at_as_many_as_it_asks_for_however_small_the_sample() {
    let mut world = Setup::new().active(10).rotation(json!({"rotation": {"candidate_sample": 1}})).open();
    assert_eq!(world.batch("search", 8).unwrap().leases.len(), 8);
}

#[test]
fn b136_a_lease_that_ends_frees_its_place_in_all_groups() {
    let mut world = Setup::new().active(1).rotation(json!({"rotation": {"max_concurrent_leases": 2}})).open();
    let search = world.acquire("search").lease.lease_id;
    world.acquire("item");
    world.release(&search).unwrap();
    world.acquire("item");
}

#[test]
fn b144_hints_follow_the_earliest_identity() {
    let mut world = Setup::new().open();
    assert_eq!(world.refused("search"), (Reason::NoIdentityAvailable, 60_000));
    let rotation = json!({"rotation": {"reuse_interval": "5s"}});
    let mut world = Setup::new().active(1).rotation(rotation).open();
    world.cycle("search", 200);
    assert_eq!(world.refused("search").1, 5_000);
    world.now += 4_990;
    assert_eq!(world.refused("search").1, 50);
}

#[test]
fn b146_a_paused_site_refuses_acquires_and_nothing_else() {
    let mut world = Setup::new().active(1).open();
    let lease = world.acquire("search").lease.lease_id;
    assert!(world.plane.pause("shop", "maintenance", world.now).unwrap());
    assert_eq!(world.refused("search"), (Reason::SitePaused, 30_000));
    assert_eq!(world.refused("unknown"), (Reason::SitePaused, 30_000), "before the group");
    assert!(world.renew(&lease, 300_000).is_ok());
    world.report(&lease, 200);
    assert_eq!(world.release(&lease), Ok(true));
    let token = std::mem::replace(&mut world.token, Setup::new().scopes(&["lease:acquire:other"]).open().token);
    assert_eq!(world.refused("search").0, Reason::ScopeMissing, "who may not lease learns nothing of the pause");
    world.token = token;
    assert!(world.plane.resume("shop").unwrap());
    world.acquire("search");
}

#[test]
fn b137_an_exclusive_lease_that_is_renewed_stays_so_for_groups_that_share() {
    let bind = json!({"site": "shop", "client": "web", "endpoint_group": "search"});
    let alone = json!({"name": "alone", "bind": bind, "rotation": {"max_concurrent_leases": 1}});
    let mut world = Setup::new().active(1).rotation(json!({"rotation": {"max_concurrent_leases": 3}})).rotation(alone).open();
    let lease = world.acquire("search").lease.lease_id;
    world.pass(100 * SECOND);
    assert_eq!(world.renew(&lease, 0), Ok(NOW + 220 * SECOND));
    world.pass(50 * SECOND);
    assert_eq!(world.refused("item"), (Reason::NoIdentityAvailable, 60_000));
    assert_eq!(world.release(&lease), Ok(true));
    world.acquire("item");
    world.acquire("item");
}

#[test]
fn b139_b140_who_expired_rests_from_the_expiry_on_however_late_that_is_noticed() {
    let mut world = Setup::new().active(1).rotation(json!({"rotation": {"reuse_interval": "30s"}})).open();
    world.acquire("search");
    world.now += 140 * SECOND;
    assert_eq!(world.refused("search"), (Reason::NoIdentityAvailable, 10_000));
}

#[test]
fn b200_a_probe_that_cannot_be_rendered_gives_its_slot_back() {
    let mut world = keyed(Setup::new().active(1)).open();
    world.plane.open_breaker("shop", "web", "search", Some(SECOND), "", world.now).unwrap();
    world.now += SECOND;
    for _ in 0..8 {
        assert_eq!(world.try_acquire("search").unwrap_err().reason, Some(Reason::Internal));
    }
    let secret = secrecy::SecretString::from("plain");
    world.plane.config_center().secrets_mut().put("shop/key", secret, None).unwrap();
    assert!(world.acquire("search").lease.probe);
}

/// The first identity's credential is a secret that is not there.
fn keyed(mut setup: Setup) -> Setup {
    let kind = crate::plane::model::identity_type::IdentityType::read(&json!({
        "name": "keyed", "client": "web", "fields": {"key": {"type": "secret_ref", "required": true}},
        "deliver": {"headers": {"x-key": "{{ key }}"}},
    }))
    .unwrap();
    let payload = crate::plane::model::identity_type::Payload::new(
        &kind,
        json!({"key": "shop/key"}).as_object().cloned().unwrap(),
        crate::plane::model::identity_type::Source::Json,
    )
    .unwrap();
    setup.site().identities[0].given = Given::Typed { kind: kind.into(), payload };
    setup
}

#[test]
fn b147_b200_a_lease_that_cannot_be_rendered_is_taken_back_whole() {
    let rotation = json!({"rotation": {
        "quota": [{"limit": 1, "window": "1h"}], "reuse_interval": "1h", "reuse_anchor": "acquired",
    }});
    let mut world = keyed(Setup::new().active(1).rotation(rotation)).open();
    for _ in 0..3 {
        assert_eq!(world.try_acquire("search").unwrap_err().reason, Some(Reason::Internal));
    }
    let secret = secrecy::SecretString::from("plain");
    world.plane.config_center().secrets_mut().put("shop/key", secret, None).unwrap();
    assert_eq!(world.acquire("search").credential.headers["x-key"], "plain");
    let ledger = &world.plane.ledger().sites["shop"];
    assert_eq!((ledger.acquired, ledger.released, ledger.aborted, ledger.open), (4, 3, 3, 1));
}

#[test]
fn b149_tokens_are_told_apart() {
    let mut world = Setup::new().active(1).scopes(&["lease:acquire:other"]).open();
    assert_eq!(world.refused("search").0, Reason::ScopeMissing);
    assert!(world.enter().is_ok());
    let reason = |world: &mut World| world.enter().unwrap_err().reason;
    assert_eq!(reason(&mut Setup::new().token(|token| token.is_revoked = true).open()), Some(Reason::TokenRevoked));
    assert_eq!(reason(&mut Setup::new().token(|token| token.token.expires_at = Some(NOW)).open()), Some(Reason::TokenExpired));
    let refused = |header| world.plane.enter(header, None, NOW).unwrap_err().reason;
    let mut refused = refused;
    assert_eq!(refused(Some("Bearer spn_unknown")), Some(Reason::TokenInvalid));
    assert_eq!(refused(None), Some(Reason::SessionInvalid));
}

#[test]
fn b150_a_limited_token_waits_for_its_next_call() {
    let mut world = Setup::new().rate(1).open();
    assert!(world.enter().is_ok());
    world.now += 400;
    let refusal = world.enter().unwrap_err();
    assert_eq!((refusal.reason, refusal.retry_after), (Some(Reason::RateLimited), Some(600)));
    world.now += 600;
    assert!(world.enter().is_ok());
}

#[test]
fn b164_a_releasing_report_ends_the_lease_at_its_processing_time() {
    let mut world = Setup::new().active(1).open();
    let lease = world.acquire("search").lease.lease_id;
    let report = Report { release: true, ..world.make(&lease, 200) };
    world.send(vec![report]);
    assert_eq!(world.release(&lease), Ok(false));
    world.acquire("search");
}

#[test]
fn a_belated_report_does_not_hold_the_identity_back_in_its_group() {
    let mut world = Setup::new().active(1).open();
    let early = world.acquire("item").lease.lease_id;
    world.release(&early).unwrap();
    let lease = world.acquire("search").lease.lease_id;
    world.report(&early, 429);
    world.pass(73 * SECOND);
    world.release(&lease).unwrap();
    world.acquire("item");
}
