#![allow(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing)]
use http::{HeaderMap, HeaderName, HeaderValue, Method};
use proptest::collection::vec;
use proptest::option;
use proptest::prelude::*;
use serde_json::{Map, Value, json};
use url::Url;

use super::*;
use crate::api::request::{Extra, HandleStatus, LeaseTarget, Referring, Request};
use crate::api::step::StepData;
use crate::scheduler::testing::{child, job};
use crate::web::referrer_policy::ReferrerPolicy;

fn encoded(job: &Job, not_before: Duration) -> Vec<u8> {
    let mut bytes = Vec::new();
    encode(job, not_before, &mut bytes);
    bytes
}

/// Everything of both, compared.
fn assert_same(a: &Job, b: &Job) {
    let rest = |job: &Job| {
        let Job { id, key, kind, request: _, parent, parent_url, depth, attempts, hops, chain, first_url } = job.clone();
        (id, key, kind, parent, parent_url, (depth, attempts, hops), chain, first_url)
    };
    assert_eq!(rest(a), rest(b));
    let (a, b) = (a.request.parts(), b.request.parts());
    assert_eq!((a.url, a.priority, a.dont_filter, a.referring), (b.url, b.priority, b.dont_filter, b.referring));
    assert_eq!(a.step.as_bytes(), b.step.as_bytes());
    assert!(a.extra == b.extra, "the rare fields differ");
}

/// One with every field of version 1 set.
fn full() -> Job {
    let mut job = child(RequestId(9), 3, "https://u:p@shop.example:444/list?page=2#top");
    job.kind = JobKind::Robots;
    job.parent_url = Some("https://u:p@shop.example:444/list?page=1".into());
    (job.depth, job.attempts, job.hops, job.chain) = (5, 6, 300, vec![1, u128::MAX]);
    job.first_url = Some("http://other.example/".into());
    let request = &mut job.request;
    request.priority(-70_000).dont_filter().header("x-a", "1").unwrap().cookie("sid", "ä").body("body");
    request.meta("n", 1).meta("deep", json!({"b": [1.5, -3, null, true], "a": "text"}));
    request.timeout(Duration::from_millis(1_500)).retries(0).lease("site", "client").session_key("user 7").keep_lease();
    request.handle_status(HandleStatus::Also(vec![404, 500])).no_redirect().ignore_robots().allow_offsite();
    request.set_method(Method::POST);
    job
}

#[test]
fn a_record_of_version_1_reads_and_writes_the_same_for_ever() {
    let written = hex(include_str!("golden_v1.hex"));
    let not_before = Duration::new(1_800_000_000, 5);
    assert_eq!(to_hex(&encoded(&full(), not_before)), to_hex(&written));
    let (read, at) = decode(&written).unwrap();
    assert_same(&read, &full());
    assert_eq!(at, not_before);
}

/// One with every field that came with version 2 set as well.
fn full_2() -> Job {
    let mut job = full();
    job.request.referrer_policy(ReferrerPolicy::SameOrigin).max_bytes(70_000).dont_cache();
    job
}

#[test]
fn a_record_of_version_2_reads_and_writes_the_same_for_ever() {
    let written = hex(include_str!("golden_v2.hex"));
    let not_before = Duration::new(1_800_000_000, 5);
    assert_eq!(to_hex(&encoded(&full_2(), not_before)), to_hex(&written));
    let (read, at) = decode(&written).unwrap();
    assert_same(&read, &full_2());
    assert_eq!(at, not_before);
}

#[test]
fn what_version_1_can_say_is_written_in_version_1() {
    let version = |job: &Job| encoded(job, Duration::ZERO)[0];
    assert_eq!((version(&full()), version(&full_2())), (1, 2));
    let mut plain = job(0, "http://a/");
    plain.request.refer_by(ReferrerPolicy::NoReferrer);
    let bytes = encoded(&plain, Duration::ZERO);
    assert_same(&decode(&bytes).unwrap().0, &plain);
    assert_eq!(bytes.len(), encoded(&job(0, "http://a/"), Duration::ZERO).len() + 3, "a page's policy costs three bytes");
    for number in [8, 0x7f, 0xff] {
        let damaged = [&bytes[..bytes.len() - 1], &[number]].concat();
        assert!(matches!(decode(&damaged), Err(RecordError::Damaged { field: "referrer policy", .. })), "{number}");
    }
}

