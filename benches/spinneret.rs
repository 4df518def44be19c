//! What the client of the control plane costs a node: cycles of acquire and report through one client, against a server
//! on a thread of its own that answers from memory; reports queued; a credential put on a request.
//!
//! `cargo bench --bench spinneret`, with a word of a part's name to run that part only. The client's threads are counted
//! apart from the server's (Linux only). Without cargo's `--bench` each part runs shortly, so that it cannot rot.
#![allow(missing_docs, clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing)]

use std::hint::black_box;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use dragline::spinneret::{
    AcquireRequest, Client, ClientBuilder, Credential, Explicit, Report, ReportDraft, ReporterOptions, Stopwatch, parts,
};
use futures_util::future::join_all;
use memchr::memmem;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::runtime::{Builder, Runtime};
use tokio::sync::Semaphore;

/// The threads of this name are the client's.
const CLIENT: &str = "bench-client";

/// Cycles a second that one client must bear.
const RATE: u32 = 5_000;

/// Cycles that run at a time when each task begins the next one at once.
const TASKS: usize = 64;

/// The most cycles in flight at a rate: a client that does not keep up waits here, and its latency tells.
const MOST_IN_FLIGHT: usize = 2_000;

struct Bench {
    is_measuring: bool,
    only: Option<String>,
}

impl Bench {
    fn wants(&self, part: &str) -> bool {
        self.only.as_ref().is_none_or(|only| part.contains(only.as_str()))
    }

    /// How long cycles are run.
    fn time(&self) -> Duration {
        Duration::from_millis(if self.is_measuring { 5_000 } else { 50 })
    }

    fn times(&self, many: u32) -> u32 {
        if self.is_measuring { many } else { 100 }
    }

    fn print(&self, line: &str) {
        if self.is_measuring {
            println!("{line}");
        }
    }
}

fn main() {
    let _ = rustls::crypto::ring::default_provider().install_default();
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let bench = Arc::new(Bench {
        is_measuring: arguments.iter().any(|a| a == "--bench"),
        only: arguments.into_iter().find(|a| !a.starts_with('-')),
    });
    let processors = std::thread::available_parallelism().map_or(1, usize::from);
    let build = if cfg!(debug_assertions) { "debug build: figures mean little" } else { "release build" };
    bench.print(&format!("{processors} processors in use, the server's among them; {build}"));
    let server = serve();
    let one_thread = || Builder::new_current_thread().enable_all().thread_name("bench-blocking").build().unwrap();
    let two_threads = || Builder::new_multi_thread().worker_threads(2).enable_all().thread_name(CLIENT).build().unwrap();

    for (part, load) in [("cycles at 5,000/s, one thread", Load::Rate(RATE)), ("cycles at once, one thread", Load::AtOnce)] {
        if bench.wants(part) {
            let bench = Arc::clone(&bench);
            let client = std::thread::Builder::new().name(CLIENT.to_owned());
            client.spawn(move || cycles(&bench, part, server, load, &one_thread())).unwrap().join().unwrap();
        }
    }
    let part = "cycles at once, two threads";
    if bench.wants(part) {
        cycles(&bench, part, server, Load::AtOnce, &two_threads());
    }
    if bench.wants("reports queued") {
        reports(&bench, server, &one_thread());
    }
    single(&bench);
}

#[derive(Clone, Copy)]
enum Load {
    /// So many cycles begin each second, whatever becomes of those before.
    Rate(u32),
    /// [`TASKS`] tasks, each begins the next cycle when its last one is done.
    AtOnce,
}

/// Runs cycles for a while, prints what they cost.
fn cycles(bench: &Bench, part: &str, server: SocketAddr, load: Load, runtime: &Runtime) {
    runtime.block_on(async {
        let client = builder(server).build().unwrap();
        run(&client, Load::AtOnce, bench.time() / 10).await;
        let before = client.reporter().stats();
        let (started, cpu) = (Instant::now(), client_time());
        let mut latencies = run(&client, load, bench.time()).await;
        let elapsed = started.elapsed();
        assert!(client.reporter().flush(Some(Duration::from_secs(10))).await, "reports are left");
        let cpu = client_time().saturating_sub(cpu);
        let after = client.reporter().stats();
        let done = u64::try_from(latencies.len()).unwrap();
        // Each cycle is one lease, and one report that the server took.
        assert_eq!((after.submitted - before.submitted, after.dropped), (done, 0));
        assert_eq!(after.accepted, after.submitted, "every report is taken once");
        client.close().await;

        latencies.sort_unstable();
        let at = |share: f64| latencies[((latencies.len() - 1) as f64 * share) as usize].as_secs_f64() * 1e3;
        let each = cpu.as_secs_f64() * 1e6 / done as f64;
        bench.print(&format!(
            "{part:<34} {:>8.0} cycles/s {each:>7.1} µs CPU/cycle   acquire ms: p50 {:.2}, p95 {:.2}, p99 {:.2}, max {:.2}",
            done as f64 / elapsed.as_secs_f64(),
            at(0.5),
            at(0.95),
            at(0.99),
            at(1.0),
        ));
    });
}

