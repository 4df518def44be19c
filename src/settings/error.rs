//! What can be wrong with settings. Messages name the place, what was found, what is allowed and
//! what to do; none shows a value of a key that holds a secret.

use std::fmt;
use std::path::PathBuf;

use super::source::Source;

/// One thing that is wrong with the settings.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum SettingsError {
    /// The settings file cannot be read.
    #[error("settings file `{path}` cannot be read: {why}; check the path given with -c")]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// The system's reason.
        why: String,
    },
    /// The settings file is larger than any real one.
    #[error("settings file `{path}` has {bytes} bytes; allowed: up to {limit}")]
    TooLarge {
        /// The file.
        path: PathBuf,
        /// Its size.
        bytes: u64,
        /// The largest size that is read.
        limit: u64,
    },
    /// The ending of the settings file names no known format.
    #[error("settings file `{path}` has no known ending; allowed: .toml, .yaml, .yml, .json")]
    UnknownFormat {
        /// The file.
        path: PathBuf,
    },
    /// The settings file does not parse.
    #[error("settings file `{path}`{place} does not parse: {message}")]
    Syntax {
        /// The file.
        path: PathBuf,
        /// `, line L, column C` where the parser tells it, else empty.
        place: String,
        /// The parser's message.
        message: String,
    },
    /// A key that does not exist.
    #[error("unknown setting {key} ({origin}){} `dragline settings` lists all", nearest_text(.nearest))]
    UnknownKey {
        /// Where it was given.
        origin: Source,
        /// The name as given.
        key: String,
        /// The known key with the most similar name.
        nearest: Option<&'static str>,
    },
    /// A key that exists elsewhere, or will, but not in this version.
    #[error("setting {key} ({origin}) is known but not supported by this version: {advice}")]
    Unsupported {
        /// Where it was given.
        origin: Source,
        /// The name as given.
        key: String,
        /// What to do instead.
        advice: &'static str,
    },
    /// A value of the wrong type or out of its range.
    #[error("setting {key} ({origin}): found {found}; allowed: {allowed}")]
    BadValue {
        /// Where it was given.
        origin: Source,
        /// The key.
        key: &'static str,
        /// Type and content of the value, without credentials.
        found: String,
        /// What the key takes.
        allowed: String,
    },
    /// A reference to a secret that is none.
    #[error(
        "setting {key} ({origin}): found a reference to a secret that is none (not shown); allowed: ${{secret:path}} as a text or \
         in one, not in the name of a table's entry; a path has small letters, digits, `_`, `.`, `/` and `-`"
    )]
    BadReference {
        /// Where it was given.
        origin: Source,
        /// The key.
        key: &'static str,
    },
    /// A reference to a secret in a setting that must be known before the control plane can be asked.
    #[error(
        "setting {key} ({origin}): found a reference to a secret; allowed: none here, as the setting is needed to reach the \
         control plane that keeps secrets; give the value itself, best in the environment"
    )]
    ReferenceNotAllowed {
        /// Where it was given.
        origin: Source,
        /// The key.
        key: &'static str,
    },
    /// A reference to a secret nobody has read.
    #[error(
        "setting {key} ({origin}): the secret {path} was not read; secrets are read once, when a crawl starts: start it again, or \
         give the value itself"
    )]
    SecretMissing {
        /// Where it was given.
        origin: Source,
        /// The key.
        key: &'static str,
        /// The secret.
        path: String,
    },
    /// A secret that cannot be read.
    #[error("setting {key} ({origin}): the secret {path} cannot be read: {why}; {advice}")]
    SecretUnread {
        /// Where it was given.
        origin: Source,
        /// The key.
        key: &'static str,
        /// The secret.
        path: String,
        /// The control plane's answer.
        why: String,
        /// What to do about it.
        advice: &'static str,
    },
    /// Two values that exclude each other.
    #[error("settings {first} ({first_origin}) and {second} ({second_origin}) do not fit: {why}")]
    Conflict {
        /// The first key.
        first: &'static str,
        /// Where its value comes from.
        first_origin: Box<Source>,
        /// The second key.
        second: &'static str,
        /// Where its value comes from.
        second_origin: Box<Source>,
        /// What is wrong and what is allowed.
        why: String,
    },
    /// Settings of a backend without others they need.
    #[error(
        "{what} is set up by half: found {} without {}; {way_out}",
        list_text(.given, Source::to_string),
        list_text(.missing, absence_text)
    )]
    Incomplete {
        /// What is set up.
        what: &'static str,
        /// What to do.
        way_out: &'static str,
        /// What was given, and where.
        given: Vec<(&'static str, Source)>,
        /// What is missing. One whose source is not the default is there, but empty.
        missing: Vec<(&'static str, Source)>,
    },
    /// A `-s` without `=`.
    #[error("option -s {given}: found no `=`; allowed: NAME=VALUE, for example -s LOG_LEVEL=DEBUG")]
    NotAPair {
        /// What was given, or a placeholder if it does not look like a name.
        given: String,
    },
    /// An environment variable that is not UTF-8.
    #[error("environment variable {variable} is not valid UTF-8; set it to text")]
    NotText {
        /// The variable.
        variable: String,
    },
    /// A variable with the prefix `DRAGLINE_` whose setting is written without it.
    #[error("environment variable {variable}: {key} is written without prefix; rename it to {key}")]
    Prefixed {
        /// The variable.
        variable: String,
        /// The name to use.
        key: String,
    },
}

fn nearest_text(nearest: &Option<&'static str>) -> String {
    nearest.map_or_else(|| ";".to_owned(), |key| format!("; did you mean {key}?"))
}

fn list_text(keys: &[(&'static str, Source)], say: impl Fn(&Source) -> String) -> String {
    let keys: Vec<String> = keys.iter().map(|(key, origin)| format!("{key} ({})", say(origin))).collect();
    match keys.split_last() {
        Some((last, [])) => last.clone(),
        Some((last, others)) => format!("{} and {last}", others.join(", ")),
        None => String::new(),
    }
}

fn absence_text(origin: &Source) -> String {
    match origin {
        Source::Default => "not set".to_owned(),
        other => format!("empty, {other}"),
    }
}

/// Everything that is wrong with the settings, in the order of the layers. Never empty.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SettingsErrors(pub(crate) Vec<SettingsError>);

impl SettingsErrors {
    /// These errors, if there are any.
    pub(crate) fn none(errors: impl IntoIterator<Item = SettingsError>) -> Result<(), Self> {
        let errors: Vec<SettingsError> = errors.into_iter().collect();
        if errors.is_empty() { Ok(()) } else { Err(Self(errors)) }
    }

    /// The errors one by one.
    pub fn iter(&self) -> impl Iterator<Item = &SettingsError> {
        self.0.iter()
    }
}

impl fmt::Display for SettingsErrors {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, error) in self.0.iter().enumerate() {
            if index > 0 {
                f.write_str("\n")?;
            }
            error.fmt(f)?;
        }
        Ok(())
    }
}

impl std::error::Error for SettingsErrors {}
