//! Lost connections and servers: nothing is lost, nothing is doubled.

use std::io::{Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use super::super::{Answer, Batch, Origin, RedisError, RedisOptions, RedisStore};
use super::server::{Server, member};
use super::{LONG, ask, done, ids, lease, offer};
use crate::scheduler::job::Outcome;
use crate::scheduler::store::{Store, StoreError};
use crate::scheduler::testing::{job, unfiltered};

/// A way to a server on which answers get lost: as many as the counter says.
pub(super) struct Way {
    port: u16,
    lose: Arc<AtomicU32>,
}

impl Way {
    pub(super) fn to(port: u16) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let way = Self { port: listener.local_addr().unwrap().port(), lose: Arc::default() };
        let lose = Arc::clone(&way.lose);
        // It ends with the test's process; there is nothing in it to clean up.
        std::thread::spawn(move || {
            for client in listener.incoming() {
                let (client, lose) = (client.unwrap(), Arc::clone(&lose));
                std::thread::spawn(move || {
                    let Ok(server) = TcpStream::connect(("127.0.0.1", port)) else { return };
                    let (mut from, mut to) = (client.try_clone().unwrap(), server.try_clone().unwrap());
                    std::thread::spawn(move || std::io::copy(&mut from, &mut to));
                    back(server, client, &lose);
                });
            }
        });
        way
    }

    /// Lets the next answers get lost, and their connections with them.
    pub(super) fn lose(&self, answers: u32) {
        self.lose.store(answers, Ordering::SeqCst);
    }

    pub(super) fn join(&self, job: &str, worker: &str) -> RedisStore {
        let url = format!("redis://127.0.0.1:{}", self.port).parse().unwrap();
        RedisStore::open(&url, member(job, worker), RedisOptions { visibility: LONG, ..RedisOptions::default() }).unwrap()
    }
}

fn back(mut server: TcpStream, mut client: TcpStream, lose: &AtomicU32) {
    let mut buffer = [0; 65_536];
    while let Ok(size @ 1..) = server.read(&mut buffer) {
        if lose.fetch_update(Ordering::SeqCst, Ordering::SeqCst, |left| left.checked_sub(1)).is_ok() {
            break;
        }
        if client.write_all(&buffer[..size]).is_err() {
            break;
        }
    }
    let _ = client.shutdown(Shutdown::Both);
    let _ = server.shutdown(Shutdown::Both);
}

#[test]
fn a_batch_whose_answer_was_lost_is_done_once_and_answered() {
    let server = Server::start();
    let way = Way::to(server.port);
    let mut store = way.join("j", "one");
    way.lose(1);
    let jobs = [unfiltered(job(0, "http://a/1")), unfiltered(job(1, "http://a/2"))];
    assert_eq!(offer(&mut store, &jobs).stored, 2);
    assert_eq!(way.lose.load(Ordering::SeqCst), 0, "an answer was lost");
    way.lose(1);
    let given = lease(&mut store, 5);
    assert_eq!(given.len(), 2, "the same two, not the next");
    way.lose(1);
    assert!(done(&mut store, |batch| batch.settle(given[0].id, Outcome::Handled)), "true for the one time");
    let books = store.view().books;
    assert_eq!((books.enqueued, books.handled, books.pending), (2, 1, 1));
}

#[test]
fn a_batch_that_failed_is_given_again_and_done_once() {
    let server = Server::start();
    let way = Way::to(server.port);
    let mut store = way.join("j", "one");
    let mut batch = Batch::new();
    batch.offer(&[unfiltered(job(0, "http://a/1"))], Origin::Callback);
    batch.lease(1);
    // The first answer, and those to every attempt to connect again.
    way.lose(2);
    let error = store.apply(&mut batch).unwrap_err();
    assert!(error.is_transient(), "{error}");
    assert!(matches!(error, RedisError::Unreachable { .. }), "{error}");
    way.lose(0);
    let applied = store.apply(&mut batch).unwrap();
    assert!(matches!(&applied.answers[0], Answer::Offered(offered) if offered.stored == 1));
    assert!(matches!(&applied.answers[1], Answer::Leased(leased) if leased.len() == 1));
    assert_eq!((applied.view.books.enqueued, applied.view.held), (1, 1));
}

#[test]
fn the_plain_store_answers_a_repeated_call_with_what_happened() {
    let server = Server::start();
    let way = Way::to(server.port);
    let mut store = way.join("j", "one");
    way.lose(2);
    let mut jobs = vec![unfiltered(job(0, "http://a/1"))];
    assert!(matches!(store.offer(&mut jobs), Err(StoreError::Io(_))));
    assert_eq!(jobs.len(), 1, "the caller keeps them");
    way.lose(0);
    assert!(store.mark_seen(5).unwrap(), "something else comes first");
    assert_eq!(store.offer(&mut jobs).unwrap().stored, 1);
    assert_eq!(store.books().enqueued, 1);
    // A pull nobody heard of goes back to its place.
    way.lose(2);
    assert!(store.pull(&super::host("a"), LONG).is_err());
    way.lose(0);
    store.commit().unwrap();
    assert_eq!((store.view().out, store.view().books.pending), (0, 1));
    assert!(crate::scheduler::suite::pull(&mut store, "a", LONG).is_some());
}

