//! A job seen and changed by an operator.

use super::super::{Batch, Ended, Kept, Page, RedisAdmin, RedisError, RedisOptions, RedisStore};
use super::server::Server;
use super::{LONG, ZERO, lease, offer, paths};
use crate::api::failure::FailureKind;
use crate::scheduler::job::Outcome;
use crate::scheduler::testing::{job, with_priority};

fn admin(server: &Server) -> RedisAdmin {
    RedisAdmin::open(&server.url(), "j", RedisOptions::default()).unwrap()
}

fn all(mut page: impl FnMut(u64) -> Result<Page, RedisError>) -> Vec<Kept> {
    let (mut all, mut next) = (Vec::new(), Some(0));
    while let Some(at) = next {
        let page = page(at).unwrap();
        all.extend(page.kept);
        next = page.next;
    }
    all
}

/// Six requests: two failed by timeout, one by status, one set aside, one handled, one out.
fn ended(server: &Server) -> RedisStore {
    let mut store = server.join("j", "w", LONG);
    let jobs: Vec<_> =
        (0..7).map(|n| with_priority(job(n, &format!("http://h{n}/{n}")), 7 - i32::try_from(n).unwrap())).collect();
    offer(&mut store, &jobs);
    let mut given = lease(&mut store, 6);
    given.sort_by_key(|given| given.host.clone());
    let outcomes = [
        Outcome::Failed(FailureKind::Timeout),
        Outcome::Failed(FailureKind::HttpStatus),
        Outcome::Failed(FailureKind::Timeout),
        Outcome::SetAside,
        Outcome::Handled,
    ];
    let mut batch = Batch::new();
    given.iter().zip(outcomes).for_each(|(given, outcome)| batch.settle(given.id, outcome));
    store.apply(&mut batch).unwrap();
    store
}

#[test]
fn a_survey_tells_what_a_job_holds() {
    let server = Server::start();
    let store = ended(&server);
    let survey = admin(&server).survey().unwrap();
    assert_eq!((survey.spider.as_str(), survey.books), ("shop", store.view().books));
    assert_eq!(survey.reasons, [("timeout".to_owned(), 2), ("http_status".to_owned(), 1)]);
    assert_eq!((survey.out, survey.seen, survey.hosts), (1, 7, 1));
    assert_eq!((survey.workers[0].name.as_str(), survey.workers[0].held), ("w", 1));
    assert!(survey.workers[0].silent_for < LONG && !survey.created.is_zero());
    let (hosts, next) = admin(&server).hosts(0).unwrap();
    assert_eq!((hosts[0].0.0.as_ref(), hosts[0].1, next), ("h6", 1, None));
    let mut pending: Vec<String> =
        all(|at| admin(&server).pending(at)).into_iter().map(|kept| kept.job.unwrap().url().path().to_owned()).collect();
    pending.sort();
    assert_eq!(pending, ["/5", "/6"]);
}

#[test]
fn dead_letters_keep_their_reason_and_go_back_when_they_are_wanted() {
    let server = Server::start();
    let mut store = ended(&server);
    let mut dead: Vec<(String, String)> = all(|at| admin(&server).ended(Ended::Failed, at))
        .into_iter()
        .map(|kept| (kept.reason, kept.job.unwrap().url().path().to_owned()))
        .collect();
    dead.sort();
    let row = |reason: &str, path: &str| (reason.to_owned(), path.to_owned());
    assert_eq!(dead, [row("http_status", "/1"), row("timeout", "/0"), row("timeout", "/2")]);
    assert_eq!(admin(&server).requeue(Ended::Failed, |reason, _| reason == "timeout").unwrap(), 2);
    assert_eq!(admin(&server).requeue(Ended::Failed, |reason, _| reason == "timeout").unwrap(), 0);
    assert_eq!(admin(&server).requeue(Ended::SetAside, |_, job| job.url().path() == "/3").unwrap(), 1);
    let given = lease(&mut store, 10);
    let mut back = paths(&given);
    back.sort();
    assert_eq!(back, ["/0", "/2", "/3", "/6"]);
    let books = store.view().books;
    assert!(books.balances());
    assert_eq!((books.failed, books.set_aside, books.pending), (1, 0, 5));
    assert_eq!(admin(&server).survey().unwrap().reasons, [row("http_status", "/1").0].map(|reason| (reason, 1)));
}

#[test]
fn what_goes_back_begins_its_attempts_anew_and_obeys_its_hosts_clock() {
    let server = Server::start();
    let mut store = server.join("j", "w", LONG);
    offer(&mut store, &[job(0, "http://a/1")]);
    let mut tried = *lease(&mut store, 1).remove(0).job.unwrap();
    tried.attempts = 3;
    let mut batch = Batch::new();
    batch.put_back(&tried, ZERO);
    batch.lease(1);
    batch.settle(tried.id, Outcome::Failed(FailureKind::Timeout));
    batch.sent(&super::host("a"), tried.id, ZERO, LONG, 1.0);
    store.apply(&mut batch).unwrap();
    let kept = all(|at| admin(&server).ended(Ended::Failed, at)).remove(0);
    assert_eq!(kept.job.unwrap().attempts, 3);
    assert_eq!(admin(&server).requeue(Ended::Failed, |_, _| true).unwrap(), 1);
    assert!(lease(&mut store, 1).is_empty(), "the host's delay is not over");
    store.apply(&mut Batch::new()).unwrap();
    assert!(store.view().next_due.unwrap() > LONG / 2);
    assert_eq!(all(|at| admin(&server).pending(at)).remove(0).job.unwrap().attempts, 0);
}

#[test]
fn a_forgotten_job_leaves_no_key() {
    let server = Server::start();
    let mut store = ended(&server);
    let deleted = admin(&server).forget().unwrap();
    assert!(deleted > 10, "{deleted}");
    let left: u64 = redis::cmd("DBSIZE").query(&mut server.plain()).unwrap();
    assert_eq!(left, 0);
    assert!(matches!(store.apply(&mut Batch::new()), Err(RedisError::Rewound { .. })));
    assert!(RedisAdmin::jobs(&server.url(), RedisOptions::default()).unwrap().is_empty());
}

#[test]
fn a_record_that_cannot_be_read_is_handed_out_as_such_and_can_be_set_aside() {
    let server = Server::start();
    let mut store = server.join("j", "w", LONG);
    offer(&mut store, &[job(0, "http://a/1")]);
    let id = crate::scheduler::job::RequestId::child(None, 0);
    redis::cmd("HSET").arg("dragline:{j}:jobs").arg(&id.0.to_be_bytes()[..]).arg("\u{ff}").exec(&mut server.plain()).unwrap();
    let given = lease(&mut store, 1).remove(0);
    assert_eq!((given.id, given.host.0.as_ref(), given.job.is_err()), (id, "a", true));
    assert!(super::done(&mut store, |batch| batch.settle(id, Outcome::SetAside)));
    assert!(all(|at| admin(&server).ended(Ended::SetAside, at)).remove(0).job.is_err());
    assert_eq!(admin(&server).requeue(Ended::SetAside, |_, _| true).unwrap(), 0);
}
