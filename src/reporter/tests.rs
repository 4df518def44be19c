//! The reporter between a scripted engine and a scripted plane, on a paused clock.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing)]

mod calls;
mod overload;

use tokio::time::sleep;

use super::*;
use crate::actor::{Inbox, Place, Policy, Supervised, Tap, run_local, supervise};
use crate::engine::message::{Control as EngineControl, Fact as EngineFact};
use crate::plane::embedded::Embedded;
use crate::plane::scripted::{Act, Scripted};
use crate::plane::{LeaseId, Report};

/// A report of a lease of its own.
pub(super) fn report(id: u64, release: bool) -> Report {
    under(&format!("lse {id}"), id, release)
}

pub(super) fn under(lease: &str, id: u64, release: bool) -> Report {
    Report {
        id,
        lease: LeaseId(lease.into()),
        path: "/".to_owned(),
        method: http::Method::GET,
        status: Some(200),
        error: None,
        markers: Vec::new(),
        business_code: None,
        outcome_hint: None,
        sent_at: Instant::now(),
        latency: Duration::from_millis(20),
        bytes: 100,
        retry_after: None,
        release,
    }
}

struct Stage {
    engine: Tap<EngineFact, EngineControl>,
    reporter: Supervised<Reporter>,
    parts: Parts,
}

fn stage(plane: Arc<dyn ControlPlane>, net: Net, bound: usize) -> Stage {
    let engine = Tap::new("engine", 1);
    let parts = Parts {
        plane,
        engine: engine.facts(),
        net,
        stats: Stats::new(),
        backlog: Backlog::default(),
        batch: 100,
        flush: millis(200),
        seed: 1,
    };
    let inbox = Inbox::new("reporter", bound);
    let made_of = parts.clone();
    let reporter = supervise(Place::Here, &inbox, Policy::default(), move |_| Reporter::new(made_of.clone()), |_| {});
    Stage { engine, reporter, parts }
}

impl Stage {
    fn offer(&self, id: u64, release: bool) -> bool {
        self.order(report(id, release))
    }

    fn order(&self, report: Report) -> bool {
        self.reporter.inbox().link().offer(Order::Report(report)).is_ok()
    }

    /// The next fact, whatever it is.
    async fn any(&self) -> Fact {
        match self.engine.next().await.0 {
            EngineFact::Reporter(fact) => fact,
            other => panic!("{other:?}"),
        }
    }

    /// The next fact but for how far reports are through.
    async fn fact(&self) -> Fact {
        loop {
            match self.any().await {
                Fact::Through(_) => {}
                fact => return fact,
            }
        }
    }

    async fn through(&self) -> u64 {
        match self.any().await {
            Fact::Through(place) => place,
            other => panic!("{other:?}"),
        }
    }

    async fn handed(&self) -> u64 {
        match self.fact().await {
            Fact::Handed { reports, .. } => reports,
            other => panic!("{other:?}"),
        }
    }
}

fn millis(n: u64) -> Duration {
    Duration::from_millis(n)
}

fn unavailable() -> Act<Answer> {
    Act::Now(Err(PlaneError::Unavailable("scripted".to_owned())))
}

#[test]
fn the_reports_of_one_turn_go_in_one_call() {
    run_local(async {
        let plane = Scripted::new();
        let stage = stage(Arc::clone(&plane) as _, Net::Here, 1_000);
        for id in 1..=5 {
            assert!(stage.offer(id, id % 2 == 0));
        }
        assert_eq!(stage.handed().await, 5);
        assert_eq!(plane.calls(), ["report 1,2,3,4,5"]);
        let stats = &stage.parts.stats;
        assert_eq!((stats.count("reporter/reports"), stats.count("reporter/queue_max")), (5, 5));
    });
}

#[test]
fn a_report_that_releases_nothing_waits_for_others() {
    run_local(async {
        let plane = Scripted::new();
        let stage = stage(Arc::clone(&plane) as _, Net::Here, 1_000);
        let start = Instant::now();
        stage.offer(1, false);
        sleep(millis(100)).await;
        stage.offer(2, false);
        assert_eq!(stage.handed().await, 2);
        assert_eq!(start.elapsed(), millis(200));
        stage.offer(3, false);
        sleep(millis(50)).await;
        stage.offer(4, true);
        assert_eq!(stage.handed().await, 2);
        assert_eq!(start.elapsed(), millis(250));
    });
}

#[test]
fn the_link_is_full_when_the_queue_is() {
    run_local(async {
        let plane = Scripted::new();
        plane.reports.lock().unwrap().extend((0..3).map(|_| Act::After(millis(300), Ok(Taken::default()))));
        let stage = stage(plane, Net::Here, 4);
        for id in 1..=4 {
            assert!(stage.offer(id, true));
            sleep(millis(1)).await;
        }
        assert_eq!(stage.parts.backlog.len(), 4);
        assert!(!stage.offer(5, true), "queued reports hold their places");
        assert_eq!(stage.handed().await, 1);
        assert_eq!(stage.handed().await, 1);
        assert!(stage.offer(5, true));
    });
}

