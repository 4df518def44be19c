//! What goes on beside the requests: statuses, items, pipelines, signals, idle, stats.

use std::sync::{Arc, Mutex};

use serde_json::Value;

use super::SECOND;
use super::script::Do::{Broken, Error, Flush, Sleep};
use super::script::{follow, item, make, signal_text};
use super::stand::{Outcome, Stand};
use crate::api::context::Context;
use crate::api::extension::Extension;
use crate::api::pipeline::{Item, ItemPipeline, Processed};
use crate::api::request::{HandleStatus, Request};
use crate::api::signal::Signal;
use crate::api::spider::CallbackError;
use crate::testkit::transport::Answer;

const PAGE: &str = "http://a.test/page";

#[test]
fn a_status_nobody_asked_for_goes_to_failed_with_its_response() {
    let done = Stand::new()
        .start([follow(PAGE)])
        .answers(PAGE, [Answer::new(404, "not here")])
        .on_failed(PAGE, [item("from failed"), follow("http://a.test/instead")])
        .run();
    done.assert_whole();
    assert_eq!(done.said("failed"), [format!("failed http_status 404 {PAGE} x1")]);
    assert_eq!(done.ids(), ["from failed"]);
    assert_eq!(done.said("parse"), ["parse 200 http://a.test/instead"]);
    assert_eq!(done.records_of(PAGE), [(404, None)], "a status is no error in the record");
    assert_eq!(done.count("httperror/response_ignored_count"), 1);
    assert_eq!(done.count("httperror/response_ignored_status_count/404"), 1);
    assert_eq!((done.ended.books.handled, done.ended.books.failed), (1, 1));
}

#[test]
fn a_request_can_ask_for_statuses() {
    for (statuses, wanted) in [
        (HandleStatus::All, true),
        (HandleStatus::Also(vec![404]), true),
        (HandleStatus::Also(vec![500]), false),
        (HandleStatus::Successful, false),
    ] {
        let start = make(PAGE, |request| {
            request.handle_status(statuses.clone());
        });
        let done = Stand::new().start([start]).answers(PAGE, [Answer::new(404, "x")]).run();
        done.assert_whole();
        assert_eq!(!done.said("parse 404").is_empty(), wanted, "{statuses:?}");
        assert_eq!(done.said("failed").is_empty(), wanted);
    }
}

