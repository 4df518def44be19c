//! What goes wrong: a server out of reach, answers that are lost, workers that die or sleep.

use super::*;

#[test]
fn an_outage_holds_everything_up_and_nothing_is_lost_or_doubled() {
    run_local(async {
        let world = started();
        let mut a = Worker::joined(&world, "a");
        a.offer(&["http://a.test/1", "http://a.test/2"]);
        a.pull(2);
        let jobs = a.jobs();
        a.accepted();
        world.lock().unwrap().is_down = true;
        a.offer(&["http://a.test/3"]);
        a.end(&jobs[0]);
        a.run(10 * SECOND).await;
        a.end(&jobs[1]);
        let facts = std::mem::take(&mut a.facts);
        assert!(matches!(&facts[..], [Fact::FrontierBlocked { why }] if why.contains("the cable is out")), "{facts:?}");
        assert_eq!(world.lock().unwrap().books.handled, 0);
        world.lock().unwrap().is_down = false;
        a.run(SECOND).await;
        assert!(matches!(a.facts[0], Fact::FrontierUnblocked));
        assert_eq!(a.accepted()[0].stored, 1);
        let books = world.lock().unwrap().books;
        assert_eq!((books.enqueued, books.handled, books.pending), (3, 2, 1));
        assert_eq!(a.stats.count("frontier/outages"), 1);
    });
}

#[test]
fn an_answer_that_is_lost_is_had_again_and_nothing_happens_twice() {
    run_local(async {
        let world = started();
        let mut a = Worker::joined(&world, "a");
        a.pull(0);
        world.lock().unwrap().loses_answer = true;
        a.offer(&["http://a.test/1", "http://a.test/2"]);
        assert!(a.accepted().is_empty());
        a.run(SECOND).await;
        assert_eq!(a.accepted()[0].stored, 2, "what it came to the first time");
        world.lock().unwrap().loses_answer = true;
        a.pull(2);
        assert!(a.jobs().is_empty());
        a.run(SECOND).await;
        let jobs = a.jobs();
        assert_eq!(jobs.len(), 2, "those that were handed out");
        jobs.iter().for_each(|due| a.end(due));
        assert_eq!(world.lock().unwrap().books.handled, 2);
    });
}

#[test]
fn a_server_that_stays_away_ends_the_worker_with_its_reason() {
    run_local(async {
        let world = started();
        let mut a = Worker::new(&world, "a", config(), Some(5 * SECOND));
        world.lock().unwrap().is_down = true;
        a.pull(1);
        a.run(4 * SECOND).await;
        assert_eq!(a.fleet(), []);
        a.run(2 * SECOND).await;
        match &a.fleet()[..] {
            [Fleet::Lost(why)] => assert!(why.contains("the cable is out") && why.contains("FRONTIER_WAIT"), "{why}"),
            other => panic!("{other:?}"),
        }
        assert_eq!(a.wake, None);
    });
}

#[test]
fn requests_of_a_dead_worker_come_back_and_those_of_a_living_one_do_not() {
    run_local(async {
        let world = started();
        let (mut a, mut b) = (Worker::joined(&world, "a"), Worker::joined(&world, "bb"));
        a.offer(&["http://a.test/1", "http://b.test/2"]);
        a.pull(1);
        b.pull(1);
        let (of_a, of_b) = (a.jobs(), b.jobs());
        drop(a);
        // Its own stays its own for as long as it runs.
        b.pull(2);
        b.run(VISIBILITY + 2 * SECOND).await;
        let back = b.jobs();
        assert_eq!(back.iter().map(|due| due.job.id).collect::<Vec<_>>(), [of_a[0].job.id]);
        b.run(4 * VISIBILITY).await;
        assert!(b.jobs().is_empty());
        back.iter().chain(&of_b).for_each(|due| b.end(due));
        let books = world.lock().unwrap().books;
        assert_eq!((books.handled, books.pending), (2, 0));
    });
}

#[test]
fn a_worker_that_sleeps_too_long_says_what_it_lost() {
    run_local(async {
        let world = started();
        let (mut a, mut b) = (Worker::joined(&world, "a"), Worker::joined(&world, "bb"));
        a.offer(&["http://a.test/1"]);
        a.pull(1);
        let due = a.jobs().remove(0);
        b.pull(1);
        b.run(VISIBILITY + 2 * SECOND).await;
        assert_eq!(b.jobs().len(), 1);
        a.turn();
        assert_eq!(a.stats.count("frontier/lost"), 1);
        a.end(&due);
        assert_eq!(a.stats.count("frontier/settled_late"), 1);
        assert_eq!(world.lock().unwrap().books.handled, 0, "it is the other's to settle");
    });
}

