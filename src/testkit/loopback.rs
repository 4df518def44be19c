//! What the servers of the kit share: a thread with an event queue of its own, and a port whose connections come one by one.

use std::future::Future;
use std::io;
use std::thread::JoinHandle;
use std::time::Duration;

use tokio::net::{TcpListener, TcpStream};
use tokio::sync::oneshot;

/// A thread that serves. Dropping it ends the thread and cuts every connection.
pub(super) struct Serving {
    stop: Option<oneshot::Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl Serving {
    /// Starts a thread of this name.
    ///
    /// # Errors
    /// When the system gives no thread or no event queue.
    pub(super) fn start<F: Future<Output = ()>>(name: &str, serve: impl FnOnce() -> F + Send + 'static) -> io::Result<Self> {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        let (stop, stopped) = oneshot::channel::<()>();
        let thread = std::thread::Builder::new().name(name.to_owned()).spawn(move || {
            runtime.block_on(async {
                tokio::select! {
                    _ = stopped => {}
                    () = serve() => {}
                }
            });
        })?;
        Ok(Self { stop: Some(stop), thread: Some(thread) })
    }
}

impl Drop for Serving {
    fn drop(&mut self) {
        if let Some(stop) = self.stop.take() {
            let _ = stop.send(());
        }
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

/// Begins with each connection as it comes, for as long as it is polled.
pub(super) async fn each_connection(listener: std::net::TcpListener, mut begin: impl FnMut(TcpStream)) {
    let listener = listener.set_nonblocking(true).and_then(|()| TcpListener::from_std(listener));
    let Ok(listener) = listener else { return };
    loop {
        match listener.accept().await {
            Ok((stream, _)) => begin(stream),
            // Out of file descriptors, say: those of the connections that end are free again soon.
            Err(_) => tokio::time::sleep(Duration::from_millis(50)).await,
        }
    }
}
