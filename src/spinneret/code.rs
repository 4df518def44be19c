//! The codes of the Connect protocol: what kind of thing went wrong, in one word.
//!
//! A code this client does not know is kept as it came.

use std::fmt;

/// The code of an error (Connect protocol, "Error codes"). [`fmt::Display`] writes the wire's spelling.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Code {
    /// The call was cancelled, by the server when it drains.
    Canceled,
    /// Nobody knows.
    Unknown,
    /// The request itself is wrong.
    InvalidArgument,
    /// The call took too long.
    DeadlineExceeded,
    /// There is no such thing.
    NotFound,
    /// There is one already.
    AlreadyExists,
    /// The token may not do this.
    PermissionDenied,
    /// A limit is reached.
    ResourceExhausted,
    /// The state of the system does not allow it.
    FailedPrecondition,
    /// A conflict with another call.
    Aborted,
    /// Outside the valid range.
    OutOfRange,
    /// The server does not have this call.
    Unimplemented,
    /// The server is broken.
    Internal,
    /// Not now.
    Unavailable,
    /// Data was lost.
    DataLoss,
    /// The token is not accepted.
    Unauthenticated,
    /// A code this client does not know.
    Other(Box<str>),
}

const NAMES: [(&str, Code); 16] = [
    ("canceled", Code::Canceled),
    ("unknown", Code::Unknown),
    ("invalid_argument", Code::InvalidArgument),
    ("deadline_exceeded", Code::DeadlineExceeded),
    ("not_found", Code::NotFound),
    ("already_exists", Code::AlreadyExists),
    ("permission_denied", Code::PermissionDenied),
    ("resource_exhausted", Code::ResourceExhausted),
    ("failed_precondition", Code::FailedPrecondition),
    ("aborted", Code::Aborted),
    ("out_of_range", Code::OutOfRange),
    ("unimplemented", Code::Unimplemented),
    ("internal", Code::Internal),
    ("unavailable", Code::Unavailable),
    ("data_loss", Code::DataLoss),
    ("unauthenticated", Code::Unauthenticated),
];

impl Code {
    /// The code of this spelling; an unknown one is kept.
    #[must_use]
    pub fn of(name: &str) -> Self {
        let known = NAMES.iter().find(|(known, _)| *known == name);
        known.map_or_else(|| Self::Other(name.into()), |(_, code)| code.clone())
    }

    /// The wire's spelling.
    #[must_use]
    pub fn as_str(&self) -> &str {
        match self {
            Self::Other(name) => name,
            known => NAMES.iter().find(|(_, code)| code == known).map_or("unknown", |(name, _)| name),
        }
    }
}

impl fmt::Display for Code {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_code_keeps_its_spelling() {
        for (name, code) in &NAMES {
            assert_eq!((&Code::of(name), code.as_str()), (code, *name));
        }
        assert_eq!(Code::of("mystery").to_string(), "mystery");
    }
}
