//! Tables of what is stored, used, validated and stands in.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing)]

use proptest::prelude::*;

use super::*;

/// Sat, 14 Nov 2026 00:00:00 GMT.
const NOW: u64 = 1_794_614_400;

fn at(seconds: u64) -> SystemTime {
    SystemTime::UNIX_EPOCH + Duration::from_secs(NOW + seconds)
}

fn map(lines: &str) -> HeaderMap {
    let mut headers = HeaderMap::new();
    for line in lines.split('|').map(str::trim).filter(|line| !line.is_empty()) {
        let (name, value) = line.split_once(':').unwrap();
        headers.append(HeaderName::try_from(name.trim()).unwrap(), HeaderValue::from_str(value.trim()).unwrap());
    }
    headers
}

fn stored(status: u16, headers: &HeaderMap) -> Stored<'_> {
    Stored { method: &Method::GET, status: StatusCode::from_u16(status).unwrap(), headers, at: at(0) }
}

#[test]
fn what_may_be_stored() {
    for (status, request, answer, stores) in [
        (200, "", "cache-control: max-age=60", true),
        (200, "", "cache-control: private, max-age=60", true),
        (200, "authorization: Basic x", "cache-control: max-age=60", true),
        (200, "", "cache-control: no-store, max-age=60", false),
        (200, "", "Cache-Control: No-Store|cache-control: max-age=60", false),
        (200, "cache-control: no-store", "cache-control: max-age=60", false),
        (200, "", "expires: Sat, 14 Nov 2026 00:01:00 GMT", true),
        (200, "", "etag: \"a\"", true),
        (200, "", "last-modified: Fri, 13 Nov 2026 00:00:00 GMT", true),
        (200, "", "cache-control: max-age=0, stale-if-error=60", true),
        // Neither fresh for any time nor to be validated: of no use.
        (200, "", "content-type: text/html", false),
        (200, "", "cache-control: max-age=60|vary: *", false),
        (200, "", "cache-control: max-age=60|vary: accept, cookie", true),
        (404, "", "cache-control: max-age=60", true),
        (301, "", "cache-control: max-age=60", true),
        (302, "", "cache-control: max-age=60", true),
        (302, "", "etag: \"a\"", false),
        (206, "", "cache-control: max-age=60", false),
        (503, "", "cache-control: max-age=60", false),
        (599, "", "cache-control: max-age=60", false),
    ] {
        assert_eq!(may_store(&map(request), stored(status, &map(answer))), stores, "{status} {request} / {answer}");
    }
    let headers = map("cache-control: max-age=60");
    let post = Stored { method: &Method::DELETE, ..stored(200, &headers) };
    assert!(!may_store(&map(""), post));
}

