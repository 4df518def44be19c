//! Answers that other crawlers mangled or lost, as real servers send them.

use base64::engine::general_purpose::STANDARD;
use serde_json::Value;

use super::*;

fn case(text: &str) -> Value {
    serde_json::from_str(text).unwrap()
}

fn bytes(value: &Value) -> Vec<u8> {
    STANDARD.decode(value.as_str().unwrap()).unwrap()
}

/// The answer of a case's route as bytes for the socket.
fn answer(case: &Value, path: &str) -> Vec<u8> {
    let routes = case["input"]["server"].as_array().unwrap();
    let reply = &routes.iter().find(|route| route["path"] == path).unwrap()["reply"][0];
    if !reply["raw_b64"].is_null() {
        return bytes(&reply["raw_b64"]);
    }
    let body = if reply["body_b64"].is_null() { reply["body"].as_str().unwrap().into() } else { bytes(&reply["body_b64"]) };
    let headers = reply["headers"].as_array().unwrap().iter();
    let headers: String = headers.map(|h| format!("{}: {}\r\n", h[0].as_str().unwrap(), h[1].as_str().unwrap())).collect();
    let head = format!("HTTP/1.1 {} X\r\n{headers}Content-Length: {}\r\n\r\n", reply["status"], body.len());
    [head.into_bytes(), body].concat()
}

async fn ask(answer: Vec<u8>, then: Then, change: impl FnOnce(&mut Limits)) -> (Result<Reply, Fault>, usize) {
    let server = Server::start(answer, then).await;
    let mut outgoing = outgoing(&server.url("http"));
    outgoing.limits.total = Duration::from_secs(20);
    change(&mut outgoing.limits);
    let count = Count::new(true);
    let result = transport().exchange(outgoing, &count).await;
    (result, count.charged.load(Ordering::SeqCst))
}

fn coded(codings: &str, body: Vec<u8>) -> Vec<u8> {
    let head = format!("HTTP/1.1 200 OK\r\nContent-Encoding: {codings}\r\nContent-Length: {}\r\n\r\n", body.len());
    [head.into_bytes(), body].concat()
}

/// With `Decoder::new(codings, usize::MAX)` in `Body::new`, so that only what comes over the wire is bounded, this fails.
#[tokio::test]
async fn case_g01_a_decompression_bomb_ends_at_the_limit_of_decoded_bytes() {
    let case = case(include_str!("../../../../tests/data/cases/G01-decompression-bomb.json"));
    let most = usize::try_from(case["input"]["settings"]["DOWNLOAD_MAXSIZE"].as_u64().unwrap()).unwrap();
    let held = usize::try_from(case["expect"]["/bomb"]["decoded_bytes_held_max"].as_u64().unwrap()).unwrap();
    let zeros = vec![0; 4 << 20];
    let brotli = {
        let mut out = Vec::new();
        brotli::BrotliCompress(&mut &zeros[..], &mut out, &brotli::enc::BrotliEncoderParams::default()).unwrap();
        out
    };
    let deflate = {
        let mut encoder = flate2::write::ZlibEncoder::new(Vec::new(), Compression::best());
        encoder.write_all(&zeros).unwrap();
        encoder.finish().unwrap()
    };
    let bombs = [
        answer(&case, "/bomb"),
        coded("br", brotli),
        coded("zstd", zstd::stream::encode_all(&zeros[..], 3).unwrap()),
        coded("deflate", deflate),
        coded("gzip, gzip", gzip(&gzip(&zeros))),
    ];
    for (n, bomb) in bombs.into_iter().enumerate() {
        assert!(bomb.len() < 10_000, "{n}");
        let (result, charged) = ask(bomb, Then::Close, |limits| limits.max_bytes = most).await;
        let fault = result.unwrap_err();
        assert_eq!(fault.kind, FailureKind::TooLarge, "{n}: {fault}");
        assert!(fault.message.contains("larger than download max size (65536)"), "{fault}");
        assert!(charged <= held, "{n}: {charged} bytes were held");
    }
    let (result, _) = ask(answer(&case, "/ok"), Then::Close, |limits| limits.max_bytes = most).await;
    assert_eq!(result.unwrap().body, "ok");
}

#[tokio::test]
async fn case_g02_what_is_not_gzip_comes_as_it_is_and_what_is_cut_is_a_loss() {
    let case = case(include_str!("../../../../tests/data/cases/G02-not-really-gzip.json"));
    let reply = async |path: &str| ask(answer(&case, path), Then::Close, |_| {}).await.0;
    let plain = reply("/plain").await.unwrap();
    assert_eq!(plain.body, "<p>plain</p>");
    assert!(plain.flags.not_as_labelled && !plain.flags.decoded);
    let redirect = reply("/redir").await.unwrap();
    assert_eq!(redirect.status.as_u16(), 302);
    assert_eq!(redirect.headers["location"], "/ok");
    let cut = reply("/cut").await.unwrap_err();
    assert_eq!(cut.kind, FailureKind::DataLoss, "{cut}");
    assert!(cut.kind.is_retryable());
    assert_eq!(reply("/tail").await.unwrap().body, "<p>tail</p>");
    assert_eq!(reply("/ok").await.unwrap().body, "ok");
}

/// With `break` for `BodyEnd::Early if limits.fail_on_data_loss` in `read`, the first run delivers `hello` as if it were whole.
#[tokio::test]
async fn case_g03_a_chunked_body_without_its_last_chunk_is_a_loss_or_is_marked_as_one() {
    let case = case(include_str!("../../../../tests/data/cases/G03-chunked-body-cut-off.json"));
    let runs = case["input"]["runs"].as_array().unwrap();
    assert_eq!(runs.len(), 2);
    for run in runs {
        let fails = run["DOWNLOAD_FAIL_ON_DATALOSS"].as_bool().unwrap();
        let (result, _) = ask(answer(&case, "/"), Then::Close, |limits| limits.fail_on_data_loss = fails).await;
        match result {
            Err(fault) => assert!(fails && fault.kind == FailureKind::DataLoss && fault.kind.is_retryable(), "{fault}"),
            Ok(reply) => assert!(!fails && reply.body == "hello" && reply.flags.data_loss, "{reply:?}"),
        }
    }
}