#[test]
fn a_server_that_is_killed_and_started_again_goes_on_where_it_was() {
    let mut server = Server::with(&["--save", "", "--appendonly", "yes", "--appendfsync", "always"]);
    let (mut one, mut two) = (server.join("j", "one", LONG), server.join("j", "two", LONG));
    let jobs: Vec<_> = (0..40).map(|n| job(n, &format!("http://h{n}/"))).collect();
    offer(&mut one, &jobs[..30]);
    let given = ids(&lease(&mut one, 10));
    assert_eq!(given.len(), 10);
    server.kill();
    let mut settles = Batch::new();
    given.iter().for_each(|id| settles.settle(*id, Outcome::Handled));
    assert!(matches!(one.apply(&mut settles), Err(RedisError::Unreachable { .. })));
    assert!(matches!(one.apply(&mut settles), Err(error) if error.is_transient()));
    server.restart();
    let applied = one.apply(&mut settles).unwrap();
    assert!(applied.answers.iter().all(|answer| matches!(answer, Answer::Done(true))));
    assert_eq!(offer(&mut two, &jobs).stored, 10, "the seen set is there");
    assert_eq!(lease(&mut two, 100).len(), 30);
    let books = two.view().books;
    assert!(books.balances());
    assert_eq!((books.enqueued, books.handled, books.pending), (40, 10, 30));
}

/// Lets the server forget the last batches of a worker, as one that is killed with `appendfsync everysec` may.
fn forget_batches(server: &Server, count: i64) {
    redis::cmd("HINCRBY").arg("dragline:{j}:worker:one").arg("number").arg(-count).exec(&mut server.plain()).unwrap();
}

#[test]
fn a_worker_goes_on_after_batches_the_server_lost_unless_it_runs_start_or_idle() {
    let server = Server::start();
    let mut one = server.join("j", "one", LONG);
    offer(&mut one, &[job(0, "http://a/1")]);
    forget_batches(&server, 1);
    assert_eq!(lease(&mut one, 1).len(), 1);
    assert_eq!(one.missed(), 1);
    assert!(lease(&mut one, 1).is_empty());
    assert_eq!(one.missed(), 1, "it is counted once");
    ask(&mut one, Batch::claim_start);
    assert!(done(&mut one, Batch::finish_start));
    forget_batches(&server, 2);
    ask(&mut one, |batch| batch.lease(0));
    assert_eq!(one.missed(), 3);
    redis::cmd("HDEL").arg("dragline:{j}:meta").arg("start_done").exec(&mut server.plain()).unwrap();
    ask(&mut one, Batch::claim_start);
    ask(&mut one, |batch| batch.offer(&[job(1, "http://a/2")], Origin::Start { cursor: 1 }));
    forget_batches(&server, 1);
    assert!(matches!(one.apply(&mut Batch::new()), Err(RedisError::Rewound { .. })), "it is beyond the server's cursor");
}

#[test]
fn a_server_that_lost_what_it_answered_is_no_more_used() {
    let mut server = Server::start();
    let mut one = server.join("j", "one", LONG);
    offer(&mut one, &[job(0, "http://a/1")]);
    server.kill();
    server.restart();
    let error = one.apply(&mut Batch::new()).unwrap_err();
    assert!(matches!(&error, RedisError::Rewound { .. }), "{error}");
    assert!(!error.is_transient());
}

#[test]
fn a_worker_whose_name_another_took_is_told() {
    let server = Server::start();
    let mut one = server.join("j", "same", LONG);
    offer(&mut one, &[job(0, "http://a/1")]);
    assert_eq!(lease(&mut one, 1).len(), 1);
    let mut again = server.join("j", "same", LONG);
    assert!(matches!(one.apply(&mut Batch::new()), Err(RedisError::WorkerTaken { .. })));
    assert_eq!(again.recover().unwrap(), 1, "what it held under that name is the new one's to return");
    assert_eq!(lease(&mut again, 1).len(), 1);
}

#[test]
fn scripts_the_server_forgot_are_taught_again() {
    let server = Server::start();
    let mut one = server.join("j", "one", LONG);
    redis::cmd("SCRIPT").arg("FLUSH").exec(&mut server.plain()).unwrap();
    assert_eq!(offer(&mut one, &[job(0, "http://a/1")]).stored, 1);
    ask(&mut one, |batch| batch.lease(1));
    assert_eq!(one.view().held, 1);
}

#[test]
fn a_server_that_does_not_answer_in_time_is_unreachable() {
    let server = Server::start();
    let options = RedisOptions { reply_timeout: Duration::from_millis(200), ..RedisOptions::default() };
    let mut one = RedisStore::open(&server.url(), member("j", "one"), options).unwrap();
    server.freeze(true);
    let mut batch = Batch::new();
    batch.offer(&[unfiltered(job(0, "http://a/1"))], Origin::Callback);
    let error = one.apply(&mut batch).unwrap_err();
    assert!(matches!(&error, RedisError::Unreachable { .. }), "{error}");
    server.freeze(false);
    one.apply(&mut batch).unwrap();
    assert_eq!(one.view().books.enqueued, 1, "also when the server did it meanwhile");
}
