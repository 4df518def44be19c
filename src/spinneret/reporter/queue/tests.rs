//! The queue against a model of it that is too simple to be wrong.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing)]

use proptest::prelude::*;

use super::*;
use crate::spinneret::messages::RejectedReport;
use crate::spinneret::reporter::tests::sample;

const MOST: usize = 6;
const BATCH: usize = 4;

fn limits() -> ReporterOptions {
    let mut limits = ReporterOptions::default();
    (limits.batch_size, limits.max_batch_size, limits.max_queue_size) = (3, BATCH, MOST);
    limits
}

fn queue() -> Queue {
    Queue::new(limits(), Dice::new(1))
}

#[derive(Debug, Clone, Copy)]
enum Act {
    Submit { is_probe: bool, is_releasing: bool },
    SubmitWait { is_releasing: bool },
    Step,
    Deliver { rejects: bool },
    FailForNow { is_doubtful: bool },
    FailForGood { can_release: bool },
    BreakOff,
    Sleep(u16),
    Flush,
    EndFlush,
    Close(u16),
}

fn acts() -> impl Strategy<Value = Vec<Act>> {
    let act = prop_oneof![
        12 => (any::<bool>(), prop::bool::weighted(0.2)).prop_map(|(is_probe, is_releasing)| Act::Submit { is_probe, is_releasing }),
        3 => any::<bool>().prop_map(|is_releasing| Act::SubmitWait { is_releasing }),
        8 => Just(Act::Step),
        3 => any::<bool>().prop_map(|rejects| Act::Deliver { rejects }),
        3 => any::<bool>().prop_map(|is_doubtful| Act::FailForNow { is_doubtful }),
        1 => any::<bool>().prop_map(|can_release| Act::FailForGood { can_release }),
        1 => Just(Act::BreakOff),
        6 => (0_u16..40_000).prop_map(Act::Sleep),
        1 => Just(Act::Flush),
        1 => Just(Act::EndFlush),
    ];
    let close = prop::option::of((0_u16..5_000).prop_map(Act::Close));
    (prop::collection::vec(act.clone(), 0..80), close, prop::collection::vec(act, 0..20))
        .prop_map(|(before, close, after)| before.into_iter().chain(close).chain(after).collect())
}

/// A report of the model: its number, whether it may be dropped and how soon, whether it releases.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Known {
    n: usize,
    class: Class,
    is_releasing: bool,
}

#[derive(Debug, Default)]
struct Model {
    waiting: Vec<Known>,
    in_flight: Vec<Known>,
    submitted: u64,
    sent: u64,
    dropped: u64,
    released: Vec<String>,
}

impl Model {
    fn add(&mut self, known: Known) {
        self.submitted += 1;
        self.waiting.push(known);
        self.trim();
    }

    fn trim(&mut self) {
        while self.waiting.len() > MOST {
            let first = |class: Class| self.waiting.iter().position(|known| known.class == class);
            let Some(at) = first(Class::Ordinary).or_else(|| first(Class::Kept)) else { panic!("nobody may be dropped") };
            let known = self.waiting.remove(at);
            self.drop_one(known);
        }
    }

    fn drop_one(&mut self, known: Known) {
        self.dropped += 1;
        if known.is_releasing {
            self.released.push(format!("lse_{}", known.n));
        }
    }

    fn put_back(&mut self) {
        let mut all = std::mem::take(&mut self.in_flight);
        all.append(&mut self.waiting);
        self.waiting = all;
        self.trim();
    }
}

fn numbers(batch: &Batch) -> Vec<String> {
    batch.request.reports.iter().map(|report| report.report_id.clone()).collect()
}

