//! Settings and values that the control plane hands out while a crawl runs.

use std::time::{Duration, Instant};

use serde_json::json;

use super::harness::{Folder, Running};
use super::plane::{Plane, Site, TOKEN, file, settings};
use super::server::{Answer, Server};

/// A site without end.
fn endless() -> Server {
    Server::start(|asked| {
        let path = asked.path().trim_end_matches('/').to_owned();
        Answer::html((0..3).map(|n| format!("<a href=\"{path}/{n}\">{n}</a>")).collect::<String>())
    })
}

fn config(content: &str) -> String {
    format!("[[plane.config]]\ngroup = \"crawl\"\nkey = \"limits\"\nformat = \"json\"\ncontent = '{content}'\n")
}

fn rate(server: &Server, time: Duration) -> usize {
    let had = server.asked().len();
    std::thread::sleep(time);
    server.asked().len() - had
}

#[test]
fn a_published_item_changes_a_running_crawl_within_a_second() {
    let (folder, place) = (Folder::new(), Folder::new());
    let server = endless();
    let plane = Plane::start(&place, &file(&[Site::new("shop", 8, 4)], &config("{\"DOWNLOAD_DELAY\": 0.5}")));
    let more =
        "CONFIG_WATCH = [\"crawl/limits\"]\nRANDOMIZE_DOWNLOAD_DELAY = false\nROBOTSTXT_OBEY = false\nCONCURRENT_REQUESTS = 4";
    folder.write("dragline.toml", &settings(&plane.url(), &[("127.0.0.1", "shop")], more));
    let running = folder.start(&["crawl", "bench", "-a", &format!("url={}", server.url("/"))]);
    running.until("some pages", || server.asked().len() > 3);
    assert!(rate(&server, Duration::from_secs(3)) <= 8, "half a second between two");

    let published = Instant::now();
    plane.publish("crawl", "limits", &json!({ "DOWNLOAD_DELAY": 0, "CONCURRENT_REQUESTS": 2, "shop_note": "hello" }));
    let had = server.asked().len();
    running.until("more speed", || server.asked().len() > had + 20);
    assert!(published.elapsed() < Duration::from_secs(10), "{:?}", published.elapsed());

    // What is not allowed is refused with a word, and the old values stay.
    plane.publish("crawl", "limits", &json!({ "CONCURRENT_REQUESTS": "many" }));
    running.says("crawl/limits");
    running.until("a refusal", || running.err().contains("CONCURRENT_REQUESTS") && running.err().contains("many"));
    plane.publish("crawl", "limits", &json!({ "APCLOUDY_URL": "http://127.0.0.1:9" }));
    running.says("APCLOUDY_URL");
    assert!(rate(&server, Duration::from_secs(1)) > 5, "it goes on as before");
    running.signal(rustix::process::Signal::INT);
    running.end().with_code(2);
}

#[test]
fn the_command_line_wins_over_what_is_published() {
    let (folder, place) = (Folder::new(), Folder::new());
    let server = endless();
    let plane = Plane::start(&place, &file(&[Site::new("shop", 8, 4)], &config("{\"DOWNLOAD_DELAY\": 0.001}")));
    let more = "CONFIG_WATCH = [\"crawl/limits\"]\nRANDOMIZE_DOWNLOAD_DELAY = false\nROBOTSTXT_OBEY = false";
    folder.write("dragline.toml", &settings(&plane.url(), &[("127.0.0.1", "shop")], more));
    let running = folder.start(&["crawl", "bench", "-s", "DOWNLOAD_DELAY=0.5", "-a", &format!("url={}", server.url("/"))]);
    running.until("some pages", || server.asked().len() > 2);
    assert!(rate(&server, Duration::from_secs(2)) <= 6);
    running.says("DOWNLOAD_DELAY");
    running.signal(rustix::process::Signal::INT);
    running.end().with_code(2);
}

