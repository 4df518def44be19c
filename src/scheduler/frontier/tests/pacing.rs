//! How hosts are paced, whole cases of it, on a clock that is moved by hand.

use std::collections::{BTreeMap, HashMap};

use super::*;
use crate::scheduler::pacing::{HostPacing, Throttle};
use crate::scheduler::testing::Journal;

/// What every host does: answers after this time.
struct Site {
    played: Played,
    took: Duration,
    /// When each URL was sent.
    sends: Vec<(Instant, String)>,
    under_way: BTreeMap<(Instant, u64), Due>,
    count: u64,
}

impl Site {
    fn new(config: SchedulerConfig, took: Duration) -> Self {
        Self { played: Played::new(config), took, sends: Vec::new(), under_way: BTreeMap::new(), count: 0 }
    }

    /// Keeps up to `most` requests under way until nothing is left or `until` says so; `links` gives the links of a page.
    fn crawl(&mut self, most: usize, mut links: impl FnMut(&Job) -> Vec<String>, mut until: impl FnMut(&Self) -> bool) {
        for _ in 0..100_000 {
            if until(self) {
                return;
            }
            let upto = self.played.frontier.handed() + (most - self.under_way.len()) as u64;
            self.played.order(Order::Pull { seq: 1, upto });
            let wake = self.played.turn();
            let now = self.played.now;
            let mut went = false;
            for fact in std::mem::take(&mut self.played.facts) {
                let Fact::Ready(ready) = fact else { continue };
                for due in ready.jobs {
                    went = true;
                    if due.wants_sent {
                        self.played.order(Order::Sent { id: due.job.id, slot: due.slot.clone(), at: now });
                    }
                    self.sends.push((now, due.job.url().to_string()));
                    self.count += 1;
                    self.under_way.insert((now + self.took, self.count), due);
                }
            }
            if went {
                continue;
            }
            let answer = self.under_way.keys().next().map(|(at, _)| *at);
            let Some(next) = answer.into_iter().chain(wake).min() else { return };
            self.played.now = next;
            while let Some(entry) = self.under_way.first_entry().filter(|entry| entry.key().0 <= next) {
                let due = entry.remove();
                self.played.order(Order::Freed { id: due.job.id, slot: due.slot, unsent: false });
                if due.job.kind == JobKind::Robots {
                    let origin = crate::scheduler::robots_gate::origin_of(due.job.url()).unwrap();
                    let rules = RobotsAnswer::Rules(Arc::new(Robots::allow_all()));
                    self.played.frontier.control(Control::Robots { origin, rules }, next);
                }
                let found: Vec<Job> =
                    links(&due.job).iter().enumerate().map(|(n, url)| child(due.job.id, n as u64, url)).collect();
                if !found.is_empty() {
                    self.played.offers += 1;
                    self.played.order(Order::Offer { offer: self.played.offers, jobs: found, seeds: false });
                }
                self.played.order(Order::Settle { id: due.job.id, outcome: Outcome::Handled });
            }
        }
        panic!("no end: {:?}", self.played.frontier);
    }

    fn gaps(&self) -> Vec<Duration> {
        let pages: Vec<Instant> = self.sends.iter().filter(|(_, url)| !url.ends_with("robots.txt")).map(|(at, _)| *at).collect();
        pages.windows(2).map(|pair| pair[1] - pair[0]).collect()
    }
}

fn never(_: &Site) -> bool {
    false
}

/// Page n links to n + 1, up to the sixth.
fn chain(job: &Job) -> Vec<String> {
    let n: u32 = job.url().path().trim_start_matches('/').parse().unwrap_or(9);
    if n < 6 { vec![format!("http://a.test/{}", n + 1)] } else { Vec::new() }
}

#[test]
fn case_p01_delay_forgotten_between_pages() {
    for (jitter, shortest, longest) in [(0.0, 500, 520), (0.5, 250, 770)] {
        let pacing = Pacing { delay: 500 * MS, jitter, ..Pacing::default() };
        let mut site = Site::new(SchedulerConfig { pacing, ..config() }, 10 * MS);
        site.played.pages(&["http://a.test/1"]);
        site.crawl(1, chain, never);
        let gaps = site.gaps();
        assert_eq!(gaps.len(), 5);
        for gap in gaps {
            assert!(gap >= shortest * MS && gap <= longest * MS, "{gap:?} with jitter {jitter}");
        }
    }
}

#[test]
fn case_p01_redirects_are_requests_of_the_slot_too() {
    let pacing = Pacing { delay: 500 * MS, ..Pacing::default() };
    let mut played = Played::new(SchedulerConfig { pacing, ..config() });
    played.pages(&["http://a.test/1", "http://a.test/2"]);
    let began = played.now;
    let first = played.pull(9).jobs.remove(0);
    played.order(Order::Sent { id: first.job.id, slot: first.slot.clone(), at: began });
    played.now += 10 * MS;
    played.order(Order::Freed { id: first.job.id, slot: first.slot, unsent: false });
    assert!(played.hop(job(7, "http://a.test/hop")).is_none());
    assert_eq!(played.turn(), Some(began + 500 * MS));
    played.now = began + 500 * MS;
    played.turn();
    let Some(Fact::Paced(paced)) = played.facts.pop_front() else { panic!() };
    played.order(Order::Sent { id: paced.job.id, slot: paced.slot, at: played.now });
    assert_eq!(played.turn(), Some(began + 1_000 * MS), "the next page waits for the hop");
}

