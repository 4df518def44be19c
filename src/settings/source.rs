//! Sources: the places a value of a setting can come from, as messages name them.

use std::fmt;
use std::path::PathBuf;

/// Where a value was given.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Source {
    /// Nowhere: the built-in default.
    Default,
    /// In a settings file.
    File {
        /// The file.
        path: PathBuf,
        /// Its line, from 1, where the format tells it.
        line: Option<usize>,
    },
    /// In the config that the control plane distributes.
    Watched,
    /// In a config item that the control plane distributes.
    Item {
        /// The item, as `group/key`.
        name: String,
        /// Its version.
        version: i32,
    },
    /// In the spider's own settings.
    Spider,
    /// In the environment.
    Environment {
        /// Name of the variable.
        variable: String,
    },
    /// With `-s`.
    CommandLine,
}

impl fmt::Display for Source {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Default => f.write_str("default"),
            Self::File { path, line: None } => write!(f, "{}", path.display()),
            Self::File { path, line: Some(line) } => write!(f, "{}, line {line}", path.display()),
            Self::Watched => f.write_str("watched config"),
            Self::Item { name, version } => write!(f, "config item {name}, version {version}"),
            Self::Spider => f.write_str("spider"),
            Self::Environment { variable } => write!(f, "environment variable {variable}"),
            Self::CommandLine => f.write_str("-s"),
        }
    }
}
