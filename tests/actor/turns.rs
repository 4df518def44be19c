//! Turns: order between lanes, timers, futures, gathering, and the gauges.

use std::time::{Duration, Instant};

use dragline::actor::{Cx, Inbox, Place, Policy, Slot, TURN, Timer, Worker, run_local, run_system, supervise};

use crate::player::{Control, Did, Order, Stage, ms, settle, until};

#[test]
fn control_overtakes_data() {
    run_local(async {
        let stage = Stage::here(100);
        for n in 0..100 {
            stage.inbox.link().offer(Order::Note(n)).unwrap();
        }
        for n in 0..3 {
            stage.inbox.controls().tell(Control::Note(n));
        }
        settle().await;
        let did = stage.log.all();
        assert_eq!(did[1..4], [Did::Control(0), Did::Control(1), Did::Control(2)]);
        assert_eq!(stage.log.orders(), (0..100).collect::<Vec<_>>());
    });
}

#[test]
fn facts_gather_to_one_turn() {
    run_local(async {
        let stage = Stage::here(1);
        settle().await;
        stage.log.clear();
        let facts = stage.inbox.facts();
        for n in 0..20 {
            facts.post(Order::Note(n));
        }
        facts.post_all((20..40).map(Order::Note));
        settle().await;
        assert_eq!(stage.log.orders().len(), 40);
        assert_eq!(stage.log.count(&Did::TurnEnd), 1, "one wake, one turn, one flush");
    });
}

#[test]
fn a_turn_has_64_messages_at_most() {
    run_local(async {
        let stage = Stage::here(1);
        settle().await;
        stage.log.clear();
        stage.inbox.facts().post_all((0..200).map(Order::Note));
        settle().await;
        let did = stage.log.all();
        let turns: Vec<usize> = did.split(|d| *d == Did::TurnEnd).map(<[Did]>::len).filter(|n| *n > 0).collect();
        assert_eq!(turns.iter().sum::<usize>(), 200);
        assert!(turns.iter().all(|n| *n <= TURN), "{turns:?}");
        assert!(turns.len() <= 5, "{turns:?}");
    });
}

#[test]
fn timers_and_futures_run_under_a_backlog() {
    run_system(async {
        let stage = Stage::here(1);
        settle().await;
        stage.inbox.facts().post(Order::Work(ms(20)));
        stage.inbox.facts().post_all((0..3_000).map(|_| Order::Spin(Duration::from_micros(100))));
        stage.inbox.controls().tell(Control::Tick(ms(1)));
        until("the backlog is done", || stage.log.orders().len() == 3_000).await;
        let did = stage.log.all();
        let last = did.iter().rposition(|d| matches!(d, Did::Order(_))).unwrap();
        let ticks = did[..last].iter().filter(|d| **d == Did::Tick).count();
        assert!(ticks >= 15, "one a turn at least: {ticks} ticks within 300 ms of backlog");
        let worked = did.iter().position(|d| *d == Did::Worked).unwrap();
        assert!(worked < last / 2, "a future that waits 20 ms ended at {worked} of {last}");
    });
}

#[test]
fn an_actor_that_feeds_itself_starves_neither_its_timers_nor_its_neighbours() {
    run_system(async {
        let greedy = Stage::here(1);
        let neighbour = Stage::here(1);
        greedy.inbox.controls().tell(Control::Tick(ms(1)));
        greedy.inbox.facts().post(Order::Again(0));
        let begun = Instant::now();
        for n in 0..20 {
            neighbour.inbox.link().send(Order::Note(n)).await.unwrap();
            tokio::time::sleep(ms(1)).await;
        }
        assert_eq!(neighbour.log.orders().len(), 20);
        assert!(begun.elapsed() < Duration::from_secs(5));
        assert!(greedy.log.count(&Did::Tick) >= 5);
        greedy.actor.stop();
        until("it has stopped", || greedy.actor.has_ended()).await;
    });
}

#[test]
fn a_stream_of_single_messages_from_another_thread_does_not_starve_timers() {
    run_system(async {
        let stage = Stage::here(1);
        settle().await;
        let facts = stage.inbox.facts();
        let producer = std::thread::spawn(move || {
            let begun = Instant::now();
            let mut sent = 0;
            while begun.elapsed() < ms(200) {
                // Kept just ahead of the consumer: each message finds it about to rest.
                if facts.depth() < 2 {
                    facts.post(Order::Note(sent));
                    sent += 1;
                }
            }
            sent
        });
        let mut ticks = 0;
        while !producer.is_finished() {
            tokio::time::sleep(ms(1)).await;
            ticks += 1;
        }
        let sent = producer.join().unwrap();
        // Starved it is one or two; a busy machine alone can take most of the 200.
        assert!(ticks >= 5, "{ticks} ticks during 200 ms");
        until("all are handled", || stage.log.orders().len() == sent as usize).await;
    });
}

