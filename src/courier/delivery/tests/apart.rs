//! Taking apart: what it costs, what is put aside, and what a crash in the middle of it leaves.

use std::collections::BTreeSet;

use proptest::prelude::*;

use super::*;
use crate::courier::MemorySink;

/// Refuses what holds one of these.
fn poisoned(bad: &BTreeSet<usize>) -> impl FnMut(&[usize], &Batch) -> Answer + Send + use<> {
    let bad = bad.clone();
    move |numbers, _| {
        if numbers.iter().any(|n| bad.contains(n)) { Answer::Split { why: "422: no".to_owned() } } else { Answer::Delivered }
    }
}

fn log2_up(n: usize) -> usize {
    n.next_power_of_two().trailing_zeros() as usize
}

fn refused(bench: &Bench, bad: &BTreeSet<usize>) -> usize {
    bench.calls.lock().unwrap().iter().filter(|(_, numbers)| numbers.iter().any(|n| bad.contains(n))).count()
}

#[test]
fn one_bad_record_costs_only_itself_and_few_calls_wherever_it_is() {
    for n in (1..=20).chain([31, 32, 33, 50, 65]) {
        for place in 0..n {
            let bad = BTreeSet::from([place]);
            let mut bench = Bench::new(poisoned(&bad));
            let batch = batch_of(n, place % 2 == 0);
            bench.take(&batch, &[]);
            bench.run();
            let good: Vec<_> = (0..n).filter(|n| *n != place).collect();
            assert_eq!(bench.taken(), good, "{place} of {n}");
            let name = if n == 1 { format!("{}.json", batch.id) } else { format!("{}-{place}-{place}.json", batch.id) };
            assert_eq!(bench.aside(), (vec![place], vec![name]));
            assert!(refused(&bench, &bad) <= log2_up(n) + 1, "{place} of {n}");
            assert!(bench.calls() <= 2 * log2_up(n) + 1, "{place} of {n}: {}", bench.calls());
            assert_eq!(bench.settled().len(), 1);
            assert_eq!(bench.stats.count("courier/rejected"), 1);
            assert_eq!(bench.stats.count("courier/delivered"), n as i64 - 1);
        }
    }
}

#[test]
fn the_sink_may_refuse_by_size() {
    for (n, most) in [(50, 7), (50, 1), (33, 16), (2, 1)] {
        let judge = move |numbers: &[usize], _: &Batch| match numbers.len() > most {
            true => Answer::Split { why: "413: too large".to_owned() },
            false => Answer::Delivered,
        };
        let mut bench = Bench::new(judge);
        bench.take(&batch_of(n, false), &[]);
        bench.run();
        assert_eq!(bench.taken(), (0..n).collect::<Vec<_>>());
        assert_eq!((bench.settled(), bench.aside().0.len()), (vec![How::Delivered], 0));
        assert_eq!(bench.stats.count("courier/parts"), bench.parts().len() as i64);
        assert_eq!(bench.stats.count("courier/batches"), 0);
    }
}

#[test]
fn a_batch_of_which_nothing_passes_is_rejected() {
    let mut bench = Bench::new(|_, _| Answer::Reject { why: "too big".to_owned() });
    bench.take(&batch_of(5, true), &[]);
    bench.run();
    assert_eq!(bench.settled(), [How::Rejected]);
    assert_eq!(bench.aside().0, [0, 1, 2, 3, 4]);
    assert_eq!(bench.calls(), 9);
}

#[test]
fn a_sink_that_refuses_every_record_is_asked_no_more_and_the_rest_stays() {
    let mut bench = Bench::new(|_, _| Answer::Split { why: "422: the schema has changed".to_owned() });
    for _ in 0..20 {
        bench.take(&batch_of(50, false), &[]);
    }
    bench.run();
    let settled = bench.settled();
    assert_eq!(settled.iter().filter(|how| **how == How::Rejected).count(), 10, "{settled:?}");
    assert!(
        settled[10..].iter().all(|how| matches!(how, How::Spooled(why) if why.contains("500 records before"))),
        "{settled:?}"
    );
    assert_eq!(bench.stats.count("courier/rejected"), 500);

    // One that takes some is none of these, however much it refuses.
    let mut bench = Bench::new(|numbers, _| match numbers {
        [0] => Answer::Delivered,
        _ => Answer::Split { why: "422".to_owned() },
    });
    for _ in 0..20 {
        bench.take(&batch_of(50, false), &[]);
    }
    bench.run();
    assert!(bench.settled().iter().all(|how| matches!(how, How::Split { .. })));
}

#[test]
fn a_body_that_does_not_read_is_put_aside_as_a_whole() {
    let mut bench = Bench::new(|_, _| Answer::Delivered);
    let mut batch = batch_of(5, true);
    batch.body.truncate(20);
    let sink = MemorySink::new();
    sink.reject(batch.id);
    bench.state.sink = Box::new(sink.clone());
    bench.take(&batch, &[]);
    bench.run();
    assert_eq!((bench.settled(), sink.calls()), (vec![How::Rejected], 1));
    let file = bench.dir.path().join("rejected").join(format!("{}.json", batch.id));
    assert!(std::fs::read_to_string(file).unwrap().contains("scripted"));
}

