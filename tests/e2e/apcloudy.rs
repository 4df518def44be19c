//! Delivery to the APCloudy webhook, as the real binary does it against a scripted one.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use dragline::testkit::{ScriptedWebhook, Step};
use serde_json::Value;

use super::harness::{DRAGLINE, Folder, Running};
use super::server::{Answer, Server};
use super::user_crate::program;

pub(crate) const API_KEY: &str = "canary-api-key";
pub(crate) const SECRET: &str = "canary-secret-key";

/// A call of a program that delivers to `url` with keys of the environment.
pub(crate) fn start(folder: &Folder, program: &Path, url: &str, arguments: &[&str]) -> Running {
    let mut command = folder.command_of(program, arguments);
    command.env("APCLOUDY_URL", url).env("APCLOUDY_API_KEY", API_KEY).env("APCLOUDY_SECRET_KEY", SECRET);
    Running::of(command)
}

/// Sends what a folder's spools hold.
pub(crate) fn deliver(folder: &Folder, url: &str, more: &[&str]) -> super::harness::Ended {
    start(folder, Path::new(DRAGLINE), url, &[&["deliver"], more].concat()).end()
}

/// Directories below the folder of spools without a `JOBDIR`.
pub(crate) fn spools(folder: &Folder) -> Vec<String> {
    let Ok(entries) = std::fs::read_dir(folder.file(".dragline/spool")) else { return Vec::new() };
    entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect()
}

fn keys(value: &Value) -> Vec<&str> {
    value.as_object().unwrap().keys().map(String::as_str).collect()
}

/// Each page `/n` links to `/n+1`, until the switch is turned.
fn chain(end: &Arc<AtomicBool>) -> Server {
    let end = Arc::clone(end);
    Server::start(move |asked| {
        let number: u64 = asked.path().trim_start_matches('/').parse().unwrap_or(0);
        let link = if end.load(Ordering::Relaxed) { String::new() } else { format!("<a href=/{}>on</a>", number + 1) };
        Answer::html(link).after(Duration::from_millis(15))
    })
}

#[test]
fn the_documented_example_spider_delivers_the_documented_payload() {
    let webhook = ScriptedWebhook::start("your_secret_key").unwrap();
    let site = Server::start(|asked| match asked.path() {
        "/page1" => Answer::html("<h1>One é</h1><p class=price>1.00</p>"),
        "/page2" => Answer::html("<h1>Two</h1>"),
        _ => Answer::status(404),
    });
    let folder = Folder::new();
    let mut command = folder.command_of(program(), &["crawl", "myspider"]);
    command.env("TEST_WEBHOOK", format!("{}/run/", webhook.url())).env("TEST_SITE", site.url(""));
    let ended = Running::of(command).end().with_code(0);
    let lines = ended.err.lines().filter(|line| line.contains("apcloudy_pipeline.")).count();
    assert_eq!(lines, 1, "one line for all component paths: {ended}");

    let requests = webhook.requests();
    for request in &requests {
        assert_eq!(request.target, "/run/api/webhook/consume");
        assert_eq!(request.header("x-api-key"), Some("your_public_api_key"));
        assert_eq!(request.header("content-type"), Some("application/json"));
        assert!(request.is_signed && request.key().is_some_and(|key| !key.is_empty()), "{request:?}");
        let body: Value = serde_json::from_slice(&request.body).unwrap();
        assert_eq!(keys(&body), ["job_id", "data"]);
        assert_eq!(body["job_id"], Value::from(123), "a number of the spider's settings stays one");
        assert_eq!(keys(&body["data"])[..3], ["requests", "items", "logs"]);
    }
    let with_stats: Vec<bool> = requests.iter().map(|request| request.text().contains("\"stats\": {")).collect();
    assert_eq!(with_stats.iter().filter(|has| **has).count(), 1, "{with_stats:?}");

    let records = webhook.records();
    let mut items = records.items.clone();
    items.sort_by_key(|item| item["url"].to_string());
    assert_eq!(keys(&items[0]), ["title", "price", "url", "_ts"]);
    assert_eq!(
        [&items[0]["title"], &items[0]["price"], &items[1]["title"], &items[1]["price"]],
        [&Value::from("One é"), &Value::from("1.00"), &Value::from("Two"), &Value::Null]
    );
    assert_eq!(items.len(), 2);

    let wanted = ["url", "parent_url", "method", "status_code", "response_time", "fingerprint", "error", "success"];
    assert!(records.requests.iter().all(|record| keys(record) == wanted), "{:?}", records.requests);
    let told: BTreeMap<String, bool> = records
        .requests
        .iter()
        .map(|record| (record["url"].as_str().unwrap().replace(&site.url(""), ""), record["success"].as_bool().unwrap()))
        .collect();
    let expected = [("/page1", true), ("/page2", true), ("/robots.txt", false)].map(|(path, success)| (path.to_owned(), success));
    assert_eq!(told, expected.into());

    let wanted = ["time", "timestamp", "level", "logger", "message", "exception", "index"];
    assert!(records.logs.iter().all(|record| keys(record) == wanted), "{:?}", records.logs);
    let indexes: Vec<u64> = records.logs.iter().map(|record| record["index"].as_u64().unwrap()).collect();
    assert_eq!(indexes, (0..indexes.len() as u64).collect::<Vec<_>>());
    let messages: Vec<&str> = records.logs.iter().map(|record| record["message"].as_str().unwrap()).collect();
    assert!(
        messages[0].contains("spider myspider") && messages[0].contains("job 123"),
        "the first line of the run: {messages:?}"
    );
    assert!(messages.iter().any(|message| message.starts_with("Dumping stats")), "{messages:?}");
    assert!(messages.iter().any(|message| message.contains("closed (finished)")), "{messages:?}");

    let stats = &records.stats[0];
    assert_eq!((&stats["item_scraped_count"], &stats["finish_reason"]), (&Value::from(2), &Value::from("finished")));
    assert!(!folder.file(".dragline/jobs.db").exists(), "the local store has no part in it");
    assert_eq!(spools(&folder), [""; 0], "an empty spool goes with its run");
}

