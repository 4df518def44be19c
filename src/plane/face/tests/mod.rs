//! A face on the loopback, asked by the client of this crate and by hand.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing)]

mod calls;
mod config;
mod golden;
mod leases;
mod speed;
mod waiting;
mod wire;

use std::net::{Ipv4Addr, SocketAddr};
use std::path::Path;

use serde_json::{Value, json};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::task::JoinHandle;

use super::*;
use crate::http_server::{self, Bounds, RunningServer};
use crate::plane::model::token::mint;
use crate::plane::seed::{self, Part};
use crate::spinneret::{AcquireRequest, Client, ProxyChoice, RetryPolicy};

/// Scopes for everything of the site `shop`.
const ALL: u8 = 1;
/// Scopes for another site and the config group `crawler` only.
const OTHER: u8 = 2;
/// One call per second.
const SLOW: u8 = 3;
/// Revoked.
const REVOKED: u8 = 4;
/// Known to nobody.
const UNKNOWN: u8 = 9;

const BOUNDS: Bounds =
    Bounds { connections: 64, target: 8192, body: LARGEST_BODY, bodies: 4 * LARGEST_BODY, body_time: Duration::from_secs(10) };

/// The text of a token.
fn token(number: u8) -> String {
    use secrecy::ExposeSecret as _;
    mint([number; 32]).expose_secret().to_owned()
}

/// A server with a plane behind it.
struct Stage {
    face: Arc<Face>,
    server: RunningServer,
    time: JoinHandle<()>,
}

/// An answer as it came.
#[derive(Debug)]
struct Raw {
    status: u16,
    head: String,
    body: Vec<u8>,
}

impl Stage {
    /// A plane with so many identities, at `/sp`.
    async fn with(identities: usize, options: FaceOptions) -> Self {
        Self::of(plane(identities), options).await
    }

    async fn of(plane: Plane, options: FaceOptions) -> Self {
        Self::put(plane, options, SocketAddr::from((Ipv4Addr::LOCALHOST, 0))).await
    }

    async fn at(identities: usize, options: FaceOptions, address: SocketAddr) -> Self {
        Self::put(plane(identities), options, address).await
    }

    async fn put(plane: Plane, options: FaceOptions, address: SocketAddr) -> Self {
        let face = Arc::new(Face::new(plane, FaceOptions { base: "/sp/".to_owned(), ..options }));
        let server = http_server::start(address, BOUNDS, Arc::clone(&face)).await.unwrap();
        let time = tokio::spawn(Arc::clone(&face).keep_time());
        Self { face, server, time }
    }

    async fn new(identities: usize) -> Self {
        Self::with(identities, FaceOptions::default()).await
    }

    fn client(&self, number: u8) -> Client {
        let url = format!("http://{}/sp", self.server.addr());
        let builder = Client::builder().url(url).token(token(number)).node("test").proxy(ProxyChoice::None);
        builder.retry(RetryPolicy::NO_RETRY).environment(|_| None).build().unwrap()
    }

    /// Sends these bytes and reads to the end.
    async fn send(&self, head: &str, body: &[u8]) -> Raw {
        let mut stream = TcpStream::connect(self.server.addr()).await.unwrap();
        let length = body.len();
        let head = format!("{head}\r\nhost: localhost\r\nconnection: close\r\ncontent-length: {length}\r\n\r\n");
        stream.write_all(head.as_bytes()).await.unwrap();
        stream.write_all(body).await.unwrap();
        let mut answer = Vec::new();
        stream.read_to_end(&mut answer).await.unwrap();
        let end = answer.windows(4).position(|window| window == b"\r\n\r\n").unwrap();
        let head = String::from_utf8(answer[..end].to_vec()).unwrap().to_lowercase();
        Raw { status: head[9..12].parse().unwrap(), head, body: answer[end + 4..].to_vec() }
    }

    /// A call with a body as it is.
    async fn call(&self, procedure: &str, headers: &str, body: &[u8]) -> Raw {
        self.send(&format!("POST /sp/spinneret.v1.{procedure} HTTP/1.1\r\ncontent-type: application/json{headers}"), body).await
    }

    /// A call with a token.
    async fn ask(&self, procedure: &str, number: u8, body: &Value) -> Raw {
        let headers = format!("\r\nauthorization: Bearer {}", token(number));
        self.call(procedure, &headers, body.to_string().as_bytes()).await
    }

    /// Does something by hand.
    async fn act(&self, deed: &str, body: &Value) -> Raw {
        let head = format!("POST /sp/plane/{deed} HTTP/1.1\r\ncontent-type: application/json");
        self.send(&head, body.to_string().as_bytes()).await
    }

    async fn ledger(&self) -> Value {
        self.send("GET /sp/plane/ledger HTTP/1.1", b"").await.json()["sites"]["shop"].clone()
    }

    async fn end(self) {
        self.face.shut_down();
        self.server.stop().await;
        self.time.await.unwrap();
    }
}

impl Raw {
    fn json(&self) -> Value {
        serde_json::from_slice(&self.body).unwrap_or_else(|error| panic!("{error}: {self:?}"))
    }

    fn header(&self, name: &str) -> Option<&str> {
        self.head.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(": "))
    }

    /// Status, code and reason of a refusal.
    fn refused(&self) -> (u16, String, Option<String>) {
        let code = self.json()["code"].as_str().unwrap().to_owned();
        (self.status, code, self.header("spinneret-reason").map(str::to_owned))
    }
}

fn refused(status: u16, code: &str, reason: &str) -> (u16, String, Option<String>) {
    (status, code.to_owned(), Some(reason).filter(|reason| !reason.is_empty()).map(str::to_owned))
}

fn shop() -> AcquireRequest {
    AcquireRequest::new("shop", "web")
}

/// The site `shop` with the client `web` and so many active identities, in the namespace `prod`.
fn plane(identities: usize) -> Plane {
    let mut plane = plane_of(&seed_text(identities), "plane.toml");
    assert_eq!(plane.config_center().secrets_mut().put("signing/key", "s3cret-2".into(), Some(1000)), Ok(2));
    plane
}

/// A plane as this text says, which would be in a file of this name.
fn plane_of(text: &str, name: &str) -> Plane {
    let nothing = |_: &Path| Err(std::io::ErrorKind::NotFound.into());
    let seed = seed::parse(text, Path::new(name), Part::Whole, &nothing).unwrap();
    Plane::new(seed, (Clock::default().0)(), Dice::new(1)).unwrap()
}

fn seed_text(identities: usize) -> String {
    let mut text = "namespace = \"prod\"\n".to_owned();
    for (number, rest) in [
        (ALL, r#"scopes = ["lease:acquire", "report:write", "config:read", "secret:read:prod/*"]"#),
        (OTHER, r#"scopes = ["lease:acquire:other", "report:write:other", "config:read:crawler"]"#),
        (SLOW, "scopes = [\"lease:acquire\"]\nrate_limit_rps = 1"),
        (REVOKED, "scopes = [\"lease:acquire\"]\nrevoked = true"),
    ] {
        text += &format!("[[tokens]]\nname = \"t{number}\"\ntoken = \"{}\"\n{rest}\n", token(number));
    }
    text += "[secrets]\n\"signing/key\" = \"s3cret-1\"\n[[sites]]\nname = \"shop\"\nclients = [\"web\"]\n";
    for number in 0..identities {
        text += &format!("[[sites.identities]]\nname = \"reader-{number}\"\ncookies = {{ session = \"s{number}\" }}\n");
    }
    text
}
