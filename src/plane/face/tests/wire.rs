//! What stands around a call: paths, headers, bodies, packing.

use std::io::{Read as _, Write as _};

use flate2::Compression;
use flate2::read::GzDecoder;
use flate2::write::GzEncoder;

use super::*;

const ACQUIRE: &str = "LeaseService/Acquire";

#[tokio::test]
async fn b023_every_answer_lists_all_its_fields() {
    let stage = Stage::new(3).await;
    let keys = |value: &Value| value.as_object().unwrap().keys().cloned().collect::<Vec<_>>();
    let lease = stage.ask(ACQUIRE, ALL, &json!({"site": "shop", "client": "web"})).await.json();
    assert_eq!(keys(&lease), ["lease", "credential", "proxy", "hints"]);
    let of_a_lease = ["lease_id", "identity_id", "identity_type", "endpoint_group", "expires_at", "sticky", "probe"];
    assert_eq!(keys(&lease["lease"]), of_a_lease);
    assert_eq!(keys(&lease["credential"]), ["cookies", "cookie_header", "headers", "query", "json", "values"]);
    assert_eq!(
        (&lease["proxy"], &lease["credential"]["json"], &lease["credential"]["values"]),
        (&json!(null), &json!(null), &json!({}))
    );
    assert_eq!(lease["hints"], json!({"renew_before_ms": 30_000}));

    let batch = stage.ask("LeaseService/AcquireBatch", ALL, &json!({"site": "shop", "client": "web", "count": 5})).await.json();
    assert_eq!(
        (keys(&batch), batch["leases"].as_array().unwrap().len(), &batch["requested"]),
        (vec!["leases".into(), "requested".into()], 2, &json!(5))
    );
    let id = &lease["lease"]["lease_id"];
    let renewed = stage.ask("LeaseService/Renew", ALL, &json!({"lease_id": id, "extend_ms": 1000})).await.json();
    assert!(renewed["expires_at"].as_str().unwrap().ends_with('Z'), "{renewed}");
    let released = stage.ask("LeaseService/Release", ALL, &json!({"lease_id": id})).await.json();
    assert_eq!(released, json!({"released": true}));
    assert_eq!(stage.ask("LeaseService/Release", ALL, &json!({"lease_id": id})).await.json(), json!({"released": false}));
    let report = json!({"reports": [{"report_id": "r", "lease_id": id, "uri": "/", "started_at": "2026-01-01T00:00:00Z", "finished_at": "2026-01-01T00:00:00Z"}]});
    let answer = stage.ask("ReportService/Report", ALL, &report).await.json();
    assert_eq!(answer, json!({"accepted": 1, "duplicated": 0, "rejected": []}));

    let watch =
        stage.ask("ConfigService/WatchConfig", ALL, &json!({"items": [{"group": "_runtime", "key": "breakers"}]})).await.json();
    let of_an_item = ["namespace", "group", "key", "format", "version", "content", "updated_at", "has_secret_refs"];
    assert_eq!(keys(&watch["items"][0]), of_an_item);
    assert_eq!((&watch["items"][0]["updated_at"], &watch["items"][0]["has_secret_refs"]), (&json!(null), &json!(false)));
    let batch = stage.ask("ConfigService/BatchGetConfig", ALL, &json!({"items": [{"group": "g", "key": "k"}]})).await.json();
    assert_eq!(batch, json!({"items": [], "missing": [{"group": "g", "key": "k"}]}));
    let secret = stage.ask("SecretService/GetSecret", ALL, &json!({"path": "signing/key", "version": 1})).await.json();
    assert_eq!(secret, json!({"path": "signing/key", "version": 1, "value": "s3cret-1", "expires_at": null}));
    stage.end().await;
}

#[tokio::test]
async fn b024_unknown_fields_and_the_other_spelling_are_taken() {
    let stage = Stage::new(1).await;
    let body =
        json!({"site": "shop", "client": "web", "endpointGroup": "_default", "waitMs": "0", "new": {"x": []}, "uri": null});
    assert_eq!(stage.ask(ACQUIRE, ALL, &body).await.status, 200);
    stage.end().await;
}

#[tokio::test]
async fn b025_response_bytes_are_a_number_or_its_text() {
    let stage = Stage::new(1).await;
    let lease = stage.client(ALL).acquire(shop()).await.unwrap().lease.lease_id;
    for (id, bytes) in [("a", json!(48213)), ("b", json!("48213"))] {
        let moment = "2026-01-01T00:00:00.5Z";
        let report = json!({"report_id": id, "lease_id": lease, "uri": "/", "started_at": moment, "finished_at": moment, "response_bytes": bytes});
        let answer = stage.ask("ReportService/Report", ALL, &json!({"reports": [report]})).await;
        assert_eq!(answer.json()["accepted"], 1, "{answer:?}");
    }
    stage.end().await;
}

