//! Attempts from job to verdict over a scripted wire.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing)]

use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use bytes::Bytes;
use futures_util::future::BoxFuture;
use http::HeaderValue;
use serde_json::{Map, json};

use super::*;
use crate::api::middleware::Middleware;
use crate::api::request::{HandleStatus, Request};
use crate::downloader::message::Hop;
use crate::plane::{About, Credential, IdentityKey, LeaseId, ProxyUrl};
use crate::scheduler::job::RequestId;
use crate::settings::Settings;
use crate::testkit::{Answer, Free, ScriptedTransport};

mod cached;
mod cases;
mod identities;
mod leading;
mod leases;
mod live;

const PAGE: &str = "https://shop.example/p?page=1";

fn grant(name: &str) -> Grant {
    let credential = Credential {
        headers: [("authorization", "Bearer"), ("user-agent", "grant"), ("x-device", "grant")]
            .into_iter()
            .map(|(key, value)| (key.parse().unwrap(), HeaderValue::from_str(&format!("{value} canary-{name}")).unwrap()))
            .collect(),
        cookies: vec![("sid".into(), format!("canary-{name}-cookie").into())],
        query: vec![("key".into(), format!("canary-{name}-query").into()), ("page".into(), "9".into())],
        json: json!({ "secret": format!("canary-{name}-json") }),
        values: Map::from_iter([("token".to_owned(), json!(format!("canary-{name}-value")))]),
    };
    Grant {
        lease: LeaseId("lease-1".into()),
        identity: IdentityKey { site: "shop".into(), name: name.into() },
        credential: Arc::new(credential),
        proxy: Some(ProxyUrl(format!("http://user:canary-{name}-proxy@127.0.0.1:1").into())),
        about: About::default(),
        expires_at: Instant::now() + Duration::from_secs(60),
        renew_before: Duration::from_secs(10),
    }
}

fn job(url: &str) -> Job {
    Job::page(RequestId(1), 1, Request::get(url, &()).unwrap())
}

struct Stage {
    chain: Chain,
    wire: ScriptedTransport,
    stats: Stats,
}

impl Stage {
    fn new(wire: ScriptedTransport) -> Self {
        Self::with(wire, vec![], None, |_| {})
    }

    fn with(
        wire: ScriptedTransport,
        middlewares: Vec<Installed>,
        authorizer: Option<Arc<dyn Authorize>>,
        change: impl FnOnce(&mut DownloaderConfig),
    ) -> Self {
        let mut config = DownloaderConfig::from_settings(&Settings::default());
        change(&mut config);
        Self::of(wire, middlewares, authorizer, config, &Settings::default())
    }

    fn of(
        wire: ScriptedTransport,
        middlewares: Vec<Installed>,
        authorizer: Option<Arc<dyn Authorize>>,
        config: DownloaderConfig,
        settings: &Settings,
    ) -> Self {
        let stats = Stats::new();
        let cache = HttpCache::open(settings, "shop", &stats).unwrap();
        let jars = Arc::new(Jars::new(&stats));
        let parts = ChainParts {
            config,
            transport: Arc::new(wire.clone()),
            stats: stats.clone(),
            jars,
            middlewares,
            authorizer,
            cache,
            seed: 1,
        };
        Self { chain: Chain::new(parts), wire, stats }
    }

    async fn run(&self, job: &Job, grant: &Grant) -> (Verdict, Attempt) {
        self.chain.run(job, grant, &Free, &Progress::under(grant), |_| {}).await
    }

    async fn verdict(&self, job: &Job) -> Verdict {
        self.run(job, &grant("a")).await.0
    }
}

fn page() -> ScriptedTransport {
    ScriptedTransport::with_default(|_| Answer::html("hello"))
}

fn failed(verdict: Verdict) -> (FailureKind, String) {
    match verdict {
        Verdict::Fail(fault, _) => (fault.kind, fault.message),
        other => panic!("{other:?}"),
    }
}

