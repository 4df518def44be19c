//! What is wrong in the call or the settings: told before anything starts, with what to do.

use super::harness::Folder;

const NOWHERE: &str = "url=http://127.0.0.1:1/";

#[test]
fn an_unknown_spider_is_answered_with_the_nearest() {
    let said = Folder::new().refused(&["crawl", "bookshp"]);
    assert!(said.contains("did you mean \"bookshop\"?") && said.contains("bench, bookshop, links, quotes"), "{said}");
}

#[test]
fn a_setting_with_a_slip_is_named_with_its_place_and_its_neighbour() {
    let folder = Folder::new();
    folder.write("bad.toml", "\nCONCURENT_REQUESTS = 1\n");
    folder.write("bad.yaml", "CONCURENT_REQUESTS: 1\n");
    let crawl = ["crawl", "bookshop", "-a", NOWHERE];
    for (more, place) in [
        (&["-s", "CONCURENT_REQUESTS=1"][..], "-s"),
        (&["-c", "bad.toml"], "bad.toml, line 2"),
        (&["-c", "bad.yaml"], "bad.yaml"),
    ] {
        let said = folder.refused(&[&crawl[..], more].concat());
        assert!(said.contains("did you mean CONCURRENT_REQUESTS?") && said.contains(place), "{said}");
    }
    let mut command = folder.command(&crawl);
    command.env("DRAGLINE_CONCURENT_REQUESTS", "1");
    let ended = super::harness::Running::of(command).end();
    assert_eq!(ended.code, Some(64), "{ended}");
    ended.says(&["environment variable DRAGLINE_CONCURENT_REQUESTS", "did you mean CONCURRENT_REQUESTS?"]);
    assert_eq!(folder.files().len(), 2, "nothing was started: {:?}", folder.files());
}

#[test]
fn a_bad_value_is_answered_with_what_is_allowed() {
    let folder = Folder::new();
    for (pair, parts) in [
        ("CONCURRENT_REQUESTS=none", &["CONCURRENT_REQUESTS", "none", "whole number from 1 to 100000"][..]),
        ("CONCURRENT_REQUESTS=0", &["CONCURRENT_REQUESTS", "1 to 100000"]),
        ("DOWNLOAD_DELAY=-1", &["DOWNLOAD_DELAY", "seconds"]),
        ("LOG_LEVEL=LOUD", &["LOG_LEVEL", "DEBUG"]),
        ("GRACE=20", &["GRACE", "CLOSE_TIMEOUT", "25"]),
    ] {
        let said = folder.refused(&["crawl", "bookshop", "-a", NOWHERE, "-s", pair]);
        assert!(parts.iter().all(|part| said.contains(part)), "{pair}: {said}");
    }
}

#[test]
fn a_settings_file_that_cannot_be_read_is_named() {
    let folder = Folder::new();
    folder.write("torn.toml", "a = [");
    for (file, parts) in [
        ("nowhere.toml", &["nowhere.toml", "cannot be read"][..]),
        (".", &["cannot be read"]),
        ("torn.toml", &["torn.toml", "line 1", "does not parse"]),
    ] {
        let said = folder.refused(&["crawl", "bookshop", "-a", NOWHERE, "-c", file]);
        assert!(parts.iter().all(|part| said.contains(part)), "{file}: {said}");
    }
}

#[test]
fn spider_arguments_are_checked_before_the_start() {
    let folder = Folder::new();
    for (arguments, parts) in [
        (&[][..], &["\"url\" is missing", "-a url=VALUE"][..]),
        (&["-a", NOWHERE, "-a", "pages=1"], &["\"pages\" is unknown", "takes url"]),
        (&["-a", "url"], &["-a NAME=VALUE"]),
        (&["-a", "url=shop"], &["url is \"shop\"", "http://"]),
    ] {
        let said = folder.refused(&[&["crawl", "bookshop"], arguments].concat());
        assert!(parts.iter().all(|part| said.contains(part)), "{said}");
    }
    assert!(folder.files().is_empty(), "nothing was started: {:?}", folder.files());
}

