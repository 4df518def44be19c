//! Servers that refuse, fail, hang, break off, or are none.

use serde_json::json;

use super::*;
use crate::spinneret::testing::lease;
use crate::spinneret::testing::loopback::{Act, Loopback, answer, nobody};

const TOKEN: &str = "spn_c4n4ry-token";
const HTML: &[u8] = b"<html><body><h1>Sign in</h1><p>portal</p></body></html>";

/// A refusal of the server's own handlers.
fn refused(status: u16, code: &str, reason: &str, hint_ms: u64) -> Act {
    let mut headers = format!("spinneret-reason: {reason}\r\n");
    if hint_ms > 0 {
        headers += &format!("spinneret-retry-after-ms: {hint_ms}\r\n");
    }
    Act::Answer(answer(status, &headers, json!({"code": code, "message": "no"}).to_string().as_bytes()))
}

fn page(status: u16) -> Act {
    Act::Answer(answer(status, "", HTML))
}

fn remote(url: &str) -> Remote {
    Remote::new(client(url, TOKEN), RemoteOptions { snapshots: false, ..RemoteOptions::default() })
}

/// A server that does this with each of the next calls.
async fn server(act: &Act) -> (Loopback, Remote) {
    let server = Loopback::start(vec![act.clone(); 8]).await;
    let remote = remote(&server.url());
    (server, remote)
}

/// Which error of other calls is meant.
#[derive(Debug, PartialEq, Eq)]
enum Kind {
    Unavailable,
    Unauthorized,
    Invalid,
    NotFound,
    Over,
}

fn kind(error: &PlaneError) -> Kind {
    match error {
        PlaneError::Unavailable(_) => Kind::Unavailable,
        PlaneError::Unauthorized(_) => Kind::Unauthorized,
        PlaneError::Invalid(_) => Kind::Invalid,
        PlaneError::NotFound(_) => Kind::NotFound,
        PlaneError::NoLease(_) | PlaneError::UnknownLease(_) => Kind::Over,
    }
}

#[tokio::test]
async fn every_fault_of_a_server_is_told_as_what_it_is() {
    use RefusalKind::{
        CircuitOpen, ClientUnknown, Forbidden, GroupUnknown, Invalid, NoIdentity, NoProxy, Overloaded, RateLimited, SitePaused,
        SiteUnknown, Unanswered, Unauthorized, Unreachable,
    };
    let ms = Duration::from_millis;
    let table = [
        (refused(401, "unauthenticated", "token_invalid", 0), Unauthorized, None, Kind::Unauthorized),
        (refused(403, "permission_denied", "scope_missing", 0), Forbidden, None, Kind::Unauthorized),
        (refused(429, "resource_exhausted", "no_identity_available", 5_000), NoIdentity, Some(ms(5_000)), Kind::Unavailable),
        (refused(429, "resource_exhausted", "no_proxy_available", 70), NoProxy, Some(ms(70)), Kind::Unavailable),
        (refused(429, "resource_exhausted", "rate_limited", 900), RateLimited, Some(ms(900)), Kind::Unavailable),
        (refused(503, "unavailable", "overloaded", 150), Overloaded, Some(ms(150)), Kind::Unavailable),
        (refused(503, "unavailable", "circuit_open", 60_000), CircuitOpen, Some(ms(60_000)), Kind::Invalid),
        (refused(503, "unavailable", "site_paused", 30_000), SitePaused, Some(ms(30_000)), Kind::Invalid),
        (refused(400, "invalid_argument", "site_unknown", 0), SiteUnknown, None, Kind::Invalid),
        (refused(400, "invalid_argument", "client_unknown", 0), ClientUnknown, None, Kind::Invalid),
        (refused(400, "invalid_argument", "endpoint_group_unknown", 0), GroupUnknown, None, Kind::Invalid),
        (refused(400, "invalid_argument", "uri_invalid", 0), Invalid, None, Kind::Invalid),
        (refused(500, "internal", "internal", 0), Unreachable, None, Kind::Unavailable),
        (refused(501, "unimplemented", "", 0), Invalid, None, Kind::Unavailable),
        (page(401), Unauthorized, None, Kind::Unauthorized),
        (page(404), Invalid, None, Kind::Invalid),
        (page(500), Unreachable, None, Kind::Unavailable),
        (page(502), Unanswered, None, Kind::Unavailable),
        (page(503), Unreachable, None, Kind::Unavailable),
        (page(504), Unanswered, None, Kind::Unavailable),
        (page(200), Unanswered, None, Kind::Unavailable),
        (Act::Answer(answer(200, "", b"[1, 2")), Unanswered, None, Kind::Unavailable),
        (Act::Reset(Vec::new()), Unanswered, None, Kind::Unavailable),
        (Act::Close(Vec::new()), Unanswered, None, Kind::Unavailable),
        (Act::Hang(Vec::new()), Unanswered, None, Kind::Unavailable),
        (Act::Hang(answer(200, "", b"{}")[..20].to_vec()), Unanswered, None, Kind::Unavailable),
        (Act::Close(b"SSH-2.0-OpenSSH\r\n".to_vec()), Unanswered, None, Kind::Unavailable),
    ];
    for (act, why, hint, expected) in table {
        let (_server, remote) = server(&act).await;
        let one = remote.acquire(ask("/")).await.unwrap_err();
        assert_eq!((one.why, one.retry_after), (why, hint), "{act:?}: {one:?}");
        let several = remote.acquire_batch(ask("/"), 3).await.unwrap_err();
        assert_eq!((several.why, several.retry_after), (why, hint), "{act:?}: {several:?}");
        let lease = LeaseId("lse_1".into());
        let others = [
            remote.report(vec![report(1, &lease)]).await.unwrap_err(),
            remote.renew(lease.clone()).await.unwrap_err(),
            remote.release(lease.clone()).await.unwrap_err(),
            remote.secret("a/b".to_owned()).await.unwrap_err(),
        ];
        for error in &others {
            assert_eq!(kind(error), expected, "{act:?}: {error:?}");
        }
        let text = format!("{one:?} {} {several:?} {others:?} {remote:?}", one.message);
        assert!(!text.contains("c4n4ry"), "{text}");
        assert!(one.message.len() > 10, "{one:?}");
    }
}

