//! A plane over the network that does not answer.

use super::*;

fn unreachable() -> Act<Result<Grant, Refusal>> {
    Act::Now(Err(refusal(RefusalKind::Unreachable, None)))
}

/// Asks for `ticket` until the plane grants or is lost; the loss.
async fn ask_until_lost(stage: &Stage, ticket: u64) -> Option<String> {
    stage.offer(ticket, "shop");
    loop {
        match stage.fact().await {
            Fact::Leased(_) => return None,
            Fact::Refused(refused) => {
                assert!(!refused.wait.is_zero());
                tokio::select! {
                    biased;
                    // The fact of the loss may come while the ask waits.
                    (fact, _) = stage.engine.next() => match fact {
                        Fact::PlaneLost(why) => return Some(why),
                        other => panic!("{other:?}"),
                    },
                    () = sleep(refused.wait) => {}
                }
                stage.offer(ticket, "shop");
            }
            Fact::PlaneLost(why) => return Some(why),
            other => panic!("{other:?}"),
        }
    }
}

#[test]
fn a_plane_that_answers_nobody_for_too_long_is_lost() {
    run_local(async {
        let plane = Scripted::remote();
        plane.acquires.lock().unwrap().extend((0..10_000).map(|_| unreachable()));
        let stage = stage(Arc::clone(&plane) as _, Net::Here, 8);
        let start = Instant::now();
        let why = ask_until_lost(&stage, 1).await.unwrap();
        assert_eq!(start.elapsed(), Duration::from_secs(300));
        for part in ["SPINNERET_URL", "300", "SPINNERET_UNAVAILABLE_TIMEOUT", "the last error: m"] {
            assert!(why.contains(part), "{why}");
        }
        assert!(plane.calls().len() < 60, "it backs off: {}", plane.calls().len());
        assert_eq!(stage.count("lease/plane_away_ms_max"), 300_000);
        stage.offer(1, "shop");
        stage.refused().await;
        sleep(Duration::from_secs(1_000)).await;
        assert!(stage.engine.take().is_none(), "told once");
    });
}

#[test]
fn without_a_limit_and_in_process_it_is_never_lost() {
    for (plane, limit) in [(Scripted::remote(), None), (Scripted::new(), Some(Duration::from_secs(5)))] {
        run_local(async {
            plane.acquires.lock().unwrap().extend((0..150).map(|_| unreachable()));
            let stage = staged(Arc::clone(&plane) as _, Net::Here, 8, limit);
            let start = Instant::now();
            assert_eq!(ask_until_lost(&stage, 1).await, None);
            assert!(start.elapsed() > Duration::from_secs(600));
        });
    }
}

#[test]
fn any_answer_is_a_sign_of_life() {
    run_local(async {
        let plane = Scripted::remote();
        let mut script: Vec<_> = (0..8).map(|_| unreachable()).collect();
        script.push(Act::Now(Err(refusal(RefusalKind::NoIdentity, Some(millis(10))))));
        script.push(Act::Now(Ok(grant("back"))));
        plane.acquires.lock().unwrap().extend(script);
        let stage = staged(Arc::clone(&plane) as _, Net::Here, 8, Some(Duration::from_secs(3_600)));
        let start = Instant::now();
        assert_eq!(ask_until_lost(&stage, 1).await, None);
        let away = stage.count("lease/plane_away_ms_max");
        assert!(away > 1_000 && away <= i64::try_from(start.elapsed().as_millis()).unwrap(), "{away}");
        // Long after: nothing is left to tell.
        sleep(Duration::from_secs(7_200)).await;
        assert!(stage.engine.take().is_none());
    });
}

