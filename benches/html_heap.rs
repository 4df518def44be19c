//! How much memory a page takes beside its bytes while it is parsed and read: the peak of the heap, with scraper beside it.
//!
//! `cargo bench --bench html_heap`; `-- --check` ends with an error where reading a page takes more than eight times its
//! bytes. A block that grows counts as what it grows by, as it does for large ones on Linux. Each page is measured in a
//! process of its own, as the peak is the process's. Without cargo's `--bench` small pages are measured in one process.
#![allow(missing_docs, clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing)]

use std::alloc::System;
use std::hint::black_box;
use std::process::{Command, ExitCode};

use bytes::Bytes;
use cap::Cap;
use dragline::html::{Page, PageOptions};
use dragline::testkit::hostile;
use dragline::testkit::pages::PageKind;
use scraper::{Html, Selector};

#[global_allocator]
static HEAP: Cap<System> = Cap::new(System, usize::MAX);

/// Times the page's bytes.
const MOST: f64 = 8.0;

fn parse(body: &Bytes) -> Page {
    Page::from_utf8(body.clone(), &PageOptions::default()).unwrap()
}

fn read(body: &Bytes) -> (Page, [Vec<String>; 3]) {
    let page = parse(body);
    let found = ["h1::text", "a[href]::attr(href)", ".price::text"].map(|selector| page.css(selector).getall());
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

fn page(name: &str, bytes: usize) -> Bytes {
    let kind = PageKind::ALL.into_iter().find(|kind| kind.name() == name).map(|kind| kind.page(bytes));
    let hostile = || hostile::ALL.iter().find(|hostile| hostile.name == name).map(|hostile| hostile.page(bytes));
    Bytes::from(kind.or_else(hostile).expect("a page of this name"))
}

/// Bytes at the peak above what was there before, and bytes that the result holds.
fn measure(way: &str, body: &Bytes) -> (usize, usize) {
    fn run<T>(make: impl FnOnce() -> T) -> (usize, usize) {
        let before = HEAP.allocated();
        let made = black_box(make());
        let measured = (HEAP.max_allocated().saturating_sub(before), HEAP.allocated() - before);
        drop(made);
        measured
    }
    // What is made once a process: tables of names and references, caches of selectors.
    let first = Bytes::from_static(b"<!DOCTYPE html><h1 class=price>x&copy;<zz-z a='&amp;' href=y>\0");
    if way == "scraper" {
        drop(read_by_scraper(&first))
    } else {
        drop(read(&first))
    }
    match way {
        "parse" => run(|| parse(body)),
        "read" => run(|| read(body)),
        _ => run(|| read_by_scraper(body)),
    }
}

/// The same in a process of its own, by bytes of the page.
fn measured(way: &str, name: &str, bytes: usize) -> (f64, f64) {
    let program = std::env::current_exe().unwrap();
    let output = Command::new(program).args(["one", way, name, &bytes.to_string()]).output().unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    let numbers: Vec<f64> = text.split_whitespace().map(|number| number.parse().unwrap()).collect();
    (numbers[0] / numbers[2], numbers[1] / numbers[2])
}

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    if let [one, way, name, bytes] = &arguments[..]
        && one == "one"
    {
        let body = page(name, bytes.parse().unwrap());
        let (peak, kept) = measure(way, &body);
        println!("{peak} {kept} {}", body.len());
        return ExitCode::SUCCESS;
    }
    if !arguments.iter().any(|a| a == "--bench") {
        for name in PageKind::ALL.into_iter().map(PageKind::name).chain(hostile::ALL.iter().map(|hostile| hostile.name)) {
            assert!(measure("read", &page(name, 2_000)).0 > 0, "{name}");
        }
        return ExitCode::SUCCESS;
    }
    println!("bytes of heap for each byte of the page           bytes   parse    kept  and read  scraper");
    let mut is_passed = false;
    for kind in PageKind::ALL {
        let sizes: &[usize] = if kind == PageKind::Table { &[1_000_000] } else { &[3_000, 10_000, 100_000] };
        for bytes in sizes {
            is_passed |= line(kind.name(), *bytes, true);
        }
    }
    for hostile in hostile::ALL {
        is_passed |= line(hostile.name, 200_000, false);
    }
    if is_passed && arguments.iter().any(|a| a == "--check") { ExitCode::FAILURE } else { ExitCode::SUCCESS }
}

/// Prints a line; says whether the page takes too much.
fn line(name: &str, bytes: usize, with_scraper: bool) -> bool {
    let (parse, kept) = measured("parse", name, bytes);
    let read = measured("read", name, bytes).0;
    let scraper = if with_scraper { format!("{:>8.2}", measured("scraper", name, bytes).0) } else { String::new() };
    println!("{name:<46} {bytes:>8} {parse:>7.2} {kept:>7.2} {read:>9.2} {scraper}");
    read > MOST
}
