//! The form of a stored answer in its file, version 1.
//!
//! A prefix of fixed length (mark, version, coding, lengths, sums), then the head as JSON that people can read, then the
//! body. Numbers are little-endian. A value of a header is written byte by byte as the characters U+0000 to U+00FF, so that
//! none is lost. Every length is checked against a bound, and every part against its sum, before it is believed.

use std::fmt;
use std::io::{Read, Write};
use std::time::{Duration, SystemTime};

use bytes::Bytes;
use flate2::Compression;
use flate2::read::GzDecoder;
use flate2::write::GzEncoder;
use http::{HeaderMap, HeaderName, HeaderValue, StatusCode, Version};
use serde::{Deserialize, Serialize};
use xxhash_rust::xxh3::{Xxh3, xxh3_64};

/// What every file begins with.
const MARK: &[u8; 4] = b"DLHC";

/// The version this program writes; it reads no other.
pub(crate) const VERSION: u8 = 1;

/// Bytes before the head.
pub(crate) const PREFIX: usize = 42;

/// Longest head that is read: headers of an answer are bounded by the HTTP client already.
pub(crate) const HEAD_MAX: u32 = 1 << 20;

/// What is known of a stored answer without its body.
#[derive(Clone, PartialEq)]
pub(crate) struct Head {
    /// The URL, without user, password and fragment.
    pub(crate) url: String,
    /// The method.
    pub(crate) method: String,
    /// Whose answer it is: the site of the identity.
    pub(crate) site: String,
    /// The identity's name within the site.
    pub(crate) identity: String,
    /// The status.
    pub(crate) status: StatusCode,
    /// The protocol version.
    pub(crate) version: Version,
    /// When it came, or was last confirmed; whole milliseconds.
    pub(crate) stored_at: SystemTime,
    /// The headers that are kept.
    pub(crate) headers: HeaderMap,
    /// Names of the request headers that `Vary` lists, each with a keyed hash of what the request had there.
    pub(crate) vary: Vec<(String, String)>,
    /// The body was decoded from a content coding.
    pub(crate) decoded: bool,
    /// The body is not encoded as the headers say.
    pub(crate) not_as_labelled: bool,
}

/// What the prefix says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Prefix {
    coding: Coding,
    pub(crate) head_len: u32,
    /// Bytes of the body in the file.
    pub(crate) stored_len: u64,
    /// Bytes of the body.
    pub(crate) body_len: u64,
    body_sum: u64,
    head_sum: u64,
}

/// How a body lies in its file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Coding {
    Plain,
    Gzip,
}

/// Why a file is no stored answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub(crate) enum Flaw {
    #[error("it does not begin as a stored answer does")]
    Mark,
    #[error("a newer version of this program wrote it (version {0}, this program reads {VERSION})")]
    Newer(u8),
    #[error("its {0} is damaged")]
    Part(&'static str),
}

/// The file of an answer.
///
/// # Errors
/// When gzip fails, which it does not into memory.
pub(crate) fn encode(head: &Head, body: &[u8], coding: Coding) -> std::io::Result<Vec<u8>> {
    let head = serde_json::to_vec(&Written::of(head))?;
    let packed;
    let stored = match coding {
        Coding::Plain => body,
        Coding::Gzip => {
            let mut encoder = GzEncoder::new(Vec::with_capacity(body.len() / 3), Compression::fast());
            encoder.write_all(body)?;
            packed = encoder.finish()?;
            &packed
        }
    };
    let mut file = Vec::with_capacity(PREFIX + head.len() + stored.len());
    file.extend_from_slice(MARK);
    file.push(VERSION);
    file.push(u8::from(coding == Coding::Gzip));
    file.extend_from_slice(&u32::try_from(head.len()).unwrap_or(u32::MAX).to_le_bytes());
    file.extend_from_slice(&(stored.len() as u64).to_le_bytes());
    file.extend_from_slice(&(body.len() as u64).to_le_bytes());
    file.extend_from_slice(&xxh3_64(stored).to_le_bytes());
    let sum = head_sum(&file, &head);
    file.extend_from_slice(&sum.to_le_bytes());
    file.extend_from_slice(&head);
    file.extend_from_slice(stored);
    Ok(file)
}

impl Prefix {
    /// Reads a prefix.
    ///
    /// # Errors
    /// When it is none, or announces a head longer than [`HEAD_MAX`].
    pub(crate) fn read(bytes: &[u8; PREFIX]) -> Result<Self, Flaw> {
        let mut rest = bytes.as_slice();
        if take::<4>(&mut rest) != *MARK {
            return Err(Flaw::Mark);
        }
        let [version] = take(&mut rest);
        match version {
            VERSION => {}
            newer if newer > VERSION => return Err(Flaw::Newer(newer)),
            _ => return Err(Flaw::Part("version")),
        }
        let coding = match take(&mut rest) {
            [0] => Coding::Plain,
            [1] => Coding::Gzip,
            _ => return Err(Flaw::Part("coding")),
        };
        let head_len = u32::from_le_bytes(take(&mut rest));
        if head_len > HEAD_MAX {
            return Err(Flaw::Part("length of the head"));
        }
        let [stored_len, body_len, body_sum, head_sum] = [(); 4].map(|()| u64::from_le_bytes(take(&mut rest)));
        if coding == Coding::Plain && stored_len != body_len {
            return Err(Flaw::Part("length of the body"));
        }
        Ok(Self { coding, head_len, stored_len, body_len, body_sum, head_sum })
    }

