//! A body on its way out, and the limit of time that counts from its last step.
//!
//! A slow line may take a large body for longer than any limit for an answer: as long as pieces go out, the other side
//! is not silent.

use std::convert::Infallible;
use std::future::Future;
use std::pin::{Pin, pin};
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use hyper::body::{Body, Frame, SizeHint};
use tokio::sync::Notify;
use tokio::time::{Instant, sleep_until, timeout_at};

use crate::later::later;

/// Bytes handed to the connection at once.
const PIECE: usize = 64 * 1024;

/// When the connection last asked for a piece; nothing before there is a connection.
#[derive(Debug, Clone, Default)]
pub(super) struct Progress(Arc<Steps>);

#[derive(Debug, Default)]
struct Steps {
    last: Mutex<Option<Instant>>,
    begun: Notify,
}

/// A body of known length that goes out in pieces.
#[derive(Debug)]
pub(super) struct Upload {
    rest: Bytes,
    progress: Progress,
}

impl Upload {
    pub(super) const fn new(body: Bytes, progress: Progress) -> Self {
        Self { rest: body, progress }
    }
}

impl Body for Upload {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(mut self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        self.progress.note();
        let size = self.rest.len().min(PIECE);
        Poll::Ready((size > 0).then(|| Ok(Frame::data(self.rest.split_to(size)))))
    }

    fn is_end_stream(&self) -> bool {
        self.rest.is_empty()
    }

    fn size_hint(&self) -> SizeHint {
        SizeHint::with_exact(self.rest.len() as u64)
    }
}

/// The other side was silent for too long.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Silent {
    /// Whether a connection took a part of the body.
    pub(super) is_connected: bool,
}

impl Progress {
    fn note(&self) {
        let before = self.0.last.lock().unwrap_or_else(PoisonError::into_inner).replace(Instant::now());
        if before.is_none() {
            self.0.begun.notify_one();
        }
    }

    fn last(&self) -> Option<Instant> {
        *self.0.last.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits for what sends the body: at most `connect` for its first step, and at most `idle` after its last one.
    pub(super) async fn wait<F: Future>(&self, send: F, connect: Duration, idle: Duration) -> Result<F::Output, Silent> {
        let mut send = pin!(send);
        tokio::select! {
            output = send.as_mut() => return Ok(output),
            () = self.0.begun.notified() => {}
            () = sleep_until(later(Instant::now(), connect)) => return Err(Silent { is_connected: false }),
        }
        loop {
            let last = self.last();
            let limit = later(last.unwrap_or_else(Instant::now), idle);
            if let Ok(output) = timeout_at(limit, send.as_mut()).await {
                return Ok(output);
            }
            if self.last() == last {
                return Err(Silent { is_connected: true });
            }
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing)]

    use http_body_util::BodyExt as _;
    use tokio::time::sleep;

    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    #[tokio::test]
    async fn the_whole_body_goes_out_in_pieces_of_known_length() {
        for length in [0, 1, PIECE, PIECE + 1, 3 * PIECE] {
            let bytes = Bytes::from((0..length).map(|n| n.to_le_bytes()[0]).collect::<Vec<_>>());
            let upload = Upload::new(bytes.clone(), Progress::default());
            assert_eq!((upload.size_hint().exact(), upload.is_end_stream()), (Some(length as u64), length == 0));
            assert_eq!(upload.collect().await.unwrap().to_bytes(), bytes);
        }
    }

    #[tokio::test(start_paused = true)]
    async fn silence_counts_from_the_last_step() {
        let progress = Progress::default();
        let sending = progress.clone();
        let steps = async move {
            for _ in 0..9 {
                sleep(SECOND).await;
                sending.note();
            }
            sleep(SECOND).await;
            7
        };
        assert_eq!(progress.wait(steps, 2 * SECOND, 2 * SECOND).await, Ok(7));
        let progress = Progress::default();
        let begun = Instant::now();
        let never = sleep(1000 * SECOND);
        assert_eq!(progress.wait(never, 3 * SECOND, SECOND).await, Err(Silent { is_connected: false }));
        assert_eq!(begun.elapsed().as_secs(), 3);
        let (progress, begun) = (Progress::default(), Instant::now());
        let sending = progress.clone();
        let stuck = async move {
            sending.note();
            sleep(1000 * SECOND).await;
        };
        assert_eq!(progress.wait(stuck, 9 * SECOND, SECOND).await, Err(Silent { is_connected: true }));
        assert_eq!(begun.elapsed().as_secs(), 1);
    }
}
