#![allow(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing)]

use base64::Engine as _;
use proptest::prelude::*;
use serde_json::{Value, json};

use super::*;

/// Cases in which the source departs from RFC 9309: how many of their answers, and why.
const EXCEPTIONS: &[(&str, usize, &str)] = &[
    ("g-googleonly-acceptuseragentuptofirstspace-01", 1, "an agent with a blank is cut on our side too"),
    ("gst-correctness-user-agent-name-01", 1, "an agent with a blank is cut on our side too"),
    ("g-id-encoding-02", 1, UNENCODED),
    ("g-id-encoding-03", 1, UNENCODED),
    ("g-id-encoding-04", 1, UNENCODED),
    ("gst-correctness-non-ascii-paths-02", 1, UNENCODED),
    ("gst-correctness-non-ascii-paths-03", 1, UNENCODED),
    ("gst-correctness-non-ascii-paths-04", 1, UNENCODED),
    ("g-googleonly-indexhtmlisdirectory-01", 1, INDEX_HTML),
    ("gst-correctness-index-page-01", 1, INDEX_HTML),
    ("p-index-html-is-directory-01", 1, INDEX_HTML),
    ("gst-stress-327748-01", 1, ROBOTS_ITSELF),
    ("gst-stress-369883-01", 5, ROBOTS_ITSELF),
    ("gst-stress-860237-01", 1, ROBOTS_ITSELF),
    ("g-product-token-05", 1, "names outside ASCII are written by sites, and matched as they are"),
    ("g-long-line-01", 1, "RFC 9309 knows no bound for a line, only one for the file"),
    ("p-user-agent-precedence-01", 5, WHOLE_TOKEN),
    ("t-robotstxt-org-01", 1, WHOLE_TOKEN),
    ("p-unicode-url-and-useragent-02", 1, "the product token is not searched inside a comment of the agent"),
    ("p-generosity-03", 1, "a wildcard inside an agent name is no rule of RFC 9309"),
    ("p-grouping-unknown-keys-01", 3, UNKNOWN_LINES),
    ("r-grouping-unknown-keys-01", 1, UNKNOWN_LINES),
    ("p-special-symbols-dual-behaviour-01", 2, "RFC 9309 2.2.3: a final $ only marks the end, a literal one is written %24"),
    ("p-with-absolute-urls-01", 1, ABSOLUTE_PATHS),
    ("t-url-matching-01", 3, ABSOLUTE_PATHS),
    ("r-no-leading-user-agent-01", 2, "rules before the first agent line belong to no group"),
    ("r-skip-malformed-line-01", 1, "a missing colon is accepted, as big crawlers do"),
];

const UNENCODED: &str = "RFC 9309 2.2.2 compares both sides after normalising their escapes";
const INDEX_HTML: &str = "a habit of one search engine, not of RFC 9309";
const ROBOTS_ITSELF: &str = "RFC 9309 2.2.2 always allows /robots.txt, and a product token is matched as a whole";
const WHOLE_TOKEN: &str = "RFC 9309 2.2.1 compares whole product tokens, not beginnings";
const UNKNOWN_LINES: &str = "RFC 9309 2.1: unknown lines do not end a group";
const ABSOLUTE_PATHS: &str = "RFC 9309 2.2: a path pattern begins with a slash or a wildcard";

fn body(case: &Value) -> Vec<u8> {
    if let Some(encoded) = case["robots_b64"].as_str() {
        return base64::engine::general_purpose::STANDARD.decode(encoded).unwrap();
    }
    if let Some(template) = case["robots_template"].as_str() {
        return template.replace("{A}", &filler(case)).into_bytes();
    }
    case["robots"].as_str().unwrap_or_default().as_bytes().to_vec()
}

fn filler(case: &Value) -> String {
    case["A"][0].as_str().unwrap_or_default().repeat(usize::try_from(case["A"][1].as_u64().unwrap_or(0)).unwrap())
}

