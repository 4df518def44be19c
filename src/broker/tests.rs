//! The broker between a scripted engine and a scripted plane, on a paused clock.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing)]

mod away;
mod coalescing;
mod pauses;

use tokio::time::{advance, sleep};

use super::message::{Leased, Refused};
use super::*;
use crate::actor::{Inbox, Place, Policy, Supervised, Tap, run_local, supervise};
use crate::engine::message::Control as EngineControl;
use crate::engine::ticket::Tag;
use crate::plane::embedded::Embedded;
use crate::plane::scripted::{Act, Scripted, grant};
use crate::plane::{Ask, Grant, Refusal, RefusalKind};

struct Stage {
    engine: Tap<Fact, EngineControl>,
    broker: Supervised<LeaseBroker>,
    parts: Parts,
}

fn stage(plane: Arc<dyn ControlPlane>, net: Net, bound: usize) -> Stage {
    staged(plane, net, bound, Some(Duration::from_secs(300)))
}

fn staged(plane: Arc<dyn ControlPlane>, net: Net, bound: usize, unavailable_timeout: Option<Duration>) -> Stage {
    let engine = Tap::new("engine", 1);
    let parts = Parts {
        plane,
        engine: engine.facts(),
        net,
        stats: Stats::new(),
        releasing: Releasing::default(),
        keeping: Keeping::default(),
        unavailable_timeout,
        seed: 1,
    };
    let inbox = Inbox::new("broker", bound);
    let made_of = parts.clone();
    let broker = supervise(Place::Here, &inbox, Policy::default(), move |_| LeaseBroker::new(made_of.clone()), |_| {});
    Stage { engine, broker, parts }
}

impl Stage {
    fn offer(&self, ticket: u64, site: &str) -> bool {
        self.ask(ticket, ask(site))
    }

    fn ask(&self, ticket: u64, ask: Ask) -> bool {
        self.broker.inbox().link().offer(Order::Acquire { tag: tag(ticket), ask }).is_ok()
    }

    fn count(&self, key: &str) -> i64 {
        self.parts.stats.count(key)
    }

    fn tell(&self, control: Control) {
        assert!(self.broker.inbox().controls().tell(control));
    }

    async fn fact(&self) -> Fact {
        self.engine.next().await.0
    }

    async fn refused(&self) -> Refused {
        match self.fact().await {
            Fact::Refused(refused) => refused,
            other => panic!("{other:?}"),
        }
    }

    async fn leased(&self) -> Leased {
        match self.fact().await {
            Fact::Leased(leased) => leased,
            other => panic!("{other:?}"),
        }
    }
}

fn tag(ticket: u64) -> Tag {
    Tag { ticket, epoch: 1 }
}

fn ask(site: &str) -> Ask {
    Ask {
        site: site.into(),
        client: "web".into(),
        group: "".into(),
        path: "/".to_owned(),
        session_key: None,
        anonymous: false,
        rule: None,
    }
}

fn refusal(why: RefusalKind, hint: Option<Duration>) -> Refusal {
    Refusal { why, retry_after: hint, message: "m".to_owned() }
}

fn millis(n: u64) -> Duration {
    Duration::from_millis(n)
}

fn unavailable<T>() -> Result<T, PlaneError> {
    Err(PlaneError::Unavailable("scripted".to_owned()))
}

#[test]
fn a_grant_reaches_the_ticket_it_was_asked_for() {
    run_local(async {
        let plane = Scripted::new();
        plane.acquires.lock().unwrap().push_back(Act::After(millis(250), Ok(grant("slow"))));
        let stage = stage(plane, Net::Here, 8);
        assert!(stage.offer(1, "shop") && stage.offer(2, "shop"));
        let (first, second) = (stage.leased().await, stage.leased().await);
        assert_eq!((first.tag, &*first.grant.lease.0), (tag(2), "lse"));
        assert_eq!((second.tag, &*second.grant.lease.0), (tag(1), "slow"));
        tokio::task::yield_now().await;
        assert_eq!(stage.parts.stats.count("lease/acquired"), 2);
        assert_eq!(stage.parts.stats.count("lease/wait_ms_max"), 250);
    });
}

