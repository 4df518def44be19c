//! The secrets of a namespace: values by path, in versions that are never given twice (wire contract, sections 4.4 and 30).
//!
//! Never shows a value. Who reads one is for the caller to write down: every read is audited.

use std::collections::{BTreeMap, VecDeque};

use secrecy::{ExposeSecret, SecretString};

use super::Ms;
use super::refusal::Refusal;
use super::scope::Scopes;

/// Longest path, characters.
const PATH: usize = 256;
/// Longest value, bytes. The contract names no bound; this one keeps a whole namespace small.
const VALUE: usize = 64 * 1024;
/// Versions kept of one secret; older ones are forgotten.
const KEPT: usize = 100;

/// One version of a secret.
#[derive(Debug)]
pub(crate) struct SecretVersion {
    /// From 1; grows with every new value.
    pub(crate) version: i32,
    /// The value.
    pub(crate) value: SecretString,
    /// When it should no longer be used. It is given out all the same.
    pub(crate) expires_at: Option<Ms>,
}

/// All secrets of one namespace.
#[derive(Debug, Default)]
pub(crate) struct Secrets {
    by_path: BTreeMap<Box<str>, Kept>,
}

/// What is left of a deleted secret is its highest version: the next one is above it.
#[derive(Debug, Default)]
struct Kept {
    highest: i32,
    versions: VecDeque<SecretVersion>,
}

impl Secrets {
    /// Takes in a new value, which is the current one from now on; answers its version.
    ///
    /// # Errors
    /// `invalid_argument` for a path or a value outside the bounds.
    pub(crate) fn put(&mut self, path: &str, value: SecretString, expires_at: Option<Ms>) -> Result<i32, Refusal> {
        check_path(path)?;
        if value.expose_secret().len() > VALUE {
            return Err(Refusal::invalid_argument(format!("the value of the secret {path} is longer than {VALUE} bytes")));
        }
        let kept = self.by_path.entry(path.into()).or_default();
        let version = kept.highest.checked_add(1).ok_or_else(|| {
            Refusal::failed_precondition(format!("the secret {path} has no version numbers left; use another path"))
        })?;
        kept.highest = version;
        kept.versions.push_back(SecretVersion { version, value, expires_at });
        if kept.versions.len() > KEPT {
            kept.versions.pop_front();
        }
        Ok(version)
    }

    /// Forgets all versions; answers whether there was one.
    pub(crate) fn delete(&mut self, path: &str) -> bool {
        self.by_path.get_mut(path).is_some_and(|kept| !std::mem::take(&mut kept.versions).is_empty())
    }

    /// The version, or the current one for 0.
    pub(crate) fn find(&self, path: &str, version: i32) -> Option<&SecretVersion> {
        let versions = &self.by_path.get(path)?.versions;
        match version {
            0 => versions.back(),
            _ => versions.iter().find(|secret| secret.version == version),
        }
    }

    /// The call `GetSecret`. `scopes` are those of a token; without one there is no reading.
    ///
    /// # Errors
    /// `invalid_argument`, `permission_denied`, `scope_missing` or `not_found`, the first that applies in this order: who may
    /// not read a path does not learn whether it exists.
    pub(crate) fn read(
        &self,
        scopes: Option<&Scopes>,
        namespace: &str,
        path: &str,
        version: i32,
    ) -> Result<&SecretVersion, Refusal> {
        check_path(path)?;
        if version < 0 {
            return Err(Refusal::invalid_argument(format!("a secret's version is 0 (the current one) or more, found {version}")));
        }
        let scopes = scopes.ok_or_else(|| Refusal::permission_denied("secrets are read with a token only"))?;
        scopes.check_secret_read(namespace, path)?;
        self.find(path, version).ok_or_else(|| {
            Refusal::not_found(match version {
                0 => format!("there is no secret {path}"),
                _ => format!("there is no version {version} of the secret {path}"),
            })
        })
    }
}

fn check_path(path: &str) -> Result<(), Refusal> {
    if is_secret_path(path) {
        return Ok(());
    }
    Err(Refusal::invalid_argument(
        "a secret's path is 1 to 256 of a-z 0-9 _ . / - and begins with a letter or digit; the one given is not",
    ))
}

