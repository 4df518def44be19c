//! Reading a record: every length is checked before it is believed.

use std::sync::Arc;
use std::time::Duration;

use http::{HeaderMap, HeaderName, HeaderValue, Method};
use serde::Deserialize as _;
use serde_json::{Map, Value};
use url::Url;

use super::{Peek, RecordError, VERSION, wire};
use crate::api::request::{Extra, HandleStatus, LeaseTarget, Referring, Request};
use crate::api::step::StepData;
use crate::scheduler::job::{Job, JobKind, RequestId, undotted};
use crate::web::referrer_policy::ReferrerPolicy;

/// What is left of the bytes.
#[derive(Debug, Clone)]
pub(super) struct Reader<'a>(&'a [u8]);

/// Reads from the version up to the URL.
pub(super) fn peek<'a>(reader: &mut Reader<'a>) -> Result<Peek<'a>, RecordError> {
    match reader.byte("version")? {
        1..=VERSION => {}
        0 => return Err(damaged("version", "0")),
        found => return Err(RecordError::Newer { found }),
    }
    let flags = reader.number("flags")?;
    if flags & !wire::KNOWN != 0 {
        return Err(damaged("flags", format_args!("{flags:#x}")));
    }
    let id = RequestId(reader.key("id")?);
    let parent = if flags & wire::PARENT != 0 { Some(RequestId(reader.key("parent")?)) } else { None };
    let not_before = if flags & wire::LATER != 0 { reader.duration("not-before time")? } else { Duration::ZERO };
    let priority = reader.signed("priority")?;
    let key = reader.key("seen key")?;
    let host_at = reader.length("host")?;
    let host_len = reader.length("host")?;
    let len = reader.length("URL")?;
    let url = text(reader.take(len, "URL")?, "URL")?;
    let host = host_at.checked_add(host_len).and_then(|end| url.get(host_at..end));
    let host = host.ok_or_else(|| damaged("host", format_args!("{host_len} bytes at {host_at} of {len}")))?;
    let kind = if flags & wire::ROBOTS != 0 { JobKind::Robots } else { JobKind::Page };
    let host = undotted(host);
    Ok(Peek { id, kind, parent, not_before, priority, url, host, key, flags })
}

/// Reads the rest.
pub(super) fn job(peek: &Peek<'_>, reader: &mut Reader<'_>) -> Result<Job, RecordError> {
    let is = |flag| peek.flags & flag != 0;
    let url = Url::parse(peek.url).map_err(|error| damaged("URL", error))?;
    let depth = reader.small("depth")?;
    let len = reader.length("step")?;
    let step = StepData::from_bytes(reader.take(len, "step")?);
    let mut extra = is(wire::EXTRA).then(Extra::default);
    if let Some(extra) = &mut extra {
        extra.keep_lease = is(wire::KEEP_LEASE);
        extra.no_redirect = is(wire::NO_REDIRECT);
        extra.ignore_robots = is(wire::IGNORE_ROBOTS);
        extra.allow_offsite = is(wire::ALLOW_OFFSITE);
    }
    let mut rest = Rest::default();
    let mut last = 0;
    while !reader.0.is_empty() {
        let tag = reader.byte("tag")?;
        if tag <= last {
            return Err(damaged("order of fields", format_args!("tag {tag} after {last}")));
        }
        last = tag;
        let len = reader.length(name(tag))?;
        let mut field = Reader(reader.take(len, name(tag))?);
        match &mut extra {
            _ if tag < wire::METHOD || tag == wire::REFERRING => of_job(tag, &mut field, peek.url, &mut rest)?,
            Some(extra) => of_request(tag, &mut field, extra)?,
            None => return Err(damaged("flags", format_args!("they do not announce field {tag}"))),
        }
        if !field.0.is_empty() {
            return Err(damaged(name(tag), format_args!("{} bytes too many", field.0.len())));
        }
    }
    let Rest { parent_url, attempts, hops, chain, first_url, referring } = rest;
    let request = Request::assemble(url, step, peek.priority, is(wire::UNFILTERED), referring, extra);
    let Peek { id, key, kind, parent, .. } = *peek;
    Ok(Job { id, key, kind, request, parent, parent_url, depth, attempts, hops, chain, first_url })
}

