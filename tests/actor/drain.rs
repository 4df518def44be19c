//! Drain: nothing is lost in time, and what is lost at the limit is a number.

use std::time::Duration;

use dragline::actor::{Drained, Refused, run_local};
use tokio::time::Instant;

use crate::player::{Control, Did, Order, Stage, ms, settle};

#[test]
fn an_idle_actor_is_drained_at_once() {
    run_local(async {
        let stage = Stage::here(4);
        let begun = Instant::now();
        assert_eq!(stage.actor.drain(Duration::from_secs(5)).await, Drained { done: 0, lost: 0 });
        assert!(begun.elapsed() < ms(2));
    });
}

#[test]
fn a_drain_in_time_loses_nothing() {
    run_local(async {
        let stage = Stage::here(300);
        for n in 0..200 {
            stage.inbox.link().offer(Order::Note(n)).unwrap();
        }
        for _ in 0..10 {
            stage.inbox.link().offer(Order::Work(ms(700))).unwrap();
        }
        stage.inbox.facts().post(Order::Note(200));
        let begun = Instant::now();
        assert_eq!(stage.actor.drain(Duration::from_secs(5)).await, Drained { done: 211, lost: 0 });
        assert!(begun.elapsed() < ms(710), "no longer than the work takes");
        assert_eq!(stage.log.orders().len(), 201);
        assert_eq!(stage.log.count(&Did::Worked), 10);
        assert!(!stage.actor.has_ended());
        stage.actor.stop();
        settle().await;
        assert_eq!(stage.deaths()[0].lost, 0);
    });
}

#[test]
fn a_drain_refuses_orders_and_takes_facts_and_controls() {
    run_local(async {
        let stage = Stage::here(4);
        stage.inbox.link().offer(Order::Keep(1)).unwrap();
        let (drained, ()) = tokio::join!(stage.actor.drain(Duration::from_secs(5)), async {
            settle().await;
            assert!(matches!(stage.inbox.link().offer(Order::Note(2)), Err(Refused::Closed(_))));
            assert!(stage.inbox.facts().post(Order::Note(3)));
            tokio::time::sleep(ms(100)).await;
            assert!(stage.inbox.controls().tell(Control::Release));
        });
        assert_eq!(drained, Drained { done: 2, lost: 0 });
        assert_eq!(stage.log.orders(), [1, 3]);
    });
}

#[test]
fn a_drain_at_its_limit_counts_what_is_queued_and_what_is_in_progress() {
    run_local(async {
        let stage = Stage::here(4);
        for n in 0..3 {
            stage.inbox.link().offer(Order::Keep(n)).unwrap();
        }
        stage.inbox.link().offer(Order::Note(3)).unwrap();
        let begun = Instant::now();
        assert_eq!(stage.actor.drain(ms(250)).await, Drained { done: 1, lost: 3 });
        assert_eq!(begun.elapsed(), ms(250));
    });
}

#[test]
fn an_order_lost_in_a_panic_while_draining_is_lost_and_the_rest_is_done() {
    run_local(async {
        let stage = Stage::here(8);
        for n in 0..3 {
            stage.inbox.link().offer(Order::Note(n)).unwrap();
        }
        stage.inbox.link().offer(Order::Panic("while draining")).unwrap();
        stage.inbox.link().offer(Order::Note(3)).unwrap();
        assert_eq!(stage.actor.drain(Duration::from_secs(5)).await, Drained { done: 4, lost: 1 });
        assert_eq!(stage.log.orders(), [0, 1, 2, 3]);
    });
}

#[test]
fn an_actor_that_ends_while_draining_ends_the_drain() {
    run_local(async {
        let stage = Stage::here(8);
        stage.inbox.link().offer(Order::Keep(1)).unwrap();
        settle().await;
        stage.inbox.controls().tell(Control::Stop);
        stage.inbox.link().offer(Order::Note(2)).unwrap();
        let begun = Instant::now();
        assert_eq!(stage.actor.drain(Duration::from_secs(5)).await, Drained { done: 1, lost: 1 });
        assert!(begun.elapsed() < ms(10));
        assert_eq!(stage.actor.drain(Duration::from_secs(5)).await, Drained::default(), "a second drain is harmless");
    });
}
