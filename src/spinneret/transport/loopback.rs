//! A server on the loopback that does what it is told with each request, down to the bytes and the end of the connection.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing)]

use std::collections::VecDeque;
use std::io::Write as _;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use rustls::pki_types::{CertificateDer, PrivateKeyDer, PrivatePkcs8KeyDer};
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio_rustls::TlsAcceptor;

/// Certificate and key: DER.
pub(crate) type Identity = (&'static [u8], &'static [u8]);

/// One that the CA of `private_ca.pem` signed, for `localhost` and `127.0.0.1`.
pub(crate) const LEAF: Identity = (
    include_bytes!("../../../tests/data/tls/private_leaf_cert.der"),
    include_bytes!("../../../tests/data/tls/private_leaf_key.der"),
);
/// One that nobody signed.
pub(crate) const SELF_SIGNED: Identity = (
    include_bytes!("../../../tests/data/tls/self_signed_cert.der"),
    include_bytes!("../../../tests/data/tls/self_signed_key.der"),
);

/// What becomes of a request.
#[derive(Debug, Clone)]
pub(crate) enum Act {
    /// An answer; the connection is kept.
    Answer(Vec<u8>),
    /// These bytes, and the end of the connection.
    Close(Vec<u8>),
    /// These bytes, and a reset.
    Reset(Vec<u8>),
    /// These bytes, and nothing more.
    Hang(Vec<u8>),
    /// These bytes, one after the other, with a wait before each.
    Drip(Vec<u8>, Duration),
    /// An answer; the connection is closed as soon as the next request begins to come, and nothing of that one is answered.
    AnswerThenClose(Vec<u8>),
}

/// A request that came.
#[derive(Debug, Clone)]
pub(crate) struct Got {
    /// Request line and headers, as they came.
    pub(crate) head: String,
    pub(crate) body: Vec<u8>,
}

impl Got {
    /// The value of a header.
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.head.lines().skip(1).find_map(|line| {
            let (known, value) = line.split_once(':')?;
            known.eq_ignore_ascii_case(name).then(|| value.trim())
        })
    }
}

/// The server.
#[derive(Debug, Clone)]
pub(crate) struct Loopback {
    pub(crate) addr: SocketAddr,
    state: Arc<Mutex<State>>,
}

#[derive(Debug, Default)]
struct State {
    acts: VecDeque<Act>,
    got: Vec<Got>,
    connections: usize,
}

impl Loopback {
    /// Does these things in turn, and answers `{}` afterwards.
    pub(crate) async fn start(acts: Vec<Act>) -> Self {
        Self::listen(acts, None).await
    }

    /// The same over TLS.
    pub(crate) async fn start_tls(acts: Vec<Act>, identity: Identity) -> Self {
        Self::listen(acts, Some(acceptor(identity))).await
    }

    async fn listen(acts: Vec<Act>, tls: Option<TlsAcceptor>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let addr = listener.local_addr().unwrap();
        let state = Arc::new(Mutex::new(State { acts: acts.into(), ..State::default() }));
        let server = Self { addr, state: Arc::clone(&state) };
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                stream.set_nodelay(true).unwrap();
                state.lock().unwrap().connections += 1;
                let connection = Connection { state: Arc::clone(&state) };
                let tls = tls.clone();
                tokio::spawn(async move {
                    match tls {
                        None => connection.serve(stream).await,
                        Some(tls) => {
                            if let Ok(stream) = tls.accept(stream).await {
                                connection.serve(stream).await;
                            }
                        }
                    }
                });
            }
        });
        server
    }

    /// The base URL.
    pub(crate) fn url(&self) -> String {
        format!("http://{}", self.addr)
    }

    /// The base URL for TLS, by a name that is in the certificate.
    pub(crate) fn tls_url(&self) -> String {
        format!("https://localhost:{}", self.addr.port())
    }

    /// The requests so far.
    pub(crate) fn got(&self) -> Vec<Got> {
        self.state.lock().unwrap().got.clone()
    }

    /// How many connections were made.
    pub(crate) fn connections(&self) -> usize {
        self.state.lock().unwrap().connections
    }
}

