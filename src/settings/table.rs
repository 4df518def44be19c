//! The table of settings: every key with its type, range, default and meaning.
//!
//! A row reads: key, when a change takes effect, field, type, rule, default. Seconds are numbers,
//! sizes are bytes or text with a unit. Add a key here and nowhere else.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::LazyLock;
use std::time::Duration;

use serde_json::{Value, json};

use super::collection::{Codes, Components, Domains, Words};
use super::delivery::{ApiKey, BaseUrl, SecretKey};
use super::frontier::{FrontierRule, FrontierStore};
use super::hosts::{HostTable, Hosts, PrivateAddresses, PrivateRule};
use super::key::{Key, Reload, settings_table};
use super::redact::REDACTED;
use super::rule::{
    Bytes, Choice, Flag, Folder, GIB, KIB, MIB, OptionalPath, OptionalText, Problem, Real, Rule, Span, TIB, Text, Whole,
};
use super::secret::Secret;
use super::structure::{FeedTable, HeaderTable, HeaderText, JobIdRule, LeaseRules};
use super::value::{
    Feed, FeedEncoding, Headers, HtmlEngine, JobId, LeaseRule, LogFormat, LogLevel, MarkerRule, OnFatal, ProgressStyle,
    RequestRecords, UnmatchedLease,
};
use super::watched::{ConfigNames, MarkerRules};
use crate::html::{Limits, PageOptions};

const DAY: f64 = 86_400.0;

