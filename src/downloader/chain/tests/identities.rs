//! Sixteen identities, proxies of every kind, real sockets: each request has one lease's credential and went through that
//! lease's proxy.

use futures_util::StreamExt;
use futures_util::stream::iter;

use super::*;
use crate::downloader::config::ClientConfig;
use crate::downloader::site::Site;
use crate::downloader::{Names, ReqwestTransport};
use crate::testkit::{Passed, ProxyKind, ScriptedProxy, Way};

const IDENTITIES: usize = 16;
const ROUNDS: usize = 4;

/// What a proxy speaks, and the target's scheme.
const KINDS: [(ProxyKind, &str, Way); 5] = [
    (ProxyKind::Http, "http", Way::Absolute),
    (ProxyKind::Http, "https", Way::Connect),
    (ProxyKind::Https, "http", Way::Absolute),
    (ProxyKind::Https, "https", Way::Connect),
    (ProxyKind::Socks5, "https", Way::Socks),
];

/// Names of identities end in a letter, so that none is the beginning of another.
fn name(n: usize) -> String {
    format!("id{n}x")
}

fn owners(text: &str) -> Vec<usize> {
    (0..IDENTITIES).filter(|n| text.contains(&format!("canary-{}", name(*n)))).collect()
}

/// The site gives each visitor a cookie with the name it came by.
fn answer(head: &str) -> (String, String) {
    let owner = owners(head).first().copied().unwrap_or(99);
    (format!("Set-Cookie: jar=canary-{}-jar; Path=/\r\nContent-Type: text/html\r\n", name(owner)), "<p>hello".to_owned())
}

fn transport() -> ReqwestTransport {
    let config = ClientConfig {
        connect_timeout: Duration::from_secs(20),
        verify_certificates: false,
        max_clients: 1000,
        idle: Duration::from_secs(60),
    };
    ReqwestTransport::new(config, Names::of_system()).unwrap()
}

#[tokio::test]
async fn every_request_has_one_leases_credential_and_went_through_its_proxy() {
    let site = Site::start(answer).await;
    let proxies = KINDS.map(|(kind, ..)| {
        let proxy = ScriptedProxy::start(kind).unwrap();
        proxy.map("shop.test", 80, site.http).map("shop.test", 443, site.https);
        (0..IDENTITIES).for_each(|n| _ = proxy.allow(&name(n), &format!("canary-{}-proxy", name(n))));
        proxy
    });
    let stats = Stats::new();
    let chain = Chain::new(ChainParts {
        config: DownloaderConfig::from_settings(&Settings::default()),
        transport: Arc::new(transport()),
        stats: stats.clone(),
        jars: Arc::new(Jars::new(&stats)),
        middlewares: vec![],
        authorizer: None,
        seed: 1,
    });
    // Neighbours in time differ in identity and kind, and come back in the next round.
    let kinds = KINDS.len();
    let turns: Vec<(usize, usize)> =
        (0..ROUNDS * kinds * IDENTITIES).map(|turn| ((turn / IDENTITIES + turn) % kinds, turn % IDENTITIES)).collect();
    let (chain, proxies, turns) = (&chain, &proxies, &turns);
    let runs = iter(turns.iter().enumerate()).map(|(turn, &(kind, n))| async move {
        let mut lease = grant(&name(n));
        lease.lease = LeaseId(format!("lease-{turn}").into());
        lease.proxy = Some(ProxyUrl(proxies[kind].url_as(&name(n), &format!("canary-{}-proxy", name(n))).into()));
        let job = job(&format!("{}://shop.test/{turn}", KINDS[kind].1));
        let (verdict, attempt) = chain.run(&job, &lease, &Free, &Progress::under(&lease), |_| {}).await;
        let Verdict::Deliver(reply) = verdict else { panic!("{turn} {:?}: {verdict:?}", KINDS[kind]) };
        assert_eq!(reply.body, "<p>hello");
        assert_eq!((attempt.bytes, attempt.lease.as_ref().unwrap().id()), (8, format!("lease-{turn}").as_str()));
        format!("{attempt:?} {lease:?}")
    });
    let shown: Vec<String> = runs.buffer_unordered(32).collect().await;
    assert!(!shown.concat().contains("canary") && !format!("{:?}", stats.snapshot()).contains("canary"));

    let seen = site.seen();
    assert_eq!(seen.len(), turns.len());
    let passed = proxies.each_ref().map(ScriptedProxy::passed);
    let mut with_jar = 0;
    for request in &seen {
        let turn: usize = request.head.split(['/', '?', ' ']).nth(2).unwrap().parse().unwrap();
        let (kind, n) = turns[turn];
        assert_eq!(owners(&request.head), [n], "{turn} {}", request.head);
        let head = request.head.to_lowercase();
        for part in ["authorization: bearer canary", "sid=canary", "key=canary", "user-agent: grant canary"] {
            assert!(head.contains(part), "{part} in {head}");
        }
        assert!(!head.contains("proxy-") && !head.contains("-proxy"), "{head}");
        with_jar += usize::from(head.contains("jar=canary"));
        // An address is used again for another connection: the one in question is the last before the request.
        let port = if request.to == site.https { ":443" } else { ":80" };
        let carried = |p: &&Passed| p.seen_as == Some(request.from) && p.at <= request.at && p.target.ends_with(port);
        let logs = passed.iter().enumerate().flat_map(|(kind, log)| log.iter().filter(carried).map(move |p| (kind, p)));
        let (through, p) = logs.max_by_key(|(_, p)| p.at).unwrap();
        assert_eq!((through, p.user.as_deref(), p.way), (kind, Some(name(n).as_str()), KINDS[kind].2), "{turn}");
    }
    assert!(with_jar > turns.len() / 2, "jars are kept: {with_jar}");
    for (proxy, (_, scheme, _)) in proxies.iter().zip(KINDS) {
        let log = proxy.passed();
        assert_eq!(log.iter().filter(|p| p.head.is_some()).count(), if scheme == "http" { log.len() } else { 0 });
        assert_eq!(proxy.denied(), 0);
    }
}
