//! Robots gate: what is known of each origin's robots.txt, and what that means for a page.
//!
//! Pure and bounded; fetching and reading the file is done elsewhere. The rules are those of RFC 9309: an
//! origin is scheme, host and port (2.3); unreadable means forbidden for now (2.3.1.4); a file counts for
//! a day at most (2.4).

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;
use std::time::Duration;

use tokio::time::Instant;
use url::Url;

use super::message::RobotsAnswer;
use crate::web::robots::{self, Robots};

/// Origins remembered; beyond, the one not looked at for longest is forgotten and asked again when needed.
const MAX_ORIGINS: usize = 10_000;

/// How long rules count (RFC 9309, 2.4: no cached copy for more than 24 hours).
const RULES_LAST: Duration = Duration::from_secs(24 * 3600);

/// Longest `Crawl-delay`, and time between two requests of a `Request-rate`, that is followed.
const MAX_CRAWL_DELAY: Duration = Duration::from_secs(60);

/// Shortest time between two fetches of an unreadable robots.txt.
const MIN_AGAIN: Duration = Duration::from_secs(1);

/// The gate.
#[derive(Debug)]
pub(crate) struct RobotsGate {
    agent: String,
    bound: usize,
    origins: HashMap<Arc<str>, Entry>,
    /// When each was last looked at; the first is forgotten first.
    recent: BTreeMap<u64, Arc<str>>,
    tick: u64,
}

#[derive(Debug)]
struct Entry {
    state: State,
    tick: u64,
}

#[derive(Debug)]
enum State {
    Asked,
    Rules { rules: Arc<Robots>, crawl_delay: Duration, until: Instant },
    Unavailable { why: Arc<str>, until: Instant },
}

/// What the gate says about a page.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Pass {
    /// It may go, with this much delay between two requests at least.
    Go { crawl_delay: Duration },
    /// The rules forbid it.
    Forbidden,
    /// The file cannot be read for now.
    Unavailable(Arc<str>),
    /// The file was asked for: wait.
    Wait,
    /// The file has to be asked for.
    Ask,
}

impl RobotsGate {
    pub(crate) fn new(agent: String) -> Self {
        Self { agent, bound: MAX_ORIGINS, origins: HashMap::new(), recent: BTreeMap::new(), tick: 0 }
    }

    /// Whether `url` of `origin` may be fetched now.
    pub(crate) fn look(&mut self, origin: &str, url: &Url, now: Instant) -> Pass {
        let Some(entry) = self.touch(origin) else {
            return Pass::Ask;
        };
        match &entry.state {
            State::Asked => Pass::Wait,
            State::Rules { until, .. } | State::Unavailable { until, .. } if *until <= now => Pass::Ask,
            State::Unavailable { why, .. } => Pass::Unavailable(Arc::clone(why)),
            State::Rules { rules, crawl_delay, .. } => {
                let (rules, crawl_delay) = (Arc::clone(rules), *crawl_delay);
                if rules.allowed(&self.agent, url) { Pass::Go { crawl_delay } } else { Pass::Forbidden }
            }
        }
    }

    /// Notes that the file was asked for; false when it is being asked for already.
    pub(crate) fn asked(&mut self, origin: &Arc<str>) -> bool {
        if self.is_asked(origin) {
            return false;
        }
        self.put(origin, State::Asked);
        true
    }

    /// Whether the file was asked for and no answer is there yet.
    pub(crate) fn is_asked(&self, origin: &str) -> bool {
        self.origins.get(origin).is_some_and(|e| matches!(e.state, State::Asked))
    }

    /// Takes what the fetch came to.
    pub(crate) fn answer(&mut self, origin: &Arc<str>, answer: RobotsAnswer, now: Instant) {
        let state = match answer {
            RobotsAnswer::Rules(rules) => {
                let crawl_delay = rules.delay(&self.agent).unwrap_or_default().min(MAX_CRAWL_DELAY);
                State::Rules { rules, crawl_delay, until: now + RULES_LAST }
            }
            RobotsAnswer::Unavailable { why, again_in } => {
                State::Unavailable { why, until: now + again_in.clamp(MIN_AGAIN, RULES_LAST) }
            }
        };
        self.put(origin, state);
    }

    fn touch(&mut self, origin: &str) -> Option<&Entry> {
        let entry = self.origins.get_mut(origin)?;
        // Only a crawl of many origins has to keep their order at every look.
        if entry.tick != self.tick
            && let Some(name) = self.recent.remove(&entry.tick)
        {
            self.tick += 1;
            entry.tick = self.tick;
            self.recent.insert(self.tick, name);
        }
        Some(entry)
    }

    fn put(&mut self, origin: &Arc<str>, state: State) {
        self.tick += 1;
        if let Some(old) = self.origins.insert(Arc::clone(origin), Entry { state, tick: self.tick }) {
            self.recent.remove(&old.tick);
        }
        self.recent.insert(self.tick, Arc::clone(origin));
        if self.origins.len() > self.bound {
            self.forget_oldest();
        }
    }

