//! Where a cache lies and what it shows; what it does with requests is tested with the chain.

#![allow(clippy::unwrap_used)]

use std::path::Path;

use super::*;

#[test]
fn a_cache_that_is_off_makes_nothing() {
    let dir = tempfile::tempdir().unwrap();
    let settings = Settings { data_dir: dir.path().join("data"), ..Settings::default() };
    assert!(HttpCache::open(&settings, "shop", &Stats::new()).unwrap().is_none());
    assert!(!dir.path().join("data").exists());
}

#[test]
fn each_spider_has_a_directory_of_its_own_below_data_dir_or_where_the_setting_says() {
    let at = |dir: &str, spider: &str| {
        let settings = Settings { data_dir: "/data".into(), httpcache_dir: dir.into(), ..Settings::default() };
        folder(&settings, spider)
    };
    assert_eq!(at("httpcache", "shop"), Path::new("/data/httpcache/shop"));
    assert_eq!(at("/fast/cache", "shop"), Path::new("/fast/cache/shop"));
    assert_eq!(at("c", "../a b.c"), Path::new("/data/c/%2E.%2Fa%20b.c"));
}

#[test]
fn a_url_on_disk_has_no_user_and_no_fragment() {
    let url = Url::parse("https://anna:canary@shop.example/p?page=1#top").unwrap();
    assert_eq!(bare(&url).as_str(), "https://shop.example/p?page=1");
}
