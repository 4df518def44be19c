//! Sends the records a sink refused once more, from their files in `rejected/`: one try after the other, each with the
//! id it had. What is taken is removed; what is refused again stays as it is.

use std::fs;
use std::future::Future;
use std::path::{Path, PathBuf};
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use serde::Deserialize;
use serde_json::value::RawValue;

use crate::apcloudy::{Answer, JobId};
use crate::backoff::Backoff;
use crate::collector::batch::{Batch, Counts};
use crate::collector::leftovers;
use crate::collector::log::{BatchId, SeqRange};
use crate::courier::Webhook;

/// The newest form of the files that is read here.
const VERSION: u32 = 1;
/// The longest wait a sink may ask for.
const LONGEST_ASKED: Duration = Duration::from_secs(300);

/// What came of the files of a spool.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Resent {
    /// Records in files that were taken.
    pub(crate) delivered: u64,
    /// Files that were refused again or cannot be read, with the reason.
    pub(crate) refused: Vec<(PathBuf, String)>,
    /// Files that were not answered, and why.
    pub(crate) left: usize,
    /// Why no more were tried.
    pub(crate) stopped: Option<String>,
}

/// A file that cannot be sent.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub(crate) enum RejectedError {
    /// It is not what the courier writes.
    #[error("{path} cannot be read as refused records: {reason}; it stays as it is")]
    Damaged { path: PathBuf, reason: String },
    /// A newer version of this program wrote it.
    #[error("{path} has version {found}, this program reads up to {VERSION}; use the newer program")]
    Newer { path: PathBuf, found: u32 },
}

#[derive(Deserialize)]
struct Form {
    version: u32,
    batch: String,
    job_id: JobId,
    body: Box<RawValue>,
}

/// Sends the files of a spool whose lock is held by the caller. A file is tried for `patience`; whatever was not answered
/// then, or when `ending` is done, stays.
///
/// # Errors
/// When the directory cannot be listed.
pub(crate) async fn resend(
    spool: &Path,
    sink: &mut dyn Webhook,
    seed: u64,
    patience: Duration,
    ending: impl Future<Output = ()>,
) -> std::io::Result<Resent> {
    let files = leftovers::rejected(spool)?;
    let mut resent = Resent::default();
    let mut backoff = Backoff::new(seed);
    let mut ending = pin!(ending);
    for (at, file) in files.iter().enumerate() {
        let batch = match read(file) {
            Ok(batch) => Arc::new(batch),
            Err(error) => {
                resent.refused.push((file.clone(), error.to_string()));
                continue;
            }
        };
        let answer = tokio::select! {
            answer = send(sink, &batch, &mut backoff) => answer,
            () = tokio::time::sleep(patience) => Answer::Fatal { why: "no answer in time".to_owned() },
            () = &mut ending => Answer::Fatal { why: "stopped by a signal".to_owned() },
        };
        match answer {
            Answer::Delivered => {
                resent.delivered += batch.counts.total() + batch.counts.stats;
                // Sent again next time, under the same id.
                fs::remove_file(file)?;
            }
            Answer::Split { why } | Answer::Reject { why } => resent.refused.push((file.clone(), why)),
            Answer::Retry { why, .. } | Answer::Fatal { why } => {
                resent.left = files.len() - at;
                resent.stopped = Some(why);
                break;
            }
        }
    }
    Ok(resent)
}

/// Tries until there is an answer that a further try does not change.
async fn send(sink: &mut dyn Webhook, batch: &Arc<Batch>, backoff: &mut Backoff) -> Answer {
    let mut failures = 0;
    loop {
        match sink.deliver(Arc::clone(batch)).await {
            Answer::Retry { after, why } => {
                failures += 1;
                let wait = backoff.wait(failures).max(after.unwrap_or_default().min(LONGEST_ASKED));
                tracing::warn!(
                    target: "dragline::courier",
                    "Failed to send APCloudy batch {}: {why}; next try in {:.1} s", batch.id, wait.as_secs_f64()
                );
                tokio::time::sleep(wait).await;
            }
            answer => return answer,
        }
    }
}

/// Reads a file as the courier wrote it: the id follows from its name, the body is what was sent.
fn read(path: &Path) -> Result<Batch, RejectedError> {
    let damaged = |reason: String| RejectedError::Damaged { path: path.to_owned(), reason };
    let text = fs::read_to_string(path).map_err(|e| damaged(e.to_string()))?;
    let form: Form = serde_json::from_str(&text).map_err(|e| damaged(e.to_string()))?;
    if form.version > VERSION {
        return Err(RejectedError::Newer { path: path.to_owned(), found: form.version });
    }
    let batch = u128::from_str_radix(&form.batch, 16).map(BatchId).map_err(|e| damaged(format!("batch: {e}")))?;
    let name = path.file_stem().unwrap_or_default().to_string_lossy();
    let id = match name.strip_prefix(&form.batch).map(|places| places.strip_prefix('-').and_then(|places| places.split_once('-')))
    {
        None => return Err(damaged("its name does not begin with its batch".to_owned())),
        Some(None) => batch,
        Some(Some((first, last))) => match (first.parse(), last.parse()) {
            (Ok(first), Ok(last)) => BatchId::of_part(batch, first, last),
            _ => return Err(damaged("its name has no places of records".to_owned())),
        },
    };
    // A body that is no JSON is kept as a text.
    let body = serde_json::from_str::<String>(form.body.get()).unwrap_or_else(|_| form.body.get().to_owned());
    Ok(Batch { id, job: form.job_id, range: SeqRange { first: 0, last: 0 }, counts: counts(&body), body })
}

