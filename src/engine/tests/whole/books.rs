//! Conservation: leases, reports, records and requests add up, on one mixed crawl and on random ones.

use std::collections::{BTreeSet, HashMap};

use proptest::prelude::*;

use super::fakes::Judged;
use super::script::Do::{self, Error, Flush, Panic, Sleep};
use super::script::{follow, item};
use super::stand::{Outcome, Stand};
use super::{MILLI, SECOND};
use crate::api::failure::FailureKind;
use crate::plane::RefusalKind;
use crate::testkit::transport::Answer;

#[test]
fn a_mixed_crawl_adds_up_to_the_last_record() {
    let a = |path: &str| format!("http://a.test/{path}");
    let start = ["", "missing", "flaky", "moved", "boom", "dead"].map(|path| Do::Follow(a(path)));
    let done = Stand::new()
        .start(start)
        .page(&a(""), [item("a"), Do::Follow(a("x")), Do::Follow(a("x"))])
        .page(&a("x"), [item("x")])
        .page(&a("target"), [item("t")])
        .page(&a("flaky"), [item("f")])
        .page(&a("boom"), [item("lost"), Panic])
        .answers(&a("missing"), [Answer::new(404, "no")])
        .answers(&a("flaky"), [Answer::new(503, "later"), Answer::html("ok")])
        .answers(&a("moved"), [Answer::redirect(302, "/target")])
        .answers(&a("dead"), [Answer::fault(FailureKind::Lost)])
        .run();
    done.assert_whole();
    assert_eq!(done.ids(), ["a", "f", "t", "x"]);
    assert_eq!(done.asked.len(), 11, "{:?}", done.lines);
    assert_eq!((done.ledger.acquired, done.ledger.released), (10, 10));
    let books = done.ended.books;
    assert_eq!((books.enqueued, books.handled, books.failed, books.dropped), (7, 4, 3, 0));
    assert_eq!(done.ended.tally.callback_errors, 1);
    let records: Vec<_> =
        ["", "missing", "flaky", "moved", "target", "boom", "dead", "x"].map(|path| done.records_of(&a(path))).into();
    let lost = (0, Some("DownloadFailedError: scripted lost"));
    let ok = || vec![(200, None)];
    assert_eq!(records, [ok(), vec![(404, None)], ok(), vec![], ok(), ok(), vec![lost; 3], ok()]);
    assert_eq!(done.count("dupefilter/filtered"), 1);
    assert_eq!(done.count("item_scraped_count"), 4);
    assert_eq!(done.count("engine/discarded_effects"), 1);
    assert_eq!(done.ended.code, 0);
}

/// What one page of a random site answers and does.
#[derive(Debug, Clone)]
struct Page {
    answers: Vec<u8>,
    list: Vec<u8>,
    links: Vec<usize>,
}

#[derive(Debug, Clone)]
struct World {
    pages: Vec<Page>,
    concurrent: usize,
    per_host: usize,
    parsers: usize,
    batch: i64,
    refuse: u64,
    slow_plane: bool,
    window: usize,
}

fn world() -> impl Strategy<Value = World> {
    let page = (
        proptest::collection::vec(0_u8..12, 1..4),
        proptest::collection::vec(0_u8..20, 0..7),
        proptest::collection::vec(0_usize..40, 0..5),
    )
        .prop_map(|(answers, list, links)| Page { answers, list, links });
    let sizes = (1_usize..9, 1_usize..5, 1_usize..4, 1_i64..60, 0_u64..40, any::<bool>(), 1_usize..12);
    (proptest::collection::vec(page, 1..40), sizes).prop_map(
        |(pages, (concurrent, per_host, parsers, batch, refuse, slow_plane, window))| World {
            pages,
            concurrent,
            per_host,
            parsers,
            batch,
            refuse,
            slow_plane,
            window,
        },
    )
}

fn url(page: usize) -> String {
    format!("http://{}.test/{page}", if page.is_multiple_of(3) { "b" } else { "a" })
}

