//! Certificates, and HTTP/2.

use rustls::pki_types::{CertificateDer, PrivateKeyDer, PrivatePkcs8KeyDer};
use tokio_rustls::TlsAcceptor;

use super::*;

const LEAF: (&[u8], &[u8]) = (
    include_bytes!("../../../../tests/data/tls/private_leaf_cert.der"),
    include_bytes!("../../../../tests/data/tls/private_leaf_key.der"),
);
const SELF_SIGNED: (&[u8], &[u8]) = (
    include_bytes!("../../../../tests/data/tls/self_signed_cert.der"),
    include_bytes!("../../../../tests/data/tls/self_signed_key.der"),
);

fn ca(name: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/data/tls").join(name)
}

fn acceptor((cert, key): (&[u8], &[u8]), protocol: &str) -> TlsAcceptor {
    let key = PrivateKeyDer::Pkcs8(PrivatePkcs8KeyDer::from(key.to_vec()));
    let mut config = rustls::ServerConfig::builder_with_provider(Arc::new(rustls::crypto::ring::default_provider()))
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(vec![CertificateDer::from(cert.to_vec())], key)
        .unwrap();
    config.alpn_protocols = vec![protocol.as_bytes().to_vec()];
    TlsAcceptor::from(Arc::new(config))
}

/// A server that takes everything, over HTTP/1.1.
async fn server(identity: (&'static [u8], &'static [u8])) -> SocketAddr {
    let acceptor = acceptor(identity, "http/1.1");
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let addr = listener.local_addr().unwrap();
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            let acceptor = acceptor.clone();
            tokio::spawn(async move {
                let Ok(mut stream) = acceptor.accept(stream).await else { return };
                while !read_request(&mut stream).await.is_empty() {
                    let _ = stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n").await;
                    let _ = stream.flush().await;
                }
            });
        }
    });
    addr
}

async fn post_with(config: ClientConfig) -> Answer {
    checked(Client::new(config).unwrap().post(BODY.into(), "a").await)
}

#[tokio::test]
async fn a_private_ca_is_trusted_when_it_is_named() {
    let addr = server(LEAF).await;
    for host in ["localhost", "127.0.0.1"] {
        let config = config(&format!("https://{host}:{}", addr.port()));
        assert_eq!(post_with(ClientConfig { ca_file: Some(ca("private_ca.pem")), ..config.clone() }).await, Answer::Delivered);
        assert_eq!(post_with(ClientConfig { extra_ca: Some(ca("private_ca.pem")), ..config.clone() }).await, Answer::Delivered);
        let both = ClientConfig { ca_file: Some(ca("other_ca.pem")), extra_ca: Some(ca("private_ca.pem")), ..config };
        assert_eq!(post_with(both).await, Answer::Delivered);
    }
}

#[tokio::test]
async fn a_certificate_that_is_not_trusted_says_why() {
    let addr = server(LEAF).await;
    let localhost = format!("https://localhost:{}", addr.port());
    for ca_file in [None, Some(ca("other_ca.pem"))] {
        let why = retried(post_with(ClientConfig { ca_file, ..config(&localhost) }).await);
        let expected = format!(
            "certificate not trusted: unknown issuer; name the file with its CA's certificate in APCLOUDY_CA_FILE (localhost:{})",
            addr.port()
        );
        assert_eq!(why, expected);
    }
    let other = format!("https://127.0.0.2:{}", addr.port());
    let listener = TcpListener::bind(("127.0.0.2", addr.port())).await.unwrap();
    let acceptor = acceptor(LEAF, "http/1.1");
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            let _ = acceptor.accept(stream).await;
        }
    });
    let why = retried(post_with(ClientConfig { ca_file: Some(ca("private_ca.pem")), ..config(&other) }).await);
    assert!(why.starts_with("certificate not trusted: it is for another name (127.0.0.2:"), "{why}");
}

#[tokio::test]
async fn a_cas_own_certificate_is_no_servers() {
    let addr = server(SELF_SIGNED).await;
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("ca.pem");
    use base64::Engine as _;
    let text = base64::engine::general_purpose::STANDARD.encode(SELF_SIGNED.0);
    std::fs::write(&file, format!("-----BEGIN CERTIFICATE-----\n{text}\n-----END CERTIFICATE-----\n")).unwrap();
    let config = ClientConfig { ca_file: Some(file), ..config(&format!("https://localhost:{}", addr.port())) };
    let why = retried(post_with(config).await);
    assert!(why.starts_with("certificate not trusted: it is a CA's own; "), "{why}");
}

#[tokio::test]
async fn what_speaks_no_tls_is_said_to() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let addr = listener.local_addr().unwrap();
    tokio::spawn(async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            let _ = stream.read(&mut [0; 4096]).await;
            let _ = stream.write_all(b"HTTP/1.1 400 Bad Request\r\n\r\n").await;
        }
    });
    let why = retried(post(&format!("https://{addr}")).await);
    assert!(why.starts_with("TLS failed: ") && why.ends_with(&format!(" ({addr})")), "{why}");
}

#[tokio::test]
async fn a_handshake_without_an_answer_costs_the_connect_limit() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let addr = listener.local_addr().unwrap();
    let config = ClientConfig { connect_timeout: 200 * MS, idle_timeout: 60_000 * MS, ..config(&format!("https://{addr}")) };
    assert_eq!(retried(post_with(config).await), format!("no connection to {addr} within 0.2 s"));
    drop(listener);
}

#[tokio::test]
async fn http_2_is_spoken_where_it_is_offered() {
    let acceptor = acceptor(LEAF, "h2");
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let addr = listener.local_addr().unwrap();
    let (seen, mut heads) = tokio::sync::mpsc::unbounded_channel();
    tokio::spawn(async move {
        let (stream, _) = listener.accept().await.unwrap();
        let mut connection = h2::server::handshake(acceptor.accept(stream).await.unwrap()).await.unwrap();
        while let Some(Ok((mut request, mut respond))) = connection.accept().await {
            let seen = seen.clone();
            tokio::spawn(async move {
                let mut length = 0;
                while let Some(Ok(piece)) = request.body_mut().data().await {
                    length += piece.len();
                    let _ = request.body_mut().flow_control().release_capacity(piece.len());
                }
                seen.send((length, request.headers().clone())).unwrap();
                respond.send_response(http::Response::builder().status(200).body(()).unwrap(), true).unwrap();
            });
        }
    });
    let config = ClientConfig { ca_file: Some(ca("private_ca.pem")), ..config(&format!("https://localhost:{}", addr.port())) };
    let client = Client::new(config).unwrap();
    let body = "x".repeat(300_000);
    for _ in 0..3 {
        assert_eq!(client.post(body.clone().into(), "a").await, Answer::Delivered);
        let (length, headers) = heads.recv().await.unwrap();
        assert_eq!((length, headers["content-length"].to_str().unwrap()), (body.len(), "300000"));
        assert_eq!(headers["x-api-key"], KEY);
    }
}
