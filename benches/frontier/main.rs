//! What a frontier of millions costs: time for each offer, pull and settle, memory and disk for each request that is
//! queued, each URL that was seen and each host that is known, at two sizes.
//!
//! `cargo bench --bench frontier` measures one million requests; `-- --full` ten millions as well (hours on one core),
//! `-- --redis redis://HOST` a Redis server beside memory and disk, `-- --only TEXT` the cases with this in their names,
//! and `-- --check` ends with an error where a goal is missed. Every case runs in a process of its own, as what a process
//! holds is measured from outside of its allocator. Offers come by twenty with a commit each, pulls and settles by
//! sixteen; every twenty requests have a parent that is pulled before and settled after them. Times are by the clock, and
//! of the processor with all threads of the store. Without cargo's `--bench` each case runs small, so that it cannot rot.
#![allow(missing_docs, clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing)]

mod cases;
mod machine;
mod stores;
mod work;

use std::collections::BTreeMap;
use std::process::{Command, ExitCode, Stdio};

use cases::{Case, Figures};
use stores::Kind;

const MILLION: u64 = 1_000_000;
/// Hosts of the cases with many.
const HOSTS: u64 = MILLION;

type All = BTreeMap<(Case, u64), Figures>;

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    if let [one, kind, case, count] = &arguments[..]
        && one == "one"
    {
        let folder = tempfile::tempdir_in(std::env::var_os("FRONTIER_BENCH_DIR").unwrap_or_else(|| ".".into())).unwrap();
        for (name, figure) in Case::named(case).run(&Kind::named(kind), count.parse().unwrap(), folder.path()) {
            println!("{name} {figure}");
        }
        return ExitCode::SUCCESS;
    }
    let has = |flag: &str| arguments.iter().any(|argument| argument == flag);
    let after = |flag: &str| arguments.iter().skip_while(|argument| *argument != flag).nth(1).cloned();
    let mut kinds = vec![Kind::Memory];
    if !has("--bench") {
        for kind in &kinds {
            for case in all_cases(100) {
                let folder = tempfile::tempdir().unwrap();
                let figures = case.run(kind, 2_000, folder.path());
                assert!(figures.values().all(|figure| figure.is_finite()), "{figures:?}");
            }
        }
        return ExitCode::SUCCESS;
    }
    if let Some(only) = after("--store") {
        kinds.retain(|kind| kind.name() == only);
    }
    let sizes: &[u64] = if has("--full") { &[MILLION, 10 * MILLION] } else { &[MILLION] };
    let mut misses = Vec::new();
    for kind in &kinds {
        let mut all = All::new();
        for count in sizes {
            for case in all_cases(HOSTS) {
                // More hosts than these are not asked for.
                let is_measured = case != Case::Hosts || *count == HOSTS;
                if is_measured && after("--only").is_none_or(|only| case.name().contains(&only)) {
                    let figures = alone(kind, &case, *count);
                    show(kind, &case, *count, &figures);
                    all.insert((case, *count), figures);
                }
            }
        }
        for goal in goals(kind, &all) {
            println!("{}", goal.line());
            misses.extend((!goal.is_met()).then(|| goal.line()));
        }
    }
    if !misses.is_empty() {
        println!("\n{} goals missed", misses.len());
    }
    if has("--check") && !misses.is_empty() { ExitCode::FAILURE } else { ExitCode::SUCCESS }
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
fn alone(kind: &Kind, case: &Case, count: u64) -> Figures {
    let program = std::env::current_exe().unwrap();
    let mut command = Command::new(program);
    command.args(["one", kind.name(), &case.name(), &count.to_string()]).stderr(Stdio::inherit());
    let output = command.output().unwrap();
    assert!(output.status.success(), "{} {} {count} failed", kind.name(), case.name());
    let text = String::from_utf8(output.stdout).unwrap();
    let pairs = text.lines().map(|line| line.split_once(' ').unwrap());
    pairs.map(|(name, figure)| (name.to_owned(), figure.parse().unwrap())).collect()
}

/// Columns of the table, with the figures' names.
const COLUMNS: [(&str, &str); 13] = [
    ("offer ns", "offer_ns"),
    ("cpu", "offer_cpu_ns"),
    ("mark ns", "mark_ns"),
    ("pull ns", "pull_ns"),
    ("settle ns", "settle_ns"),
    ("both cpu", "drain_cpu_ns"),
    ("RSS B", "rss_b"),
    ("worst", "worst_b"),
    ("peak", "peak_b"),
    ("counted", "counted_b"),
    ("disk B", "beside_b"),
    ("open s", "open_s"),
    ("queued", "queued"),
];

fn show(kind: &Kind, case: &Case, count: u64, figures: &Figures) {
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

/// Something that must be at least, or at most, so much.
#[derive(Debug)]
struct Goal {
    what: String,
    found: f64,
    limit: f64,
    is_least: bool,
}

impl Goal {
    fn is_met(&self) -> bool {
        if self.is_least { self.found >= self.limit } else { self.found <= self.limit }
    }

    fn line(&self) -> String {
        let Self { what, found, limit, is_least } = self;
        let (word, verdict) = (if *is_least { "at least" } else { "at most" }, if self.is_met() { "met" } else { "MISSED" });
        format!("{what:<66} {found:>12.1}  {word:<8} {limit:>9.1}  {verdict}")
    }
}

/// What was asked for, as far as it was measured.
fn goals(kind: &Kind, all: &All) -> Vec<Goal> {
    let mut goals = Vec::new();
    for ((case, count), figures) in all {
        let mut add = |what: &str, found: Option<f64>, limit: f64, is_least: bool| {
            let what = format!("{} {} {}: {what}", kind.name(), count, case.name());
            goals.extend(found.map(|found| Goal { what, found, limit, is_least }));
        };
        let get = |name: &str| figures.get(name).copied();
        let rate = |name: &str| get(name).map(|ns| 1e9 / ns);
        let seen = all.get(&(Case::Seen, *count)).and_then(|figures| figures.get("rss_b").copied());
        match (case, kind) {
            (Case::Queue { hosts, is_all_new }, Kind::Memory) => {
                add("offers/s", rate("offer_ns"), 1e6, true);
                if *is_all_new && *hosts == 1 {
                    add(
                        "bytes a queued request, seen set apart",
                        Some(get("rss_b").unwrap() - seen.unwrap_or(0.0)),
                        200.0,
                        false,
                    );
                }
            }
            (Case::Seen, Kind::Memory) => {
                add("bytes a seen URL, at any size", get("worst_b"), 32.0, false);
                add("bytes a seen URL, while growing", get("peak_b"), 48.0, false);
            }
            (Case::Hosts, Kind::Memory) => {
                let one_host = all.get(&(Case::Queue { hosts: 1, is_all_new: true }, *count));
                let jobs = one_host.and_then(|figures| figures.get("rss_b").copied());
                add("bytes a known host, its request apart", Some(get("rss_b").unwrap() - jobs.unwrap_or(0.0)), 400.0, false);
            }
        }
        let smaller = all.get(&(case.clone(), MILLION)).filter(|_| *count > MILLION);
        for name in ["offer_ns", "pull_ns", "settle_ns", "mark_ns"] {
            let before = smaller.and_then(|figures| figures.get(name).copied());
            let ratio = before.zip(get(name)).map(|(before, now)| now / before);
            add(&format!("{name} over that at a million"), ratio, 1.5, false);
        }
    }
    goals
}