#[test]
fn nothing_is_lost_or_reordered_while_the_plane_is_away() {
    run_local(async {
        let plane = Scripted::new();
        plane.reports.lock().unwrap().extend((0..6).map(|_| unavailable()));
        let stage = stage(Arc::clone(&plane) as _, Net::Here, 1_000);
        stage.offer(1, true);
        let start = Instant::now();
        for failure in 1..=6 {
            let Fact::Delayed { queued, why, .. } = stage.fact().await else { panic!("no delay told") };
            assert_eq!(queued, failure);
            assert!(why.contains("scripted"), "{why}");
            stage.offer(failure as u64 + 1, true);
        }
        assert_eq!(stage.handed().await, 7);
        assert_eq!(plane.calls().last().unwrap(), "report 1,2,3,4,5,6,7");
        // Caps of 0.5, 1, 2, 4, 8 and 16 seconds.
        assert!(start.elapsed() >= millis(15_750) && start.elapsed() < millis(31_500), "{:?}", start.elapsed());
        assert_eq!(stage.parts.stats.count("reporter/retries"), 6);
    });
}

#[test]
fn the_last_reports_go_at_once_even_while_the_plane_is_away() {
    run_local(async {
        let plane = Scripted::new();
        plane.reports.lock().unwrap().extend((0..6).map(|_| unavailable()));
        let stage = stage(Arc::clone(&plane) as _, Net::Here, 1_000);
        stage.offer(1, false);
        for call in 1..=6 {
            let before = Instant::now();
            assert!(stage.reporter.inbox().controls().tell(Control::HandOver));
            assert!(matches!(stage.fact().await, Fact::Delayed { .. }));
            assert_eq!((before.elapsed(), plane.calls().len()), (Duration::ZERO, call));
        }
        stage.reporter.inbox().controls().tell(Control::HandOver);
        assert_eq!(stage.handed().await, 1);
    });
}

#[test]
fn no_flush_makes_a_plane_that_is_away_be_asked_in_a_loop() {
    run_local(async {
        let plane = Scripted::new();
        plane.reports.lock().unwrap().extend((0..100).map(|_| unavailable()));
        let stage = stage(Arc::clone(&plane) as _, Net::Here, 1_000);
        for id in 0..600 {
            stage.offer(id, id % 7 == 0);
            stage.reporter.inbox().controls().tell(Control::Flush);
            sleep(millis(50)).await;
        }
        let calls = plane.calls().len();
        assert!((4..12).contains(&calls), "{calls} calls in 30 s");
        while let Some((EngineFact::Reporter(fact), _)) = stage.engine.take() {
            assert!(matches!(fact, Fact::Delayed { .. }), "{fact:?}");
        }
    });
}

#[test]
fn an_answer_of_a_plane_behind_a_network_is_told_as_such() {
    run_local(async {
        let plane = Scripted::remote();
        plane.reports.lock().unwrap().extend([
            Act::After(millis(5), Ok(Taken::default())),
            Act::After(millis(5), Err(PlaneError::Unavailable("away".to_owned()))),
        ]);
        let stage = stage(Arc::clone(&plane) as _, Net::Here, 1_000);
        stage.offer(1, true);
        assert!(matches!(stage.fact().await, Fact::Heard));
        assert_eq!(stage.handed().await, 1);
        let begun = Instant::now();
        stage.offer(2, true);
        let Fact::Delayed { begun: told, .. } = stage.fact().await else { panic!("no delay told") };
        assert_eq!((told, begun.elapsed()), (begun, millis(5)));
    });
}

#[test]
fn a_flush_covers_every_report_that_was_sent_before_it() {
    run_local(async {
        let plane = Scripted::new();
        let stage = stage(plane, Net::Here, 1_000);
        let start = Instant::now();
        for id in 0..350 {
            stage.offer(id, false);
        }
        stage.reporter.inbox().controls().tell(Control::Flush);
        let mut handed = 0;
        while handed < 350 {
            handed += stage.handed().await;
        }
        assert_eq!(start.elapsed(), Duration::ZERO);
    });
}

#[test]
fn rejected_reports_are_told_one_by_one() {
    run_local(async {
        let plane = Scripted::new();
        let no = |id| crate::plane::Rejected { id, is_unknown_lease: false, reason: "no".to_owned() };
        plane.reports.lock().unwrap().extend([
            Act::Now(Ok(Taken { duplicated: 0, rejected: vec![no(2)] })),
            Act::Now(Err(PlaneError::NoLease("lse".to_owned()))),
        ]);
        let stage = stage(plane, Net::Here, 1_000);
        assert!(stage.offer(1, true) && stage.offer(2, true));
        assert_eq!(stage.handed().await, 1);
        assert!(matches!(stage.fact().await, Fact::Rejected { rejected, ends: Some(_) } if rejected == no(2)));
        stage.offer(3, true);
        assert!(matches!(stage.fact().await, Fact::Rejected { rejected, .. } if rejected.id == 3));
        let stats = &stage.parts.stats;
        assert_eq!((stats.count("reporter/reports"), stats.count("reporter/rejected")), (1, 2));
        assert!(stage.parts.backlog.is_empty());
    });
}

