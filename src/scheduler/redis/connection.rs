//! The connection: one command at a time, reconnecting, with the server's words turned into ours.
//!
//! It sends a command a second time when a connection of before is lost under it, so everything sent through
//! it must be fit for that. It follows a cluster's `MOVED` to the node that has the job.

use redis::{Client, Cmd, ConnectionLike, ErrorKind, ServerErrorKind, Value};

use super::batch::{bulk, head, number_bulk};
use super::error::RedisError;
use super::options::RedisOptions;
use super::script::Code;
use super::url::RedisUrl;

/// How often a node may send us on to another.
const MOVES: u32 = 4;

/// A connection to the server of a job, made when it is needed.
pub(super) struct Link {
    /// As it was given.
    url: RedisUrl,
    /// Where the job is: another node, in a cluster.
    node: RedisUrl,
    options: RedisOptions,
    connection: Option<redis::Connection>,
    wire: Vec<u8>,
}

/// Arguments of a script.
pub(super) enum Args<'a> {
    /// Each by itself.
    List(&'a [&'a [u8]]),
    /// Texts, numbers, then parts of some that are written as bulk strings already.
    Written { texts: &'a [&'a [u8]], numbers: &'a [u64], parts: &'a [(&'a [u8], usize)] },
}

impl Link {
    pub(super) fn new(url: RedisUrl, options: RedisOptions) -> Self {
        Self { node: url.clone(), url, options, connection: None, wire: Vec::new() }
    }

    /// Host and port, for messages.
    pub(super) fn address(&self) -> String {
        self.node.address()
    }

    pub(super) const fn options(&self) -> &RedisOptions {
        &self.options
    }

    /// Runs a script with the job's meta hash as its key.
    pub(super) fn script(&mut self, script: &Code, key: &[u8], args: &Args<'_>) -> Result<Value, RedisError> {
        match self.run(&[b"EVALSHA", script.name.as_bytes()], key, args) {
            Err(Failure::NoScript) => {}
            other => return other.map_err(|failure| self.explain(failure)),
        }
        // The server does not know the script (any more): this teaches it.
        self.run(&[b"EVAL", script.text.as_bytes()], key, args).map_err(|failure| self.explain(failure))
    }

    /// Runs one command.
    pub(super) fn command(&mut self, command: &Cmd) -> Result<Value, RedisError> {
        let packed = command.get_packed_command();
        self.send(&packed).map_err(|failure| self.explain(failure))
    }

    fn run(&mut self, verb: &[&[u8]], key: &[u8], args: &Args<'_>) -> Result<Value, Failure> {
        let mut wire = std::mem::take(&mut self.wire);
        wire.clear();
        let count = match args {
            Args::List(list) => list.len(),
            Args::Written { texts, numbers, parts } => {
                texts.len() + numbers.len() + parts.iter().map(|(_, count)| count).sum::<usize>()
            }
        };
        head(&mut wire, b'*', u64::try_from(verb.len() + 2 + count).unwrap_or(u64::MAX));
        verb.iter().for_each(|part| bulk(&mut wire, part));
        number_bulk(&mut wire, 1);
        bulk(&mut wire, key);
        match args {
            Args::List(list) => list.iter().for_each(|arg| bulk(&mut wire, arg)),
            Args::Written { texts, numbers, parts } => {
                texts.iter().for_each(|arg| bulk(&mut wire, arg));
                numbers.iter().for_each(|number| number_bulk(&mut wire, *number));
                parts.iter().for_each(|(written, _)| wire.extend_from_slice(written));
            }
        }
        let answer = self.send(&wire);
        self.wire = wire;
        answer
    }

    /// Sends a command until there is an answer, or no connection.
    fn send(&mut self, packed: &[u8]) -> Result<Value, Failure> {
        let mut moves = 0;
        loop {
            let is_old = self.connection.is_some();
            match self.exchange(packed) {
                Err(Failure::Lost(_)) if is_old => {}
                Err(Failure::Moved(node)) if moves < MOVES => {
                    moves += 1;
                    self.connection = None;
                    self.node = self.url.moved_to(&node).ok_or(Failure::Moved(node))?;
                }
                Err(Failure::Lost(reason)) => {
                    // The node may be gone: the next attempt asks the server we were told of.
                    self.node = self.url.clone();
                    return Err(Failure::Lost(reason));
                }
                other => return other,
            }
        }
    }

    fn exchange(&mut self, packed: &[u8]) -> Result<Value, Failure> {
        let mut connection = match self.connection.take() {
            Some(connection) => connection,
            None => self.connect()?,
        };
        let answer = match connection.req_packed_command(packed) {
            Ok(Value::ServerError(error)) => Err(Failure::of(&error.into())),
            Ok(value) => Ok(value),
            Err(error) => Err(Failure::of(&error)),
        };
        // After an answer of the server, whatever it says, the connection is in order.
        if !matches!(answer, Err(Failure::Lost(_))) {
            self.connection = Some(connection);
        }
        answer
    }

    fn connect(&self) -> Result<redis::Connection, Failure> {
        let client = Client::open(self.node.info().clone()).map_err(|error| Failure::of(&error))?;
        let connection = client.get_connection_with_timeout(self.options.connect_timeout).map_err(|error| {
            let text = error.to_string();
            if text.contains("switch database") { Failure::Database(reason(&error)) } else { Failure::of(&error) }
        })?;
        let timeout = Some(self.options.reply_timeout.max(std::time::Duration::from_millis(1)));
        connection
            .set_read_timeout(timeout)
            .and_then(|()| connection.set_write_timeout(timeout))
            .map_err(|error| Failure::of(&error))?;
        Ok(connection)
    }

    fn explain(&self, failure: Failure) -> RedisError {
        let address = self.address();
        match failure {
            Failure::Lost(reason) => RedisError::Unreachable { address, reason },
            Failure::NotReady(reason) => RedisError::NotReady { address, reason },
            Failure::Auth(reason) => RedisError::Auth { address, reason },
            Failure::NotAllowed(reason) => RedisError::NotAllowed { address, reason },
            Failure::Database(reason) => RedisError::Database { address, database: self.url.database(), reason },
            Failure::ReadOnly => RedisError::ReadOnly { address },
            Failure::Full => RedisError::Full { address },
            Failure::Moved(node) => RedisError::NotReady { address, reason: format!("moved to {node}") },
            Failure::NoScript => RedisError::Refused { address, reason: "it does not keep scripts".to_owned() },
            Failure::Other(reason) => RedisError::Refused { address, reason },
        }
    }
}

impl std::fmt::Debug for Link {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Link").field("node", &self.node).field("is_connected", &self.connection.is_some()).finish_non_exhaustive()
    }
}

