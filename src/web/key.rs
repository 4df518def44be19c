//! The key under which the frontier remembers that a request was seen.
//!
//! Ours alone and written to disk: 128 bits of a seeded xxh3 over method, URL and body. The seed carries the format
//! version, so a change of the rule gives other keys instead of wrong matches. Called for every link of every page,
//! therefore free of heap allocation unless a query has more than [`PAIRS_ON_STACK`] pairs.

use http::Method;
use url::{Position, Url};
use xxhash_rust::xxh3::{Xxh3, xxh3_128_with_seed};

use super::canonical::{escape, is_unreserved};

/// `"dragline"` with the format version in its last byte.
const SEED: u64 = u64::from_be_bytes(*b"draglin\x01");

/// Query pairs that are sorted without the heap.
const PAIRS_ON_STACK: usize = 24;

/// Bytes that are gathered on the stack before hashing becomes a stream.
const BUFFER: usize = 512;

/// Gives the seen key of a request.
///
/// Equal for URLs that differ in fragment, order of query pairs, spelling of percent-escapes in the path, an empty
/// query or empty pieces between `&`. Scheme, user info, host, port, path, every pair with its repetitions, method
/// and body all count.
#[must_use]
pub fn seen_key(method: &Method, url: &Url, body: &[u8]) -> u128 {
    let mut sink = Sink::new();
    sink.push(method.as_str().as_bytes());
    sink.push(&[0]);
    sink.push(url.get(..Position::BeforePath).as_bytes());
    sink.push(&[0]);
    push_path(&mut sink, url.path().as_bytes());
    sink.push(&[0]);
    push_query(&mut sink, url.query().unwrap_or_default());
    sink.push(&[0]);
    sink.push(body);
    sink.finish()
}

/// Gathers the input of the hash; both ways of hashing give the same digest.
struct Sink {
    buffer: [u8; BUFFER],
    filled: usize,
    stream: Option<Xxh3>,
}

impl Sink {
    fn new() -> Self {
        Self { buffer: [0; BUFFER], filled: 0, stream: None }
    }

    fn push(&mut self, bytes: &[u8]) {
        let end = self.filled.saturating_add(bytes.len());
        if let Some(target) = self.buffer.get_mut(self.filled..end) {
            target.copy_from_slice(bytes);
            self.filled = end;
            return;
        }
        let stream = self.stream.get_or_insert_with(|| Xxh3::with_seed(SEED));
        stream.update(self.buffer.get(..self.filled).unwrap_or_default());
        self.filled = 0;
        stream.update(bytes);
    }

    fn finish(self) -> u128 {
        let rest = self.buffer.get(..self.filled).unwrap_or_default();
        match self.stream {
            Some(mut stream) => {
                stream.update(rest);
                stream.digest128()
            }
            None => xxh3_128_with_seed(rest, SEED),
        }
    }
}

/// Writes a path with unreserved characters decoded and the other escapes in upper case (RFC 3986 6.2.2).
fn push_path(sink: &mut Sink, path: &[u8]) {
    let mut rest = path;
    while let Some(at) = memchr::memchr(b'%', rest) {
        let (before, from_percent) = rest.split_at(at);
        sink.push(before);
        let Some((&percent, after)) = from_percent.split_first() else {
            return;
        };
        rest = after;
        match escape(after) {
            Some((byte, after_escape)) => {
                rest = after_escape;
                if is_unreserved(byte) {
                    sink.push(&[byte]);
                } else if let Some((digits, _)) = after.split_first_chunk::<2>() {
                    sink.push(&[percent]);
                    sink.push(&digits.map(|digit| digit.to_ascii_uppercase()));
                }
            }
            None => sink.push(&[percent]),
        }
    }
    sink.push(rest);
}

fn push_query(sink: &mut Sink, query: &str) {
    let pieces = || query.split('&').filter(|piece| !piece.is_empty());
    if memchr::memchr(b'&', query.as_bytes()).is_none() {
        return push_pairs(sink, pieces());
    }
    let mut on_stack = [""; PAIRS_ON_STACK];
    let mut count = 0;
    for piece in pieces() {
        if let Some(slot) = on_stack.get_mut(count) {
            *slot = piece;
        }
        count += 1;
    }
    match on_stack.get_mut(..count) {
        Some(pairs) => {
            pairs.sort_unstable_by_key(|piece| name_and_rest(piece));
            push_pairs(sink, pairs.iter().copied());
        }
        None => {
            let mut pairs: Vec<&str> = pieces().collect();
            pairs.sort_unstable_by_key(|piece| name_and_rest(piece));
            push_pairs(sink, pairs.into_iter());
        }
    }
}

fn push_pairs<'a>(sink: &mut Sink, pairs: impl Iterator<Item = &'a str>) {
    for piece in pairs {
        sink.push(piece.as_bytes());
        sink.push(b"&");
    }
}

/// Sort key of a pair; the rest keeps its `=` so that `a` and `a=` stay two different pairs.
fn name_and_rest(piece: &str) -> (&str, &str) {
    piece.split_at(memchr::memchr(b'=', piece.as_bytes()).unwrap_or(piece.len()))
}

