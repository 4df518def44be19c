//! The stats registry: counters by name, in Scrapy's names and JSON types.
//!
//! One registry a job, shared by every thread (`dashmap`), sent with the job's closing batch. Keys are
//! created on first use; `order` keeps the order of creation, which is their order on the wire.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fmt::{self, Write as _};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use dashmap::DashMap;
use serde_json::{Map, Number, Value};

/// Counters, gauges and texts of one job. Cloning shares them.
#[derive(Clone, Default)]
pub struct Stats(Arc<Registry>);

#[derive(Default)]
struct Registry {
    values: DashMap<Cow<'static, str>, Entry>,
    next: AtomicU64,
}

struct Entry {
    order: u64,
    value: Value,
}

impl Stats {
    /// An empty registry.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds one.
    pub fn inc(&self, key: impl Into<Cow<'static, str>>) {
        self.add(key, 1);
    }

    /// Adds `n`; a value that is not a whole number is replaced.
    pub fn add(&self, key: impl Into<Cow<'static, str>>, n: i64) {
        self.update(key.into(), |value| {
            let sum = value.as_i64().unwrap_or(0).saturating_add(n);
            *value = Value::Number(sum.into());
        });
    }

    /// Adds `n` and gives what the value was before.
    pub(crate) fn raise(&self, key: impl Into<Cow<'static, str>>, n: i64) -> i64 {
        let mut before = 0;
        self.update(key.into(), |value| {
            before = value.as_i64().unwrap_or(0);
            *value = Value::Number(before.saturating_add(n).into());
        });
        before
    }

    /// Sets a value.
    pub fn set(&self, key: impl Into<Cow<'static, str>>, to: impl Into<Value>) {
        let to = to.into();
        self.update(key.into(), |value| *value = to);
    }

    /// Keeps the greater of the present value and `candidate`.
    pub fn max(&self, key: impl Into<Cow<'static, str>>, candidate: i64) {
        self.update(key.into(), |value| {
            if value.as_i64().is_none_or(|present| present < candidate) {
                *value = Value::Number(candidate.into());
            }
        });
    }

    /// One value.
    #[must_use]
    pub fn get(&self, key: &str) -> Option<Value> {
        self.0.values.get(key).map(|e| e.value.clone())
    }

    /// One counter, 0 when it was never touched.
    #[must_use]
    pub fn count(&self, key: &str) -> i64 {
        self.0.values.get(key).and_then(|e| e.value.as_i64()).unwrap_or(0)
    }

    /// Everything, in order of first use.
    #[must_use]
    pub fn snapshot(&self) -> Map<String, Value> {
        let mut all: Vec<(u64, String, Value)> =
            self.0.values.iter().map(|e| (e.value().order, e.key().to_string(), e.value().value.clone())).collect();
        all.sort_unstable_by_key(|(order, _, _)| *order);
        all.into_iter().map(|(_, key, value)| (key, value)).collect()
    }

    /// A snapshot as a log message, sorted by name.
    pub(crate) fn dump(snapshot: &Map<String, Value>) -> String {
        let mut dump = "Dumping stats: {".to_owned();
        let mut sorted: Vec<(&String, &Value)> = snapshot.iter().collect();
        sorted.sort_unstable_by_key(|(name, _)| *name);
        for (at, (name, value)) in sorted.into_iter().enumerate() {
            let _ = write!(dump, "{}{}: {value}", if at == 0 { "" } else { ",\n " }, Value::from(name.as_str()));
        }
        dump.push('}');
        dump
    }

    /// The whole numbers that are the job's and not this run's or this process's: what the next run goes on from.
    pub(crate) fn counters(&self) -> BTreeMap<String, i64> {
        let all = self.0.values.iter();
        all.filter(|e| !of_the_run(e.key())).filter_map(|e| Some((e.key().to_string(), e.value().value.as_i64()?))).collect()
    }

    /// Goes on from the counters of an earlier run, before anything is counted.
    pub(crate) fn go_on_from(&self, counters: BTreeMap<String, i64>) {
        for (key, count) in counters.into_iter().filter(|(key, _)| !of_the_run(key)) {
            self.add(key, count);
        }
    }

    /// Sets a float, null when it is not finite.
    pub fn set_float(&self, key: impl Into<Cow<'static, str>>, value: f64) {
        self.set(key, Number::from_f64(value).map_or(Value::Null, Value::Number));
    }

    fn update(&self, key: Cow<'static, str>, change: impl FnOnce(&mut Value)) {
        if let Some(mut entry) = self.0.values.get_mut(&key) {
            change(&mut entry.value);
            return;
        }
        let order = self.0.next.fetch_add(1, Ordering::Relaxed);
        let mut entry = self.0.values.entry(key).or_insert(Entry { order, value: Value::Null });
        change(&mut entry.value);
    }
}

/// Whether a number tells of a run or its process, and means nothing for the next one. The books are the frontier's.
fn of_the_run(key: &str) -> bool {
    const RUN: [&str; 3] = ["engine/window_bytes_max", "config/items", "reporter/undelivered"];
    RUN.contains(&key) || ["memusage/", "books/"].iter().any(|prefix| key.starts_with(prefix))
}

/// The time now as the stats carry it: ISO 8601, UTC, microseconds.
pub(crate) fn utc_now() -> String {
    jiff::Timestamp::now().strftime("%Y-%m-%dT%H:%M:%S.%6f+00:00").to_string()
}

impl fmt::Debug for Stats {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Stats").field("keys", &self.0.values.len()).finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_snapshot_keeps_the_order_of_first_use() {
        let stats = Stats::new();
        stats.inc("z");
        stats.set("a", "text");
        stats.max("m", 3);
        stats.max("m", 2);
        stats.inc("z");
        let snapshot = stats.snapshot();
        assert_eq!(serde_json::to_string(&snapshot).unwrap_or_default(), r#"{"z":2,"a":"text","m":3}"#);
    }

    #[test]
    fn the_dump_lists_every_stat_by_name() {
        let stats = Stats::new();
        stats.set("b", 2);
        stats.set("a", "x");
        stats.set_float("c", f64::NAN);
        let dump = Stats::dump(&stats.snapshot());
        assert_eq!(dump, "Dumping stats: {\"a\": \"x\",\n \"b\": 2,\n \"c\": null}");
        let json = dump.strip_prefix("Dumping stats: ").map(serde_json::from_str::<Value>);
        assert!(matches!(json, Some(Ok(Value::Object(map))) if map.len() == 3), "{dump}");
    }

    #[test]
    fn a_run_goes_on_from_the_jobs_counters() {
        let stats = Stats::new();
        for (key, count) in [("pages", 7), ("request_depth_max", 3), ("memusage/max", 9), ("books/handled", 7)] {
            stats.add(key, count);
        }
        stats.set("start_time", "then");
        stats.set_float("elapsed_time_seconds", 1.5);
        let next = Stats::new();
        next.inc("pages");
        next.go_on_from(stats.counters());
        next.max("request_depth_max", 2);
        assert_eq!(Value::Object(next.snapshot()), serde_json::json!({"pages": 8, "request_depth_max": 3}));
    }

    #[test]
    fn threads_lose_no_increment() {
        let stats = Stats::new();
        std::thread::scope(|s| {
            for _ in 0..4 {
                s.spawn(|| (0..1000).for_each(|_| stats.inc("n")));
            }
        });
        assert_eq!(stats.count("n"), 4000);
        assert_eq!((stats.raise("n", 2), stats.raise("n", 1), stats.raise("new", 1)), (4000, 4002, 0));
    }
}