/// Notes what it sees, drops and refuses by id.
struct Stamp(&'static str, Arc<Mutex<Vec<String>>>);

impl ItemPipeline for Stamp {
    async fn process(&self, mut item: Item, _: &Context) -> Result<Processed, CallbackError> {
        let id = item["id"].as_str().unwrap_or_default().to_owned();
        self.1.lock().unwrap().push(format!("{} {id}", self.0));
        tokio::time::sleep(SECOND).await;
        if id == format!("drop at {}", self.0) {
            return Ok(Processed::Drop("not wanted".to_owned()));
        }
        if id == format!("refuse at {}", self.0) {
            return Err(CallbackError::new("cannot be priced"));
        }
        item.insert(self.0.to_owned(), Value::Bool(true));
        Ok(Processed::Keep(item))
    }
}

#[test]
fn items_pass_the_pipelines_in_order_and_each_end_is_counted() {
    let seen: Arc<Mutex<Vec<String>>> = Arc::default();
    let mut stand = Stand::new().start([follow(PAGE)]).page(
        PAGE,
        [item("good"), item("drop at first"), item("refuse at second"), Broken, item("drop at second"), item("last")],
    );
    for name in ["first", "second"] {
        stand.pipelines.push((name.to_owned(), Box::new(Stamp(name, seen.clone()))));
    }
    let done = stand.with(|s| s.concurrent_items = 1).run();
    done.assert_whole();
    assert_eq!(done.ids(), ["good", "last"]);
    assert!(done.items.iter().all(|i| i["first"] == true && i["second"] == true));
    let seen = seen.lock().unwrap().clone();
    assert_eq!(seen[..4], ["first good", "second good", "first drop at first", "first refuse at second"]);
    let tally = done.ended.tally;
    assert_eq!((tally.scraped, tally.kept, tally.dropped, tally.broken), (6, 2, 2, 2));
    assert_eq!(done.count("item_dropped_count"), 2);
    assert_eq!(done.count("item_dropped_reasons_count/second"), 1);
    assert_eq!(done.count("item_error_count"), 2);
    assert_eq!(done.ended.books.handled, 1, "an item's end is not its page's");
}

#[test]
fn as_many_items_as_the_setting_says_are_in_pipelines_at_once_and_keep_their_order() {
    for (at_once, seconds) in [(1, 10), (4, 3), (100, 1)] {
        let names: Vec<String> = (0..10).map(|n| format!("item {n}")).collect();
        let mut stand = Stand::new().start([follow(PAGE)]).page(PAGE, names.iter().map(|name| item(name)));
        stand.pipelines.push(("first".to_owned(), Box::new(Stamp("first", Arc::default()))));
        let done = stand.with(|s| s.concurrent_items = at_once).run();
        done.assert_whole();
        let order: Vec<_> = done.said("signal scraped").iter().filter_map(|line| line.split('"').nth(3)).collect();
        assert_eq!(order, names, "{at_once}");
        assert!(done.took >= SECOND * seconds && done.took < SECOND * seconds + SECOND / 2, "{at_once}: {:?}", done.took);
    }
}

struct Listener(Arc<Mutex<Vec<String>>>);

impl Extension for Listener {
    fn signal(&self, signal: &Signal<'_>, _: &Context) {
        self.0.lock().unwrap().push(signal_text(signal));
        assert!(!matches!(signal, Signal::SpiderIdle), "a listener that panics reaches nobody else");
    }
}

#[test]
fn spider_and_extensions_see_the_signals_in_order() {
    let heard: Arc<Mutex<Vec<String>>> = Arc::default();
    let mut stand = Stand::new()
        .start([follow(PAGE), follow("http://a.test/bad")])
        .page(PAGE, [item("a"), Broken])
        .page("http://a.test/bad", [Error("no")])
        .with(|s| s.concurrent_requests = 1);
    stand.extensions.push(Box::new(Listener(heard.clone())));
    let done = stand.run();
    done.assert_whole();
    let own: Vec<_> = done.said("signal ").iter().map(|line| line["signal ".len()..].to_owned()).collect();
    assert_eq!(*heard.lock().unwrap(), own);
    let expected = ["opened", r#"scraped {"id": "a"}"#, "broken ", "error http://a.test/bad Page: no", "idle", "closed finished"];
    assert_eq!(own.len(), expected.len(), "{own:?}");
    assert!(own.iter().zip(expected).all(|(own, expected)| own.starts_with(expected)), "{own:?}");
    let order: Vec<_> = done.lines.iter().map(|(_, line)| line.as_str()).collect();
    let place = |text: &str| order.iter().position(|line| *line == text).unwrap();
    assert!(place("signal opened") < place("start") && place("signal idle") < place("idle"));
}

#[test]
fn idle_goes_on_once_and_then_the_job_ends() {
    let mut stand = Stand::new().start([follow(PAGE)]).page("http://a.test/more", [item("more")]);
    stand.script.idle = Mutex::new([vec![follow("http://a.test/more"), item("of idle")]].into());
    let done = stand.run();
    done.assert_whole();
    assert_eq!(done.said("idle").len(), 2);
    assert_eq!(done.ids(), ["more", "of idle"]);
    assert_eq!(done.ended.books.enqueued, 2);
    assert_eq!(done.ended.code, 0);
}

#[test]
fn idle_that_adds_what_was_seen_or_fails_ends_the_job() {
    for list in [vec![follow(PAGE)], vec![follow("http://a.test/lost"), Error("no")], vec![Sleep(9 * SECOND)]] {
        let mut stand = Stand::new().start([follow(PAGE)]);
        stand.script.idle = Mutex::new([list.clone()].into());
        let done = stand.run();
        done.assert_whole();
        assert_eq!(done.asked.len(), 1, "{list:?}");
        assert!(done.said("idle").len() <= 2, "{list:?}");
        assert_eq!(done.ended.code, 0);
    }
}

#[test]
fn an_idle_that_commits_before_its_end_goes_on_as_well() {
    let mut stand = Stand::new().start([follow(PAGE)]);
    let lists = [
        vec![follow("http://a.test/1"), follow("http://a.test/2"), Flush],
        vec![follow("http://a.test/3"), Flush, follow("http://a.test/4")],
        vec![follow("http://a.test/5"), Flush, Error("no")],
        vec![follow("http://a.test/6")],
    ];
    stand.script.idle = Mutex::new(lists.into());
    let done = stand.run();
    done.assert_whole();
    assert_eq!((done.said("idle").len(), done.asked.len()), (5, 7));
    assert_eq!(done.ended.books.enqueued, 7);
}

#[test]
fn an_idle_that_only_ever_makes_what_was_seen_ends_the_job() {
    let mut stand = Stand::new().start([follow(PAGE)]);
    stand.script.idle = Mutex::new((0..100).map(|n| vec![follow(PAGE), item(&n.to_string())]).collect());
    let done = stand.run();
    done.assert_whole();
    assert_eq!((done.said("idle").len(), done.items.len()), (1, 1));
}

#[test]
fn each_idle_call_makes_requests_of_its_own_ids() {
    let mut stand = Stand::new().start([follow(PAGE)]);
    stand.script.idle = Mutex::new((0..5).map(|n| vec![follow(&format!("http://a.test/idle/{n}"))]).collect());
    let done = stand.run();
    done.assert_whole();
    assert_eq!((done.said("idle").len(), done.asked.len()), (6, 6));
}

#[test]
fn a_job_without_requests_is_finished_at_once() {
    let done = Stand::new().run();
    done.assert_whole();
    assert_eq!((done.ended.code, done.ended.books.enqueued), (0, 0));
    assert!(done.took < SECOND, "{:?}", done.took);
}

#[test]
fn a_step_the_spider_does_not_have_is_set_aside_and_no_other() {
    let stranger = super::script::Do::Make(Request::get("http://a.test/old", &"Gone").unwrap());
    let done = Stand::new().start([stranger, follow(PAGE)]).page(PAGE, [item("a")]).run();
    done.assert_whole();
    let books = done.ended.books;
    assert_eq!((books.handled, books.set_aside), (1, 1));
    assert_eq!(done.count("engine/set_aside"), 1);
    assert_eq!(done.records_of("http://a.test/old"), [(200, None)], "it was fetched");
}

fn clean() -> Outcome {
    Stand::new()
        .start([follow(PAGE)])
        .page(PAGE, ["1", "2", "3", "1", "2"].map(|n| follow(&format!("http://a.test/{n}"))))
        .page("http://a.test/1", [item("1")])
        .page("http://a.test/2", [item("2")])
        .page("http://a.test/3", [item("3"), Sleep(SECOND)])
        .answers("http://a.test/robots.txt", [Answer::new(200, "")])
        .with(|s| s.robotstxt_obey = true)
        .run()
}

#[test]
fn a_clean_run_has_scrapys_stats_with_its_numbers_and_types() {
    let vectors: Value = serde_json::from_str(include_str!("../../../../tests/data/scrapy_stats.json")).unwrap();
    let done = clean();
    done.assert_whole();
    let stats = &done.ended.stats;
    // Memory is not measured; log counts are the logging layer's, which is not part of the engine.
    let elsewhere = |key: &str| key.starts_with("memusage/") || key.starts_with("log_count/");
    for (key, value) in vectors["clean"].as_object().unwrap().iter().filter(|(key, _)| !elsewhere(key)) {
        let Some(own) = stats.get(key) else { panic!("{key} is missing: {stats:?}") };
        let differs = key.ends_with("_bytes") || key.contains("time") || key.ends_with("_per_minute");
        if differs {
            let kinds: Vec<_> = vectors["types"][key].as_array().unwrap().iter().filter_map(Value::as_str).collect();
            let kind = match own {
                Value::Null => "null",
                Value::String(_) => "string",
                Value::Number(n) if n.is_f64() => "float",
                Value::Number(_) => "integer",
                _ => "another",
            };
            assert!(kinds.contains(&kind), "{key}: {own}, {kinds:?}");
        } else {
            assert_eq!(own, value, "{key}");
        }
    }
    let sent = done.sent_stats.last().unwrap().as_object().unwrap();
    assert_eq!(sent["finish_reason"], "finished");
    assert_eq!(sent["item_scraped_count"], 3);
}

/// Leaves a counter behind when all is over, or panics over it.
struct LastWord(bool);

impl Extension for LastWord {
    fn signal(&self, signal: &Signal<'_>, context: &Context) {
        if let Signal::SpiderClosed { stats, .. } = signal {
            context.stats().set("last/word", stats["finish_reason"].clone());
            assert!(!self.0, "on purpose");
        }
    }
}

#[test]
fn what_listeners_count_at_the_end_is_in_the_stats_that_are_sent() {
    for panics in [false, true] {
        let mut stand = Stand::new().start([follow(PAGE)]);
        stand.extensions.push(Box::new(LastWord(panics)));
        let done = stand.run();
        done.assert_whole();
        assert_eq!(done.sent_stats.len(), 1);
        assert_eq!(done.sent_stats[0]["last/word"], "finished");
        assert!(done.took < SECOND, "nobody waits for the limit: {:?}", done.took);
    }
}
