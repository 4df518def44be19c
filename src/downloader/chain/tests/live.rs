//! Settings that change while attempts are made.

use super::*;

#[tokio::test(start_paused = true)]
async fn changed_settings_count_for_what_is_decided_next() {
    let stage = Stage::new(ScriptedTransport::with_default(|_| Answer::new(503, "")));
    assert!(matches!(stage.verdict(&job(PAGE)).await, Verdict::Retry { .. }));
    let settings = Settings { retry_enabled: false, download_timeout: Duration::from_secs(9), ..Settings::default() };
    stage.chain.live(&settings);
    assert!(matches!(stage.verdict(&job(PAGE)).await, Verdict::Fail(..)));
    let asked = stage.wire.asked();
    assert_eq!((asked[0].limits.total.as_secs(), asked[1].limits.total.as_secs()), (180, 9));
    stage.chain.live(&Settings { retry_http_codes: vec![418], ..Settings::default() });
    assert!(matches!(stage.verdict(&job(PAGE)).await, Verdict::Fail(..)), "503 is not among the codes any more");
}
