//! A request's body on its way out, and the limits of time that count from its last step.
//!
//! No byte of the body is handed out before there is a connection: a body that was never asked for was never sent.

use std::convert::Infallible;
use std::future::Future;
use std::pin::{Pin, pin};
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use hyper::body::{Body, Frame, SizeHint};
use tokio::time::{Instant, sleep_until};

use crate::later::later;

/// Bytes handed to the connection at once.
const PIECE: usize = 64 * 1024;

/// How far a body is.
#[derive(Debug, Clone, Default)]
pub(crate) struct Progress(Arc<Mutex<Steps>>);

#[derive(Debug, Clone, Copy, Default)]
struct Steps {
    first: Option<Instant>,
    last: Option<Instant>,
    is_whole: bool,
}

/// The limits of an attempt up to the head of its answer.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Limits {
    /// Until the connection asks for the body.
    pub(crate) connect: Duration,
    /// Between two pieces of the body.
    pub(crate) write: Duration,
    /// For all pieces of the body.
    pub(crate) whole: Duration,
    /// From the last piece to the head of the answer.
    pub(crate) read: Duration,
}

/// Which limit was reached.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Late {
    Connect,
    Write,
    /// All pieces took longer than this.
    Whole(Duration),
    Read,
}

impl Progress {
    /// Whether a connection was handed a byte of the body.
    pub(crate) fn has_begun(&self) -> bool {
        self.steps().first.is_some()
    }

    /// Waits for what sends the body and reads the head of the answer.
    pub(crate) async fn wait<F: Future>(&self, send: F, limits: Limits) -> Result<F::Output, Late> {
        let (mut send, begin) = (pin!(send), Instant::now());
        // One timer, set to the earliest time at which any limit can be reached, and looked at only then.
        let mut timer = pin!(sleep_until(later(begin, limits.connect.min(limits.write).min(limits.read))));
        loop {
            tokio::select! {
                biased;
                output = send.as_mut() => return Ok(output),
                () = timer.as_mut() => {}
            }
            let (end, late) = self.steps().end(begin, limits);
            if end <= Instant::now() {
                return Err(late);
            }
            timer.as_mut().reset(end);
        }
    }

    fn steps(&self) -> Steps {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn note(&self, is_whole: bool) {
        let mut steps = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let now = Instant::now();
        steps.first.get_or_insert(now);
        steps.last = Some(now);
        steps.is_whole |= is_whole;
    }
}

impl Steps {
    /// When a limit is reached if nothing more happens, and which.
    fn end(self, begin: Instant, limits: Limits) -> (Instant, Late) {
        match (self.first, self.last) {
            (Some(first), Some(last)) if !self.is_whole => {
                let (piece, whole) = (later(last, limits.write), later(first, limits.whole));
                if whole < piece { (whole, Late::Whole(limits.whole)) } else { (piece, Late::Write) }
            }
            (Some(_), Some(last)) => (later(last, limits.read), Late::Read),
            _ => (later(begin, limits.connect), Late::Connect),
        }
    }
}

/// A body of known length that goes out in pieces.
#[derive(Debug)]
pub(crate) struct Upload {
    rest: Bytes,
    progress: Progress,
}

impl Upload {
    pub(crate) const fn new(body: Bytes, progress: Progress) -> Self {
        Self { rest: body, progress }
    }
}

impl Body for Upload {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(mut self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        let size = self.rest.len().min(PIECE);
        let piece = self.rest.split_to(size);
        self.progress.note(self.rest.is_empty());
        Poll::Ready((size > 0).then(|| Ok(Frame::data(piece))))
    }

    fn is_end_stream(&self) -> bool {
        self.rest.is_empty()
    }

    fn size_hint(&self) -> SizeHint {
        SizeHint::with_exact(self.rest.len() as u64)
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing)]

    use http_body_util::BodyExt as _;
    use tokio::time::sleep;

    use super::*;

    const S: Duration = Duration::from_secs(1);
    const LIMITS: Limits = Limits {
        connect: Duration::from_secs(3),
        write: Duration::from_secs(10),
        whole: Duration::from_secs(25),
        read: Duration::from_secs(11),
    };

    /// Takes a piece after each of the waits, then answers after the last of them.
    async fn outcome(size: usize, waits: &[u64]) -> (Result<(), Late>, Duration, bool) {
        let (progress, begin) = (Progress::default(), Instant::now());
        let mut upload = Upload::new(Bytes::from(vec![b'x'; size]), progress.clone());
        let send = async {
            for wait in waits {
                sleep(S * u32::try_from(*wait).unwrap()).await;
                upload.frame().await;
            }
        };
        let result = progress.wait(send, LIMITS).await;
        (result, begin.elapsed(), progress.has_begun())
    }

    #[tokio::test(start_paused = true)]
    async fn each_limit_counts_from_the_last_step() {
        let piece = PIECE;
        for (size, waits, late, after) in [
            (2, vec![2, 10], None, 12),
            (2, vec![4], Some(Late::Connect), 3),
            (2, vec![2, 12], Some(Late::Read), 13),
            (3 * piece, vec![2, 9, 9, 10], None, 30),
            (3 * piece, vec![2, 11], Some(Late::Write), 12),
            (6 * piece, vec![0, 9, 9, 9, 9], Some(Late::Whole(LIMITS.whole)), 25),
        ] {
            let (result, elapsed, has_begun) = outcome(size, &waits).await;
            assert_eq!(result.err(), late, "{waits:?}");
            assert!(elapsed >= S * after && elapsed < S * after + S / 2, "{waits:?}: {elapsed:?}");
            assert_eq!(has_begun, late != Some(Late::Connect), "{waits:?}");
        }
    }

    #[tokio::test]
    async fn a_body_goes_out_whole_and_tells_its_length() {
        let body: Vec<u8> = (0..3 * PIECE + 5).map(|n| u8::try_from(n % 251).unwrap()).collect();
        let upload = Upload::new(Bytes::from(body.clone()), Progress::default());
        assert_eq!(upload.size_hint().exact(), Some(body.len() as u64));
        assert_eq!(upload.collect().await.unwrap().to_bytes(), body);
    }
}
