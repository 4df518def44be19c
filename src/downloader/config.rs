//! What the downloader reads from the settings, in the form it uses on every request.
//!
//! Headers are parsed once here; a value that HTTP does not allow was refused by the settings already. What may change
//! while a crawl runs is in `Live`.

use std::sync::{Arc, PoisonError, RwLock};
use std::time::Duration;

use http::header::{ACCEPT_ENCODING, USER_AGENT};
use http::{HeaderMap, HeaderName, HeaderValue};

use super::markers::Markers;
use super::transport::{Excess, Limits};
use crate::settings::Settings;

/// Content codings that are asked for, those of [`super::decode`].
const ACCEPTED_CODINGS: HeaderValue = HeaderValue::from_static("gzip, deflate, br, zstd");

/// Everything the downloader needs to know about a crawl.
#[derive(Debug, Clone)]
pub struct DownloaderConfig {
    /// Headers of every request that lacks them: default headers, user agent, accepted codings.
    pub base_headers: HeaderMap,
    /// Limits of a page's attempt; a request may have a timeout of its own.
    pub limits: Limits,
    /// Limit for robots.txt as a whole.
    pub robots_timeout: Duration,
    /// Body size from which a log line names the page; 0: never.
    pub warn_bytes: usize,
    /// Whether cookies are kept and sent (`COOKIES_ENABLED`).
    pub cookies: bool,
    /// When and how attempts are repeated.
    pub retry: RetryRules,
    /// When redirects are followed.
    pub redirect: RedirectRules,
    /// Which statuses reach callbacks.
    pub statuses: StatusRules,
    /// What is marked on reports (`MARKERS`).
    pub markers: Arc<Markers>,
    /// Clients and connections.
    pub client: ClientConfig,
}

/// When and how attempts are repeated.
#[derive(Debug, Clone, PartialEq)]
pub struct RetryRules {
    /// Whether they are at all.
    pub enabled: bool,
    /// Attempts after the first one, unless the request says otherwise.
    pub times: u32,
    /// Statuses that are repeated.
    pub codes: Vec<u16>,
    /// Bound of the first wait; doubles with each further one.
    pub backoff: Duration,
    /// Longest bound of a wait.
    pub backoff_max: Duration,
    /// Longest `Retry-After` that is honoured.
    pub retry_after_max: Duration,
}

/// What of it may change while a crawl runs, as it is for what is decided now.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct LiveConfig {
    /// `RETRY_*`.
    pub(crate) retry: RetryRules,
    /// `DOWNLOAD_TIMEOUT`.
    pub(crate) total: Duration,
    /// `DOWNLOAD_IDLE_TIMEOUT`.
    pub(crate) idle: Duration,
    /// `ROBOTSTXT_TIMEOUT`.
    pub(crate) robots_timeout: Duration,
}

/// The place of the [`LiveConfig`] in force. Its lock is held for a copy of a pointer, never over an await.
#[derive(Debug)]
pub(crate) struct Live(RwLock<Arc<LiveConfig>>);

impl Live {
    pub(crate) fn new(config: &DownloaderConfig) -> Self {
        Self(RwLock::new(Arc::new(LiveConfig::of(config))))
    }

    /// What is in force now.
    pub(crate) fn now(&self) -> Arc<LiveConfig> {
        self.0.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Puts what the settings say in force.
    pub(crate) fn replace(&self, settings: &Settings) {
        let newer = Arc::new(LiveConfig::of(&DownloaderConfig::from_settings(settings)));
        *self.0.write().unwrap_or_else(PoisonError::into_inner) = newer;
    }
}

impl LiveConfig {
    fn of(config: &DownloaderConfig) -> Self {
        Self {
            retry: config.retry.clone(),
            total: config.limits.total,
            idle: config.limits.idle,
            robots_timeout: config.robots_timeout,
        }
    }
}

/// When redirects are followed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RedirectRules {
    /// Whether they are at all.
    pub enabled: bool,
    /// Most hops of one request.
    pub max_hops: u32,
}

/// Which statuses reach callbacks.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StatusRules {
    /// Every one.
    pub allow_all: bool,
    /// These, besides 200 to 299.
    pub allowed: Vec<u16>,
}

