//! The downloader: one attempt per ticket, through the middlewares.
//!
//! The actor only starts and ends attempts. They run on the network runtime and outlive an incarnation of it.

pub(crate) mod authorize;
pub(crate) mod cache_store;
pub(crate) mod chain;
mod client;
pub mod config;
pub(crate) mod decode;
pub mod markers;
pub mod message;
pub(crate) mod middleware;
pub(crate) mod progress;
mod proxy;
pub mod reqwest_transport;
mod resolver;
pub(crate) mod running;
pub mod transport;
mod wire_fault;

use std::sync::Arc;
use std::time::Duration;

pub use client::ClientError;
pub use config::DownloaderConfig;
pub use markers::{MarkerError, Markers};
pub(crate) use middleware::jars::Jars;
pub(crate) use middleware::jars::saved::COOKIES;
pub use reqwest_transport::ReqwestTransport;
pub use resolver::Names;

use crate::actor::{Cx, Slot, Worker};
use message::{Control, Order};
use running::Downloads;

/// Time between two looks for idle clients.
const TIDY_EVERY: Duration = Duration::from_secs(5);

/// The actor.
#[derive(Debug)]
pub struct Downloader {
    downloads: Arc<Downloads>,
}

impl Downloader {
    /// An incarnation over the downloads that all of them share.
    pub(crate) fn new(downloads: Arc<Downloads>) -> Self {
        Self { downloads }
    }
}

impl Worker for Downloader {
    type Order = Order;
    type Control = Control;

    fn started(&mut self, cx: &mut Cx<'_, Self>) {
        cx.after(TIDY_EVERY, Control::Tick);
    }

    fn handle(&mut self, order: Order, slot: Slot, _: &mut Cx<'_, Self>) {
        self.downloads.start(order, slot);
    }

    fn control(&mut self, control: Control, cx: &mut Cx<'_, Self>) {
        match control {
            Control::Cancel(tag) => self.downloads.cancel(tag),
            Control::CancelAll => self.downloads.cancel_all(cx.queued()),
            Control::Settings(settings) => self.downloads.live(&settings),
            Control::Tick => {
                self.downloads.tidy();
                cx.after(TIDY_EVERY, Control::Tick);
            }
        }
    }
}

#[cfg(test)]
mod site;
#[cfg(test)]
mod tests;