fn answer(kind: u8, page: usize, pages: usize) -> Answer {
    match kind {
        0 => Answer::new(404, "no"),
        1 => Answer::new(503, "later"),
        2 => Answer::fault(FailureKind::Lost),
        3 => Answer::hang(),
        4 => Answer::redirect(302, &url((page * 7 + 1) % pages)),
        5 => Answer::html("slow").after(3 * SECOND),
        6 => Answer::new(429, "").header("retry-after", "1"),
        _ => Answer::html("ok").after(u32::from(kind) * MILLI),
    }
}

/// What a callback does; the items it must have delivered: all before the last commit that came about.
fn acts(page: usize, world: &World) -> (Vec<Do>, Vec<String>) {
    let own = &world.pages[page];
    let mut links = own.links.iter().map(|to| Do::Follow(url(to % world.pages.len())));
    let (mut list, mut open, mut kept) = (Vec::new(), Vec::new(), Vec::new());
    for (n, kind) in own.list.iter().enumerate() {
        match kind {
            0..8 => {
                let id = format!("{page}-{n}");
                list.push(item(&id));
                open.push(id);
            }
            8..13 => list.extend(links.next()),
            13..15 => {
                list.push(Flush);
                kept.append(&mut open);
            }
            15..18 => list.push(Sleep(u32::from(*kind) * 200 * MILLI)),
            18 => {
                list.push(Panic);
                return (list, kept);
            }
            _ => {
                list.push(Error("no"));
                return (list, kept);
            }
        }
    }
    list.extend(links);
    kept.append(&mut open);
    (list, kept)
}

fn crawl(world: &World) -> (Outcome, HashMap<String, Vec<String>>) {
    let mut stand = Stand::new().start([follow(&url(0)), follow(&url(world.pages.len() / 2)), follow(&url(1))]).with(|s| {
        s.concurrent_requests = world.concurrent;
        s.concurrent_requests_per_domain = world.per_host;
        s.apcloudy_batch_size = world.batch;
        s.window_requests = world.window;
        s.download_timeout = 10 * SECOND;
        s.retry_backoff = SECOND;
    });
    stand.parsers = world.parsers;
    let mut truth = HashMap::new();
    for (page, own) in world.pages.iter().enumerate() {
        let (list, kept) = acts(page, world);
        truth.insert(url(page), kept);
        let answers: Vec<_> = own.answers.iter().map(|kind| answer(*kind, page, world.pages.len())).collect();
        stand = stand.page(&url(page), list).answers(&url(page), answers);
    }
    let (refuse, slow, mut asks) = (world.refuse, world.slow_plane, 0_u64);
    let stand = stand.judge(move |_, _| {
        asks += 1;
        match asks.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32 {
            draw if draw % 100 < refuse && draw % 3 == 0 => Judged::Refuse(RefusalKind::NoIdentity, Some(300 * MILLI)),
            draw if draw % 100 < refuse => Judged::Refuse(RefusalKind::RateLimited, None),
            draw if slow => Judged::GrantAfter(u32::try_from(draw % 50).unwrap() * MILLI),
            _ => Judged::Grant,
        }
    });
    (stand.run(), truth)
}

fn cases() -> u32 {
    if std::env::var_os("LONG_TESTS_OF_DRAGLINE").is_some() { 2000 } else { 32 }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(cases()))]

    #[test]
    fn a_random_crawl_of_a_random_site_adds_up(world in world()) {
        let (done, truth) = crawl(&world);
        done.assert_whole();
        // No page twice, and from each that came what its callback committed.
        let parsed: Vec<String> =
            done.said("parse ").iter().map(|line| line.rsplit(' ').next().unwrap().to_owned()).collect();
        let once: BTreeSet<_> = parsed.iter().collect();
        prop_assert_eq!(once.len(), parsed.len(), "{:?}", parsed);
        let mut expected: Vec<String> = once.iter().flat_map(|page| truth.get(*page).cloned().unwrap_or_default()).collect();
        expected.sort();
        prop_assert_eq!(done.ids(), expected);
        prop_assert!(done.most_at_once <= world.concurrent, "{} downloads at once", done.most_at_once);
        let books = done.ended.books;
        prop_assert_eq!(books.enqueued, books.handled + books.failed + books.dropped);
    }
}
