//! Place: the thread an actor lives on, and the runtimes that make such threads.
//!
//! An [`Arbiter`] is an OS thread with its own current-thread runtime; several actors may share one. It can
//! be abandoned when its thread is stuck: nothing here ever joins a thread without a limit.

use std::cell::RefCell;
use std::fmt;
use std::future::Future;
use std::io;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

pub use actix_rt::ArbiterHandle;
use tokio::sync::Notify;
use tokio::task::LocalSet;

/// Where an actor is started.
#[derive(Clone, Debug)]
pub enum Place {
    /// The `LocalSet` of the calling thread.
    Here,
    /// An arbiter's thread.
    Arbiter(ArbiterHandle),
}

/// A named OS thread for actors. Dropping this neither stops nor joins it.
pub struct Arbiter {
    name: String,
    inner: actix_rt::Arbiter,
    gone: Arc<Gone>,
}

impl Arbiter {
    /// Starts a thread; must be called within [`run_system`], or on another arbiter.
    ///
    /// The operating system shows the first 15 bytes of `name`.
    ///
    /// # Errors
    /// When no actix system runs here, or the thread or its runtime cannot be made.
    #[allow(clippy::disallowed_methods, reason = "the one place that makes arbiters")]
    pub fn start(name: &str) -> io::Result<Self> {
        if !actix_rt::System::is_registered() {
            return Err(io::Error::other(format!(
                "arbiter {name:?} was started outside a system; start it from within run_system"
            )));
        }
        let gone = Arc::new(Gone::default());
        let inner = actix_rt::Arbiter::try_with_tokio_rt({
            let (gone, name) = (Arc::clone(&gone), name.to_owned());
            move || {
                name_this_thread(&name);
                LEAVING.set(Some(Leaving(gone)));
                tokio::runtime::Builder::new_current_thread().enable_all().build()
            }
        })?;
        Ok(Self { name: name.to_owned(), inner, gone })
    }

    /// The name given to [`Arbiter::start`].
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// A handle for [`Place::Arbiter`].
    #[must_use]
    pub fn handle(&self) -> ArbiterHandle {
        self.inner.handle()
    }

    /// This thread as a place for an actor.
    #[must_use]
    pub fn place(&self) -> Place {
        Place::Arbiter(self.handle())
    }

    /// Runs `f` on this thread, for what must be built there; `false` when the thread has ended.
    pub fn run(&self, f: impl FnOnce() + Send + 'static) -> bool {
        self.inner.spawn_fn(f)
    }

    /// Asks the thread to end at its next chance. Futures on it are dropped and its actors report
    /// [`How::Stopped`](super::How::Stopped), so drain them first.
    pub fn stop(&self) {
        self.inner.stop();
    }

    /// Whether the thread has ended.
    #[must_use]
    pub fn has_ended(&self) -> bool {
        self.gone.flag.load(Ordering::SeqCst)
    }

    /// Stops the thread and waits for its end, `within` at most; `false` when it is still running, as one
    /// stuck in a loop is: it is then abandoned.
    pub async fn join(self, within: Duration) -> bool {
        self.stop();
        tokio::time::timeout(within, self.gone.wait()).await.is_ok()
    }

    /// Leaves the thread to itself without waiting: should it ever come back to its loop, it ends.
    pub fn abandon(self) {
        self.stop();
    }
}

impl fmt::Debug for Arbiter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Arbiter").field("name", &self.name).field("has_ended", &self.has_ended()).finish()
    }
}

/// Runs `future` to its end under an actix system on this thread: the program's main, and the tests that
/// need real threads. Arbiters and [`Place::Here`] work within it. Time is real.
#[allow(clippy::disallowed_methods, reason = "the one place that makes a system")]
#[allow(clippy::expect_used, reason = "without a runtime there is no program to hand the error to")]
pub fn run_system<F: Future>(future: F) -> F::Output {
    let system = actix_rt::System::with_tokio_rt(|| {
        tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .on_thread_park(|| {
                let hook = BEFORE_PARK.with_borrow(Clone::clone);
                if let Some(hook) = hook {
                    hook();
                }
            })
            .build()
            .expect("a current-thread runtime can be made")
    });
    let output = system.block_on(future);
    BEFORE_PARK.set(None);
    output
}

/// Runs `future` to its end on this thread under a paused clock: the way to test actors.
///
/// Time moves only when everything waits, then straight to the next timer, so an hour of ticks takes no
/// time. There is no actix system: every actor is at [`Place::Here`]. Use no sockets under it, since the
/// clock runs ahead while one is pending; real threads and sockets belong under [`run_system`].
///
/// # Panics
/// When the runtime cannot be made, which for a test is the best report.
#[allow(clippy::expect_used, reason = "a test helper: there is nobody to hand the error to")]
pub fn run_local<F: Future>(future: F) -> F::Output {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .start_paused(true)
        .build()
        .expect("a current-thread runtime can be made");
    LocalSet::new().block_on(&runtime, future)
}

#[derive(Default)]
struct Gone {
    flag: AtomicBool,
    notify: Notify,
}

impl Gone {
    async fn wait(&self) {
        loop {
            let told = self.notify.notified();
            let mut told = std::pin::pin!(told);
            told.as_mut().enable();
            if self.flag.load(Ordering::SeqCst) {
                return;
            }
            told.await;
        }
    }
}

/// Dropped with the thread's locals: after its runtime and everything that ran on it.
struct Leaving(Arc<Gone>);

impl Drop for Leaving {
    fn drop(&mut self) {
        self.0.flag.store(true, Ordering::SeqCst);
        self.0.notify.notify_waiters();
    }
}

/// Has `hook` called each time this thread has nothing to do and is about to wait, until [`run_system`] ends.
/// It must be quick and must not start anything on this thread.
pub fn before_park(hook: impl Fn() + 'static) {
    BEFORE_PARK.set(Some(Rc::new(hook)));
}

thread_local! {
    static BEFORE_PARK: RefCell<Option<Rc<dyn Fn()>>> = const { RefCell::new(None) };
    static LEAVING: RefCell<Option<Leaving>> = const { RefCell::new(None) };
}

/// actix names its threads by number; the system's own tools should show what each is for.
fn name_this_thread(name: &str) {
    #[cfg(target_os = "linux")]
    {
        let end = name.floor_char_boundary(15);
        if let Some(Ok(short)) = name.get(..end).map(std::ffi::CString::new) {
            let _ = rustix::thread::set_name(&short); // a name is a courtesy: its failure changes nothing
        }
    }
    #[cfg(not(target_os = "linux"))]
    let _ = name;
}