#[test]
fn a_refused_group_waits_and_the_plane_is_not_asked_meanwhile() {
    run_local(async {
        let plane = Scripted::new();
        plane.acquires.lock().unwrap().push_back(Act::Now(Err(refusal(RefusalKind::NoIdentity, Some(millis(800))))));
        let stage = stage(Arc::clone(&plane) as _, Net::Here, 8);
        stage.offer(1, "shop");
        assert_eq!(stage.refused().await.wait, millis(800));
        advance(millis(300)).await;
        stage.offer(2, "shop");
        let held = stage.refused().await;
        assert_eq!((held.tag, held.wait, held.refusal.why), (tag(2), millis(500), RefusalKind::NoIdentity));
        stage.offer(3, "other");
        assert_eq!(stage.leased().await.tag, tag(3));
        assert_eq!(plane.calls(), ["acquire shop", "acquire other"]);
        advance(millis(500)).await;
        stage.offer(4, "shop");
        assert_eq!(stage.leased().await.tag, tag(4));
        let stats = &stage.parts.stats;
        assert_eq!((stats.count("lease/refused/no_identity_available"), stats.count("lease/held")), (1, 1));
    });
}

#[test]
fn a_lifting_gate_sends_one_probe_first() {
    run_local(async {
        let plane = Scripted::new();
        plane.acquires.lock().unwrap().extend([
            Act::Now(Err(refusal(RefusalKind::CircuitOpen, Some(millis(100))))),
            Act::After(millis(40), Ok(grant("probe"))),
        ]);
        let stage = stage(Arc::clone(&plane) as _, Net::Here, 8);
        stage.offer(1, "shop");
        stage.refused().await;
        advance(millis(100)).await;
        assert!(stage.offer(2, "shop") && stage.offer(3, "shop"));
        assert_eq!(stage.refused().await.tag, tag(3));
        assert_eq!(stage.leased().await.tag, tag(2));
        stage.offer(4, "shop");
        stage.offer(5, "shop");
        assert_eq!((stage.leased().await.tag, stage.leased().await.tag), (tag(4), tag(5)));
        assert_eq!(plane.calls().len(), 4);
    });
}

#[test]
fn asks_in_progress_fill_the_link() {
    run_local(async {
        let plane = Scripted::new();
        let slow = || Act::After(millis(50), Ok(grant("slow")));
        plane.acquires.lock().unwrap().extend([slow(), slow()]);
        let stage = stage(plane, Net::Here, 2);
        assert!(stage.offer(1, "shop") && stage.offer(2, "shop"));
        sleep(millis(10)).await;
        assert!(!stage.offer(3, "shop"), "both are still asked for");
        stage.leased().await;
        stage.leased().await;
        tokio::task::yield_now().await;
        assert!(stage.offer(3, "shop"));
    });
}

#[test]
fn a_refusal_for_good_is_passed_on_without_a_wait() {
    run_local(async {
        let plane = Scripted::new();
        plane.acquires.lock().unwrap().push_back(Act::Now(Err(refusal(RefusalKind::SiteUnknown, None))));
        let stage = stage(plane, Net::Here, 8);
        stage.offer(1, "shop");
        let refused = stage.refused().await;
        assert_eq!((refused.refusal.why, refused.wait), (RefusalKind::SiteUnknown, Duration::ZERO));
        stage.offer(2, "shop");
        assert_eq!(stage.leased().await.tag, tag(2));
    });
}

#[test]
fn a_lease_is_renewed_until_it_is_handed_back() {
    run_local(async {
        let plane = Scripted::new();
        let stage = stage(Arc::clone(&plane) as _, Net::Here, 8);
        let start = Instant::now();
        for (n, at) in [(1, 225), (2, 10), (3, 20)] {
            let lease = LeaseId(format!("l{n}").into());
            let (at, expires_at) = (start + Duration::from_secs(at), start + Duration::from_secs(300));
            stage.tell(Control::Renew { lease, tag: tag(n), at, expires_at });
        }
        stage.tell(Control::Renewed(LeaseId("l3".into())));
        sleep(Duration::from_secs(230)).await;
        assert_eq!(plane.calls(), ["renew l2", "renew l1"]);
        sleep(Duration::from_secs(200)).await;
        assert_eq!(plane.calls(), ["renew l2", "renew l1", "renew l2"], "again after three quarters of its 300 s");
        stage.tell(Control::Release(LeaseId("l2".into())));
        stage.tell(Control::Renewed(LeaseId("l1".into())));
        sleep(Duration::from_secs(2_000)).await;
        assert_eq!(plane.calls()[3..], ["release l2"]);
        assert_eq!(stage.parts.stats.count("lease/renewed"), 3);
        assert!(stage.engine.take().is_none());
    });
}