#[tokio::test]
async fn nobody_there_is_told_apart_from_an_answer_that_was_lost() {
    let remote = remote(&format!("http://{}", nobody().await));
    let refusal = remote.acquire(ask("/")).await.unwrap_err();
    assert_eq!(refusal.why, RefusalKind::Unreachable);
    assert!(refusal.message.contains("connection refused") && refusal.message.contains("check that the server runs"));
    let error = remote.report(vec![report(1, &LeaseId("l".into()))]).await.unwrap_err();
    assert_eq!(kind(&error), Kind::Unavailable);
}

#[tokio::test]
async fn a_server_that_is_none_is_told_with_the_setting_to_look_at() {
    for (status, words) in [(404, "SPINNERET_URL"), (200, "check that the URL leads to a Spinneret server")] {
        let (_server, remote) = server(&page(status)).await;
        let refusal = remote.acquire(ask("/")).await.unwrap_err();
        assert!(refusal.message.contains(words), "{refusal:?}");
    }
    let (_server, remote) = server(&Act::Answer(answer(200, "", b"{}"))).await;
    for refusal in [remote.acquire(ask("/")).await.unwrap_err(), remote.acquire_batch(ask("/"), 2).await.unwrap_err()] {
        assert_eq!(refusal.why, RefusalKind::Unanswered);
        assert!(refusal.message.contains("Spinneret server"), "{refusal:?}");
    }
}

#[tokio::test]
async fn a_lease_that_is_over_is_told_by_each_call_as_it_needs() {
    let lease = LeaseId("lse_1".into());
    for (status, code, reason, renewed, released) in [
        (404, "not_found", "lease_unknown", "does not know", Some("does not know")),
        (400, "failed_precondition", "lease_released", "is over", None),
        (400, "failed_precondition", "lease_expired", "is over", None),
        (400, "failed_precondition", "lease_lifetime_exceeded", "is over", None),
    ] {
        let (_server, remote) = server(&refused(status, code, reason, 0)).await;
        let renewal = remote.renew(lease.clone()).await.unwrap_err().to_string();
        assert!(renewal.contains(renewed) && renewal.contains("lse_1"), "{renewal}");
        let release = remote.release(lease.clone()).await.err().map(|error| error.to_string());
        assert_eq!(release.is_some(), released.is_some(), "{reason}: {release:?}");
        assert!(release.iter().zip(released).all(|(text, words)| text.contains(words)));
    }
}

#[tokio::test]
async fn an_ask_is_sent_as_it_was_asked() {
    let server = Loopback::start(vec![Act::Answer(answer(200, "", lease("lse_1").to_string().as_bytes())); 9]).await;
    let remote = Remote::new(client(&server.url(), TOKEN), RemoteOptions { wait: 60 * SECOND, ..RemoteOptions::default() });
    let grouped = Ask { group: "search".into(), session_key: Some("login-7".into()), ..ask("/feed") };
    let long = ask(&format!("/{}", "ü".repeat(2_000)));
    for ask in [ask("/feed"), grouped, long] {
        remote.acquire(ask).await.unwrap();
    }
    let bodies: Vec<Value> = server.got().iter().map(|got| serde_json::from_slice(&got.body).unwrap()).collect();
    let expected =
        json!({"site": "shop", "client": "web", "uri": "/feed", "endpoint_group": "", "session_key": "", "wait_ms": 5000});
    assert_eq!(bodies[0], expected);
    let told = |name: &str| bodies[1][name].as_str().unwrap();
    assert_eq!((told("uri"), told("endpoint_group"), told("session_key")), ("", "search", "login-7"));
    assert_eq!(bodies[2]["uri"].as_str().unwrap().len(), 2047, "cut between two characters");
}

