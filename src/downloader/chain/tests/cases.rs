//! Redirects that other crawlers let cookies and credentials go astray by; each hop is decided by the chain.

use super::*;
use crate::downloader::message::Hop;

const K01: &str = include_str!("../../../../tests/data/cases/K01-cookie-changed-by-the-redirect.json");
const K02: &str = include_str!("../../../../tests/data/cases/K02-identity-stays-with-its-site.json");

fn case(text: &str) -> serde_json::Value {
    serde_json::from_str(text).unwrap()
}

/// Plays the routes of a case.
fn wire(case: &serde_json::Value) -> ScriptedTransport {
    let wire = ScriptedTransport::new();
    for route in case["input"]["server"].as_array().unwrap().iter().filter(|route| route["path"] != "*") {
        let scheme = route["scheme"].as_str().unwrap_or("http");
        let url = format!("{scheme}://{}{}", route["host"].as_str().unwrap(), route["path"].as_str().unwrap());
        let answers = route["reply"].as_array().unwrap().iter().map(|reply| {
            let status = u16::try_from(reply["status"].as_u64().unwrap()).unwrap();
            let body = reply["body"].as_str().unwrap_or_default().to_owned();
            reply["headers"].as_array().unwrap().iter().fold(Answer::new(status, body), |answer, header| {
                answer.header(header[0].as_str().unwrap(), header[1].as_str().unwrap())
            })
        });
        wire.get(&url, answers.collect::<Vec<_>>());
    }
    wire
}

fn anonymous() -> Grant {
    Grant { credential: Arc::new(Credential::default()), proxy: None, ..grant("a") }
}

/// Follows a request to its end, each hop under `of(url)`, as the engine does it.
async fn follow(stage: &Stage, mut job: Job, of: impl Fn(&url::Url) -> Grant) -> Verdict {
    loop {
        match stage.run(&job, &of(job.url())).await.0 {
            Verdict::Redirect(Hop { to, .. }) => {
                let mut next = job.request.clone();
                if job.url().origin() != to.origin() {
                    next.drop_credentials();
                }
                next.set_url(to);
                job = Job { hops: job.hops + 1, request: next, ..job };
            }
            end => return end,
        }
    }
}

/// With the request's own cookies before those of the jar on every leg (`Leg::First`), `/final` gets `c=0`.
#[tokio::test(start_paused = true)]
async fn case_k01_a_cookie_that_the_redirect_sets_anew_goes_to_the_next_hop() {
    let case = case(K01);
    let stage = Stage::new(wire(&case));
    let mut start = job(case["input"]["start"][0]["url"].as_str().unwrap());
    for (name, value) in case["input"]["start"][0]["cookies"].as_object().unwrap() {
        start.request.cookie(name, value.as_str().unwrap());
    }
    assert!(matches!(follow(&stage, start, |_| anonymous()).await, Verdict::Deliver(_)));
    let expected = case["expect"]["cookie_header"].as_object().unwrap();
    let asked = stage.wire.asked();
    assert_eq!(asked.len(), expected.len());
    for sent in asked {
        assert_eq!(sent.headers["cookie"], expected[sent.url.path()].as_str().unwrap(), "{}", sent.url);
    }
}

#[tokio::test(start_paused = true)]
async fn case_k02_an_identity_stays_with_its_site() {
    let case = case(K02);
    let lease = &case["input"]["lease"];
    let text = |value: &serde_json::Value| value.as_str().unwrap().to_owned();
    let credential = Credential {
        headers: lease["headers"]
            .as_object()
            .unwrap()
            .iter()
            .map(|(name, value)| (name.parse().unwrap(), HeaderValue::from_str(&text(value)).unwrap()))
            .collect(),
        cookies: lease["cookies"].as_object().unwrap().iter().map(|(name, value)| (name.clone(), text(value).into())).collect(),
        ..Credential::default()
    };
    let credential = Arc::new(credential);
    let of = |url: &url::Url| match url.host_str() {
        Some("a.test") => Grant {
            credential: credential.clone(),
            proxy: Some(ProxyUrl(text(&lease["proxy"]).into())),
            identity: IdentityKey { site: "a.test".into(), name: "own".into() },
            ..grant("a")
        },
        host => Grant { identity: IdentityKey { site: host.unwrap().into(), name: "anonymous".into() }, ..anonymous() },
    };
    let stage = Stage::new(wire(&case));
    assert!(matches!(follow(&stage, job("http://a.test/go"), of).await, Verdict::Deliver(_)));
    let asked = stage.wire.asked();
    assert_eq!(asked.len(), 2);
    assert_eq!(
        (&asked[0].headers["cookie"], &asked[0].headers["authorization"]),
        (&"sid=S3CRET".parse().unwrap(), &"Bearer T0K".parse().unwrap())
    );
    assert!(asked[0].proxy.is_some());
    for name in case["expect"]["b.test"]["absent_headers"].as_array().unwrap() {
        assert!(!asked[1].headers.contains_key(name.as_str().unwrap()), "{name}");
    }
    assert!(asked[1].proxy.is_none() && asked[0].identity != asked[1].identity);
    assert!(asked.iter().all(|sent| !sent.headers.contains_key("proxy-authorization")));
    let shown = format!("{:?}{:?}", asked[1].url, asked[1].headers);
    assert!(["S3CRET", "T0K", "d1"].iter().all(|secret| !shown.contains(secret)), "{shown}");
}

/// The second part of the case: what the site marked as secure does not go down to http.
#[tokio::test(start_paused = true)]
async fn case_k02_a_secure_cookie_is_not_sent_after_a_redirect_to_http() {
    let wire = wire(&case(K02));
    wire.get(
        "https://a.test/set",
        [Answer::html("ok").header("set-cookie", "s=1; Secure; Path=/").header("set-cookie", "p=2; Path=/")],
    );
    wire.get("http://a.test/plain", [Answer::html("ok")]);
    let stage = Stage::new(wire);
    follow(&stage, job("https://a.test/set"), |_| anonymous()).await;
    follow(&stage, job("https://a.test/down"), |_| anonymous()).await;
    let cookies: Vec<_> = stage
        .wire
        .asked()
        .iter()
        .map(|sent| sent.headers.get("cookie").map(|value| value.to_str().unwrap().to_owned()))
        .collect();
    assert_eq!(cookies, [None, Some("s=1; p=2".to_owned()), Some("p=2".to_owned())]);
}
