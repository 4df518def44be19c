//! What the limits keep out: private addresses, paths that go in circles, and more pages of a host than it may give.

use super::*;
use crate::reach::Reach;
use crate::scheduler::host_pages::HostPages;
use crate::settings::PrivateAddresses;

fn reaching(setting: PrivateAddresses) -> Played {
    Played::new(SchedulerConfig { reach: Reach::of(setting), ..config() })
}

/// A link of a page.
fn link(index: u64, url: &str) -> Job {
    child(RequestId::child(None, 1000), index, url)
}

impl Played {
    fn seeds(&mut self, jobs: Vec<Job>) -> Accepted {
        self.offers += 1;
        self.order(Order::Offer { offer: self.offers, jobs, seeds: true });
        self.turn();
        match self.facts.pop_front() {
            Some(Fact::Accepted(accepted)) => accepted,
            other => panic!("{other:?}"),
        }
    }

    fn limited(limit: u64) -> (Self, HostPages) {
        let host_pages = HostPages::new(limit);
        (Self::new(SchedulerConfig { host_pages: host_pages.clone(), ..config() }), host_pages)
    }

    fn verdicts(&mut self, credits: usize) -> Vec<Verdict> {
        self.pull(credits).jobs.iter().map(|due| due.verdict.clone()).collect()
    }
}

#[test]
fn a_link_of_the_web_to_a_private_address_is_never_queued() {
    let mut played = reaching(PrivateAddresses::Auto);
    played.seeds(vec![job(0, "http://a.test/")]);
    let urls =
        ["http://127.0.0.1/", "http://[::ffff:10.0.0.1]/", "http://localhost:8080/", "http://2852039166/", "http://b.test/"];
    let accepted = played.offer((0..).zip(urls).map(|(n, url)| link(n, url)).collect());
    assert_eq!((accepted.stored, played.stats.count("private_address/filtered")), (1, 4));
    assert_eq!(played.hop(job(9, "http://169.254.169.254/")).map(|paced| paced.verdict), Some(Verdict::OutOfReach));
    assert!(played.frontier.store.mark_seen(job(9, "http://169.254.169.254/").key).unwrap(), "it is not marked");
    assert_eq!(played.stats.count("private_address/filtered"), 5);
}

#[test]
fn a_start_request_to_a_private_address_opens_the_own_network_unless_the_setting_says_otherwise() {
    for (setting, seeds, later) in
        [(PrivateAddresses::Auto, 2, 1), (PrivateAddresses::Allow, 2, 1), (PrivateAddresses::Refuse, 1, 0)]
    {
        let mut played = reaching(setting);
        let accepted = played.seeds(vec![job(0, "http://a.test/"), job(1, "http://127.0.0.1:8000/")]);
        assert_eq!(accepted.stored, seeds, "{setting:?}");
        assert_eq!(played.offer(vec![link(2, "http://192.168.0.1/")]).stored, later, "{setting:?}");
    }
}

#[test]
fn what_an_earlier_run_let_into_the_queue_opens_the_own_network_again() {
    let mut store = MemoryStore::new(usize::MAX);
    store.offer(&mut vec![job(0, "http://127.0.0.1:8000/next")]).unwrap();
    let mut played = Played::over(SchedulerConfig { reach: Reach::of(PrivateAddresses::Auto), ..config() }, store);
    assert_eq!(played.offer(vec![link(1, "http://10.0.0.1/")]).stored, 0);
    assert_eq!(played.pulled(1), ["http://127.0.0.1:8000/next"]);
    assert_eq!(played.offer(vec![link(2, "http://10.0.0.2/")]).stored, 1);
}

#[test]
fn a_path_that_goes_in_circles_is_dropped_and_counted() {
    let mut played = Played::new(SchedulerConfig { segment_repeats_limit: 3, ..config() });
    let urls =
        ["http://a.test/a/b/a/b/a/b", "http://a.test/a/b/a/b/a/b/a/b", "http://a.test/x/x/x/x/p", "http://a.test/0/0/0.png"];
    let accepted = played.offer((0..).zip(urls).map(|(n, url)| job(n, url)).collect());
    assert_eq!((accepted.stored, played.stats.count("url_repeats/filtered")), (2, 2));
}

#[test]
fn a_host_gives_no_more_pages_than_it_may_and_others_go_on() {
    let (mut played, host_pages) = Played::limited(2);
    played.pages(&["http://a.test/1", "http://a.test/2", "http://a.test/3", "http://b.test/1"]);
    let ready = played.pull(4);
    let mut verdicts: Vec<_> = ready.jobs.iter().map(|due| (due.job.url().to_string(), due.verdict.clone())).collect();
    verdicts.sort_by(|a, b| a.0.cmp(&b.0));
    let expected = [
        ("http://a.test/1".to_owned(), Verdict::Go),
        ("http://a.test/2".to_owned(), Verdict::Go),
        ("http://a.test/3".to_owned(), Verdict::HostFull),
        ("http://b.test/1".to_owned(), Verdict::Go),
    ];
    assert_eq!(verdicts, expected);
    assert_eq!(played.stats.count("host_pages/filtered"), 1);
    // What is known to be too much is not even queued.
    let more = vec![job(90, "http://a.test/4"), job(91, "http://b.test/2")];
    assert_eq!((played.offer(more).stored, played.stats.count("host_pages/filtered")), (1, 2));
    let hop = |url: &str| Job { first_url: Some("http://c.test/".into()), hops: 1, ..job(92, url) };
    assert_eq!(played.hop(hop("http://a.test/5")).map(|paced| paced.verdict), Some(Verdict::HostFull));
    assert_eq!(played.hop(hop("http://c.test/5")).map(|paced| paced.verdict), Some(Verdict::Go), "its own host's hop is free");
    assert_eq!(played.hop(hop("http://b.test/6")).map(|paced| paced.verdict), Some(Verdict::Go));
    assert!(host_pages.is_full("b.test"));
}

