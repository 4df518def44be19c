#![allow(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing, clippy::panic)]
use std::collections::HashMap;
use std::path::Path;
use std::time::Duration;

use clap::Parser as _;
use serde_json::Value;

use super::*;
use crate::apcloudy::JobId;
use crate::api::failure::FailureKind;
use crate::cli::{Cli, Verb};
use crate::run::jobdir;
use crate::scheduler::disk::{DiskOptions, DiskStore};
use crate::scheduler::job::{Job, Outcome, SlotKey};
use crate::scheduler::redis::tests::server::Server;
use crate::scheduler::store::{Cursors, Pulled, Store};
use crate::scheduler::testing::{job, with_priority};

/// Nothing that is shown may have it.
const SECRET: &str = "s3cret";

fn run_for(reader: Reader, line: &[&str]) -> Result<String, CliError> {
    let line = ["dragline", "frontier"].iter().chain(line);
    let Verb::Frontier(args) = Cli::try_parse_from(line).map_err(CliError::usage)?.verb else { panic!() };
    let mut to = Vec::new();
    frontier(&args, reader, &mut to)?;
    Ok(String::from_utf8(to).unwrap())
}

fn run(line: &[&str]) -> Result<String, CliError> {
    run_for(Reader::Program, line)
}

/// Six requests: three wait, one of them until a time, two failed, one was set aside.
fn fill(store: &mut dyn Store) {
    let mut rich = with_priority(job(0, "https://bob:s3cret@a.test/rich?page=2"), 5);
    rich.request.header("authorization", SECRET).unwrap().cookie("sid", SECRET).body(SECRET).session_key(SECRET);
    rich.parent_url = Some("https://bob:s3cret@a.test/list".into());
    let mut jobs = vec![rich];
    jobs.extend((1..6).map(|n| job(n, &format!("https://{}.test/{n}", if n < 3 { "a" } else { "b" }))));
    store.offer(&mut jobs).unwrap();
    store.advance(Cursors { start: 6, idle: 0 }).unwrap();
    let mut pull = |host: &str| -> Job {
        match store.pull(&SlotKey(host.into()), Duration::from_secs(1)).unwrap() {
            Pulled::Job(job) => *job,
            other => panic!("{other:?}"),
        }
    };
    let rich = pull("a.test");
    let (timeout, status, old) = (pull("a.test"), pull("b.test"), pull("b.test"));
    store.settle(timeout.id, Outcome::Failed(FailureKind::Timeout)).unwrap();
    store.settle(status.id, Outcome::Failed(FailureKind::HttpStatus)).unwrap();
    store.settle(old.id, Outcome::SetAside).unwrap();
    store.put_back(rich, Duration::from_secs(1_900_000_000)).unwrap();
    store.commit().unwrap();
}

fn disk(jobdir: &Path) -> DiskStore {
    DiskStore::open(&jobdir.join("frontier"), DiskOptions::default(), &HashMap::new()).unwrap().0
}

/// A JOBDIR of job 7 of spider shop.
fn jobdir() -> tempfile::TempDir {
    let dir = tempfile::tempdir().unwrap();
    jobdir::claim(dir.path(), &JobId::Number(7), "shop").unwrap();
    fill(&mut disk(dir.path()));
    dir
}

