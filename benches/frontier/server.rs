//! The same at a Redis server, as a fleet uses it: batches of many operations, one round trip each.

use std::hint::black_box;
use std::io::{Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use dragline::scheduler::job::{Job, Outcome};
use dragline::scheduler::pacing::Pacing;
use dragline::scheduler::redis::{Answer, Batch, Membership, Origin, RedisAdmin, RedisOptions, RedisStore, RedisUrl};
use xxhash_rust::xxh3::xxh3_128;

use crate::cases::{Case, Figures, Watch};
use crate::work::{BATCH, Finds, Mix, Parent, Web};

/// The environment's variable with the server's address, for the process of a case.
pub(crate) const URL: &str = "FRONTIER_BENCH_REDIS";
/// Offers of one batch.
const OFFERS: usize = 3;
/// Requests that are measured from offer to settle at most.
const MOST_CYCLES: u64 = 200_000;

/// A server of our own on a free port of this machine; it ends with this value.
#[derive(Debug)]
pub(crate) struct Own {
    child: Child,
    port: u16,
    _dir: tempfile::TempDir,
}

impl Own {
    /// None where no server is installed.
    pub(crate) fn start() -> Option<Self> {
        let dir = tempfile::tempdir().unwrap();
        let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
        let mut command = Command::new("redis-server");
        command.args(["--port", &port.to_string(), "--bind", "127.0.0.1", "--save", "", "--appendonly", "no", "--dir"]);
        let child = command.arg(dir.path()).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).spawn().ok()?;
        let own = Self { child, port, _dir: dir };
        let until = Instant::now() + Duration::from_secs(10);
        while Instant::now() < until {
            if used(&own.url()).is_some() {
                return Some(own);
            }
            std::thread::sleep(Duration::from_millis(20));
        }
        panic!("redis-server does not answer");
    }

    pub(crate) fn url(&self) -> String {
        format!("redis://127.0.0.1:{}", self.port)
    }
}

impl Drop for Own {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Bytes of memory the server uses.
fn used(url: &str) -> Option<f64> {
    let parsed = url::Url::parse(url).ok()?;
    let mut stream = TcpStream::connect((parsed.host_str()?, parsed.port().unwrap_or(6379))).ok()?;
    let login = parsed.password().map_or_else(String::new, |password| format!("AUTH {password}\r\n"));
    stream.write_all(format!("{login}INFO memory\r\nQUIT\r\n").as_bytes()).ok()?;
    let mut text = String::new();
    stream.read_to_string(&mut text).ok()?;
    text.lines().find_map(|line| line.strip_prefix("used_memory:"))?.trim().parse().ok()
}

/// Runs a case with `count` requests or keys; none for one that is not about a server.
pub(crate) fn run(case: &Case, count: u64) -> Figures {
    let url = std::env::var(URL).unwrap();
    let parsed: RedisUrl = url.parse().unwrap();
    let job = format!("bench-{}", std::process::id());
    let member = Membership { job: job.clone(), spider: "bench".to_owned(), worker: "one".to_owned() };
    let pacing = Pacing { per_slot: usize::MAX, ..Pacing::default() };
    let options = RedisOptions { pacing, reply_timeout: Duration::from_secs(60), ..RedisOptions::default() };
    let mut store = RedisStore::open(&parsed, member, options.clone()).unwrap();
    let base = used(&url).unwrap();
    let held = || used(&url).unwrap() - base;
    let figures = match case {
        Case::Queue { hosts, is_all_new } => {
            let mix = if *is_all_new { Mix::AllNew } else { Mix::OneInTwenty };
            queue(&mut store, Web { hosts: *hosts }, mix, count, held)
        }
        _ => seen(&mut store, count, held),
    };
    RedisAdmin::open(&parsed, &job, options).unwrap().forget().unwrap();
    figures
}

fn queue(store: &mut RedisStore, web: Web, mix: Mix, count: u64, held: impl Fn() -> f64) -> Figures {
    let mut finds = Finds::new(mix);
    let parent = Parent::start(web);
    let (mut offers, mut cycles) = (Watch::default(), Watch::default());
    let mut made = 0;
    let mut batch_of = |finds: &mut Finds| -> Vec<Vec<Job>> {
        let mut make = || -> Vec<Job> {
            let pages = finds.batch();
            made += BATCH;
            // Of no request that this worker holds: the server takes children only of those.
            (made..).zip(pages).map(|(index, page)| Job { parent: None, ..web.job(page, index, &parent) }).collect()
        };
        (0..OFFERS).map(|_| make()).collect()
    };
    while finds.found() < count {
        let jobs = batch_of(&mut finds);
        offers.time(OFFERS as u64 * BATCH, || {
            let mut batch = Batch::new();
            for jobs in &jobs {
                batch.offer(jobs, Origin::Callback);
            }
            black_box(store.apply(&mut batch).unwrap());
        });
    }
    let queued = store.view().books.pending;
    assert_eq!(queued, finds.found());
    let beside = held() / queued as f64;
    let mut done = Vec::new();
    let mut fresh = Finds::new(Mix::AllNew);
    fresh.skip(finds.found());
    while cycles.count < count.min(MOST_CYCLES) {
        let jobs = batch_of(&mut fresh);
        let leased = cycles.time(OFFERS as u64 * BATCH, || {
            let mut batch = Batch::new();
            for jobs in &jobs {
                batch.offer(jobs, Origin::Callback);
            }
            for id in done.drain(..) {
                batch.settle(id, Outcome::Handled);
            }
            batch.lease(OFFERS * BATCH as usize);
            store.apply(&mut batch).unwrap()
        });
        for answer in leased.answers {
            if let Answer::Leased(leased) = answer {
                done.extend(leased.iter().map(|leased| leased.id));
            }
        }
        assert_eq!(done.len(), OFFERS * BATCH as usize);
    }
    assert!(store.view().books.balances(), "{:?}", store.view().books);
    Figures::from([
        ("offer_ns".into(), offers.each()),
        ("cycle_ns".into(), cycles.each()),
        ("queued".into(), queued as f64),
        ("beside_b".into(), beside),
    ])
}

fn seen(store: &mut RedisStore, count: u64, held: impl Fn() -> f64) -> Figures {
    let mut marks = Watch::default();
    for from in (0..count).step_by(100) {
        let keys: Vec<u128> = (from..(from + 100).min(count)).map(|n| xxh3_128(&n.to_le_bytes())).collect();
        marks.time(keys.len() as u64, || {
            let mut batch = Batch::new();
            for key in keys {
                batch.mark_seen(key);
            }
            black_box(store.apply(&mut batch).unwrap());
        });
    }
    Figures::from([("mark_ns".into(), marks.each()), ("beside_b".into(), held() / count as f64)])
}
