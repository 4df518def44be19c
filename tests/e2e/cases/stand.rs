//! A case from its file: the site it scripts, the crawl it asks for, and what came of both.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant, SystemTime};

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use serde_json::Value;

use crate::books_of_a_job::stat;
use crate::harness::{Ended, Folder, Running};
use crate::server::{Answer, Asked, Server};

/// One case of `tests/data/cases`.
pub(crate) struct Case {
    pub(crate) input: Value,
    pub(crate) expect: Value,
}

/// The sites of a case, on one loopback listener for all hosts and one for each port that is named.
pub(crate) struct Site {
    server: Server,
    ports: BTreeMap<u16, Server>,
    hosts: BTreeSet<String>,
}

/// A request to a site.
#[derive(Debug, Clone)]
pub(crate) struct Hit {
    /// As the `Host` header has it, without our own ports.
    pub(crate) host: String,
    pub(crate) target: String,
    pub(crate) at: Instant,
    pub(crate) headers: Vec<(String, String)>,
}

/// A folder to crawl in, with a site to crawl.
pub(crate) struct Stand {
    pub(crate) folder: Folder,
    pub(crate) site: Site,
    settings: Vec<String>,
}

/// How a crawl ended, and what it found.
pub(crate) struct Crawled {
    pub(crate) ended: Ended,
    pub(crate) items: Vec<Value>,
}

struct Route {
    host: String,
    port: Option<u16>,
    path: String,
    replies: Vec<Value>,
    given: AtomicUsize,
}

impl Case {
    /// The case whose file name begins with `id`.
    pub(crate) fn read(id: &str) -> Self {
        let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/data/cases");
        let mut files = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
        let path = files.find(|path| path.file_name().unwrap().to_str().unwrap().starts_with(id)).expect(id);
        let mut case: Value = serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap();
        Self { input: case["input"].take(), expect: case["expect"].take() }
    }

    /// Its sites, and a folder; robots.txt is not asked for unless the case says so.
    pub(crate) fn stand(&self) -> Stand {
        let stand = Stand::new(&self.input["server"], &self.hosts_of_start());
        let known = self.input["settings"].as_object().cloned().unwrap_or_default();
        let obeys = known.contains_key("ROBOTSTXT_OBEY");
        let settings = known.iter().map(|(name, value)| match value {
            Value::String(text) => format!("{name}={text}"),
            other => format!("{name}={other}"),
        });
        let stand = settings.fold(stand, |stand, setting| stand.with(&setting));
        if obeys { stand } else { stand.with("ROBOTSTXT_OBEY=false") }
    }

    /// Its start URLs.
    pub(crate) fn start(&self) -> Vec<String> {
        let urls = self.input["start"].as_array().unwrap().iter();
        urls.map(|start| start.as_str().or_else(|| start["url"].as_str()).unwrap().to_owned()).collect()
    }

    fn hosts_of_start(&self) -> BTreeSet<String> {
        let Some(start) = self.input["start"].as_array() else { return BTreeSet::new() };
        let urls = start.iter().filter_map(|url| url.as_str().or_else(|| url["url"].as_str()));
        urls.filter_map(|url| url::Url::parse(url).ok()?.host_str().map(str::to_owned)).collect()
    }
}

impl Stand {
    /// A stand for routes in the form of the cases' files, and for hosts besides those of the routes.
    pub(crate) fn new(routes: &Value, hosts: &BTreeSet<String>) -> Self {
        Self { folder: Folder::new(), site: Site::start(routes, hosts), settings: Vec::new() }
    }

    /// The same with a setting, `NAME=VALUE`.
    pub(crate) fn with(mut self, setting: &str) -> Self {
        self.settings.push(setting.to_owned());
        self
    }

    /// Starts the link checker over these URLs.
    pub(crate) fn begin(&self, urls: &[String], more: &[&str]) -> Running {
        let urls = urls.iter().map(|url| self.site.with_our_ports(url)).collect::<Vec<_>>().join(",");
        self.start(&[&["crawl", "links", "-a", &format!("urls={urls}")], more].concat())
    }

    /// Starts the program with the stand's hosts and settings.
    pub(crate) fn start(&self, arguments: &[&str]) -> Running {
        let hosts = format!("HOSTS={}", self.site.hosts());
        let mut all = arguments.to_vec();
        all.extend(["-O", "items.jsonl", "-s", &hosts]);
        for setting in &self.settings {
            all.extend(["-s", setting]);
        }
        self.folder.start(&all)
    }