/// `^[a-z0-9][a-z0-9_./-]*$`, 1 to 256 characters.
pub(super) fn is_secret_path(path: &str) -> bool {
    let plain = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit();
    path.len() <= PATH
        && path.bytes().next().is_some_and(plain)
        && path.bytes().all(|byte| plain(byte) || b"_./-".contains(&byte))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing)]

    use super::super::refusal::Reason;
    use super::*;

    fn two_versions() -> Secrets {
        let mut secrets = Secrets::default();
        assert_eq!(secrets.put("signing/key", "c4n4ry-1".into(), None), Ok(1));
        assert_eq!(secrets.put("signing/key", "c4n4ry-2".into(), Some(5)), Ok(2));
        secrets
    }

    fn read(secrets: &Secrets, path: &str, version: i32) -> Result<(i32, String, Option<Ms>), Option<Reason>> {
        let scopes = Scopes::parse(["secret:read:prod/signing/*"]).unwrap();
        let found = secrets.read(Some(&scopes), "prod", path, version).map_err(|refusal| refusal.reason)?;
        Ok((found.version, found.value.expose_secret().to_owned(), found.expires_at))
    }

    #[test]
    fn b179_zero_is_the_current_version_older_ones_are_readable_and_expired_ones_are_returned() {
        let secrets = two_versions();
        assert_eq!(read(&secrets, "signing/key", 0), Ok((2, "c4n4ry-2".into(), Some(5))));
        assert_eq!(read(&secrets, "signing/key", 1), Ok((1, "c4n4ry-1".into(), None)));
        assert_eq!(read(&secrets, "signing/key", 3), Err(Some(Reason::NotFound)));
        assert_eq!(read(&secrets, "signing/other", 0), Err(Some(Reason::NotFound)));
    }

    #[test]
    fn who_may_not_read_a_path_does_not_learn_whether_it_exists() {
        let mut secrets = two_versions();
        secrets.put("db/password", "c4n4ry".into(), None).unwrap();
        assert_eq!(read(&secrets, "db/password", 0), Err(Some(Reason::ScopeMissing)));
        assert_eq!(read(&secrets, "db/nothing", 0), Err(Some(Reason::ScopeMissing)));
        let without_token = secrets.read(None, "prod", "signing/key", 0).unwrap_err();
        assert_eq!(without_token.reason, Some(Reason::PermissionDenied));
        let scopes = Scopes::parse(["secret:read:prod/*"]).unwrap();
        assert!(secrets.read(Some(&scopes), "test", "signing/key", 0).is_err(), "another namespace");
    }

    #[test]
    fn paths_and_versions_outside_the_bounds_are_refused() {
        let secrets = two_versions();
        let long = "a".repeat(257);
        for path in ["", "Upper/Case", "/a", "-a", "a b", "ä", long.as_str()] {
            assert_eq!(read(&secrets, path, 0), Err(Some(Reason::InvalidArgument)), "{path}");
        }
        assert_eq!(read(&secrets, "signing/key", -1), Err(Some(Reason::InvalidArgument)));
        assert!(is_secret_path("signing/api-key.v2") && is_secret_path(&long[1..]));
        let mut secrets = secrets;
        let error = secrets.put("a", "x".repeat(VALUE + 1).into(), None).unwrap_err();
        assert_eq!(error.reason, Some(Reason::InvalidArgument));
    }

    #[test]
    fn versions_go_on_after_a_deletion_and_old_ones_are_forgotten() {
        let mut secrets = two_versions();
        assert!(secrets.delete("signing/key") && !secrets.delete("signing/key") && !secrets.delete("nothing"));
        assert_eq!(read(&secrets, "signing/key", 0), Err(Some(Reason::NotFound)));
        assert_eq!(secrets.put("signing/key", "new".into(), None), Ok(3));
        for _ in 0..KEPT {
            secrets.put("signing/key", "newer".into(), None).unwrap();
        }
        assert_eq!(read(&secrets, "signing/key", 3), Err(Some(Reason::NotFound)));
        assert_eq!(read(&secrets, "signing/key", 4).unwrap().0, 4);
    }

    #[test]
    fn no_value_shows() {
        assert!(!format!("{:?}", two_versions()).contains("c4n4ry"));
    }
}
