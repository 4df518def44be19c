//! What the identities file may say, and how mistakes are told.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing)]

use secrecy::ExposeSecret;

use super::*;
use crate::plane::embedded::roster::{Pool, ReuseAnchor};

fn read(text: &str) -> Result<Roster, String> {
    parse(text, Path::new("ids.toml")).map_err(|e| e.to_string())
}

/// One site with one identity, whose table ends the text.
const SITE: &str = "[[sites]]\nname = \"shop\"\n[[sites.identities]]\nname = \"a\"\n";

#[test]
fn the_example_has_three_readers_of_the_bookshop() {
    let text = include_str!("../../../config/identities.toml");
    let roster = parse(text, Path::new("config/identities.toml")).unwrap();
    let site = &roster.sites[0];
    assert_eq!((&*site.name, roster.sites.len(), site.identities.len()), ("bookshop", 1, 3));
    assert_eq!(site.clients, ["web".into()]);
    for identity in &site.identities {
        assert_eq!(identity.concurrency, 8);
        assert_eq!((identity.credential.cookies.len(), identity.credential.headers.len()), (1, 1));
    }
}

#[test]
fn every_key_is_read() {
    let roster = read(
        r#"
        [[proxies]]
        name = "out"
        url = "socks5://u:p@10.0.0.1:1080"
        concurrency = 4

        [[sites]]
        name = "shop"
        clients = ["web", "app"]
        concurrency = 3
        reuse_interval = 1.5
        reuse_anchor = "acquired"
        ttl = 120
        cooldown_429 = 1
        cooldown_403 = 2
        cooldown_proxy = 3
        sticky_ttl = 4
        proxy_pool = "shared"
        groups = [{ name = "api", prefixes = ["/api"] }]

        [[sites.identities]]
        name = "a"
        clients = ["app"]
        concurrency = 9
        reuse_interval = 0
        proxy = "http://10.0.0.2:3128"
        headers = { X-Key = "k", x-pin = 1234 }
        cookies = { sid = "s" }
        query = { key = "q" }
        json = { a = [1, { b = true }] }

        [[sites.identities]]
        name = "b"
        "#,
    )
    .unwrap();
    let site = &roster.sites[0];
    assert!(matches!(site.pool, Pool::Shared));
    assert_eq!((site.rules.ttl.as_secs(), site.rules.reuse_anchor), (120, ReuseAnchor::Acquired));
    assert_eq!((site.rules.cooldown_429.as_secs(), site.rules.cooldown_403.as_secs()), (1, 2));
    assert_eq!((site.rules.cooldown_proxy.as_secs(), site.rules.sticky_ttl.as_secs()), (3, 4));
    assert_eq!((&*site.groups[0].name, &*site.groups[0].prefixes[0]), ("api", "/api"));
    let a = &site.identities[0];
    assert_eq!((a.concurrency, a.reuse_interval.as_millis()), (9, 0));
    assert_eq!(a.credential.headers["x-pin"], "1234");
    assert!(a.credential.headers.values().all(http::HeaderValue::is_sensitive));
    assert_eq!(a.credential.cookies[0].1.expose_secret(), "s");
    assert_eq!(a.credential.query[0].1.expose_secret(), "q");
    assert_eq!(a.credential.json["a"][1]["b"], true);
    assert_eq!(a.proxy.as_ref().unwrap().url.expose(), "http://10.0.0.2:3128");
    let b = &site.identities[1];
    assert_eq!((b.concurrency, b.reuse_interval.as_millis()), (3, 1500));
    assert_eq!((&*roster.proxies[0].name, roster.proxies[0].concurrency), ("out", 4));
}