#[test]
fn everything_arrives_through_every_kind_of_failure_and_pages_go_on_meanwhile() {
    const CYCLES: usize = 3;
    let cycle = || {
        let busy = Step::AnswerWith { status: 429, headers: vec![("Retry-After".into(), "1".into())], body: "slow down".into() };
        [Step::Answer(500), busy, Step::Hang(Duration::from_secs(12)), Step::TakeThenReset, Step::Answer(200)]
    };
    let webhook = ScriptedWebhook::with_script(SECRET, (0..CYCLES).flat_map(|_| cycle())).unwrap();
    let end = Arc::new(AtomicBool::new(false));
    let site = chain(&end);
    let folder = Folder::new();
    let (base, paths) = (format!("base={}", site.url("")), "paths=/0");
    let call =
        ["crawl", "paths", "-a", &base, "-a", paths, "-a", "JOB_ID=outage", "-s", "APCLOUDY_BATCH_SIZE=10", "-o", "a.jsonl"];
    let running = start(&folder, program(), &webhook.url(), &call);
    running.until("all cycles", || webhook.calls() > CYCLES * cycle().len() + 2);
    end.store(true, Ordering::Relaxed);
    let ended = running.end().with_code(0);

    // Repeats carry the same id and the same body, and a batch that was taken is known by it.
    let requests = webhook.requests();
    let mut by_key: HashMap<&str, Vec<_>> = HashMap::new();
    for request in &requests {
        assert!(request.is_signed, "every try is signed anew");
        by_key.entry(request.key().unwrap()).or_default().push(request);
    }
    for repeats in by_key.values() {
        assert!(repeats.iter().all(|request| request.body == repeats[0].body), "one id, one body");
        assert!(repeats.iter().any(|request| request.is_taken));
    }
    assert_eq!(by_key.values().filter(|r| r.iter().filter(|r| r.is_taken).count() == 2).count(), CYCLES, "taken, then reset");
    assert_eq!(requests.len() - by_key.len(), 4 * CYCLES, "four failed tries a cycle");
    assert_eq!(ended.err.matches("Failed to send APCloudy batch ").count(), 4 * CYCLES, "one line each: {ended}");

    // Pages come in while the sink hangs.
    let pages = site.asked();
    let hangs = requests.iter().filter(|request| request.status.is_none() && !request.is_taken);
    for hang in hangs {
        let during = pages.iter().filter(|page| page.at > hang.at && page.at < hang.at + Duration::from_secs(8)).count();
        assert!(during > 20, "{during} pages while the sink hung");
    }

    let records = webhook.records();
    let crawled: BTreeSet<&str> = pages.iter().map(|page| page.path()).filter(|path| *path != "/robots.txt").collect();
    let item_paths: Vec<&str> = records.items.iter().map(|item| item["path"].as_str().unwrap()).collect();
    assert_eq!(item_paths.len(), crawled.len());
    assert_eq!(item_paths.into_iter().collect::<BTreeSet<_>>(), crawled);
    assert_eq!(folder.items("a.jsonl").len(), crawled.len());
    assert_eq!(records.requests.len(), crawled.len() + 1, "and robots.txt");
    let failures = records.logs.iter().filter(|log| log["message"].as_str().unwrap().starts_with("Failed to send APCloudy"));
    assert!(failures.count() >= 4, "the failures themselves are reported once it works again");
    assert_eq!(spools(&folder), [""; 0]);
}