#[test]
fn a_renewal_and_a_release_that_are_answered_are_signs_of_life_too() {
    run_local(async {
        let plane = Scripted::remote();
        plane.acquires.lock().unwrap().extend((0..2).map(|_| unreachable()));
        let end = Instant::now() + Duration::from_secs(1_000);
        plane.renewals.lock().unwrap().extend((0..9).map(|_| Act::After(millis(1), Ok(end))));
        plane.releases.lock().unwrap().push_back(Act::After(millis(1), Ok(())));
        let stage = staged(Arc::clone(&plane) as _, Net::Here, 8, Some(Duration::from_secs(30)));
        let renew = |at: Instant| {
            let expires_at = at + Duration::from_secs(75);
            stage.tell(Control::Renew { lease: LeaseId("l1".into()), tag: tag(9), at, expires_at });
        };
        stage.offer(1, "shop");
        stage.refused().await;
        renew(Instant::now() + Duration::from_secs(20));
        sleep(Duration::from_secs(100)).await;
        assert!(stage.engine.take().is_none());
        assert_eq!(stage.count("lease/plane_away_ms_max"), 20_001);
        stage.tell(Control::Renewed(LeaseId("l1".into())));
        stage.offer(1, "shop");
        stage.refused().await;
        sleep(Duration::from_secs(25)).await;
        stage.tell(Control::Release(LeaseId("l1".into())));
        sleep(Duration::from_secs(100)).await;
        assert!(stage.engine.take().is_none());
        assert_eq!(stage.count("lease/plane_away_ms_max"), 25_001);
    });
}

#[test]
fn what_others_hear_of_the_plane_counts_as_what_the_broker_hears() {
    run_local(async {
        let plane = Scripted::remote();
        plane.acquires.lock().unwrap().push_back(unreachable());
        let stage = staged(Arc::clone(&plane) as _, Net::Here, 8, Some(Duration::from_secs(30)));
        stage.offer(1, "shop");
        stage.refused().await;
        sleep(Duration::from_secs(20)).await;
        stage.tell(Control::Heard);
        sleep(Duration::from_secs(100)).await;
        assert!(stage.engine.take().is_none(), "it answered");
        let begun = Instant::now();
        for _ in 0..2 {
            stage.tell(Control::Missed { begun, tried: "reports were handed over", error: "no route".to_owned() });
            sleep(Duration::from_secs(20)).await;
        }
        let (Fact::PlaneLost(why), _) = stage.engine.next().await else { panic!("something else was told") };
        assert!(why.contains("no route"), "{why}");
    });
}

#[test]
fn an_anonymous_lease_needs_no_plane_and_is_no_sign_of_life() {
    run_local(async {
        let plane = Scripted::remote();
        plane.acquires.lock().unwrap().extend([unreachable(), Act::Now(Ok(grant("any")))]);
        let stage = staged(Arc::clone(&plane) as _, Net::Here, 8, Some(Duration::from_secs(30)));
        stage.offer(1, "shop");
        stage.refused().await;
        for ticket in 2..40 {
            stage.ask(ticket, Ask { anonymous: true, ..ask("free.test") });
            assert_eq!(stage.leased().await.tag, tag(ticket));
            stage.tell(Control::Release(LeaseId("any".into())));
            sleep(Duration::from_millis(500)).await;
        }
        sleep(Duration::from_secs(20)).await;
        assert!(matches!(stage.fact().await, Fact::PlaneLost(_)));
        assert_eq!(plane.calls().iter().filter(|call| *call == "acquire shop").count(), 1);
    });
}

#[test]
fn a_plane_that_goes_and_comes_is_told_once_each() {
    let log = Log::default();
    let subscriber = tracing_subscriber::fmt().with_writer(log.clone()).with_ansi(false).without_time().finish();
    let _guard = tracing::subscriber::set_default(subscriber);
    run_local(async {
        let plane = Scripted::remote();
        plane.acquires.lock().unwrap().extend((0..5).map(|_| unreachable()));
        let stage = stage(plane, Net::Here, 8);
        assert_eq!(ask_until_lost(&stage, 1).await, None);
    });
    let text = log.text();
    let lines: Vec<&str> = text.lines().filter(|line| line.contains("the control plane")).collect();
    assert_eq!(lines.len(), 2, "{text}");
    assert!(
        lines[0].contains("WARN") && lines[0].contains("a lease of site shop") && lines[0].contains("at most 300 s"),
        "{text}"
    );
    assert!(lines[1].contains("INFO") && lines[1].contains("answers again, after "), "{text}");
}

#[derive(Clone, Default)]
struct Log(Arc<Mutex<Vec<u8>>>);

impl Log {
    fn text(&self) -> String {
        String::from_utf8(self.0.lock().unwrap().clone()).unwrap()
    }
}

impl std::io::Write for Log {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.lock().unwrap().extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

impl tracing_subscriber::fmt::MakeWriter<'_> for Log {
    type Writer = Self;

    fn make_writer(&self) -> Self {
        self.clone()
    }
}
