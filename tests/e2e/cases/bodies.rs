//! Bodies that are packed, cut off or not what they say.

use std::io::Write as _;

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use flate2::Compression;
use flate2::write::{GzEncoder, ZlibEncoder};
use serde_json::{Value, json};

use super::stand::{Case, Stand};

const BOMB: usize = 4 << 20;

fn gzip(body: &[u8]) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::best());
    encoder.write_all(body).unwrap();
    encoder.finish().unwrap()
}

/// The bomb of the case, then one in each further coding.
fn bombs(case: &Case) -> Vec<(String, Value)> {
    let zeros = vec![0; BOMB];
    let mut deflate = ZlibEncoder::new(Vec::new(), Compression::best());
    deflate.write_all(&zeros).unwrap();
    let mut brotli = Vec::new();
    brotli::CompressorWriter::new(&mut brotli, 4096, 9, 22).write_all(&zeros).unwrap();
    let packed = [
        ("br", brotli),
        ("zstd", zstd::encode_all(zeros.as_slice(), 3).unwrap()),
        ("deflate", deflate.finish().unwrap()),
        ("gzip, gzip", gzip(&gzip(&zeros))),
    ];
    let mut routes = vec![("gzip".to_owned(), case.input["server"].clone())];
    for (coding, body) in packed {
        assert!(body.len() < 65_536, "the bomb is small on the wire: {}", body.len());
        let mut server = case.input["server"].clone();
        server[0]["reply"][0]["body_b64"] = BASE64_STANDARD.encode(body).into();
        server[0]["reply"][0]["headers"][1][1] = coding.into();
        routes.push((coding.to_owned(), server));
    }
    routes
}

#[test]
fn case_g01_the_limit_of_a_body_counts_what_it_unpacks_to() {
    let case = Case::read("G01");
    for (coding, routes) in bombs(&case) {
        let stand = Stand::new(&routes, &[].into()).with("ROBOTSTXT_OBEY=false");
        let stand = stand.with("DOWNLOAD_MAXSIZE=65536").with("DOWNLOAD_WARNSIZE=32768");
        let crawled = stand.check(&case.start());
        let bomb = crawled.item("http://a.test/bomb");
        assert_eq!(bomb["error"], "too_large", "{coding}: {bomb}");
        assert!(bomb["reason"].as_str().unwrap().contains("max size (65536)"), "{coding}: {bomb}");
        assert_eq!(crawled.item("http://a.test/ok")["text"], "ok", "{coding}");
        assert_eq!(stand.site.pages().len(), 2, "{coding}: it is not asked for again");
        // Louder than the WARNING of the case: the request has failed for good.
        let named = crawled.ended.err.lines().any(|line| line.contains("ERROR") && line.contains("http://a.test/bomb"));
        assert!(named, "{coding}: {}", crawled.ended);
    }
}

#[test]
fn case_g02_a_wrong_label_costs_no_page_and_a_torn_body_is_never_a_short_page() {
    let case = Case::read("G02");
    let stand = case.stand().with("RETRY_TIMES=1").with("RETRY_BACKOFF=0");
    let crawled = stand.check(&case.start());
    assert_eq!(crawled.item("http://a.test/plain")["text"], "<p>plain</p>");
    assert_eq!(crawled.item("http://a.test/redir")["url"], "http://a.test/ok");
    assert_eq!(crawled.item("http://a.test/tail")["text"], "<p>tail</p>");
    let cut = crawled.item("http://a.test/cut");
    assert_eq!(cut["error"], "data_loss", "{cut}");
    assert_eq!(stand.site.pages().iter().filter(|hit| hit.target == "/cut").count(), 2, "retried");
}

#[test]
fn case_g03_a_chunked_body_without_its_last_chunk_fails_or_is_marked() {
    let case = Case::read("G03");
    let run = |n: usize| {
        let settings = case.input["runs"][n].as_object().unwrap();
        let stand = case.stand().with("RETRY_BACKOFF=0");
        let stand = settings.iter().fold(stand, |stand, (name, value)| stand.with(&format!("{name}={value}")));
        let crawled = stand.check(&case.start());
        (stand.site.pages().len(), crawled.item("http://a.test/").clone())
    };
    let (requests, failed) = run(0);
    assert_eq!((requests, &failed["error"]), (2, &json!("data_loss")), "{failed}");
    let (requests, kept) = run(1);
    assert_eq!((requests, &kept["text"], &kept["data_loss"]), (1, &json!("hello"), &json!(true)), "{kept}");
}
