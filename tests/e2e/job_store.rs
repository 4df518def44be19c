//! The verbs that read the job store, on what a crawl and a webhook have put into it.

use std::io::{BufRead as _, BufReader};
use std::process::Stdio;

use serde_json::Value;

use crate::harness::{Folder, Shop};
use crate::serve::{Hook, Post};

fn lines(text: &str) -> Vec<Value> {
    text.lines().map(|line| serde_json::from_str(line).unwrap_or_else(|e| panic!("{e}: {line}"))).collect()
}

#[test]
fn a_crawl_is_read_back_with_the_verbs() {
    let folder = Folder::new();
    let shop = Shop::start(&folder, &["--products", "20", "--fast"]);
    let url = format!("url={}", shop.url);
    let crawl = |id: &str| {
        let job = format!("JOB_ID={id}");
        folder.run(&["crawl", "bookshop", "-a", &url, "-a", &job, "-o", "books.jsonl"]).with_code(0);
    };
    crawl("first");
    crawl("second");
    let run = |arguments: &[&str]| {
        let ended = folder.run(arguments);
        assert_eq!((ended.code, ended.err.as_str()), (Some(0), ""), "{arguments:?}: {ended}");
        ended.out
    };
    let jobs = lines(&run(&["jobs"]));
    assert_eq!(jobs.iter().map(|job| job["id"].as_str().unwrap()).collect::<Vec<_>>(), ["second", "first"]);
    let keys: Vec<&str> = jobs[0].as_object().unwrap().keys().map(String::as_str).collect();
    let wanted = ["id", "spider", "started", "finished", "finish_reason", "batches", "items", "requests", "logs", "bytes"];
    assert_eq!(keys, wanted);
    assert_eq!((&jobs[0]["spider"], &jobs[0]["finish_reason"]), (&"bookshop".into(), &"finished".into()));
    for kind in ["items", "requests", "logs"] {
        let (last, first) = (run(&[kind]), run(&[kind, "first"]));
        assert_eq!(last, run(&[kind, "second"]));
        assert_eq!(lines(&last).len() as u64, jobs[0][kind].as_u64().unwrap(), "{kind}");
        assert_eq!(lines(&first).len() as u64, jobs[1][kind].as_u64().unwrap(), "{kind}");
        assert!(!last.is_empty());
        assert!(last.starts_with("{\"") && last.contains("\": "), "the text of the wire: {last}");
    }
    let times: Vec<f64> = lines(&run(&["logs"])).iter().map(|log| log["index"].as_f64().unwrap()).collect();
    assert!(times.is_sorted(), "{times:?}");
    let stats = lines(&run(&["stats", "first"]));
    assert_eq!((stats.len(), &stats[0]["finish_reason"]), (1, &"finished".into()));

    let pruned = folder.run(&["jobs", "prune", "--keep", "1"]);
    assert_eq!(pruned.code, Some(0), "{pruned}");
    assert_eq!(lines(&pruned.out)[0]["id"], "first");
    pruned.says(&["deleted 1 jobs", "bytes smaller"]);
    assert_eq!(lines(&run(&["jobs"])).len(), 1);
    let said = folder.refused(&["items", "first"]);
    assert!(said.contains("\"first\"") && said.contains("it has second"), "{said}");
}

#[test]
fn the_store_is_where_the_settings_say_and_keeps_as_many_jobs_as_they_say() {
    let folder = Folder::new();
    let shop = Shop::start(&folder, &["--products", "20", "--fast"]);
    let url = format!("url={}", shop.url);
    folder.write("dragline.toml", "DATA_DIR = \"elsewhere\"\nJOBS_KEEP = 1\n");
    for job in ["JOB_ID=1", "JOB_ID=2", "JOB_ID=3"] {
        let ended = folder.run(&["crawl", "bookshop", "-a", &url, "-a", job]).with_code(0);
        assert_eq!(job == "JOB_ID=3", ended.err.contains("JOBS_KEEP"), "{ended}");
    }
    let jobs = folder.run(&["jobs"]);
    assert_eq!(lines(&jobs.out).iter().map(|job| job["id"].as_str().unwrap()).collect::<Vec<_>>(), ["3", "2"], "{jobs}");
    assert!(folder.file("elsewhere/jobs.db").exists() && !folder.file(".dragline").exists());
}

#[test]
fn a_job_of_the_webhook_is_listed_and_ends_with_its_stats() {
    let folder = Folder::new();
    let hook = Hook::start(&folder, &["--db", "in.db"]);
    let loose = r#"{"job_id": 7, "data": {"requests": [], "items": [{"x": NaN, "y": "\ud800", "z": 1180591620717411303424}], "logs": []}}"#;
    assert_eq!(hook.post(&Post::new(loose)).0, 200);
    let job = || lines(&folder.run(&["jobs", "--db", "in.db"]).out).remove(0);
    let open = job();
    assert_eq!((&open["id"], &open["spider"], &open["finished"]), (&"7".into(), &"".into(), &Value::Null));
    let stats = r#"{"job_id": 7, "data": {"stats": {"start_time": "2020-01-01T00:00:00.5+00:00", "finish_time": "2020-01-01T00:01:00+00:00", "finish_reason": "finished"}}}"#;
    assert_eq!(hook.post(&Post::new(stats)).0, 200);
    let closed = job();
    assert_eq!((&closed["finished"], &closed["finish_reason"]), (&"2020-01-01T00:01:00.000000+00:00".into(), &"finished".into()));
    assert_eq!(closed["started"], "2020-01-01T00:00:00.500000+00:00");
    let items = folder.run(&["items", "--db", "in.db"]).out;
    assert_eq!(items, "{\"x\": null, \"y\": \"\\ufffd\", \"z\": 1180591620717411303424}\n");
}

#[test]
fn without_a_store_the_verbs_say_so_and_make_none() {
    let folder = Folder::new();
    for verb in [&["jobs"][..], &["items"], &["requests"], &["logs", "7"], &["stats"], &["jobs", "prune", "--keep", "1"]] {
        let said = folder.refused(verb);
        assert!(said.contains(".dragline/jobs.db does not exist") && said.contains("--db"), "{said}");
    }
    assert!(folder.files().is_empty() && !folder.file(".dragline").exists());
}

#[test]
fn a_reader_that_leaves_early_is_no_error() {
    let folder = Folder::new();
    let hook = Hook::start(&folder, &[]);
    let items = vec!["{\"x\": \"0123456789012345678901234567890123456789\"}"; 20_000].join(", ");
    assert_eq!(hook.post(&Post::new(format!("{{\"job_id\": 7, \"data\": {{\"items\": [{items}]}}}}"))).0, 200);
    let mut child = folder.command(&["items"]).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let mut line = String::new();
    let mut out = BufReader::new(child.stdout.take().unwrap());
    out.read_line(&mut line).unwrap();
    drop(out);
    let ended = child.wait_with_output().unwrap();
    assert_eq!((ended.status.code(), ended.stderr.len()), (Some(0), 0), "{}", String::from_utf8_lossy(&ended.stderr));
    assert!(line.starts_with("{\"x\""));
}
