//! What can be wrong with a policy. Policies hold no secrets, so messages show what was found.

use super::duration::DurationError;

/// A policy that cannot be used. `policy` is its kind and name, `path` the field as it is written, lists counted from 0.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub(crate) enum PolicyError {
    #[error("{policy}: {path} is no key of a policy{guess}; allowed here: {allowed}")]
    UnknownKey { policy: String, path: String, guess: String, allowed: String },
    #[error("{policy}: {path} is {found}{guess}; allowed: {allowed}")]
    NotAllowed { policy: String, path: String, found: String, guess: String, allowed: String },
    #[error("{policy}: {path} is missing; write {allowed}")]
    Missing { policy: String, path: String, allowed: String },
    #[error("{policy}: {path} is {found}: {error}")]
    Duration { policy: String, path: String, found: String, error: DurationError },
    #[error("{policy}: extends {parent:?}, and there is no signal policy of that name; write one, or take `extends` out")]
    NoParent { policy: String, parent: String },
    #[error("{policy}: extends itself through {through}; take one `extends` out")]
    Cycle { policy: String, through: String },
    #[error("{policy}: has more than {allowed} policies above it: {through}; allowed are {allowed}, put their rules together")]
    TooDeep { policy: String, through: String, allowed: usize },
    #[error("{policy}: another {kind} policy has this name; names are unique within a kind")]
    SameName { policy: String, kind: &'static str },
    #[error("{policy}: bind names {place}, where {other:?} is bound already; bind one {kind} policy to a place")]
    BoundTwice { policy: String, place: String, other: String, kind: &'static str },
}
