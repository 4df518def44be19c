//! The log and the stats of a run as they reach the sink: the process from its first line to its last, in the names
//! and types of Scrapy.

use std::time::Duration;

use rustix::process::Signal;
use serde_json::{Map, Value, json};

use super::books_of_a_job::{bodies, logs};
use super::harness::{Ended, Folder};
use super::server::{Answer, Server};
use super::user_crate::start;

/// The pages of the clean crawl that Scrapy's stats were taken from: four, with two links to pages seen before.
fn clean() -> Server {
    Server::start(|asked| match asked.path() {
        "/robots.txt" => {
            Answer::Whole(200, vec![("content-type", "text/plain".to_owned())], b"User-agent: *\nAllow: /\n".to_vec())
        }
        "/1" => Answer::html("<a href=/2>b</a> <a href=/3>c</a> <a href=/4>d</a> <a href=/2>b</a> <a href=/1>a</a>"),
        _ => Answer::html("<p>no more</p>"),
    })
}

/// Runs the spider that fetches paths.
fn crawl(folder: &Folder, server: &Server, paths: &str, more: &[&str]) -> Ended {
    let (base, paths) = (format!("base={}", server.url("")), format!("paths={paths}"));
    start(folder, &[&["crawl", "paths", "-a", &base, "-a", &paths], more].concat()).end()
}

fn messages(logs: &[Value]) -> Vec<&str> {
    logs.iter().map(|log| log["message"].as_str().unwrap()).collect()
}

fn with_stats(folder: &Folder) -> Value {
    let mut bodies: Vec<Value> = bodies(folder).into_iter().filter(|body| body["data"].get("stats").is_some()).collect();
    assert_eq!(bodies.len(), 1, "the stats are sent once");
    bodies.remove(0)
}

fn stats(folder: &Folder) -> Map<String, Value> {
    with_stats(folder)["data"]["stats"].as_object().unwrap().clone()
}

fn scrapys(run: &str) -> Map<String, Value> {
    let path = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/scrapy_stats.json");
    let all: Value = serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap();
    all[run].as_object().unwrap().clone()
}

/// The JSON type as the contract names it.
fn kind(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::String(_) => "string",
        Value::Number(number) if number.is_f64() => "float",
        Value::Number(_) => "integer",
        _ => "other",
    }
}

#[test]
fn the_sink_has_the_log_from_the_first_line_to_the_last() {
    let (server, folder) = (clean(), Folder::new());
    let ended = crawl(&folder, &server, "/1", &["-s", "EXTENSIONS={\"diary\": 1}", "-a", "JOB_ID=7"]).with_code(0);
    let logs = logs(&folder);
    let said = messages(&logs);
    assert!(
        said[0].starts_with("dragline 0.1.0: spider paths, settings ")
            && said[0].ends_with("sink embedded .dragline/jobs.db, job 7"),
        "{said:#?}"
    );
    let place = |text: &str| said.iter().position(|m| *m == text).unwrap_or_else(|| panic!("no {text}: {said:#?}"));
    let order = ["Spider opened", "start: not an item", "page /2: not an item", "Closing spider (finished)"].map(place);
    assert!(order.is_sorted(), "{said:#?}");
    // What is printed when the spider closes, the dump, and the last line.
    let [printed, dump, last] = said[said.len() - 3..] else { panic!() };
    assert_eq!((printed, last), ("diary: closed because finished", "Spider closed (finished)"), "{said:#?}");
    let dumped: Value = serde_json::from_str(dump.strip_prefix("Dumping stats: ").unwrap()).unwrap();
    assert_eq!(dumped.as_object().unwrap(), &stats(&folder), "what is dumped is what is sent");

    assert!(logs.iter().map(|log| log["index"].as_u64().unwrap()).eq(0..logs.len() as u64), "{logs:#?}");
    for log in &logs {
        let keys: Vec<&String> = log.as_object().unwrap().keys().collect();
        assert_eq!(keys, ["time", "timestamp", "level", "logger", "message", "exception", "index"]);
        assert!(log["timestamp"].is_f64() && log["exception"].is_null(), "{log}");
        let printed = log["message"].as_str().unwrap().ends_with("not an item");
        assert_eq!(printed && log["logger"] == "stdout", printed, "{log}");
        assert_eq!(log["level"], "INFO", "{log}");
    }
    let closing = with_stats(&folder);
    let closing = closing["data"]["logs"].as_array().unwrap();
    assert!(messages(closing).ends_with(&[dump, last]), "the last batch has the stats and the last lines");
    ended.says(&["Dumping stats: {", "Spider closed (finished)"]);
    assert_eq!(ended.err.matches("Dumping stats").count(), 1, "{ended}");
}

