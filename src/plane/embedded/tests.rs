//! What the embedded plane promises, sentence by sentence.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing)]

use std::collections::BTreeMap;
use std::time::Duration;

use futures_util::FutureExt;
use http::Method;
use tokio::time::advance;

use super::roster::{Group, Identity, Pool, Proxy, Site};
use super::*;
use crate::plane::ProxyUrl;

pub(super) fn ask(site: &str, path: &str) -> Ask {
    Ask { site: site.into(), client: "web".into(), group: "".into(), path: path.to_owned(), session_key: None, anonymous: false, rule: None }
}

pub(super) fn report(id: u64, lease: &LeaseId, release: bool) -> Report {
    Report {
        id,
        lease: lease.clone(),
        path: "/".to_owned(),
        method: Method::GET,
        status: Some(200),
        error: None,
        markers: Vec::new(),
        business_code: None,
        outcome_hint: None,
        sent_at: tokio::time::Instant::now(),
        latency: Duration::from_millis(20),
        bytes: 100,
        retry_after: None,
        release,
    }
}

fn seconds(n: u64) -> Duration {
    Duration::from_secs(n)
}

fn plane(site: Site) -> Embedded {
    Embedded::new(Some(&Roster { sites: vec![site], proxies: Vec::new() }))
}

fn names(names: &[&str]) -> Vec<Identity> {
    names.iter().map(|name| Identity::new(name)).collect()
}

#[tokio::test(start_paused = true)]
async fn identities_take_turns() {
    let plane = plane(Site::new("shop", names(&["a", "b", "c"])));
    let mut seen = BTreeMap::<String, u32>::new();
    for turn in 0..9 {
        let grant = plane.acquire_now(&ask("shop", "/")).unwrap();
        assert_eq!(&*grant.identity.name, ["a", "b", "c"][turn % 3]);
        *seen.entry(grant.identity.name.to_string()).or_default() += 1;
        plane.release_now(&grant.lease);
    }
    assert!(seen.values().all(|n| *n == 3));
}

#[tokio::test(start_paused = true)]
async fn a_busy_identity_is_refused_without_a_time() {
    let plane = plane(Site::new("shop", names(&["a"])));
    let first = plane.acquire_now(&ask("shop", "/")).unwrap();
    let refusal = plane.acquire_now(&ask("shop", "/")).unwrap_err();
    assert_eq!((refusal.why, refusal.retry_after), (RefusalKind::NoIdentity, None));
    plane.release_now(&first.lease);
    assert!(plane.acquire_now(&ask("shop", "/")).is_ok());
}

#[tokio::test(start_paused = true)]
async fn a_resting_identity_is_refused_with_the_exact_time() {
    let mut site = Site::new("shop", names(&["a"]));
    site.identities[0].reuse_interval = seconds(10);
    let plane = plane(site);
    let first = plane.acquire_now(&ask("shop", "/")).unwrap();
    plane.release_now(&first.lease);
    advance(seconds(3)).await;
    assert_eq!(plane.acquire_now(&ask("shop", "/")).unwrap_err().retry_after, Some(seconds(7)));
    advance(seconds(7)).await;
    assert!(plane.acquire_now(&ask("shop", "/")).is_ok());
}

#[tokio::test(start_paused = true)]
async fn a_429_rests_the_identity_for_the_longer_of_rule_and_request() {
    for (asked, rest) in [(None, 60), (Some(5), 60), (Some(600), 600), (Some(u64::MAX), 365 * 86_400)] {
        let plane = plane(Site::new("shop", names(&["a"])));
        let grant = plane.acquire_now(&ask("shop", "/")).unwrap();
        let mut sent = report(1, &grant.lease, true);
        (sent.status, sent.retry_after) = (Some(429), asked.map(seconds));
        assert_eq!(plane.report_now(&[sent]), []);
        assert_eq!(plane.acquire_now(&ask("shop", "/")).unwrap_err().retry_after, Some(seconds(rest)));
    }
}

#[tokio::test(start_paused = true)]
async fn a_rest_holds_for_its_endpoint_group_only() {
    let mut site = Site::new("shop", names(&["a"]));
    site.groups = vec![
        Group { name: "api".into(), prefixes: vec!["/api".into()] },
        Group { name: "search".into(), prefixes: vec!["/api/search".into(), "/find".into()] },
    ];
    let plane = plane(site);
    let grant = plane.acquire_now(&ask("shop", "/api/search/x")).unwrap();
    let mut sent = report(1, &grant.lease, true);
    sent.status = Some(403);
    plane.report_now(&[sent]);
    assert_eq!(plane.acquire_now(&ask("shop", "/find")).unwrap_err().retry_after, Some(seconds(300)));
    let mut named = ask("shop", "/");
    named.group = "search".into();
    assert!(plane.acquire_now(&named).is_err());
    let other = plane.acquire_now(&ask("shop", "/api/other")).unwrap();
    plane.release_now(&other.lease);
    assert!(plane.acquire_now(&ask("shop", "/")).is_ok());
}

