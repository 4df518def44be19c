//! Who calls: the tokens of a server and the check every call begins with (wire contract, section 17).
//!
//! Keeps a token's SHA-256 and nothing else of it.

mod bucket;
mod cidr;
mod text;

use std::collections::BTreeMap;
use std::fmt;
use std::net::IpAddr;
use std::sync::Arc;

use secrecy::{ExposeSecret, SecretString};

use self::bucket::Bucket;
pub(crate) use self::bucket::RateLimit;
pub(crate) use self::cidr::Cidr;
use self::text::{Digest, is_token};
pub(crate) use self::text::{TokenTextError, mint};
use super::Ms;
use super::refusal::Refusal;
use super::scope::Scopes;

/// What is known of a token besides its text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Token {
    /// What people call it.
    pub(crate) name: Arc<str>,
    /// The namespace it belongs to; a node never names it.
    pub(crate) namespace: Arc<str>,
    /// What it may do.
    pub(crate) scopes: Scopes,
    /// Networks it may be used from; empty: from anywhere.
    pub(crate) networks: Vec<Cidr>,
    /// From when on it is not accepted any more.
    pub(crate) expires_at: Option<Ms>,
    /// Calls per second; `None`: as many as it likes.
    pub(crate) rate_limit: Option<RateLimit>,
}

/// All tokens of a server.
#[derive(Default)]
pub(crate) struct Tokens {
    by_digest: BTreeMap<Digest, Entry>,
}

#[derive(Debug)]
struct Entry {
    token: Arc<Token>,
    standing: Standing,
    bucket: Option<Bucket>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Standing {
    Good,
    Revoked,
}

impl Tokens {
    /// Takes a token in, or changes what is known of one. A token that was revoked is good again; one whose limit stays the
    /// same keeps what it has used of it.
    ///
    /// # Errors
    /// When the text has not the form of a token: such a one could never be used.
    pub(crate) fn admit(&mut self, text: &SecretString, token: Token) -> Result<(), TokenTextError> {
        let text = text.expose_secret();
        if !is_token(text) {
            return Err(TokenTextError::of(&token.name));
        }
        let digest = Digest::of(text);
        let used = self.by_digest.remove(&digest).and_then(|entry| entry.bucket);
        let bucket =
            token.rate_limit.map(|limit| used.filter(|bucket| bucket.is_of(limit)).unwrap_or_else(|| Bucket::full(limit)));
        self.by_digest.insert(digest, Entry { token: Arc::new(token), standing: Standing::Good, bucket });
        Ok(())
    }

    /// Revokes every token of this name; answers whether there was one.
    pub(crate) fn revoke(&mut self, name: &str) -> bool {
        let mut found = false;
        for entry in self.by_digest.values_mut().filter(|entry| *entry.token.name == *name) {
            entry.standing = Standing::Revoked;
            found = true;
        }
        found
    }

    /// Whether the same texts are taken for tokens, and as the same ones.
    pub(crate) fn is_alike(&self, other: &Self) -> bool {
        let known = |tokens: &Self| -> Vec<_> {
            tokens.by_digest.iter().map(|(digest, entry)| (*digest, Arc::clone(&entry.token), entry.standing)).collect()
        };
        known(self) == known(other)
    }

    /// Forgets every token the test does not keep.
    #[cfg(test)]
    pub(crate) fn retain(&mut self, mut keep: impl FnMut(&Token) -> bool) {
        self.by_digest.retain(|_, entry| keep(&entry.token));
    }

