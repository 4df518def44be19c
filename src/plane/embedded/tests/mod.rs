//! What the embedded plane promises, sentence by sentence. What leases and reports do is tested beside the model.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing)]

mod calls;
mod following;
mod laws;
mod names;

use std::path::Path;
use std::time::Duration;

use http::Method;

use super::*;
use crate::plane::ErrorKind;

pub(in crate::plane) fn ask(site: &str, path: &str) -> Ask {
    Ask {
        site: site.into(),
        client: "web".into(),
        group: "".into(),
        path: path.to_owned(),
        session_key: None,
        anonymous: false,
        rule: None,
    }
}

pub(in crate::plane) fn report(id: u64, lease: &LeaseId, release: bool) -> Report {
    Report {
        id,
        lease: lease.clone(),
        path: "/".to_owned(),
        method: Method::GET,
        status: Some(200),
        error: None,
        markers: Vec::new(),
        business_code: None,
        outcome_hint: None,
        sent_at: Instant::now(),
        latency: Duration::from_millis(20),
        bytes: 100,
        retry_after: None,
        release,
    }
}

fn seconds(n: u64) -> Duration {
    Duration::from_secs(n)
}

/// A plane of a site `shop` with these identities; `rest` is the rest of the site's table, or further tables of the file.
fn shop(identities: &[&str], rest: &str) -> Embedded {
    let mut text = String::from("[[sites]]\nname = \"shop\"\n");
    text.push_str(rest);
    for name in identities {
        text.push_str(&format!(
            "\n[[sites.identities]]\nname = \"{name}\"\nheaders = {{ X-Id = \"{name}\" }}\ncookies = {{ sid = \"{name}\" }}\n"
        ));
    }
    plane(&text)
}

fn plane(text: &str) -> Embedded {
    Embedded::parse_with_chance(text, Path::new("ids.toml"), 7).unwrap()
}