#[test]
fn a_record_that_is_refused_costs_only_itself_and_can_be_sent_again() {
    let webhook = ScriptedWebhook::start(SECRET).unwrap();
    webhook.refuse_if(|body| body.contains("\"poison\": true").then_some(422));
    let site = Server::start(|asked| match asked.path() {
        "/7" => Answer::Whole(200, vec![("content-type", "application/json".into())], br#"{"poison": true}"#.to_vec()),
        _ => Answer::html("<p>fine</p>"),
    });
    let folder = Folder::new();
    let base = format!("base={}", site.url(""));
    let paths = format!("paths={}", (0..16).map(|n| format!("/{n}")).collect::<Vec<_>>().join(","));
    let call = ["crawl", "paths", "-a", &base, "-a", &paths, "-a", "JOB_ID=poison"];
    let ended = start(&folder, program(), &webhook.url(), &call).end().with_code(4);
    ended.says(&["Failed to send APCloudy batch ", "422", "rejected", "dragline deliver"]);
    let items = webhook.records().items;
    assert_eq!(items.len(), 15, "{items:?}");
    assert!(ended.row("items").contains("16 kept = 15 delivered + 0 in the spool + 1 refused"), "{ended}");
    let requests = webhook.records().requests;
    assert_eq!(requests.len(), 17, "the request of the page is fine");

    let spool = spools(&folder).pop().unwrap();
    let rejected: Vec<_> = std::fs::read_dir(folder.file(&format!(".dragline/spool/{spool}/rejected")))
        .unwrap()
        .map(|entry| std::fs::read_to_string(entry.unwrap().path()).unwrap())
        .collect();
    assert_eq!(rejected.len(), 1);
    let rejected: Value = serde_json::from_str(&rejected[0]).unwrap();
    assert_eq!(rejected["version"], 1);
    assert!(rejected["answer"].as_str().unwrap().contains("422"), "{rejected}");
    assert_eq!(rejected["body"]["data"]["items"][0]["poison"], true);

    webhook.refuse_if(|_| None);
    let sent = deliver(&folder, &webhook.url(), &["--rejected"]);
    assert_eq!(sent.code, Some(0), "{sent}");
    assert_eq!(webhook.records().items.len(), 16);
    assert_eq!(spools(&folder), [""; 0], "{sent}");
}

#[test]
fn a_refusal_of_everything_stops_delivery_and_not_the_crawl_unless_told_so() {
    let site = Server::start(|_| Answer::html("<p>fine</p>"));
    let base = format!("base={}", site.url(""));
    let paths = format!("paths={}", (0..40).map(|n| format!("/{n}")).collect::<Vec<_>>().join(","));
    let webhook = ScriptedWebhook::start(SECRET).unwrap();
    webhook.set_default(Step::Answer(401));
    let folder = Folder::new();
    let call = ["crawl", "paths", "-a", &base, "-a", &paths, "-a", "JOB_ID=7", "-s", "APCLOUDY_BATCH_SIZE=5"];
    let ended = start(&folder, program(), &webhook.url(), &call).end().with_code(4);
    assert_eq!(webhook.calls(), 1, "nobody is asked again and again");
    ended.says(&["401", "dragline deliver"]);
    assert!(ended.row("items").contains("40 kept = 0 delivered + 40 in the spool"), "{ended}");

    // Who forgets the variables does not empty the spool into the local store.
    let by_chance = folder.run(&["deliver"]);
    assert_eq!(by_chance.code, Some(4), "{by_chance}");
    assert!(by_chance.out.contains("meant for apcloudy http") && by_chance.out.contains("--any-sink"), "{by_chance}");
    let still = deliver(&folder, &webhook.url(), &[]);
    assert_eq!(still.code, Some(4), "{still}");
    webhook.set_default(Step::Answer(200));
    let sent = deliver(&folder, &webhook.url(), &[]);
    assert_eq!(sent.code, Some(0), "{sent}");
    let records = webhook.records();
    assert_eq!((records.items.len(), records.stats.len()), (40, 1));
    assert_eq!(webhook.requests().last().map(|last| last.text().starts_with("{\"job_id\": \"7\"")), Some(true));
    assert_eq!(spools(&folder), [""; 0]);

    webhook.set_default(Step::Answer(403));
    let end = Arc::new(AtomicBool::new(false));
    let endless = chain(&end);
    let base = format!("base={}", endless.url(""));
    let call = [
        "crawl",
        "paths",
        "-a",
        &base,
        "-a",
        "paths=/0",
        "-a",
        "JOB_ID=8",
        "-s",
        "APCLOUDY_BATCH_SIZE=5",
        "-s",
        "APCLOUDY_ON_FATAL=stop",
    ];
    start(&folder, program(), &webhook.url(), &call).end().with_code(4).says(&["403"]);
}

#[test]
fn no_secret_is_left_anywhere() {
    let site = Server::start(|_| Answer::html("<p>fine</p>"));
    let base = format!("base={}", site.url(""));
    let paths = format!("paths={}", (0..30).map(|n| format!("/{n}")).collect::<Vec<_>>().join(","));
    let (folder, mut said) = (Folder::new(), String::new());
    let webhook = ScriptedWebhook::with_script(SECRET, [Step::Answer(500), Step::Reset]).unwrap();
    webhook.refuse_if(|body| body.contains("\"/7\"").then_some(400));
    let call = [
        "crawl",
        "paths",
        "-a",
        &base,
        "-a",
        &paths,
        "-a",
        "JOB_ID=1",
        "-L",
        "DEBUG",
        "-s",
        "APCLOUDY_BATCH_SIZE=5",
        "-o",
        "a.jsonl",
    ];
    said.push_str(&start(&folder, program(), &webhook.url(), &call).end().to_string());
    let logged = [&call[..], &["--logfile", "run.log"]].concat();
    said.push_str(&start(&folder, program(), &webhook.url(), &logged).end().to_string());
    webhook.set_default(Step::Answer(401));
    said.push_str(&start(&folder, program(), &webhook.url(), &call).end().to_string());
    said.push_str(&deliver(&folder, &webhook.url(), &[]).to_string());
    said.push_str(&start(&folder, program(), &webhook.url(), &["settings"]).end().to_string());
    said.push_str(&start(&folder, program(), &webhook.url(), &["settings", "--json"]).end().to_string());
    for wrong in ["APCLOUDY_URL=", "APCLOUDY_URL=ftp://x", "APCLOUDY_BATCH_SIZE=x", "APCLOUDY_API_KEY="] {
        said.push_str(&start(&folder, program(), &webhook.url(), &[&call[..], &["-s", wrong]].concat()).end().to_string());
    }
    for request in webhook.requests() {
        assert_eq!(request.header("x-api-key"), Some(API_KEY), "the key was used");
        said.push_str(&request.text());
    }
    let mut searched = vec![("what was said".to_owned(), said.into_bytes())];
    searched.extend(folder.files().into_iter().map(|file| (file.display().to_string(), std::fs::read(&file).unwrap())));
    assert!(searched.iter().any(|(name, _)| name.contains("rejected")), "something was refused");
    assert!(searched.iter().any(|(name, _)| name.contains("seg-")), "something was left");
    for (name, bytes) in &searched {
        for canary in [API_KEY, SECRET] {
            assert_eq!(memchr::memmem::find(bytes, canary.as_bytes()), None, "{canary} is in {name}");
        }
    }
}
