//! What a turn tells waits for its commit, and a disk that refuses holds the crawl and loses nothing.

use super::*;
use crate::scheduler::testing::Journal;

fn over(journal: &Journal) -> Played {
    journal.clone().recover().unwrap();
    Played::over(config(), journal.clone())
}

/// Facts by name, with what matters of them.
fn names(facts: &[Fact]) -> Vec<String> {
    let name = |fact: &Fact| match fact {
        Fact::Accepted(accepted) => format!("accepted {}", accepted.offer),
        Fact::Ready(ready) => format!("ready {} of {}", ready.jobs.len(), ready.seq),
        Fact::Settled(ids) => format!("settled {}", ids.len()),
        Fact::FrontierBlocked { .. } => "blocked".to_owned(),
        Fact::FrontierUnblocked => "unblocked".to_owned(),
        Fact::FrontierGaveUp(_) => "gave up".to_owned(),
        other => format!("{other:?}"),
    };
    facts.iter().map(name).collect()
}

impl Played {
    fn told(&mut self) -> (Vec<String>, Option<Instant>) {
        let turn = self.frontier.turn(self.now);
        (names(&turn.facts), turn.wake)
    }
}

#[test]
fn an_end_is_told_as_settled_after_its_commit_and_only_where_it_lasts() {
    let journal = Journal::new();
    let mut played = over(&journal);
    played.pages(&["http://a.test/1"]);
    let due = played.pull(1).jobs.remove(0);
    played.end(&due);
    assert_eq!(played.told().0, ["settled 1"]);
    assert_eq!(journal.next_run().books().handled, 1);
    let mut played = Played::new(config());
    played.pages(&["http://a.test/1"]);
    let due = played.pull(1).jobs.remove(0);
    played.end(&due);
    assert!(played.told().0.is_empty(), "in memory there is nothing that could be forgotten for it");
}

#[test]
fn while_commits_fail_nothing_is_told_or_given_out_and_then_all_of_it() {
    let journal = Journal::new();
    let mut played = over(&journal);
    played.pages(&["http://a.test/1", "http://a.test/2", "http://b.test/3"]);
    let due = played.pull(1).jobs.remove(0);
    journal.refuse(true);
    let began = played.now;
    played.end(&due);
    assert_eq!(played.told(), (vec!["blocked".to_owned()], Some(began + 100 * MS)));
    // Orders are taken as before, and answered later.
    let page = played.page("http://c.test/");
    played.order(Order::Offer { offer: 7, jobs: vec![page], seeds: false });
    for seq in 2..9 {
        played.order(Order::Pull { seq, upto: 10 });
        assert_eq!(played.told().0, Vec::<String>::new());
    }
    let mut tries = Vec::new();
    for _ in 0..4 {
        played.now = played.told().1.unwrap();
        tries.push((played.now - began).as_millis());
        assert!(played.told().0.is_empty());
    }
    assert_eq!(tries, [100, 300, 700, 1500]);
    assert_eq!(journal.next_run().books().enqueued, 3);
    journal.refuse(false);
    played.now = played.told().1.unwrap();
    let (told, wake) = played.told();
    assert_eq!(told, ["unblocked", "settled 1", "accepted 7", "ready 3 of 8"], "each once, and one answer to all pulls");
    assert_eq!(wake, None);
    let books = journal.next_run().books();
    assert_eq!((books.enqueued, books.handled, books.pending), (4, 1, 3));
    assert_eq!(played.stats.count("scheduler/blocked"), 1);
    assert_eq!(played.stats.count("scheduler/held_facts_max"), 1, "the offer's; what was settled is a list");
}

#[test]
fn held_facts_are_no_more_than_the_orders_they_answer() {
    let journal = Journal::new();
    let mut played = over(&journal);
    journal.refuse(true);
    for offer in 1..=50 {
        let page = played.page("http://a.test/");
        played.order(Order::Offer { offer, jobs: vec![page], seeds: false });
        played.order(Order::Pull { seq: offer, upto: 1000 });
        played.now += 20 * MS;
        played.told();
    }
    // The first turn still answered its pull.
    assert_eq!(played.stats.count("scheduler/held_facts_max"), 51);
    journal.refuse(false);
    played.now += 1_000 * MS;
    assert_eq!(played.told().0.len(), 53, "with the good news, and what may go now");
}

#[test]
fn a_disk_that_never_takes_anything_ends_the_job_with_the_reason() {
    let journal = Journal::new();
    let mut played = over(&journal);
    journal.refuse(true);
    played.frontier.keep("counters", Box::new(|| Some(vec![1])), played.now);
    let page = played.page("http://a.test/");
    played.order(Order::Offer { offer: 1, jobs: vec![page], seeds: false });
    let began = played.now;
    let mut all = Vec::new();
    for _ in 0..80 {
        let turn = played.frontier.turn(played.now);
        all.extend(turn.facts);
        played.now = turn.wake.unwrap();
    }
    assert_eq!(names(&all), ["blocked", "gave up"]);
    assert!(played.now - began > 60_000 * MS);
    let Some(Fact::FrontierGaveUp(why)) = all.last() else { panic!() };
    assert!(why.contains("no space left on the device") && why.contains("DISK_WAIT"), "{why}");
}

