//! Gates against tables, a simulated site and random histories.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing)]
use proptest::prelude::*;

use super::*;

fn ask(site: &str, group: &str) -> Ask {
    Ask {
        site: site.into(),
        client: "web".into(),
        group: group.into(),
        path: "/".to_owned(),
        session_key: None,
        anonymous: false,
        rule: None,
    }
}

fn refusal(why: RefusalKind, millis: Option<u64>) -> Refusal {
    Refusal { why, retry_after: millis.map(Duration::from_millis), message: "m".to_owned() }
}

fn millis(n: u64) -> Duration {
    Duration::from_millis(n)
}

fn held_for(gates: &mut Gates, ask: &Ask, now: Instant) -> Option<Duration> {
    match gates.pass(ask, now) {
        Pass::Go => None,
        Pass::Hold(hold) => Some(hold.wait),
    }
}

/// An ask for `path` of a site whose endpoint groups only the plane knows.
fn at(site: &str, path: &str) -> Ask {
    Ask { path: path.to_owned(), ..ask(site, "") }
}

/// Which of the asks wait, a while after the first was refused.
fn held_after<const N: usize>(refusal: &Refusal, asks: [Ask; N]) -> ([bool; N], Duration) {
    let now = Instant::now();
    let mut gates = Gates::new(1);
    assert_eq!(gates.pass(&asks[0], now), Pass::Go);
    let wait = gates.refused(&asks[0], refusal, now);
    let later = now + wait.min(millis(60)).saturating_sub(millis(1));
    let held = asks.map(|ask| held_for(&mut gates, &ask, later).is_some());
    (held, wait)
}

#[test]
fn every_reason_of_the_contract_holds_what_it_speaks_of_for_its_hint() {
    use RefusalKind as Kind;
    const NONE: [bool; 5] = [false; 5];
    const PLANE: [bool; 5] = [true; 5];
    const SITE: [bool; 5] = [true, true, true, true, false];
    const GROUP: [bool; 5] = [true, false, false, false, false];
    // What a refusal of group g of site a holds: g itself, another group, another client, a path, another site.
    for (why, held) in [
        (Kind::NoIdentity, GROUP),
        (Kind::NoProxy, GROUP),
        (Kind::CircuitOpen, GROUP),
        (Kind::SitePaused, SITE),
        (Kind::RateLimited, PLANE),
        (Kind::Overloaded, PLANE),
        (Kind::Unreachable, PLANE),
        (Kind::Unanswered, PLANE),
        (Kind::SiteUnknown, NONE),
        (Kind::ClientUnknown, NONE),
        (Kind::GroupUnknown, NONE),
        (Kind::Invalid, NONE),
        (Kind::Unauthorized, NONE),
        (Kind::Forbidden, NONE),
    ] {
        let asks = || {
            let other_client = Ask { client: "app".into(), ..ask("a", "g") };
            [ask("a", "g"), ask("a", "h"), other_client, at("a", "/p"), ask("b", "g")]
        };
        let hint = held != NONE;
        for millis_of_hint in [50, 150, 30_000] {
            let (is_held, wait) = held_after(&refusal(why, Some(millis_of_hint)), asks());
            assert_eq!((is_held, wait), (held, if hint { millis(millis_of_hint) } else { Duration::ZERO }), "{why:?}");
        }
        let (is_held, wait) = held_after(&refusal(why, None), asks());
        assert_eq!(is_held, held, "{why:?} without a hint");
        assert_eq!(hint, wait >= millis(50) && wait <= millis(500), "{why:?} backs off without a hint: {wait:?}");
    }
}

#[test]
fn a_refused_path_holds_no_other_path() {
    use RefusalKind::{CircuitOpen, NoIdentity, NoProxy, SitePaused};
    for (why, held) in [
        (NoIdentity, [true, false, false, false]),
        (NoProxy, [true, false, false, false]),
        (CircuitOpen, [true, false, false, false]),
        (SitePaused, [true, true, true, false]),
    ] {
        let asks = [at("a", "/1"), at("a", "/2"), ask("a", "g"), at("b", "/1")];
        assert_eq!(held_after(&refusal(why, Some(700)), asks), (held, millis(700)), "{why:?}");
    }
}