#[test]
fn fields_that_came_later_are_appended_to_what_was_there() {
    let mut later = full();
    later.request.dont_cache();
    let golden = hex(include_str!("golden_v1.hex"));
    let written = encoded(&later, Duration::new(1_800_000_000, 5));
    let mut expected = [golden.as_slice(), &[17, 0]].concat();
    expected[0] = 2;
    assert_eq!(to_hex(&written), to_hex(&expected));
    assert_same(&decode(&written).unwrap().0, &later);
}

#[test]
fn a_glance_tells_what_names_and_places_a_job() {
    let job = full();
    let not_before = Duration::from_secs(7);
    let bytes = encoded(&job, not_before);
    let peek = peek(&bytes).unwrap();
    assert_eq!((peek.id, peek.kind, peek.parent, peek.key), (job.id, job.kind, job.parent, job.key));
    assert_eq!((peek.not_before, peek.priority), (not_before, -70_000));
    assert_eq!((peek.url, peek.host), (job.url().as_str(), "shop.example"));
    let none = encoded(&super::super::testing::job(0, "mailto:someone@shop.example"), Duration::ZERO);
    assert_eq!(super::peek(&none).unwrap().host, "");
}

#[test]
fn a_usual_record_is_small() {
    let page = "https://shop.example/category/garden-tools/page-000017.html";
    let url = "https://shop.example/category/garden-tools/item-0000017.html";
    let mut usual = child(RequestId(u128::MAX), 17, url);
    usual.parent_url = Some(page.into());
    assert_eq!(url.len(), 60);
    let len = encoded(&usual, Duration::ZERO).len();
    assert!(len <= 150, "{len} bytes");
    let start = encoded(&job(0, url), Duration::ZERO).len();
    assert!(start <= 110, "{start} bytes");
}

#[test]
fn a_record_cut_anywhere_is_an_error_or_a_job_of_fewer_fields() {
    let bytes = encoded(&full(), Duration::from_secs(1));
    for len in 0..bytes.len() {
        // At the end of a field nothing tells that others followed; stores keep the record's length.
        if let Err(error) = decode(&bytes[..len]) {
            assert!(matches!(error, RecordError::Short { .. }), "{len}: {error}");
        }
    }
    assert!((0..100).all(|len| decode(&bytes[..len]).is_err()), "the core is never left out");
}

#[test]
fn a_newer_or_foreign_record_is_told_from_a_damaged_one() {
    let mut bytes = encoded(&job(0, "http://a/"), Duration::ZERO);
    let newer = VERSION + 1;
    bytes[0] = newer;
    assert_eq!(decode(&bytes).unwrap_err(), RecordError::Newer { found: newer });
    assert_eq!(peek(&bytes).unwrap_err(), RecordError::Newer { found: newer });
    bytes[0] = 0;
    assert!(matches!(decode(&bytes), Err(RecordError::Damaged { field: "version", .. })));
    assert_eq!(decode(&[]).unwrap_err(), RecordError::Short { field: "version" });
}

#[test]
fn what_is_not_known_is_not_passed_over() {
    let plain = encoded(&job(0, "http://a/"), Duration::ZERO);
    for tag in [wire::MAX_BYTES + 1, 255] {
        let mut special = job(0, "http://a/");
        special.request.retries(1);
        let mut bytes = encoded(&special, Duration::ZERO);
        bytes.extend([tag, 1, 0]);
        assert_eq!(decode(&bytes).unwrap_err(), RecordError::UnknownField { tag });
    }
    let damaged: [(&[u8], &str); 6] = [
        (&[wire::HOPS, 1, 1, wire::HOPS, 1, 1], "order of fields"),
        (&[wire::HOPS, 1, 1, wire::ATTEMPTS, 1, 1], "order of fields"),
        (&[wire::HOPS, 2, 1, 0], "hops"),
        (&[wire::HOPS, 5, 0xff, 0xff, 0xff, 0xff, 0x7f], "hops"),
        (&[wire::PARENT_URL, 1, 100], "page URL"),
        (&[wire::RETRIES, 1, 1], "flags"),
    ];
    for (rest, at) in damaged {
        match decode(&[&plain, rest].concat()) {
            Err(RecordError::Damaged { field, .. }) => assert_eq!(field, at),
            other => panic!("{at}: {other:?}"),
        }
    }
}

