//! Real threads: arbiters, a stuck incarnation, and messages across them.

use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use dragline::actor::{Arbiter, Cx, Died, Epoch, How, Inbox, Place, Slot, Worker, run_local, run_system, supervise};

use crate::player::{Control, Did, Order, QUICK, Stage, ms, until};

/// Sticks in a loop on its first order until it is let go, in its first incarnation.
struct Sticky {
    go: Arc<AtomicBool>,
    handled: Arc<Mutex<Vec<(u32, u32)>>>,
    kept: Option<Slot>,
}

const LATE_PANIC: u32 = 7;

impl Worker for Sticky {
    type Order = u32;
    type Control = u32;

    fn started(&mut self, cx: &mut Cx<'_, Self>) {
        if cx.epoch() == Epoch(1) {
            cx.after(ms(200), 1);
            let go = Arc::clone(&self.go);
            cx.spawn(
                async move {
                    while !go.load(Ordering::SeqCst) {
                        tokio::task::yield_now().await;
                    }
                },
                |sticky, (), cx| sticky.handled.lock().unwrap().push((cx.epoch().0, 2_000)),
            );
        }
    }

    fn handle(&mut self, order: u32, slot: Slot, cx: &mut Cx<'_, Self>) {
        self.handled.lock().unwrap().push((cx.epoch().0, order));
        if cx.epoch() == Epoch(1) {
            if order == 0 {
                self.kept = Some(slot);
                return;
            }
            while !self.go.load(Ordering::SeqCst) {
                std::thread::sleep(ms(1));
            }
            assert!(order != LATE_PANIC, "long after it was replaced");
        }
    }

    fn control(&mut self, control: u32, cx: &mut Cx<'_, Self>) {
        self.handled.lock().unwrap().push((cx.epoch().0, 1_000 + control));
    }
}

#[test]
fn a_replaced_incarnation_takes_nothing_more_and_its_slots_are_written_off() {
    run_system(async {
        let (stuck, fresh) = (Arbiter::start("stuck").unwrap(), Arbiter::start("fresh").unwrap());
        let (go, handled) = (Arc::new(AtomicBool::new(false)), Arc::new(Mutex::new(Vec::new())));
        let deaths = Arc::new(Mutex::new(Vec::<Died>::new()));
        let inbox = Inbox::<Sticky>::new("sticky", 3);
        // Queued before the start: the first turn gets stuck, long before its timer is due.
        for n in 0..3 {
            inbox.link().offer(n).unwrap();
        }
        let actor = supervise(
            stuck.place(),
            &inbox,
            QUICK,
            {
                let (go, handled) = (Arc::clone(&go), Arc::clone(&handled));
                move |_| Sticky { go: Arc::clone(&go), handled: Arc::clone(&handled), kept: None }
            },
            {
                let deaths = Arc::clone(&deaths);
                move |died| deaths.lock().unwrap().push(died)
            },
        );
        until("it is stuck", || handled.lock().unwrap().contains(&(1, 1))).await;
        assert_eq!(inbox.link().free(), 0);

        let begun = Instant::now();
        assert!(actor.replace(fresh.place()));
        assert!(begun.elapsed() < ms(5_000), "never waits for the stuck thread");
        assert_eq!(
            *deaths.lock().unwrap(),
            [Died { name: "sticky", epoch: Epoch(1), how: How::Replaced, lost: 2 }],
            "one kept, one in hand"
        );
        until("the successor has served", || handled.lock().unwrap().contains(&(2, 2))).await;
        assert_eq!(inbox.link().free(), 3, "the successor has the whole bound");

        tokio::time::sleep(ms(250)).await; // the timer of the first is overdue when it wakes
        go.store(true, Ordering::SeqCst);
        for n in 10..200 {
            inbox.link().send(n).await.unwrap();
        }
        until("all are handled", || handled.lock().unwrap().len() == 193).await;
        assert!(stuck.join(Duration::from_secs(5)).await, "let go, the thread ends");
        let handled = handled.lock().unwrap().clone();
        let old: Vec<_> = handled.iter().filter(|(epoch, _)| *epoch == 1).collect();
        assert_eq!(old, [&(1, 0), &(1, 1)], "no message, timer or future after it was replaced");
        assert_eq!(inbox.link().free(), 3, "late slots do not widen the bound");
        assert_eq!(actor.drain(Duration::from_secs(5)).await.lost, 0);
        assert_eq!(deaths.lock().unwrap().len(), 1);
        let reading = inbox.probe().snapshot();
        assert_eq!(reading.restarts, 1);
        assert_eq!((reading.accepted, reading.handled, reading.discarded), (193, 192, 2), "the kept one was both");
    });
}

