//! Asks for a plane over the network, gathered while a call is out.

use std::collections::HashSet;

use super::*;
use crate::plane::BATCH_MAX;

fn grants(names: &[&str]) -> Result<Vec<Grant>, Refusal> {
    Ok(names.iter().map(|name| grant(name)).collect())
}

/// Lets the broker hear the first ask in a turn of its own.
async fn heard(n: u64) {
    if n == 1 {
        sleep(millis(1)).await;
    }
}

fn grouped(group: &str, path: &str) -> Ask {
    Ask { group: group.into(), path: path.to_owned(), ..ask("shop") }
}

#[test]
fn asks_gather_while_a_call_is_out_and_go_out_together() {
    run_local(async {
        let plane = Scripted::remote();
        plane.acquires.lock().unwrap().push_back(Act::After(millis(5), Ok(grant("first"))));
        plane.batches.lock().unwrap().push_back(Act::After(millis(5), grants(&["a", "b", "c"])));
        let stage = stage(Arc::clone(&plane) as _, Net::Here, 64);
        let start = Instant::now();
        for n in 1..=4 {
            assert!(stage.ask(n, grouped("g", &format!("/{n}"))));
            heard(n).await;
        }
        stage.ask(9, grouped("h", "/9"));
        assert_eq!(stage.leased().await.tag, tag(9), "another group does not wait");
        let mut got = Vec::new();
        for _ in 0..4 {
            let leased = stage.leased().await;
            got.push((leased.tag.ticket, leased.grant.lease.0.to_string()));
        }
        let expected = [(1, "first"), (2, "a"), (3, "b"), (4, "c")].map(|(n, name)| (n, name.to_owned()));
        assert_eq!(got, expected);
        assert_eq!(start.elapsed(), millis(10), "no timer holds anything back");
        assert_eq!(plane.calls(), ["acquire shop", "acquire shop", "batch shop 3"]);
        let counts =
            ["lease/batches", "lease/batch_size_max", "lease/acquire_ms_max", "lease/wait_ms_max", "lease/acquire_calls"];
        assert_eq!(counts.map(|key| stage.count(key)), [1, 3, 5, 9, 3]);
        tokio::task::yield_now().await;
        assert_eq!(stage.count("lease/acquired"), 5);
    });
}

#[test]
fn asks_with_a_session_and_anonymous_ones_go_alone() {
    run_local(async {
        let plane = Scripted::remote();
        plane.acquires.lock().unwrap().extend((0..4).map(|_| Act::After(millis(5), Ok(grant("lse")))));
        let stage = stage(Arc::clone(&plane) as _, Net::Here, 64);
        for n in 0..2 {
            stage.ask(n, Ask { session_key: Some("s".into()), ..ask("shop") });
            stage.ask(n + 2, Ask { anonymous: true, ..ask("host") });
        }
        for _ in 0..4 {
            stage.leased().await;
        }
        assert_eq!(plane.calls(), ["acquire shop", "acquire host", "acquire shop", "acquire host"]);
    });
}

#[test]
fn in_process_nothing_is_gathered() {
    run_local(async {
        let plane = Scripted::new();
        plane.acquires.lock().unwrap().extend((0..3).map(|_| Act::After(millis(5), Ok(grant("lse")))));
        let stage = stage(Arc::clone(&plane) as _, Net::Here, 64);
        for n in 0..3 {
            stage.offer(n, "shop");
        }
        for _ in 0..3 {
            stage.leased().await;
        }
        assert_eq!(plane.calls(), ["acquire shop"; 3]);
    });
}

