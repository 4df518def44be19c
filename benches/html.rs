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
//! `once KIND BYTES` parses one page 10 times in `measured_parse`, after it was parsed once; `once-scraper` is scraper's, and
//! `once-task` makes the three selections too, in `measured_task`.
#![allow(missing_docs, clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing)]

use std::hint::black_box;
use std::process::ExitCode;
use std::time::Duration;

use bytes::Bytes;
use dragline::html::{Page, PageOptions};
use dragline::testkit::hostile;
use dragline::testkit::pages::PageKind;
use rustix::time::{ClockId, clock_gettime};
use scraper::{Html, Selector};

const BATCHES: usize = 12;
/// How long a batch is at least.
const BATCH: Duration = Duration::from_millis(8);

/// A part of the bench.
type Part = fn(&mut Bench);

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
        run_once(once, kind, bytes.parse().expect("a number of bytes"));
        return ExitCode::SUCCESS;
    }
    let mut bench = Bench {
        is_measuring: arguments.iter().any(|a| a == "--bench"),
        is_checking: arguments.iter().any(|a| a == "--check"),
        only: arguments.into_iter().find(|a| !a.starts_with('-')),
        passed: Vec::new(),
    };
    let parts: [(&str, Part); 4] = [("pages", pages), ("selectors", selectors), ("xpath", xpath), ("hostile", hostile)];
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

fn parse(body: &Bytes) -> Page {
    Page::from_utf8(body.clone(), &PageOptions::default()).unwrap()
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

#[inline(never)]
fn measured_task(body: &Bytes) {
    black_box(take(black_box(body)));
}

fn run_once(what: &str, kind: &str, bytes: usize) {
    let kind = PageKind::ALL.into_iter().find(|k| k.name() == kind).expect("a kind of page");
    let body = Bytes::from(kind.page(bytes));
    black_box((parse(&body).document().node_count(), parse_scraper(&body).tree.values().count()));
    for _ in 0..10 {
        match what {
            "once-scraper" => measured_parse_scraper(&body),
            "once-task" => measured_task(&body),
            _ => measured_parse(&body),
        }
    }
}

/// What a spider takes from a page, as strings of its own.
#[derive(Debug, PartialEq)]
struct Taken {
    title: Option<String>,
    links: Vec<String>,
    prices: Vec<String>,
}

const TITLE: &str = "h1";
const LINKS: &str = "a[href]";
const PRICES: &str = ".price";

fn take(body: &Bytes) -> Taken {
    let page = parse(body);
    Taken {
        title: page.css("h1::text").get(),
        links: page.css("a[href]::attr(href)").getall(),
        prices: page.css(".price::text").getall(),
    }
}

/// The same by scraper, with selectors that were compiled before.
fn take_scraper(body: &[u8], [title, links, prices]: &[Selector; 3]) -> Taken {
    let page = parse_scraper(body);
    let texts = |element: scraper::ElementRef<'_>| -> Vec<String> {
        element.children().filter_map(|child| child.value().as_text().map(|text| text.to_string())).collect()
    };
    Taken {
        title: page.select(title).flat_map(texts).next(),
        links: page.select(links).filter_map(|link| link.attr("href").map(str::to_owned)).collect(),
        prices: page.select(prices).flat_map(texts).collect(),
    }
}

fn compiled<const N: usize>(selectors: [&str; N]) -> [Selector; N] {
    selectors.map(|selector| Selector::parse(selector).unwrap())
}

/// Parse, and parse with three selections, of each kind of page.
fn pages(bench: &mut Bench) {
    let selectors = compiled([TITLE, LINKS, PRICES]);
    bench.print("\nµs a page             bytes    parse   MB/s  scraper    task  scraper  ratio");
    for kind in PageKind::ALL {
        let sizes: &[usize] = if kind == PageKind::Table { &[1_000_000] } else { &[3_000, 10_000, 100_000] };
        for bytes in sizes {
            let body = Bytes::from(kind.page(bench.bytes(*bytes)));
            assert_eq!(take(&body), take_scraper(&body, &selectors), "{}", kind.name());
            let [parsed, by_scraper, task, task_by_scraper] = bench.race([
                &mut || measured_parse(&body),
                &mut || measured_parse_scraper(&body),
                &mut || measured_task(&body),
                &mut || drop(black_box(take_scraper(black_box(&body), &selectors))),
            ]);
            let (name, rate, ratio) = (kind.name(), body.len() as f64 * 1e3 / parsed, task / task_by_scraper);
            bench.print(&format!(
                "{name:<18} {:>9} {:>8.1} {rate:>6.0} {:>8.1} {:>7.1} {:>8.1} {ratio:>6.3}",
                body.len(),
                parsed / 1e3,
                by_scraper / 1e3,
                task / 1e3,
                task_by_scraper / 1e3
            ));
            bench.bound(&format!("{name} {bytes}: task, times scraper's"), ratio, 0.15);
            if *bytes == 100_000 {
                bench.bound(&format!("{name} {bytes}: parse, ns a byte"), parsed / body.len() as f64, 1e3 / 300.0);
            }
        }
    }
}

const TEN_SELECTORS: [&str; 10] = [
    "h1",
    "a[href]",
    ".price",
    "div > p a",
    ".product-card .price, .content cite",
    "div:has(> h1)",
    "ul li a",
    "img[loading=lazy]",
    "li:nth-child(2n+1)",
    "p:not(.price)",
];

