//! Failure: panics, restarts, budgets, and the reports of every end.

use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use dragline::actor::{AskError, Died, Epoch, How, Inbox, Place, Policy, Refused, run_local, supervise};
use tokio::time::Instant;

use crate::player::{Control, Did, Log, Order, Player, QUICK, Stage, ms, settle};

/// Makes the actor panic in one way and checks that its successor serves what was queued.
fn restarts_after(cause: Control, text: &str, lost: usize) {
    run_local(async {
        let stage = Stage::here(10);
        settle().await;
        stage.inbox.controls().tell(cause);
        for n in 0..5 {
            stage.inbox.link().offer(Order::Note(n)).unwrap();
        }
        tokio::time::sleep(ms(500)).await;
        assert_eq!(
            stage.deaths(),
            [Died { name: "player", epoch: Epoch(1), how: How::Panicked(text.to_owned()), lost }],
            "{text}"
        );
        assert_eq!(stage.log.orders(), [0, 1, 2, 3, 4], "{text}");
        assert_eq!(stage.log.count(&Did::Started(Epoch(2))), 1, "{text}");
        assert_eq!(stage.inbox.link().free(), 10, "{text}");
        stage.inbox.link().offer(Order::Note(5)).unwrap();
        settle().await;
        assert_eq!(stage.log.orders().last(), Some(&5), "{text}");
        assert_eq!(stage.inbox.probe().snapshot().restarts, 1, "{text}");
    });
}

#[test]
fn a_panic_anywhere_leads_to_a_successor_that_serves_what_was_queued() {
    restarts_after(Control::Panic, "in control", 0);
    restarts_after(Control::PanicAfter(ms(1)), "in control", 0);
    restarts_after(Control::PanicAfter(ms(20)), "in control", 0);
    restarts_after(Control::PanicInFuture, "in a future", 0);
    restarts_after(Control::PanicWhenDone, "when done", 0);
    restarts_after(Control::PanicAtTurnEnd, "at the end of a turn", 0);
}

#[test]
fn a_panicking_handler_loses_the_message_in_hand_and_no_other() {
    run_local(async {
        let stage = Stage::here(10);
        let link = stage.inbox.link();
        link.offer(Order::Note(1)).unwrap();
        link.offer(Order::Panic("on purpose")).unwrap();
        link.offer(Order::Note(2)).unwrap();
        settle().await;
        assert_eq!(
            stage.deaths(),
            [Died { name: "player", epoch: Epoch(1), how: How::Panicked("on purpose".to_owned()), lost: 1 }]
        );
        assert_eq!(stage.log.orders(), [1], "nobody serves during the back-off");
        link.offer(Order::Note(3)).unwrap();
        tokio::time::sleep(ms(200)).await;
        assert_eq!(stage.log.orders(), [1, 2, 3]);
        assert_eq!(link.free(), 10, "the lost order gave its slot back");
        let reading = stage.inbox.probe().snapshot();
        assert_eq!((reading.accepted, reading.handled, reading.discarded), (4, 3, 1));
    });
}

#[test]
fn a_question_lost_in_a_panic_is_known_to_be_lost() {
    run_local(async {
        let stage = Stage::here(4);
        let link = stage.inbox.link();
        let asked = link.ask(ms(1_000), |reply: dragline::actor::Reply<u32>| {
            drop(reply);
            Order::Panic("with a question in hand")
        });
        assert_eq!(asked.await, Err(AskError::NoAnswer));
    });
}

#[test]
fn the_budget_spent_supervision_gives_up_and_counts_what_it_drops() {
    run_local(async {
        let stage = Stage::here(10);
        let link = stage.inbox.link();
        for _ in 0..4 {
            link.offer(Order::Panic("again")).unwrap();
        }
        for n in 0..3 {
            link.offer(Order::Note(n)).unwrap();
        }
        stage.inbox.facts().post(Order::Note(9));
        tokio::time::sleep(Duration::from_secs(10)).await;
        let hows: Vec<_> = stage.deaths().into_iter().map(|d| (d.epoch.0, d.how, d.lost)).collect();
        let again = || How::Panicked("again".to_owned());
        assert_eq!(hows, [(1, again(), 1), (2, again(), 1), (3, again(), 1), (4, again(), 1), (4, How::GaveUp, 4)]);
        assert!(stage.actor.has_ended());
        assert!(matches!(link.offer(Order::Note(1)), Err(Refused::Closed(Order::Note(1)))));
        assert!(!stage.inbox.facts().post(Order::Note(1)));
        assert!(!stage.inbox.controls().tell(Control::Note(1)));
        assert!(!stage.actor.replace(Place::Here));
        assert_eq!(stage.inbox.depth(), 0);
        assert_eq!(stage.inbox.probe().snapshot().discarded, 8);
    });
}