#[tokio::test(start_paused = true)]
async fn a_request_is_merged_by_precedence() {
    let stage = Stage::new(page());
    let mut own = job(PAGE);
    own.request.header("x-device", "own").unwrap().cookie("mine", "1");
    own.request.timeout(Duration::from_secs(7));
    let Verdict::Deliver(reply) = stage.verdict(&own).await else { panic!() };
    assert_eq!(reply.body, "hello");
    let sent = &stage.wire.asked()[0];
    assert_eq!(sent.url.as_str(), "https://shop.example/p?page=1&key=canary-a-query");
    for (name, value) in [
        ("authorization", "Bearer canary-a"),
        ("user-agent", "grant canary-a"),
        ("x-device", "own"),
        ("accept-language", "en"),
        ("accept-encoding", "gzip, deflate, br, zstd"),
        ("cookie", "mine=1; sid=canary-a-cookie"),
    ] {
        assert_eq!(sent.headers[name], value, "{name}");
    }
    assert_eq!((sent.limits.total, sent.limits.max_bytes), (Duration::from_secs(7), 64 << 20));
    own.request.max_bytes(1000);
    stage.verdict(&own).await;
    assert_eq!(stage.wire.asked()[1].limits.max_bytes, 1000);
    own.kind = JobKind::Robots;
    stage.verdict(&own).await;
    assert_eq!(
        stage.wire.asked()[2].limits.max_bytes,
        robots::MAX_BYTES + 1,
        "that of a page is not for the robots.txt it waits for"
    );
    assert!(sent.proxy.is_some() && &*sent.identity.name == "a");
}

#[tokio::test(start_paused = true)]
async fn the_attempt_tells_what_happened_on_the_wire() {
    let wire = ScriptedTransport::new();
    let busy = Answer::new(503, "busy").header("retry-after", "7").after(Duration::from_secs(3));
    wire.get("https://shop.example/p?page=1&key=canary-a-query", [busy]);
    let stage = Stage::new(wire);
    let begun = Instant::now();
    let (verdict, attempt) = stage.run(&job(PAGE), &grant("a")).await;
    let Verdict::Retry { reason, after } = verdict else { panic!() };
    assert_eq!((reason.as_str(), after), ("503 Service Unavailable", Duration::from_secs(7)));
    assert_eq!((attempt.status, attempt.latency, attempt.charged), (Some(503), Duration::from_secs(3), 4));
    assert_eq!((attempt.sent_at, attempt.retry_after), (Some(begun), Some(Duration::from_secs(7))));
    assert_eq!(attempt.bytes, "busy".len() as u64, "the decoded body, as the control plane counts it");
    assert!(attempt.fault.is_none());
}

#[tokio::test(start_paused = true)]
async fn retries_end_after_the_configured_number() {
    let stage = Stage::new(ScriptedTransport::with_default(|_| Answer::new(500, "")));
    let mut job = job(PAGE);
    for attempts in 0..2 {
        job.attempts = attempts;
        assert!(matches!(stage.verdict(&job).await, Verdict::Retry { .. }));
    }
    job.attempts = 2;
    assert_eq!(failed(stage.verdict(&job).await).0, FailureKind::HttpStatus);
    for (key, count) in [
        ("retry/count", 2),
        ("retry/max_reached", 1),
        ("retry/reason_count/500 Internal Server Error", 2),
        ("httperror/response_ignored_count", 1),
        ("httperror/response_ignored_status_count/500", 1),
        ("downloader/request_count", 3),
        ("downloader/request_method_count/GET", 3),
        ("downloader/response_count", 3),
        ("downloader/response_status_count/500", 3),
    ] {
        assert_eq!(stage.stats.count(key), count, "{key}");
    }
    assert!(stage.stats.count("downloader/request_bytes") > 300 && stage.stats.count("downloader/response_bytes") > 60);
}

