//! What belongs to a lease stays with it: on the wire, in what is told of it, and in every URL that can be seen.

use super::*;
use crate::downloader::Markers;
use crate::downloader::message::Hop;
use crate::downloader::middleware::granted;
use crate::settings::MarkerRule;

/// A lease whose every part is a canary of its own.
fn lease(name: &str, id: &str) -> Grant {
    Grant { lease: LeaseId(id.into()), ..grant(name) }
}

/// Everything of a request that goes out, as text.
fn whole(sent: &Outgoing) -> String {
    let headers: Vec<_> = sent.headers.iter().map(|(n, v)| format!("{n}: {}", String::from_utf8_lossy(v.as_bytes()))).collect();
    format!("{} {headers:?} {} {}", sent.url, sent.proxy.as_ref().unwrap().expose(), sent.identity.name)
}

#[tokio::test(start_paused = true)]
async fn a_hop_under_another_lease_carries_nothing_of_the_old_one() {
    let wire = ScriptedTransport::with_default(|outgoing| {
        let cookie = format!("jar=canary-{}-jar; Path=/", outgoing.identity.name);
        match outgoing.url.path() {
            "/1" => Answer::redirect(302, "https://shop.example/2?a=1").header("set-cookie", &cookie),
            "/2" => Answer::redirect(302, "https://other.example/3").header("set-cookie", &cookie),
            _ => Answer::html("x").header("set-cookie", &cookie),
        }
    });
    let stage = Stage::new(wire);
    for round in 0..3 {
        // Two chains of redirects in turns: one stays under its lease, one gets a new lease for the last hop.
        let mut jobs = [job("https://shop.example/1"), job("https://shop.example/1")];
        for hop in 0..3 {
            for (n, job) in jobs.iter_mut().enumerate() {
                let name = if hop == 2 { ["a", "c"][n] } else { ["a", "b"][n] };
                let (verdict, attempt) = stage.run(job, &lease(name, &format!("{name}-{round}"))).await;
                assert_eq!(attempt.lease.unwrap().id(), format!("{name}-{round}"));
                let sent = whole(stage.wire.asked().last().unwrap());
                for other in ["a", "b", "c"] {
                    assert_eq!(sent.contains(&format!("canary-{other}")), other == name, "{round} {hop} {sent}");
                }
                if let Verdict::Redirect(Hop { to, .. }) = verdict {
                    assert!(!to.as_str().contains("canary"), "{to}");
                    job.request.set_url(to);
                    job.hops += 1;
                }
            }
        }
    }
}

#[tokio::test(start_paused = true)]
async fn no_url_that_can_be_seen_has_a_granted_value_in_it() {
    // Places of a URL where a site may repeat the value, which is `{}` here.
    let places = [
        "/z?key={}&p=2",
        "/z?token={}&p=2",
        "/z?next=%2Fq%3Fkey%3D{}&p=2",
        "/z?p=2#key={}",
        "/z?p=2#{}",
        "/s/{}/z",
        "https://{}@shop.example/z",
        "?{}",
    ];
    for place in places {
        for spelling in ["canary-a-query", "%63anary%2Da-query", "%2563anary-a-query"] {
            let location = place.replace("{}", spelling);
            let answered = location.clone();
            let stage = Stage::new(ScriptedTransport::with_default(move |_| Answer::redirect(302, &answered)));
            let mut unfollowed = job("https://shop.example/z");
            unfollowed.request.no_redirect();
            for job in [job("https://shop.example/z"), unfollowed, Job { hops: 99, ..job("https://shop.example/z") }] {
                let (verdict, attempt) = stage.run(&job, &grant("a")).await;
                let mut shown = format!("{attempt:?} {verdict:?}");
                match &verdict {
                    Verdict::Redirect(Hop { to, .. }) => shown.push_str(to.as_str()),
                    Verdict::Deliver(reply) | Verdict::Fail(_, Some(reply)) => {
                        reply.headers.values().for_each(|value| shown.push_str(value.to_str().unwrap()));
                    }
                    _ => {}
                }
                assert!(!granted::holds(&shown, &grant("a").credential), "{location}: {shown}");
            }
        }
    }
    let stage = Stage::new(ScriptedTransport::with_default(|_| Answer::redirect(302, "/z?key=another&page=9&page=8")));
    let Verdict::Redirect(Hop { to, .. }) = stage.verdict(&job("https://shop.example/a")).await else { panic!() };
    assert_eq!(to.as_str(), "https://shop.example/z?key=another&page=8", "a granted name with another value stays");
}

