//! What became of a request, and who is to blame.

/// An outcome (wire contract, section 25).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) enum Outcome {
    Success,
    Empty,
    RateLimited,
    Captcha,
    AuthInvalid,
    Forbidden,
    Banned,
    ProxyError,
    NetworkError,
    TargetError,
    ClientError,
    Unknown,
}

/// Whom an outcome speaks against.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Blame {
    Nobody,
    Identity,
    Proxy,
    Both,
}

impl Outcome {
    /// All of them.
    pub(crate) const ALL: [Self; 12] = [
        Self::Success,
        Self::Empty,
        Self::RateLimited,
        Self::Captcha,
        Self::AuthInvalid,
        Self::Forbidden,
        Self::Banned,
        Self::ProxyError,
        Self::NetworkError,
        Self::TargetError,
        Self::ClientError,
        Self::Unknown,
    ];

    /// The contract's spelling.
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Success => "success",
            Self::Empty => "empty",
            Self::RateLimited => "rate_limited",
            Self::Captcha => "captcha",
            Self::AuthInvalid => "auth_invalid",
            Self::Forbidden => "forbidden",
            Self::Banned => "banned",
            Self::ProxyError => "proxy_error",
            Self::NetworkError => "network_error",
            Self::TargetError => "target_error",
            Self::ClientError => "client_error",
            Self::Unknown => "unknown",
        }
    }

    /// The outcome of exactly this spelling.
    pub(crate) fn of(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|outcome| outcome.name() == name)
    }

    /// Who is to blame when no rule says otherwise.
    pub(crate) const fn blame(self) -> Blame {
        match self {
            Self::Empty | Self::Captcha | Self::AuthInvalid | Self::Forbidden | Self::Banned => Blame::Identity,
            Self::RateLimited => Blame::Both,
            Self::ProxyError | Self::NetworkError => Blame::Proxy,
            Self::Success | Self::TargetError | Self::ClientError | Self::Unknown => Blame::Nobody,
        }
    }

    /// Whether it speaks for a site that is closing: the breaker counts it.
    pub(crate) const fn is_risk(self) -> bool {
        matches!(self, Self::RateLimited | Self::Captcha | Self::Forbidden | Self::Banned)
    }
}

impl Blame {
    /// Whether the identity is meant.
    pub(crate) const fn has_identity(self) -> bool {
        matches!(self, Self::Identity | Self::Both)
    }

    /// Whether the proxy is meant.
    pub(crate) const fn has_proxy(self) -> bool {
        matches!(self, Self::Proxy | Self::Both)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_outcome_keeps_its_spelling() {
        assert!(Outcome::ALL.iter().all(|outcome| Outcome::of(outcome.name()) == Some(*outcome)));
        assert_eq!(Outcome::of("Success"), None);
    }
}
