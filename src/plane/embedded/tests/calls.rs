//! Leases, reports and the ledger.

use std::collections::BTreeSet;
use std::os::unix::fs::PermissionsExt as _;

use futures_util::FutureExt;
use secrecy::ExposeSecret as _;
use tokio::time::advance;

use super::*;
use crate::plane::RefusalKind;
use crate::plane::embedded::anonymous::ANONYMOUS;

#[tokio::test(start_paused = true)]
async fn a_lease_carries_all_that_the_file_says_of_its_identity() {
    let plane = shop(&["a"], "[[sites.proxies]]\nname = \"out\"\nurl = \"socks5://u:p@10.0.0.1:1080\"\nregion = \"de\"\n");
    let grant = plane.acquire_now(&ask("shop", "/book")).unwrap();
    assert_eq!((&*grant.identity.site, &*grant.identity.name), ("shop", "a"));
    assert_eq!(grant.credential.headers["x-id"], "a");
    assert!(grant.credential.headers["x-id"].is_sensitive());
    assert_eq!((&*grant.credential.cookies[0].0, grant.credential.cookies[0].1.expose_secret()), ("sid", "a"));
    assert_eq!(grant.proxy.as_ref().unwrap().expose(), "socks5://u:p@10.0.0.1:1080");
    let about = &grant.about;
    assert_eq!((&*about.group, &*about.identity_type, about.is_sticky, about.is_probe), ("_default", "plain", false, false));
    let proxy = about.proxy.as_ref().unwrap();
    assert_eq!((&*proxy.id, &*proxy.kind, &*proxy.region), ("out", "datacenter", "de"));
    assert_eq!((grant.expires_at, grant.renew_before), (Instant::now() + seconds(120), seconds(30)));
    assert!(!format!("{plane:?} {grant:?}").contains("u:p"));
}

#[tokio::test(start_paused = true)]
async fn all_leases_of_an_identity_share_its_credential_until_it_is_another() {
    let typed = "[[sites.identity_types]]\nname = \"session\"\nfields.key = { type = \"secret_ref\", required = true }\n\
                 deliver.headers = { X-Key = \"{{ key }}\" }\nactivation = \"immediate\"\n\
                 [[sites.identities]]\nname = \"t\"\ntype = \"session\"\npayload = { key = \"shop/key\" }\n";
    let plane = plane(&format!("[secrets]\n\"shop/key\" = \"one\"\n[[sites]]\nname = \"shop\"\n{typed}"));
    let lease = |plane: &Embedded| {
        let grant = plane.acquire_now(&ask("shop", "/")).unwrap();
        plane.release_now(&grant.lease).unwrap();
        grant.credential
    };
    let (first, second) = (lease(&plane), lease(&plane));
    assert_eq!(first.headers["x-key"], "one");
    assert!(Arc::ptr_eq(&first, &second));
    plane.desk.with(|plane, _| plane.config_center().secrets_mut().put("shop/key", "two".to_owned().into(), None)).unwrap();
    assert_eq!(lease(&plane).headers["x-key"], "two");
}

#[tokio::test(start_paused = true)]
async fn a_refusal_says_when_to_come_again() {
    let plane = shop(&["a"], "cooldown_429 = \"60s\"\n");
    let grant = plane.acquire_now(&ask("shop", "/")).unwrap();
    let refusal = plane.acquire_now(&ask("shop", "/")).unwrap_err();
    assert_eq!(refusal.why, RefusalKind::NoIdentity);
    let sent = Report { status: Some(429), ..report(1, &grant.lease, true) };
    assert_eq!(plane.report_now(&[sent]), Taken::default());
    let hint = plane.acquire_now(&ask("shop", "/")).unwrap_err().retry_after.unwrap();
    assert!((seconds(48)..=seconds(60)).contains(&hint), "{hint:?}");
    advance(seconds(72)).await;
    assert!(plane.acquire_now(&ask("shop", "/")).is_ok());
    let ledger = plane.ledger_now();
    assert_eq!((ledger.acquired, ledger.released, ledger.open, ledger.reports, ledger.cooled), (2, 1, 1, 1, 1));
}

#[tokio::test(start_paused = true)]
async fn an_expired_lease_comes_back_by_itself() {
    let plane = shop(&["a"], "");
    let grant = plane.acquire_now(&ask("shop", "/")).unwrap();
    advance(seconds(119)).await;
    assert!(plane.acquire_now(&ask("shop", "/")).is_err());
    advance(seconds(1)).await;
    assert!(plane.acquire_now(&ask("shop", "/")).is_ok());
    assert_eq!(plane.renew_now(&grant.lease), Err(PlaneError::NoLease(grant.lease.0.to_string())));
    let counts = PlaneLedger { acquired: 2, expired: 1, open: 1, ..PlaneLedger::default() };
    assert_eq!(plane.ledger_now(), counts);
}

