//! What a server or a job is refused for, in which words.

use super::super::{Answer, Batch, Membership, Origin, RedisAdmin, RedisError, RedisOptions, RedisStore, RedisUrl};
use super::server::{Server, member};
use super::{LONG, ZERO, done, lease, offer};
use crate::scheduler::job::Outcome;
use crate::scheduler::pacing::Pacing;
use crate::scheduler::store::StoreError;
use crate::scheduler::testing::job;

fn refusal(url: &str, member: Membership) -> RedisError {
    let url: RedisUrl = url.parse().unwrap();
    RedisStore::open(&url, member, RedisOptions::default()).unwrap_err()
}

fn check(error: &RedisError, parts: &[&str]) {
    let text = error.to_string();
    for part in parts {
        assert!(text.contains(part), "{part:?} in {text}");
    }
    assert!(!format!("{text} {error:?}").contains("s3cret"), "{text}");
}

#[test]
fn a_server_that_is_not_there_is_unreachable() {
    let port = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let error = refusal(&format!("redis://:s3cret@127.0.0.1:{port}"), member("j", "w"));
    assert!(error.is_transient());
    check(&error, &["cannot be reached", &format!("127.0.0.1:{port}"), "refused"]);
}

#[test]
fn a_password_is_needed_and_checked() {
    let server = Server::start();
    redis::cmd("CONFIG").arg("SET").arg("requirepass").arg("good").exec(&mut server.plain()).unwrap();
    for user in ["", ":s3cret@", "crawl:s3cret@"] {
        let error = refusal(&format!("redis://{user}127.0.0.1:{}", server.port), member("j", "w"));
        assert!(matches!(error, RedisError::Auth { .. }), "{user}: {error:?}");
        check(&error, &["does not let us in", "redis://[user]:password@"]);
    }
    let url = format!("redis://:good@127.0.0.1:{}", server.port).parse().unwrap();
    RedisStore::open(&url, member("j", "w"), RedisOptions::default()).unwrap();
}

#[test]
fn a_user_without_the_rights_is_told_which_are_needed() {
    let server = Server::start();
    let mut plain = server.plain();
    let rights = ["~dragline:*", "+@all", "-evalsha", "-eval"];
    redis::cmd("ACL").arg("SETUSER").arg("crawl").arg("on").arg(">s3cret").arg(&rights).exec(&mut plain).unwrap();
    let url = format!("redis://crawl:s3cret@127.0.0.1:{}", server.port);
    let error = refusal(&url, member("j", "w"));
    assert!(matches!(error, RedisError::NotAllowed { .. }), "{error:?}");
    check(&error, &["dragline:*", "EVAL"]);
    redis::cmd("ACL").arg("SETUSER").arg("crawl").arg("+evalsha").arg("+eval").exec(&mut plain).unwrap();
    let mut store = RedisStore::open(&url.parse().unwrap(), member("j", "w"), RedisOptions::default()).unwrap();
    offer(&mut store, &[job(0, "http://a/1")]);
    assert_eq!(lease(&mut store, 1).len(), 1, "these rights are enough");
}

#[test]
fn a_database_is_used_and_one_that_is_not_there_refused() {
    let server = Server::start();
    let error = refusal(&format!("redis://127.0.0.1:{}/99", server.port), member("j", "w"));
    check(&error, &["no database 99", "another number"]);
    let url = format!("redis://127.0.0.1:{}/3", server.port).parse().unwrap();
    RedisStore::open(&url, member("three", "w"), RedisOptions::default()).unwrap();
    assert_eq!(RedisAdmin::jobs(&url, RedisOptions::default()).unwrap(), ["three"]);
    assert!(RedisAdmin::jobs(&server.url(), RedisOptions::default()).unwrap().is_empty());
}

#[test]
fn a_replica_is_refused_until_it_is_a_primary() {
    let primary = Server::start();
    let server = Server::start();
    let mut store = server.join("j", "w", LONG);
    let mut plain = server.plain();
    redis::cmd("REPLICAOF").arg("127.0.0.1").arg(primary.port).exec(&mut plain).unwrap();
    let mut batch = Batch::new();
    batch.offer(&[job(0, "http://a/1")], Origin::Callback);
    let error = store.apply(&mut batch).unwrap_err();
    assert!(error.is_transient(), "a failover may be under way: {error:?}");
    assert!(matches!(error, RedisError::ReadOnly { .. } | RedisError::NotReady { .. }), "{error:?}");
}

