//! Sites that are paused and groups whose circuit is open, beside others that go on.

use super::*;
use crate::plane::Configured;
use crate::spinneret::ConfigItem;

fn told(items: &[(&str, &str)]) -> RuntimeState {
    let mut state = RuntimeState::default();
    for (key, content) in items {
        let item = ConfigItem {
            namespace: "prod".to_owned(),
            group: "_runtime".to_owned(),
            key: (*key).to_owned(),
            format: "json".to_owned(),
            version: 1,
            content: (*content).to_owned(),
            updated_at: None,
            has_secret_refs: false,
        };
        state.take(&Configured { item, from_snapshot: false }).unwrap();
    }
    state
}

fn shop_is(paused: bool) -> RuntimeState {
    told(&[("site_switches", &format!(r#"{{"sites":{{"shop":{{"paused":{paused}}},"other":{{"paused":false}}}}}}"#))])
}

/// Asks for `site`, waiting as told, until `until`; when each lease came.
async fn crawl(stage: &Stage, site: &str, ticket: u64, until: Instant) -> Vec<Instant> {
    let mut leased = Vec::new();
    while Instant::now() < until {
        assert!(stage.offer(ticket, site));
        match stage.fact().await {
            Fact::Leased(_) => {
                leased.push(Instant::now());
                sleep(millis(10)).await;
            }
            Fact::Refused(refused) => sleep(refused.wait).await,
            other => panic!("{other:?}"),
        }
    }
    leased
}

#[test]
fn a_paused_site_is_not_asked_for_and_goes_on_soon_after_it_is_on_again() {
    run_local(async {
        let plane = Scripted::remote();
        let stage = stage(Arc::clone(&plane) as _, Net::Here, 64);
        let start = Instant::now();
        stage.tell(Control::Runtime(shop_is(true)));
        assert_eq!(crawl(&stage, "shop", 1, start + Duration::from_secs(5)).await, []);
        assert_eq!(plane.calls(), [] as [&str; 0]);
        assert_eq!(stage.count("lease/held_by_runtime"), stage.count("lease/held"));
        assert!(stage.count("lease/held") >= 20);
        let begun = Instant::now();
        assert!(crawl(&stage, "other", 2, begun + Duration::from_secs(1)).await.len() >= 100, "full speed beside it");
        stage.tell(Control::Runtime(shop_is(false)));
        let on = Instant::now();
        let leased = crawl(&stage, "shop", 1, on + Duration::from_secs(2)).await;
        assert!(leased[0].duration_since(on) <= millis(250));
        assert!(leased.iter().filter(|at| at.duration_since(on) >= Duration::from_secs(1)).count() >= 98, "{}", leased.len());
    });
}

#[test]
fn a_pause_learnt_from_a_refusal_ends_when_the_item_says_so() {
    run_local(async {
        let plane = Scripted::remote();
        let paused = refusal(RefusalKind::SitePaused, Some(Duration::from_secs(30)));
        plane.acquires.lock().unwrap().push_back(Act::Now(Err(paused)));
        let stage = stage(Arc::clone(&plane) as _, Net::Here, 64);
        stage.tell(Control::Runtime(shop_is(true)));
        stage.tell(Control::Runtime(shop_is(false)));
        stage.offer(1, "shop");
        let refused = stage.refused().await;
        assert_eq!(refused.refusal.retry_after, Some(Duration::from_secs(30)));
        assert_eq!(refused.wait, millis(250), "it may be over sooner: the engine looks again");
        let start = Instant::now();
        assert_eq!(crawl(&stage, "shop", 1, start + Duration::from_secs(5)).await, []);
        assert_eq!(plane.calls().len(), 1, "looking again asks nobody");
        stage.tell(Control::Runtime(told(&[("site_switches", r#"{"sites":{"shop":{"paused":false}}}"#)])));
        let on = Instant::now();
        assert!(!crawl(&stage, "shop", 1, on + millis(300)).await.is_empty());
    });
}

#[test]
fn where_nothing_is_told_a_pause_lasts_as_long_as_its_hint() {
    run_local(async {
        let plane = Scripted::remote();
        let paused = refusal(RefusalKind::SitePaused, Some(Duration::from_secs(30)));
        plane.acquires.lock().unwrap().push_back(Act::Now(Err(paused)));
        let stage = stage(plane, Net::Here, 64);
        stage.offer(1, "shop");
        assert_eq!(stage.refused().await.wait, Duration::from_secs(30));
    });
}

#[test]
fn an_open_circuit_holds_what_gathered_for_its_group_too() {
    run_local(async {
        let plane = Scripted::remote();
        plane.acquires.lock().unwrap().push_back(Act::After(millis(5), Ok(grant("first"))));
        let stage = stage(Arc::clone(&plane) as _, Net::Here, 64);
        let grouped = |group: &str| Ask { group: group.into(), ..ask("shop") };
        for n in 1..=3 {
            stage.ask(n, grouped("search"));
            sleep(millis(1)).await;
        }
        let open = r#"{"sites":{"shop":{"paused":false,"groups":{"web/search":{"state":"open","open_until":null}}}}}"#;
        stage.tell(Control::Runtime(told(&[("breakers", open)])));
        assert_eq!(stage.leased().await.tag, tag(1));
        for n in 2..=3 {
            let refused = stage.refused().await;
            assert_eq!((refused.tag, refused.refusal.why), (tag(n), RefusalKind::CircuitOpen));
            assert!(refused.refusal.message.contains("search"), "{}", refused.refusal.message);
        }
        stage.ask(4, grouped("detail"));
        assert_eq!(stage.leased().await.tag, tag(4));
        stage.offer(5, "shop");
        assert_eq!(stage.leased().await.tag, tag(5), "an ask by path is not known to be of the group");
        assert_eq!(plane.calls().len(), 3);
        assert_eq!(stage.count("lease/held_by_runtime"), 2);
    });
}

#[test]
fn a_restarted_broker_knows_what_is_switched_off() {
    run_local(async {
        let plane = Scripted::remote();
        plane.acquires.lock().unwrap().push_back(Act::Panic);
        let stage = stage(Arc::clone(&plane) as _, Net::Here, 64);
        stage.tell(Control::Runtime(shop_is(true)));
        stage.offer(1, "other");
        while stage.broker.epoch().0 < 2 {
            sleep(millis(1)).await;
        }
        stage.offer(2, "shop");
        assert_eq!(stage.refused().await.refusal.why, RefusalKind::SitePaused);
    });
}

#[test]
fn one_exhausted_path_lets_the_engine_try_another_soon() {
    run_local(async {
        let plane = Scripted::remote();
        let no = || Act::Now(Err(refusal(RefusalKind::NoIdentity, Some(Duration::from_secs(60)))));
        plane.acquires.lock().unwrap().extend([no(), no()]);
        let stage = stage(Arc::clone(&plane) as _, Net::Here, 64);
        stage.offer(1, "shop");
        assert_eq!(stage.refused().await.wait, Duration::from_secs(1));
        stage.ask(2, Ask { group: "g".into(), ..ask("shop") });
        assert_eq!(stage.refused().await.wait, Duration::from_secs(60), "of a named group nothing else is to be had");
        stage.ask(3, Ask { path: "/else".to_owned(), ..ask("shop") });
        assert_eq!(stage.leased().await.tag, tag(3));
        stage.offer(1, "shop");
        assert_eq!(stage.refused().await.wait, Duration::from_secs(1));
        assert_eq!(plane.calls().len(), 3, "the refused path is not asked for again before its hint");
    });
}

/// Crawls nine sites, one lease each 10 ms, for 10 s beside `shop`, which has a new path to ask for whenever it may; the
/// leases of the nine.
async fn crawl_nine_beside_a_refused_one(stage: &Stage) -> usize {
    let start = Instant::now();
    let (mut shop_waits_until, mut path, mut leased) = (start, 0, 0);
    while start.elapsed() < Duration::from_secs(10) {
        let mut asked = 9;
        for n in 0..9 {
            assert!(stage.offer(n, &format!("site{n}")));
        }
        if Instant::now() >= shop_waits_until {
            for _ in 0..20 {
                path += 1;
                asked += 1;
                assert!(stage.ask(100, Ask { path: format!("/{path}"), ..ask("shop") }));
            }
        }
        for _ in 0..asked {
            match stage.fact().await {
                Fact::Leased(_) => leased += 1,
                Fact::Refused(refused) => {
                    assert_eq!(refused.tag, tag(100), "{:?}", refused.refusal);
                    shop_waits_until = Instant::now() + refused.wait;
                }
                other => panic!("{other:?}"),
            }
        }
        sleep(millis(10)).await;
    }
    leased
}

#[test]
fn nine_sites_keep_their_rate_beside_one_that_gets_no_leases() {
    use RefusalKind::{CircuitOpen, NoIdentity, NoProxy, SitePaused};
    // The asks of the first turn are out before anything is known; then one probe in five seconds, for a pause none.
    for (why, most) in [(NoIdentity, 22), (NoProxy, 22), (CircuitOpen, 22), (SitePaused, 20)] {
        run_local(async {
            let plane = Scripted::remote();
            let no = refusal(why, Some(Duration::from_secs(30)));
            plane.refusing.lock().unwrap().insert("shop".to_owned(), no);
            let stage = stage(Arc::clone(&plane) as _, Net::Here, 64);
            assert_eq!(crawl_nine_beside_a_refused_one(&stage).await, 9 * 1_000, "{why:?}");
            let asked = plane.calls().iter().filter(|call| call.ends_with(" shop")).count();
            assert!(asked >= 1 && asked <= most, "{why:?}: {asked} calls in 10 s");
        });
    }
}
