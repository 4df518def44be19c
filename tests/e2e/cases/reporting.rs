//! Items that the backend refuses.

use std::time::Duration;

use dragline::testkit::ScriptedWebhook;

use super::stand::Case;
use crate::apcloudy::{SECRET, start};
use crate::harness::Folder;
use crate::server::{Answer, Server};
use crate::user_crate::program;

const LARGE: usize = 49;
const BAD: usize = 100;
const ITEMS: usize = 121;

#[test]
fn case_w01_a_poison_item_costs_only_itself() {
    let case = Case::read("W01");
    let webhook = ScriptedWebhook::start(SECRET).unwrap();
    webhook.refuse_if(|body| match body {
        large if large.len() > 1 << 20 => Some(413),
        bad if bad.contains("\"bad\": 1") => Some(400),
        _ => None,
    });
    let site = Server::start(|asked| {
        let body = match asked.path()[1..].parse().unwrap_or(0) {
            LARGE => format!("{{\"text\": \"{}\"}}", "x".repeat(2 << 20)),
            BAD => "{\"bad\": 1}".to_owned(),
            n => format!("{{\"n\": {n}}}"),
        };
        Answer::Whole(200, vec![("content-type", "application/json".to_owned())], body.into_bytes())
    });
    let folder = Folder::new();
    let base = format!("base={}", site.url(""));
    let paths = format!("paths={}", (0..ITEMS).map(|n| format!("/{n}")).collect::<Vec<_>>().join(","));
    let batch = format!("APCLOUDY_BATCH_SIZE={}", case.input["settings"]["APCLOUDY_BATCH_SIZE"]);
    let call = ["crawl", "paths", "-a", &base, "-a", &paths, "-a", "JOB_ID=w01", "-s", &batch, "-s", "ROBOTSTXT_OBEY=false"];
    let ended = start(&folder, program(), &webhook.url(), &call).end().with_code(4);
    let delivered = webhook.records().items.len() as u64;
    assert_eq!(delivered, case.expect["delivered"].as_u64().unwrap(), "{ended}");
    assert!(ended.row("items").contains("121 kept = 119 delivered + 0 in the spool + 2 refused"), "{ended}");
    let calls = webhook.calls() as u64;
    assert!(calls <= case.expect["requests_to_sink_max"].as_u64().unwrap(), "{calls} calls");
    for status in ["413", "400"] {
        let named = ended.err.lines().any(|line| line.contains("ERROR") && line.contains(status) && line.contains("rejected"));
        assert!(named, "{status}: {ended}");
    }
    assert!(!ended.err.contains("canary-"), "{ended}");
    assert!(ended.took < Duration::from_secs(60), "{ended}");
}
