//! What a request is for, and what can be said before its body is read: the path, the method, the type, the Connect headers.
//!
//! The order is that of the wire contract, section 1.5: who asks for what does not exist is told so before anything else.

use std::net::IpAddr;
use std::time::Duration;

use http::header::{ALLOW, CONTENT_TYPE, HOST, HeaderValue, ORIGIN};
use http::{HeaderMap, Method, StatusCode};

use super::admin::Deed;
use super::write;
use crate::http_server::{Head, Reply, ReplyBody};
use crate::plane::model::refusal::Refusal;
use crate::spinneret::Procedure;

/// Longest `Connect-Timeout-Ms`, digits (Connect protocol, "Timeouts").
const TIMEOUT_DIGITS: usize = 10;

/// What a request is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Route {
    /// A call of the node API.
    Call(Procedure),
    /// Is the process alive?
    Health,
    /// Does it take calls?
    Ready,
    /// What was leased and reported, for this machine only.
    Ledger,
    /// Something to do by hand, for this machine only.
    Deed(Deed),
}

impl Route {
    /// What stands at this path below the base.
    pub(super) fn of(base: &str, path: &str) -> Option<Self> {
        let path = path.strip_prefix(base)?.strip_prefix('/')?;
        match path {
            "healthz" => return Some(Self::Health),
            "readyz" => return Some(Self::Ready),
            "plane/ledger" => return Some(Self::Ledger),
            _ => {}
        }
        if let Some(deed) = path.strip_prefix("plane/") {
            return Deed::of(deed).map(Self::Deed);
        }
        Procedure::ALL.into_iter().find(|procedure| procedure.path() == path).map(Self::Call)
    }

    /// Everything that can be said without the body.
    ///
    /// # Errors
    /// The answer.
    pub(super) fn check(base: &str, head: &Head) -> Result<Self, Box<Reply>> {
        let route = Self::of(base, &head.path).ok_or_else(|| Box::new(nothing()))?;
        if !route.methods().contains(&head.method) {
            return Err(Box::new(wrong_method(route)));
        }
        if matches!(route, Self::Ledger | Self::Deed(_)) && !is_local(head.peer, &head.headers) {
            let refusal =
                Refusal::permission_denied("this is for callers on the same machine; ask at the address 127.0.0.1 there");
            return Err(Box::new(write::refusal(&refusal)));
        }
        match route {
            // A page in a browser can send no JSON to another host without asking first, and is not answered when it asks.
            Self::Deed(_) if !is_json(&head.headers) => {
                let text = "this takes JSON: send the header Content-Type: application/json\n";
                return Err(Box::new(plain(StatusCode::UNSUPPORTED_MEDIA_TYPE, text)));
            }
            Self::Call(_) if !is_json(&head.headers) => {
                return Err(Box::new(empty(StatusCode::UNSUPPORTED_MEDIA_TYPE)));
            }
            Self::Call(_) => {
                check_version(&head.headers)
                    .and_then(|()| timeout(&head.headers))
                    .map_err(|refusal| Box::new(write::refusal(&refusal)))?;
            }
            _ => {}
        }
        Ok(route)
    }

    const fn methods(self) -> &'static [Method] {
        match self {
            Self::Call(_) | Self::Deed(_) => &[Method::POST],
            Self::Health | Self::Ready | Self::Ledger => &[Method::GET, Method::HEAD],
        }
    }
}

/// How long the caller waits for an answer, if it says so.
///
/// # Errors
/// `invalid_argument` without a reason for what is no number of milliseconds of at most ten digits.
pub(super) fn timeout(headers: &HeaderMap) -> Result<Option<Duration>, Refusal> {
    let Some(value) = headers.get("connect-timeout-ms") else { return Ok(None) };
    let digits = value.as_bytes().trim_ascii();
    let is_number = (1..=TIMEOUT_DIGITS).contains(&digits.len()) && digits.iter().all(u8::is_ascii_digit);
    let number = is_number.then(|| std::str::from_utf8(digits).ok()?.parse().ok()).flatten();
    let wrong = || Refusal::malformed("Connect-Timeout-Ms is a number of milliseconds of at most 10 digits; the one sent is not");
    number.map(Duration::from_millis).map(Some).ok_or_else(wrong)
}

