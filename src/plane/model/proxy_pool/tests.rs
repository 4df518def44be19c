#![allow(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing)]

use std::collections::BTreeSet;

use super::*;

const NOW: Ms = 20_000 * 86_400_000 + 3_600_000;
const MINUTE: Ms = 60_000;
const TTL: Ms = 120_000;

fn proxies(count: u32) -> (ProxyPool, Vec<ProxyTraits>) {
    let mut pool = ProxyPool::default();
    (0..count).for_each(|key| pool.admit(key, NOW));
    let traits = ProxyTraits { active: true, max_concurrency: 1, ..ProxyTraits::default() };
    (pool, vec![traits; count as usize])
}

struct Chooser {
    filter: ProxyFilter,
    region: Symbol,
    except: Option<u32>,
    dice: Dice,
}

impl Chooser {
    fn new() -> Self {
        Self { filter: ProxyFilter::default(), region: 0, except: None, dice: Dice::new(4) }
    }

    fn choose(&mut self, pool: &mut ProxyPool, catalogue: &[ProxyTraits], now: Ms) -> Option<u32> {
        let wish = ProxyWish { filter: &self.filter, region: self.region, except: self.except, ttl: TTL };
        pool.choose(catalogue, wish, |_| 70.0, now, &mut self.dice)
    }
}

#[test]
fn b148_a_region_mismatch_gives_no_proxy() {
    let (mut pool, mut catalogue) = proxies(2);
    catalogue[0].region = 7;
    let mut chooser =
        Chooser { filter: ProxyFilter { same_region: true, ..ProxyFilter::default() }, region: 8, ..Chooser::new() };
    assert_eq!(chooser.choose(&mut pool, &catalogue, NOW), None);
    chooser.region = 7;
    assert_eq!(chooser.choose(&mut pool, &catalogue, NOW), Some(0));
    chooser.region = 0;
    assert_eq!(chooser.choose(&mut pool, &catalogue, NOW), Some(1));
}

#[test]
fn b148_a_full_proxy_is_free_again_when_its_lease_ends() {
    let (mut pool, catalogue) = proxies(1);
    let mut chooser = Chooser::new();
    assert_eq!(chooser.choose(&mut pool, &catalogue, NOW), Some(0));
    pool.begin(0);
    assert_eq!((chooser.choose(&mut pool, &catalogue, NOW + 1), pool.leases(0)), (None, 1));
    pool.end(0, NOW + 2);
    assert_eq!((chooser.choose(&mut pool, &catalogue, NOW + 2), pool.leases(0)), (Some(0), 0));
    // Without an end it is looked at again after five seconds.
    pool.begin(0);
    assert_eq!(chooser.choose(&mut pool, &catalogue, NOW + 3), None);
    assert!(pool.due.waits(0));
    pool.due.advance(NOW + 5_002);
    assert!(pool.due.waits(0));
    pool.due.advance(NOW + 5_003);
    assert!(!pool.due.waits(0));
}

#[test]
fn a_proxy_takes_as_many_leases_as_it_may() {
    let (mut pool, mut catalogue) = proxies(3);
    catalogue.iter_mut().for_each(|proxy| proxy.max_concurrency = 4);
    let mut chooser = Chooser::new();
    let leases = std::iter::from_fn(|| {
        let key = chooser.choose(&mut pool, &catalogue, NOW)?;
        pool.begin(key);
        Some(key)
    });
    assert_eq!(leases.count(), 12);
    assert!((0..3).all(|key| pool.leases(key) == 4));
}

#[test]
fn a_cooling_proxy_is_due_at_the_end_of_the_later_cool_down() {
    let (mut pool, mut catalogue) = proxies(1);
    let mut chooser = Chooser::new();
    pool.cool(0, NOW + 100, NOW);
    assert_eq!(pool.cooldown(0), NOW + 100);
    catalogue[0].cooldown = NOW + 200;
    assert_eq!(chooser.choose(&mut pool, &catalogue, NOW + 99), None);
    assert_eq!(chooser.choose(&mut pool, &catalogue, NOW + 100), None);
    assert_eq!(chooser.choose(&mut pool, &catalogue, NOW + 199), None);
    assert_eq!(chooser.choose(&mut pool, &catalogue, NOW + 200), Some(0));
    // A lease that ends does not cut a cool-down short.
    pool.begin(0);
    pool.cool(0, NOW + 900, NOW + 300);
    pool.end(0, NOW + 400);
    assert_eq!(chooser.choose(&mut pool, &catalogue, NOW + 899), None);
    assert_eq!(chooser.choose(&mut pool, &catalogue, NOW + 900), Some(0));
    pool.cool(0, NOW + 5_000, NOW + 901);
    pool.cool(0, 0, NOW + 902);
    assert_eq!(chooser.choose(&mut pool, &catalogue, NOW + 902), Some(0));
}

#[test]
fn an_inactive_proxy_is_out_until_it_is_admitted_again() {
    let (mut pool, mut catalogue) = proxies(1);
    let mut chooser = Chooser::new();
    catalogue[0].active = false;
    assert_eq!(chooser.choose(&mut pool, &catalogue, NOW), None);
    pool.cool(0, 0, NOW);
    catalogue[0].active = true;
    assert_eq!(chooser.choose(&mut pool, &catalogue, NOW + 9_000), None);
    pool.admit(0, NOW + 9_000);
    assert_eq!(chooser.choose(&mut pool, &catalogue, NOW + 9_000), Some(0));
    assert_eq!(chooser.choose(&mut pool, &[], NOW + 9_000), None, "not in the catalogue");
}

