//! Envelopes: an item that only the holder of the same token reads.
//!
//! AES-256-GCM (NIST SP 800-38D) under a key that HKDF-SHA256 (RFC 5869) derives from the token and a salt of its own; the item's
//! name is authenticated with it, so that a file cannot stand in for another. Derived keys and plain texts are wiped after use.

use std::io;

use aes_gcm::aead::{Aead as _, KeyInit as _, Payload};
use aes_gcm::{Aes256Gcm, Nonce};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use hkdf::Hkdf;
use secrecy::zeroize::Zeroizing;
use secrecy::{ExposeSecret as _, SecretString};
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use sha2::Sha256;

const ALGORITHM: &str = "HKDF-SHA256/AES-256-GCM";
const INFO: &[u8] = b"spinneret-config-snapshot-v1";
const KEY_BYTES: usize = 32;
/// RFC 5869, 2.3: at most 255 blocks of the hash.
const MAX_OUTPUT: usize = 255 * 32;

/// What is encrypted, as the document holds it: the binary members in base64.
#[derive(Debug, Serialize)]
pub(super) struct Envelope {
    alg: &'static str,
    salt: String,
    nonce: String,
    ciphertext: String,
}

/// An envelope as it is read: any of it may be missing, or be no text.
#[derive(Debug, Deserialize)]
pub(super) struct Sealed<'a> {
    #[serde(borrow)]
    alg: Option<&'a RawValue>,
    #[serde(borrow)]
    salt: Option<&'a RawValue>,
    #[serde(borrow)]
    nonce: Option<&'a RawValue>,
    #[serde(borrow)]
    ciphertext: Option<&'a RawValue>,
}

/// The randomness of one envelope. Never used for a second one.
#[derive(Debug, Clone, Copy)]
pub(super) struct Freshness {
    pub(super) salt: [u8; 16],
    pub(super) nonce: [u8; 12],
}

/// Why an envelope cannot be opened, or made.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub(super) enum EnvelopeError {
    /// `alg` is missing or another one.
    #[error("its algorithm is not {ALGORITHM}")]
    Algorithm,
    /// The member is missing or no string.
    #[error("its envelope has no text as {0}")]
    Missing(&'static str),
    /// The member is not base64 in the standard alphabet, with padding.
    #[error("{0} of its envelope is not base64")]
    Base64(&'static str),
    /// The nonce has not 12 bytes.
    #[error("the nonce of its envelope does not have 12 bytes")]
    Nonce,
    /// Another token, another item, or the file was changed.
    #[error("it was written under another token, for another item, or was changed since")]
    Authentication,
    /// Asked for no bytes, or for more than HKDF gives.
    #[error("a key of {0} bytes cannot be derived: 1 to {MAX_OUTPUT}")]
    KeyLength(usize),
}

impl Freshness {
    /// # Errors
    /// The system gives no randomness.
    pub(super) fn from_system() -> io::Result<Self> {
        let mut fresh = Self { salt: [0; 16], nonce: [0; 12] };
        getrandom::fill(&mut fresh.salt)
            .and_then(|()| getrandom::fill(&mut fresh.nonce))
            .map_err(|_| io::Error::other("the system gives no randomness"))?;
        Ok(fresh)
    }
}

impl Envelope {
    /// Encrypts a text for the item of this name.
    pub(super) fn seal(
        token: &SecretString,
        fresh: &Freshness,
        group: &str,
        key: &str,
        text: &[u8],
    ) -> Result<Self, EnvelopeError> {
        let payload = Payload { msg: text, aad: &name(group, key) };
        let sealed =
            cipher(token, &fresh.salt)?.encrypt(&Nonce::from(fresh.nonce), payload).map_err(|_| EnvelopeError::Authentication)?;
        Ok(Self {
            alg: ALGORITHM,
            salt: STANDARD.encode(fresh.salt),
            nonce: STANDARD.encode(fresh.nonce),
            ciphertext: STANDARD.encode(sealed),
        })
    }
}

impl Sealed<'_> {
    /// Decrypts the text of an envelope that should be of the item of this name.
    pub(super) fn open(&self, token: &SecretString, group: &str, key: &str) -> Result<Zeroizing<Vec<u8>>, EnvelopeError> {
        if text(self.alg).as_deref() != Some(ALGORITHM) {
            return Err(EnvelopeError::Algorithm);
        }
        let salt = bytes(self.salt, "salt")?;
        let nonce = <[u8; 12]>::try_from(bytes(self.nonce, "nonce")?).map_err(|_| EnvelopeError::Nonce)?;
        let sealed = bytes(self.ciphertext, "ciphertext")?;
        let payload = Payload { msg: &sealed, aad: &name(group, key) };
        let text = cipher(token, &salt)?.decrypt(&Nonce::from(nonce), payload).map_err(|_| EnvelopeError::Authentication)?;
        Ok(Zeroizing::new(text))
    }
}

