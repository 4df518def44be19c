//! What the HTML engine costs, with scraper beside it in the same run: CPU time of this thread, best of 12 batches.
//!
//! `cargo bench --bench html`, with a word of a part's name (`pages`, `selectors`, `xpath`, `hostile`) to run that part
//! only; `-- --check` ends with an error if a bound that the project holds itself to is passed. Without cargo's `--bench`
//! each part runs once on small pages, so that it cannot rot.
//!
//! Instructions instead of time, which do not depend on what else the machine does (`apt-get install valgrind`):
//!
//! ```text
//! cargo bench --bench html --no-run
//! valgrind --tool=callgrind --toggle-collect='*measured_parse*' target/release/deps/html-* once shop 10000
//! callgrind_annotate callgrind.out.*
//! ```
//!
//! `once KIND BYTES` parses one page 10 times in `measured_parse`, after it was parsed once; `once-scraper` is scraper's.
#![allow(missing_docs, clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing)]

use std::hint::black_box;
use std::process::ExitCode;
use std::time::Duration;

use bytes::Bytes;
use dragline::html::{Document, ParseOptions};
use dragline::testkit::hostile::{self, Hostile};
use dragline::testkit::pages::PageKind;
use rustix::time::{ClockId, clock_gettime};
use scraper::{Html, Selector};

const BATCHES: usize = 12;
/// How long a batch is at least.
const BATCH: Duration = Duration::from_millis(8);

struct Bench {
    is_measuring: bool,
    is_checking: bool,
    only: Option<String>,
    passed: Vec<String>,
}

impl Bench {
    fn wants(&self, part: &str) -> bool {
        self.only.as_ref().is_none_or(|only| part.contains(only.as_str()))
    }

    fn print(&self, line: &str) {
        if self.is_measuring {
            println!("{line}");
        }
    }

    /// Notes a bound that does not hold.
    fn bound(&mut self, name: &str, found: f64, most: f64) {
        if self.is_measuring && found > most {
            self.passed.push(format!("{name}: {found:.2}, allowed {most}"));
        }
    }

    fn bytes(&self, bytes: usize) -> usize {
        if self.is_measuring { bytes } else { bytes.min(3_000) }
    }

    /// Nanoseconds of CPU of each, batches by turns: what disturbs the machine disturbs all of them.
    fn race<const N: usize>(&self, runners: [&mut dyn FnMut(); N]) -> [f64; N] {
        let mut best = [f64::MAX; N];
        if !self.is_measuring {
            runners.into_iter().for_each(|run| run());
            return best;
        }
        let mut turns = runners.map(|run| (times(run), run));
        for _ in 0..BATCHES {
            for (best, (times, run)) in best.iter_mut().zip(&mut turns) {
                let started = cpu_time();
                (0..*times).for_each(|_| run());
                *best = best.min((cpu_time() - started).as_nanos() as f64 / f64::from(*times));
            }
        }
        best
    }
}

/// How often it runs in a batch.
fn times(run: &mut dyn FnMut()) -> u32 {
    run();
    let started = cpu_time();
    run();
    let one = (cpu_time() - started).max(Duration::from_nanos(20));
    (BATCH.as_nanos() / one.as_nanos()).clamp(1, 100_000) as u32
}

fn cpu_time() -> Duration {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    Duration::new(time.tv_sec as u64, time.tv_nsec as u32)
}

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    if let [once, kind, bytes] = &arguments[..]
        && once.starts_with("once")
    {
        run_once(once == "once-scraper", kind, bytes.parse().expect("a number of bytes"));
        return ExitCode::SUCCESS;
    }
    let mut bench = Bench {
        is_measuring: arguments.iter().any(|a| a == "--bench"),
        is_checking: arguments.iter().any(|a| a == "--check"),
        only: arguments.into_iter().find(|a| !a.starts_with('-')),
        passed: Vec::new(),
    };
    let parts: [(&str, fn(&mut Bench)); 4] = [("pages", pages), ("selectors", selectors), ("xpath", xpath), ("hostile", hostile)];
    for (name, part) in parts {
        if bench.wants(name) {
            part(&mut bench);
        }
    }
    for passed in &bench.passed {
        bench.print(&format!("passed its bound: {passed}"));
    }
    if bench.is_checking && !bench.passed.is_empty() { ExitCode::FAILURE } else { ExitCode::SUCCESS }
}

fn parse(body: &Bytes) -> Document {
    Document::from_utf8(body.clone(), &ParseOptions::default()).unwrap()
}

fn parse_scraper(body: &[u8]) -> Html {
    Html::parse_document(std::str::from_utf8(body).unwrap())
}

#[inline(never)]
fn measured_parse(body: &Bytes) {
    black_box(parse(black_box(body)));
}

#[inline(never)]
fn measured_parse_scraper(body: &[u8]) {
    black_box(parse_scraper(black_box(body)));
}

fn run_once(is_scraper: bool, kind: &str, bytes: usize) {
    let kind = PageKind::ALL.into_iter().find(|k| k.name() == kind).expect("a kind of page");
    let body = Bytes::from(kind.page(bytes));
    black_box((parse(&body).node_count(), parse_scraper(&body).tree.values().count()));
    for _ in 0..10 {
        if is_scraper { measured_parse_scraper(&body) } else { measured_parse(&body) }
    }
}

/// What a spider takes from a page, as strings of its own.
#[derive(Debug, PartialEq)]
struct Taken {
    title: Option<String>,
    links: Vec<String>,
    prices: Vec<String>,
}
