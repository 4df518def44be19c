//! Small measurements of single parts: `cargo bench`. Each prints a number with its unit; the whole takes some seconds.
//!
//! Without cargo's `--bench` (`cargo test --all-targets`) each part runs once, so that it cannot rot.
#![allow(missing_docs, clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing)]

use std::hint::black_box;
use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::time::{Duration, Instant};

use dragline::apcloudy::{JobId, Signer, to_text};
use dragline::api::Page;
use dragline::collector::log::{Entry, LogOptions, RecordLog};
use dragline::demo::{Delays, Site, SiteOptions};
use dragline::prelude::*;
use dragline::scheduler::MemoryStore;
use dragline::scheduler::job::{Job, Outcome, RequestId, SlotKey};
use dragline::scheduler::store::{Pulled, Store as _};
use dragline::web::canonical::{canonicalize, wire_fingerprint};
use dragline::web::key::seen_key;

/// How long one part is measured, after a tenth of that to warm up.
const EACH: Duration = Duration::from_millis(700);

/// What a part costs is the best of so many rounds: what disturbs a machine only ever makes it slower.
const ROUNDS: u32 = 7;

struct Bench {
    is_measuring: bool,
    only: Option<String>,
}

impl Bench {
    /// Measures `once`, which does `units` of something.
    fn part(&self, name: &str, unit: &str, units: u64, mut once: impl FnMut()) {
        if self.only.as_ref().is_some_and(|only| !name.contains(only.as_str())) {
            return;
        }
        once();
        if !self.is_measuring {
            return;
        }
        let warm = Instant::now();
        let mut times = 0_u32;
        while warm.elapsed() < EACH / 10 {
            once();
            times += 1;
        }
        let times = times.saturating_mul(10).div_ceil(ROUNDS).max(1);
        let best = (0..ROUNDS)
            .map(|_| {
                let started = Instant::now();
                (0..times).for_each(|_| once());
                started.elapsed() / times
            })
            .min()
            .unwrap_or_default();
        let each = best.as_secs_f64() * 1e9 / units as f64;
        if each >= 10_000.0 {
            println!("{name:<44} {:>10.1} µs/{unit}", each / 1e3);
        } else {
            println!("{name:<44} {each:>10.1} ns/{unit}");
        }
    }
}

#[derive(Serialize)]
struct Product {
    url: String,
    title: String,
    price: f64,
    stock: u32,
    tags: Vec<&'static str>,
    description: String,
}

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let bench = Bench {
        is_measuring: arguments.iter().any(|a| a == "--bench"),
        only: arguments.into_iter().find(|a| !a.starts_with('-')),
    };
    if bench.is_measuring {
        println!("{}", machine());
    }
    urls(&bench);
    texts(&bench);
    pages(&bench);
    frontier(&bench);
    record_log(&bench);
}

fn urls(bench: &Bench) {
    let text = "https://Shop.Example:443/category/../products/12-a%20book?b=2&a=1&utm=x%2fy#reviews";
    let url = Url::parse(text).unwrap();
    let get = Request::get("http://shop.example/", &()).unwrap().method().clone();
    bench.part("seen key of a GET request", "request", 1, || {
        black_box(seen_key(&get, black_box(&url), b""));
    });
    bench.part("canonical form of a URL", "URL", 1, || {
        black_box(canonicalize(black_box(text)).unwrap());
    });
    bench.part("wire fingerprint of a request", "request", 1, || {
        black_box(wire_fingerprint("GET", black_box(text)));
    });
}

fn texts(bench: &Bench) {
    let product = Product {
        url: "https://shop.example/products/12-a-book".to_owned(),
        title: "A book about the café at the corner".to_owned(),
        price: 12.5,
        stock: 3,
        tags: vec!["fiction", "signed", "second-hand"],
        description: "Novels that take their time and reward yours. ".repeat(6),
    };
    bench.part("wire text of an item of 0.5 KB", "item", 1, || {
        black_box(to_text(black_box(&product)).unwrap());
    });
    let body = to_text(&product).unwrap().repeat(100);
    let signer = Signer::new("a secret of the bench".to_owned().into());
    let kib = body.len() as u64 / 1024;
    bench.part("signature of a batch of 50 KB", "KiB", kib, || {
        black_box(signer.sign("1700000000", black_box(body.as_bytes())));
    });
}