#[test]
fn a_failed_callback_is_an_error_with_its_exception() {
    let server = Server::start(|asked| match asked.path() {
        "/" => Answer::html("<a class=product href=/broken>e</a> <a class=product href=/panic>f</a>"),
        _ => Answer::html("<p class=price>3.50</p>"),
    });
    let folder = Folder::new();
    folder.write_secret(
        "identities.toml",
        "[[sites]]\nname = \"shop\"\n[[sites.identities]]\nname = \"one\"\njson = { pin = 41 }\nheaders = { X-Key = \"k\" }\n",
    );
    let url = format!("url={}", server.url("/"));
    start(&folder, &["crawl", "shop", "-a", &url, "-s", "IDENTITIES=identities.toml"]).end().with_code(0);
    let logs = logs(&folder);
    let errors: Vec<&Value> = logs.iter().filter(|log| log["level"] == "ERROR").collect();
    let of = |logger: &str, what: &str| {
        let found = errors.iter().find(|log| log["logger"] == logger && log["exception"].to_string().contains(what));
        found.unwrap_or_else(|| panic!("{logger} {what}: {errors:#?}"))["exception"].as_str().unwrap()
    };
    let returned = of("dragline.engine.callback", "beyond repair");
    assert_eq!(returned, "CallbackError: this page is beyond repair");
    assert_eq!(of("dragline.engine.callback", "Panic"), "Panic: panicked: a fault of the user");

    let panic = errors.iter().find(|log| log["logger"] == "dragline.panic").unwrap();
    assert!(panic["message"].as_str().unwrap().ends_with(": a fault of the user"), "{panic}");
    let trace = panic["exception"].as_str().unwrap();
    let mut lines = trace.lines();
    assert!(lines.next().unwrap().starts_with("panicked at ") && trace.contains("shop.rs:"), "{trace}");
    assert!(lines.next().unwrap().contains("user_crate::shop::Shop"), "the first call is the user's: {trace}");
    assert!(trace.len() <= 64 * 1024 && trace.trim_end() == trace && !trace.contains("rust_begin_unwind"), "{trace}");
    assert_eq!(stats(&folder)["log_count/ERROR"], errors.len());
}

#[test]
fn a_log_that_is_off_or_in_a_file_is_delivered_all_the_same() {
    let server = clean();
    for more in [&["--nolog"][..], &["-s", "LOG_ENABLED=false"], &["--logfile", "run.log"]] {
        let folder = Folder::new();
        crawl(&folder, &server, "/1", more).with_code(0);
        let logs = logs(&folder);
        let said = messages(&logs);
        assert!(said[0].starts_with("dragline 0.1.0: ") && said.contains(&"page /3: not an item"), "{more:?} {said:#?}");
        assert_eq!(said.last(), Some(&"Spider closed (finished)"), "{more:?}");
        assert_eq!(stats(&folder)["log_count/INFO"], said.len() - 2, "{more:?}: the dump and the last line come after the count");
    }
}

