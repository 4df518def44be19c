//! Proxies of every kind: what reaches them, what reaches the target, and what each of their faults is called.

use super::*;
use crate::downloader::site::Site;
use crate::testkit::{ProxyFault, ProxyKind, ScriptedProxy, Way};

const KINDS: [ProxyKind; 3] = [ProxyKind::Http, ProxyKind::Https, ProxyKind::Socks5];

/// User and password full of what a URL gives a meaning to.
const USER: &str = "canary us:er@ü";
const PASSWORD: &str = "canary p%40/?#[]|^'\"+&= ss";

async fn site() -> Site {
    Site::start(|_| (String::new(), "hello".to_owned())).await
}

/// A proxy that knows the site as `shop.test` and takes one user.
fn proxy(kind: ProxyKind, site: &Site) -> ScriptedProxy {
    let proxy = ScriptedProxy::start(kind).unwrap();
    proxy.map("shop.test", 80, site.http).map("shop.test", 443, site.https).allow(USER.split(':').next().unwrap(), PASSWORD);
    proxy
}

fn user(kind: ProxyKind) -> &'static str {
    // A colon ends the user's name in the Basic scheme (RFC 7617, 2).
    if kind == ProxyKind::Socks5 { USER } else { "canary us" }
}

fn through(scheme: &str, proxy: &str) -> Outgoing {
    let mut outgoing = outgoing(&format!("{scheme}://shop.test/p?key=canary"));
    outgoing.headers.insert("proxy-authorization", HeaderValue::from_static("Basic canary"));
    outgoing.headers.insert("x-own", HeaderValue::from_static("yes"));
    outgoing.proxy = Some(ProxyUrl(proxy.into()));
    // A busy machine is no fault of a proxy.
    outgoing.limits = Limits { total: Duration::from_secs(30), idle: Duration::from_secs(20), ..limits() };
    outgoing
}

fn trusting(connect: Duration) -> ReqwestTransport {
    let config =
        ClientConfig { connect_timeout: connect, verify_certificates: false, max_clients: 64, idle: Duration::from_secs(60) };
    ReqwestTransport::new(config, Names::of_system()).unwrap()
}

async fn sent(transport: &ReqwestTransport, outgoing: Outgoing) -> Result<Reply, Fault> {
    let result = transport.exchange(outgoing, &Count::new(true)).await;
    if let Err(fault) = &result {
        let said = format!("{fault} {fault:?} {} {transport:?}", fault.record_text());
        assert!(!said.contains("canary") && !said.contains("127.0.0.1"), "{said}");
    }
    result
}

#[tokio::test]
async fn every_kind_of_proxy_takes_its_user_and_resolves_the_name() {
    let site = site().await;
    let transport = trusting(20_000 * MS);
    for kind in KINDS {
        let proxy = proxy(kind, &site);
        proxy.allow(user(kind), PASSWORD);
        for (scheme, port) in [("http", 80), ("https", 443)] {
            let reply = sent(&transport, through(scheme, &proxy.url_as(user(kind), PASSWORD))).await.unwrap();
            assert_eq!(reply.body, "hello", "{kind:?} {scheme}");
            let passed = proxy.passed().pop().unwrap();
            let way = match (kind, scheme) {
                (ProxyKind::Socks5, _) => Way::Socks,
                (_, "http") => Way::Absolute,
                _ => Way::Connect,
            };
            assert_eq!((passed.way, passed.target), (way, format!("shop.test:{port}")), "{kind:?}");
            assert_eq!(passed.user.as_deref(), Some(user(kind)));
            let seen = site.seen().pop().unwrap();
            assert_eq!(passed.seen_as, Some(seen.from), "{kind:?} {scheme}");
            let head = seen.head.to_lowercase();
            assert!(head.starts_with("get /p?key=canary http/1.1\r\n") && head.contains("x-own: yes"), "{head}");
            assert!(!head.contains("proxy-"), "the proxy's credential is the proxy's alone: {head}");
        }
        assert_eq!(proxy.denied(), 0);
    }
    let direct = outgoing(&format!("http://{}/", site.http));
    let mut direct = Outgoing { proxy: None, ..direct };
    direct.headers.insert("proxy-authorization", HeaderValue::from_static("Basic canary"));
    transport.exchange(direct, &Count::new(true)).await.unwrap();
    assert!(!site.seen().pop().unwrap().head.contains("canary"));
}

