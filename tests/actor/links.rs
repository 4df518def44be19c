//! Links, facts and controls: bounds, order, and what comes back.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use dragline::actor::{AskError, Closed, Inbox, Refused, Reply, Slot, Tap, run_local};
use futures_util::FutureExt;
use futures_util::future::join_all;
use proptest::prelude::*;

use crate::player::{Control, Did, Order, Player, Stage, ms, settle};

#[test]
fn a_full_link_gives_the_message_back() {
    let tap = Tap::<String>::new("tap", 2);
    let link = tap.link();
    assert_eq!((link.bound(), link.free(), link.depth()), (2, 2, 0));
    link.offer("a".to_owned()).unwrap();
    link.offer("b".to_owned()).unwrap();
    assert_eq!((link.free(), link.depth()), (0, 2));
    assert_eq!(link.offer("c".to_owned()), Err(Refused::Full("c".to_owned())));
    assert_eq!(tap.take_all(), ["a", "b"]);
    assert_eq!(link.free(), 2);
}

#[test]
fn a_bound_of_zero_is_one() {
    let link = Tap::<u32>::new("tap", 0).link();
    assert_eq!(link.bound(), 1);
    assert!(link.offer(1).is_ok());
    assert!(link.offer(2).is_err());
}

#[test]
fn a_closed_link_gives_the_message_back_to_offers_and_to_waiting_senders() {
    run_local(async {
        let tap = Tap::<u32>::new("tap", 1);
        let link = tap.link();
        link.offer(1).unwrap();
        let waiting = tokio::task::spawn_local({
            let link = link.clone();
            async move { link.send(2).await }
        });
        settle().await;
        tap.close();
        assert_eq!(waiting.await.unwrap(), Err(Closed(2)));
        assert_eq!(link.offer(3), Err(Refused::Closed(3)));
        assert_eq!(link.send(4).await, Err(Closed(4)));
        assert!(link.is_closed());
        assert_eq!(tap.take_all(), [1], "what was queued before is still there");
    });
}

#[test]
fn ten_thousand_clones_cannot_pass_the_bound() {
    let tap = Tap::<u32>::new("tap", 4);
    let accepted = (0..10_000).filter(|n| tap.link().offer(*n).is_ok()).count();
    assert_eq!(accepted, 4);
    assert_eq!(tap.take_all(), [0, 1, 2, 3]);
}

#[test]
fn ten_thousand_waiting_senders_cannot_pass_the_bound() {
    run_local(async {
        let stage = Stage::here(4);
        let sends = (0..10_000).map(|n| {
            let link = stage.inbox.link();
            async move { link.send(Order::Keep(n)).await.unwrap() }
        });
        let all = tokio::task::spawn_local(join_all(sends));
        settle().await;
        for rounds in 1..=2_500 {
            let done = stage.log.orders().len();
            assert_eq!(done, 4 * rounds, "the bound, and what was released before");
            assert_eq!((stage.inbox.depth(), stage.inbox.link().free()), (0, 0));
            stage.inbox.controls().tell(Control::Release);
            settle().await;
        }
        all.await.unwrap();
        assert_eq!(stage.log.orders(), (0..10_000).collect::<Vec<_>>(), "all, once, in order");
        assert_eq!(stage.inbox.probe().snapshot().high_water, 4);
        assert_eq!(stage.inbox.link().free(), 4);
    });
}

#[test]
fn waiting_senders_are_served_in_the_order_they_came_and_before_an_offer() {
    run_local(async {
        let tap = Tap::<u32>::new("tap", 1);
        tap.link().offer(0).unwrap();
        for n in 1..=3 {
            let link = tap.link();
            tokio::task::spawn_local(async move { link.send(n).await });
        }
        settle().await;
        let mut got = Vec::new();
        for _ in 0..4 {
            let (n, slot) = tap.next().await;
            got.push(n);
            drop(slot);
            if n < 3 {
                assert!(tap.link().offer(99).is_err(), "the slot has gone to the one who waited");
            }
            settle().await;
        }
        assert_eq!(got, [0, 1, 2, 3]);
    });
}

#[test]
fn a_send_that_is_dropped_while_it_waits_sends_nothing_and_keeps_no_slot() {
    run_local(async {
        let tap = Tap::<u32>::new("tap", 1);
        let link = tap.link();
        link.offer(1).unwrap();
        assert!(tokio::time::timeout(ms(5), link.send(2)).await.is_err());
        assert_eq!(tap.take_all(), [1]);
        assert_eq!((link.free(), link.depth()), (1, 0));
    });
}

