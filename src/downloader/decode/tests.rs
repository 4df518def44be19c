//! Tests of content decoding: the conformance collection in pieces of several sizes, bombs, cut and wrong bodies.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing)]

use std::io::Write as _;

use base64::Engine as _;
use http::HeaderValue;
use proptest::prelude::*;
use serde_json::Value;

use super::{Coding, DecodeError, Decoder, End, Note};

const LIMIT: usize = 4 << 20;

/// Cases that are answered otherwise, with the reason.
const EXCEPTIONS: &[(&str, &str)] = &[];

struct Outcome {
    result: Result<End, DecodeError>,
    out: Vec<u8>,
    notes: Vec<Note>,
}

fn run(codings: &[&str], body: &[u8], piece: usize, limit: usize) -> Outcome {
    let values: Vec<HeaderValue> = codings.iter().map(|value| HeaderValue::from_str(value).unwrap()).collect();
    let Some(mut decoder) = Decoder::new(values.iter(), limit) else {
        return Outcome { result: Ok(End::Complete), out: body.to_vec(), notes: Vec::new() };
    };
    let mut out = Vec::new();
    let mut result = Ok(End::Complete);
    for chunk in body.chunks(piece.max(1)) {
        if let Err(error) = decoder.push(chunk, &mut out) {
            result = Err(error);
            break;
        }
    }
    let result = result.and_then(|_| decoder.finish(&mut out));
    Outcome { result, out, notes: decoder.notes().to_vec() }
}

fn base64(text: &Value) -> Vec<u8> {
    base64::engine::general_purpose::STANDARD.decode(text.as_str().unwrap()).unwrap()
}

fn gzip(body: &[u8]) -> Vec<u8> {
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::default());
    encoder.write_all(body).unwrap();
    encoder.finish().unwrap()
}

fn zlib(body: &[u8]) -> Vec<u8> {
    let mut encoder = flate2::write::ZlibEncoder::new(Vec::new(), flate2::Compression::default());
    encoder.write_all(body).unwrap();
    encoder.finish().unwrap()
}

fn brotli(body: &[u8]) -> Vec<u8> {
    let mut encoder = brotli::CompressorWriter::new(Vec::new(), 4096, 5, 20);
    encoder.write_all(body).unwrap();
    encoder.into_inner()
}

fn zstd(body: &[u8]) -> Vec<u8> {
    zstd::encode_all(body, 3).unwrap()
}

fn encode(coding: &str, body: &[u8]) -> Vec<u8> {
    match coding {
        "gzip" => gzip(body),
        "deflate" => zlib(body),
        "br" => brotli(body),
        "zstd" => zstd(body),
        other => panic!("no encoder for {other}"),
    }
}

#[test]
fn every_case_of_the_collection_is_decoded_in_pieces_of_any_size() {
    let data: Value = serde_json::from_str(include_str!("../../../tests/data/http_content_encoding.json")).unwrap();
    let cases = data["cases"].as_array().unwrap();
    assert_eq!(cases.len(), 68);
    let mut report = Vec::new();
    for case in cases {
        let id = case["id"].as_str().unwrap();
        let fields: Vec<&str> = case["content_encoding"].as_array().unwrap().iter().map(|name| name.as_str().unwrap()).collect();
        let body = base64(&case["body_b64"]);
        let expected = &case["expected"];
        let wanted = match (expected["body"].as_str(), expected["body_b64"].as_str()) {
            (Some(text), _) => Some(text.as_bytes().to_vec()),
            (None, Some(_)) => Some(base64(&expected["body_b64"])),
            (None, None) => None,
        };
        for piece in [1, 7, usize::MAX] {
            let outcome = run(&fields, &body, piece, LIMIT);
            let failed = outcome.result != Ok(End::Complete);
            let same = !failed && Some(&outcome.out) == wanted.as_ref();
            let right = match expected["outcome"].as_str().unwrap() {
                "decoded" | "as-is" => same,
                "error" | "partial-or-error" => failed,
                "decoded-or-error" | "as-is-or-error" => failed || same,
                "size" => !failed && outcome.out.len() == usize::try_from(expected["bytes"].as_u64().unwrap()).unwrap(),
                other => panic!("{other}"),
            };
            if right == EXCEPTIONS.iter().any(|(known, _)| *known == id) {
                let text = String::from_utf8_lossy(&outcome.out).chars().take(60).collect::<String>();
                report.push(format!("{id} piece {piece}: {:?} {text:?} {:?}, expected {expected}", outcome.result, outcome.notes));
            }
        }
    }
    assert!(report.is_empty(), "{} wrong:\n{}", report.len(), report.join("\n"));
}

