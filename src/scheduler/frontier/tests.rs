#![allow(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing)]
mod commits;
mod limits;
mod pacing;
mod redirects;
mod simulated;
mod trouble;

use std::sync::{Arc, atomic::Ordering};

use super::*;
use crate::api::failure::FailureKind;
use crate::scheduler::memory::MemoryStore;
use crate::scheduler::message::{Accepted, Paced, Pacing, RobotsAnswer};
use crate::scheduler::testing::{Fault, Fragile, child, config, job, unfiltered, with_priority};
use crate::web::robots::Robots;

const MS: Duration = Duration::from_millis(1);

/// A frontier with the engine's side played by hand.
struct Played {
    frontier: Frontier,
    stats: Stats,
    now: Instant,
    offers: u64,
    index: u64,
    facts: VecDeque<Fact>,
}

impl Played {
    fn new(config: SchedulerConfig) -> Self {
        Self::over(config, MemoryStore::new(usize::MAX))
    }

    fn over(config: SchedulerConfig, store: impl Store + 'static) -> Self {
        let (stats, now) = (Stats::new(), Instant::now());
        let clock = Clock::at(now, Duration::from_secs(1_000_000));
        let frontier = Frontier::new(config, Box::new(store), stats.clone(), clock, now);
        Self { frontier, stats, now, offers: 0, index: 0, facts: VecDeque::new() }
    }

    fn obeying() -> Self {
        Self::new(SchedulerConfig { robots_agent: Some("dragline".into()), ..config() })
    }

    fn order(&mut self, order: Order) {
        self.frontier.order(order, self.now);
    }

    fn offer(&mut self, jobs: Vec<Job>) -> Accepted {
        self.offers += 1;
        self.order(Order::Offer { offer: self.offers, jobs, seeds: false });
        self.turn();
        match self.facts.pop_front() {
            Some(Fact::Accepted(accepted)) if accepted.offer == self.offers => accepted,
            other => panic!("{other:?}"),
        }
    }

    fn pages(&mut self, urls: &[&str]) {
        let jobs = urls.iter().map(|url| self.page(url)).collect();
        self.offer(jobs);
    }

    fn page(&mut self, url: &str) -> Job {
        self.index += 1;
        job(self.index, url)
    }

    fn turn(&mut self) -> Option<Instant> {
        let turn = self.frontier.turn(self.now);
        self.facts.extend(turn.facts);
        turn.wake
    }

    fn ready(&mut self) -> Option<Ready> {
        self.turn();
        match self.facts.pop_front()? {
            Fact::Ready(ready) => Some(ready),
            other => panic!("{other:?}"),
        }
    }

    fn pull(&mut self, credits: usize) -> Ready {
        let upto = self.frontier.handed() + credits as u64;
        self.order(Order::Pull { seq: 1, upto });
        self.ready().expect("a pull is answered at once")
    }

    fn pulled(&mut self, credits: usize) -> Vec<String> {
        self.pull(credits).jobs.iter().map(|due| due.job.url().to_string()).collect()
    }

    /// The due jobs of the next turn, as the path of their URL.
    fn next_paths(&mut self) -> Vec<String> {
        self.ready().map_or_else(Vec::new, |ready| ready.jobs.iter().map(|due| due.job.url().path().to_owned()).collect())
    }

    fn end(&mut self, due: &Due) {
        if due.verdict == Verdict::Go {
            if due.wants_sent {
                self.order(Order::Sent { id: RequestId(0), slot: due.slot.clone(), at: self.now });
            }
            self.order(Order::Freed { id: RequestId(0), slot: due.slot.clone(), unsent: false });
        }
        self.order(Order::Settle { id: due.job.id, outcome: Outcome::Handled });
    }

    fn rules(&mut self, origin: &str, text: &str) {
        let rules = RobotsAnswer::Rules(Arc::new(Robots::parse(text.as_bytes())));
        self.frontier.control(Control::Robots { origin: origin.into(), rules }, self.now);
    }

