//! Several calls at once: what goes in which, how far reports are through, and what failures and restarts make of them.

use super::*;

#[test]
fn while_as_many_calls_are_out_as_may_be_reports_gather_for_the_next() {
    run_local(async {
        let plane = Scripted::new();
        plane.reports.lock().unwrap().extend((0..3).map(|_| Act::After(millis(300), Ok(Taken::default()))));
        let stage = stage(Arc::clone(&plane) as _, Net::Here, 1_000);
        let start = Instant::now();
        for id in 1..=6 {
            stage.offer(id, true);
            sleep(millis(50)).await;
        }
        for (handed, at) in [(1, 300), (3, 300), (1, 350), (1, 400)] {
            assert_eq!((stage.handed().await, start.elapsed()), (handed, millis(at)));
        }
        assert_eq!(plane.calls(), ["report 1", "report 2", "report 3", "report 4,5,6"]);
    });
}

#[test]
fn a_report_that_ends_a_lease_does_not_wait_for_the_call_before_it() {
    run_local(async {
        let plane = Scripted::remote();
        let after = |time| Act::After(millis(time), Ok(Taken::default()));
        plane.reports.lock().unwrap().extend([after(300), after(5), after(5), after(5)]);
        let stage = stage(Arc::clone(&plane) as _, Net::Here, 1_000);
        let start = Instant::now();
        for report in [under("a", 1, false), under("b", 2, true)] {
            stage.order(report);
        }
        sleep(millis(1)).await;
        stage.order(under("a", 3, true));
        stage.order(under("c", 4, true));
        // Nobody takes what is told of the first ones from this.
        assert!(matches!(stage.any().await, Fact::Heard));
        assert_eq!(stage.through().await, 0);
        assert!(matches!(stage.any().await, Fact::Handed { reports: 1, ends: 1 }));
        assert_eq!(start.elapsed(), millis(6));
        assert!(matches!(stage.any().await, Fact::Heard));
        assert_eq!(stage.through().await, 2);
        assert!(matches!(stage.any().await, Fact::Handed { reports: 2, ends: 1 }));
        assert!(matches!(stage.any().await, Fact::Heard));
        assert_eq!(stage.through().await, 4);
        assert!(matches!(stage.any().await, Fact::Handed { reports: 1, ends: 1 }));
        assert_eq!(start.elapsed(), millis(305));
        assert_eq!(plane.calls(), ["report 1,2", "report 4", "report 3"], "those of a lease in their order");
        assert_eq!(stage.parts.stats.count("reporter/calls"), 3);
    });
}

#[test]
fn reports_that_come_evenly_go_in_calls_that_are_spread_evenly() {
    run_local(async {
        let plane = Scripted::remote();
        plane.reports.lock().unwrap().extend((0..1_000).map(|_| Act::After(millis(90), Ok(Taken::default()))));
        let stage = stage(Arc::clone(&plane) as _, Net::Here, 1_000);
        let (mut seen, mut begun) = (0, Vec::new());
        for id in 0..3_000 {
            stage.offer(id, true);
            sleep(millis(1)).await;
            let calls = plane.calls().len();
            begun.extend((seen..calls).map(|_| id));
            seen = calls;
        }
        // Of the calls once it runs: 90 reports come while one is out, so three calls have 30 each.
        let gaps: Vec<u64> = begun.windows(2).map(|pair| pair[1] - pair[0]).skip(10).collect();
        assert!(gaps.len() > 60 && gaps.iter().all(|gap| (20..=40).contains(gap)), "{gaps:?}");
    });
}

#[test]
fn calls_that_fail_together_are_one_failure_and_give_their_reports_back_in_order() {
    run_local(async {
        let plane = Scripted::remote();
        let away = |time| Act::After(millis(time), Err(PlaneError::Unavailable("away".to_owned())));
        plane.reports.lock().unwrap().extend([away(20), away(5), away(20)]);
        let stage = stage(Arc::clone(&plane) as _, Net::Here, 1_000);
        let start = Instant::now();
        for id in 1..=3 {
            stage.offer(id, true);
            sleep(millis(1)).await;
        }
        for _ in 0..3 {
            assert!(matches!(stage.fact().await, Fact::Delayed { queued: 3, .. }));
        }
        assert_eq!(stage.parts.stats.count("reporter/retries"), 3);
        assert_eq!(stage.handed().await, 3);
        // The cap after one failure is 0.5 s.
        let took = start.elapsed();
        assert!(took >= millis(250) && took <= millis(510), "{took:?}");
        assert_eq!(plane.calls().last().unwrap(), "report 1,2,3");
    });
}

#[test]
fn the_last_reports_do_not_wait_for_a_call_that_hangs() {
    run_local(async {
        let plane = Scripted::new();
        plane.reports.lock().unwrap().push_back(Act::AtDoor(Ok(Taken::default())));
        let stage = stage(Arc::clone(&plane) as _, Net::Here, 1_000);
        for id in 1..=9 {
            stage.offer(id, true);
        }
        sleep(millis(1)).await;
        let start = Instant::now();
        stage.offer(10, true);
        sleep(millis(1)).await;
        assert_eq!(plane.calls().len(), 1, "it is too few for a call of its own");
        assert!(stage.reporter.inbox().controls().tell(Control::HandOver));
        assert_eq!((stage.handed().await, start.elapsed()), (1, millis(1)));
        plane.door.add_permits(1);
        assert_eq!(stage.handed().await, 9);
    });
}

#[test]
fn the_answer_to_a_call_outlives_a_panic_in_the_next_one() {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
    run_local(async {
        let plane = Scripted::new();
        plane.reports.lock().unwrap().extend([Act::AtDoor(Ok(Taken::default())), Act::Panic]);
        let stage = stage(Arc::clone(&plane) as _, Net::Runtime(runtime.handle().clone()), 8);
        stage.offer(1, true);
        while plane.calls().is_empty() {
            tokio::task::yield_now().await;
        }
        stage.offer(2, true);
        assert!(matches!(stage.fact().await, Fact::Delayed { queued: 2, .. }));
        assert_eq!(stage.reporter.epoch().0, 2);
        plane.door.add_permits(1);
        // Its end is noticed as such: the clock stands still, so the other call's next try does not come.
        let began = std::time::Instant::now();
        let mut told = Vec::new();
        while told.len() < 2 {
            told.extend(stage.engine.take().map(|(fact, _)| fact));
            tokio::task::yield_now().await;
            assert!(began.elapsed() < Duration::from_secs(20), "{told:?}");
        }
        assert!(matches!(told[1], EngineFact::Reporter(Fact::Handed { reports: 1, ends: 1 })), "{told:?}");
        assert_eq!(stage.handed().await, 1);
        assert_eq!(plane.calls(), ["report 1", "report 2", "report 2"]);
    });
}

#[test]
fn a_restarted_reporter_makes_every_call_again_that_went_with_it() {
    run_local(async {
        let plane = Scripted::remote();
        plane.reports.lock().unwrap().extend((0..3).map(|_| Act::AtDoor(Ok(Taken::default()))));
        let stage = stage(Arc::clone(&plane) as _, Net::Here, 8);
        for id in 1..=3 {
            stage.offer(id, true);
            sleep(millis(1)).await;
        }
        assert!(stage.reporter.replace(Place::Here));
        for _ in 0..3 {
            assert!(matches!(stage.fact().await, Fact::Delayed { .. }));
        }
        assert_eq!(stage.handed().await, 3);
        assert_eq!(plane.calls().last().unwrap(), "report 1,2,3");
        assert!(stage.parts.backlog.is_empty());
    });
}