    /// Crawls these URLs, following no link, and waits for the end.
    pub(crate) fn check(&self, urls: &[String]) -> Crawled {
        self.crawl(urls, &["-a", "follow=none", "-a", "excerpt=200"])
    }

    /// Crawls from these URLs on. Where nothing at all answered, the exit code says so (3).
    pub(crate) fn crawl(&self, urls: &[String], more: &[&str]) -> Crawled {
        let ended = self.begin(urls, more).end();
        let code = if ended.code == Some(3) { 3 } else { 0 };
        self.crawled(ended.with_code(code))
    }

    /// What a crawl that has ended found.
    pub(crate) fn crawled(&self, ended: Ended) -> Crawled {
        Crawled { ended, items: self.folder.items("items.jsonl") }
    }

    /// A stat of the last job, 0 if there is none of this name.
    pub(crate) fn stat(&self, name: &str) -> u64 {
        stat(&self.folder, name).unwrap_or(0)
    }
}

impl Crawled {
    /// The item of a URL, or of the one that led to it.
    #[track_caller]
    pub(crate) fn item(&self, url: &str) -> &Value {
        let is = |item: &&Value| item["url"] == url || item["redirected_from"] == url;
        let found: Vec<&Value> = self.items.iter().filter(is).collect();
        assert_eq!(found.len(), 1, "items of {url} among {:#?}\n{}", self.items, self.ended);
        found[0]
    }

    /// How many items are of answers, and how many of failures.
    pub(crate) fn answers_and_failures(&self) -> (usize, usize) {
        let failures = self.items.iter().filter(|item| !item["error"].is_null()).count();
        (self.items.len() - failures, failures)
    }
}

impl Site {
    fn start(routes: &Value, more: &BTreeSet<String>) -> Self {
        let routes: Arc<Vec<Route>> = Arc::new(routes.as_array().into_iter().flatten().map(Route::read).collect());
        let of_routes = routes.iter().map(|route| route.host.clone()).filter(|host| host != "*");
        let hosts = of_routes.chain(more.iter().cloned()).collect();
        let serve = |port: Option<u16>| {
            let routes = Arc::clone(&routes);
            Server::strict("127.0.0.1", move |asked| answer(&routes, port, asked))
        };
        let ports: BTreeSet<u16> = routes.iter().filter_map(|route| route.port).collect();
        Self { server: serve(None), ports: ports.into_iter().map(|port| (port, serve(Some(port)))).collect(), hosts }
    }

    /// The value of the setting `HOSTS`.
    fn hosts(&self) -> String {
        let address = format!("127.0.0.1:{}", self.server.port());
        serde_json::to_string(&self.hosts.iter().map(|host| (host, &address)).collect::<BTreeMap<_, _>>()).unwrap()
    }

    /// A URL of the case, with the port that stands in for the one it names.
    pub(crate) fn with_our_ports(&self, url: &str) -> String {
        let replace =
            |url: String, (port, server): (&u16, &Server)| url.replace(&format!(":{port}/"), &format!(":{}/", server.port()));
        self.ports.iter().fold(url.to_owned(), replace)
    }

    /// Every request, in order, with the ports the case names.
    pub(crate) fn hits(&self) -> Vec<Hit> {
        let of = |server: &Server, port: Option<u16>| -> Vec<Hit> {
            let hit = |asked: Asked| {
                let host = asked.header("host").unwrap_or_default().split(':').next().unwrap().to_owned();
                let host = port.map_or(host.clone(), |port| format!("{host}:{port}"));
                Hit { host, target: asked.target, at: asked.at, headers: asked.headers }
            };
            server.asked().into_iter().map(hit).collect()
        };
        let mut hits = of(&self.server, None);
        hits.extend(self.ports.iter().flat_map(|(port, server)| of(server, Some(*port))));
        hits.sort_by_key(|hit| hit.at);
        hits
    }

    /// The requests but those for robots.txt.
    pub(crate) fn pages(&self) -> Vec<Hit> {
        self.hits().into_iter().filter(|hit| hit.target != "/robots.txt").collect()
    }

    /// Host and target of each page request, in order.
    pub(crate) fn asked(&self) -> Vec<(String, String)> {
        self.pages().into_iter().map(|hit| (hit.host, hit.target)).collect()
    }

