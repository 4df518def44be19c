//! Rules: under which site and client a request is leased.
//!
//! A request's own lease target wins; then the first rule of `LEASES` whose domains cover its host; then it
//! is anonymous or refused. Pure; asks nobody.

use std::sync::Arc;

use url::{Host, Url};

use crate::api::request::Request;
use crate::plane::Ask;
use crate::settings::{LeaseRule, UnmatchedLease};

/// The rules of `LEASES`, ready to be applied.
#[derive(Debug, Clone)]
pub struct Rules {
    rules: Vec<Rule>,
    /// Some domain is meant on one port only.
    has_ports: bool,
    unmatched: UnmatchedLease,
    nothing: Arc<str>,
}

#[derive(Debug, Clone)]
struct Rule {
    domains: Vec<Domain>,
    site: Arc<str>,
    client: Arc<str>,
    group: Arc<str>,
    session_key: Option<Arc<str>>,
    /// What messages call it.
    name: Arc<str>,
}

/// A host with everything below it, on one port or on all.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Domain {
    host: String,
    port: Option<u16>,
}

/// A rule whose domain is no host.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("LEASES[{rule}]: {domain:?} is not a domain; write a host like \"shop.example\" or \"shop.example:8080\"")]
#[non_exhaustive]
pub struct RuleError {
    /// The rule's place, from 0.
    pub rule: usize,
    /// What was written.
    pub domain: String,
}

impl Rules {
    /// The rules of the settings. With the embedded plane `unmatched` is [`UnmatchedLease::Anonymous`].
    ///
    /// # Errors
    /// When a domain is no host.
    pub fn new(rules: &[LeaseRule], unmatched: UnmatchedLease) -> Result<Self, RuleError> {
        let read = |(index, rule): (usize, &LeaseRule)| {
            let domain = |text: &String| Domain::read(text).ok_or_else(|| RuleError { rule: index, domain: text.clone() });
            Ok(Rule {
                domains: rule.domains.iter().map(domain).collect::<Result<_, _>>()?,
                site: rule.site.as_str().into(),
                client: rule.client.as_str().into(),
                group: rule.endpoint_group.as_str().into(),
                session_key: (!rule.session_key.is_empty()).then(|| rule.session_key.as_str().into()),
                name: format!("LEASES rule {}", index + 1).into(),
            })
        };
        let rules = rules.iter().enumerate().map(read).collect::<Result<Vec<_>, _>>()?;
        let has_ports = rules.iter().flat_map(|rule| &rule.domains).any(|domain| domain.port.is_some());
        Ok(Self { rules, has_ports, unmatched, nothing: "".into() })
    }

    /// What `request` asks the plane for; `None` when no rule covers it and such requests are refused.
    #[must_use]
    pub fn ask(&self, request: &Request) -> Option<Ask> {
        self.ask_at(request, request.url())
    }

    /// Whether a redirect of `request` to `to` may go on under the lease the request has: the scheme stays, and the
    /// rule that covers the request covers `to`. Without a rule only the same origin will do.
    #[must_use]
    pub fn stays(&self, request: &Request, to: &Url) -> bool {
        let from = request.url();
        let rule = if request.lease_target().is_none() { self.rule_of(from) } else { None };
        match rule {
            Some((index, _)) => from.scheme() == to.scheme() && self.rule_of(to).is_some_and(|(other, _)| other == index),
            None => from.origin() == to.origin(),
        }
    }

    /// Whether a request may be leased for something else than others of its host: it names a site itself, or the rule
    /// that covers it speaks of one port.
    #[must_use]
    pub fn may_differ(&self, request: &Request) -> bool {
        if request.lease_target().is_some() {
            return true;
        }
        let host = request.url().host_str().unwrap_or_default();
        self.has_ports && self.rules.iter().flat_map(|rule| &rule.domains).any(|d| d.port.is_some() && d.covers_host(host))
    }

    /// As [`Rules::ask`], for a request that was redirected to `url`.
    #[must_use]
    pub fn ask_at(&self, request: &Request, url: &Url) -> Option<Ask> {
        let session_key = request.session_key_value().map(Arc::from);
        let path = url.path().to_owned();
        if let Some(target) = request.lease_target() {
            let (site, client) = (target.site.as_str().into(), target.client.as_str().into());
            return Some(Ask { site, client, group: Arc::clone(&self.nothing), path, session_key, anonymous: false, rule: None });
        }
        if let Some((_, rule)) = self.rule_of(url) {
            return Some(Ask {
                site: Arc::clone(&rule.site),
                client: Arc::clone(&rule.client),
                group: Arc::clone(&rule.group),
                path,
                session_key: session_key.or_else(|| rule.session_key.clone()),
                anonymous: false,
                rule: Some(Arc::clone(&rule.name)),
            });
        }
        match self.unmatched {
            UnmatchedLease::Refuse => None,
            UnmatchedLease::Anonymous => Some(Ask {
                site: url.host_str().unwrap_or_default().into(),
                client: Arc::clone(&self.nothing),
                group: Arc::clone(&self.nothing),
                path,
                session_key,
                anonymous: true,
                rule: None,
            }),
        }
    }

