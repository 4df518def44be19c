//! One secret word in everything that is secret, and a look at everything that can be seen: logs of every level, `Debug`
//! of every type, texts of errors with all their causes.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing)]

use std::error::Error as StdError;
use std::fmt::{Debug, Write as _};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use serde_json::{Value, json};
use tracing::field::Field;
use tracing::span;
use tracing_subscriber::Layer;
use tracing_subscriber::layer::{Context, SubscriberExt as _};

use super::messages::*;
use super::procedure::Procedure;
use super::testing::{Script, Step, lease};
use super::transport::loopback::{Act, LEAF, Loopback, answer, nobody};
use super::*;
use crate::causes::chain;

const CANARY: &str = "c4n4ry";
const TOKEN: &str = "spn_c4n4ry";
const PROXY: &str = "user:c4n4ry";

/// Everything that was seen, and where.
#[derive(Debug, Clone, Default)]
struct Eyes(Arc<Mutex<Vec<String>>>);

impl Eyes {
    fn see(&self, what: impl Into<String>) {
        self.0.lock().unwrap().push(what.into());
    }

    fn shown(&self, value: &dyn Debug) {
        self.see(format!("{value:?} {value:#?}"));
    }

    /// The error and all its causes, in both forms and with its details.
    fn error(&self, error: &Error) {
        for cause in chain(error) {
            self.see(format!("{cause} {cause:#} {cause:?} {cause:#?}"));
        }
        self.shown(error.details());
        self.see(error.advice());
    }

    /// Nothing of it holds the word, and there was much to see.
    fn check(&self, least: usize) {
        let all = self.0.lock().unwrap();
        assert!(all.len() >= least, "{} things were seen: {all:#?}", all.len());
        let leaks: Vec<&String> = all.iter().filter(|text| text.to_lowercase().contains(CANARY)).collect();
        assert!(leaks.is_empty(), "{leaks:#?}");
    }
}

impl tracing::field::Visit for Eyes {
    fn record_debug(&mut self, field: &Field, value: &dyn Debug) {
        self.see(format!("{field}={value:?}"));
    }

    fn record_error(&mut self, field: &Field, value: &(dyn StdError + 'static)) {
        for cause in chain(value) {
            self.see(format!("{field}={cause} {cause:?}"));
        }
    }
}

/// Events and spans of all levels and targets.
impl<S: tracing::Subscriber> Layer<S> for Eyes {
    fn on_event(&self, event: &tracing::Event<'_>, _: Context<'_, S>) {
        let mut line = format!("{} {}", event.metadata().level(), event.metadata().target());
        event.record(&mut |field: &Field, value: &dyn Debug| write!(line, " {field}={value:?}").unwrap());
        self.see(line);
        event.record(&mut self.clone());
    }

    fn on_new_span(&self, span: &span::Attributes<'_>, _: &span::Id, _: Context<'_, S>) {
        span.record(&mut self.clone());
    }

