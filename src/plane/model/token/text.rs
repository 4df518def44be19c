//! The text of a token: `spn_` and 43 base62 characters, 256 bits of chance (wire contract, section 1.2).

use std::fmt;

use secrecy::SecretString;
use sha2::{Digest as _, Sha256};

const PREFIX: &str = "spn_";
const DIGITS: &[u8; 62] = b"0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";
/// Digits that hold 256 bits: 62^43 is just above 2^256.
const LENGTH: usize = 43;

/// Why a text cannot be a token. Does not repeat the text.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "the text of the token {name} has not the form spn_ and 43 letters or digits; make one with 32 random bytes or copy it whole"
)]
pub(crate) struct TokenTextError {
    name: Box<str>,
}

impl TokenTextError {
    pub(super) fn of(name: &str) -> Self {
        Self { name: name.into() }
    }
}

/// The token that stands for these random bytes.
pub(crate) fn mint(mut chance: [u8; 32]) -> SecretString {
    let mut digits = [0_u8; LENGTH];
    for digit in digits.iter_mut().rev() {
        let mut rest = 0_u32;
        for byte in &mut chance {
            let value = rest * 256 + u32::from(*byte);
            // A rest is below 62, so the quotient is below 256.
            *byte = u8::try_from(value / 62).unwrap_or(u8::MAX);
            rest = value % 62;
        }
        *digit = usize::try_from(rest).ok().and_then(|index| DIGITS.get(index)).copied().unwrap_or(b'0');
    }
    let text = digits.iter().fold(String::from(PREFIX), |mut text, digit| {
        text.push(char::from(*digit));
        text
    });
    SecretString::from(text)
}

/// Whether the text has the form of a token.
pub(super) fn is_token(text: &str) -> bool {
    text.strip_prefix(PREFIX).is_some_and(|rest| rest.len() == LENGTH && rest.bytes().all(|byte| byte.is_ascii_alphanumeric()))
}

/// What is kept of a token. Looking one up by it tells a listener with a stop-watch nothing about the texts that are known.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Digest([u8; 32]);

impl Digest {
    pub(super) fn of(text: &str) -> Self {
        Self(Sha256::digest(text.as_bytes()).into())
    }
}

impl fmt::Debug for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Digest(..)")
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing)]

    use proptest::prelude::*;
    use secrecy::ExposeSecret;

    use super::*;

    #[test]
    fn a_token_is_its_bytes_as_a_number_of_base_62() {
        let counted = std::array::from_fn(|index| u8::try_from(index).unwrap());
        assert_eq!(mint([0; 32]).expose_secret(), &format!("spn_{}", "0".repeat(43)));
        assert_eq!(mint(counted).expose_secret(), "spn_003aUlTJC7tjlCTQj2uNU3MFagCXG9LRKRcwGkBIDlf");
        assert_eq!(mint([255; 32]).expose_secret(), "spn_yhjskwdA6OZ1AL1YmHWZWm8LLG7HjnuCA2j5rOw8Xp1");
    }

    #[test]
    fn what_is_kept_is_the_sha_256_of_the_whole_text() {
        let hex = Digest::of("spn_003aUlTJC7tjlCTQj2uNU3MFagCXG9LRKRcwGkBIDlf")
            .0
            .iter()
            .fold(String::new(), |hex, byte| format!("{hex}{byte:02x}"));
        assert_eq!(hex, "ec765d46259a3c7d71af16ba25a8d0462de5918dbfa6d6379788db3162b14477");
    }

    #[test]
    fn the_form_is_exact() {
        let good = format!("spn_{}", "aZ9".repeat(14) + "0");
        assert!(is_token(&good));
        let bad =
            [format!("{good}0"), good[..46].to_owned(), good.replace("spn_", "spx_"), good.replace('Z', "-"), String::new()];
        assert!(bad.iter().all(|text| !is_token(text)));
        assert!(!is_token(&format!("spn_{}ü", "a".repeat(41))));
    }

    proptest! {
        #[test]
        fn minted_tokens_have_the_form_and_differ(one: [u8; 32], other: [u8; 32]) {
            let (a, b) = (mint(one), mint(other));
            prop_assert!(is_token(a.expose_secret()));
            prop_assert_eq!(one == other, a.expose_secret() == b.expose_secret());
        }
    }
}