#[test]
fn what_this_version_does_not_do_is_said() {
    let folder = Folder::new();
    let said = folder.refused(&["crawl", "bookshop", "-a", NOWHERE, "-s", "FRONTIER=rediss://:s3cret@127.0.0.1/"]);
    assert!(said.contains("FRONTIER") && !said.contains("s3cret"), "{said}");
}

#[test]
fn a_frontier_that_is_not_there_is_answered_with_what_to_give() {
    let folder = Folder::new();
    folder.write("other/notes.txt", "mine");
    for (call, parts) in [
        (&["stat"][..], &["JOBDIR", "--job ID"][..]),
        (&["stat", "nowhere"], &["nowhere does not exist"]),
        (&["list", "other"], &["is not a frontier", "notes.txt"]),
        (&["export", "."], &["is not a frontier"]),
        (&["retry-failed", "other", "--reason", "timout"], &["did you mean \"timeout\"?"]),
        (&["pause", "other"], &["is a directory"]),
        (&["stat", "redis://:s3cret@127.0.0.1/x", "--job", "7"], &["redis://"]),
    ] {
        let said = folder.refused(&[&["frontier"], call].concat());
        assert!(parts.iter().all(|part| said.contains(part)) && !said.contains("s3cret"), "{call:?}: {said}");
    }
    assert_eq!(folder.files().len(), 1, "nothing was made: {:?}", folder.files());
}

#[test]
fn the_frontier_of_a_crawl_is_shown_and_its_failed_requests_go_back() {
    let folder = Folder::new();
    let crawl =
        ["crawl", "bookshop", "-a", NOWHERE, "-s", "RETRY_ENABLED=false", "-s", "ROBOTSTXT_OBEY=false", "--jobdir", "job"];
    let ended = folder.run(&crawl);
    assert_eq!(ended.code, Some(3), "{ended}");
    let listed = folder.run(&["frontier", "list", "job", "--failed"]);
    assert_eq!(listed.code, Some(0), "{listed}");
    let columns: Vec<&str> = listed.out.trim_end().split('\t').collect();
    assert_eq!((columns.len(), columns[4], columns[6]), (7, "refused", "http://127.0.0.1:1/"), "{listed}");
    let back = folder.run(&["frontier", "retry-failed", "job"]);
    assert!(back.code == Some(0) && back.out.contains("1 requests that had failed are queued again"), "{back}");
    let stat = folder.run(&["frontier", "stat", "--json", "-s"]);
    assert_eq!(stat.code, Some(64), "no settings are taken: {stat}");
    let mut command = folder.command(&["frontier", "stat", "--json"]);
    command.env("DRAGLINE_JOBDIR", "job");
    let stat = super::harness::Running::of(command).end();
    let value: serde_json::Value = serde_json::from_str(&stat.out).unwrap();
    assert_eq!((&value["books"]["pending"], &value["books"]["failed"]), (&1.into(), &0.into()), "{stat}");
    assert_eq!(value["spider"], "bookshop");
    let again = folder.run(&crawl);
    assert_eq!(again.code, Some(3), "{again}");
    let stats: serde_json::Value = serde_json::from_str(&folder.run(&["stats"]).out).unwrap();
    assert_eq!(stats["downloader/request_count"], 2, "both runs asked for it: {stats}");
}

#[test]
fn identities_that_cannot_be_used_end_the_start() {
    let folder = Folder::new();
    folder.write_secret("bad.toml", "[[sites]]\nnme = \"x\"\n");
    folder.write_secret("twice.toml", "[[sites]]\nname = \"x\"\n[[sites]]\nname = \"x\"\n");
    for (file, parts) in [
        ("nowhere.toml", &["nowhere.toml", "cannot be read", "IDENTITIES"][..]),
        ("bad.toml", &["bad.toml:2", "nme"]),
        ("twice.toml", &["twice.toml", "\"x\""]),
    ] {
        let said = folder.refused(&["crawl", "bookshop", "-a", NOWHERE, "-s", &format!("IDENTITIES={file}")]);
        assert!(parts.iter().all(|part| said.contains(part)), "{said}");
    }
}

