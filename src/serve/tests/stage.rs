//! Everything that `dragline serve` serves, on the loopback.

use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::PathBuf;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use serde_json::Value;
use tempfile::TempDir;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::sync::oneshot;
use tokio::task::JoinHandle;
use tokio::time::{Instant, sleep, timeout};

use super::super::{SAMPLE_TOKEN, ServeError, ServeOptions, serve};
use crate::spinneret::{Client, ProxyChoice};

/// An output that is read while it is written.
#[derive(Clone, Default)]
struct Told(Arc<Mutex<Vec<u8>>>);

impl io::Write for Told {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().unwrap().extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

pub(super) struct Stage {
    pub(super) folder: TempDir,
    pub(super) address: SocketAddr,
    stop: oneshot::Sender<()>,
    served: JoinHandle<Result<(), ServeError>>,
}

/// An answer as it came.
#[derive(Debug)]
pub(super) struct Raw {
    pub(super) status: u16,
    pub(super) head: String,
    pub(super) body: String,
}

impl Raw {
    pub(super) fn json(&self) -> Value {
        serde_json::from_str(&self.body).unwrap_or_else(|error| panic!("{error}: {self:?}"))
    }
}

impl Stage {
    /// As this file says.
    pub(super) async fn of(text: &str) -> Self {
        Self::with(text, |_| {}).await
    }

    pub(super) async fn with(text: &str, change: impl FnOnce(&mut ServeOptions)) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("serve.toml");
        std::fs::write(&file, text).unwrap();
        let mut options = ServeOptions {
            listen: SocketAddr::from((Ipv4Addr::LOCALHOST, 0)),
            db: folder.path().join("jobs.db"),
            file: Some(file),
            max_body: 1 << 20,
            connections: 256,
            keep: 0,
        };
        change(&mut options);
        let (told, (stop, stopped)) = (Told::default(), oneshot::channel::<()>());
        let mut out = told.clone();
        let served = tokio::spawn(async move {
            serve(options, &mut out, async {
                let _ = stopped.await;
            })
            .await
        });
        let begin = Instant::now();
        let line = loop {
            let line = String::from_utf8(told.0.lock().unwrap().clone()).unwrap();
            if line.ends_with('\n') {
                break line;
            }
            assert!(!served.is_finished() && begin.elapsed() < Duration::from_secs(5), "{line}");
            sleep(Duration::from_millis(5)).await;
        };
        let address = line.trim_end().strip_prefix("listening on http://").unwrap().parse().unwrap();
        Self { folder, address, stop, served }
    }

    pub(super) fn file(&self) -> PathBuf {
        self.folder.path().join("serve.toml")
    }

    pub(super) fn client(&self) -> Client {
        self.client_with(SAMPLE_TOKEN)
    }

    pub(super) fn client_with(&self, token: &str) -> Client {
        let builder = Client::builder().url(format!("http://{}", self.address)).token(token.to_owned()).node("test");
        builder.proxy(ProxyChoice::None).environment(|_| None).build().unwrap()
    }

    /// Sends a request and reads the answer to its end.
    pub(super) async fn ask(&self, head: &str, body: &[u8]) -> Raw {
        self.ask_at(self.address, head, body).await
    }

    pub(super) async fn ask_at(&self, address: SocketAddr, head: &str, body: &[u8]) -> Raw {
        let mut stream = TcpStream::connect(address).await.unwrap();
        let host = if head.contains("\r\nhost:") { String::new() } else { format!("\r\nhost: {address}") };
        let head = format!("{head}{host}\r\nconnection: close\r\ncontent-length: {}\r\n\r\n", body.len());
        stream.write_all(head.as_bytes()).await.unwrap();
        stream.write_all(body).await.unwrap();
        read(&mut stream).await
    }

    pub(super) async fn ledger(&self) -> Value {
        self.ask("GET /plane/ledger HTTP/1.1", b"").await.json()
    }

    /// Stops it; answers how long that took.
    pub(super) async fn end(self) -> Duration {
        let begin = Instant::now();
        self.stop.send(()).unwrap();
        timeout(Duration::from_secs(10), self.served).await.unwrap().unwrap().unwrap();
        begin.elapsed()
    }
}

/// An answer that ends with its connection.
pub(super) async fn read(stream: &mut TcpStream) -> Raw {
    let mut answer = Vec::new();
    stream.read_to_end(&mut answer).await.unwrap();
    let answer = String::from_utf8(answer).unwrap();
    let (head, body) = answer.split_once("\r\n\r\n").unwrap_or_else(|| panic!("{answer:?}"));
    Raw { status: head[9..12].parse().unwrap(), head: head.to_lowercase(), body: body.to_owned() }
}

/// Waits for something to come about.
pub(super) async fn until<F: Future<Output = bool>>(what: &str, is_so: impl Fn() -> F) {
    let begin = Instant::now();
    while !is_so().await {
        assert!(begin.elapsed() < Duration::from_secs(8), "it does not come about: {what}");
        sleep(Duration::from_millis(50)).await;
    }
}