fn check_version(headers: &HeaderMap) -> Result<(), Refusal> {
    match headers.get("connect-protocol-version").map(|value| value.as_bytes().trim_ascii()) {
        None | Some(b"1") => Ok(()),
        Some(_) => Err(Refusal::malformed("Connect-Protocol-Version is 1 here; the one sent is not")),
    }
}

/// `application/json`, in UTF-8 where it says so.
fn is_json(headers: &HeaderMap) -> bool {
    let Some(value) = headers.get(CONTENT_TYPE).and_then(|value| value.to_str().ok()) else { return false };
    let mut parts = value.split(';').map(str::trim);
    let is_json = parts.next().is_some_and(|essence| essence.eq_ignore_ascii_case("application/json"));
    is_json
        && parts.filter(|part| !part.is_empty()).all(|part| {
            let (name, value) = part.split_once('=').unwrap_or((part, ""));
            !name.eq_ignore_ascii_case("charset") || value.trim_matches('"').eq_ignore_ascii_case("utf-8")
        })
}

/// Whether the call comes from this machine, and neither through a proxy on it, nor from a page in its browser, nor by a name
/// that somebody else may have bent to it.
fn is_local(peer: IpAddr, headers: &HeaderMap) -> bool {
    const FORWARDED: [&str; 3] = ["forwarded", "x-forwarded-for", "x-real-ip"];
    let is_named_so = headers.get_all(HOST).iter().all(|host| {
        let Ok(host) = host.to_str() else { return false };
        let name = host
            .rsplit_once(':')
            .filter(|(_, port)| port.bytes().all(|byte| byte.is_ascii_digit()))
            .map_or(host, |(name, _)| name);
        let address = name.trim_start_matches('[').trim_end_matches(']').parse::<IpAddr>();
        address.map_or_else(|_| name.eq_ignore_ascii_case("localhost"), |address| address.to_canonical().is_loopback())
    });
    let is_direct = !FORWARDED.into_iter().any(|name| headers.contains_key(name)) && !headers.contains_key(ORIGIN);
    peer.to_canonical().is_loopback() && is_named_so && is_direct
}

fn wrong_method(route: Route) -> Reply {
    let allowed = if route.methods().contains(&Method::POST) { "POST" } else { "GET, HEAD" };
    let mut reply = match route {
        // The wire contract has an empty answer here.
        Route::Call(_) => empty(StatusCode::METHOD_NOT_ALLOWED),
        Route::Deed(_) => plain(StatusCode::METHOD_NOT_ALLOWED, "this is done with POST\n"),
        _ => plain(StatusCode::METHOD_NOT_ALLOWED, "this is to be read with GET\n"),
    };
    reply.headers.insert(ALLOW, HeaderValue::from_static(allowed));
    reply
}

/// The answer where nothing is.
pub(super) fn nothing() -> Reply {
    plain(StatusCode::NOT_FOUND, "there is nothing here\n")
}

pub(super) fn plain(status: StatusCode, text: &'static str) -> Reply {
    Reply::new(status, "text/plain; charset=utf-8", text)
}

