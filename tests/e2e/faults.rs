//! A server that does everything wrong: the crawl ends, and says of each page what happened.

use std::collections::{BTreeMap, BTreeSet};
use std::io::Write as _;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use super::books_of_a_job::requests;
use super::harness::Folder;
use super::server::{Answer, Server};
use super::user_crate::start;

fn bomb(size: usize) -> Vec<u8> {
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::best());
    let zeros = vec![0; 1 << 20];
    for _ in 0..size >> 20 {
        encoder.write_all(&zeros).unwrap();
    }
    encoder.finish().unwrap()
}

#[test]
fn each_fault_has_its_name_in_the_records() {
    let bomb = bomb(256 << 20);
    let limited = AtomicUsize::new(0);
    let gzip = |body: Vec<u8>| Answer::Whole(200, vec![("content-encoding", "gzip".to_owned())], body);
    let server = Server::start(move |asked| match asked.path() {
        "/reset" => Answer::Reset,
        "/short" => Answer::Raw(b"HTTP/1.1 200 OK\r\ncontent-length: 1000\r\n\r\nnot all of it".to_vec()),
        "/chunks" => Answer::Raw(b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n5\r\nhello\r\n".to_vec()),
        "/noise" => Answer::Raw(b"\x00\x01\x02 this is not HTTP\r\n\r\n".to_vec()),
        "/nothing" => Answer::Raw(Vec::new()),
        "/hang" => Answer::Silence(Duration::from_secs(20)),
        "/bomb" => gzip(bomb.clone()),
        "/torn" => gzip(bomb[..200].to_vec()),
        "/loop" => Answer::moved("/loop2"),
        "/loop2" => Answer::moved("/loop"),
        "/nowhere" => Answer::moved("ftp://example.invalid/"),
        "/limited" if limited.fetch_add(1, Ordering::Relaxed) == 0 => {
            Answer::Whole(429, vec![("retry-after", "1".to_owned())], Vec::new())
        }
        "/late" => Answer::status(503),
        _ => Answer::html("<title>fine</title>"),
    });
    let folder = Folder::new();
    let all = [
        "/reset", "/short", "/chunks", "/noise", "/nothing", "/hang", "/bomb", "/torn", "/loop", "/nowhere", "/limited", "/late",
        "/fine",
    ];
    let (base, paths) = (format!("base={}", server.url("")), format!("paths={}", all.join(",")));
    let mut call = vec!["crawl", "paths", "-a", &base, "-a", &paths, "-o", "items.jsonl"];
    for pair in ["RETRY_BACKOFF=0.05", "RETRY_TIMES=1", "DOWNLOAD_TIMEOUT=2", "DOWNLOAD_MAXSIZE=8MiB", "REDIRECT_MAX_TIMES=5"] {
        call.extend(["-s", pair]);
    }
    let ended = start(&folder, &call).end().with_code(0);
    assert!(ended.high_water < 150 * 1024, "a bomb of 256 MiB took {} KiB", ended.high_water);

    let items = folder.items("items.jsonl");
    let outcomes: BTreeMap<&str, &str> =
        items.iter().map(|item| (item["path"].as_str().unwrap(), item["failed"].as_str().unwrap_or("handled"))).collect();
    let expected: BTreeMap<&str, &str> = [
        ("/reset", "lost"),
        ("/short", "data_loss"),
        ("/chunks", "data_loss"),
        ("/noise", "bad_reply"),
        ("/nothing", "lost"),
        ("/hang", "timeout"),
        ("/bomb", "too_large"),
        ("/torn", "data_loss"),
        ("/loop", "redirect_limit"),
        ("/nowhere", "redirect_target"),
        ("/limited", "handled"),
        ("/late", "http_status"),
        ("/fine", "handled"),
    ]
    .into();
    assert_eq!(outcomes, expected, "{ended}");
    for (path, times) in [("/reset", 2), ("/hang", 2), ("/bomb", 1), ("/limited", 2), ("/late", 2), ("/fine", 1)] {
        assert_eq!(server.times(path), times, "{path}");
    }
    let asked = server.asked();
    let limited: Vec<_> = asked.iter().filter(|asked| asked.path() == "/limited").map(|asked| asked.at).collect();
    assert!(limited[1] - limited[0] >= Duration::from_millis(950), "Retry-After is kept: {:?}", limited[1] - limited[0]);

    let records = requests(&folder);
    let class = |path: &str| {
        let of_path = records.iter().filter(|record| record.url == server.url(path) && record.error.is_some());
        of_path.filter_map(|record| record.error.as_deref()?.split(':').next().map(str::to_owned)).collect::<BTreeSet<_>>()
    };
    for (path, expected) in [
        ("/reset", "DownloadFailedError"),
        ("/short", "ResponseDataLossError"),
        ("/hang", "DownloadTimeoutError"),
        ("/bomb", "DownloadCancelledError"),
    ] {
        assert_eq!(class(path), BTreeSet::from([expected.to_owned()]), "{path}: {records:?}");
    }
}

#[test]
fn each_identity_keeps_its_own_cookies() {
    let number = AtomicUsize::new(0);
    let server = Server::start(move |asked| {
        if asked.path() == "/" {
            return Answer::html((0..40).map(|n| format!("<a href=\"/{n}\">{n}</a>")).collect::<String>());
        }
        let own = asked.header("cookie").is_some_and(|cookie| cookie.contains("visit="));
        let mut headers = vec![("content-type", "text/html".to_owned())];
        if !own {
            let who = asked.header("x-who").unwrap_or("nobody");
            headers.push(("set-cookie", format!("visit={who}-{}; Path=/", number.fetch_add(1, Ordering::Relaxed))));
        }
        Answer::Whole(200, headers, b"<title>x</title>".to_vec()).after(Duration::from_millis(10))
    });
    let folder = Folder::new();
    folder.write_secret(
        "identities.toml",
        "[[sites]]\nname = \"x\"\n[[sites.identities]]\nname = \"one\"\nheaders = { X-Who = \"one\" }\n\
         [[sites.identities]]\nname = \"two\"\nheaders = { X-Who = \"two\" }\n",
    );
    folder.write(
        "dragline.toml",
        "IDENTITIES = \"identities.toml\"\n[[LEASES]]\ndomains = [\"127.0.0.1\"]\nsite = \"x\"\nclient = \"web\"\n",
    );
    folder.run(&["crawl", "bench", "-a", &format!("url={}", server.url("/"))]).with_code(0);
    let mut visits: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    for asked in server.asked().iter().filter(|asked| asked.path() != "/robots.txt") {
        let who = asked.header("x-who").unwrap().to_owned();
        if let Some(cookie) = asked.header("cookie") {
            visits.entry(who).or_default().insert(cookie.to_owned());
        }
    }
    assert_eq!(visits.len(), 2, "{visits:?}");
    for (who, cookies) in &visits {
        assert!(cookies.iter().all(|cookie| cookie.starts_with(&format!("visit={who}-"))), "{visits:?}");
        assert_eq!(cookies.len(), 1, "one jar, one cookie: {visits:?}");
    }
}

#[test]
fn an_identity_that_was_busy_for_long_is_used_again_soon() {
    const SLOW: Duration = Duration::from_secs(8);
    let server = Server::start(|asked| match asked.path() {
        "/" => Answer::html("<a href=\"/slow\">x</a><a href=\"/a\">x</a><a href=\"/b\">x</a>"),
        "/slow" => Answer::html("<title>x</title>").after(SLOW),
        _ => Answer::html("<title>x</title>"),
    });
    let folder = Folder::new();
    folder.write_secret("identities.toml", "[[sites]]\nname = \"x\"\n[[sites.identities]]\nname = \"one\"\n");
    let rule = "LEASES=[{\"domains\": [\"127.0.0.1\"], \"site\": \"x\", \"client\": \"web\"}]";
    let url = format!("url={}", server.url("/"));
    folder.run(&["crawl", "bench", "-a", &url, "-s", "IDENTITIES=identities.toml", "-s", rule]).with_code(0);
    let asked = server.asked();
    let slow = asked.iter().find(|asked| asked.path() == "/slow").unwrap().at;
    // One lease at a time: what was not asked for before the slow page comes after it.
    let after: Vec<Duration> = asked.iter().filter(|asked| asked.at > slow).map(|asked| asked.at - slow).collect();
    assert!(after.iter().all(|since| *since >= SLOW), "two pages at once: {after:?}");
    assert!(after.iter().all(|since| *since < SLOW + Duration::from_secs(4)), "{after:?}");
}
