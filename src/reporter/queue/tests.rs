//! The queue by tables, and against a list that is gone through report by report.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing)]

use std::collections::BTreeSet;
use std::rc::Rc;

use proptest::prelude::*;

use super::*;
use crate::reporter::tests::{report, under};

const LIMITS: Limits = Limits { batch: 3, flush: Duration::from_millis(200) };
const WIDE: Limits = Limits { batch: 100, ..LIMITS };
const MS: Duration = Duration::from_millis(1);

fn ids(reports: &[Report]) -> Vec<u64> {
    reports.iter().map(|report| report.id).collect()
}

fn no(id: u64) -> Rejected {
    Rejected { id, is_unknown_lease: false, reason: "no".to_owned() }
}

/// The next call and the ids of its reports.
fn next<S>(queue: &mut Queue<S>, limits: Limits) -> (CallId, Vec<u64>) {
    let (call, reports) = queue.call(limits).unwrap();
    (call, ids(&reports))
}

#[test]
fn a_call_is_due_by_size_by_age_or_by_a_release() {
    let start = Instant::now();
    let mut queue = Queue::new();
    assert_eq!(queue.due(LIMITS, start), Due::No);
    assert!(queue.call(LIMITS).is_none());
    queue.push(report(1, false), (), start);
    queue.push(report(2, false), (), start + 150 * MS);
    assert_eq!(queue.due(LIMITS, start), Due::At(start + LIMITS.flush));
    assert_eq!(queue.due(LIMITS, start + LIMITS.flush), Due::Now);
    queue.push(report(3, false), (), start);
    assert_eq!(queue.due(LIMITS, start), Due::Now, "a full batch");
    let (call, sent) = next(&mut queue, LIMITS);
    assert_eq!(sent, [1, 2, 3]);
    assert_eq!(queue.due(LIMITS, start), Due::No);
    let end = queue.taken(call, vec![no(2), no(2), no(9)]);
    assert_eq!((end.handed, end.rejected), (2, vec![(no(2), None)]));
    queue.push(report(4, true), (), start);
    assert_eq!(queue.due(LIMITS, start), Due::Now, "a releasing report");
    assert_eq!(queue.taken(call, Vec::new()), Settled::default(), "a call ends once");
}

#[test]
fn beside_calls_that_are_out_another_one_goes_with_a_fair_share() {
    let start = Instant::now();
    // What the calls that are out have, what waits, the last of it ending a lease or not: whether that goes at once.
    for (out, waiting, release, due) in [
        (&[1][..], 1, true, true),
        (&[1], 1, false, false),
        (&[9], 2, true, false),
        (&[9], 3, true, true),
        (&[9], 3, false, false),
        (&[9, 3], 3, true, false),
        (&[9, 3], 4, true, true),
        (&[1, 1], 1, true, true),
        (&[9, 3], 100, false, true),
        (&[9, 3, 4], 100, true, false),
    ] {
        let mut queue = Queue::new();
        let mut id = 0;
        let mut push = |queue: &mut Queue<()>, number: usize, release: bool| {
            for n in 1..=number {
                id += 1;
                queue.push(report(id, release && n == number), (), start);
            }
        };
        for number in out {
            push(&mut queue, *number, true);
            assert_eq!(next(&mut queue, WIDE).1.len(), *number);
        }
        push(&mut queue, waiting, release);
        let then = if out.len() == CALLS { Due::No } else { Due::At(start + WIDE.flush) };
        assert_eq!(queue.due(WIDE, start), if due { Due::Now } else { then }, "{out:?} {waiting} {release}");
        queue.hurry(Haste::Flush);
        let is_share = waiting * CALLS >= out.iter().sum();
        let due = out.len() < CALLS && is_share;
        assert_eq!(queue.due(WIDE, start), if due { Due::Now } else { then }, "{out:?} {waiting} {release} with a flush");
        queue.hurry(Haste::HandOver);
        assert_eq!(queue.due(WIDE, start) == Due::Now, out.len() < CALLS);
        assert_eq!(queue.call(WIDE).is_some(), out.len() < CALLS);
    }
}

