//! Identities and their proxies.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Mutex;

use dragline::testkit::{ProxyFault, ProxyKind, ScriptedProxy};

use crate::books_of_a_job::stat;
use crate::harness::{Folder, long};
use crate::leased::Ways;
use crate::server::{Answer, Server};

/// What a refusal by a proxy counts as. The case has our own word for it; on the wire these names are Scrapy's classes.
const REFUSED_BY_PROXY: &str = "downloader/exception_type_count/scrapy.exceptions.DownloadFailedError";
const RULES: &str = "LEASES=[{\"domains\": [\"127.0.0.1\"], \"site\": \"s\", \"client\": \"web\"}]";

/// A site whose identity number n goes through proxy number n.
fn identities(proxies: &[ScriptedProxy], keys: &str) -> String {
    let mut text = format!("[[sites]]\nname = \"s\"\n{keys}\n");
    for (n, proxy) in proxies.iter().enumerate() {
        let url = proxy.url_as("canary-user", "canary-password");
        text += &format!("[[sites.identities]]\nname = \"i{n}\"\ncookies = {{ sid = \"i{n}\" }}\nproxy = \"{url}\"\n");
    }
    text
}

fn proxies(count: usize) -> Vec<ScriptedProxy> {
    let proxies: Vec<ScriptedProxy> = (0..count).map(|_| ScriptedProxy::start(ProxyKind::Http).unwrap()).collect();
    for proxy in &proxies {
        proxy.allow("canary-user", "canary-password");
    }
    proxies
}

#[test]
fn case_i01_an_identity_only_ever_goes_through_its_own_proxy() {
    let refused = Mutex::new(BTreeSet::new());
    let server = Server::start(move |asked| {
        let n: usize = asked.path()[1..].parse().unwrap_or(1);
        if n.is_multiple_of(7) && refused.lock().unwrap().insert(n) { Answer::status(403) } else { Answer::html("ok") }
    });
    let proxies = proxies(10);
    let folder = Folder::new();
    folder.write_secret("identities.toml", &identities(&proxies, ""));
    let urls = (0..50).map(|n| server.url(&format!("/{n}"))).collect::<Vec<_>>().join(",");
    let urls = format!("urls={urls}");
    let call = [
        "crawl",
        "links",
        "-a",
        &urls,
        "-a",
        "follow=none",
        "-s",
        "IDENTITIES=identities.toml",
        "-s",
        RULES,
        "-s",
        "CONCURRENT_REQUESTS=5",
        "-s",
        "RETRY_HTTP_CODES=403",
        "-s",
        "RETRY_BACKOFF=0.05",
        "-s",
        "ROBOTSTXT_OBEY=false",
    ];
    let ended = folder.run(&call).with_code(0);
    let asked = server.asked();
    assert_eq!(asked.len(), 50 + 8, "every seventh twice: {ended}");
    let ways = Ways::of(&proxies);
    let mut connections: BTreeMap<(std::net::SocketAddr, usize), BTreeSet<usize>> = BTreeMap::new();
    for request in &asked {
        let identity: usize = request.header("cookie").unwrap().strip_prefix("sid=i").unwrap().parse().unwrap();
        assert_eq!(ways.of_request(request), Some(identity), "{request:?}");
        connections.entry((request.peer, identity)).or_default().insert(identity);
    }
    assert!(connections.values().all(|of| of.len() == 1), "{connections:?}");
    assert_eq!(ended.number("leases", "acquired"), 58, "a retry has a lease of its own: {ended}");
    assert_eq!(ended.number("leases", "reported"), 58, "{ended}");
}

#[test]
fn case_i02_a_proxy_that_refuses_its_user_is_reported_and_another_one_is_taken() {
    let server = Server::start(|_| Answer::html("ok"));
    let proxies = proxies(2);
    proxies[0].set_fault(Some(ProxyFault::DenyUser));
    let folder = Folder::new();
    let keys = "cooldown_proxy = \"10m\"\n[sites.rotation]\nstrategy = \"round_robin\"";
    folder.write_secret("identities.toml", &identities(&proxies, keys));
    let urls = (0..4).map(|n| server.url(&format!("/{n}"))).collect::<Vec<_>>().join(",");
    let urls = format!("urls={urls}");
    let call = [
        "crawl",
        "links",
        "-a",
        &urls,
        "-a",
        "follow=none",
        "-O",
        "items.jsonl",
        "-s",
        "IDENTITIES=identities.toml",
        "-s",
        RULES,
        "-s",
        "RETRY_BACKOFF=0.05",
        "-s",
        "ROBOTSTXT_OBEY=false",
        "-s",
        "CONCURRENT_REQUESTS=1",
    ];
    let ended = folder.run(&call).with_code(0);
    assert!(folder.items("items.jsonl").iter().all(|item| item["status"] == 200), "{ended}");
    assert!(stat(&folder, REFUSED_BY_PROXY).unwrap_or(0) >= 1, "{ended}");
    let ways = Ways::of(&proxies);
    assert!(server.asked().iter().all(|asked| ways.of_request(asked) == Some(1)));
    assert!(!ended.err.contains("canary-"), "{ended}");
}

#[test]
fn case_i02_a_thousand_refusals_leave_nothing_behind() {
    let server = Server::start(|_| Answer::html("ok"));
    let proxies = proxies(1);
    proxies[0].set_fault(Some(ProxyFault::DenyUser));
    let measured = |count: u64| {
        let folder = Folder::new();
        folder.write_secret("identities.toml", &identities(&proxies, "cooldown_proxy = \"0\""));
        let list: String = (0..count).map(|n| format!("{}\n", server.url(&format!("/{n}")))).collect();
        folder.write("urls.txt", &list);
        let call = [
            "crawl",
            "links",
            "-a",
            "file=urls.txt",
            "-a",
            "follow=none",
            "-s",
            "IDENTITIES=identities.toml",
            "-s",
            RULES,
            "-s",
            "RETRY_ENABLED=false",
            "-s",
            "ROBOTSTXT_OBEY=false",
            "-s",
            "LOG_LEVEL=ERROR",
        ];
        let ended = folder.run(&call).with_code(3);
        assert_eq!(stat(&folder, REFUSED_BY_PROXY), Some(count), "{ended}");
        ended.high_water
    };
    let few = measured(50);
    let many = measured(long(400, 1_000));
    assert!(many < few + 8 * 1024, "{few} KiB, then {many} KiB");
    assert!(server.asked().is_empty());
}
