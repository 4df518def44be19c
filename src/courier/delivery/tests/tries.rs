//! Tries: how long is waited, when it ends, and what is said.

use tracing::field::{Field, Visit};
use tracing_subscriber::layer::{Context, Layer, SubscriberExt as _};

use super::*;

fn retry(after: Option<Duration>) -> Answer {
    Answer::Retry { after, why: "503".to_owned() }
}

/// The events of a thread: level, message, and the number of records.
#[derive(Clone, Default)]
struct Lines(Arc<Mutex<Vec<String>>>);

#[derive(Default)]
struct Read(String, String);

impl Visit for Read {
    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        match field.name() {
            "message" => self.0 = format!("{value:?}"),
            "records" => self.1 = format!("{value:?}"),
            _ => {}
        }
    }
}

impl<S: tracing::Subscriber> Layer<S> for Lines {
    fn on_event(&self, event: &tracing::Event<'_>, _: Context<'_, S>) {
        let mut read = Read::default();
        event.record(&mut read);
        assert_eq!(event.metadata().target(), "dragline::courier");
        self.0.lock().unwrap().push(format!("{} {} [{}]", event.metadata().level(), read.0, read.1));
    }
}

fn lines_of(act: impl FnOnce()) -> Vec<String> {
    let lines = Lines::default();
    // With one dispatcher alone, tracing asks the thread that first meets a callsite, and caches its answer for all.
    let _second = tracing::Dispatch::new(tracing_subscriber::registry());
    tracing::subscriber::with_default(tracing_subscriber::registry().with(lines.clone()), act);
    let lines = lines.0.lock().unwrap();
    lines.clone()
}

#[test]
fn the_sink_may_ask_for_more_within_reason() {
    for (own, asked, wait) in [(2, None, 2), (2, Some(7), 7), (9, Some(7), 9), (2, Some(9000), 300)] {
        assert_eq!(at_least(own * SECOND, asked.map(|asked| asked * SECOND)), wait * SECOND, "{own} {asked:?}");
    }
}

#[test]
fn waits_grow_up_to_a_minute_and_the_same_batch_is_sent_again() {
    let mut bench = Bench::new(|_, _| retry(None));
    bench.take(&batch_of(3, false), &[]);
    bench.take(&batch_of(4, false), &[]);
    let (mut longest, mut at) = (Duration::ZERO, bench.now);
    for _ in 0..200 {
        assert!(bench.step());
        longest = longest.max(bench.now - at);
        at = bench.now;
    }
    assert!(longest > 50 * SECOND && longest <= 60 * SECOND, "{longest:?}");
    let calls = bench.calls.lock().unwrap();
    assert!(calls.iter().all(|(id, _)| *id == batch_of(3, false).id), "oldest first");
    assert_eq!(bench.stats.count("courier/retries"), calls.len() as i64);
    assert!(bench.reports.is_empty());
}

#[test]
fn what_the_sink_asks_for_is_waited_for() {
    let mut answers = vec![Answer::Delivered, retry(Some(9000 * SECOND)), retry(Some(100 * SECOND))];
    let mut bench = Bench::new(move |_, _| answers.pop().unwrap());
    bench.take(&batch_of(3, false), &[]);
    let begun = bench.now;
    bench.step();
    assert_eq!(bench.now - begun, 100 * SECOND);
    bench.step();
    assert_eq!(bench.now - begun, 400 * SECOND);
    bench.run();
    assert_eq!(bench.settled(), [How::Delivered]);
}

#[test]
fn the_close_asks_once_more_at_once_and_then_at_least_every_second() {
    let mut bench = Bench::new(|_, _| retry(None));
    bench.take(&batch_of(3, false), &[]);
    bench.take(&batch_of(4, false), &[]);
    while bench.calls() < 9 {
        bench.step();
    }
    let tried = bench.calls();
    let closing = bench.now;
    bench.state.close_by(closing + 4 * SECOND);
    // An earlier limit is never extended.
    bench.state.close_by(closing + 9 * SECOND);
    bench.run();
    assert_eq!(bench.now, closing + 4 * SECOND);
    assert!(bench.calls() >= tried + 4, "{tried} {}", bench.calls());
    assert!(bench.settled().iter().all(|how| matches!(how, How::Spooled(why) if why.contains("closed"))));
    assert_eq!(bench.settled().len(), 2);
}

#[test]
fn a_sink_that_names_a_time_is_not_asked_before_not_even_at_the_close() {
    let mut bench = Bench::new(|_, _| retry(Some(300 * SECOND)));
    bench.take(&batch_of(3, false), &[]);
    let begun = bench.now;
    assert!(matches!(bench.state.step(bench.now), Step::Call(..)));
    bench.state.answered(retry(Some(300 * SECOND)), bench.now);
    bench.state.close_by(begun + 4 * SECOND);
    bench.run();
    assert_eq!((bench.calls(), bench.now), (1, begun + 4 * SECOND));
    assert!(matches!(&bench.settled()[..], [How::Spooled(_)]));
}

#[test]
fn the_close_ends_a_call_under_way() {
    let mut bench = Bench::new(|_, _| Answer::Delivered);
    bench.take(&batch_of(3, false), &[]);
    assert!(matches!(bench.state.step(bench.now), Step::Call(_, None)));
    assert!(matches!(bench.state.step(bench.now), Step::Idle), "one call at a time");
    let limit = bench.now + SECOND;
    bench.state.close_by(limit);
    assert!(matches!(bench.state.step(bench.now), Step::Wait(at) if at == limit));
    assert!(bench.state.is_calling());
    assert!(matches!(bench.state.step(limit), Step::Idle));
    assert!(!bench.state.is_calling());
    bench.reports = bench.state.take_reports();
    assert!(matches!(&bench.settled()[..], [How::Spooled(_)]));
    assert!(matches!(bench.state.answered(Answer::Delivered, limit), Step::Idle), "too late to be heard");
    assert!(bench.state.take_reports().is_empty());
}

