//! `dragline demo`: works in an empty folder, whatever surrounds it.

use std::collections::BTreeSet;
use std::time::Duration;

use super::harness::{Folder, Running};

#[test]
fn the_demo_runs_in_a_hostile_place() {
    let folder = Folder::new();
    folder.write("dragline.toml", "this = [is broken");
    let mut command = folder.command(&["demo", "--products", "120"]);
    command.envs([
        ("APCLOUDY_URL", "https://sink.invalid/hook"),
        ("APCLOUDY_TOKEN", "x"),
        ("SPINNERET_URL", "https://plane.invalid"),
        ("JOB_ID", ""),
        ("DRAGLINE_LOG_LEVEL", "LOUD"),
        ("DRAGLINE_NO_SUCH_SETTING", "1"),
        ("HTTP_PROXY", "http://127.0.0.1:1"),
        ("http_proxy", "http://127.0.0.1:1"),
        ("ALL_PROXY", "http://127.0.0.1:1"),
    ]);
    let ended = Running::of(command).end().with_code(0);
    assert!(ended.took < Duration::from_secs(60), "{ended}");

    ended.says(&["finished: bookshop, job ", "(exit code 0: finished)", "118 crawled, 118 can be seen in the shop"]);
    let shown: Vec<serde_json::Value> = ended.out.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(shown.len(), 3, "{ended}");
    assert!(shown.iter().all(|item| item["kind"] == "product" && item["title"].is_string()), "{ended}");

    let books = folder.items(".dragline/demo/items.jsonl");
    let addresses: BTreeSet<&str> = books.iter().map(|book| book["url"].as_str().unwrap()).collect();
    assert_eq!(addresses.len(), books.len(), "each item once");
    assert!(!folder.file(".dragline/spool").read_dir().unwrap().any(|_| true), "nothing is left to deliver");
}

#[test]
fn the_demo_is_done_by_all_its_identities() {
    let folder = Folder::new();
    // Four pages that answer 429 at first: more than there are identities.
    let ended = folder.run(&["demo", "-n", "400"]).with_code(0);
    ended.says(&["identities of .dragline/demo/identities.toml", "396 crawled, 396 can be seen in the shop"]);
    assert!(ended.took < Duration::from_secs(45), "{ended}");
    let text = folder.read(".dragline/demo/identities.toml");
    assert_eq!(text.lines().filter(|line| *line == "[[sites.identities]]").count(), 3);
    // Who came is seen by the shop alone; a copy of the demo's identities crawls one that counts them.
    let server = super::server::Server::start(|asked| {
        if asked.path() == "/" {
            let links: String = (0..30).map(|n| format!("<a href=\"/p/{n}\">{n}</a>")).collect();
            return super::server::Answer::html(links);
        }
        super::server::Answer::html("<title>x</title>").after(Duration::from_millis(20))
    });
    folder.write_secret("identities.toml", &text);
    folder.write(
        "dragline.toml",
        "IDENTITIES = \"identities.toml\"\n[[LEASES]]\ndomains = [\"127.0.0.1\"]\nsite = \"bookshop\"\nclient = \"web\"\n",
    );
    folder.run(&["crawl", "bench", "-a", &format!("url={}", server.url("/"))]).with_code(0);
    let asked = server.asked();
    let readers: BTreeSet<&str> = asked.iter().filter_map(|asked| asked.header("x-reader")).collect();
    assert_eq!(readers.len(), 3, "{readers:?}");
    for asked in &asked {
        let number = asked.header("x-reader").unwrap().trim_start_matches("demo-reader-");
        assert_eq!(asked.header("cookie"), Some(format!("session=demo-session-{number}").as_str()), "{asked:?}");
    }
}