    fn hop(&mut self, job: Job) -> Option<Paced> {
        self.order(Order::Hop { tag: Tag { ticket: 1, epoch: 1 }, job: Box::new(job) });
        self.turn();
        match self.facts.pop_front()? {
            Fact::Paced(paced) => Some(*paced),
            other => panic!("{other:?}"),
        }
    }
}

#[test]
fn an_offer_counts_what_is_in_scope_seen_and_outside() {
    let limits = SchedulerConfig { allowed_domains: vec!["a.test".into()], depth_limit: 2, url_length_limit: 30, ..config() };
    let mut played = Played::new(limits);
    let deep = |depth, url: &str| Job { depth, ..job(u64::from(depth) + 100, url) };
    let jobs = vec![
        job(0, "http://a.test/1"),
        job(1, "http://a.test/1"),
        job(2, "http://b.test/"),
        job(3, "http://b.test/2"),
        deep(2, "http://a.test/2"),
        deep(3, "http://a.test/3"),
        job(4, "http://a.test/a-very-long-path-indeed"),
        unfiltered(job(5, "http://c.test/")),
    ];
    let accepted = played.offer(jobs);
    assert_eq!(
        (accepted.stored, accepted.duplicates, accepted.offsite, accepted.too_deep, accepted.too_long, accepted.pending),
        (3, 1, 2, 1, 1, 3)
    );
    assert!(accepted.error.is_none() && accepted.refused.is_empty());
    let counts = [
        ("scheduler/enqueued", 3),
        ("scheduler/enqueued/memory", 3),
        ("dupefilter/filtered", 1),
        ("offsite/filtered", 2),
        ("offsite/domains", 1),
        ("depth/filtered", 1),
        ("urllength/request_ignored_count", 1),
        ("request_depth_max", 2),
    ];
    for (key, count) in counts {
        assert_eq!(played.stats.count(key), count, "{key}");
    }
    let ready = played.pull(10);
    assert_eq!((ready.jobs.len(), ready.after_offer, ready.books.pending), (3, 1, 3));
    assert_eq!(played.stats.count("scheduler/dequeued"), 3);
    assert_eq!(played.stats.count("scheduler/dequeued/memory"), 3);
}

#[test]
fn the_answer_to_a_taken_offer_brings_offsite_requests_back_where_they_are_asked_for() {
    let urls = ["http://b.test/0", "http://a.test/1", "http://c.test/2", "http://a.test/1"];
    let filtered = |returns_offsite, room| {
        let limits = SchedulerConfig { allowed_domains: vec!["a.test".into()], returns_offsite, ..config() };
        let accepted = Played::over(limits, MemoryStore::new(room)).offer((0..).zip(urls).map(|(n, url)| job(n, url)).collect());
        assert_eq!(accepted.refused.len(), if room == 100 { 4 } else { 0 });
        accepted.filtered.iter().map(|job| job.url().as_str().to_owned()).collect::<Vec<_>>()
    };
    assert_eq!(filtered(true, usize::MAX), ["http://b.test/0", "http://c.test/2"]);
    assert!(filtered(false, usize::MAX).is_empty());
    assert!(filtered(true, 100).is_empty(), "a refused offer is judged anew");
}

#[test]
fn the_answer_to_an_offer_names_what_was_dropped_and_keeps_a_lease() {
    let limits = SchedulerConfig { allowed_domains: vec!["a.test".into()], depth_limit: 1, url_length_limit: 40, ..config() };
    let jobs = |keeps: bool| -> Vec<Job> {
        let long = format!("http://a.test/{}", "x".repeat(40));
        let urls = ["http://a.test/0", "http://b.test/1", "http://a.test/0", "http://a.test/deep", &long];
        let job = |(n, url): (u64, &&str)| {
            let mut job = job(n, url);
            job.depth = if url.ends_with("deep") { 2 } else { 1 };
            if keeps {
                job.request.keep_lease();
            }
            job
        };
        (0..).zip(&urls).map(job).collect()
    };
    let ids = |accepted: &Accepted| {
        let mut ids = accepted.kept_dropped.clone();
        ids.sort();
        ids
    };
    let accepted = Played::new(limits.clone()).offer(jobs(true));
    let mut expected: Vec<_> = jobs(true).iter().skip(1).map(|job| job.id).collect();
    expected.sort();
    assert_eq!((accepted.stored, ids(&accepted)), (1, expected));
    assert!(Played::new(limits.clone()).offer(jobs(false)).kept_dropped.is_empty());
    let refused = Played::over(limits, MemoryStore::new(100)).offer(jobs(true));
    assert!(refused.kept_dropped.is_empty() && refused.refused.len() == 5, "a refused offer is judged anew");
}