fn json_lines(text: &str) -> Vec<Value> {
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

fn sorted(values: &[Value], name: &str) -> Vec<String> {
    let mut all: Vec<String> = values.iter().map(|value| value[name].as_str().unwrap_or_default().to_owned()).collect();
    all.sort();
    all
}

#[test]
fn a_stat_tells_what_is_queued_and_what_failed() {
    let dir = jobdir();
    let path = dir.path().to_str().unwrap();
    let told = run(&["stat", path]).unwrap();
    for part in [
        "frontier, format 1",
        "job         7 of spider shop\n",
        "requests    6 taken in: 0 handled, 2 failed, 0 dropped, 1 set aside, 3 pending\n",
        "start       6 requests of start() taken in, 0 of idle\n",
        "seen        6 URLs\n",
        "queued      3 for 2 hosts\n",
        "                    2  a.test\n                    1  b.test\n",
        "oldest      https://a.test/2\n",
        "newest      https://bob:***@a.test/rich?page=2\n",
        "failed      2\n                    1  http_status\n                    1  timeout\n",
        "set aside   1\n                    1  Page\n",
    ] {
        assert!(told.contains(part), "{part:?}: {told}");
    }
    // The frontier's own directory is as good.
    let value: Value = serde_json::from_str(&run(&["stat", &format!("{path}/frontier"), "--json"]).unwrap()).unwrap();
    assert_eq!(value["books"]["pending"], 3);
    assert_eq!(
        (&value["hosts"]["a.test"], &value["failed"]["timeout"], &value["set_aside"]["Page"]),
        (&2.into(), &1.into(), &1.into())
    );
    assert_eq!((&value["job"], &value["spider"]), (&"7".into(), &"shop".into()));
    assert!(value["bytes"].as_u64().unwrap() > 0, "{value}");
}

#[test]
fn lists_are_columns_objects_or_a_table() {
    let dir = jobdir();
    let path = dir.path().to_str().unwrap();
    let queued = run(&["list", path]).unwrap();
    let lines: Vec<Vec<&str>> = queued.lines().map(|line| line.split('\t').collect()).collect();
    assert_eq!(
        lines,
        [
            ["0", "0", "0", "-", "-", "Page", "https://a.test/2"],
            ["0", "0", "0", "-", "-", "Page", "https://b.test/5"],
            ["5", "0", "0", "2030-03-17T17:46:40Z", "-", "Page", "https://bob:***@a.test/rich?page=2"],
        ]
    );
    let failed = json_lines(&run(&["list", path, "--failed", "--json"]).unwrap());
    assert_eq!(sorted(&failed, "reason"), ["http_status", "timeout"]);
    assert_eq!(failed[0]["state"], "failed");
    assert_eq!(run(&["list", path, "--set-aside"]).unwrap(), "0\t0\t0\t-\t-\tPage\thttps://b.test/4\n");
    assert_eq!(run(&["list", path, "--damaged"]).unwrap(), "");
    let part = run(&["list", path, "--limit", "1", "--offset", "1"]).unwrap();
    assert_eq!(part, "0\t0\t0\t-\t-\tPage\thttps://b.test/5\n");
    assert_eq!(run(&["list", path, "--host", "B.test"]).unwrap(), part);
    let table = run_for(Reader::Person, &["list", path, "--failed", "--reason", "timeout"]).unwrap();
    let rows: Vec<&str> = table.lines().collect();
    assert_eq!(rows[0], "priority  depth  attempts  not before            reason            step              url");
    assert_eq!(rows[1], "0         0      0         -                     timeout           Page              https://a.test/1");
    assert_eq!(rows.len(), 2);
}

#[test]
fn an_export_has_everything_and_no_secret() {
    let dir = jobdir();
    let path = dir.path().to_str().unwrap();
    let all = run(&["export", path]).unwrap();
    assert!(!all.contains(SECRET), "{all}");
    let values = json_lines(&all);
    assert_eq!(sorted(&values, "state"), ["failed", "failed", "queued", "queued", "queued", "set_aside"]);
    let rich = values.iter().find(|value| value["priority"] == 5).unwrap();
    assert_eq!(rich["headers"], serde_json::json!(["authorization"]));
    assert_eq!(rich["cookies"], serde_json::json!(["sid"]));
    assert_eq!((&rich["body_bytes"], &rich["found_on"]), (&6.into(), &"https://bob:***@a.test/list".into()));
    let file = dir.path().join("out.jsonl");
    assert_eq!(run(&["export", path, "-o", file.to_str().unwrap()]).unwrap(), "");
    assert_eq!(std::fs::read_to_string(&file).unwrap(), all);
    let nowhere = run(&["export", path, "-o", "/nowhere/out"]).unwrap_err();
    assert!(nowhere.code() == 64 && nowhere.to_string().contains("/nowhere/out"), "{nowhere}");
    for other in [run(&["stat", path]).unwrap(), run(&["list", path]).unwrap(), run(&["list", path, "--json"]).unwrap()] {
        assert!(!other.contains(SECRET), "{other}");
    }
}

#[test]
fn what_failed_is_queued_again_by_reason_and_host() {
    let dir = jobdir();
    let path = dir.path().to_str().unwrap();
    let none = run(&["retry-failed", path, "--reason", "timeout", "--host", "b.test"]).unwrap();
    assert!(none.ends_with("frontier: 0 requests that had failed are queued again\n"), "{none}");
    let one = run(&["retry-failed", path, "--reason", "timeout"]).unwrap();
    assert!(one.ends_with("frontier: 1 requests that had failed are queued again\n"), "{one}");
    let aside = run(&["retry-failed", path, "--set-aside"]).unwrap();
    assert!(aside.ends_with("frontier: 1 requests that were set aside are queued again\n"), "{aside}");
    let value: Value = serde_json::from_str(&run(&["stat", path, "--json"]).unwrap()).unwrap();
    assert_eq!(
        (&value["books"]["pending"], &value["books"]["failed"], &value["books"]["set_aside"]),
        (&5.into(), &1.into(), &0.into())
    );
    let mut store = disk(dir.path());
    assert!(store.books().balances());
    let mut urls = Vec::new();
    for host in ["a.test", "b.test"] {
        while let Pulled::Job(job) = store.pull(&SlotKey(host.into()), Duration::from_secs(2_000_000_000)).unwrap() {
            urls.push(job.url().path().to_owned());
        }
    }
    urls.sort();
    assert_eq!(urls, ["/1", "/2", "/4", "/5", "/rich"]);
}

#[test]
fn what_cannot_be_asked_is_said_with_what_to_do() {
    let dir = jobdir();
    let path = dir.path().to_str().unwrap();
    let fresh = tempfile::tempdir().unwrap();
    let fresh_path = fresh.path().to_str().unwrap();
    let other = tempfile::tempdir().unwrap();
    std::fs::write(other.path().join("notes"), "").unwrap();
    let claimed = tempfile::tempdir().unwrap();
    jobdir::claim(claimed.path(), &JobId::Number(7), "shop").unwrap();
    let open = disk(dir.path());
    for (line, parts) in [
        (&["stat", path][..], &["in use by process", "wait until that run has ended"][..]),
        (&["stat", "nowhere"], &["nowhere does not exist", "JOBDIR"]),
        (&["stat", fresh_path], &["holds no frontier"]),
        (&["list", other.path().to_str().unwrap()], &["is not a frontier", "notes"]),
        (&["list", claimed.path().to_str().unwrap()], &["JOBDIR without a frontier"]),
        (&["stat", path, "--job", "7"], &["--job is for", "leave it out"]),
        (&["pause", path], &["is a directory", "Ctrl-C"]),
        (&["forget", path], &["is a directory"]),
        (&["list", path, "--failed", "--reason", "timout"], &["did you mean \"timeout\"?", "http_status, "]),
        (&["list", path, "--reason", "timeout"], &["--failed"]),
        (&["retry-failed", path, "--reason", "handled"], &["reasons are"]),
        (&["list", path, "--failed", "--set-aside"], &["cannot be used with"]),
        (&["stat", "rediss://:s3cret@127.0.0.1/"], &["TLS"]),
        (&["stat", "http://:s3cret@127.0.0.1/"], &["redis://"]),
    ] {
        let error = run(line).unwrap_err();
        let text = error.to_string();
        assert_eq!(error.code(), 64, "{line:?}: {text}");
        assert!(parts.iter().all(|part| text.contains(part)) && !text.contains(SECRET), "{line:?}: {text}");
    }
    drop(open);
    assert_eq!(std::fs::read_dir(fresh.path()).unwrap().count(), 0, "nothing was made");
    let closed = run(&["stat", "redis://:s3cret@127.0.0.1:1/", "--job", "7"]).unwrap_err();
    assert!(closed.code() == 3 && !closed.to_string().contains(SECRET), "{closed}");
}

#[test]
fn a_job_at_a_server_is_shown_and_changed_like_one_in_a_directory() {
    let server = Server::start();
    let url = server.url().to_string();
    let at = |line: &[&str]| run(&[&line[..1], &[url.as_str(), "--job", "7"], &line[1..]].concat());
    let missing = run(&["stat", &url]).unwrap_err();
    assert!(missing.code() == 64 && missing.to_string().contains("it holds none"), "{missing}");
    assert!(at(&["stat"]).unwrap_err().to_string().contains("holds no job \"7\""));

    let mut worker = server.join("7", "one", Duration::from_secs(60));
    fill(&mut worker);
    let named = run(&["list", &url]).unwrap_err();
    assert!(named.to_string().contains("--job ID") && named.to_string().contains("it holds 7"), "{named}");
    let told = at(&["stat"]).unwrap();
    for part in [
        "job         7 of spider shop\n",
        "6 taken in: 0 handled, 2 failed, 0 dropped, 1 set aside, 3 pending\n",
        "fleet       running; start() is not finished; 0 requests came back",
        "one holds 0, heard of",
        "                    2  a.test\n                    1  b.test\n",
        "                    1  timeout\n",
        "set aside   1\n                    1  Page\n",
    ] {
        assert!(told.contains(part), "{part:?}: {told}");
    }
    assert_eq!(sorted(&json_lines(&at(&["list", "--failed", "--json"]).unwrap()), "reason"), ["http_status", "timeout"]);
    let all = at(&["export"]).unwrap();
    assert!(json_lines(&all).len() == 6 && !all.contains(SECRET), "{all}");
    assert_eq!(
        at(&["retry-failed", "--host", "b.test"]).unwrap(),
        format!("{url}: 1 requests that had failed are queued again\n")
    );
    assert_eq!(
        at(&["retry-failed", "--set-aside"]).unwrap(),
        format!("{url}: 1 requests that were set aside are queued again\n")
    );

    for (verb, told) in [
        ("pause", "paused, was running"),
        ("pause", "paused, as before"),
        ("stop", "stopping, was paused"),
        ("resume", "running, was stopping"),
    ] {
        assert_eq!(at(&[verb]).unwrap(), format!("job 7 at {url}: {told}\n"));
    }
    let alive = at(&["forget"]).unwrap_err();
    assert!(alive.code() == 64 && alive.to_string().contains("1 workers alive"), "{alive}");
    assert!(at(&["forget", "--force"]).unwrap().contains("forgotten"));
    assert!(at(&["stat"]).unwrap_err().to_string().contains("holds no job"));
}