#[test]
fn a_start_without_the_plane_uses_the_snapshots_of_the_last_run() {
    let (folder, place) = (Folder::new(), Folder::new());
    let server = endless();
    let plane = Plane::start(&place, &file(&[Site::new("shop", 8, 4)], &config("{\"CLOSESPIDER_PAGECOUNT\": 5}")));
    let more = "CONFIG_WATCH = [\"crawl/limits\"]\nROBOTSTXT_OBEY = false\nSPINNERET_CACHE_DIR = \"cache\"\n\
                SPINNERET_UNAVAILABLE_TIMEOUT = 2\nSPINNERET_MAX_RETRIES = 0\nLOG_LEVEL = \"INFO\"";
    folder.write("dragline.toml", &settings(&plane.url(), &[("127.0.0.1", "shop")], more));
    let url = format!("url={}", server.url("/"));
    let ended = folder.run(&["crawl", "bench", "-a", &url]).with_code(0);
    ended.says(&["closespider_pagecount"]);
    drop(plane);
    let ended = folder.run(&["crawl", "bench", "-a", &url]);
    assert_eq!(ended.code, Some(3), "no lease without a plane: {ended}");
    ended.says(&["snapshot"]);
}

#[test]
fn a_setting_may_be_a_secret_of_the_plane() {
    let (folder, place) = (Folder::new(), Folder::new());
    let server = Server::start(|_| Answer::html("<title>x</title>"));
    let secrets = "[plane.secrets]\n\"crawl/agent\" = \"canary-agent/1.0\"\n";
    let plane = Plane::start(&place, &file(&[Site::new("shop", 2, 4)], secrets));
    let more = "USER_AGENT = \"${secret:crawl/agent}\"\nROBOTSTXT_OBEY = false\nLOG_LEVEL = \"DEBUG\"";
    folder.write("dragline.toml", &settings(&plane.url(), &[("127.0.0.1", "shop")], more));
    let url = format!("url={}", server.url("/"));
    let ended = folder.run(&["crawl", "bench", "-a", &url]).with_code(0);
    assert_eq!(server.asked()[0].header("user-agent"), Some("canary-agent/1.0"));
    assert!(!ended.err.contains("canary-agent"), "{ended}");
    let shown = folder.run(&["settings"]);
    assert!(shown.out.contains("${secret:crawl/agent}") && !shown.out.contains("canary-agent"), "{shown}");

    for (setting, parts) in [
        ("USER_AGENT=${secret:crawl/nothing}", ["USER_AGENT", "crawl/nothing"]),
        ("SPINNERET_TOKEN=${secret:crawl/agent}", ["SPINNERET_TOKEN", "secret"]),
    ] {
        let text = folder.refused(&["crawl", "bench", "-s", setting, "-a", &url]);
        assert!(parts.iter().all(|part| text.contains(part)) && !text.contains(TOKEN), "{text}");
    }
}

#[test]
fn a_lease_can_be_looked_at_from_the_command_line() {
    let (folder, place) = (Folder::new(), Folder::new());
    let plane = Plane::start(&place, &file(&[Site::new("shop", 1, 1)], ""));
    folder.write("dragline.toml", &settings(&plane.url(), &[("shop.example", "shop")], ""));
    let ended = folder.run(&["lease", "https://shop.example/p/1"]);
    assert_eq!(ended.code, Some(0), "{ended}");
    for part in ["reader-0", "_default", "X-Reader", "session"] {
        assert!(ended.out.to_lowercase().contains(&part.to_lowercase()), "{part}: {ended}");
    }
    assert!(!format!("{ended}").contains("canary"), "names, never values: {ended}");
    assert_eq!((plane.count("shop", "acquired"), plane.count("shop", "open")), (1, 0));
    plane.act("pause", json!({ "site": "shop", "reason": "" }));
    let ended = folder.run(&["lease", "https://shop.example/p/1"]);
    assert_eq!(ended.code, Some(3), "{ended}");
    assert!(ended.err.contains("paused"), "{ended}");
    let mut command = folder.command(&["lease", "https://shop.example/"]);
    command.env("SPINNERET_URL", "http://127.0.0.1:9");
    let ended = Running::of(command).end();
    assert_eq!(ended.code, Some(3), "{ended}");
}
