//! Bytes of all kinds, through all there is: no panic, no overflow, no bound passed, no tree that is none.
//!
//! The test profile checks overflows. Cases are numbered: a number always gives the same bytes.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};

use bytes::Bytes;

use super::soup::{self, Rng};
use super::{order, selectors};
use crate::html::arena::NodeId;
use crate::html::css::{Compiled, Reach};
use crate::html::hit::Hit;
use crate::html::xpath::{self, Variables};
use crate::html::{Document, Limits, ParseOptions};
use crate::testkit::hostile::EXPRESSIONS;

const MOST_SHOWN: usize = 5;

/// The bytes of a number: a page whole or broken, or noise.
fn bytes(rng: &mut Rng, corpus: &[Vec<String>]) -> Vec<u8> {
    let mut bytes = match rng.below(8) {
        0 => (0..rng.below(200)).map(|_| rng.below(256) as u8).collect(),
        1 => (0..rng.below(200)).map(|_| rng.pick(b"<>/!-=\"'& \n\0aAbp?[]#x;\r\xc3\xa9\xf0\xff")).collect(),
        2 => soup::soup(rng).concat().encode_utf16().flat_map(u16::to_le_bytes).collect(),
        _ => soup::case(rng.next(), corpus).concat().into_bytes(),
    };
    for _ in 0..rng.below(4) {
        let at = rng.below(bytes.len());
        match rng.below(6) {
            0 if !bytes.is_empty() => bytes[at] = rng.below(256) as u8,
            1 if !bytes.is_empty() => bytes[at] ^= 1 << rng.below(8),
            2 => bytes.insert(at, rng.pick(b"<>&\0\"'\r\xff\xed\xa0\x80")),
            3 => bytes.truncate(at),
            4 => {
                let end = (at + rng.below(20)).min(bytes.len());
                let part = bytes[at..end].to_vec();
                bytes.extend(part);
            }
            _ => {}
        }
    }
    if rng.one_in(50) {
        bytes.splice(0..0, *b"\xEF\xBB\xBF");
    }
    bytes
}

/// Bounds that small pages meet too.
fn options(rng: &mut Rng) -> ParseOptions {
    let limits = match rng.below(4) {
        0 => Limits {
            depth: rng.below(10),
            steps_per_byte: rng.below(2) as u64,
            steps: rng.below(100) as u64,
            nodes: rng.below(62),
            attributes: rng.below(12),
            attributes_per_element: rng.below(4),
            repeats_per_32_bytes: rng.below(2) as u64,
            memory_per_byte: rng.below(9),
        },
        1 => Limits::NONE,
        _ => Limits::default(),
    };
    ParseOptions::default().limits(limits).scripting(rng.one_in(4))
}

fn run(number: u64, corpus: &[Vec<String>]) {
    let mut rng = Rng::new(number);
    let bytes = Bytes::from(bytes(&mut rng, corpus));
    let options = options(&mut rng);
    let limits = options.limits;
    let document = match Document::from_utf8(bytes.clone(), &options) {
        Ok(document) => document,
        Err(_) if rng.one_in(4) => {
            // Must not be given bytes that are not UTF-8, and must bear them.
            let document = Document::from_checked(bytes.clone(), &options);
            let _ = document.dump();
            Document::parse_with(&String::from_utf8_lossy(&bytes), &options)
        }
        Err(_) => Document::parse_with(&String::from_utf8_lossy(&bytes), &options),
    };
    order::check(&document);
    let len = document.source().len();
    assert!(
        document.steps() <= limits.steps_for(len).saturating_add(2 * limits.depth.min(len + 8) as u64 + 64),
        "{}",
        document.steps()
    );
    assert!(document.node_count() <= limits.nodes.saturating_add(16), "{} nodes of {}", document.node_count(), limits.nodes);
    assert!(document.arena().attr_count() <= limits.attributes.saturating_mul(2).saturating_add(16));
    if limits != Limits::NONE {
        let deepest = document.root().descendants().map(|node| node.ancestors().count()).max().unwrap_or(0);
        assert!(deepest <= limits.depth + 4, "{deepest} deep, allowed {}", limits.depth);
    }
    assert!(limits != Limits::NONE || !document.exceeded().any());
    let dump = document.dump();
    assert!(dump.lines().count() + 1 >= document.root().descendants().count());
    let _ = document.root().text();
    if rng.one_in(4) {
        ask(&mut rng, &document);
    }
    if let Some(last) = document.root().descendants().last() {
        assert!(last.ancestors().last().is_some_and(|root| root == document.root()));
    }
}

/// Asks the page by CSS and XPath; what is found is in the page and in its order.
fn ask(rng: &mut Rng, document: &Document) {
    let selector = selectors::list(rng);
    let found = Compiled::parse(&selector).unwrap().select(document, &[NodeId::DOCUMENT], Reach::Document);
    assert!(found.hits.is_sorted_by(|a, b| a.order(document) < b.order(document)), "{selector}");
    let expression = rng.pick(EXPRESSIONS);
    let root = Hit::Node(NodeId::DOCUMENT);
    let tight = xpath::Options { steps: 20_000, ..xpath::Options::default() };
    let value = xpath::Compiled::parse(expression).unwrap().evaluate_within(document, root, &Variables::NONE, tight).0;
    if let Ok(xpath::Value::Nodes(hits)) = value {
        assert!(hits.is_sorted_by(|a, b| a.order(document) < b.order(document)), "{expression}");
    }
}

fn all(numbers: std::ops::Range<u64>) {
    let corpus = soup::corpus();
    let next = AtomicU64::new(numbers.start);
    let failed = Mutex::new(Vec::new());
    let work = || {
        loop {
            let number = next.fetch_add(1, Ordering::Relaxed);
            if number >= numbers.end || failed.lock().unwrap().len() >= MOST_SHOWN {
                return;
            }
            if catch_unwind(AssertUnwindSafe(|| run(number, &corpus))).is_err() {
                let mut rng = Rng::new(number);
                let bytes = bytes(&mut rng, &corpus);
                failed.lock().unwrap().push(format!(
                    "number {number}: {:?} with {:?}",
                    bytes.escape_ascii().to_string(),
                    options(&mut rng)
                ));
            }
        }
    };
    std::thread::scope(|threads| {
        for _ in 0..std::thread::available_parallelism().map_or(2, usize::from) {
            threads.spawn(work);
        }
    });
    let failed = failed.into_inner().unwrap();
    assert!(failed.is_empty(), "{}", failed.join("\n"));
}

#[test]
fn bytes_of_all_kinds_give_a_tree() {
    all(0..if std::env::var_os("LONG_TESTS_OF_DRAGLINE").is_some() { 1_000_000 } else { 100_000 });
}