fn counts(body: &str) -> Counts {
    let body: serde_json::Value = serde_json::from_str(body).unwrap_or_default();
    let list =
        |name: &str| body.pointer(&format!("/data/{name}")).and_then(|list| list.as_array()).map_or(0, |list| list.len() as u64);
    let stats = body.pointer("/data/stats").is_some_and(|stats| stats.as_object().is_some_and(|stats| !stats.is_empty()));
    Counts { requests: list("requests"), items: list("items"), logs: list("logs"), stats: u64::from(stats) }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing)]
    use tempfile::TempDir;

    use super::*;
    use crate::actor::run_local;
    use crate::courier::MemorySink;
    use crate::courier::testing::batch;

    const BATCH: &str = "000000000000000000000000000000ab";

    const PATIENCE: Duration = Duration::from_secs(9);

    /// Takes nearly as long for each call as anybody waits.
    struct Slow(MemorySink);

    impl Webhook for Slow {
        fn deliver(&mut self, batch: Arc<Batch>) -> crate::courier::Pending {
            let answer = self.0.deliver(batch);
            Box::pin(async move {
                tokio::time::sleep(PATIENCE * 2 / 3).await;
                answer.await
            })
        }

        fn place(&self) -> String {
            self.0.place()
        }
    }

    fn write(spool: &TempDir, name: &str, body: &str) -> PathBuf {
        let dir = spool.path().join("rejected");
        fs::create_dir_all(&dir).unwrap();
        let path = dir.join(name);
        let text = format!(
            r#"{{"version":1,"batch":"{BATCH}","job_id":7,"answer":"413","rejected_at":"2026-11-30T10:00:00Z","body":{body}}}"#
        );
        fs::write(&path, text + "\n").unwrap();
        path
    }

    #[test]
    fn each_file_goes_with_the_id_and_the_body_it_had() {
        let dir = TempDir::new().unwrap();
        let sent = batch(7, 1);
        let whole = read(&write(&dir, &format!("{BATCH}.json"), &sent.body)).unwrap();
        assert_eq!((whole.id, &whole.job, &whole.body, whole.counts), (BatchId(0xab), &JobId::from(7), &sent.body, sent.counts));
        let part = read(&write(&dir, &format!("{BATCH}-3-4.json"), &sent.body)).unwrap();
        assert_eq!(part.id, BatchId::of_part(BatchId(0xab), 3, 4));
        let text = read(&write(&dir, &format!("{BATCH}-5-5.json"), r#""{\"data""#)).unwrap();
        assert_eq!((text.body.as_str(), text.counts), ("{\"data", Counts::default()));
        for (name, part) in [("other.json", "name"), (&format!("{BATCH}-x-y.json"), "places")] {
            assert!(read(&write(&dir, name, "{}")).unwrap_err().to_string().contains(part), "{name}");
        }
    }

    #[test]
    fn what_is_taken_is_removed_and_what_is_refused_again_stays() {
        run_local(async {
            let dir = TempDir::new().unwrap();
            let body = batch(7, 1).body;
            let (taken, refused) =
                (write(&dir, &format!("{BATCH}-0-0.json"), &body), write(&dir, &format!("{BATCH}-2-2.json"), &body));
            let torn = write(&dir, "torn.json", "{");
            let control = MemorySink::new();
            control.reject(BatchId::of_part(BatchId(0xab), 2, 2));
            control.fail(2, Answer::Retry { after: None, why: "503".into() });
            let resent = resend(dir.path(), &mut control.clone(), 3, PATIENCE, std::future::pending()).await.unwrap();
            assert_eq!((resent.delivered, resent.left, resent.stopped), (4, 0, None));
            assert!(!taken.exists());
            let stays: Vec<_> = resent.refused.iter().map(|(file, _)| file.clone()).collect();
            assert_eq!(stays, [refused, torn]);
            assert!(stays.iter().all(|file| file.exists()));
            assert_eq!(control.ids(), [BatchId::of_part(BatchId(0xab), 0, 0)]);
        });
    }

    #[test]
    fn nothing_more_is_tried_once_the_sink_is_lost_or_time_is_up() {
        run_local(async {
            let dir = TempDir::new().unwrap();
            for n in 0..3 {
                write(&dir, &format!("{BATCH}-{n}-{n}.json"), &batch(7, n).body);
            }
            let control = MemorySink::new();
            control.fail(1, Answer::Fatal { why: "401".into() });
            let resent = resend(dir.path(), &mut control.clone(), 3, PATIENCE, std::future::pending()).await.unwrap();
            assert_eq!((resent.left, resent.stopped.as_deref(), control.calls()), (3, Some("401"), 1));
            control.block();
            let signal = tokio::time::sleep(PATIENCE / 2);
            let resent = resend(dir.path(), &mut control.clone(), 3, PATIENCE, signal).await.unwrap();
            assert_eq!((resent.left, resent.stopped.as_deref()), (3, Some("stopped by a signal")));
            let resent = resend(dir.path(), &mut control.clone(), 3, PATIENCE, std::future::pending()).await.unwrap();
            assert_eq!((resent.left, resent.delivered, control.ids().len()), (3, 0, 0));
            assert!(resent.stopped.unwrap().contains("in time"));
        });
    }

    #[test]
    fn a_sink_that_takes_a_file_now_and_then_is_given_all_of_them() {
        run_local(async {
            let dir = TempDir::new().unwrap();
            for n in 0..8 {
                write(&dir, &format!("{BATCH}-{n}-{n}.json"), &batch(7, n).body);
            }
            let control = MemorySink::new();
            let mut sink = Slow(control.clone());
            let resent = resend(dir.path(), &mut sink, 3, PATIENCE, std::future::pending()).await.unwrap();
            assert_eq!((resent.left, resent.stopped, control.ids().len()), (0, None, 8));
        });
    }
}
