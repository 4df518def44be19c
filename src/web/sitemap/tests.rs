#![allow(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing)]

use std::io::Write as _;
use std::time::{Duration, Instant};

use base64::Engine as _;
use flate2::Compression;
use flate2::write::GzEncoder;
use proptest::prelude::*;
use serde_json::{Map, Value, json};

use super::*;

/// Cases that are answered otherwise, with the reason.
const EXCEPTIONS: &[(&str, &str)] = &[];

fn url(text: &str) -> Url {
    Url::parse(text).unwrap()
}

fn body(case: &Value) -> Vec<u8> {
    match case["body_b64"].as_str() {
        Some(encoded) => base64::engine::general_purpose::STANDARD.decode(encoded).unwrap(),
        None => case["body"].as_str().unwrap().as_bytes().to_vec(),
    }
}

fn name(kind: Kind) -> &'static str {
    match kind {
        Kind::UrlSet => "urlset",
        Kind::Index => "sitemapindex",
        Kind::Text => "text",
        Kind::Rss => "rss",
        Kind::Atom => "atom",
        Kind::Invalid => "invalid",
    }
}

/// An entry as the table writes it.
fn written(entry: &Entry, kind: Kind, document: &Url, expected: &Value) -> Value {
    let mut out = Map::new();
    out.insert("loc".into(), json!(entry.loc));
    if !expected["resolved"].is_null() {
        out.insert("resolved".into(), json!(entry.url(document).map(String::from)));
    }
    for (key, value) in [("lastmod", &entry.lastmod), ("changefreq", &entry.changefreq), ("priority", &entry.priority)] {
        if let Some(value) = value {
            out.insert(key.into(), json!(value));
        }
    }
    let alternates: Vec<_> = entry.alternates.iter().map(|alternate| json!([alternate.hreflang, alternate.href])).collect();
    if !alternates.is_empty() {
        out.insert("alternates".into(), json!(alternates));
    }
    if !entry.images.is_empty() {
        out.insert("images".into(), json!(entry.images));
    }
    let present = |fields: &[(&str, &Option<String>)]| -> Value {
        fields.iter().filter_map(|(key, value)| Some(((*key).to_owned(), json!(value.as_ref()?)))).collect::<Map<_, _>>().into()
    };
    let video = |video: &Video| {
        present(&[
            ("thumbnail_loc", &video.thumbnail_loc),
            ("title", &video.title),
            ("content_loc", &video.content_loc),
            ("player_loc", &video.player_loc),
        ])
    };
    if !entry.videos.is_empty() {
        out.insert("videos".into(), entry.videos.iter().map(video).collect());
    }
    if let Some(news) = &entry.news {
        let fields = [
            ("name", &news.name),
            ("language", &news.language),
            ("publication_date", &news.publication_date),
            ("title", &news.title),
        ];
        out.insert("news".into(), present(&fields));
    }
    let usual = if kind == Kind::Index { Target::Sitemap } else { Target::Page };
    if entry.target != usual {
        out.insert("entry".into(), json!(if entry.target == Target::Sitemap { "sitemap" } else { "url" }));
    }
    out.into()
}

