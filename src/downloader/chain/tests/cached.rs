//! Attempts over a scripted wire with the HTTP cache before it.

use std::path::{Path, PathBuf};

use http::Method;

use super::*;
use crate::api::middleware::{AfterResponse, Attempting, Middleware};
use crate::downloader::message::Hop;
use crate::downloader::transport::Outgoing;
use crate::settings::CachePolicy;

const A: &str = "https://shop.example/a";

fn settings(dir: &Path, policy: CachePolicy) -> Settings {
    Settings { data_dir: dir.to_owned(), httpcache_enabled: true, httpcache_policy: policy, ..Settings::default() }
}

fn stage_of(wire: &ScriptedTransport, middlewares: Vec<Installed>, settings: &Settings) -> Stage {
    Stage::of(wire.clone(), middlewares, None, DownloaderConfig::from_settings(settings), settings)
}

fn stage(wire: &ScriptedTransport, settings: &Settings) -> Stage {
    stage_of(wire, vec![], settings)
}

/// The lease of an identity without credential.
fn plain(name: &str) -> Grant {
    Grant { credential: Arc::default(), proxy: None, ..grant(name) }
}

fn reply(verdict: Verdict) -> Box<Reply> {
    match verdict {
        Verdict::Deliver(reply) | Verdict::Fail(_, Some(reply)) => reply,
        other => panic!("{other:?}"),
    }
}

/// Body and flag of what a request for `url` is given.
async fn given(stage: &Stage, url: &str) -> (String, bool) {
    let reply = reply(stage.run(&job(url), &plain("a")).await.0);
    (String::from_utf8(reply.body.to_vec()).unwrap(), reply.flags.cached)
}

fn is(body: &str, cached: bool) -> (String, bool) {
    (body.to_owned(), cached)
}

#[track_caller]
fn counts(stage: &Stage, expected: &[(&str, i64)]) {
    let names = ["hit", "miss", "store", "firsthand", "ignore", "uncacheable", "revalidate", "invalidate", "errorrecovery"];
    let found: Vec<_> =
        names.iter().map(|name| (*name, stage.stats.count(&format!("httpcache/{name}")))).filter(|(_, n)| *n > 0).collect();
    assert_eq!(found, expected);
}

fn files(dir: &Path) -> Vec<PathBuf> {
    let (mut all, mut folders) = (Vec::new(), vec![dir.to_owned()]);
    while let Some(folder) = folders.pop() {
        for path in std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()) {
            if path.is_dir() { folders.push(path) } else { all.push(path) }
        }
    }
    all.retain(|path| path.file_name().unwrap().len() == 32);
    all
}

#[tokio::test]
async fn the_dummy_policy_gives_out_what_was_stored_whatever_its_headers_say_and_so_does_the_next_run() {
    let dir = tempfile::tempdir().unwrap();
    let wire = ScriptedTransport::new();
    wire.get(
        A,
        [
            Answer::html("one").header("cache-control", "no-store").header("link", "</1>").header("link", "</2>"),
            Answer::html("two"),
        ],
    );
    for gzip in [false, true] {
        let settings = Settings { httpcache_gzip: gzip, ..settings(dir.path(), CachePolicy::Dummy) };
        let first = stage(&wire, &settings);
        if gzip {
            assert_eq!(given(&first, A).await, is("one", true), "what lies there unpacked is read");
            std::fs::remove_dir_all(dir.path().join("httpcache")).unwrap();
            continue;
        }
        assert_eq!(given(&first, A).await, is("one", false));
        assert_eq!(given(&first, A).await, is("one", true));
        counts(&first, &[("hit", 1), ("miss", 1), ("store", 1), ("firsthand", 1)]);
        let next = stage(&wire, &settings);
        let (verdict, attempt) = next.run(&job(A), &plain("a")).await;
        let reply = reply(verdict);
        assert_eq!(reply.headers.get_all("link").iter().count(), 2);
        assert_eq!((reply.headers["content-type"].as_bytes(), reply.wire_bytes), (b"text/html; charset=utf-8".as_slice(), 0));
        // Nothing was sent: there is nothing to report, and no latency to learn from.
        assert_eq!((attempt.sent_at, attempt.latency, attempt.bytes, attempt.status), (None, Duration::ZERO, 0, Some(200)));
        assert_eq!((attempt.charged, attempt.markers), (3, vec![]), "the window has the body all the same");
        assert_eq!(next.stats.count("downloader/request_count"), 0);
    }
    assert_eq!(wire.asked().len(), 1);
}