#[test]
fn what_a_batch_did_not_bring_is_asked_for_again_with_what_gathered() {
    run_local(async {
        let plane = Scripted::remote();
        plane.acquires.lock().unwrap().push_back(Act::After(millis(5), Ok(grant("first"))));
        plane
            .batches
            .lock()
            .unwrap()
            .extend([Act::After(millis(5), grants(&["a"])), Act::After(millis(5), grants(&["b", "c", "d", "spare"]))]);
        let stage = stage(Arc::clone(&plane) as _, Net::Here, 64);
        for n in 1..=4 {
            stage.offer(n, "shop");
            heard(n).await;
        }
        sleep(millis(7)).await;
        stage.offer(5, "shop");
        let mut got = Vec::new();
        for _ in 0..5 {
            let leased = stage.leased().await;
            got.push((leased.tag.ticket, leased.grant.lease.0.to_string()));
        }
        let expected = [(1, "first"), (2, "a"), (3, "b"), (4, "c"), (5, "d")].map(|(n, name)| (n, name.to_owned()));
        assert_eq!(got, expected, "the oldest first");
        tokio::task::yield_now().await;
        assert_eq!(plane.calls(), ["acquire shop", "batch shop 3", "batch shop 3", "release spare"]);
    });
}

#[test]
fn a_refused_batch_refuses_all_its_asks_and_those_that_gathered_behind_it() {
    run_local(async {
        let plane = Scripted::remote();
        plane.acquires.lock().unwrap().push_back(Act::After(millis(5), Ok(grant("first"))));
        let no = refusal(RefusalKind::NoIdentity, Some(millis(800)));
        plane.batches.lock().unwrap().push_back(Act::After(millis(5), Err(no)));
        let stage = stage(Arc::clone(&plane) as _, Net::Here, 64);
        for n in 1..=3 {
            stage.ask(n, grouped("g", "/"));
            heard(n).await;
        }
        sleep(millis(7)).await;
        stage.ask(4, grouped("g", "/"));
        assert_eq!(stage.leased().await.tag, tag(1));
        for n in 2..=4 {
            let refused = stage.refused().await;
            assert_eq!((refused.tag, refused.wait, refused.refusal.why), (tag(n), millis(800), RefusalKind::NoIdentity));
        }
        assert_eq!(plane.calls(), ["acquire shop", "batch shop 2"], "what gathered is not asked for in vain");
        assert_eq!((stage.count("lease/refused/no_identity_available"), stage.count("lease/held")), (2, 1));
        sleep(millis(800)).await;
        stage.ask(5, grouped("g", "/"));
        assert_eq!(stage.leased().await.tag, tag(5));
    });
}

#[test]
fn an_empty_batch_is_a_refusal() {
    run_local(async {
        let plane = Scripted::remote();
        plane.acquires.lock().unwrap().push_back(Act::After(millis(5), Ok(grant("first"))));
        plane.batches.lock().unwrap().push_back(Act::Now(grants(&[])));
        let stage = stage(Arc::clone(&plane) as _, Net::Here, 64);
        for n in 1..=3 {
            stage.offer(n, "shop");
            heard(n).await;
        }
        stage.leased().await;
        for _ in 0..2 {
            assert_eq!(stage.refused().await.refusal.why, RefusalKind::NoIdentity);
        }
    });
}

#[test]
fn more_than_a_batch_holds_goes_out_in_several_calls() {
    run_local(async {
        let plane = Scripted::remote();
        plane.acquires.lock().unwrap().push_back(Act::After(millis(5), Ok(grant("first"))));
        let stage = stage(Arc::clone(&plane) as _, Net::Here, 512);
        for n in 0..=120 {
            stage.offer(n, "shop");
            heard(n + 1).await;
        }
        let mut got = HashSet::new();
        for _ in 0..=120 {
            assert!(got.insert(stage.leased().await.tag));
        }
        let calls = plane.calls();
        assert_eq!(calls[0], "acquire shop");
        let sizes: Vec<usize> =
            calls[1..].iter().map(|call| call.strip_prefix("batch shop ").unwrap().parse().unwrap()).collect();
        assert!(sizes.iter().sum::<usize>() == 120 && sizes.iter().all(|size| *size <= 50), "{sizes:?}");
        assert_eq!(stage.count("lease/batch_size_max"), 50);
    });
}

#[test]
fn what_one_turn_asks_for_goes_out_together() {
    run_local(async {
        let plane = Scripted::remote();
        let stage = stage(Arc::clone(&plane) as _, Net::Here, 64);
        for n in 0..3 {
            stage.offer(n, "shop");
        }
        for n in 0..3 {
            assert_eq!(stage.leased().await.tag, tag(n));
        }
        assert_eq!(plane.calls(), ["batch shop 3"]);
    });
}

