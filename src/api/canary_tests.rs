//! Whatever a spider's author may log of a lease, a request or a setting: names and sizes, never a secret.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing)]

use std::fmt::{Debug, Display};
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::header::{AUTHORIZATION, COOKIE, SET_COOKIE};
use http::{HeaderMap, HeaderValue, Method, StatusCode, Version};
use serde_json::json;
use tokio::time::Instant;

use super::middleware::{Attempting, BeforeSend};
use super::{Arguments, ConfigValue, Context, Failure, FailureKind, Fault, LeaseView, Outgoing, Reply, Request, Response, Stats};
use crate::downloader::message::{Attempt, Verdict};
use crate::downloader::transport::{BodyFlags, Limits, Over};
use crate::plane::{About, Configured, Credential, Grant, IdentityKey, LeaseId, ProxyAbout, ProxyUrl, Refusal, RefusalKind};
use crate::scheduler::job::{Job, RequestId};
use crate::settings::{Secret, Settings};
use crate::spinneret::ConfigItem;

const CANARY: &str = "canary-7f3a";

fn headers() -> HeaderMap {
    // Not marked as sensitive: a hook may have put them there.
    [AUTHORIZATION, COOKIE, SET_COOKIE].into_iter().map(|name| (name, HeaderValue::from_static(CANARY))).collect()
}

fn grant() -> Grant {
    let credential = Credential {
        headers: headers(),
        cookies: vec![("sid".to_owned(), CANARY.into())],
        query: vec![("key".to_owned(), CANARY.into())],
        json: json!({ "device": CANARY }),
        values: json!({ "token": CANARY }).as_object().unwrap().clone(),
    };
    let proxy = ProxyAbout { id: "p1".into(), kind: "mobile".into(), region: "eu".into() };
    Grant {
        lease: LeaseId("lse-1".into()),
        identity: IdentityKey { site: "shop".into(), name: "anna".into() },
        credential: Arc::new(credential),
        proxy: Some(ProxyUrl(format!("http://{CANARY}:{CANARY}@{CANARY}.proxy.example:3128").into())),
        about: About { group: "web".into(), proxy: Some(proxy), ..About::default() },
        expires_at: Instant::now() + Duration::from_secs(60),
        renew_before: Duration::from_secs(10),
    }
}

fn request() -> Request {
    let mut request = Request::post("https://shop.example/p/1", &()).unwrap();
    request.header("authorization", CANARY).unwrap().cookie("sid", CANARY).form([("password", CANARY)]);
    request
}

fn outgoing(grant: &Grant) -> Outgoing {
    Outgoing {
        method: Method::GET,
        url: format!("https://{CANARY}:{CANARY}@shop.example/p/1?key={CANARY}#{CANARY}").parse().unwrap(),
        headers: headers(),
        body: Bytes::from_static(CANARY.as_bytes()),
        proxy: grant.proxy.clone(),
        identity: grant.identity.clone(),
        limits: Limits {
            total: Duration::ZERO,
            idle: Duration::ZERO,
            max_bytes: 1,
            over: Over::Fail,
            fail_on_data_loss: true,
            decode: true,
        },
    }
}

fn reply() -> Reply {
    Reply {
        status: StatusCode::OK,
        version: Version::HTTP_11,
        headers: headers(),
        body: Bytes::from_static(CANARY.as_bytes()),
        wire_bytes: 11,
        flags: BodyFlags::default(),
    }
}

/// Checks the plain and the long form, and that there is something in them.
#[track_caller]
fn is_quiet(what: &dyn Debug, has: &str) {
    for text in [format!("{what:?}"), format!("{what:#?}")] {
        assert!(text.contains(has), "{has} in {text}");
        assert!(!text.contains("canary"), "{text}");
    }
}

#[track_caller]
fn says_nothing(what: &dyn Display) {
    assert!(!what.to_string().contains("canary"), "{what}");
}