    /// Lets a call in: who it is, whether it may come from there, and whether it comes too often. `authorization` is the
    /// header's value; without a `peer` a token bound to networks is refused. Only an accepted token uses up its rate.
    ///
    /// # Errors
    /// `session_invalid`, `token_invalid`, `token_revoked`, `token_expired`, `ip_not_allowed` or `rate_limited`, the first that
    /// applies in this order.
    pub(crate) fn enter(&mut self, authorization: Option<&str>, peer: Option<IpAddr>, now: Ms) -> Result<Arc<Token>, Refusal> {
        let header = authorization.map(str::trim).filter(|header| !header.is_empty()).ok_or_else(Refusal::session_invalid)?;
        let entry = bearer(header)
            .filter(|text| is_token(text))
            .and_then(|text| self.by_digest.get_mut(&Digest::of(text)))
            .ok_or_else(Refusal::token_invalid)?;
        if entry.standing == Standing::Revoked {
            return Err(Refusal::token_revoked());
        }
        let token = &entry.token;
        if token.expires_at.is_some_and(|end| now >= end) {
            return Err(Refusal::token_expired());
        }
        let is_inside = |peer: IpAddr| token.networks.iter().any(|network| network.contains(peer));
        if !token.networks.is_empty() && !peer.is_some_and(is_inside) {
            return Err(Refusal::ip_not_allowed());
        }
        if let Some(bucket) = &mut entry.bucket {
            bucket.take(now).map_err(Refusal::rate_limited)?;
        }
        Ok(Arc::clone(&entry.token))
    }
}

impl fmt::Debug for Tokens {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.by_digest.values().map(|entry| (&entry.token.name, entry.standing))).finish()
    }
}

