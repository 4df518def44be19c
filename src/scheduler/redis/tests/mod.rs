//! Tests against a real server, started for each test on a port of its own.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing, clippy::panic)]

mod admin;
mod chaos;
mod claims;
mod cluster;
mod fleet;
mod lost;
mod pacing;
mod places;
mod redirects;
mod refusals;
pub(crate) mod server;
mod shared;

use std::time::Duration;

use super::{Answer, Batch, Leased, Origin, RedisStore};
use crate::scheduler::job::{Job, RequestId, SlotKey};
use crate::scheduler::store::Offered;

/// A visibility that no test outlasts.
const LONG: Duration = Duration::from_secs(60);
const ZERO: Duration = Duration::ZERO;

/// One operation's answer.
fn ask(store: &mut RedisStore, write: impl FnOnce(&mut Batch)) -> Answer {
    let mut batch = Batch::new();
    write(&mut batch);
    let mut answers = store.apply(&mut batch).unwrap().answers;
    assert_eq!(answers.len(), 1);
    answers.remove(0)
}

fn done(store: &mut RedisStore, write: impl FnOnce(&mut Batch)) -> bool {
    match ask(store, write) {
        Answer::Done(done) => done,
        other => panic!("{other:?}"),
    }
}

fn offer(store: &mut RedisStore, jobs: &[Job]) -> Offered {
    match ask(store, |batch| batch.offer(jobs, Origin::Callback)) {
        Answer::Offered(offered) => offered,
        other => panic!("{other:?}"),
    }
}

fn lease(store: &mut RedisStore, max: usize) -> Vec<Leased> {
    match ask(store, |batch| batch.lease(max)) {
        Answer::Leased(leased) => leased,
        other => panic!("{other:?}"),
    }
}

fn paths(leased: &[Leased]) -> Vec<String> {
    leased.iter().map(|leased| leased.job.as_ref().unwrap().url().path().to_owned()).collect()
}

fn ids(leased: &[Leased]) -> Vec<RequestId> {
    leased.iter().map(|leased| leased.id).collect()
}

fn host(name: &str) -> SlotKey {
    SlotKey(name.into())
}