#[test]
fn an_anonymous_host_is_held_whole() {
    let asks = ["/1", "/2"].map(|path| Ask { anonymous: true, client: "".into(), ..at("a", path) });
    assert_eq!(held_after(&refusal(RefusalKind::NoIdentity, Some(700)), asks).0, [true, true]);
}

#[test]
fn so_many_refused_paths_without_a_grant_between_hold_every_path_of_their_client() {
    use RefusalKind::{CircuitOpen, NoIdentity, NoProxy};
    for why in [NoIdentity, NoProxy, CircuitOpen] {
        let now = Instant::now();
        let mut gates = Gates::new(1);
        let no = refusal(why, Some(60_000));
        let refuse = |gates: &mut Gates, n: usize| {
            let it = at("a", &format!("/{n}"));
            assert_eq!(gates.pass(&it, now), Pass::Go, "path {n}");
            assert_eq!(gates.refused(&it, &no, now), millis(60_000));
        };
        (1..DRY_PATHS).for_each(|n| refuse(&mut gates, n));
        gates.granted(&at("a", "/good"));
        (DRY_PATHS..2 * DRY_PATHS - 1).for_each(|n| refuse(&mut gates, n));
        assert_eq!(held_for(&mut gates, &at("a", "/new"), now), None, "a grant between them begins the count anew");
        gates.withdrawn(&at("a", "/new"));
        refuse(&mut gates, 2 * DRY_PATHS);
        assert_eq!(held_for(&mut gates, &at("a", "/new"), now), Some(PATHS_MOST));
        let other_client = Ask { client: "app".into(), ..at("a", "/new") };
        for free in [ask("a", "g"), other_client, at("b", "/new")] {
            assert_eq!(held_for(&mut gates, &free, now), None, "{free:?}");
        }
        // One probe, of any path, and the first grant lifts it.
        let lifted = now + PATHS_MOST;
        assert_eq!(gates.pass(&at("a", "/probe"), lifted), Pass::Go);
        assert_eq!(held_for(&mut gates, &at("a", "/new"), lifted), Some(BEHIND_PROBE));
        gates.granted(&at("a", "/probe"));
        assert_eq!(held_for(&mut gates, &at("a", "/new"), lifted), None);
    }
}

#[test]
fn an_exhausted_site_of_thousands_of_paths_is_hardly_asked() {
    for (hint, most) in [(Some(60_000), DRY_PATHS + 12), (Some(1_000), DRY_PATHS + 60), (None, DRY_PATHS + 80)] {
        let mut now = Instant::now();
        let end = now + Duration::from_secs(60);
        let mut gates = Gates::new(1);
        let (mut asked, mut path) = (0, 0);
        while now < end {
            for _ in 0..16 {
                path += 1;
                let it = at("a", &format!("/{path}"));
                if gates.pass(&it, now) == Pass::Go {
                    asked += 1;
                    gates.refused(&it, &refusal(RefusalKind::NoIdentity, hint), now);
                }
            }
            now += millis(20);
        }
        assert!(asked <= most, "{hint:?}: {asked} calls in a minute");
        assert!(gates.held.len() < 200, "{hint:?}: {} gates", gates.held.len());
    }
}

#[test]
fn gates_of_paths_that_nobody_asks_for_again_are_forgotten() {
    let mut now = Instant::now();
    let mut gates = Gates::new(1);
    for n in 0..20_000 {
        let it = at("a", &format!("/{n}"));
        gates.granted(&it); // now and then an identity comes free: nothing is dry
        gates.refused(&it, &refusal(RefusalKind::NoIdentity, Some(100)), now);
        now += millis(20);
    }
    assert!(gates.held.len() <= 2 * MANY.max(4_000), "{}", gates.held.len());
}

