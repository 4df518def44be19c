//! Sends what a spool still holds: its collector and its courier at work again, with nobody who gives them more.
//!
//! A crawl does so in the background with what earlier runs left for its own sink; `dragline deliver` with everything.
//! The books of these records are their own: nothing here is counted into the job under way but the `leftover` counters.

use std::cell::RefCell;
use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use serde_json::Map;
use tokio::sync::{Notify, watch};
use tokio::task::JoinHandle;

use super::StartError;
use super::jobdir::JobCard;
use super::leftovers::Spool;
use super::sink::MakeSink;
use crate::actor::{Died, How, Inbox, Place, Policy, Supervised, Tap, supervise};
use crate::apcloudy::JobId;
use crate::api::stats::Stats;
use crate::collector::log::LogError;
use crate::collector::logring::LogRing;
use crate::collector::message::{Closed, Control, Fact as Kept};
use crate::collector::{COURIER_BOUND, Collector, CollectorConfig, Delivery, Outlets, Seeds, Standing, open_at};
use crate::courier::{Courier, Webhook};
use crate::engine::message::Fact;
use crate::settings::OnFatal;

/// Between two looks at what is left.
const LOOK: Duration = Duration::from_millis(20);
/// The close of a delivery that is through waits for nobody.
const LAST: Duration = Duration::from_secs(5);
/// How much longer than its limit a close may take to be answered.
const ANSWER: Duration = Duration::from_secs(2);

/// What came of one spool.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Outcome {
    /// Records the sink has now.
    pub(crate) delivered: u64,
    /// Batches and parts of them it took.
    pub(crate) batches: u64,
    /// Records it refused; they are in `rejected/`.
    pub(crate) refused: u64,
    /// Records that stay.
    pub(crate) left: u64,
    /// Entries that damaged or missing segments took with them, as far as known.
    pub(crate) lost: u64,
    /// Why nothing goes any more: the sink takes nothing, or the disk does not.
    pub(crate) stopped: Option<String>,
}