    /// The first rule that covers `url`, and its place.
    fn rule_of(&self, url: &Url) -> Option<(usize, &Rule)> {
        let host = url.host_str().unwrap_or_default();
        self.rules.iter().enumerate().find(|(_, rule)| rule.domains.iter().any(|domain| domain.covers(host, url)))
    }
}

impl Domain {
    fn read(text: &str) -> Option<Self> {
        let text = text.trim();
        let text = text.strip_prefix("*.").or_else(|| text.strip_prefix('.')).unwrap_or(text);
        let (host, port) = match text.rsplit_once(':') {
            // A colon inside brackets, or one of several, belongs to an IPv6 address.
            Some((host, port)) if !port.contains(']') && (host.ends_with(']') || !host.contains(':')) => {
                (host, Some(port.parse().ok()?))
            }
            _ => (text, None),
        };
        // As a URL spells it: lower case, punycode, short IPv4 forms resolved (WHATWG URL, 3.5).
        let bracketed = if host.contains(':') && !host.starts_with('[') { format!("[{host}]") } else { host.to_owned() };
        let host = Host::parse(&bracketed).ok()?.to_string();
        Some(Self { host, port })
    }

    fn covers_host(&self, host: &str) -> bool {
        let below = || host.strip_suffix(self.host.as_str()).is_some_and(|rest| rest.ends_with('.'));
        host == self.host || below()
    }