#[test]
fn a_probe_refused_for_a_wider_reason_is_given_back() {
    let now = Instant::now();
    let mut gates = Gates::new(1);
    let it = ask("a", "g");
    gates.refused(&it, &refusal(RefusalKind::NoIdentity, Some(10)), now);
    let probed = now + millis(10);
    assert_eq!(gates.pass(&it, probed), Pass::Go);
    assert_eq!(gates.refused(&it, &refusal(RefusalKind::Overloaded, Some(150)), probed), millis(150));
    assert_eq!(held_for(&mut gates, &it, probed + millis(150)), None, "it probes both at once");
    gates.withdrawn(&it);
    assert_eq!(held_for(&mut gates, &it, probed + millis(150)), None, "and a probe that is not made holds nothing");
}

#[test]
fn an_overloaded_plane_is_probed_by_the_next_ask_after_its_short_wait() {
    let now = Instant::now();
    let mut gates = Gates::new(1);
    assert_eq!(gates.refused(&ask("a", "g"), &refusal(RefusalKind::Overloaded, Some(120)), now), millis(120));
    let after = now + millis(120);
    assert_eq!(held_for(&mut gates, &ask("b", "g"), after), None);
    assert_eq!(held_for(&mut gates, &ask("a", "g"), after), Some(BEHIND_PROBE));
    gates.granted(&ask("b", "g"));
    assert_eq!(held_for(&mut gates, &ask("a", "g"), after), None);
}

#[test]
fn full_rate_is_back_within_a_second_of_the_end_of_a_pause() {
    // A host asks for 200 leases a second, at most 64 at once, answered after 5 ms; it is told to wait as a whole.
    let start = Instant::now();
    let paused_until = start + Duration::from_secs(5);
    let mut gates = Gates::new(1);
    gates.refused(&ask("a", "g"), &refusal(RefusalKind::SitePaused, Some(5_000)), start);
    let (mut now, mut host_waits_until, mut granted) = (start, start, 0.0_f64);
    let mut out: std::collections::VecDeque<Instant> = std::collections::VecDeque::new();
    let mut back_at = None;
    while back_at.is_none() && now < paused_until + Duration::from_secs(10) {
        while out.front().is_some_and(|at| *at <= now) {
            out.pop_front();
            gates.granted(&ask("a", "g"));
            granted += 1.0;
        }
        while now >= host_waits_until && out.len() < 64 {
            match gates.pass(&ask("a", "g"), now) {
                Pass::Go => out.push_back(now + millis(5)),
                Pass::Hold(hold) => host_waits_until = now + hold.wait,
            }
        }
        if out.len() == 64 && gates.are_open() {
            back_at = Some(now);
        }
        now += millis(1);
    }
    let after = back_at.unwrap().duration_since(paused_until);
    assert!(after <= millis(500), "{after:?}, {granted} leases meanwhile");
}

#[test]
fn what_the_configuration_holds_is_held_until_it_says_otherwise() {
    let now = Instant::now();
    let mut gates = Gates::new(1);
    gates.hold_by_runtime(&Origin::Site("a"), "off".to_owned(), None, now);
    let Pass::Hold(hold) = gates.pass(&ask("a", "g"), now + Duration::from_secs(1_000_000)) else { panic!("not held") };
    assert_eq!((hold.why, hold.by_runtime, &*hold.message), (RefusalKind::SitePaused, true, "off"));
    assert_eq!(held_for(&mut gates, &ask("b", "g"), now), None);
    // An answer that was under way neither shortens nor replaces it.
    gates.refused(&ask("a", "g"), &refusal(RefusalKind::SitePaused, Some(10)), now);
    assert!(held_for(&mut gates, &ask("a", "g"), now + millis(11)).is_some());
    gates.resume(now + millis(20), |origin, by_runtime| by_runtime && *origin == Origin::Site("a"));
    assert_eq!(held_for(&mut gates, &ask("a", "g"), now + millis(20)), None);
    assert_eq!(held_for(&mut gates, &ask("a", "g"), now + millis(20)), Some(BEHIND_PROBE), "gradually");
}