#[test]
fn a_replaced_incarnation_that_panics_late_restarts_nothing() {
    run_system(async {
        let (stuck, fresh) = (Arbiter::start("stuck").unwrap(), Arbiter::start("fresh").unwrap());
        let (go, handled) = (Arc::new(AtomicBool::new(false)), Arc::new(Mutex::new(Vec::new())));
        let deaths = Arc::new(Mutex::new(Vec::<Died>::new()));
        let inbox = Inbox::<Sticky>::new("sticky", 2);
        inbox.link().offer(LATE_PANIC).unwrap();
        let (g, h, d) = (Arc::clone(&go), Arc::clone(&handled), Arc::clone(&deaths));
        let actor = supervise(
            stuck.place(),
            &inbox,
            QUICK,
            move |_| Sticky { go: Arc::clone(&g), handled: Arc::clone(&h), kept: None },
            move |died| d.lock().unwrap().push(died),
        );
        until("it is stuck", || handled.lock().unwrap().contains(&(1, LATE_PANIC))).await;
        assert!(actor.replace(fresh.place()));
        go.store(true, Ordering::SeqCst);
        assert!(stuck.join(Duration::from_secs(5)).await);
        inbox.link().offer(8).unwrap();
        until("the successor serves", || handled.lock().unwrap().contains(&(2, 8))).await;
        assert_eq!(deaths.lock().unwrap().iter().map(|d| d.how.clone()).collect::<Vec<_>>(), [How::Replaced]);
        assert_eq!(actor.epoch(), Epoch(2));
    });
}

#[test]
fn a_stuck_thread_is_abandoned_within_the_limit() {
    run_system(async {
        let go = Arc::new(AtomicBool::new(false));
        for by_join in [true, false] {
            let arbiter = Arbiter::start("stuck").unwrap();
            let (wait, running) = (Arc::clone(&go), Arc::new(AtomicBool::new(false)));
            let entered = Arc::clone(&running);
            arbiter.run(move || {
                entered.store(true, Ordering::SeqCst);
                while !wait.load(Ordering::SeqCst) {
                    std::thread::sleep(ms(1));
                }
            });
            until("it is stuck", || running.load(Ordering::SeqCst)).await;
            let begun = Instant::now();
            if by_join {
                assert!(!arbiter.join(ms(50)).await);
            } else {
                arbiter.abandon();
            }
            assert!(begun.elapsed() < ms(5_000));
        }
        go.store(true, Ordering::SeqCst);
    });
}

#[test]
fn several_actors_share_an_arbiter_with_a_name() {
    run_system(async {
        let arbiter = Arbiter::start("parse-0").unwrap();
        let (one, other) = (Stage::new(arbiter.place(), 4, QUICK), Stage::new(Place::Arbiter(arbiter.handle()), 4, QUICK));
        one.inbox.link().offer(Order::Note(1)).unwrap();
        other.inbox.link().offer(Order::Note(2)).unwrap();
        until("both have served", || one.log.orders() == [1] && other.log.orders() == [2]).await;

        one.inbox.link().offer(Order::Panic("on an arbiter")).unwrap();
        one.inbox.link().offer(Order::Note(3)).unwrap();
        other.inbox.link().offer(Order::Note(4)).unwrap();
        until("the other goes on", || other.log.orders() == [2, 4]).await;
        until("the one is back", || one.log.orders() == [1, 3]).await;
        assert_eq!(one.log.count(&Did::Started(Epoch(2))), 1);

        if cfg!(target_os = "linux") {
            let (tell, told) = std::sync::mpsc::channel();
            arbiter.run(move || tell.send(std::fs::read_to_string("/proc/thread-self/comm")).unwrap());
            assert_eq!(told.recv().unwrap().unwrap().trim(), "parse-0");
        }
        assert_eq!(arbiter.name(), "parse-0");
        assert!(arbiter.join(Duration::from_secs(5)).await);
    });
}

#[test]
fn an_arbiter_that_stops_ends_its_actors_and_they_say_so() {
    run_system(async {
        let arbiter = Arbiter::start("short").unwrap();
        let stage = Stage::new(arbiter.place(), 4, QUICK);
        let waiting = Stage::new(arbiter.place(), 4, crate::player::QUICK);
        stage.inbox.link().offer(Order::Keep(1)).unwrap();
        until("it serves", || stage.log.orders() == [1]).await;
        waiting.inbox.controls().tell(Control::Panic);
        until("it waits for its restart", || waiting.deaths().len() == 1).await;
        let place = arbiter.place();
        assert!(arbiter.join(Duration::from_secs(5)).await);
        let end = |epoch| Died { name: "player", epoch, how: How::Stopped, lost: 0 };
        assert_eq!(stage.deaths(), [end(Epoch(1))]);
        assert_eq!(waiting.deaths().last(), Some(&end(Epoch(2))));
        assert!(stage.inbox.link().offer(Order::Note(1)).is_err());

        let late = Stage::new(place, 4, QUICK);
        until("the report of the start that could not be", || late.deaths() == [end(Epoch(1))]).await;
    });
}

#[test]
fn an_arbiter_outside_a_system_is_an_error() {
    run_local(async {
        let error = Arbiter::start("lost").unwrap_err().to_string();
        assert!(error.contains("run_system"), "{error}");
    });
}

/// Adds up what it gets.
struct Adder(Arc<AtomicU32>, Arc<AtomicU32>);

impl Worker for Adder {
    type Order = u32;
    type Control = ();