fn text(member: Option<&RawValue>) -> Option<String> {
    member.and_then(|member| serde_json::from_str(member.get()).ok())
}

fn bytes(member: Option<&RawValue>, name: &'static str) -> Result<Vec<u8>, EnvelopeError> {
    let text = text(member).ok_or(EnvelopeError::Missing(name))?;
    STANDARD.decode(text).map_err(|_| EnvelopeError::Base64(name))
}

/// The name of an item, as it is authenticated.
fn name(group: &str, key: &str) -> Vec<u8> {
    [group.as_bytes(), &[0], key.as_bytes()].concat()
}

fn cipher(token: &SecretString, salt: &[u8]) -> Result<Aes256Gcm, EnvelopeError> {
    let key = derive(token.expose_secret().as_bytes(), salt, INFO, KEY_BYTES)?;
    Aes256Gcm::new_from_slice(&key).map_err(|_| EnvelopeError::KeyLength(key.len()))
}

/// HKDF-SHA256 (RFC 5869): `length` bytes from key material; an empty salt counts as 32 zero bytes.
fn derive(material: &[u8], salt: &[u8], info: &[u8], length: usize) -> Result<Zeroizing<Vec<u8>>, EnvelopeError> {
    if length == 0 || length > MAX_OUTPUT {
        return Err(EnvelopeError::KeyLength(length));
    }
    let mut key = Zeroizing::new(vec![0; length]);
    Hkdf::<Sha256>::new(Some(salt), material).expand(info, &mut key).map_err(|_| EnvelopeError::KeyLength(length))?;
    Ok(key)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing)]

    use serde_json::{Map, Value, json};

    use super::*;

    const TEXT: &str = r#"{"namespace":"prod","group":"crawler","key":"search.json","format":"json","version":3,"content":"{\"api_key\": \"sk-resolved\"}","updated_at":"2026-09-16T08:30:00Z","has_secret_refs":true}"#;
    const CIPHERTEXT: &str = "VeiuZiSdlf49o1BCWfGfE1f8O3WQ6c7g+47/Is5Qtc/sm+emYtAEbqJ0MxvGy3i033K/22nLScmf2EKe4W8P1qqVwZf1fk0e+j6/L+lgAsf/4QrEUv+mNd/tgFiXAEx+FseaHGyrm5GTjNeRXRV/BE1TOplsfsw680qeS1GO+kKG+FEepo9gAZ+UnotGOato3TRgGsfDFK/IGKyGwxv+366OBHr9KX+t4fT9bGQ+Z5cgJESyTKWRUXvB1uXyW8MWtj7dRT0Db247uCO1";

    fn token() -> SecretString {
        SecretString::from("spn_test_token_value")
    }

    fn fresh() -> Freshness {
        Freshness {
            salt: std::array::from_fn(|n| u8::try_from(n).unwrap()),
            nonce: std::array::from_fn(|n| u8::try_from(n + 16).unwrap()),
        }
    }

    fn sealed() -> Map<String, Value> {
        let envelope = Envelope::seal(&token(), &fresh(), "crawler", "search.json", TEXT.as_bytes()).unwrap();
        serde_json::to_value(envelope).unwrap().as_object().unwrap().clone()
    }

    fn open(
        envelope: &Map<String, Value>,
        token: &SecretString,
        group: &str,
        key: &str,
    ) -> Result<Zeroizing<Vec<u8>>, EnvelopeError> {
        let text = serde_json::to_string(envelope).unwrap();
        serde_json::from_str::<Sealed<'_>>(&text).unwrap().open(token, group, key)
    }

    fn hex(text: &str) -> Vec<u8> {
        (0..text.len()).step_by(2).map(|at| u8::from_str_radix(&text[at..at + 2], 16).unwrap()).collect()
    }

    #[test]
    fn b127_keys_are_those_of_rfc_5869() {
        // Appendix A.1 and A.3.
        let vectors = [
            (
                "0b0b0b0b0b0b0b0b0b0b0b0b0b0b0b0b0b0b0b0b0b0b",
                "000102030405060708090a0b0c",
                "f0f1f2f3f4f5f6f7f8f9",
                "3cb25f25faacd57a90434f64d0362f2a2d2d0a90cf1a5a4c5db02d56ecc4c5bf34007208d5b887185865",
            ),
            (
                "0b0b0b0b0b0b0b0b0b0b0b0b0b0b0b0b0b0b0b0b0b0b",
                "",
                "",
                "8da4e775a563c18f715f802a063c5a31b8a11f5c5ee1879ec3454e5f3c738d2d9d201395faa4b61a96c8",
            ),
        ];
        for (material, salt, info, expected) in vectors {
            assert_eq!(*derive(&hex(material), &hex(salt), &hex(info), 42).unwrap(), hex(expected));
        }
    }

    #[test]
    fn b127_no_bytes_and_more_than_255_blocks_are_an_error() {
        assert_eq!(derive(b"k", b"", b"", 0).unwrap_err(), EnvelopeError::KeyLength(0));
        assert_eq!(derive(b"k", b"", b"", 8161).unwrap_err(), EnvelopeError::KeyLength(8161));
        assert_eq!(derive(b"k", b"", b"", 8160).unwrap().len(), 8160);
        assert_eq!(derive(b"k", b"", b"", 1).unwrap().len(), 1);
    }

    #[test]
    fn b192_the_vector_is_derived_sealed_and_opened() {
        let key = derive(b"spn_test_token_value", &fresh().salt, INFO, KEY_BYTES).unwrap();
        assert_eq!(*key, hex("a345c79608b6a911de6c1dc768146407b02b7aff7cc4f93c4c48fb33a06ffbff"));
        assert_eq!(TEXT.len(), 188);
        let expected = json!({
            "alg": "HKDF-SHA256/AES-256-GCM", "salt": "AAECAwQFBgcICQoLDA0ODw==", "nonce": "EBESExQVFhcYGRob", "ciphertext": CIPHERTEXT
        });
        assert_eq!(Value::Object(sealed()), expected);
        let text = open(&sealed(), &token(), "crawler", "search.json").unwrap();
        assert_eq!(*text, TEXT.as_bytes());
    }

    #[test]
    fn a_salt_of_any_length_is_read() {
        for salt in [&b""[..], b"short", &[7; 100]] {
            let payload = Payload { msg: b"text", aad: &name("g", "k") };
            let ciphertext = cipher(&token(), salt).unwrap().encrypt(&Nonce::from([1; 12]), payload).unwrap();
            let envelope = json!({
                "alg": ALGORITHM, "salt": STANDARD.encode(salt), "nonce": STANDARD.encode([1; 12]), "ciphertext": STANDARD.encode(ciphertext)
            });
            assert_eq!(*open(envelope.as_object().unwrap(), &token(), "g", "k").unwrap(), b"text");
        }
    }

    #[test]
    fn b126_an_envelope_that_is_not_whole_says_what_it_lacks() {
        let cases = [
            ("alg", json!("AES-256-GCM"), EnvelopeError::Algorithm),
            ("alg", Value::Null, EnvelopeError::Algorithm),
            ("salt", Value::Null, EnvelopeError::Missing("salt")),
            ("salt", json!("AAECAwQFBgcICQoLDA0ODw"), EnvelopeError::Base64("salt")),
            ("salt", json!("AAECAwQFBgcICQoLDA0ODx=="), EnvelopeError::Base64("salt")),
            ("salt", json!(" AAECAwQFBgcICQoLDA0ODw=="), EnvelopeError::Base64("salt")),
            ("salt", json!(""), EnvelopeError::Authentication),
            ("nonce", json!("EBES\nExQVFhcYGRob"), EnvelopeError::Base64("nonce")),
            ("nonce", json!("AAAA"), EnvelopeError::Nonce),
            ("nonce", json!(12), EnvelopeError::Missing("nonce")),
            ("ciphertext", json!(7), EnvelopeError::Missing("ciphertext")),
            ("ciphertext", json!(["VQ=="]), EnvelopeError::Missing("ciphertext")),
            ("ciphertext", json!(CIPHERTEXT.replace('+', "-").replace('/', "_")), EnvelopeError::Base64("ciphertext")),
            ("ciphertext", json!(""), EnvelopeError::Authentication),
            ("ciphertext", json!("AAAA"), EnvelopeError::Authentication),
        ];
        for (member, value, expected) in cases {
            let mut envelope = sealed();
            envelope.insert(member.to_owned(), value.clone());
            assert_eq!(open(&envelope, &token(), "crawler", "search.json").unwrap_err(), expected, "{member} {value}");
        }
    }

    #[test]
    fn b126_an_envelope_of_another_item_or_token_stays_shut() {
        let shut = Err(EnvelopeError::Authentication);
        for (group, key) in [("crawler", "other.json"), ("other", "search.json"), ("crawler\0search.json", ""), ("", "")] {
            assert_eq!(open(&sealed(), &token(), group, key), shut, "{group:?} {key:?}");
        }
        for other in ["spn_test_token_valuf", "", "spn_test_token_value "] {
            assert_eq!(open(&sealed(), &SecretString::from(other), "crawler", "search.json"), shut);
        }
    }

    #[test]
    fn every_envelope_has_a_salt_and_a_nonce_of_its_own() {
        let (one, other) = (Freshness::from_system().unwrap(), Freshness::from_system().unwrap());
        assert_ne!(one.salt, other.salt);
        assert_ne!(one.nonce, other.nonce);
    }
}
