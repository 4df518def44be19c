//! The inputs before their changes, and the changes.

use base64::Engine as _;
use serde_json::Value;

use super::Kind;

/// Longest input.
const MOST_BYTES: usize = 64 * 1024;

/// Numbers by splitmix64.
pub(crate) struct Rng(u64);

impl Rng {
    pub(crate) fn new(seed: u64) -> Self {
        Self(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ 0x2545_f491)
    }

    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// Less than `most`; 0 if that is 0.
    #[allow(clippy::cast_possible_truncation, reason = "less than a length")]
    pub(crate) fn below(&mut self, most: usize) -> usize {
        (self.next() >> 11) as usize % most.max(1)
    }

    fn byte(&mut self) -> u8 {
        self.next().to_be_bytes()[0]
    }

    pub(crate) fn one_in(&mut self, count: usize) -> bool {
        self.below(count) == 0
    }

    pub(crate) fn pick<'a, T: ?Sized>(&mut self, from: &[&'a T]) -> &'a T {
        from[self.below(from.len())]
    }
}

/// Inputs of one kind.
pub(super) struct Corpus {
    inputs: Vec<Vec<u8>>,
    /// Pieces that mean something in this kind.
    words: &'static [&'static [u8]],
}

impl Corpus {
    pub(super) fn of(kind: Kind) -> Self {
        let (inputs, words) = match kind {
            Kind::Robots => (texts(include_str!("../../../tests/data/robots.json"), &["robots"]), ROBOTS),
            Kind::Sitemap => (texts(include_str!("../../../tests/data/sitemaps.json"), &["body"]), SITEMAP),
            Kind::SetCookie => {
                let mut inputs = texts(include_str!("../../../tests/data/cookies_http_state.json"), &["set_cookie"]);
                inputs.extend(texts(include_str!("../../../tests/data/cookie_parse.json"), &["input"]));
                let dates = texts(include_str!("../../../tests/data/cookie_dates.json"), &["input"]);
                inputs.extend(dates.iter().map(|date| [b"a=b; Expires=", date.as_slice()].concat()));
                (inputs, COOKIE)
            }
            Kind::Location => {
                let mut inputs = texts(include_str!("../../../tests/data/url_whatwg.json"), &["input"]);
                inputs.extend(texts(include_str!("../../../tests/data/url_hosts_idna.json"), &["host"]));
                inputs.extend(texts(include_str!("../../../tests/data/url_canonical.json"), &["url"]));
                (inputs, LOCATION)
            }
            Kind::ContentType => {
                (texts(include_str!("../../../tests/data/http_content_type.json"), &["input", "headers"]), CONTENT_TYPE)
            }
            Kind::Html => {
                let mut inputs = texts(include_str!("../../../tests/data/html_tree.json"), &["data"]);
                inputs.extend(texts(include_str!("../../../tests/data/encoding_sniffing.json"), &["body"]));
                (inputs, HTML)
            }
        };
        assert!(inputs.len() > 50, "{kind:?} has {} inputs", inputs.len());
        Self { inputs, words }
    }

    /// One of them with changes.
    pub(super) fn changed(&self, rng: &mut Rng) -> Vec<u8> {
        let mut bytes = self.inputs[rng.below(self.inputs.len())].clone();
        for _ in 0..1 + rng.below(8) {
            self.change(&mut bytes, rng);
            bytes.truncate(MOST_BYTES);
        }
        bytes
    }

    fn change(&self, bytes: &mut Vec<u8>, rng: &mut Rng) {
        let at = rng.below(bytes.len() + 1);
        let end = (at + 1 + rng.below(24)).min(bytes.len());
        match rng.below(12) {
            0 if at < bytes.len() => bytes[at] = rng.byte(),
            1 if at < bytes.len() => bytes[at] ^= 1 << rng.below(8),
            2 => bytes.truncate(at),
            3 => drop(bytes.drain(at..end)),
            4 | 5 => drop(bytes.splice(at..at, rng.pick(self.words).iter().copied())),
            6 => drop(bytes.splice(at..end, rng.pick(self.words).iter().copied())),
            // The beginning of one and the end of another.
            7 => {
                let other = &self.inputs[rng.below(self.inputs.len())];
                bytes.truncate(at);
                bytes.extend_from_slice(&other[rng.below(other.len() + 1)..]);
            }
            // A part, many times.
            8 => {
                let part = bytes[at..end].to_vec();
                let times = if rng.one_in(20) { 4_000 } else { rng.below(40) };
                drop(bytes.splice(at..at, part.repeat(times)));
            }
            9 => drop(bytes.splice(at..at, rng.pick(self.words).repeat(rng.below(200)))),
            10 => {
                let noise: Vec<u8> = (0..rng.below(40)).map(|_| rng.byte()).collect();
                drop(bytes.splice(at..at, noise));
            }
            _ => {
                let part = bytes[at..end].to_vec();
                let to = rng.below(bytes.len() + 1);
                drop(bytes.splice(to..to, part));
            }
        }
    }
}

/// The texts and bytes of these fields of a table.
fn texts(table: &str, fields: &[&str]) -> Vec<Vec<u8>> {
    let table: Value = serde_json::from_str(table).unwrap();
    let cases = table.get("cases").or_else(|| table.get("entries")).unwrap().as_array().unwrap();
    let mut texts = Vec::new();
    for case in cases {
        for field in fields {
            match &case[*field] {
                Value::String(text) => texts.push(text.as_bytes().to_vec()),
                Value::Array(list) => texts.extend(list.iter().filter_map(Value::as_str).map(|text| text.as_bytes().to_vec())),
                _ => {}
            }
            if let Some(encoded) = case[format!("{field}_b64")].as_str() {
                texts.push(base64::engine::general_purpose::STANDARD.decode(encoded).unwrap());
            }
        }
    }
    texts
}