#[test]
fn redirects_to_a_host_without_a_slot_keep_the_delay_that_its_robots_txt_asks_for() {
    let mut played = Played::obeying();
    played.pages(&["http://b.test/"]);
    let robots = played.pull(9).jobs.remove(0);
    played.end(&robots);
    played.rules("http://b.test", "User-agent: *\nCrawl-delay: 10");
    let page = played.pull(9).jobs.remove(0);
    played.end(&page);
    played.now += 60_000 * MS;
    played.turn();
    assert_eq!(played.frontier.slots.len(), 0, "the slot is gone, the rules are not");
    played.facts.clear();
    assert_eq!(played.hop(job(8, "http://b.test/8")).map(|paced| (paced.verdict, paced.wants_sent)), Some((Verdict::Go, true)));
    assert!(played.hop(job(9, "http://b.test/9")).is_none());
    played.order(Order::Sent { id: RequestId(8), slot: SlotKey("b.test".into()), at: played.now });
    assert_eq!(played.turn(), Some(played.now + 10_000 * MS));
    played.now += 9_999 * MS;
    played.turn();
    assert!(played.facts.is_empty());
    played.now += MS;
    played.turn();
    assert!(matches!(played.facts.pop_front(), Some(Fact::Paced(_))));
}

#[test]
fn case_u02_host_aliases_one_slot() {
    let pacing = Pacing { delay: 200 * MS, ..Pacing::default() };
    let mut site = Site::new(SchedulerConfig { pacing, robots_agent: Some("dragline".into()), ..config() }, 5 * MS);
    let spellings = ["http://example.test/1", "http://exampl%65.test/2", "http://EXAMPLE.test/3", "http://example.test:80/4"];
    site.played.pages(&spellings);
    assert_eq!(site.played.frontier.slots.len(), 1);
    site.crawl(16, |_| Vec::new(), never);
    let robots = site.sends.iter().filter(|(_, url)| url == "http://example.test/robots.txt").count();
    assert_eq!((robots, site.sends.len()), (1, 5));
    for gap in site.gaps() {
        assert!(gap >= 200 * MS, "{gap:?}");
    }
}

#[test]
fn a_dot_at_the_end_of_a_host_makes_neither_a_second_slot_nor_other_rules() {
    let slow = HostPacing { per_slot: Some(1), delay: Some(300 * MS), ..HostPacing::default() };
    let pacing = Pacing { hosts: Arc::new(HashMap::from([("a.test".into(), slow)])), ..Pacing::default() };
    let mut site = Site::new(SchedulerConfig { pacing, ..config() }, 5 * MS);
    site.played.pages(&["http://a.test/1", "http://a.test./2", "http://a.test./3"]);
    assert_eq!(site.played.frontier.slots.len(), 1);
    site.crawl(16, |_| Vec::new(), never);
    let mut sent: Vec<&str> = site.sends.iter().map(|(_, url)| url.as_str()).collect();
    sent.sort_unstable();
    assert_eq!(sent, ["http://a.test./2", "http://a.test./3", "http://a.test/1"], "as they are written");
    assert!(site.gaps().iter().all(|gap| *gap >= 300 * MS), "{:?}", site.gaps());
}

#[test]
fn case_q02_link_to_a_page_in_progress() {
    let mut site = Site::new(config(), 50 * MS);
    site.played.pages(&["http://a.test/1"]);
    let all: Vec<String> = (1..=40).map(|n| format!("http://a.test/{n}")).collect();
    site.crawl(20, |_| all.clone(), never);
    let mut asked: Vec<&str> = site.sends.iter().map(|(_, url)| url.as_str()).collect();
    assert_eq!(asked.len(), 40);
    asked.sort_unstable();
    asked.dedup();
    assert_eq!((asked.len(), site.played.stats.count("dupefilter/filtered")), (40, 1561));
}

#[test]
fn case_q02_a_start_request_that_passes_the_filter_is_marked_as_seen() {
    let mut played = Played::new(config());
    let start = unfiltered(played.page("http://a.test/1"));
    played.offer(vec![start]);
    let first = played.pull(1).jobs.remove(0);
    assert_eq!(played.offer(vec![child(first.job.id, 0, "http://a.test/1")]).duplicates, 1, "it is under way");
}