#[test]
fn a_report_waits_for_the_call_that_has_an_earlier_one_of_its_lease() {
    let start = Instant::now();
    let mut queue = Queue::new();
    queue.push(under("a", 1, false), (), start);
    queue.push(under("b", 2, false), (), start);
    queue.push(under("a", 3, false), (), start);
    queue.push(under("a", 4, false), (), start);
    let (first, sent) = next(&mut queue, LIMITS);
    assert_eq!(sent, [1, 2, 3]);
    for report in [under("b", 5, true), under("c", 6, true), under("a", 7, true)] {
        queue.push(report, (), start);
    }
    let (second, sent) = next(&mut queue, LIMITS);
    assert_eq!(sent, [6], "what was left of a lease waits too");
    assert_eq!((queue.call(LIMITS).is_none(), queue.due(LIMITS, start + LIMITS.flush), queue.len()), (true, Due::No, 7));
    assert_eq!(queue.taken(second, Vec::new()).ends, 1);
    assert_eq!(queue.through(), 0, "those before are not there yet");
    queue.hurry(Haste::Flush);
    assert_eq!(queue.taken(first, Vec::new()).handed, 3);
    assert_eq!(queue.through(), 3);
    assert_eq!(queue.due(LIMITS, start), Due::Now);
    let (last, sent) = next(&mut queue, LIMITS);
    assert_eq!(sent, [4, 5, 7], "in their order");
    assert_eq!(queue.refused(last, "over").rejected.len(), 3);
    assert_eq!((queue.through(), queue.is_empty()), (7, true));
}

#[test]
fn a_failed_call_goes_back_to_its_place_and_waits() {
    let start = Instant::now();
    let mut queue = Queue::new();
    for id in 1..=5 {
        queue.push(report(id, id == 2), (), start);
    }
    let (call, sent) = next(&mut queue, LIMITS);
    assert_eq!(sent, [1, 2, 3]);
    assert_eq!(queue.failed(call), Some(1));
    let later = start + Duration::from_secs(1);
    queue.hold_until(later);
    assert_eq!(queue.due(LIMITS, start), Due::At(later));
    queue.hurry(Haste::Flush);
    assert_eq!(queue.due(LIMITS, start), Due::At(later), "a plane that failed is not asked in a loop");
    queue.hurry(Haste::HandOver);
    queue.hurry(Haste::Flush);
    assert_eq!(queue.due(LIMITS, start), Due::Now, "the last reports do not wait");
    let (call, sent) = next(&mut queue, LIMITS);
    assert_eq!(sent, [1, 2, 3]);
    assert_eq!(queue.failed(call), Some(2));
    queue.hold_until(later);
    assert_eq!(queue.due(LIMITS, start), Due::At(later), "one haste is one try");
    assert_eq!(queue.due(LIMITS, later), Due::Now);
    let (call, sent) = next(&mut queue, LIMITS);
    assert_eq!(sent, [1, 2, 3]);
    assert_eq!(queue.due(LIMITS, later + LIMITS.flush), Due::No, "one call finds out whether the plane is back");
    assert_eq!(queue.taken(call, Vec::new()).handed, 3);
    queue.hurry(Haste::Flush);
    assert_eq!(queue.due(LIMITS, start), Due::Now, "without a failure a flush does not wait");
    let (call, sent) = next(&mut queue, LIMITS);
    assert_eq!(sent, [4, 5]);
    let end = queue.refused(call, "over");
    assert_eq!(end.handed, 0);
    assert_eq!(end.rejected.iter().map(|(no, _)| (no.id, no.reason.as_str())).collect::<Vec<_>>(), [(4, "over"), (5, "over")]);
    assert!(queue.is_empty());
}

