//! A site on two loopback ports, plain and TLS, that keeps every head it is sent and who sent it.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing)]

use std::net::SocketAddr;
use std::sync::{Arc, Mutex};
use std::time::Instant;

use rustls::pki_types::{CertificateDer, PrivateKeyDer, PrivatePkcs8KeyDer};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::TcpListener;

/// A request as the site got it.
#[derive(Debug, Clone)]
pub(crate) struct Seen {
    /// The address at the other end of its connection.
    pub(crate) from: SocketAddr,
    /// The address it was sent to: that of `http` or `https`.
    pub(crate) to: SocketAddr,
    pub(crate) at: Instant,
    pub(crate) head: String,
}

pub(crate) struct Site {
    pub(crate) http: SocketAddr,
    pub(crate) https: SocketAddr,
    seen: Arc<Mutex<Vec<Seen>>>,
}

/// Makes the answer to a head: headers and body.
pub(crate) type Answering = fn(&str) -> (String, String);

impl Site {
    pub(crate) async fn start(answer: Answering) -> Self {
        let seen = Arc::default();
        let plain = listen(None, answer, Arc::clone(&seen)).await;
        let cert = CertificateDer::from(include_bytes!("../../tests/data/tls/self_signed_cert.der").to_vec());
        let key = PrivatePkcs8KeyDer::from(include_bytes!("../../tests/data/tls/self_signed_key.der").to_vec());
        let config = rustls::ServerConfig::builder_with_provider(Arc::new(rustls::crypto::ring::default_provider()))
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_no_client_auth()
            .with_single_cert(vec![cert], PrivateKeyDer::Pkcs8(key))
            .unwrap();
        let tls = listen(Some(Arc::new(config).into()), answer, Arc::clone(&seen)).await;
        Self { http: plain, https: tls, seen }
    }

    pub(crate) fn seen(&self) -> Vec<Seen> {
        self.seen.lock().unwrap().clone()
    }
}

async fn listen(tls: Option<tokio_rustls::TlsAcceptor>, answer: Answering, seen: Arc<Mutex<Vec<Seen>>>) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let addr = listener.local_addr().unwrap();
    tokio::spawn(async move {
        while let Ok((stream, from)) = listener.accept().await {
            let (tls, seen) = (tls.clone(), Arc::clone(&seen));
            tokio::spawn(async move {
                match tls {
                    Some(tls) => {
                        if let Ok(stream) = tls.accept(stream).await {
                            serve(stream, (from, addr), answer, &seen).await;
                        }
                    }
                    None => serve(stream, (from, addr), answer, &seen).await,
                }
            });
        }
    });
    addr
}

async fn serve(
    mut stream: impl AsyncRead + AsyncWrite + Unpin,
    (from, to): (SocketAddr, SocketAddr),
    answer: Answering,
    seen: &Mutex<Vec<Seen>>,
) {
    let mut bytes = Vec::new();
    let mut piece = [0; 4096];
    loop {
        if let Some(at) = memchr::memmem::find(&bytes, b"\r\n\r\n") {
            let rest = bytes.split_off(at + 4);
            let head = String::from_utf8(std::mem::replace(&mut bytes, rest)).unwrap();
            let (headers, body) = answer(&head);
            seen.lock().unwrap().push(Seen { from, to, at: Instant::now(), head });
            let text = format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\n{headers}\r\n{body}", body.len());
            if stream.write_all(text.as_bytes()).await.is_err() || stream.flush().await.is_err() {
                return;
            }
            continue;
        }
        match stream.read(&mut piece).await {
            Ok(read) if read > 0 => bytes.extend_from_slice(&piece[..read]),
            _ => return,
        }
    }
}
