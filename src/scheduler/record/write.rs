//! Writing a job as a record.

use std::time::Duration;

use http::{HeaderMap, Method};
use serde_json::{Map, Value};
use url::Position;

use super::{VERSION, wire};
use crate::api::request::{Extra, HandleStatus, Parts, Referring};
use crate::scheduler::job::{Job, JobKind};
use crate::web::referrer_policy::ReferrerPolicy;

/// Appends the job.
pub(super) fn job(job: &Job, not_before: Duration, into: &mut Vec<u8>) {
    // All fields by name: a new one is not forgotten here.
    let Job { id, key, kind, request, parent, parent_url, depth, attempts, hops, chain, first_url } = job;
    let Parts { url, step, priority, dont_filter, referring, extra } = request.parts();
    let text = url.as_str();
    into.reserve(160 + text.len() + step.len());
    let place = into.len();
    into.push(1);
    number(flags(*kind, parent.is_some(), !not_before.is_zero(), dont_filter, extra), into);
    into.extend_from_slice(&id.0.to_le_bytes());
    if let Some(parent) = parent {
        into.extend_from_slice(&parent.0.to_le_bytes());
    }
    if !not_before.is_zero() {
        duration(not_before, into);
    }
    signed(priority, into);
    into.extend_from_slice(&key.to_le_bytes());
    length(url[..Position::BeforeHost].len(), into);
    length(url.host_str().map_or(0, str::len), into);
    bytes(text.as_bytes(), into);
    number(u64::from(*depth), into);
    bytes(step.as_bytes(), into);

    if let Some(page) = parent_url {
        field(wire::PARENT_URL, into, |into| near(page, text, into));
    }
    for (tag, count) in [(wire::ATTEMPTS, *attempts), (wire::HOPS, *hops)] {
        if count > 0 {
            field(tag, into, |into| number(u64::from(count), into));
        }
    }
    if !chain.is_empty() {
        field(wire::CHAIN, into, |into| chain.iter().for_each(|key| into.extend_from_slice(&key.to_le_bytes())));
    }
    if let Some(first) = first_url {
        field(wire::FIRST_URL, into, |into| near(first, text, into));
    }
    if let Some(extra) = extra {
        rare(extra, into);
    }
    let newest = later(referring, extra, into);
    if let Some(version) = into.get_mut(place).filter(|_| newest > wire::LAST_OF_1) {
        *version = VERSION;
    }
}

/// The fields that came with version 2, in the order of their tags; the last tag that was written.
fn later(referring: Option<Referring>, extra: Option<&Extra>, into: &mut Vec<u8>) -> u8 {
    let mut newest = wire::LAST_OF_1;
    if let Some(referring) = referring {
        newest = wire::REFERRING;
        field(newest, into, |into| into.push(policy(referring)));
    }
    if extra.is_some_and(|extra| extra.dont_cache) {
        newest = wire::DONT_CACHE;
        field(newest, into, |_| {});
    }
    if let Some(limit) = extra.and_then(|extra| extra.max_bytes) {
        newest = wire::MAX_BYTES;
        field(newest, into, |into| number(limit, into));
    }
    newest
}

/// The number of a policy is its place among all.
fn policy(Referring { policy, own }: Referring) -> u8 {
    let number = ReferrerPolicy::ALL.iter().zip(0..).find(|(known, _)| **known == policy).map_or(0, |(_, number)| number);
    if own { number | wire::OWN } else { number }
}

fn flags(kind: JobKind, has_parent: bool, is_later: bool, unfiltered: bool, extra: Option<&Extra>) -> u64 {
    let of = |flag: fn(&Extra) -> bool| extra.is_some_and(flag);
    [
        (kind == JobKind::Robots, wire::ROBOTS),
        (has_parent, wire::PARENT),
        (is_later, wire::LATER),
        (unfiltered, wire::UNFILTERED),
        (extra.is_some(), wire::EXTRA),
        (of(|x| x.keep_lease), wire::KEEP_LEASE),
        (of(|x| x.no_redirect), wire::NO_REDIRECT),
        (of(|x| x.ignore_robots), wire::IGNORE_ROBOTS),
        (of(|x| x.allow_offsite), wire::ALLOW_OFFSITE),
    ]
    .iter()
    .map(|(is_set, flag)| if *is_set { *flag } else { 0 })
    .sum()
}