#[tokio::test(start_paused = true)]
async fn faults_are_retried_by_kind() {
    use FailureKind as F;
    for (kind, retried) in [(F::Timeout, true), (F::Lost, true), (F::Proxy, true), (F::TooLarge, false), (F::Decode, false)] {
        let stage = Stage::new(ScriptedTransport::with_default(move |_| Answer::fault(kind)));
        let (verdict, attempt) = stage.run(&job(PAGE), &grant("a")).await;
        assert_eq!(matches!(verdict, Verdict::Retry { .. }), retried, "{kind}");
        assert_eq!(attempt.fault.unwrap().kind, kind);
        assert!(attempt.status.is_none() && attempt.sent_at.is_some());
        let key = format!("downloader/exception_type_count/scrapy.exceptions.{}", kind.error_class());
        assert_eq!(stage.stats.count(&key), 1);
        let last = Job { attempts: 2, ..job(PAGE) };
        assert_eq!(failed(stage.verdict(&last).await).0, kind);
    }
}

#[tokio::test(start_paused = true)]
async fn a_redirect_is_decided_before_retry_and_status() {
    let stage = Stage::with(page(), vec![], None, |config| config.retry.codes.push(302));
    let wire = &stage.wire;
    let sent = "https://shop.example/p?page=1&key=canary-a-query";
    let hop = Answer::redirect(302, "/next").header("set-cookie", "c=2; Path=/");
    wire.get(sent, [hop, Answer::new(302, ""), Answer::redirect(302, "/next"), Answer::redirect(302, "mailto:x")]);
    let Verdict::Redirect(Hop { to, becomes_get: false, .. }) = stage.verdict(&job(PAGE)).await else { panic!() };
    assert_eq!(to.as_str(), "https://shop.example/next");
    let mut next = job(to.as_str());
    next.hops = 1;
    next.request.cookie("c", "0");
    stage.verdict(&next).await;
    assert_eq!(wire.asked()[1].headers["cookie"], "c=2; sid=canary-a-cookie", "the redirect's cookie goes before the old one");
    assert!(matches!(stage.verdict(&job(PAGE)).await, Verdict::Retry { .. }), "no Location: not a redirect to follow");
    let late = Job { hops: 20, ..job(PAGE) };
    assert_eq!(failed(stage.verdict(&late).await).0, FailureKind::RedirectLimit);
    assert_eq!(failed(stage.verdict(&job(PAGE)).await).0, FailureKind::RedirectTarget);
    assert_eq!((stage.stats.count("redirect/count"), stage.stats.count("redirect/max_reached")), (1, 1));
}

#[tokio::test(start_paused = true)]
async fn robots_jobs_have_their_own_limit_and_take_every_status() {
    let stage = Stage::new(ScriptedTransport::with_default(|_| Answer::new(403, "no")));
    let mut robots = job("https://shop.example/robots.txt");
    robots.kind = JobKind::Robots;
    assert!(matches!(stage.verdict(&robots).await, Verdict::Deliver(_)));
    assert_eq!(stage.wire.asked()[0].limits.total, Duration::from_secs(30));
    assert_eq!(stage.stats.count("httperror/response_ignored_count"), 0);
}

#[tokio::test(start_paused = true)]
async fn case_b04_of_a_huge_robots_txt_the_beginning_is_read() {
    let mut rules = "User-agent: *\nDisallow: /no\n".to_owned();
    rules.push_str(&"#\n".repeat(2 << 20));
    let stage = Stage::new(ScriptedTransport::with_default(move |_| Answer::new(200, rules.clone())));
    let mut job = job("https://big.test/robots.txt");
    job.kind = JobKind::Robots;
    let Verdict::Deliver(reply) = stage.verdict(&job).await else { panic!("not delivered") };
    assert_eq!(reply.body.len(), robots::MAX_BYTES + 1);
    let rules = robots::Robots::parse(&reply.body);
    assert!(!rules.allowed("dragline", &"https://big.test/no".parse().unwrap()));
    assert!(rules.allowed("dragline", &"https://big.test/x".parse().unwrap()));
}

#[tokio::test(start_paused = true)]
async fn a_status_that_was_asked_for_is_delivered() {
    let stage = Stage::new(ScriptedTransport::with_default(|_| Answer::new(404, "gone")));
    let Verdict::Fail(fault, Some(reply)) = stage.verdict(&job(PAGE)).await else { panic!() };
    assert!(fault.message.contains("404 Not Found") && reply.body == "gone");
    let mut asking = job(PAGE);
    asking.request.handle_status(HandleStatus::Also(vec![404]));
    assert!(matches!(stage.verdict(&asking).await, Verdict::Deliver(_)));
}

