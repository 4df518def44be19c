//! Puts a client together: settings, then the way to the server, then what stands on it.

use std::ffi::OsString;
use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use secrecy::SecretString;
use tokio::sync::Semaphore;

use super::settings::{Given, Settings};
use super::{Client, Environment};
use crate::spinneret::Result;
use crate::spinneret::error::Error;
use crate::spinneret::reporter::ReporterOptions;
use crate::spinneret::retry::{RetryPolicy, Timeouts};
use crate::spinneret::transport::{HttpTransport, Line, Transport, seconds};
use crate::spinneret::wire::Wire;
use crate::via::{ProxyChoice, Unusable, Via};

/// No limit of one attempt is longer than a day.
const LONGEST: Duration = Duration::from_secs(24 * 3600);
/// Calls under way at one time: enough for two hundred that wait for an identity. When a stall ends, about as many
/// connections are made at once, and the more they are, the longer the calls behind them take.
const CONNECTIONS: usize = 256;

/// Puts a client together. What is not given comes from the environment; what is given wins over it, even an empty text,
/// which is then an error.
///
/// | method | variable | without both |
/// | --- | --- | --- |
/// | [`url`](Self::url) | `SPINNERET_URL` | an error |
/// | [`token`](Self::token) | `SPINNERET_TOKEN` | an error |
/// | [`node`](Self::node) | `SPINNERET_NODE` | the name of the host |
/// | [`cache_dir`](Self::cache_dir) | `SPINNERET_CACHE_DIR` | `~/.spinneret/cache` |
/// | [`ca_file`](Self::ca_file) | `SPINNERET_CA_FILE` | none; the file of `SSL_CERT_FILE` is trusted in any case |
/// | [`proxy`](Self::proxy) | `HTTPS_PROXY`, `HTTP_PROXY`, `ALL_PROXY`, `NO_PROXY` | none |
///
/// A blank variable counts as not set.
#[derive(Clone, Default)]
pub struct ClientBuilder {
    given: Given,
    proxy: ProxyChoice,
    timeouts: Timeouts,
    retry: RetryPolicy,
    deadline: Option<Duration>,
    max_connections: Option<usize>,
    reporter: ReporterOptions,
    http: Option<reqwest::Client>,
    environment: Environment,
}

impl ClientBuilder {
    /// The base address of the server: `http` or `https`, a host, perhaps a port and a path prefix; no query, no fragment,
    /// no user. White space around it and slashes at its end are dropped.
    #[must_use]
    pub fn url(mut self, url: impl Into<String>) -> Self {
        self.given.url = Some(url.into());
        self
    }

    /// The token of this node, ASCII without white space and control characters. White space around it is dropped.
    #[must_use]
    pub fn token(mut self, token: impl Into<SecretString>) -> Self {
        self.given.token = Some(token.into());
        self
    }

    /// The name of this node, for the statistics of the server. Each run of characters outside `A-Za-z0-9._:@-` becomes
    /// one `-`, and 128 characters are kept; nothing becomes `unknown`.
    #[must_use]
    pub fn node(mut self, node: impl Into<String>) -> Self {
        self.given.node = Some(node.into());
        self
    }

    /// Where configuration watchers keep what they last saw. A `~` at the beginning is the home directory.
    #[must_use]
    pub fn cache_dir(mut self, folder: impl Into<PathBuf>) -> Self {
        self.given.cache_dir = Some(folder.into());
        self
    }

    /// A PEM file of certificates to trust beside the roots that browsers trust and the file of `SSL_CERT_FILE`: the CA of
    /// an internal server.
    #[must_use]
    pub fn ca_file(mut self, file: impl Into<PathBuf>) -> Self {
        self.given.ca_file = Some(file.into());
        self
    }

    /// The proxy on the way to the server. By default the one of the environment, unless `NO_PROXY` covers the server.
    #[must_use]
    pub fn proxy(mut self, proxy: ProxyChoice) -> Self {
        self.proxy = proxy;
        self
    }

    /// The limits of time of one attempt, a day each at most.
    #[must_use]
    pub const fn timeouts(mut self, timeouts: Timeouts) -> Self {
        self.timeouts = timeouts;
        self
    }

    /// Whether and when failed calls are made again.
    #[must_use]
    pub const fn retry(mut self, retry: RetryPolicy) -> Self {
        self.retry = retry;
        self
    }

    /// The longest time a call may take with all its attempts and the waits between them; without it each attempt has its
    /// [`Timeouts`] only. A wait that would reach the deadline is not begun, and an attempt is cut off at it with
    /// [`Error::Transport`] of kind `timeout`. It also cuts off a server that is asked to wait (for a lease, for a change of
    /// configuration). Not for what the reporter and the watchers do in the background.
    #[must_use]
    pub const fn deadline(mut self, deadline: Duration) -> Self {
        self.deadline = Some(deadline);
        self
    }

    /// The most calls that are under way at one time, each of which has a connection for itself; 1 or more, default 256.
    /// Further ones wait for [`Timeouts::pool`] and then fail, with nothing sent. A watcher's long poll is one of them, and
    /// so is a lease that waits for an identity: a crawl that lets more of those wait at a time gives more. From 8 on, one
    /// place in eight (32 at most) is kept for calls that report, prolong and give back, so that they do not wait behind
    /// those that acquire. For a moment more connections may be open, as a call takes the first that is free.
    #[must_use]
    pub const fn max_connections(mut self, connections: usize) -> Self {
        self.max_connections = Some(connections);
        self
    }

    /// What stands before `dragline-spinneret/<version>` in the header `User-Agent`: name and version of the program.
    #[must_use]
    pub fn user_agent(mut self, product: impl Into<String>) -> Self {
        self.given.user_agent = Some(product.into());
        self
    }

