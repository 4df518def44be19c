//! The address of a server: `redis://[user:password@]host[:port][/database]`.
//!
//! The password is kept apart from everything that is shown.

use std::fmt;
use std::str::FromStr;

use redis::io::tcp::TcpSettings;
use redis::{ConnectionAddr, ConnectionInfo, IntoConnectionInfo};
use url::Url;

/// Where a server is and how it lets us in.
#[derive(Clone)]
pub struct RedisUrl {
    info: ConnectionInfo,
    host: String,
    port: u16,
}

/// A text that is no address of a server. It never shows a password.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum RedisUrlError {
    /// It asks for TLS.
    #[error(
        "rediss:// (Redis over TLS) is not supported: give redis:// and reach the server through a private network or a tunnel"
    )]
    Tls,
    /// Another scheme.
    #[error("{scheme:?} is no scheme of a Redis server: give redis://[user:password@]host[:port][/database]")]
    Scheme {
        /// What was found.
        scheme: String,
    },
    /// Something is missing or too much.
    #[error("the address of the Redis server {what}: give redis://[user:password@]host[:port][/database]")]
    Malformed {
        /// What is wrong.
        what: &'static str,
    },
}

impl RedisUrl {
    /// The database, 0 unless another is given.
    #[must_use]
    pub fn database(&self) -> i64 {
        self.info.redis_settings().db()
    }

    /// Host and port, for messages.
    #[must_use]
    pub fn address(&self) -> String {
        if self.host.contains(':') { format!("[{}]:{}", self.host, self.port) } else { format!("{}:{}", self.host, self.port) }
    }

    /// How to connect.
    pub(super) const fn info(&self) -> &ConnectionInfo {
        &self.info
    }

    /// The same credentials and database at another node, `host:port`.
    pub(super) fn moved_to(&self, node: &str) -> Option<Self> {
        let (host, port) = node.rsplit_once(':')?;
        // A node that does not know its own name sends an empty one: it is the one that was asked.
        let host = if host.is_empty() { self.host.clone() } else { host.trim_matches(['[', ']']).to_owned() };
        let port = port.parse().ok()?;
        Some(Self { info: self.info.clone().set_addr(ConnectionAddr::Tcp(host.clone(), port)), host, port })
    }
}

impl FromStr for RedisUrl {
    type Err = RedisUrlError;

    fn from_str(text: &str) -> Result<Self, RedisUrlError> {
        let malformed = |what| RedisUrlError::Malformed { what };
        let url = Url::parse(text.trim()).map_err(|_| malformed("cannot be read"))?;
        match url.scheme() {
            "redis" | "valkey" => {}
            "rediss" | "valkeys" => return Err(RedisUrlError::Tls),
            other => return Err(RedisUrlError::Scheme { scheme: other.to_owned() }),
        }
        if url.host_str().is_none_or(str::is_empty) {
            return Err(malformed("names no host"));
        }
        if url.query().is_some() || url.fragment().is_some() {
            return Err(malformed("has a query or a fragment, which mean nothing here"));
        }
        let database = url.path().trim_matches('/');
        if !database.is_empty() && database.parse::<u32>().is_err() {
            return Err(malformed("names a database that is no number"));
        }
        if !url.username().is_empty() && url.password().is_none() {
            return Err(malformed("has a user and no password (a password alone is given as redis://:password@host)"));
        }
        let info = url.into_connection_info().map_err(|_| malformed("cannot be used"))?;
        let ConnectionAddr::Tcp(host, port) = info.addr().clone() else {
            return Err(malformed("names no host"));
        };
        let info = info.set_tcp_settings(TcpSettings::default().set_nodelay(true));
        Ok(Self { info, host, port })
    }
}

impl fmt::Display for RedisUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "redis://{}/{}", self.address(), self.database())
    }
}

impl fmt::Debug for RedisUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "RedisUrl({self})")
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used)]
    use super::*;

    #[test]
    fn addresses_are_read_and_shown_without_what_is_secret() {
        let cases = [
            ("redis://localhost", "redis://localhost:6379/0"),
            ("redis://localhost:7000/3", "redis://localhost:7000/3"),
            ("redis://:s3cret@10.0.0.1", "redis://10.0.0.1:6379/0"),
            ("redis://crawl:s3%40cret@db.example:1/15", "redis://db.example:1/15"),
            ("valkey://[::1]:7000", "redis://[::1]:7000/0"),
        ];
        for (text, shown) in cases {
            let url: RedisUrl = text.parse().unwrap();
            assert_eq!(url.to_string(), shown, "{text}");
            assert!(!format!("{url:?} {url}").contains("cret"), "{text}");
        }
        let url: RedisUrl = "redis://crawl:s3%40cret@db.example:1/15".parse().unwrap();
        assert_eq!(url.info().redis_settings().password(), Some("s3@cret"));
        assert_eq!(url.info().redis_settings().username(), Some("crawl"));
    }

    #[test]
    fn what_is_no_address_is_refused_with_what_to_give_instead() {
        for (text, part) in [
            ("rediss://:s3cret@host", "TLS"),
            ("http://:s3cret@host", "no scheme of a Redis server"),
            ("redis://", "names no host"),
            ("localhost", "cannot be read"),
            ("redis://:s3cret@host/one", "database that is no number"),
            ("redis://:s3cret@host/0?protocol=resp3", "query"),
            ("redis://s3cret@host", "a user and no password"),
            ("redis://:s3cret@host:99999", "cannot be read"),
        ] {
            let error = text.parse::<RedisUrl>().unwrap_err();
            let shown = format!("{error} {error:?}");
            assert!(shown.contains(part), "{text}: {shown}");
            assert!(!shown.contains("s3cret"), "{text}: {shown}");
            assert!(error.to_string().contains("redis://"), "{text}: what to give");
        }
    }

    #[test]
    fn another_node_is_asked_with_the_same_credentials() {
        let url: RedisUrl = "redis://:s3cret@one:7000".parse().unwrap();
        let moved = url.moved_to("two:7001").unwrap();
        assert_eq!(
            (moved.to_string().as_str(), moved.info().redis_settings().password()),
            ("redis://two:7001/0", Some("s3cret"))
        );
        assert_eq!(url.moved_to(":7002").unwrap().to_string(), "redis://one:7002/0");
        assert!(url.moved_to("two").is_none());
    }
}