#[tokio::test(start_paused = true)]
async fn a_lease_keeps_what_is_its_own() {
    let stage = Stage::new(ScriptedTransport::with_default(|_| Answer::html("x").header("set-cookie", "jar=canary-jar; Path=/")));
    let mut seen = String::new();
    for url in [PAGE, "https://other.example/"] {
        for name in ["a", "b", "a"] {
            let (verdict, attempt) = stage.run(&job(url), &grant(name)).await;
            seen.push_str(&format!("{attempt:?} {:?}", stage.chain));
            assert!(matches!(verdict, Verdict::Deliver(_)));
        }
    }
    for (n, sent) in stage.wire.asked().iter().enumerate() {
        let (mine, other) = if n % 3 == 1 { ("b", "a") } else { ("a", "b") };
        let all = format!(
            "{} {:?} {}",
            sent.url,
            sent.headers.values().map(HeaderValue::as_bytes).map(String::from_utf8_lossy).collect::<Vec<_>>(),
            sent.proxy.as_ref().unwrap().expose()
        );
        assert!(all.contains(&format!("canary-{mine}")) && !all.contains(&format!("canary-{other}")), "{n} {all}");
        // A jar's cookie comes back to its own host and identity only: at the third request of each host.
        assert_eq!(all.contains("canary-jar"), n % 3 == 2, "{n} {all}");
        seen.push_str(&format!("{sent:?}"));
    }
    seen.push_str(&format!("{:?}", grant("a")));
    assert!(!seen.contains("canary"), "{seen}");
}

#[tokio::test(start_paused = true)]
async fn no_credential_is_in_a_verdict() {
    let wire = ScriptedTransport::with_default(|outgoing| match outgoing.url.path() {
        "/echo" => Answer::redirect(302, &format!("/to?{}", outgoing.url.query().unwrap())),
        "/same" => Answer::redirect(302, "#top"),
        "/bad" => Answer::redirect(302, &format!("ftp://x/{}", outgoing.url.query().unwrap())),
        "/500" => Answer::new(500, "x"),
        _ => Answer::fault(FailureKind::Timeout),
    });
    let stage = Stage::new(wire);
    for path in ["echo", "same", "bad", "500", "other"] {
        for attempts in [0, 9] {
            let job = Job { attempts, ..job(&format!("https://shop.example/{path}")) };
            let outcome = format!("{:?}", stage.run(&job, &grant("a")).await);
            assert!(!outcome.contains("canary"), "{outcome}");
        }
    }
    assert!(!format!("{:?}", stage.stats.snapshot()).contains("canary"));
}

/// A middleware of the tests: notes its calls, does as told.
struct Note {
    name: &'static str,
    calls: Arc<Mutex<Vec<String>>>,
    before: fn(&mut Outgoing) -> BeforeSend,
    after: fn(&mut Reply) -> AfterResponse,
    fault: fn() -> OnFault,
}

impl Note {
    fn install(order: i32, name: &'static str, calls: &Arc<Mutex<Vec<String>>>, change: impl FnOnce(&mut Self)) -> Installed {
        let mut note = Self {
            name,
            calls: Arc::clone(calls),
            before: |_| BeforeSend::Continue,
            after: |_| AfterResponse::Continue,
            fault: || OnFault::Continue,
        };
        change(&mut note);
        Installed::new(name, order, note)
    }

    fn call(&self, hook: &str) {
        self.calls.lock().unwrap().push(format!("{hook} {}", self.name));
    }
}

impl Middleware for Note {
    async fn before_send(&self, request: &mut Outgoing, _: Attempting<'_>) -> BeforeSend {
        tokio::task::yield_now().await;
        self.call("before");
        (self.before)(request)
    }

    async fn after_response(&self, reply: &mut Reply, _: Attempting<'_>) -> AfterResponse {
        self.call("after");
        (self.after)(reply)
    }