    /// The least time between two page requests.
    pub(crate) fn least_gap(&self) -> Duration {
        let pages = self.pages();
        pages.windows(2).map(|two| two[1].at - two[0].at).min().unwrap_or(Duration::MAX)
    }
}

impl Hit {
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_str())
    }
}

impl Route {
    fn read(route: &Value) -> Self {
        let host = route["host"].as_str().unwrap();
        let (host, port) = match host.split_once(':') {
            Some((host, port)) => (host, Some(port.parse().unwrap())),
            None => (host, None),
        };
        let replies = route["reply"].as_array().unwrap().clone();
        let path = route["path"].as_str().unwrap().to_owned();
        Self { host: host.to_owned(), port, path, replies, given: AtomicUsize::new(0) }
    }

    fn serves(&self, port: Option<u16>, asked: &Asked) -> bool {
        let host = asked.header("host").unwrap_or_default().split(':').next().unwrap_or_default();
        (self.host == "*" || (self.host == host && self.port == port)) && (self.path == "*" || self.path == asked.path())
    }

    /// The reply whose condition holds, or else the next one of the list; the last one repeats.
    fn reply(&self, asked: &Asked) -> &Value {
        if self.replies.iter().any(|reply| reply["when"].is_string()) {
            return self.replies.iter().find(|reply| holds(reply["when"].as_str().unwrap(), asked)).unwrap();
        }
        let n = self.given.fetch_add(1, Ordering::SeqCst);
        self.replies.get(n).unwrap_or_else(|| self.replies.last().unwrap())
    }
}

fn holds(condition: &str, asked: &Asked) -> bool {
    let cookies = asked.header("cookie").unwrap_or_default();
    let has = |cookie: &str| cookies.split("; ").any(|pair| pair == cookie || pair.split('=').next() == Some(cookie));
    match condition.split_once("cookie ").unwrap_or_else(|| panic!("unknown condition {condition:?}")) {
        ("no ", cookie) => !has(cookie),
        ("", cookie) => has(cookie),
        _ => panic!("unknown condition {condition:?}"),
    }
}

fn answer(routes: &[Route], port: Option<u16>, asked: &Asked) -> Answer {
    let exact = routes.iter().filter(|route| route.path != "*");
    let any = routes.iter().filter(|route| route.path == "*" && asked.path() != "/robots.txt");
    let Some(route) = exact.chain(any).find(|route| route.serves(port, asked)) else {
        return Answer::status(404);
    };
    let reply = route.reply(asked);
    let delay = Duration::from_millis(reply["delay_ms"].as_u64().unwrap_or(0));
    let bytes = |name: &str| reply[name].as_str().map(|text| BASE64_STANDARD.decode(text).unwrap());
    if let Some(raw) = bytes("raw_b64") {
        return Answer::Raw(raw).after(delay);
    }
    let status = u16::try_from(reply["status"].as_u64().unwrap()).unwrap();
    let header = |pair: &Value| {
        let value = pair[1].as_str().unwrap();
        let value = if value.starts_with("{now+2s") { http_date(Duration::from_secs(2)) } else { value.to_owned() };
        // Few, and known when the program ends.
        let name: &'static str = pair[0].as_str().unwrap().to_owned().leak();
        (name, value)
    };
    let headers = reply["headers"].as_array().into_iter().flatten().map(header).collect();
    if let Some(words) = reply["generate"].as_str() {
        assert!(words.contains("2 GiB of '#' lines"), "unknown body {words:?}");
        return Answer::Long {
            status,
            headers,
            first: b"User-agent: *\nDisallow: /no\n".to_vec(),
            then: hashes(),
            times: 1 << 16,
        };
    }
    let body = bytes("body_b64").unwrap_or_else(|| reply["body"].as_str().unwrap_or_default().as_bytes().to_vec());
    Answer::Whole(status, headers, body).after(delay)
}

/// 32 KiB of comment lines.
fn hashes() -> Vec<u8> {
    format!("#{}\n", "x".repeat(62)).repeat(512).into_bytes()
}

/// An HTTP-date so far from now.
pub(crate) fn http_date(ahead: Duration) -> String {
    let at = jiff::Timestamp::try_from(SystemTime::now() + ahead).unwrap();
    at.strftime("%a, %d %b %Y %H:%M:%S GMT").to_string()
}