    /// Forgets the origin not looked at for longest. One that is being asked for stays, since pages wait for
    /// its answer: their number is bounded by the requests in flight.
    fn forget_oldest(&mut self) {
        let oldest = self.recent.iter().find(|(_, origin)| !self.is_asked(origin)).map(|(tick, _)| *tick);
        if let Some(origin) = oldest.and_then(|tick| self.recent.remove(&tick)) {
            self.origins.remove(&origin);
        }
    }
}

/// As [`robots::origin_of`], to be shared.
pub(crate) fn origin_of(url: &Url) -> Option<Arc<str>> {
    robots::origin_of(url).map(Arc::from)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing)]
    use super::*;
    use crate::web::robots::robots_url;

    fn url(text: &str) -> Url {
        Url::parse(text).unwrap()
    }

    fn rules(text: &str) -> RobotsAnswer {
        RobotsAnswer::Rules(Arc::new(Robots::parse(text.as_bytes())))
    }

    fn origin(text: &str) -> Arc<str> {
        Arc::from(text)
    }

    #[test]
    fn an_origin_is_asked_once_and_then_its_rules_decide() {
        let now = Instant::now();
        let mut gate = RobotsGate::new("dragline".into());
        let a = origin("http://a.test");
        let page = url("http://a.test/private/1");
        assert_eq!(gate.look(&a, &page, now), Pass::Ask);
        assert!(gate.asked(&a));
        assert!(!gate.asked(&a));
        assert_eq!(gate.look(&a, &page, now), Pass::Wait);
        gate.answer(&a, rules("User-agent: *\nDisallow: /private/\nCrawl-delay: 2\n"), now);
        assert_eq!(gate.look(&a, &page, now), Pass::Forbidden);
        let open = url("http://a.test/open");
        assert_eq!(gate.look(&a, &open, now), Pass::Go { crawl_delay: Duration::from_secs(2) });
        assert_eq!(gate.look("http://a.test:8080", &open, now), Pass::Ask, "another port is another origin");
    }

    #[test]
    fn a_crawl_delay_is_followed_up_to_a_minute() {
        let now = Instant::now();
        let mut gate = RobotsGate::new("dragline".into());
        let a = origin("http://a.test");
        gate.answer(&a, rules("User-agent: *\nCrawl-delay: 3600\n"), now);
        assert_eq!(gate.look(&a, &url("http://a.test/"), now), Pass::Go { crawl_delay: MAX_CRAWL_DELAY });
    }

    #[test]
    fn an_unreadable_file_forbids_until_it_is_asked_again() {
        let now = Instant::now();
        let mut gate = RobotsGate::new("dragline".into());
        let (a, page) = (origin("http://a.test"), url("http://a.test/"));
        let why: Arc<str> = Arc::from("status 503");
        gate.answer(&a, RobotsAnswer::Unavailable { why: Arc::clone(&why), again_in: Duration::from_secs(60) }, now);
        assert_eq!(gate.look(&a, &page, now + Duration::from_secs(59)), Pass::Unavailable(why));
        assert_eq!(gate.look(&a, &page, now + Duration::from_secs(60)), Pass::Ask);
    }

    #[test]
    fn rules_are_asked_again_after_a_day() {
        let now = Instant::now();
        let mut gate = RobotsGate::new("dragline".into());
        let (a, page) = (origin("http://a.test"), url("http://a.test/"));
        gate.answer(&a, rules(""), now);
        assert_eq!(gate.look(&a, &page, now + RULES_LAST - Duration::from_secs(1)), Pass::Go { crawl_delay: Duration::ZERO });
        assert_eq!(gate.look(&a, &page, now + RULES_LAST), Pass::Ask);
    }

    #[test]
    fn the_bound_forgets_the_origin_not_looked_at_for_longest_but_none_that_is_asked() {
        let now = Instant::now();
        let mut gate = RobotsGate { bound: 3, ..RobotsGate::new("dragline".into()) };
        let names: Vec<Arc<str>> = (0..5).map(|n| origin(&format!("http://{n}.test"))).collect();
        gate.asked(&names[0]);
        gate.answer(&names[1], rules(""), now);
        gate.answer(&names[2], rules(""), now);
        gate.look(&names[1], &url("http://1.test/"), now);
        gate.answer(&names[3], rules(""), now);
        let known = |gate: &mut RobotsGate, n: usize| gate.origins.contains_key(&names[n]);
        assert!(known(&mut gate, 0) && known(&mut gate, 1) && known(&mut gate, 3));
        assert!(!known(&mut gate, 2));
        gate.answer(&names[4], rules(""), now);
        assert!(known(&mut gate, 0) && !known(&mut gate, 1));
        assert_eq!((gate.origins.len(), gate.recent.len()), (3, 3));
    }

    #[test]
    fn robots_txt_lies_at_the_root_of_the_origin() {
        let table = [
            ("http://u:p@a.test:81/x/y?q#f", "http://a.test:81/robots.txt", Some("http://a.test:81")),
            ("https://a.test:443/", "https://a.test/robots.txt", Some("https://a.test")),
            ("http://[::1]/", "http://[::1]/robots.txt", Some("http://[::1]")),
        ];
        for (page, robots, origin) in table {
            assert_eq!(robots_url(&url(page)).as_str(), robots);
            assert_eq!(origin_of(&url(page)).as_deref(), origin);
        }
        assert_eq!(origin_of(&url("ftp://a.test/")), None);
    }
}
