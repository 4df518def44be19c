//! Errors that are made up: words, types and causes of any library.

use std::fmt;
use std::time::Duration;

use super::*;
use crate::spinneret::procedure::Procedure;
use crate::spinneret::transport::Fault;

#[track_caller]
fn are(kind: ErrorKind, words: &[&'static str]) {
    for words in words {
        assert_eq!(classify(&said(words)), kind, "{words}");
        assert_eq!(classify(&caused("the fetch failed", said(words))), kind, "behind another: {words}");
        assert_eq!(classify(&io::Error::other(said(words))), kind, "in an I/O error: {words}");
    }
}

/// An I/O error of this kind among the causes, whose words speak of something else: its type comes first.
fn from_system(kind: io::ErrorKind) -> Foreign {
    caused("the fetch failed", io::Error::new(kind, "the proxy's certificate, 407"))
}

#[test]
fn b103_words_about_names_are_dns() {
    are(
        ErrorKind::Dns,
        &[
            "[Errno 8] nodename nor servname provided, or not known",
            "failed to lookup address information: Name or service not known",
            "Temporary failure in name resolution",
            "getaddrinfo failed",
            "No address associated with hostname",
            "Failed to resolve 'shop.test'",
            "Could not resolve host: shop.test",
            "dial tcp: lookup shop.test: no such host",
            "lookup shop.test: server misbehaving",
        ],
    );
}

#[tokio::test(start_paused = true)]
async fn b103_limits_of_time_are_timeouts() {
    are(ErrorKind::Timeout, &["operation timed out", "read timeout", "context deadline exceeded"]);
    let elapsed = tokio::time::timeout(Duration::from_secs(1), std::future::pending::<()>()).await.unwrap_err();
    assert_eq!(classify(&elapsed), ErrorKind::Timeout);
    assert_eq!(classify(&caused("the fetch failed", elapsed)), ErrorKind::Timeout);
    assert_eq!(classify(&from_system(io::ErrorKind::TimedOut)), ErrorKind::Timeout);
}

#[test]
fn b104_words_about_certificates_and_tls_errors_are_tls() {
    are(
        ErrorKind::Tls,
        &[
            "[SSL: CERTIFICATE_VERIFY_FAILED] certificate verify failed: self signed",
            "x509: signed by unknown authority",
            "TLS: bad record",
            "the handshake failed",
        ],
    );
    let error = rustls::Error::InvalidCertificate(rustls::CertificateError::Expired);
    assert_eq!(classify(&error), ErrorKind::Tls);
    let wrapped = caused("cannot connect", io::Error::new(io::ErrorKind::InvalidData, error));
    assert_eq!((classify(&wrapped), is_bad_certificate(&wrapped)), (ErrorKind::Tls, true));
    let other = caused("cannot connect", io::Error::other(rustls::Error::DecryptError));
    assert_eq!((classify(&other), is_bad_certificate(&other)), (ErrorKind::Tls, false));
}

#[test]
fn b105_no_connection_is_conn_refused() {
    are(
        ErrorKind::ConnRefused,
        &[
            "[Errno 111] Connection refused",
            "No route to host",
            "Network is unreachable",
            "connect: host is down",
            "Couldn't connect to server",
        ],
    );
    for kind in [io::ErrorKind::ConnectionRefused, io::ErrorKind::HostUnreachable, io::ErrorKind::NetworkUnreachable] {
        assert_eq!(classify(&from_system(kind)), ErrorKind::ConnRefused, "{kind}");
    }
    assert_eq!(classify(&io::Error::from_raw_os_error(113)), ErrorKind::ConnRefused);
}

#[test]
fn b106_a_lost_connection_is_conn_reset() {
    are(
        ErrorKind::ConnReset,
        &[
            "[Errno 104] Connection reset by peer",
            "Broken pipe",
            "Server disconnected without sending a response",
            "peer closed connection",
            "Connection aborted.",
            "unexpected EOF",
            "peer sent an incomplete message",
            "use of closed network connection",
            "http2: server sent GOAWAY",
            "stream error: INTERNAL_ERROR",
        ],
    );
    let kinds = [
        io::ErrorKind::ConnectionReset,
        io::ErrorKind::ConnectionAborted,
        io::ErrorKind::BrokenPipe,
        io::ErrorKind::UnexpectedEof,
    ];
    for kind in kinds {
        assert_eq!(classify(&from_system(kind)), ErrorKind::ConnReset, "{kind}");
    }
    assert_eq!(classify(&h2::Error::from(h2::Reason::INTERNAL_ERROR)), ErrorKind::ConnReset);
}

#[test]
fn b107_a_proxy_that_wants_a_password_is_proxy_auth_and_the_rest_is_other() {
    are(
        ErrorKind::ProxyAuth,
        &[
            "407 Proxy Authentication Required",
            "Received HTTP code 407 from proxy after CONNECT",
            "SOCKS5 authentication failed",
            "SOCKS error: credentials not accepted",
            "tunnel error: proxy authorization required",
        ],
    );
    are(
        ErrorKind::Other,
        &["502 Bad Gateway from proxy", "tunnel error: unsuccessful", "SOCKS error: host unreachable", "took 4071 steps", ""],
    );
    assert_eq!(classify(&io::Error::from(io::ErrorKind::NotFound)), ErrorKind::Other);
    let json = serde_json::from_str::<u8>(r#""tls timeout""#).unwrap_err();
    assert_eq!(classify(&caused("cannot be decoded", json)), ErrorKind::Other);
}

#[test]
fn b107_what_cannot_be_asked_for_or_decoded_is_other() {
    let client = reqwest::Client::builder().no_proxy();
    let tls = rustls::ClientConfig::builder_with_provider(std::sync::Arc::new(rustls::crypto::ring::default_provider()));
    let tls = tls.with_safe_default_protocol_versions().unwrap();
    let tls = tls.with_root_certificates(rustls::RootCertStore::empty()).with_no_client_auth();
    let client = client.tls_backend_preconfigured(tls).build().unwrap();
    for url in ["ftp://ssl.timeout.test/", "no url"] {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        let error = runtime.block_on(client.get(url).send()).unwrap_err();
        assert_eq!(look(&error), Found { kind: ErrorKind::Other, phase: Phase::Permanent }, "{url}");
    }
    let reply = reqwest::Response::from(http::Response::new("certificate"));
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    let error = runtime.block_on(reply.bytes()).map(|bytes| serde_json::from_slice::<u8>(&bytes).unwrap_err()).unwrap();
    assert_eq!(classify(&error), ErrorKind::Other);
}

#[test]
fn b108_a_response_in_an_error_is_a_response() {
    let of = |status: u16| {
        let response = http::Response::builder().status(status).body("").unwrap();
        reqwest::Response::from(response).error_for_status().unwrap_err()
    };
    assert_eq!((carried_status(&of(500)), classify_response(500)), (Some(500), None));
    assert_eq!((carried_status(&of(407)), classify_response(407)), (Some(407), Some(ErrorKind::ProxyAuth)));
    assert_eq!(classify(&of(407)), ErrorKind::ProxyAuth);
    assert_eq!(classify(&of(500)), ErrorKind::Other);
    assert_eq!(carried_status(&caused("the fetch failed", of(404))), Some(404));
    assert_eq!(carried_status(&said("404")), None);
}

#[test]
fn b108_the_cause_of_a_wrapper_counts() {
    let inner = caused("cannot read", io::Error::from(io::ErrorKind::ConnectionReset));
    assert_eq!(classify(&caused("timeout of the certificate", inner)), ErrorKind::ConnReset);
    let ours = Error::transport(
        Procedure::Acquire,
        Fault { kind: ErrorKind::Dns, phase: Phase::Unsent, message: "the certificate".to_owned(), source: None },
    );
    assert_eq!(classify(&caused("the fetch failed", ours)), ErrorKind::Dns);
    assert_eq!(classify(&Error::client_closed()), ErrorKind::Other);
}

#[test]
fn b108_the_first_of_two_typed_causes_counts() {
    let reset = io::Error::from(io::ErrorKind::ConnectionReset);
    let both = io::Error::new(io::ErrorKind::TimedOut, caused("cannot read", reset));
    assert_eq!(classify(&both), ErrorKind::Timeout);
}

/// An error that is its own cause, and names it.
#[derive(Debug)]
struct Cyclic(&'static str);

impl fmt::Display for Cyclic {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.0)
    }
}

impl StdError for Cyclic {
    fn source(&self) -> Option<&(dyn StdError + 'static)> {
        Some(self)
    }
}

#[test]
fn b108_cyclic_and_very_long_chains_end() {
    assert_eq!(classify(&Cyclic("round and round")), ErrorKind::Other);
    assert_eq!(classify(&Cyclic("broken pipe")), ErrorKind::ConnReset);
    assert!(carried_status(&Cyclic("407")).is_none() && !is_bad_certificate(&Cyclic("certificate")));
    let nested = |links: usize| {
        (1..links).fold(caused("the outermost but one", io::Error::from(io::ErrorKind::ConnectionReset)), |inner, _| {
            caused("the fetch failed", inner)
        })
    };
    assert_eq!(classify(&nested(15)), ErrorKind::ConnReset);
    assert_eq!(classify(&nested(16)), ErrorKind::Other);
}

#[test]
fn words_of_a_url_are_not_taken_for_an_error() {
    for words in ["cannot get https://tls.timeout.test/connection refused", "cannot get (http://u:407@h/broken pipe)"] {
        let words = words.replace(' ', "-").replace("cannot-get-", "cannot get ");
        let leaked: &'static str = Box::leak(words.into_boxed_str());
        assert_eq!(classify(&said(leaked)), ErrorKind::Other, "{leaked}");
    }
}
