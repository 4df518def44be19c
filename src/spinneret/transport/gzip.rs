//! The content coding of answers: what is asked for, and nothing else, unpacked up to a bound.

use std::io::Read as _;

use bytes::Bytes;
use flate2::bufread::GzDecoder;
use http::HeaderMap;
use http::header::CONTENT_ENCODING;

/// The largest answer, packed or unpacked.
pub(super) const LARGEST: usize = 64 * 1024 * 1024;
/// The most members of a packed answer: servers write one. Each costs some time, however little is in it.
const MEMBERS: usize = 64;
/// The first guess of an unpacked size.
const ROOM: usize = 16 * 1024;

/// The codings there are (IANA, "HTTP Content Coding Registry"). A word that is none of them may be anything.
const REGISTERED: [&str; 11] =
    ["aes128gcm", "br", "compress", "dcb", "dcz", "deflate", "exi", "gzip", "pack200-gzip", "x-gzip", "zstd"];

/// Why an answer cannot be unpacked.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(super) enum CodingError {
    #[error("the answer is coded as {0:?}; only gzip was asked for")]
    Unknown(&'static str),
    #[error("the gzip data of the answer is damaged or cut off")]
    Damaged,
    #[error("the answer is larger than {} MiB when unpacked, which no answer of this API is", LARGEST >> 20)]
    TooLarge,
}

/// The body as it was before it was packed.
pub(super) fn unpacked(headers: &HeaderMap, body: Bytes) -> Result<Bytes, CodingError> {
    let mut codings = headers.get_all(CONTENT_ENCODING).iter().flat_map(|value| value.as_bytes().split(|byte| *byte == b','));
    let mut is_packed = false;
    for coding in codings.by_ref().map(<[u8]>::trim_ascii) {
        match coding {
            b"" => {}
            coding if coding.eq_ignore_ascii_case(b"identity") => {}
            coding if !is_packed && (coding.eq_ignore_ascii_case(b"gzip") || coding.eq_ignore_ascii_case(b"x-gzip")) => {
                is_packed = true;
            }
            coding => return Err(CodingError::Unknown(shown(coding))),
        }
    }
    if is_packed && !body.is_empty() { unzip(&body, LARGEST) } else { Ok(body) }
}

fn unzip(packed: &[u8], largest: usize) -> Result<Bytes, CodingError> {
    let mut plain = Vec::with_capacity(packed.len().saturating_mul(4).min(ROOM));
    let mut rest = packed;
    for _ in 0..MEMBERS {
        let mut member = GzDecoder::new(rest);
        let room = (largest + 1).saturating_sub(plain.len()) as u64;
        let read = member.by_ref().take(room).read_to_end(&mut plain);
        if plain.len() > largest {
            return Err(CodingError::TooLarge);
        }
        read.map_err(|_| CodingError::Damaged)?;
        rest = member.into_inner();
        if rest.is_empty() {
            return Ok(Bytes::from(plain));
        }
    }
    Err(CodingError::Damaged)
}

/// The name of a coding, for a message; of one that nobody registered only that it is none.
fn shown(coding: &[u8]) -> &'static str {
    REGISTERED.into_iter().find(|known| coding.eq_ignore_ascii_case(known.as_bytes())).unwrap_or("?")
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing)]

    use std::io::Write as _;

    use flate2::Compression;
    use flate2::write::GzEncoder;
    use proptest::prelude::*;

    use super::*;

    fn zip(plain: &[u8]) -> Vec<u8> {
        let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
        encoder.write_all(plain).unwrap();
        encoder.finish().unwrap()
    }

    fn of(coding: &'static str, body: Vec<u8>) -> Result<Bytes, CodingError> {
        let mut headers = HeaderMap::new();
        headers.insert(CONTENT_ENCODING, coding.parse().unwrap());
        unpacked(&headers, Bytes::from(body))
    }

    #[test]
    fn gzip_is_unpacked_and_no_coding_is_left_alone() {
        assert_eq!(of("gzip", zip(b"{}")).unwrap(), "{}");
        assert_eq!(of(" GZip ", zip(b"{}")).unwrap(), "{}");
        assert_eq!(of("identity", b"{}".to_vec()).unwrap(), "{}");
        assert_eq!(of("gzip", Vec::new()).unwrap(), "", "an empty body is not packed");
        assert_eq!(unpacked(&HeaderMap::new(), Bytes::from_static(b"{}")).unwrap(), "{}");
        let two = [zip(b"{\"a\":"), zip(b"1}")].concat();
        assert_eq!(of("gzip", two).unwrap(), "{\"a\":1}", "members follow each other (RFC 1952, 2.2)");
    }

    #[test]
    fn another_coding_and_damage_are_told() {
        assert_eq!(of("br", b"x".to_vec()), Err(CodingError::Unknown("br")));
        assert_eq!(of("gzip, gzip", zip(&zip(b"{}"))), Err(CodingError::Unknown("gzip")));
        assert_eq!(of("ZSTD", b"x".to_vec()), Err(CodingError::Unknown("zstd")));
        for odd in ["<b>page</b>", "spn_c4n4ry"] {
            assert_eq!(of(odd, b"x".to_vec()), Err(CodingError::Unknown("?")));
        }
        let whole = zip(b"{\"released\":true}");
        assert_eq!(of("gzip", whole[..whole.len() - 3].to_vec()), Err(CodingError::Damaged));
        assert_eq!(of("gzip", b"not gzip".to_vec()), Err(CodingError::Damaged));
    }

    #[test]
    fn an_answer_that_grows_beyond_the_bound_is_refused() {
        let bomb = zip(&vec![b' '; 1_000_001]);
        assert!(bomb.len() < 10_000);
        assert_eq!(unzip(&bomb, 1_000_000), Err(CodingError::TooLarge));
        assert_eq!(unzip(&bomb, 1_000_001).unwrap().len(), 1_000_001);
    }

    #[test]
    fn members_without_end_are_not_read() {
        let begun: Vec<u8> = [zip(b"{"), zip(b"").repeat(MEMBERS - 2)].concat();
        let whole = [begun.clone(), zip(b"}")].concat();
        assert_eq!(unzip(&whole, 1_000).unwrap(), "{}");
        assert_eq!(unzip(&[begun, zip(b""), zip(b"}")].concat(), 1_000), Err(CodingError::Damaged));
        let parts = zip(&[b' '; 600]).repeat(2);
        assert_eq!(unzip(&parts, 1_199), Err(CodingError::TooLarge), "all members together");
        assert_eq!(unzip(&parts, 1_200).unwrap().len(), 1_200);
    }

    proptest! {
        #[test]
        fn any_bytes_are_unpacked_or_refused(bytes in prop::collection::vec(any::<u8>(), 0..200), cut in 0_usize..60) {
            let zipped = zip(&bytes);
            prop_assert_eq!(unzip(&zipped, 1_000).unwrap(), bytes.clone());
            let _ = unzip(&bytes, 1_000);
            let _ = unzip(&zipped[..zipped.len().saturating_sub(cut)], 1_000);
        }
    }
}