#[test]
fn a_refused_offer_comes_back_whole_and_in_order_and_counts_nothing() {
    let limits = SchedulerConfig { allowed_domains: vec!["a.test".into()], ..config() };
    let mut played = Played::over(limits, MemoryStore::new(100));
    let urls = ["http://b.test/0", "http://a.test/1", "http://b.test/2", "http://a.test/3"];
    played.offers = 1;
    played.order(Order::Offer { offer: 1, jobs: urls.iter().map(|url| job(0, url)).collect(), seeds: true });
    played.turn();
    let Some(Fact::Accepted(accepted)) = played.facts.pop_front() else { panic!() };
    assert!(matches!(accepted.error, Some(StoreError::Full { bound: 100, .. })));
    assert_eq!(accepted.refused.iter().map(|j| j.url().as_str()).collect::<Vec<_>>(), urls);
    assert_eq!((accepted.stored, accepted.offsite, played.frontier.cursors().start), (0, 0, 0));
    assert!(played.stats.snapshot().is_empty());
    assert_eq!(played.frontier.slots.len(), 0);
}

#[test]
fn seeds_stop_before_the_links_of_pages_do_and_move_the_cursor() {
    let mut played = Played::new(SchedulerConfig { seeds_stop_at: 10_000, ..config() });
    let mut cursor = 0;
    loop {
        played.offers += 1;
        let jobs = vec![played.page(&format!("http://a.test/{cursor}"))];
        played.order(Order::Offer { offer: played.offers, jobs, seeds: true });
        played.turn();
        let Some(Fact::Accepted(accepted)) = played.facts.pop_front() else { panic!() };
        if accepted.error.is_some() {
            assert_eq!(accepted.refused.len(), 1);
            break;
        }
        cursor += 1;
        assert!(cursor < 1_000);
    }
    assert!(cursor > 1);
    assert_eq!(played.frontier.cursors().start, cursor);
    assert_eq!(played.offer(vec![job(9_999, "http://a.test/link")]).stored, 1);
    assert_eq!(played.frontier.cursors().start, cursor);
}

#[test]
fn a_credit_stands_until_it_is_used_and_each_pull_is_answered() {
    let mut played = Played::new(config());
    assert!(played.pull(2).jobs.is_empty());
    assert!(played.ready().is_none(), "once");
    // Played::offer takes the answer to the offer; the jobs follow it.
    played.pages(&["http://a.test/1", "http://a.test/2", "http://a.test/3"]);
    assert_eq!(played.next_paths(), ["/1", "/2"]);
    assert!(played.ready().is_none());
    assert_eq!(played.pulled(5), ["http://a.test/3"]);
    played.pages(&["http://a.test/4"]);
    assert_eq!(played.next_paths(), ["/4"], "four of the five were left");
}

#[test]
fn one_slow_host_leaves_the_credits_to_the_others() {
    let mut played = Played::new(SchedulerConfig {
        pacing: Pacing { per_slot: 8, delay: 500 * MS, jitter: 0.0, ..Pacing::default() },
        ..config()
    });
    let jobs = (0..100).map(|n| format!("http://slow.test/{n}")).chain((0..8).map(|n| format!("http://fast{n}.test/")));
    let jobs = jobs.map(|url| played.page(&url)).collect();
    played.offer(jobs);
    let ready = played.pull(16);
    assert_eq!(ready.jobs.len(), 9, "one of each host");
    assert_eq!(ready.next_due, None, "all wait for their sending");
    assert!(ready.jobs.iter().all(|due| due.wants_sent));
}