#[test]
fn values_that_nest_too_deep_are_told_when_they_are_read() {
    let nested = |levels: usize| {
        let mut deep = job(0, "http://a/");
        deep.request.meta("deep", (1..levels).fold(Value::Null, |inner, _| vec![inner].into()));
        deep
    };
    for levels in [2, 127, 128] {
        let job = nested(levels);
        assert_same(&decode(&encoded(&job, Duration::ZERO)).unwrap().0, &job);
    }
    for levels in [129, 1_500] {
        let error = decode(&encoded(&nested(levels), Duration::ZERO)).unwrap_err().to_string();
        assert!(error.contains("meta is damaged: it nests too deep to be kept, at most 128 levels are"), "{error}");
    }
    // As no version wrote it.
    let whole = encoded(&nested(2), Duration::ZERO);
    let meta = [&[0x81, 0xa1, b'a'][..], &[0x91; 10_000]].concat();
    let bytes = [&whole[..whole.len() - 9], &[0x93, 0x4e], &meta].concat();
    assert!(matches!(decode(&bytes), Err(RecordError::Damaged { field: "meta", .. })), "{:?}", decode(&bytes));
}

#[test]
fn lengths_that_are_told_are_not_believed() {
    let mut special = job(0, "http://a/");
    special.request.meta("a", 1);
    let whole = encoded(&special, Duration::ZERO);
    let start = whole.len() - rmp_serde::to_vec(&json!({"a": 1})).unwrap().len() - 1;
    // Of texts, bytes, lists and maps that would take gibibytes.
    for lead in [0xdb, 0xc6, 0xdd, 0xdf, 0xc9] {
        let meta = [0x81, 0xa1, b'a', lead, 0xff, 0xff, 0xff, 0xff, 0, 0];
        let bytes = [&whole[..start], &[u8::try_from(meta.len()).unwrap()], &meta].concat();
        assert!(matches!(decode(&bytes), Err(RecordError::Damaged { field: "meta", .. })), "{lead:#x}");
    }
    let long = [&whole[..start], &[0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 1]].concat();
    assert_eq!(decode(&long).unwrap_err(), RecordError::Short { field: "meta" });
}

#[test]
fn errors_show_no_value_of_the_request() {
    let mut bytes = encoded(&full(), Duration::ZERO);
    let at = bytes.windows(3).position(|w| w == b"sid").unwrap();
    bytes[at] = 0xff;
    let error = decode(&bytes).unwrap_err().to_string();
    assert!(error.contains("cookies") && !error.contains('ä'), "{error}");
}

fn hex(text: &str) -> Vec<u8> {
    let digits: Vec<u8> = text.bytes().filter(u8::is_ascii_hexdigit).collect();
    digits.chunks(2).map(|pair| u8::from_str_radix(std::str::from_utf8(pair).unwrap(), 16).unwrap()).collect()
}

fn to_hex(bytes: &[u8]) -> String {
    bytes.chunks(48).map(|line| line.iter().map(|byte| format!("{byte:02x}")).collect::<String>() + "\n").collect()
}

fn url() -> impl Strategy<Value = Url> {
    let hosts = ["a", "shop.example", "127.0.0.1", "[::1]", "münchen.example"];
    let web = (
        "https?",
        option::of("[a-z]{1,3}:[a-z%]{0,3}"),
        prop::sample::select(hosts.to_vec()),
        option::of(1_u16..),
        "[ -~ä]{0,60}",
    )
        .prop_map(|(scheme, user, host, port, rest)| {
            let (user, port) = (user.map(|u| u + "@").unwrap_or_default(), port.map(|p| format!(":{p}")).unwrap_or_default());
            format!("{scheme}://{user}{host}{port}/{rest}")
        });
    let other = prop_oneof![Just("data:,x".to_owned()), Just("mailto:x@y".to_owned()), Just("file:///etc/x".to_owned())];
    prop_oneof![9 => web, 1 => other].prop_filter_map("a URL", |text| Url::parse(&text).ok())
}

fn value() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<u64>().prop_map(Value::from),
        any::<f64>().prop_map(Value::from),
        ".{0,12}".prop_map(Value::from),
    ];
    leaf.prop_recursive(3, 16, 4, |inner| {
        prop_oneof![vec(inner.clone(), 0..4).prop_map(Value::from), map(inner).prop_map(Value::from)]
    })
}

