//! Request records: which request leaves which, by `APCLOUDY_REQUEST_RECORDS`, and what stands in them.

mod table;

use std::collections::BTreeSet;

use serde_json::Value;
use table::{Row, allowed, table};

use super::fakes::Judged;
use super::restarts::Brittle;
use super::script::Do::{self, Hang, Send};
use super::script::{follow, item, make};
use super::stand::{Desk, Outcome, Stand};
use super::{MILLI, SECOND, shutdown};
use crate::api::failure::FailureKind;
use crate::plane::RefusalKind;
use crate::settings::RequestRecords;
use crate::testkit::transport::Answer;
use crate::web::canonical::wire_fingerprint;

/// The page whose callback asks for everything else.
const ROOT: &str = "http://a.test/";

/// How a test stops a job.
type Press = fn(&Desk);

fn a(path: &str) -> String {
    format!("{ROOT}{path}")
}

/// A record in one line, after a look at what all records have in common.
fn line(record: &Value) -> String {
    let text = |key: &str| record[key].as_str().unwrap_or_else(|| panic!("{key}: {record}"));
    let (url, method, status) = (text("url"), text("method"), record["status_code"].as_u64().unwrap());
    let keys: Vec<&str> = record.as_object().unwrap().keys().map(String::as_str).collect();
    let order = ["url", "parent_url", "method", "status_code", "response_time", "fingerprint", "error", "success"];
    assert_eq!(keys, order);
    assert_eq!(text("fingerprint"), wire_fingerprint(method, url));
    assert_eq!(record["success"], record["error"].is_null() && (200..300).contains(&status), "{record}");
    let parent = match record["parent_url"].as_str() {
        Some(ROOT) => String::new(),
        Some(parent) => format!(" of {parent}"),
        None => " of none".to_owned(),
    };
    let error = record["error"].as_str().map(|error| format!(" {error}")).unwrap_or_default();
    format!("{method} {status} {url}{parent}{error}")
}

/// All records but the root's own.
fn lines(done: &Outcome) -> Vec<String> {
    let root = "GET 200 http://a.test/ of none";
    let mut lines: Vec<String> = done.records.iter().map(line).filter(|line| line != root).collect();
    lines.sort();
    lines
}

#[test]
fn each_event_leaves_its_records_in_both_modes() {
    for Row { event, stand, records, only_all } in table() {
        for mode in [RequestRecords::Final, RequestRecords::All] {
            let done = stand().with(|s| s.apcloudy_request_records = mode).run();
            done.assert_whole();
            let mut expected = records.clone();
            if mode == RequestRecords::All {
                expected.extend(only_all.iter().cloned());
            }
            expected.sort();
            assert_eq!(lines(&done), expected, "{event}, {mode:?}");
        }
    }
}

#[test]
fn the_parent_is_the_page_whose_callback_asked_whatever_happens_on_the_way() {
    let forwarded = |url: &str| {
        make(url, |request| {
            request.meta("parent_url", "http://wrong.test/").meta("depth", 7);
        })
    };
    let stand = || {
        Stand::new()
            .start([follow(&a("a"))])
            .answers(&a("a"), [Answer::redirect(302, "/a2")])
            .page(&a("a2"), [forwarded(&a("b")), forwarded(&a("c"))])
            .answers(&a("b"), [Answer::new(503, ""), Answer::html("ok")])
            .answers(&a("c"), [Answer::redirect(301, "/c2")])
            .page(&a("b"), [forwarded(&a("d"))])
            .answers(&a("d"), [Answer::redirect(302, "/d2")])
            .answers(&a("d2"), [Answer::fault(FailureKind::TooLarge)])
            .on_failed(&a("d2"), [forwarded(&a("e"))])
    };
    let last = [
        "GET 0 http://a.test/d2 of http://a.test/b DownloadCancelledError: scripted too_large",
        "GET 200 http://a.test/a2 of none",
        "GET 200 http://a.test/b of http://a.test/a2",
        "GET 200 http://a.test/c2 of http://a.test/a2",
        "GET 200 http://a.test/e of http://a.test/d2",
    ];
    let before = [
        "GET 301 http://a.test/c of http://a.test/a2",
        "GET 302 http://a.test/a of none",
        "GET 302 http://a.test/d of http://a.test/b",
        "GET 503 http://a.test/b of http://a.test/a2",
    ];
    let done = stand().run();
    done.assert_whole();
    assert_eq!(lines(&done), last);
    let done = stand().with(|s| s.apcloudy_request_records = RequestRecords::All).run();
    done.assert_whole();
    assert_eq!(lines(&done), last.iter().chain(&before).map(|line| (*line).to_owned()).collect::<Vec<_>>());
}