#[test]
fn a_lease_and_what_is_made_of_it_show_names_alone() {
    let grant = grant();
    is_quiet(&grant, "anna");
    is_quiet(&grant.credential, "sid");
    is_quiet(&grant.proxy, "http");
    is_quiet(&LeaseView::of(&grant), "mobile");
    is_quiet(&Attempt { lease: Some(LeaseView::of(&grant)), ..Attempt::answered(200) }, "lse-1");
    let why = Refusal { why: RefusalKind::NoProxy, retry_after: None, message: "every proxy rests".to_owned() };
    is_quiet(&why, "NoProxy");
}

#[test]
fn requests_and_answers_show_no_value() {
    let grant = grant();
    let (out, reply) = (outgoing(&grant), reply());
    is_quiet(&out, "shop.example");
    is_quiet(&reply, "200");
    is_quiet(&request(), "shop.example");
    is_quiet(&Verdict::Deliver(Box::new(reply.clone())), "200");
    is_quiet(&BeforeSend::Answer(Box::new(reply.clone())), "200");
    let job = Arc::new(Job::page(RequestId(1), 1, request()));
    is_quiet(&job, "shop.example");
    is_quiet(&Attempting::new(&job, &grant), "shop.example");
    let lease = Some(LeaseView::of(&grant));
    let response = Response::new(Arc::clone(&job), Arc::new(reply), Duration::ZERO, Rc::default()).under(lease.clone());
    is_quiet(&response, "lse-1");
    let error = response.json::<u32>().unwrap_err();
    says_nothing(&error);
    is_quiet(&error, "shop.example");
    let fault = Fault::new(FailureKind::HttpStatus, "status 403");
    is_quiet(&Failure::new(job, fault, Some(response), lease, Rc::default()), "status 403");
}

#[test]
fn settings_and_config_items_show_no_secret() {
    let watched = Settings {
        spinneret_token: Some(Secret::from(CANARY)),
        user_agent: CANARY.to_owned(),
        from_secrets: vec!["USER_AGENT"],
        config_watch: vec!["crawl/limits".to_owned()],
        ..Settings::default()
    };
    is_quiet(&watched, "crawl/limits");
    let context = Context::new("books", "7", Arguments::default(), Arc::new(watched), Stats::new(), |_| {});
    let item = ConfigItem {
        group: "crawl".to_owned(),
        key: "limits".to_owned(),
        format: "json".to_owned(),
        content: format!("\"{CANARY}\""),
        has_secret_refs: true,
        ..ConfigItem::default()
    };
    let configured = Configured { item, from_snapshot: false };
    is_quiet(&configured, "limits");
    context.configs().set(ConfigValue::new(Arc::new(configured)));
    is_quiet(&context, "books");
    let value = context.config("crawl", "limits").unwrap();
    assert_eq!(value.json().unwrap(), CANARY);
    is_quiet(&value, "limits");
    let error = value.parse::<u32>().unwrap_err();
    says_nothing(&error);
    is_quiet(&error, "crawl/limits");
}

#[test]
fn links_repeat_nothing_of_the_leases_query() {
    let body = format!(
        "<a href='/2?page=2&key={CANARY}'>1</a><a href='//other.example/?k={CANARY}&lang=en'>2</a><a href='?lang=en&page=3'>3</a><a \
         href='//third.example/?lang=en'>4</a>"
    );
    let mut grant = grant();
    Arc::get_mut(&mut grant.credential).unwrap().query.push(("lang".to_owned(), "en".into()));
    let job = Arc::new(Job::page(RequestId(1), 1, Request::get("https://shop.example/1", &()).unwrap()));
    let reply = Reply { body: body.into(), headers: HeaderMap::new(), ..reply() };
    let response = Response::new(job, Arc::new(reply), Duration::ZERO, Rc::default()).under(Some(LeaseView::of(&grant)));
    let cleared = [
        "https://shop.example/2?page=2",
        "https://other.example/",
        "https://shop.example/1?page=3",
        // Too short for a secret, and another host's own affair.
        "https://third.example/?lang=en",
    ];
    assert_eq!(response.links().iter().map(|link| link.url.as_str()).collect::<Vec<_>>(), cleared);
    assert_eq!(response.join(&format!("2?page=2&key={CANARY}")).unwrap().as_str(), cleared[0]);
}