/// What a case says beyond an answer.
fn failures(case: &Value) -> Vec<String> {
    let (bytes, document) = (body(case), url(case["url"].as_str().unwrap()));
    let mut sitemap = Sitemap::new(&bytes, case["content_type"].as_str(), &document, Limits::default());
    let kind = sitemap.kind();
    let entries: Vec<Entry> = sitemap.by_ref().collect();
    let expected = case["expected"].as_object().unwrap();
    let mut wrong = Vec::new();
    for (key, wanted) in expected {
        let got = match key.as_str() {
            "kind" => json!(name(kind)),
            "entries" => {
                let rows = wanted.as_array().unwrap();
                let row = |at: usize| rows.get(at).cloned().unwrap_or_default();
                entries.iter().enumerate().map(|(at, entry)| written(entry, kind, &document, &row(at))).collect()
            }
            "must_contain" => {
                let has = |loc: &&Value| entries.iter().any(|entry| entry.loc == loc.as_str().unwrap());
                wanted.as_array().unwrap().iter().filter(has).cloned().collect()
            }
            "must_not_expand" => json!(entries.iter().all(|entry| entry.loc.len() < 60)),
            "max_output_bytes" => json!(wanted.as_u64().unwrap().max(entries.iter().map(|e| e.loc.len() as u64).sum())),
            "min_entries" => json!(wanted.as_u64().unwrap().min(entries.len() as u64)),
            "first" => json!(entries[0].loc),
            "lastmod_instant" => {
                let at = |text: &str| text.parse::<Timestamp>().unwrap();
                if entries[0].modified() == wanted.as_str().map(at) { wanted.clone() } else { json!(entries[0].modified()) }
            }
            "priority_values" => {
                let wanted = wanted.as_array().unwrap();
                let same = |(at, value): (usize, &Value)| {
                    let ours = entries[at].priority_value();
                    if ours.map(f64::from) == value.as_f64() { value.clone() } else { json!(ours) }
                };
                wanted.iter().enumerate().map(same).collect()
            }
            "lenient" => wanted.clone(),
            other => panic!("the table has a key this test does not know: {other}"),
        };
        if got != *wanted {
            wrong.push(format!("{key}: {got}, should be {wanted}"));
        }
    }
    wrong
}

#[test]
fn every_case_of_the_collection_is_read_as_it_says() {
    let data: Value = serde_json::from_str(include_str!("../../../tests/data/sitemaps.json")).unwrap();
    let cases = data["cases"].as_array().unwrap();
    let mut report = Vec::new();
    for case in cases {
        let id = case["id"].as_str().unwrap();
        let wrong = failures(case);
        let excepted = EXCEPTIONS.iter().any(|(known, _)| *known == id);
        if wrong.is_empty() == excepted {
            report.push(format!("{id} excepted={excepted}\n  {}", wrong.join("\n  ")));
        }
    }
    assert_eq!(cases.len(), 105);
    assert!(report.is_empty(), "{} cases:\n{}", report.len(), report.join("\n"));
}

fn locs(bytes: &[u8]) -> Vec<String> {
    Sitemap::new(bytes, None, &url("http://a.test/sitemap.xml"), Limits::default()).map(|entry| entry.loc).collect()
}

fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::best());
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}

fn urlset(count: usize) -> Vec<u8> {
    let urls: String = (0..count).map(|n| format!("<url><loc>http://a.test/{n}</loc></url>")).collect();
    format!("<urlset>{urls}</urlset>").into_bytes()
}

/// Reads to the end: entries, why it was cut.
fn read(bytes: &[u8], limits: Limits) -> (usize, Option<Cut>) {
    let mut sitemap = Sitemap::new(bytes, None, &url("http://a.test/sitemap.xml"), limits);
    let count = sitemap.by_ref().count();
    (count, sitemap.cut())
}

#[test]
fn case_s02_entities_and_cdata_are_read_whole() {
    let xml = "<urlset xmlns='http://www.sitemaps.org/schemas/sitemap/0.9'><url><loc>\n  \
        http://a.test/s?y=2017&amp;mm=07&amp;dd=11\n</loc></url><url><loc><![CDATA[http://a.test/c?a=1&b=2]]></loc></url>\
        <url><x:loc xmlns:x='http://other.test/ns'>http://a.test/img</x:loc><loc>http://a.test/3</loc></url></urlset>";
    assert_eq!(locs(xml.as_bytes()), ["http://a.test/s?y=2017&mm=07&dd=11", "http://a.test/c?a=1&b=2", "http://a.test/3"]);
}

#[test]
fn gzip_is_undone_once_or_twice_by_its_first_bytes() {
    let plain = urlset(2);
    let once = gzip(&plain);
    let twice = gzip(&once);
    for bytes in [&plain, &once, &twice] {
        assert_eq!(locs(bytes), ["http://a.test/0", "http://a.test/1"]);
    }
    let thrice = Sitemap::new(&gzip(&twice), None, &url("http://a.test/"), Limits::default()).kind();
    assert_eq!(thrice, Kind::Invalid, "two layers occur, more are an attack");
}