fn empty(status: StatusCode) -> Reply {
    Reply { status, headers: HeaderMap::new(), body: ReplyBody::Whole(None) }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing)]

    use std::net::Ipv4Addr;

    use super::*;

    const ACQUIRE: &str = "/sp/spinneret.v1.LeaseService/Acquire";

    fn head(method: Method, path: &str, headers: &[(&'static str, &'static str)]) -> Head {
        let headers = headers.iter().map(|(name, value)| (name.parse().unwrap(), HeaderValue::from_static(value))).collect();
        Head { peer: Ipv4Addr::LOCALHOST.into(), method, path: path.to_owned(), query: String::new(), headers }
    }

    fn status(method: Method, path: &str, headers: &[(&'static str, &'static str)]) -> u16 {
        Route::check("/sp", &head(method, path, headers)).map_or_else(|reply| reply.status.as_u16(), |_| 200)
    }

    #[test]
    fn b027_every_call_has_its_path_below_the_base_and_nothing_else_is_there() {
        for procedure in Procedure::ALL {
            let path = format!("/sp/{procedure}");
            assert_eq!(Route::of("/sp", &path), Some(Route::Call(procedure)));
            assert_eq!(Route::of("", &path), None);
            assert_eq!(Route::of("", &format!("/{procedure}")), Some(Route::Call(procedure)));
        }
        for path in
            ["/", "/sp", "/sp/", "/spinneret.v1.LeaseService/Acquire", "/sp/spinneret.v1.LeaseService/Borrow", "/sp/plane"]
        {
            assert_eq!(status(Method::POST, path, &[("content-type", "application/json")]), 404, "{path}");
        }
        assert_eq!(status(Method::POST, &format!("{ACQUIRE}/"), &[("content-type", "application/json")]), 404);
    }

    #[test]
    fn method_comes_before_type_and_type_before_the_connect_headers() {
        let bad = [("content-type", "text/plain"), ("connect-protocol-version", "2")];
        assert_eq!(status(Method::GET, ACQUIRE, &bad), 405);
        assert_eq!(status(Method::POST, ACQUIRE, &bad), 415);
        assert_eq!(status(Method::POST, ACQUIRE, &[]), 415);
        let json = ("content-type", "application/json");
        assert_eq!(status(Method::POST, ACQUIRE, &[json, bad[1]]), 400);
        for value in ["", "x", "-1", "1.5", "12345678901"] {
            assert_eq!(status(Method::POST, ACQUIRE, &[json, ("connect-timeout-ms", value)]), 400, "{value:?}");
        }
        for value in ["0", "1234567890", " 5 "] {
            assert_eq!(status(Method::POST, ACQUIRE, &[json, ("connect-timeout-ms", value)]), 200, "{value:?}");
        }
        for value in ["Application/JSON", "application/json; charset=UTF-8", "application/json;charset=\"utf-8\"; x=y"] {
            assert_eq!(status(Method::POST, ACQUIRE, &[("content-type", value)]), 200, "{value}");
        }
        for value in ["application/proto", "application/json; charset=latin1", "application/connect+json", "application/jsonp"] {
            assert_eq!(status(Method::POST, ACQUIRE, &[("content-type", value)]), 415, "{value}");
        }
        assert_eq!(status(Method::HEAD, "/sp/healthz", &[]), 200);
        assert_eq!(status(Method::POST, "/sp/readyz", &[]), 405);
    }

    #[test]
    fn what_is_done_by_hand_is_done_from_this_machine() {
        let json = ("content-type", "application/json");
        assert_eq!(status(Method::GET, "/sp/plane/ledger", &[("host", "127.0.0.1:8080")]), 200);
        assert_eq!(status(Method::POST, "/sp/plane/pause", &[json, ("host", "[::1]:80")]), 200);
        assert_eq!(status(Method::POST, "/sp/plane/pause", &[json, ("host", "LocalHost")]), 200);
        assert_eq!(status(Method::POST, "/sp/plane/pause", &[("content-type", "text/plain")]), 415);
        for (name, value) in [
            ("host", "rebound.example:80"),
            ("host", "10.0.0.1"),
            ("host", "127.0.0.1.rebound.example"),
            ("x-forwarded-for", "127.0.0.1"),
            ("forwarded", "for=x"),
            ("origin", "http://127.0.0.1:8080"),
            ("origin", "null"),
        ] {
            assert_eq!(status(Method::GET, "/sp/plane/ledger", &[(name, value)]), 403, "{name}: {value}");
            assert_eq!(status(Method::POST, "/sp/plane/resume", &[json, (name, value)]), 403, "{name}: {value}");
        }
        let elsewhere = |peer: &str| Head { peer: peer.parse().unwrap(), ..head(Method::GET, "/sp/plane/ledger", &[]) };
        assert_eq!(Route::check("/sp", &elsewhere("10.0.0.1")).unwrap_err().status, 403);
        assert_eq!(Route::check("/sp", &elsewhere("::ffff:127.0.0.1")).unwrap(), Route::Ledger);
    }
}
