//! What arrives from servers, changed at random: no panic, no runaway, no broken promise.
//!
//! Inputs are those of the conformance tables, cut, spliced, swollen and struck by noise. They are numbered: a number always
//! gives the same bytes. `LONG_TESTS_OF_DRAGLINE=1` tries 200,000 of them.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing)]

mod corpus;
mod readers;

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use rustix::time::{ClockId, clock_gettime};

use self::corpus::Corpus;
pub(crate) use self::corpus::Rng;

/// No input is longer than about 64 KiB. What works this long, waits for the processor not counted, does not end in a time
/// that grows with its length.
const RUNAWAY: Duration = Duration::from_secs(2);

const MOST_SHOWN: usize = 5;

/// What an input is read as.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    Robots,
    Sitemap,
    SetCookie,
    Location,
    ContentType,
    Html,
}

impl Kind {
    const ALL: [Self; 6] = [Self::Robots, Self::Sitemap, Self::SetCookie, Self::Location, Self::ContentType, Self::Html];

    fn read(self, bytes: &[u8], rng: &mut Rng) {
        match self {
            Self::Robots => readers::robots(bytes, rng),
            Self::Sitemap => readers::sitemap(bytes, rng),
            Self::SetCookie => readers::set_cookie(bytes, rng),
            Self::Location => readers::location(bytes, rng),
            Self::ContentType => readers::content_type(bytes, rng),
            Self::Html => readers::html(bytes, rng),
        }
    }
}

/// What this thread has worked so far, however many others want the processor.
fn worked() -> Duration {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    Duration::new(time.tv_sec.try_into().unwrap(), time.tv_nsec.try_into().unwrap())
}

/// The kind and the bytes of a number, and the numbers that follow.
fn case(number: u64, corpora: &[(Kind, Corpus)]) -> (Kind, Vec<u8>, Rng) {
    let mut rng = Rng::new(number);
    let (kind, corpus) = &corpora[usize::try_from(number).unwrap() % corpora.len()];
    let bytes = corpus.changed(&mut rng);
    (*kind, bytes, rng)
}

fn corpora(kinds: &[Kind]) -> Vec<(Kind, Corpus)> {
    kinds.iter().map(|kind| (*kind, Corpus::of(*kind))).collect()
}

/// Has the inputs of these numbers read, kind by kind in turn; `LONG_TESTS_OF_DRAGLINE=1` takes ten times as many.
///
/// # Panics
/// With the numbers of inputs that made `read` panic or run away.
pub(crate) fn read_all(kinds: &[Kind], numbers: u64, read: impl Fn(Kind, &[u8], &mut Rng) + Sync) {
    let end = if std::env::var_os("LONG_TESTS_OF_DRAGLINE").is_some() { 10 * numbers } else { numbers };
    let corpora = corpora(kinds);
    let next = AtomicU64::new(0);
    let failed = Mutex::new(Vec::new());
    let work = || {
        loop {
            let number = next.fetch_add(1, Ordering::Relaxed);
            if number >= end || failed.lock().unwrap().len() >= MOST_SHOWN {
                return;
            }
            let (kind, bytes, mut rng) = case(number, &corpora);
            let begun = worked();
            let panicked = catch_unwind(AssertUnwindSafe(|| read(kind, &bytes, &mut rng))).is_err();
            let taken = worked().saturating_sub(begun);
            if panicked || taken > RUNAWAY {
                let head = bytes.get(..600).unwrap_or(&bytes).escape_ascii();
                failed.lock().unwrap().push(format!("{kind:?}, number {number}, {} bytes, {taken:?}: {head}", bytes.len()));
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
fn what_servers_send_may_be_wrong_in_any_way() {
    read_all(&Kind::ALL, 20_000, Kind::read);
}

#[test]
fn a_thread_that_works_is_told_from_one_that_waits() {
    let begun = worked();
    std::thread::sleep(Duration::from_millis(100));
    let slept = worked() - begun;
    assert!(slept < Duration::from_millis(90), "{slept:?}");
    let (begun, mut rng) = (worked(), Rng::new(1));
    while worked() - begun < Duration::from_millis(5) {
        std::hint::black_box(rng.below(9));
    }
}

#[test]
fn a_number_always_gives_the_same_bytes_and_numbers_differ() {
    let corpora = corpora(&Kind::ALL);
    for number in 0..60 {
        assert_eq!(case(number, &corpora).1, case(number, &corpora).1);
        assert_eq!(case(number, &corpora).0, Kind::ALL[usize::try_from(number).unwrap() % 6]);
    }
    let different: std::collections::HashSet<Vec<u8>> = (0..600).map(|number| case(number, &corpora).1).collect();
    assert!(different.len() > 560, "{}", different.len());
}
