//! What can be wrong with the reports of a simulation.

use crate::plane::model::authority::BuildError;

/// A simulation that cannot be run.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub(crate) enum SimulateError {
    /// The reports cannot be read.
    #[error("{name} cannot be read: {source}; check the path and who may read it")]
    Read { name: String, source: std::io::Error },
    /// A line that is no event.
    #[error("{name}:{line}: {reason}")]
    Line { name: String, line: u64, reason: String },
    /// The policies of the plane file contradict each other.
    #[error(transparent)]
    Plane(#[from] BuildError),
}

/// What is wrong with a line, before its place is known.
#[derive(Debug)]
pub(super) struct Wrong(String);

impl SimulateError {
    pub(super) fn at(name: &str, line: u64, reason: String) -> Self {
        Self::Line { name: name.to_owned(), line, reason }
    }
}

impl Wrong {
    /// The line itself.
    pub(super) fn line(reason: impl Into<String>) -> Self {
        Self(reason.into())
    }

    /// One of its fields.
    pub(super) fn field(field: &str, reason: impl std::fmt::Display) -> Self {
        Self(format!("{field}: {reason}"))
    }

    pub(super) fn on(self, name: &str, line: u64) -> SimulateError {
        SimulateError::at(name, line, self.0)
    }
}