#[tokio::test]
async fn nobody_is_given_what_another_identity_was_shown() {
    let dir = tempfile::tempdir().unwrap();
    let wire = ScriptedTransport::with_default(|outgoing| Answer::html(format!("for {}", outgoing.identity.name)));
    let stage = stage(&wire, &settings(dir.path(), CachePolicy::Dummy));
    for cached in [false, true] {
        for name in ["a", "b"] {
            let reply = reply(stage.run(&job(A), &plain(name)).await.0);
            assert_eq!((&reply.body[..], reply.flags.cached), (format!("for {name}").as_bytes(), cached));
        }
    }
    let mut other_site = plain("a");
    other_site.identity.site = "other".into();
    assert!(!reply(stage.run(&job(A), &other_site).await.0).flags.cached);
}

#[tokio::test]
async fn what_is_asked_tells_answers_apart_and_spelling_does_not() {
    let dir = tempfile::tempdir().unwrap();
    let wire = ScriptedTransport::with_default(|outgoing| {
        Answer::html(format!("{} {} {}", outgoing.method, outgoing.url, String::from_utf8_lossy(&outgoing.body)))
    });
    let stage = stage(&wire, &settings(dir.path(), CachePolicy::Dummy));
    let post = |body: &'static str| {
        let mut job = job(A);
        job.request.set_method(Method::POST);
        job.request.body(body);
        job
    };
    let mut ranged = job(A);
    ranged.request.header("range", "bytes=0-1").unwrap();
    let mut passing = job(A);
    passing.request.dont_cache();
    for (job, cached) in [
        (job(A), false),
        (job("https://shop.example/a#top"), true),
        (job("https://shop.example/a?x=1&y=2"), false),
        (job("https://shop.example/a?y=2&x=1"), true),
        (job("http://shop.example/a"), false),
        (post("one"), false),
        (post("two"), false),
        (post("one"), true),
        (ranged, false),
        (passing.clone(), false),
        (passing, false),
    ] {
        let found = reply(stage.run(&job, &plain("a")).await.0).flags.cached;
        assert_eq!(found, cached, "{:?}", job.request);
    }
    assert_eq!(files(dir.path()).len(), 5);
}

#[tokio::test]
async fn without_a_network_what_is_missing_fails_and_nothing_is_sent() {
    let dir = tempfile::tempdir().unwrap();
    let wire = page();
    given(&stage(&wire, &settings(dir.path(), CachePolicy::Dummy)), A).await;
    let offline = Settings { httpcache_ignore_missing: true, ..settings(dir.path(), CachePolicy::Dummy) };
    let stage = stage(&wire, &offline);
    assert_eq!(given(&stage, A).await, is("hello", true));
    let (verdict, attempt) = stage.run(&job(PAGE), &plain("a")).await;
    assert_eq!(failed(verdict).0, FailureKind::NotCached);
    assert!(attempt.sent_at.is_none());
    assert_eq!((wire.asked().len(), stage.stats.count("httpcache/ignore")), (1, 1));
    assert!(FailureKind::NotCached.is_drop() && !FailureKind::NotCached.is_retryable());
}