fn absolute(url: &str) -> Url {
    Url::parse("http://example.com/").unwrap().join(url).unwrap()
}

fn rules(case: &Value) -> Robots {
    match case["status"].as_u64().map(|status| policy_for_status(u16::try_from(status).unwrap())) {
        Some(StatusPolicy::AllowAll) => Robots::allow_all(),
        Some(StatusPolicy::DenyForNow) => Robots::deny_all(),
        Some(StatusPolicy::Parse) | None => Robots::parse(&body(case)),
    }
}

/// The rows of a list in a case.
fn rows<'a>(case: &'a Value, key: &str) -> impl Iterator<Item = &'a Value> {
    case[key].as_array().into_iter().flatten()
}

fn agent(row: &Value) -> &str {
    row["agent"].as_str().unwrap()
}

fn window_of(window: &Window) -> [String; 2] {
    [window.from.to_string(), window.to.to_string()]
}

/// The address that somebody means who leaves out the scheme.
fn address(text: &str) -> Url {
    Url::parse(text).unwrap_or_else(|_| match text {
        "" => absolute("/"),
        _ if text.starts_with('/') => absolute(text),
        _ => Url::parse(&format!("http://{text}")).unwrap(),
    })
}

/// What a case says beyond an answer of ours, and how many answers it asks for.
fn failures(case: &Value) -> (Vec<String>, usize) {
    let robots = rules(case);
    let mut wrong = Vec::new();
    let mut asked = 0;
    let mut compare = |what: String, ours: Value, expected: &Value| {
        asked += 1;
        if ours != *expected {
            wrong.push(format!("{what} is {ours}, should be {expected}"));
        }
    };
    for check in rows(case, "checks") {
        let url = check["url"].as_str().unwrap().replace("{A}", &filler(case));
        let ours = robots.allowed(agent(check), &absolute(&url));
        compare(format!("{:?} {url:?} (protego {})", agent(check), check["protego"]), json!(ours), &check["allowed"]);
    }
    for row in rows(case, "crawl_delay") {
        let ours = robots.crawl_delay(agent(row)).map(|delay| delay.as_secs_f64());
        let expected = json!(row["seconds"].as_f64());
        compare(format!("delay of {:?}", agent(row)), json!(ours), &expected);
    }
    for row in rows(case, "request_rate") {
        let ours = robots.request_rate(agent(row)).map(|rate| {
            let [from, to] = rate.window.as_ref().map(window_of).map_or([None, None], |window| window.map(Some));
            json!({ "requests": rate.requests, "seconds": rate.per.as_secs(), "from": from, "to": to })
        });
        compare(format!("rate of {:?}", agent(row)), json!(ours), &row["rate"]);
    }
    for row in rows(case, "visit_time") {
        let ours = robots.visit_time(agent(row)).as_ref().map(window_of);
        compare(format!("hours of {:?}", agent(row)), json!(ours), &row["window"]);
    }
    for spelling in rows(case, "accepts_spellings") {
        let ours = field_named(spelling.as_str().unwrap()).is_some();
        compare(format!("the spelling {spelling}"), json!(ours), &json!(true));
    }
    let bytes = body(case);
    let is_known = |line: &&[u8]| field_and_value(&String::from_utf8_lossy(line)).is_some();
    let all = |count: usize| json!(count);
    let known = lines(without_bom(&bytes)).filter(is_known).count();
    let other = lines(without_bom(&bytes)).filter(|line| !line.is_empty()).count() - known;
    for (key, ours) in [("directives", known), ("unknown_directives", other), ("lines", lines(&bytes).count())] {
        if !case[key].is_null() {
            compare(key.to_owned(), all(ours), &case[key]);
        }
    }
    let text = |key: &str| case[key].as_str().unwrap().to_owned();
    for (key, _) in case.as_object().unwrap() {
        let ours = match key.as_str() {
            "sitemaps" => json!(robots.sitemaps()),
            "match_path" => json!(target_of(&address(&text("url")))),
            "escaped_pattern" => json!(String::from_utf8(normalized_target(&text("pattern")).into_owned()).unwrap()),
            "valid" => json!(!text("product_token").is_empty() && product_token(&text("product_token")) == text("product_token")),
            "robots_url" => json!(Url::parse(&text("page_url")).ok().map(|url| String::from(robots_url(&url)))),
            "id" | "from" | "note" | "google_specific" | "robots" | "robots_b64" | "robots_template" | "A" | "url"
            | "pattern" | "product_token" | "page_url" | "status" | "checks" | "crawl_delay" | "request_rate" | "visit_time"
            | "accepts_spellings" | "directives" | "unknown_directives" | "lines" => continue,
            other => panic!("the table has a key this test does not know: {other}"),
        };
        compare(key.clone(), ours, &case[key]);
    }
    (wrong, asked)
}