#[tokio::test(start_paused = true)]
async fn each_source_of_a_request_wins_over_the_one_below_it() {
    let stage = Stage::with(page(), vec![], None, |config| {
        let base = [
            ("cookie", "theme=base; sid=base; mine=base"),
            ("accept", "base"),
            ("x-device", "base"),
            ("proxy-authorization", "base"),
        ];
        for (name, value) in base {
            config.base_headers.insert(name, HeaderValue::from_static(value));
        }
    });
    let mut own = job(PAGE);
    own.request.header("X-DEVICE", "own").unwrap().cookie("mine", "own");
    stage.verdict(&own).await;
    let sent = &stage.wire.asked()[0].headers;
    let all = |name: &str| sent.get_all(name).iter().map(|value| value.to_str().unwrap().to_owned()).collect::<Vec<_>>();
    assert_eq!(all("cookie"), ["mine=own; sid=canary-a-cookie; theme=base"]);
    assert_eq!(all("x-device"), ["own"]);
    assert_eq!((all("accept"), all("user-agent")), (vec!["base".to_owned()], vec!["grant canary-a".to_owned()]));
    assert!(all("proxy-authorization").is_empty());
}

#[tokio::test(start_paused = true)]
async fn json_and_values_are_never_merged() {
    let stage = Stage::new(page());
    stage.verdict(&job(PAGE)).await;
    let sent = whole(&stage.wire.asked()[0]);
    assert!(sent.contains("canary-a-query") && !sent.contains("canary-a-json") && !sent.contains("canary-a-value"), "{sent}");
}

#[tokio::test(start_paused = true)]
async fn a_hook_changes_neither_scheme_nor_port_nor_the_proxys_credential() {
    let hooks: [fn(&mut Outgoing) -> BeforeSend; 2] = [
        |request| {
            request.url.set_scheme("http").unwrap();
            BeforeSend::Continue
        },
        |request| {
            request.url.set_port(Some(444)).unwrap();
            BeforeSend::Continue
        },
    ];
    for before in hooks {
        let (verdict, attempt, stage) = with_hook(0, |hook| hook.before = before).await;
        assert_eq!(failed(verdict).0, FailureKind::Middleware);
        assert!(stage.wire.asked().is_empty() && attempt.lease.is_some());
    }
    let (_, _, stage) = with_hook(0, |hook| {
        hook.before = |request| {
            request.headers.insert("proxy-authorization", HeaderValue::from_static("Basic canary"));
            BeforeSend::Continue
        };
    })
    .await;
    assert!(!stage.wire.asked()[0].headers.contains_key("proxy-authorization"));
}

