//! The signature of a POST: HMAC-SHA256 over timestamp, a dot and the exact body bytes.

use std::fmt;

use hmac::{Hmac, KeyInit, Mac};
use secrecy::{ExposeSecret, SecretString};
use sha2::Sha256;

/// Signs bodies with the project's secret. The secret never shows in `Debug` or in an error.
#[derive(Clone)]
pub struct Signer {
    secret: SecretString,
}

impl Signer {
    /// A signer for the secret of `APCLOUDY_SECRET_KEY`.
    #[must_use]
    pub fn new(secret: SecretString) -> Self {
        Self { secret }
    }

    /// The `X-SIGNATURE` of a body: 64 lower-case hex digits. `timestamp` is the `X-TIMESTAMP` text, Unix
    /// seconds; a resend takes a new one.
    #[must_use]
    pub fn sign(&self, timestamp: &str, body: &[u8]) -> String {
        use fmt::Write as _;
        let mut hex = String::with_capacity(64);
        for byte in self.mac(timestamp, body).finalize().into_bytes() {
            let _ = write!(hex, "{byte:02x}");
        }
        hex
    }

    /// Whether `signature` is the signature of this timestamp and body. Compares in constant time.
    #[must_use]
    pub fn verify(&self, timestamp: &str, body: &[u8], signature: &str) -> bool {
        from_hex(signature).is_some_and(|given| self.mac(timestamp, body).verify_slice(&given).is_ok())
    }

    fn mac(&self, timestamp: &str, body: &[u8]) -> Hmac<Sha256> {
        #[allow(clippy::expect_used, reason = "HMAC is defined for keys of any length (RFC 2104)")]
        let mut mac =
            Hmac::<Sha256>::new_from_slice(self.secret.expose_secret().as_bytes()).expect("HMAC takes a key of any length");
        mac.update(timestamp.as_bytes());
        mac.update(b".");
        mac.update(body);
        mac
    }
}

impl fmt::Debug for Signer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Signer").finish_non_exhaustive()
    }
}

fn from_hex(text: &str) -> Option<Vec<u8>> {
    let digits = text.as_bytes();
    if digits.len() != 64 {
        return None;
    }
    digits
        .chunks_exact(2)
        .map(|pair| {
            let mut byte = 0;
            for digit in pair {
                let value = match digit {
                    b'0'..=b'9' => digit - b'0',
                    b'a'..=b'f' => digit - b'a' + 10,
                    _ => return None,
                };
                byte = byte << 4 | value;
            }
            Some(byte)
        })
        .collect()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing)]

    use super::*;
    use crate::apcloudy::testdata::captures;

    #[test]
    fn the_worked_example_has_its_signature() {
        let body = r#"{"job_id": 123, "data": {"requests": [], "items": [{"title": "\u0416 & <b>", "price": 9.99, "tags": ["a", null], "_ts": 1700000000}], "logs": []}}"#;
        let signer = Signer::new("sk_test_secret".into());
        let signature = signer.sign("1700000000", body.as_bytes());
        assert_eq!(signature, "e0194b0f9eeb909934f019b55188d25627198d38a17d251bae934261bb93a9e7");
        assert!(signer.verify("1700000000", body.as_bytes(), &signature));
        for bad in ["", "e0", &signature.to_uppercase(), &signature.replace('e', "f"), &"é".repeat(32)] {
            assert!(!signer.verify("1700000000", body.as_bytes(), bad), "{bad}");
        }
    }

    #[test]
    fn captured_signatures_verify_and_tampered_ones_do_not() {
        let mut seen = (0, 0);
        for capture in captures() {
            let signer = Signer::new(capture.secret.clone().into());
            let timestamp = capture.header("X-TIMESTAMP");
            let valid = signer.verify(timestamp, capture.body.as_bytes(), capture.header("X-SIGNATURE"));
            assert_eq!(valid, capture.signature_valid, "{}", capture.name);
            if valid {
                assert_eq!(signer.sign(timestamp, capture.body.as_bytes()), capture.header("X-SIGNATURE"));
                seen.0 += 1;
            } else {
                seen.1 += 1;
            }
        }
        assert_eq!(seen, (18, 2));
    }

    #[test]
    fn debug_output_has_no_secret() {
        assert!(!format!("{:?}", Signer::new("sk_test_secret".into())).contains("sk_test"));
    }
}
