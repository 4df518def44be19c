#![allow(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing)]

use std::collections::BTreeMap;
use std::time::Duration;

use proptest::prelude::*;

use super::*;

fn due(queue: &ReadyQueue, now: Ms, want: usize) -> Vec<u32> {
    let mut keys = Vec::new();
    queue.due(now, want, |_| false, &mut keys);
    keys
}

fn of(members: &[(u32, Ms)]) -> ReadyQueue {
    let mut queue = ReadyQueue::default();
    members.iter().for_each(|(key, at)| queue.set(*key, *at));
    queue
}

#[test]
fn the_earliest_come_first_and_ties_go_by_key() {
    let queue = of(&[(5, 30), (9, 10), (2, 30), (7, 0), (1, 31), (3, 0)]);
    assert_eq!(due(&queue, 30, 10), [3, 7, 9, 2, 5]);
    assert_eq!(due(&queue, 31, 4), [3, 7, 9, 2]);
    assert_eq!(due(&queue, 9, 10), [3, 7]);
}

#[test]
fn skipped_members_do_not_use_up_what_is_wanted() {
    let queue = of(&[(0, 0), (1, 0), (2, 5), (3, 6), (4, 7)]);
    let mut keys = Vec::new();
    assert_eq!(queue.due(100, 2, |key| key < 3, &mut keys), 2);
    assert_eq!(keys, [3, 4]);
    assert_eq!(queue.due(100, 2, |key| key < 4, &mut keys), 1);
}

#[test]
fn an_untouched_identity_has_no_entry() {
    let mut queue = ReadyQueue::default();
    (0..100_000).for_each(|key| queue.set(key, 0));
    assert_eq!((queue.len(), queue.timed.len(), queue.moments.len()), (100_000, 0, 0));
    queue.set(70_000, 9);
    assert_eq!((queue.timed.len(), queue.moments.iter().flatten().count()), (1, 1));
    queue.set(70_000, 0);
    assert_eq!((queue.len(), queue.timed.len()), (100_000, 0));
}

#[test]
fn b144_the_hint_is_the_time_until_somebody_is_available() {
    let now = 1_000_000;
    assert_eq!(of(&[]).retry_hint(now, Lack::Identity), 60_000);
    assert_eq!(of(&[(1, now + 9_000), (2, now + 5_000)]).retry_hint(now, Lack::Identity), 5_000);
    assert_eq!(of(&[(1, now + 10)]).retry_hint(now, Lack::Identity), 50);
    assert_eq!(of(&[(1, now + 3_600_000)]).retry_hint(now, Lack::Proxy), 60_000);
    for due in [0, now - 1, now] {
        assert_eq!(of(&[(1, due)]).retry_hint(now, Lack::Identity), 50);
        assert_eq!(of(&[(1, due)]).retry_hint(now, Lack::Proxy), 1_000);
    }
}

#[test]
fn a_moment_at_the_end_of_time_is_still_a_moment() {
    let mut queue = of(&[(4, Ms::MAX)]);
    assert!(queue.contains(4));
    assert_eq!(due(&queue, Ms::MAX - 2, 1), Vec::<u32>::new());
    assert!(queue.remove(4) && !queue.contains(4));
}

#[derive(Debug, Clone)]
enum Step {
    Set(u32, Ms),
    Remove(u32),
    Due(Ms, usize, u32),
}

fn step() -> impl Strategy<Value = Step> {
    let key = prop_oneof![0_u32..100, 0_u32..5_000];
    prop_oneof![
        (key.clone(), prop_oneof![Just(0), 0_u64..40]).prop_map(|(key, at)| Step::Set(key, at)),
        key.prop_map(Step::Remove),
        (0_u64..45, 0_usize..40, 1_u32..4).prop_map(|(now, want, modulus)| Step::Due(now, want, modulus)),
    ]
}

proptest! {
    #[test]
    fn it_answers_like_a_sorted_list(steps in proptest::collection::vec(step(), 1..250)) {
        let (mut queue, mut model) = (ReadyQueue::default(), BTreeMap::new());
        for step in steps {
            match step {
                Step::Set(key, at) => {
                    queue.set(key, at);
                    model.insert(key, at);
                }
                Step::Remove(key) => prop_assert_eq!(queue.remove(key), model.remove(&key).is_some()),
                Step::Due(now, want, modulus) => {
                    let mut keys = Vec::new();
                    let found = queue.due(now, want, |key| key % modulus == 1, &mut keys);
                    let mut all: Vec<(Ms, u32)> = model.iter().map(|(key, at)| (*at, *key)).collect();
                    all.sort_unstable();
                    let wanted: Vec<u32> =
                        all.iter().filter(|(at, key)| *at <= now && key % modulus != 1).map(|(_, key)| *key).take(want).collect();
                    prop_assert_eq!(found, wanted.len());
                    prop_assert_eq!(keys, wanted);
                }
            }
            prop_assert_eq!(queue.len(), model.len());
            prop_assert_eq!(queue.earliest(), model.values().min().copied());
            for key in [0, 1, 50, 99] {
                prop_assert_eq!(queue.available_at(key), model.get(&key).copied());
            }
        }
    }
}

/// What this thread has run so far.
fn processor_time() -> Duration {
    let stat = std::fs::read_to_string("/proc/thread-self/schedstat").unwrap();
    Duration::from_nanos(stat.split(' ').next().unwrap().parse().unwrap())
}

#[test]
#[ignore = "measures, on Linux: run alone with optimisation"]
fn taking_32_and_moving_one_costs_less_than_400_nanoseconds() {
    let mut queue = ReadyQueue::default();
    (0..100_000).for_each(|key| queue.set(key, 1 + u64::from(key) % 977));
    let mut keys = Vec::with_capacity(32);
    let rounds = 400_000_u32;
    let start = processor_time();
    for round in 0..rounds {
        let now = 1_000 + Ms::from(round);
        keys.clear();
        assert_eq!(queue.due(now, 32, |_| false, &mut keys), 32);
        queue.set(keys[round as usize % 32], now);
    }
    let each = (processor_time() - start) / rounds;
    println!("take 32 of 100,000 and move one: {each:?}");
    assert!(each.as_nanos() < 400, "{each:?}");
}
