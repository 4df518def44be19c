//! Proxies: one that is named, and those of the environment. The scripted webhook is proxy and backend at once.

use std::process::Command;

use super::*;

const BACKEND: &str = "http://backend.invalid/run";

fn through(proxy: &str) -> ClientConfig {
    ClientConfig { proxy: ProxyChoice::Url(proxy.into()), ..config(BACKEND) }
}

#[tokio::test]
async fn a_named_proxy_gets_the_request() {
    let proxy = ScriptedWebhook::start(SECRET).unwrap();
    let client = Client::new(through(&proxy.url().replace("http://", "http://user:canary@"))).unwrap();
    assert_eq!(client.post(BODY.into(), "a").await, Answer::Delivered);
    let request = proxy.requests().remove(0);
    assert_eq!(
        (request.target.as_str(), request.header("host")),
        ("http://backend.invalid/run/api/webhook/consume", Some("backend.invalid"))
    );
    assert!(request.header("proxy-authorization").unwrap().starts_with("Basic "));
    assert!(request.is_signed);
}

#[tokio::test]
async fn a_proxy_that_does_not_help_is_named_without_its_password() {
    let closed = TcpListener::bind("127.0.0.1:0").await.unwrap().local_addr().unwrap();
    let client = Client::new(through(&format!("http://user:canary@{closed}"))).unwrap();
    let why = retried(checked(client.post(BODY.into(), "a").await));
    assert_eq!(why, format!("connection refused (the proxy {closed})"));

    for (answer, expected) in [
        ("HTTP/1.1 407 Proxy Authentication Required\r\n\r\n", "does not accept the user or password (407)"),
        ("HTTP/1.1 502 Bad Gateway\r\n\r\n", "opened no connection to backend.invalid"),
    ] {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let addr = listener.local_addr().unwrap();
        tokio::spawn(async move {
            let (mut stream, _): (TcpStream, _) = listener.accept().await.unwrap();
            let mut head = [0; 4096];
            let n = stream.read(&mut head).await.unwrap();
            assert!(head[..n].starts_with(b"CONNECT backend.invalid:443 "));
            stream.write_all(answer.as_bytes()).await.unwrap();
        });
        let proxy = ProxyChoice::Url(format!("http://user:canary@{addr}").into());
        let config = ClientConfig { proxy, ..config("https://backend.invalid") };
        let answer = checked(Client::new(config).unwrap().post(BODY.into(), "a").await);
        let why = answer.why().unwrap();
        assert!(why.contains(expected) && why.contains(&addr.to_string()), "{why}");
        assert_eq!(matches!(answer, Answer::Fatal { .. }), expected.contains("407"), "{answer:?}");
    }
}

/// Runs the child below with nothing of this process's proxies but these variables.
fn child(variables: &[(&str, &str)]) -> String {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args(["--exact", "apcloudy::client::tests::proxies::posts_once", "--ignored", "--nocapture"]);
    for name in ["HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "NO_PROXY", "REQUEST_METHOD"] {
        command.env_remove(name).env_remove(name.to_ascii_lowercase());
    }
    let output = command.envs(variables.iter().copied()).output().unwrap();
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(output.status.success(), "{text}");
    assert!(!text.contains("canary"), "{text}");
    text
}

#[tokio::test]
#[ignore = "run by the test the_proxies_of_the_environment_are_honoured"]
async fn posts_once() {
    let config = ClientConfig { proxy: ProxyChoice::Environment, ..config(BACKEND) };
    match Client::new(config) {
        Ok(client) => println!("answer: {:?}", client.post(BODY.into(), "a").await),
        Err(error) => println!("no client: {error}"),
    }
}

#[test]
fn the_proxies_of_the_environment_are_honoured() {
    let proxy = ScriptedWebhook::start(SECRET).unwrap();
    let with_password = proxy.url().replace("http://", "http://user:canary@");
    for (calls, name) in ["HTTP_PROXY", "http_proxy", "ALL_PROXY"].into_iter().enumerate() {
        let text = child(&[(name, with_password.as_str())]);
        assert!(text.contains("answer: Delivered"), "{name}: {text}");
        assert_eq!(proxy.calls(), calls + 1);
    }
    let calls = proxy.calls();
    for variables in [
        vec![],
        vec![("HTTPS_PROXY", proxy.url())],
        vec![("HTTP_PROXY", proxy.url()), ("NO_PROXY", "backend.invalid".to_owned())],
    ] {
        let variables: Vec<_> = variables.iter().map(|(name, value)| (*name, value.as_str())).collect();
        let text = child(&variables);
        assert!(text.contains("the name of backend.invalid cannot be resolved"), "{text}");
    }
    for (name, value) in [("HTTP_PROXY", "::canary::"), ("all_proxy", "ftp://user:canary@proxy.example:21")] {
        let text = child(&[(name, value)]);
        assert!(text.contains(&format!("no client: the environment variable {name} holds no proxy's URL")), "{text}");
        let text = child(&[(name, value), ("NO_PROXY", "backend.invalid")]);
        assert!(text.contains("the name of backend.invalid cannot be resolved"), "{text}");
    }
    assert_eq!(proxy.calls(), calls);
}
