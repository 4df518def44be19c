//! The HTTP face of a proxy: whole URLs and `CONNECT` (RFC 9110, 7.6 and 9.3.6). One request a connection.

use std::io;
use std::sync::Arc;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use url::Url;

use super::relay::relay;
use super::{Passed, ProxyFault, Shared, Stream, Way, hang};

/// Longest head that is read.
const HEAD_BYTES: usize = 64 * 1024;

/// Headers between client and proxy, which are nobody else's business.
const HOP_BY_HOP: [&str; 4] = ["proxy-authorization", "proxy-connection", "connection", "keep-alive"];

pub(super) async fn serve(mut client: Box<dyn Stream>, shared: &Arc<Shared>, connection: usize) -> io::Result<()> {
    let Some((head, rest)) = head_of(&mut client).await? else { return Ok(()) };
    if shared.fault() == Some(ProxyFault::Hang) {
        return hang(client).await;
    }
    let mut lines = head.split("\r\n");
    let mut words = lines.next().unwrap_or_default().split(' ');
    let (Some(method), Some(asked)) = (words.next(), words.next()) else { return refuse(client, "400 Bad Request", "").await };
    let user = lines.clone().find_map(|line| {
        let (name, value) = line.split_once(':')?;
        name.eq_ignore_ascii_case("proxy-authorization").then(|| named(value)).flatten()
    });
    if !shared.admits(user.as_ref().map(|(name, password)| (name.as_str(), password.as_str()))) {
        return refuse(client, "407 Proxy Authentication Required", "Proxy-Authenticate: Basic realm=\"proxy\"\r\n").await;
    }
    let user = user.map(|(name, _)| name);
    if method == "CONNECT" {
        let Some((host, port)) = asked.rsplit_once(':').and_then(|(host, port)| Some((host, port.parse().ok()?))) else {
            return refuse(client, "400 Bad Request", "").await;
        };
        let place = shared.note(Passed::new(connection, Way::Connect, asked.to_owned(), user));
        let Some(mut target) = reached(shared, host, port, place).await else {
            return refuse(client, "502 Bad Gateway", "").await;
        };
        client.write_all(b"HTTP/1.1 200 Connection established\r\n\r\n").await?;
        client.flush().await?;
        target.write_all(&rest).await?;
        return relay(client, target, shared, place).await;
    }
    let Some(url) = Url::parse(asked).ok().filter(|url| url.scheme() == "http") else {
        return refuse(client, "400 Bad Request", "").await;
    };
    let (host, port) = (url.host_str().unwrap_or_default(), url.port_or_known_default().unwrap_or(80));
    let place = shared.note(Passed::new(connection, Way::Absolute, format!("{host}:{port}"), user));
    let Some(mut target) = reached(shared, host, port, place).await else {
        return refuse(client, "502 Bad Gateway", "").await;
    };
    let query = url.query().map(|query| format!("?{query}")).unwrap_or_default();
    let head = format!("{method} {}{query} HTTP/1.1\r\n{}", url.path(), passed_on(lines));
    target.write_all(head.as_bytes()).await?;
    target.write_all(&rest).await?;
    let sent = head.len() + rest.len();
    shared.amend(place, |passed| {
        passed.sent += sent as u64;
        passed.head = Some(head);
    });
    // The answer's own word on keeping the connection would be about another connection.
    let Some((answer, body)) = head_of(&mut target).await? else { return Ok(()) };
    if shared.fault() == Some(ProxyFault::Hang) {
        return hang(client).await;
    }
    let mut lines = answer.split("\r\n");
    let answer = format!("{}\r\n{}", lines.next().unwrap_or_default(), passed_on(lines));
    let mut answer = answer.into_bytes();
    answer.extend(body);
    if let Some(ProxyFault::CutAfter(most)) = shared.fault()
        && answer.len() >= most
    {
        answer.truncate(most);
        client.write_all(&answer).await?;
        return client.flush().await;
    }
    if let Some(ProxyFault::Slow(time)) = shared.fault() {
        tokio::time::sleep(time).await;
    }
    client.write_all(&answer).await?;
    client.flush().await?;
    shared.amend(place, |passed| passed.received += answer.len() as u64);
    relay(client, target, shared, place).await
}

async fn reached(shared: &Shared, host: &str, port: u16, place: usize) -> Option<TcpStream> {
    let target = shared.reach(host, port).await?;
    shared.amend(place, |passed| passed.seen_as = target.local_addr().ok());
    Some(target)
}

/// Headers without those between client and proxy, and the blank line after them.
fn passed_on<'a>(lines: impl Iterator<Item = &'a str>) -> String {
    let mut text = String::new();
    for line in lines.take_while(|line| !line.is_empty()) {
        let name = line.split(':').next().unwrap_or_default().to_ascii_lowercase();
        if !HOP_BY_HOP.contains(&name.as_str()) {
            text.push_str(line);
            text.push_str("\r\n");
        }
    }
    text.push_str("Connection: close\r\n\r\n");
    text
}

/// A head with its blank line, and what came after it; `None` when the connection ends first.
async fn head_of(stream: &mut (impl AsyncReadExt + Unpin)) -> io::Result<Option<(String, Vec<u8>)>> {
    let mut bytes = Vec::new();
    let mut piece = [0; 4096];
    loop {
        if let Some(at) = memchr::memmem::find(&bytes, b"\r\n\r\n") {
            let rest = bytes.split_off(at + 4);
            return Ok(Some((String::from_utf8_lossy(&bytes).into_owned(), rest)));
        }
        let read = stream.read(&mut piece).await?;
        bytes.extend_from_slice(piece.get(..read).unwrap_or_default());
        if read == 0 || bytes.len() > HEAD_BYTES {
            return Ok(None);
        }
    }
}

/// User and password of `Basic …`.
fn named(value: &str) -> Option<(String, String)> {
    let code = value.trim().strip_prefix("Basic ")?;
    let text = String::from_utf8(STANDARD.decode(code.trim()).ok()?).ok()?;
    let (name, password) = text.split_once(':')?;
    Some((name.to_owned(), password.to_owned()))
}

async fn refuse(mut client: Box<dyn Stream>, status: &str, header: &str) -> io::Result<()> {
    let answer = format!("HTTP/1.1 {status}\r\n{header}Content-Length: 0\r\nConnection: close\r\n\r\n");
    client.write_all(answer.as_bytes()).await?;
    client.flush().await?;
    client.shutdown().await
}
