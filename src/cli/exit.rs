//! Exit codes of the program and the errors that lead to them.
//!
//! The program never ends itself: every verb returns, and `main` turns the code into an `ExitCode`.

use crate::run::StartError;

/// Finished, limits of the settings included.
pub(crate) const FINISHED: u8 = 0;
/// Control plane, targets or disk refuse.
pub(crate) const GAVE_UP: u8 = 3;
/// Bad usage or settings: the user can mend it in the call (`EX_USAGE` of sysexits.h).
pub(crate) const USAGE: u8 = 64;
/// A fault of the program or of the machine under it (`EX_SOFTWARE` of sysexits.h).
pub(crate) const INTERNAL: u8 = 70;

/// Why a verb did not do its work. The message goes to standard error as it is.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub(crate) enum CliError {
    /// Something in the call or the settings.
    #[error("{0}")]
    Usage(String),
    /// The control plane refuses, or is not there.
    #[error("{0}")]
    GaveUp(String),
    /// Anything else.
    #[error("{0}")]
    Internal(String),
}

impl CliError {
    pub(crate) fn usage(error: impl std::fmt::Display) -> Self {
        Self::Usage(error.to_string())
    }

    pub(crate) fn internal(error: impl std::fmt::Display) -> Self {
        Self::Internal(error.to_string())
    }

    pub(crate) fn code(&self) -> u8 {
        match self {
            Self::Usage(_) => USAGE,
            Self::GaveUp(_) => GAVE_UP,
            Self::Internal(_) => INTERNAL,
        }
    }
}

impl From<StartError> for CliError {
    fn from(error: StartError) -> Self {
        match error {
            StartError::Usage(text) => Self::Usage(text),
            StartError::Io(text) => Self::Internal(text),
            StartError::Plane(text) | StartError::Disk(text) => Self::GaveUp(text),
            engine @ StartError::Engine => Self::Internal(engine.to_string()),
        }
    }
}

/// What a code says about a crawl, in a few words.
pub(crate) fn meaning(code: u8) -> &'static str {
    match code {
        FINISHED => "finished",
        2 => "stopped by a signal before it was finished",
        GAVE_UP => "gave up: the control plane, every target or the disk refused",
        4 => "not everything was delivered",
        5 => "the books do not balance",
        USAGE => "bad usage or settings",
        _ => "internal error",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_error_carries_its_code() {
        for (error, code) in [
            (CliError::usage("x"), 64),
            (CliError::internal("x"), 70),
            (StartError::Usage("x".to_owned()).into(), 64),
            (StartError::Io("x".to_owned()).into(), 70),
            (StartError::Plane("x".to_owned()).into(), 3),
            (StartError::Disk("x".to_owned()).into(), 3),
        ] {
            assert_eq!(error.code(), code);
        }
    }

    #[test]
    fn every_code_has_a_meaning_of_its_own() {
        let all: std::collections::BTreeSet<&str> = [0, 2, 3, 4, 5, 64, 70].map(meaning).into();
        assert_eq!(all.len(), 7);
    }
}
