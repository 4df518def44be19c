//! Whether a server is fit for a frontier.

use redis::Value;

use super::connection::Link;
use super::error::RedisError;

/// The oldest version of Redis that has all commands the scripts use.
const OLDEST: (u32, u32) = (6, 2);

impl Link {
    /// Fails when the server is too old, or throws keys away.
    pub(super) fn check_server(&mut self) -> Result<(), RedisError> {
        let version = self.info("server")?;
        let found = field(&version, "redis_version").unwrap_or("unknown");
        let mut parts = found.split('.').map(|part| part.parse::<u32>().unwrap_or(0));
        let at_least = (parts.next().unwrap_or(0), parts.next().unwrap_or(0)) >= OLDEST;
        if !at_least && field(&version, "server_name") != Some("valkey") {
            return Err(RedisError::TooOld { address: self.address(), found: found.to_owned() });
        }
        let memory = self.info("memory")?;
        let policy = field(&memory, "maxmemory_policy").unwrap_or("noeviction");
        // Those that evict what has a time to live only may take delay clocks of idle hosts at most.
        if field(&memory, "maxmemory").is_some_and(|bytes| bytes != "0") && policy.starts_with("allkeys") {
            return Err(RedisError::Evicts { address: self.address(), policy: policy.to_owned() });
        }
        Ok(())
    }

    fn info(&mut self, section: &str) -> Result<String, RedisError> {
        match self.command(redis::cmd("INFO").arg(section))? {
            Value::BulkString(text) => Ok(String::from_utf8_lossy(&text).into_owned()),
            Value::VerbatimString { text, .. } => Ok(text),
            _ => Err(RedisError::Reply { address: self.address(), what: "INFO" }),
        }
    }
}

fn field<'a>(info: &'a str, name: &str) -> Option<&'a str> {
    info.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':')).map(str::trim)
}