#[tokio::test(start_paused = true)]
async fn a_renewed_lease_lives_on() {
    let plane = shop(&["a"], "");
    let grant = plane.acquire_now(&ask("shop", "/")).unwrap();
    advance(seconds(90)).await;
    assert_eq!(plane.renew_now(&grant.lease), Ok(grant.expires_at + seconds(90)));
    advance(seconds(119)).await;
    plane.sweep();
    assert_eq!(plane.report_now(&[report(1, &grant.lease, true)]), Taken::default());
    assert!(matches!(plane.renew_now(&grant.lease), Err(PlaneError::NoLease(_))));
    let never = LeaseId("lse_00000000000070008000000000000000_0_00".into());
    assert_eq!(plane.renew_now(&never), Err(PlaneError::UnknownLease(never.0.to_string())));
    assert_eq!(plane.release_now(&never), Err(PlaneError::UnknownLease(never.0.to_string())));
}

#[tokio::test(start_paused = true)]
async fn a_report_counts_once_and_one_of_nobodys_lease_is_rejected_by_its_number() {
    let plane = shop(&["a"], "");
    let grant = plane.acquire_now(&ask("shop", "/")).unwrap();
    let never = LeaseId("lse_x".into());
    let sent =
        [report(1, &grant.lease, false), report(7, &never, true), report(1, &grant.lease, false), report(2, &grant.lease, true)];
    let taken = plane.report_now(&sent);
    assert_eq!((taken.duplicated, taken.rejected.len()), (1, 1));
    assert_eq!((taken.rejected[0].id, taken.rejected[0].is_unknown_lease), (7, true));
    let ledger = plane.ledger_now();
    assert_eq!((ledger.reports, ledger.released, ledger.open), (2, 1, 0));
}

#[tokio::test(start_paused = true)]
async fn more_reports_than_one_call_takes_are_taken_all_the_same() {
    let plane = shop(&["a"], "");
    let grant = plane.acquire_now(&ask("shop", "/")).unwrap();
    let sent: Vec<Report> = (0..1_201).map(|id| report(id, &grant.lease, id == 1_200)).collect();
    assert_eq!(plane.report_now(&sent), Taken::default());
    assert_eq!((plane.ledger_now().reports, plane.ledger_now().released), (1_201, 1));
}

#[tokio::test(start_paused = true)]
async fn whatever_a_report_says_is_within_the_bounds() {
    let plane = shop(&["a"], "");
    let grant = plane.acquire_now(&ask("shop", "/")).unwrap();
    let long = "é".repeat(5_000);
    let sent = Report {
        path: String::new(),
        markers: std::iter::once(String::new()).chain((0..100).map(|n| format!("{n}{long}"))).collect(),
        business_code: Some(long.clone()),
        outcome_hint: Some(long.clone()),
        status: Some(u16::MAX),
        error: Some(ErrorKind::Tls),
        latency: Duration::MAX,
        bytes: u64::MAX,
        ..report(1, &grant.lease, false)
    };
    assert_eq!(plane.report_now(&[sent]), Taken::default());
    let sent = Report { path: long, ..report(2, &grant.lease, true) };
    assert_eq!(plane.report_now(&[sent]), Taken::default());
}

#[tokio::test(start_paused = true)]
async fn markers_codes_and_transport_errors_reach_the_model() {
    let plane = shop(&["a", "b", "c"], "[[sites.proxies]]\nurl = \"http://10.0.0.1:1\"\nmax_concurrency = 9\n");
    let grants = plane.acquire_batch_now(&ask("shop", "/"), 3).unwrap();
    let names: BTreeSet<_> = grants.iter().map(|grant| grant.identity.name.to_string()).collect();
    assert_eq!(names.len(), 3);
    let sent = [
        Report { markers: vec!["captcha_page".into()], ..report(1, &grants[0].lease, true) },
        Report { status: Some(401), ..report(2, &grants[1].lease, true) },
        Report { status: None, error: Some(ErrorKind::ProxyAuth), ..report(3, &grants[2].lease, true) },
    ];
    plane.report_now(&sent);
    let states = |name: &Arc<str>| plane.desk.with(|plane, _| plane.ledger().sites["shop"].identities[&**name].clone());
    assert_eq!(states(&grants[0].identity.name).cooldowns, 1);
    assert_eq!(states(&grants[1].identity.name).state, "expired");
    assert_eq!(states(&grants[2].identity.name).cooldowns, 0);
    // One that rests on the whole site, one that expired, one proxy.
    assert_eq!(plane.ledger_now().cooled, 3);
    assert_eq!(plane.acquire_now(&ask("shop", "/")).unwrap_err().why, RefusalKind::NoProxy);
}