/// What stands behind the scheme, which is written in any case (RFC 9110, section 11.1).
fn bearer(header: &str) -> Option<&str> {
    let (scheme, rest) = header.split_once(' ')?;
    scheme.eq_ignore_ascii_case("bearer").then(|| rest.trim())
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing)]

    use super::super::refusal::Reason;
    use super::*;

    fn token(name: &str) -> Token {
        Token {
            name: name.into(),
            namespace: "prod".into(),
            scopes: Scopes::everything(),
            networks: Vec::new(),
            expires_at: None,
            rate_limit: None,
        }
    }

    /// A server with one token, and the header that carries it.
    fn server(token: Token) -> (Tokens, String) {
        let text = mint([7; 32]);
        let mut tokens = Tokens::default();
        tokens.admit(&text, token).unwrap();
        (tokens, format!("Bearer {}", text.expose_secret()))
    }

    fn refused(tokens: &mut Tokens, header: Option<&str>, peer: Option<&str>, now: Ms) -> Option<Reason> {
        let peer = peer.map(|peer| peer.parse().unwrap());
        tokens.enter(header, peer, now).err().and_then(|refusal| refusal.reason)
    }

    #[test]
    fn b149_unknown_revoked_and_expired_tokens_and_none_at_all_are_told_apart() {
        let (mut tokens, header) = server(Token { expires_at: Some(1_000), ..token("a") });
        assert_eq!(refused(&mut tokens, Some(&header), None, 999), None);
        assert_eq!(refused(&mut tokens, Some(&header), None, 1_000), Some(Reason::TokenExpired));
        for none in [None, Some(""), Some("  ")] {
            assert_eq!(refused(&mut tokens, none, None, 0), Some(Reason::SessionInvalid));
        }
        let other = format!("Bearer {}", mint([8; 32]).expose_secret());
        for unknown in [other.as_str(), "Bearer", "Bearer spn_short", "Basic YTpi", &header[7..], &format!("{header}x")] {
            assert_eq!(refused(&mut tokens, Some(unknown), None, 0), Some(Reason::TokenInvalid));
        }
        assert!(tokens.revoke("a") && !tokens.revoke("b"));
        assert_eq!(refused(&mut tokens, Some(&header), None, 1_000), Some(Reason::TokenRevoked), "before it is found expired");
    }

    #[test]
    fn the_scheme_is_written_in_any_case() {
        let (mut tokens, header) = server(token("a"));
        for scheme in ["bearer", "BEARER", "BeArEr "] {
            assert_eq!(refused(&mut tokens, Some(&header.replace("Bearer", scheme)), None, 0), None, "{scheme}");
        }
    }

    #[test]
    fn a_token_bound_to_networks_is_refused_from_elsewhere_and_from_nowhere() {
        let networks = vec!["10.1.0.0/16".parse().unwrap(), "fd00::/8".parse().unwrap()];
        let (mut tokens, header) = server(Token { networks, expires_at: Some(10), ..token("a") });
        assert_eq!(refused(&mut tokens, Some(&header), Some("10.1.2.3"), 0), None);
        assert_eq!(refused(&mut tokens, Some(&header), Some("::ffff:10.1.2.3"), 0), None);
        assert_eq!(refused(&mut tokens, Some(&header), Some("fd12::1"), 0), None);
        assert_eq!(refused(&mut tokens, Some(&header), Some("10.2.0.1"), 0), Some(Reason::IpNotAllowed));
        assert_eq!(refused(&mut tokens, Some(&header), None, 0), Some(Reason::IpNotAllowed));
        assert_eq!(refused(&mut tokens, Some(&header), Some("10.2.0.1"), 10), Some(Reason::TokenExpired), "before the network");
    }

    #[test]
    fn b150_the_second_call_within_a_second_is_told_when_to_come_again() {
        let (mut tokens, header) = server(Token { rate_limit: RateLimit::new(1).unwrap(), ..token("a") });
        assert_eq!(refused(&mut tokens, Some(&header), None, 5_000), None);
        let refusal = tokens.enter(Some(&header), None, 5_300).unwrap_err();
        assert_eq!((refusal.reason, refusal.retry_after), (Some(Reason::RateLimited), Some(700)));
        assert_eq!(refused(&mut tokens, Some(&header), None, 5_999), Some(Reason::RateLimited));
        assert_eq!(refused(&mut tokens, Some(&header), None, 6_000), None);
    }

    #[test]
    fn a_refused_token_uses_nothing_up() {
        let networks = vec!["10.0.0.0/8".parse().unwrap()];
        let (mut tokens, header) = server(Token { rate_limit: RateLimit::new(1).unwrap(), networks, ..token("a") });
        assert_eq!(refused(&mut tokens, Some(&header), Some("11.0.0.1"), 0), Some(Reason::IpNotAllowed));
        assert_eq!(refused(&mut tokens, Some(&header), Some("10.0.0.1"), 0), None);
    }

    #[test]
    fn admitting_again_keeps_what_is_used_of_the_same_limit() {
        let limited = |rate| Token { rate_limit: RateLimit::new(rate).unwrap(), ..token("a") };
        let (mut tokens, header) = server(limited(1));
        assert_eq!(refused(&mut tokens, Some(&header), None, 0), None);
        tokens.admit(&mint([7; 32]), limited(1)).unwrap();
        assert_eq!(refused(&mut tokens, Some(&header), None, 0), Some(Reason::RateLimited));
        tokens.admit(&mint([7; 32]), limited(2)).unwrap();
        assert_eq!(refused(&mut tokens, Some(&header), None, 0), None);
        tokens.revoke("a");
        tokens.admit(&mint([7; 32]), limited(0)).unwrap();
        assert_eq!(refused(&mut tokens, Some(&header), None, 0), None, "good again, without a limit");
        tokens.retain(|token| &*token.name != "a");
        assert_eq!(refused(&mut tokens, Some(&header), None, 0), Some(Reason::TokenInvalid));
    }

    #[test]
    fn no_text_of_a_token_shows() {
        let (mut tokens, header) = server(token("a"));
        let shown = format!("{tokens:?}");
        assert_eq!(shown, r#"[("a", Good)]"#);
        let error = tokens.admit(&SecretString::from("spn_c4n4ry"), token("b")).unwrap_err().to_string();
        assert!(!error.contains("c4n4ry") && error.contains("token b"), "{error}");
        let refusal = tokens.enter(Some(&header.to_lowercase()), None, 0).unwrap_err();
        assert!(!format!("{refusal:?}").contains("spn_"));
    }
}