#[test]
fn every_layer_is_bounded_and_says_that_it_was_cut() {
    let all = urlset(3_000);
    let limits = Limits { bytes: 20_000, ..Limits::default() };
    for bytes in [all.clone(), gzip(&all), gzip(&gzip(&all))] {
        let (count, cut) = read(&bytes, limits);
        assert!((300..600).contains(&count), "{count}");
        assert_eq!(cut, Some(Cut::Bytes));
    }
    let exact = Limits { bytes: all.len() as u64, ..Limits::default() };
    for bytes in [all.clone(), gzip(&all), gzip(&gzip(&all))] {
        assert_eq!(read(&bytes, exact), (3_000, None));
    }
    assert_eq!(read(&all, Limits { entries: 2_999, ..Limits::default() }), (2_999, Some(Cut::Entries)));
    assert_eq!(read(&all, Limits { entries: 3_000, ..Limits::default() }), (3_000, None));
}

#[test]
fn gzip_members_without_content_are_passed_over_up_to_a_number() {
    let (all, empty) = (gzip(&urlset(2)), gzip(b""));
    for (count, entries, cut) in [(1, 2, None), (999, 2, None), (1_000, 0, Some(Cut::Damaged)), (5_000, 0, Some(Cut::Damaged))] {
        let bytes = [empty.repeat(count), all.clone()].concat();
        assert_eq!(read(&bytes, Limits::default()), (entries, cut), "{count}");
    }
    // Twice packed, and behind what counts.
    assert_eq!(read(&gzip(&[empty.repeat(1_000), all.clone()].concat()), Limits::default()), (0, Some(Cut::Damaged)));
    let first = b"<urlset><url><loc>http://a.test/1</loc></url>";
    let rest = b"<url><loc>http://a.test/2</loc></url></urlset>";
    for (count, entries, cut) in [(999, 2, None), (1_000, 1, Some(Cut::Damaged))] {
        let bytes = [gzip(first), empty.repeat(count), gzip(rest)].concat();
        assert_eq!(read(&bytes, Limits::default()), (entries, cut), "{count}");
    }
}

#[test]
fn a_bomb_costs_no_more_than_its_bound() {
    let mut inner = b"<urlset><url><loc>http://a.test/1</loc></url>".to_vec();
    inner.resize(20 * 1024 * 1024, b' ');
    let bomb = gzip(&gzip(&inner));
    assert!(bomb.len() < 1024);
    let begun = Instant::now();
    assert_eq!(read(&bomb, Limits { bytes: 4 * 1024 * 1024, ..Limits::default() }), (1, Some(Cut::Bytes)));
    assert!(begun.elapsed() < Duration::from_secs(10));
}

#[test]
fn a_piece_of_markup_without_an_end_is_not_gathered() {
    for opening in ["<!--", "<![CDATA[", "<a ", "<url><loc>", "<!DOCTYPE x [", "<?x "] {
        let mut bytes = format!("<urlset><url><loc>http://a.test/1</loc></url>{opening}").into_bytes();
        bytes.resize(3 * 1024 * 1024, b'x');
        assert_eq!(read(&bytes, Limits::default()), (1, Some(Cut::Bytes)), "{opening}");
    }
}

#[test]
fn a_stream_that_breaks_off_gives_what_came_before() {
    let all = urlset(3_000);
    let packed = gzip(&all);
    let (count, cut) = read(&packed[..packed.len() / 2], Limits::default());
    assert!(count > 100 && count < 3_000, "{count}");
    assert_eq!(cut, Some(Cut::Damaged));
    let mut wrong_sum = packed.clone();
    let at = wrong_sum.len() - 8;
    wrong_sum[at] ^= 0xff;
    assert_eq!(read(&wrong_sum, Limits::default()), (3_000, Some(Cut::Damaged)));
    let inside = gzip(&packed[..packed.len() / 2]);
    assert_eq!(read(&inside, Limits::default()), (count, Some(Cut::Damaged)));
}