#[test]
fn a_circuit_the_configuration_holds_is_probed_at_its_end() {
    let now = Instant::now();
    let mut gates = Gates::new(1);
    let circuit = Origin::Group("a", "web", "g");
    gates.hold_by_runtime(&circuit, "open".to_owned(), Some(now + millis(500)), now);
    assert_eq!(held_for(&mut gates, &ask("a", "g"), now), Some(millis(500)));
    assert_eq!(held_for(&mut gates, &ask("a", "h"), now), None);
    assert_eq!(held_for(&mut gates, &at("a", "/p"), now), None, "nobody knows that the path is of this group");
    assert_eq!(held_for(&mut gates, &ask("a", "g"), now + millis(500)), None);
    assert_eq!(held_for(&mut gates, &ask("a", "g"), now + millis(500)), Some(BEHIND_PROBE));
    gates.hold_by_runtime(&circuit, "open".to_owned(), Some(now), now + millis(600));
    gates.granted(&ask("a", "g"));
    assert_eq!(held_for(&mut gates, &ask("a", "g"), now + millis(600)), None, "an end that is over holds nothing");
}

#[test]
fn what_was_not_sent_is_held_by_a_gate_that_closed_meanwhile() {
    let now = Instant::now();
    let mut gates = Gates::new(1);
    let it = ask("a", "g");
    assert_eq!((gates.pass(&it, now), gates.holds(&it, now)), (Pass::Go, None));
    gates.refused(&it, &refusal(RefusalKind::NoIdentity, Some(100)), now);
    assert_eq!(gates.holds(&it, now + millis(40)).unwrap().wait, millis(60));
    assert_eq!(gates.holds(&it, now + millis(100)), None, "its time is over, and it may be the probe");
}

#[test]
fn a_lease_that_came_back_lets_one_probe_through_and_lifts_no_other_refusal() {
    use RefusalKind::{CircuitOpen, NoIdentity, NoProxy};
    for (why, lifted) in [(NoIdentity, true), (NoProxy, true), (CircuitOpen, false)] {
        let now = Instant::now();
        let mut gates = Gates::new(1);
        gates.refused(&ask("a", "g"), &refusal(why, Some(700)), now);
        gates.came_back("b", now);
        assert_eq!(held_for(&mut gates, &ask("a", "g"), now), Some(millis(700)));
        gates.came_back("a", now);
        let held = held_for(&mut gates, &ask("a", "g"), now);
        assert_eq!(held, (!lifted).then_some(millis(700)), "{why:?}");
        if lifted {
            assert_eq!(held_for(&mut gates, &ask("a", "g"), now), Some(BEHIND_PROBE));
        }
    }
}

#[test]
fn a_refusal_for_good_holds_nothing() {
    let mut gates = Gates::new(1);
    let wait = gates.refused(&ask("a", "g"), &refusal(RefusalKind::SiteUnknown, Some(10)), Instant::now());
    assert_eq!((wait, gates.are_open()), (Duration::ZERO, true));
}

#[test]
fn a_gate_lifts_by_one_probe_and_then_doubles() {
    let mut now = Instant::now();
    let mut gates = Gates::new(1);
    let it = ask("a", "g");
    gates.refused(&it, &refusal(RefusalKind::NoIdentity, Some(100)), now);
    now += millis(100);
    let mut rounds = Vec::new();
    while !gates.are_open() {
        let passed = (0..100).take_while(|_| gates.pass(&it, now) == Pass::Go).count();
        assert!(gates.are_open() || held_for(&mut gates, &it, now) == Some(BEHIND_PROBE));
        rounds.push(passed);
        gates.granted(&it);
        // The others of the round stay out: one grant doubles what may be out at once.
    }
    assert_eq!(rounds[..4], [1, 2, 3, 5]);
    assert_eq!(rounds.len(), 6);
}

