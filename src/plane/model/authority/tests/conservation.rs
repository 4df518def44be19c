//! Laws that hold whatever is called in whatever order.

use proptest::prelude::*;
use serde_json::json;

use super::support::*;
use crate::dice::Dice;
use crate::plane::model::Ms;
use crate::plane::model::authority::site::Rest;
use crate::plane::seed::Start;
use crate::spinneret::Report;

/// One call. Leases are named by their number, modulo those there were.
#[derive(Debug, Clone)]
enum Call {
    Acquire(usize),
    Batch(usize, i32),
    Report(usize, i32, bool),
    Captcha(usize),
    Release(usize),
    Renew(usize, i32),
    Pass(Ms),
    Breaker(usize, Option<Ms>),
    Close(usize),
    Pause(bool),
    Reload,
}

const GROUPS: [&str; 3] = ["search", "item", "_default"];

fn calls() -> impl Strategy<Value = Vec<Call>> {
    let lease = 0_usize..1_000;
    let group = 0_usize..3;
    let statuses = prop_oneof![6 => Just(200), 2 => Just(429), 1 => Just(403), 1 => Just(401), 1 => Just(500)];
    let call = prop_oneof![
        8 => group.clone().prop_map(Call::Acquire),
        2 => (group.clone(), 1..6_i32).prop_map(|(group, count)| Call::Batch(group, count)),
        6 => (lease.clone(), statuses, any::<bool>()).prop_map(|(lease, status, release)| Call::Report(lease, status, release)),
        1 => lease.clone().prop_map(Call::Captcha),
        4 => lease.clone().prop_map(Call::Release),
        1 => (lease, 0..600_000_i32).prop_map(|(lease, extend)| Call::Renew(lease, extend)),
        3 => prop_oneof![0..2_000_u64, 0..200_000_u64].prop_map(Call::Pass),
        1 => (group.clone(), prop::option::of(1..100_000_u64)).prop_map(|(group, time)| Call::Breaker(group, time)),
        1 => group.prop_map(Call::Close),
        1 => any::<bool>().prop_map(Call::Pause),
        1 => Just(Call::Reload),
    ];
    prop::collection::vec(call, 1..120)
}

fn setup(concurrent: u32, proxied: bool) -> Setup {
    let mode = if proxied { "pool" } else { "none" };
    let quota = if proxied { json!([{"limit": 20, "window": "1m"}]) } else { json!([]) };
    let rotation = json!({
        "rotation": {"max_concurrent_leases": concurrent, "reuse_interval": "1s", "quota": quota}, "proxy": {"mode": mode},
    });
    Setup::new().identities(2, Start::Pending).active(4).account("a", 1..4).proxies(&["", "", ""]).rotation(rotation)
}

/// Makes the calls, checking the laws after each; answers all that was given out.
fn run(calls: &[Call], concurrent: u32, proxied: bool) -> (World, Vec<String>) {
    let mut world = setup(concurrent, proxied).open_with(Dice::new(3));
    let mut leases: Vec<String> = Vec::new();
    for call in calls {
        let lease = |number: usize| leases.get(number % leases.len().max(1)).cloned().unwrap_or_default();
        match call {
            Call::Acquire(group) => leases.extend(world.try_acquire(GROUPS[*group]).map(|answer| answer.lease.lease_id)),
            Call::Batch(group, count) => {
                let answers = world.batch(GROUPS[*group], *count).map(|batch| batch.leases).unwrap_or_default();
                leases.extend(answers.into_iter().map(|answer| answer.lease.lease_id));
            }
            Call::Report(number, status, release) => {
                let id = lease(*number);
                let report = Report { release: *release, ..world.make(&id, *status) };
                world.send(vec![report]);
            }
            Call::Captcha(number) => {
                let id = lease(*number);
                let report = Report { markers: vec!["captcha_page".into()], ..world.make(&id, 200) };
                world.send(vec![report]);
            }
            Call::Release(number) => drop(world.release(&lease(*number))),
            Call::Renew(number, extend) => drop(world.renew(&lease(*number), *extend)),
            Call::Pass(time) => world.pass(*time),
            Call::Breaker(group, time) => {
                world.plane.open_breaker("shop", "web", GROUPS[*group], *time, "test", world.now).unwrap();
            }
            Call::Close(group) => drop(world.plane.close_breaker("shop", "web", GROUPS[*group], "", world.now).unwrap()),
            Call::Pause(true) => drop(world.plane.pause("shop", "test", world.now).unwrap()),
            Call::Pause(false) => drop(world.plane.resume("shop").unwrap()),
            Call::Reload => drop(world.plane.reload(setup(concurrent, proxied).0, world.now).unwrap()),
        }
        check(&world, concurrent, proxied);
    }
    (world, leases)
}

