//! Jars as the frontier keeps them between the runs of a job.
//!
//! The site's cookies are kept as they are: they are secrets, and so is the directory they are written to. Of the
//! control plane's credentials only keyed hashes are kept, by which the next run knows whether a value is a new one.

use std::collections::{BTreeMap, VecDeque};
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex, Weak};

use serde::{Deserialize, Serialize};
use serde_json::Value;
use tokio::time::Instant;

use super::{Held, Jars, PrintKey, Version, lock};
use crate::api::stats::Stats;
use crate::plane::IdentityKey;
use crate::scheduler::Take;
use crate::web::cookies::{Jar, JarError};

/// The name of the state.
pub(crate) const COOKIES: &str = "cookies";

/// The format's version.
const VERSION: u32 = 1;

/// Bytes of all jars that are kept; those that have no room are left out and counted.
const MOST: usize = 8 * 1024 * 1024;

#[derive(Serialize, Deserialize)]
struct SavedJars {
    version: u32,
    /// What the hashes below are made with.
    key: [u8; 16],
    jars: Vec<SavedJar>,
}

#[derive(Serialize, Deserialize)]
struct SavedJar {
    site: String,
    identity: String,
    /// The site's cookies, as [`Jar::to_json`] writes them.
    cookies: Value,
    /// Hashes of the credential's cookies by name, and one of all.
    prints: BTreeMap<String, u64>,
    #[serde(skip_serializing_if = "Option::is_none", default)]
    newest: Option<u64>,
}

/// Jars of an earlier run that cannot be read.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub(crate) enum SavedJarsError {
    /// They are not the saved form of jars.
    #[error("the cookies of earlier runs cannot be read at line {line} column {column}")]
    Damaged {
        /// Line of the first wrong character, from 1.
        line: usize,
        /// Column of the first wrong character, from 1.
        column: usize,
    },
    /// A newer version of this program wrote them.
    #[error("the cookies of earlier runs have version {found}, this program reads {VERSION}")]
    Newer {
        /// The version found.
        found: u32,
    },
    /// One of them is not the saved form of a jar.
    #[error(transparent)]
    Jar(#[from] JarError),
}

impl Jars {
    /// The jars of an earlier run; evictions are counted in `stats`.
    ///
    /// # Errors
    /// When they cannot be read.
    pub(crate) fn restore(stats: &Stats, saved: &[u8]) -> Result<Self, SavedJarsError> {
        #[derive(Deserialize)]
        struct Versioned {
            version: u32,
        }
        // The place and never the text: it holds secrets.
        let damaged = |error: serde_json::Error| SavedJarsError::Damaged { line: error.line(), column: error.column() };
        let Versioned { version } = serde_json::from_slice(saved).map_err(damaged)?;
        if version != VERSION {
            return Err(SavedJarsError::Newer { found: version });
        }
        let saved: SavedJars = serde_json::from_slice(saved).map_err(damaged)?;
        let jars = Self { keys: PrintKey(saved.key), ..Self::new(stats) };
        for SavedJar { site, identity, cookies, prints, newest } in saved.jars {
            let held = Held {
                jar: Jar::from_json(&cookies.to_string())?,
                last: Weak::new(),
                // Leases of earlier runs are over.
                newest: newest.map(|print| Version { print, until: Instant::now() }),
                past: VecDeque::new(),
                prints: prints.into_iter().map(|(name, print)| (name.into_bytes(), print)).collect(),
            };
            let identity = IdentityKey { site: site.into(), name: identity.into() };
            jars.jars.insert(identity, Arc::new(Mutex::new(held)));
        }
        Ok(jars)
    }

    /// Gives the jars whenever they are not those of the last time.
    pub(crate) fn take(jars: Arc<Self>, stats: Stats) -> Take {
        let mut last = 0;
        let mut told = false;
        Box::new(move || {
            let changes = jars.changes.load(Ordering::Acquire);
            if changes == last {
                return None;
            }
            last = changes;
            let (bytes, left_out) = jars.save(MOST);
            if left_out > 0 {
                stats.max("cookies/jars_unsaved", i64::try_from(left_out).unwrap_or(i64::MAX));
            }
            if left_out > 0 && !told {
                told = true;
                tracing::warn!(
                    jars = left_out,
                    "the cookies of so many identities have no room in the JOBDIR: the next run begins without them; \
                     cookies/jars_unsaved counts them"
                );
            }
            Some(bytes)
        })
    }

