//! Names and addresses: what `HOSTS` says is asked, what is private is not.

use super::*;
use crate::reach::Reach;
use crate::settings::{Hosts, PrivateAddresses, Settings};

const OK: &str = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok";

fn with(settings: &Settings) -> ReqwestTransport {
    let config = ClientConfig {
        connect_timeout: Duration::from_secs(20),
        verify_certificates: false,
        max_clients: 16,
        idle: Duration::from_secs(60),
    };
    ReqwestTransport::new(config, Names::from_settings(settings)).unwrap()
}

fn hosts(list: &[(&str, SocketAddr)]) -> Settings {
    Settings { hosts: list.iter().copied().collect::<Hosts>(), ..Settings::default() }
}

async fn get(transport: &ReqwestTransport, url: &str) -> Result<String, Fault> {
    let reply = transport.exchange(outgoing(url), &Count::new(true)).await?;
    Ok(String::from_utf8(reply.body.to_vec()).unwrap())
}

#[tokio::test]
async fn a_host_is_asked_where_hosts_says_and_by_its_own_name() {
    let server = Server::start(OK, Then::Hang).await;
    let own = SocketAddr::new(server.addr.ip(), 0);
    let transport = with(&hosts(&[("a.test", server.addr), ("*.b.test", server.addr), ("c.test", own)]));
    let port = server.addr.port();
    for url in ["http://a.test/1", "http://A.test./2", "http://x.y.b.test/3", &format!("http://c.test:{port}/4")] {
        assert_eq!(get(&transport, url).await.unwrap(), "ok", "{url}");
    }
    let heads = server.heads();
    for (head, host) in heads.iter().zip(["a.test", "a.test.", "x.y.b.test", &format!("c.test:{port}")]) {
        assert!(head.to_lowercase().contains(&format!("host: {host}\r\n")), "{head}");
    }
    let other = get(&transport, "http://a.test:1/").await.unwrap_err();
    assert_eq!(other.kind, FailureKind::Refused, "a port in the URL goes before that of HOSTS");
}

#[tokio::test]
async fn private_addresses_are_not_connected_to_by_any_spelling_or_name() {
    let server = Server::start(OK, Then::Close).await;
    let port = server.addr.port();
    let transport = with(&Settings::default());
    for host in
        ["127.0.0.1", "127.1", "2130706433", "0x7f000001", "[::ffff:127.0.0.1]", "[::1]", "0.0.0.0", "localhost", "a.localhost"]
    {
        let fault = get(&transport, &format!("http://{host}:{port}/")).await.unwrap_err();
        assert_eq!(fault.kind, FailureKind::PrivateAddress, "{host}: {fault}");
        assert!(fault.message.contains("ALLOW_PRIVATE_ADDRESSES"), "{fault}");
    }
    assert_eq!(server.connections.load(Ordering::SeqCst), 0);
    let allowed = with(&Settings { allow_private_addresses: PrivateAddresses::Allow, ..Settings::default() });
    assert_eq!(get(&allowed, &format!("http://127.0.0.1:{port}/")).await.unwrap(), "ok");
}

#[tokio::test]
async fn a_name_that_leads_to_a_private_address_is_refused_after_its_look_up() {
    let server = Server::start(OK, Then::Close).await;
    let names = Names::from_settings(&Settings::default()).looking_up(vec![server.addr.ip()]);
    let config =
        ClientConfig { connect_timeout: 500 * MS, verify_certificates: true, max_clients: 16, idle: Duration::from_secs(60) };
    let transport = ReqwestTransport::new(config, names.clone()).unwrap();
    let url = format!("http://rebound.test:{}/", server.addr.port());
    let fault = get(&transport, &url).await.unwrap_err();
    assert_eq!(fault.kind, FailureKind::PrivateAddress, "{fault}");
    assert!(fault.message.starts_with("rebound.test is") && !fault.message.contains("127.0.0.1"), "{fault}");
    assert_eq!(server.connections.load(Ordering::SeqCst), 0);
    let open = ReqwestTransport::new(config, names.reaching(Reach::of(PrivateAddresses::Allow))).unwrap();
    assert_eq!(get(&open, &url).await.unwrap(), "ok");
}

#[tokio::test]
async fn through_a_proxy_only_literals_are_refused_and_the_proxy_itself_never() {
    let proxy = Server::start(OK, Then::Close).await;
    let transport = with(&hosts(&[("a.test", "127.0.0.1:1".parse().unwrap())]));
    let through = async |url: &str, proxy: String| {
        let mut outgoing = outgoing(url);
        outgoing.proxy = Some(ProxyUrl(proxy.into()));
        transport.exchange(outgoing, &Count::new(true)).await.map(|reply| reply.body)
    };
    for name in ["127.0.0.1", "localhost"] {
        let proxy = format!("http://{name}:{}", proxy.addr.port());
        assert_eq!(through("http://a.test/", proxy.clone()).await.unwrap(), "ok", "HOSTS is not for what a proxy resolves");
        for url in ["http://127.0.0.1/", "http://localhost/", "https://[fd00::1]/"] {
            assert_eq!(through(url, proxy.clone()).await.unwrap_err().kind, FailureKind::PrivateAddress, "{url}");
        }
    }
    assert!(proxy.heads().iter().all(|head| head.starts_with("GET http://a.test/")), "{:?}", proxy.heads());
}
