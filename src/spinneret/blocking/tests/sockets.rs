//! Against a server on the loopback.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{SocketAddr, TcpListener, TcpStream};

use super::*;
use crate::spinneret::testing;

type Calls = Arc<Mutex<Vec<(String, Value)>>>;

/// Grants leases, takes reports and releases, one thread per connection.
fn server() -> (SocketAddr, Calls) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let (addr, calls) = (listener.local_addr().unwrap(), Calls::default());
    let theirs = Arc::clone(&calls);
    thread::spawn(move || {
        for stream in listener.incoming() {
            let calls = Arc::clone(&theirs);
            thread::spawn(move || serve(stream.unwrap(), &calls));
        }
    });
    (addr, calls)
}

fn serve(mut stream: TcpStream, calls: &Calls) -> Option<()> {
    let mut reader = BufReader::new(stream.try_clone().ok()?);
    loop {
        let (mut path, mut length) = (String::new(), 0);
        loop {
            let mut line = String::new();
            if reader.read_line(&mut line).ok()? == 0 {
                return None;
            }
            let line = line.trim_end();
            if path.is_empty() {
                path = line.split(' ').nth(1)?.to_owned();
            }
            if let Some(value) = line.to_ascii_lowercase().strip_prefix("content-length: ") {
                length = value.parse().ok()?;
            }
            if line.is_empty() {
                break;
            }
        }
        let mut body = vec![0; length];
        reader.read_exact(&mut body).ok()?;
        let body: Value = serde_json::from_slice(&body).ok()?;
        let method = path.rsplit('/').next()?.to_owned();
        let number = {
            let mut calls = calls.lock().ok()?;
            calls.push((method.clone(), body.clone()));
            calls.len()
        };
        let answer = match method.as_str() {
            "Acquire" => testing::lease(&format!("lse_{number}")),
            "Report" => json!({"accepted": body["reports"].as_array()?.len(), "duplicated": 0, "rejected": []}),
            _ => json!({"released": true}),
        };
        let answer = answer.to_string();
        let head = format!("HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: {}\r\n\r\n", answer.len());
        stream.write_all((head + &answer).as_bytes()).ok()?;
    }
}

#[test]
fn threads_work_with_a_server_on_the_loopback() {
    let (addr, calls) = server();
    let builder = crate::spinneret::Client::builder().url(format!("http://{addr}")).token("spn_loopback").node("node");
    let client = Client::try_from(builder).unwrap();
    thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                for _ in 0..10 {
                    let lease = client.lease(search()).unwrap().acquire().unwrap();
                    lease.report(ReportDraft::status(200)).unwrap();
                }
                drop(client.lease(search()).unwrap().acquire().unwrap());
            });
        }
    });
    client.close().unwrap();
    let calls = calls.lock().unwrap();
    let count = |method: &str| calls.iter().filter(|(called, _)| called == method).count();
    let released = calls.iter().filter_map(|(_, body)| body["reports"].as_array()).flatten();
    assert_eq!(released.filter(|report| report["release"] == true).count(), 40);
    assert_eq!((count("Acquire"), count("Release")), (44, 4));
}