#[test]
fn the_level_raises_the_threshold_and_never_lowers_it_below_info() {
    let (good, bad) = (clean(), Server::start(|_| Answer::Reset));
    let shown = |level: &str, server: &Server| {
        let folder = Folder::new();
        crawl(&folder, server, "/1", &["-L", level, "-s", "RETRY_TIMES=0", "-s", "ROBOTSTXT_OBEY=false"]);
        let levels: std::collections::BTreeSet<String> =
            logs(&folder).iter().map(|log| log["level"].as_str().unwrap().to_owned()).collect();
        let counts: Vec<String> =
            stats(&folder).keys().filter_map(|key| Some(key.strip_prefix("log_count/")?.to_owned())).collect();
        (levels.into_iter().collect::<Vec<_>>().join(" "), counts.into_iter().collect::<std::collections::BTreeSet<_>>())
    };
    let (levels, counts) = shown("DEBUG", &good);
    assert!(levels.contains("INFO") && !levels.contains("DEBUG"), "{levels}");
    assert!(counts.contains("DEBUG") && counts.contains("INFO"), "{counts:?}");
    let (levels, counts) = shown("INFO", &good);
    assert!(levels.contains("INFO") && !counts.contains("DEBUG"), "{levels} {counts:?}");
    let only = |counted: &[&str]| counted.iter().map(|level| (*level).to_owned()).collect();
    assert_eq!(shown("ERROR", &bad), ("ERROR".to_owned(), only(&["ERROR"])));
    assert_eq!(shown("CRITICAL", &bad), (String::new(), only(&[])));
}

#[test]
fn a_clean_run_has_scrapys_stats_with_scrapys_types() {
    let (server, folder) = (clean(), Folder::new());
    crawl(&folder, &server, "/1", &["-L", "DEBUG"]).with_code(0);
    let (ours, wanted) = (stats(&folder), scrapys("clean"));
    for (key, value) in &wanted {
        let found = ours.get(key).unwrap_or_else(|| panic!("{key} is missing: {ours:#?}"));
        let per_minute = key.ends_with("_per_minute");
        assert!(kind(found) == kind(value) || (per_minute && kind(found) == "float"), "{key}: {found}, Scrapy has {value}");
    }
    for key in [
        "scheduler/enqueued",
        "scheduler/enqueued/memory",
        "scheduler/dequeued",
        "scheduler/dequeued/memory",
        "downloader/request_count",
        "downloader/request_method_count/GET",
        "downloader/response_count",
        "downloader/response_status_count/200",
        "response_received_count",
        "robotstxt/request_count",
        "robotstxt/response_count",
        "robotstxt/response_status_count/200",
        "request_depth_max",
        "dupefilter/filtered",
        "finish_reason",
    ] {
        assert_eq!(ours[key], wanted[key], "{key}");
    }
    assert_eq!(ours["item_scraped_count"], 4);
    for (key, value) in [("start_time", &ours["start_time"]), ("finish_time", &ours["finish_time"])] {
        let text = value.as_str().unwrap();
        assert!(text.len() == 32 && text.ends_with("+00:00") && &text[10..11] == "T", "{key}: {text}");
    }
    assert!(ours["memusage/max"].as_i64() >= ours["memusage/startup"].as_i64());
    assert_eq!(ours.keys().next().unwrap(), "start_time", "keys are in the order of first use");
    // What Scrapy has not is ours by its name.
    let ours_alone = ["books/", "collector/", "courier/", "engine/", "lease/", "reporter/"];
    let strange: Vec<&String> = ours
        .keys()
        .filter(|key| !wanted.contains_key(*key) && !ours_alone.iter().any(|family| key.starts_with(family)))
        .collect();
    assert!(strange.is_empty(), "{strange:?}");
}

