//! What a refused lease means for the request: one stated action for each reason, and the words for people.
//!
//! Pure. How long to wait is the broker's business, what to do about it the hub's.

use url::Url;

use crate::plane::{Ask, Refusal, RefusalKind};

/// What to do about a refusal.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Meaning {
    /// Nobody has an identity or proxy to spare: the request waits, and may go when one comes back.
    WaitForReturn,
    /// The request waits.
    Wait,
    /// This request fails.
    Fail(String),
    /// The job stops: a rule names what the plane does not have.
    Misconfigured(String),
    /// The job stops: the plane does not take this node.
    Unauthorized(String),
}

/// What the plane's refusal of `ask`, made for `url`, means.
pub(super) fn meaning(refusal: &Refusal, ask: &Ask, url: &Url) -> Meaning {
    let said = &refusal.message;
    let Ask { site, client, group, .. } = ask;
    match refusal.why {
        RefusalKind::NoIdentity | RefusalKind::NoProxy => Meaning::WaitForReturn,
        RefusalKind::RateLimited
        | RefusalKind::CircuitOpen
        | RefusalKind::SitePaused
        | RefusalKind::Overloaded
        | RefusalKind::Unreachable
        | RefusalKind::Unanswered => Meaning::Wait,
        RefusalKind::SiteUnknown | RefusalKind::ClientUnknown => {
            let (what, name) = match refusal.why {
                RefusalKind::SiteUnknown => ("site", site),
                _ => ("client", client),
            };
            let text = format!(
                "{} names the {what} {name:?}, which the control plane does not know ({said}); correct the name, or add the {what} there",
                who(ask, url)
            );
            if ask.rule.is_some() { Meaning::Misconfigured(text) } else { Meaning::Fail(text) }
        }
        RefusalKind::GroupUnknown => Meaning::Fail(format!(
            "{} asks for the endpoint group {group:?} of site {site}, which the control plane does not know ({said}); correct the name, leave it out so that the path decides, or add the group there",
            who(ask, url)
        )),
        RefusalKind::Invalid => Meaning::Fail(format!(
            "{} makes an ask the control plane does not take: site {site:?}, client {client:?}, group {group:?}, path {:?} ({said}); keep within its limits",
            who(ask, url),
            ask.path
        )),
        RefusalKind::Unauthorized => Meaning::Unauthorized(format!(
            "the control plane does not accept this node's token ({said}); check SPINNERET_TOKEN, and whether the token is expired or revoked"
        )),
        RefusalKind::Forbidden => Meaning::Unauthorized(format!(
            "the control plane accepts this node's token, but not for client {client:?} of site {site:?} ({said}); {} asks for it: give the token that scope, or a rule that it may use",
            who(ask, url)
        )),
    }
}

/// Who made the ask: a rule, or the request itself. The query may hold what is secret.
fn who(ask: &Ask, url: &Url) -> String {
    match &ask.rule {
        Some(rule) => rule.to_string(),
        None => format!("the request for {}{}", url.origin().ascii_serialization(), url.path()),
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing)]
    use super::*;

    const ALL: [RefusalKind; 14] = [
        RefusalKind::NoIdentity,
        RefusalKind::NoProxy,
        RefusalKind::RateLimited,
        RefusalKind::CircuitOpen,
        RefusalKind::SitePaused,
        RefusalKind::Overloaded,
        RefusalKind::SiteUnknown,
        RefusalKind::ClientUnknown,
        RefusalKind::GroupUnknown,
        RefusalKind::Invalid,
        RefusalKind::Unauthorized,
        RefusalKind::Forbidden,
        RefusalKind::Unreachable,
        RefusalKind::Unanswered,
    ];

    fn of(why: RefusalKind, rule: Option<&str>) -> Meaning {
        let ask = Ask {
            site: "shop".into(),
            client: "web".into(),
            group: "list".into(),
            path: "/a".into(),
            session_key: None,
            anonymous: false,
            rule: rule.map(Into::into),
        };
        let refusal = Refusal { why, retry_after: None, message: "the plane's words".into() };
        meaning(&refusal, &ask, &Url::parse("https://shop.example/a?token=canary").unwrap())
    }

    #[test]
    fn each_reason_has_its_one_action() {
        use RefusalKind as R;
        for why in ALL {
            let name = match of(why, Some("LEASES rule 2")) {
                Meaning::WaitForReturn => "return",
                Meaning::Wait => "wait",
                Meaning::Fail(_) => "fail",
                Meaning::Misconfigured(_) => "misconfigured",
                Meaning::Unauthorized(_) => "unauthorized",
            };
            let expected = match why {
                R::NoIdentity | R::NoProxy => "return",
                R::SiteUnknown | R::ClientUnknown => "misconfigured",
                R::GroupUnknown | R::Invalid => "fail",
                R::Unauthorized | R::Forbidden => "unauthorized",
                _ => "wait",
            };
            assert_eq!(name, expected, "{why:?}");
            assert_eq!(why.is_temporary(), matches!(name, "return" | "wait"), "{why:?}");
        }
    }

    #[test]
    fn a_requests_own_unknown_site_or_client_fails_that_request_only() {
        for why in [RefusalKind::SiteUnknown, RefusalKind::ClientUnknown] {
            assert!(matches!(of(why, None), Meaning::Fail(text) if text.contains("the request for https://shop.example/a")));
        }
    }

    #[test]
    fn every_text_names_who_asked_and_what_the_plane_says_and_holds_no_query() {
        for (rule, names) in [(Some("LEASES rule 2"), "LEASES rule 2"), (None, "https://shop.example/a")] {
            for why in ALL {
                let (Meaning::Fail(text) | Meaning::Misconfigured(text) | Meaning::Unauthorized(text)) = of(why, rule) else {
                    continue;
                };
                assert!(text.contains("the plane's words") && text.contains(';'), "{text}");
                assert!(why == RefusalKind::Unauthorized || text.contains(names), "{text}");
                assert!(!text.contains("canary"), "{text}");
            }
        }
    }
}
