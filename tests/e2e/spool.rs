//! What a run could not deliver: kept over kills, full disks of its own bound, and damage.

use std::collections::{BTreeMap, HashSet};
use std::net::TcpListener;
use std::path::Path;
use std::time::Duration;

use dragline::testkit::{ScriptedWebhook, Step};
use rustix::process::Signal;
use serde_json::Value;

use super::apcloudy::{API_KEY, SECRET, deliver, spools, start};
use super::harness::{Folder, Running};
use super::server::{Answer, Server};
use super::user_crate::program;

fn counts(short: u64, long: u64) -> u64 {
    let long_tests = std::env::var_os("LONG_TESTS_OF_DRAGLINE").is_some_and(|value| value == "1");
    if long_tests { long } else { short }
}

/// An address at which nobody listens.
fn nobody() -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    format!("http://{}", listener.local_addr().unwrap())
}

fn pages() -> Server {
    Server::start(|_| Answer::html("<title>x</title>"))
}

/// Starts a crawl that notes every record in `kept` before anybody hears that it is kept.
fn start_noted(folder: &Folder, sink: &str, arguments: &[&str]) -> Running {
    let mut command = folder.command_of(program(), arguments);
    command.env("APCLOUDY_URL", sink).env("APCLOUDY_API_KEY", API_KEY).env("APCLOUDY_SECRET_KEY", SECRET);
    command.env("TEST_KEPT_FILE", folder.file("kept"));
    Running::of(command)
}

/// The records of the side file, whole lines only.
fn kept(folder: &Folder) -> Vec<Value> {
    let Ok(text) = std::fs::read_to_string(folder.file("kept")) else { return Vec::new() };
    let whole = text.rfind('\n').map_or("", |end| &text[..end]);
    let record = |line: &str| serde_json::from_str(line.split_once('\t').unwrap().1).unwrap();
    whole.lines().filter(|line| !line.is_empty()).map(record).collect()
}

fn arrived(webhook: &ScriptedWebhook) -> Vec<Value> {
    let records = webhook.records();
    [records.requests, records.items, records.logs, records.stats].concat()
}

fn texts(records: &[Value]) -> HashSet<String> {
    records.iter().map(Value::to_string).collect()
}

fn is_segment(file: &Path) -> bool {
    file.file_name().unwrap().to_string_lossy().starts_with("seg-")
}

/// Numbers without a pattern that are the same in every run.
fn moments() -> impl FnMut(u64) -> u64 {
    let mut state = 0x9e37_79b9_7f4a_7c15_u64;
    move |below| {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state % below
    }
}

#[test]
fn nothing_that_was_kept_is_lost_by_kills_at_any_moment() {
    let (folder, site, dead) = (Folder::new(), pages(), nobody());
    let mut moment = moments();
    for round in 0..counts(10, 100) {
        // Pages of its own, so that each record of each run is another.
        let base = format!("base={}", site.url(&format!("/{round}/")));
        // Every third one is the same job again, in its JOBDIR.
        let again = round % 3 == 0;
        let id = if again { "JOB_ID=again".to_owned() } else { format!("JOB_ID={round}") };
        let mut call = vec!["crawl", "seeds", "-a", &base, "-a", "count=100000", "-a", &id, "-s", "APCLOUDY_BATCH_SIZE=20"];
        call.extend(["-s", "ROBOTSTXT_OBEY=false"]);
        if again {
            call.extend(["--jobdir", "job"]);
        }
        let running = start_noted(&folder, &dead, &call);
        std::thread::sleep(Duration::from_millis(50 + moment(1500)));
        running.signal(Signal::KILL);
        assert_eq!(running.end().code, None, "killed while it crawled");
    }
    let kept = kept(&folder);
    assert!(kept.len() > 100, "only {} records were kept", kept.len());

    let webhook = ScriptedWebhook::start(SECRET).unwrap();
    let sent = deliver(&folder, &webhook.url(), &["--jobdir", "job"]);
    assert_eq!(sent.code, Some(0), "{sent}");
    let arrived = arrived(&webhook);
    let (all, there) = (texts(&kept), texts(&arrived));
    let missing: Vec<_> = all.difference(&there).collect();
    assert!(missing.is_empty(), "{} of {} are missing, for example {:?}", missing.len(), all.len(), missing.first());
    assert_eq!(there.len(), arrived.len(), "and nothing arrives under two ids");
    // A kill between the making of a directory and its card leaves it empty: a later start takes it away.
    let segments: Vec<_> =
        folder.files().into_iter().filter(|file| file.starts_with(folder.file(".dragline")) && is_segment(file)).collect();
    assert!(segments.is_empty(), "{segments:?}");
    // The index of log lines goes on over the runs of one job.
    let mut indexes: BTreeMap<String, Vec<u64>> = BTreeMap::new();
    for request in webhook.requests() {
        let body: Value = serde_json::from_slice(&request.body).unwrap();
        let logs = body["data"]["logs"].as_array().unwrap().iter().map(|log| log["index"].as_u64().unwrap());
        indexes.entry(body["job_id"].to_string()).or_default().extend(logs);
    }
    for (job, of) in indexes {
        assert_eq!(of.iter().collect::<HashSet<_>>().len(), of.len(), "an index of job {job} is used twice: {of:?}");
    }
    let again = deliver(&folder, &webhook.url(), &["--jobdir", "job"]);
    assert_eq!(again.code, Some(0), "{again}");
    assert!(again.out.contains("nothing is left to deliver"), "{again}");
}