const ROBOTS: &[&[u8]] = &[
    b"User-agent: *\n",
    b"user-agent:",
    b"Disallow: /",
    b"Allow:",
    b"*",
    b"$",
    b"#",
    b":",
    b"\r",
    b"\n",
    b"\xef\xbb\xbf",
    b"%",
    b"%2",
    b"%zz",
    b"%2A",
    b"%24",
    b"Crawl-delay: 1e308\n",
    b"Crawl-delay: -1",
    b"Sitemap: ",
    b"Request-rate: 1/0s",
    b"Visit-time: 2400-0000",
    b"\0",
    b"\xff\xfe",
    b"/*/*/*/*a",
    b"????",
    b"User-agent: Bot/1.0 x\n",
    b" \t ",
];

const SITEMAP: &[&[u8]] = &[
    b"<loc>",
    b"</loc>",
    b"<url>",
    b"</url>",
    b"<urlset>",
    b"</urlset>",
    b"<sitemapindex>",
    b"<sitemap>",
    b"<![CDATA[",
    b"]]>",
    b"<!--",
    b"-->",
    b"&",
    b"&amp;",
    b"&#x110000;",
    b"&#0;",
    b"&lt",
    b"&x;",
    b"<?xml version='1.0' encoding='utf-16'?>",
    b"<!DOCTYPE a [<!ENTITY x 'xxxxxxxx'>]>",
    b"<xhtml:link rel='alternate' href='",
    b"'/>",
    b"<rss><channel><item><link>",
    b"<feed><entry><link href=\"",
    b"<lastmod>2026-99-99T25:61Z",
    b"http://a.test/",
    b"\x1f\x8b\x08\x00\0\0\0\0\0\x03",
    b"\n",
    b"<",
    b">",
    b"\0",
    b"\xff\xfe",
    b"<a xmlns:a='",
    b"<image:loc>",
    b"<news:news>",
];

const COOKIE: &[&[u8]] = &[
    b";",
    b"=",
    b"; ",
    b"; Domain=",
    b".test",
    b"example.org",
    b"co.uk",
    b"; Path=/",
    b"; Path=",
    b"; Secure",
    b"; HttpOnly",
    b"; Max-Age=",
    b"-",
    b"99999999999999999999",
    b"; Expires=",
    b"Wed, 31 Feb 9999 23:59:60 GMT",
    b"; SameSite=None",
    b"__Host-",
    b"__Secure-",
    b"\"",
    b",",
    b"\t",
    b"\x7f",
    b"\xe9",
    b"\xc3\xa9",
    b"xn--a",
    b"[::1]",
    b"127.0.0.1",
    b"0",
    b"\0",
    b"\r\n",
];

const LOCATION: &[&[u8]] = &[
    b"http://",
    b"https:",
    b"//",
    b"///",
    b"\\",
    b"/",
    b"..",
    b".",
    b"%2e",
    b"%",
    b"%zz",
    b"?",
    b"#",
    b"@",
    b":",
    b":99999",
    b"[",
    b"]",
    b"[::ffff:1.2.3.4]",
    b"0x7f.1",
    b"999999999999",
    b"xn--",
    b"\xc3\x9f",
    b"\xe2\x80\x8d",
    b"\xff",
    b"\0",
    b"\t",
    b"\r\n",
    b" ",
    b"javascript:",
    b"file:///",
    b"data:,",
    b"|",
    b";",
    b"&",
    b"=",
    b"+",
    b"\xe2\x80\xae",
    b"\xf0\x9f\x98\x80",
];

const CONTENT_TYPE: &[&[u8]] = &[
    b"text/html",
    b"/",
    b";",
    b"charset=",
    b"; charset=\"",
    b"\\\"",
    b"\"",
    b"\\",
    b",",
    b", text/plain",
    b"*/*",
    b"utf-16",
    b"utf-7",
    b"x-user-defined",
    b"gbk",
    b"iso-2022-jp",
    b" ",
    b"\t",
    b"\xe9",
    b"\xff",
    b"=",
    b"\0",
    b"\r\n",
    b"replacement",
];

const HTML: &[&[u8]] = &[
    b"<meta charset=",
    b"<meta http-equiv=content-type content='text/html; charset=",
    b"utf-16",
    b"koi8-r",
    b"iso-2022-jp",
    b"<?xml encoding='",
    b"<!--",
    b"-->",
    b"<script>",
    b"</script>",
    b"<table>",
    b"<a href=x>",
    b"</p>",
    b"<b><i>",
    b"<svg>",
    b"<math>",
    b"<template>",
    b"<select>",
    b"<![CDATA[",
    b"&#x0;",
    b"&notin",
    b"<",
    b">",
    b"'",
    b"\"",
    b"=",
    b"/",
    b"\0",
    b"\xef\xbb\xbf",
    b"\xff\xfe",
    b"\x1b$B",
    b"\xed\xa0\x80",
    b"<base href='//[",
    b"<plaintext>",
    b"<body>",
    b"<a a=1 ",
    b"&",
    b"&amp",
    b"<form id=f>",
    b"</form>",
    b"<input form=f name=n value=v>",
    b"<select name=s><option selected>",
    b"<textarea name=t>",
    b"<p itemscope itemref=e>",
    b"<p id=e itemprop=p itemscope itemtype='a b c'>",
    b" itemref='e e f' ",
    b"<b itemprop='x y'>",
    b"<script type=application/ld+json>[{\"a\":[",
    b"<meta property=og:image content=x>",
    b"<base href=/a/b/c/d>",
    b"<article>",
    b"<p>words, and more of them, that may be the text of a page.",
    b"<div hidden>",
    b"<pre>",
];