/// What the server needs of a stream beside bytes.
trait Stream: AsyncRead + AsyncWrite + Unpin + Send {
    /// Lets the connection end with a reset.
    fn prepare_reset(&self);
}

impl Stream for TcpStream {
    fn prepare_reset(&self) {
        self.set_zero_linger().unwrap();
    }
}

impl Stream for tokio_rustls::server::TlsStream<TcpStream> {
    fn prepare_reset(&self) {
        self.get_ref().0.set_zero_linger().unwrap();
    }
}

struct Connection {
    state: Arc<Mutex<State>>,
}

impl Connection {
    async fn serve(self, mut stream: impl Stream) {
        while let Some(got) = read(&mut stream).await {
            let act = {
                let mut state = self.state.lock().unwrap();
                state.got.push(got);
                state.acts.pop_front().unwrap_or_else(|| Act::Answer(answer(200, "", b"{}")))
            };
            let bytes = match &act {
                Act::Answer(bytes) | Act::Close(bytes) | Act::Reset(bytes) | Act::Hang(bytes) | Act::AnswerThenClose(bytes) => {
                    bytes
                }
                Act::Drip(bytes, wait) => {
                    for byte in bytes {
                        tokio::time::sleep(*wait).await;
                        if stream.write_all(&[*byte]).await.is_err() || stream.flush().await.is_err() {
                            return;
                        }
                    }
                    continue;
                }
            };
            let _ = stream.write_all(bytes).await;
            let _ = stream.flush().await;
            match act {
                Act::Close(_) => return stream.shutdown().await.unwrap_or_default(),
                Act::Reset(bytes) => {
                    // What was written is to arrive before the reset throws it away.
                    if !bytes.is_empty() {
                        tokio::time::sleep(Duration::from_millis(100)).await;
                    }
                    return stream.prepare_reset();
                }
                Act::Hang(_) => return std::future::pending().await,
                Act::AnswerThenClose(_) => {
                    // Reads nothing of the next request to its end: it was written, and is not answered.
                    let _ = stream.read(&mut [0; 1]).await;
                    return stream.shutdown().await.unwrap_or_default();
                }
                Act::Answer(_) | Act::Drip(..) => {}
            }
        }
    }
}

/// Reads a request to the end of its body.
async fn read(stream: &mut (impl AsyncRead + Unpin)) -> Option<Got> {
    let mut bytes = Vec::new();
    loop {
        if let Some(end) = bytes.windows(4).position(|window| window == b"\r\n\r\n") {
            let head = String::from_utf8(bytes[..end].to_vec()).unwrap();
            let got = Got { head, body: bytes[end + 4..].to_vec() };
            let length = got.header("content-length").map_or(0, |length| length.parse().unwrap());
            if got.body.len() >= length {
                return Some(got);
            }
        }
        if stream.read_buf(&mut bytes).await.ok()? == 0 {
            return None;
        }
    }
}

/// An answer as bytes, `headers` with their line ends.
pub(crate) fn answer(status: u16, headers: &str, body: &[u8]) -> Vec<u8> {
    let mut bytes = Vec::new();
    write!(
        bytes,
        "HTTP/1.1 {status} Status\r\nContent-Type: application/json\r\n{headers}Content-Length: {}\r\n\r\n",
        body.len()
    )
    .unwrap();
    bytes.extend_from_slice(body);
    bytes
}

/// An address on which nobody listens.
pub(crate) async fn nobody() -> SocketAddr {
    TcpListener::bind("127.0.0.1:0").await.unwrap().local_addr().unwrap()
}

fn acceptor((certificate, key): Identity) -> TlsAcceptor {
    let key = PrivateKeyDer::Pkcs8(PrivatePkcs8KeyDer::from(key.to_vec()));
    let config = rustls::ServerConfig::builder_with_provider(Arc::new(rustls::crypto::ring::default_provider()))
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(vec![CertificateDer::from(certificate.to_vec())], key)
        .unwrap();
    TlsAcceptor::from(Arc::new(config))
}
