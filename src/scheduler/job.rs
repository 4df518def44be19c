//! A job: one request's life in the frontier, from offer to settle.

pub(crate) mod outcome;

use std::fmt;
use std::sync::Arc;

use http::Method;
use url::Url;
use xxhash_rust::xxh3::xxh3_128;

use crate::api::failure::FailureKind;
use crate::api::request::Request;

/// A request's name for the whole job, the same in every run of it.
///
/// A child's id is a hash of its parent's id and its place among the parent's requests, so that offering
/// the children of a page a second time (after a crash before the settle) is a no-op.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct RequestId(pub u128);

/// What a job fetches for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum JobKind {
    /// A page for a callback.
    Page,
    /// robots.txt of an origin, for the scheduler.
    Robots,
}

/// A host's lane in the scheduler: the lower-case host name, without a dot at its end.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct SlotKey(pub Arc<str>);

/// One request of the frontier.
#[derive(Debug, Clone)]
pub struct Job {
    /// Its name.
    pub id: RequestId,
    /// Its seen key: method, canonical URL and body.
    pub key: u128,
    /// What it fetches for.
    pub kind: JobKind,
    /// The request.
    pub request: Request,
    /// The request whose callback asked for it.
    pub parent: Option<RequestId>,
    /// The page whose callback asked for it: its final URL. None for start requests and robots.txt.
    pub parent_url: Option<Arc<str>>,
    /// Links from a start request, 0 for one.
    pub depth: u32,
    /// Attempts made for its present URL so far; a redirect starts anew.
    pub attempts: u32,
    /// Redirects followed so far.
    pub hops: u32,
    /// Seen keys of the redirect chain so far: a chain may come back to itself.
    pub chain: Vec<u128>,
    /// The first URL, when a redirect replaced it.
    pub first_url: Option<Arc<str>>,
}

/// How a request ended, or that it goes on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Outcome {
    /// A callback handled its response.
    Handled,
    /// It failed for good.
    Failed(FailureKind),
    /// It was dropped with a reason that is no failure.
    Dropped(FailureKind),
    /// Its step is unknown to this spider.
    SetAside,
}

/// Requests by where they are. Always `enqueued == handled + failed + dropped + set_aside + pending`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Books {
    /// Accepted into the frontier.
    pub enqueued: u64,
    /// Ended as handled.
    pub handled: u64,
    /// Ended as failed.
    pub failed: u64,
    /// Ended as dropped.
    pub dropped: u64,
    /// Set aside.
    pub set_aside: u64,
    /// Queued or in flight.
    pub pending: u64,
}

impl Books {
    /// Whether the counts add up.
    #[must_use]
    pub fn balances(&self) -> bool {
        self.enqueued == self.handled + self.failed + self.dropped + self.set_aside + self.pending
    }

    /// Counts one settled request.
    pub fn settle(&mut self, outcome: Outcome) {
        self.pending = self.pending.saturating_sub(1);
        match outcome {
            Outcome::Handled => self.handled += 1,
            Outcome::Failed(_) => self.failed += 1,
            Outcome::Dropped(_) => self.dropped += 1,
            Outcome::SetAside => self.set_aside += 1,
        }
    }
}

impl RequestId {
    /// The parent of requests that `idle` makes.
    pub const IDLE: Self = Self(0x1d1e);

    /// The id of a request made by `parent` (a start request: `None`) as its `index`-th.
    #[must_use]
    pub fn child(parent: Option<Self>, index: u64) -> Self {
        let mut bytes = [0_u8; 25];
        let (head, tail) = bytes.split_at_mut(17);
        if let (Some((tag, id)), Some(parent)) = (head.split_first_mut(), parent) {
            *tag = 1;
            id.copy_from_slice(&parent.0.to_le_bytes());
        }
        tail.copy_from_slice(&index.to_le_bytes());
        Self(xxh3_128(&bytes))
    }

    /// The id of an origin's robots.txt request; `round` counts its renewals.
    #[must_use]
    pub fn robots(origin: &str, round: u32) -> Self {
        Self(xxh3_128(format!("robots {round} {origin}").as_bytes()))
    }
}

impl fmt::Debug for RequestId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:032x}", self.0)
    }
}

impl SlotKey {
    /// The slot of a URL: its host, without the dot at the end of a fully qualified name. URLs without one share the empty slot.
    #[must_use]
    pub fn of(url: &Url) -> Self {
        Self(Arc::from(host_of(url)))
    }
}

/// The host of a URL as hosts are told apart: a name with the root's dot at its end (RFC 1034, 3.1) is the one without it.
/// URLs without a host share the empty one.
pub(crate) fn host_of(url: &Url) -> &str {
    undotted(url.host_str().unwrap_or_default())
}

/// A host's name without the root's dot.
pub(crate) fn undotted(host: &str) -> &str {
    host.strip_suffix('.').unwrap_or(host)
}

impl Job {
    /// A page request as a callback made it.
    #[must_use]
    pub fn page(id: RequestId, key: u128, request: Request) -> Self {
        Self {
            id,
            key,
            kind: JobKind::Page,
            request,
            parent: None,
            parent_url: None,
            depth: 0,
            attempts: 0,
            hops: 0,
            chain: Vec::new(),
            first_url: None,
        }
    }

    /// Its URL.
    #[must_use]
    pub fn url(&self) -> &Url {
        self.request.url()
    }

    /// Its method.
    #[must_use]
    pub fn method(&self) -> &Method {
        self.request.method()
    }

    /// Bytes it holds, for the frontier's bound.
    #[must_use]
    pub fn weight(&self) -> usize {
        // The request counts itself in place; add the rest of the job and two allocator headers.
        size_of::<Self>() - size_of::<Request>() + self.request.weight() + 32
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn ids_are_stable_over_versions() {
        let root = RequestId::child(None, 0);
        assert_eq!(format!("{root:?}"), "2ffffbdfa6f2c4815f51d22ec7704ee3");
        assert_ne!(root, RequestId::child(None, 1));
        assert_ne!(RequestId::child(Some(root), 0), root);
        assert_eq!(RequestId::child(Some(root), 7), RequestId::child(Some(root), 7));
    }

    #[test]
    fn a_dot_at_the_end_of_a_host_makes_no_other_slot() {
        let of = |url: &str| SlotKey::of(&url.parse().unwrap()).0.to_string();
        assert_eq!((of("http://a.test/1"), of("http://A.test./2")), ("a.test".to_owned(), "a.test".to_owned()));
        assert_eq!((of("data:text/plain,x"), of("http://[::1]/")), (String::new(), "[::1]".to_owned()));
    }

    #[test]
    fn books_count_each_end_once() {
        let mut books = Books { enqueued: 4, pending: 4, ..Books::default() };
        for outcome in
            [Outcome::Handled, Outcome::Failed(FailureKind::Timeout), Outcome::Dropped(FailureKind::Offsite), Outcome::SetAside]
        {
            books.settle(outcome);
            assert!(books.balances());
        }
        assert_eq!(books, Books { enqueued: 4, handled: 1, failed: 1, dropped: 1, set_aside: 1, pending: 0 });
    }
}