#[test]
fn calls_that_were_out_together_fail_as_one() {
    let start = Instant::now();
    let later = start + Duration::from_secs(1);
    // What becomes of the second of three calls after the first one failed, and what then holds at once.
    for (second_fails, due) in [(true, Due::At(later)), (false, Due::At(later))] {
        let mut queue = Queue::new();
        let mut calls = Vec::new();
        for id in 1..=3 {
            queue.push(report(id, true), (), start);
            calls.push(next(&mut queue, LIMITS).0);
        }
        queue.push(report(4, true), (), start);
        assert_eq!(queue.failed(calls[1]), Some(1));
        queue.hold_until(later);
        if second_fails {
            assert_eq!(queue.failed(calls[0]), None);
        } else {
            assert_eq!(queue.taken(calls[0], Vec::new()).handed, 1);
        }
        assert_eq!(queue.due(LIMITS, start), due, "an answer from before the failure ends no back-off");
        assert_eq!(queue.through(), u64::from(!second_fails));
        let expected: &[u64] = if second_fails { &[1, 2, 4] } else { &[2, 4] };
        let (call, sent) = next(&mut queue, LIMITS);
        assert_eq!(sent, expected, "each in its place");
        assert_eq!(queue.failed(calls[2]), None);
        assert_eq!(queue.failed(call), Some(2), "a try after the wait counts");
        queue.hold_until(later);
        let (call, sent) = next(&mut queue, WIDE);
        assert_eq!(sent.last(), Some(&4));
        queue.taken(call, Vec::new());
        assert_eq!((queue.through(), queue.is_empty()), (4, true));
        queue.push(report(5, true), (), start);
        assert_eq!(queue.due(LIMITS, start), Due::Now);
        let (call, _) = next(&mut queue, LIMITS);
        assert_eq!(queue.failed(call), Some(1), "an answer ended the row");
    }
}

#[derive(Debug, Clone)]
enum Step {
    /// A report of one of a few leases, which it ends or not.
    Push(usize, bool),
    Call,
    /// The call by number, what of it is rejected.
    Taken(usize, Vec<u64>),
    Refused(usize),
    Failed(usize),
    Hurry(Haste),
}

fn step() -> impl Strategy<Value = Step> {
    let call = 0..CALLS;
    prop_oneof![
        8 => (0_usize..5, any::<bool>()).prop_map(|(lease, release)| Step::Push(lease, release)),
        6 => Just(Step::Call),
        3 => (call.clone(), proptest::collection::vec(0_u64..80, 0..4)).prop_map(|(call, no)| Step::Taken(call, no)),
        1 => call.clone().prop_map(Step::Refused),
        2 => call.prop_map(Step::Failed),
        1 => prop_oneof![Just(Haste::Flush), Just(Haste::HandOver)].prop_map(Step::Hurry),
    ]
}

/// The same, told simply: all reports that are not settled, in order, each with the call that has it.
#[derive(Default)]
struct Model {
    reports: Vec<(u64, LeaseId, Option<CallId>)>,
    calls: Vec<(CallId, u64)>,
    round: u64,
}

impl Model {
    /// The reports of the next call.
    fn next(&self) -> Vec<u64> {
        if self.calls.len() == CALLS {
            return Vec::new();
        }
        let under_way: BTreeSet<&LeaseId> = self.reports.iter().filter(|(.., call)| call.is_some()).map(|(_, l, _)| l).collect();
        let may_go = self.reports.iter().filter(|(_, lease, _)| !under_way.contains(lease));
        may_go.map(|(id, ..)| *id).take(LIMITS.batch).collect()
    }

    fn end(&mut self, call: CallId) -> (Vec<u64>, u64) {
        let of_it = self.reports.extract_if(.., |(.., by)| *by == Some(call)).map(|(id, ..)| id).collect();
        let at = self.calls.iter().position(|(id, _)| *id == call).unwrap();
        (of_it, self.calls.remove(at).1)
    }
}