#[test]
fn how_long_an_answer_is_fresh() {
    for (answer, request, after, fresh) in [
        ("cache-control: max-age=60", "", 59, true),
        ("cache-control: max-age=60", "", 60, false),
        ("cache-control: MAX-AGE=60", "", 59, true),
        ("cache-control: max-age=\"60\"", "", 59, true),
        ("cache-control: max-age=60|age: 50", "", 9, true),
        ("cache-control: max-age=60|age: 50", "", 10, false),
        // A private cache does not hear what is said to shared ones.
        ("cache-control: s-maxage=0, max-age=60", "", 59, true),
        ("cache-control: max-age=60|set-cookie: a=1", "", 59, true),
        ("cache-control: max-age=60, no-cache", "", 1, false),
        ("cache-control: max-age=60, no-cache=\"set-cookie, x\"", "", 1, false),
        ("cache-control: max-age=60, private=\"x, max-age=5\"", "", 59, true),
        ("cache-control: max-age=x", "", 0, false),
        ("cache-control: max-age=60, max-age=0", "", 1, true),
        ("cache-control: max-age=99999999999999999999999", "", 1_000_000_000, true),
        ("pragma: no-cache|expires: Sat, 14 Nov 2026 01:00:00 GMT", "", 1, false),
        ("pragma: no-cache|cache-control: max-age=60", "", 1, true),
        ("date: Sat, 14 Nov 2026 00:00:00 GMT|expires: Sat, 14 Nov 2026 01:00:00 GMT", "", 3599, true),
        ("date: Sat, 14 Nov 2026 00:00:00 GMT|expires: Sat, 14 Nov 2026 01:00:00 GMT", "", 3600, false),
        // The two older forms of a date (RFC 9110, 5.6.7).
        ("expires: Saturday, 14-Nov-26 01:00:00 GMT", "", 3599, true),
        ("expires: Sat Nov 14 01:00:00 2026", "", 3599, true),
        ("expires: 0", "", 0, false),
        ("expires: soon|last-modified: Wed, 04 Nov 2026 00:00:00 GMT", "", 0, false),
        // Ten days without a change: fresh for one.
        ("last-modified: Wed, 04 Nov 2026 00:00:00 GMT", "", 86_399, true),
        ("last-modified: Wed, 04 Nov 2026 00:00:00 GMT", "", 86_400, false),
        ("etag: \"a\"", "", 0, false),
        ("cache-control: max-age=60", "cache-control: no-cache", 1, false),
        ("cache-control: max-age=60", "pragma: no-cache", 1, false),
        ("cache-control: max-age=60", "cache-control: max-age=5", 5, true),
        ("cache-control: max-age=60", "cache-control: max-age=5", 6, false),
        ("cache-control: max-age=60", "cache-control: min-fresh=30", 30, true),
        ("cache-control: max-age=60", "cache-control: min-fresh=30", 31, false),
        ("cache-control: max-age=60", "cache-control: max-stale=30", 89, true),
        ("cache-control: max-age=60", "cache-control: max-stale=30", 90, false),
        ("cache-control: max-age=60", "cache-control: max-stale", 9_999, true),
        ("cache-control: max-age=60, must-revalidate", "cache-control: max-stale", 61, false),
    ] {
        let headers = map(answer);
        let found = may_use(stored(200, &headers), &map(request), at(after));
        assert_eq!(matches!(found, Use::Fresh(_)), fresh, "{answer} / {request} after {after}: {found:?}");
    }
    let headers = map("cache-control: max-age=60|age: 7");
    assert_eq!(may_use(stored(200, &headers), &map(""), at(3)), Use::Fresh(Duration::from_secs(10)));
}

#[test]
fn a_stale_answer_is_validated_by_what_it_has() {
    for (answer, conditions) in [
        ("etag: \"a\"", "if-none-match: \"a\""),
        ("etag: W/\"a\"", "if-none-match: W/\"a\""),
        (
            "cache-control: no-cache|last-modified: Wed, 04 Nov 2026 00:00:00 GMT",
            "if-modified-since: Wed, 04 Nov 2026 00:00:00 GMT",
        ),
        ("cache-control: no-cache|last-modified: yesterday", "if-modified-since: yesterday"),
        (
            "etag: \"a\"|cache-control: no-cache|last-modified: Wed, 04 Nov 2026 00:00:00 GMT",
            "if-none-match: \"a\"|if-modified-since: Wed, 04 Nov 2026 00:00:00 GMT",
        ),
        ("content-type: text/html", ""),
    ] {
        let headers = map(answer);
        let Use::Validate(found) = may_use(stored(200, &headers), &map(""), at(1)) else { panic!("{answer}") };
        let found: HeaderMap =
            found.into_iter().map(|(name, value)| (Some(name), value)).fold(HeaderMap::new(), |mut m, (n, v)| {
                m.append(n.unwrap(), v);
                m
            });
        assert_eq!(found, map(conditions), "{answer}");
    }
}

#[test]
fn when_a_stale_answer_stands_in_for_an_error() {
    use Trouble::{Status, Unreachable};
    for (answer, request, after, trouble, stands) in [
        ("cache-control: max-age=60", "", 1_000, Unreachable, true),
        ("cache-control: max-age=60", "", 1_000, Status, false),
        ("cache-control: max-age=60, stale-if-error=100", "", 159, Status, true),
        ("cache-control: max-age=60, stale-if-error=100", "", 160, Status, false),
        ("cache-control: max-age=60, stale-if-error=100", "", 160, Unreachable, false),
        ("cache-control: max-age=60", "cache-control: stale-if-error=100", 159, Status, true),
        ("cache-control: max-age=60, must-revalidate, stale-if-error=100", "", 61, Unreachable, false),
        ("cache-control: no-cache, stale-if-error=100", "", 1, Unreachable, false),
        ("cache-control: max-age=60", "cache-control: no-cache", 1_000, Unreachable, false),
        ("cache-control: max-age=60, stale-if-error=soon", "", 61, Status, false),
        ("etag: \"a\"", "", 1, Unreachable, true),
    ] {
        let headers = map(answer);
        let found = stands_in(stored(200, &headers), &map(request), at(after), trouble);
        assert_eq!(found, stands, "{answer} / {request} after {after}, {trouble:?}");
    }
}

