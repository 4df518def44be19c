//! SIGINT and SIGTERM: the first one stops the job gently, the next one at once.
//!
//! They are heard on a thread of their own, so that a busy main thread delays nothing.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::oneshot;

use super::exit::CliError;
use super::logging;
use crate::run::StopSwitch;

/// Resolves at the first signal, for verbs that serve until they are stopped. Must be called within a runtime.
///
/// # Errors
/// When the handlers cannot be set up.
pub(crate) fn first() -> Result<impl Future<Output = ()>, CliError> {
    let broken = |error: io::Error| CliError::internal(format!("signals cannot be handled: {error}"));
    let mut interrupt = signal(SignalKind::interrupt()).map_err(broken)?;
    let mut terminate = signal(SignalKind::terminate()).map_err(broken)?;
    Ok(async move {
        tokio::select! {
            _ = interrupt.recv() => {}
            _ = terminate.recv() => {}
        }
    })
}

/// Listens until it is dropped.
#[derive(Debug)]
pub(crate) struct Signals {
    _end: oneshot::Sender<()>,
}

impl Signals {
    /// Starts to listen. `grace` is what downloads get after the first signal.
    ///
    /// # Errors
    /// When the thread or the handlers cannot be set up.
    pub(crate) fn listen(stop: Arc<StopSwitch>, grace: Duration) -> io::Result<Self> {
        let (end, mut ended) = oneshot::channel::<()>();
        let runtime = tokio::runtime::Builder::new_current_thread().enable_io().build()?;
        let (mut interrupt, mut terminate) = {
            let _inside = runtime.enter();
            (signal(SignalKind::interrupt())?, signal(SignalKind::terminate())?)
        };
        std::thread::Builder::new().name("dragline-signal".to_owned()).spawn(move || {
            runtime.block_on(async move {
                let mut heard = 0_u32;
                loop {
                    tokio::select! {
                        // Resolves with an error when the other end is dropped: the job is over.
                        _ = &mut ended => return,
                        Some(()) = interrupt.recv() => {}
                        Some(()) = terminate.recv() => {}
                    }
                    heard = heard.saturating_add(1);
                    logging::current().say(&answer(heard, grace));
                    stop.press();
                }
            });
        })?;
        Ok(Self { _end: end })
    }
}

/// What happens now.
fn answer(heard: u32, grace: Duration) -> String {
    if heard == 1 {
        format!("stopping: finishing what is in flight, at most {} s; again to stop at once", grace.as_secs_f64())
    } else {
        "stopping at once: keeping what is done, closing feeds".to_owned()
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing)]
    use super::*;

    #[test]
    fn the_first_signal_names_the_time_the_second_ends_it() {
        assert_eq!(
            answer(1, Duration::from_secs(10)),
            "stopping: finishing what is in flight, at most 10 s; again to stop at once"
        );
        assert!(answer(2, Duration::from_secs(10)).starts_with("stopping at once"));
    }

    #[tokio::test]
    async fn each_signal_presses_the_switch() {
        let stop = Arc::new(StopSwitch::default());
        let signals = Signals::listen(Arc::clone(&stop), Duration::from_secs(1)).unwrap();
        for (kind, times) in [(rustix::process::Signal::INT, 0), (rustix::process::Signal::TERM, 1)] {
            rustix::process::kill_process(rustix::process::getpid(), kind).unwrap();
            let pressed = tokio::time::timeout(Duration::from_secs(5), stop.pressed(times)).await.unwrap();
            assert_eq!(pressed, times + 1);
        }
        drop(signals);
    }
}