#[allow(clippy::too_many_lines, reason = "one line of the model for each act")]
fn run(acts: Vec<Act>) -> Result<(), TestCaseError> {
    let mut queue = queue();
    let mut model = Model::default();
    let mut now = Instant::now();
    let mut batch: Option<Batch> = None;
    let mut released = Vec::new();
    let (mut next, mut flushes, mut rests_until) = (0, 0, now);
    for act in acts {
        let mut known = |class: Class, is_releasing: bool| {
            next += 1;
            let class = if is_releasing && class == Class::Ordinary { Class::Kept } else { class };
            (Known { n: next, class, is_releasing }, Report { release: is_releasing, ..sample(next) })
        };
        match act {
            Act::Submit { is_probe, is_releasing } if queue.closing().is_none() => {
                let class = if is_probe { Class::Kept } else { Class::Ordinary };
                let (known, report) = known(class, is_releasing);
                queue.push(report, class, now);
                model.add(known);
            }
            Act::SubmitWait { is_releasing } if queue.closing().is_none() => {
                prop_assert_eq!(queue.has_room(), model.waiting.len() + model.in_flight.len() < MOST);
                if queue.has_room() {
                    let (known, report) = known(Class::Awaited, is_releasing);
                    queue.push(report, Class::Awaited, now);
                    model.add(known);
                }
            }
            Act::Step if batch.is_none() => match queue.step(now) {
                Step::Send(taken) => {
                    prop_assert!(now >= rests_until || queue.closing().is_some());
                    let count = model.waiting.len().min(BATCH);
                    model.in_flight = model.waiting.drain(..count).collect();
                    let expected: Vec<String> = model.in_flight.iter().map(|known| format!("r{}", known.n)).collect();
                    prop_assert_eq!(numbers(&taken), expected);
                    batch = Some(taken);
                }
                Step::Wait(until) => {
                    prop_assert!(until.is_none_or(|until| until > now), "it would be asked again at once");
                    prop_assert!(until.is_some() || model.waiting.is_empty());
                    let is_resting = now < rests_until;
                    let is_due = model.waiting.len() >= 3
                        || (flushes > 0 && !model.waiting.is_empty())
                        || model.waiting.iter().any(|known| known.is_releasing);
                    prop_assert!(is_resting || !is_due, "{:?}", model);
                }
                Step::End => {
                    prop_assert!(queue.closing().is_some());
                    model.waiting.drain(..).collect::<Vec<_>>().into_iter().for_each(|known| model.drop_one(known));
                }
            },
            Act::Deliver { rejects } => {
                if let Some(batch) = batch.take() {
                    let first = model.in_flight.remove(0);
                    let reason = "invalid_argument".to_owned();
                    let rejected = RejectedReport { report_id: format!("r{}", first.n), reason, ..RejectedReport::default() };
                    let rejected = if rejects { vec![rejected] } else { vec![] };
                    if rejects && first.is_releasing {
                        model.released.push(format!("lse_{}", first.n));
                    }
                    queue.delivered(&batch, &ReportResponse { rejected, ..ReportResponse::default() });
                    prop_assert_eq!(queue.is_settled(u64::MAX), !rejects && model.waiting.is_empty());
                    queue.told();
                    model.sent += 1 + count_of(model.in_flight.drain(..).count());
                    rests_until = now;
                }
            }
            Act::FailForNow { is_doubtful } => {
                if let Some(batch) = batch.take() {
                    let wait = queue.failed(batch, Verdict::Again { hint: None, is_doubtful }, now).unwrap();
                    prop_assert!((Duration::from_millis(250)..Duration::from_secs(30)).contains(&wait));
                    rests_until = now + wait;
                    model.put_back();
                }
            }
            Act::FailForGood { can_release } => {
                if let Some(batch) = batch.take() {
                    prop_assert_eq!(queue.failed(batch, Verdict::GiveUp { can_release }, now), None);
                    for known in std::mem::take(&mut model.in_flight) {
                        model.drop_one(Known { is_releasing: known.is_releasing && can_release, ..known });
                    }
                    rests_until = now;
                }
            }
            Act::BreakOff => {
                if let Some(batch) = batch.take() {
                    queue.put_back(batch, true, now);
                    model.put_back();
                }
            }
            Act::Sleep(wait) => now += Duration::from_millis(u64::from(wait)),
            Act::Flush => {
                flushes += 1;
                queue.begin_flush();
            }
            Act::EndFlush => {
                flushes = (flushes - 1).max(0);
                queue.end_flush();
            }
            Act::Close(limit) => {
                queue.begin_close(Duration::from_millis(u64::from(limit)), now);
                rests_until = now;
                if limit == 0 {
                    model.waiting.drain(..).collect::<Vec<_>>().into_iter().for_each(|known| model.drop_one(known));
                }
            }
            Act::Submit { .. } | Act::SubmitWait { .. } | Act::Step => {}
        }
        released.append(&mut queue.take_effects().releases);
        let stats = queue.stats();
        prop_assert_eq!(stats.submitted, stats.sent + stats.dropped + stats.queued + stats.in_flight);
        prop_assert!(stats.queued <= count_of(MOST));
        let counted = (stats.submitted, stats.sent, stats.dropped, stats.queued, stats.in_flight);
        let expected =
            (model.submitted, model.sent, model.dropped, count_of(model.waiting.len()), count_of(model.in_flight.len()));
        prop_assert_eq!(counted, expected, "{:?}", act);
        prop_assert_eq!(&released, &model.released, "{:?}", act);
        prop_assert_eq!(queue.is_clear(), model.waiting.is_empty() && model.in_flight.is_empty());
    }
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1_000))]

    #[test]
    fn order_bound_and_counters_are_those_of_a_simple_model(acts in acts()) {
        run(acts)?;
    }
}

