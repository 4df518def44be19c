//! `kill -9`: what was kept is still there, and the next crawl says where.

use rustix::process::Signal;

use super::harness::{Folder, Shop};

#[test]
fn a_killed_crawl_is_named_by_the_next_one_and_holds_nothing_up() {
    let folder = Folder::new();
    let shop = Shop::start(&folder, &["--products", "200", "--latency", "30"]);
    let url = format!("url={}", shop.url);
    // Batches that never fill: everything is still in the spool.
    let running = folder.start(&[
        "crawl",
        "bookshop",
        "-a",
        &url,
        "-o",
        "a.jsonl",
        "-s",
        "APCLOUDY_BATCH_SIZE=100000",
        "-s",
        "APCLOUDY_FLUSH_INTERVAL=600",
    ]);
    running.until("some items", || std::fs::read_to_string(folder.file("a.jsonl")).is_ok_and(|text| text.lines().count() > 5));
    running.signal(Signal::KILL);
    let killed = running.end();
    assert_eq!(killed.code, None);

    let spools: Vec<_> = folder
        .file(".dragline/spool")
        .read_dir()
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    assert_eq!(spools.len(), 1, "{spools:?}");
    let next = folder.run(&["crawl", "bookshop", "-a", &url, "-o", "a.jsonl", "-s", "CLOSESPIDER_ITEMCOUNT=5"]).with_code(0);
    next.says(&["an earlier run left records that were not delivered", &spools[0]]);
    let left: Vec<_> = folder
        .file(".dragline/spool")
        .read_dir()
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    assert_eq!(left, spools, "what was left stays, the new one's is gone");
    // The feed of the killed crawl was cut at its last whole line and goes on after it.
    assert!(folder.items("a.jsonl").len() > 10);
}