#[test]
fn what_cannot_be_put_aside_is_tried_again_and_the_sink_is_not_asked_again() {
    let bad = BTreeSet::from([3]);
    let mut bench = Bench::new(poisoned(&bad));
    std::fs::write(bench.dir.path().join("rejected"), "in the way").unwrap();
    bench.take(&batch_of(4, false), &[]);
    for _ in 0..60 {
        assert!(bench.step());
    }
    let calls = bench.calls();
    assert_eq!((bench.taken(), bench.settled()), (vec![0, 1, 2], vec![]));
    std::fs::remove_file(bench.dir.path().join("rejected")).unwrap();
    bench.run();
    assert_eq!((bench.aside().0, bench.calls()), (vec![3], calls));
    let rejected = Counts { logs: 1, ..Counts::default() };
    assert_eq!(bench.settled(), [How::Split { rejected }]);
}

#[test]
fn parts_that_are_done_are_not_sent_again() {
    let bad = BTreeSet::from([9]);
    let mut first = Bench::new(poisoned(&bad));
    let batch = batch_of(16, false);
    first.take(&batch, &[]);
    while first.parts().len() < 2 {
        first.step();
    }
    let done = first.parts();
    assert_eq!(done[0], Part { batch: batch.id, first: 0, last: 7, fate: Fate::Delivered });
    let mut next = Bench::new(poisoned(&bad));
    next.take(&batch, &done);
    next.run();
    let sent: BTreeSet<_> = next.calls.lock().unwrap().iter().flat_map(|(_, numbers)| numbers.clone()).collect();
    assert_eq!(sent, (9..16).collect());
    // Nothing but the end is left.
    let mut last = Bench::new(poisoned(&bad));
    last.take(&batch, &[done, next.parts()].concat());
    last.run();
    assert_eq!((last.calls(), last.settled().len()), (0, 1));
    assert!(matches!(last.settled()[0], How::Split { rejected } if records(rejected) == 1));
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 128, ..ProptestConfig::default() })]
    #[test]
    fn several_bad_records_cost_only_themselves(n in 1..70_usize, bad in prop::collection::btree_set(0..70_usize, 0..6)) {
        let bad: BTreeSet<_> = bad.into_iter().filter(|place| *place < n).collect();
        let mut bench = Bench::new(poisoned(&bad));
        bench.take(&batch_of(n, n % 2 == 0), &[]);
        bench.run();
        prop_assert_eq!(bench.taken(), (0..n).filter(|place| !bad.contains(place)).collect::<Vec<_>>());
        prop_assert_eq!(bench.aside().0, bad.iter().copied().collect::<Vec<_>>());
        let most = 2 * log2_up(n) * bad.len() + 1;
        prop_assert!(bench.calls() <= most, "{} calls", bench.calls());
        // The parts cover the batch, each place once.
        let mut places: Vec<_> = bench.parts().iter().flat_map(|part| part.first..=part.last).collect();
        places.sort_unstable();
        prop_assert!(bad.is_empty() || n == 1 || places == (0..n as u32).collect::<Vec<_>>());
    }

    #[test]
    fn a_crash_between_any_two_steps_of_a_split_doubles_and_loses_nothing(
        n in 1..70_usize,
        bad in prop::collection::btree_set(0..70_usize, 1..4),
        kills in prop::collection::vec((0..30_usize, 0..3_usize), 1..4),
    ) {
        let bad: BTreeSet<_> = bad.into_iter().map(|place| place % n).collect();
        let batch = batch_of(n, n % 3 == 0);
        let mut done = Vec::new();
        let mut bench = Bench::new(poisoned(&bad));
        for (steps, unwritten) in kills {
            bench.take(&batch, &done);
            if !(0..steps).all(|_| bench.step()) {
                break;
            }
            // What was told last may not be journaled yet.
            let parts = bench.parts();
            done.extend_from_slice(&parts[..parts.len().saturating_sub(unwritten)]);
            let mut next = Bench::new(poisoned(&bad));
            next.taken = Arc::clone(&bench.taken);
            let taken = Arc::clone(&bench.taken);
            next.state.sink = Box::new(Ruled { judge: Box::new(poisoned(&bad)), calls: Arc::clone(&next.calls), taken });
            next.dir = Arc::clone(&bench.dir);
            next.state.options.spool = bench.dir.path().to_owned();
            bench = next;
        }
        if bench.settled().is_empty() {
            bench.take(&batch, &done);
            bench.run();
        }
        prop_assert_eq!(bench.taken(), (0..n).filter(|place| !bad.contains(place)).collect::<Vec<_>>());
        prop_assert_eq!(bench.aside().0, bad.iter().copied().collect::<Vec<_>>());
        let [how] = &bench.settled()[..] else { panic!("{:?}", bench.reports) };
        let rejected = match how {
            How::Split { rejected } => records(*rejected),
            How::Rejected => n as u64,
            other => panic!("{other:?}"),
        };
        prop_assert_eq!(rejected, bad.len() as u64);
    }
}