#[test]
fn an_identity_body_has_no_decoder() {
    for fields in [&[][..], &["identity"], &["", " , "], &["Identity, identity"]] {
        let values: Vec<HeaderValue> = fields.iter().map(|value| HeaderValue::from_str(value).unwrap()).collect();
        assert!(Decoder::new(values.iter(), LIMIT).is_none(), "{fields:?}");
    }
}

#[test]
fn a_bomb_stops_at_the_cap_in_every_coding() {
    let plain = vec![0_u8; 64 << 20];
    for coding in ["gzip", "deflate", "br", "zstd"] {
        let bomb = encode(coding, &plain);
        let outcome = run(&[coding], &bomb, usize::MAX, 65_536);
        assert_eq!(outcome.result, Err(DecodeError::TooLarge { limit: 65_536 }), "{coding}");
        assert_eq!(outcome.out.len(), 65_536, "{coding}");
        assert!(outcome.out.capacity() <= 131_072, "{coding} held {}", outcome.out.capacity());
    }
    let stacked = gzip(&gzip(&plain));
    let outcome = run(&["gzip, gzip"], &stacked, usize::MAX, 65_536);
    assert_eq!(outcome.result, Err(DecodeError::TooLarge { limit: 65_536 }));
    assert!(outcome.out.len() <= 65_536 && outcome.out.capacity() <= 131_072);
}

#[test]
fn a_body_of_exactly_the_cap_is_whole() {
    let plain = vec![7_u8; 65_536];
    for coding in ["gzip", "deflate", "br", "zstd"] {
        let outcome = run(&[coding], &encode(coding, &plain), 1000, 65_536);
        assert_eq!((outcome.result, outcome.out.len()), (Ok(End::Complete), 65_536), "{coding}");
        let outcome = run(&[coding], &encode(coding, &plain), 1000, 65_535);
        assert_eq!(outcome.result, Err(DecodeError::TooLarge { limit: 65_535 }), "{coding}");
    }
}

#[test]
fn a_plain_body_under_a_coding_is_passed_and_noted() {
    for (coding, label) in [("gzip", Coding::Gzip), ("zstd", Coding::Zstd)] {
        for body in ["<p>plain</p>", "moved", "<html lang=ru><title>Привет</title></html>", "{}"] {
            let outcome = run(&[coding], body.as_bytes(), 5, LIMIT);
            assert_eq!(outcome.result, Ok(End::Complete), "{coding} {body}");
            assert_eq!(outcome.out, body.as_bytes());
            assert_eq!(outcome.notes, [Note::NotEncoded(label)]);
        }
    }
}

#[test]
fn a_cut_body_is_data_loss_with_its_beginning() {
    let plain: Vec<u8> = (0..40_000_u32).flat_map(|n| n.wrapping_mul(2_654_435_761).to_be_bytes()).collect();
    for coding in ["gzip", "deflate", "br", "zstd"] {
        let whole = encode(coding, &plain);
        let outcome = run(&[coding], &whole[..whole.len() - 2000], 4096, LIMIT);
        assert_eq!(outcome.result, Ok(End::DataLoss), "{coding}");
        assert!(plain.starts_with(&outcome.out) && outcome.out.len() < plain.len(), "{coding}");
    }
    let cut = base64(&Value::from("H4sIAAAAAAAC/+3BMREAAAgEoEgW8Mz0o/FN4QZ0ZgEAAACA"));
    assert_eq!(run(&["gzip"], &cut, 9, LIMIT).result, Ok(End::DataLoss));
}

