//! From start to stop. What the webhook answers is tested through the binary.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing)]

mod faults;
mod plane;
mod reload;
mod stage;

use std::net::{IpAddr, Ipv4Addr};

use super::*;

fn options(dir: &tempfile::TempDir) -> ServeOptions {
    ServeOptions {
        listen: SocketAddr::from((Ipv4Addr::LOCALHOST, 0)),
        db: dir.path().join("jobs.db"),
        file: None,
        max_body: 1 << 20,
        connections: 256,
        keep: 0,
    }
}

#[tokio::test]
async fn the_first_line_names_the_address_and_the_future_ends_it() {
    let dir = tempfile::tempdir().unwrap();
    let mut out = Vec::new();
    serve(options(&dir), &mut out, std::future::ready(())).await.unwrap();
    let line = String::from_utf8(out).unwrap();
    let port = line.strip_prefix("listening on http://127.0.0.1:").and_then(|rest| rest.strip_suffix('\n'));
    assert!(port.is_some_and(|port| port.parse::<u16>().is_ok()), "{line}");
    assert!(dir.path().join("jobs.db").exists());
}

#[tokio::test]
async fn an_address_for_all_needs_keys_of_its_own() {
    let dir = tempfile::tempdir().unwrap();
    let everywhere = SocketAddr::new(IpAddr::V4(Ipv4Addr::UNSPECIFIED), 0);
    let error = serve(ServeOptions { listen: everywhere, ..options(&dir) }, &mut Vec::new(), std::future::ready(())).await;
    let error = error.unwrap_err().to_string();
    assert!(error.contains("0.0.0.0:0") && error.contains("--file") && !error.contains("sample-secret"), "{error}");
    assert!(!dir.path().join("jobs.db").exists(), "nothing is made before the address is allowed");
    let file = dir.path().join("keys.toml");
    std::fs::write(&file, "[[keys]]\napi_key = \"a\"\nsecret_key = \"b\"\n").unwrap();
    let own = ServeOptions { listen: everywhere, file: Some(file), ..options(&dir) };
    serve(own, &mut Vec::new(), std::future::ready(())).await.unwrap();
}

#[tokio::test]
async fn an_output_that_fails_is_an_error() {
    let dir = tempfile::tempdir().unwrap();
    let mut full: &mut [u8] = &mut [];
    let error = serve(options(&dir), &mut full, std::future::pending()).await.unwrap_err();
    assert!(matches!(error, ServeError::Output(_)), "{error}");
}

#[tokio::test]
async fn old_jobs_go_at_the_start() {
    let dir = tempfile::tempdir().unwrap();
    let store = JobStore::open(&dir.path().join("jobs.db")).unwrap();
    for job in 1..=3 {
        store.job_started(&job.into(), "shop", &format!("2026-11-0{job}T00:00:00.000000+00:00")).unwrap();
        store.job_finished(&job.into(), "2026-11-30T00:00:00.000000+00:00", "finished").unwrap();
    }
    serve(ServeOptions { keep: 2, ..options(&dir) }, &mut Vec::new(), std::future::ready(())).await.unwrap();
    assert_eq!(store.job_ids().unwrap(), ["3", "2"]);
}

#[tokio::test]
async fn what_the_server_refuses_by_itself_is_refused_in_json_too() {
    use crate::http_server::{Answer as _, BodyFault, Head, ReplyBody};

    let dir = tempfile::tempdir().unwrap();
    let (writer, _thread) = Writer::start(JobStore::open(&dir.path().join("jobs.db")).unwrap()).unwrap();
    let webhook = Webhook { keys: Arc::new(KeyRing::new(ServeFile::sample().unwrap().keys)), writer, now: || 0 };
    let peer = std::net::Ipv4Addr::LOCALHOST.into();
    let head = Head { peer, method: http::Method::POST, path: "/".into(), query: String::new(), headers: http::HeaderMap::new() };
    for (reply, status, code) in [
        (webhook.refuse_target(8_192), 414, "address_too_long"),
        (webhook.refuse_full(&head), 503, "full"),
        (webhook.refuse_body(&head, BodyFault::TooLarge(9)), 413, "too_large"),
        (webhook.refuse_body(&head, BodyFault::TooSlow(BODY_TIME)), 408, "too_slow"),
        (webhook.refuse_body(&head, BodyFault::CutOff), 400, "cut_off"),
    ] {
        assert_eq!((reply.status.as_u16(), &reply.headers["content-type"]), (status, &"application/json".parse().unwrap()));
        let ReplyBody::Whole(Some(body)) = reply.body else { panic!("{status}") };
        let body: serde_json::Value = serde_json::from_slice(&body).unwrap();
        assert_eq!(body["error"]["code"], code);
        assert!(!body["error"]["message"].as_str().unwrap().is_empty());
    }
}
