//! The fence round user code: a panic, or an await that takes too long, ends one callback and nothing else.

use std::any::Any;
use std::cell::Cell;
use std::future::Future;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::Pin;
use std::rc::Rc;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use tokio::time::{Instant, Sleep, sleep_until};

use super::message::CallbackFault;
use super::pulse::Pulse;
use crate::engine::ticket::Tag;

/// A callback under guard.
pub(crate) struct Fence<F> {
    inner: Pin<Box<F>>,
    tag: Tag,
    pulse: Arc<Pulse>,
    /// Commits the callback waits for: that wait is the engine's and has no limit here.
    committing: Rc<Cell<u32>>,
    limit: Duration,
    deadline: Option<Pin<Box<Sleep>>>,
}

impl<F: Future> Fence<F> {
    pub(crate) fn new(inner: F, tag: Tag, pulse: Arc<Pulse>, committing: Rc<Cell<u32>>, limit: Duration) -> Self {
        Self { inner: Box::pin(inner), tag, pulse, committing, limit, deadline: None }
    }
}

impl<F: Future> Future for Fence<F> {
    type Output = Result<F::Output, CallbackFault>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let this = self.get_mut();
        let polled = {
            let _entered = this.pulse.enter(this.tag);
            catch_unwind(AssertUnwindSafe(|| this.inner.as_mut().poll(cx)))
        };
        match polled {
            Ok(Poll::Ready(output)) => return Poll::Ready(Ok(output)),
            Ok(Poll::Pending) => {}
            Err(panic) => return Poll::Ready(Err(CallbackFault::Panic(panic_text(panic.as_ref())))),
        }
        if this.committing.get() > 0 {
            this.deadline = None;
            return Poll::Pending;
        }
        let expired = match &mut this.deadline {
            Some(deadline) => deadline.as_mut().poll(cx).is_ready(),
            None => false,
        };
        if expired {
            return Poll::Ready(Err(CallbackFault::TimedOut));
        }
        // Whoever woke the callback let it go on: the next await has the whole time again.
        let until = Instant::now() + this.limit;
        match &mut this.deadline {
            Some(deadline) => deadline.as_mut().reset(until),
            None => this.deadline = Some(Box::pin(sleep_until(until))),
        }
        if let Some(deadline) = &mut this.deadline
            && deadline.as_mut().poll(cx).is_ready()
        {
            return Poll::Ready(Err(CallbackFault::TimedOut));
        }
        Poll::Pending
    }
}

/// What a panic said.
pub(crate) fn panic_text(panic: &(dyn Any + Send)) -> String {
    panic
        .downcast_ref::<&str>()
        .map(|s| (*s).to_owned())
        .or_else(|| panic.downcast_ref::<String>().cloned())
        .unwrap_or_else(|| "a panic without a text".to_owned())
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use crate::actor::run_local;

    const TAG: Tag = Tag { ticket: 1, epoch: 0 };

    fn fenced<F: Future>(inner: F, committing: u32) -> Fence<F> {
        Fence::new(inner, TAG, Arc::new(Pulse::new()), Rc::new(Cell::new(committing)), Duration::from_secs(5))
    }

    #[test]
    fn a_panic_ends_only_the_callback() {
        let ended = run_local(fenced(async { panic!("boom {}", 1) }, 0));
        assert_eq!(ended, Err::<(), _>(CallbackFault::Panic("boom 1".into())));
    }

    #[test]
    fn each_await_has_the_whole_limit() {
        run_local(async {
            let many = fenced(
                async {
                    for _ in 0..10 {
                        tokio::time::sleep(Duration::from_secs(4)).await;
                    }
                },
                0,
            );
            assert_eq!(many.await, Ok(()));
            let start = Instant::now();
            assert_eq!(fenced(std::future::pending::<()>(), 0).await, Err(CallbackFault::TimedOut));
            assert_eq!(start.elapsed().as_secs(), 5);
        });
    }

    #[test]
    fn waiting_for_a_commit_is_not_limited() {
        run_local(async {
            let long = fenced(tokio::time::sleep(Duration::from_secs(3600)), 1);
            assert_eq!(long.await, Ok(()));
        });
    }
}