#[test]
fn after_a_long_outage_nobody_takes_what_the_others_could_not_renew() {
    run_local(async {
        let world = started();
        let (mut a, mut b) = (Worker::joined(&world, "a"), Worker::joined(&world, "bb"));
        a.offer(&["http://a.test/1"]);
        a.pull(1);
        let due = a.jobs().remove(0);
        b.pull(1);
        world.lock().unwrap().is_down = true;
        a.turn();
        b.turn();
        let back = Instant::now() + VISIBILITY + 10 * SECOND;
        a.run_until(back - 500 * MS).await;
        b.run_until(back - 500 * MS).await;
        world.lock().unwrap().is_down = false;
        // The one without the request is the first that is back.
        b.run(600 * MS).await;
        a.run(SECOND).await;
        b.run(5 * SECOND).await;
        assert!(b.jobs().is_empty(), "a renews first");
        a.end(&due);
        assert_eq!(world.lock().unwrap().books.handled, 1);
        assert_eq!(a.stats.count("frontier/lost"), 0);
    });
}

#[test]
fn a_request_that_comes_back_to_the_worker_that_is_still_at_it_goes_on_once() {
    run_local(async {
        let world = started();
        let (mut a, mut b) = (Worker::joined(&world, "a"), Worker::joined(&world, "bb"));
        a.offer(&["http://a.test/1", "http://a.test/2"]);
        a.pull(2);
        let jobs = a.jobs();
        a.order(Order::Freed { id: jobs[1].job.id, slot: jobs[1].slot.clone(), unsent: false });
        a.turn();
        b.pull(1);
        b.run(VISIBILITY + 2 * SECOND).await;
        let taken = b.jobs();
        assert_eq!(taken.iter().map(|due| due.job.url().path()).collect::<Vec<_>>(), ["/1"]);
        // It was asleep. The other one of its two is queued, and comes to it.
        a.pull(2);
        assert!(a.jobs().is_empty(), "it has a copy under way");
        assert_eq!((a.stats.count("frontier/lost"), a.stats.count("frontier/handed_again")), (2, 1));
        a.run(SECOND).await;
        assert_eq!(world.lock().unwrap().places("a.test"), 1, "the one of the other worker: its own was given back before");
        // It stays its own from now on.
        a.run(VISIBILITY / 2).await;
        b.run(VISIBILITY).await;
        a.run(SECOND).await;
        jobs.iter().for_each(|due| a.end(due));
        assert_eq!((world.lock().unwrap().books.handled, a.stats.count("frontier/settled_late")), (1, 1));
        b.end(&taken[0]);
        let books = world.lock().unwrap().books;
        assert_eq!((books.enqueued, books.handled, books.pending), (2, 2, 0));
    });
}

#[test]
fn a_worker_that_still_runs_start_from_before_is_not_elected_again_until_it_is_through() {
    run_local(async {
        let world = World::new();
        let (mut a, mut b) = (Worker::joined(&world, "a"), Worker::joined(&world, "bb"));
        a.pull(1);
        assert_eq!(a.fleet(), [Fleet::Elected { cursor: 0 }]);
        b.pull(1);
        b.run(VISIBILITY + 2 * SECOND).await;
        assert_eq!(b.fleet(), [Fleet::Elected { cursor: 0 }]);
        a.offer_as(vec![unfiltered(job(0, "http://a.test/0"))], true);
        assert_eq!(a.accepted()[0].stored, 0);
        drop(b);
        a.run(VISIBILITY + 2 * SECOND).await;
        assert_eq!(a.fleet(), [], "it is beyond the cursor");
        a.offer_as(vec![unfiltered(job(1, "http://a.test/1"))], true);
        assert_eq!(a.accepted()[0].stored, 0);
        a.order(Order::StartOver);
        a.run(2 * SECOND).await;
        assert_eq!(a.fleet(), [Fleet::Elected { cursor: 0 }]);
        a.offer_as(vec![unfiltered(job(0, "http://a.test/0"))], true);
        assert_eq!(a.accepted()[0].stored, 1);
    });
}
