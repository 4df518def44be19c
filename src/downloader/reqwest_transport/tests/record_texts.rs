//! What request records say of each way to fail, as the wire has it.

use super::*;

/// A server that answers each connection with these bytes, whatever it is sent.
async fn blunt(answer: &'static [u8]) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let addr = listener.local_addr().unwrap();
    tokio::spawn(async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            let _ = stream.read(&mut [0; 4096]).await;
            let _ = stream.write_all(answer).await;
        }
    });
    addr
}

/// The error of a record, and the URL as messages may show it.
async fn text_of(url: &str) -> String {
    let config =
        ClientConfig { connect_timeout: Duration::from_secs(20), verify_certificates: true, max_clients: 1, idle: 1000 * MS };
    let mut outgoing = outgoing(url);
    outgoing.limits = Limits { total: 2000 * MS, idle: Duration::from_secs(30), max_bytes: 2000, ..limits() };
    if url.contains(".invalid") {
        // A machine without a resolver may need longer to say so.
        outgoing.limits.total = Duration::from_secs(30);
    }
    let result = ReqwestTransport::new(config, Names::of_system()).unwrap().exchange(outgoing, &Count::new(true)).await;
    result.expect_err(url).record_text()
}

#[tokio::test]
async fn the_error_of_a_record_has_scrapys_class_and_words() {
    let silent = Server::start("", Then::Hang).await.addr;
    let reset = Server::start("", Then::Reset).await.addr;
    let lost = Server::start("", Then::Close).await.addr;
    let cut = Server::start("HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nabc", Then::Close).await.addr;
    let large = Server::start("HTTP/1.1 200 OK\r\nContent-Length: 5000\r\n\r\n", Then::Hang).await.addr;
    let endless = Server::start("HTTP/1.1 200 OK\r\n\r\n", Then::Drip).await.addr;
    let plain = blunt(b"HTTP/1.1 400 Bad Request\r\n\r\n").await;
    let garbage = blunt(b"HTTP/1.1 abc\r\n\r\n").await;
    let refused = TcpListener::bind("127.0.0.1:0").await.unwrap().local_addr().unwrap();
    let was_lost = "DownloadFailedError: Connection to the other side was lost in a non-clean fashion.".to_owned();
    let late = |addr: SocketAddr| format!("DownloadTimeoutError: Getting http://{addr}/p took longer than 2.0 seconds.");
    let table = [
        (
            "http://u:canary@no-such-host.invalid/".to_owned(),
            "CannotResolveHostError: DNS lookup failed: no results for hostname lookup: no-such-host.invalid.".to_owned(),
        ),
        (
            format!("http://{refused}/"),
            "DownloadConnectionRefusedError: Connection was refused by other side: 111: Connection refused.".to_owned(),
        ),
        (format!("http://u:canary@{silent}/p?key=canary#canary"), late(silent)),
        (format!("http://u:canary@{endless}/p?key=canary#canary"), late(endless)),
        (format!("http://{reset}/"), was_lost.clone()),
        (format!("http://{lost}/"), was_lost),
        (format!("http://{cut}/"), "ResponseDataLossError: ".to_owned()),
        (
            format!("http://u:canary@{large}/p?key=canary#canary"),
            format!(
                "DownloadCancelledError: Expected to receive 5000 bytes which is larger than download max size (2000) in request <GET http://{large}/p>."
            ),
        ),
        (
            "foo://u:canary@a.example/?key=canary".to_owned(),
            "NotSupported: Unsupported URL scheme 'foo': no handler available for that scheme".to_owned(),
        ),
    ];
    let cases = table.iter().map(|(url, text)| async move { assert_eq!(&text_of(url).await, text) });
    futures_util::future::join_all(cases).await;
    // In these the client's own words follow.
    let tls = text_of(&format!("https://u:canary@{plain}/?key=canary")).await;
    assert!(tls.starts_with("DownloadFailedError: TLS failed: ") && !tls.contains("canary"), "{tls}");
    let bad = text_of(&format!("http://u:canary@{garbage}/?key=canary")).await;
    assert!(bad.starts_with("DownloadFailedError: the answer is not HTTP: ") && !bad.contains("canary"), "{bad}");
}