/// Restarts at these times, in milliseconds from the first start, for an actor that panics at once.
fn starts(policy: Policy, panics: u32) -> Vec<u128> {
    run_local(async move {
        let begun = Instant::now();
        let starts = Arc::new(Mutex::new(Vec::new()));
        let inbox = Inbox::<Player>::new("player", 1);
        let seen = Arc::clone(&starts);
        supervise(
            Place::Here,
            &inbox,
            policy,
            move |epoch| {
                seen.lock().unwrap().push(begun.elapsed().as_millis());
                assert!(epoch.0 > panics, "in the factory");
                Player::new(Log::default())
            },
            |_| {},
        );
        tokio::time::sleep(Duration::from_secs(60)).await;
        let starts = starts.lock().unwrap();
        starts.clone()
    })
}

#[test]
fn the_back_off_doubles_up_to_its_limit() {
    let policy = Policy { max_restarts: 10, ..QUICK };
    assert_eq!(starts(policy, 5), [0, 100, 300, 600, 900, 1_200], "100, 200, then 300 at most");
    assert_eq!(starts(Policy { max_restarts: 2, ..QUICK }, 9), [0, 100, 300], "a failing factory spends the budget");
    assert_eq!(starts(Policy::FATAL, 9), [0]);
}

#[test]
fn restarts_older_than_the_window_are_forgotten() {
    run_local(async {
        let stage = Stage::new(Place::Here, 4, Policy { max_restarts: 1, within: Duration::from_secs(10), ..QUICK });
        for n in 1..=5 {
            stage.inbox.controls().tell(Control::Panic);
            tokio::time::sleep(Duration::from_secs(11)).await;
            assert_eq!(stage.deaths().len(), n);
            assert!(!stage.actor.has_ended());
        }
        stage.inbox.controls().tell(Control::Panic);
        tokio::time::sleep(Duration::from_secs(1)).await;
        stage.inbox.controls().tell(Control::Panic);
        tokio::time::sleep(Duration::from_secs(1)).await;
        assert_eq!(stage.deaths().last().map(|d| d.how.clone()), Some(How::GaveUp));
    });
}

#[test]
fn a_panic_leaves_the_neighbours_alone() {
    run_local(async {
        let (one, other) = (Stage::here(4), Stage::here(4));
        other.inbox.controls().tell(Control::Tick(ms(10)));
        for _ in 0..3 {
            one.inbox.link().offer(Order::Panic("alone")).unwrap();
        }
        tokio::time::sleep(ms(1_000)).await;
        other.inbox.link().offer(Order::Note(1)).unwrap();
        settle().await;
        assert_eq!(other.log.orders(), [1]);
        assert_eq!(other.log.count(&Did::Tick), 101);
        assert_eq!(other.deaths(), []);
        assert_eq!(one.deaths().len(), 3);
    });
}

#[test]
fn timers_and_futures_go_with_their_incarnation() {
    run_local(async {
        let stage = Stage::here(4);
        stage.inbox.controls().tell(Control::Tick(ms(500)));
        stage.inbox.link().offer(Order::Work(ms(400))).unwrap();
        settle().await;
        assert_eq!(stage.inbox.link().free(), 3);
        stage.inbox.controls().tell(Control::Panic);
        tokio::time::sleep(ms(2_000)).await;
        assert_eq!(stage.log.count(&Did::Tick), 1);
        assert_eq!(stage.log.count(&Did::Worked), 0);
        assert_eq!(stage.inbox.link().free(), 4, "the dropped future gave its slot back");
    });
}

#[test]
fn an_actor_stops_itself_or_is_stopped_and_says_what_it_left() {
    run_local(async {
        let stage = Stage::here(4);
        settle().await;
        stage.inbox.controls().tell(Control::Stop);
        stage.inbox.link().offer(Order::Note(1)).unwrap();
        settle().await;
        assert_eq!(stage.deaths(), [Died { name: "player", epoch: Epoch(1), how: How::Stopped, lost: 1 }]);

        let stage = Stage::here(4);
        settle().await;
        stage.actor.stop();
        stage.inbox.facts().post_all([Order::Note(1), Order::Note(2)]);
        settle().await;
        assert_eq!(stage.deaths(), [Died { name: "player", epoch: Epoch(1), how: How::Stopped, lost: 2 }]);
        assert!(stage.log.orders().is_empty());
        stage.actor.stop();
        settle().await;
        assert_eq!(stage.deaths().len(), 1);
    });
}