#[tokio::test]
async fn b026_what_cannot_be_read_is_refused_before_the_token_is_looked_at() {
    let stage = Stage::new(1).await;
    for body in [&b""[..], b"{", b"[]", b"{\"site\": 5}", b"\xff\xfe"] {
        let answer = stage.call(ACQUIRE, "", body).await;
        assert_eq!(answer.refused(), refused(400, "invalid_argument", ""), "{body:?}");
        assert_eq!(answer.header("content-type"), Some("application/json"));
    }
    // What can be read needs a token before its fields count.
    assert_eq!(stage.call(ACQUIRE, "", b"{}").await.refused(), refused(401, "unauthenticated", "session_invalid"));
    assert_eq!(stage.ask(ACQUIRE, ALL, &json!({})).await.refused(), refused(400, "invalid_argument", "invalid_argument"));
    stage.end().await;
}

#[tokio::test]
async fn b027_what_is_not_there_is_a_404_a_wrong_method_a_405_and_a_wrong_type_a_415() {
    let stage = Stage::new(1).await;
    assert_eq!(stage.call("LeaseService/Borrow", "", b"{}").await.status, 404);
    let outside = "POST /spinneret.v1.LeaseService/Acquire HTTP/1.1\r\ncontent-type: application/json";
    assert_eq!(stage.send(outside, b"{}").await.status, 404);
    let got = stage.send("GET /sp/spinneret.v1.LeaseService/Acquire HTTP/1.1", b"").await;
    assert_eq!((got.status, got.header("allow"), got.body.len()), (405, Some("post"), 0));
    let typed = "POST /sp/spinneret.v1.LeaseService/Acquire HTTP/1.1\r\ncontent-type: application/proto";
    let typed = stage.send(typed, b"{}").await;
    assert_eq!((typed.status, typed.body.len()), (415, 0));
    // A client of another server's making finds out in the same way.
    let url = format!("http://{}/elsewhere", stage.server.addr());
    let client = Client::builder().url(url).token("x").node("n").proxy(ProxyChoice::None).environment(|_| None).build().unwrap();
    assert_eq!(client.acquire(shop()).await.unwrap_err().code().as_str(), "unimplemented");
    stage.end().await;
}

#[tokio::test]
async fn b028_the_connect_headers_may_be_missing_and_may_not_be_wrong() {
    let stage = Stage::new(2).await;
    let authorized = format!("\r\nauthorization: bearer {}", token(ALL));
    let body = json!({"site": "shop", "client": "web"}).to_string();
    for (headers, status) in [
        ("", 200),
        ("\r\nconnect-protocol-version: 1\r\nconnect-timeout-ms: 2000", 200),
        ("\r\nconnect-protocol-version: 2", 400),
        ("\r\nconnect-timeout-ms: soon", 400),
    ] {
        let answer = stage.call(ACQUIRE, &format!("{authorized}{headers}"), body.as_bytes()).await;
        assert_eq!(answer.status, status, "{headers}");
        if status == 400 {
            assert_eq!(answer.refused(), refused(400, "invalid_argument", ""));
        }
    }
    stage.end().await;
}

#[tokio::test]
async fn b029_what_is_longer_than_4_kib_is_packed_for_who_takes_it() {
    let stage = Stage::new(1).await;
    let content = "word ".repeat(4000);
    assert_eq!(
        stage.act("config/publish", &json!({"group": "g", "key": "k", "format": "text", "content": content})).await.status,
        200
    );
    let body = json!({"group": "g", "key": "k"}).to_string();
    let authorized = format!("\r\nauthorization: Bearer {}", token(ALL));
    let packed = stage.call("ConfigService/GetConfig", &format!("{authorized}\r\naccept-encoding: gzip"), body.as_bytes()).await;
    assert_eq!((packed.header("content-encoding"), packed.header("vary")), (Some("gzip"), Some("accept-encoding")));
    assert!(packed.body.len() < 4096);
    let mut plain = String::new();
    GzDecoder::new(&*packed.body).read_to_string(&mut plain).unwrap();
    let whole = stage.call("ConfigService/GetConfig", &authorized, body.as_bytes()).await;
    assert_eq!((whole.header("content-encoding"), &*whole.body), (None, plain.as_bytes()));
    let item = stage.client(ALL).get_config("g/k").await.unwrap();
    assert_eq!(item.content, content);
    stage.end().await;
}