#[tokio::test]
async fn an_answer_expires_by_the_setting() {
    let dir = tempfile::tempdir().unwrap();
    let wire = page();
    let settings = settings(dir.path(), CachePolicy::Dummy);
    given(&stage(&wire, &settings), A).await;
    let short = Settings { httpcache_expiration: Duration::from_nanos(1), ..settings.clone() };
    assert_eq!(given(&stage(&wire, &short), A).await, is("hello", false));
    let long = Settings { httpcache_expiration: Duration::from_secs(3600), ..settings };
    assert_eq!(given(&stage(&wire, &long), A).await, is("hello", true));
}

#[tokio::test]
async fn what_is_tried_again_is_not_kept_and_what_a_request_ended_with_is() {
    let dir = tempfile::tempdir().unwrap();
    let busy = || Answer::new(503, "busy").header("retry-after", "3600");
    let wire = ScriptedTransport::new();
    wire.get(A, [busy(), busy(), busy(), Answer::html("never asked for")]);
    let stage = stage(&wire, &settings(dir.path(), CachePolicy::Dummy));
    for attempts in 0..2 {
        let tried = Job { attempts, ..job(A) };
        assert!(matches!(stage.run(&tried, &plain("a")).await.0, Verdict::Retry { .. }));
        assert_eq!(files(dir.path()).len(), 0);
    }
    let last = Job { attempts: 2, ..job(A) };
    assert_eq!(failed(stage.run(&last, &plain("a")).await.0).0, FailureKind::HttpStatus);
    assert_eq!(files(dir.path()).len(), 1);
    // The wait that was asked for then is over, and another look gives no other answer.
    let (verdict, attempt) = stage.run(&job(A), &plain("a")).await;
    assert_eq!((attempt.retry_after, attempt.sent_at, attempt.status), (None, None, Some(503)));
    assert_eq!(failed(verdict).0, FailureKind::HttpStatus);
    assert_eq!(wire.asked().len(), 3);
    let ignoring = Settings { httpcache_ignore_http_codes: vec![404], ..settings(dir.path(), CachePolicy::Dummy) };
    let other = super::cached::stage(&wire, &ignoring);
    for _ in 0..2 {
        assert!(!reply(other.run(&job("https://shop.example/none"), &plain("a")).await.0).flags.cached);
    }
    counts(&other, &[("miss", 2), ("firsthand", 2), ("uncacheable", 2)]);
}

/// Takes every page for one that asks whether a person is there.
struct Suspicious;

impl Middleware for Suspicious {
    async fn after_response(&self, _: &mut Reply, _: Attempting<'_>) -> AfterResponse {
        AfterResponse::Retry { reason: "captcha".to_owned(), after: Some(Duration::ZERO) }
    }
}

#[tokio::test]
async fn a_stored_answer_that_a_middleware_refuses_goes_so_that_the_next_attempt_is_a_real_one() {
    let dir = tempfile::tempdir().unwrap();
    let wire = page();
    let settings = settings(dir.path(), CachePolicy::Dummy);
    given(&stage(&wire, &settings), A).await;
    let stage = stage_of(&wire, vec![Installed::new("suspicious", 500, Suspicious)], &settings);
    let (verdict, attempt) = stage.run(&job(A), &plain("a")).await;
    assert!(matches!(verdict, Verdict::Retry { .. }) && attempt.sent_at.is_none());
    let (verdict, attempt) = stage.run(&job(A), &plain("a")).await;
    assert!(matches!(verdict, Verdict::Retry { .. }) && attempt.sent_at.is_some());
    assert_eq!(files(dir.path()).len(), 0, "nor is the next one kept");
}

#[tokio::test]
async fn a_stored_redirect_is_followed() {
    let dir = tempfile::tempdir().unwrap();
    let wire = ScriptedTransport::new();
    wire.get(A, [Answer::redirect(301, "/b")]);
    let stage = stage(&wire, &settings(dir.path(), CachePolicy::Dummy));
    for _ in 0..2 {
        let Verdict::Redirect(Hop { to, .. }) = stage.run(&job(A), &plain("a")).await.0 else { panic!() };
        assert_eq!(to.as_str(), "https://shop.example/b");
    }
    assert_eq!(wire.asked().len(), 1);
}