#[tokio::test(start_paused = true)]
async fn an_expired_lease_comes_back_by_itself() {
    let plane = plane(Site::new("shop", names(&["a"])));
    let grant = plane.acquire_now(&ask("shop", "/")).unwrap();
    assert_eq!(grant.renew_before, seconds(75));
    advance(seconds(299)).await;
    assert!(plane.acquire_now(&ask("shop", "/")).is_err());
    advance(seconds(1)).await;
    assert!(plane.acquire_now(&ask("shop", "/")).is_ok());
    assert_eq!(plane.report_now(&[report(1, &grant.lease, true)]).len(), 1);
    assert_eq!(plane.ledger().unwrap(), PlaneLedger { acquired: 2, released: 0, expired: 1, open: 1, reports: 0, cooled: 0 });
}

#[tokio::test(start_paused = true)]
async fn a_renewed_lease_lives_on() {
    let plane = plane(Site::new("shop", names(&["a"])));
    let grant = plane.acquire_now(&ask("shop", "/")).unwrap();
    advance(seconds(225)).await;
    assert_eq!(plane.renew_now(&grant.lease), Ok(grant.expires_at + seconds(225)));
    advance(seconds(299)).await;
    plane.sweep();
    assert_eq!(plane.report_now(&[report(1, &grant.lease, true)]), []);
    assert!(matches!(plane.renew_now(&grant.lease), Err(PlaneError::NoLease(_))));
}

#[tokio::test(start_paused = true)]
async fn a_report_counts_once_and_a_second_last_one_is_rejected() {
    let plane = plane(Site::new("shop", names(&["a"])));
    let grant = plane.acquire_now(&ask("shop", "/")).unwrap();
    let sent = [report(1, &grant.lease, false), report(1, &grant.lease, false), report(2, &grant.lease, true)];
    assert_eq!(plane.report_now(&sent), []);
    let rejected = plane.report_now(&[report(3, &grant.lease, true)]);
    assert_eq!(rejected, [Rejected { id: 3, is_unknown_lease: true, reason: "lease is unknown or over".to_owned() }]);
    let ledger = plane.ledger().unwrap();
    assert_eq!((ledger.reports, ledger.released, ledger.open), (2, 1, 0));
}

#[tokio::test(start_paused = true)]
async fn a_session_stays_with_its_identity() {
    let mut site = Site::new("shop", names(&["a", "b", "c"]));
    site.rules.sticky_ttl = seconds(100);
    let plane = plane(site);
    let mut mine = ask("shop", "/");
    mine.session_key = Some("basket-1".into());
    let first = plane.acquire_now(&mine).unwrap();
    let refusal = plane.acquire_now(&mine).unwrap_err();
    assert_eq!((refusal.why, refusal.retry_after), (RefusalKind::NoIdentity, None));
    let mut sent = report(1, &first.lease, true);
    sent.status = Some(429);
    plane.report_now(&[sent]);
    assert_eq!(plane.acquire_now(&mine).unwrap_err().retry_after, Some(seconds(60)));
    assert_eq!(&*plane.acquire_now(&ask("shop", "/")).unwrap().identity.name, "b");
    advance(seconds(60)).await;
    let again = plane.acquire_now(&mine).unwrap();
    assert_eq!(again.identity, first.identity);
    plane.release_now(&again.lease);
    advance(seconds(100)).await;
    assert_eq!(&*plane.acquire_now(&mine).unwrap().identity.name, "c", "the key is forgotten");
}

#[tokio::test(start_paused = true)]
async fn a_failed_proxy_rests_and_the_next_one_serves() {
    let proxy =
        |n: u8| Proxy { name: format!("p{n}").into(), url: ProxyUrl(format!("http://10.0.0.{n}:1").into()), concurrency: 1 };
    let mut site = Site::new("shop", names(&["a", "b", "c"]));
    site.pool = Pool::Own(vec![proxy(1), proxy(2)]);
    let plane = plane(site);
    let first = plane.acquire_now(&ask("shop", "/")).unwrap();
    let second = plane.acquire_now(&ask("shop", "/")).unwrap();
    assert_ne!(first.proxy, second.proxy);
    let refusal = plane.acquire_now(&ask("shop", "/")).unwrap_err();
    assert_eq!((refusal.why, refusal.retry_after), (RefusalKind::NoProxy, None));
    let failed = |id, grant: &Grant| {
        let mut sent = report(id, &grant.lease, true);
        (sent.status, sent.error) = (None, Some(ErrorKind::ProxyAuth));
        sent
    };
    plane.report_now(&[failed(1, &first)]);
    advance(seconds(10)).await;
    plane.report_now(&[failed(2, &second)]);
    let refusal = plane.acquire_now(&ask("shop", "/")).unwrap_err();
    assert_eq!((refusal.why, refusal.retry_after), (RefusalKind::NoProxy, Some(seconds(50))));
    advance(seconds(50)).await;
    assert_eq!(plane.acquire_now(&ask("shop", "/")).unwrap().proxy, first.proxy);
}

