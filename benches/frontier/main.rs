//! What a frontier of millions costs: time for each offer, pull and settle, memory and disk for each request that is
//! queued, each URL that was seen and each host that is known, at two sizes.
//!
//! `cargo bench --bench frontier` measures one million requests; `-- --full` ten millions as well (hours on one core),
//! `-- --redis [redis://HOST]` a Redis server beside memory and disk (without an address one of its own), `-- --store NAME`
//! one store, `-- --only TEXT` the cases with this in their names, and `-- --check` ends with an error where a goal is missed. Every case runs in a process of its own, as what a process
//! holds is measured from outside of its allocator. Offers come by twenty with a commit each, pulls and settles by
//! sixteen; every twenty requests have a parent that is pulled before and settled after them. Times are by the clock, and
//! of the processor with all threads of the store. Without cargo's `--bench` each case runs small, so that it cannot rot.
#![allow(missing_docs, clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing)]

mod cases;
mod goals;
mod machine;
mod server;
mod stores;
mod work;

use std::collections::BTreeMap;
use std::process::{Command, ExitCode, Stdio};

use cases::{Case, Figures};
use stores::Kind;

pub(crate) const MILLION: u64 = 1_000_000;
/// Hosts of the cases with many.
const HOSTS: u64 = MILLION;

pub(crate) type All = BTreeMap<(Case, u64), Figures>;

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    if let [one, kind, case, count] = &arguments[..]
        && one == "one"
    {
        let folder = folder();
        for (name, figure) in Case::named(case).run(Kind::named(kind), count.parse().unwrap(), folder.path()) {
            println!("{name} {figure}");
        }
        return ExitCode::SUCCESS;
    }
    let has = |flag: &str| arguments.iter().any(|argument| argument == flag);
    let after = |flag: &str| arguments.iter().skip_while(|argument| *argument != flag).nth(1).cloned();
    if !has("--bench") {
        small();
        return ExitCode::SUCCESS;
    }
    let mut kinds = vec![Kind::Memory, Kind::Disk];
    let given = after("--redis").filter(|url| url.starts_with("redis://"));
    let own = if has("--redis") && given.is_none() { server::Own::start() } else { None };
    let redis = given.or_else(|| own.as_ref().map(server::Own::url));
    kinds.extend(redis.as_ref().map(|_| Kind::Redis));
    if let Some(only) = after("--store") {
        kinds.retain(|kind| kind.name() == only);
    }
    let sizes: &[u64] = if has("--full") { &[MILLION, 10 * MILLION] } else { &[MILLION] };
    let mut misses = Vec::new();
    for kind in kinds {
        let mut all = All::new();
        for count in sizes {
            for case in all_cases(HOSTS) {
                // More hosts than these are not asked for, and at a server it is the server that knows them.
                let is_measured = case != Case::Hosts || (*count == HOSTS && kind != Kind::Redis);
                if is_measured && after("--only").is_none_or(|only| case.name().contains(&only)) {
                    let figures = alone(kind, &case, *count, redis.as_deref());
                    show(kind, &case, *count, &figures);
                    all.insert((case, *count), figures);
                }
            }
        }
        for goal in goals::of(kind, &all) {
            println!("{}", goal.line());
            misses.extend((!goal.is_met()).then(|| goal.line()));
        }
    }
    if !misses.is_empty() {
        println!("\n{} goals missed", misses.len());
    }
    if has("--check") && !misses.is_empty() { ExitCode::FAILURE } else { ExitCode::SUCCESS }
}

/// Every case once, so that none rots.
fn small() {
    for kind in [Kind::Memory, Kind::Disk] {
        for case in all_cases(100) {
            let figures = case.run(kind, 2_000, folder().path());
            assert!(figures.values().all(|figure| figure.is_finite()), "{figures:?}");
        }
    }
    if let Some(own) = server::Own::start() {
        for case in all_cases(100) {
            if case != Case::Hosts {
                alone(Kind::Redis, &case, 2_000, Some(&own.url()));
            }
        }
    }
}

/// Where stores lie: on the disk that the target directory is on, unless the environment says otherwise.
fn folder() -> tempfile::TempDir {
    let program = std::env::current_exe().unwrap();
    let below = std::env::var_os("FRONTIER_BENCH_DIR").map_or_else(|| program.parent().unwrap().to_owned(), Into::into);
    tempfile::tempdir_in(below).unwrap()
}

fn all_cases(hosts: u64) -> Vec<Case> {
    let mut cases = vec![Case::Seen];
    for is_all_new in [true, false] {
        cases.extend([1, hosts].map(|hosts| Case::Queue { hosts, is_all_new }));
    }
    cases.push(Case::Hosts);
    cases
}

/// A case in a process of its own.
fn alone(kind: Kind, case: &Case, count: u64, redis: Option<&str>) -> Figures {
    let program = std::env::current_exe().unwrap();
    let mut command = Command::new(program);
    command.args(["one", kind.name(), &case.name(), &count.to_string()]).stderr(Stdio::inherit());
    command.envs(redis.map(|url| (server::URL, url)));
    let output = command.output().unwrap();
    assert!(output.status.success(), "{} {} {count} failed", kind.name(), case.name());
    let text = String::from_utf8(output.stdout).unwrap();
    let pairs = text.lines().map(|line| line.split_once(' ').unwrap());
    pairs.map(|(name, figure)| (name.to_owned(), figure.parse().unwrap())).collect()
}

/// Columns of the table, with the figures' names.
const COLUMNS: [(&str, &str); 14] = [
    ("offer ns", "offer_ns"),
    ("cpu", "offer_cpu_ns"),
    ("mark ns", "mark_ns"),
    ("pull ns", "pull_ns"),
    ("settle ns", "settle_ns"),
    ("both cpu", "drain_cpu_ns"),
    ("cycle ns", "cycle_ns"),
    ("RSS B", "rss_b"),
    ("worst", "worst_b"),
    ("peak", "peak_b"),
    ("counted", "counted_b"),
    ("beside B", "beside_b"),
    ("open s", "open_s"),
    ("queued", "queued"),
];

fn show(kind: Kind, case: &Case, count: u64, figures: &Figures) {
    static HEAD: std::sync::Once = std::sync::Once::new();
    HEAD.call_once(|| {
        let names: String = COLUMNS.iter().map(|(title, _)| format!("{title:>10}")).collect();
        println!("{:<8} {:<20} {:>10}{names}", "store", "case", "new");
    });
    let cells: String = COLUMNS
        .iter()
        .map(|(_, name)| match figures.get(*name) {
            Some(figure) if *figure < 100.0 => format!("{figure:>10.1}"),
            Some(figure) => format!("{figure:>10.0}"),
            None => format!("{:>10}", ""),
        })
        .collect();
    println!("{:<8} {:<20} {count:>10}{cells}", kind.name(), case.name());
}
