//! Ends that were asked for by settings, and ends without a result.

use super::books_of_a_job::finish_reason;
use super::harness::Folder;
use super::server::{Answer, Server};

/// A server whose pages never end: each links to three more.
fn endless() -> Server {
    Server::start(|asked| {
        let path = asked.path().trim_end_matches('/').to_owned();
        let links: String = (0..3).map(|n| format!("<a href=\"{path}/{n}\">{n}</a>")).collect();
        Answer::html(links).after(std::time::Duration::from_millis(5))
    })
}

#[test]
fn limits_end_a_crawl_with_success_and_their_name() {
    let server = endless();
    for (pair, reason) in [
        ("CLOSESPIDER_ITEMCOUNT=20", "closespider_itemcount"),
        ("CLOSESPIDER_PAGECOUNT=20", "closespider_pagecount"),
        ("CLOSESPIDER_TIMEOUT=1", "closespider_timeout"),
    ] {
        let folder = Folder::new();
        let url = format!("url={}", server.url("/"));
        let ended = folder.run(&["crawl", "bench", "-a", &url, "-s", pair, "-s", "DEPTH_LIMIT=0"]).with_code(0);
        ended.says(&[&format!("{reason}: bench, job ")]);
        assert_eq!(finish_reason(&folder).as_deref(), Some(reason));
        let items = ended.number("items", "kept");
        // What was in flight when the limit was reached is finished, not more.
        assert!(pair.contains("TIMEOUT") || (20..20 + 64).contains(&items), "{pair}: {items} items\n{ended}");
    }
}

#[test]
fn a_target_that_nobody_listens_at_is_given_up_with_a_reason() {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("url=http://{}/", listener.local_addr().unwrap());
    drop(listener);
    let folder = Folder::new();
    for robots in ["ROBOTSTXT_OBEY=true", "ROBOTSTXT_OBEY=false"] {
        let ended = folder.run(&["crawl", "bookshop", "-a", &url, "-s", robots, "-s", "RETRY_BACKOFF=0.05"]).with_code(3);
        ended.says(&["no target could be reached", "Connection was refused", "gave up"]);
    }
}

#[test]
fn a_crawl_without_items_says_so() {
    let server = Server::start(|_| Answer::html("<p>nothing to see</p>"));
    let folder = Folder::new();
    let url = format!("url={}", server.url("/"));
    let ended = folder.run(&["crawl", "quotes", "-a", &url, "-O", "none.json", "-O", "none.csv"]).with_code(0);
    assert!(ended.row("items").starts_with("0 kept"), "{ended}");
    assert_eq!(folder.read("none.json").split_whitespace().collect::<String>(), "[]");
    assert_eq!(folder.read("none.csv"), "");
}