    /// Makes calls with this HTTP client instead of connections of its own. It is used as it is (its proxy, its roots, its
    /// limits), so [`Self::ca_file`] and [`Self::proxy`] cannot be given beside it, and it should follow no redirect: one
    /// would take the token along. [`Timeouts`] hold all the same. Closing this client leaves it open, and ends the calls
    /// of this client.
    #[must_use]
    pub fn http_client(mut self, client: reqwest::Client) -> Self {
        self.http = Some(client);
        self
    }

    /// How reports are gathered and sent.
    #[must_use]
    pub fn reporter(mut self, options: ReporterOptions) -> Self {
        self.reporter = options;
        self
    }

    /// Looks variables up with this instead of in the environment of the process. It is asked while the client is built,
    /// never later.
    #[must_use]
    pub fn environment(mut self, lookup: impl Fn(&str) -> Option<OsString> + Send + Sync + 'static) -> Self {
        self.environment = Environment::new(lookup);
        self
    }

    /// The client. Reads the certificate files, and does no I/O besides: the first call opens the first connection.
    ///
    /// # Errors
    /// [`Error::Configuration`] names the setting that is missing or cannot be used.
    pub fn build(self) -> Result<Client> {
        let settings = Settings::of(self.given.clone(), &self.environment)?;
        let connections = self.connections()?;
        let (salutation, base) = (settings.salutation()?, settings.address.url().clone());
        let transport = match self.http.clone() {
            Some(http) => {
                self.check_given_client()?;
                HttpTransport::over(http, &base, salutation, self.timeouts, None, connections)
            }
            None => {
                let via = Via::of(&self.proxy, |name| self.environment.get(name), &base).map_err(unusable_proxy)?;
                let line = Line { timeouts: self.timeouts, ca_files: settings.ca_files.clone(), via, connections };
                HttpTransport::new(&base, salutation, line).map_err(|error| Error::configuration(error.to_string()))?
            }
        };
        self.finish(settings, Arc::new(transport))
    }

    /// The same client over another transport. Without a URL or a token it has those of no server.
    #[cfg(test)]
    pub(crate) fn build_over(mut self, transport: Arc<dyn Transport>) -> Result<Client> {
        self.given.url.get_or_insert_with(|| "http://spinneret.invalid".to_owned());
        self.given.token.get_or_insert_with(|| "spn_in-memory".into());
        let settings = Settings::of(self.given.clone(), &self.environment)?;
        self.finish(settings, transport)
    }

    fn finish(self, settings: Settings, transport: Arc<dyn Transport>) -> Result<Client> {
        self.check_limits()?;
        self.reporter.validate()?;
        let wire = Wire::new(transport, self.timeouts, self.retry).with_deadline(self.deadline).hiding(settings.token.clone());
        Ok(Client::over(settings, Arc::new(wire), self.reporter))
    }

    fn connections(&self) -> Result<usize> {
        match self.max_connections {
            None => Ok(CONNECTIONS),
            Some(connections) if (1..=Semaphore::MAX_PERMITS).contains(&connections) => Ok(connections),
            Some(connections) => {
                Err(Error::configuration(format!("max_connections is {connections}; it must be 1 to {}", Semaphore::MAX_PERMITS)))
            }
        }
    }

    fn check_limits(&self) -> Result<()> {
        let Timeouts { connect, read, write, pool, watch_grace } = self.timeouts;
        let limits = [
            ("connect", connect, true),
            ("read", read, true),
            ("write", write, true),
            ("pool", pool, false),
            ("watch_grace", watch_grace, false),
        ];
        for (name, limit, is_needed) in limits {
            if limit > LONGEST || is_needed && limit.is_zero() {
                let least = if is_needed { "more than 0" } else { "0 or more" };
                let (limit, most) = (seconds(limit), seconds(LONGEST));
                return Err(Error::configuration(format!("timeouts: {name} is {limit}; it must be {least}, and at most {most}")));
            }
        }
        match self.deadline {
            Some(Duration::ZERO) => Err(Error::configuration("deadline is 0, which no call can keep; give a longer time")),
            _ => Ok(()),
        }
    }

    fn check_given_client(&self) -> Result<()> {
        let useless = match (&self.given.ca_file, &self.proxy) {
            (Some(_), _) => "ClientBuilder::ca_file",
            (_, ProxyChoice::Url(_)) => "ClientBuilder::proxy",
            _ => return Ok(()),
        };
        Err(Error::configuration(format!(
            "{useless} has no effect beside ClientBuilder::http_client; give it to that HTTP client"
        )))
    }
}

impl fmt::Debug for ClientBuilder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // A URL that is not checked yet may hold a password.
        f.debug_struct("ClientBuilder")
            .field("node", &self.given.node)
            .field("proxy", &self.proxy)
            .field("timeouts", &self.timeouts)
            .field("retry", &self.retry)
            .field("deadline", &self.deadline)
            .field("max_connections", &self.max_connections)
            .field("reporter", &self.reporter)
            .finish_non_exhaustive()
    }
}

fn unusable_proxy(named_by: Unusable) -> Error {
    const SCHEMES: &str = "it must be http://, https://, socks5:// or socks5h:// with host and port";
    Error::configuration(match named_by {
        Unusable::Given => format!("the proxy's URL (ClientBuilder::proxy; not shown) cannot be used; {SCHEMES}"),
        Unusable::Variable(name) => format!(
            "the environment variable {name} holds no proxy's URL (not shown); {SCHEMES}; mend or unset it, or name the server in \
             NO_PROXY"
        ),
    })
}
