//! One session of a node: every call once, and nothing secret in any text it leaves behind.

use std::time::Duration;

use dragline::spinneret::{
    AcquireRequest, BatchGetConfigRequest, ChangeFilter, Client, ReportDraft, WatchConfigRequest, WatchItem, WatcherOptions,
    blocking,
};

use crate::log::Log;
use crate::server::{CANARIES, Fate, Server};

fn assert_clean(what: &str, text: &str) {
    for canary in CANARIES {
        assert!(!text.contains(canary), "{what} shows {canary}:\n{text}");
    }
}

/// A log for the whole thread: the runtime below has no other.
fn traced<T>(work: impl Future<Output = T>) -> (T, String) {
    let log = Log::default();
    let subscriber = log.subscriber();
    // A second one keeps what is decided about a place in the code from being decided for one alone.
    let _other = tracing::Dispatch::new(Log::default().subscriber());
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let done = tracing::subscriber::with_default(subscriber, || runtime.block_on(work));
    (done, log.text())
}

#[test]
fn a_session_leaves_no_secret_in_logs_errors_and_debug_texts() {
    let cache = tempfile::tempdir().unwrap();
    let cache_dir = cache.path().to_owned();
    let (texts, log) = traced(async move {
        let mut texts = Vec::new();
        let server = Server::failing(|method, n| match (method, n) {
            ("Report", 1) => Fate::Page,
            ("GetConfig", 1) | ("Acquire", 1) => Fate::Overloaded,
            ("Acquire", 4) => Fate::Page,
            ("Release", 2) => Fate::ServeAndReset,
            _ => Fate::Serve,
        })
        .await;
        server.publish("crawler", "search.json", "c4n4ry-content", false);
        server.publish("crawler", "signing.json", "c4n4ry-content too", true);
        let builder = Client::builder().url(&server.url).token("c4n4ry-token").node("session").cache_dir(&cache_dir);
        texts.push(format!("{builder:?}"));
        let client = builder.build().unwrap();
        texts.push(format!("{client:?} {:?}", client.reporter()));

        let lease =
            client.lease(AcquireRequest::new("shop", "web").uri("/search?sig=c4n4ry-query")).unwrap().acquire().await.unwrap();
        texts.push(format!("{lease:?} {:?} {:?}", lease.credential(), lease.proxy()));
        let http = lease.http().unwrap().build().unwrap();
        let mut request = http.get("http://127.0.0.1:9/search?q=1").build().unwrap();
        lease.apply(&mut request).unwrap();
        assert!(request.url().query().unwrap().contains("c4n4ry-query"), "the credential is on the request");
        let parts = lease.parts(&dragline::spinneret::Explicit::default());
        texts.push(format!("{parts:?}"));
        let failed = http.execute(request).await.unwrap_err();
        texts.push(format!("{:?}", lease.report(ReportDraft::error(&failed)).unwrap()));
        lease.renew(Duration::from_secs(60)).await.unwrap();
        lease.release().await.unwrap();
        let other = client.lease(AcquireRequest::new("shop", "web")).unwrap().acquire().await.unwrap();
        other.release().await.unwrap();
        // A page of something in between repeats the token.
        let page = client.acquire(AcquireRequest::new("shop", "web")).await.unwrap_err();
        texts.push(format!("{page} {page:?} {:?} {}", page.details(), page.advice()));
        assert!(page.to_string().contains("upstream gone"), "{page}");

        let item = client.get_config("crawler/search.json").await.unwrap();
        assert_eq!(item.content, "c4n4ry-content");
        texts.push(format!("{item:?}"));
        let request = BatchGetConfigRequest::new(["crawler/search.json", "crawler/none.json"]).unwrap();
        let batch = client.batch_get_config(request).await.unwrap();
        assert_eq!((batch.items.len(), batch.missing.len()), (1, 1));
        texts.push(format!("{batch:?}"));
        let held = WatchItem { group: "crawler".into(), key: "search.json".into(), version: 0 };
        let request = WatchConfigRequest { items: vec![held], timeout_ms: 1_000, ..WatchConfigRequest::default() };
        let news = client.watch_config(request).await.unwrap();
        texts.push(format!("{news:?}"));
        let secret = client.get_secret("signing/api-key").await.unwrap();
        assert_eq!(secret.value, "c4n4ry-secret");
        texts.push(format!("{secret:?}"));

        let watcher = client.config_watcher(WatcherOptions::new(["crawler/search.json", "crawler/signing.json"])).unwrap();
        watcher.start().await.unwrap();
        texts.push(format!("{watcher:?} {:?}", watcher.items()));
        let change = watcher.wait_for_change(ChangeFilter::any(), Some(Duration::from_secs(10)));
        server.publish("crawler", "search.json", "c4n4ry-content again", false);
        texts.push(format!("{:?}", change.await.expect("the change")));
        assert!(client.reporter().flush(Some(Duration::from_secs(10))).await);
        client.close().await;
        let closed = client.get_secret("signing/api-key").await.unwrap_err();
        assert_eq!(closed.reason(), "client_closed");
        assert_eq!(server.open(), Vec::<String>::new());
        texts
    });
    for text in &texts {
        assert_clean("a debug text", text);
    }
    assert!(log.contains("spinneret"), "{log}");
    // The crates below log what they read and write, at a level nobody uses in production.
    let ours: Vec<&str> = log.lines().filter(|line| line.contains("spinneret")).collect();
    assert_clean("the log", &ours.join("\n"));
    assert_snapshots(cache.path());
}

/// The plain item is on disk, the one with a secret is not.
fn assert_snapshots(folder: &std::path::Path) {
    let mut files = Vec::new();
    let mut folders = vec![folder.to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).unwrap().flatten() {
            if entry.path().is_dir() { folders.push(entry.path()) } else { files.push(entry.path()) }
        }
    }
    let names: Vec<_> = files.iter().filter_map(|file| file.file_name()?.to_str()).collect();
    assert_eq!(names, ["search.json.json"], "{files:?}");
}

#[test]
fn plain_threads_do_the_same() {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
    let server = runtime.block_on(Server::start());
    let client = blocking::Client::new(Client::builder().url(&server.url).token("c4n4ry-token")).unwrap();
    let threads: Vec<_> = (0..4)
        .map(|n| {
            let client = client.clone();
            std::thread::spawn(move || {
                let lease = client.lease(AcquireRequest::new("shop", "web").uri("/page")).unwrap().acquire().unwrap();
                assert!(n != 3, "one of them fails");
                lease.report(ReportDraft::status(200)).unwrap();
                lease.release().unwrap();
            })
        })
        .collect();
    let failed = threads.into_iter().map(std::thread::JoinHandle::join).filter(Result::is_err).count();
    assert_eq!(failed, 1);
    client.close().unwrap();
    assert_eq!(server.open(), Vec::<String>::new());
    assert_eq!(server.books.lock().unwrap().leases.len(), 4);
    assert_eq!(server.books.lock().unwrap().report_ids.len(), 3);
}
