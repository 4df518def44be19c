//! `new` and `genspider`: what they write builds and crawls.

use super::harness::{Folder, Running, Shop};
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

    let program = build(&project.join("Cargo.toml"), "e2e-shop");
    assert!(program.starts_with(target()));
    let call = |arguments: &[&str]| {
        let mut command = folder.command_of(&program, arguments);
        command.current_dir(&project);
        Running::of(command).end()
    };
    let listed = call(&["list"]);
    assert_eq!((listed.code, listed.out.as_str()), (Some(0), "books\nmapped\nnews\nruled\n"), "{listed}");

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
}

#[test]
fn genspider_outside_a_project_says_what_to_do() {
    let folder = Folder::new();
    let said = folder.refused(&["genspider", "news", "example.org"]);
    assert!(said.contains("new NAME"), "{said}");
    let said = folder.refused(&["new", "test"]);
    assert!(said.contains("cannot name a project"), "{said}");
}