    /// Reads the head that follows `prefix`, the bytes this was read from.
    ///
    /// # Errors
    /// When it does not fit its sum, or is no head.
    pub(crate) fn head(&self, prefix: &[u8; PREFIX], head: &[u8]) -> Result<Head, Flaw> {
        let summed = prefix.split_last_chunk::<8>().map_or(prefix.as_slice(), |(summed, _)| summed);
        if head_sum(summed, head) != self.head_sum {
            return Err(Flaw::Part("head"));
        }
        let written: Written = serde_json::from_slice(head).map_err(|_| Flaw::Part("head"))?;
        written.read().ok_or(Flaw::Part("head"))
    }

    /// Reads the body from the bytes that lie in the file.
    ///
    /// # Errors
    /// When they do not fit their sum or their length. No more than the length that is announced is decoded.
    pub(crate) fn body(&self, stored: Vec<u8>) -> Result<Bytes, Flaw> {
        if stored.len() as u64 != self.stored_len || xxh3_64(&stored) != self.body_sum {
            return Err(Flaw::Part("body"));
        }
        if self.coding == Coding::Plain {
            return Ok(stored.into());
        }
        let mut body = Vec::new();
        let most = self.body_len.saturating_add(1);
        let read = GzDecoder::new(stored.as_slice()).take(most).read_to_end(&mut body);
        if read.is_err() || body.len() as u64 != self.body_len {
            return Err(Flaw::Part("body"));
        }
        Ok(body.into())
    }
}

/// The head as it is written.
#[derive(Serialize, Deserialize)]
struct Written {
    url: String,
    method: String,
    site: String,
    identity: String,
    status: u16,
    http: String,
    /// Milliseconds since 1970.
    stored_at: u64,
    headers: Vec<(String, String)>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    vary: Vec<(String, String)>,
    #[serde(default, skip_serializing_if = "is_false")]
    decoded: bool,
    #[serde(default, skip_serializing_if = "is_false")]
    not_as_labelled: bool,
}

impl Written {
    fn of(head: &Head) -> Self {
        let Head { url, method, site, identity, status, version, stored_at, headers, vary, decoded, not_as_labelled } =
            head.clone();
        let since = stored_at.duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
        Self {
            url,
            method,
            site,
            identity,
            status: status.as_u16(),
            http: version_text(version).to_owned(),
            stored_at: u64::try_from(since.as_millis()).unwrap_or(u64::MAX),
            headers: headers.iter().map(|(name, value)| (name.as_str().to_owned(), to_text(value))).collect(),
            vary,
            decoded,
            not_as_labelled,
        }
    }

    fn read(self) -> Option<Head> {
        let Self { url, method, site, identity, status, http, stored_at, headers, vary, decoded, not_as_labelled } = self;
        let mut read = HeaderMap::new();
        for (name, value) in headers {
            read.try_append(HeaderName::try_from(name).ok()?, from_text(&value)?).ok()?;
        }
        Some(Head {
            url,
            method,
            site,
            identity,
            status: StatusCode::from_u16(status).ok()?,
            version: VERSIONS.iter().find(|(_, text)| *text == http)?.0,
            stored_at: SystemTime::UNIX_EPOCH.checked_add(Duration::from_millis(stored_at))?,
            headers: read,
            vary,
            decoded,
            not_as_labelled,
        })
    }
}

impl fmt::Debug for Head {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Headers may repeat what only the identity may know.
        f.debug_struct("Head")
            .field("url", &self.url)
            .field("status", &self.status.as_u16())
            .field("headers", &self.headers.len())
            .finish_non_exhaustive()
    }
}

const VERSIONS: [(Version, &str); 5] = [
    (Version::HTTP_09, "0.9"),
    (Version::HTTP_10, "1.0"),
    (Version::HTTP_11, "1.1"),
    (Version::HTTP_2, "2"),
    (Version::HTTP_3, "3"),
];

fn version_text(version: Version) -> &'static str {
    VERSIONS.iter().find(|(known, _)| *known == version).map_or("1.1", |(_, text)| text)
}

fn to_text(value: &HeaderValue) -> String {
    value.as_bytes().iter().map(|byte| char::from(*byte)).collect()
}

fn from_text(text: &str) -> Option<HeaderValue> {
    let bytes: Option<Vec<u8>> = text.chars().map(|c| u8::try_from(u32::from(c)).ok()).collect();
    HeaderValue::from_bytes(&bytes?).ok()
}

fn head_sum(prefix: &[u8], head: &[u8]) -> u64 {
    let mut sum = Xxh3::new();
    sum.update(prefix);
    sum.update(head);
    sum.digest()
}

fn is_false(flag: &bool) -> bool {
    !flag
}