#[tokio::test]
async fn a_page_that_redirects_to_itself_with_a_cookie_is_stored_as_it_is_after_that() {
    let dir = tempfile::tempdir().unwrap();
    let wire = ScriptedTransport::new();
    wire.get(A, [Answer::redirect(302, "/a").header("set-cookie", "s=1"), Answer::html("in")]);
    let stage = stage(&wire, &settings(dir.path(), CachePolicy::Dummy));
    let first = job(A);
    let Verdict::Redirect(Hop { to, .. }) = stage.run(&first, &plain("a")).await.0 else { panic!() };
    assert_eq!(to.as_str(), A);
    let hop = Job { hops: 1, chain: vec![first.key], ..first };
    let answer = reply(stage.run(&hop, &plain("a")).await.0);
    assert_eq!((&*answer.body, answer.flags.cached), (&b"in"[..], false));
    assert_eq!(given(&stage, A).await, is("in", true));
}

#[tokio::test]
async fn who_is_named_outside_of_the_lease_gets_nobody_elses_answer() {
    let dir = tempfile::tempdir().unwrap();
    let wire = ScriptedTransport::new();
    wire.get(A, ["nobody", "anna", "bob", "signed"].map(Answer::html));
    let stage = stage(&wire, &settings(dir.path(), CachePolicy::Dummy));
    let as_user = |name: &str| {
        let mut job = job(A);
        job.request.cookie("user", name);
        job
    };
    let mut signed = job(A);
    signed.request.header("authorization", "Bearer canary").unwrap();
    for cached in [false, true] {
        for (job, body) in [(job(A), "nobody"), (as_user("anna"), "anna"), (as_user("bob"), "bob"), (signed.clone(), "signed")] {
            let answer = reply(stage.run(&job, &plain("a")).await.0);
            assert_eq!((std::str::from_utf8(&answer.body).unwrap(), answer.flags.cached), (body, cached));
        }
    }
}

#[tokio::test]
async fn a_robots_txt_that_could_not_be_read_is_asked_for_again() {
    let dir = tempfile::tempdir().unwrap();
    let wire = ScriptedTransport::new();
    let robots = "https://shop.example/robots.txt";
    wire.get(robots, [Answer::new(500, ""), Answer::new(200, "user-agent: *\ndisallow:")]);
    let stage = stage(&wire, &Settings { retry_enabled: false, ..settings(dir.path(), CachePolicy::Dummy) });
    let mut job = job(robots);
    job.kind = JobKind::Robots;
    for (status, cached) in [(500, false), (200, false), (200, true)] {
        let reply = reply(stage.run(&job, &plain("a")).await.0);
        assert_eq!((reply.status.as_u16(), reply.flags.cached), (status, cached));
    }
}

fn canary_answer(outgoing: &Outgoing) -> Answer {
    let echo = outgoing.url.query().unwrap_or_default().to_owned();
    let page = Answer::html("page").header("set-cookie", "sid=canary-set; Path=/").header("vary", "authorization, x-own");
    match outgoing.url.path() {
        "/location" => page.header("content-location", &format!("/x?{echo}")),
        "/link" => page.header("link", &format!("</x?{echo}>; rel=next")),
        "/path" => page.header("x-echo", "a canary-a-cookie b"),
        "/body" => Answer::html(format!("<a href='/?{echo}'>")),
        "/json" => Answer::html("<script>pin = 'canary-a-json'</script>"),
        _ => page,
    }
}

