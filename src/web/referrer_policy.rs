//! Which part of a page's address the request for one of its links tells (W3C Referrer Policy, Fetch).
//!
//! Nothing is ever told of user name, password and fragment, nor of an address that is local.

use memchr::memchr2_iter;
use url::{Host, Url};

use crate::html::Page;

/// A longer address is told as its origin only, as browsers do.
const LONGEST: usize = 4096;

/// What a `Referer` header may tell. The default is that of browsers, for where nothing else is said.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
pub enum ReferrerPolicy {
    /// Nothing.
    NoReferrer,
    /// The address, unless the request goes from a protected page to an unprotected one.
    NoReferrerWhenDowngrade,
    /// The address, within its origin.
    SameOrigin,
    /// The origin.
    Origin,
    /// The origin, unless the request goes from a protected page to an unprotected one.
    StrictOrigin,
    /// The address within its origin, the origin elsewhere.
    OriginWhenCrossOrigin,
    /// The address within its origin, the origin elsewhere, and nothing from a protected page to an unprotected one.
    #[default]
    StrictOriginWhenCrossOrigin,
    /// The address, always.
    UnsafeUrl,
}

impl ReferrerPolicy {
    /// Every policy.
    pub const ALL: [Self; 8] = [
        Self::NoReferrer,
        Self::NoReferrerWhenDowngrade,
        Self::SameOrigin,
        Self::Origin,
        Self::StrictOrigin,
        Self::OriginWhenCrossOrigin,
        Self::StrictOriginWhenCrossOrigin,
        Self::UnsafeUrl,
    ];

    /// Every policy with its name.
    pub(crate) const NAMED: [(&'static str, Self); 8] = {
        let [a, b, c, d, e, f, g, h] = Self::ALL;
        [(a.name(), a), (b.name(), b), (c.name(), c), (d.name(), d), (e.name(), e), (f.name(), f), (g.name(), g), (h.name(), h)]
    };

    /// Its name in headers, pages and settings.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::NoReferrer => "no-referrer",
            Self::NoReferrerWhenDowngrade => "no-referrer-when-downgrade",
            Self::SameOrigin => "same-origin",
            Self::Origin => "origin",
            Self::StrictOrigin => "strict-origin",
            Self::OriginWhenCrossOrigin => "origin-when-cross-origin",
            Self::StrictOriginWhenCrossOrigin => "strict-origin-when-cross-origin",
            Self::UnsafeUrl => "unsafe-url",
        }
    }

    /// The policy of this name, in any case.
    #[must_use]
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|policy| name.eq_ignore_ascii_case(policy.name()))
    }

    /// What a `Referrer-Policy` header says: the last policy of it that is one.
    #[must_use]
    pub fn from_header(value: &str) -> Option<Self> {
        value.rsplit(',').find_map(|token| Self::named(token.trim_matches([' ', '\t'])))
    }

    /// What the `content` of a `<meta name=referrer>` says; it may use four older words (HTML, "referrer").
    #[must_use]
    pub fn from_meta(content: &str) -> Option<Self> {
        match content.to_ascii_lowercase().as_str() {
            "never" => Some(Self::NoReferrer),
            "default" => Some(Self::default()),
            "always" => Some(Self::UnsafeUrl),
            "origin-when-crossorigin" => Some(Self::OriginWhenCrossOrigin),
            content => Self::named(content),
        }
    }

    /// The `Referer` of a request from a page at `from` to `to`; `None` for none.
    #[must_use]
    pub fn referrer(self, from: &Url, to: &Url) -> Option<String> {
        if matches!(from.scheme(), "about" | "blob" | "data" | "file" | "filesystem") || !from.has_host() {
            return None;
        }
        let is_downgrade = || is_trustworthy(from) && !is_trustworthy(to);
        let is_same_origin = || from.origin() == to.origin();
        match self {
            Self::NoReferrer => None,
            Self::NoReferrerWhenDowngrade => (!is_downgrade()).then(|| whole(from)),
            Self::SameOrigin => is_same_origin().then(|| whole(from)),
            Self::Origin => Some(origin(from)),
            Self::StrictOrigin => (!is_downgrade()).then(|| origin(from)),
            Self::OriginWhenCrossOrigin => Some(if is_same_origin() { whole(from) } else { origin(from) }),
            Self::StrictOriginWhenCrossOrigin if is_same_origin() => Some(whole(from)),
            Self::StrictOriginWhenCrossOrigin => (!is_downgrade()).then(|| origin(from)),
            Self::UnsafeUrl => Some(whole(from)),
        }
    }
}

/// Bytes of a body in which a declaration is looked for before the page is parsed for it.
const LOOKED_AT: usize = 64 * 1024;

/// Whether a page may declare a policy, told from its bytes in any encoding that has ASCII in it: whether some `name` is
/// given a value that begins like `referrer`.
#[must_use]
pub fn may_declare(body: &[u8]) -> bool {
    let head = body.get(..LOOKED_AT).unwrap_or(body);
    memchr2_iter(b'f', b'F', head).any(|at| {
        let Some(start) = at.checked_sub(2) else { return false };
        let (Some(before), Some(word)) = (head.get(..start), head.get(start..start + 8)) else { return false };
        word.eq_ignore_ascii_case(b"referrer") && is_given_to_a_name(before)
    })
}