#[test]
fn a_fatal_answer_ends_delivery_and_stops_the_job_where_that_is_asked_for() {
    for (on_fatal, stops) in [(OnFatal::Spool, 0), (OnFatal::Stop, 1)] {
        let mut bench = Bench::with(on_fatal, |_, _| Answer::Fatal { why: "401: who are you".to_owned() });
        for n in 3..6 {
            bench.take(&batch_of(n, false), &[]);
        }
        bench.run();
        bench.take(&batch_of(7, false), &[]);
        bench.run();
        assert_eq!(bench.calls(), 1);
        assert_eq!(bench.settled().len(), 4);
        assert!(bench.settled().iter().all(|how| matches!(how, How::Spooled(why) if why.contains("401"))));
        let told = bench.reports.iter().filter(|report| matches!(report, Report::Refused(why) if why.contains("http://h/")));
        assert_eq!(told.count(), stops);
    }
}

#[test]
fn panics_in_a_row_are_fatal_and_others_are_survived() {
    for (panics, fatal) in [(vec![1, 2, 4, 5], false), (vec![2, 3, 4], true)] {
        let mut call = 0;
        let judge = move |_: &[usize], _: &Batch| {
            call += 1;
            assert!(!panics.contains(&call), "a sink with a bug");
            Answer::Delivered
        };
        let mut bench = Bench::new(judge);
        for n in 3..6 {
            bench.take(&batch_of(n, false), &[]);
        }
        bench.run();
        let spooled = bench.settled().iter().filter(|how| matches!(how, How::Spooled(why) if why.contains("a bug"))).count();
        assert_eq!(spooled, if fatal { 2 } else { 0 }, "{:?}", bench.settled());
        assert_eq!(bench.stats.count("courier/failures/panic"), if fatal { 3 } else { 4 });
    }
}

#[test]
fn a_call_that_was_lost_with_its_actor_is_made_again() {
    let mut bench = Bench::new(|_, _| Answer::Delivered);
    bench.take(&batch_of(3, false), &[]);
    assert!(matches!(bench.state.step(bench.now), Step::Call(..)));
    assert!(matches!(bench.state.recover(bench.now), Step::Wait(_)));
    bench.run();
    assert_eq!((bench.settled(), bench.calls()), (vec![How::Delivered], 2));
}

#[test]
fn each_failed_try_is_one_line_with_what_comes_next() {
    let mut answers = [
        retry(None),
        Answer::Split { why: "400: bad\nrecord".to_owned() },
        Answer::Delivered,
        Answer::Split { why: "400: bad".to_owned() },
        Answer::Delivered,
        Answer::Fatal { why: "401".to_owned() },
    ]
    .into_iter();
    let mut bench = Bench::new(move |_, _| answers.next().unwrap());
    let (whole, second, third) = (batch_of(2, false), batch_of(3, true), batch_of(4, false));
    bench.take(&whole, &[]);
    let lines = lines_of(|| {
        bench.run();
        bench.take(&second, &[]);
        bench.take(&third, &[]);
        bench.run();
    });
    let part = BatchId::of_part(whole.id, 1, 1);
    let spool = bench.dir.path().display();
    let [again, apart, back, aside, nothing] = &lines[..] else { panic!("{lines:#?}") };
    let failed = |level: &str, id: BatchId| format!("{level} Failed to send APCloudy batch {id}: ");
    let begins = format!("{}503; next try in ", failed("WARN", whole.id));
    assert!(again.starts_with(&begins) && again.ends_with(" s [2]"), "{again}");
    assert_eq!(*apart, format!("{}400: bad record; taking it apart [2]", failed("WARN", whole.id)));
    assert_eq!(*back, "INFO APCloudy batches are sent again []");
    let file = format!("{spool}/rejected/{}-1-1.json", whole.id);
    assert_eq!(*aside, format!("{}400: bad; the record is in {file} [1]", failed("ERROR", part)));
    let end = format!("nothing more is sent, everything stays in the spool {spool}; mend it and run `dragline deliver` [4]");
    assert_eq!(*nothing, format!("{}401; {end}", failed("ERROR", third.id)));
}

#[test]
fn the_close_says_once_that_a_batch_stays() {
    let id = batch_of(2, false).id;
    let lines = lines_of(|| {
        let mut bench = Bench::new(|_, _| retry(None));
        bench.take(&batch_of(2, false), &[]);
        bench.take(&batch_of(3, false), &[]);
        bench.state.close_by(bench.now + Duration::from_millis(1));
        bench.run();
    });
    assert_eq!(lines, [format!("WARN Failed to send APCloudy batch {id}: 503; it stays in the spool [2]")]);
    // A call that hangs is a failed try when it is ended.
    let lines = lines_of(|| {
        let mut bench = Bench::new(|_, _| Answer::Delivered);
        bench.take(&batch_of(2, false), &[]);
        bench.state.close_by(bench.now + SECOND);
        assert!(matches!(bench.state.step(bench.now), Step::Call(_, Some(_))));
        bench.state.step(bench.now + SECOND);
    });
    let text = format!("WARN Failed to send APCloudy batch {id}: no answer before the job closed; it stays in the spool [2]");
    assert_eq!(lines, [text]);
}