#[test]
fn a_mistake_names_file_line_key_and_what_is_allowed() {
    let table: [(&str, &[&str]); 17] = [
        ("tokn = 1", &["ids.toml:5: ", "unknown field `tokn`", "cookies"]),
        ("concurrency = \"x\"", &["ids.toml:5: concurrency: ", "u32"]),
        ("concurrency = 0", &["sites[\"shop\"].identities[\"a\"].concurrency: ", "1 to 10000"]),
        ("reuse_interval = -1", &["ids.toml:", "reuse_interval: ", "from 0 to 604800"]),
        ("reuse_interval = nan", &["reuse_interval: ", "from 0 to 604800"]),
        ("clients = [\"two words\"]", &["clients: ", "letters, digits"]),
        ("headers = { Cookie = \"x\" }", &["headers.\"Cookie\": ", "under cookies"]),
        ("headers = { \"a b\" = \"x\" }", &["headers.\"a b\": ", "letters, digits and hyphens"]),
        ("headers = { a = \"1\", A = \"2\" }", &["written twice"]),
        ("headers = \"x\"", &["ids.toml:5: headers: ", "expected a map"]),
        ("cookies = { a = \"1;2\" }", &["cookies.\"a\": ", "without semicolons"]),
        ("cookies = { a = { b = \"c\" } }", &["ids.toml:5: cookies: ", "expected a text"]),
        ("proxy = \"ftp://h:1\"", &["proxy: ", "socks5"]),
        ("[[sites.identities]]\nname = \"a\"", &["ids.toml:5: ", "another identity"]),
        ("[[sites.identities]]\nname = \"anonymous\"", &["ids.toml:5: ", "choose another"]),
        ("[[sites.groups]]\nname = \"g\"\nprefixes = [\"x\"]", &["groups[\"g\"].prefixes: ", "starts with /"]),
        ("name =", &["ids.toml:5: ", "not valid TOML"]),
    ];
    for (line, parts) in table {
        let error = read(&format!("{SITE}{line}\n")).unwrap_err();
        for part in parts {
            assert!(error.contains(part), "{line}: {error}");
        }
    }
}

#[test]
fn a_site_needs_a_unique_name_and_an_identity() {
    for (text, part) in [
        ("", "no site"),
        ("[[sites]]\nname = \"shop\"\n", "at least one [[sites.identities]]"),
        (&format!("{SITE}{SITE}"), "ids.toml:5: sites[\"shop\"].name: another site"),
        ("[[sites]]\nname = \"shop\"\nproxy_pool = \"own\"\n", "needs [[sites.proxies]]"),
        ("[[sites]]\nname = \"shop\"\nproxy_pool = \"shared\"\n", "at the top of the file"),
        ("[[sites]]\nname = \"shop\"\nproxy_pool = \"many\"\n", "\"own\", \"shared\" and \"none\""),
        ("[[sites]]\nname = \"shop\"\nttl = 0\n", "ttl: allowed are seconds from 1"),
        ("[[sites]]\nname = \"shop\"\nreuse_anchor = \"x\"\n", "\"released\" and \"acquired\""),
    ] {
        let error = read(text).unwrap_err();
        assert!(error.contains(part), "{text}: {error}");
    }
}

#[test]
fn no_message_and_no_debug_output_shows_a_value() {
    // Each is a mistake of its own beside a canary, or has the canary where something else belongs.
    for line in [
        "headers = \"canary\"",
        "headers = [\"canary\"]",
        "headers = { x = [\"canary\"] }",
        "headers = { x = \"canary\\n\" }",
        "headers = { x = \"canary\" \"y\" }",
        "cookies = { x = \"canary;\" }",
        "cookies = { x = \"canary }",
        "cookies = { x = canary }",
        "cookies = { x = \"canary\", x = \"canary\" }",
        "query = \"canary=, expected canary\"",
        "query = [\n\"canary=\"]",
        "query = \"\"\"\ncanary = \\q\n\"\"\"",
        "json = \"canary\"",
        "proxy = \"ftp://user:canary@host:1\"",
        "proxy = \"canary\"",
        "concurrency = \"canary\"",
        "reuse_interval = \"canary\"",
        "clients = \"canary\"",
    ] {
        let error = parse(&format!("{SITE}{line}\n"), Path::new("ids.toml")).unwrap_err();
        assert!(!error.to_string().contains("canary"), "{line}: {error}");
        assert!(!format!("{error:?}").contains("canary"), "{line}: {error:?}");
    }
    let text = format!(
        "{SITE}proxy = \"http://canary:canary@10.0.0.1:1\"\nheaders = {{ x = \"canary\" }}\ncookies = {{ x = \"canary\" }}\n\
         query = {{ x = \"canary\" }}\njson = {{ x = \"canary\" }}\n"
    );
    assert!(!format!("{:?}", read(&text).unwrap()).contains("canary"));
}

#[cfg(unix)]
#[test]
fn a_missing_file_is_told_with_its_path() {
    let error = load(Path::new("/nowhere/ids.toml")).unwrap_err().to_string();
    assert!(error.contains("/nowhere/ids.toml") && error.contains("IDENTITIES"), "{error}");
}