#[tokio::test]
async fn no_credential_lies_on_disk() {
    for policy in [CachePolicy::Dummy, CachePolicy::Rfc9111] {
        let dir = tempfile::tempdir().unwrap();
        let wire = ScriptedTransport::with_default(|outgoing| canary_answer(outgoing).header("cache-control", "max-age=60"));
        let stage = stage(&wire, &settings(dir.path(), policy));
        let mut canaries = 0;
        for (path, stored) in
            [("plain", true), ("location", true), ("link", true), ("path", false), ("body", false), ("json", false)]
        {
            let mut job = job(&format!("https://me:canary-user@shop.example/{path}"));
            job.request.header("x-own", "canary-own").unwrap();
            for again in [false, true] {
                let reply = reply(stage.run(&job, &grant("a")).await.0);
                assert_eq!(reply.flags.cached, again && stored, "{path} {policy:?}");
                canaries += usize::from(reply.headers.contains_key("set-cookie"));
            }
        }
        assert!(canaries > 0, "the site set cookies");
        assert_eq!(stage.stats.count("httpcache/withheld"), 6, "twice each");
        assert_eq!(files(dir.path()).len(), 3);
        for path in files(dir.path()) {
            let text = String::from_utf8_lossy(&std::fs::read(&path).unwrap()).into_owned();
            assert!(text.contains("shop.example") && !text.contains("canary"), "{text}");
        }
    }
}

#[tokio::test]
async fn a_fresh_answer_is_given_out_and_a_stale_one_is_confirmed_by_the_site() {
    let dir = tempfile::tempdir().unwrap();
    let wire = ScriptedTransport::new();
    let fresh = "https://shop.example/fresh";
    wire.get(fresh, [Answer::html("fresh").header("cache-control", "max-age=60").header("age", "5"), Answer::html("other")]);
    let first = Answer::html("first").header("etag", "\"1\"").header("last-modified", "Wed, 04 Nov 2026 00:00:00 GMT");
    let same = Answer::new(304, "").header("etag", "\"1\"").header("x-confirmed", "yes").header("set-cookie", "n=2; Path=/");
    let fresh_again = Answer::new(304, "").header("cache-control", "max-age=60");
    wire.get(A, [first.header("cache-control", "no-cache").header("x-old", "1"), same, fresh_again, Answer::html("never")]);
    let stage = stage(&wire, &settings(dir.path(), CachePolicy::Rfc9111));
    assert_eq!(given(&stage, fresh).await, is("fresh", false));
    let hit = reply(stage.run(&job(fresh), &plain("a")).await.0);
    assert!(hit.flags.cached && hit.body == "fresh");
    let age: u64 = hit.headers["age"].to_str().unwrap().parse().unwrap();
    assert!((5..60).contains(&age), "{age}");
    counts(&stage, &[("hit", 1), ("miss", 1), ("store", 1), ("firsthand", 1)]);

    assert_eq!(given(&stage, A).await, is("first", false));
    let (verdict, attempt) = stage.run(&job(A), &plain("a")).await;
    let confirmed = reply(verdict);
    assert_eq!((confirmed.status.as_u16(), &confirmed.body[..], confirmed.flags.cached), (200, b"first".as_slice(), true));
    assert_eq!(
        (confirmed.headers["x-old"].as_bytes(), confirmed.headers["x-confirmed"].as_bytes()),
        (b"1".as_slice(), b"yes".as_slice())
    );
    // That one was sent, and the report says what came.
    assert!(attempt.sent_at.is_some());
    assert_eq!((attempt.status, attempt.bytes), (Some(304), 0));
    let asked = &wire.asked()[2].headers;
    assert_eq!(asked["if-none-match"], "\"1\"");
    assert_eq!(asked["if-modified-since"], "Wed, 04 Nov 2026 00:00:00 GMT");
    assert!(!wire.asked()[1].headers.contains_key("if-none-match"));

    assert_eq!(given(&stage, A).await, is("first", true));
    assert_eq!(wire.asked()[3].headers["cookie"], "n=2", "cookies of a confirmation are the jar's as well");
    assert_eq!(given(&stage, A).await, is("first", true));
    assert_eq!(wire.asked().len(), 4, "the last confirmation made it fresh");
    counts(&stage, &[("hit", 2), ("miss", 2), ("store", 4), ("firsthand", 2), ("revalidate", 2)]);
}