#[test]
fn the_first_window_with_a_candidate_decides_and_three_are_looked_at() {
    let (mut pool, mut catalogue) = proxies(64);
    let mut chooser = Chooser { filter: ProxyFilter { kinds: [1].into(), ..ProxyFilter::default() }, ..Chooser::new() };
    catalogue[40].kind = 1;
    let found = (0..2_000).filter(|_| chooser.choose(&mut pool, &catalogue, NOW).is_some()).count();
    // 48 of 64 offsets see it.
    assert!((1_400..1_600).contains(&found), "{found}");
    let (mut pool, _) = proxies(48);
    catalogue[47].kind = 1;
    assert!((0..200).all(|_| chooser.choose(&mut pool, &catalogue[..48], NOW).is_some()), "48 are seen whole");
    // Two in different windows: the earlier window wins.
    catalogue[3].kind = 1;
    assert!((0..200).all(|_| chooser.choose(&mut pool, &catalogue[..48], NOW) == Some(3)));
}

#[test]
fn many_due_proxies_all_get_their_turn() {
    let (mut pool, mut catalogue) = proxies(500);
    catalogue.iter_mut().for_each(|proxy| proxy.max_concurrency = 1_000_000);
    let mut chooser = Chooser::new();
    let used: BTreeSet<u32> = (0..10_000).filter_map(|_| chooser.choose(&mut pool, &catalogue, NOW)).collect();
    assert_eq!(used.len(), 500);
}

#[test]
fn b192_a_proxy_is_drawn_by_the_square_of_its_score() {
    let (mut pool, catalogue) = proxies(3);
    let (filter, mut dice, mut counts) = (ProxyFilter::default(), Dice::new(8), [0.0; 3]);
    let wish = ProxyWish { filter: &filter, region: 0, except: None, ttl: TTL };
    for _ in 0..100_000 {
        let scores = [70.0, 100.0, 0.0];
        counts[pool.choose(&catalogue, wish, |key| scores[key as usize], NOW, &mut dice).unwrap() as usize] += 1.0;
    }
    let weights = [4_900.0, 10_000.0, 25.0];
    let statistic: f64 = counts
        .iter()
        .zip(weights)
        .map(|(count, weight)| (weight / 14_925.0 * 100_000.0, count))
        .map(|(expected, count): (f64, &f64)| (count - expected).powi(2) / expected)
        .sum();
    assert!(statistic < 13.8, "{counts:?}");
}

fn step(binding: &Binding, pool: &ProxyPool, catalogue: &[ProxyTraits], now: Ms) -> BindStep {
    binding.step(pool, catalogue, BindPolicy::default(), TTL, now)
}

#[test]
fn b148_a_bound_identity_keeps_its_proxy_and_waits_for_it() {
    let (mut pool, mut catalogue) = proxies(2);
    let mut binding = Binding::default();
    assert_eq!(step(&binding, &pool, &catalogue, NOW), BindStep::Choose { except: None });
    binding.bind(1, NOW);
    assert_eq!(step(&binding, &pool, &catalogue, NOW), BindStep::Use(1));
    pool.begin(1);
    assert_eq!(step(&binding, &pool, &catalogue, NOW), BindStep::Wait(NOW + 5_000));
    pool.cool(1, NOW + 5 * MINUTE, NOW);
    assert_eq!(step(&binding, &pool, &catalogue, NOW), BindStep::Wait(NOW + 5 * MINUTE), "cooling goes before full");
    pool.cool(1, NOW + 5 * MINUTE + 1, NOW);
    assert_eq!(step(&binding, &pool, &catalogue, NOW), BindStep::Choose { except: Some(1) });
    pool.cool(1, 0, NOW);
    pool.end(1, NOW);
    catalogue[1].active = false;
    assert_eq!(step(&binding, &pool, &catalogue, NOW), BindStep::Choose { except: Some(1) });
    let mut chooser = Chooser { except: Some(0), ..Chooser::new() };
    assert_eq!(chooser.choose(&mut pool, &catalogue, NOW), None, "the other is excluded, this one inactive");
}

#[test]
fn b148_three_rebinds_a_day_and_the_first_binding_is_none() {
    let (mut pool, catalogue) = proxies(5);
    (0..5).for_each(|key| pool.cool(key, NOW + 86_400_000, NOW));
    let mut binding = Binding::default();
    binding.bind(0, NOW);
    for proxy in 1..4 {
        assert_eq!(step(&binding, &pool, &catalogue, NOW), BindStep::Choose { except: Some(proxy - 1) });
        binding.bind(proxy, NOW);
        binding.bind(proxy, NOW);
    }
    assert_eq!(step(&binding, &pool, &catalogue, NOW), BindStep::Wait(NOW + 10 * MINUTE));
    let never = BindPolicy { max_rebinds_per_day: 0, ..BindPolicy::default() };
    let mut fresh = Binding::default();
    fresh.bind(2, NOW);
    assert_eq!(fresh.step(&pool, &catalogue, never, TTL, NOW), BindStep::Wait(NOW + 10 * MINUTE));
    // At midnight UTC the count begins anew.
    let midnight = NOW - NOW % 86_400_000 + 86_400_000;
    (0..5).for_each(|key| pool.cool(key, midnight + 86_400_000, NOW));
    assert_eq!(step(&binding, &pool, &catalogue, midnight - 1), BindStep::Wait(midnight - 1 + 10 * MINUTE));
    assert_eq!(step(&binding, &pool, &catalogue, midnight), BindStep::Choose { except: Some(3) });
    assert_eq!(binding.proxy(), Some(3));
}