#[test]
fn every_case_of_the_collection_is_answered_as_rfc_9309_says() {
    let data: Value = serde_json::from_str(include_str!("../../../tests/data/robots.json")).unwrap();
    let cases = data["cases"].as_array().unwrap();
    let mut report = Vec::new();
    for case in cases {
        let id = case["id"].as_str().unwrap();
        let (wrong, asked) = failures(case);
        assert!(asked > 0, "{id} asks for nothing");
        let excepted = EXCEPTIONS.iter().find(|(known, ..)| *known == id).map_or(0, |(_, count, _)| *count);
        if wrong.len() != excepted {
            report.push(format!(
                "{id} excepted={excepted} wrong={}\n  {:?}\n  {}",
                wrong.len(),
                case["robots"],
                wrong.join("\n  ")
            ));
        }
    }
    let checks: usize = cases.iter().map(|case| rows(case, "checks").count()).sum();
    assert_eq!((cases.len(), checks), (334, 1_137));
    assert!(report.is_empty(), "{} cases:\n{}", report.len(), report.join("\n"));
}

fn answers(text: &str, paths: &[(&str, bool)]) {
    let robots = Robots::parse(text.as_bytes());
    for (path, expected) in paths {
        assert_eq!(robots.allowed("mybot", &absolute(path)), *expected, "{text:?} {path}");
    }
}

#[test]
fn case_b02_groups_that_name_the_agent_are_merged_and_exclude_everyone() {
    answers(
        "User-agent: mybot\nDisallow: /secret\n\nUser-agent: *\nDisallow: /public\n",
        &[("/public", true), ("/secret", false), ("/", true)],
    );
    answers("User-agent: *\nUser-agent: mybot\nDisallow: /private\n", &[("/private", false), ("/p", true)]);
    answers(
        "User-agent: mybot\nDisallow: /1\n\nUser-agent: other\nDisallow: /\n\nUser-agent: mybot\nDisallow: /2\n",
        &[("/1", false), ("/2", false), ("/3", true)],
    );
    answers("User-agent: mybot\n\nUser-agent: zzz\n\nDisallow: /x\n", &[("/x", false)]);
    answers("user-AGENT:MyBot # c\r\ndisallow : /y # c\r\n", &[("/y", false), ("/z", true)]);
}

#[test]
fn case_b03_the_longest_match_decides() {
    answers(
        "User-agent: *\nDisallow: /wp-admin/\nAllow: /wp-admin/admin-ajax.php\n",
        &[("/wp-admin/", false), ("/wp-admin/admin-ajax.php", true)],
    );
    answers(
        "User-agent: *\nDisallow: /*.json$\nDisallow: /*/private\nDisallow: /*?\nAllow: /ok?\n",
        &[("/data.json", false), ("/data.json5", true), ("/uk/private", false), ("/x?y=1", false), ("/ok?y=1", true)],
    );
    answers("User-agent: *\nDisallow: /page\nAllow: /page\n", &[("/page", true)]);
    answers("User-agent: *\nDisallow: */test\n", &[("/test", false), ("/a/test", false), ("/tes", true)]);
    answers("User-agent: *\nDisallow: /a%3Cd\nDisallow: /é\n", &[("/a%3cd", false), ("/%C3%A9", false)]);
    answers("User-agent: *\nDisallow:\n", &[("/anything", true)]);
}

