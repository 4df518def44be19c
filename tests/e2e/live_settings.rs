//! Settings that change while a crawl runs.

use std::time::{Duration, Instant};

use super::harness::Folder;
use super::server::{Answer, Server};

/// The times between requests, once `since` is over.
fn gaps(server: &Server, since: Instant) -> Vec<Duration> {
    let mut times: Vec<Instant> = server.asked().iter().map(|asked| asked.at).filter(|at| *at > since).collect();
    times.sort_unstable();
    times.windows(2).map(|pair| pair[1] - pair[0]).collect()
}

#[test]
fn a_changed_settings_file_changes_the_crawl() {
    let server = Server::start(|asked| {
        let path = asked.path().trim_end_matches('/').to_owned();
        let links: String = (0..3).map(|n| format!("<a href=\"{path}/{n}\">{n}</a>")).collect();
        // The link home was seen before, which is said at DEBUG alone.
        Answer::html(format!("{links}<a href=\"/\">home</a>"))
    });
    let folder = Folder::new();
    let slow = "SETTINGS_POLL = 0.1\nDOWNLOAD_DELAY = 0.4\nRANDOMIZE_DOWNLOAD_DELAY = false\nCONCURRENT_REQUESTS = 1\n";
    folder.write("dragline.toml", slow);
    let url = format!("url={}", server.url("/"));
    let running = folder.start(&["crawl", "bench", "-a", &url]);
    let started = Instant::now();
    running.until("pages with the delay", || server.asked().len() >= 6);
    let before = gaps(&server, started);
    // The one between robots.txt and the first page may be shorter: nothing was sent before.
    assert!(before.iter().skip(1).all(|gap| *gap >= Duration::from_millis(330)), "{before:?}");
    assert!(!running.err().contains("DEBUG"));

    folder.write("dragline.toml", "SETTINGS_POLL = 0.1\nDOWNLOAD_DELAY = 0\nCONCURRENT_REQUESTS = 4\nLOG_LEVEL = \"DEBUG\"\n");
    running.says("settings changed");
    std::thread::sleep(Duration::from_secs(1));
    let fast_from = Instant::now();
    let had = server.asked().len();
    running.until("pages without the delay", || server.asked().len() >= had + 40);
    assert!(fast_from.elapsed() < Duration::from_secs(8), "40 pages took {:?}", fast_from.elapsed());
    running.says("DEBUG");

    // What is wrong or needs a restart is said, and the crawl goes on with what it has.
    folder.write("dragline.toml", "SETTINGS_POLL = 0.1\nDOWNLOAD_DELAI = 1\n");
    running.says("did you mean DOWNLOAD_DELAY");
    running.says("the settings stay as they are");
    folder.write(
        "dragline.toml",
        "SETTINGS_POLL = 0.1\nDOWNLOAD_MAXSIZE = \"1MiB\"\nDOWNLOAD_DELAY = 0.4\nRANDOMIZE_DOWNLOAD_DELAY = false\nCONCURRENT_REQUESTS = 1\n",
    );
    running.says("need a restart");
    std::thread::sleep(Duration::from_secs(1));
    let slow_from = Instant::now();
    std::thread::sleep(Duration::from_millis(2500));
    let after = gaps(&server, slow_from);
    assert!(!after.is_empty() && after.iter().all(|gap| *gap >= Duration::from_millis(330)), "{after:?}");

    running.signal(rustix::process::Signal::INT);
    let ended = running.end().with_code(2);
    let line = ended.err.lines().find(|line| line.contains("settings changed")).unwrap();
    for key in ["CONCURRENT_REQUESTS", "DOWNLOAD_DELAY", "LOG_LEVEL"] {
        assert!(line.contains(key), "{line}");
    }
}