#[test]
fn the_response_time_is_that_of_the_attempt_from_send_to_last_byte() {
    let slow = |millis: u32| Answer::html("ok").after(millis * MILLI);
    let done = Stand::new()
        .start(
            ["one", "two", "three", "foo://a.test/"]
                .map(|path| follow(&if path.contains(':') { path.to_owned() } else { a(path) })),
        )
        .answers(&a("one"), [slow(1234)])
        .answers(&a("two"), [Answer::new(503, "").after(2 * SECOND), slow(507)])
        .answers(&a("three"), [Answer::redirect(302, "/four").after(3 * SECOND)])
        .answers(&a("four"), [Answer::fault(FailureKind::TooLarge).after(66 * MILLI)])
        .judge(|_, _| Judged::GrantAfter(5 * SECOND))
        .with(|s| {
            s.concurrent_requests = 1;
            s.download_delay = 7 * SECOND;
            s.apcloudy_request_records = RequestRecords::All;
        })
        .run();
    done.assert_whole();
    let mut times: Vec<(&str, u64, f64)> = done
        .records
        .iter()
        .map(|r| (r["url"].as_str().unwrap(), r["status_code"].as_u64().unwrap(), r["response_time"].as_f64().unwrap()))
        .collect();
    times.sort_by(|x, y| x.0.cmp(y.0).then(x.1.cmp(&y.1)));
    let (one, two, three, four) = (a("one"), a("two"), a("three"), a("four"));
    let expected =
        [("foo://a.test/", 0, 0.0), (&four, 0, 0.07), (&one, 200, 1.23), (&three, 302, 3.0), (&two, 200, 0.51), (&two, 503, 2.0)];
    assert_eq!(times, expected);
}

#[test]
fn offsite_requests_of_an_offer_that_finds_no_room_are_recorded_once() {
    let urls: Vec<String> = (0..40).map(|n| if n % 2 == 0 { format!("http://b.test/{n}") } else { a(&n.to_string()) }).collect();
    let list: Vec<Do> = urls.iter().map(|url| follow(url)).chain([Do::Flush, follow("http://b.test/last")]).collect();
    let pages: Vec<String> = (0..6).map(|n| a(&format!("p/{n}"))).collect();
    let mut stand = allowed(pages.iter().map(|url| follow(url)).collect()).with(|s| {
        s.apcloudy_request_records = RequestRecords::All;
        s.frontier_max_bytes = 16 * 1024;
        s.callback_max_effects = 100;
        s.concurrent_requests = 2;
    });
    for url in &pages {
        let own = list.iter().map(|one| match one {
            Do::Follow(to) => Do::Follow(format!("{to}{}", url.rsplit('/').next().unwrap())),
            other => other.clone(),
        });
        stand = stand.page(url, own);
    }
    let done = stand.run();
    done.assert_whole();
    assert!(done.count("engine/offers_blocked") > 0);
    let offsite = done.records.iter().filter(|r| r["url"].as_str().unwrap().starts_with("http://b.test/")).count();
    assert_eq!((offsite, done.count("offsite/filtered")), (6 * 21, 6 * 21));
}

#[test]
fn a_collector_that_panics_keeps_each_record_once() {
    let pages = (0..20).map(|n| a(&n.to_string()));
    let mut stand = allowed(pages.clone().map(|url| follow(&url)).collect());
    for (n, url) in pages.enumerate() {
        stand = stand.page(&url, [item(&url), follow(&format!("http://b.test/{n}"))]);
    }
    stand.feeds.push(("brittle".to_owned(), Box::new(Brittle)));
    let done = stand.with(|s| s.apcloudy_request_records = RequestRecords::All).run();
    done.assert_sound();
    assert!(done.count("engine/reissued") >= 1, "groups were under way");
    let urls: BTreeSet<&str> = done.records.iter().map(|r| r["url"].as_str().unwrap()).collect();
    assert_eq!((done.records.len(), urls.len()), (41, 41));
}