/// Clients and connections.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ClientConfig {
    /// Time to connect, TLS included.
    pub connect_timeout: Duration,
    /// Whether certificates are checked.
    pub verify_certificates: bool,
    /// Most clients kept.
    pub max_clients: u64,
    /// Time after which an unused client goes.
    pub idle: Duration,
}

impl DownloaderConfig {
    /// Reads the settings. Whoever starts a job has had its markers compiled by [`Markers::compile`] and refused what
    /// cannot be; a rule that is bad all the same is an error in the log and marks nothing.
    #[must_use]
    pub fn from_settings(settings: &Settings) -> Self {
        Self {
            base_headers: base_headers(settings),
            limits: Limits {
                total: settings.download_timeout,
                idle: settings.download_idle_timeout,
                max_bytes: usize::try_from(settings.download_maxsize).unwrap_or(usize::MAX),
                excess: Excess::Fails,
                fail_on_data_loss: settings.download_fail_on_dataloss,
                decode: settings.compression_enabled,
            },
            robots_timeout: settings.robotstxt_timeout,
            warn_bytes: usize::try_from(settings.download_warnsize).unwrap_or(usize::MAX),
            cookies: settings.cookies_enabled,
            retry: RetryRules {
                enabled: settings.retry_enabled,
                times: settings.retry_times,
                codes: settings.retry_http_codes.clone(),
                backoff: settings.retry_backoff,
                backoff_max: settings.retry_backoff_max,
                retry_after_max: settings.retry_after_max,
            },
            redirect: RedirectRules { enabled: settings.redirect_enabled, max_hops: settings.redirect_max_times },
            statuses: StatusRules { allow_all: settings.httperror_allow_all, allowed: settings.httperror_allowed_codes.clone() },
            markers: Arc::new(Markers::of_good(&settings.markers).read_with(settings.page_options())),
            client: ClientConfig {
                connect_timeout: settings.download_connect_timeout,
                verify_certificates: settings.download_verify_certificates,
                max_clients: settings.clients_max,
                idle: settings.client_idle,
            },
        }
    }
}

/// `DEFAULT_REQUEST_HEADERS` goes before `USER_AGENT`, as in Scrapy.
fn base_headers(settings: &Settings) -> HeaderMap {
    let mut headers = HeaderMap::new();
    if let Ok(agent) = HeaderValue::from_str(&settings.user_agent)
        && !agent.is_empty()
    {
        headers.insert(USER_AGENT, agent);
    }
    if settings.compression_enabled {
        headers.insert(ACCEPT_ENCODING, ACCEPTED_CODINGS);
    }
    for (name, value) in settings.default_request_headers.iter() {
        if let (Ok(name), Ok(value)) = (HeaderName::try_from(name), HeaderValue::from_str(value)) {
            headers.insert(name, value);
        }
    }
    headers
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing)]
    use super::*;

    #[test]
    fn the_defaults_ask_for_every_coding_that_is_undone() {
        let config = DownloaderConfig::from_settings(&Settings::default());
        assert_eq!(config.base_headers["accept-encoding"], "gzip, deflate, br, zstd");
        assert!(config.base_headers["user-agent"].to_str().unwrap().starts_with("dragline/"));
        assert_eq!(config.base_headers["accept-language"], "en");
        assert_eq!(config.limits.max_bytes, 64 << 20);
        assert_eq!(config.retry.times, 2);
    }

    #[test]
    fn retries_and_time_limits_follow_the_settings_and_nothing_else_does() {
        let live = Live::new(&DownloaderConfig::from_settings(&Settings::default()));
        let before = live.now();
        let settings = Settings {
            retry_times: 9,
            retry_http_codes: vec![418],
            download_timeout: Duration::from_secs(7),
            robotstxt_timeout: Duration::from_secs(3),
            ..Settings::default()
        };
        live.replace(&settings);
        let now = live.now();
        assert_eq!((now.retry.times, now.retry.codes.as_slice()), (9, [418].as_slice()));
        assert_eq!((now.total.as_secs(), now.robots_timeout.as_secs(), now.idle), (7, 3, before.idle));
        assert_eq!(before.retry.times, 2, "what an attempt holds stays as it was");
    }

    #[test]
    fn without_compression_no_coding_is_asked_for() {
        let settings = Settings { compression_enabled: false, ..Settings::default() };
        let config = DownloaderConfig::from_settings(&settings);
        assert!(!config.base_headers.contains_key("accept-encoding"));
        assert!(!config.limits.decode);
    }
}
