//! The plane at a URL: a face on the loopback with the server's model behind it, and servers that fail.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing)]

mod config;
mod cost;
mod faults;
mod leases;
mod reports;

use std::net::{Ipv4Addr, SocketAddr};
use std::path::Path;

use serde_json::Value;
use tokio::task::JoinHandle;

use super::*;
use crate::dice::Dice;
use crate::http_server::{self, Bounds, RunningServer};
use crate::plane::face::{Clock, Face, FaceOptions, LARGEST_BODY};
use crate::plane::model::Plane;
use crate::plane::model::config_center::{Format, ItemName};
use crate::plane::model::token::mint;
use crate::plane::seed::{self, Part};
use crate::plane::{PlaneError, RefusalKind};
use crate::spinneret::{ProxyChoice, RetryPolicy, Timeouts};

/// Scopes for everything of the site `shop`.
const ALL: u8 = 1;
/// Scopes for another site and the config group `other` only.
const OTHER: u8 = 2;
/// One call per second.
const SLOW: u8 = 3;
/// Revoked.
const REVOKED: u8 = 4;
/// Known to nobody.
const UNKNOWN: u8 = 9;

const SECOND: Duration = Duration::from_secs(1);

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

impl Stage {
    /// A plane with so many identities.
    async fn new(identities: usize) -> Self {
        Self::at(plane(identities, ""), SocketAddr::from((Ipv4Addr::LOCALHOST, 0))).await
    }

    async fn at(plane: Plane, address: SocketAddr) -> Self {
        let face = Arc::new(Face::new(plane, FaceOptions::default()));
        let server = http_server::start(address, BOUNDS, Arc::clone(&face)).await.unwrap();
        let time = tokio::spawn(Arc::clone(&face).keep_time());
        Self { face, server, time }
    }

    fn url(&self) -> String {
        format!("http://{}", self.server.addr())
    }

    fn remote(&self, number: u8) -> Remote {
        self.remote_with(number, RemoteOptions { snapshots: false, ..RemoteOptions::default() })
    }

    fn remote_with(&self, number: u8, options: RemoteOptions) -> Remote {
        Remote::new(client(&self.url(), &token(number)), options)
    }

    fn publish(&self, key: &str, content: &str) -> i32 {
        let name = ItemName { group: "crawler", key };
        self.face.with_plane(|plane, now| plane.publish(name, Format::Text, content, now)).unwrap()
    }

    /// The ledger of the site `shop`.
    fn ledger(&self) -> Value {
        let ledger = self.face.with_plane(|plane, _| plane.ledger());
        serde_json::to_value(ledger).unwrap()["sites"]["shop"].clone()
    }

    fn count(&self, name: &str) -> u64 {
        self.ledger()[name].as_u64().unwrap()
    }

    async fn end(self) {
        self.face.shut_down();
        self.server.stop().await;
        self.time.await.unwrap();
    }
}

/// A client whose calls are made once, with short limits.
fn client(url: &str, token: &str) -> Client {
    let timeouts = Timeouts { connect: SECOND, read: SECOND / 2, ..Timeouts::default() };
    let builder = Client::builder().url(url).token(token).node("test").proxy(ProxyChoice::None).timeouts(timeouts);
    builder.retry(RetryPolicy::NO_RETRY).environment(|_| None).build().unwrap()
}

/// The site `shop` with the client `web`, the group `search` and so many active identities.
fn plane(identities: usize, more: &str) -> Plane {
    let mut text = "namespace = \"prod\"\n".to_owned();
    for (number, rest) in [
        (ALL, r#"scopes = ["lease:acquire", "report:write", "config:read", "secret:read:prod/*"]"#),
        (OTHER, r#"scopes = ["lease:acquire:other", "report:write:other", "config:read:other"]"#),
        (SLOW, "scopes = [\"lease:acquire\"]\nrate_limit_rps = 1"),
        (REVOKED, "scopes = [\"lease:acquire\"]\nrevoked = true"),
    ] {
        text += &format!("[[tokens]]\nname = \"t{number}\"\ntoken = \"{}\"\n{rest}\n", token(number));
    }
    text += "[secrets]\n\"signing/key\" = \"c4n4ry-secret\"\n[[sites]]\nname = \"shop\"\nclients = [\"web\"]\n";
    text += more;
    for number in 0..identities {
        text += &format!("[[sites.identities]]\nname = \"reader-{number}\"\ncookies = {{ session = \"c4n4ry-{number}\" }}\n");
    }
    let nothing = |_: &Path| Err(std::io::ErrorKind::NotFound.into());
    let seed = seed::parse(&text, Path::new("plane.toml"), Part::Whole, &nothing).unwrap();
    Plane::new(seed, wall_ms(), Dice::new(1)).unwrap()
}

fn wall_ms() -> crate::plane::model::Ms {
    (Clock::default().0)()
}

fn ask(path: &str) -> Ask {
    Ask {
        site: "shop".into(),
        client: "web".into(),
        group: "".into(),
        path: path.to_owned(),
        session_key: None,
        anonymous: false,
        rule: None,
    }
}

fn report(id: u64, lease: &LeaseId) -> Report {
    Report {
        id,
        lease: lease.clone(),
        path: "/feed".to_owned(),
        method: http::Method::GET,
        status: Some(200),
        error: None,
        markers: Vec::new(),
        business_code: None,
        outcome_hint: None,
        sent_at: Instant::now(),
        latency: Duration::from_millis(3),
        bytes: 12,
        retry_after: None,
        release: true,
    }
}