/// A spool that could not be sent.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub(crate) enum DeliverError {
    /// It cannot be opened.
    #[error(transparent)]
    Log(#[from] LogError),
    /// The system has no random numbers.
    #[error("the system has no random numbers: {0}")]
    Random(#[from] getrandom::Error),
    /// One of its actors could not be kept alive: a bug of ours.
    #[error("its delivery ended without a word; this is a bug in dragline, the log has its panic. The records are still there")]
    Ended,
}

/// Sends a spool's records to a sink. Goes on until all are settled or the sink takes nothing any more; once `ending` is
/// done, its answer is the time that is left. `stats` are this delivery's own and can be looked at meanwhile.
///
/// # Errors
/// [`DeliverError`]; what is in the spool stays there.
pub(crate) async fn deliver_spool(
    spool: &Spool,
    job: &JobId,
    sink: Box<dyn Webhook>,
    mut config: CollectorConfig,
    place: Place,
    stats: Stats,
    ending: impl Future<Output = Duration>,
) -> Result<Outcome, DeliverError> {
    // There is no job to stop, and none that fills the spool.
    config.on_fatal = OnFatal::Spool;
    config.spool_max_bytes = u64::MAX;
    let delivery = open(spool, job, sink, config, stats.clone()).await?;
    let engine = Tap::<Fact>::new("leftover", 1);
    let collector = Inbox::new("leftover-collector", 1);
    let courier = Inbox::new("leftover-courier", COURIER_BOUND);
    let gone = Arc::new(Notify::new());
    let died = || {
        let gone = Arc::clone(&gone);
        move |died: Died| {
            if !matches!(died.how, How::Panicked(_)) {
                gone.notify_one();
            }
        }
    };
    let (state, answers) = (Arc::clone(&delivery.courier), collector.controls());
    let make = move |_| Courier::new(Arc::clone(&state), answers.clone());
    let courier_at_work = supervise(place.clone(), &courier, Policy::default(), make, died());
    let (facts, link, controls) = (engine.facts(), courier.link(), courier.controls());
    let state = Arc::clone(&delivery.collector);
    let make = move |_| Collector::new(Arc::clone(&state), facts.clone(), link.clone(), controls.clone());
    let _working = Working(courier_at_work, supervise(place, &collector, Policy::default(), make, died()));

    let held = RefCell::new(None);
    let (limit, stopped) = tokio::select! {
        limit = ending => (limit, None),
        stopped = through(&delivery) => (LAST, stopped),
        why = gave_up(&engine, &held) => (Duration::ZERO, Some(why)),
        () = gone.notified() => return Err(DeliverError::Ended),
    };
    let controls = collector.controls();
    controls.tell(Control::CloseWithin(limit));
    controls.tell(Control::Close(Map::new()));
    let closed = tokio::select! {
        closed = tokio::time::timeout(limit.saturating_add(ANSWER), closed(&engine)) => closed.ok(),
        () = gone.notified() => None,
    };
    let closed = closed.ok_or(DeliverError::Ended)?;
    let count = |name| u64::try_from(stats.count(name)).unwrap_or(0);
    Ok(Outcome {
        delivered: count("courier/delivered"),
        batches: count("courier/batches") + count("courier/parts"),
        refused: count("courier/rejected"),
        left: closed.left,
        lost: delivery.lost,
        stopped: stopped.or_else(|| held.take()),
    })
}

/// The two actors; they end with it, whatever way this is left.
struct Working(Supervised<Courier>, Supervised<Collector>);

impl Drop for Working {
    fn drop(&mut self) {
        self.0.stop();
        self.1.stop();
    }
}

/// A large spool takes time to read: not on a thread where others wait.
async fn open(
    spool: &Spool,
    job: &JobId,
    sink: Box<dyn Webhook>,
    config: CollectorConfig,
    stats: Stats,
) -> Result<Delivery, DeliverError> {
    let seeds = Seeds::draw()?;
    let (dir, tidy, job) = (spool.dir.clone(), spool.tidy, job.clone());
    let outlets = Outlets { feeds: Vec::new(), ring: Arc::new(LogRing::new(1)), stats, indexes: None };
    let opened = tokio::task::spawn_blocking(move || open_at(config, &dir, tidy, &job, outlets, sink, seeds));
    Ok(opened.await.map_err(|_| DeliverError::Ended)??)
}

/// Waits until nothing is on its way; tells why, if the sink takes nothing any more.
async fn through(delivery: &Delivery) -> Option<String> {
    loop {
        // A turn of the collector may take a while: whoever waits here has other things to do.
        match delivery.collector.try_lock().map(|state| state.standing()) {
            Ok(Standing::Through) => return None,
            Ok(Standing::Stopped(why)) => return Some(why),
            Ok(Standing::Going) | Err(_) => tokio::time::sleep(LOOK).await,
        }
    }
}

/// Waits until nothing can be written for too long; notes meanwhile what holds it up.
async fn gave_up(engine: &Tap<Fact>, held: &RefCell<Option<String>>) -> String {
    loop {
        match engine.next().await.0 {
            Fact::Collector(Kept::GaveUp(why)) => return why,
            Fact::Collector(Kept::Blocked { why }) => drop(held.replace(Some(why))),
            Fact::Collector(Kept::Unblocked) => drop(held.take()),
            _ => {}
        }
    }
}

async fn closed(engine: &Tap<Fact>) -> Closed {
    loop {
        if let (Fact::Collector(Kept::Closed(closed)), _) = engine.next().await {
            return closed;
        }
    }
}

/// Leftovers on their way while a crawl runs.
#[derive(Debug)]
pub(crate) struct Background {
    end: watch::Sender<Option<Duration>>,
    task: JoinHandle<()>,
}

impl Background {
    /// Sends one spool after the other from this thread on, with its actors at `place`. What comes of them is logged, and
    /// counted into the job's stats.
    pub(crate) fn start(
        spools: Vec<(Spool, JobCard)>,
        make: MakeSink,
        config: CollectorConfig,
        place: Place,
        stats: Stats,
    ) -> Self {
        let (end, ended) = watch::channel(None);
        let task = tokio::task::spawn_local(async move {
            for (spool, card) in spools {
                if ended.borrow().is_some() {
                    tracing::info!(spool = %spool.dir.display(), "the crawl ended before this spool was sent: it stays");
                    continue;
                }
                let own = Stats::new();
                let ending = wait_for_end(ended.clone());
                let make = Arc::clone(&make);
                let opened = tokio::task::spawn_blocking(move || make()).await.unwrap_or(Err(StartError::Engine));
                let sent = match opened {
                    Ok(sink) => {
                        let sent = deliver_spool(&spool, &card.job_id, sink, config.clone(), place.clone(), own.clone(), ending);
                        sent.await.map_err(|error| error.to_string())
                    }
                    Err(error) => Err(error.to_string()),
                };
                count(&stats, &own);
                if !tell(&spool, &card, sent) {
                    break;
                }
            }
        });
        Self { end, task }
    }

    /// Ends it within a limit, or at once when `hurry` is done; what is not sent by then stays in its spool. Its actors
    /// have ended when this returns.
    pub(crate) async fn end(self, limit: Duration, hurry: impl Future) {
        self.end.send_replace(Some(limit));
        let mut task = self.task;
        tokio::select! {
            biased;
            _ = &mut task => return,
            _ = hurry => {}
            () = tokio::time::sleep(limit.saturating_add(ANSWER)) => {}
        }
        task.abort();
        if task.await.is_err() {
            tracing::warn!(
                "what earlier runs left is not sent to its end: the rest stays in its spools; `dragline deliver` sends it"
            );
        }
    }
}

async fn wait_for_end(mut ended: watch::Receiver<Option<Duration>>) -> Duration {
    // Without a sender there is nobody left who waits.
    ended.wait_for(Option::is_some).await.map_or(Duration::ZERO, |limit| limit.unwrap_or_default())
}

fn count(stats: &Stats, own: &Stats) {
    for (name, of) in [
        ("courier/leftover_batches", "courier/batches"),
        ("courier/leftover_batches", "courier/parts"),
        ("courier/leftover_records", "courier/delivered"),
        ("courier/leftover_rejected", "courier/rejected"),
    ] {
        let counted = own.count(of);
        if counted > 0 {
            stats.add(name, counted);
        }
    }
}

/// Logs what came of a spool; whether it is worth while to go on with the next.
fn tell(spool: &Spool, card: &JobCard, sent: Result<Outcome, String>) -> bool {
    let (dir, job) = (spool.dir.display(), &card.job_id);
    match sent {
        // Another process was quicker, and sends it.
        Err(_) if crate::collector::leftovers::is_in_use(&spool.dir) => true,
        Err(error) => {
            tracing::error!("what job {job} left in {dir} cannot be sent: {error}");
            true
        }
        Ok(Outcome { delivered, refused, left: 0, .. }) => {
            tracing::info!("sent what job {job} left in {dir}: {delivered} records delivered, {refused} refused");
            true
        }
        Ok(Outcome { delivered, refused, left, stopped, .. }) => {
            let why = stopped.as_deref().unwrap_or("the crawl ended first");
            tracing::warn!(
                "what job {job} left in {dir}: {delivered} records delivered, {refused} refused, {left} left ({why}); `dragline deliver --spool {dir}` sends them"
            );
            stopped.is_none()
        }
    }
}

#[cfg(test)]
mod tests;