trait Part {
    fn get(&self, range: std::ops::RangeTo<Position>) -> &str;
}

impl Part for Url {
    #[allow(clippy::indexing_slicing, reason = "a URL can be cut at each of its positions")]
    fn get(&self, range: std::ops::RangeTo<Position>) -> &str {
        &self[range]
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing)]

    use proptest::prelude::*;

    use super::*;

    fn key(url: &str) -> u128 {
        seen_key(&Method::GET, &Url::parse(url).unwrap(), b"")
    }

    #[test]
    fn the_key_is_a_format_on_disk() {
        let long = format!("http://example.test/{}?b=2&a=1", "x".repeat(900));
        let many: Vec<String> = (0..40).rev().map(|n| format!("k{n}={n}")).collect();
        let golden = [
            (key("https://example.test/"), GOLDEN[0]),
            (key("http://example.test/a%2fb/%7Ec?z=1&a=2&a=1"), GOLDEN[1]),
            (key(&long), GOLDEN[2]),
            (key(&format!("http://example.test/?{}", many.join("&"))), GOLDEN[3]),
            (seen_key(&Method::POST, &Url::parse("http://example.test/form").unwrap(), b"q=1"), GOLDEN[4]),
        ];
        let ours: Vec<String> = golden.iter().map(|(key, _)| format!("0x{key:032x}")).collect();
        assert!(golden.iter().all(|(ours, expected)| ours == expected), "{ours:#?}");
    }

    const GOLDEN: [u128; 5] = [0, 0, 0, 0, 0];

    #[test]
    fn spellings_of_one_page_share_a_key() {
        for (one, other) in [
            ("HTTP://Example.TEST:80/a?b=2&a=1", "http://example.test/a?a=1&b=2"),
            ("https://example.test/%7Euser", "https://example.test/~user"),
            ("https://example.test/a%2fb", "https://example.test/a%2Fb"),
            ("https://example.test", "https://example.test/"),
            ("https://example.test/?", "https://example.test/"),
            ("https://example.test/?&", "https://example.test/"),
            ("https://example.test/x#top", "https://example.test/x"),
            (" http://a.test/x ", "http://a.test/x"),
            ("http://exampl%65.test/2", "http://example.test/2"),
            ("http://h/?a&a=&a=1", "http://h/?a=1&a=&a"),
        ] {
            assert_eq!(key(one), key(other), "{one} {other}");
        }
    }

    #[test]
    fn different_pages_have_different_keys() {
        for (one, other) in [
            ("https://example.test/a%2Fb", "https://example.test/a/b"),
            ("https://example.test/x%23y", "https://example.test/x#y"),
            ("https://example.test/x%3Fy", "https://example.test/x?y"),
            ("https://example.test/a", "https://example.test/A"),
            ("https://example.test/a", "https://example.test/a/"),
            ("https://example.test/", "http://example.test/"),
            ("https://example.test/?a=1&a=1", "https://example.test/?a=1"),
            ("https://example.test/?a", "https://example.test/?a="),
            ("https://u@example.test/", "https://example.test/"),
            ("https://example.test:8443/", "https://example.test/"),
        ] {
            assert_ne!(key(one), key(other), "{one} {other}");
        }
        let url = Url::parse("http://h/").unwrap();
        assert_ne!(seen_key(&Method::GET, &url, b""), seen_key(&Method::HEAD, &url, b""));
        assert_ne!(seen_key(&Method::POST, &url, b"a"), seen_key(&Method::POST, &url, b"b"));
    }

    proptest! {
        #[test]
        fn the_order_of_pairs_does_not_change_the_key(
            pairs in proptest::collection::vec("[a-c]{1,2}(=[a-c%]{0,3})?", 1..40),
            seed in any::<u64>(),
        ) {
            let mut shuffled = pairs.clone();
            let turn = usize::try_from(seed % 40).unwrap() % pairs.len();
            shuffled.rotate_left(turn);
            shuffled.reverse();
            let path = "p".repeat(usize::try_from(seed % 600).unwrap());
            prop_assert_eq!(
                key(&format!("http://h/{path}?{}", pairs.join("&"))),
                key(&format!("http://h/{path}?{}", shuffled.join("&")))
            );
        }

        #[test]
        fn any_other_change_gives_another_key(
            path in "[a-z/]{0,20}", pairs in proptest::collection::vec("[a-c]{1,2}=[a-c]{0,3}", 1..30), at in any::<usize>(),
        ) {
            let url = |path: &str, pairs: &[String]| format!("http://h/x{path}?{}", pairs.join("&"));
            let original = key(&url(&path, &pairs));
            prop_assert_ne!(original, key(&url(&format!("{path}q"), &pairs)));
            let mut changed = pairs.clone();
            let index = at % pairs.len();
            changed[index].push('z');
            prop_assert_ne!(original, key(&url(&path, &changed)));
            changed.remove(index);
            prop_assert_ne!(original, key(&url(&path, &changed)));
        }
    }
}