/// Rare fields of a job.
#[derive(Default)]
struct Rest {
    parent_url: Option<Arc<str>>,
    attempts: u32,
    hops: u32,
    chain: Vec<u128>,
    first_url: Option<Arc<str>>,
    referring: Option<Referring>,
}

fn of_job(tag: u8, field: &mut Reader<'_>, url: &str, rest: &mut Rest) -> Result<(), RecordError> {
    let name = name(tag);
    match tag {
        wire::PARENT_URL => rest.parent_url = Some(field.near(url, name)?),
        wire::ATTEMPTS => rest.attempts = field.small(name)?,
        wire::HOPS => rest.hops = field.small(name)?,
        wire::CHAIN => {
            while !field.0.is_empty() {
                rest.chain.push(field.key(name)?);
            }
        }
        wire::FIRST_URL => rest.first_url = Some(field.near(url, name)?),
        wire::REFERRING => rest.referring = Some(referring(field.byte(name)?, name)?),
        _ => return Err(RecordError::UnknownField { tag }),
    }
    Ok(())
}

fn of_request(tag: u8, field: &mut Reader<'_>, extra: &mut Extra) -> Result<(), RecordError> {
    let name = name(tag);
    match tag {
        wire::METHOD => extra.method = Method::from_bytes(field.rest()).map_err(|error| damaged(name, error))?,
        wire::HEADERS => extra.headers = field.headers(name)?,
        wire::COOKIES => {
            while !field.0.is_empty() {
                extra.cookies.push((field.text(name)?.to_owned(), field.text(name)?.to_owned()));
            }
        }
        wire::BODY => extra.body = field.rest().to_vec().into(),
        wire::META => extra.meta = meta(field.rest(), name)?,
        wire::TIMEOUT => extra.timeout = Some(field.duration(name)?),
        wire::RETRIES => extra.retries = Some(field.small(name)?),
        wire::LEASE => {
            let (site, client) = (field.text(name)?.to_owned(), field.text(name)?.to_owned());
            extra.lease = Some(LeaseTarget { site, client });
        }
        wire::SESSION_KEY => extra.session_key = Some(text(field.rest(), name)?.to_owned()),
        wire::STATUSES => extra.handle_status = field.statuses(name)?,
        wire::MAX_BYTES => extra.max_bytes = Some(field.number(name)?),
        wire::DONT_CACHE => extra.dont_cache = true,
        _ => return Err(RecordError::UnknownField { tag }),
    }
    Ok(())
}

impl<'a> Reader<'a> {
    pub(super) const fn new(bytes: &'a [u8]) -> Self {
        Self(bytes)
    }

    fn take(&mut self, len: usize, field: &'static str) -> Result<&'a [u8], RecordError> {
        let (taken, rest) = self.0.split_at_checked(len).ok_or(RecordError::Short { field })?;
        self.0 = rest;
        Ok(taken)
    }

    fn rest(&mut self) -> &'a [u8] {
        std::mem::take(&mut self.0)
    }

    fn byte(&mut self, field: &'static str) -> Result<u8, RecordError> {
        let (byte, rest) = self.0.split_first().ok_or(RecordError::Short { field })?;
        self.0 = rest;
        Ok(*byte)
    }

    fn key(&mut self, field: &'static str) -> Result<u128, RecordError> {
        let (bytes, rest) = self.0.split_first_chunk().ok_or(RecordError::Short { field })?;
        self.0 = rest;
        Ok(u128::from_le_bytes(*bytes))
    }

    fn number(&mut self, field: &'static str) -> Result<u64, RecordError> {
        let mut value = 0;
        for shift in (0..64).step_by(7) {
            let byte = self.byte(field)?;
            let bits = u64::from(byte & 0x7f);
            if bits << shift >> shift != bits {
                break;
            }
            value |= bits << shift;
            if byte < 0x80 {
                return Ok(value);
            }
        }
        Err(damaged(field, "a number of more than 64 bits"))
    }

    fn small<T: TryFrom<u64>>(&mut self, field: &'static str) -> Result<T, RecordError> {
        let value = self.number(field)?;
        T::try_from(value).map_err(|_| damaged(field, format_args!("{value} is too large")))
    }

    fn length(&mut self, field: &'static str) -> Result<usize, RecordError> {
        self.small(field)
    }