#[test]
fn a_messy_run_has_no_key_that_scrapy_would_spell_otherwise() {
    let server = Server::start(|asked| match asked.path() {
        "/robots.txt" => {
            Answer::Whole(200, vec![("content-type", "text/plain".to_owned())], b"User-agent: *\nDisallow: /private\n".to_vec())
        }
        "/moved" => Answer::moved("/1"),
        "/500" => Answer::status(500),
        "/503" => Answer::status(503),
        "/404" => Answer::status(404),
        "/reset" => Answer::Reset,
        "/slow" => Answer::Silence(Duration::from_secs(3)),
        "/short" => Answer::Raw(b"HTTP/1.1 200 OK\r\ncontent-length: 99\r\n\r\nshort".to_vec()),
        _ => Answer::html("<a href=/1>again</a><a href=/private/1>no</a><a href=http://127.0.0.1:1/refused>x</a>"),
    });
    let folder = Folder::new();
    let paths = "/1,/moved,/500,/503,/404,/reset,/slow,/short";
    let ended = crawl(
        &folder,
        &server,
        paths,
        &["-s", "RETRY_TIMES=1", "-s", "RETRY_BACKOFF=0.05", "-s", "DOWNLOAD_TIMEOUT=1", "-s", "ROBOTSTXT_OBEY=true"],
    )
    .with_code(0);
    let ours = stats(&folder);
    let class = |name: &str| format!("scrapy.exceptions.{name}");
    for (family, names) in [
        (
            "downloader/exception_type_count/",
            [
                class("DownloadTimeoutError"),
                class("DownloadFailedError"),
                class("ResponseDataLossError"),
                class("DownloadConnectionRefusedError"),
            ]
            .to_vec(),
        ),
        (
            "retry/reason_count/",
            vec![
                "500 Internal Server Error".to_owned(),
                "503 Service Unavailable".to_owned(),
                class("DownloadTimeoutError"),
                class("DownloadFailedError"),
                class("ResponseDataLossError"),
                class("DownloadConnectionRefusedError"),
            ],
        ),
        ("robotstxt/exception_count/", vec![format!("<class '{}'>", class("DownloadConnectionRefusedError"))]),
        ("httperror/response_ignored_status_count/", ["404", "500", "503"].map(str::to_owned).to_vec()),
    ] {
        let mut found: Vec<&str> = ours.keys().filter_map(|key| key.strip_prefix(family)).collect();
        let mut names: Vec<&str> = names.iter().map(String::as_str).collect();
        found.sort_unstable();
        names.sort_unstable();
        assert_eq!(found, names, "{family} {ended}");
    }
    assert_eq!((&ours["robotstxt/forbidden"], &ours["downloader/response_status_count/302"]), (&json!(1), &json!(1)));
    assert_eq!(ours["finish_reason"], "finished");
    // Whole minutes over whole seconds, as Scrapy has them.
    let seconds = ours["elapsed_time_seconds"].as_f64().unwrap().floor();
    assert!(seconds >= 1.0);
    let received = ours["response_received_count"].as_f64().unwrap();
    let per_minute = ours["responses_per_minute"].as_f64().unwrap();
    assert!((per_minute - received * 60.0 / seconds).abs() < 1e-6, "{per_minute}");
    // Every name Scrapy gave in such a run is either ours too or of something that did not happen here.
    let not_here = [
        "downloader/request_method_count/",
        "httpcompression/",
        "spider_exceptions/",
        "log_count/DEBUG",
        "scrapy.exceptions.CannotResolveHostError",
        "scrapy.exceptions.IgnoreRequest",
    ];
    let missing: Vec<String> = scrapys("messy")
        .into_iter()
        .filter(|(key, _)| !ours.contains_key(key) && !not_here.iter().any(|part| key.contains(part)))
        .map(|(key, _)| key)
        .collect();
    assert!(missing.is_empty(), "{missing:?}");
}

#[test]
fn the_end_is_named_for_what_ended_it() {
    let server =
        Server::start(|asked| Answer::html(format!("<a href={}x>on</a>", asked.path())).after(Duration::from_millis(20)));
    let folder = Folder::new();
    crawl(&folder, &server, "/1", &["-s", "CLOSESPIDER_ITEMCOUNT=3"]).with_code(0);
    assert_eq!(stats(&folder)["finish_reason"], "closespider_itemcount");
    assert_eq!(messages(&logs(&folder)).last(), Some(&"Spider closed (closespider_itemcount)"));

    let folder = Folder::new();
    let base = format!("base={}", server.url(""));
    let running = start(&folder, &["crawl", "paths", "-a", &base, "-a", "paths=/1"]);
    running.says("page /1xxx: not an item");
    running.signal(Signal::TERM);
    running.end().with_code(2);
    let logs = logs(&folder);
    let said = messages(&logs);
    assert_eq!(stats(&folder)["finish_reason"], "shutdown");
    let order =
        ["stopping: finishing what is in flight", "Closing spider (shutdown)", "Dumping stats", "Spider closed (shutdown)"]
            .map(|begin| said.iter().position(|m| m.starts_with(begin)).unwrap_or_else(|| panic!("no {begin}: {said:#?}")));
    assert!(order.is_sorted(), "{said:#?}");
}