fn map(inner: impl Strategy<Value = Value>) -> impl Strategy<Value = Map<String, Value>> {
    vec((".{0,8}", inner), 0..4).prop_map(Map::from_iter)
}

prop_compose! {
    fn extra()(
        method in prop::sample::select(vec!["GET", "POST", "HEAD", "PURGE-IT"]),
        headers in vec(("[a-c]{1,2}", vec(0x80_u8.., 0..200), any::<bool>()), 0..5),
        cookies in vec((".{0,9}", ".{0,9}"), 0..3),
        body in vec(any::<u8>(), 0..300),
        meta in map(value()),
        timeout in option::of(any::<Duration>()),
        retries in option::of(any::<u32>()),
        max_bytes in option::of(any::<u64>()),
        lease in option::of((".{0,9}", ".{0,9}")),
        session_key in option::of(".{0,9}"),
        flags in any::<[bool; 5]>(),
        statuses in prop_oneof![
            Just(HandleStatus::Successful), Just(HandleStatus::All), vec(any::<u16>(), 0..4).prop_map(HandleStatus::Also)
        ],
    ) -> Extra {
        let mut all = HeaderMap::new();
        for (name, value, is_sensitive) in headers {
            let mut value = HeaderValue::from_bytes(&value).unwrap();
            value.set_sensitive(is_sensitive);
            all.append(HeaderName::try_from(name).unwrap(), value);
        }
        Extra {
            method: method.parse().unwrap(),
            headers: all,
            cookies,
            body: body.into(),
            meta,
            timeout,
            retries,
            max_bytes,
            lease: lease.map(|(site, client)| LeaseTarget { site, client }),
            session_key,
            keep_lease: flags[0],
            handle_status: statuses,
            no_redirect: flags[1],
            ignore_robots: flags[2],
            allow_offsite: flags[3],
            dont_cache: flags[4],
        }
    }
}

prop_compose! {
    fn any_job()(
        (id, key, parent) in any::<(u128, u128, Option<u128>)>(),
        is_robots in any::<bool>(),
        (url, page, first) in (url(), option::of(url()), option::of(".{0,40}")),
        share in any::<bool>(),
        step in vec(any::<u8>(), 0..40),
        (priority, unfiltered) in any::<(i32, bool)>(),
        referring in option::of((0_usize..8, any::<bool>())),
        extra in option::of(extra()),
        (depth, attempts, hops) in any::<(u32, u32, u32)>(),
        chain in vec(any::<u128>(), 0..20),
    ) -> Job {
        let page = if share { Some(format!("{url}/and/more")) } else { page.map(String::from) };
        Job {
            id: RequestId(id),
            key,
            kind: if is_robots { JobKind::Robots } else { JobKind::Page },
            request: Request::assemble(url, StepData::from_bytes(&step), priority, unfiltered, referring.map(|(n, own)| Referring { policy: ReferrerPolicy::ALL[n], own }), extra),
            parent: parent.map(RequestId),
            parent_url: page.map(Into::into),
            depth, attempts, hops, chain,
            first_url: first.map(Into::into),
        }
    }
}

proptest! {
    #[test]
    fn any_job_comes_back_as_it_went(job in any_job(), not_before in any::<Duration>()) {
        let bytes = encoded(&job, not_before);
        let (read, at) = decode(&bytes).unwrap();
        assert_same(&read, &job);
        prop_assert_eq!(at, not_before);
        prop_assert_eq!(encoded(&read, at), bytes, "there is one way to write a job");
    }

    #[test]
    fn damaged_records_never_panic(job in any_job(), len in any::<prop::sample::Index>(), flips in vec((any::<prop::sample::Index>(), any::<u8>()), 0..4)) {
        let mut bytes = encoded(&job, Duration::ZERO);
        for (at, byte) in flips {
            let at = at.index(bytes.len());
            bytes[at] = byte;
        }
        bytes.truncate(len.index(bytes.len() + 1));
        if let Ok(peek) = peek(&bytes) {
            prop_assert!(peek.url.contains(peek.host));
        }
        drop(decode(&bytes));
    }

    #[test]
    fn noise_never_panics(mut bytes in vec(any::<u8>(), 0..300)) {
        drop(decode(&bytes));
        if let Some(first) = bytes.first_mut() {
            *first = VERSION;
        }
        drop(decode(&bytes));
    }
}
