//! What leases over the wire cost this side.

use std::time::Duration as Std;

use tokio::runtime::{Builder, Runtime};

use super::*;

/// CPU time this thread has used.
fn cpu() -> Std {
    let counts = std::fs::read_to_string("/proc/thread-self/schedstat").unwrap();
    Std::from_nanos(counts.split(' ').next().unwrap().parse().unwrap())
}

fn runtime() -> Runtime {
    Builder::new_current_thread().enable_all().build().unwrap()
}

/// `cargo test --release --lib plane::remote::tests::cost -- --ignored --nocapture`
#[test]
#[ignore = "measures"]
fn a_lease_over_the_wire_costs_less_than_a_hundred_microseconds() {
    const LEASES: usize = 32;
    const REPORTS: u64 = 100;
    const TURNS: u32 = 300;
    let (tell, told) = std::sync::mpsc::channel();
    let (stop, stopped) = tokio::sync::oneshot::channel::<()>();
    let other_side = std::thread::spawn(move || {
        runtime().block_on(async {
            let more = "[sites.rotation]\nmax_concurrent_leases = 4\n";
            let stage = Stage::at(plane(64, more), SocketAddr::from((Ipv4Addr::LOCALHOST, 0))).await;
            tell.send(stage.url()).unwrap();
            let _ = stopped.await;
            stage.end().await;
        });
    });
    let url = told.recv().unwrap();
    let (mut acquiring, mut reporting) = (Std::ZERO, Std::ZERO);
    runtime().block_on(async {
        let remote = Remote::new(client(&url, &token(ALL)), RemoteOptions { snapshots: false, ..RemoteOptions::default() });
        let mut id = 0;
        for turn in 0..TURNS + 20 {
            let begin = cpu();
            let grants = remote.acquire_batch(ask("/feed"), LEASES).await.unwrap();
            let acquired = cpu();
            assert_eq!(grants.len(), LEASES);
            // Some leases serve several requests; the last one of each ends it.
            let reports = (0..REPORTS).map(|n| {
                id += 1;
                let lease = &grants[usize::try_from(n).unwrap() % LEASES].lease;
                Report { release: n >= REPORTS - 32, ..report(id, lease) }
            });
            let reports = reports.collect();
            let made = cpu();
            assert_eq!(remote.report(reports).await.unwrap(), Taken::default());
            if turn >= 20 {
                acquiring += acquired - begin;
                reporting += cpu() - made;
            }
        }
        remote.close(SECOND).await;
    });
    drop(stop);
    other_side.join().unwrap();
    let per = |time: Std, count: f64| time.as_secs_f64() * 1e6 / f64::from(TURNS) / count;
    assert!(per(acquiring, 32.0) < 100.0 && per(reporting, 100.0) < 100.0);
    println!(
        "acquire_batch({LEASES}): {:.1} µs per lease; report({REPORTS}): {:.1} µs per report",
        per(acquiring, 32.0),
        per(reporting, 100.0)
    );
}