#[tokio::test]
async fn bodies_may_be_packed_and_may_not_be_above_8_mib() {
    let stage = Stage::new(1).await;
    let pack = |bytes: &[u8]| {
        let mut packer = GzEncoder::new(Vec::new(), Compression::fast());
        packer.write_all(bytes).unwrap();
        packer.finish().unwrap()
    };
    let headers = format!("\r\nauthorization: Bearer {}\r\ncontent-encoding: gzip", token(ALL));
    let body = pack(json!({"site": "shop", "client": "web"}).to_string().as_bytes());
    assert_eq!(stage.call(ACQUIRE, &headers, &body).await.status, 200);
    let bomb = pack(&vec![b' '; LARGEST_BODY + 1]);
    assert_eq!(stage.call(ACQUIRE, &headers, &bomb).await.refused(), refused(429, "resource_exhausted", ""));
    let large = vec![b' '; LARGEST_BODY + 1];
    assert_eq!(stage.call(ACQUIRE, "", &large).await.refused(), refused(429, "resource_exhausted", ""));
    assert_eq!(stage.call(ACQUIRE, "\r\ncontent-encoding: br", b"{}").await.refused(), refused(501, "unimplemented", ""));
    stage.end().await;
}

#[tokio::test]
async fn health_is_told_to_everybody_and_the_ledger_to_this_machine() {
    let stage = Stage::new(1).await;
    assert_eq!(stage.send("GET /sp/healthz HTTP/1.1", b"").await.status, 200);
    assert_eq!(stage.send("GET /sp/readyz HTTP/1.1", b"").await.status, 200);
    assert_eq!(stage.ledger().await["open"], 0);
    stage.client(ALL).acquire(shop()).await.unwrap();
    assert_eq!(stage.ledger().await["open"], 1);
    let forwarded = stage.send("GET /sp/plane/ledger HTTP/1.1\r\nx-forwarded-for: 10.0.0.1", b"").await;
    assert_eq!(forwarded.refused(), refused(403, "permission_denied", "permission_denied"));
    stage.face.shut_down();
    assert_eq!(stage.send("GET /sp/healthz HTTP/1.1", b"").await.status, 200);
    assert_eq!(stage.send("GET /sp/readyz HTTP/1.1", b"").await.status, 503);
    stage.end().await;
}

/// Something else.
struct Length;

impl Answer for Length {
    async fn answer(&self, asked: Asked) -> Reply {
        Reply::new(StatusCode::OK, "text/plain", asked.body.len().to_string())
    }

    fn refuse_body(&self, _head: &Head, fault: BodyFault) -> Reply {
        Reply::new(StatusCode::PAYLOAD_TOO_LARGE, "text/plain", format!("{fault:?}"))
    }
}

#[tokio::test]
async fn a_face_and_something_else_share_an_address_and_keep_their_bounds() {
    let face = Arc::new(Face::new(plane(1), FaceOptions { base: "/sp".to_owned(), ..FaceOptions::default() }));
    let mounted = Mounted { face: Arc::clone(&face), rest: Length, rest_body: 10 };
    let server = http_server::start(SocketAddr::from((Ipv4Addr::LOCALHOST, 0)), BOUNDS, Arc::new(mounted)).await.unwrap();
    let stage = Stage { time: tokio::spawn(Arc::clone(&face).keep_time()), face, server };
    stage.client(ALL).acquire(shop()).await.unwrap();
    let large = vec![b' '; LARGEST_BODY + 1];
    assert_eq!(stage.call(ACQUIRE, "", &large).await.refused(), refused(429, "resource_exhausted", ""));
    let rest = stage.send("POST /sp/other HTTP/1.1", b"0123456789").await;
    assert_eq!((rest.status, &*rest.body), (200, &b"10"[..]));
    for body in [&b"0123456789x"[..], &large] {
        let rest = stage.send("POST /other HTTP/1.1", body).await;
        assert_eq!((rest.status, &*rest.body), (413, &b"TooLarge(10)"[..]));
    }
    let mut stream = TcpStream::connect(stage.server.addr()).await.unwrap();
    let chunked =
        b"POST / HTTP/1.1\r\nhost: x\r\nconnection: close\r\ntransfer-encoding: chunked\r\n\r\nb\r\n0123456789x\r\n0\r\n\r\n";
    stream.write_all(chunked).await.unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await.unwrap();
    assert!(answer.starts_with("HTTP/1.1 413") && answer.ends_with("TooLarge(10)"), "{answer}");
    stage.end().await;
}
