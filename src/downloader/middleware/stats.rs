//! The counters of the wire, by Scrapy's names.
//!
//! They run some eight times a page: keys of common methods and statuses are constants, the others are made.

use std::borrow::Cow;

use http::{HeaderMap, Method, StatusCode, Version};

use super::retry::class_path;
use crate::api::failure::Fault;
use crate::api::stats::Stats;
use crate::downloader::transport::{Outgoing, Reply};

/// Counts a request that goes out.
pub(crate) fn request(stats: &Stats, outgoing: &Outgoing) {
    stats.inc("downloader/request_count");
    stats.inc(method_key(&outgoing.method));
    stats.add("downloader/request_bytes", whole(request_bytes(outgoing)));
}

/// Counts an answer from the wire, `bytes` long with its head.
pub(crate) fn response(stats: &Stats, reply: &Reply, bytes: u64) {
    stats.inc("downloader/response_count");
    stats.inc(status_key(reply.status));
    stats.add("downloader/response_bytes", whole(bytes));
    if reply.flags.decoded {
        stats.inc("httpcompression/response_count");
        stats.add("httpcompression/response_bytes", whole(reply.body.len() as u64));
    }
}

/// Counts an attempt that gave no answer.
pub(crate) fn exception(stats: &Stats, fault: &Fault) {
    stats.inc("downloader/exception_count");
    stats.inc(format!("downloader/exception_type_count/{}", class_path(fault.kind)));
}

/// Counts a retry.
pub(crate) fn retry(stats: &Stats, reason: &str) {
    stats.inc("retry/count");
    stats.inc(format!("retry/reason_count/{reason}"));
}

/// Counts a request that has no retries left.
pub(crate) fn retries_used_up(stats: &Stats) {
    stats.inc("retry/max_reached");
}

/// Counts a redirect that is followed.
pub(crate) fn redirect(stats: &Stats, status: StatusCode) {
    stats.inc("redirect/count");
    stats.inc(format!("redirect/status_count/{}", status.as_u16()));
}

/// Counts a refresh that is followed.
pub(crate) fn refresh(stats: &Stats) {
    stats.inc("redirect/count");
    stats.inc("redirect/refresh_count");
}

/// Counts a redirect that is not followed.
pub(crate) fn redirect_refused(stats: &Stats, fault: &Fault) {
    stats.inc(match fault.kind {
        crate::api::failure::FailureKind::RedirectLimit => "redirect/max_reached",
        _ => "redirect/invalid_target",
    });
}

/// Counts an answer that no callback asked for.
pub(crate) fn ignored(stats: &Stats, status: StatusCode) {
    stats.inc("httperror/response_ignored_count");
    stats.inc(format!("httperror/response_ignored_status_count/{}", status.as_u16()));
}

/// Bytes of an answer's head as HTTP/1.1 writes it; an estimate for HTTP/2.
pub(crate) fn head_bytes(reply: &Reply) -> u64 {
    let line = if reply.version == Version::HTTP_2 { 12 } else { 15 + reply.status.canonical_reason().map_or(0, str::len) };
    line as u64 + header_bytes(&reply.headers) + 2
}

fn request_bytes(outgoing: &Outgoing) -> u64 {
    let url = &outgoing.url;
    let target = url.path().len() + url.query().map_or(0, |query| query.len() + 1);
    let host = url.host_str().map_or(0, str::len);
    // Method, two spaces, "HTTP/1.1", line ends, "Host: ".
    (outgoing.method.as_str().len() + target + host + 22) as u64 + header_bytes(&outgoing.headers) + outgoing.body.len() as u64
}

fn header_bytes(headers: &HeaderMap) -> u64 {
    headers.iter().map(|(name, value)| (name.as_str().len() + value.len() + 4) as u64).sum()
}

fn whole(bytes: u64) -> i64 {
    i64::try_from(bytes).unwrap_or(i64::MAX)
}

fn method_key(method: &Method) -> Cow<'static, str> {
    Cow::Borrowed(match *method {
        Method::GET => "downloader/request_method_count/GET",
        Method::POST => "downloader/request_method_count/POST",
        Method::HEAD => "downloader/request_method_count/HEAD",
        Method::PUT => "downloader/request_method_count/PUT",
        _ => return Cow::Owned(format!("downloader/request_method_count/{method}")),
    })
}

fn status_key(status: StatusCode) -> Cow<'static, str> {
    Cow::Borrowed(match status.as_u16() {
        200 => "downloader/response_status_count/200",
        301 => "downloader/response_status_count/301",
        302 => "downloader/response_status_count/302",
        304 => "downloader/response_status_count/304",
        403 => "downloader/response_status_count/403",
        404 => "downloader/response_status_count/404",
        429 => "downloader/response_status_count/429",
        500 => "downloader/response_status_count/500",
        503 => "downloader/response_status_count/503",
        code => return Cow::Owned(format!("downloader/response_status_count/{code}")),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn made_and_constant_keys_are_spelled_alike() {
        for code in 100..600 {
            let Ok(status) = StatusCode::from_u16(code) else { continue };
            assert_eq!(status_key(status), format!("downloader/response_status_count/{code}"));
        }
        for method in [Method::GET, Method::POST, Method::HEAD, Method::PUT, Method::DELETE, Method::PATCH] {
            assert_eq!(method_key(&method), format!("downloader/request_method_count/{method}"));
        }
    }
}