#[test]
fn the_worker_is_woken_only_when_there_is_something_new_to_it() {
    let mut queue = queue();
    let now = Instant::now();
    let wakes = |queue: &mut Queue| queue.take_effects().wakes_worker;
    assert!(matches!(queue.step(now), Step::Wait(None)));
    queue.push(sample(1), Class::Ordinary, now);
    assert!(wakes(&mut queue), "the first report sets the interval off");
    let Step::Wait(Some(until)) = queue.step(now) else { panic!("one report waits for others") };
    assert_eq!(until, now + Duration::from_millis(200));
    queue.push(sample(2), Class::Ordinary, now);
    assert!(!wakes(&mut queue));
    queue.push(sample(3), Class::Ordinary, now);
    assert!(wakes(&mut queue), "the batch is full");
    queue.push(sample(4), Class::Ordinary, now);
    assert!(!wakes(&mut queue), "it is woken already");
    let Step::Send(batch) = queue.step(now) else { panic!("a full batch is sent") };
    queue.push(Report { release: true, ..sample(5) }, Class::Ordinary, now);
    assert!(!wakes(&mut queue), "it is busy");
    queue.failed(batch, Verdict::Again { hint: None, is_doubtful: false }, now);
    assert!(matches!(queue.step(now), Step::Wait(Some(_))));
    queue.push(sample(6), Class::Ordinary, now);
    queue.begin_flush();
    assert!(!wakes(&mut queue), "it rests");
    queue.begin_close(Duration::from_secs(1), now);
    assert!(wakes(&mut queue), "closing ends the rest");
}

#[test]
fn waits_grow_and_follow_hints_within_their_bounds() {
    let mut queue = queue();
    let mut now = Instant::now();
    let bounds: [(u64, u64); 8] = [
        (250, 500),
        (500, 1_000),
        (1_000, 2_000),
        (2_000, 4_000),
        (4_000, 8_000),
        (8_000, 16_000),
        (15_000, 30_000),
        (15_000, 30_000),
    ];
    queue.push(Report { release: true, ..sample(1) }, Class::Ordinary, now);
    for (low, high) in bounds {
        let Step::Send(batch) = queue.step(now) else { panic!("it is due") };
        let wait = queue.failed(batch, Verdict::Again { hint: None, is_doubtful: false }, now).unwrap();
        assert!((Duration::from_millis(low)..Duration::from_millis(high)).contains(&wait), "{low}: {wait:?}");
        let Step::Wait(Some(until)) = queue.step(now) else { panic!("it rests") };
        assert_eq!(until, now + wait);
        now = until;
    }
    let Step::Send(batch) = queue.step(now) else { panic!("it is due") };
    let short = Some(Duration::from_millis(1));
    let wait = queue.failed(batch, Verdict::Again { hint: short, is_doubtful: false }, now).unwrap();
    assert!(wait >= Duration::from_secs(15), "a hint never shortens a wait: {wait:?}");
}

#[test]
fn limits_of_any_length_do_not_overflow_the_clock() {
    let mut limits = limits();
    limits.flush_interval = Duration::MAX;
    let mut queue = Queue::new(limits, Dice::new(1));
    let now = Instant::now();
    queue.push(sample(1), Class::Ordinary, now);
    assert!(matches!(queue.step(now), Step::Wait(Some(_))));
    queue.begin_close(Duration::MAX, now);
    assert!(matches!(queue.step(now), Step::Send(_)));
}
