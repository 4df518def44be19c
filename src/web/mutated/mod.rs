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
use std::time::{Duration, Instant};

use self::corpus::{Corpus, Rng};

/// No input is longer than about 64 KiB. What takes this long does not end in a time that grows with its length.
const RUNAWAY: Duration = Duration::from_secs(20);

const MOST_SHOWN: usize = 5;

/// What an input is read as.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
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

/// The kind and the bytes of a number, and the numbers that follow.
fn case(number: u64, corpora: &[Corpus]) -> (Kind, Vec<u8>, Rng) {
    let mut rng = Rng::new(number);
    let at = usize::try_from(number).unwrap() % Kind::ALL.len();
    let bytes = corpora[at].changed(&mut rng);
    (Kind::ALL[at], bytes, rng)
}

fn all(numbers: std::ops::Range<u64>) {
    let corpora = Kind::ALL.map(Corpus::of);
    let next = AtomicU64::new(numbers.start);
    let failed = Mutex::new(Vec::new());
    let work = || {
        loop {
            let number = next.fetch_add(1, Ordering::Relaxed);
            if number >= numbers.end || failed.lock().unwrap().len() >= MOST_SHOWN {
                return;
            }
            let (kind, bytes, mut rng) = case(number, &corpora);
            let begun = Instant::now();
            let panicked = catch_unwind(AssertUnwindSafe(|| kind.read(&bytes, &mut rng))).is_err();
            let taken = begun.elapsed();
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
    all(0..if std::env::var_os("LONG_TESTS_OF_DRAGLINE").is_some() { 200_000 } else { 20_000 });
}

#[test]
fn a_number_always_gives_the_same_bytes_and_numbers_differ() {
    let corpora = Kind::ALL.map(Corpus::of);
    for number in 0..60 {
        assert_eq!(case(number, &corpora).1, case(number, &corpora).1);
        assert_eq!(case(number, &corpora).0, Kind::ALL[usize::try_from(number).unwrap() % 6]);
    }
    let different: std::collections::HashSet<Vec<u8>> = (0..600).map(|number| case(number, &corpora).1).collect();
    assert!(different.len() > 560, "{}", different.len());
}
