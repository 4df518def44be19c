//! A whole crawl that leases from a control plane in another process: every request carries one lease, goes through its proxy
//! and is reported once, and nothing of a lease stays anywhere.

use std::collections::{BTreeMap, BTreeSet};
use std::net::SocketAddr;
use std::time::Instant;

use dragline::testkit::{ProxyKind, ScriptedProxy};

use super::harness::{Folder, Running};
use super::plane::{Plane, Site, file, settings};
use super::server::{Answer, Asked, Server};

const IDENTITIES: usize = 64;

/// Pages of the site; every fifth is reached by a redirect, every hundredth fails once.
fn pages() -> usize {
    if std::env::var_os("LONG_TESTS_OF_DRAGLINE").is_some() { 5_000 } else { 600 }
}

/// `/` links to shelves of 50 pages each.
fn shop(pages: usize) -> Server {
    let failed = std::sync::Mutex::new(BTreeSet::new());
    Server::start(move |asked| {
        let parts: Vec<&str> = asked.path().split('/').skip(1).collect();
        match parts.as_slice() {
            [""] => Answer::html((0..pages.div_ceil(50)).map(|n| format!("<a href=\"/s/{n}\">{n}</a>")).collect::<String>()),
            ["s", shelf] => {
                let first = shelf.parse::<usize>().unwrap() * 50;
                let query = asked.target.split_once('?').map_or("", |(_, query)| query);
                let link = |n| match n % 5 {
                    0 => format!("<a href=\"/m/{n}\">{n}</a>"),
                    // As many sites do, the page repeats its own query.
                    1 => format!("<a href=\"/p/{n}?{query}\">{n}</a>"),
                    _ => format!("<a href=\"/p/{n}\">{n}</a>"),
                };
                Answer::html((first..(first + 50).min(pages)).map(link).collect::<String>())
            }
            // The answer repeats the query: what a lease put there must not become a part of the crawl's own URLs.
            ["m", n] => Answer::moved(format!("/p/{n}?{}", asked.target.split_once('?').map_or("", |(_, query)| query))),
            ["p", n] if n.parse::<usize>().unwrap().is_multiple_of(100) && failed.lock().unwrap().insert((*n).to_owned()) => {
                Answer::status(503)
            }
            ["p", n] => Answer::html(format!("<title>{n}</title>")),
            _ => Answer::status(404),
        }
    })
}

struct Proxies {
    proxies: Vec<ScriptedProxy>,
}

impl Proxies {
    /// Ten of all kinds, each with a user of its own.
    fn start() -> Self {
        let kinds = [ProxyKind::Http, ProxyKind::Https, ProxyKind::Socks5];
        let proxies: Vec<ScriptedProxy> = (0..10).map(|n| ScriptedProxy::start(kinds[n % 3]).unwrap()).collect();
        for (n, proxy) in proxies.iter().enumerate() {
            proxy.allow(&format!("canary-user-{n}"), &format!("canary-password-{n}"));
        }
        Self { proxies }
    }

    fn url(&self, n: usize) -> String {
        self.proxies[n].url_as(&format!("canary-user-{n}"), &format!("canary-password-{n}"))
    }
}

/// By which proxy requests came.
pub(crate) struct Ways(BTreeMap<(SocketAddr, Instant), usize>);

impl Ways {
    pub(crate) fn of(proxies: &[ScriptedProxy]) -> Self {
        let seen = |(n, proxy): (usize, &ScriptedProxy)| {
            proxy.passed().into_iter().filter_map(move |passed| Some(((passed.seen_as?, passed.at), n))).collect::<Vec<_>>()
        };
        Self(proxies.iter().enumerate().flat_map(seen).collect())
    }

    /// The number of the proxy. A system uses an address again: the connection is the last one before the request.
    pub(crate) fn of_request(&self, asked: &Asked) -> Option<usize> {
        let (address, at) = (asked.peer, asked.at);
        self.0.range(..=(address, at)).next_back().filter(|((seen_as, _), _)| *seen_as == address).map(|(_, n)| *n)
    }
}

/// The identity whose credential a request carries: all of it, and of nobody else.
fn reader(asked: &Asked) -> usize {
    let header = asked.header("x-reader").unwrap_or_else(|| panic!("no header of a lease: {asked:?}"));
    let number = header.strip_prefix("canary-").and_then(|rest| rest.strip_suffix("-header")).unwrap();
    assert_eq!(asked.header("cookie"), Some(format!("session=canary-{number}-cookie").as_str()), "{asked:?}");
    let query = asked.target.split_once('?').map_or("", |(_, query)| query);
    assert_eq!(query, format!("key=canary-{number}-query"), "{asked:?}");
    let text = format!("{asked:?}");
    assert_eq!(text.matches("canary-").count(), 3, "{text}");
    number.parse().unwrap()
}

