//! How much memory a page takes while it is parsed and read, beside its bytes: the peak of the heap, with scraper beside it.
//!
//! `cargo bench --bench html_heap`; `-- --check` ends with an error above eight times the page. A vector that grows counts
//! twice for a moment, as it does where it cannot grow in place. Apart from the other benches, as counting costs time.
#![allow(missing_docs, clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing)]

use std::hint::black_box;
use std::process::ExitCode;

use bytes::Bytes;
use dragline::html::{Page, PageOptions};
use dragline::testkit::hostile;
use dragline::testkit::pages::PageKind;
use peak_alloc::PeakAlloc;
use scraper::{Html, Selector};

#[global_allocator]
static HEAP: PeakAlloc = PeakAlloc;

/// Times the page's bytes.
const MOST: f64 = 8.0;

/// Bytes at the peak above what was there before, and bytes that the result holds.
fn measure<T>(run: impl FnOnce() -> T) -> (usize, usize) {
    let before = HEAP.current_usage();
    HEAP.reset_peak_usage();
    let result = black_box(run());
    let (peak, kept) = (HEAP.peak_usage() - before, HEAP.current_usage() - before);
    drop(result);
    (peak, kept)
}

fn parse(body: &Bytes) -> Page {
    Page::from_utf8(body.clone(), &PageOptions::default()).unwrap()
}

fn read(body: &Bytes) -> (Page, Vec<String>) {
    let page = parse(body);
    let mut found = page.css("h1::text").getall();
    found.extend(page.css("a[href]::attr(href)").getall());
    found.extend(page.css(".price::text").getall());
    (page, found)
}

fn read_by_scraper(body: &[u8]) -> (Html, Vec<String>) {
    let page = Html::parse_document(std::str::from_utf8(body).unwrap());
    let mut found = Vec::new();
    for selector in ["h1", "a[href]", ".price"] {
        found.extend(page.select(&Selector::parse(selector).unwrap()).map(|element| element.text().collect::<String>()));
    }
    (page, found)
}

fn main() -> ExitCode {
    let is_measuring = std::env::args().any(|a| a == "--bench");
    let is_checking = std::env::args().any(|a| a == "--check");
    let mut is_passed = false;
    if is_measuring {
        println!("bytes of heap for each byte of the page           bytes    parse    kept  and read  scraper");
    }
    let line = |name: &str, body: &Bytes, scraper: Option<usize>| {
        let times = |heap: usize| heap as f64 / body.len() as f64;
        let (parsed, kept) = measure(|| parse(body));
        let (read, _) = measure(|| read(body));
        let scraper = scraper.map_or(String::new(), |peak| format!("{:>8.2}", times(peak)));
        if is_measuring {
            println!("{name:<46} {:>8} {:>8.2} {:>7.2} {:>9.2} {scraper}", body.len(), times(parsed), times(kept), times(read));
        }
        times(read) > MOST
    };
    for kind in PageKind::ALL {
        let sizes: &[usize] = if !is_measuring {
            &[2_000]
        } else if kind == PageKind::Table {
            &[1_000_000]
        } else {
            &[3_000, 10_000, 100_000]
        };
        for bytes in sizes {
            let body = Bytes::from(kind.page(*bytes));
            drop((read(&body), read_by_scraper(&body)));
            let scraper = measure(|| read_by_scraper(&body)).0;
            is_passed |= line(kind.name(), &body, Some(scraper));
        }
    }
    for hostile in hostile::ALL {
        let body = Bytes::from(hostile.page(if is_measuring { 200_000 } else { 2_000 }));
        is_passed |= line(hostile.name, &body, None);
    }
    if is_passed && is_checking { ExitCode::FAILURE } else { ExitCode::SUCCESS }
}
