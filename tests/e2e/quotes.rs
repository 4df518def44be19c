//! The quotes spider against a site made of the same parts as the public one.

use std::collections::BTreeSet;
use std::time::{Duration, Instant};

use dragline::demo::quotes::{QuotesOptions, all, authors, start};

use super::harness::Folder;

#[test]
fn the_quotes_spider_takes_every_quote_and_every_author() {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
    let options = QuotesOptions { pages: 3, ..QuotesOptions::default() };
    let site = runtime.block_on(start(options.clone())).unwrap();
    let folder = Folder::new();
    let started = Instant::now();
    let ended = folder.run(&["crawl", "quotes", "-a", &format!("url={}", site.url()), "-O", "quotes.jsonl"]).with_code(0);
    runtime.block_on(site.stop());

    let items = folder.items("quotes.jsonl");
    let found: Vec<(String, String, Vec<String>)> = items
        .iter()
        .filter(|item| item["kind"] == "quote")
        .map(|item| {
            let text = |name: &str| item[name].as_str().unwrap().to_owned();
            let tags = item["tags"].as_array().unwrap().iter().map(|tag| tag.as_str().unwrap().to_owned());
            (text("text"), text("author"), tags.collect())
        })
        .collect();
    let expected: Vec<(String, String, Vec<String>)> = all(&options)
        .into_iter()
        .map(|quote| (quote.text, quote.author, quote.tags.into_iter().map(str::to_owned).collect()))
        .collect();
    // The pages follow one another, each found on the one before.
    assert_eq!(found, expected);
    let found: BTreeSet<(&str, &str, &str)> = items
        .iter()
        .filter(|item| item["kind"] == "author")
        .map(|item| {
            assert!(item["description"].as_str().unwrap().len() > 20);
            (item["name"].as_str().unwrap(), item["born"].as_str().unwrap(), item["birthplace"].as_str().unwrap())
        })
        .collect();
    let known = authors(&options);
    let expected: BTreeSet<(&str, &str, &str)> = known
        .iter()
        .map(|author| (author.name.as_str(), author.born_date.as_str(), author.born_location.trim_start_matches("in ")))
        .collect();
    assert_eq!(found, expected);
    // The spider's own delay of 0.1 s, varied by half, between pages of one host.
    let pages = u32::try_from(3 + expected.len()).unwrap();
    assert!(started.elapsed() > Duration::from_millis(50) * (pages - 1), "{ended}");
}
