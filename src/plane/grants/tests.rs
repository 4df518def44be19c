#![allow(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing)]

use secrecy::ExposeSecret as _;
use serde_json::{Value, json};

use super::*;
use crate::spinneret::testing::{Logs, lease};

fn read(answer: Value) -> AcquireResponse {
    serde_json::from_value(answer).unwrap()
}

fn site() -> Arc<str> {
    "shop".into()
}

fn wall() -> Timestamp {
    "2026-09-16T08:28:00Z".parse().unwrap()
}

fn grant(grants: &Grants, answer: Value) -> Result<Grant, Unusable> {
    grants.grant(&site(), read(answer), wall(), Instant::now())
}

/// The credential that is made of this one.
fn made(credential: Value) -> Arc<Credential> {
    let mut answer = lease("l");
    answer["credential"] = credential;
    grant(&Grants::new(), answer).unwrap().credential
}

fn cookies(credential: &Credential) -> String {
    credential.cookie_header().map(|value| String::from_utf8(value.as_bytes().to_vec()).unwrap()).unwrap_or_default()
}

#[test]
fn a_lease_of_the_wire_is_a_grant() {
    let now = Instant::now();
    let granted = Grants::new().grant(&site(), read(lease("lse_7")), wall(), now).unwrap();
    assert_eq!(&*granted.lease.0, "lse_7");
    assert_eq!(granted.identity, IdentityKey { site: "shop".into(), name: "idt_1".into() });
    assert_eq!(granted.proxy.as_ref().unwrap().expose(), "http://user:c4n4ry-password@10.0.0.1:3128");
    assert_eq!(granted.expires_at, now + Duration::from_secs(120));
    assert_eq!(granted.renew_before, Duration::from_secs(30));
    let proxy = ProxyAbout { id: "pxy_1".into(), kind: "datacenter".into(), region: "de".into() };
    let about =
        About { group: "search".into(), identity_type: "account".into(), proxy: Some(proxy), is_sticky: false, is_probe: false };
    assert_eq!(granted.about, about);
    let credential = &granted.credential;
    assert_eq!(credential.headers["user-agent"], "c4n4ry-agent");
    assert!(credential.headers["user-agent"].is_sensitive());
    assert_eq!(cookies(credential), "sid=c4n4ry-cookie");
    assert_eq!((credential.query[0].0.as_str(), credential.query[0].1.expose_secret()), ("sig", "c4n4ry-query"));
    assert!(credential.json.is_null() && credential.values.is_empty());
    assert!(!format!("{granted:?}").contains("c4n4ry"), "{granted:?}");
}

#[test]
fn json_and_values_come_along_and_sticky_and_probe_are_told() {
    let mut answer = lease("l");
    answer["credential"]["json"] = json!({"device": 7});
    answer["credential"]["values"] = json!({"token": "t"});
    answer["lease"]["sticky"] = json!(true);
    answer["lease"]["probe"] = json!(true);
    answer["proxy"] = Value::Null;
    let granted = grant(&Grants::new(), answer).unwrap();
    assert_eq!((&granted.credential.json, &granted.credential.values["token"]), (&json!({"device": 7}), &json!("t")));
    assert!(granted.about.is_sticky && granted.about.is_probe);
    assert_eq!((granted.proxy, granted.about.proxy), (None, None));
}

#[test]
fn cookies_have_one_source() {
    for (credential, expected) in [
        (json!({"cookies": {"b": "2", "a": "1"}, "cookie_header": "c=3"}), "a=1; b=2"),
        (json!({"cookie_header": "b=1; a = 2 ;flag; =x; c="}), "a=2; b=1; c="),
        (json!({"cookie_header": "a=1", "headers": {"COOKIE": "b=2; d=4"}}), "b=2; d=4"),
        (json!({"cookies": {"b": "9"}, "headers": {"Cookie": "b=2; d=4"}}), "b=9; d=4"),
        (json!({}), ""),
    ] {
        let made = made(credential.clone());
        assert_eq!(cookies(&made), expected, "{credential}");
        assert!(!made.headers.contains_key("cookie"));
    }
}

#[test]
fn what_no_request_can_carry_is_left_out_and_told_once_without_a_value() {
    let logs = Logs::of_target(TARGET);
    let credential = |turn: u32| {
        json!({
            "headers": {"X-Good": "ü", "X-Bad": "c4n4ry\nx", "c4n4ry name": "v", "Host": "c4n4ry", "content-length": "7"},
            "cookies": {"ok": "1", "bad": "c4n4ry;x", "worse": "c4n4ry\n", "a=b": "c4n4ry", "ü": "ü"},
            "query": {"turn": turn.to_string()}
        })
    };
    let grants = Grants::new();
    for turn in 0..3 {
        let mut answer = lease("l");
        answer["credential"] = credential(turn);
        let made = grant(&grants, answer).unwrap().credential;
        assert_eq!(made.headers.keys().map(|name| name.as_str()).collect::<Vec<_>>(), ["x-good"]);
        assert_eq!(made.headers["x-good"].as_bytes(), "ü".as_bytes());
        assert_eq!(cookies(&made), "ok=1; ü=ü");
    }
    let text = logs.all().join("\n");
    assert_eq!(text.matches("left out").count(), 1, "{text}");
    for told in ["X-Bad", "Host", "content-length", "bad", "worse", "idt_1", "shop"] {
        assert!(text.contains(told), "{told}: {text}");
    }
    assert!(!text.contains("c4n4ry"), "{text}");
}