/// Ten selectors on a parsed page: how many nodes they find.
fn selectors(bench: &mut Bench) {
    let theirs = compiled(TEN_SELECTORS);
    bench.print("\nµs for ten selectors  bytes     ours  scraper");
    for kind in [PageKind::Shop, PageKind::News, PageKind::Forum, PageKind::Encyclopedia, PageKind::Bench] {
        let body = Bytes::from(kind.page(bench.bytes(10_000)));
        let (page, by_scraper) = (parse(&body), parse_scraper(&body));
        for (selector, compiled) in TEN_SELECTORS.iter().zip(&theirs) {
            assert_eq!(page.css(selector).len(), by_scraper.select(compiled).count(), "{selector} on {}", kind.name());
        }
        let [ours, scraper] = bench
            .race([&mut || TEN_SELECTORS.iter().for_each(|selector| _ = black_box(page.css(selector).len())), &mut || {
                theirs.iter().for_each(|selector| _ = black_box(by_scraper.select(selector).count()))
            }]);
        bench.print(&format!("{:<18} {:>8} {:>8.1} {:>8.1}", kind.name(), body.len(), ours / 1e3, scraper / 1e3));
        bench.bound(&format!("{}: ten selectors, µs", kind.name()), ours / 1e3, 15.0);
        if matches!(kind, PageKind::Shop | PageKind::Bench) {
            for selector in TEN_SELECTORS {
                let [one] = bench.race([&mut || _ = black_box(page.css(selector).len())]);
                bench.print(&format!("  {selector:<40} {:>6.2}", one / 1e3));
            }
        }
    }
}

const TEN_EXPRESSIONS: [&str; 10] = [
    "//a/@href",
    "//h1/text()",
    "//li[1]",
    "//p[@class='price']/text()",
    "//*[has-class('price')]",
    "//a[starts-with(@href, '/p/')]/@href",
    "//h3/following-sibling::p[1]",
    "//img[@loading]/@data-src",
    "count(//li)",
    "string(//title)",
];

/// One and ten XPath expressions on a parsed page.
fn xpath(bench: &mut Bench) {
    bench.print("\nµs for XPath          bytes  //a/@href   strings      ten");
    for kind in [PageKind::Shop, PageKind::News, PageKind::Forum, PageKind::Encyclopedia, PageKind::Bench] {
        let body = Bytes::from(kind.page(bench.bytes(10_000)));
        let page = parse(&body);
        assert_eq!(page.xpath("//a/@href").getall(), page.css("a::attr(href)").getall(), "{}", kind.name());
        let [links, strings, ten] = bench.race([
            &mut || _ = black_box(page.xpath("//a/@href").len()),
            &mut || drop(black_box(page.xpath("//a/@href").getall())),
            &mut || TEN_EXPRESSIONS.iter().for_each(|expression| _ = black_box(page.xpath(expression).len())),
        ]);
        assert!(page.take_errors().is_empty());
        let name = kind.name();
        let (links, ten) = (links / 1e3, ten / 1e3);
        bench.print(&format!("{name:<18} {:>8} {links:>10.2} {:>9.2} {ten:>8.1}", body.len(), strings / 1e3));
        bench.bound(&format!("{name}: //a/@href, µs"), links, 3.0);
        bench.bound(&format!("{name}: ten expressions, µs"), ten, 40.0);
        if kind == PageKind::Shop {
            for expression in TEN_EXPRESSIONS {
                let [one] = bench.race([&mut || _ = black_box(page.xpath(expression).len())]);
                bench.print(&format!("  {expression:<40} {:>6.2}", one / 1e3));
            }
        }
    }
}

/// The least of three runs, in nanoseconds a byte. Not of twelve: what is slow here is slow by far.
fn each_byte(bench: &Bench, bytes: usize, mut run: impl FnMut()) -> f64 {
    let rounds = if bench.is_measuring { 3 } else { 1 };
    let best = (0..rounds).map(|_| {
        let started = cpu_time();
        run();
        cpu_time() - started
    });
    best.min().unwrap_or_default().as_nanos() as f64 / bytes as f64
}

/// Pages, selectors and expressions made to cost much, in ns of CPU for each byte of the page.
fn hostile(bench: &mut Bench) {
    let bytes = if bench.is_measuring { 200_000 } else { 2_000 };
    bench.print("\nns a byte, of the worst of all hostile selectors and expressions");
    bench.print("hostile page                                    parse     css   xpath");
    for hostile in hostile::ALL {
        let body = Bytes::from(hostile.page(bytes));
        let parsed = each_byte(bench, body.len(), || measured_parse(&body));
        let page = parse(&body);
        let mut worst = [(0.0, ""); 2];
        for (worst, questions) in worst.iter_mut().zip([hostile::SELECTORS, hostile::EXPRESSIONS]) {
            let is_css = questions == hostile::SELECTORS;
            for question in questions {
                let found = each_byte(bench, body.len(), || {
                    let found = if is_css { page.css(question) } else { page.xpath(question) };
                    black_box(found.len());
                });
                if found > worst.0 {
                    *worst = (found, question);
                }
            }
        }
        let [(css, selector), (xpath, expression)] = worst;
        let name = hostile.name;
        bench.print(&format!("{name:<44} {parsed:>8.1} {css:>7.1} {xpath:>7.1}  {selector}  {expression}"));
        bench.bound(&format!("{name}: parse, ns a byte"), parsed, 100.0);
        bench.bound(&format!("{name}: {selector}, ns a byte"), css, 300.0);
        bench.bound(&format!("{name}: {expression}, ns a byte"), xpath, 300.0);
    }
}
