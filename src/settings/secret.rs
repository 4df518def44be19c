//! A text that nobody may see: held by `secrecy`, wiped when dropped, redacted wherever it is printed.

use std::fmt;

use secrecy::{ExposeSecret, SecretString};

use super::redact::REDACTED;

/// The value of a setting that holds a secret.
///
/// ```
/// let key = dragline::settings::Secret::from("do not show");
/// assert_eq!(format!("{key:?}"), "Secret([redacted])");
/// assert_eq!(key.expose(), "do not show");
/// ```
#[derive(Clone)]
pub struct Secret(SecretString);

impl Secret {
    /// The text itself, for the one place that uses it.
    pub fn expose(&self) -> &str {
        self.0.expose_secret()
    }

    /// A copy in the type that keeps it secret.
    pub fn to_secret_string(&self) -> SecretString {
        self.0.clone()
    }
}

impl From<&str> for Secret {
    fn from(text: &str) -> Self {
        Self(text.into())
    }
}

/// Compares whole texts, to see whether a setting has changed; not for checking what a stranger sent.
impl PartialEq for Secret {
    fn eq(&self, other: &Self) -> bool {
        self.expose() == other.expose()
    }
}

impl Eq for Secret {}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Secret({REDACTED})")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_secret_is_told_from_another_and_shows_nothing_of_itself() {
        let (one, other) = (Secret::from("canary"), Secret::from("canary bird"));
        assert_eq!(one, one.clone());
        assert_ne!(one, other);
        assert_eq!(one.to_secret_string().expose_secret(), "canary");
        assert_eq!(format!("{:?}", Some((one, other))), "Some((Secret([redacted]), Secret([redacted])))");
    }
}
