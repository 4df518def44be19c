//! Exchanges over TLS and HTTP/2.

use super::*;

/// TLS with a certificate that nobody signed.
fn acceptor(protocol: &str) -> tokio_rustls::TlsAcceptor {
    use rustls::pki_types::{CertificateDer, PrivateKeyDer, PrivatePkcs8KeyDer};
    let cert = CertificateDer::from(include_bytes!("../../../../tests/data/tls/self_signed_cert.der").to_vec());
    let key = PrivatePkcs8KeyDer::from(include_bytes!("../../../../tests/data/tls/self_signed_key.der").to_vec());
    let mut config = rustls::ServerConfig::builder_with_provider(Arc::new(rustls::crypto::ring::default_provider()))
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(vec![cert], PrivateKeyDer::Pkcs8(key))
        .unwrap();
    config.alpn_protocols = vec![protocol.as_bytes().to_vec()];
    tokio_rustls::TlsAcceptor::from(Arc::new(config))
}

fn trusting() -> ReqwestTransport {
    let config = ClientConfig { connect_timeout: 1000 * MS, verify_certificates: false, max_clients: 1, idle: 1000 * MS };
    ReqwestTransport::new(config, Names::of_system()).unwrap()
}

/// A server that ends its answers by closing the connection.
async fn tls_server() -> SocketAddr {
    let acceptor = acceptor("http/1.1");
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let addr = listener.local_addr().unwrap();
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            let acceptor = acceptor.clone();
            tokio::spawn(async move {
                if let Ok(mut stream) = acceptor.accept(stream).await {
                    let mut head = [0; 4096];
                    let _ = stream.read(&mut head).await;
                    // Closed without a proper end of TLS, as many servers do.
                    let _ = stream.write_all(b"HTTP/1.1 200 OK\r\nConnection: close\r\n\r\nhello").await;
                    let _ = stream.flush().await;
                }
            });
        }
    });
    addr
}

#[tokio::test]
async fn certificates_are_verified_unless_switched_off() {
    let url = format!("https://localhost:{}/", tls_server().await.port());
    let fault = exchange(outgoing(&url)).await.unwrap_err();
    assert_eq!(fault.kind, FailureKind::Tls);
    assert!(fault.message.contains("certificate"), "{fault}");
    let reply = trusting().exchange(outgoing(&url), &Count::new(true)).await.unwrap();
    assert_eq!((reply.status, reply.body.as_ref(), reply.flags.data_loss), (StatusCode::OK, &b"hello"[..], false));
}

/// An HTTP/2 server that does to a stream what the path says.
async fn h2_server() -> SocketAddr {
    let acceptor = acceptor("h2");
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let addr = listener.local_addr().unwrap();
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            let acceptor = acceptor.clone();
            tokio::spawn(async move {
                let mut connection = h2::server::handshake(acceptor.accept(stream).await.unwrap()).await.unwrap();
                while let Some(Ok((request, mut respond))) = connection.accept().await {
                    let head = http::Response::builder().header("content-length", "5").body(()).unwrap();
                    match request.uri().path() {
                        "/refuse" => respond.send_reset(h2::Reason::REFUSED_STREAM),
                        "/wrong" => respond.send_reset(h2::Reason::PROTOCOL_ERROR),
                        "/away" => connection.abrupt_shutdown(h2::Reason::INTERNAL_ERROR),
                        path => {
                            let mut body = respond.send_response(head, false).unwrap();
                            if path == "/cut" {
                                body.send_data(Bytes::from_static(b"hel"), false).unwrap();
                                body.send_reset(h2::Reason::INTERNAL_ERROR);
                            } else {
                                body.send_data(Bytes::from_static(b"hello"), true).unwrap();
                            }
                        }
                    }
                }
            });
        }
    });
    addr
}

#[tokio::test]
async fn http2_is_spoken_where_the_server_does_and_its_ends_are_told_apart() {
    let base = format!("https://localhost:{}", h2_server().await.port());
    let transport = trusting();
    let reply = transport.exchange(outgoing(&format!("{base}/ok")), &Count::new(true)).await.unwrap();
    assert_eq!((reply.version, reply.body.as_ref()), (Version::HTTP_2, &b"hello"[..]));
    for (path, kind) in
        [("refuse", FailureKind::Lost), ("wrong", FailureKind::BadReply), ("cut", FailureKind::Lost), ("away", FailureKind::Lost)]
    {
        let fault = transport.exchange(outgoing(&format!("{base}/{path}")), &Count::new(true)).await.unwrap_err();
        assert_eq!(fault.kind, kind, "{path}: {fault}");
    }
}