    fn covers(&self, host: &str, url: &Url) -> bool {
        self.covers_host(host) && self.port.is_none_or(|port| url.port_or_known_default() == Some(port))
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing)]
    use super::*;

    fn rule(domains: &[&str], site: &str) -> LeaseRule {
        LeaseRule {
            domains: domains.iter().map(|d| (*d).to_owned()).collect(),
            site: site.to_owned(),
            client: "web".to_owned(),
            endpoint_group: "g".to_owned(),
            session_key: String::new(),
        }
    }

    fn site_of(rules: &Rules, url: &str) -> Option<String> {
        let ask = rules.ask(&Request::get(url, &()).unwrap())?;
        Some(if ask.anonymous { format!("anonymous {}", ask.site) } else { ask.site.to_string() })
    }

    #[test]
    fn the_first_rule_that_covers_the_host_wins() {
        let rules = [
            rule(&["api.shop.example"], "api"),
            rule(&["Shop.Example", "*.other.example", "münchen.example"], "shop"),
            rule(&["shop.example", "local.example:8080", "[::1]:99", "::2"], "late"),
            rule(&["127.0.0.1:80"], "loopback"),
        ];
        let rules = Rules::new(&rules, UnmatchedLease::Anonymous).unwrap();
        for (url, site) in [
            ("https://api.shop.example/a", "api"),
            ("https://v2.api.shop.example/a", "api"),
            ("https://shop.example/a", "shop"),
            ("https://www.SHOP.example:8443/a", "shop"),
            ("https://other.example/", "shop"),
            ("https://www.m%C3%BCnchen.example/", "shop"),
            ("http://local.example:8080/", "late"),
            ("http://local.example/", "anonymous local.example"),
            ("http://[::1]:99/", "late"),
            ("http://[::1]/", "anonymous [::1]"),
            ("http://[::2]/", "late"),
            ("http://127.0.0.1/", "loopback"),
            ("http://127.0.0.1:81/", "anonymous 127.0.0.1"),
            ("https://notshop.example/", "anonymous notshop.example"),
            ("https://shop.example.evil.example/", "anonymous shop.example.evil.example"),
        ] {
            assert_eq!(site_of(&rules, url).as_deref(), Some(site), "{url}");
        }
    }

    #[test]
    fn a_request_may_differ_from_others_of_its_host_by_its_port_or_its_own_word() {
        let differs = |rules: &Rules, url: &str| rules.may_differ(&Request::get(url, &()).unwrap());
        let rules = [rule(&["a.example:8080"], "a"), rule(&["b.example"], "b")];
        let rules = Rules::new(&rules, UnmatchedLease::Anonymous).unwrap();
        assert!(differs(&rules, "http://a.example/") && differs(&rules, "http://www.a.example:8080/"));
        assert!(!differs(&rules, "http://b.example:8080/") && !differs(&rules, "http://other.example/"));
        let mut own = Request::get("http://b.example/", &()).unwrap();
        own.lease("x", "web");
        assert!(rules.may_differ(&own));
    }

    #[test]
    fn an_ask_carries_path_group_and_session() {
        let mut with_session = rule(&["shop.example"], "shop");
        with_session.session_key = "all".to_owned();
        let rules = Rules::new(&[with_session], UnmatchedLease::Refuse).unwrap();
        let mut request = Request::get("https://shop.example/a/b?q=secret#f", &()).unwrap();
        let ask = rules.ask(&request).unwrap();
        assert_eq!((&*ask.client, &*ask.group, &*ask.path), ("web", "g", "/a/b"));
        assert_eq!(ask.rule.as_deref(), Some("LEASES rule 1"));
        assert_eq!(ask.session_key.as_deref(), Some("all"));
        request.session_key("mine");
        assert_eq!(rules.ask(&request).unwrap().session_key.as_deref(), Some("mine"));
    }

    #[test]
    fn a_requests_own_target_wins_over_every_rule() {
        let rules = Rules::new(&[rule(&["shop.example"], "shop")], UnmatchedLease::Refuse).unwrap();
        let mut request = Request::get("https://shop.example/", &()).unwrap();
        request.lease("special", "app");
        let ask = rules.ask(&request).unwrap();
        assert_eq!((&*ask.site, &*ask.client, &*ask.group, ask.anonymous), ("special", "app", "", false));
    }

    #[test]
    fn a_redirect_stays_on_its_lease_within_its_rule_and_scheme() {
        let rules = [
            rule(&["api.shop.example"], "api"),
            rule(&["shop.example", "cdn.example", "port.example:8080"], "shop"),
            rule(&["cdn.example", "late.example"], "late"),
        ];
        let rules = Rules::new(&rules, UnmatchedLease::Anonymous).unwrap();
        for (from, to, stays) in [
            ("https://shop.example/a", "https://shop.example/b", true),
            ("https://shop.example/a", "https://www.shop.example:8443/b", true),
            ("https://shop.example/a", "https://cdn.example/b", true),
            ("https://cdn.example/a", "https://shop.example/b", true),
            ("https://shop.example/a", "http://shop.example/a", false),
            ("http://shop.example/a", "https://shop.example/a", false),
            ("https://shop.example/a", "https://api.shop.example/a", false),
            ("https://late.example/a", "https://cdn.example/a", false),
            ("https://shop.example/a", "https://shop.example.evil.example/", false),
            ("https://shop.example/a", "https://elsewhere.example/", false),
            ("https://shop.example/a", "data:text/plain,x", false),
            ("http://port.example:8080/a", "http://port.example:8080/b", true),
            ("http://port.example:8080/a", "http://port.example/b", false),
            ("http://port.example/a", "http://port.example:8080/b", false),
            ("https://elsewhere.example/a", "https://elsewhere.example/b", true),
            ("https://elsewhere.example/a", "https://www.elsewhere.example/b", false),
            ("https://elsewhere.example/a", "https://shop.example/b", false),
        ] {
            let request = Request::get(from, &()).unwrap();
            assert_eq!(rules.stays(&request, &Url::parse(to).unwrap()), stays, "{from} -> {to}");
        }
    }

    #[test]
    fn a_redirect_of_a_request_with_its_own_target_stays_within_its_origin() {
        let rules = Rules::new(&[rule(&["shop.example"], "shop")], UnmatchedLease::Refuse).unwrap();
        let mut request = Request::get("https://shop.example/a", &()).unwrap();
        request.lease("special", "app");
        assert!(rules.stays(&request, &Url::parse("https://shop.example/b").unwrap()));
        assert!(!rules.stays(&request, &Url::parse("https://www.shop.example/b").unwrap()));
        assert_eq!(rules.ask(&request).unwrap().rule, None);
    }

    #[test]
    fn an_ask_names_the_rule_that_covers_it() {
        let rules = [rule(&["a.example"], "a"), rule(&["b.example"], "b")];
        let rules = Rules::new(&rules, UnmatchedLease::Anonymous).unwrap();
        for (url, name) in [
            ("https://a.example/", Some("LEASES rule 1")),
            ("https://b.example/", Some("LEASES rule 2")),
            ("https://c.example/", None),
        ] {
            assert_eq!(rules.ask(&Request::get(url, &()).unwrap()).unwrap().rule.as_deref(), name);
        }
    }

    #[test]
    fn what_no_rule_covers_is_refused_where_that_is_set() {
        let rules = Rules::new(&[rule(&["shop.example"], "shop")], UnmatchedLease::Refuse).unwrap();
        assert_eq!(site_of(&rules, "https://elsewhere.example/"), None);
    }

    #[test]
    fn a_domain_that_is_no_host_is_an_error_with_its_place() {
        for bad in ["", "a b", "https://shop.example/", "shop.example:", "shop.example:99999", "shop.example:x"] {
            let error = Rules::new(&[rule(&["ok.example"], "a"), rule(&[bad], "b")], UnmatchedLease::Refuse).unwrap_err();
            assert_eq!((error.rule, error.domain.as_str()), (1, bad));
        }
    }
}