#[tokio::test]
async fn each_fault_of_a_proxy_has_its_kind_and_tells_nothing_of_it() {
    use FailureKind as F;
    let site = site().await;
    // What comes of a fault with a whole URL, in a CONNECT tunnel, and in a SOCKS tunnel to http and https.
    type Row = (ProxyFault, [Result<u16, F>; 4]);
    let table: [Row; 5] = [
        (ProxyFault::Refuse, [Err(F::Proxy), Err(F::Proxy), Err(F::Proxy), Err(F::Proxy)]),
        (ProxyFault::Hang, [Err(F::IdleTimeout), Err(F::ConnectTimeout), Err(F::ConnectTimeout), Err(F::ConnectTimeout)]),
        (ProxyFault::DenyUser, [Err(F::ProxyAuth), Err(F::ProxyAuth), Err(F::ProxyAuth), Err(F::ProxyAuth)]),
        (ProxyFault::Unreachable, [Ok(502), Err(F::Proxy), Err(F::Proxy), Err(F::Proxy)]),
        // Within a tunnel to a plain target nobody can tell who hung up.
        (ProxyFault::CutAfter(9), [Err(F::Proxy), Err(F::Proxy), Err(F::Lost), Err(F::Proxy)]),
    ];
    let (patient, hasty) = (&trusting(20_000 * MS), &trusting(400 * MS));
    for (fault, expected) in table {
        for kind in KINDS {
            let proxy = proxy(kind, &site);
            proxy.allow(user(kind), PASSWORD).set_fault(Some(fault));
            let url = proxy.url_as(user(kind), PASSWORD);
            for scheme in ["http", "https"] {
                let expected = match (kind, scheme) {
                    // An HTTPS proxy hangs in its own handshake.
                    (ProxyKind::Https, "http") if fault == ProxyFault::Hang => Err(F::ConnectTimeout),
                    (ProxyKind::Socks5, "http") => expected[2],
                    (ProxyKind::Socks5, _) => expected[3],
                    (_, "http") => expected[0],
                    _ => expected[1],
                };
                let mut outgoing = through(scheme, &url);
                let transport = if fault == ProxyFault::Hang { hasty } else { patient };
                if fault == ProxyFault::Hang {
                    outgoing.limits.idle = 800 * MS;
                }
                let got = sent(transport, outgoing).await.map(|reply| reply.status.as_u16()).map_err(|fault| fault.kind);
                assert_eq!(got, expected, "{fault:?} {kind:?} {scheme}");
            }
            assert_eq!(proxy.denied() > 0, fault == ProxyFault::DenyUser);
            proxy.set_fault(None);
            for scheme in ["http", "https"] {
                assert!(sent(patient, through(scheme, &url)).await.is_ok(), "the proxy is good again: {kind:?} {scheme}");
            }
        }
    }
}

#[tokio::test]
async fn a_wrong_or_missing_password_is_the_proxys_refusal() {
    let site = site().await;
    let transport = trusting(20_000 * MS);
    for kind in KINDS {
        let proxy = proxy(kind, &site);
        for url in [proxy.url_as(user(kind), "canary wrong"), proxy.url()] {
            for scheme in ["http", "https"] {
                let fault = sent(&transport, through(scheme, &url)).await.unwrap_err();
                assert_eq!(fault.kind, FailureKind::ProxyAuth, "{kind:?} {scheme} {fault}");
                assert!(fault.kind.is_retryable());
            }
        }
        assert_eq!(proxy.denied(), 4);
    }
    assert!(site.seen().is_empty());
}

#[tokio::test]
async fn the_certificate_of_a_proxy_is_verified_like_a_targets() {
    let site = site().await;
    let proxy = proxy(ProxyKind::Https, &site);
    proxy.allow("canary us", PASSWORD);
    for scheme in ["http", "https"] {
        let fault = sent(&transport(), through(scheme, &proxy.url_as("canary us", PASSWORD))).await.unwrap_err();
        assert_eq!(fault.kind, FailureKind::Proxy, "{scheme} {fault}");
        assert!(fault.message.contains("TLS to the proxy failed") && fault.message.contains("certificate"), "{fault}");
    }
    // Through a good proxy, a bad certificate is the target's.
    let plain = self::proxy(ProxyKind::Http, &site);
    let fault = sent(&transport(), through("https", &plain.url_as("canary us", PASSWORD))).await.unwrap_err();
    assert_eq!(fault.kind, FailureKind::Tls, "{fault}");
    assert!(proxy.passed().is_empty() && site.seen().is_empty());
}

#[tokio::test]
async fn a_proxy_that_is_lost_in_a_body_leaves_a_lost_attempt() {
    let site = Site::start(|_| (String::new(), "x".repeat(50_000))).await;
    let transport = trusting(20_000 * MS);
    for kind in KINDS {
        let proxy = proxy(kind, &site);
        proxy.allow(user(kind), PASSWORD).set_fault(Some(ProxyFault::CutAfter(20_000)));
        for scheme in ["http", "https"] {
            let fault = sent(&transport, through(scheme, &proxy.url_as(user(kind), PASSWORD))).await.unwrap_err();
            assert!(matches!(fault.kind, FailureKind::DataLoss | FailureKind::Lost), "{kind:?} {scheme} {fault}");
        }
    }
}

#[tokio::test]
async fn two_proxies_of_one_identity_never_share_a_connection() {
    let site = site().await;
    let transport = trusting(20_000 * MS);
    let proxies = [proxy(ProxyKind::Socks5, &site), proxy(ProxyKind::Socks5, &site)];
    for n in [0, 1, 0, 1, 0] {
        proxies[n].allow(USER, PASSWORD);
        sent(&transport, through("http", &proxies[n].url_as(USER, PASSWORD))).await.unwrap();
        sleep(10 * MS).await;
        let seen = site.seen().pop().unwrap();
        assert!(proxies[n].passed().iter().any(|passed| passed.seen_as == Some(seen.from)), "{n}");
    }
    assert_eq!(proxies.each_ref().map(ScriptedProxy::connections), [1, 1]);
}