#[tokio::test(start_paused = true)]
async fn every_answer_is_marked_whatever_becomes_of_it() {
    let rule = |marker: &str, status: &[u16], css: Option<&str>, regex: Option<&str>| MarkerRule {
        marker: marker.into(),
        domains: vec![],
        status: status.to_vec(),
        css: css.map(Into::into),
        regex: regex.map(Into::into),
    };
    let rules = [
        rule("captcha", &[], Some("form.captcha"), None),
        rule("moved", &[302], None, None),
        rule("never", &[200], None, Some("never")),
        rule("ok", &[200], None, None),
    ];
    let wire = ScriptedTransport::with_default(|outgoing| match outgoing.url.path() {
        "/moved" => Answer::redirect(302, "/x"),
        "/busy" => Answer::new(503, "<form class=captcha>"),
        "/gone" => Answer::new(404, "<form class=captcha>"),
        "/lost" => Answer::fault(FailureKind::Lost),
        _ => Answer::html("<form class=captcha>"),
    });
    let stage = Stage::with(wire, vec![], None, |config| config.markers = Arc::new(Markers::compile(&rules).unwrap()));
    for (path, markers) in [
        ("moved", vec!["moved"]),
        ("busy", vec!["captcha"]),
        ("gone", vec!["captcha"]),
        ("lost", vec![]),
        ("", vec!["ok", "captcha"]),
    ] {
        let (_, attempt) = stage.run(&job(&format!("https://shop.example/{path}")), &grant("a")).await;
        assert_eq!(attempt.markers, markers, "{path}");
        assert_eq!(attempt.lease.unwrap().identity(), "a");
    }
}

#[tokio::test(start_paused = true)]
async fn the_bytes_of_an_attempt_are_those_of_its_decoded_body() {
    let (_, attempt, _) = with_hook(0, |hook| {
        hook.after = |reply| {
            reply.body = Bytes::from_static(b"hello, longer");
            AfterResponse::Continue
        };
    })
    .await;
    assert_eq!(attempt.bytes, "hello".len() as u64, "as the site sent it");
    let stage = Stage::new(ScriptedTransport::with_default(|_| Answer::fault(FailureKind::Lost).after(Duration::from_secs(2))));
    let (_, attempt) = stage.run(&job(PAGE), &grant("a")).await;
    assert_eq!((attempt.bytes, attempt.latency, attempt.status), (0, Duration::from_secs(2), None));
    assert!(attempt.lease.is_some());
}

#[tokio::test(start_paused = true)]
async fn an_answer_whose_body_is_too_large_keeps_its_status_and_its_markers() {
    let rule = |marker: &str, regex: Option<&str>| MarkerRule {
        marker: marker.into(),
        domains: vec![],
        status: vec![503],
        css: None,
        regex: regex.map(Into::into),
    };
    let stage = Stage::with(ScriptedTransport::with_default(|_| Answer::new(503, "x".repeat(100))), vec![], None, |config| {
        config.limits.max_bytes = 99;
        config.markers = Arc::new(Markers::compile(&[rule("busy", None), rule("body", Some("x"))]).unwrap());
    });
    let (verdict, attempt) = stage.run(&job(PAGE), &grant("a")).await;
    assert_eq!(failed(verdict).0, FailureKind::TooLarge);
    assert_eq!((attempt.status, attempt.bytes, attempt.charged), (Some(503), 100, 0));
    assert_eq!(attempt.fault.unwrap().kind, FailureKind::TooLarge);
    assert_eq!(attempt.markers, ["busy"]);
}

/// An authorizer that signs with the parts that are never merged.
struct WithValues;

impl Authorize for WithValues {
    fn authorize<'a>(&'a self, outgoing: &'a mut Outgoing, grant: &'a Grant) -> BoxFuture<'a, Result<(), String>> {
        Box::pin(async move {
            let (json, values) = (&grant.credential.json, &grant.credential.values);
            let signature = format!("{} {}", json["secret"].as_str().unwrap(), values["token"].as_str().unwrap());
            outgoing.headers.insert("x-signature", HeaderValue::from_str(&signature).unwrap());
            outgoing.identity = IdentityKey { site: "x".into(), name: "y".into() };
            outgoing.proxy = None;
            Ok(())
        })
    }
}

#[tokio::test(start_paused = true)]
async fn json_and_values_can_be_read_before_sending() {
    let stage = Stage::with(page(), vec![], Some(Arc::new(WithValues)), |_| {});
    stage.verdict(&job(PAGE)).await;
    let sent = &stage.wire.asked()[0];
    assert_eq!(sent.headers["x-signature"], "canary-a-json canary-a-value");
    assert_eq!((&*sent.identity.name, sent.proxy.clone()), ("a", grant("a").proxy), "the last word is the lease's");
}