#[test]
fn a_lease_that_cannot_be_renewed_is_told_with_its_ticket() {
    run_local(async {
        let plane = Scripted::new();
        let gone = || Act::Now(Err(PlaneError::NoLease("l1".to_owned())));
        let away = || Act::After(millis(5), unavailable());
        plane.renewals.lock().unwrap().extend([gone(), away(), away(), away()]);
        let stage = stage(Arc::clone(&plane) as _, Net::Here, 8);
        for n in 1..=2 {
            let (lease, at) = (LeaseId(format!("l{n}").into()), Instant::now() + Duration::from_secs(n));
            stage.tell(Control::Renew { lease, tag: tag(n), at, expires_at: at + Duration::from_secs(75) });
        }
        for n in 1..=2 {
            let Fact::RenewFailed(failed) = stage.fact().await else { panic!("no failure told") };
            assert_eq!((failed.tag, failed.lease), (tag(n), LeaseId(format!("l{n}").into())));
        }
        assert_eq!(plane.calls(), ["renew l1", "renew l2", "renew l2", "renew l2"]);
        sleep(Duration::from_secs(600)).await;
        assert_eq!(plane.calls().len(), 4);
    });
}

#[test]
fn a_renewal_that_hangs_is_given_up_when_the_lease_expires() {
    run_local(async {
        let plane = Scripted::new();
        let late = Instant::now() + Duration::from_secs(900);
        plane.renewals.lock().unwrap().push_back(Act::After(Duration::from_secs(600), Ok(late)));
        let stage = stage(Arc::clone(&plane) as _, Net::Here, 8);
        let start = Instant::now();
        let (at, expires_at) = (start + Duration::from_secs(15), start + Duration::from_secs(20));
        stage.tell(Control::Renew { lease: LeaseId("l1".into()), tag: tag(1), at, expires_at });
        let Fact::RenewFailed(failed) = stage.fact().await else { panic!("no failure told") };
        assert_eq!((failed.tag, start.elapsed()), (tag(1), Duration::from_secs(20)));
        sleep(Duration::from_secs(2_000)).await;
        assert_eq!(plane.calls(), ["renew l1"]);
        assert!(stage.engine.take().is_none());
        assert_eq!((stage.count("lease/renew_failed"), stage.count("lease/renewed")), (1, 0));
    });
}

#[test]
fn a_restarted_broker_goes_on_renewing() {
    run_local(async {
        let plane = Scripted::new();
        plane.renewals.lock().unwrap().push_back(Act::Panic);
        let stage = stage(Arc::clone(&plane) as _, Net::Here, 8);
        for n in 1..=2 {
            let (lease, at) = (LeaseId(format!("l{n}").into()), Instant::now() + Duration::from_secs(n * 10));
            stage.tell(Control::Renew { lease, tag: tag(n), at, expires_at: at + Duration::from_secs(75) });
        }
        sleep(Duration::from_secs(21)).await;
        assert_eq!(stage.broker.epoch().0, 2);
        assert_eq!(plane.calls(), ["renew l1", "renew l1", "renew l2"]);
    });
}

#[test]
fn a_release_is_tried_again_a_few_times() {
    run_local(async {
        let plane = Scripted::new();
        plane.releases.lock().unwrap().extend((0..2).map(|_| Act::Now(unavailable())));
        let stage = stage(Arc::clone(&plane) as _, Net::Here, 8);
        stage.tell(Control::Release(LeaseId("a".into())));
        tokio::task::yield_now().await;
        assert_eq!(stage.parts.releasing.count(), 1);
        sleep(Duration::from_secs(10)).await;
        assert_eq!((plane.calls().len(), stage.parts.releasing.count()), (3, 0));
        plane.releases.lock().unwrap().extend((0..9).map(|_| Act::Now(unavailable())));
        stage.tell(Control::Release(LeaseId("b".into())));
        sleep(Duration::from_secs(60)).await;
        assert_eq!(plane.calls().len(), 3 + RELEASE_TRIES as usize);
        let stats = &stage.parts.stats;
        assert_eq!((stats.count("lease/released"), stats.count("lease/release_failed")), (1, 1));
        assert_eq!(stage.parts.releasing.count(), 0);
    });
}

