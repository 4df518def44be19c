//! What can be wrong with an identity type, and with a payload for one.

/// An identity type that cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub(crate) enum TypeError {
    /// Not a document of the right form.
    #[error("identity type: line {line}: {problem}")]
    Yaml { line: usize, problem: String },
    /// A key with something else than it takes.
    #[error("identity type {name}: {key}: {problem}")]
    Key { name: String, key: String, problem: String },
}

impl TypeError {
    pub(super) fn key(name: &str, key: impl Into<String>, problem: impl Into<String>) -> Self {
        Self::Key { name: name.to_owned(), key: key.into(), problem: problem.into() }
    }
}

/// A payload that does not fit its type. Names fields, never values.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub(crate) enum PayloadError {
    /// Fields that are missing, unknown or of another kind; each with what is wrong.
    #[error("{0}")]
    Fields(String),
    /// A value that tells identities apart is not there.
    #[error("unique_by path \"{0}\" is missing or empty; every identity needs a value there")]
    Unique(String),
}
