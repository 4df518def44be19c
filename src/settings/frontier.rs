//! Where the queue of requests lives: in this process, or at a server that many machines share.
//!
//! The server's URL may hold a password: it is a secret, and shown without one.

use std::fmt;

use serde_json::Value;
use url::Url;

use super::redact::redact_text;
use super::rule::{Problem, Rule};
use super::secret::Secret;

/// Where the queue of requests lives when there is no `JOBDIR`, or for the whole fleet.
#[derive(Clone, PartialEq, Eq)]
pub enum FrontierStore {
    /// In this process: in memory, up to `FRONTIER_MAX_BYTES`, or on disk in a `JOBDIR`.
    Memory,
    /// At a Redis or Valkey server, by its URL: all workers of a job share it.
    Redis(Secret),
}

/// `memory`, or the URL of a server.
pub(crate) struct FrontierRule;

impl FrontierStore {
    /// Whether other workers may be at the same job.
    #[must_use]
    pub const fn is_shared(&self) -> bool {
        matches!(self, Self::Redis(_))
    }
}

impl fmt::Debug for FrontierStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Memory => f.write_str("Memory"),
            Self::Redis(url) => write!(f, "Redis({})", redact_text(url.expose())),
        }
    }
}

impl Rule for FrontierRule {
    type Out = FrontierStore;

    fn read(&self, value: &Value) -> Result<FrontierStore, Problem> {
        let Some(text) = value.as_str() else {
            return self.refuse(value);
        };
        if text == "memory" {
            return Ok(FrontierStore::Memory);
        }
        let fault = |found: &str| Err(Problem { found: format!("{found} (not shown)"), allowed: self.allowed() });
        match Url::parse(text) {
            Ok(url) if matches!(url.scheme(), "redis" | "valkey") => match () {
                () if url.host_str().is_none_or(str::is_empty) => fault("a URL without a host"),
                () if url.query().is_some() || url.fragment().is_some() => fault("a URL with a query or fragment"),
                () if cfg!(not(feature = "redis")) => {
                    fault("the URL of a server, and this program was built without the feature `redis`")
                }
                () => Ok(FrontierStore::Redis(Secret::from(text))),
            },
            Ok(url) if matches!(url.scheme(), "rediss" | "valkeys") => {
                fault("a server over TLS, which is not supported: reach it through a private network or a tunnel")
            }
            // What is no URL may be a password all the same.
            _ if text.contains(['@', ':', '/']) => fault("text that is no redis:// URL"),
            _ => self.refuse(value),
        }
    }

    fn kind(&self) -> &'static str {
        "memory or URL"
    }

    fn allowed(&self) -> String {
        "\"memory\" or redis://[user:password@]host[:port][/database]".to_owned()
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing)]
    use serde_json::json;

    use super::*;

    #[test]
    fn memory_and_the_urls_of_servers_are_taken() {
        assert_eq!(FrontierRule.read(&json!("memory")).unwrap(), FrontierStore::Memory);
        for url in ["redis://h", "redis://:canary@h:7000/3", "valkey://u:canary@[::1]/0"] {
            if cfg!(feature = "redis") {
                let read = FrontierRule.read(&json!(url)).unwrap();
                assert!(read.is_shared() && read == FrontierStore::Redis(Secret::from(url)));
                assert!(!format!("{read:?}").contains("canary"));
            } else {
                assert!(FrontierRule.read(&json!(url)).unwrap_err().found.contains("without the feature"));
            }
            assert!(!FrontierRule.show(&json!(url)).to_string().contains("canary"));
        }
    }

    #[test]
    fn anything_else_is_refused_without_being_shown() {
        for bad in
            ["rediss://:canary@h", "redis://:canary@h?db=1", "http://:canary@h", "redis:canary@", "canary@h:1", "redis:///0"]
        {
            let problem = FrontierRule.read(&json!(bad)).unwrap_err();
            assert!(!problem.found.contains("canary"), "{bad}: {}", problem.found);
        }
        assert!(FrontierRule.read(&json!("disk")).unwrap_err().found.contains("disk"));
        assert!(FrontierRule.read(&json!(3)).is_err());
    }
}