    /// The jars that have room, and how many have not.
    fn save(&self, most: usize) -> (Vec<u8>, usize) {
        let (mut room, mut left_out) = (most, 0);
        let mut jars = Vec::new();
        for (identity, held) in &self.jars {
            let held = lock(&held);
            if held.jar.is_empty() {
                continue;
            }
            let cookies = held.jar.to_json();
            let Some(rest) = room.checked_sub(cookies.len()) else {
                left_out += 1;
                continue;
            };
            room = rest;
            jars.push(SavedJar {
                site: identity.site.to_string(),
                identity: identity.name.to_string(),
                cookies: serde_json::from_str(&cookies).unwrap_or_default(),
                prints: held.prints.iter().map(|(name, print)| (String::from_utf8_lossy(name).into_owned(), *print)).collect(),
                newest: held.newest.as_ref().map(|newest| newest.print),
            });
        }
        // Texts and numbers only: nothing in it can fail to be written.
        let bytes = serde_json::to_vec(&SavedJars { version: VERSION, key: self.keys.0, jars }).unwrap_or_default();
        (bytes, left_out)
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::super::tests::{lease, says, sent};
    use super::*;

    fn next_run(jars: &Jars) -> Jars {
        Jars::restore(&Stats::new(), &jars.save(MOST).0).unwrap()
    }

    #[tokio::test(start_paused = true)]
    async fn the_next_run_sends_each_identitys_cookies_and_no_others() {
        let jars = Jars::new(&Stats::new());
        let (a, b) = (lease("a", &[], 60), lease("b", &[], 60));
        says(&jars, &a, "sid=one; Path=/; HttpOnly");
        says(&jars, &b, "sid=two; Max-Age=60");
        let next = next_run(&jars);
        assert_eq!((sent(&next, &a), sent(&next, &b)), ("sid=one".to_owned(), "sid=two".to_owned()));
        assert_eq!(sent(&next, &lease("c", &[], 60)), "");
        says(&next, &a, "sid=three");
        assert_eq!(sent(&next_run(&next), &a), "sid=three", "and so does the run after it");
    }

    #[tokio::test(start_paused = true)]
    async fn the_sites_word_goes_before_a_credential_that_is_still_the_same_and_after_one_that_changed() {
        let jars = Jars::new(&Stats::new());
        says(&jars, &lease("a", &[("sid", "plane"), ("device", "1")], 60), "sid=site");
        let next = next_run(&jars);
        assert_eq!(sent(&next, &lease("a", &[("sid", "plane"), ("device", "1")], 60)), "sid=site; device=1");
        let next = next_run(&jars);
        assert_eq!(sent(&next, &lease("a", &[("sid", "newer"), ("device", "1")], 60)), "sid=newer; device=1");
    }

    #[tokio::test(start_paused = true)]
    async fn nothing_of_a_credential_is_written_but_its_names() {
        let jars = Jars::new(&Stats::new());
        says(&jars, &lease("a", &[("sid", "canary-of-the-plane")], 60), "other=site");
        let (bytes, left_out) = jars.save(MOST);
        let text = String::from_utf8(bytes).unwrap();
        assert!(text.contains("sid") && text.contains("other") && !text.contains("canary"), "{text}");
        assert_eq!(left_out, 0);
        assert_eq!(jars.save(10).1, 1, "a jar without room is left out");
    }

    #[tokio::test(start_paused = true)]
    async fn jars_are_given_only_when_they_changed() {
        let jars = Arc::new(Jars::new(&Stats::new()));
        let mut take = Jars::take(jars.clone(), Stats::new());
        assert!(take().is_none());
        let a = lease("a", &[], 60);
        says(&jars, &a, "sid=one");
        assert!(take().is_some() && take().is_none());
        assert_eq!(sent(&jars, &a), "sid=one");
        assert!(take().is_none(), "sending changes nothing");
        sent(&jars, &lease("a", &[("sid", "plane")], 60));
        assert!(take().is_some(), "a new credential takes the site's cookie away");
    }

    #[test]
    fn what_cannot_be_read_is_an_error_without_a_secret() {
        let torn = r#"{"version":1,"key":[0],"jars":"canary"}"#;
        for saved in [torn, r#"{"version":2,"jars":"canary"}"#, "canary"] {
            let error = Jars::restore(&Stats::new(), saved.as_bytes()).err().unwrap();
            let text = format!("{error} {error:?}");
            assert!(text.contains("of earlier runs") && !text.contains("canary"), "{text}");
        }
    }
}