#[test]
fn priority_decides_then_the_order_of_insertion() {
    let mut played = Played::new(config());
    let jobs = [("/a", 0), ("/b", 7), ("/c", 0), ("/d", 7)]
        .iter()
        .zip(0..)
        .map(|((path, p), n)| with_priority(job(n, &format!("http://a.test{path}")), *p))
        .collect();
    played.offer(jobs);
    played.offer(vec![with_priority(job(50, "http://z.test/z"), 3)]);
    assert_eq!(
        played.pulled(5),
        ["http://a.test/b", "http://z.test/z", "http://a.test/d", "http://a.test/a", "http://a.test/c"],
        "the slot with fewer places taken goes before the higher priority"
    );
}

#[test]
fn a_page_waits_for_robots_without_a_credit_or_a_place_and_one_request_asks() {
    let mut played = Played::obeying();
    played.pages(&["http://a.test/1", "http://a.test/private/2", "http://a.test/3"]);
    let ready = played.pull(10);
    assert_eq!(ready.jobs.len(), 1);
    let robots = &ready.jobs[0];
    assert_eq!((robots.job.kind, robots.job.url().as_str()), (JobKind::Robots, "http://a.test/robots.txt"));
    assert_eq!((robots.job.request.priority_value(), robots.wants_sent), (1000, false));
    assert_eq!((ready.books.enqueued, ready.books.pending), (4, 4));
    assert_eq!(played.stats.count("robotstxt/request_count"), 1);
    assert!(played.pull(10).jobs.is_empty());
    played.rules("http://a.test", "User-agent: *\nDisallow: /private/\n");
    played.end(robots);
    let ready = played.ready().unwrap();
    let verdicts: Vec<(&str, &Verdict)> = ready.jobs.iter().map(|due| (due.job.url().path(), &due.verdict)).collect();
    assert_eq!(verdicts, [("/1", &Verdict::Go), ("/private/2", &Verdict::Forbidden), ("/3", &Verdict::Go)]);
}

#[test]
fn a_forbidden_page_takes_a_credit_but_no_place() {
    let mut played = Played::obeying();
    played.frontier.slots.set_pacing(Pacing { per_slot: 1, delay: Duration::ZERO, jitter: 0.0, ..Pacing::default() }, played.now);
    played.rules("http://a.test", "User-agent: *\nDisallow: /private/\n");
    played.pages(&["http://a.test/private/1", "http://a.test/private/2", "http://a.test/3", "http://a.test/private/4"]);
    let ready = played.pull(3);
    let got: Vec<(&str, bool)> = ready.jobs.iter().map(|d| (d.job.url().path(), d.verdict == Verdict::Go)).collect();
    assert_eq!(got, [("/private/1", false), ("/private/2", false), ("/3", true)]);
    assert_eq!(played.stats.count("robotstxt/forbidden"), 2);
    for due in &ready.jobs {
        played.end(due);
    }
    assert_eq!(played.pulled(3), ["http://a.test/private/4"]);
}

#[test]
fn an_unreadable_robots_txt_fails_pages_until_it_is_asked_again() {
    let mut played = Played::obeying();
    played.pages(&["http://a.test/1", "http://a.test/2"]);
    let first = played.pull(1).jobs.remove(0);
    let rules = RobotsAnswer::Unavailable { why: "status 503".into(), again_in: Duration::from_secs(60) };
    played.frontier.control(Control::Robots { origin: "http://a.test".into(), rules }, played.now);
    played.end(&first);
    let ready = played.pull(5);
    assert_eq!(ready.jobs.len(), 2);
    for due in &ready.jobs {
        assert_eq!(due.verdict, Verdict::RobotsUnavailable("status 503".into()));
        played.end(due);
    }
    played.now += Duration::from_secs(60);
    played.pages(&["http://a.test/3"]);
    let again = played.ready().unwrap().jobs.remove(0);
    assert_eq!(again.job.kind, JobKind::Robots);
    assert_ne!(again.job.id, first.job.id);
    played.rules("http://a.test", "");
    assert_eq!(played.next_paths(), ["/3"]);
}