#[test]
fn garbage_behind_the_stream_is_dropped_and_noted() {
    for (coding, label) in
        [("gzip", Coding::Gzip), ("deflate", Coding::Deflate), ("br", Coding::Brotli), ("zstd", Coding::Zstd)]
    {
        for piece in [1, 1000] {
            let mut body = encode(coding, b"<p>tail</p>");
            body.extend(b"garbage");
            let outcome = run(&[coding], &body, piece, LIMIT);
            assert_eq!(outcome.result, Ok(End::Complete), "{coding}");
            assert_eq!(outcome.out, b"<p>tail</p>", "{coding}");
            assert_eq!(outcome.notes, [Note::TrailingBytes(label)], "{coding} {piece}");
        }
    }
    let mut body = zstd(b"x");
    body.extend(b"\r\n");
    assert_eq!(run(&["zstd"], &body, 1, LIMIT).result, Ok(End::Complete));
}

#[test]
fn unknown_codings_are_kept_and_named() {
    let outcome = run(&["foo, bar", "gzip"], &gzip(b"inner"), 100, LIMIT);
    assert_eq!((outcome.result, outcome.out), (Ok(End::Complete), b"inner".to_vec()));
    assert_eq!(outcome.notes, [Note::UnknownCodings("foo, bar".to_owned())]);
    let outcome = run(&["gzip, foo"], &gzip(b"inner"), 100, LIMIT);
    assert_eq!(outcome.out, gzip(b"inner"));
    let outcome = run(&["foo"], &[1; 100], 10, 50);
    assert_eq!(outcome.result, Err(DecodeError::TooLarge { limit: 50 }));
}

#[test]
fn a_wrong_checksum_is_noted_and_a_long_list_is_bounded() {
    let mut body = gzip(b"content");
    let at = body.len() - 8;
    body[at] ^= 1;
    let outcome = run(&["gzip"], &body, 3, LIMIT);
    assert_eq!((outcome.result, outcome.out.as_slice()), (Ok(End::Complete), &b"content"[..]));
    assert_eq!(outcome.notes, [Note::WrongTrailer]);
    let many = vec!["gzip"; 5_000].join(",");
    assert!(matches!(run(&[&many], b"plain text of a page", 5, LIMIT).notes[0], Note::UnknownCodings(_)));
}

#[test]
fn gzip_header_fields_of_every_kind_are_skipped() {
    let encoder = flate2::GzBuilder::new().extra(vec![9; 300]).filename("a").comment("b");
    let mut encoder = encoder.write(Vec::new(), flate2::Compression::fast());
    encoder.write_all(b"content").unwrap();
    let body = encoder.finish().unwrap();
    for piece in [1, 3, 1000] {
        assert_eq!(run(&["gzip"], &body, piece, LIMIT).out, b"content");
    }
}

proptest! {
    #[test]
    fn what_was_encoded_comes_back(
        body in proptest::collection::vec(any::<u8>(), 0..3000), piece in 1_usize..900,
        list in proptest::collection::vec(proptest::sample::select(vec!["gzip", "deflate", "br", "zstd"]), 1..4),
    ) {
        let encoded = list.iter().fold(body.clone(), |body, coding| encode(coding, &body));
        let outcome = run(&[&list.join(", ")], &encoded, piece, LIMIT);
        prop_assert_eq!(outcome.result, Ok(End::Complete));
        prop_assert_eq!(outcome.out, body);
        prop_assert!(outcome.notes.is_empty());
    }

    #[test]
    fn any_bytes_are_answered_within_the_cap(
        body in proptest::collection::vec(any::<u8>(), 0..300), piece in 1_usize..90,
        coding in proptest::sample::select(vec!["gzip", "deflate", "br", "zstd"]),
    ) {
        for magic in [&b""[..], b"\x1f\x8b\x08", b"\x28\xb5\x2f\xfd", b"\x78\x9c"] {
            let mut bytes = magic.to_vec();
            bytes.extend(&body);
            prop_assert!(run(&[coding], &bytes, piece, 1000).out.len() <= 1000);
        }
    }
}