#[test]
fn unclosed_elements_end_where_the_next_one_begins() {
    let table = [
        ("<urlset><url><loc>http://a.test/1<lastmod>2024</lastmod></url><url><loc>http://a.test/2", 1),
        ("<urlset><url><loc>http://a.test/1</loc><x:link><url><loc>http://a.test/2</loc></urlset>", 2),
        ("<urlset></b><url></loc><loc>http://a.test/1</loc></url></p></urlset>", 1),
        ("<urlset><url><loc>http://a.test/1</loc></url></urlset><url><loc>http://a.test/2</loc></url>", 1),
        ("<rss><channel><item><link>http://a.test/1<item><link>http://a.test/2</link></channel></rss>", 1),
    ];
    for (xml, count) in table {
        assert_eq!(locs(xml.as_bytes()).len(), count, "{xml}");
    }
    let deep = format!("<urlset>{}<url><loc>http://a.test/1</loc></url>", "<a>".repeat(100_000));
    assert_eq!(locs(deep.as_bytes()).len(), 1);
}

#[test]
fn links_to_other_languages_need_no_end() {
    let links: String = (0..70).map(|n| format!("<xhtml:link rel=alternate hreflang=l{n} href=http://a.test/{n}>")).collect();
    let closed = links.replace('>', "/>");
    let foreign = "<link xmlns='http://www.w3.org/1999/xhtml' rel=alternate href=http://a.test/x>";
    for (links, alternates) in [(links.as_str(), 70), (&closed, 70), (foreign, 0)] {
        let entry = |n: u32| format!("<url>{links}<loc>http://a.test/{n}</loc><lastmod>2024</lastmod></url>");
        let xml = format!("<urlset>{}{}{}</urlset>", entry(1), entry(2), entry(3));
        let document = url("http://a.test/sitemap.xml");
        let mut sitemap = Sitemap::new(xml.as_bytes(), None, &document, Limits::default());
        let entries: Vec<Entry> = sitemap.by_ref().collect();
        let found: Vec<_> = entries.iter().map(|e| (e.loc.as_str(), e.lastmod.as_deref(), e.alternates.len())).collect();
        let expected = ["http://a.test/1", "http://a.test/2", "http://a.test/3"].map(|loc| (loc, Some("2024"), alternates));
        assert_eq!(found, expected, "{links}");
        assert_eq!(sitemap.cut(), None);
    }
}

#[test]
fn an_entry_ends_whatever_was_left_open_before_it() {
    let left_open = "<b>".repeat(70);
    let xml = format!("<urlset><url><loc>http://a.test/1</loc>{left_open}<url><loc>http://a.test/2</loc></b></url></urlset>");
    assert_eq!(read(xml.as_bytes(), Limits::default()), (2, None));
    let inside = format!("<urlset><x xmlns='http://other.test/'>{left_open}<url><loc>http://a.test/1</loc></url>");
    assert_eq!(locs(inside.as_bytes()).len(), 0, "an entry of another namespace is none, however deep it is");
}

#[test]
fn attributes_have_their_references_resolved() {
    let href = "http://a.test/?a=1&amp;b=2&#38;c=&#x33;&d=&quot;&none;&;&&amp;";
    let xml = format!("<urlset><url><loc>http://a.test/1</loc><l:link rel=alternate href='{href}'/></url></urlset>");
    let entry = Sitemap::new(xml.as_bytes(), None, &url("http://a.test/"), Limits::default()).next().unwrap();
    assert_eq!(entry.alternates[0].href, "http://a.test/?a=1&b=2&c=3&d=\"&none;&;&&");
}