#[test]
fn a_stop_before_the_start_builds_nothing() {
    run_local(async {
        let stage = Stage::here(1);
        stage.actor.stop();
        settle().await;
        assert_eq!(stage.deaths().len(), 1);
        assert_eq!(stage.log.all(), []);
    });
}

#[test]
fn a_stop_ends_the_wait_for_a_restart() {
    run_local(async {
        let slow = Policy { first_backoff: Duration::from_secs(50), max_backoff: Duration::from_secs(50), ..QUICK };
        let stage = Stage::new(Place::Here, 4, slow);
        stage.inbox.controls().tell(Control::Panic);
        stage.inbox.link().offer(Order::Note(1)).unwrap();
        settle().await;
        stage.actor.stop();
        settle().await;
        let ends: Vec<_> = stage.deaths().into_iter().map(|d| (d.epoch.0, d.how, d.lost)).collect();
        assert_eq!(ends, [(1, How::Panicked("in control".to_owned()), 0), (2, How::Stopped, 1)]);
    });
}

#[test]
fn a_panicking_destructor_changes_nothing() {
    run_local(async {
        let stage = Stage::here(4);
        stage.inbox.controls().tell(Control::PanicWhenDropped);
        stage.inbox.controls().tell(Control::Panic);
        stage.inbox.link().offer(Order::Note(1)).unwrap();
        tokio::time::sleep(ms(200)).await;
        assert_eq!(stage.log.orders(), [1]);
        stage.inbox.controls().tell(Control::PanicWhenDropped);
        stage.actor.stop();
        settle().await;
        assert_eq!(stage.deaths().last().map(|d| d.how.clone()), Some(How::Stopped));
    });
}

#[test]
fn a_panicking_report_does_not_stop_the_restart() {
    run_local(async {
        let inbox = Inbox::<Player>::new("player", 4);
        let log = Log::default();
        let (made, reports) = (log.clone(), Arc::new(AtomicU32::new(0)));
        let reported = Arc::clone(&reports);
        supervise(
            Place::Here,
            &inbox,
            QUICK,
            move |_| Player::new(made.clone()),
            move |_| {
                reported.fetch_add(1, Ordering::SeqCst);
                panic!("in the report");
            },
        );
        inbox.controls().tell(Control::Panic);
        inbox.link().offer(Order::Note(1)).unwrap();
        tokio::time::sleep(ms(200)).await;
        assert_eq!(log.orders(), [1]);
        assert_eq!(reports.load(Ordering::SeqCst), 1);
    });
}

#[test]
fn replacing_an_actor_in_back_off_starts_the_successor_at_once() {
    run_local(async {
        let slow = Policy { first_backoff: Duration::from_secs(50), max_backoff: Duration::from_secs(50), ..QUICK };
        let stage = Stage::new(Place::Here, 4, slow);
        stage.inbox.controls().tell(Control::Panic);
        settle().await;
        stage.inbox.link().offer(Order::Note(1)).unwrap();
        assert!(stage.actor.replace(Place::Here));
        settle().await;
        assert_eq!(stage.log.orders(), [1]);
        assert_eq!(stage.actor.epoch(), Epoch(3));
        tokio::time::sleep(Duration::from_secs(100)).await;
        assert_eq!(stage.log.count(&Did::Started(Epoch(2))), 0, "the one in back-off never starts");
        assert_eq!(stage.deaths().len(), 2);
    });
}

#[test]
fn an_inbox_whose_actor_has_ended_serves_no_other() {
    run_local(async {
        let stage = Stage::here(4);
        stage.actor.stop();
        settle().await;
        let ends = Arc::new(Mutex::new(Vec::new()));
        let seen = Arc::clone(&ends);
        let again = supervise(
            Place::Here,
            &stage.inbox,
            QUICK,
            |_| unreachable!("nothing is built"),
            move |died| seen.lock().unwrap().push(died.how),
        );
        settle().await;
        assert!(again.has_ended());
        assert_eq!(*ends.lock().unwrap(), [How::Stopped]);
    });
}
