//! Rules of single hosts: how many requests at a time, how far apart, and whether their answers change that.

use std::collections::BTreeMap;
use std::time::Duration;

use serde_json::Value;

use super::collection::structure_from_text;
use super::rule::{Problem, Rule, Span, Whole, describe};

/// Most hosts that may be named: a server that keeps a shared frontier reads all of them each time.
const MOST: usize = 1_000;

const DAY: f64 = 86_400.0;

/// One entry of `DOWNLOAD_SLOTS`: how a host is paced; what is not said is as for every host.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SlotLimits {
    /// Requests in flight, instead of `CONCURRENT_REQUESTS_PER_DOMAIN`.
    pub concurrency: Option<usize>,
    /// Time between two requests, instead of `DOWNLOAD_DELAY`.
    pub delay: Option<Duration>,
    /// Whether that time varies, instead of `RANDOMIZE_DOWNLOAD_DELAY`.
    pub randomize_delay: Option<bool>,
    /// Whether the host's answers change that time, instead of `AUTOTHROTTLE_ENABLED`.
    pub throttle: Option<bool>,
}

/// The table of hosts.
pub(crate) struct SlotTable;

impl Rule for SlotTable {
    type Out = BTreeMap<String, SlotLimits>;

    fn read(&self, value: &Value) -> Result<Self::Out, Problem> {
        let Value::Object(table) = value else {
            return self.refuse(value);
        };
        if table.len() > MOST {
            return self.refuse(value);
        }
        let mut hosts = BTreeMap::new();
        for (name, limits) in table {
            let bad = |found: String| Problem { found: format!("host {name:?} {found}"), allowed: self.allowed() };
            let host = url::Host::parse(name).map_err(|_| bad("(not the name of a host)".to_owned()))?.to_string();
            if hosts.insert(host, slot(limits).map_err(|found| bad(format!("with {found}")))?).is_some() {
                return Err(bad("twice, in another spelling".to_owned()));
            }
        }
        Ok(hosts)
    }

    fn convert(&self, text: &str) -> Value {
        structure_from_text(text)
    }

    fn kind(&self) -> &'static str {
        "table of hosts"
    }

    fn allowed(&self) -> String {
        "a table of at most 1000 host names without scheme, port or wildcard, each with a table of concurrency (whole number from 1 \
         to 100000), delay (seconds from 0 to 86400), randomize_delay (true or false) and throttle (true or false), each if wanted: \
         for example { \"shop.example\" = { concurrency = 1, delay = 2.5 } }"
            .to_owned()
    }
}

fn slot(limits: &Value) -> Result<SlotLimits, String> {
    let Value::Object(fields) = limits else {
        return Err(describe(limits));
    };
    let mut slot = SlotLimits::default();
    for (name, value) in fields {
        let wrong = |problem: Problem| format!("{name} = {}", problem.found);
        let flag = || value.as_bool().ok_or_else(|| format!("{name} = {}", describe(value)));
        match name.as_str() {
            "concurrency" => slot.concurrency = Some(Whole::<usize>::between(1, 100_000).read(value).map_err(wrong)?),
            "delay" => slot.delay = Some(Span::seconds(0.0, DAY).read(value).map_err(wrong)?),
            "randomize_delay" => slot.randomize_delay = Some(flag()?),
            "throttle" => slot.throttle = Some(flag()?),
            _ => return Err(format!("option {name:?}")),
        }
    }
    Ok(slot)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::indexing_slicing)]
    use serde_json::json;

    use super::*;

    #[test]
    fn hosts_are_named_as_urls_have_them_and_say_what_they_want() {
        let table = json!({"Slow%2Etest": {"concurrency": 1, "delay": 0.5, "randomize_delay": false, "throttle": true},
            "bücher.example": {}, "[::1]": {"delay": 2}, "127.1": {"concurrency": 3}});
        let hosts = SlotTable.read(&table).unwrap();
        let names: Vec<&str> = hosts.keys().map(String::as_str).collect();
        assert_eq!(names, ["127.0.0.1", "[::1]", "slow.test", "xn--bcher-kva.example"]);
        let slow = SlotLimits {
            concurrency: Some(1),
            delay: Some(Duration::from_millis(500)),
            randomize_delay: Some(false),
            throttle: Some(true),
        };
        assert_eq!(hosts["slow.test"], slow);
        assert_eq!(hosts["xn--bcher-kva.example"], SlotLimits::default());
        let text = SlotTable.convert(r#"{"a.test": {"delay": 1}}"#);
        assert_eq!(SlotTable.read(&text).unwrap()["a.test"].delay, Some(Duration::from_secs(1)));
    }

    #[test]
    fn a_bad_table_is_refused_with_the_host_and_what_is_wrong() {
        for (table, part) in [
            (json!([]), "list"),
            (json!({"http://a": {}}), "not the name"),
            (json!({"a:80": {}}), "not the name"),
            (json!({"a.test": 1}), "a.test"),
            (json!({"a.test": {"delay": -1}}), "delay"),
            (json!({"a.test": {"delay": "1"}}), "delay"),
            (json!({"a.test": {"concurrency": 0}}), "concurrency"),
            (json!({"a.test": {"throttle": 1}}), "throttle"),
            (json!({"a.test": {"burst": 1}}), "burst"),
            (json!({"a.test": {}, "A.test": {}}), "twice"),
        ] {
            let problem = SlotTable.read(&table).unwrap_err();
            assert!(problem.found.contains(part), "{table} {}", problem.found);
        }
        let many: serde_json::Map<String, Value> = (0..1_001).map(|n| (format!("{n}.test"), json!({}))).collect();
        assert!(SlotTable.read(&Value::Object(many)).is_err());
    }
}