settings_table! {
    "Who is crawling" {
        /// Name of the project, in logs and stats.
        "BOT_NAME" Restart bot_name: String = Text, json!("dragline");
        /// The `User-Agent` header of requests whose identity and spider set none.
        "USER_AGENT" Restart user_agent: String = HeaderText, json!(concat!("dragline/", env!("CARGO_PKG_VERSION")));
        /// Headers given to every request that lacks them.
        "DEFAULT_REQUEST_HEADERS" Restart default_request_headers: Headers = HeaderTable,
            json!({"Accept": "text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8", "Accept-Language": "en"});
        /// Domains the crawl stays in, each with everything below it; empty: no limit.
        /// A spider's own list goes before this one.
        "ALLOWED_DOMAINS" Restart allowed_domains: Vec<String> = Domains, json!([]);
    }
    "How much at once, how fast" {
        /// Requests in flight, over all hosts.
        "CONCURRENT_REQUESTS" Live concurrent_requests: usize = Whole::<usize>::between(1, 100_000), json!(16);
        /// Requests in flight to one host.
        "CONCURRENT_REQUESTS_PER_DOMAIN" Live concurrent_requests_per_domain: usize = Whole::<usize>::between(1, 100_000), json!(8);
        /// Items of one response that are in pipelines at the same time.
        "CONCURRENT_ITEMS" Restart concurrent_items: usize = Whole::<usize>::between(1, 100_000), json!(100);
        /// Least time between two requests to one host, counted from sending.
        "DOWNLOAD_DELAY" Live download_delay: Duration = Span::seconds(0.0, DAY), json!(0);
        /// Vary the delay by `DOWNLOAD_DELAY_JITTER`.
        "RANDOMIZE_DOWNLOAD_DELAY" Live randomize_download_delay: bool = Flag, json!(true);
        /// Share by which a delay varies: 0.5 means from half to one and a half times the delay.
        "DOWNLOAD_DELAY_JITTER" Live download_delay_jitter: f64 = Real { min: 0.0, max: 1.0 }, json!(0.5);
        /// Requests taken from the queue and not yet handled; 0: twice `CONCURRENT_REQUESTS` plus 64.
        "WINDOW_REQUESTS" Restart window_requests: usize = Whole::<usize>::between(0, 1_000_000), json!(0);
        /// Decoded bytes of responses that were not yet handled; reading pauses above it.
        "WINDOW_BYTES" Restart window_bytes: u64 = Bytes { min: 64 * KIB, max: TIB }, json!("32MiB");
    }
    "Downloads" {
        /// Time for one attempt as a whole.
        "DOWNLOAD_TIMEOUT" Live download_timeout: Duration = Span::seconds(0.001, DAY), json!(180);
        /// Time to connect, TLS included.
        "DOWNLOAD_CONNECT_TIMEOUT" Restart download_connect_timeout: Duration = Span::seconds(0.001, DAY), json!(15);
        /// Time without a single byte before a download is given up.
        "DOWNLOAD_IDLE_TIMEOUT" Live download_idle_timeout: Duration = Span::seconds(0.001, DAY), json!(60);
        /// Largest body, decoded; a larger one fails the request. There is always a limit.
        "DOWNLOAD_MAXSIZE" Restart download_maxsize: u64 = Bytes { min: 1, max: TIB }, json!("64MiB");
        /// Decoded size from which a body is named in the log; 0: never.
        "DOWNLOAD_WARNSIZE" Restart download_warnsize: u64 = Bytes { min: 0, max: TIB }, json!("32MiB");
        /// Fail a response that ends before its announced length; false: hand it on, marked as `dataloss`.
        "DOWNLOAD_FAIL_ON_DATALOSS" Restart download_fail_on_dataloss: bool = Flag, json!(true);
        /// Check the certificates of HTTPS servers.
        "DOWNLOAD_VERIFY_CERTIFICATES" Restart download_verify_certificates: bool = Flag, json!(true);
        /// HTTP clients kept, one per proxy and identity; the least used one goes first.
        "CLIENTS_MAX" Restart clients_max: u64 = Whole::<u64>::between(1, 100_000), json!(256);
        /// Time after which an unused client and its connections are dropped.
        "CLIENT_IDLE" Restart client_idle: Duration = Span::seconds(0.001, DAY), json!(60);
        /// Addresses of hosts instead of what DNS says, each with a port where one is meant for URLs that name none; `*.domain` is for
        /// all names below it. Such an address may be private. Where a proxy resolves names it does nothing.
        "HOSTS" Restart hosts: Hosts = HostTable, json!({});
        /// Send requests to addresses of this machine and its network: loopback, private, link-local and the like. `auto`: only
        /// if a start request goes to such an address itself. Through a proxy only addresses in URLs are known.
        "ALLOW_PRIVATE_ADDRESSES" Restart allow_private_addresses: PrivateAddresses = PrivateRule, json!("auto");
        /// Keep the addresses of names for a minute.
        "DNSCACHE_ENABLED" Restart dnscache_enabled: bool = Flag, json!(true);
        /// Names whose addresses are kept.
        "DNSCACHE_SIZE" Restart dnscache_size: u64 = Whole::<u64>::between(1, 10_000_000), json!(10_000);
        /// Time to look up a name; `DOWNLOAD_CONNECT_TIMEOUT` counts it too.
        "DNS_TIMEOUT" Restart dns_timeout: Duration = Span::seconds(0.001, DAY), json!(60);
        /// Keep and send cookies, in one jar per lease.
        "COOKIES_ENABLED" Restart cookies_enabled: bool = Flag, json!(true);
        /// Ask for compressed bodies (gzip, deflate, br, zstd) and decode them.
        "COMPRESSION_ENABLED" Restart compression_enabled: bool = Flag, json!(true);
    }
    "Reading pages" {
        /// Who builds the tree of a page and answers CSS: `dragline`, our own engine, which has bounds; `scraper`, html5ever and
        /// scraper, which have none, so that a hostile page can hold a thread for minutes; `compare`, both: ours answers, and
        /// what the other one answers otherwise is counted and logged.
        "HTML_ENGINE" Restart html_engine: HtmlEngine = Choice {
            of: &[("dragline", HtmlEngine::Dragline), ("scraper", HtmlEngine::Scraper), ("compare", HtmlEngine::Compare)],
            note: "" }, json!("dragline");
        /// Elements open at once in the tree of a page; deeper ones are attached higher up, as browsers do. A bound of
        /// our own engine, as those below: `scraper` has none.
        "HTML_MAX_DEPTH" Restart html_max_depth: usize = Whole::<usize>::between(8, 1_000_000), json!(512);
        /// Nodes of a page; where one has more, its tree ends there.
        "HTML_MAX_NODES" Restart html_max_nodes: usize = Whole::<usize>::between(10, 1_000_000_000), json!(8_000_000);
        /// Attributes of all elements of a page; further ones are left out.
        "HTML_MAX_ATTRIBUTES" Restart html_max_attributes: usize = Whole::<usize>::between(10, 1_000_000_000), json!(8_000_000);
        /// Steps through lists of open elements for each byte of a page, beside 100,000; real pages need 0.11. Where a page takes
        /// more, its tree ends there.
        "HTML_STEPS_PER_BYTE" Restart html_steps_per_byte: u64 = Whole::<u64>::between(1, 1_000_000), json!(16);
        /// Bytes of memory that a page takes while it is parsed, for each byte of it; 256 KiB always. Real pages need 3. Where
        /// a page takes more, its tree ends there.
        "HTML_MEMORY_PER_BYTE" Restart html_memory_per_byte: usize = Whole::<usize>::between(1, 1_000_000), json!(8);
    }
    "Redirects and retries" {
        /// Follow redirects.
        "REDIRECT_ENABLED" Restart redirect_enabled: bool = Flag, json!(true);
        /// Redirects of one request before it is given up.
        "REDIRECT_MAX_TIMES" Restart redirect_max_times: u32 = Whole::<u32>::between(0, 1_000), json!(20);
        /// Added to the priority of a request that was redirected.
        "REDIRECT_PRIORITY_ADJUST" Live redirect_priority_adjust: i32 = Whole::<i32>::between(-1_000_000, 1_000_000), json!(2);
        /// Repeat failed attempts.
        "RETRY_ENABLED" Live retry_enabled: bool = Flag, json!(true);
        /// Attempts after the first one.
        "RETRY_TIMES" Live retry_times: u32 = Whole::<u32>::between(0, 1_000), json!(2);
        /// Status codes that are retried.
        "RETRY_HTTP_CODES" Live retry_http_codes: Vec<u16> = Codes, json!([500, 502, 503, 504, 522, 524, 408, 429]);
        /// Added to the priority of a request that is retried.
        "RETRY_PRIORITY_ADJUST" Live retry_priority_adjust: i32 = Whole::<i32>::between(-1_000_000, 1_000_000), json!(-1);
        /// Wait before the first retry; doubles with each further one, with jitter.
        "RETRY_BACKOFF" Live retry_backoff: Duration = Span::seconds(0.0, DAY), json!(1);
        /// Longest wait of our own before a retry. At least `RETRY_BACKOFF`.
        "RETRY_BACKOFF_MAX" Live retry_backoff_max: Duration = Span::seconds(0.0, DAY), json!(60);
        /// Longest `Retry-After` that is honoured; a longer one is cut to it.
        "RETRY_AFTER_MAX" Live retry_after_max: Duration = Span::seconds(0.0, 30.0 * DAY), json!(300);
    }
    "What is crawled" {
        /// Fetch and obey robots.txt.
        "ROBOTSTXT_OBEY" Restart robotstxt_obey: bool = Flag, json!(true);
        /// Product name looked up in robots.txt; not set: the request's `User-Agent`.
        "ROBOTSTXT_USER_AGENT" Restart robotstxt_user_agent: Option<String> = OptionalText, json!(null);
        /// Time to fetch a robots.txt.
        "ROBOTSTXT_TIMEOUT" Live robotstxt_timeout: Duration = Span::seconds(0.001, DAY), json!(30);
        /// Links from a start request to the deepest page; 0: no limit.
        "DEPTH_LIMIT" Restart depth_limit: u32 = Whole::<u32>::between(0, 1_000_000), json!(0);
        /// Taken off the priority per level of depth; above 0 leads towards breadth first.
        "DEPTH_PRIORITY" Restart depth_priority: i32 = Whole::<i32>::between(-1_000_000, 1_000_000), json!(0);
        /// Longest URL in bytes; 0: no limit.
        "URLLENGTH_LIMIT" Restart urllength_limit: usize = Whole::<usize>::between(0, 1_048_576), json!(2083);
        /// Status codes outside 200 to 299 that reach callbacks.
        "HTTPERROR_ALLOWED_CODES" Restart httperror_allowed_codes: Vec<u16> = Codes, json!([]);
        /// Give every response to its callback, whatever its status.
        "HTTPERROR_ALLOW_ALL" Restart httperror_allow_all: bool = Flag, json!(false);
    }
    "Feeds and components" {
        /// Files the items are written to: URI, then `format` and `overwrite`.
        "FEEDS" Restart feeds: Vec<Feed> = FeedTable, json!({});
        /// Encoding of feeds; empty: JSON escapes every character outside ASCII.
        "FEED_EXPORT_ENCODING" Restart feed_export_encoding: FeedEncoding = Choice {
            of: &[("", FeedEncoding::AsciiEscaped), ("utf-8", FeedEncoding::Utf8)], note: "" }, json!("");
        /// Fields that are exported, in this order; empty: all.
        "FEED_EXPORT_FIELDS" Restart feed_export_fields: Vec<String> = Words, json!([]);
        /// Write a feed that has no items.
        "FEED_STORE_EMPTY" Restart feed_store_empty: bool = Flag, json!(true);
        /// Spaces of indentation in JSON feeds; 0: one item per line.
        "FEED_EXPORT_INDENT" Restart feed_export_indent: usize = Whole::<usize>::between(0, 16), json!(0);
        /// Item pipelines by name, with their order; false switches one off.
        "ITEM_PIPELINES" Restart item_pipelines: BTreeMap<String, Option<i32>> = Components, json!({});
        /// Downloader middlewares by name, with their order; false switches one off.
        "DOWNLOADER_MIDDLEWARES" Restart downloader_middlewares: BTreeMap<String, Option<i32>> = Components, json!({});
        /// Extensions by name, with their order; false switches one off.
        "EXTENSIONS" Restart extensions: BTreeMap<String, Option<i32>> = Components, json!({});
    }
    "When the crawl ends by itself" {
        /// Age at which the crawl is closed; 0: off.
        "CLOSESPIDER_TIMEOUT" Live closespider_timeout: Duration = Span::seconds(0.0, 3_650.0 * DAY), json!(0);
        /// Items after which the crawl is closed; 0: off.
        "CLOSESPIDER_ITEMCOUNT" Live closespider_itemcount: u64 = Whole::<u64>::between(0, i64::MAX), json!(0);
        /// Responses after which the crawl is closed; 0: off.
        "CLOSESPIDER_PAGECOUNT" Live closespider_pagecount: u64 = Whole::<u64>::between(0, i64::MAX), json!(0);
        /// Errors of callbacks after which the crawl is closed; 0: off.
        "CLOSESPIDER_ERRORCOUNT" Live closespider_errorcount: u64 = Whole::<u64>::between(0, i64::MAX), json!(0);
    }
    "Logs and progress" {
        /// Least level that is logged.
        "LOG_LEVEL" Live log_level: LogLevel = Choice { of: LogLevel::ALL, note: "" }, json!("INFO");
        /// File for the log, instead of standard error.
        "LOG_FILE" Restart log_file: Option<PathBuf> = OptionalPath, json!(null);
        /// Append to `LOG_FILE`; false: begin it anew.
        "LOG_FILE_APPEND" Restart log_file_append: bool = Flag, json!(true);
        /// Log at all. Records for the sink are kept either way.
        "LOG_ENABLED" Restart log_enabled: bool = Flag, json!(true);
        /// Form of a log line.
        "LOG_FORMAT" Restart log_format: LogFormat = Choice {
            of: &[("text", LogFormat::Text), ("json", LogFormat::Json)], note: "" }, json!("text");
        /// Log what a spider prints to standard output.
        "LOG_STDOUT" Restart log_stdout: bool = Flag, json!(true);
        /// Time between two lines with pages and items per minute; 0: none.
        "LOGSTATS_INTERVAL" Restart logstats_interval: Duration = Span::seconds(0.0, DAY), json!(60);
        /// Log all stats at the end.
        "STATS_DUMP" Restart stats_dump: bool = Flag, json!(true);
        /// Progress on standard error: a bar on a terminal (`auto`), `bar`, `lines` or `off`.
        "PROGRESS" Restart progress: ProgressStyle = Choice {
            of: &[("auto", ProgressStyle::Auto), ("bar", ProgressStyle::Bar),
                  ("lines", ProgressStyle::Lines), ("off", ProgressStyle::Off)], note: "" }, json!("auto");
    }
    "The job and its state" {
        /// Directory that keeps the whole job for its next run, which goes on where this one ends, be it by a `kill -9`:
        /// queue, seen set, counters, undelivered records, and cookies, so that only its owner may look into it.
        "JOBDIR" Restart jobdir: Option<PathBuf> = OptionalPath, json!(null);
        /// Id of the job; a number stays a number on the wire. `-a JOB_ID=` beats it. Not set: that of the `JOBDIR`,
        /// else a new UUID; with `APCLOUDY_URL` it must be given, as the backend knows its jobs.
        "JOB_ID" Restart job_id: Option<JobId> = JobIdRule, json!(null);
        /// Directory for the local job store, and for the spool when there is no `JOBDIR`.
        "DATA_DIR" Restart data_dir: PathBuf = Folder, json!(".dragline");
        /// Finished jobs that the local job store keeps, the oldest go first; 0: all are kept.
        "JOBS_KEEP" Restart jobs_keep: u64 = Whole::<u64>::between(0, i64::MAX), json!(0);
        /// Where the queue lives: in this process, or at a Redis or Valkey server by its `redis://` URL, which any number of
        /// workers with the same `JOB_ID` share. The URL's password is shown nowhere.
        "FRONTIER" Restart frontier: FrontierStore = FrontierRule, json!("memory");
        /// Time without a sign of life after which a worker's requests in flight go to others. Of a shared `FRONTIER`.
        "FRONTIER_VISIBILITY" Restart frontier_visibility: Duration = Span::seconds(0.5, DAY), json!(60);
        /// Time the server of a shared `FRONTIER` may be out of reach: the crawl waits, then gives up; 0: it waits for ever.
        "FRONTIER_WAIT" Restart frontier_wait: Duration = Span::seconds(0.0, 30.0 * DAY), json!(300);
        /// Memory for the queue and the seen set. With a `JOBDIR` the requests themselves lie on disk, and without one they
        /// go there when it is full. At 80 % seeds stop; when what must stay in memory fills it, callbacks wait for room.
        "FRONTIER_MAX_BYTES" Restart frontier_max_bytes: u64 = Bytes { min: MIB, max: 1024 * TIB }, json!("1GiB");
        /// Time between two syncs of a `JOBDIR`'s queue to disk; a power cut may lose this much, the end of the process nothing.
        "FRONTIER_SYNC_MS" Restart frontier_sync_ms: Duration = Span::millis(1.0, 60_000.0), json!(100);
    }
    "Callbacks and watchdogs" {
        /// Requests and items one callback may give before they must be flushed.
        "CALLBACK_MAX_EFFECTS" Restart callback_max_effects: usize = Whole::<usize>::between(1, 10_000_000), json!(10_000);
        /// Time for one await of a callback.
        "CALLBACK_TIMEOUT" Restart callback_timeout: Duration = Span::seconds(0.001, DAY), json!(60);
        /// Time without a sign of life after which a parser is replaced.
        "PARSE_STALL" Restart parse_stall: Duration = Span::seconds(0.1, DAY), json!(30);
        /// Time without progress after which the crawl says what it waits for.
        "STALL_WARN" Live stall_warn: Duration = Span::seconds(0.1, DAY), json!(30);
    }
    "Leases and reports" {
        /// Which requests are leased from which site and client; the first match wins.
        "LEASES" Restart leases: Vec<LeaseRule> = LeaseRules, json!([]);
        /// Requests of one site that may wait for a lease.
        "ACQUIRE_PENDING_PER_SITE" Restart acquire_pending_per_site: usize = Whole::<usize>::between(1, 100_000), json!(128);
        /// Time without any grant after which a site's requests are given up.
        "LEASE_GIVE_UP" Live lease_give_up: Duration = Span::seconds(1.0, 30.0 * DAY), json!(1800);
        /// Requests that no rule of `LEASES` matches, with the control plane at `SPINNERET_URL`: `refuse` drops them, counted and
        /// named in the log; `anonymous` sends them without any identity and proxy. The embedded plane always does the latter.
        "LEASE_UNMATCHED" Restart lease_unmatched: UnmatchedLease = Choice {
            of: &[("refuse", UnmatchedLease::Refuse), ("anonymous", UnmatchedLease::Anonymous)], note: "" }, json!("refuse");
        /// File with sites, clients and identities for the embedded control plane; not set: one anonymous identity per host.
        "IDENTITIES" Restart identities: Option<PathBuf> = OptionalPath, json!(null);
        /// Time a report waits for the marks of its callback.
        "REPORT_HOLD" Restart report_hold: Duration = Span::seconds(0.0, 60.0), json!(2);
        /// Reports sent together.
        "REPORT_BATCH" Restart report_batch: usize = Whole::<usize>::between(1, 500), json!(100);
        /// Longest time a report waits for its batch to fill.
        "REPORT_FLUSH" Restart report_flush: Duration = Span::seconds(0.001, 60.0), json!(0.2);
        /// Reports that may wait; at 80 % no new lease is taken.
        "REPORT_QUEUE" Restart report_queue: usize = Whole::<usize>::between(10, 10_000_000), json!(10_000);
        /// Markers that reports carry by rule: each table has `marker` and one or more of `status`, `css` and `regex`, which all
        /// must match; `domains` limits it to hosts. A spider's own `mark` adds to them.
        "MARKERS" Restart markers: Vec<MarkerRule> = MarkerRules, json!([]);
    }
    "Control plane" {
        /// Base URL of the Spinneret control plane that leases, reports and config go to; empty: the embedded one, fed by `IDENTITIES`.
        "SPINNERET_URL" Restart spinneret_url: Option<String> = BaseUrl::SPINNERET, json!(null);
        /// This node's token. Best given in the environment; never shown.
        "SPINNERET_TOKEN" Restart spinneret_token: Option<Secret> = ApiKey, json!(null);
        /// Name of this node in the plane's statistics; not set: the host name.
        "SPINNERET_NODE" Restart spinneret_node: Option<String> = OptionalText, json!(null);
        /// PEM file with further certificate authorities the plane's certificate may be of.
        "SPINNERET_CA_FILE" Restart spinneret_ca_file: Option<PathBuf> = OptionalPath, json!(null);
        /// Directory of the snapshots of config items; not set: `~/.spinneret/cache`.
        "SPINNERET_CACHE_DIR" Restart spinneret_cache_dir: Option<PathBuf> = OptionalPath, json!(null);
        /// Keep snapshots of config items, for starts while the plane cannot be reached.
        "SPINNERET_SNAPSHOTS" Restart spinneret_snapshots: bool = Flag, json!(true);
        /// Keep encrypted snapshots of config items with secrets in them; false: none of those.
        "SPINNERET_CACHE_SECRETS" Restart spinneret_cache_secrets: bool = Flag, json!(false);
        /// Config groups whose items count as secret in snapshots, whatever is in them.
        "SPINNERET_SECRET_GROUPS" Restart spinneret_secret_groups: Vec<String> = Words, json!([]);
        /// Milliseconds the plane may wait for a free identity before it refuses a lease.
        "SPINNERET_WAIT_MS" Restart spinneret_wait_ms: Duration = Span::millis(0.0, 5_000.0), json!(0);
        /// Time to connect to the plane.
        "SPINNERET_CONNECT_TIMEOUT" Restart spinneret_connect_timeout: Duration = Span::seconds(0.001, 3_600.0), json!(3);
        /// Time for the plane's answer, beside what it was asked to wait.
        "SPINNERET_TIMEOUT" Restart spinneret_timeout: Duration = Span::seconds(0.001, 3_600.0), json!(10);
        /// Connections to the plane; calls beyond wait.
        "SPINNERET_MAX_CONNECTIONS" Restart spinneret_max_connections: usize = Whole::<usize>::between(2, 10_000), json!(256);
        /// Repetitions of a failed call that may be repeated.
        "SPINNERET_MAX_RETRIES" Restart spinneret_max_retries: u32 = Whole::<u32>::between(0, 100), json!(2);
        /// Wait before the first repetition of a call, doubled with each further one, with jitter.
        "SPINNERET_BACKOFF" Restart spinneret_backoff: Duration = Span::seconds(0.001, 3_600.0), json!(0.1);
        /// Longest wait of our own before a repetition. At least `SPINNERET_BACKOFF`.
        "SPINNERET_BACKOFF_MAX" Restart spinneret_backoff_max: Duration = Span::seconds(0.001, 3_600.0), json!(2);
        /// Longest hint of the plane that a call waits for by itself; for a longer one the crawl turns to other work.
        "SPINNERET_MAX_RETRY_AFTER" Restart spinneret_max_retry_after: Duration = Span::seconds(0.0, 3_600.0), json!(5);
        /// Time without any answer of the plane after which the crawl gives up; 0: never.
        "SPINNERET_UNAVAILABLE_TIMEOUT" Restart spinneret_unavailable_timeout: Duration = Span::seconds(0.0, 30.0 * DAY), json!(300);
        /// Config items whose content goes over the settings file, as `group/key`; later ones go over earlier ones. Settings marked
        /// live and names of your own, with a lower case letter, may stand there. Spiders read the items with `ctx.config`.
        "CONFIG_WATCH" Restart config_watch: Vec<String> = ConfigNames, json!([]);
    }
    "Delivery" {
        /// Base URL of the APCloudy backend that gets the records; empty: the embedded sink in `DATA_DIR`.
        "APCLOUDY_URL" Restart apcloudy_url: Option<String> = BaseUrl::APCLOUDY, json!(null);
        /// The backend's API key. Best given in the environment; never shown.
        "APCLOUDY_API_KEY" Restart apcloudy_api_key: Option<Secret> = ApiKey, json!(null);
        /// The key that batches are signed with. Best given in the environment; never shown, never sent.
        "APCLOUDY_SECRET_KEY" Restart apcloudy_secret_key: Option<Secret> = SecretKey, json!(null);
        /// PEM file with root certificates for the backend, besides those that are trusted anyway.
        "APCLOUDY_CA_FILE" Restart apcloudy_ca_file: Option<PathBuf> = OptionalPath, json!(null);
        /// Which requests get a record: each failed attempt and each outcome (`final`), or every attempt, redirect,
        /// robots.txt, offsite and forbidden request besides (`all`).
        "APCLOUDY_REQUEST_RECORDS" Restart apcloudy_request_records: RequestRecords = Choice {
            of: &[("final", RequestRecords::Final), ("all", RequestRecords::All)], note: "" }, json!("final");
        /// Records of one batch; 1 or less: every record at once.
        "APCLOUDY_BATCH_SIZE" Restart apcloudy_batch_size: i64 = Whole::<i64>::between(-1_000_000, 1_000_000), json!(50);
        /// Longest time a record waits for its batch to fill.
        "APCLOUDY_FLUSH_INTERVAL" Restart apcloudy_flush_interval: Duration = Span::seconds(0.01, DAY), json!(10);
        /// Largest batch in bytes of JSON; a single larger record goes alone.
        "APCLOUDY_MAX_BATCH_BYTES" Restart apcloudy_max_batch_bytes: u64 = Bytes { min: KIB, max: GIB }, json!("1MiB");
        /// When the backend refuses all deliveries, as with a wrong key: crawl on and keep the records (`spool`), or `stop`.
        "APCLOUDY_ON_FATAL" Restart apcloudy_on_fatal: OnFatal = Choice {
            of: &[("spool", OnFatal::Spool), ("stop", OnFatal::Stop)], note: "" }, json!("spool");
        /// Time between two syncs of the spool to disk; a power cut may lose this much.
        "SPOOL_SYNC_MS" Restart spool_sync_ms: Duration = Span::millis(1.0, 60_000.0), json!(100);
        /// Disk for records that are not yet delivered; full, the crawl waits.
        "SPOOL_MAX_BYTES" Restart spool_max_bytes: u64 = Bytes { min: MIB, max: 1024 * TIB }, json!("1GiB");
        /// Time a crawl waits for a disk that refuses writes before it gives up.
        "DISK_WAIT" Restart disk_wait: Duration = Span::seconds(0.0, DAY), json!(60);
    }
    "Stopping and reloading" {
        /// Time running downloads get after a stop. With `CLOSE_TIMEOUT` at most 25 s.
        "GRACE" Restart grace: Duration = Span::seconds(0.0, 25.0), json!(10);
        /// Time for the last parses, reports, deliveries and files after that.
        "CLOSE_TIMEOUT" Restart close_timeout: Duration = Span::seconds(0.1, 25.0), json!(12);
        /// Follow changes of the settings file.
        "SETTINGS_WATCH" Restart settings_watch: bool = Flag, json!(true);
        /// Time between two looks at the settings file.
        "SETTINGS_POLL" Restart settings_poll: Duration = Span::seconds(0.05, DAY), json!(1);
    }
}

