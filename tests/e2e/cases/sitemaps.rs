//! Sitemaps as servers send them.

use serde_json::{Value, json};

use super::stand::{Case, Stand};

#[test]
fn case_s01_a_sitemap_is_unpacked_as_often_as_it_was_packed() {
    let case = Case::read("S01");
    let page = json!({"host": "a.test", "path": "*", "reply": [{"status": 200, "headers": [["Content-Type", "text/html"]], "body": "ok"}]});
    let variants = case.input["variants"].as_object().unwrap();
    assert_eq!(variants.len(), 5);
    for (name, variant) in variants {
        let reply = json!({"status": 200, "headers": variant["headers"], "body_b64": variant["body_b64"]});
        let sitemap = json!({"host": "a.test", "path": variant["url"], "reply": [reply]});
        let stand = Stand::new(&Value::Array(vec![sitemap, page.clone()]), &[].into()).with("ROBOTSTXT_OBEY=false");
        let sitemaps = format!("sitemaps=http://a.test{}", variant["url"].as_str().unwrap());
        let ended = stand.start(&["crawl", "links", "-a", &sitemaps, "-a", "follow=none"]).end().with_code(0);
        let crawled = stand.crawled(ended);
        let mut urls: Vec<&str> = crawled.items.iter().map(|item| item["url"].as_str().unwrap()).collect();
        urls.sort_unstable();
        assert_eq!(json!(urls), case.expect["each_variant_urls"], "{name}: {}", crawled.ended);
    }
}
