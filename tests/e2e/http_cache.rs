//! The HTTP cache with the real program: a second crawl without the site, one that only asks whether pages still hold,
//! and what lies on disk.

use std::path::PathBuf;

use super::harness::{Ended, Folder};
use super::server::{Answer, Server};
use super::user_crate::start;

fn crawl(folder: &Folder, server: &Server, feed: &str, paths: &str, settings: &[&str]) -> Ended {
    let (base, paths) = (format!("base={}", server.url("")), format!("paths={paths}"));
    let mut call = vec!["crawl", "paths", "-a", &base, "-a", &paths, "-s", "HTTPCACHE_ENABLED=true", "-s", "RETRY_BACKOFF=0.01"];
    settings.iter().for_each(|pair| call.extend(["-s", pair]));
    call.extend(["-O", feed]);
    start(folder, &call).end()
}

/// The items of a feed, in the order of their paths.
fn items(folder: &Folder, feed: &str) -> Vec<String> {
    let mut items: Vec<String> = folder.items(feed).iter().map(ToString::to_string).collect();
    items.sort();
    items
}

fn stored(folder: &Folder) -> Vec<PathBuf> {
    folder.files().into_iter().filter(|path| path.to_string_lossy().contains("/httpcache/paths/")).collect()
}

#[test]
fn a_second_crawl_is_the_first_one_without_the_site() {
    let server = Server::start(|asked| match asked.path() {
        "/" => Answer::html("<a href=/moved>a</a> <a href=/gone>b</a> <a href=/fails>c</a>"),
        "/moved" => Answer::moved("/target"),
        "/gone" => Answer::status(410),
        "/fails" => Answer::status(500),
        _ => Answer::html("<p>end</p>"),
    });
    let folder = Folder::new();
    let first = crawl(&folder, &server, "first.jsonl", "/", &["RETRY_TIMES=1"]).with_code(0);
    let asked = server.asked().len();
    // robots.txt, the page, the redirect and its target, what is gone, and the failure twice.
    assert_eq!(asked, 7, "{first}");
    let second = crawl(&folder, &server, "second.jsonl", "/", &["RETRY_TIMES=1", "HTTPCACHE_IGNORE_MISSING=true"]).with_code(0);
    assert_eq!(server.asked().len(), asked, "the site heard nothing: {second}");
    let told = items(&folder, "first.jsonl");
    assert_eq!(told.len(), 4, "{told:?}");
    // How often it was tried is the only thing that tells them apart.
    let tried = |text: &String| text.replace("\"attempts\":2", "\"attempts\":0").replace("\"attempts\":1", "\"attempts\":0");
    let (first_items, second_items): (Vec<_>, Vec<_>) =
        (told.iter().map(tried).collect(), items(&folder, "second.jsonl").iter().map(tried).collect());
    assert_eq!(first_items, second_items);
    second.says(&["httpcache/hit"]);
    let third = crawl(&folder, &server, "third.jsonl", "/,/new", &["HTTPCACHE_IGNORE_MISSING=true"]);
    assert_eq!(server.times("/new"), 0, "{third}");
    assert!(items(&folder, "third.jsonl").iter().any(|item| item.contains("not_cached") && item.contains("/new")), "{third}");
}

#[test]
fn by_the_rules_of_http_a_fresh_page_is_not_asked_for_and_a_stale_one_only_confirmed() {
    let server = Server::start(|asked| {
        let page = |more: Vec<(&'static str, String)>| Answer::Whole(200, more, b"<p>page</p>".to_vec());
        match (asked.path(), asked.header("if-none-match")) {
            ("/fresh", _) => page(vec![("cache-control", "max-age=3600".to_owned())]),
            ("/tagged", Some("\"v1\"")) => Answer::Whole(304, vec![("etag", "\"v1\"".to_owned())], vec![]),
            ("/tagged", _) => page(vec![("etag", "\"v1\"".to_owned())]),
            ("/secret", _) => page(vec![("cache-control", "no-store".to_owned())]),
            _ => Answer::status(404),
        }
    });
    let folder = Folder::new();
    let settings = ["HTTPCACHE_POLICY=rfc9111", "HTTPCACHE_GZIP=true", "HTTPCACHE_DIR=pages", "DATA_DIR=data"];
    for run in ["1.jsonl", "2.jsonl"] {
        let ended = crawl(&folder, &server, run, "/fresh,/tagged,/secret", &settings).with_code(0);
        assert_eq!(items(&folder, run), items(&folder, "1.jsonl"), "{ended}");
    }
    assert_eq!((server.times("/fresh"), server.times("/tagged"), server.times("/secret")), (1, 2, 2));
    let asked = server.asked();
    let again = asked.iter().rfind(|asked| asked.path() == "/tagged").unwrap();
    assert_eq!(again.header("if-none-match"), Some("\"v1\""));
    assert!(folder.file("data/pages/paths").is_dir());
}

#[test]
fn no_part_of_an_identity_lies_in_the_cache_and_no_other_identity_gets_its_pages() {
    let server = Server::start(|asked| {
        let name = asked.header("authorization").unwrap_or_default().to_owned();
        match asked.path() {
            "/echo" => Answer::html(format!("<p>hello {name}</p>")),
            _ => Answer::Whole(200, vec![("set-cookie", "session=canary-session".to_owned())], b"<p>page</p>".to_vec()),
        }
    });
    let folder = Folder::new();
    let secret = Folder::new();
    for name in ["one", "two"] {
        let text = format!(
            "[[sites]]\nname = \"x\"\n[[sites.identities]]\nname = \"{name}\"\nheaders = {{ Authorization = \"Bearer canary-{name}\" }}\n\
             cookies = {{ sid = \"canary-cookie\" }}\nquery = {{ key = \"canary-query\" }}\n"
        );
        secret.write_secret(&format!("{name}.toml"), &text);
    }
    let mut hits = Vec::new();
    for name in ["one", "two", "one"] {
        let identities = format!("IDENTITIES={}", secret.file(&format!("{name}.toml")).display());
        let settings = [identities.as_str(), "LEASES=[{\"domains\": [\"127.0.0.1\"], \"site\": \"x\", \"client\": \"web\"}]"];
        let ended = crawl(&folder, &server, "items.jsonl", "/page,/echo", &settings).with_code(0);
        hits.push(ended.err.contains("httpcache/hit"));
    }
    assert_eq!(hits, [false, false, true], "the third run has the first one's pages");
    assert_eq!((server.times("/page"), server.times("/echo")), (2, 3), "a page that repeats a token is not kept");
    let stored = stored(&folder);
    assert!(stored.len() >= 3, "{stored:?}");
    for path in stored {
        let bytes = std::fs::read(&path).unwrap();
        assert!(memchr::memmem::find(&bytes, b"canary").is_none(), "{}", path.display());
    }
}