/// Whether the text before a value ends in `name`, `=` and a quote or none.
fn is_given_to_a_name(before: &[u8]) -> bool {
    let before = before.strip_suffix(b"\"").or_else(|| before.strip_suffix(b"'")).unwrap_or(before).trim_ascii_end();
    let name = before.strip_suffix(b"=").map(<[u8]>::trim_ascii_end);
    name.is_some_and(|name| name.last_chunk::<4>().is_some_and(|name| name.eq_ignore_ascii_case(b"name")))
}

/// The policy that a page declares by `<meta name=referrer>`: the last one that is one, as in browsers.
#[must_use]
pub fn declared(page: &Page) -> Option<ReferrerPolicy> {
    let metas = page.css("meta[name][content]");
    let policies = metas.nodes().filter_map(|meta| {
        let is_referrer = meta.attr("name")?.eq_ignore_ascii_case("referrer");
        is_referrer.then(|| ReferrerPolicy::from_meta(meta.attr("content")?))?
    });
    policies.last()
}

/// Whether nobody on the way can read or change what is asked of it (W3C Secure Contexts, 3.2).
fn is_trustworthy(url: &Url) -> bool {
    let is_local = match url.host() {
        Some(Host::Domain(name)) => name == "localhost" || name.ends_with(".localhost"),
        Some(Host::Ipv4(address)) => address.is_loopback(),
        Some(Host::Ipv6(address)) => address.is_loopback(),
        None => false,
    };
    is_local || matches!(url.scheme(), "https" | "wss" | "ftps")
}

/// The address without what is never told.
fn whole(url: &Url) -> String {
    let mut told = url.clone();
    told.set_fragment(None);
    // Neither fails on a URL with a host.
    let _ = told.set_username("");
    let _ = told.set_password(None);
    if told.as_str().len() > LONGEST { origin(url) } else { told.into() }
}

fn origin(url: &Url) -> String {
    let host = url.host_str().unwrap_or_default();
    match url.port() {
        Some(port) => format!("{}://{host}:{port}/", url.scheme()),
        None => format!("{}://{host}/", url.scheme()),
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing)]

    use proptest::prelude::*;
    use serde_json::Value;

    use super::*;

    #[test]
    fn every_case_of_the_collection_is_answered() {
        let data: Value = serde_json::from_str(include_str!("../../tests/data/http_referrer_policy.json")).unwrap();
        let cases = data["cases"].as_array().unwrap();
        assert_eq!(cases.len(), 156);
        let (mut told, mut wrong) = (0, Vec::new());
        for case in cases {
            let text = |name: &str| case[name].as_str();
            let (ours, expected) = if let Some(policy) = text("policy") {
                told += 1;
                let url = |name| Url::parse(text(name).unwrap()).unwrap();
                let policy = ReferrerPolicy::named(policy).unwrap_or_default();
                (policy.referrer(&url("from"), &url("to")), text("expected"))
            } else {
                let policy = match text("header") {
                    Some(header) => ReferrerPolicy::from_header(header),
                    None => ReferrerPolicy::from_meta(text("meta_content").unwrap()),
                };
                (Some(policy.map_or("", ReferrerPolicy::name).to_owned()), text("expected_policy"))
            };
            if ours.as_deref() != expected {
                wrong.push(format!("{case} {ours:?}"));
            }
        }
        assert_eq!(told, 138);
        assert!(wrong.is_empty(), "{} wrong:\n{}", wrong.len(), wrong.join("\n"));
    }

    #[test]
    fn the_last_policy_of_a_page_counts_and_is_seen_in_its_bytes() {
        for (page, policy) in [
            ("<meta name=referrer content=origin>", Some(ReferrerPolicy::Origin)),
            ("<META NAME = 'Referrer' CONTENT='never'>", Some(ReferrerPolicy::NoReferrer)),
            (
                "<meta name=referrer content=origin><meta name=referrer content=x><meta name=referrer content=''>",
                Some(ReferrerPolicy::Origin),
            ),
            ("<meta content='unsafe-url' name=\"referrer\">", Some(ReferrerPolicy::UnsafeUrl)),
            ("<meta name=referrer>", None),
            ("<!-- <meta name=referrer content=origin> -->", None),
        ] {
            assert_eq!(declared(&Page::parse(page)), policy, "{page}");
            assert!(may_declare(page.as_bytes()), "{page}");
        }
        for page in ["<script>send(document.referrer)</script>", "<meta name=description>", "referrer", "f", "name=ref"] {
            assert!(!may_declare(page.as_bytes()), "{page}");
        }
    }

    #[test]
    fn the_own_machine_is_as_good_as_protected() {
        let referrer = |from: &str, to: &str| {
            ReferrerPolicy::NoReferrerWhenDowngrade.referrer(&Url::parse(from).unwrap(), &Url::parse(to).unwrap())
        };
        assert!(referrer("https://a.test/", "http://127.0.0.1:8000/").is_some());
        assert!(referrer("http://[::1]/", "http://a.test/").is_none());
        assert!(referrer("http://a.test/", "http://b.test/").is_some());
    }

    proptest! {
        #[test]
        fn user_and_fragment_are_never_told(policy in 0_usize..8, path in "[a-z/?=]{0,20}", https: bool, same: bool) {
            let scheme = if https { "https" } else { "http" };
            let from = Url::parse(&format!("{scheme}://canary:canary@a.test/{path}#canary")).unwrap();
            let to = Url::parse(if same { "https://a.test/x" } else { "http://b.test/" }).unwrap();
            if let Some(told) = ReferrerPolicy::ALL[policy].referrer(&from, &to) {
                prop_assert!(!told.contains("canary") && told.starts_with(&format!("{scheme}://a.test/")), "{}", told);
            }
        }
    }
}
