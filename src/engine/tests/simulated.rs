//! Conservation under any interleaving: leases, reports, requests and items all add up, and the job ends.

use std::time::Duration;

use proptest::prelude::*;
use proptest::test_runner::{RngAlgorithm, TestRng};

use super::world::{Mood, World};
use crate::api::failure::FailureKind;
use crate::collector::message::End;
use crate::engine::message::Control;
use crate::scheduler::job::Outcome;
use crate::settings::RequestRecords;

fn mood() -> impl Strategy<Value = Mood> {
    let kinds = (0_usize..40, 0_usize..30, 0_usize..40, 0_usize..40, 0_usize..30, 0_usize..50, 1_u64..60, any::<[bool; 4]>());
    let leases = (0_usize..80, 1_usize..8, 1_usize..9, prop_oneof![Just(0_usize), 0_usize..40]);
    (kinds, leases).prop_map(
        |(
            (refuse, fail, retry, redirect, callback_fails, parts, pages, [robots, all, wide, remote]),
            (keep, pending, per_slot, trouble),
        )| Mood {
            refuse,
            fail,
            retry,
            redirect,
            callback_fails,
            parts,
            pages,
            robots,
            keep,
            wide,
            remote,
            pending,
            per_slot,
            trouble,
            records: if all { RequestRecords::All } else { RequestRecords::Final },
        },
    )
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Blow {
    Broker,
    Collector,
    Parser,
    Delay(u64),
    Stop,
    Kill,
}

fn play(mood: Mood, seed: u64, concurrent: usize, blows: &[(usize, Blow)]) -> Result<(), TestCaseError> {
    let mut bytes = [7_u8; 32];
    bytes[..8].copy_from_slice(&seed.to_le_bytes());
    let mut world = World::new(mood, TestRng::from_seed(RngAlgorithm::ChaCha, &bytes), concurrent);
    let mut steps = 0;
    while world.step() {
        steps += 1;
        prop_assert!(steps < 200_000, "no end: {:?}, waits for {}", world.hub, world.hub.waits_for());
        for (at, blow) in blows {
            if *at == steps {
                match blow {
                    Blow::Broker => world.broker_dies(),
                    Blow::Collector => world.collector_dies(),
                    Blow::Parser => world.parser_dies(),
                    Blow::Delay(millis) => world.settings(concurrent, Duration::from_millis(*millis)),
                    Blow::Stop => world.stop(),
                    Blow::Kill => {
                        world.stop();
                        world.control(Control::Kill);
                    }
                }
            }
        }
    }
    let stopped = blows.iter().any(|(_, b)| matches!(b, Blow::Stop | Blow::Kill));
    let ended = world.ended.take().unwrap();
    let books = world.books();
    prop_assert!(books.balances(), "{books:?}");
    prop_assert_eq!(ended.books, books);
    prop_assert!(ended.imbalances.is_empty(), "{:?}", ended.imbalances);
    // Every lease came back exactly once, every attempt was reported once.
    prop_assert!(world.held.lock().unwrap().is_empty(), "{:?} are still held", world.held.lock().unwrap());
    prop_assert_eq!(*world.double_releases.lock().unwrap(), 0);
    // No lease was released before the plane had all that was reported under it.
    prop_assert_eq!(*world.early_releases.lock().unwrap(), 0);
    let reports: u64 = world.reports.values().sum();
    prop_assert_eq!(reports, world.sent);
    prop_assert_eq!(ended.tally.kept, ended.delivery.items);
    prop_assert_eq!(world.unpaced, 0);
    prop_assert!(world.max_open <= concurrent, "{} fetches at once", world.max_open);
    prop_assert!(world.max_of_host <= mood.per_slot, "{} fetches at once of one host", world.max_of_host);
    // The engine's own books say the same; no share of a lease is left.
    prop_assert!(ended.leases.balances(), "{:?}", ended.leases);
    prop_assert_eq!(ended.leases.acquired, world.granted);
    prop_assert_eq!(world.hub.kept.len(), 0);
    let count = |name: &str| ended.stats.get(name).and_then(serde_json::Value::as_u64).unwrap_or(0);
    prop_assert!(count("lease/kept_used") <= count("lease/kept"));
    prop_assert!(count("lease/kept") <= world.keeping);
    // Each attempt leaves a record, one that was cut off too; or each that failed, each last answer, and
    // each redirect that led nowhere.
    let records = world.records.values().sum::<usize>() as u64;
    // What got no lease or no robots.txt leaves one, too; a robots.txt itself has no callback.
    let is_robots = |e: &&End| {
        let has_no_lease =
            matches!(e.outcome, Outcome::Dropped(FailureKind::LeaseUnmatched) | Outcome::Failed(FailureKind::LeaseRefused));
        has_no_lease && !world.unfetched.contains(&e.request)
    };
    let unfetched = (world.unfetched.len() + world.ends.iter().filter(is_robots).count()) as u64;
    if mood.records == RequestRecords::All {
        prop_assert!(records >= world.sent, "{} of {}", records, world.sent);
        if !stopped {
            prop_assert_eq!(records, world.sent + unfetched);
        }
    } else if !stopped {
        let leads_nowhere = |e: &&End| e.outcome == Outcome::Dropped(FailureKind::RedirectDuplicate);
        let nowhere = world.ends.iter().filter(leads_nowhere).count() as u64;
        prop_assert_eq!(records, world.last_or_failed + nowhere + unfetched);
    }
    // Each request ends once.
    let mut ends: Vec<_> = world.ends.iter().map(|e| e.request).collect();
    let count = ends.len();
    ends.sort();
    ends.dedup();
    prop_assert_eq!(ends.len(), count);
    if !stopped {
        prop_assert_eq!(books.pending, 0);
        prop_assert_eq!(count as u64, books.enqueued);
        prop_assert_eq!(ended.reason, "finished");
        prop_assert!(ended.code == 0 || ended.code == 3, "{}", ended.code);
    }
    Ok(())
}

/// Where few asks may be made, the end of a request need not change how much is pulled.
#[test]
fn start_goes_on_however_the_frontier_became_low() {
    for seed in 0..200 {
        let mood = Mood {
            refuse: 6,
            fail: 20,
            retry: 3,
            redirect: 0,
            callback_fails: 28,
            parts: 49,
            pages: 41,
            robots: false,
            records: RequestRecords::Final,
            keep: 3,
            wide: false,
            remote: true,
            pending: 4,
            per_slot: 4,
            trouble: 0,
        };
        play(mood, seed, 8, &[]).unwrap();
    }
}

fn cases() -> u32 {
    if std::env::var_os("LONG_TESTS_OF_DRAGLINE").is_some() { 3000 } else { 96 }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(cases()))]

    #[test]
    fn a_crawl_ends_and_everything_adds_up(mood in mood(), seed: u64, concurrent in 1_usize..9) {
        play(mood, seed, concurrent, &[])?;
    }

    #[test]
    fn restarts_lose_and_double_nothing(
        mood in mood(),
        seed: u64,
        blows in proptest::collection::vec((1_usize..400, prop_oneof![Just(Blow::Broker), Just(Blow::Collector), Just(Blow::Parser), (0_u64..2).prop_map(|n| Blow::Delay(n * 20))]), 1..8),
    ) {
        play(mood, seed, 4, &blows)?;
    }

    #[test]
    fn a_stop_at_any_time_leaves_the_books_right(
        mood in mood(),
        seed: u64,
        at in 1_usize..600,
        blow in prop_oneof![Just(Blow::Stop), Just(Blow::Kill)],
    ) {
        play(mood, seed, 4, &[(at, blow)])?;
    }
}