#[test]
fn dropping_an_ask_does_not_take_the_order_back() {
    run_local(async {
        let stage = Stage::here(4);
        let link = stage.inbox.link();
        let mut asks: Vec<_> = (0..4).map(|_| Box::pin(link.ask(ms(100), Order::Question))).collect();
        for ask in &mut asks {
            assert!(ask.now_or_never().is_none(), "queued, not yet answered");
        }
        drop(asks);
        settle().await;
        assert_eq!(stage.log.orders(), [42; 4]);
        assert_eq!(link.free(), 4);
    });
}

#[test]
fn an_ask_is_answered_or_says_why_not() {
    run_local(async {
        let stage = Stage::here(1);
        assert_eq!(stage.inbox.link().ask(ms(10), Order::Question).await, Ok(42));

        let tap = Tap::<Reply<u32>>::new("tap", 1);
        let link = tap.link();
        let begun = tokio::time::Instant::now();
        assert_eq!(link.ask(ms(50), |reply| reply).await, Err(AskError::Timeout), "no answer");
        assert_eq!(link.ask(ms(50), |reply| reply).await, Err(AskError::Timeout), "no slot");
        assert_eq!(begun.elapsed(), ms(100), "waiting for a slot counts");
        let (stale, slot) = tap.take().unwrap();
        assert!(!stale.is_wanted());
        assert!(!stale.answer(1));
        drop(slot);
        let (answer, ()) = tokio::join!(link.ask(ms(50), |reply| reply), async { drop(tap.next().await) });
        assert_eq!(answer, Err(AskError::NoAnswer));
        tap.close();
        assert_eq!(link.ask(ms(50), |reply| reply).await, Err(AskError::Closed));
    });
}

#[test]
fn a_reply_travels_without_a_link_too() {
    run_local(async {
        let (reply, answer) = Reply::pair();
        assert!(reply.answer(7));
        assert_eq!(answer.await, Some(7));
        let (reply, answer) = Reply::<u32>::pair();
        drop(reply);
        assert_eq!(answer.await, None);
    });
}

#[test]
fn facts_pass_the_bound_and_a_closed_link_but_not_the_end() {
    let tap = Tap::<u32>::new("tap", 1);
    let facts = tap.facts();
    tap.close();
    assert!(facts.post(1));
    assert!(facts.post_all([2, 3, 4]));
    assert_eq!(facts.depth(), 4);
    assert!(!tap.take().unwrap().1.holds_permit());
    assert!(tap.controls().tell(()));
    assert_eq!(tap.shut(), 3);
    assert!(!facts.post(5));
    assert!(!facts.post_all([6]));
    assert!(!facts.post_all([]));
    assert!(!tap.controls().tell(()));
    assert_eq!(tap.probe().snapshot().discarded, 3);
}

fn counted() -> (Arc<AtomicUsize>, Arc<dyn Fn() + Send + Sync>) {
    let count = Arc::new(AtomicUsize::new(0));
    let told = Arc::clone(&count);
    (count, Arc::new(move || _ = told.fetch_add(1, Ordering::SeqCst)))
}

#[test]
fn room_is_told_once_after_a_refusal() {
    let tap = Tap::<u32>::new("tap", 2);
    let link = tap.link();
    let (count, f) = counted();
    link.on_room(f);
    let told = || count.load(Ordering::SeqCst);

    link.offer(1).unwrap();
    drop(tap.take());
    assert_eq!(told(), 0, "nobody was refused");

    link.offer(1).unwrap();
    link.offer(2).unwrap();
    assert!(link.offer(3).is_err());
    assert!(link.offer(3).is_err());
    assert_eq!(told(), 0, "no room yet");
    let kept = tap.take().unwrap();
    assert_eq!(told(), 0, "taken is not free: the slot is kept");
    drop(kept);
    assert_eq!(told(), 1);
    drop(tap.take());
    assert_eq!(told(), 1, "once");

    link.offer(1).unwrap();
    link.offer(2).unwrap();
    assert!(link.offer(3).is_err());
    tap.take_all();
    assert_eq!(told(), 2, "again after another refusal");
}