#[test]
fn an_attempt_that_a_stop_cuts_off_leaves_a_record_and_one_that_was_not_sent_leaves_none() {
    let cut = |press: Press| {
        let paths = ["hangs", "slow", "moved", "busy late", "moved late"];
        Stand::new()
            .start(paths.iter().map(|path| follow(&a(path))).chain([follow("http://b.test/waits")]))
            .answers(&a("busy late"), [Answer::new(503, "").after(4 * SECOND)])
            .answers(&a("moved late"), [Answer::redirect(302, "/on").after(4 * SECOND)])
            .answers(&a("slow"), [Answer::hang()])
            .answers(&a("moved"), [Answer::redirect(302, "http://c.test/never")])
            .page(&a("hangs"), [item("lost"), Hang])
            .judge(|ask, _| if &*ask.site == "a.test" { Judged::Grant } else { Judged::GrantAfter(3600 * SECOND) })
            .run_and(move |desk| async move {
                tokio::time::sleep(SECOND).await;
                press(&desk);
            })
    };
    let table: [(Press, [&str; 5]); 2] = [
        (
            Desk::stop,
            [
                "GET 0 http://a.test/slow of none DownloadCancelledError: the job stopped the request",
                "GET 200 http://a.test/hangs of none",
                // Nothing follows on these in this run.
                "GET 302 http://a.test/moved of none",
                "GET 302 http://a.test/moved%20late of none",
                "GET 503 http://a.test/busy%20late of none",
            ],
        ),
        (
            Desk::kill,
            [
                "GET 0 http://a.test/busy%20late of none DownloadCancelledError: the job was stopped at once",
                "GET 0 http://a.test/moved%20late of none DownloadCancelledError: the job was stopped at once",
                "GET 0 http://a.test/slow of none DownloadCancelledError: the job was stopped at once",
                "GET 200 http://a.test/hangs of none",
                "GET 302 http://a.test/moved of none",
            ],
        ),
    ];
    for (press, expected) in table {
        let done = cut(press);
        done.assert_sound();
        assert_eq!((done.ended.books.pending, done.items.len()), (6, 0));
        assert_eq!(lines(&done), expected);
    }
}

#[test]
fn an_answer_whose_retry_or_hop_still_waits_when_the_job_stops_has_its_record() {
    // Each on a host of its own, which asks for a pause.
    const BUSY: &str = "http://b.test/busy";
    const BAD: &str = "http://e.test/bad";
    let busy = || Answer::new(503, "").header("retry-after", "200");
    for press in [Desk::stop as Press, Desk::kill] {
        let done = Stand::new()
            .start(["moved", "twice", "good"].iter().map(|path| follow(&a(path))).chain([follow(BUSY), follow(BAD)]))
            .answers(BUSY, [busy()])
            .answers(&a("moved"), [Answer::redirect(302, "http://c.test/gated")])
            .answers(&a("twice"), [Answer::new(503, ""), Answer::redirect(307, "http://d.test/gated")])
            .answers(&a("good"), [Answer::new(503, ""), Answer::html("ok")])
            .answers(BAD, [Answer::fault(FailureKind::Lost).after(MILLI), busy()])
            .judge(|ask, _| match &*ask.site {
                "a.test" | "b.test" | "e.test" => Judged::Grant,
                _ => Judged::Refuse(RefusalKind::NoIdentity, Some(3600 * SECOND)),
            })
            .run_and(move |desk| async move {
                tokio::time::sleep(10 * SECOND).await;
                press(&desk);
            });
        done.assert_sound();
        assert_eq!(done.ended.books.pending, 4);
        assert_eq!(
            lines(&done),
            [
                "GET 0 http://e.test/bad of none DownloadFailedError: scripted lost",
                "GET 200 http://a.test/good of none",
                "GET 302 http://a.test/moved of none",
                "GET 307 http://a.test/twice of none",
                "GET 503 http://b.test/busy of none",
                "GET 503 http://e.test/bad of none",
            ]
        );
    }
}

#[test]
fn whatever_state_a_stop_finds_requests_in_each_attempt_has_its_record() {
    for (name, press) in [("stop", Desk::stop as Press), ("kill", Desk::kill)] {
        for (state, stand) in shutdown::states() {
            let (done, _) = shutdown::stopped(stand.with(|s| s.apcloudy_request_records = RequestRecords::All), SECOND, press);
            done.assert_sound();
            if done.ended.delivery.undelivered_records == 0 {
                assert_eq!(done.records.len(), done.asked.len(), "{name} while {state}: {:#?}", done.records);
            }
        }
    }
}

#[test]
fn a_callback_that_waits_for_room_when_the_job_stops_has_its_record() {
    let stand = Stand::new().start([follow(&a("x")), follow(&a("y"))]).with(|s| {
        s.frontier_max_bytes = 16 * 1024;
        s.callback_max_effects = 40;
        s.download_delay = 300 * SECOND;
    });
    let stand = stand.page(&a("x"), [Send(100_000, String::new())]);
    let (done, _) = shutdown::stopped(stand, SECOND, Desk::stop);
    done.assert_sound();
    assert!(done.count("engine/offers_blocked") > 0);
    assert_eq!(lines(&done), ["GET 200 http://a.test/x of none"]);
}