fn check(world: &World, concurrent: u32, proxied: bool) {
    let ledger = &world.plane.ledger().sites["shop"];
    assert_eq!(ledger.acquired, ledger.released + ledger.expired + ledger.open);
    assert_eq!(ledger.acquired, ledger.identities.values().map(|identity| identity.acquired).sum::<u64>());
    assert_eq!(ledger.open, ledger.identities.values().map(|identity| identity.open).sum::<u64>());
    for (id, identity) in &ledger.identities {
        assert_eq!(identity.acquired, identity.released + identity.expired + identity.open, "{id}");
        assert!(identity.open <= u64::from(concurrent), "{id}");
    }
    let site = &world.plane.sites[0];
    for proxy in 0..3 {
        assert!(site.pool.leases(proxy) <= 1);
    }
    // Whoever is scheduled is in the queue of every group, nobody else is in any.
    for group in &site.clients[0].groups {
        let queue = &site.groups[*group as usize].queue;
        for (key, identity) in (0..).zip(&site.identities) {
            assert_eq!(queue.contains(key), identity.state.is_scheduled(), "{}", identity.id);
            // Without leases, a quota or an account, nothing but its rests and cool-downs holds an identity back.
            if let Some(at) = queue.available_at(key)
                && identity.occupancy.active() == 0
                && !proxied
                && identity.account.is_none()
            {
                assert!(at <= site.available(key, *group, Rest::Counts, world.now).max(world.now), "{}", identity.id);
            }
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 192, ..ProptestConfig::default() })]

    #[test]
    fn every_lease_is_booked_once_and_nobody_is_lost(calls in calls(), concurrent in 1..4_u32, proxied in any::<bool>()) {
        let (mut world, _) = run(&calls, concurrent, proxied);
        // With everything given back and no obstacle left, whoever is scheduled is leased again, one after the other.
        world.plane.resume("shop").unwrap();
        for _ in 0..60 {
            world.pass(12 * HOUR);
        }
        for group in GROUPS {
            world.plane.close_breaker("shop", "web", group, "", world.now).unwrap();
        }
        prop_assert_eq!(world.plane.ledger().sites["shop"].open, 0);
        let scheduled: usize = world.plane.sites[0].identities.iter().filter(|identity| identity.state.is_scheduled()).count();
        let mut seen = std::collections::BTreeSet::new();
        while let Ok(answer) = world.try_acquire("search") {
            seen.insert(answer.lease.identity_id);
            if proxied {
                // Three proxies, more identities: each goes on at once, its identity rests.
                world.release(&answer.lease.lease_id).unwrap();
            }
        }
        prop_assert_eq!(seen.len(), scheduled);
    }

    #[test]
    fn the_same_calls_give_the_same_leases(calls in calls(), concurrent in 1..4_u32) {
        let (first, leases) = run(&calls, concurrent, true);
        let (second, again) = run(&calls, concurrent, true);
        prop_assert_eq!(leases, again);
        prop_assert_eq!(first.plane.ledger(), second.plane.ledger());
    }
}
