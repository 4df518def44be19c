//! Cookies and credentials over redirects.

use serde_json::json;

use super::stand::{Case, Site};

fn cookie(site: &Site, target: &str) -> String {
    let hit = site.pages().into_iter().find(|hit| hit.target == target).unwrap();
    hit.header("cookie").unwrap_or_default().to_owned()
}

#[test]
fn case_k01_a_cookie_that_the_redirect_changes_is_sent_changed() {
    let case = Case::read("K01");
    let stand = case.stand();
    stand.crawl(&case.start(), &["-a", "cookies=c=0"]);
    assert_eq!((cookie(&stand.site, "/move"), cookie(&stand.site, "/final")), ("c=0".to_owned(), "c=2".to_owned()));
}

#[test]
fn case_k02_what_belongs_to_a_lease_stays_on_the_host_it_was_leased_for() {
    let case = Case::read("K02");
    let stand = case.stand().with("ALLOWED_DOMAINS=a.test,b.test").with("IDENTITIES=identities.toml");
    let rules = json!([{"domains": ["a.test"], "site": "a", "client": "web"}]);
    let stand = stand.with(&format!("LEASES={rules}"));
    stand.folder.write_secret(
        "identities.toml",
        r#"
[[sites]]
name = "a"
[[sites.identities]]
name = "one"
cookies = { sid = "S3CRET" }
headers = { Authorization = "Bearer T0K", X-Device = "d1", User-Agent = "UA/1" }
"#,
    );
    stand.crawl(&case.start(), &[]);
    let pages = stand.site.pages();
    assert_eq!(pages.len(), 2, "{pages:?}");
    let (from, landed) = (&pages[0], &pages[1]);
    assert_eq!((from.header("cookie"), from.header("authorization")), (Some("sid=S3CRET"), Some("Bearer T0K")));
    assert_eq!((landed.host.as_str(), landed.target.as_str()), ("b.test", "/land"));
    for name in case.expect["b.test"]["absent_headers"].as_array().unwrap() {
        assert_eq!(landed.header(&name.as_str().unwrap().to_ascii_lowercase()), None, "{landed:?}");
    }
    assert!(pages.iter().all(|hit| hit.header("proxy-authorization").is_none()), "{pages:?}");
}
