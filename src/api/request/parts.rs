//! A request in its parts, for what writes requests down and reads them back.
//!
//! Nothing here decides anything: the fields are given as they are, and taken as they come.

use std::time::Duration;

use bytes::Bytes;
use http::{HeaderMap, Method};
use serde_json::{Map, Value};
use url::Url;

use super::{HandleStatus, LeaseTarget, Request};
use crate::api::step::StepData;
use crate::web::referrer_policy::ReferrerPolicy;

/// What most requests leave at its default. It shows itself in tests only, since headers and cookies may be credentials.
#[derive(Clone, Default, PartialEq)]
#[cfg_attr(test, derive(Debug))]
pub(crate) struct Extra {
    pub(crate) method: Method,
    pub(crate) headers: HeaderMap,
    pub(crate) cookies: Vec<(String, String)>,
    pub(crate) body: Bytes,
    pub(crate) meta: Map<String, Value>,
    pub(crate) timeout: Option<Duration>,
    pub(crate) max_bytes: Option<u64>,
    pub(crate) retries: Option<u32>,
    pub(crate) lease: Option<LeaseTarget>,
    pub(crate) session_key: Option<String>,
    pub(crate) keep_lease: bool,
    pub(crate) handle_status: HandleStatus,
    pub(crate) no_redirect: bool,
    pub(crate) ignore_robots: bool,
    pub(crate) allow_offsite: bool,
    pub(crate) dont_cache: bool,
}

/// How much a request tells of the page it is from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Referring {
    pub(crate) policy: ReferrerPolicy,
    /// Whether the spider said so, rather than a page.
    pub(crate) own: bool,
}

/// All of a request.
pub(crate) struct Parts<'a> {
    pub(crate) url: &'a Url,
    pub(crate) step: &'a StepData,
    pub(crate) priority: i32,
    pub(crate) dont_filter: bool,
    pub(crate) referring: Option<Referring>,
    pub(crate) extra: Option<&'a Extra>,
}

impl Request {
    pub(crate) fn parts(&self) -> Parts<'_> {
        let Self { url, step, priority, dont_filter, referring, extra } = self;
        Parts { url, step, priority: *priority, dont_filter: *dont_filter, referring: *referring, extra: extra.as_deref() }
    }

    pub(crate) fn assemble(
        url: Url,
        step: StepData,
        priority: i32,
        dont_filter: bool,
        referring: Option<Referring>,
        extra: Option<Extra>,
    ) -> Self {
        Self { url, step, priority, dont_filter, referring, extra: extra.map(Box::new) }
    }
}
