//! A job in a cluster: its keys are in one slot, on one node, which is found from any other.

use std::thread::sleep;
use std::time::{Duration, Instant};

use super::super::{RedisAdmin, RedisOptions, RedisStore};
use super::server::{Server, member};
use super::{LONG, done, lease, offer};
use crate::scheduler::job::Outcome;
use crate::scheduler::testing::{child, job};

/// Two nodes that know each other; the second has all slots.
fn nodes() -> (Server, Server) {
    let args = ["--save", "", "--cluster-enabled", "yes", "--cluster-require-full-coverage", "no"];
    let (asked, has) = (Server::with(&args), Server::with(&args));
    let (mut one, mut two) = (asked.plain(), has.plain());
    let slots: Vec<u16> = (0..16_384).collect();
    redis::cmd("CLUSTER").arg("ADDSLOTS").arg(slots).exec(&mut two).unwrap();
    redis::cmd("CLUSTER").arg("MEET").arg("127.0.0.1").arg(has.port).exec(&mut one).unwrap();
    let until = Instant::now() + Duration::from_secs(20);
    for plain in [&mut one, &mut two] {
        while !redis::cmd("CLUSTER").arg("INFO").query::<String>(plain).unwrap().contains("cluster_slots_assigned:16384")
            || !redis::cmd("CLUSTER").arg("INFO").query::<String>(plain).unwrap().contains("cluster_state:ok")
        {
            assert!(Instant::now() < until, "the nodes meet");
            sleep(Duration::from_millis(50));
        }
    }
    (asked, has)
}

#[test]
fn a_job_is_found_from_any_node_and_lives_in_one_slot() {
    let (asked, has) = nodes();
    let options = RedisOptions { visibility: LONG, ..RedisOptions::default() };
    let mut store = RedisStore::open(&asked.url(), member("j", "w"), options.clone()).unwrap();
    offer(&mut store, &[job(0, "http://a/1"), job(1, "http://b/2")]);
    let parent = lease(&mut store, 1).remove(0).id;
    offer(&mut store, &[child(parent, 0, "http://c/3")]);
    assert!(done(&mut store, |batch| batch.settle(parent, Outcome::Handled)));
    assert_eq!(lease(&mut store, 5).len(), 2);
    let mut plain = has.plain();
    let keys: Vec<String> = redis::cmd("KEYS").arg("*").query(&mut plain).unwrap();
    let slot = |key: &String| redis::cmd("CLUSTER").arg("KEYSLOT").arg(key).query::<u16>(&mut has.plain()).unwrap();
    assert!(keys.len() > 8 && keys.iter().all(|key| slot(key) == slot(&keys[0])), "{keys:?}");
    let mut admin = RedisAdmin::open(&asked.url(), "j", options).unwrap();
    assert_eq!(admin.survey().unwrap().books.pending, 2);
    admin.forget().unwrap();
    assert_eq!(redis::cmd("DBSIZE").query::<u64>(&mut plain).unwrap(), 0);
}
