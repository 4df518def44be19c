//! The control plane's process is killed while a crawl leases from it, and another one takes its port.

use std::time::Duration;

use super::books_of_a_job::stat;
use super::harness::Folder;
use super::plane::{Plane, Site, file, settings};
use super::server::{Answer, Server};

const PAGES: usize = 300;

#[test]
fn a_plane_whose_process_is_killed_costs_what_was_under_way_and_is_counted() {
    let (folder, place) = (Folder::new(), Folder::new());
    let server = Server::start(|asked| match asked.path() {
        "/" => Answer::html((0..PAGES).map(|n| format!("<a href=\"/{n}\">{n}</a>")).collect::<String>()),
        path => Answer::html(format!("<title>{path}</title>")).after(Duration::from_millis(100)),
    });
    let text = file(&[Site::new("shop", 4, 2)], "");
    let plane = Plane::start(&place, &text);
    // More requests than leases, so that asks wait at the plane when it dies.
    let more = "CONCURRENT_REQUESTS = 16\nCONCURRENT_REQUESTS_PER_DOMAIN = 16\nSPINNERET_WAIT_MS = 3000\nROBOTSTXT_OBEY = false";
    folder.write("dragline.toml", &settings(&plane.url(), &[("127.0.0.1", "shop")], more));
    let running = folder.start(&["crawl", "bench", "-a", &format!("url={}", server.url("/")), "-O", "items.jsonl"]);
    running.until("a part of the pages", || server.asked().len() > 60);
    let address = plane.address.clone();
    plane.kill();
    std::thread::sleep(Duration::from_secs(2));
    let plane = Plane::at(&place, &text, &address);
    let ended = running.end().with_code(0);
    ended.says(&["the control plane does not answer", "the control plane answers again"]);
    assert_eq!(folder.items("items.jsonl").len(), PAGES + 1, "{ended}");

    let asked = server.asked();
    for asked in &asked {
        assert!(asked.header("x-reader").is_some_and(|value| value.starts_with("canary-")), "never without a lease: {asked:?}");
    }
    // Each attempt was told once: the first plane, or the second one, which does not know the leases of the first.
    let count = |name: &str| stat(&folder, name).unwrap_or(0);
    let (reports, unknown) = (count("reporter/reports"), count("reporter/unknown_to_plane"));
    assert_eq!((reports + unknown, count("reporter/undelivered")), (asked.len() as u64, 0), "{ended}");
    assert!(unknown > 0 && count("reporter/rejected") == unknown, "{ended}");
    assert!(count("lease/acquire_ambiguous") > 0, "asks that waited at the plane: {ended}");
    let ledger = plane.ledger("shop");
    assert_eq!(
        (&ledger["acquired"], &ledger["open"], &ledger["expired"]),
        (&ledger["released"], &0.into(), &0.into()),
        "{ledger}"
    );
    assert!(ledger["reports_accepted"].as_u64().unwrap() < reports, "the first plane had some: {ledger}");
}