#[tokio::test(start_paused = true)]
async fn a_session_stays_with_its_identity() {
    let sticky = "[sites.rotation]\nsticky = { enabled = true, ttl = \"100s\" }\n";
    let plane = shop(&["a", "b", "c"], sticky);
    let mine = Ask { session_key: Some("basket-1".into()), ..ask("shop", "/") };
    let first = plane.acquire_now(&mine).unwrap();
    plane.release_now(&first.lease).unwrap();
    for _ in 0..10 {
        let again = plane.acquire_now(&mine).unwrap();
        assert_eq!((&again.identity, again.about.is_sticky), (&first.identity, true));
        plane.release_now(&again.lease).unwrap();
    }
}

#[tokio::test(start_paused = true)]
async fn an_anonymous_ask_is_granted_without_limit_and_leaves_nothing_behind() {
    let plane = shop(&["a"], "");
    for n in 0..5_000u64 {
        let anonymous = Ask { anonymous: true, ..ask(&format!("h{n}.example"), "/") };
        let grant = plane.acquire_now(&anonymous).unwrap();
        assert_eq!((&*grant.identity.site, &*grant.identity.name), (&*format!("h{n}.example"), ANONYMOUS));
        assert!(grant.credential.is_empty() && grant.proxy.is_none());
        assert_eq!((grant.expires_at, grant.renew_before), (Instant::now() + seconds(300), seconds(75)));
        let sent = Report { status: Some(429), retry_after: Some(seconds(60)), ..report(n, &grant.lease, true) };
        assert_eq!(plane.report_now(&[sent]), Taken::default());
    }
    let counts = PlaneLedger { acquired: 5_000, released: 5_000, reports: 5_000, ..PlaneLedger::default() };
    assert_eq!(plane.ledger_now(), counts);
}

#[tokio::test(start_paused = true)]
async fn without_a_file_every_site_has_an_anonymous_identity() {
    let plane = Embedded::anonymous();
    let one = plane.acquire_now(&ask("shop", "/")).unwrap();
    let two = plane.acquire_batch_now(&ask("shop", "/"), 5).unwrap();
    assert_eq!(two.len(), 1);
    assert_eq!((&one.identity, &*one.identity.name), (&two[0].identity, ANONYMOUS));
    assert_ne!(one.lease, two[0].lease);
    advance(seconds(300)).await;
    assert_eq!(plane.ledger_now().expired, 2);
}

#[tokio::test(start_paused = true)]
async fn every_future_is_ready_when_first_polled_and_does_nothing_before() {
    let plane = shop(&["a"], "");
    drop(plane.acquire(ask("shop", "/")));
    assert_eq!(plane.ledger().unwrap().acquired, 0);
    let grant = plane.acquire(ask("shop", "/")).now_or_never().unwrap().unwrap();
    assert!(plane.renew(grant.lease.clone()).now_or_never().unwrap().is_ok());
    assert_eq!(plane.report(vec![report(1, &grant.lease, false)]).now_or_never().unwrap(), Ok(Taken::default()));
    assert_eq!(plane.release(grant.lease.clone()).now_or_never().unwrap(), Ok(()));
    assert_eq!(plane.release(grant.lease).now_or_never().unwrap(), Ok(()));
    assert_eq!(plane.acquire_batch(ask("shop", "/"), 3).now_or_never().unwrap().unwrap().len(), 1);
    assert!(!plane.is_remote());
}

#[test]
fn equal_seeds_give_equal_leases() {
    let run = || {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build().unwrap();
        runtime.block_on(async {
            let plane = shop(&["a", "b", "c", "d"], "");
            let turns = (0..50).map(|_| {
                let grant = plane.acquire_now(&ask("shop", "/")).unwrap();
                plane.release_now(&grant.lease).unwrap();
                grant.identity.name
            });
            turns.collect::<Vec<_>>()
        })
    };
    assert_eq!(run(), run());
}

#[tokio::test]
async fn a_file_that_others_may_read_is_used() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("ids.toml");
    std::fs::write(&path, "[[sites]]\nname = \"shop\"\n[[sites.identities]]\nname = \"a\"\n").unwrap();
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o644)).unwrap();
    assert!(Embedded::load(&path).unwrap().acquire_now(&ask("shop", "/")).is_ok());
    let error = Embedded::load(&dir.path().join("gone.toml")).unwrap_err().to_string();
    assert!(error.contains("gone.toml cannot be read"), "{error}");
}

#[tokio::test(start_paused = true)]
async fn a_407_is_the_proxys_and_leaves_the_identity_alone() {
    let plane = shop(&["a"], "[[sites.proxies]]\nname = \"out\"\nurl = \"http://u:p@10.0.0.1:3128\"\n");
    let grant = plane.acquire_now(&ask("shop", "/")).unwrap();
    let sent = Report { status: Some(407), ..report(1, &grant.lease, true) };
    assert_eq!(plane.report_now(&[sent]), Taken::default());
    assert_eq!(plane.acquire_now(&ask("shop", "/")).unwrap_err().why, RefusalKind::NoProxy);
    assert_eq!(plane.ledger_now().cooled, 1);
}
