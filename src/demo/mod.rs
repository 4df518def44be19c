//! The loopback demo site: a bookshop that exists only as a function of a seed.
//!
//! Every page is computed from `(seed, id)` when it is asked for, so a shop of 100,000 products needs no more memory than one of
//! sixty. The awkward parts of the web (slow pages, failures, redirects, duplicates, odd charsets) are in it on purpose, in known
//! numbers, and `GET /__truth` says what a full crawl must bring home. It never talks to another host and never writes to disk.

mod address;
mod catalog;
mod dice;
mod feeds;
#[cfg(test)]
mod over_http;
mod pages;
pub mod quotes;
mod routes;
mod serve;
mod shelves;
mod special;
mod stats;
mod text;
pub mod truth;
mod words;

use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use crate::http_server::{Bounds, ListenError};

pub use crate::http_server::RunningServer as RunningSite;
pub use serve::serve;
pub use special::{BLOCK, LOOP_EVERY_BLOCKS, Special};
pub use stats::{STATS_LONGEST, STATS_PATHS};

/// The largest shop that can be asked for.
pub const MAX_PRODUCTS: u32 = 1_000_000;

/// How much a demo site takes: small forms and many connections.
const BOUNDS: Bounds =
    Bounds { connections: 1_024, target: 8_192, body: 16_384, bodies: 1_024 * 16_384, body_time: Duration::from_secs(10) };

/// How the demo bookshop is set up.
#[derive(Debug, Clone)]
pub struct SiteOptions {
    /// Where to listen. Port 0 takes any free port.
    pub listen: SocketAddr,
    /// How many products the shop sells, 1 to [`MAX_PRODUCTS`].
    pub products: u32,
    /// The same seed gives the same shop, byte for byte.
    pub seed: u64,
    /// How long answers are held back.
    pub delays: Delays,
}

impl Default for SiteOptions {
    /// 1,000 products on any free port of 127.0.0.1, seed 1, real delays.
    fn default() -> Self {
        Self { listen: SocketAddr::from((Ipv4Addr::LOCALHOST, 0)), products: 1_000, seed: 1, delays: Delays::default() }
    }
}

/// How long answers are held back.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Delays {
    /// Added to every page, as a far server would.
    pub every: Duration,
    /// The shortest wait of a slow page.
    pub slow_from: Duration,
    /// The longest wait of a slow page; a value below `slow_from` counts as `slow_from`.
    pub slow_to: Duration,
}

impl Default for Delays {
    /// Slow pages take 300 ms to 1 s, all others none.
    fn default() -> Self {
        Self { every: Duration::ZERO, slow_from: Duration::from_millis(300), slow_to: Duration::from_secs(1) }
    }
}

impl Delays {
    /// No waiting at all, not even for slow pages.
    #[must_use]
    pub const fn none() -> Self {
        Self { every: Duration::ZERO, slow_from: Duration::ZERO, slow_to: Duration::ZERO }
    }
}

/// Why a demo site did not start or did not go on.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SiteError {
    /// Another program holds the port.
    #[error("port {} on {} is already in use; stop the program that holds it, choose another port, or ask for port 0 to get a free one", addr.port(), addr.ip())]
    PortInUse {
        /// The address asked for.
        addr: SocketAddr,
    },
    /// The address cannot be listened on for another reason.
    #[error("cannot listen on {addr}: {source}")]
    Listen {
        /// The address asked for.
        addr: SocketAddr,
        /// What the system answered.
        source: std::io::Error,
    },
    /// The address cannot be written as a URL (an IPv6 address with a zone).
    #[error("the address {addr} cannot be part of a URL; listen on one without a zone")]
    Address {
        /// The address asked for.
        addr: SocketAddr,
    },
    /// The number of products is out of bounds.
    #[error("products is {found}, allowed are 1 to {MAX_PRODUCTS}")]
    Products {
        /// The number asked for.
        found: u32,
    },
    /// The line that tells the address could not be written.
    #[error("cannot write the address of the site to the output: {0}")]
    Output(#[source] std::io::Error),
}

impl From<ListenError> for SiteError {
    fn from(error: ListenError) -> Self {
        match error {
            ListenError::PortInUse { addr } => Self::PortInUse { addr },
            ListenError::Listen { addr, source } => Self::Listen { addr, source },
            ListenError::Address { addr } => Self::Address { addr },
        }
    }
}

/// The demo bookshop.
#[derive(Debug, Clone, Copy)]
pub struct Site;

impl Site {
    /// Starts the shop and answers as soon as it listens. Must be called inside a tokio runtime.
    ///
    /// # Errors
    /// [`SiteError::PortInUse`] and [`SiteError::Listen`] when the address cannot be had, [`SiteError::Products`] when the number
    /// of products is out of bounds, [`SiteError::Address`] when no URL can name the address.
    pub async fn start(options: SiteOptions) -> Result<RunningSite, SiteError> {
        if options.products == 0 || options.products > MAX_PRODUCTS {
            return Err(SiteError::Products { found: options.products });
        }
        let truth = truth::Truth::new(options.products, options.seed);
        let listen = options.listen;
        Ok(crate::http_server::start(listen, BOUNDS, Arc::new(routes::Shop::new(truth, options.delays))).await?)
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing)]
    use super::*;

    #[tokio::test]
    async fn a_taken_port_is_named_in_the_error() {
        let first = Site::start(SiteOptions { products: 5, ..SiteOptions::default() }).await.unwrap();
        let error = Site::start(SiteOptions { listen: first.addr(), products: 5, ..SiteOptions::default() }).await.unwrap_err();
        assert!(matches!(error, SiteError::PortInUse { .. }));
        assert!(error.to_string().starts_with(&format!("port {} on 127.0.0.1 is already in use", first.addr().port())));
        first.stop().await;
    }

    #[tokio::test]
    async fn a_shop_without_products_is_refused() {
        for products in [0, MAX_PRODUCTS + 1] {
            let error = Site::start(SiteOptions { products, ..SiteOptions::default() }).await.unwrap_err();
            assert_eq!(error.to_string(), format!("products is {products}, allowed are 1 to 1000000"));
        }
    }

    #[tokio::test]
    async fn a_stopped_site_gives_its_port_back() {
        let site = Site::start(SiteOptions { products: 5, ..SiteOptions::default() }).await.unwrap();
        let addr = site.addr();
        site.stop().await;
        let again = Site::start(SiteOptions { listen: addr, products: 5, ..SiteOptions::default() }).await.unwrap();
        assert_eq!(again.addr(), addr);
        again.stop().await;
    }
}