    fn signed(&mut self, field: &'static str) -> Result<i32, RecordError> {
        let folded: u32 = self.small(field)?;
        Ok((folded >> 1).cast_signed() ^ -(folded & 1).cast_signed())
    }

    fn duration(&mut self, field: &'static str) -> Result<Duration, RecordError> {
        let seconds = self.number(field)?;
        let nanos: u32 = self.small(field)?;
        if nanos >= 1_000_000_000 {
            return Err(damaged(field, format_args!("{nanos} nanoseconds are more than a second")));
        }
        Ok(Duration::new(seconds, nanos))
    }

    fn text(&mut self, field: &'static str) -> Result<&'a str, RecordError> {
        let len = self.length(field)?;
        text(self.take(len, field)?, field)
    }

    /// A text of which the start is shared with `base`.
    fn near(&mut self, base: &str, field: &'static str) -> Result<Arc<str>, RecordError> {
        let shared = self.length(field)?;
        let start = base.as_bytes().get(..shared);
        let start = start.ok_or_else(|| damaged(field, format_args!("it shares {shared} bytes of {}", base.len())))?;
        text(&[start, self.rest()].concat(), field).map(Arc::from)
    }

    fn headers(&mut self, field: &'static str) -> Result<HeaderMap, RecordError> {
        let mut headers = HeaderMap::new();
        while !self.0.is_empty() {
            let name = HeaderName::from_bytes(self.text(field)?.as_bytes()).map_err(|error| damaged(field, error))?;
            let len = self.length(field)?;
            let value = HeaderValue::from_bytes(self.take(len / 2, field)?);
            let mut value = value.map_err(|error| damaged(field, error))?;
            value.set_sensitive(len % 2 == 1);
            headers.try_append(name, value).map_err(|error| damaged(field, error))?;
        }
        Ok(headers)
    }

    fn statuses(&mut self, field: &'static str) -> Result<HandleStatus, RecordError> {
        match self.byte(field)? {
            0 => Ok(HandleStatus::All),
            1 => {
                let mut codes = Vec::new();
                while !self.0.is_empty() {
                    codes.push(self.small(field)?);
                }
                Ok(HandleStatus::Also(codes))
            }
            other => Err(damaged(field, format_args!("kind {other} of at most 1"))),
        }
    }
}

fn referring(byte: u8, field: &'static str) -> Result<Referring, RecordError> {
    let number = byte & !wire::OWN;
    let policy = ReferrerPolicy::ALL.get(usize::from(number)).copied();
    let policy = policy.ok_or_else(|| damaged(field, format_args!("policy {number} of at most 7")))?;
    Ok(Referring { policy, own: byte & wire::OWN != 0 })
}

fn meta(bytes: &[u8], field: &'static str) -> Result<Map<String, Value>, RecordError> {
    if bytes.is_empty() {
        return Err(damaged(field, format_args!("it nests too deep to be kept, at most {} levels are", wire::META_LEVELS)));
    }
    let mut reader = rmp_serde::Deserializer::from_read_ref(bytes);
    // The level at which it gives up is not read.
    reader.set_max_depth(wire::META_LEVELS + 1);
    Map::deserialize(&mut reader).map_err(|_| damaged(field, "it is no MessagePack map"))
}

fn text<'a>(bytes: &'a [u8], field: &'static str) -> Result<&'a str, RecordError> {
    std::str::from_utf8(bytes).map_err(|error| damaged(field, error))
}

fn damaged(field: &'static str, found: impl ToString) -> RecordError {
    RecordError::Damaged { field, found: found.to_string() }
}

const fn name(tag: u8) -> &'static str {
    match tag {
        wire::PARENT_URL => "page URL",
        wire::ATTEMPTS => "attempts",
        wire::HOPS => "hops",
        wire::CHAIN => "redirect chain",
        wire::FIRST_URL => "first URL",
        wire::METHOD => "method",
        wire::HEADERS => "headers",
        wire::COOKIES => "cookies",
        wire::BODY => "body",
        wire::META => "meta",
        wire::TIMEOUT => "timeout",
        wire::RETRIES => "retries",
        wire::LEASE => "lease target",
        wire::SESSION_KEY => "session key",
        wire::STATUSES => "handled statuses",
        wire::REFERRING => "referrer policy",
        wire::MAX_BYTES => "most bytes",
        wire::DONT_CACHE => "passing of the HTTP cache",
        _ => "unknown field",
    }
}
