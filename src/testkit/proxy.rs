//! A proxy on a loopback port, on a thread of its own: HTTP, HTTPS or SOCKS5, with users, faults and a log of what passed.
//!
//! Knows only the names it is told and connects to loopback addresses only: nothing leaves the machine, no resolver is
//! asked. Faults can be changed while it runs, and reach tunnels that are open.

mod http;
mod relay;
mod socks;

use std::collections::HashMap;
use std::fmt;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use rustls::pki_types::{CertificateDer, PrivateKeyDer, PrivatePkcs8KeyDer};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite};
use tokio::net::TcpStream;
use tokio::sync::watch;
use tokio_rustls::TlsAcceptor;
use url::form_urlencoded::byte_serialize;

use super::loopback::{Serving, each_connection};

/// What a proxy speaks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ProxyKind {
    /// HTTP: whole URLs of `http` targets, tunnels (`CONNECT`) for the others.
    Http,
    /// The same within TLS. The certificate is signed by nobody: clients must not verify it.
    Https,
    /// SOCKS5 with names, and users if there are any (RFC 1928, RFC 1929).
    Socks5,
}

/// How a proxy misbehaves.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ProxyFault {
    /// Connections are reset as soon as they are accepted; open ones are closed.
    Refuse,
    /// Nothing is answered, and nothing passes.
    Hang,
    /// No user is accepted: 407, or the refusal of SOCKS.
    DenyUser,
    /// No target can be reached: 502, or the refusal of SOCKS.
    Unreachable,
    /// After so many bytes from the target the connection is closed.
    CutAfter(usize),
    /// Every piece from the target waits this long.
    Slow(Duration),
}

/// How something passed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Way {
    /// A request with a whole URL.
    Absolute,
    /// A tunnel by `CONNECT`.
    Connect,
    /// A tunnel by SOCKS.
    Socks,
}

/// One request or tunnel that was let through.
#[derive(Debug, Clone)]
pub struct Passed {
    /// Which connection it came on, from 0.
    pub connection: usize,
    /// When it was let through.
    pub at: Instant,
    /// How.
    pub way: Way,
    /// The target as the client named it, `host:port`.
    pub target: String,
    /// The user the client named, if it named one.
    pub user: Option<String>,
    /// The address the target saw, once it was reached.
    pub seen_as: Option<SocketAddr>,
    /// The head of the request as the target got it; of a tunnel nothing can be read.
    pub head: Option<String>,
    /// Bytes to the target.
    pub sent: u64,
    /// Bytes from the target.
    pub received: u64,
}

/// A proxy on the loopback. Stops when it is dropped.
///
/// ```
/// use dragline::testkit::{ProxyFault, ProxyKind, ScriptedProxy};
///
/// let proxy = ScriptedProxy::start(ProxyKind::Socks5)?;
/// proxy.allow("user", "p@ss");
/// assert!(proxy.url_as("user", "p@ss").starts_with("socks5://user:p%40ss@127.0.0.1:"));
/// proxy.set_fault(Some(ProxyFault::Hang));
/// assert!(proxy.passed().is_empty());
/// # Ok::<(), std::io::Error>(())
/// ```
pub struct ScriptedProxy {
    addr: SocketAddr,
    kind: ProxyKind,
    shared: Arc<Shared>,
    _serving: Serving,
}

/// A connection with or without TLS.
trait Stream: AsyncRead + AsyncWrite + Send + Unpin {}

impl<S: AsyncRead + AsyncWrite + Send + Unpin> Stream for S {}

struct Shared {
    kind: ProxyKind,
    tls: TlsAcceptor,
    fault: watch::Sender<Option<ProxyFault>>,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    users: HashMap<String, String>,
    names: HashMap<(String, u16), SocketAddr>,
    passed: Vec<Passed>,
    connections: usize,
    denied: usize,
}

impl ScriptedProxy {
    /// Starts a proxy that lets everybody through, to loopback addresses.
    ///
    /// # Errors
    /// When no port can be had, or no thread.
    pub fn start(kind: ProxyKind) -> io::Result<Self> {
        let listener = std::net::TcpListener::bind("127.0.0.1:0")?;
        let addr = listener.local_addr()?;
        let (fault, _) = watch::channel(None);
        let shared = Arc::new(Shared { kind, tls: acceptor()?, fault, state: Mutex::default() });
        let served = Arc::clone(&shared);
        let serving = Serving::start("scripted-proxy", || accept(listener, served))?;
        Ok(Self { addr, kind, shared, _serving: serving })
    }

    /// Where it listens.
    #[must_use]
    pub fn addr(&self) -> SocketAddr {
        self.addr
    }

    /// What it speaks.
    #[must_use]
    pub fn kind(&self) -> ProxyKind {
        self.kind
    }

    /// Its URL without a user.
    #[must_use]
    pub fn url(&self) -> String {
        format!("{}://{}", self.scheme(), self.addr)
    }

    /// Its URL with user and password, percent-encoded where they must be.
    #[must_use]
    pub fn url_as(&self, user: &str, password: &str) -> String {
        // A form writes a blank as `+`, a URL as `%20`; a plus sign is `%2B` by now.
        let encoded = |text: &str| byte_serialize(text.as_bytes()).collect::<String>().replace('+', "%20");
        format!("{}://{}:{}@{}", self.scheme(), encoded(user), encoded(password), self.addr)
    }

    /// Accepts this user from now on, and nobody who is not accepted.
    pub fn allow(&self, user: &str, password: &str) -> &Self {
        self.shared.lock().users.insert(user.to_owned(), password.to_owned());
        self
    }