#[test]
fn which_answers_of_304_confirm_the_stored_one() {
    for (stored, answer, confirms_it) in [
        ("etag: \"a\"", "etag: \"a\"", true),
        ("etag: W/\"a\"", "etag: \"a\"", true),
        ("etag: \"a\"", "etag: \"b\"", false),
        ("etag: \"a\"", "", true),
        ("etag: \"a\"|last-modified: x", "etag: \"a\"|last-modified: y", true),
        ("last-modified: x", "last-modified: x", true),
        ("last-modified: x", "last-modified: y", false),
        ("last-modified: x", "", true),
        ("last-modified: x", "etag: \"a\"", false),
        ("", "", true),
    ] {
        assert_eq!(confirms(&map(stored), &map(answer)), confirms_it, "{stored} / {answer}");
    }
}

#[test]
fn a_confirmation_replaces_headers_by_name_and_leaves_those_of_the_body() {
    let mut headers = map("link: </a>|link: </b>|content-length: 5|content-encoding: gzip|age: 99|x-old: 1|date: then");
    refresh(&mut headers, &map("link: </c>|content-length: 0|content-encoding: br|cache-control: max-age=5|date: now"));
    assert_eq!(headers, map("link: </c>|content-length: 5|content-encoding: gzip|x-old: 1|cache-control: max-age=5|date: now"));
}

#[test]
fn what_is_the_connections_and_the_jars_is_not_kept() {
    let mut headers = map(
        "connection: close, X-Hop|x-hop: 1|keep-alive: 5|set-cookie: sid=canary|set-cookie: b=c|transfer-encoding: chunked|content-type: a/b",
    );
    strip(&mut headers);
    assert_eq!(headers, map("content-type: a/b"));
}

#[test]
fn names_in_vary_are_read_once_each() {
    assert_eq!(vary(&map("vary: Accept, cookie,,|vary: ACCEPT")).unwrap(), ["accept", "cookie"]);
    assert_eq!(vary(&map("vary: accept, *")), None);
    assert!(vary(&map("")).unwrap().is_empty());
}

#[test]
fn requests_that_speak_for_themselves_are_told() {
    for (request, own) in [("if-none-match: \"a\"", true), ("range: bytes=0-1", true), ("accept: */*", false)] {
        assert_eq!(is_conditional(&map(request)), own, "{request}");
    }
    assert!(wants_only_cached(&map("cache-control: Only-If-Cached")) && !wants_only_cached(&map("cache-control: x")));
    assert!(forbids_storing(&map("cache-control: max-age=1, no-store")) && !forbids_storing(&map("cache-control: no-storey")));
}

proptest! {
    #[test]
    fn no_header_of_a_site_panics_or_overflows(
        cc in "[a-z\",=; 0-9-]{0,60}|max-age=[0-9]{1,25}", age in "[0-9]{0,25}", expires in "[ -~]{0,40}", date in "[A-Z][a-z]{2}, [0-9]{2} [A-Z][a-z]{2} [0-9]{4} 00:00:00 GMT",
        request in "[a-z=,0-9-]{0,40}|max-(age|stale)=[0-9]{1,25}", status in 100_u16..999, after in any::<u32>(), etag in "[ -~]{0,20}",
    ) {
        let mut headers = HeaderMap::new();
        for (name, value) in [(CACHE_CONTROL, &cc), (AGE, &age), (EXPIRES, &expires), (DATE, &date), (LAST_MODIFIED, &date), (ETAG, &etag)] {
            headers.insert(name, HeaderValue::from_str(value).unwrap());
        }
        let request = HeaderMap::from_iter([(CACHE_CONTROL, HeaderValue::from_str(&request).unwrap())]);
        let stored = stored(status, &headers);
        let is_stored = may_store(&request, stored);
        let now = at(u64::from(after));
        let used = may_use(stored, &request, now);
        for trouble in [Trouble::Unreachable, Trouble::Status] {
            stands_in(stored, &request, now, trouble);
        }
        prop_assert!(!(is_stored && (forbids_storing(&headers) || forbids_storing(&request))));
        if let Use::Fresh(found) = used {
            prop_assert_eq!(found, super::age(stored, now));
        }
    }
}