#[test]
fn a_robots_request_that_ends_without_an_answer_holds_nobody_for_ever() {
    let mut played = Played::obeying();
    played.pages(&["http://a.test/1"]);
    let robots = played.pull(5).jobs.remove(0);
    played.order(Order::Freed { id: RequestId(0), slot: robots.slot, unsent: false });
    played.order(Order::Settle { id: robots.job.id, outcome: Outcome::Failed(FailureKind::Timeout) });
    let ready = played.ready().unwrap();
    assert!(matches!(ready.jobs[0].verdict, Verdict::RobotsUnavailable(_)));
}

#[test]
fn a_robots_request_put_back_goes_again_after_its_delay_before_any_page() {
    let mut played = Played::obeying();
    let page = played.page("http://a.test/1");
    played.offer(vec![with_priority(page, i32::MAX)]);
    let robots = played.pull(5).jobs.remove(0);
    played.order(Order::Freed { id: RequestId(0), slot: robots.slot, unsent: false });
    played.order(Order::PutBack { job: robots.job, delay: 100 * MS });
    assert_eq!(played.turn(), Some(played.now + 100 * MS));
    assert!(played.facts.is_empty());
    played.now += 100 * MS;
    assert_eq!(played.next_paths(), ["/robots.txt"]);
    assert_eq!(played.frontier.books().pending, 2);
    played.rules("http://a.test", "");
    assert_eq!(played.next_paths(), ["/1"]);
}

#[test]
fn each_port_of_a_host_is_asked_but_they_share_the_slot() {
    let mut played = Played::obeying();
    played.pages(&["http://a.test/1", "http://a.test:81/2"]);
    let first = played.pull(5).jobs.remove(0);
    played.rules("http://a.test", "");
    let ready = played.ready().unwrap();
    let urls: Vec<&str> = ready.jobs.iter().map(|due| due.job.url().as_str()).collect();
    assert_eq!(urls, ["http://a.test/1", "http://a.test:81/robots.txt"]);
    assert!(ready.jobs.iter().all(|due| due.slot == first.slot));
}

#[test]
fn pages_that_ignore_robots_and_other_schemes_do_not_ask() {
    let mut played = Played::obeying();
    let mut page = played.page("http://a.test/1");
    page.request.ignore_robots();
    let data = played.page("data:text/plain,x");
    played.offer(vec![page, data]);
    assert_eq!(played.pulled(5), ["http://a.test/1", "data:text/plain,x"]);
}

#[test]
fn a_crawl_delay_paces_the_slot_from_the_first_page_on() {
    let mut played = Played::obeying();
    played.pages(&["http://a.test/1", "http://a.test/2"]);
    let robots = played.pull(5).jobs.remove(0);
    played.rules("http://a.test", "User-agent: *\nCrawl-delay: 2\n");
    played.end(&robots);
    let page = played.ready().unwrap().jobs.remove(0);
    assert!(page.wants_sent);
    played.order(Order::Sent { id: RequestId(0), slot: page.slot, at: played.now });
    assert_eq!(played.turn(), Some(played.now + 2_000 * MS));
    played.now += 1_999 * MS;
    assert!(played.next_paths().is_empty());
    played.now += MS;
    assert_eq!(played.next_paths(), ["/2"]);
}

#[test]
fn a_crawl_delay_that_becomes_known_holds_the_page_in_hand() {
    let mut played = Played::obeying();
    let mut free = played.page("http://a.test/free");
    free.request.ignore_robots();
    played.frontier.slots.set_pacing(Pacing { per_slot: 8, delay: 10 * MS, jitter: 0.0, ..Pacing::default() }, played.now);
    played.offer(vec![free]);
    let first = played.pull(5).jobs.remove(0);
    played.order(Order::Sent { id: RequestId(0), slot: first.slot, at: played.now });
    played.rules("http://a.test", "User-agent: *\nCrawl-delay: 1\n");
    let sent = played.now;
    played.now += 10 * MS;
    played.pages(&["http://a.test/1"]);
    assert_eq!(played.turn(), Some(sent + 1_000 * MS));
    assert!(played.facts.is_empty());
    played.now = sent + 1_000 * MS;
    assert_eq!(played.next_paths(), ["/1"]);
}