#[test]
fn leases_that_are_over_or_unknown_are_given_back_without_an_error() {
    run_local(async {
        let plane = Scripted::new();
        plane.releases.lock().unwrap().extend([
            Act::Now(Err(PlaneError::NoLease("a".to_owned()))),
            Act::Now(Err(PlaneError::UnknownLease("b".to_owned()))),
            Act::Now(Err(PlaneError::Unauthorized("c".to_owned()))),
        ]);
        let stage = stage(Arc::clone(&plane) as _, Net::Here, 8);
        for name in ["a", "b", "c"] {
            stage.tell(Control::Release(LeaseId(name.into())));
        }
        sleep(Duration::from_secs(60)).await;
        assert_eq!(plane.calls(), ["release a", "release b", "release c"], "none of them is tried again");
        let counts = ["lease/released", "lease/unknown_to_plane", "lease/release_failed"].map(|key| stage.count(key));
        assert_eq!(counts, [1, 1, 1]);
    });
}

#[test]
fn a_bounded_number_of_releases_is_under_way_at_once() {
    run_local(async {
        let plane = Scripted::new();
        plane.releases.lock().unwrap().extend((0..3_000).map(|_| Act::After(millis(10), Ok(()))));
        let stage = stage(Arc::clone(&plane) as _, Net::Here, 8);
        for n in 0..3_000 {
            stage.tell(Control::Release(LeaseId(format!("l{n}").into())));
        }
        sleep(millis(5)).await;
        assert_eq!((plane.calls().len(), stage.parts.releasing.count()), (RELEASES_AT_ONCE, 3_000));
        sleep(millis(10 * 3_000_u64.div_ceil(RELEASES_AT_ONCE as u64))).await;
        assert_eq!((plane.calls().len(), stage.parts.releasing.count()), (3_000, 0));
        assert_eq!(plane.calls()[2_999], "release l2999", "in the order they were wanted");
        assert_eq!((stage.count("lease/released"), stage.count("lease/releasing_max")), (3_000, 3_000));
    });
}

#[test]
fn with_the_embedded_plane_every_lease_is_accounted_for() {
    run_local(async {
        let plane = Arc::new(Embedded::anonymous());
        let stage = stage(Arc::clone(&plane) as _, Net::Here, 512);
        for n in 0..500 {
            assert!(stage.offer(n, "shop"));
        }
        for n in 0..500 {
            let leased = stage.leased().await;
            assert_eq!(leased.tag, tag(n), "answers keep the order of the asks");
            if n % 2 == 0 {
                stage.tell(Control::Release(leased.grant.lease));
            }
        }
        tokio::task::yield_now().await;
        let ledger = plane.ledger().unwrap();
        assert!(ledger.balances());
        assert_eq!((ledger.acquired, ledger.released, ledger.open), (500, 250, 250));
    });
}

#[test]
fn a_lease_that_comes_for_a_broker_that_is_gone_is_given_back() {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
    let plane = Scripted::new();
    plane.acquires.lock().unwrap().push_back(Act::AtDoor(Ok(grant("late"))));
    run_local(async {
        let stage = stage(Arc::clone(&plane) as _, Net::Runtime(runtime.handle().clone()), 8);
        stage.offer(1, "shop");
        while plane.calls().is_empty() {
            tokio::task::yield_now().await;
        }
        stage.broker.stop();
        while !stage.broker.has_ended() {
            tokio::task::yield_now().await;
        }
    });
    plane.door.add_permits(1);
    let begun = std::time::Instant::now();
    while plane.calls() != ["acquire shop", "release late"] {
        assert!(begun.elapsed() < Duration::from_secs(5), "{:?}", plane.calls());
        std::thread::sleep(millis(1));
    }
}