proptest! {
    #[test]
    fn every_report_is_settled_once_in_the_order_of_its_lease_and_keeps_its_slot_until_then(
        steps in proptest::collection::vec(step(), 1..150)
    ) {
        let now = Instant::now();
        let slot = Rc::new(());
        let mut queue = Queue::new();
        let mut model = Model::default();
        let (mut pushed, mut settled) = (0_u64, BTreeSet::new());
        let mut lives = [0; 5];
        let mut last: std::collections::HashMap<LeaseId, u64> = std::collections::HashMap::new();
        let mut lease_of = Vec::new();
        for step in steps {
            let by_number = |number: usize, model: &Model| model.calls.get(number).map(|(call, _)| *call);
            let mut ended = Vec::new();
            match step {
                Step::Push(lease, release) => {
                    // A report that ends a lease is its last.
                    let name = format!("{lease}.{}", lives[lease]);
                    lives[lease] += usize::from(release);
                    pushed += 1;
                    let report = under(&name, pushed, release);
                    lease_of.push(report.lease.clone());
                    model.reports.push((pushed, report.lease.clone(), None));
                    queue.push(report, Rc::clone(&slot), now);
                }
                Step::Call => {
                    let expected = model.next();
                    let made = queue.call(LIMITS);
                    prop_assert_eq!(made.as_ref().map(|(_, reports)| ids(reports)).unwrap_or_default(), expected.clone());
                    prop_assert_eq!(made.is_none(), expected.is_empty());
                    if let Some((call, _)) = made {
                        model.calls.push((call, model.round));
                        model.reports.iter_mut().filter(|(id, ..)| expected.contains(id)).for_each(|r| r.2 = Some(call));
                    }
                }
                Step::Taken(number, rejected) => {
                    let Some(call) = by_number(number, &model) else { continue };
                    (ended, _) = model.end(call);
                    let end = queue.taken(call, rejected.iter().copied().map(no).collect());
                    let refused: Vec<u64> = end.rejected.iter().map(|(no, _)| no.id).collect();
                    let expected: Vec<u64> = ended.iter().copied().filter(|id| rejected.contains(id)).collect();
                    prop_assert_eq!(&refused, &expected);
                    prop_assert_eq!(end.handed, (ended.len() - refused.len()) as u64);
                }
                Step::Refused(number) => {
                    let Some(call) = by_number(number, &model) else { continue };
                    (ended, _) = model.end(call);
                    let refused: Vec<u64> = queue.refused(call, "no").rejected.iter().map(|(no, _)| no.id).collect();
                    prop_assert_eq!(&refused, &ended);
                }
                Step::Failed(number) => {
                    let Some(call) = by_number(number, &model) else { continue };
                    let round = model.calls[number].1;
                    model.reports.iter_mut().filter(|(.., by)| *by == Some(call)).for_each(|r| r.2 = None);
                    model.end(call);
                    let counts = queue.failed(call).is_some();
                    prop_assert_eq!(counts, round == model.round);
                    if counts {
                        model.round += 1;
                        queue.hold_until(now);
                    }
                }
                Step::Hurry(haste) => queue.hurry(haste),
            }
            for id in ended {
                prop_assert!(settled.insert(id), "{} twice", id);
                let lease = &lease_of[usize::try_from(id).unwrap() - 1];
                let before = last.insert(lease.clone(), id);
                prop_assert!(before.is_none_or(|before| before < id), "{:?} before {}", before, id);
            }
            prop_assert_eq!(queue.len(), model.reports.len());
            prop_assert_eq!(settled.len() + model.reports.len(), usize::try_from(pushed).unwrap());
            prop_assert_eq!(Rc::strong_count(&slot) - 1, queue.len());
            prop_assert_eq!(queue.through(), model.reports.first().map_or(pushed, |(id, ..)| id - 1));
            let finds_out = queue.retry_at.is_some() && model.calls.iter().any(|(_, round)| *round == model.round);
            let may_go = !model.next().is_empty() && (!finds_out || queue.haste == Haste::HandOver);
            prop_assert_eq!(queue.due(LIMITS, now + LIMITS.flush) != Due::No, may_go);
            let releasing = queue.waiting.iter().filter(|entry| entry.report.release).count();
            prop_assert_eq!(queue.releasing, releasing);
        }
    }
}