#[test]
fn a_page_that_was_not_fetched_does_not_count_and_a_retry_counts_once() {
    let (mut played, host_pages) = Played::limited(1);
    played.pages(&["http://a.test/1"]);
    let again = |played: &mut Played, attempts: u32| {
        let mut ready = played.pull(1);
        let due = ready.jobs.remove(0);
        assert_eq!(due.verdict, Verdict::Go, "{attempts}");
        played.order(Order::Freed { id: due.job.id, slot: due.slot.clone(), unsent: false });
        let job = Box::new(Job { attempts, ..*due.job });
        played.order(Order::PutBack { job, delay: Duration::ZERO });
    };
    again(&mut played, 0);
    assert!(!host_pages.is_full("a.test"));
    again(&mut played, 1);
    again(&mut played, 2);
    assert!(host_pages.is_full("a.test"));
    assert_eq!(played.verdicts(1), [Verdict::Go]);
}

#[test]
fn a_redirect_counts_once_for_the_host_it_comes_to_and_again_only_when_it_goes_out_anew() {
    let (mut played, host_pages) = Played::limited(1);
    played.pages(&["http://a.test/1"]);
    let due = played.pull(1).jobs.remove(0);
    let first_url = Some("http://a.test/1".into());
    let on = |url: &str, hops| Job { id: due.job.id, first_url: first_url.clone(), hops, ..job(50, url) };
    let on = |url: &str, hops| Job { key: u128::from(hops) + 900, ..on(url, hops) };
    for (hops, url) in [(1, "http://www.a.test/"), (2, "http://www.a.test/en")] {
        assert_eq!(played.hop(on(url, hops)).map(|paced| paced.verdict), Some(Verdict::Go), "{url}");
    }
    assert!(host_pages.is_full("a.test") && host_pages.is_full("www.a.test"));
    // It is put back before it is fetched there, and goes out of the queue once more.
    played.order(Order::PutBack { job: Box::new(on("http://www.a.test/en", 2)), delay: Duration::ZERO });
    assert!(host_pages.is_full("a.test") && !host_pages.is_full("www.a.test"));
    assert_eq!(played.verdicts(1), [Verdict::Go]);
    assert!(host_pages.is_full("www.a.test"));
}

#[test]
fn what_is_refused_and_put_back_gives_no_page_back() {
    let (mut played, host_pages) = Played::limited(1);
    played.pages(&["http://a.test/1", "http://a.test/2"]);
    let due = played.pull(2).jobs;
    let full = due.iter().find(|due| due.verdict == Verdict::HostFull).unwrap();
    played.order(Order::PutBack { job: full.job.clone(), delay: Duration::ZERO });
    assert!(host_pages.is_full("a.test"));
    assert_eq!(played.verdicts(1), [Verdict::HostFull]);
}

#[test]
fn what_an_earlier_run_queued_is_judged_by_the_settings_of_this_one() {
    let mut store = MemoryStore::new(usize::MAX);
    let urls = ["http://a.test/", "http://b.test/", "http://127.0.0.1/"];
    store.offer(&mut (0..).zip(urls).map(|(n, url)| job(n, url)).collect()).unwrap();
    let (reach, domains) = (Reach::of(PrivateAddresses::Refuse), vec!["a.test".to_owned(), "127.0.0.1".to_owned()]);
    // No robots.txt is asked for what is not fetched.
    let robots_agent = Some("dragline".to_owned());
    let mut played = Played::over(SchedulerConfig { allowed_domains: domains, reach, robots_agent, ..config() }, store);
    let mut told: Vec<_> = played.pull(9).jobs.iter().map(|due| (due.job.url().to_string(), due.verdict.clone())).collect();
    told.sort_by(|a, b| a.0.cmp(&b.0));
    let expected = [
        ("http://127.0.0.1/".to_owned(), Verdict::OutOfReach),
        ("http://a.test/robots.txt".to_owned(), Verdict::Go),
        ("http://b.test/".to_owned(), Verdict::Offsite),
    ];
    assert_eq!(told, expected);
    assert_eq!((played.stats.count("offsite/filtered"), played.stats.count("private_address/filtered")), (1, 1));
}

#[test]
fn requests_of_each_depth_are_counted_where_that_is_asked_for() {
    for (counts_depths, expected) in [(true, (2, 1)), (false, (0, 0))] {
        let mut played = Played::new(SchedulerConfig { counts_depths, depth_limit: 2, ..config() });
        let deep = |n, depth| Job { depth, ..job(n, &format!("http://a.test/{n}")) };
        played.offer(vec![deep(0, 0), deep(1, 0), deep(2, 2), deep(3, 3)]);
        let count = |depth: u32| played.stats.count(&format!("request_depth_count/{depth}"));
        assert_eq!((count(0), count(2)), expected);
        assert_eq!(count(3), 0, "what is dropped does not count");
    }
}