#[test]
fn duplicates_and_leases_unknown_to_the_plane_are_counted() {
    run_local(async {
        let plane = Scripted::new();
        let no = |id, is_unknown_lease| crate::plane::Rejected { id, is_unknown_lease, reason: "no".to_owned() };
        let taken = Taken { duplicated: 2, rejected: vec![no(3, true), no(4, false)] };
        plane.reports.lock().unwrap().push_back(Act::Now(Ok(taken)));
        let stage = stage(plane, Net::Here, 1_000);
        for id in 1..=4 {
            stage.offer(id, id != 4);
        }
        assert!(matches!(stage.fact().await, Fact::Handed { reports: 2, ends: 2 }));
        assert!(matches!(stage.fact().await, Fact::Rejected { rejected, ends: Some(_) } if rejected.is_unknown_lease));
        assert!(matches!(stage.fact().await, Fact::Rejected { rejected, ends: None } if rejected.id == 4));
        let counts = ["duplicated", "unknown_to_plane", "rejected", "reports"];
        assert_eq!(counts.map(|name| stage.parts.stats.count(&format!("reporter/{name}"))), [2, 1, 2, 2]);
    });
}

#[test]
fn a_call_the_plane_will_never_take_gives_its_reports_up() {
    run_local(async {
        for error in [PlaneError::Invalid("no".to_owned()), PlaneError::UnknownLease("lse".to_owned())] {
            let plane = Scripted::new();
            plane.reports.lock().unwrap().push_back(Act::Now(Err(error)));
            let stage = stage(Arc::clone(&plane) as _, Net::Here, 1_000);
            stage.offer(1, true);
            assert!(matches!(stage.fact().await, Fact::Rejected { rejected, .. } if rejected.id == 1));
            stage.offer(2, true);
            assert_eq!(stage.handed().await, 1);
            assert_eq!(plane.calls(), ["report 1", "report 2"]);
        }
    });
}

#[test]
fn a_node_whose_reports_are_not_taken_says_so_and_drops_none() {
    run_local(async {
        let plane = Scripted::new();
        plane.reports.lock().unwrap().push_back(Act::Now(Err(PlaneError::Unauthorized("token_revoked".to_owned()))));
        let stage = stage(plane, Net::Here, 1_000);
        stage.offer(1, true);
        assert!(matches!(stage.fact().await, Fact::Unauthorized(why) if why.contains("token_revoked")));
        assert_eq!(stage.parts.backlog.len(), 1);
        assert_eq!(stage.handed().await, 1);
    });
}

#[test]
fn a_restarted_reporter_goes_on_with_its_queue() {
    run_local(async {
        let plane = Scripted::new();
        plane.reports.lock().unwrap().push_back(Act::Panic);
        let stage = stage(Arc::clone(&plane) as _, Net::Here, 3);
        for id in 1..=3 {
            stage.offer(id, true);
        }
        assert!(matches!(stage.fact().await, Fact::Delayed { queued: 3, .. }));
        assert!(!stage.offer(4, true), "the places are still held");
        assert_eq!(stage.handed().await, 3);
        assert_eq!(plane.calls(), ["report 1,2,3", "report 1,2,3"]);
        assert_eq!(stage.reporter.epoch().0, 2);
        assert!(stage.offer(4, true));
    });
}

#[test]
fn the_answer_to_a_call_outlives_the_reporter_that_made_it() {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
    run_local(async {
        let plane = Scripted::new();
        plane.reports.lock().unwrap().push_back(Act::AtDoor(Ok(Taken::default())));
        let stage = stage(Arc::clone(&plane) as _, Net::Runtime(runtime.handle().clone()), 8);
        stage.offer(1, true);
        while plane.calls().is_empty() {
            tokio::task::yield_now().await;
        }
        assert!(stage.reporter.replace(Place::Here));
        tokio::task::yield_now().await;
        plane.door.add_permits(1);
        assert_eq!(stage.handed().await, 1);
        assert_eq!(plane.calls(), ["report 1"], "it is not sent twice");
    });
}

#[test]
fn with_the_embedded_plane_every_report_ends_its_lease() {
    run_local(async {
        let plane = Arc::new(Embedded::anonymous());
        let stage = stage(Arc::clone(&plane) as _, Net::Here, 1_000);
        let mut handed = 0;
        for id in 0..300 {
            let mut ask = crate::plane::Ask {
                site: "h.example".into(),
                client: "".into(),
                group: "".into(),
                path: "/".to_owned(),
                session_key: None,
                anonymous: false,
                rule: None,
            };
            ask.anonymous = true;
            let lease = plane.acquire_now(&ask).unwrap().lease;
            assert!(stage.reporter.inbox().link().offer(Order::Report(Report { lease, ..report(id, true) })).is_ok());
        }
        while handed < 300 {
            handed += stage.handed().await;
        }
        let ledger = plane.ledger().unwrap();
        assert_eq!((ledger.acquired, ledger.released, ledger.reports, ledger.open), (300, 300, 300, 0));
    });
}
