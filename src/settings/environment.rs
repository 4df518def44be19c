//! The environment as a layer: which variables are settings, and under which name.
//!
//! Variables are handed in, never read here, so that tests and the demo cannot be changed by the
//! shell they run in.

use std::ffi::OsString;

/// The environment variables to read settings from.
#[derive(Clone, Default)]
pub enum Environment {
    /// None: the layer stays empty.
    #[default]
    Ignore,
    /// These; names that are not ours are skipped.
    Variables(Vec<(OsString, OsString)>),
}

impl Environment {
    /// Takes variables as `std::env::vars_os()` gives them.
    pub fn of<K, V>(variables: impl IntoIterator<Item = (K, V)>) -> Self
    where
        K: Into<OsString>,
        V: Into<OsString>,
    {
        Self::Variables(variables.into_iter().map(|(name, value)| (name.into(), value.into())).collect())
    }
}

/// Shows how many variables there are; their values are nobody's business.
impl std::fmt::Debug for Environment {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Ignore => f.write_str("Ignore"),
            Self::Variables(all) => write!(f, "Variables({})", all.len()),
        }
    }
}

/// What a variable's name means to us.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Variable<'a> {
    /// Not one of ours.
    Foreign,
    /// The setting of this name.
    Setting(&'a str),
    /// `DRAGLINE_` before a name that goes without it.
    Prefixed(&'a str),
}

impl<'a> Variable<'a> {
    pub(crate) fn of(name: &'a str) -> Self {
        if goes_without_prefix(name) {
            return Self::Setting(name);
        }
        match name.strip_prefix("DRAGLINE_") {
            Some(key) if goes_without_prefix(key) => Self::Prefixed(key),
            Some(key) => Self::Setting(key),
            None => Self::Foreign,
        }
    }
}

/// Names other programs already know.
fn goes_without_prefix(name: &str) -> bool {
    name == "JOB_ID" || name.starts_with("APCLOUDY_") || name.starts_with("SPINNERET_")
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing)]

    use super::*;

    #[test]
    fn only_names_of_ours_are_settings() {
        for (name, meaning) in [
            ("PATH", Variable::Foreign),
            ("LOG_LEVEL", Variable::Foreign),
            ("JOB_ID_X", Variable::Foreign),
            ("JOB_ID", Variable::Setting("JOB_ID")),
            ("APCLOUDY_BATCH_SIZE", Variable::Setting("APCLOUDY_BATCH_SIZE")),
            ("DRAGLINE_LOG_LEVEL", Variable::Setting("LOG_LEVEL")),
            ("DRAGLINE_", Variable::Setting("")),
            ("DRAGLINE_JOB_ID", Variable::Prefixed("JOB_ID")),
            ("DRAGLINE_SPINNERET_URL", Variable::Prefixed("SPINNERET_URL")),
        ] {
            assert_eq!(Variable::of(name), meaning, "{name}");
        }
    }

    #[test]
    fn debug_shows_no_value_of_a_variable() {
        let shown = format!("{:?}", Environment::of([("APCLOUDY_SECRET_KEY", "canary")]));
        assert!(!shown.contains("canary"), "{shown}");
    }
}