    fn handle(&mut self, order: u32, _: Slot, _: &mut Cx<'_, Self>) {
        self.0.fetch_add(order, Ordering::SeqCst);
        self.1.fetch_add(1, Ordering::SeqCst);
    }

    fn control(&mut self, (): (), _: &mut Cx<'_, Self>) {}
}

#[test]
fn no_message_between_threads_is_lost_or_doubled() {
    run_system(async {
        let arbiter = Arbiter::start("adder").unwrap();
        let (sum, count) = (Arc::new(AtomicU32::new(0)), Arc::new(AtomicU32::new(0)));
        let inbox = Inbox::<Adder>::new("adder", 8);
        let (s, c) = (Arc::clone(&sum), Arc::clone(&count));
        supervise(arbiter.place(), &inbox, QUICK, move |_| Adder(Arc::clone(&s), Arc::clone(&c)), |_| {});
        let producers: Vec<_> = (0..4)
            .map(|way| {
                let (link, facts) = (inbox.link(), inbox.facts());
                std::thread::spawn(move || {
                    for n in 1..=5_000 {
                        match way {
                            0 => assert!(facts.post(n)),
                            1 => {
                                while link.offer(n).is_err() {
                                    std::thread::yield_now();
                                }
                            }
                            _ => run_local(link.send(n)).unwrap(),
                        }
                    }
                })
            })
            .collect();
        until("all have sent", || producers.iter().all(std::thread::JoinHandle::is_finished)).await;
        until("all are handled", || count.load(Ordering::SeqCst) == 20_000).await;
        assert_eq!(sum.load(Ordering::SeqCst), 4 * 5_000 * 5_001 / 2);
        assert_eq!(inbox.link().free(), 8);
        assert!(arbiter.join(Duration::from_secs(5)).await);
    });
}

#[test]
fn a_refused_sender_that_sleeps_until_room_is_told_never_oversleeps() {
    run_system(async {
        let arbiter = Arbiter::start("adder").unwrap();
        let (sum, count) = (Arc::new(AtomicU32::new(0)), Arc::new(AtomicU32::new(0)));
        let inbox = Inbox::<Adder>::new("adder", 1);
        let (s, c) = (Arc::clone(&sum), Arc::clone(&count));
        supervise(arbiter.place(), &inbox, QUICK, move |_| Adder(Arc::clone(&s), Arc::clone(&c)), |_| {});
        let link = inbox.link();
        let sender = std::thread::spawn(move || {
            let (tell, room) = std::sync::mpsc::channel();
            link.on_room(Arc::new(move || tell.send(()).unwrap_or_default()));
            for n in 0..50_000 {
                while link.offer(n).is_err() {
                    room.recv_timeout(Duration::from_secs(5)).expect("told of room");
                }
            }
        });
        until("all are sent", || sender.is_finished()).await;
        sender.join().unwrap();
        until("all are handled", || count.load(Ordering::SeqCst) == 50_000).await;
        assert!(arbiter.join(Duration::from_secs(5)).await);
    });
}

/// Notes what it gets, in a list that all incarnations share.
struct Noter(Arc<Mutex<Vec<u32>>>);

impl Worker for Noter {
    type Order = u32;
    type Control = ();

    fn handle(&mut self, order: u32, _: Slot, _: &mut Cx<'_, Self>) {
        self.0.lock().unwrap().push(order);
    }

    fn control(&mut self, (): (), _: &mut Cx<'_, Self>) {}
}

#[test]
fn replacements_in_full_flight_double_nothing_and_lose_no_more_than_they_say() {
    run_system(async {
        let arbiters = [Arbiter::start("left").unwrap(), Arbiter::start("right").unwrap()];
        let (notes, lost) = (Arc::new(Mutex::new(Vec::new())), Arc::new(AtomicU32::new(0)));
        let inbox = Inbox::<Noter>::new("noter", 8);
        let (n, l) = (Arc::clone(&notes), Arc::clone(&lost));
        let actor = supervise(
            arbiters[0].place(),
            &inbox,
            QUICK,
            move |_| Noter(Arc::clone(&n)),
            move |died| _ = l.fetch_add(u32::try_from(died.lost).unwrap(), Ordering::SeqCst),
        );
        let link = inbox.link();
        let sender = std::thread::spawn(move || {
            run_local(async {
                for n in 0..50_000 {
                    link.send(n).await.unwrap();
                }
            });
        });
        let mut replaced = 0;
        while !sender.is_finished() {
            replaced += 1;
            assert!(actor.replace(arbiters[replaced % 2].place()));
            tokio::time::sleep(ms(1)).await;
        }
        assert_eq!(actor.drain(Duration::from_secs(10)).await.lost, 0);
        for arbiter in arbiters {
            assert!(arbiter.join(Duration::from_secs(5)).await);
        }
        let mut seen = notes.lock().unwrap().clone();
        let handled = seen.len();
        seen.sort_unstable();
        seen.dedup();
        assert_eq!(seen.len(), handled, "none twice, over {replaced} replacements");
        let missing = 50_000 - u32::try_from(handled).unwrap();
        assert!(missing <= lost.load(Ordering::SeqCst), "{missing} missing");
        assert_eq!(inbox.link().free(), 8);
    });
}