#[test]
fn rss_1_and_dublin_core_dates_are_read() {
    let xml = "<rdf:RDF xmlns:rdf='http://www.w3.org/1999/02/22-rdf-syntax-ns#' xmlns='http://purl.org/rss/1.0/' \
        xmlns:dc='http://purl.org/dc/elements/1.1/'><channel><link>http://a.test/</link></channel>\
        <item><link>http://a.test/1</link><dc:date>2024-02-03</dc:date></item></rdf:RDF>";
    let document = url("http://a.test/feed");
    let entries: Vec<Entry> = Sitemap::new(xml.as_bytes(), None, &document, Limits::default()).collect();
    assert_eq!(entries.len(), 1);
    assert_eq!((entries[0].loc.as_str(), entries[0].lastmod.as_deref()), ("http://a.test/1", Some("2024-02-03")));
}

#[test]
fn too_long_an_address_is_no_entry_and_extensions_are_bounded() {
    let long = format!("<urlset><url><loc>http://a.test/{}</loc></url></urlset>", "x".repeat(MAX_FIELD_BYTES));
    assert_eq!(locs(long.as_bytes()).len(), 0);
    let links = "<x:link rel='alternate' href='http://a.test/de'/>".repeat(MAX_PER_ENTRY + 5);
    let many = format!("<urlset><url><loc>http://a.test/1</loc>{links}</url></urlset>");
    let entry = Sitemap::new(many.as_bytes(), None, &url("http://a.test/"), Limits::default()).next().unwrap();
    assert_eq!(entry.alternates.len(), MAX_PER_ENTRY);
}

/// Pieces of sitemaps, in any order.
fn pieces() -> impl Strategy<Value = Vec<u8>> {
    let piece = prop::sample::select(vec![
        "<urlset>",
        "</urlset>",
        "<url>",
        "</url>",
        "<loc>",
        "</loc>",
        "<loc/>",
        "http://a.test/",
        "&amp;",
        "&",
        "&#x41;",
        "<![CDATA[",
        "]]>",
        "<!--",
        "-->",
        "<rss><channel>",
        "<item>",
        "<link>",
        "</link>",
        "<feed xml:base='x'>",
        "<entry>",
        "<link href='a'/>",
        "<image:image>",
        "<image:loc>",
        "xmlns:image='schemas/sitemap-image'",
        "<",
        ">",
        "'",
        "\n",
        "\u{feff}",
        "<?xml encoding='utf-16'?>",
        "<!DOCTYPE x [<!ENTITY a 'b'>]>",
        "<xhtml:link rel=alternate href=b>",
        "\0",
    ]);
    let bytes = prop_oneof![piece.prop_map(|text| text.as_bytes().to_vec()), prop::collection::vec(any::<u8>(), 0..4)];
    prop::collection::vec(bytes, 0..80).prop_map(|parts| parts.concat())
}

proptest! {
    #[test]
    fn any_bytes_are_read_within_the_bounds(bytes in pieces(), layers in 0..3, cut in 0..50_usize, limit in 0..3_000_u64) {
        let mut served = (0..layers).fold(bytes.clone(), |bytes, _| gzip(&bytes));
        served.truncate(served.len() - cut.min(served.len()));
        let limits = Limits { bytes: limit, entries: 5 };
        let entries: Vec<Entry> = Sitemap::new(&served, None, &url("http://a.test/x/"), limits).collect();
        prop_assert!(entries.len() <= 5);
        let longest = "http://a.test/x/".len() as u64 + 3 * limit;
        for entry in &entries {
            prop_assert!(!entry.loc.is_empty() && entry.loc.len() as u64 <= longest);
        }
        let read = entries.iter().map(|entry| entry.loc.len() as u64).sum::<u64>();
        prop_assert!(read <= 5 * longest);
    }

    #[test]
    fn where_the_body_is_cut_changes_no_entry_before_the_cut(count in 1..20_usize, cut in 0..2_000_usize) {
        let all = urlset(count);
        let head = &all[..cut.min(all.len())];
        let whole = locs(&all);
        let part = locs(head);
        prop_assert!(whole.starts_with(&part));
    }
}