    async fn on_fault(&self, _: &Fault, _: Attempting<'_>) -> OnFault {
        self.call("fault");
        (self.fault)()
    }

    async fn authorize(&self, _: &mut Outgoing, _: &Grant) -> Result<(), String> {
        self.call("authorize");
        Ok(())
    }
}

async fn calls(answer: fn() -> Answer, attempts: u32) -> Vec<String> {
    let calls = Arc::default();
    let middlewares = [(700, "high"), (100, "low"), (570, "mid")].map(|(order, name)| Note::install(order, name, &calls, |_| {}));
    let stage = Stage::with(ScriptedTransport::with_default(move |_| answer()), middlewares.to_vec(), None, |_| {});
    stage.verdict(&Job { attempts, ..job(PAGE) }).await;
    let mut calls = calls.lock().unwrap().clone();
    assert_eq!(calls[..6], ["before low", "before mid", "before high", "authorize low", "authorize mid", "authorize high"]);
    calls.split_off(6)
}

#[tokio::test(start_paused = true)]
async fn hooks_run_in_the_order_of_their_numbers_around_the_built_in_steps() {
    assert_eq!(calls(|| Answer::new(200, ""), 0).await, ["after high", "after mid", "after low"]);
    assert_eq!(calls(|| Answer::redirect(302, "/x"), 0).await, ["after high"]);
    assert_eq!(calls(|| Answer::new(503, ""), 0).await, ["after high", "after mid"]);
    assert_eq!(calls(|| Answer::new(503, ""), 2).await, ["after high", "after mid", "after low"]);
    assert_eq!(calls(|| Answer::fault(FailureKind::Lost), 0).await, ["fault high", "fault mid"]);
    assert_eq!(calls(|| Answer::fault(FailureKind::Lost), 2).await, ["fault high", "fault mid", "fault low"]);
}

async fn with_hook(attempts: u32, change: impl FnOnce(&mut Note)) -> (Verdict, Attempt, Stage) {
    let stage = Stage::with(page(), vec![Note::install(500, "hook", &Arc::default(), change)], None, |_| {});
    let (verdict, attempt) = stage.run(&Job { attempts, ..job(PAGE) }, &grant("a")).await;
    (verdict, attempt, stage)
}

#[tokio::test(start_paused = true)]
async fn a_middleware_may_answer_refuse_and_repeat() {
    let (verdict, attempt, stage) = with_hook(0, |hook| {
        hook.before = |_| {
            let reply = Reply {
                status: http::StatusCode::OK,
                version: http::Version::HTTP_11,
                headers: http::HeaderMap::new(),
                body: Bytes::from_static(b"cached"),
                wire_bytes: 0,
                flags: Default::default(),
            };
            BeforeSend::Answer(Box::new(reply))
        };
    })
    .await;
    assert!(matches!(verdict, Verdict::Deliver(reply) if reply.body == "cached"));
    assert_eq!((attempt.sent_at, attempt.bytes, attempt.charged, stage.wire.asked().len()), (None, 0, 6, 0));

    let (verdict, attempt, stage) = with_hook(0, |hook| hook.before = |_| BeforeSend::Refuse("not today".into())).await;
    assert_eq!(failed(verdict), (FailureKind::Middleware, "hook refuses the request: not today".into()));
    assert!(attempt.sent_at.is_none() && stage.wire.asked().is_empty());

    let retry: fn(&mut Reply) -> AfterResponse =
        |_| AfterResponse::Retry { reason: "captcha".into(), after: Some(Duration::from_secs(9)) };
    let (verdict, _, stage) = with_hook(0, |hook| hook.after = retry).await;
    assert!(matches!(verdict, Verdict::Retry { after, .. } if after == Duration::from_secs(9)));
    assert_eq!(stage.stats.count("retry/reason_count/captcha"), 1);
    let (verdict, ..) = with_hook(2, |hook| hook.after = retry).await;
    assert_eq!(failed(verdict).0, FailureKind::Middleware, "retries are bounded for middlewares as well");

    let (verdict, attempt, _) = with_hook(0, |hook| {
        hook.after = |reply| {
            reply.body = Bytes::from_static(b"hello, longer");
            AfterResponse::Continue
        };
    })
    .await;
    assert!(matches!(verdict, Verdict::Deliver(reply) if reply.body == "hello, longer"));
    assert_eq!(attempt.charged, "hello, longer".len());
}