#[tokio::test]
async fn an_answer_that_changed_replaces_the_stored_one_or_removes_it() {
    let dir = tempfile::tempdir().unwrap();
    let wire = ScriptedTransport::new();
    let tagged = |body: &'static str, tag: &str| Answer::html(body).header("etag", tag);
    wire.get(
        A,
        [
            tagged("one", "\"1\""),
            tagged("two", "\"2\""),
            tagged("three", "\"3\"").header("cache-control", "no-store"),
            Answer::html("four"),
        ],
    );
    let stage = stage(&wire, &settings(dir.path(), CachePolicy::Rfc9111));
    for body in ["one", "two", "three", "four"] {
        assert_eq!(given(&stage, A).await, is(body, false));
    }
    let tags: Vec<_> =
        wire.asked().iter().map(|sent| sent.headers.get("if-none-match").map(|v| v.to_str().unwrap().to_owned())).collect();
    assert_eq!(tags, [None, Some("\"1\"".to_owned()), Some("\"2\"".to_owned()), None], "what is forbidden to be kept is gone");
    counts(&stage, &[("miss", 2), ("store", 2), ("firsthand", 2), ("uncacheable", 2), ("invalidate", 2)]);
    assert!(files(dir.path()).is_empty());
}

#[tokio::test]
async fn a_confirmation_of_something_else_is_no_answer() {
    let dir = tempfile::tempdir().unwrap();
    let wire = ScriptedTransport::new();
    wire.get(A, [Answer::html("one").header("etag", "\"1\""), Answer::new(304, "").header("etag", "\"9\""), Answer::html("two")]);
    let stage = stage(&wire, &settings(dir.path(), CachePolicy::Rfc9111));
    given(&stage, A).await;
    let (verdict, attempt) = stage.run(&job(A), &plain("a")).await;
    let Verdict::Retry { after, .. } = verdict else { panic!("{verdict:?}") };
    assert_eq!((after, attempt.status), (Duration::ZERO, Some(304)));
    assert_eq!(given(&stage, A).await, is("two", false));
    assert!(!wire.asked()[2].headers.contains_key("if-none-match"));
}

#[tokio::test]
async fn a_damaged_file_is_a_miss_before_a_request_and_another_request_after_a_confirmation() {
    let dir = tempfile::tempdir().unwrap();
    for policy in [CachePolicy::Dummy, CachePolicy::Rfc9111] {
        let wire = ScriptedTransport::with_default(|outgoing| match outgoing.headers.contains_key("if-none-match") {
            true => Answer::new(304, ""),
            false => Answer::html("page").header("etag", "\"1\""),
        });
        let stage = stage(&wire, &settings(dir.path(), policy));
        given(&stage, A).await;
        let path = files(dir.path()).pop().unwrap();
        let mut bytes = std::fs::read(&path).unwrap();
        *bytes.last_mut().unwrap() ^= 1;
        std::fs::write(&path, bytes).unwrap();
        if policy == CachePolicy::Rfc9111 {
            assert!(matches!(stage.run(&job(A), &plain("a")).await.0, Verdict::Retry { .. }));
        }
        assert_eq!(given(&stage, A).await, is("page", false), "{policy:?}");
        assert_eq!(stage.stats.count("httpcache/unusable"), 1);
        std::fs::remove_dir_all(dir.path().join("httpcache")).unwrap();
    }
}