#[tokio::test(start_paused = true)]
async fn sites_share_the_proxies_of_the_roster() {
    let shared = Proxy { name: "p".into(), url: ProxyUrl("http://10.0.0.1:1".into()), concurrency: 1 };
    let site = |name| Site { pool: Pool::Shared, ..Site::new(name, names(&["a"])) };
    let plane = Embedded::new(Some(&Roster { sites: vec![site("one"), site("two")], proxies: vec![shared] }));
    let grant = plane.acquire_now(&ask("one", "/")).unwrap();
    assert_eq!(plane.acquire_now(&ask("two", "/")).unwrap_err().why, RefusalKind::NoProxy);
    plane.release_now(&grant.lease);
    assert!(plane.acquire_now(&ask("two", "/")).is_ok());
}

#[tokio::test(start_paused = true)]
async fn unknown_names_are_refused_for_good_with_what_is_known() {
    let mut site = Site::new("shop", names(&["a", "b"]));
    site.clients = vec!["web".into(), "app".into()];
    for identity in &mut site.identities {
        identity.clients = vec!["web".into()];
    }
    let plane = plane(site);
    let with = |site: &str, client: &str, group: &str| {
        let ask = Ask { client: client.into(), group: group.into(), ..ask(site, "/") };
        let refusal = plane.acquire_now(&ask).unwrap_err();
        assert!(!refusal.why.is_temporary());
        (refusal.why, refusal.message)
    };
    let (why, message) = with("shp", "web", "");
    assert_eq!(why, RefusalKind::SiteUnknown);
    assert!(message.contains("\"shp\"") && message.contains("shop"), "{message}");
    let (why, message) = with("shop", "tv", "");
    assert_eq!(why, RefusalKind::ClientUnknown);
    assert!(message.contains("web, app"), "{message}");
    assert_eq!(with("shop", "app", "").0, RefusalKind::ClientUnknown, "no identity serves it");
    assert_eq!(with("shop", "web", "cart").0, RefusalKind::Invalid);
}

#[tokio::test(start_paused = true)]
async fn an_anonymous_ask_is_granted_without_limit_and_leaves_nothing_behind() {
    let plane = plane(Site::new("shop", names(&["a"])));
    for n in 0..5_000u64 {
        let mut anonymous = ask(&format!("h{n}.example"), "/");
        anonymous.anonymous = true;
        let grant = plane.acquire_now(&anonymous).unwrap();
        assert_eq!((&*grant.identity.site, &*grant.identity.name), (&*format!("h{n}.example"), ANONYMOUS));
        assert!(grant.credential.is_empty() && grant.proxy.is_none());
        let mut sent = report(n, &grant.lease, true);
        (sent.status, sent.retry_after) = (Some(429), Some(seconds(60)));
        assert_eq!(plane.report_now(&[sent]), []);
    }
    let state = plane.state();
    assert!(state.leases.watched() <= 66);
    assert_eq!((state.table.len(), state.leases.ledger().open), (1, 0));
}

#[tokio::test(start_paused = true)]
async fn without_a_roster_every_site_has_an_anonymous_identity() {
    let plane = Embedded::new(None);
    let one = plane.acquire_now(&ask("shop", "/")).unwrap();
    let two = plane.acquire_now(&ask("shop", "/")).unwrap();
    assert_eq!(one.identity, two.identity);
    assert_ne!(one.lease, two.lease);
}

#[tokio::test(start_paused = true)]
async fn every_future_is_ready_when_first_polled_and_does_nothing_before() {
    let plane = plane(Site::new("shop", names(&["a"])));
    drop(plane.acquire(ask("shop", "/")));
    assert_eq!(plane.ledger().unwrap().acquired, 0);
    let grant = plane.acquire(ask("shop", "/")).now_or_never().unwrap().unwrap();
    assert!(plane.renew(grant.lease.clone()).now_or_never().unwrap().is_ok());
    assert_eq!(plane.report(vec![report(1, &grant.lease, false)]).now_or_never().unwrap(), Ok(TakenIn::default()));
    assert_eq!(plane.release(grant.lease.clone()).now_or_never().unwrap(), Ok(()));
    assert_eq!(plane.release(grant.lease).now_or_never().unwrap(), Ok(()));
}
