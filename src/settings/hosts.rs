//! Addresses of hosts by hand (`HOSTS`), and whether addresses of the own network may be asked (`ALLOW_PRIVATE_ADDRESSES`).

use std::collections::BTreeMap;
use std::net::{IpAddr, SocketAddr};

use serde_json::Value;

use super::collection::structure_from_text;
use super::rule::{Problem, Rule, describe};

/// Addresses of hosts instead of what DNS says; port 0 stands for the port of the URL.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Hosts(BTreeMap<String, SocketAddr>);

/// Whether targets may have addresses that only the own network knows.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum PrivateAddresses {
    /// If a start request goes to such an address itself.
    #[default]
    Auto,
    /// They may.
    Allow,
    /// They may not.
    Refuse,
}

impl Hosts {
    /// The address of a host: that of its name, else that of the nearest `*.domain` above it. Lower case, as in a URL; the
    /// dot that may end a name does not count.
    #[must_use]
    pub fn get(&self, host: &str) -> Option<SocketAddr> {
        if self.0.is_empty() {
            return None;
        }
        let host = host.strip_suffix('.').unwrap_or(host);
        let above = host.match_indices('.').filter_map(|(at, _)| self.0.get(&format!("*{}", host.get(at..)?)));
        self.0.get(host).or_else(|| above.into_iter().next()).copied()
    }

    /// Whether none is given.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

impl<'a> FromIterator<(&'a str, SocketAddr)> for Hosts {
    fn from_iter<I: IntoIterator<Item = (&'a str, SocketAddr)>>(entries: I) -> Self {
        Self(entries.into_iter().map(|(host, address)| (host.to_owned(), address)).collect())
    }
}

/// A table of hosts and their addresses.
pub(crate) struct HostTable;

impl Rule for HostTable {
    type Out = Hosts;

    fn read(&self, value: &Value) -> Result<Hosts, Problem> {
        let Value::Object(map) = value else {
            return self.refuse(value);
        };
        let entry = |(host, value): (&String, &Value)| {
            let bad = |found: String| Problem { found: format!("{host:?} {found}"), allowed: self.allowed() };
            let name = name(host).ok_or_else(|| bad("(not a host name)".to_owned()))?;
            let address = value.as_str().and_then(address).ok_or_else(|| bad(format!("= {}", describe(value))))?;
            Ok((name, address))
        };
        map.iter().map(entry).collect::<Result<_, _>>().map(Hosts)
    }

    fn convert(&self, text: &str) -> Value {
        structure_from_text(text)
    }

    fn kind(&self) -> &'static str {
        "table of hosts"
    }

    fn allowed(&self) -> String {
        "a table of host names (shop.example; *.shop.example for all below it), each with an IP address and, if wanted, a port: \
         { \"shop.example\" = \"127.0.0.1:8080\", \"b.example\" = \"[::1]:8080\" }"
            .to_owned()
    }
}

/// A name as URLs have it, with `*.` before it where all names below are meant; an address is none.
fn name(text: &str) -> Option<String> {
    let (any, rest) = text.strip_prefix("*.").map_or(("", text), |rest| ("*.", rest));
    match url::Host::parse(rest.strip_suffix('.').unwrap_or(rest)).ok()? {
        url::Host::Domain(name) if !name.starts_with('.') && !name.contains('*') => Some(format!("{any}{name}")),
        _ => None,
    }
}

/// An address with or without a port; one that names port 0 is none.
fn address(text: &str) -> Option<SocketAddr> {
    if let Ok(address) = text.parse::<SocketAddr>() {
        return (address.port() != 0).then_some(address);
    }
    let bare = text.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')).unwrap_or(text);
    bare.parse::<IpAddr>().ok().map(|ip| SocketAddr::new(ip, 0))
}

/// True, false, or `auto`.
pub(crate) struct PrivateRule;

impl Rule for PrivateRule {
    type Out = PrivateAddresses;

    fn read(&self, value: &Value) -> Result<PrivateAddresses, Problem> {
        match value {
            Value::Bool(true) => Ok(PrivateAddresses::Allow),
            Value::Bool(false) => Ok(PrivateAddresses::Refuse),
            Value::String(text) if text == "auto" => Ok(PrivateAddresses::Auto),
            other => self.refuse(other),
        }
    }

    fn convert(&self, text: &str) -> Value {
        super::rule::Flag.convert(text)
    }

    fn kind(&self) -> &'static str {
        "boolean or auto"
    }

    fn allowed(&self) -> String {
        "true, false or \"auto\"".to_owned()
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing)]
    use serde_json::json;

    use super::*;

    fn read(text: &str) -> Result<Hosts, Problem> {
        HostTable.read(&HostTable.convert(text))
    }

    #[test]
    fn a_host_has_the_address_of_its_name_else_of_the_nearest_domain_above_it() {
        let hosts = read(
            r#"{"A.test": "127.0.0.1:80", "*.a.test": "[::1]:81", "*.test": "::1", "x.y.test.": "10.0.0.1", "b\u00fccher.test": "[::2]"}"#,
        )
        .unwrap();
        for (host, address) in [
            ("a.test", Some("127.0.0.1:80")),
            ("a.test.", Some("127.0.0.1:80")),
            ("b.a.test", Some("[::1]:81")),
            ("c.b.a.test", Some("[::1]:81")),
            ("x.y.test", Some("10.0.0.1:0")),
            ("y.test", Some("[::1]:0")),
            ("xn--bcher-kva.test", Some("[::2]:0")),
            ("test", None),
            ("atest", None),
            ("a.example", None),
            ("", None),
        ] {
            assert_eq!(hosts.get(host).map(|a| a.to_string()).as_deref(), address, "{host}");
        }
        assert!(Hosts::default().get("a.test").is_none());
    }

    #[test]
    fn toml_does_as_well_and_what_is_no_host_or_address_is_named() {
        assert_eq!(read(r#"{ "a.test" = "127.0.0.1:8080" }"#).unwrap().get("a.test").unwrap().port(), 8080);
        for (bad, found) in [
            (r#"{"127.0.0.1": "127.0.0.2"}"#, "not a host name"),
            (r#"{"http://a.test": "127.0.0.2"}"#, "not a host name"),
            (r#"{"*": "127.0.0.2"}"#, "not a host name"),
            (r#"{"a.*.test": "127.0.0.2"}"#, "not a host name"),
            (r#"{"a.test": "b.test"}"#, "b.test"),
            (r#"{"a.test": "127.0.0.1:0"}"#, "127.0.0.1:0"),
            (r#"{"a.test": 80}"#, "number 80"),
            ("a.test", "a.test"),
        ] {
            let problem = read(bad).unwrap_err();
            assert!(problem.found.contains(found), "{bad}: {}", problem.found);
        }
    }

    #[test]
    fn private_addresses_are_allowed_refused_or_left_to_the_start() {
        for (text, meant) in
            [("true", PrivateAddresses::Allow), ("0", PrivateAddresses::Refuse), ("auto", PrivateAddresses::Auto)]
        {
            assert_eq!(PrivateRule.read(&PrivateRule.convert(text)).unwrap(), meant, "{text}");
        }
        assert!(PrivateRule.read(&json!("yes")).is_err() && PrivateRule.read(&json!(null)).is_err());
    }
}
