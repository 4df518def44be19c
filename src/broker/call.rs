//! Call: one call to the control plane, finished at once where it can be, elsewhere in the background.
//!
//! The embedded plane answers when first polled: such a call costs no task and no wake. A call that has to
//! wait goes on on the network runtime, where its sockets live.

use std::future::Future;

use futures_util::FutureExt;
use futures_util::future::{BoxFuture, LocalBoxFuture};
use tokio::runtime::Handle;
use tokio::sync::oneshot;

/// Where calls that have to wait are run.
#[derive(Debug, Clone, Default)]
pub enum Net {
    /// On the actor's own thread, as in tests on a paused clock.
    #[default]
    Here,
    /// On a runtime of other threads.
    Runtime(Handle),
}

/// A call that was begun.
pub(crate) enum Call<T> {
    /// It is over already.
    Over(T),
    /// It goes on; `None` when its task panicked.
    Waiting(LocalBoxFuture<'static, Option<T>>),
}

impl Net {
    /// Begins a call. If it ends when nobody waits for it any more, `orphan` takes its output.
    pub(crate) fn begin<T, F, O>(&self, future: F, orphan: O) -> Call<T>
    where
        T: Send + 'static,
        F: Future<Output = T> + Send + 'static,
        O: FnOnce(T) -> BoxFuture<'static, ()> + Send + 'static,
    {
        let mut future: BoxFuture<'static, T> = Box::pin(future);
        let Self::Runtime(runtime) = self else {
            return match (&mut future).now_or_never() {
                Some(output) => Call::Over(output),
                None => Call::Waiting(Box::pin(future.map(Some))),
            };
        };
        // Sockets and timers made by the first poll must belong to the runtime that polls on.
        let entered = runtime.enter();
        if let Some(output) = (&mut future).now_or_never() {
            return Call::Over(output);
        }
        drop(entered);
        let (done, over) = oneshot::channel();
        drop(runtime.spawn(async move {
            if let Err(output) = done.send(future.await) {
                orphan(output).await;
            }
        }));
        Call::Waiting(Box::pin(over.map(Result::ok)))
    }

    /// As [`Net::begin`], where nothing has to be done about an output nobody waits for.
    pub(crate) fn run<T, F>(&self, future: F) -> Call<T>
    where
        T: Send + 'static,
        F: Future<Output = T> + Send + 'static,
    {
        self.begin(future, |_| Box::pin(std::future::ready(())))
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing)]
    use std::time::Duration;

    use super::*;

    fn runtime() -> tokio::runtime::Runtime {
        tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap()
    }

    #[test]
    fn a_ready_call_is_over_at_once_on_either_place() {
        let runtime = runtime();
        for net in [Net::Here, Net::Runtime(runtime.handle().clone())] {
            assert!(matches!(net.run(async { 7 }), Call::Over(7)));
        }
    }

    #[test]
    fn a_call_that_waits_goes_on_on_the_runtime() {
        let runtime = runtime();
        let net = Net::Runtime(runtime.handle().clone());
        let call = net.run(async {
            tokio::time::sleep(Duration::from_millis(1)).await;
            7
        });
        let Call::Waiting(waiting) = call else { panic!("a sleeping call is not over") };
        assert_eq!(futures_util::FutureExt::map(waiting, |n| n).now_or_never(), None);
    }

    #[test]
    fn an_output_nobody_waits_for_goes_to_the_orphanage() {
        let runtime = runtime();
        let net = Net::Runtime(runtime.handle().clone());
        let (tell, told) = std::sync::mpsc::channel();
        let (go, wait) = oneshot::channel::<()>();
        let call = net.begin(
            async move {
                wait.await.unwrap();
                7
            },
            move |n| {
                tell.send(n).unwrap();
                Box::pin(std::future::ready(()))
            },
        );
        drop(call);
        go.send(()).unwrap();
        assert_eq!(told.recv_timeout(Duration::from_secs(5)), Ok(7));
    }

    #[test]
    fn a_call_that_panics_is_told_as_none() {
        let runtime = runtime();
        let net = Net::Runtime(runtime.handle().clone());
        let call = net.run(async {
            tokio::task::yield_now().await;
            assert!(std::hint::black_box(false), "a scripted panic");
        });
        let Call::Waiting(waiting) = call else { panic!("a yielding call is not over") };
        assert_eq!(runtime.block_on(waiting), None);
    }
}