/// What a command failed with.
enum Failure {
    Lost(String),
    NotReady(String),
    Auth(String),
    NotAllowed(String),
    Database(String),
    ReadOnly,
    Full,
    Moved(String),
    NoScript,
    Other(String),
}

impl Failure {
    fn of(error: &redis::RedisError) -> Self {
        let reason = reason(error);
        match error.kind() {
            ErrorKind::AuthenticationFailed => return Self::Auth(reason),
            ErrorKind::Server(kind) => match kind {
                ServerErrorKind::NoScript => return Self::NoScript,
                ServerErrorKind::Moved | ServerErrorKind::Ask => {
                    return Self::Moved(error.redirect_node().map(|(node, _)| node.to_owned()).unwrap_or_default());
                }
                ServerErrorKind::ReadOnly => return Self::ReadOnly,
                ServerErrorKind::NoPerm => return Self::NotAllowed(reason),
                ServerErrorKind::BusyLoading
                | ServerErrorKind::TryAgain
                | ServerErrorKind::ClusterDown
                | ServerErrorKind::MasterDown => return Self::NotReady(reason),
                _ => {}
            },
            ErrorKind::Extension => {}
            ErrorKind::Io | ErrorKind::Parse => return Self::Lost(reason),
            _ => return Self::Other(reason),
        }
        // Codes the client does not know, and those of older servers, which wrap a script's error.
        let code = error.code().unwrap_or_default();
        let is = |word: &str| code == word || reason.contains(&format!("-{word} ")) || reason.starts_with(word);
        if is("NOAUTH") || is("WRONGPASS") || reason.contains("invalid password") {
            Self::Auth(reason)
        } else if is("OOM") {
            Self::Full
        } else if is("READONLY") {
            Self::ReadOnly
        } else if is("BUSY") || is("MISCONF") || is("NOREPLICAS") || is("UNBLOCKED") || reason.contains("max number of clients") {
            Self::NotReady(reason)
        } else {
            Self::Other(reason)
        }
    }
}

/// The server's or the system's words, without the client's around them.
fn reason(error: &redis::RedisError) -> String {
    match (error.code(), error.detail()) {
        (Some("ERR") | None, Some(detail)) => detail.to_owned(),
        (Some(code), Some(detail)) => format!("{code} {detail}"),
        _ if error.is_timeout() => "no answer in time".to_owned(),
        _ => error.to_string(),
    }
}