#[test]
fn a_hop_is_judged_by_scope_then_dupes_then_robots() {
    let mut played = Played::new(SchedulerConfig {
        allowed_domains: vec!["a.test".into()],
        robots_agent: Some("dragline".into()),
        ..config()
    });
    let verdict = |played: &mut Played, job: Job| played.hop(job).map(|paced| paced.verdict);
    let off = job(0, "http://b.test/");
    assert_eq!(verdict(&mut played, off.clone()), Some(Verdict::Offsite));
    assert!(played.frontier.store.mark_seen(off.key).unwrap(), "what is offsite is not marked");
    let hop = job(1, "http://a.test/1");
    assert_eq!(verdict(&mut played, hop.clone()), Some(Verdict::PutBack));
    assert_eq!(verdict(&mut played, hop.clone()), Some(Verdict::Duplicate));
    played.rules("http://a.test", "User-agent: *\nDisallow: /private/\n");
    assert_eq!(verdict(&mut played, Job { chain: vec![hop.key], ..hop.clone() }), Some(Verdict::Go));
    assert_eq!(verdict(&mut played, unfiltered(hop)), Some(Verdict::Go));
    assert_eq!(verdict(&mut played, job(2, "http://a.test/private/")), Some(Verdict::Forbidden));
    let why = RobotsAnswer::Unavailable { why: "reset".into(), again_in: Duration::from_secs(5) };
    played.frontier.control(Control::Robots { origin: "http://a.test".into(), rules: why }, played.now);
    assert_eq!(verdict(&mut played, job(3, "http://a.test/3")), Some(Verdict::RobotsUnavailable("reset".into())));
    assert_eq!(played.stats.count("dupefilter/filtered"), 1);
    assert_eq!(played.stats.count("offsite/filtered"), 1);
    assert_eq!(played.stats.count("robotstxt/forbidden"), 1);
}

#[test]
fn hops_wait_for_the_delay_of_their_slot_and_pass_its_queue() {
    let mut played = Played::new(SchedulerConfig {
        pacing: Pacing { per_slot: 2, delay: 100 * MS, jitter: 0.0, ..Pacing::default() },
        ..config()
    });
    played.pages(&["http://a.test/1", "http://a.test/2"]);
    let first = played.pull(5).jobs.remove(0);
    played.order(Order::Sent { id: RequestId(0), slot: first.slot.clone(), at: played.now });
    played.order(Order::Freed { id: RequestId(0), slot: first.slot, unsent: false });
    assert!(played.hop(job(7, "http://a.test/hop")).is_none());
    played.now += 100 * MS;
    played.turn();
    let Some(Fact::Paced(paced)) = played.facts.pop_front() else { panic!() };
    assert!(paced.wants_sent && paced.verdict == Verdict::Go);
    assert!(played.facts.is_empty(), "the queue waits for the hop to be sent");
    played.order(Order::Sent { id: RequestId(0), slot: paced.slot, at: played.now });
    played.now += 100 * MS;
    assert_eq!(played.next_paths(), ["/2"]);
}

#[test]
fn stop_gives_out_no_job_but_still_keeps_the_books() {
    let mut played = Played::new(config());
    played.pages(&["http://a.test/1", "http://a.test/2"]);
    let first = played.pull(1).jobs.remove(0);
    played.frontier.control(Control::Stop, played.now);
    assert!(played.pull(10).jobs.is_empty());
    assert_eq!(played.offer(vec![child(first.job.id, 0, "http://a.test/3")]).stored, 1);
    assert_eq!(played.hop(job(8, "http://a.test/hop")).unwrap().verdict, Verdict::Go);
    played.order(Order::PutBack { job: first.job, delay: Duration::ZERO });
    let ready = played.pull(10);
    assert_eq!((ready.jobs.len(), ready.books.pending), (0, 3));
    assert!(ready.books.balances());
}
