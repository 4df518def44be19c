//! Both sides' books under failures of every kind: whatever was granted comes back once, and reports keep their order.

use std::collections::HashSet;
use std::time::Duration;

use dragline::spinneret::{AcquireBatchRequest, AcquireRequest, Client, Error, Lease, ReportDraft, ReporterOptions};

use crate::log::Log;
use crate::server::{Fate, Server};

/// A number that looks random and is the same each time.
fn mixed(n: u64) -> u64 {
    let mut z = n.wrapping_add(1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z ^ (z >> 31)
}

fn fate(seed: u64, method: &str, n: u32) -> Fate {
    let salt = method.bytes().map(u64::from).sum::<u64>();
    match mixed(seed ^ (salt << 32) ^ u64::from(n)) % 20 {
        0 | 1 => Fate::Overloaded,
        2 => Fate::Page,
        3 | 4 => Fate::Reset,
        5 | 6 => Fate::ServeAndReset,
        _ => Fate::Serve,
    }
}

fn client(url: &str) -> Client {
    let mut reporter = ReporterOptions::default();
    reporter.flush_interval = Duration::from_millis(20);
    reporter.backoff_initial = Duration::from_millis(5);
    reporter.backoff_max = Duration::from_millis(40);
    Client::builder().url(url).token("c4n4ry-token").node("books").reporter(reporter).build().unwrap()
}

fn draft(n: u32) -> ReportDraft {
    ReportDraft::status(200).uri("/page").business_code(i64::from(n))
}

/// One worker, by number: some are tidy, some are not.
async fn work(client: Client, n: u64) -> Result<(), Error> {
    let request = AcquireRequest::new("shop", "web").uri("/page");
    match mixed(n) % 9 {
        0 => drop(client.lease(request)?.acquire().await?),
        1 => {
            let lease = client.lease(request)?.acquire().await?;
            lease.report(draft(0))?;
        }
        2 => {
            let lease = client.lease(request)?.acquire().await?;
            for k in 0..3 {
                lease.report(draft(k))?;
                tokio::task::yield_now().await;
            }
            lease.release().await?;
        }
        3 => {
            let lease = client.lease(request)?.acquire().await?;
            lease.report(draft(0))?;
            panic!("a worker's own fault");
        }
        4 => {
            let _lease = client.lease(request)?.acquire().await?;
            std::future::pending::<()>().await;
        }
        5 => {
            let block = async |lease: &Lease| {
                lease.report(draft(0))?;
                lease.report(draft(1))?;
                // An end with an error of the block's own.
                Err::<(), Error>(lease.report(ReportDraft::status(9_999)).unwrap_err())
            };
            client.lease(request)?.run(block).await?;
        }
        6 => {
            let lease = client.lease(request)?.acquire().await?;
            lease.report(draft(0))?;
            lease.report(draft(1).release())?;
        }
        7 => {
            let leases = client.leases(AcquireBatchRequest::new(request, 3)).await?;
            for lease in leases.iter().take(2) {
                lease.report(draft(0))?;
            }
        }
        _ => {
            let lease = client.lease(request)?.acquire().await?;
            lease.release().await?;
            lease.release().await?;
        }
    }
    Ok(())
}

async fn session(seed: u64, log: &Log) {
    let server = Server::failing(move |method, n| fate(seed, method, n)).await;
    let client = client(&server.url);
    let workers: Vec<_> = (0..150).map(|n| tokio::spawn(work(client.clone(), seed.wrapping_mul(1_000) + n))).collect();
    for (n, worker) in workers.iter().enumerate() {
        // Those that wait for ever, and some others in the middle of whatever they do.
        if n % 7 == 0 {
            tokio::time::sleep(Duration::from_millis(1)).await;
            worker.abort();
        }
    }
    tokio::time::sleep(Duration::from_millis(300)).await;
    for worker in workers {
        worker.abort();
        let _ = worker.await;
    }
    client.close_within(Duration::from_secs(20)).await;

    let stats = client.reporter().stats();
    assert_eq!((stats.dropped, stats.queued), (0, 0), "{stats:?}");
    // A release that the caller asked for and that failed three times is final, by the wire contract; it is said.
    let log = log.text();
    let failed: HashSet<&str> = log
        .lines()
        .filter_map(|line| line.split_once("release failed: the lease ends by itself lease_id=\""))
        .filter_map(|(_, rest)| rest.split('"').next())
        .collect();
    let open: Vec<String> = server.open().into_iter().filter(|id| !failed.contains(id.as_str())).collect();
    assert!(open.is_empty(), "leases that nobody gave back: {open:?}\n{log}");
    let books = server.books.lock().unwrap();
    assert!(books.leases.len() > 60, "{}", books.leases.len());
    for (id, life) in books.leases.iter().filter(|(_, life)| life.is_known) {
        let ends = if life.ends == 0 && failed.contains(id.as_str()) { 0 } else { 1 };
        assert_eq!((life.ends, life.after_end), (ends, 0), "{id}: {life:?}");
        let order: Vec<&str> = life.reports.iter().filter_map(|report| report["business_code"].as_str()).collect();
        assert!(order.is_sorted(), "{id}: {order:?}");
        let releasing = life.reports.iter().filter(|report| report["release"] == true).count();
        assert_eq!(releasing, usize::from(!life.reports.is_empty()), "{id}: {life:?}");
    }
    assert_eq!(books.report_ids.len() as u64, stats.submitted, "{stats:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_was_granted_comes_back_once_whatever_fails() {
    let rounds = if std::env::var_os("LONG_TESTS_OF_DRAGLINE").is_some() { 40 } else { 4 };
    let log = Log::default();
    let _ = tracing::subscriber::set_global_default(log.subscriber());
    for seed in 0..rounds {
        log.clear(); // lease ids begin anew
        session(seed, &log).await;
    }
}
