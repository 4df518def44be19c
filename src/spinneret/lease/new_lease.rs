//! A lease before it is acquired: what is asked for, and how it is to end.

use std::fmt;
use std::time::Duration;

use super::Ways;
use super::completing::Completing;
use super::held::Lease;
use super::life::Life;
use crate::spinneret::Result;
use crate::spinneret::error::Error;
use crate::spinneret::messages::{AcquireRequest, RenewRequest};
use crate::spinneret::procedure::{Procedure, Rpc as _};

/// A lease that is not acquired yet; made by [`Client::lease`](crate::spinneret::Client::lease).
///
/// ```no_run
/// # async fn example(client: dragline::spinneret::Client) -> dragline::spinneret::Result<()> {
/// let lease = client.lease(dragline::spinneret::AcquireRequest::new("shop", "web").uri("/search"))?.auto_renew();
/// let lease = lease.acquire().await?;
/// println!("{} until {:?}", lease.lease_id(), lease.expires_at());
/// lease.report(200)?;
/// lease.release().await?;
/// # Ok(()) }
/// ```
/// It has no identity and no proxy yet, so it has no methods to read them:
/// ```compile_fail,E0599
/// # async fn example(client: dragline::spinneret::Client) -> dragline::spinneret::Result<()> {
/// let lease = client.lease(dragline::spinneret::AcquireRequest::new("shop", "web"))?;
/// println!("{}", lease.lease_id());
/// # Ok(()) }
/// ```
/// And it can be acquired once:
/// ```compile_fail,E0382
/// # async fn example(client: dragline::spinneret::Client) -> dragline::spinneret::Result<()> {
/// let lease = client.lease(dragline::spinneret::AcquireRequest::new("shop", "web"))?;
/// let first = lease.acquire().await?;
/// let second = lease.acquire().await?;
/// # Ok(()) }
/// ```
#[must_use = "nothing is asked for until it is acquired"]
pub struct NewLease {
    ways: Ways,
    request: AcquireRequest,
    options: Options,
}

/// How a lease lives and ends.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Options {
    pub(super) delivery: Delivery,
    pub(super) on_release_error: OnReleaseError,
    pub(super) renewal: Renewal,
}

/// Whether the end of a lease waits for its reports.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) enum Delivery {
    #[default]
    InBackground,
    Awaited,
}

/// What a failed release at the end of a block does.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(in crate::spinneret) enum OnReleaseError {
    #[default]
    Log,
    Raise,
}

impl OnReleaseError {
    /// What comes of a block and of the release behind it. An error of the block is never replaced.
    pub(in crate::spinneret) fn outcome<T, E: From<Error>>(self, block: Result<T, E>, released: Result<()>) -> Result<T, E> {
        match (block, released, self) {
            (Ok(_), Err(error), Self::Raise) => Err(error.into()),
            (block, ..) => block,
        }
    }
}

/// Whether a lease is renewed by itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) enum Renewal {
    #[default]
    Never,
    /// By so much every time; zero means the policy's own duration.
    Every(Duration),
}

impl NewLease {
    pub(super) fn new(ways: Ways, request: AcquireRequest) -> Self {
        Self { ways, request, options: Options::default() }
    }

    /// Makes the end of the lease wait until the reporter is empty, at most its `close_timeout`. A dropped lease never
    /// waits.
    pub const fn flush_on_exit(mut self) -> Self {
        self.options.delivery = Delivery::Awaited;
        self
    }

    /// Makes [`Self::run`] fail when the block was fine and the lease could not be given back.
    pub const fn raise_on_release_error(mut self) -> Self {
        self.options.on_release_error = OnReleaseError::Raise;
        self
    }

    /// Renews the lease by itself, as long before its end as the server advises, by the policy's own duration.
    ///
    /// A lease the server takes away all the same is [lost](Lease::is_lost).
    pub const fn auto_renew(self) -> Self {
        self.auto_renew_by(Duration::ZERO)
    }

    /// Renews the lease by itself as [`Self::auto_renew`] does, by this much every time: at most 30 min, rounded up to
    /// milliseconds.
    pub const fn auto_renew_by(mut self, extend: Duration) -> Self {
        self.options.renewal = Renewal::Every(extend);
        self
    }

    /// Asks for the lease.
    ///
    /// The call is finished in the background when the future is dropped half-way, and a lease that comes of it is given
    /// back: a time limit around this leaks nothing.
    ///
    /// # Errors
    /// Any [`Error`] of a call. [`Error::NoIdentityAvailable`], [`Error::NoProxyAvailable`], [`Error::CircuitOpen`] and
    /// [`Error::SitePaused`] say with [`Error::retry_after`] when to ask again. Nothing is held and nothing is to be
    /// released.
    pub async fn acquire(self) -> Result<Lease> {
        let Self { ways, request, options } = self;
        if let Renewal::Every(extend) = options.renewal {
            // Found now and not at the first renewal.
            RenewRequest::new("-", extend).validate()?;
        }
        let releaser = ways.releaser.clone();
        releaser.settle_in();
        Completing::new(releaser, async move {
            let granted = ways.wire.call(&request).await?;
            Life::start(ways, granted, &request.uri, options, Procedure::Acquire)
        })
        .await
    }

    /// Asks for the lease, runs the block with it, and gives it back: by the last report, or by a call if there was none.
    ///
    /// If the block panics, or this future is dropped, the lease is given back in the background.
    ///
    /// ```no_run
    /// # use dragline::spinneret::{AcquireRequest, Client, Error};
    /// # type BoxedError = Box<dyn std::error::Error + Send + Sync>;
    /// # async fn example(client: Client, http: reqwest::Client) -> Result<(), BoxedError> {
    /// let lease = client.lease(AcquireRequest::new("shop", "web").uri("/search"))?;
    /// let page = lease
    ///     .run(async |lease| {
    ///         let mut request = http.get("https://shop.example/search?q=tea").build()?;
    ///         lease.apply(&mut request)?;
    ///         let response = http.execute(request).await.inspect_err(|error| { lease.report_error(error).ok(); })?;
    ///         lease.report_response(&response)?;
    ///         Ok::<_, BoxedError>(response.text().await?)
    ///     })
    ///     .await?;
    /// # println!("{page}"); Ok(()) }
    /// ```
    ///
    /// # Errors
    /// The error of [`Self::acquire`], before the block runs; the error of the block, whatever the release does; with
    /// [`Self::raise_on_release_error`] the error of the release after a block that was fine.
    pub async fn run<T, E, F>(self, block: F) -> Result<T, E>
    where
        F: AsyncFnOnce(&Lease) -> Result<T, E>,
        E: From<Error>,
    {
        let on_release_error = self.options.on_release_error;
        let lease = self.acquire().await?;
        let result = block(&lease).await;
        on_release_error.outcome(result, lease.finish().await)
    }

    pub(in crate::spinneret) const fn on_release_error(&self) -> OnReleaseError {
        self.options.on_release_error
    }
}

impl fmt::Debug for NewLease {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("NewLease").field("site", &self.request.site).field("acquired", &false).finish()
    }
}