/// How long each acquisition took. At a rate that counts from when it was due.
async fn run(client: &Client, load: Load, time: Duration) -> Vec<Duration> {
    let started = Instant::now();
    match load {
        Load::AtOnce => {
            let tasks = (0..TASKS).map(|_| {
                let client = client.clone();
                tokio::spawn(async move {
                    let mut latencies = Vec::with_capacity(4_096);
                    while started.elapsed() < time {
                        latencies.push(cycle(&client, Instant::now()).await);
                    }
                    latencies
                })
            });
            join_all(tasks).await.into_iter().flat_map(Result::unwrap).collect()
        }
        Load::Rate(rate) => {
            let total = (f64::from(rate) * time.as_secs_f64()) as u32;
            let latencies = Arc::new(Mutex::new(Vec::with_capacity(total as usize)));
            let room = Arc::new(Semaphore::new(MOST_IN_FLIGHT));
            let mut clock = tokio::time::interval(Duration::from_millis(1));
            let mut begun = 0;
            while begun < total {
                clock.tick().await;
                let due = ((started.elapsed().as_secs_f64() * f64::from(rate)) as u32).min(total);
                for number in begun..due {
                    let seat = Arc::clone(&room).acquire_owned().await.unwrap();
                    let (client, latencies) = (client.clone(), Arc::clone(&latencies));
                    tokio::spawn(async move {
                        let latency = cycle(&client, started + Duration::from_secs(1) * number / rate).await;
                        latencies.lock().unwrap().push(latency);
                        drop(seat);
                    });
                }
                begun = due;
            }
            let _all = room.acquire_many(u32::try_from(MOST_IN_FLIGHT).unwrap()).await.unwrap();
            std::mem::take(&mut *latencies.lock().unwrap())
        }
    }
}

/// One lease, one report that ends it; how long after `due` the lease was there.
async fn cycle(client: &Client, due: Instant) -> Duration {
    let stopwatch = Stopwatch::start();
    let request = AcquireRequest::new("shop", "web").uri("/products/12-a-book?page=2");
    let lease = client.lease(request).unwrap().acquire().await.unwrap();
    let latency = due.elapsed();
    lease.report(ReportDraft::status(200).method("GET").response_bytes(48_213).timed(stopwatch).release()).unwrap();
    latency
}

fn builder(server: SocketAddr) -> ClientBuilder {
    Client::builder().url(format!("http://{server}")).token("spn_of_the_bench").node("bench")
}

/// How fast reports are taken, and how fast they arrive.
fn reports(bench: &Bench, server: SocketAddr, runtime: &Runtime) {
    let times = bench.times(200_000);
    let reports: Vec<Report> = (0..times).map(|_| draft().build("lse_1", "").unwrap()).collect();
    runtime.block_on(async {
        let mut options = ReporterOptions::default();
        options.max_queue_size = options.max_queue_size.max(reports.len());
        let client = builder(server).reporter(options).build().unwrap();
        let reporter = client.reporter();
        let started = Instant::now();
        // Beside the runtime, so that batches go out meanwhile.
        let taken = tokio::task::spawn_blocking(move || {
            reports.into_iter().for_each(|report| reporter.submit(report).unwrap());
            started.elapsed()
        });
        let taken = taken.await.unwrap();
        assert!(client.reporter().flush(Some(Duration::from_secs(60))).await, "reports are left");
        let sent = started.elapsed();
        let stats = client.reporter().stats();
        assert_eq!((stats.accepted, stats.dropped), (u64::from(times), 0));
        client.close().await;
        let rate = |time: Duration| f64::from(times) / time.as_secs_f64();
        bench.print(&format!("{:<34} {:>8.0} reports/s, sent {:.0}/s", "reports queued", rate(taken), rate(sent)));
    });
}

fn draft() -> ReportDraft {
    ReportDraft::status(200).method("GET").uri("https://shop.example/products/12-a-book?page=2").business_code(0)
}

/// What one node does around a request.
fn single(bench: &Bench) {
    let part = |name: &str, mut once: Box<dyn FnMut()>| {
        if !bench.wants(name) {
            return;
        }
        let times = bench.times(200_000);
        let best = (0..5).map(|_| {
            let started = Instant::now();
            (0..times).for_each(|_| once());
            started.elapsed() / times
        });
        bench.print(&format!("{name:<34} {:>8} ns", best.min().unwrap_or_default().as_nanos()));
    };
    let credential = Credential {
        headers: ["User-Agent", "X-Device"].map(|name| (name.to_owned(), "of the identity".to_owned())).into(),
        cookies: ["sid", "lang", "cart"].map(|name| (name.to_owned(), "x".repeat(24))).into(),
        query: [("sig".to_owned(), "0123456789abcdef".to_owned())].into(),
        ..Credential::default()
    };
    let plain = credential.clone();
    let request = reqwest::Request::new(http::Method::GET, "https://shop.example/products/12?page=2".parse().unwrap());

    part("report built", Box::new(|| drop(black_box(draft().build("lse_1", "").unwrap()))));
    part(
        "credential put on a request",
        Box::new(move || {
            let mut request = request.try_clone().unwrap();
            credential.apply(&mut request).unwrap();
            black_box(request);
        }),
    );
    part(
        "credential as plain parts",
        Box::new(move || drop(black_box(parts(&plain, None, &Explicit::new().header("accept", "text/html"))))),
    );
}

