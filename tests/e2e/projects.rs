//! `new` and `genspider`: what they write builds and crawls.

use serde_json::{Value, json};

use super::harness::{Folder, Running, Shop};
use super::server::{Answer, Server};
use super::user_crate::{build, target};

#[test]
fn a_new_project_builds_and_crawls_the_demo_shop() {
    let folder = Folder::new();
    // A name of its own: programs of all projects lie beside each other in the shared target folder.
    let made = folder.run(&["new", "e2e-shop", "--dragline-path", env!("CARGO_MANIFEST_DIR")]);
    assert_eq!(made.code, Some(0), "{made}");
    assert!(made.out.contains("cd ") && made.out.contains("e2e-shop"), "{made}");
    let project = folder.file("e2e-shop");
    let mut genspider = folder.command(&["genspider", "news", "example.org"]);
    genspider.current_dir(&project);
    let added = Running::of(genspider).end();
    assert_eq!(added.code, Some(0), "{added}");
    assert!(added.out.contains("spiders/news.rs"), "{added}");
    for (template, name) in [("crawl", "ruled"), ("sitemap", "mapped")] {
        let mut genspider = folder.command(&["genspider", "-t", template, name, "http://127.0.0.1/"]);
        genspider.current_dir(&project);
        assert_eq!(Running::of(genspider).end().code, Some(0));
    }
    for template in ["csvfeed", "xmlfeed"] {
        let mut genspider = folder.command(&["genspider", "-t", template, &format!("a-{template}"), "http://127.0.0.1/feed"]);
        genspider.current_dir(&project);
        assert_eq!(Running::of(genspider).end().code, Some(0), "{template}");
    }

    let program = build(&project.join("Cargo.toml"), "e2e-shop");
    assert!(program.starts_with(target()));
    let call = |arguments: &[&str]| {
        let mut command = folder.command_of(&program, arguments);
        command.current_dir(&project);
        Running::of(command).end()
    };
    let listed = call(&["list"]);
    let spiders = "a-csvfeed\na-xmlfeed\nbooks\nmapped\nnews\nruled\n";
    assert_eq!((listed.code, listed.out.as_str()), (Some(0), spiders), "{listed}");

    let shop = Shop::start(&folder, &["--products", "60", "--fast"]);
    let ended = call(&["crawl", "books", "-a", &format!("url={}", shop.url), "-o", "books.jsonl", "-s", "RETRY_BACKOFF=0.1"])
        .with_code(0);
    ended.says(&["settings config/dragline.toml"]);
    let truth = shop.json("__truth");
    let mut expected: Vec<(String, String)> = truth["products"]
        .as_array()
        .unwrap()
        .iter()
        .map(|product| (product["url"].as_str().unwrap().to_owned(), product["title"].as_str().unwrap().to_owned()))
        .collect();
    let mut found: Vec<(String, String)> = folder
        .items("e2e-shop/books.jsonl")
        .iter()
        .map(|book| (book["url"].as_str().unwrap().to_owned(), book["title"].as_str().unwrap().to_owned()))
        .collect();
    expected.sort_unstable();
    found.sort_unstable();
    assert_eq!(found, expected);

    call(&["crawl", "mapped", "-a", &format!("url={}", shop.url), "-o", "mapped.jsonl", "-s", "RETRY_BACKOFF=0.1"]).with_code(0);
    let mapped = folder.items("e2e-shop/mapped.jsonl");
    for (url, _) in &expected {
        assert!(mapped.iter().any(|page| page["url"] == url.as_str()), "{url} is in a sitemap");
    }

    let site = Server::start(|asked| {
        match asked.path() {
        "/stock.csv" => whole("text/csv; charset=iso-8859-1", b"title,stock\r\nCaf\xe9,1\r\nbroken\r\n\"a, b\",2\r\n"),
        "/rss.xml" => whole(
            "application/rss+xml",
            b"<rss><channel><title>no</title><item><title>One &amp; all</title><category>x</category></item><item/></channel></rss>",
        ),
        _ => Answer::status(404),
    }
    });
    for (spider, path, items) in [
        ("a-csvfeed", "/stock.csv", json!([{"stock": "1", "title": "Caf\u{e9}"}, {"stock": "2", "title": "a, b"}])),
        (
            "a-xmlfeed",
            "/rss.xml",
            json!([
                {"title": "One & all", "link": null, "image": null, "categories": ["x"]},
                {"title": null, "link": null, "image": null, "categories": []},
            ]),
        ),
    ] {
        let feed = format!("{spider}.jsonl");
        call(&["crawl", spider, "-a", &format!("url={}", site.url(path)), "-o", &feed]).with_code(0);
        assert_eq!(Value::Array(folder.items(&format!("e2e-shop/{feed}"))), items, "{spider}");
    }
}

fn whole(kind: &str, body: &[u8]) -> Answer {
    Answer::Whole(200, vec![("content-type", kind.to_owned())], body.to_vec())
}

#[test]
fn genspider_outside_a_project_says_what_to_do() {
    let folder = Folder::new();
    let said = folder.refused(&["genspider", "news", "example.org"]);
    assert!(said.contains("new NAME"), "{said}");
    let said = folder.refused(&["new", "test"]);
    assert!(said.contains("cannot name a project"), "{said}");
}