#[test]
fn at_maxmemory_offers_are_refused_and_the_rest_goes_on() {
    let server = Server::start();
    let mut store = server.join_paced("j", "w", LONG, &Pacing { per_slot: 1, delay: ZERO, ..Pacing::default() });
    offer(&mut store, &[job(0, "http://a/1"), job(1, "http://a/2")]);
    let mut plain = server.plain();
    let mut limit = |bytes: u64| redis::cmd("CONFIG").arg("SET").arg("maxmemory").arg(bytes).exec(&mut plain).unwrap();
    limit(1);
    let mut batch = Batch::new();
    batch.lease(1);
    batch.offer(&[job(2, "http://a/3")], Origin::Callback);
    let answers = store.apply(&mut batch).unwrap().answers;
    assert!(matches!(&answers[..], [Answer::Leased(leased), Answer::Full] if leased.len() == 1), "{answers:?}");
    let out = crate::scheduler::job::RequestId::child(None, 0);
    assert!(done(&mut store, |batch| batch.settle(out, Outcome::Handled)));
    assert_eq!(lease(&mut store, 1).len(), 1);
    let refused = crate::scheduler::store::Store::offer(&mut store, &mut vec![job(2, "http://a/3")]);
    assert!(matches!(refused, Err(StoreError::Io(text)) if text.contains("maxmemory")));
    limit(0);
    assert_eq!(offer(&mut store, &[job(2, "http://a/3")]).stored, 1, "nothing of it was taken before");
    assert!(store.view().books.balances());
}

#[test]
fn a_server_that_throws_keys_away_is_refused() {
    let server = Server::with(&["--save", "", "--maxmemory", "100mb", "--maxmemory-policy", "allkeys-lru"]);
    let error = refusal(&format!("redis://127.0.0.1:{}", server.port), member("j", "w"));
    check(&error, &["allkeys-lru", "noeviction"]);
}

#[test]
fn a_job_of_another_kind_spider_or_version_is_refused() {
    let server = Server::start();
    let mut plain = server.plain();
    let url = format!("redis://127.0.0.1:{}", server.port);
    redis::cmd("SET").arg("dragline:{text}:meta").arg("1").exec(&mut plain).unwrap();
    check(&refusal(&url, member("text", "w")), &["no frontier of ours", "dragline:{text}:meta"]);
    redis::cmd("HSET").arg("dragline:{hash}:meta").arg("a").arg("1").exec(&mut plain).unwrap();
    check(&refusal(&url, member("hash", "w")), &["no frontier of ours"]);
    server.join("j", "w", LONG);
    let other = Membership { spider: "news".to_owned(), ..member("j", "w") };
    check(&refusal(&url, other), &["belongs to the spider \"shop\"", "\"news\"", "another job id"]);
    redis::cmd("HSET").arg("dragline:{j}:meta").arg("format").arg("2").exec(&mut plain).unwrap();
    check(&refusal(&url, member("j", "w")), &["format 2", "up to 1"]);
    let admin = RedisAdmin::open(&server.url(), "j", RedisOptions::default());
    assert!(matches!(admin, Err(RedisError::Newer { .. })));
    let admin = RedisAdmin::open(&server.url(), "nobody's", RedisOptions::default());
    assert!(matches!(admin, Err(RedisError::NoSuchJob { .. })));
}

#[test]
fn names_have_a_length() {
    let url = "redis://127.0.0.1:1";
    for member in [member("", "w"), member("j", ""), member("j", &"w".repeat(201)), member("j\0", "w")] {
        assert!(matches!(refusal(url, member), RedisError::Name { .. }));
    }
}

#[test]
fn a_server_that_has_too_many_clients_may_have_room_in_a_while() {
    let server = Server::start();
    let mut plain = server.plain();
    redis::cmd("CONFIG").arg("SET").arg("maxclients").arg(1).exec(&mut plain).unwrap();
    let error = refusal(&format!("redis://127.0.0.1:{}", server.port), member("j", "w"));
    assert!(error.is_transient(), "{error:?}");
    // It says why and closes at once: whether its words come before the reset of the connection is chance.
    let is_told = error.to_string().contains("not ready");
    check(&error, if is_told { &["not ready", "clients"] } else { &["cannot be reached"] });
}
