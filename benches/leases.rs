//! What leasing over a wire costs a whole crawl: the same crawl with the plane in the process and with one behind a wire of 5 ms,
//! in turns. 64 requests at once, 64 identities of 4 leases each, no proxies.
//!
//! `cargo bench --bench leases`. Without cargo's `--bench` it crawls a few pages once, so that it cannot rot.
#![allow(missing_docs, clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing)]

use std::fmt::Write as _;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use dragline::demo::{Delays, Site, SiteOptions};
use dragline::testkit::ScriptedPlane;

/// The way to the plane and back.
const WIRE: Duration = Duration::from_millis(5);
const ROUNDS: usize = 5;

fn main() {
    let is_measuring = std::env::args().any(|argument| argument == "--bench");
    let (products, rounds) = if is_measuring { (4_000, ROUNDS) } else { (60, 1) };
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
    // Pages of 20 ms, none slower: what is compared is the way of leases, not the site's moods.
    let every = Duration::from_millis(20);
    let delays = Delays { every, slow_from: Duration::ZERO, slow_to: Duration::ZERO };
    let site = runtime.block_on(Site::start(SiteOptions { products, delays, ..SiteOptions::default() })).unwrap();
    let identities = identities();
    let plane = ScriptedPlane::start(&identities).unwrap();
    plane.set_delay(WIRE / 2);
    let folder = tempfile::tempdir().unwrap();
    let write = |name: &str, text: &str| std::fs::write(folder.path().join(name), text).unwrap();
    write("identities.toml", &identities);
    let rule = "\n[[LEASES]]\ndomains = [\"127.0.0.1\"]\nsite = \"shop\"\nclient = \"web\"\nendpoint_group = \"_default\"\n";
    // Without retries: their waits at the end would hide what is compared.
    let common = "RETRY_ENABLED = false\nCONCURRENT_REQUESTS = 64\nCONCURRENT_REQUESTS_PER_DOMAIN = 64\nSTATS_DUMP = false\nROBOTSTXT_OBEY = false\n";
    write("inside.toml", &format!("{common}IDENTITIES = \"identities.toml\"\n{rule}"));
    let remote = format!("SPINNERET_URL = \"{}\"\nSPINNERET_TOKEN = \"{}\"\n", plane.url(), plane.token());
    write("wire.toml", &format!("{common}{remote}{rule}"));
    let mut times = [Vec::new(), Vec::new()];
    for _ in 0..rounds {
        for (at, settings) in ["inside.toml", "wire.toml"].into_iter().enumerate() {
            times[at].push(crawl(folder.path(), settings, site.url().as_str()));
        }
    }
    assert!(plane.ledger().balances() && plane.ledger().total().open == 0, "{:?}", plane.ledger().total());
    let [inside, wire] = times.map(|mut times| {
        times.sort_unstable();
        times[times.len() / 2]
    });
    if is_measuring {
        println!(
            "a crawl with the plane inside {:>10.2} s, over a wire of {WIRE:?} {:>10.2} s",
            inside.as_secs_f64(),
            wire.as_secs_f64()
        );
        println!("throughput over the wire      {:>10.3} of that inside", inside.as_secs_f64() / wire.as_secs_f64());
    }
}

fn identities() -> String {
    let mut text = String::from(
        "[[tokens]]\nname = \"node\"\ntoken = \"spn_0123456789abcdefghijklmnopqrstuvwxyzABCDEFG\"\nscopes = [\"lease:acquire\", \"report:write\", \"config:read\"]\n\n[[sites]]\nname = \"shop\"\nclients = [\"web\"]\ncooldown_429 = \"1s\"\nrotation = { max_concurrent_leases = 4 }\n\n",
    );
    for n in 0..64 {
        write!(text, "[[sites.identities]]\nname = \"reader-{n}\"\ncookies = {{ session = \"s-{n}\" }}\n\n").unwrap();
    }
    text
}

fn crawl(folder: &Path, settings: &str, url: &str) -> Duration {
    let began = Instant::now();
    let url = format!("url={url}");
    let status = Command::new(env!("CARGO_BIN_EXE_dragline"))
        .current_dir(folder)
        .env_clear()
        .env("HOME", folder)
        .args(["crawl", "bench", "-c", settings, "-a", &url, "-O", "items.jsonl", "--nolog"])
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status()
        .unwrap();
    assert_eq!(status.code(), Some(0), "{settings}");
    began.elapsed()
}