    /// Connects to `to` whoever asks for this host and port.
    pub fn map(&self, host: &str, port: u16, to: SocketAddr) -> &Self {
        self.shared.lock().names.insert((host.to_ascii_lowercase(), port), to);
        self
    }

    /// Misbehaves from now on, or behaves again.
    pub fn set_fault(&self, fault: Option<ProxyFault>) -> &Self {
        self.shared.fault.send_replace(fault);
        self
    }

    /// What was let through so far, in its order.
    #[must_use]
    pub fn passed(&self) -> Vec<Passed> {
        self.shared.lock().passed.clone()
    }

    /// How many connections were accepted.
    #[must_use]
    pub fn connections(&self) -> usize {
        self.shared.lock().connections
    }

    /// How often a user was not accepted.
    #[must_use]
    pub fn denied(&self) -> usize {
        self.shared.lock().denied
    }

    fn scheme(&self) -> &'static str {
        match self.kind {
            ProxyKind::Http => "http",
            ProxyKind::Https => "https",
            ProxyKind::Socks5 => "socks5",
        }
    }
}

impl fmt::Debug for ScriptedProxy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ScriptedProxy").field("kind", &self.kind).field("addr", &self.addr).finish_non_exhaustive()
    }
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn fault(&self) -> Option<ProxyFault> {
        *self.fault.borrow()
    }

    /// Whether anybody may pass without a user.
    fn is_open(&self) -> bool {
        self.fault() != Some(ProxyFault::DenyUser) && self.lock().users.is_empty()
    }

    /// Whether this user may pass; one that may not is counted.
    fn admits(&self, user: Option<(&str, &str)>) -> bool {
        let is_denied = self.fault() == Some(ProxyFault::DenyUser);
        let mut state = self.lock();
        let is_known = state.users.is_empty()
            || user.is_some_and(|(name, password)| state.users.get(name).is_some_and(|known| known == password));
        let admits = is_known && !is_denied;
        state.denied += usize::from(!admits);
        admits
    }

    /// Notes what is let through and gives back its place.
    fn note(&self, passed: Passed) -> usize {
        let mut state = self.lock();
        state.passed.push(passed);
        state.passed.len() - 1
    }

    fn amend(&self, place: usize, change: impl FnOnce(&mut Passed)) {
        if let Some(passed) = self.lock().passed.get_mut(place) {
            change(passed);
        }
    }

    /// Connects to a target; names only as they were told, addresses only of the loopback.
    async fn reach(&self, host: &str, port: u16) -> Option<TcpStream> {
        if self.fault() == Some(ProxyFault::Unreachable) {
            return None;
        }
        let host = host.trim_matches(['[', ']']).to_ascii_lowercase();
        let told = self.lock().names.get(&(host.clone(), port)).copied();
        let addr = told.or_else(|| host.parse::<IpAddr>().ok().map(|ip| SocketAddr::new(ip, port)))?;
        if !addr.ip().is_loopback() {
            return None;
        }
        TcpStream::connect(addr).await.ok()
    }
}

impl Passed {
    fn new(connection: usize, way: Way, target: String, user: Option<String>) -> Self {
        Self { connection, at: Instant::now(), way, target, user, seen_as: None, head: None, sent: 0, received: 0 }
    }
}

async fn accept(listener: std::net::TcpListener, shared: Arc<Shared>) {
    each_connection(listener, |stream| {
        let connection = {
            let mut state = shared.lock();
            state.connections += 1;
            state.connections - 1
        };
        let shared = Arc::clone(&shared);
        tokio::spawn(async move {
            // What becomes of a connection is seen by its two ends.
            let _ = serve(stream, &shared, connection).await;
        });
    })
    .await;
}

async fn serve(stream: TcpStream, shared: &Arc<Shared>, connection: usize) -> io::Result<()> {
    let _ = stream.set_nodelay(true);
    match shared.fault() {
        Some(ProxyFault::Refuse) => return stream.set_zero_linger(),
        Some(ProxyFault::Hang) => return hang(stream).await,
        _ => {}
    }
    match shared.kind {
        ProxyKind::Http => http::serve(Box::new(stream), shared, connection).await,
        ProxyKind::Https => http::serve(Box::new(shared.tls.accept(stream).await?), shared, connection).await,
        ProxyKind::Socks5 => socks::serve(Box::new(stream), shared, connection).await,
    }
}

/// Reads and says nothing until the client is gone.
async fn hang(mut stream: impl AsyncRead + Unpin) -> io::Result<()> {
    let mut piece = [0; 4096];
    while stream.read(&mut piece).await? > 0 {}
    Ok(())
}

/// TLS with a certificate for `localhost` that nobody signed.
fn acceptor() -> io::Result<TlsAcceptor> {
    let cert = CertificateDer::from(include_bytes!("../../tests/data/tls/self_signed_cert.der").to_vec());
    let key = PrivatePkcs8KeyDer::from(include_bytes!("../../tests/data/tls/self_signed_key.der").to_vec());
    let config = rustls::ServerConfig::builder_with_provider(Arc::new(rustls::crypto::ring::default_provider()))
        .with_safe_default_protocol_versions()
        .map_err(io::Error::other)?
        .with_no_client_auth()
        .with_single_cert(vec![cert], PrivateKeyDer::Pkcs8(key))
        .map_err(io::Error::other)?;
    Ok(TlsAcceptor::from(Arc::new(config)))
}

#[cfg(test)]
mod tests;