#[test]
fn a_refused_probe_holds_again_and_longer() {
    let mut now = Instant::now();
    let mut gates = Gates::new(3);
    let it = ask("a", "g");
    let mut longest = Duration::ZERO;
    for round in 1..40 {
        assert_eq!(gates.pass(&it, now), Pass::Go, "round {round}");
        let wait = gates.refused(&it, &refusal(RefusalKind::NoIdentity, None), now);
        assert!(wait >= millis(50) && wait <= Duration::from_secs(30));
        longest = longest.max(wait);
        assert_eq!(held_for(&mut gates, &it, now + wait - millis(1)), Some(millis(1)));
        now += wait;
    }
    assert!(longest > Duration::from_secs(20), "{longest:?}");
}

#[test]
fn a_busy_group_is_asked_again_soon_however_long_it_stays_busy() {
    let mut now = Instant::now();
    let mut gates = Gates::new(3);
    let it = ask("a", "g");
    for round in 0..40 {
        assert_eq!(gates.pass(&it, now), Pass::Go, "round {round}");
        gates.granted(&it);
        assert_eq!(gates.pass(&it, now), Pass::Go, "round {round}");
        let wait = gates.refused(&it, &refusal(RefusalKind::NoIdentity, None), now);
        assert!(wait <= millis(500), "round {round}: {wait:?}");
        now += wait;
    }
}

#[test]
fn late_answers_from_before_the_gate_closed_change_nothing() {
    let now = Instant::now();
    let mut gates = Gates::new(1);
    let it = ask("a", "g");
    for _ in 0..5 {
        assert_eq!(gates.pass(&it, now), Pass::Go);
    }
    let no = |hint| refusal(RefusalKind::NoIdentity, hint);
    assert_eq!(gates.refused(&it, &no(Some(900)), now), millis(900));
    gates.granted(&it);
    assert_eq!(gates.refused(&it, &no(None), now + millis(100)), millis(800));
    assert_eq!(gates.refused(&it, &no(Some(100)), now + millis(200)), millis(700));
    assert_eq!(gates.refused(&it, &no(Some(1_000)), now + millis(300)), millis(1_000), "a longer hint holds longer");
    assert_eq!(held_for(&mut gates, &it, now + millis(400)), Some(millis(900)));
}

#[test]
fn a_lost_probe_does_not_hold_for_ever() {
    let now = Instant::now();
    let mut gates = Gates::new(1);
    let it = ask("a", "g");
    gates.refused(&it, &refusal(RefusalKind::NoIdentity, Some(10)), now);
    let probed = now + millis(10);
    assert_eq!(gates.pass(&it, probed), Pass::Go);
    assert_eq!(held_for(&mut gates, &it, probed + PATIENCE - millis(1)), Some(BEHIND_PROBE));
    assert_eq!(gates.pass(&it, probed + PATIENCE), Pass::Go);
}

proptest! {
    #[test]
    fn nothing_passes_before_the_hint_is_over(
        steps in proptest::collection::vec((0usize..3, 0u64..400, 0usize..4, proptest::option::of(0u64..2_000)), 1..200)
    ) {
        let asks = [ask("a", "g"), ask("a", "h"), ask("b", "g")];
        let kinds = [None, Some(RefusalKind::NoIdentity), Some(RefusalKind::SitePaused), Some(RefusalKind::Overloaded)];
        let mut gates = Gates::new(9);
        let mut now = Instant::now();
        // What was refused with a hint, and the end of the hint.
        let mut hints: Vec<(usize, RefusalKind, Instant)> = Vec::new();
        for (which, pause, answer, hint) in steps {
            now += millis(pause);
            if gates.pass(&asks[which], now) != Pass::Go {
                continue;
            }
            for (refused, why, until) in &hints {
                let covered = match level(*why) {
                    0 => true,
                    1 => asks[*refused].site == asks[which].site,
                    _ => *refused == which,
                };
                prop_assert!(!covered || now >= *until);
            }
            match kinds[answer] {
                None => gates.granted(&asks[which]),
                Some(why) => {
                    let wait = gates.refused(&asks[which], &refusal(why, hint), now);
                    prop_assert!(wait >= LEAST);
                    if let Some(hint) = hint {
                        hints.push((which, why, now + millis(hint)));
                    }
                }
            }
        }
    }
}
