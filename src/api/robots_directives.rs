//! What a response says to crawlers in `X-Robots-Tag` and `<meta name="robots">`, and obeying it.

use super::out::OutCore;
use super::response::Response;
use super::selector::NodeRef;
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

    /// Counts a link that is not followed because its `rel` says so.
    pub(super) fn count_nofollow(&self) {
        self.context.stats().inc("robotsmeta/nofollow_links");
    }
}

/// Whether the `rel` of a link's element holds `nofollow`.
pub(super) fn is_nofollow(element: NodeRef<'_>) -> bool {
    let words = element.attr("rel").unwrap_or_default().split(|c: char| c.is_ascii_whitespace() || c == ',');
    words.into_iter().any(|word| word.eq_ignore_ascii_case("nofollow"))
}

/// Who we are for robots.txt and for directives in pages.
pub(crate) fn robots_agent(settings: &Settings) -> &str {
    settings.robotstxt_user_agent.as_deref().unwrap_or(&settings.user_agent)
}
