//! The places of refresh, authentication and referer in the chain.

use super::*;
use crate::settings::Secret;

const META: &str = "<meta http-equiv=refresh content='4;url=/next?key=canary-a-query'>";

fn led(verdict: Verdict) -> Hop {
    match verdict {
        Verdict::Redirect(hop) => hop,
        other => panic!("{other:?}"),
    }
}

#[tokio::test(start_paused = true)]
async fn a_refresh_is_decided_before_retry_and_status_and_after_redirects() {
    let sent = "https://shop.example/p?page=1&key=canary-a-query";
    let stage = Stage::new(page());
    let html = |answer: Answer| answer.header("content-type", "text/html");
    stage.wire.get(
        sent,
        [
            html(Answer::new(503, META)),
            html(Answer::new(404, META)),
            Answer::redirect(302, "/elsewhere").header("refresh", "0;url=/x"),
        ],
    );
    for _ in 0..2 {
        let hop = led(stage.verdict(&job(PAGE)).await);
        assert_eq!((hop.to.as_str(), hop.after), ("https://shop.example/next", Duration::from_secs(4)));
    }
    assert_eq!(led(stage.verdict(&job(PAGE)).await).to.path(), "/elsewhere");
    assert_eq!(["redirect/count", "redirect/refresh_count"].map(|key| stage.stats.count(key)), [3, 2]);
}

#[tokio::test(start_paused = true)]
async fn without_refreshes_the_page_is_delivered() {
    let stage = Stage::with(ScriptedTransport::with_default(|_| Answer::html(META)), vec![], None, |config| {
        config.refresh.enabled = false;
    });
    assert!(matches!(stage.verdict(&job(PAGE)).await, Verdict::Deliver(_)));
    let quick = Stage::with(ScriptedTransport::with_default(|_| Answer::html(META)), vec![], None, |config| {
        config.refresh.max_delay = Duration::from_secs(4);
    });
    assert!(matches!(quick.verdict(&job(PAGE)).await, Verdict::Deliver(_)), "as long as the bound is too long");
}

#[tokio::test(start_paused = true)]
async fn a_user_is_named_to_its_domain_unless_the_lease_names_one() {
    let settings = Settings {
        httpauth_user: Some("anna".to_owned()),
        httpauth_pass: Some(Secret::from("canary")),
        httpauth_domain: Some("shop.example".to_owned()),
        ..Settings::default()
    };
    let auth = DownloaderConfig::from_settings(&settings).auth;
    let stage = Stage::with(page(), vec![], None, |config| config.auth = auth);
    let nobody = Grant { credential: Arc::default(), ..grant("a") };
    for (url, grant) in [(PAGE, &nobody), ("https://other.example/", &nobody), (PAGE, &grant("a"))] {
        stage.run(&job(url), grant).await;
    }
    let sent: Vec<_> = stage.wire.asked().iter().map(|sent| sent.headers.get("authorization").cloned()).collect();
    assert_eq!(sent[0].as_ref().unwrap(), "Basic YW5uYTpjYW5hcnk=");
    assert!(sent[0].as_ref().unwrap().is_sensitive());
    assert_eq!((&sent[1], sent[2].as_ref().unwrap().to_str().unwrap()), (&None, "Bearer canary-a"));
    assert!(!format!("{:?}", DownloaderConfig::from_settings(&settings)).contains("YW5uYTpj"));
}

#[tokio::test(start_paused = true)]
async fn the_page_goes_before_a_default_header() {
    let stage = Stage::with(page(), vec![], None, |config| {
        config.base_headers.insert("referer", HeaderValue::from_static("https://default.example/"));
    });
    let from = Job { parent_url: Some("https://shop.example/list".into()), ..job(PAGE) };
    for job in [&job(PAGE), &from] {
        stage.verdict(job).await;
    }
    let sent: Vec<_> = stage.wire.asked().iter().map(|sent| sent.headers["referer"].clone()).collect();
    assert_eq!(sent, ["https://default.example/", "https://shop.example/list"]);
}

#[tokio::test(start_paused = true)]
async fn the_kinds_that_are_repeated_follow_the_settings() {
    let stage = Stage::new(ScriptedTransport::with_default(|_| Answer::fault(FailureKind::Decode)));
    assert_eq!(failed(stage.verdict(&job(PAGE)).await).0, FailureKind::Decode);
    stage.chain.live(&Settings { retry_exceptions: vec![FailureKind::Decode], ..Settings::default() });
    assert!(matches!(stage.verdict(&job(PAGE)).await, Verdict::Retry { .. }));
    let mut never = job(PAGE);
    never.request.retries(0);
    assert_eq!(failed(stage.verdict(&never).await).0, FailureKind::Decode);
}

#[tokio::test(start_paused = true)]
async fn a_hook_above_580_sees_the_page_of_a_refresh_and_one_below_does_not() {
    for (order, sees) in [(600, true), (590, true), (580, true), (570, false)] {
        let change: fn(&mut Note) = |hook| hook.after = |_| AfterResponse::Refuse("seen".to_owned());
        let hook = Note::install(order, "hook", &Arc::default(), change);
        let stage = Stage::with(ScriptedTransport::with_default(|_| Answer::html(META)), vec![hook], None, |_| {});
        let verdict = stage.verdict(&job(PAGE)).await;
        assert_eq!(matches!(verdict, Verdict::Fail(..)), sees, "{order}");
    }
}