#[test]
fn every_request_is_made_under_one_lease_and_reported_once() {
    let (folder, place) = (Folder::new(), Folder::new());
    let server = shop(pages());
    let proxies = Proxies::start();
    let mut site = Site::new("shop", IDENTITIES, 4);
    let list: String = (0..10)
        .map(|n| format!("[[plane.proxies]]\nname = \"p{n}\"\nurl = \"{}\"\nmax_concurrency = 1000\n", proxies.url(n)))
        .collect();
    // Each identity has a proxy of its own, so that a request tells which one it should have come through.
    site.identity.push_str("\nproxy = \"p{p}\"");
    let mut text = file(&[site], &list);
    for n in 0..IDENTITIES {
        text = text.replacen("\"p{p}\"", &format!("\"p{}\"", n % 10), 1);
    }
    let plane = Plane::start(&place, &text);
    let more = "CONCURRENT_REQUESTS = 64\nCONCURRENT_REQUESTS_PER_DOMAIN = 64\nDOWNLOAD_VERIFY_CERTIFICATES = false\n\
                RETRY_BACKOFF = 0.1\nLOG_LEVEL = \"DEBUG\"";
    folder.write("dragline.toml", &settings(&plane.url(), &[("127.0.0.1", "shop")], more));
    let url = format!("url={}", server.url("/"));
    let ended = folder.run(&["crawl", "bench", "-a", &url, "-O", "items.jsonl", "--logfile", "log.txt"]).with_code(0);

    let asked = server.asked();
    let shelves = pages().div_ceil(50);
    let expected = 2 + shelves + pages() + pages() / 5 + pages() / 100;
    assert_eq!(asked.len(), expected, "robots.txt, home, shelves, pages, hops, retries: {ended}");
    let ways = Ways::of(&proxies.proxies);
    let mut readers = BTreeSet::new();
    for asked in &asked {
        let number = reader(asked);
        readers.insert(number);
        assert_eq!(ways.of_request(asked), Some(number % 10), "of identity {number}: {asked:?}");
        assert!(asked.header("proxy-authorization").is_none(), "{asked:?}");
    }
    assert!(readers.len() > IDENTITIES / 2, "{readers:?}");

    // The plane's own books.
    let ledger = plane.ledger("shop");
    let count = |name: &str| ledger[name].as_u64().unwrap();
    assert_eq!((count("acquired"), count("open"), count("expired")), (count("released"), 0, 0), "{ledger}");
    assert_eq!(
        (count("reports_accepted"), count("reports_duplicated"), count("reports_rejected")),
        (asked.len() as u64, 0, 0),
        "{ledger}"
    );
    // A hop stays on its lease, a retry takes a new one.
    assert_eq!(count("acquired"), (asked.len() - pages() / 5) as u64, "{ledger}");

    // Nothing of a lease is anywhere in what the crawl leaves behind.
    assert_eq!(folder.items("items.jsonl").len(), 1 + shelves + pages());
    for path in folder.files() {
        let bytes = std::fs::read(&path).unwrap();
        assert!(!contains(&bytes, b"canary"), "{} holds what a lease brought", path.display());
        assert!(!contains(&bytes, super::plane::TOKEN.as_bytes()) || path.ends_with("dragline.toml"), "{}", path.display());
    }
    assert!(!ended.err.contains("canary") && !ended.out.contains("canary"), "{ended}");
}

#[test]
fn identities_meant_for_this_machine_stay_with_their_hosts() {
    let (folder, place) = (Folder::new(), Folder::new());
    let other = Server::start(|_| Answer::html("<title>elsewhere</title>"));
    let to = other.url("/landing");
    let server = Server::start(move |asked| match asked.path() {
        "/" => Answer::html("<a href=\"/away\">a</a>"),
        _ => Answer::moved(to.clone()),
    });
    let plane = Plane::start(&place, &file(&[Site::new("shop", 2, 4)], ""));
    let home = server.url("").replace("http://", "");
    let more = "LEASE_UNMATCHED = \"anonymous\"";
    folder.write("dragline.toml", &settings(&plane.url(), &[(&home, "shop")], more));
    let url = format!("url={}", server.url("/"));
    folder.run(&["crawl", "bench", "-a", &url]).with_code(0);
    let landed = other.asked();
    assert!(landed.iter().any(|asked| asked.path() == "/landing"));
    for asked in landed {
        assert!(!format!("{asked:?}").contains("canary"), "{asked:?}");
    }
    let ledger = plane.ledger("shop");
    assert_eq!(ledger["acquired"], ledger["released"], "{ledger}");
    assert_eq!((&ledger["open"], &ledger["reports_accepted"]), (&0.into(), &3.into()), "robots.txt, home, the hop: {ledger}");
}

