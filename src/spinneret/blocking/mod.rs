//! The same client for plain threads: every call waits on the thread that makes it.
//!
//! # Threads and runtimes
//!
//! A client has a tokio runtime of its own with one thread, which drives its connections, sends its reports, gives
//! dropped leases back and follows its configuration. It lives as long as anything of the client does: clones, leases,
//! reporters, watchers. All of them may be used from, and moved between, as many threads as there are.
//!
//! What waits must not be called inside a tokio runtime, whose thread it would hold: it answers
//! [`Error::Configuration`](super::Error::Configuration), and nothing is done. That goes for `spawn_blocking` too, and for
//! callbacks that run on the client's own thread: [`ReporterOptions::on_rejected`](super::ReporterOptions::on_rejected)
//! and the listeners of [`WatcherOptions`](super::WatcherOptions). [`ConfigWatcher::on_change`] runs its listeners on
//! threads where everything may be called. There is [`spinneret::Client`](super::Client) for the rest. What does not wait
//! may be called anywhere: [`Lease::report`], [`Reporter::submit`], [`ConfigWatcher::get`], dropping.
//!
//! # Forks
//!
//! A process that forks makes its clients after the fork: the thread of a client does not come along, and its
//! connections belong to the parent. In a child, a client of the parent answers everything with
//! [`Error::Configuration`](super::Error::Configuration).
//!
//! # End
//!
//! [`Client::close`] sends what is left to be reported and gives leases back; the program does that at its end. When the
//! last handle is dropped without it, that is made up for, with 2 s for the reports. A client in a `static` is never
//! dropped.
//!
//! # A node
//!
//! ```no_run
//! use dragline::spinneret::blocking::Client;
//! use dragline::spinneret::{AcquireRequest, Error, Explicit, ReportDraft};
//!
//! # fn fetch(_path: &str, _proxy: Option<&str>, _cookies: Option<String>) -> std::io::Result<u16> { Ok(200) }
//! fn main() -> Result<(), Error> {
//!     // SPINNERET_URL and SPINNERET_TOKEN say where and who.
//!     let client = Client::from_env()?;
//!     let threads: Vec<_> = ["/search?q=tea", "/search?q=coffee"]
//!         .into_iter()
//!         .map(|path| {
//!             let client = client.clone();
//!             std::thread::spawn(move || -> Result<(), Error> {
//!                 let lease = client.lease(AcquireRequest::new("shop", "web").uri(path))?.acquire()?;
//!                 let parts = lease.parts(&Explicit::new());
//!                 let proxy = lease.proxy().map(|proxy| proxy.url.as_str());
//!                 // `fetch` stands for any HTTP client.
//!                 match fetch(path, proxy, parts.cookie_header()) {
//!                     Ok(status) => lease.report(ReportDraft::status(status))?,
//!                     Err(error) => lease.report(ReportDraft::error(&error))?,
//!                 };
//!                 // The lease is given back here, with its report.
//!                 Ok(())
//!             })
//!         })
//!         .collect();
//!     for thread in threads {
//!         match thread.join() {
//!             Ok(Err(Error::NoIdentityAvailable(details))) => println!("ask again in {:?}", details.retry_after),
//!             Ok(result) => result?,
//!             Err(_) => println!("a thread panicked; its lease is given back all the same"),
//!         }
//!     }
//!     client.close()
//! }
//! ```

mod background;
mod client;
mod lease;
mod reporter;
#[cfg(test)]
mod tests;
mod watcher;

pub use client::Client;
pub use lease::{Lease, NewLease};
pub use reporter::Reporter;
pub use watcher::{Changes, ConfigWatcher};