fn rare(extra: &Extra, into: &mut Vec<u8>) {
    let Extra { method, headers, cookies, body, meta, timeout, retries, lease, session_key, .. } = extra;
    // Those of later versions come after all of these.
    let Extra { handle_status, dont_cache: _, max_bytes: _, .. } = extra;
    // The four that are left out are flags.
    let Extra { keep_lease: _, no_redirect: _, ignore_robots: _, allow_offsite: _, .. } = extra;
    if *method != Method::GET {
        field(wire::METHOD, into, |into| into.extend_from_slice(method.as_str().as_bytes()));
    }
    if !headers.is_empty() {
        field(wire::HEADERS, into, |into| all_headers(headers, into));
    }
    if !cookies.is_empty() {
        field(wire::COOKIES, into, |into| {
            for (name, value) in cookies {
                bytes(name.as_bytes(), into);
                bytes(value.as_bytes(), into);
            }
        });
    }
    if !body.is_empty() {
        field(wire::BODY, into, |into| into.extend_from_slice(body));
    }
    if !meta.is_empty() {
        field(wire::META, into, |into| {
            // An empty field says that it could not be written: the request is set aside when it is read.
            if !nests_deeper(meta, wire::META_LEVELS) {
                // Into a vector nothing fails, and every JSON value can be written as MessagePack.
                drop(rmp_serde::encode::write(into, meta));
            }
        });
    }
    if let Some(limit) = timeout {
        field(wire::TIMEOUT, into, |into| duration(*limit, into));
    }
    if let Some(times) = retries {
        field(wire::RETRIES, into, |into| number(u64::from(*times), into));
    }
    if let Some(target) = lease {
        field(wire::LEASE, into, |into| {
            bytes(target.site.as_bytes(), into);
            bytes(target.client.as_bytes(), into);
        });
    }
    if let Some(key) = session_key {
        field(wire::SESSION_KEY, into, |into| into.extend_from_slice(key.as_bytes()));
    }
    match handle_status {
        HandleStatus::Successful => {}
        HandleStatus::All => field(wire::STATUSES, into, |into| into.push(0)),
        HandleStatus::Also(codes) => field(wire::STATUSES, into, |into| {
            into.push(1);
            codes.iter().for_each(|code| number(u64::from(*code), into));
        }),
    }
}

fn all_headers(headers: &HeaderMap, into: &mut Vec<u8>) {
    for (name, value) in headers {
        bytes(name.as_str().as_bytes(), into);
        length(value.len() * 2 + usize::from(value.is_sensitive()), into);
        into.extend_from_slice(value.as_bytes());
    }
}

/// Whether there are more levels than so many, the map's own included. It is not for recursion to find out.
fn nests_deeper(meta: &Map<String, Value>, levels: usize) -> bool {
    let is_nested = |value: &&Value| value.is_array() || value.is_object();
    let mut nested: Vec<&Value> = meta.values().filter(is_nested).collect();
    for _ in 1..levels {
        if nested.is_empty() {
            return false;
        }
        let mut inner = Vec::new();
        for value in nested {
            match value {
                Value::Array(values) => inner.extend(values.iter().filter(is_nested)),
                Value::Object(values) => inner.extend(values.values().filter(is_nested)),
                _ => {}
            }
        }
        nested = inner;
    }
    !nested.is_empty()
}

/// A text that mostly starts as `base` does.
fn near(text: &str, base: &str, into: &mut Vec<u8>) {
    let common = text.bytes().zip(base.bytes()).take_while(|(a, b)| a == b).count();
    length(common, into);
    into.extend_from_slice(text.as_bytes().get(common..).unwrap_or_default());
}

/// Tag, length and what `write` appends. Fields are short as a rule: one byte is kept for the length, and what is
/// longer moves.
fn field(tag: u8, into: &mut Vec<u8>, write: impl FnOnce(&mut Vec<u8>)) {
    into.push(tag);
    let place = into.len();
    into.push(0);
    write(into);
    let written = into.len() - place - 1;
    match (u8::try_from(written), into.get_mut(place)) {
        (Ok(short @ 0..0x80), Some(byte)) => *byte = short,
        _ => {
            let mut prefix = Vec::new();
            length(written, &mut prefix);
            into.splice(place..=place, prefix);
        }
    }
}

fn bytes(bytes: &[u8], into: &mut Vec<u8>) {
    length(bytes.len(), into);
    into.extend_from_slice(bytes);
}

fn duration(duration: Duration, into: &mut Vec<u8>) {
    number(duration.as_secs(), into);
    number(u64::from(duration.subsec_nanos()), into);
}

fn length(length: usize, into: &mut Vec<u8>) {
    // No machine has longer lengths.
    number(u64::try_from(length).unwrap_or(u64::MAX), into);
}

fn signed(value: i32, into: &mut Vec<u8>) {
    let folded = (value << 1) ^ (value >> 31);
    number(u64::from(folded.cast_unsigned()), into);
}

#[allow(clippy::cast_possible_truncation, reason = "seven bits are taken at a time")]
fn number(mut value: u64, into: &mut Vec<u8>) {
    while value >= 0x80 {
        into.push(value as u8 | 0x80);
        value >>= 7;
    }
    into.push(value as u8);
}