#[tokio::test(start_paused = true)]
async fn a_hook_changes_neither_identity_nor_proxy_nor_host() {
    let (verdict, _, stage) = with_hook(0, |hook| {
        hook.before = |request| {
            request.proxy = None;
            request.identity = IdentityKey { site: "x".into(), name: "y".into() };
            BeforeSend::Continue
        };
    })
    .await;
    assert!(matches!(verdict, Verdict::Deliver(_)));
    let sent = &stage.wire.asked()[0];
    assert!(&*sent.identity.name == "a" && sent.proxy == grant("a").proxy);
    let (verdict, _, stage) = with_hook(0, |hook| {
        hook.before = |request| {
            request.url.set_host(Some("other.example")).unwrap();
            BeforeSend::Continue
        };
    })
    .await;
    assert_eq!(failed(verdict).0, FailureKind::Middleware);
    assert!(stage.wire.asked().is_empty());
}

#[tokio::test(start_paused = true)]
async fn a_panic_in_a_hook_fails_the_request_only() {
    let hooks: [fn(&mut Note); 2] = [|hook| hook.before = |_| panic!("canary"), |hook| hook.after = |_| panic!("canary")];
    for change in hooks {
        let (verdict, _, stage) = with_hook(0, change).await;
        let (kind, message) = failed(verdict);
        assert!(
            kind == FailureKind::Middleware && message.contains("of hook panicked") && !message.contains("canary"),
            "{message}"
        );
        drop(stage);
    }
}

/// An authorizer that signs with a part of the credential that is never merged.
struct Signer(AtomicUsize);

impl Authorize for Signer {
    fn authorize<'a>(&'a self, outgoing: &'a mut Outgoing, grant: &'a Grant) -> BoxFuture<'a, Result<(), String>> {
        Box::pin(async move {
            if self.0.fetch_add(1, Ordering::SeqCst) == 1 {
                return Err("no clock".to_owned());
            }
            let secret = grant.credential.json["secret"].as_str().unwrap();
            let signature = format!("{} {secret}", outgoing.headers["cookie"].to_str().unwrap());
            outgoing.headers.insert("x-signature", HeaderValue::from_str(&signature).unwrap());
            Ok(())
        })
    }
}

#[tokio::test(start_paused = true)]
async fn the_spider_signs_what_was_merged() {
    let stage = Stage::with(page(), vec![], Some(Arc::new(Signer(AtomicUsize::new(0)))), |_| {});
    assert!(matches!(stage.verdict(&job(PAGE)).await, Verdict::Deliver(_)));
    assert_eq!(stage.wire.asked()[0].headers["x-signature"], "sid=canary-a-cookie canary-a-json");
    let (kind, message) = failed(stage.verdict(&job(PAGE)).await);
    assert_eq!((kind, message.as_str()), (FailureKind::Middleware, "authorize of the spider refuses the request: no clock"));
}

#[tokio::test(start_paused = true)]
async fn a_fault_hook_may_repeat_what_the_rules_would_not() {
    let repeat: fn(&mut Note) =
        |hook| hook.fault = || OnFault::Retry { reason: "odd".into(), after: Some(Duration::from_secs(4)) };
    for (attempts, repeated) in [(0, true), (2, false)] {
        let hook = Note::install(500, "hook", &Arc::default(), repeat);
        let wire = ScriptedTransport::with_default(|_| Answer::fault(FailureKind::TooLarge));
        let stage = Stage::with(wire, vec![hook], None, |_| {});
        let verdict = stage.verdict(&Job { attempts, ..job(PAGE) }).await;
        match verdict {
            Verdict::Retry { after, .. } => assert!(repeated && after == Duration::from_secs(4)),
            other => assert!(!repeated && failed(other).0 == FailureKind::TooLarge),
        }
        assert_eq!(stage.stats.count("retry/max_reached"), i64::from(!repeated));
    }
}
