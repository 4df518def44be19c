//! Rules for what crawls and control plane tell each other: markers on reports, and names of config items.

use serde_json::{Map, Value};

use super::collection::{Codes, Domains, list_from_text, structure_from_text};
use super::rule::{Problem, Rule, describe};
use super::value::MarkerRule;

/// Longest marker, in characters (wire contract, 4.2).
const MARKER: usize = 64;
/// Most config items one watch may name (wire contract, 4.3).
const ITEMS: usize = 200;

/// The list of markers.
pub(crate) struct MarkerRules;

impl Rule for MarkerRules {
    type Out = Vec<MarkerRule>;

    fn read(&self, value: &Value) -> Result<Vec<MarkerRule>, Problem> {
        let Value::Array(rules) = value else {
            return self.refuse(value);
        };
        rules.iter().enumerate().map(|(index, rule)| self.rule(index + 1, rule)).collect()
    }

    fn convert(&self, text: &str) -> Value {
        structure_from_text(text)
    }

    fn kind(&self) -> &'static str {
        "list of markers"
    }

    fn allowed(&self) -> String {
        "a list of tables with marker (1 to 64 characters) and one or more of status (list of codes), css and regex; domains \
         (list of host names) if wanted"
            .to_owned()
    }
}

impl MarkerRules {
    fn rule(&self, number: usize, rule: &Value) -> Result<MarkerRule, Problem> {
        let bad = |found: String| Problem { found: format!("marker {number} with {found}"), allowed: self.allowed() };
        let Value::Object(fields) = rule else {
            return Err(bad(describe(rule)));
        };
        if let Some(name) = fields.keys().find(|name| !["marker", "domains", "status", "css", "regex"].contains(&name.as_str())) {
            return Err(bad(format!("field {name:?}")));
        }
        let within = |name: &str, problem: Problem| bad(format!("{name} = {}", problem.found));
        let marker = text(fields, "marker").map_err(&bad)?.filter(|text| text.chars().count() <= MARKER);
        let made = MarkerRule {
            marker: marker.ok_or_else(|| bad("no text of 1 to 64 characters as marker".to_owned()))?,
            domains: match fields.get("domains") {
                Some(domains) => Domains.read(domains).map_err(|problem| within("domains", problem))?,
                None => Vec::new(),
            },
            status: match fields.get("status") {
                Some(codes) => Codes.read(codes).map_err(|problem| within("status", problem))?,
                None => Vec::new(),
            },
            css: text(fields, "css").map_err(&bad)?,
            regex: text(fields, "regex").map_err(&bad)?,
        };
        if made.status.is_empty() && made.css.is_none() && made.regex.is_none() {
            return Err(bad("none of status, css and regex".to_owned()));
        }
        Ok(made)
    }
}

/// Names of config items, each once.
pub(crate) struct ConfigNames;

impl Rule for ConfigNames {
    type Out = Vec<String>;

    fn read(&self, value: &Value) -> Result<Vec<String>, Problem> {
        let Value::Array(items) = value else {
            return self.refuse(value);
        };
        let mut names: Vec<String> = Vec::new();
        for item in items {
            let Some(name) = item.as_str().filter(|name| is_name(name)) else { return self.refuse(item) };
            if !names.iter().any(|known| known == name) {
                names.push(name.to_owned());
            }
        }
        if names.len() > ITEMS { self.refuse(value) } else { Ok(names) }
    }

    fn convert(&self, text: &str) -> Value {
        list_from_text(text, |word| Value::from(word))
    }

    fn kind(&self) -> &'static str {
        "list of config items"
    }

    fn allowed(&self) -> String {
        "a list of at most 200 config items as group/key, for example [\"crawl/limits\"] (as text: separated by commas, or JSON)"
            .to_owned()
    }
}

/// Group and key are parted by the first slash (wire contract, section 8).
fn is_name(name: &str) -> bool {
    name.split_once('/')
        .is_some_and(|(group, key)| (1..=128).contains(&group.chars().count()) && (1..=256).contains(&key.chars().count()))
}

fn text(fields: &Map<String, Value>, name: &str) -> Result<Option<String>, String> {
    match fields.get(name) {
        None => Ok(None),
        Some(Value::String(text)) if !text.is_empty() => Ok(Some(text.clone())),
        Some(_) => Err(format!("no text as {name}")),
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing)]
    use serde_json::json;

    use super::*;

    #[test]
    fn a_marker_needs_a_name_and_a_condition() {
        let good = json!([{"marker": "captcha_page", "css": "#captcha", "status": [403], "domains": ["Shop.example"]}]);
        let rules = MarkerRules.read(&good).unwrap();
        assert_eq!((rules[0].marker.as_str(), rules[0].css.as_deref()), ("captcha_page", Some("#captcha")));
        assert_eq!(
            (rules[0].domains.as_slice(), rules[0].status.as_slice()),
            (["shop.example".to_owned()].as_slice(), [403].as_slice())
        );
        for bad in [
            json!("x"),
            json!(["x"]),
            json!([{"marker": "a"}]),
            json!([{"css": "p"}]),
            json!([{"marker": "", "css": "p"}]),
            json!([{"marker": "a".repeat(65), "css": "p"}]),
            json!([{"marker": "a", "css": 1}]),
            json!([{"marker": "a", "status": [99]}]),
            json!([{"marker": "a", "css": "p", "xpath": "//p"}]),
        ] {
            assert!(MarkerRules.read(&bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn names_of_items_are_parted_by_the_first_slash() {
        let read = |value: Value| ConfigNames.read(&value);
        assert_eq!(read(json!(["a/b/c", "d/e", "a/b/c"])).unwrap(), ["a/b/c", "d/e"]);
        for bad in [json!(true), json!(["no-slash"]), json!(["/k"]), json!(["g/"]), json!([1])] {
            assert!(read(bad.clone()).is_err(), "{bad}");
        }
        let many: Vec<Value> = (0..201).map(|n| json!(format!("g/{n}"))).collect();
        assert!(read(Value::from(many)).is_err());
    }
}