fn pages(bench: &Bench) {
    let page = demo_page();
    let kib = page.len() / 1024;
    bench.part(&format!("parse a demo page of {kib} KiB"), "page", 1, || {
        black_box(Page::parse(black_box(&page)));
    });
    let parsed = Page::parse(&page);
    bench.part("select five fields and all links of it", "page", 1, || {
        for selector in ["h1::text", "p.price::text", "p.availability::text", "p.author a::attr(href)", "article::attr(data-sku)"]
        {
            black_box(parsed.css(selector).get());
        }
        black_box(parsed.css("a[href]").len());
    });
}

/// A product page of the demo shop, over a real connection.
fn demo_page() -> String {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
    runtime.block_on(async {
        let site = Site::start(SiteOptions { products: 50, delays: Delays::none(), ..SiteOptions::default() }).await.unwrap();
        let address = site.addr();
        let listing = tokio::task::spawn_blocking(move || get(address, "/")).await.unwrap();
        let href = Page::parse(&listing).css("a.title::attr(href)").get().expect("the home page shows products");
        let page = tokio::task::spawn_blocking(move || get(address, &href)).await.unwrap();
        site.stop().await;
        page
    })
}

fn get(address: std::net::SocketAddr, path: &str) -> String {
    let mut stream = TcpStream::connect(address).unwrap();
    stream.set_read_timeout(Some(Duration::from_secs(5))).unwrap();
    write!(stream, "GET {path} HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\n\r\n").unwrap();
    let mut answer = Vec::new();
    stream.read_to_end(&mut answer).unwrap();
    let answer = String::from_utf8_lossy(&answer).into_owned();
    let (head, body) = answer.split_once("\r\n\r\n").expect("an answer has a head");
    assert!(head.starts_with("HTTP/1.1 200"), "{path}: {head}");
    body.to_owned()
}

fn frontier(bench: &Bench) {
    const JOBS: u64 = 1000;
    let jobs: Vec<Job> = (0..JOBS)
        .map(|n| {
            let request = Request::get(&format!("https://shop.example/products/{n}-a-book?page={n}"), &"Product").unwrap();
            let key = seen_key(request.method(), request.url(), b"");
            Job::page(RequestId::child(None, n), key, request)
        })
        .collect();
    let slot = SlotKey::of(jobs[0].url());
    bench.part("frontier in memory: offer, pull, settle", "request", JOBS, || {
        let mut store = MemoryStore::new(1 << 30);
        let mut offered = jobs.clone();
        assert_eq!(store.offer(&mut offered).unwrap().stored, JOBS);
        while let Pulled::Job(job) = store.pull(&slot, Duration::ZERO).unwrap() {
            store.settle(job.id, Outcome::Handled).unwrap();
        }
        assert!(store.books().balances());
    });
}

fn record_log(bench: &Bench) {
    const GROUPS: u64 = 4096;
    let (item, record) = (format!("{{\"title\": \"{}\"}}", "x".repeat(500)), format!("{{\"url\": \"{}\"}}", "u".repeat(250)));
    let job = JobId::from("bench");
    // No sync: that is the disk's time, not ours.
    bench.part("record log: groups of an item and a record", "group", GROUPS, || {
        let folder = tempfile::tempdir().unwrap();
        let (mut log, _) = RecordLog::open(folder.path(), &job, LogOptions::new(1)).unwrap();
        for _ in 0..GROUPS {
            log.append_group(&[Entry::Item(item.as_str().into()), Entry::Request(record.as_str().into())]).unwrap();
        }
        log.flush_writes().unwrap();
    });
}

/// What it is measured on.
fn machine() -> String {
    let model = std::fs::read_to_string("/proc/cpuinfo")
        .ok()
        .and_then(|text| {
            text.lines().find_map(|line| Some(line.strip_prefix("model name")?.split_once(':')?.1.trim().to_owned()))
        })
        .unwrap_or_else(|| "unknown processor".to_owned());
    let processors = std::thread::available_parallelism().map_or(1, usize::from);
    let build = if cfg!(debug_assertions) { "debug build: figures mean little" } else { "release build" };
    format!("{model}, {processors} processors in use, {}, {build}", std::env::consts::OS)
}