#[tokio::test]
async fn a_lease_that_cannot_be_used_is_given_back_and_refused() {
    let mut bad = lease("lse_bad");
    bad["proxy"]["url"] = json!("gopher://user:c4n4ry-password@proxy.example:70");
    let server = Loopback::start(vec![
        Act::Answer(answer(200, "", bad.to_string().as_bytes())),
        Act::Answer(answer(200, "", b"{\"released\": true}")),
    ])
    .await;
    let remote = remote(&server.url());
    let refusal = remote.acquire(ask("/")).await.unwrap_err();
    assert_eq!(refusal.why, RefusalKind::Invalid);
    assert!(refusal.message.contains("proxy pxy_1") && !refusal.message.contains("c4n4ry"), "{refusal:?}");
    let released = server.got().pop().unwrap();
    assert!(released.head.contains("LeaseService/Release"));
    assert_eq!(serde_json::from_slice::<Value>(&released.body).unwrap(), json!({"lease_id": "lse_bad"}));
}

#[tokio::test]
async fn of_a_batch_what_can_be_used_is_handed_on_and_the_rest_is_given_back() {
    let mut bad = lease("lse_bad");
    bad["proxy"]["url"] = json!("nonsense");
    let nameless = lease("");
    let leases = json!({"leases": [bad, lease("lse_1"), nameless, lease("lse_2"), lease("lse_3")], "requested": 2});
    let all_bad = json!({"leases": [bad], "requested": 2});
    let released = || Act::Answer(answer(200, "", b"{\"released\": true}"));
    let server = Loopback::start(vec![
        Act::Answer(answer(200, "", leases.to_string().as_bytes())),
        released(),
        released(),
        Act::Answer(answer(200, "", all_bad.to_string().as_bytes())),
        released(),
    ])
    .await;
    let remote = remote(&server.url());
    let grants = remote.acquire_batch(ask("/"), 2).await.unwrap();
    let names: Vec<&str> = grants.iter().map(|grant| &*grant.lease.0).collect();
    assert_eq!(names, ["lse_1", "lse_2"]);
    let mut back: Vec<Value> = server.got()[1..].iter().map(|got| serde_json::from_slice(&got.body).unwrap()).collect();
    back.sort_by_key(Value::to_string);
    assert_eq!(back, [json!({"lease_id": "lse_3"}), json!({"lease_id": "lse_bad"})]);
    let refusal = remote.acquire_batch(ask("/"), 2).await.unwrap_err();
    assert_eq!((refusal.why, server.got().len()), (RefusalKind::Invalid, 5));
}

#[tokio::test]
async fn reports_have_the_same_id_whenever_they_are_sent_and_are_sent_once_a_call() {
    let rejected = |id: &str, reason: &str| json!({"report_id": id, "reason": reason, "message": "words of the server"});
    let server =
        Loopback::start(vec![refused(503, "unavailable", "internal", 1), Act::Answer(answer(200, "", b"{\"accepted\": 2}"))])
            .await;
    let lease = LeaseId("lse_1".into());
    let patient =
        Client::builder().url(server.url()).token(TOKEN).proxy(ProxyChoice::None).environment(|_| None).build().unwrap();
    let remote = Remote::new(patient, RemoteOptions::default());
    let batch = vec![report(1, &lease), report(u64::MAX, &lease)];
    assert_eq!(kind(&remote.report(batch.clone()).await.unwrap_err()), Kind::Unavailable);
    assert_eq!(server.got().len(), 1, "who sends reports waits by himself");
    remote.report(batch.clone()).await.unwrap();
    let bodies: Vec<Value> = server.got().iter().map(|got| serde_json::from_slice(&got.body).unwrap()).collect();
    let ids = |body: &Value| -> Vec<String> {
        body["reports"].as_array().unwrap().iter().map(|report| report["report_id"].as_str().unwrap().to_owned()).collect()
    };
    let names = ids(&bodies[0]);
    assert_eq!(names, ids(&bodies[1]));
    assert!(names.iter().all(|name| name.len() <= 64), "{names:?}");

    // The lease of a last report that is never taken is given back, unless nobody knows it; strange ids harm nobody.
    let answers = json!({"accepted": 0, "duplicated": 0, "rejected": [
        rejected(&names[0], "scope_missing"), rejected(&names[1], "lease_unknown"), rejected("strange-7", "invalid_argument"),
    ]});
    let server = Loopback::start(vec![Act::Answer(answer(200, "", answers.to_string().as_bytes()))]).await;
    let client = client(&server.url(), TOKEN);
    let remote = Remote { client, ..remote };
    let taken = remote.report(batch).await.unwrap();
    let rejected: Vec<_> = taken.rejected.iter().map(|rejected| (rejected.id, rejected.is_unknown_lease)).collect();
    assert_eq!(rejected, [(1, false), (u64::MAX, true)]);
    assert_eq!(taken.rejected[0].reason, "scope_missing: words of the server");
    let got = server.got();
    assert_eq!((got.len(), got[1].head.contains("LeaseService/Release")), (2, true));
}