#[test]
fn cursors_of_start_and_idle_are_kept_with_their_offers() {
    let journal = Journal::new();
    let mut played = over(&journal);
    let seeds = (0..3).map(|n| job(n, &format!("http://a.test/{n}"))).collect();
    played.order(Order::Offer { offer: 1, jobs: seeds, seeds: true });
    let by_idle = |n: u64| {
        let mut job = job(n, "http://a.test/again");
        job.id = RequestId::child(Some(RequestId::IDLE), n);
        job.parent = Some(RequestId::IDLE);
        job
    };
    played.order(Order::Offer { offer: 2, jobs: vec![by_idle(0), by_idle(1)], seeds: false });
    assert_eq!(journal.next_run().cursors(), Cursors::default());
    played.turn();
    assert_eq!(journal.next_run().cursors(), Cursors { start: 3, idle: 2 });
    let mut next = over(&journal.next_run());
    next.order(Order::Offer { offer: 1, jobs: vec![by_idle(2)], seeds: false });
    assert_eq!(next.frontier.cursors(), Cursors { start: 3, idle: 3 });
}

fn delayed(journal: &Journal, unix: u64) -> Played {
    let (stats, now) = (Stats::new(), Instant::now());
    let pacing = Pacing { per_slot: 8, delay: 2_000 * MS, jitter: 0.0, ..Pacing::default() };
    let clock = Clock::at(now, Duration::from_secs(unix));
    journal.clone().recover().unwrap();
    let frontier = Frontier::new(SchedulerConfig { pacing, ..config() }, Box::new(journal.clone()), stats.clone(), clock, now);
    Played { frontier, stats, now, offers: 0, index: 0, facts: VecDeque::new() }
}

#[test]
fn the_next_run_keeps_the_delay_after_the_last_request_of_the_one_before() {
    let journal = Journal::new();
    let mut first = delayed(&journal, 1000);
    first.pages(&["http://a.test/1", "http://a.test/2"]);
    let due = first.pull(5).jobs.remove(0);
    first.now += 500 * MS;
    first.order(Order::Sent { id: crate::scheduler::job::RequestId(0), slot: due.slot.clone(), at: first.now });
    first.end(&due);
    first.turn();
    // Half a second after the sending.
    let mut next = delayed(&journal.next_run(), 1001);
    assert!(next.pull(5).jobs.is_empty());
    next.now += 1_499 * MS;
    assert!(next.next_paths().is_empty());
    next.now += MS;
    assert_eq!(next.next_paths(), ["/2"]);
}

#[test]
fn a_request_that_may_have_been_sent_when_the_process_ended_counts_as_sent() {
    let journal = Journal::new();
    let mut first = delayed(&journal, 1000);
    first.pages(&["http://a.test/1"]);
    first.pull(5);
    let mut next = delayed(&journal.next_run(), 1001);
    assert!(next.pull(5).jobs.is_empty());
    next.now += 1_000 * MS;
    assert_eq!(next.next_paths(), ["/1"]);
}

#[test]
fn a_gate_of_the_job_holds_the_next_run_too_and_one_of_the_run_does_not() {
    let journal = Journal::new();
    let mut first = over(&journal);
    first.pages(&["http://a.test/1", "http://b.test/2"]);
    for (host, hold) in [("a.test", Hold::Job), ("b.test", Hold::Run)] {
        let scope = GateScope::Slot(SlotKey(host.into()));
        first.frontier.control(Control::Gate { scope, until: first.now + 5_000 * MS, hold }, first.now);
    }
    first.turn();
    let mut next = over(&journal.next_run());
    assert_eq!(next.pulled(5), ["http://b.test/2"]);
    next.now += 5_000 * MS;
    assert_eq!(next.next_paths(), ["/1"]);
}

#[test]
fn gates_that_are_over_cost_the_next_run_nothing() {
    let journal = Journal::new();
    let mut first = delayed(&journal, 1000);
    for n in 0..20 {
        first.pages(&[&format!("http://{n}.test/")]);
    }
    for due in first.pull(100).jobs {
        first.end(&due);
    }
    first.turn();
    let mut next = delayed(&journal.next_run(), 1_000_000);
    assert_eq!(next.frontier.slots.len(), 0);
    assert_eq!(next.frontier.store.gates(Duration::ZERO), []);
}

#[test]
fn states_are_kept_every_quarter_of_a_second_and_at_the_end() {
    let journal = Journal::new();
    let mut played = over(&journal);
    let stats = played.stats.clone();
    let take = move || Some(stats.count("n").to_string().into_bytes());
    played.frontier.keep("counters", Box::new(take), played.now);
    let kept = |journal: &Journal| journal.next_run().saved("counters").unwrap();
    played.stats.inc("n");
    assert_eq!(played.turn(), Some(played.now + 250 * MS));
    assert_eq!(kept(&journal), None);
    played.now += 250 * MS;
    played.turn();
    assert_eq!(kept(&journal), Some(b"1".to_vec()));
    played.stats.inc("n");
    played.frontier.close(Some(("finished", vec![7]))).unwrap();
    assert_eq!(kept(&journal), Some(b"2".to_vec()));
    assert_eq!(journal.next_run().saved("finished").unwrap(), Some(vec![7]));
    let mut memory = Played::new(config());
    memory.frontier.keep("counters", Box::new(|| panic!("nobody would read it")), memory.now);
    memory.now += 5_000 * MS;
    assert_eq!(memory.turn(), None);
}
