//! The one thread that writes to the job store, and the bounded way to it.
//!
//! What waits together is committed together, so many senders cost few waits for the disk. An answer is only given after the
//! commit. Who finds the queue full waits; the number of connections bounds how many do.

use std::io;
use std::thread::JoinHandle;

use tokio::sync::{mpsc, oneshot};

use crate::courier::intake::{Arrival, Taken};
use crate::courier::{JobStore, StoreError};

/// Batches that wait for the thread.
const QUEUE: usize = 64;
/// Batches of one transaction.
const TOGETHER: usize = 32;
/// Bytes of one transaction, more or less.
const TOGETHER_BYTES: usize = 32 << 20;

/// Hands batches to the thread.
#[derive(Debug, Clone)]
pub(crate) struct Writer {
    queue: mpsc::Sender<Put>,
}

#[derive(Debug)]
struct Put {
    arrival: Arrival,
    answer: oneshot::Sender<Result<Taken, PutError>>,
}

/// Why a batch was not stored.
#[derive(Debug, Clone, thiserror::Error)]
pub(crate) enum PutError {
    /// The store did not take it.
    #[error("{message}")]
    Store { message: String, is_damaged: bool },
    /// The thread is gone.
    #[error("the thread that writes to the job store has ended")]
    Gone,
}

impl From<&StoreError> for PutError {
    fn from(error: &StoreError) -> Self {
        Self::Store { message: error.to_string(), is_damaged: matches!(error, StoreError::Damaged { .. }) }
    }
}

impl Writer {
    /// Starts the thread. It ends when the last writer is dropped and everything is written.
    ///
    /// # Errors
    /// When the system gives no thread.
    pub(crate) fn start(store: JobStore) -> io::Result<(Self, WriterThread)> {
        let (queue, puts) = mpsc::channel(QUEUE);
        let (life, alive) = oneshot::channel::<()>();
        let thread = std::thread::Builder::new().name("dragline-store".to_owned()).spawn(move || {
            let _life = life;
            write(&store, puts);
        })?;
        Ok((Self { queue }, WriterThread { thread, alive }))
    }

    /// Stores a batch. It is on its way even if nobody waits for the answer.
    pub(crate) async fn put(&self, arrival: Arrival) -> Result<Taken, PutError> {
        let (answer, taken) = oneshot::channel();
        self.queue.send(Put { arrival, answer }).await.map_err(|_| PutError::Gone)?;
        taken.await.unwrap_or(Err(PutError::Gone))
    }
}

/// The thread itself.
#[derive(Debug)]
pub(crate) struct WriterThread {
    thread: JoinHandle<()>,
    alive: oneshot::Receiver<()>,
}

impl WriterThread {
    /// Waits until the thread ends, in order or not.
    pub(crate) async fn ended(&mut self) {
        // Nothing is ever sent: the other half goes when the thread does.
        let _ = (&mut self.alive).await;
    }

    /// Waits until everything is written. Every [`Writer`] has to be dropped before or meanwhile.
    pub(crate) async fn join(self) {
        let Self { thread, alive } = self;
        let _ = alive.await;
        let _ = thread.join();
    }
}

fn write(store: &JobStore, mut puts: mpsc::Receiver<Put>) {
    while let Some(first) = puts.blocking_recv() {
        let mut bytes = first.arrival.body.sent().len();
        let mut together = vec![first];
        while together.len() < TOGETHER && bytes < TOGETHER_BYTES {
            let Ok(next) = puts.try_recv() else { break };
            bytes += next.arrival.body.sent().len();
            together.push(next);
        }
        let arrivals: Vec<&Arrival> = together.iter().map(|put| &put.arrival).collect();
        let taken = store.take(&arrivals);
        // A sender that has gone away needs no answer.
        match taken {
            Ok(taken) => {
                for (put, taken) in together.into_iter().zip(taken) {
                    let _ = put.answer.send(taken.map_err(|error| PutError::from(&error)));
                }
            }
            Err(error) => {
                for put in together {
                    let _ = put.answer.send(Err(PutError::from(&error)));
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing)]

    use tokio::task::JoinSet;

    use super::*;
    use crate::courier::intake::Body;

    fn arrival(id: usize) -> Arrival {
        Arrival { id: id.to_string(), job: 7.into(), body: Body::Strict(format!("{{\"n\": {id}}}")), end: None }
    }

    #[tokio::test]
    async fn many_batches_at_once_each_get_their_answer() {
        let dir = tempfile::tempdir().unwrap();
        let (writer, thread) = Writer::start(JobStore::open(&dir.path().join("jobs.db")).unwrap()).unwrap();
        let mut puts = JoinSet::new();
        for n in 0..400 {
            let writer = writer.clone();
            puts.spawn(async move { writer.put(arrival(n % 200)).await.unwrap() });
        }
        let taken = puts.join_all().await;
        let count = |wanted| taken.iter().filter(|taken| **taken == wanted).count();
        assert_eq!((count(Taken::Stored), count(Taken::Duplicate)), (200, 200));
        drop(writer);
        thread.join().await;
        let store = JobStore::open(&dir.path().join("jobs.db")).unwrap();
        assert_eq!(store.summary(&7.into(), 1).unwrap().batches, 200);
    }

    #[tokio::test]
    async fn a_store_that_fails_is_said_and_works_again_later() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("jobs.db");
        let (writer, _thread) = Writer::start(JobStore::open(&path).unwrap()).unwrap();
        let other = rusqlite::Connection::open(&path).unwrap();
        other.execute_batch("ALTER TABLE batches RENAME TO elsewhere").unwrap();
        let error = writer.put(arrival(1)).await.unwrap_err();
        assert!(matches!(error, PutError::Store { is_damaged: false, .. }) && error.to_string().contains("jobs.db"), "{error}");
        other.execute_batch("ALTER TABLE elsewhere RENAME TO batches").unwrap();
        assert_eq!(writer.put(arrival(1)).await.unwrap(), Taken::Stored);
    }
}