#[test]
fn case_q03_one_slow_host_blocks_all() {
    let slow = HostPacing { per_slot: Some(1), delay: Some(500 * MS), ..HostPacing::default() };
    let pacing = Pacing { hosts: Arc::new(HashMap::from([("slow.test".into(), slow)])), ..Pacing::default() };
    let mut site = Site::new(SchedulerConfig { pacing, ..config() }, 10 * MS);
    let began = site.played.now;
    for host in ["slow", "fast"] {
        let pages: Vec<Job> = (0..100).map(|n| site.played.page(&format!("http://{host}.test/{n}"))).collect();
        site.played.offer(pages);
    }
    let of = |site: &Site, host: &str| site.sends.iter().filter(|(_, url)| url.contains(host)).count();
    site.crawl(8, |_| Vec::new(), |site| of(site, "fast") == 100);
    assert!(site.played.now - began <= Duration::from_secs(3), "{:?}", site.played.now - began);
    assert!(of(&site, "slow") <= 8, "{}", of(&site, "slow"));
    site.crawl(8, |_| Vec::new(), never);
    let slow: Vec<Instant> = site.sends.iter().filter(|(_, url)| url.contains("slow")).map(|(at, _)| *at).collect();
    assert_eq!(slow.len(), 100);
    assert!(slow.windows(2).all(|pair| pair[1] - pair[0] >= 500 * MS));
}

#[test]
fn hosts_may_be_named_while_the_crawl_runs() {
    let mut site = Site::new(config(), 10 * MS);
    site.played.pages(&["http://a.test/1", "http://a.test/2", "http://a.test/3", "http://a.test/4"]);
    let named = HostPacing { delay: Some(700 * MS), ..HostPacing::default() };
    let pacing = Pacing { hosts: Arc::new(HashMap::from([("a.test".into(), named)])), ..Pacing::default() };
    site.crawl(1, |_| Vec::new(), |site| site.sends.len() == 2);
    site.played.frontier.control(Control::Pacing(pacing), site.played.now);
    site.crawl(1, |_| Vec::new(), never);
    let gaps = site.gaps();
    assert!(gaps[0] == 10 * MS && gaps[1] >= 700 * MS && gaps[2] == 700 * MS, "{gaps:?}");
}

#[test]
fn no_minute_of_a_host_has_more_requests_than_allowed_and_others_go_on() {
    let mut site = Site::new(SchedulerConfig { pacing: Pacing { per_minute: 5, ..Pacing::default() }, ..config() }, 100 * MS);
    for host in ["a", "b"] {
        let pages: Vec<Job> = (0..12).map(|n| site.played.page(&format!("http://{host}.test/{n}"))).collect();
        site.played.offer(pages);
    }
    let began = site.played.now;
    site.crawl(4, |_| Vec::new(), never);
    for host in ["a", "b"] {
        let sends: Vec<Instant> =
            site.sends.iter().filter(|(_, url)| url.contains(&format!("{host}.test"))).map(|(at, _)| *at).collect();
        assert_eq!(sends.len(), 12);
        assert!(sends.windows(6).all(|six| six[5] - six[0] >= Duration::from_secs(60)));
        assert!(*sends.last().unwrap() - began < Duration::from_secs(125));
    }
}

fn throttled(journal: &Journal) -> Played {
    let throttle = Throttle { start: 200 * MS, max: 2_000 * MS, target: 1.0, debug: false };
    let pacing = Pacing { throttles: true, throttle, ..Pacing::default() };
    journal.clone().recover().unwrap();
    Played::over(SchedulerConfig { pacing, ..config() }, journal.clone())
}

#[test]
fn what_the_throttle_found_survives_a_restart() {
    let journal = Journal::new();
    let mut first = throttled(&journal);
    first.pages(&["http://a.test/1", "http://a.test/2"]);
    let due = first.pull(1).jobs.remove(0);
    let (slot, sent) = (due.slot.clone(), first.now);
    first.order(Order::Sent { id: due.job.id, slot: slot.clone(), at: sent });
    first.now += 5 * MS;
    first.order(Order::Answered { slot, status: 429, latency: 5 * MS, sent });
    first.end(&due);
    first.turn();
    assert_eq!(first.stats.count("autothrottle/raised"), 1);
    first.now += 250 * MS;
    first.turn();
    let mut next = throttled(&journal.next_run());
    let id = next.frontier.slots.id("a.test");
    assert_eq!(next.frontier.slots.delay(id), 400 * MS);
    next.now += 60_000 * MS;
    assert_eq!(next.pull(5).jobs.len(), 1);
}

#[test]
fn a_throttle_that_is_switched_on_later_is_kept_as_well() {
    let journal = Journal::new();
    let mut first = Played::over(config(), journal.clone());
    assert_eq!(first.turn(), None);
    let pacing = throttled(&journal).frontier.slots.pacing().clone();
    first.frontier.control(Control::Pacing(pacing), first.now);
    let slot = SlotKey("a.test".into());
    first.order(Order::Answered { slot, status: 200, latency: 700 * MS, sent: first.now });
    first.now += 500 * MS;
    first.turn();
    let mut next = throttled(&journal.next_run());
    let id = next.frontier.slots.id("a.test");
    assert_eq!(next.frontier.slots.delay(id), 700 * MS);
}

#[test]
fn a_throttles_state_that_cannot_be_read_is_learnt_anew() {
    let journal = Journal::new();
    let mut store = journal.clone();
    store.save("throttle", vec![9, 9]).unwrap();
    store.commit().unwrap();
    let mut next = throttled(&journal.next_run());
    let id = next.frontier.slots.id("a.test");
    assert_eq!(next.frontier.slots.delay(id), 200 * MS);
}