impl Settings {
    /// How pages are read: `HTML_ENGINE` and the bounds beside it.
    pub fn page_options(&self) -> PageOptions {
        let limits = Limits {
            depth: self.html_max_depth,
            nodes: self.html_max_nodes,
            attributes: self.html_max_attributes,
            steps_per_byte: self.html_steps_per_byte,
            memory_per_byte: self.html_memory_per_byte,
            ..Limits::default()
        };
        PageOptions::default().engine(self.html_engine).limits(limits)
    }

    /// All keys, in the order of the documentation.
    pub fn keys() -> &'static [Key] {
        &KEYS
    }

    /// The key of this name.
    pub fn key(name: &str) -> Option<&'static Key> {
        KEYS.iter().find(|key| key.name == name)
    }

    /// Requests that may be taken from the queue and not yet handled: `WINDOW_REQUESTS`, or twice
    /// `CONCURRENT_REQUESTS` plus 64 where that is 0.
    pub fn window_limit(&self) -> usize {
        match self.window_requests {
            0 => self.concurrent_requests.saturating_mul(2).saturating_add(64),
            given => given,
        }
    }
}

impl Default for Settings {
    fn default() -> Self {
        #[allow(clippy::expect_used, reason = "a test reads every default through its rule")]
        Self::read(|_| None).expect("the default of every key is allowed by its rule")
    }
}
