//! HTTP basic authentication (300; RFC 7617): one user for one domain, and never for another.

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use http::header::AUTHORIZATION;
use http::{HeaderMap, HeaderValue};
use url::Url;

use crate::plane::Credential;
use crate::scheduler::job::Job;
use crate::settings::Settings;

/// Whom to name where.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HttpAuth {
    domain: String,
    /// Marked as sensitive: nothing shows it.
    value: HeaderValue,
}

impl HttpAuth {
    /// What `HTTPAUTH_USER`, `HTTPAUTH_PASS` and `HTTPAUTH_DOMAIN` say; the settings refuse the first two without the last.
    pub(crate) fn of(settings: &Settings) -> Option<Self> {
        let domain = settings.httpauth_domain.clone()?;
        let user = settings.httpauth_user.as_deref().unwrap_or_default();
        let password = settings.httpauth_pass.as_ref().map_or("", |password| password.expose());
        let mut value = HeaderValue::from_str(&format!("Basic {}", BASE64_STANDARD.encode(format!("{user}:{password}")))).ok()?;
        value.set_sensitive(true);
        Some(Self { domain, value })
    }

    /// Names the user, where the request goes to its domain and neither lease nor spider name somebody themselves. It goes
    /// before a default header.
    pub(crate) fn add(&self, headers: &mut HeaderMap, job: &Job, credential: &Credential) {
        let is_named = credential.headers.contains_key(AUTHORIZATION)
            || job.request.headers().is_some_and(|own| own.contains_key(AUTHORIZATION))
            || !job.url().username().is_empty()
            || job.url().password().is_some();
        if !is_named && self.is_for(job.url()) && !is_downgraded(job) {
            headers.insert(AUTHORIZATION, self.value.clone());
        }
    }

    fn is_for(&self, url: &Url) -> bool {
        let host = url.host_str().unwrap_or_default();
        host.strip_suffix(self.domain.as_str()).is_some_and(|rest| rest.is_empty() || rest.ends_with('.'))
    }
}

/// Whether a redirect led a protected request to where anybody on the way can read it.
fn is_downgraded(job: &Job) -> bool {
    job.url().scheme() == "http" && job.first_url.as_deref().is_some_and(|first| first.starts_with("https:"))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing)]
    use super::*;
    use crate::api::request::Request;
    use crate::scheduler::job::RequestId;
    use crate::settings::Secret;

    fn auth() -> HttpAuth {
        let settings = Settings {
            httpauth_user: Some("anna".to_owned()),
            httpauth_pass: Some(Secret::from("canary:ä")),
            httpauth_domain: Some("shop.example".to_owned()),
            ..Settings::default()
        };
        HttpAuth::of(&settings).unwrap()
    }

    fn job(url: &str) -> Job {
        Job::page(RequestId(1), 1, Request::get(url, &()).unwrap())
    }

    fn named(job: &Job, credential: &Credential) -> Option<String> {
        let mut headers = HeaderMap::from_iter([(AUTHORIZATION, HeaderValue::from_static("default"))]);
        auth().add(&mut headers, job, credential);
        let value = headers[AUTHORIZATION].to_str().unwrap();
        (value != "default").then(|| value.to_owned())
    }

    #[test]
    fn the_user_is_named_to_its_domain_and_to_nobody_else() {
        let expected = format!("Basic {}", BASE64_STANDARD.encode("anna:canary:ä"));
        for (url, is_named) in [
            ("https://shop.example/", true),
            ("http://www.shop.example:8080/x", true),
            ("https://notshop.example/", false),
            ("https://shop.example.evil.example/", false),
            ("https://evil.example/?shop.example", false),
            ("data:,shop.example", false),
        ] {
            let named = named(&job(url), &Credential::default());
            assert_eq!(named, is_named.then(|| expected.clone()), "{url}");
        }
        assert!(!format!("{:?}", auth()).contains("Basic"));
    }

    #[test]
    fn a_redirect_to_an_unprotected_page_is_not_given_it() {
        let mut hop = job("http://shop.example/");
        hop.first_url = Some("https://shop.example/".into());
        assert_eq!(named(&hop, &Credential::default()), None);
        hop.first_url = Some("http://shop.example/".into());
        assert!(named(&hop, &Credential::default()).is_some());
    }

    #[test]
    fn who_the_lease_or_the_spider_name_goes_first() {
        let credential = Credential {
            headers: HeaderMap::from_iter([(AUTHORIZATION, HeaderValue::from_static("Bearer x"))]),
            ..Credential::default()
        };
        assert_eq!(named(&job("https://shop.example/"), &credential), None);
        let mut own = job("https://shop.example/");
        own.request.header("authorization", "own").unwrap();
        assert_eq!(named(&own, &Credential::default()), None);
    }

    #[test]
    fn without_a_domain_nobody_is_named() {
        let settings = Settings { httpauth_user: Some("anna".to_owned()), ..Settings::default() };
        assert_eq!(HttpAuth::of(&settings), None);
    }
}