    fn on_record(&self, _: &span::Id, values: &span::Record<'_>, _: Context<'_, S>) {
        values.record(&mut self.clone());
    }
}

fn watching() -> (Eyes, tracing::subscriber::DefaultGuard, tracing::Dispatch) {
    let eyes = Eyes::default();
    // With one dispatcher alone, tracing asks the thread that first meets a callsite, and caches its answer for all.
    let second = tracing::Dispatch::new(tracing_subscriber::registry());
    let guard = tracing::subscriber::set_default(tracing_subscriber::registry().with(eyes.clone()));
    (eyes, guard, second)
}

fn request() -> AcquireRequest {
    AcquireRequest::new("shop", "web").uri("https://user:c4n4ry@shop.test/feed?sig=c4n4ry").session_key("c4n4ry")
}

fn item(version: i32) -> Value {
    json!({"group": "g", "key": "k", "version": version, "content": "password: c4n4ry", "has_secret_refs": true})
}

fn draft() -> ReportDraft {
    ReportDraft::status(200).uri("http://user:c4n4ry@shop.test/feed?sig=c4n4ry#c4n4ry").business_code("c4n4ry").marker("c4n4ry")
}

fn refuse(status: u16, code: &'static str, reason: &'static str) -> Step {
    Step::Refuse { status, code, reason, hint: Some(20) }
}

/// What an intermediary may answer: the request with all that it held.
const ECHO: &str = "<html>no route\nAuthorization: Bearer spn_c4n4ry\nCookie: sid=c4n4ry-cookie\nhttp://user:c4n4ry@10.0.0.1/";

/// A whole session with every kind of trouble, on the paused clock.
#[tokio::test(start_paused = true)]
async fn b085_a_session_in_trouble_shows_no_secret_at_any_level() {
    let (eyes, _guard, _second) = watching();
    let script = Script::new();
    let told = eyes.clone();
    let reporting = ReporterOptions { batch_size: 1, ..ReporterOptions::default() };
    let reporting = reporting.with_on_rejected(move |report| told.shown(report));
    eyes.shown(&reporting);
    let builder = Client::builder().url("http://h/sp").token(TOKEN).node("n").environment(|_| None).reporter(reporting);
    eyes.shown(&builder);
    let client = builder.build_over(script.clone()).unwrap();
    let prepared = client.lease(request()).unwrap().raise_on_release_error();
    eyes.shown(&prepared);

    for step in
        [Step::Bare { status: 503, body: ECHO }, refuse(503, "unavailable", "overloaded"), refuse(401, "unauthenticated", "")]
    {
        script.next(Procedure::Acquire, step);
    }
    for _ in 0..2 {
        eyes.error(&client.acquire(request()).await.unwrap_err());
    }
    let held = prepared.acquire().await.unwrap();
    let explicit = Explicit::new().header("X-A", "c4n4ry").cookie("a", "c4n4ry").param("p", "c4n4ry");
    let mut call = reqwest::Request::new(::http::Method::GET, "http://shop.test/".parse().unwrap());
    held.apply(&mut call).unwrap();
    eyes.see(format!("{:?}", call.headers()));
    for value in [&held as &dyn Debug, held.credential(), &held.proxy(), &explicit, &held.parts(&explicit), &request(), &draft()]
    {
        eyes.shown(value);
    }
    eyes.shown(&held.report(draft()).unwrap());
    let rejected = held.report(draft().report_id("r-2")).unwrap().report_id;
    eyes.error(&held.report(draft().markers(vec!["c4n4ry"; 33])).unwrap_err());
    eyes.error(&held.report(draft().business_code("c4n4ry".repeat(20))).unwrap_err());
    script
        .next(Procedure::Report, Step::Bare { status: 502, body: ECHO })
        .next(Procedure::Report, Step::Bare { status: 200, body: r#"{"accepted": "c4n4ry"}"# })
        .next(Procedure::Report, Step::Answer(json!({"rejected": [{"report_id": rejected, "reason": "scope_missing"}]})))
        .next(Procedure::Report, refuse(403, "permission_denied", "scope_missing"));
    held.release().await.unwrap();
    client.reporter().flush(Some(Duration::from_secs(60))).await;
    script.always(Procedure::Release, Step::Bare { status: 500, body: ECHO });
    eyes.error(&client.lease(request()).unwrap().acquire().await.unwrap().release().await.unwrap_err());
    drop(client.lease(request()).unwrap().auto_renew().acquire().await.unwrap());

    let dir = tempfile::tempdir().unwrap();
    let options = WatcherOptions::new(["g/k"]).cache_dir(dir.path()).cache_secrets().on_change(|item| assert!(item.version != 2));
    eyes.shown(&options);
    let watcher = client.config_watcher(options).unwrap();
    script
        .next(Procedure::BatchGetConfig, Step::Answer(json!({"items": [item(1)]})))
        .next(Procedure::WatchConfig, Step::Answer(json!({"items": [item(2)]})))
        .next(Procedure::WatchConfig, Step::Bare { status: 200, body: r#"{"items": [{"content": ["c4n4ry"]}]}"# })
        .next(Procedure::WatchConfig, Step::Bare { status: 502, body: ECHO });
    watcher.start().await.unwrap();
    tokio::time::sleep(Duration::from_secs(20)).await;
    for value in [&watcher as &dyn Debug, &watcher.items(), &watcher.changes(ChangeFilter::any()), &client, &client.reporter()] {
        eyes.shown(value);
    }
    script
        .next(Procedure::GetSecret, Step::Answer(json!({"path": "a", "version": 1, "value": "c4n4ry"})))
        .next(Procedure::GetSecret, Step::Bare { status: 200, body: r#"{"value": ["c4n4ry"]}"# });
    eyes.shown(&client.get_secret("a").await.unwrap());
    eyes.error(&client.get_secret("a").await.unwrap_err());
    client.close().await;
    for value in [&client as &dyn Debug, &client.ways().reporter, &client.ways().releaser] {
        eyes.shown(value);
    }
    for target in [" spinneret ", " spinneret.reporter ", " spinneret.lease ", " spinneret.config "] {
        assert!(eyes.0.lock().unwrap().iter().any(|seen| seen.contains(target)), "nothing was logged to{target}");
    }
    eyes.check(100);
}

/// Every way in which an attempt can end without an answer, with a password in the proxy's URL and the token in the head.
#[tokio::test]
async fn b085_failures_of_sockets_show_no_secret_in_any_of_their_causes() {
    let (eyes, _guard, _second) = watching();
    let timeouts = Timeouts { connect: Duration::from_millis(300), read: Duration::from_millis(300), ..Timeouts::default() };
    let fail = async |url: &str, proxy: Option<String>| {
        let proxy = proxy.map_or(ProxyChoice::None, |proxy| ProxyChoice::Url(proxy.into()));
        let builder = Client::builder().url(url).token(TOKEN).environment(|_| None).proxy(proxy);
        let client = builder.timeouts(timeouts).retry(RetryPolicy::NO_RETRY).build().unwrap();
        eyes.error(&client.acquire(request()).await.unwrap_err());
        eyes.shown(&client.wire());
    };
    let head = b"HTTP/1.1 200 OK\r\nX-C4n4ry: c4n4ry\r\nc4n4ry";
    for act in [
        Act::Reset(vec![]),
        Act::Close(head.to_vec()),
        Act::Close(b"c4n4ry c4n4ry\r\n".to_vec()),
        Act::Hang(head.to_vec()),
        Act::Close(answer(200, "", br#"{"lease": "c4n4ry"}"#)),
        Act::Close(answer(502, "Spinneret-Reason: spn_c4n4ry\r\n", ECHO.as_bytes())),
        Act::Close(answer(200, "Content-Encoding: c4n4ry\r\n", b"c4n4ry")),
        Act::Close(answer(307, "Location: http://user:c4n4ry@h/\r\n", b"")),
    ] {
        fail(&Loopback::start(vec![act]).await.url(), None).await;
    }
    fail("http://nowhere.invalid", None).await;
    fail(&Loopback::start_tls(vec![], LEAF).await.tls_url(), None).await;
    for scheme in ["http", "socks5", "socks5h"] {
        for url in ["http://127.0.0.1:1", "https://127.0.0.1:1"] {
            fail(url, Some(format!("{scheme}://{PROXY}@{}", nobody().await))).await;
            for act in [Act::Reset(vec![]), Act::Close(answer(407, "", b"c4n4ry")), Act::Close(b"\x05\xffc4n4ry".to_vec())] {
                let proxy = Loopback::start(vec![act]).await;
                fail(url, Some(format!("{scheme}://{PROXY}@{}", proxy.addr))).await;
            }
        }
    }
    eyes.check(60);
}

/// What is refused before anything is sent says what is wrong, and not with what.
#[test]
fn b008_refused_settings_and_proxies_show_nothing_of_themselves() {
    let eyes = Eyes::default();
    let refused = |builder: ClientBuilder| {
        eyes.shown(&builder);
        eyes.error(&builder.build().unwrap_err());
    };
    let base = || Client::builder().url("http://h").token(TOKEN).environment(|_| None);
    for url in [
        "http://user:c4n4ry@h",
        "http://h/?token=c4n4ry",
        "spn_c4n4ry",
        "http://h:c4n4ry",
        "c4n4ry c4n4ry://h",
        "http://h/#c4n4ry",
    ] {
        refused(base().url(url));
    }
    for token in ["c4n4ry c4n4ry", "c4n4ry\u{1}", "c4n4ryé"] {
        refused(base().token(token));
    }
    for proxy in ["c4n4ry://h:1", "http://user:c4n4ry@", "http://user:c4n4ry@h:port", "http://c4n4ry c4n4ry"] {
        refused(base().proxy(ProxyChoice::Url(proxy.into())));
        refused(base().environment(move |name| (name == "ALL_PROXY").then(|| proxy.into())));
        let assigned = ProxyAssignment { url: proxy.to_owned(), ..ProxyAssignment::default() };
        eyes.error(&assigned.to_reqwest().unwrap_err());
        let granted = AcquireResponse { proxy: Some(assigned), ..serde_json::from_value(lease("lse_1")).unwrap() };
        eyes.error(&granted.http().unwrap_err());
        eyes.shown(&granted);
    }
    eyes.check(60);
}