#[test]
fn an_identity_of_which_the_same_is_said_has_the_same_credential() {
    let grants = Grants::new();
    let first = grant(&grants, lease("a")).unwrap();
    let second = grant(&grants, lease("b")).unwrap();
    assert!(Arc::ptr_eq(&first.credential, &second.credential));
    assert!(Arc::ptr_eq(&first.identity.name, &second.identity.name));
    assert!(Arc::ptr_eq(&first.about.group, &second.about.group));
    assert!(Arc::ptr_eq(&first.proxy.unwrap().0, &second.proxy.unwrap().0));

    let mut other = lease("c");
    other["credential"]["cookies"]["sid"] = json!("new");
    let third = grant(&grants, other.clone()).unwrap();
    assert!(!Arc::ptr_eq(&first.credential, &third.credential));
    assert_eq!(cookies(&third.credential), "sid=new");
    assert!(Arc::ptr_eq(&third.credential, &grant(&grants, other).unwrap().credential));
}

#[test]
fn identities_of_two_sites_or_names_share_nothing() {
    let grants = Grants::new();
    let mut answers = vec![];
    for (site, id) in [("shop", "idt_1"), ("books", "idt_1"), ("shop", "idt_2")] {
        let mut answer = lease("l");
        answer["lease"]["identity_id"] = json!(id);
        answer["credential"]["cookies"]["sid"] = json!(format!("{site}-{id}"));
        answers.push((Arc::<str>::from(site), answer));
    }
    for _ in 0..2 {
        for (site, answer) in &answers {
            let granted = grants.grant(site, read(answer.clone()), wall(), Instant::now()).unwrap();
            assert_eq!(cookies(&granted.credential), format!("sid={site}-{}", granted.identity.name));
            assert_eq!(granted.identity.site, *site);
        }
    }
}

#[test]
fn identities_that_are_used_are_kept_beside_many_others() {
    let grants = Grants::keeping(2);
    let first = grant(&grants, lease("l")).unwrap().credential;
    for n in 0..50 {
        let mut other = lease("l");
        other["lease"]["identity_id"] = json!(format!("other-{n}"));
        grant(&grants, other).unwrap();
        assert!(Arc::ptr_eq(&first, &grant(&grants, lease("l")).unwrap().credential));
    }
}

#[test]
fn a_proxy_that_cannot_be_used_gives_the_lease_back_without_a_word_of_its_url() {
    for url in [
        "c4n4ry",
        "ftp://u:c4n4ry@h:1",
        "http://u:c4n4ry@",
        "http:u:c4n4ry@h:1",
        "socks4://c4n4ry:1",
        "http://c4n4ry:1 x",
        "http://u:c4n4ry@h:99999",
    ] {
        let mut answer = lease("lse_1");
        answer["proxy"]["url"] = json!(url);
        let unusable = grant(&Grants::new(), answer).unwrap_err();
        assert_eq!(unusable.lease, Some(LeaseId("lse_1".into())), "{url}");
        assert!(unusable.why.contains("proxy pxy_1") && !unusable.why.contains("c4n4ry"), "{url}: {unusable:?}");
    }
    for url in ["https://h:1", "SOCKS5://u:p@h:1", "socks5h://[::1]:1080", "http://h"] {
        let mut answer = lease("l");
        answer["proxy"]["url"] = json!(url);
        assert_eq!(grant(&Grants::new(), answer).unwrap().proxy.unwrap().expose(), url);
    }
    let mut answer = lease("l");
    answer["proxy"]["url"] = json!("");
    assert_eq!(grant(&Grants::new(), answer).unwrap().proxy, None);
}

#[test]
fn a_lease_without_a_usable_name_or_an_identity_is_of_no_use() {
    for (field, value, has_lease) in
        [("lease_id", String::new(), false), ("lease_id", "x".repeat(129), false), ("identity_id", String::new(), true)]
    {
        let mut answer = lease("l");
        answer["lease"][field] = json!(value);
        let unusable = grant(&Grants::new(), answer).unwrap_err();
        assert_eq!(unusable.lease.is_some(), has_lease, "{unusable:?}");
        assert!(unusable.why.contains("site shop"), "{unusable:?}");
    }
}

#[test]
fn the_end_is_found_whatever_is_said_of_it() {
    let now = Instant::now();
    for (expires_at, before, life, renew) in [
        (json!("2026-09-16T08:30:00Z"), 30_000, 120, 30),
        (json!("2026-09-16T09:30:00Z"), 30_000, 120, 30), // our clock is behind
        (json!("2026-09-16T07:30:00Z"), 30_000, 120, 30), // ahead
        (json!("2026-09-16T08:29:00Z"), 30_000, 60, 30),
        (Value::Null, 10_000, 40, 10),
        (Value::Null, 0, 120, 30),
        (json!("2026-09-16T07:30:00Z"), -5, 120, 30),
        (json!("2026-09-16T08:29:00Z"), 0, 60, 15),
    ] {
        let mut answer = lease("l");
        answer["lease"]["expires_at"] = expires_at.clone();
        answer["hints"]["renew_before_ms"] = json!(before);
        let granted = Grants::new().grant(&site(), read(answer), wall(), now).unwrap();
        let expected = (now + Duration::from_secs(life), Duration::from_secs(renew));
        assert_eq!((granted.expires_at, granted.renew_before), expected, "{expires_at} {before}");
    }
}
