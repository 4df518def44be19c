//! Names of settings: known, known elsewhere, or nearest to a known one.

use super::key::Key;
use super::table::Settings;
use crate::nearest;

/// What a name given by a user is.
#[derive(Debug)]
pub(crate) enum Name {
    /// A key of the table.
    Known(&'static Key),
    /// A name with a meaning, but not here; what to do instead.
    Unsupported(&'static str),
    /// No name at all; the most similar key, if one is similar enough.
    Unknown(Option<&'static str>),
}

impl Name {
    pub(crate) fn of(name: &str) -> Self {
        if let Some(key) = Settings::key(name) {
            return Self::Known(key);
        }
        let unsupported = UNSUPPORTED.iter().find(|(pattern, _)| match pattern.strip_suffix('*') {
            Some(prefix) => name.starts_with(prefix),
            None => name == *pattern,
        });
        match unsupported {
            Some((_, advice)) => Self::Unsupported(advice),
            None => Self::Unknown(nearest(name)),
        }
    }
}

const NOT_YET: &str = "remove it";
const COMPILED: &str = "remove it; spiders and components are registered when the program is built";
const ORDER: &str = "remove it; start requests go first in, first out, all others last in, first out by priority";
const TWISTED: &str = "remove it; there is no such runtime underneath";
const TLS: &str = "remove it; TLS 1.2 and 1.3 are used, see DOWNLOAD_VERIFY_CERTIFICATES";
const PROXY: &str = "remove it; the proxy comes with the identity (see IDENTITIES)";
const STORAGE: &str = "remove it; feeds are written to local files or standard output";
const BASE: &str = "remove it; built-in components are switched off by name in the setting without _BASE";

/// Names with a meaning elsewhere, and the way out; `*` at the end covers all names that begin so.
const UNSUPPORTED: &[(&str, &str)] = &[
    ("ADDONS", COMPILED),
    ("AJAXCRAWL_ENABLED", NOT_YET),
    ("ASYNCIO_EVENT_LOOP", TWISTED),
    ("AWS_*", STORAGE),
    ("COMMANDS_MODULE", COMPILED),
    ("CONCURRENT_REQUESTS_PER_IP", "use CONCURRENT_REQUESTS_PER_DOMAIN"),
    ("DEFAULT_DROPITEM_LOG_LEVEL", "remove it; dropped items are counted and logged as WARNING"),
    ("DEFAULT_ITEM_CLASS", COMPILED),
    ("DNS_RESOLVER", NOT_YET),
    ("DOWNLOADER", COMPILED),
    ("DOWNLOADER_CLIENTCONTEXTFACTORY", TLS),
    ("DOWNLOADER_CLIENT_TLS_*", TLS),
    ("DOWNLOADER_HTTPCLIENTFACTORY", COMPILED),
    ("DOWNLOADER_MIDDLEWARES_BASE", BASE),
    ("DOWNLOADER_STATS", NOT_YET),
    ("DOWNLOAD_BIND_ADDRESS", NOT_YET),
    ("DOWNLOAD_HANDLERS*", "remove it; http, https and data are built in"),
    ("DOWNLOAD_TLS_*", TLS),
    ("DUPEFILTER_*", "remove it; the duplicate filter is built in, dont_filter on a request passes it"),
    ("EDITOR", NOT_YET),
    ("EXTENSIONS_BASE", BASE),
    ("FEED_EXPORTERS*", "remove it; the formats are built in, name one with format in FEEDS"),
    ("FEED_EXPORT_BATCH_ITEM_COUNT", NOT_YET),
    ("FEED_FORMAT", "use FEEDS"),
    ("FEED_URI", "use FEEDS"),
    ("FEED_URI_PARAMS", NOT_YET),
    ("FEED_STORAGES*", STORAGE),
    ("FEED_STORAGE_*", STORAGE),
    ("FEED_TEMPDIR", STORAGE),
    ("FILES_*", NOT_YET),
    ("FORCE_CRAWLER_PROCESS", NOT_YET),
    ("FTP_*", STORAGE),
    ("GCS_*", STORAGE),
    ("HTTP2_MAX_FRAME_SIZE", NOT_YET),
    ("HTTPCACHE_DBM_MODULE", "remove it; answers are kept in files below HTTPCACHE_DIR"),
    ("HTTPCACHE_IGNORE_RESPONSE_CACHE_CONTROLS", NOT_YET),
    ("HTTPCACHE_STORAGE", "remove it; answers are kept in files below HTTPCACHE_DIR"),
    ("HTTPPROXY_*", PROXY),
    ("HTTPX_*", NOT_YET),
    ("IMAGES_*", NOT_YET),
    ("ITEM_PIPELINES_BASE", BASE),
    ("ITEM_PROCESSOR", COMPILED),
    ("LOG_DATEFORMAT", "use LOG_FORMAT (text or json)"),
    ("LOG_ENCODING", "remove it; logs are UTF-8"),
    ("LOG_FORMATTER", "use LOG_FORMAT (text or json)"),
    ("LOG_SHORT_NAMES", "use LOG_FORMAT (text or json)"),
    ("LOG_VERSIONS", NOT_YET),
    ("MAIL_*", "remove it; no mail is sent"),
    ("MEDIA_*", NOT_YET),
    ("MEMDEBUG_*", NOT_YET),
    ("MEMUSAGE_NOTIFY_MAIL", "remove it; no mail is sent"),
    ("NEWSPIDER_MODULE", COMPILED),
    ("PERIODIC_LOG_*", "use LOGSTATS_INTERVAL"),
    ("REACTOR_THREADPOOL_MAXSIZE", TWISTED),
    ("REMOTE_CONTROL_*", NOT_YET),
    ("REQUEST_FINGERPRINTER_*", "remove it; the key of a request is method, canonical URL and body"),
    ("REQUEST_HEADER_ORDER", NOT_YET),
    ("RETRY_GIVE_UP_LOG_LEVEL", "use LOG_LEVEL"),
    ("ROBOTSTXT_PARSER", COMPILED),
    ("SCHEDULER", COMPILED),
    ("SCHEDULER_DEBUG", "use LOG_LEVEL"),
    ("SCHEDULER_*", ORDER),
    ("SCRAPER_SLOT_MAX_ACTIVE_SIZE", "use WINDOW_BYTES"),
    ("SPIDER_CONTRACTS*", COMPILED),
    ("SPIDER_LOADER_*", COMPILED),
    ("SPIDER_MIDDLEWARES*", "remove it; use an item pipeline or a downloader middleware"),
    ("SPIDER_MODULES", COMPILED),
    ("STATSMAILER_RCPTS", "remove it; no mail is sent"),
    ("STATS_CLASS", COMPILED),
    ("STICKY_META_KEYS", NOT_YET),
    ("TELNETCONSOLE_*", "remove it; there is no console, see PROGRESS and LOGSTATS_INTERVAL"),
    ("TEMPLATES_DIR", COMPILED),
    ("TWISTED_*", TWISTED),
    ("WARN_ON_GENERATOR_RETURN_VALUE", NOT_YET),
];

/// The key that was meant, if the name is close to one.
fn nearest(name: &str) -> Option<&'static str> {
    // Longer than any key: not a slip of the pen, and not worth the work.
    if name.is_empty() || name.len() > 64 {
        return None;
    }
    let upper = name.to_ascii_uppercase().replace('-', "_");
    nearest::nearest(&upper, Settings::keys().iter().map(Key::name))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing)]