#[test]
fn an_hour_of_ticks_takes_no_time() {
    run_local(async {
        let stage = Stage::here(1);
        stage.inbox.controls().tell(Control::Tick(Duration::from_secs(10)));
        tokio::time::sleep(Duration::from_secs(3_600) + ms(1)).await;
        assert_eq!(stage.log.count(&Did::Tick), 361);
    });
}

#[test]
fn timers_fire_in_the_order_of_their_time_and_at_their_time() {
    run_local(async {
        let stage = Stage::here(1);
        for (after, n) in [(30, 3), (10, 1), (20, 2), (10, 11), (0, 0)] {
            stage.inbox.controls().tell(Control::Arm(ms(after), n));
        }
        stage.inbox.controls().tell(Control::Arm(Duration::MAX, 99));
        tokio::time::sleep(ms(9)).await;
        assert_eq!(stage.log.count(&Did::Control(1)), 0);
        tokio::time::sleep(ms(2)).await;
        assert_eq!(stage.log.count(&Did::Control(1)), 1);
        tokio::time::sleep(ms(30)).await;
        let fired: Vec<_> = stage.log.all().into_iter().filter(|d| matches!(d, Did::Control(_))).collect();
        assert_eq!(fired, [0, 1, 11, 2, 3].map(Did::Control));
    });
}

/// Arms two timers and cancels one of them when told.
struct Fickle {
    timer: Option<Timer>,
    fired: std::rc::Rc<std::cell::RefCell<Vec<u32>>>,
}

impl Worker for Fickle {
    type Order = ();
    type Control = u32;

    fn started(&mut self, cx: &mut Cx<'_, Self>) {
        self.timer = Some(cx.after(ms(10), 1));
        cx.after(ms(20), 2);
    }

    fn handle(&mut self, (): (), _: Slot, cx: &mut Cx<'_, Self>) {
        let timer = self.timer.unwrap();
        self.fired.borrow_mut().push(cx.cancel(timer).map_or(100, |control| 10 + control));
    }

    fn control(&mut self, control: u32, _: &mut Cx<'_, Self>) {
        self.fired.borrow_mut().push(control);
    }
}

#[test]
fn a_cancelled_timer_gives_its_control_back_and_never_fires() {
    thread_local! {
        static FIRED: std::rc::Rc<std::cell::RefCell<Vec<u32>>> = std::rc::Rc::default();
    }
    run_local(async {
        let inbox = Inbox::<Fickle>::new("fickle", 2);
        // The factory crosses threads, so what it builds may not: the worker takes its `Rc` where it lives.
        supervise(Place::Here, &inbox, Policy::FATAL, |_| Fickle { timer: None, fired: FIRED.with(std::rc::Rc::clone) }, |_| {});
        settle().await;
        inbox.link().offer(()).unwrap();
        tokio::time::sleep(ms(50)).await;
        inbox.link().offer(()).unwrap();
        settle().await;
        assert_eq!(*FIRED.with(std::rc::Rc::clone).borrow(), [11, 2, 100]);
    });
}

#[test]
fn a_thousand_futures_run_beside_the_messages() {
    run_local(async {
        let stage = Stage::here(1_000);
        let begun = tokio::time::Instant::now();
        for _ in 0..1_000 {
            stage.inbox.link().offer(Order::Work(ms(50))).unwrap();
        }
        settle().await;
        assert_eq!(stage.inbox.depth(), 0);
        assert_eq!(stage.inbox.link().free(), 0, "work in progress keeps its slots");
        tokio::time::sleep(ms(51)).await;
        assert_eq!(stage.log.count(&Did::Worked), 1_000);
        assert_eq!(stage.inbox.link().free(), 1_000);
        assert!(begun.elapsed() < ms(60));
    });
}

#[test]
fn the_probe_counts_what_was_done() {
    run_local(async {
        let stage = Stage::here(50);
        for n in 0..32 {
            stage.inbox.link().offer(Order::Note(n)).unwrap();
        }
        stage.inbox.facts().post(Order::Spin(ms(2)));
        stage.inbox.controls().tell(Control::Note(1));
        let before = stage.inbox.probe().snapshot();
        assert_eq!((before.name, before.bound, before.depth, before.high_water), ("player", 50, 33, 33));
        assert_eq!((before.accepted, before.handled), (33, 0));
        std::thread::sleep(ms(3));
        settle().await;
        let after = stage.inbox.probe().snapshot();
        assert_eq!((after.depth, after.high_water, after.handled, after.controls), (0, 33, 33, 1));
        assert!(after.longest >= ms(2) && after.handling >= after.longest, "{after:?}");
        assert!(after.mean_wait >= ms(3), "real time, though the clock is paused: {after:?}");
        assert!(after.waited >= 48 * ms(3), "3 of 33 were measured and stand for 16 each: {after:?}");
        assert_eq!((after.restarts, after.discarded), (0, 0));
        assert!(after.turns >= 1);
    });
}