/// The next bytes of a prefix, which has as many as are taken.
fn take<const N: usize>(rest: &mut &[u8]) -> [u8; N] {
    let (taken, after) = rest.split_first_chunk::<N>().map_or(([0; N], [].as_slice()), |(taken, after)| (*taken, after));
    *rest = after;
    taken
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing)]
    use proptest::prelude::*;

    use super::*;

    pub(crate) fn head() -> Head {
        let mut headers = HeaderMap::new();
        headers.append("content-type", HeaderValue::from_static("text/html"));
        headers.append("link", HeaderValue::from_static("</a>; rel=next"));
        headers.append("link", HeaderValue::from_static("</b>; rel=prev"));
        headers.append("x-odd", HeaderValue::from_bytes(b"caf\xe9 \xff").unwrap());
        Head {
            url: "https://shop.example/p?page=1".to_owned(),
            method: "GET".to_owned(),
            site: "shop".to_owned(),
            identity: "anna".to_owned(),
            status: StatusCode::OK,
            version: Version::HTTP_2,
            stored_at: SystemTime::UNIX_EPOCH + Duration::from_millis(1_800_000_000_123),
            headers,
            vary: vec![("accept-language".to_owned(), "00ff".to_owned())],
            decoded: true,
            not_as_labelled: false,
        }
    }

    fn decode(file: &[u8]) -> Result<(Head, Bytes), Flaw> {
        let (prefix, rest) = file.split_first_chunk::<PREFIX>().ok_or(Flaw::Mark)?;
        let read = Prefix::read(prefix)?;
        let (head, body) = rest.split_at_checked(read.head_len as usize).ok_or(Flaw::Part("head"))?;
        Ok((read.head(prefix, head)?, read.body(body.to_vec())?))
    }

    #[test]
    fn a_file_of_version_1_reads_and_writes_the_same_for_ever() {
        let written: Vec<u8> = include_str!("golden_v1.hex")
            .split_ascii_whitespace()
            .flat_map(|line| (0..line.len()).step_by(2).map(|at| u8::from_str_radix(&line[at..at + 2], 16).unwrap()))
            .collect();
        let file = encode(&head(), b"<p>hello</p>", Coding::Plain).unwrap();
        let hex: String = file.chunks(48).map(|l| l.iter().map(|b| format!("{b:02x}")).collect::<String>() + "\n").collect();
        assert_eq!(file, written, "{hex}");
        assert_eq!(decode(&written).unwrap(), (head(), Bytes::from_static(b"<p>hello</p>")));
    }

    #[test]
    fn what_was_packed_is_unpacked() {
        let body = "long and long and long ".repeat(1000);
        let file = encode(&head(), body.as_bytes(), Coding::Gzip).unwrap();
        assert!(file.len() < 2000, "{}", file.len());
        assert_eq!(decode(&file).unwrap().1, body);
    }

    #[test]
    fn a_byte_that_changed_anywhere_is_noticed() {
        for coding in [Coding::Plain, Coding::Gzip] {
            let file = encode(&head(), b"<p>hello</p>", coding).unwrap();
            for at in 0..file.len() {
                for change in [1, 0x80] {
                    let mut damaged = file.clone();
                    damaged[at] ^= change;
                    assert!(decode(&damaged).is_err(), "{coding:?} {at}");
                }
                assert!(decode(&file[..at]).is_err(), "{coding:?} cut at {at}");
            }
        }
    }

    #[test]
    fn a_newer_file_is_told_from_a_damaged_one() {
        let mut file = encode(&head(), b"", Coding::Plain).unwrap();
        file[4] = 2;
        assert_eq!(decode(&file), Err(Flaw::Newer(2)));
        file[4] = 0;
        assert_eq!(decode(&file), Err(Flaw::Part("version")));
    }

    #[test]
    fn a_packed_body_that_unfolds_beyond_its_announced_length_is_cut_off() {
        let bomb = encode(&head(), &vec![0; 1 << 20], Coding::Gzip).unwrap();
        let prefix = Prefix::read(bomb.first_chunk().unwrap()).unwrap();
        let stored = bomb[PREFIX + prefix.head_len as usize..].to_vec();
        let lying = Prefix { body_len: 100, ..prefix };
        assert_eq!(lying.body(stored), Err(Flaw::Part("body")));
    }

    proptest! {
        #[test]
        fn any_bytes_are_a_flaw_or_an_answer(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
            let _ = decode(&bytes);
            let marked = [MARK.as_slice(), &[VERSION, 0], &bytes].concat();
            prop_assert!(decode(&marked).is_err());
        }

        #[test]
        fn any_answer_comes_back(body in prop::collection::vec(any::<u8>(), 0..500), value in prop::collection::vec(any::<u8>(), 0..30), packed in any::<bool>()) {
            let mut head = head();
            if let Ok(value) = HeaderValue::from_bytes(&value) {
                head.headers.append("x-any", value);
            }
            let file = encode(&head, &body, if packed { Coding::Gzip } else { Coding::Plain }).unwrap();
            prop_assert_eq!(decode(&file).unwrap(), (head, Bytes::from(body)));
        }
    }
}