#[test]
fn places_that_cannot_be_written_are_bad_usage() {
    let folder = Folder::new();
    folder.write("file", "");
    for (more, parts) in [
        (&["-s", "DATA_DIR=file/below"][..], &["file/below", "DATA_DIR"][..]),
        (&["-o", "file/books.jsonl"], &["file/books.jsonl", "folder"]),
        (&["-o", "nowhere/books.csv"], &["nowhere/books.csv", "folder"]),
        (&["--logfile", "file/x.log"], &["file/x.log", "LOG_FILE"]),
    ] {
        let said = folder.refused(&[&["crawl", "bookshop", "-a", NOWHERE][..], more].concat());
        assert!(parts.iter().all(|part| said.contains(part)), "{said}");
    }
}

#[test]
fn a_store_of_a_newer_version_or_of_something_else_is_left_alone() {
    let folder = Folder::new();
    let ended = folder.run(&["crawl", "bookshop", "-a", NOWHERE, "-s", "RETRY_ENABLED=false"]);
    assert_eq!(ended.code, Some(3), "{ended}");
    let store = folder.file(".dragline/jobs.db");
    rusqlite::Connection::open(&store).unwrap().pragma_update(None, "user_version", 99).unwrap();
    let before = std::fs::read(&store).unwrap();
    let said = folder.refused(&["crawl", "bookshop", "-a", NOWHERE]);
    assert!(said.contains("version 99") && said.contains("newer program"), "{said}");
    assert_eq!(std::fs::read(&store).unwrap(), before);

    std::fs::write(&store, "this is no database, however long it is").unwrap();
    let said = folder.refused(&["crawl", "bookshop", "-a", NOWHERE]);
    assert!(said.contains("jobs.db") && said.contains("not a readable job store"), "{said}");

    std::fs::remove_file(&store).unwrap();
    rusqlite::Connection::open(&store).unwrap().execute_batch("CREATE TABLE notes (id TEXT)").unwrap();
    let said = folder.refused(&["crawl", "bookshop", "-a", NOWHERE]);
    assert!(said.contains("jobs.db") && said.contains("no job store"), "{said}");
}

#[test]
fn a_port_in_use_is_said_with_what_to_do() {
    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let port = taken.local_addr().unwrap().port().to_string();
    let said = Folder::new().refused(&["site", "--listen", &format!("127.0.0.1:{port}")]);
    assert!(said.contains(&format!("port {port}")) && said.contains("already in use"), "{said}");
}

#[test]
fn settings_are_shown_with_where_they_came_from() {
    let folder = Folder::new();
    folder.write("dragline.toml", "RETRY_TIMES = 7\n");
    let ended = folder.run(&["settings", "-s", "DOWNLOAD_DELAY=2"]);
    assert_eq!((ended.code, ended.err.as_str()), (Some(0), ""), "{ended}");
    for (name, value, place) in [("RETRY_TIMES", "7", "dragline.toml"), ("DOWNLOAD_DELAY", "2", "-s")] {
        let line = ended.out.lines().find(|line| line.starts_with(name)).unwrap();
        assert!(line.contains(value) && line.contains(place), "{line}");
    }
}

#[test]
fn lists_and_versions_are_all_that_standard_output_carries() {
    let folder = Folder::new();
    let listed = folder.run(&["list"]);
    assert_eq!(
        (listed.code, listed.out.as_str(), listed.err.as_str()),
        (Some(0), "bench\nbookshop\nlinks\nquotes\n", ""),
        "{listed}"
    );
    let version = folder.run(&["version"]);
    assert!(version.code == Some(0) && version.out.contains(env!("CARGO_PKG_VERSION")), "{version}");
    assert!(folder.files().is_empty());
}
