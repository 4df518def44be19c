//! What a lease costs in process: acquire, one report that releases it, on one core, everything included that a crawl pays.
//!
//! `cargo bench --bench plane`. Without cargo's `--bench` each part runs once, so that it cannot rot.
#![allow(missing_docs, clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing)]

use std::collections::VecDeque;
use std::fmt::Write as _;
use std::hint::black_box;
use std::path::Path;
use std::time::Duration;

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use dragline::plane::embedded::Embedded;
use dragline::plane::{Ask, Grant, Report};
use tokio::time::Instant;

/// Leases open at once.
const OPEN: usize = 64;

/// A site `shop` with so many identities of four leases each, and so many proxies.
fn plane(identities: usize, proxies: usize) -> Embedded {
    let mut text = String::from(
        "[[sites]]\nname = \"shop\"\n[sites.rotation]\nmax_concurrent_leases = 4\n\
         [[sites.groups]]\nname = \"search\"\nprefix = [\"/search/\"]\n",
    );
    for n in 0..proxies {
        writeln!(text, "[[sites.proxies]]\nurl = \"http://user:pass@10.0.{}.{}:3128\"\nmax_concurrency = 64", n / 250, n % 250)
            .unwrap();
    }
    for n in 0..identities {
        let header = format!("X-Reader = \"reader-{n}\", User-Agent = \"Mozilla/5.0 (X11; Linux x86_64)\"");
        writeln!(
            text,
            "[[sites.identities]]\nname = \"i{n}\"\ncookies = {{ sid = \"s{n}\", lang = \"de\" }}\nheaders = {{ {header} }}"
        )
        .unwrap();
    }
    Embedded::parse_with_chance(&text, Path::new("bench.toml"), 7).unwrap()
}

fn ask(group: &str, anonymous: bool) -> Ask {
    Ask {
        site: "shop".into(),
        client: "web".into(),
        group: group.into(),
        path: "/search/books".to_owned(),
        session_key: None,
        anonymous,
        rule: None,
    }
}

fn report(id: u64, grant: &Grant) -> Report {
    Report {
        id,
        lease: grant.lease.clone(),
        path: "/search/books".to_owned(),
        method: http::Method::GET,
        status: Some(200),
        error: None,
        markers: Vec::new(),
        business_code: None,
        outcome_hint: None,
        sent_at: Instant::now(),
        latency: Duration::from_millis(35),
        bytes: 24_000,
        retry_after: None,
        release: true,
    }
}

/// One lease, and the report of the oldest one; `batch` reports at once.
struct Cycle {
    plane: Embedded,
    ask: Ask,
    open: VecDeque<Grant>,
    reports: Vec<Report>,
    batch: usize,
    next: u64,
}

impl Cycle {
    fn new(plane: Embedded, ask: Ask, batch: usize) -> Self {
        Self { plane, ask, open: VecDeque::new(), reports: Vec::new(), batch, next: 0 }
    }

    fn turn(&mut self) {
        self.open.push_back(black_box(self.plane.acquire_now(&self.ask).unwrap()));
        if self.open.len() > OPEN {
            let grant = self.open.pop_front().unwrap();
            self.next += 1;
            self.reports.push(report(self.next, &grant));
        }
        if self.reports.len() >= self.batch {
            let taken = self.plane.report_now(&self.reports);
            assert_eq!((taken.duplicated, taken.rejected.len()), (0, 0));
            self.reports.clear();
        }
    }
}

fn cycles(c: &mut Criterion) {
    let mut group = c.benchmark_group("plane");
    group.throughput(Throughput::Elements(1));
    for (name, identities, proxies, group_name, anonymous) in [
        ("64 identities, by path", 64, 0, "", false),
        ("64 identities, by group", 64, 0, "search", false),
        ("64 identities, 10 proxies", 64, 10, "search", false),
        ("10,000 identities", 10_000, 0, "search", false),
        ("anonymous", 1, 0, "", true),
    ] {
        let mut cycle = Cycle::new(plane(identities, proxies), ask(group_name, anonymous), 32);
        group.bench_function(name, |b| b.iter(|| cycle.turn()));
        let ledger = cycle.plane.ledger_now();
        assert!(ledger.balances(), "{ledger:?}");
    }
    group.finish();
}

criterion_group!(benches, cycles);
criterion_main!(benches);
