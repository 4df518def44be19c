//! Redirects: a hop is a new place of the same request.

use super::*;

/// The request as it goes on to `url`.
fn redirected(due: &Due, url: &str) -> Box<Job> {
    let mut job = due.job.clone();
    job.request.set_url(url.parse().unwrap());
    job.key = xxhash_rust::xxh3::xxh3_128(url.as_bytes());
    job
}

fn paced_facts(worker: &mut Worker) -> Vec<(u64, Verdict)> {
    worker.taken(|facts, at| match &facts[at] {
        Fact::Paced(paced) => {
            let told = (paced.tag.ticket, paced.verdict.clone());
            facts.remove(at);
            Some(told)
        }
        _ => None,
    })
}

#[test]
fn a_hop_takes_a_place_of_its_host_and_known_targets_are_dropped() {
    run_local(async {
        let world = started();
        let mut a = Worker::new(&world, "a", paced(SECOND), None);
        a.offer(&["http://a.test/1", "http://a.test/2"]);
        a.pull(1);
        let first = a.jobs().remove(0);
        let began = Instant::now();
        a.order(Order::Sent { id: first.job.id, slot: first.slot.clone(), at: began });
        a.order(Order::Freed { id: first.job.id, slot: first.slot.clone(), unsent: false });
        let hop = |url: &str| {
            let mut job = first.job.clone();
            job.request.set_url(url.parse().unwrap());
            job.key = xxhash_rust::xxh3::xxh3_128(url.as_bytes());
            job
        };
        let tag = |ticket| Tag { ticket, epoch: 0 };
        a.order(Order::Hop { tag: tag(1), job: hop("http://a.test/2") });
        a.order(Order::Hop { tag: tag(2), job: hop("http://a.test/new") });
        a.turn();
        a.run(2 * SECOND).await;
        let paced = a.taken(|facts, at| match &facts[at] {
            Fact::Paced(_) => match facts.remove(at) {
                Fact::Paced(paced) => Some(paced),
                _ => None,
            },
            _ => None,
        });
        let verdicts: Vec<_> = paced.iter().map(|paced| (paced.tag.ticket, paced.verdict.clone(), paced.wants_sent)).collect();
        assert_eq!(verdicts, [(1, Verdict::Duplicate, false), (2, Verdict::Go, true)]);
        assert_eq!(a.stats.count("dupefilter/filtered"), 1);
    });
}

#[test]
fn what_followed_a_redirect_goes_on_from_there_at_another_worker() {
    run_local(async {
        let world = started();
        let (mut a, mut b) = (Worker::joined(&world, "a"), Worker::joined(&world, "bb"));
        a.offer_as(vec![child(RequestId(7), 1, "http://a.test/1"), unfiltered(child(RequestId(7), 2, "http://a.test/2"))], false);
        a.pull(2);
        for (ticket, due) in (1..).zip(a.jobs()) {
            a.order(Order::Freed { id: due.job.id, slot: due.slot.clone(), unsent: false });
            let url = format!("http://b.test{}/to", due.job.url().path());
            a.order(Order::Hop { tag: Tag { ticket, epoch: 0 }, job: redirected(&due, &url) });
        }
        a.turn();
        a.run(SECOND).await;
        assert_eq!(paced_facts(&mut a).len(), 2);
        drop(a);
        b.pull(2);
        b.run(VISIBILITY + 2 * SECOND).await;
        assert_eq!(b.paths(), ["/1/to", "/2/to"]);
    });
}

#[test]
fn a_hop_whose_turn_comes_while_its_worker_sleeps_too_long_is_not_sent() {
    run_local(async {
        let world = started();
        let (mut a, mut b) =
            (Worker::new(&world, "a", paced(4 * SECOND), None), Worker::new(&world, "bb", paced(4 * SECOND), None));
        a.offer(&["http://a.test/1"]);
        a.pull(1);
        let due = a.jobs().remove(0);
        a.order(Order::Sent { id: due.job.id, slot: due.slot.clone(), at: Instant::now() });
        a.order(Order::Freed { id: due.job.id, slot: due.slot.clone(), unsent: false });
        a.order(Order::Hop { tag: Tag { ticket: 1, epoch: 0 }, job: redirected(&due, "http://a.test/to") });
        a.turn();
        a.run(SECOND).await;
        assert_eq!(paced_facts(&mut a), [], "its turn is in three seconds");
        b.pull(1);
        b.run(VISIBILITY + 8 * SECOND).await;
        assert_eq!(b.paths(), ["/to"]);
        a.turn();
        a.run(SECOND).await;
        assert_eq!(paced_facts(&mut a), [(1, Verdict::PutBack)]);
    });
}

#[test]
fn hops_keep_the_delay_that_their_hosts_robots_txt_asks_for() {
    run_local(async {
        let world = started();
        let mut a = Worker::new(&world, "a", SchedulerConfig { robots_agent: Some("dragline".into()), ..config() }, None);
        let read = |a: &mut Worker, host: &str, text: &str| {
            a.offer(&[&format!("http://{host}/")]);
            a.pull(1);
            let robots = a.jobs().remove(0);
            assert_eq!(robots.job.kind, JobKind::Robots);
            a.control(Control::Robots { origin: format!("http://{host}").into(), rules: rules(text) });
            a.end(&robots);
        };
        read(&mut a, "a.test", "");
        a.pull(1);
        let first = a.jobs().remove(0);
        // The worker that follows the redirect has the rules, whatever the fleet knows.
        read(&mut a, "b.test", "User-agent: *\nCrawl-delay: 10");
        world.lock().unwrap().forget_crawl_delays();
        a.order(Order::Freed { id: first.job.id, slot: first.slot.clone(), unsent: false });
        a.order(Order::Hop { tag: Tag { ticket: 1, epoch: 0 }, job: redirected(&first, "http://b.test/to") });
        a.turn();
        assert_eq!(world.lock().unwrap().crawl_delay("b.test"), 10 * SECOND);
    });
}