#[test]
fn sixty_four_asks_at_a_time_over_a_wire_of_five_milliseconds_bring_six_thousand_leases_a_second() {
    run_local(async {
        let plane = Scripted::remote();
        let names = ["lse"; BATCH_MAX];
        plane.acquires.lock().unwrap().extend((0..1_000).map(|_| Act::After(millis(5), Ok(grant("lse")))));
        for size in [50, 14].into_iter().cycle().take(1_000) {
            plane.batches.lock().unwrap().push_back(Act::After(millis(5), grants(&names[..size])));
        }
        let stage = stage(Arc::clone(&plane) as _, Net::Here, 64);
        let start = Instant::now();
        (0..64).for_each(|n| assert!(stage.offer(n, "shop")));
        let mut leased = 0;
        while start.elapsed() < Duration::from_secs(1) {
            // As the engine does: what it hears in one turn it answers in one turn.
            let mut tickets = vec![stage.leased().await.tag.ticket];
            while let Some((Fact::Leased(leased), _)) = stage.engine.take() {
                tickets.push(leased.tag.ticket);
            }
            leased += tickets.len();
            tickets.into_iter().for_each(|ticket| assert!(stage.offer(ticket, "shop")));
        }
        // At worst an ask waits for one call before its own: 64 leases in 10 ms.
        assert!(leased >= 6_000, "{leased}");
    });
}

#[test]
fn gathered_asks_fill_the_link_until_they_are_answered() {
    run_local(async {
        let plane = Scripted::remote();
        plane.acquires.lock().unwrap().push_back(Act::After(millis(50), Ok(grant("slow"))));
        let stage = stage(plane, Net::Here, 2);
        assert!(stage.offer(1, "shop"));
        heard(1).await;
        assert!(stage.offer(2, "shop"));
        sleep(millis(10)).await;
        assert!(!stage.offer(3, "shop"));
        stage.leased().await;
        stage.leased().await;
        tokio::task::yield_now().await;
        assert!(stage.offer(3, "shop"));
    });
}

#[test]
fn a_batch_that_comes_for_a_broker_that_is_gone_is_given_back() {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
    let plane = Scripted::remote();
    plane.acquires.lock().unwrap().push_back(Act::AtDoor(Ok(grant("first"))));
    plane.batches.lock().unwrap().push_back(Act::AtDoor(grants(&["x", "y"])));
    run_local(async {
        let stage = stage(Arc::clone(&plane) as _, Net::Runtime(runtime.handle().clone()), 8);
        for n in 1..=3 {
            stage.offer(n, "shop");
            heard(n).await;
        }
        while plane.calls().is_empty() {
            tokio::task::yield_now().await;
        }
        plane.door.add_permits(1);
        while plane.calls().len() < 2 {
            tokio::task::yield_now().await;
        }
        stage.broker.stop();
        while !stage.broker.has_ended() {
            tokio::task::yield_now().await;
        }
    });
    plane.door.add_permits(1);
    let begun = std::time::Instant::now();
    while plane.calls() != ["acquire shop", "batch shop 2", "release x", "release y"] {
        assert!(begun.elapsed() < Duration::from_secs(5), "{:?}", plane.calls());
        std::thread::sleep(millis(1));
    }
}

#[test]
fn an_answer_that_was_lost_is_counted_for_every_lease_it_may_have_brought() {
    run_local(async {
        let plane = Scripted::remote();
        plane.acquires.lock().unwrap().push_back(Act::After(millis(5), Ok(grant("first"))));
        plane.batches.lock().unwrap().push_back(Act::Now(Err(refusal(RefusalKind::Unanswered, None))));
        let stage = stage(plane, Net::Here, 64);
        for n in 1..=4 {
            stage.offer(n, "shop");
            heard(n).await;
        }
        stage.leased().await;
        for _ in 0..3 {
            assert_eq!(stage.refused().await.refusal.why, RefusalKind::Unanswered);
        }
        assert_eq!(stage.count("lease/acquire_ambiguous"), 3);
    });
}
