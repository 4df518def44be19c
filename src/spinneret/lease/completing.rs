//! A future that is finished in the background when nobody waits for it any more.
//!
//! A call that grants or ends a lease must not be cut off half-way: nobody would know what the server did. Dropped before
//! it began, it never begins.

use std::pin::Pin;
use std::task::{Context, Poll};

use futures_util::FutureExt as _;
use futures_util::future::BoxFuture;

use super::Releaser;

/// Awaited in place, at the cost of one allocation; handed to the releaser when it is dropped after its first poll.
pub(super) struct Completing<T: Send + 'static> {
    future: Option<BoxFuture<'static, T>>,
    releaser: Releaser,
    is_begun: bool,
}

impl<T: Send + 'static> Completing<T> {
    pub(super) fn new(releaser: Releaser, future: impl Future<Output = T> + Send + 'static) -> Self {
        Self { future: Some(future.boxed()), releaser, is_begun: false }
    }
}

impl<T: Send + 'static> Future for Completing<T> {
    type Output = T;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<T> {
        self.is_begun = true;
        // Taken out while it runs: one that panics is not run again.
        let Some(mut future) = self.future.take() else { return Poll::Pending };
        let poll = future.poll_unpin(context);
        if poll.is_pending() {
            self.future = Some(future);
        }
        poll
    }
}

impl<T: Send + 'static> Drop for Completing<T> {
    fn drop(&mut self) {
        if let Some(future) = self.future.take().filter(|_| self.is_begun) {
            self.releaser.carry_on(future.map(drop).boxed());
        }
    }
}