#[tokio::test]
async fn a_stale_answer_stands_in_for_an_error_where_it_may() {
    let dir = tempfile::tempdir().unwrap();
    let stale = |more: &str| Answer::html("stale").header("cache-control", &format!("max-age=0{more}")).header("etag", "\"1\"");
    let (b, c) = ("https://shop.example/b", "https://shop.example/c");
    let wire = ScriptedTransport::new();
    wire.get(
        A,
        [stale(", stale-if-error=60"), Answer::new(503, "").header("retry-after", "9"), Answer::fault(FailureKind::Timeout)],
    );
    wire.get(b, [stale(""), Answer::new(503, ""), Answer::fault(FailureKind::Refused)]);
    wire.get(c, [stale(", must-revalidate"), Answer::fault(FailureKind::Refused)]);
    let stage = stage(&wire, &settings(dir.path(), CachePolicy::Rfc9111));
    for url in [A, b, c] {
        assert_eq!(given(&stage, url).await, is("stale", false));
    }
    let (verdict, attempt) = stage.run(&job(A), &plain("a")).await;
    let reply = reply(verdict);
    assert_eq!((reply.status.as_u16(), &reply.body[..], reply.flags.cached), (200, b"stale".as_slice(), true));
    assert_eq!((attempt.status, attempt.retry_after), (Some(503), Some(Duration::from_secs(9))), "the attempt was what it was");
    let (verdict, attempt) = stage.run(&job(A), &plain("a")).await;
    assert!(matches!(verdict, Verdict::Deliver(_)));
    assert_eq!(attempt.fault.unwrap().kind, FailureKind::Timeout);
    assert!(attempt.sent_at.is_some());

    assert!(matches!(stage.run(&job(b), &plain("a")).await.0, Verdict::Retry { .. }), "nothing allows it for a status");
    assert!(matches!(stage.run(&job(b), &plain("a")).await.0, Verdict::Deliver(_)), "nothing forbids it without an answer");
    assert!(matches!(stage.run(&job(c), &plain("a")).await.0, Verdict::Retry { .. }));
    assert_eq!(stage.stats.count("httpcache/errorrecovery"), 3);
}

#[tokio::test]
async fn an_answer_for_other_headers_is_not_given_out() {
    let dir = tempfile::tempdir().unwrap();
    let wire = ScriptedTransport::with_default(|outgoing| {
        let language = outgoing.headers["accept-language"].to_str().unwrap().to_owned();
        Answer::html(language).header("cache-control", "max-age=60").header("vary", "Accept-Language, X-None")
    });
    let stage = stage(&wire, &settings(dir.path(), CachePolicy::Rfc9111));
    for (language, cached) in [("en", false), ("en", true), ("de", false), ("de", true), ("en", false)] {
        let mut job = job(A);
        job.request.header("accept-language", language).unwrap();
        let reply = reply(stage.run(&job, &plain("a")).await.0);
        assert_eq!((&reply.body[..], reply.flags.cached), (language.as_bytes(), cached));
    }
}

#[tokio::test]
async fn a_request_that_may_change_something_makes_stored_answers_worthless() {
    let dir = tempfile::tempdir().unwrap();
    let wire = ScriptedTransport::with_default(|outgoing| match outgoing.method {
        Method::POST if outgoing.url.path() == "/fails" => Answer::new(400, ""),
        _ => Answer::html("page").header("cache-control", "max-age=60"),
    });
    let stage = stage(&wire, &settings(dir.path(), CachePolicy::Rfc9111));
    for (url, is_stored_after) in [(A, false), ("https://shop.example/fails", true)] {
        given(&stage, url).await;
        assert_eq!(given(&stage, url).await, is("page", true));
        let mut post = job(url);
        post.request.set_method(Method::POST);
        stage.run(&post, &plain("b")).await;
        assert_eq!(given(&stage, url).await, is("page", true), "another identity's answers are its own");
        stage.run(&post, &plain("a")).await;
        assert_eq!(given(&stage, url).await, is("page", is_stored_after), "{url}");
    }
}

#[tokio::test]
async fn a_stored_body_over_the_limit_of_this_run_is_asked_for_again() {
    let dir = tempfile::tempdir().unwrap();
    let wire = page();
    let usual = settings(dir.path(), CachePolicy::Dummy);
    given(&stage(&wire, &usual), A).await;
    let small = Settings { download_maxsize: 4, ..usual };
    let (verdict, attempt) = stage(&wire, &small).run(&job(A), &plain("a")).await;
    assert_eq!(failed(verdict).0, FailureKind::TooLarge);
    assert!(attempt.sent_at.is_some(), "the wire says so, as without a cache");
}