#[test]
fn the_status_decides_before_the_body() {
    for status in [200, 204] {
        assert_eq!(policy_for_status(status), StatusPolicy::Parse);
    }
    for status in [302, 401, 403, 404, 410] {
        assert_eq!(policy_for_status(status), StatusPolicy::AllowAll);
    }
    for status in [429, 500, 503, 599] {
        assert_eq!(policy_for_status(status), StatusPolicy::DenyForNow);
    }
    assert!(!Robots::deny_all().allowed("mybot", &absolute("/x")));
    assert!(Robots::allow_all().allowed("mybot", &absolute("/x")));
}

#[test]
fn an_html_page_holds_no_rule_and_a_huge_file_is_cut() {
    answers("<!DOCTYPE html>\n<html><body><p>Not found</p></body></html>\n", &[("/x", true)]);
    let mut huge = b"User-agent: *\nDisallow: /no\n".to_vec();
    huge.resize(MAX_BYTES + 5, b'#');
    huge.extend(b"\nDisallow: /late\n");
    answers(&String::from_utf8(huge).unwrap(), &[("/no", false), ("/late", true)]);
}

proptest! {
    #[test]
    fn any_bytes_are_read(bytes in proptest::collection::vec(any::<u8>(), 0..300), path in "[a-z*$%?]{0,20}") {
        let mut text = b"user-agent: *\ndisallow: ".to_vec();
        text.extend(bytes);
        let robots = Robots::parse(&text);
        let _ = robots.allowed("mybot", &absolute(&format!("/{path}")));
        let _ = robots.crawl_delay("mybot");
    }
}

/// Lines on which no two readers of RFC 9309 should disagree.
fn plain_lines() -> impl Strategy<Value = String> {
    let path = "(/|/?[*])[ab/*?=-]{0,6}[$]?";
    let agent = prop::sample::select(vec!["mybot", "MyBot", "mybo", "mybots", "other", "*"]);
    let name = prop::sample::select(vec!["User-agent: ", "user-agent:", "USER-AGENT :  "]);
    let rule = prop::sample::select(vec!["Allow: ", "Disallow: ", "allow:", "DISALLOW :"]);
    let line = prop_oneof![
        2 => (name, agent).prop_map(|(name, agent)| format!("{name}{agent}")),
        4 => (rule, path).prop_map(|(rule, path)| format!("{rule}{path}")),
        1 => Just("Sitemap: http://a.test/s.xml".to_owned()),
        1 => Just("Unknown: x".to_owned()),
        1 => Just("# a comment".to_owned()),
        1 => Just(String::new()),
    ];
    let end = prop::sample::select(vec!["\n", "\r\n", " # x\n", "\t\n"]);
    prop::collection::vec((line, end), 0..14)
        .prop_map(|lines| lines.into_iter().fold("User-agent: *\n".to_owned(), |text, (line, end)| text + &line + end))
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(500))]

    /// An independent implementation answers the same. Where the two read the standard differently (empty rules, lines before
    /// the first agent, escapes, delays), nothing is generated.
    #[test]
    fn another_implementation_gives_the_same_answers(text in plain_lines(), paths in prop::collection::vec("/[ab/?=-]{0,8}", 1..6)) {
        let ours = Robots::parse(text.as_bytes());
        let theirs = texting_robots::Robot::new("mybot", text.as_bytes()).unwrap();
        prop_assert_eq!(ours.sitemaps(), &theirs.sitemaps);
        for path in paths {
            let url = Url::parse(&format!("http://a.test{path}")).unwrap();
            prop_assert_eq!(ours.allowed("mybot", &url), theirs.allowed(url.as_str()), "{}\n{}", text, url);
        }
    }
}