#[test]
fn room_is_not_told_while_waiting_senders_take_it() {
    run_local(async {
        let tap = Tap::<u32>::new("tap", 1);
        let link = tap.link();
        let (count, f) = counted();
        link.on_room(f);
        link.offer(1).unwrap();
        let sender = link.clone();
        let waiting = tokio::task::spawn_local(async move { sender.send(2).await });
        settle().await;
        assert!(link.offer(3).is_err());
        drop(tap.take());
        assert_eq!(count.load(Ordering::SeqCst), 0, "the slot went to the waiting sender");
        waiting.await.unwrap().unwrap();
        drop(tap.take());
        assert_eq!(count.load(Ordering::SeqCst), 1);
    });
}

#[test]
fn nothing_prints_a_message() {
    let tap = Tap::<&'static str>::new("tap", 1);
    let link = tap.link();
    link.offer("canary").unwrap();
    let shown = format!(
        "{link:?} {:?} {:?} {:?} {:?} {:?} {:?}",
        link.offer("canary").unwrap_err(),
        Closed("canary"),
        tap.facts(),
        tap.controls(),
        tap,
        tap.probe()
    );
    assert!(!shown.contains("canary"), "{shown}");
    assert!(shown.contains("Full(..)"), "{shown}");
    let _slot: Slot = Slot::empty();
}

#[test]
fn every_end_crosses_threads() {
    fn crosses<T: Send + Sync + Clone + 'static>(_: &T) {}
    // The player itself is not `Send` once it holds an `Rc`; the ends do not care.
    let inbox = Inbox::<Player>::new("player", 1);
    crosses(&inbox);
    crosses(&inbox.link());
    crosses(&inbox.facts());
    crosses(&inbox.controls());
    crosses(&inbox.probe());
}

#[test]
fn what_is_queued_before_the_start_is_handled_after_it() {
    run_local(async {
        let inbox = Inbox::<Player>::new("player", 2);
        inbox.link().offer(Order::Note(1)).unwrap();
        let log = crate::player::Log::default();
        let made = log.clone();
        let actor = dragline::actor::supervise(
            dragline::actor::Place::Here,
            &inbox,
            crate::player::QUICK,
            move |_| Player::new(made.clone()),
            |_| {},
        );
        settle().await;
        assert_eq!(log.orders(), [1]);
        assert_eq!(log.all()[0], Did::Started(actor.epoch()));
    });
}

#[derive(Clone, Copy, Debug)]
enum Step {
    Offer,
    Fact,
    TakeAndDrop,
    TakeAndKeep,
    DropKept,
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let step = prop_oneof![
        4 => Just(Step::Offer),
        1 => Just(Step::Fact),
        2 => Just(Step::TakeAndDrop),
        2 => Just(Step::TakeAndKeep),
        2 => Just(Step::DropKept),
    ];
    prop::collection::vec(step, 0..200)
}

proptest! {
    #[test]
    fn the_bound_holds_and_order_is_kept_whatever_the_interleaving(bound in 1usize..6, steps in steps()) {
        let tap = Tap::<u32>::new("tap", bound);
        let (link, facts) = (tap.link(), tap.facts());
        let mut model = std::collections::VecDeque::new();
        let mut kept = Vec::new();
        let mut sent = 0;
        for step in steps {
            match step {
                Step::Offer => {
                    let held = model.iter().filter(|(_, order)| *order).count() + kept.len();
                    let taken = link.clone().offer(sent).is_ok();
                    prop_assert_eq!(taken, held < bound);
                    if taken {
                        model.push_back((sent, true));
                    }
                    sent += 1;
                }
                Step::Fact => {
                    prop_assert!(facts.post(sent));
                    model.push_back((sent, false));
                    sent += 1;
                }
                Step::TakeAndDrop | Step::TakeAndKeep => {
                    let got = tap.take();
                    prop_assert_eq!(got.as_ref().map(|(n, slot)| (*n, slot.holds_permit())), model.pop_front());
                    if let (Step::TakeAndKeep, Some((_, slot))) = (step, got) && slot.holds_permit() {
                        kept.push(slot);
                    }
                }
                Step::DropKept => drop(kept.pop()),
            }
            let held = model.iter().filter(|(_, order)| *order).count() + kept.len();
            prop_assert_eq!(link.free(), bound - held);
            prop_assert_eq!(link.depth(), model.len());
        }
    }
}