/// The processor's time of all threads of the client so far; nothing where the system does not tell.
fn client_time() -> Duration {
    let Ok(tasks) = std::fs::read_dir("/proc/self/task") else { return Duration::ZERO };
    let nanos = tasks.filter_map(|task| {
        let path = task.ok()?.path();
        let name = std::fs::read_to_string(path.join("comm")).ok()?;
        let spent = std::fs::read_to_string(path.join("schedstat")).ok()?;
        (name.trim_end() == CLIENT).then_some(spent.split_whitespace().next()?.parse::<u64>().ok()?)
    });
    Duration::from_nanos(nanos.sum())
}

/// Starts a server that grants every lease and takes every report, as cheaply as can be.
fn serve() -> SocketAddr {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    listener.set_nonblocking(true).unwrap();
    let address = listener.local_addr().unwrap();
    let server = move || {
        let runtime = Builder::new_current_thread().enable_io().build().unwrap();
        runtime.block_on(async {
            let listener = TcpListener::from_std(listener).unwrap();
            while let Ok((stream, _)) = listener.accept().await {
                stream.set_nodelay(true).unwrap();
                tokio::spawn(connection(stream));
            }
        });
    };
    std::thread::Builder::new().name("bench-server".to_owned()).spawn(server).unwrap();
    address
}

async fn connection(mut stream: TcpStream) {
    let mut received = Vec::with_capacity(1 << 16);
    while stream.read_buf(&mut received).await.is_ok_and(|read| read > 0) {
        while let Some(length) = whole(&received) {
            let answer = answer(&received[..length]);
            received.drain(..length);
            if stream.write_all(&answer).await.is_err() {
                return;
            }
        }
    }
}

/// The length of the first request if all of it is there.
fn whole(received: &[u8]) -> Option<usize> {
    let head = memmem::find(received, b"\r\n\r\n")? + 4;
    let name = b"\r\ncontent-length:";
    let at = received[..head].windows(name.len()).position(|window| window.eq_ignore_ascii_case(name)).expect("a length");
    let digits = received[at + name.len()..head].trim_ascii_start();
    let length = digits.iter().take_while(|byte| byte.is_ascii_digit()).fold(0, |sum, byte| sum * 10 + usize::from(byte - b'0'));
    (received.len() >= head + length).then_some(head + length)
}

fn answer(request: &[u8]) -> Vec<u8> {
    let body = if request.starts_with(b"POST /spinneret.v1.LeaseService/Acquire ") {
        let number = LEASES.fetch_add(1, Ordering::Relaxed);
        LEASE.replacen("NUMBER", &format!("{number:032x}"), 1)
    } else if request.starts_with(b"POST /spinneret.v1.ReportService/Report ") {
        let accepted = memmem::find_iter(request, b"\"report_id\"").count();
        format!(r#"{{"accepted":{accepted},"duplicated":0,"rejected":[]}}"#)
    } else {
        panic!("a call that no cycle makes: {}", String::from_utf8_lossy(&request[..request.len().min(80)]));
    };
    format!("HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: {}\r\n\r\n{body}", body.len()).into_bytes()
}

static LEASES: AtomicU64 = AtomicU64::new(0);

/// A lease of usual size.
const LEASE: &str = r#"{"lease":{"lease_id":"lse_NUMBER_1z_0a","identity_id":"idt_019a3f0e5a7c7d10b2f3c4d5e6f70819","identity_type":"account","endpoint_group":"product","expires_at":"2030-09-16T08:30:00.123456Z","sticky":false,"probe":false},"credential":{"cookies":{"cart":"4b1d6c0f9a7e4d22","lang":"de","sid":"0f8e2b7c-55a1-4a0e-9d43-6c1f2e3d4b5a"},"cookie_header":"cart=4b1d6c0f9a7e4d22; lang=de; sid=0f8e2b7c-55a1-4a0e-9d43-6c1f2e3d4b5a","headers":{"User-Agent":"Mozilla/5.0 (X11; Linux x86_64; rv:143.0) Gecko/20100101 Firefox/143.0","X-Device":"a1b2c3d4"},"query":{},"json":null,"values":{}},"proxy":{"proxy_id":"pxy_019a3f0e5a7c7d10b2f3c4d5e6f70819","url":"http://user:password@10.0.0.1:3128","kind":"datacenter","region":"de"},"hints":{"renew_before_ms":30000}}"#;