    use super::*;

    #[test]
    fn a_slip_of_the_pen_finds_the_key_that_was_meant() {
        for (given, meant) in [
            ("CONCURENT_REQUESTS", Some("CONCURRENT_REQUESTS")),
            ("concurrent_requests", Some("CONCURRENT_REQUESTS")),
            ("DOWNLOAD-DELAY", Some("DOWNLOAD_DELAY")),
            ("DONWLOAD_DELAY", Some("DOWNLOAD_DELAY")),
            ("LOGLEVEL", Some("LOG_LEVEL")),
            ("JOB_DIR", Some("JOBDIR")),
            ("ROBOTS_OBEY", Some("ROBOTSTXT_OBEY")),
            ("COMPLETELY_DIFFERENT", None),
            ("", None),
        ] {
            assert_eq!(nearest(given), meant, "{given}");
        }
    }

    #[test]
    fn no_supported_key_is_listed_as_unsupported() {
        for (pattern, advice) in UNSUPPORTED {
            assert!(Settings::key(pattern).is_none(), "{pattern}");
            for word in advice.split(|c: char| !c.is_ascii_uppercase() && c != '_') {
                let names_a_key = word.contains('_') && !word.starts_with('_');
                assert!(!names_a_key || Settings::key(word).is_some(), "{pattern}: {word}");
            }
        }
    }

    #[test]
    fn names_from_elsewhere_get_a_message_of_their_own() {
        for name in [
            "CONCURRENT_REQUESTS_PER_IP",
            "TELNETCONSOLE_PORT",
            "TWISTED_REACTOR",
            "HTTPCACHE_STORAGE",
            "SCHEDULER_DISK_QUEUE",
            "DOWNLOADER_CLIENTCONTEXTFACTORY",
            "DUPEFILTER_CLASS",
            "SPIDER_MODULES",
        ] {
            assert!(matches!(Name::of(name), Name::Unsupported(_)), "{name}");
        }
    }
}
