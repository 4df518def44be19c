//! Who runs `start()` and `idle`, and when the job is over.

use std::thread::sleep;
use std::time::Duration;

use super::super::{Answer, Batch, Claim, FleetState, Origin, RedisStore};
use super::server::Server;
use super::{LONG, ask, done, lease};
use crate::scheduler::job::Outcome;
use crate::scheduler::store::{Cursors, Store};
use crate::scheduler::testing::job;

const SHORT: Duration = Duration::from_millis(400);

fn claim(store: &mut RedisStore, write: impl FnOnce(&mut Batch)) -> Claim {
    match ask(store, write) {
        Answer::Claim(claim) => claim,
        other => panic!("{other:?}"),
    }
}

#[test]
fn one_worker_runs_start_and_another_goes_on_at_the_cursor_when_it_is_lost() {
    let server = Server::start();
    let (mut one, mut two) = (server.join("j", "one", SHORT), server.join("j", "two", SHORT));
    assert!(two.view().start_open);
    assert_eq!(claim(&mut one, Batch::claim_start), Claim::Mine { cursor: 0 });
    assert_eq!(claim(&mut two, Batch::claim_start), Claim::Theirs);
    assert!(!two.view().start_open);
    let seeds = [job(0, "http://a/0"), job(1, "http://a/1")];
    let from = |cursor| Origin::Start { cursor };
    assert!(matches!(ask(&mut two, |batch| batch.offer(&seeds, from(2))), Answer::NotClaimed));
    assert!(matches!(ask(&mut one, |batch| batch.offer(&seeds, from(2))), Answer::Offered(offered) if offered.stored == 2));
    sleep(SHORT + Duration::from_millis(20));
    ask(&mut two, |batch| batch.lease(0));
    assert!(two.view().start_open, "the other one shows no sign of life");
    assert_eq!(claim(&mut two, Batch::claim_start), Claim::Mine { cursor: 2 });
    // The first one comes back late: what it offers is the other's to offer.
    assert!(matches!(ask(&mut one, |batch| batch.offer(&[job(2, "http://a/2")], from(3))), Answer::NotClaimed));
    assert!(!done(&mut one, Batch::finish_start));
    assert!(!two.view().start_finished);
    assert!(done(&mut two, Batch::finish_start));
    assert!(two.view().start_finished && !two.view().start_open);
    assert_eq!(claim(&mut one, Batch::claim_start), Claim::Nobody);
    assert_eq!(one.cursors(), Cursors { start: 2, idle: 0 });
}

#[test]
fn a_worker_that_leaves_lets_start_to_others_at_once() {
    let server = Server::start();
    let (mut one, mut two) = (server.join("j", "one", LONG), server.join("j", "two", LONG));
    assert_eq!(claim(&mut one, Batch::claim_start), Claim::Mine { cursor: 0 });
    ask(&mut one, Batch::leave);
    assert_eq!(claim(&mut two, Batch::claim_start), Claim::Mine { cursor: 0 });
}

#[test]
fn nobody_is_idle_or_finishes_while_another_still_works() {
    let server = Server::start();
    let (mut one, mut two) = (server.join("j", "one", LONG), server.join("j", "two", LONG));
    assert!(!one.view().is_idle(), "start() is not finished");
    claim(&mut one, Batch::claim_start);
    ask(&mut one, |batch| batch.offer(&[job(0, "http://a/0")], Origin::Start { cursor: 1 }));
    let out = lease(&mut one, 1).remove(0).id;
    assert!(done(&mut one, Batch::finish_start));
    assert_eq!(claim(&mut two, Batch::claim_idle), Claim::Nobody, "one is out");
    assert!(!done(&mut two, Batch::conclude));
    assert!(two.view().busy_elsewhere() && !two.view().is_idle());
    assert!(done(&mut one, |batch| batch.settle(out, Outcome::Handled)));
    assert_eq!(claim(&mut one, Batch::claim_idle), Claim::Mine { cursor: 0 });
    assert_eq!(claim(&mut two, Batch::claim_idle), Claim::Theirs);
    assert!(two.view().idle_elsewhere && two.view().busy_elsewhere() && one.view().is_idle());
    assert!(!done(&mut two, Batch::conclude), "idle may make more work");
    let more = [job(1, "http://a/1")];
    assert!(matches!(ask(&mut two, |batch| batch.offer(&more, Origin::Idle { cursor: 1 })), Answer::NotClaimed));
    assert!(matches!(ask(&mut one, |batch| batch.offer(&more, Origin::Idle { cursor: 1 })), Answer::Offered(_)));
    assert!(done(&mut one, Batch::finish_idle));
    assert!(!done(&mut two, Batch::conclude), "and has made some");
    let out = lease(&mut two, 1).remove(0).id;
    assert!(done(&mut two, |batch| batch.settle(out, Outcome::Handled)));
    assert_eq!(claim(&mut two, Batch::claim_idle), Claim::Mine { cursor: 1 });
    assert!(done(&mut two, Batch::finish_idle));
    assert!(done(&mut two, Batch::conclude));
    ask(&mut one, |batch| batch.lease(1));
    assert_eq!(one.view().state, FleetState::Finished);
}