#[test]
fn a_host_without_rule_is_refused_once_named() {
    let (folder, place) = (Folder::new(), Folder::new());
    let server = Server::start(|_| Answer::html("<a href=\"/1\">1</a><a href=\"/2\">2</a>"));
    let plane = Plane::start(&place, &file(&[Site::new("shop", 2, 4)], ""));
    folder.write("dragline.toml", &settings(&plane.url(), &[("shop.example", "shop")], ""));
    let ended = folder.run(&["crawl", "bench", "-a", &format!("url={}", server.url("/"))]);
    assert_eq!(ended.err.matches("requests to this host are dropped").count(), 1, "one line: {ended}");
    assert!(server.asked().is_empty(), "nothing was asked");
    assert_eq!(plane.count("shop", "acquired"), 0);
}

#[test]
fn a_wrong_token_ends_the_crawl_with_a_clear_word() {
    let (folder, place) = (Folder::new(), Folder::new());
    let server = shop(50);
    let plane = Plane::start(&place, &file(&[Site::new("shop", 2, 4)], ""));
    let text = settings(&plane.url(), &[("127.0.0.1", "shop")], "").replace("0123456789", "9876543210");
    folder.write("dragline.toml", &text);
    let ended = folder.run(&["crawl", "bench", "-a", &format!("url={}", server.url("/"))]);
    assert_eq!(ended.code, Some(3), "{ended}");
    ended.says(&["control_plane_unauthorized", "SPINNERET_TOKEN"]);
    assert!(!ended.err.contains("spn_"), "{ended}");
    assert!(server.asked().is_empty());
}

#[test]
fn a_site_the_plane_does_not_know_is_named_with_its_rule() {
    let (folder, place) = (Folder::new(), Folder::new());
    let server = shop(50);
    let plane = Plane::start(&place, &file(&[Site::new("shop", 2, 4)], ""));
    folder.write("dragline.toml", &settings(&plane.url(), &[("127.0.0.1", "shopp")], ""));
    let ended = folder.run(&["crawl", "bench", "-a", &format!("url={}", server.url("/"))]);
    assert_eq!(ended.code, Some(3), "{ended}");
    ended.says(&["LEASES", "shopp"]);
}

#[test]
fn a_plane_that_is_not_there_is_waited_for_and_then_given_up() {
    let folder = Folder::new();
    let server = shop(50);
    let text = settings(
        "http://127.0.0.1:9",
        &[("127.0.0.1", "shop")],
        "SPINNERET_UNAVAILABLE_TIMEOUT = 2\nSPINNERET_CONNECT_TIMEOUT = 0.2",
    );
    folder.write("dragline.toml", &text);
    let ended = folder.run(&["crawl", "bench", "-a", &format!("url={}", server.url("/"))]);
    assert_eq!(ended.code, Some(3), "{ended}");
    ended.says(&["control_plane_unavailable", "SPINNERET_UNAVAILABLE_TIMEOUT"]);
}

#[test]
fn half_a_configuration_is_refused() {
    let folder = Folder::new();
    for (given, missing) in [("SPINNERET_URL", "SPINNERET_TOKEN"), ("SPINNERET_TOKEN", "SPINNERET_URL")] {
        let mut command = folder.command(&["crawl", "bench", "-a", "url=http://127.0.0.1:9/"]);
        command.env(given, if given == "SPINNERET_URL" { "http://127.0.0.1:9" } else { "spn_canary" });
        let ended = Running::of(command).end();
        assert_eq!(ended.code, Some(64), "{ended}");
        ended.says(&[given, missing]);
        assert!(!ended.err.contains("canary"));
    }
}

fn contains(bytes: &[u8], part: &[u8]) -> bool {
    bytes.windows(part.len()).any(|window| window == part)
}