#[test]
fn a_sink_that_is_blocked_all_the_time_costs_neither_memory_nor_records() {
    let (folder, site) = (Folder::new(), pages());
    let webhook = ScriptedWebhook::start(SECRET).unwrap();
    webhook.set_default(Step::Hang(Duration::from_secs(3600)));
    let pages = counts(3_000, 20_000);
    let (base, count) = (format!("base={}", site.url("/")), format!("count={pages}"));
    let call = ["crawl", "seeds", "-a", &base, "-a", &count, "-a", "JOB_ID=1", "-s", "CLOSE_TIMEOUT=2"];
    let ended = start(&folder, program(), &webhook.url(), &call).end().with_code(4);
    assert!(ended.high_water > 0 && ended.high_water < 150 * 1024, "{} KiB\n{ended}", ended.high_water);
    assert!(ended.row("items").contains(" kept = 0 delivered + "), "{ended}");
    ended.says(&["dragline deliver"]);

    webhook.set_default(Step::Answer(200));
    let sent = deliver(&folder, &webhook.url(), &[]);
    assert_eq!(sent.code, Some(0), "{sent}");
    assert!(sent.high_water < 150 * 1024, "{} KiB\n{sent}", sent.high_water);
    assert_eq!(webhook.records().items.len() as u64, pages);
}

#[test]
fn a_full_spool_slows_the_crawl_to_a_stop_and_it_goes_on_by_itself() {
    const BOUND: u64 = 1024 * 1024;
    let (folder, site) = (Folder::new(), pages());
    let webhook = ScriptedWebhook::start(SECRET).unwrap();
    webhook.set_default(Step::Answer(503));
    let pages = counts(8_000, 20_000);
    let (base, count) = (format!("base={}", site.url("/")), format!("count={pages}"));
    let mut call = vec!["crawl", "seeds", "-a", &base, "-a", &count, "-a", "JOB_ID=1", "-s", "SPOOL_MAX_BYTES=1MiB"];
    call.extend(["-s", "ROBOTSTXT_OBEY=false"]);
    let running = start(&folder, program(), &webhook.url(), &call);
    running.says("SPOOL_MAX_BYTES");
    // What is in flight comes in, then nothing more.
    std::thread::sleep(Duration::from_secs(3));
    let so_far = site.asked().len();
    std::thread::sleep(Duration::from_secs(3));
    assert_eq!(site.asked().len(), so_far, "the crawl stands still");
    assert!((so_far as u64) < pages);
    let on_disk: u64 = folder
        .files()
        .iter()
        .filter(|path| path.to_string_lossy().contains("/spool/"))
        .map(|path| path.metadata().unwrap().len())
        .sum();
    assert!(on_disk <= BOUND, "{on_disk} bytes lie in the spool");

    webhook.set_default(Step::Answer(200));
    let ended = running.end().with_code(0);
    assert_eq!(webhook.records().items.len() as u64, pages, "{ended}");
    assert!(ended.high_water < 150 * 1024, "{} KiB", ended.high_water);
}

#[test]
fn of_a_damaged_spool_everything_that_reads_arrives_and_the_rest_is_named() {
    let (folder, site, dead) = (Folder::new(), pages(), nobody());
    let base = format!("base={}", site.url("/"));
    let call = ["crawl", "seeds", "-a", &base, "-a", "count=100000", "-a", "JOB_ID=1", "-s", "ROBOTSTXT_OBEY=false"];
    let running = start_noted(&folder, &dead, &call);
    running.until("many records", || kept(&folder).len() > 800);
    running.signal(Signal::KILL);
    running.end();
    let before = kept(&folder);
    let spool = spools(&folder).pop().unwrap();
    let mut segments: Vec<_> = folder.files().into_iter().filter(|file| is_segment(file)).collect();
    segments.sort();
    let mut bytes = std::fs::read(&segments[0]).unwrap();
    let (third, half) = (bytes.len() / 3, bytes.len() / 2);
    bytes[third] ^= 0xff;
    bytes[half..half + 2_000].fill(0);
    std::fs::write(&segments[0], bytes).unwrap();

    let webhook = ScriptedWebhook::start(SECRET).unwrap();
    let sent = deliver(&folder, &webhook.url(), &[]);
    assert!(sent.err.contains(&spool) && sent.err.contains(".damaged"), "{sent}");
    let (all, there) = (texts(&before), texts(&arrived(&webhook)));
    let lost = all.difference(&there).count();
    assert!((1..40).contains(&lost), "{lost} of {} are lost: {sent}", all.len());
    assert_eq!(sent.code, Some(4), "a loss is no success: {sent}");
}
