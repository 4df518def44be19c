//! What a response says to crawlers in `X-Robots-Tag` and `<meta name="robots">`, and obeying it.

use super::out::OutCore;
use super::response::Response;
use crate::settings::Settings;
use crate::web::media_type::MediaType;
use crate::web::robots_meta::RobotsDirectives;

impl Response {
    /// What the header `X-Robots-Tag` and, on an HTML page, `<meta name="robots">` say to a crawler. `agent` is its product
    /// name or `User-Agent`; with `""` only what is said to everyone counts.
    ///
    /// With `ROBOTS_META_OBEY` what follows links obeys `nofollow` by itself; this is for everything else.
    ///
    /// ```
    /// # use dragline::prelude::*;
    /// # fn read(response: &Response, out: &mut Vec<String>) {
    /// let said = response.robots_directives("mybot");
    /// if !said.is_noindex() && !said.has("noarchive") {
    ///     out.push(response.text().to_owned());
    /// }
    /// # }
    /// ```
    #[must_use]
    pub fn robots_directives(&self, agent: &str) -> RobotsDirectives {
        let mut directives = RobotsDirectives::default();
        for value in self.headers().get_all("x-robots-tag") {
            directives.add_header(&String::from_utf8_lossy(value.as_bytes()), agent);
        }
        let types = self.headers().get_all(http::header::CONTENT_TYPE).iter().filter_map(|value| value.to_str().ok());
        if MediaType::from_fields(types).is_none_or(|kind| kind.is_html()) {
            for element in self.css("meta[name][content]").nodes() {
                if let (Some(name), Some(content)) = (element.attr("name"), element.attr("content")) {
                    directives.add_meta(name, content, agent);
                }
            }
        }
        directives
    }
}

/// Which links of a page may be followed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum MayFollow {
    /// All.
    All,
    /// All but those with `rel=nofollow`.
    NotNofollow,
    /// None.
    None,
}

impl OutCore {
    /// Which links of this page may be followed, by `ROBOTS_META_OBEY`. Counts a page that says no.
    pub(super) fn may_follow(&self, response: &Response) -> MayFollow {
        let settings = self.context.settings();
        if !settings.robots_meta_obey {
            return MayFollow::All;
        }
        if response.robots_directives(robots_agent(&settings)).is_nofollow() {
            self.context.stats().inc("robotsmeta/nofollow_pages");
            return MayFollow::None;
        }
        MayFollow::NotNofollow
    }

    /// Whether one link of such a page may be followed. Counts one that may not.
    pub(super) fn lets(&self, may: MayFollow, nofollow: bool) -> bool {
        let is_free = match may {
            MayFollow::All => true,
            MayFollow::NotNofollow => !nofollow,
            MayFollow::None => false,
        };
        if !is_free {
            self.context.stats().inc("robotsmeta/nofollow_links");
        }
        is_free
    }
}

/// Who we are for robots.txt and for directives in pages.
pub(crate) fn robots_agent(settings: &Settings) -> &str {
    settings.robotstxt_user_agent.as_deref().unwrap_or(&settings.user_agent)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing)]
    use std::rc::Rc;
    use std::sync::Arc;
    use std::time::Duration;

    use http::{HeaderMap, HeaderValue, StatusCode, Version};

    use super::*;
    use crate::api::context::Context;
    use crate::api::links::LinkExtractor;
    use crate::api::out::{Origin, Out};
    use crate::api::request::Request;
    use crate::api::rules::{CrawlRules, Rule};
    use crate::api::sitemaps::tests::{Kept, Shop, To};
    use crate::api::stats::Stats;
    use crate::downloader::transport::{BodyFlags, Reply};
    use crate::scheduler::job::{Job, RequestId};

    const LINKS: &str = "<a href=/1>1</a><a href=/2 rel='next nofollow'>2</a><a href=/3 rel=follow>3</a>";

    fn page(content_type: &'static str, tags: &[&str], body: &str) -> Response {
        let mut headers = HeaderMap::new();
        headers.insert("content-type", HeaderValue::from_static(content_type));
        for tag in tags {
            headers.append("x-robots-tag", HeaderValue::from_str(tag).unwrap());
        }
        let body: bytes::Bytes = body.to_owned().into();
        let reply = Reply {
            status: StatusCode::OK,
            version: Version::HTTP_11,
            headers,
            wire_bytes: 0,
            body,
            flags: BodyFlags::default(),
        };
        let job = Job::page(RequestId(1), 1, Request::get("http://a.test/", &To::Page).unwrap());
        Response::new(Arc::new(job), Arc::new(reply), Duration::ZERO, Rc::default())
    }

    /// What each way to follow links adds on a page, and what was counted.
    fn followed(obey: bool, response: &Response) -> ([usize; 4], [i64; 2]) {
        let settings = Settings { robots_meta_obey: obey, user_agent: "MyBot/1.0".into(), ..Settings::default() };
        let stats = Stats::default();
        let context = Context::new("shop", "1", Default::default(), Arc::new(settings), stats.clone(), |_| {});
        let core = OutCore::new(Origin::Page, None, context, Rc::new(Rc::new(Kept::default())), 100, 0, Rc::default());
        let mut out = Out::<Shop>::new(core);
        let rules = CrawlRules::new().rule(Rule::new(LinkExtractor::new(), |_| To::Page));
        let added = [
            out.follow(response, "a", |_| To::Page),
            out.follow(response, "a::attr(href)", |_| To::Page),
            out.follow_links(response, &LinkExtractor::new(), |_| To::Page),
            rules.follow(response, &mut out),
        ];
        let count = |key: &str| stats.get(key).and_then(|value| value.as_i64()).unwrap_or(0);
        (added, [count("robotsmeta/nofollow_pages"), count("robotsmeta/nofollow_links")])
    }

    #[test]
    fn without_the_setting_every_link_is_followed() {
        let response = page("text/html", &["nofollow"], LINKS);
        assert_eq!(followed(false, &response), ([3; 4], [0, 0]));
    }

    #[test]
    fn with_it_neither_links_nor_pages_that_say_no_are_followed() {
        let meta = format!("<meta name=robots content='noindex, nofollow'>{LINKS}");
        let other = format!("<meta name=otherbot content=nofollow>{LINKS}");
        let table: [(&str, Response, [usize; 4], [i64; 2]); 6] = [
            ("links only", page("text/html", &[], LINKS), [2; 4], [0, 4]),
            ("a header", page("text/html", &["noindex", "nofollow"], LINKS), [0; 4], [4, 0]),
            ("a header for us", page("text/html", &["mybot: none"], LINKS), [0; 4], [4, 0]),
            ("a header for another", page("text/html", &["otherbot: nofollow"], LINKS), [2; 4], [0, 4]),
            ("a meta element", page("text/html; charset=utf-8", &[], &meta), [0; 4], [4, 0]),
            ("one for another", page("text/html", &[], &other), [2; 4], [0, 4]),
        ];
        for (name, response, added, counted) in table {
            assert_eq!(followed(true, &response), (added, counted), "{name}");
        }
    }

    #[test]
    fn directives_are_those_of_headers_and_page() {
        let response = page("text/html", &["noarchive", "max-snippet: 5"], "<META NAME=Robots CONTENT=NoIndex>");
        let said = response.robots_directives("");
        assert!(said.is_noindex() && said.has("noarchive") && !said.is_nofollow());
        assert_eq!(said.value("max-snippet"), Some("5"));
        let data = page("application/json", &[], "<meta name=robots content=noindex>");
        assert!(data.robots_directives("").is_empty() && data.built_page().is_none(), "no tree is built of what is no page");
    }
}
