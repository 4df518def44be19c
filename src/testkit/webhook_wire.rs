//! The sockets of the scripted webhook: as much HTTP/1.1 as it needs, and resets on purpose.
//!
//! A request's head has at most [`HEAD_BYTES`], its body at most [`BODY_BYTES`]; what is larger or no HTTP ends the connection.

use std::io;
use std::sync::Arc;

use bytes::{Bytes, BytesMut};
use http::StatusCode;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

use super::webhook::{Shared, Step};

const HEAD_BYTES: usize = 64 * 1024;
const BODY_BYTES: usize = 256 * 1024 * 1024;
/// The end of every path that is answered by the script.
const PATH: &str = "/api/webhook/consume";

/// A request that was read to its end.
pub(super) struct Request {
    method: String,
    pub(super) target: String,
    /// Names in lower case.
    pub(super) headers: Vec<(String, String)>,
    pub(super) body: Bytes,
}

/// Serves the requests of one connection, one after the other.
pub(super) async fn serve(stream: TcpStream, shared: Arc<Shared>, connection: usize) {
    let _ = stream.set_nodelay(true);
    // A client that goes away ends the connection; there is nobody left to tell.
    let _ = requests(stream, &shared, connection).await;
}

async fn requests(mut stream: TcpStream, shared: &Shared, connection: usize) -> io::Result<()> {
    let mut read = BytesMut::new();
    loop {
        if read.is_empty() && stream.read_buf(&mut read).await? == 0 {
            return Ok(());
        }
        let Some((head, length)) = head(&mut stream, &mut read).await? else {
            return answer(&mut stream, 400, &[], "this is not HTTP/1.1 with a Content-Length").await;
        };
        let is_post = head.method == "POST";
        if !is_post || !head.target.split('?').next().unwrap_or_default().ends_with(PATH) {
            body(&mut stream, &mut read, length).await?;
            let (status, what) = if is_post { (404, "post to /api/webhook/consume") } else { (405, "only POST is allowed") };
            answer(&mut stream, status, &[], what).await?;
            continue;
        }
        let step = shared.next_step();
        if step == Step::Reset {
            return stream.set_zero_linger();
        }
        if head.headers.iter().any(|(name, value)| name == "expect" && value.eq_ignore_ascii_case("100-continue")) {
            stream.write_all(b"HTTP/1.1 100 Continue\r\n\r\n").await?;
        }
        let body = body(&mut stream, &mut read, length).await?;
        let place = shared.note(Request { body: body.clone(), ..head }, connection);
        let step = match step {
            Step::Hang(time) => {
                if is_gone_within(&mut stream, &mut read, time).await {
                    return Ok(());
                }
                shared.default_step()
            }
            step => step,
        };
        match shared.refused(step, &body) {
            Step::Answer(status) => {
                shared.settle(place, Some(status), is_success(status));
                let text = if is_success(status) {
                    "{\"status\": \"ok\"}".to_owned()
                } else {
                    format!("{{\"error\": \"scripted {status}\"}}")
                };
                answer(&mut stream, status, &[("content-type".to_owned(), "application/json".to_owned())], &text).await?;
            }
            Step::AnswerWith { status, headers, body } => {
                shared.settle(place, Some(status), is_success(status));
                answer(&mut stream, status, &headers, &body).await?;
            }
            Step::TakeThenReset => {
                shared.settle(place, None, true);
                return stream.set_zero_linger();
            }
            Step::Hang(_) | Step::Reset => return stream.set_zero_linger(),
        }
    }
}

const fn is_success(status: u16) -> bool {
    200 <= status && status < 300
}

/// Reads a head and takes it out of what was read; `None` when it is none. Its body has the length given beside it.
async fn head(stream: &mut TcpStream, read: &mut BytesMut) -> io::Result<Option<(Request, usize)>> {
    let end = loop {
        if let Some(at) = memchr::memmem::find(read, b"\r\n\r\n") {
            break at;
        }
        if read.len() > HEAD_BYTES {
            return Ok(None);
        }
        if stream.read_buf(read).await? == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
    };
    let bytes = read.split_to(end + 4);
    let text = String::from_utf8_lossy(&bytes);
    let mut lines = text.trim_end().split("\r\n");
    let mut words = lines.next().unwrap_or_default().split(' ');
    let (Some(method), Some(target), Some("HTTP/1.1")) = (words.next(), words.next(), words.next()) else { return Ok(None) };
    let headers: Vec<(String, String)> = lines
        .filter_map(|line| line.split_once(':'))
        .map(|(name, value)| (name.to_ascii_lowercase(), value.trim().to_owned()))
        .collect();
    let value = |name: &str| headers.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_str());
    let length = match (value("content-length").map(str::parse), value("transfer-encoding")) {
        (None, None) if method != "POST" => 0,
        (Some(Ok(length)), None) if length <= BODY_BYTES => length,
        _ => return Ok(None),
    };
    Ok(Some((Request { method: method.to_owned(), target: target.to_owned(), headers, body: Bytes::new() }, length)))
}

async fn body(stream: &mut TcpStream, read: &mut BytesMut, length: usize) -> io::Result<Bytes> {
    while read.len() < length {
        if stream.read_buf(read).await? == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
    }
    Ok(read.split_to(length).freeze())
}

/// Waits, and tells whether the client left meanwhile.
async fn is_gone_within(stream: &mut TcpStream, read: &mut BytesMut, time: std::time::Duration) -> bool {
    let gone = async {
        // What a client sends on already is kept for the next request.
        while let Ok(1..) = stream.read_buf(read).await {}
    };
    tokio::time::timeout(time, gone).await.is_ok()
}

async fn answer(stream: &mut TcpStream, status: u16, headers: &[(String, String)], body: &str) -> io::Result<()> {
    let name = StatusCode::from_u16(status).ok().and_then(|status| status.canonical_reason()).unwrap_or("Scripted");
    let mut text = format!("HTTP/1.1 {status} {name}\r\n");
    for (name, value) in headers {
        text.push_str(&format!("{name}: {value}\r\n"));
    }
    // These have no body, whatever they say.
    let body = if matches!(status, 204 | 304) { "" } else { body };
    if status != 204 {
        text.push_str(&format!("content-length: {}\r\n", body.len()));
    }
    text.push_str("\r\n");
    text.push_str(body);
    stream.write_all(text.as_bytes()).await
}
