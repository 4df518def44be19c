//! Kept leases from end to end: a chain of pages has one identity and one proxy, which nobody else uses meanwhile.

use std::collections::BTreeMap;
use std::time::Instant;

use dragline::testkit::{ProxyKind, ScriptedProxy};

use super::books_of_a_job::stat;
use super::harness::Folder;
use super::leased::Ways;
use super::plane::{Plane, Site, file, settings};
use super::server::{Answer, Asked, Server};
use super::user_crate;

const CHAINS: usize = 24;
const PAGES: usize = 5;
const IDENTITIES: usize = 8;

/// The identity whose header, cookie and query a request carries, and of no other.
fn reader(asked: &Asked) -> usize {
    let text = format!("{asked:?}");
    let number = text.split("canary-").nth(1).unwrap_or_else(|| panic!("no lease: {text}")).split('-').next().unwrap();
    assert_eq!(text.matches("canary-").count(), 3, "{text}");
    assert_eq!(text.matches(&format!("canary-{number}-")).count(), 3, "{text}");
    number.parse().unwrap()
}

#[test]
fn a_chain_of_pages_has_one_identity_that_nobody_else_has_meanwhile() {
    let (folder, place) = (Folder::new(), Folder::new());
    let server = Server::start(|asked| Answer::html(format!("<title>{}</title>", asked.path())));
    let away = Server::start_at("127.0.0.2", |asked| Answer::html(format!("<title>{}</title>", asked.path())));
    let proxies = [ProxyKind::Http, ProxyKind::Https].map(|kind| ScriptedProxy::start(kind).unwrap());
    let mut list = String::new();
    for (n, proxy) in proxies.iter().enumerate() {
        proxy.allow("canary-user", "canary-password");
        let url = proxy.url_as("canary-user", "canary-password");
        list.push_str(&format!("[[plane.proxies]]\nname = \"p{n}\"\nurl = \"{url}\"\nmax_concurrency = 100\n"));
    }
    let mut site = Site::new("shop", IDENTITIES, 1);
    site.identity.push_str("\nproxy = \"p{p}\"");
    let mut text = file(&[site], &list);
    for n in 0..IDENTITIES {
        text = text.replacen("\"p{p}\"", &format!("\"p{}\"", n % 2), 1);
    }
    let plane = Plane::start(&place, &text);
    let home = server.url("").replace("http://", "");
    let more = "CONCURRENT_REQUESTS_PER_DOMAIN = 16\nROBOTSTXT_OBEY = false\nDOWNLOAD_VERIFY_CERTIFICATES = false\n\
                LEASE_UNMATCHED = \"anonymous\"\nLOG_LEVEL = \"DEBUG\"";
    folder.write("dragline.toml", &settings(&plane.url(), &[(&home, "shop")], more));
    let given = [
        format!("base={}", server.url("/")),
        format!("away={}", away.url("/")),
        format!("chains={CHAINS}"),
        format!("pages={PAGES}"),
    ];
    let mut arguments = vec!["crawl", "chains", "-O", "items.jsonl"];
    arguments.extend(given.iter().flat_map(|pair| ["-a", pair.as_str()]));
    let ended = user_crate::start(&folder, &arguments).end().with_code(0);

    let (asked, ways) = (server.asked(), Ways::of(&proxies));
    assert_eq!((asked.len(), away.asked().len()), (CHAINS * PAGES, CHAINS * PAGES), "{ended}");
    // Of each chain the identity, and when it was first and last used.
    let mut chains: BTreeMap<String, (usize, Instant, Instant)> = BTreeMap::new();
    for asked in &asked {
        let chain = asked.path().split('/').nth(1).unwrap().to_owned();
        let number = reader(asked);
        let known = chains.entry(chain).or_insert((number, asked.at, asked.at));
        assert_eq!(known.0, number, "one identity for the whole chain: {asked:?}");
        known.2 = asked.at;
        assert_eq!(ways.of_request(asked), Some(number % 2), "of identity {number}: {asked:?}");
    }
    let chains: Vec<_> = chains.into_values().collect();
    for (n, one) in chains.iter().enumerate() {
        for other in chains.iter().skip(n + 1).filter(|other| other.0 == one.0) {
            assert!(one.2 < other.1 || other.2 < one.1, "identity {} serves two chains at once", one.0);
        }
    }
    for asked in away.asked() {
        assert!(!format!("{asked:?}").contains("canary"), "{asked:?}");
    }

    let ledger = plane.ledger("shop");
    let count = |name: &str| ledger[name].as_u64().unwrap();
    assert_eq!((count("acquired"), count("released")), (CHAINS as u64, CHAINS as u64), "{ledger}");
    assert_eq!((count("open"), count("expired"), count("reports_accepted")), (0, 0, asked.len() as u64), "{ledger}");
    let lost = (CHAINS * PAGES) as u64;
    let kept = lost - CHAINS as u64;
    assert_eq!((stat(&folder, "lease/kept_used"), stat(&folder, "lease/kept_lost")), (Some(kept), Some(lost)), "{ended}");
    for path in folder.files() {
        let bytes = std::fs::read(&path).unwrap();
        assert!(memchr::memmem::find(&bytes, b"canary").is_none(), "{} holds what a lease brought", path.display());
    }
    assert!(!format!("{ended}").contains("canary"), "{ended}");
}
