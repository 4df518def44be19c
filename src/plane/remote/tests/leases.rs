//! Leases of the server's model, over a socket.

use super::*;

#[tokio::test]
async fn a_lease_is_granted_renewed_and_given_back() {
    let stage = Stage::new(1).await;
    let remote = stage.remote(ALL);
    let grant = remote.acquire(ask("/feed")).await.unwrap();
    assert_eq!((&*grant.identity.site, &*grant.about.group), ("shop", "_default"));
    assert_eq!(grant.credential.cookie_header().unwrap(), "session=c4n4ry-0");
    assert_eq!(grant.proxy, None);
    let left = grant.expires_at.saturating_duration_since(Instant::now());
    assert!(left > 110 * SECOND && left <= 120 * SECOND && grant.renew_before == 30 * SECOND, "{left:?}");

    tokio::time::sleep(SECOND / 20).await;
    let later = remote.renew(grant.lease.clone()).await.unwrap();
    let moved = later.saturating_duration_since(grant.expires_at);
    assert!(moved >= SECOND / 25 && moved < SECOND, "{moved:?}");

    assert_eq!(stage.count("open"), 1);
    for _ in 0..2 {
        assert_eq!(remote.release(grant.lease.clone()).await, Ok(()));
    }
    assert_eq!((stage.count("open"), stage.count("released")), (0, 1));
    let over = remote.renew(grant.lease.clone()).await;
    assert!(matches!(&over, Err(PlaneError::NoLease(lease)) if **lease == *grant.lease.0), "{over:?}");

    let second = remote.acquire(ask("/other")).await.unwrap();
    assert!(Arc::ptr_eq(&grant.credential, &second.credential), "nothing of the identity has changed");
    assert!(remote.is_remote() && remote.ledger().is_none());
    stage.end().await;
}

#[tokio::test]
async fn a_lease_nobody_knows_is_told_apart_from_one_that_is_over() {
    let stage = Stage::new(1).await;
    let remote = stage.remote(ALL);
    let grant = remote.acquire(ask("/")).await.unwrap();
    let address = stage.server.addr();
    stage.end().await;
    let stage = Stage::at(plane(1, ""), address).await;
    let id = grant.lease.0.to_string();
    assert_eq!(remote.renew(grant.lease.clone()).await, Err(PlaneError::UnknownLease(id.clone())));
    assert_eq!(remote.release(grant.lease.clone()).await, Err(PlaneError::UnknownLease(id)));
    stage.end().await;
}

#[tokio::test]
async fn a_batch_gives_leases_of_distinct_identities_and_never_more_than_there_are() {
    let stage = Stage::new(3).await;
    let remote = stage.remote(ALL);
    let grants = remote.acquire_batch(ask("/"), 5).await.unwrap();
    let mut names: Vec<&str> = grants.iter().map(|grant| &*grant.identity.name).collect();
    names.sort_unstable();
    names.dedup();
    assert_eq!(names.len(), 3, "{names:?}");
    let refusal = remote.acquire_batch(ask("/"), 5).await.unwrap_err();
    assert_eq!(refusal.why, RefusalKind::NoIdentity);
    remote.release(grants[0].lease.clone()).await.unwrap();
    let one = remote.acquire_batch(ask("/"), 1).await.unwrap();
    assert_eq!(one.len(), 1);
    assert_eq!((stage.count("acquired"), stage.count("open")), (4, 3));
    stage.end().await;
}

#[tokio::test]
async fn the_server_may_wait_for_an_identity() {
    let stage = Stage::new(1).await;
    let remote = stage.remote_with(ALL, RemoteOptions { wait: SECOND, ..RemoteOptions::default() });
    let grant = remote.acquire(ask("/")).await.unwrap();
    let (next, ()) = tokio::join!(remote.acquire(ask("/")), async {
        tokio::time::sleep(SECOND / 5).await;
        remote.release(grant.lease.clone()).await.unwrap();
    });
    assert_eq!(next.unwrap().identity, grant.identity);
    let refusal = stage.remote(ALL).acquire(ask("/")).await.unwrap_err();
    assert_eq!(refusal.why, RefusalKind::NoIdentity);
    assert!(refusal.retry_after.is_some_and(|wait| wait > Duration::ZERO), "{refusal:?}");
    stage.end().await;
}

#[tokio::test]
async fn pauses_breakers_names_and_tokens_are_refused_as_what_they_are() {
    let stage = Stage::new(2).await;
    let remote = stage.remote(ALL);
    let named =
        |site: &str, client: &str, group: &str| Ask { site: site.into(), client: client.into(), group: group.into(), ..ask("/") };
    for (ask, why) in [
        (named("nowhere", "web", ""), RefusalKind::SiteUnknown),
        (named("shop", "app", ""), RefusalKind::ClientUnknown),
        (named("shop", "web", "nothing"), RefusalKind::GroupUnknown),
        (named("", "web", ""), RefusalKind::Invalid),
        (Ask { path: "feed".to_owned(), ..named("shop", "web", "") }, RefusalKind::Invalid),
    ] {
        let refusal = remote.acquire(ask.clone()).await.unwrap_err();
        assert_eq!(refusal.why, why, "{ask:?}: {refusal:?}");
        assert!(!refusal.message.is_empty());
    }
    for (number, why) in
        [(UNKNOWN, RefusalKind::Unauthorized), (REVOKED, RefusalKind::Unauthorized), (OTHER, RefusalKind::Forbidden)]
    {
        assert_eq!(stage.remote(number).acquire(ask("/")).await.unwrap_err().why, why, "{number}");
    }
    let slow = stage.remote(SLOW);
    let mut refusal = None;
    for _ in 0..5 {
        refusal = slow.acquire(ask("/")).await.err().or(refusal);
    }
    let refusals: Vec<_> = refusal.into_iter().map(|refusal| (refusal.why, refusal.retry_after.is_some())).collect();
    assert!(matches!(refusals[..], [(RefusalKind::RateLimited | RefusalKind::NoIdentity, true)]), "{refusals:?}");

    stage.face.with_plane(|plane, now| plane.open_breaker("shop", "web", "_default", Some(60_000), "test", now)).unwrap();
    let refusal = remote.acquire(ask("/")).await.unwrap_err();
    assert!(refusal.why == RefusalKind::CircuitOpen && refusal.retry_after.is_some(), "{refusal:?}");
    stage.face.with_plane(|plane, now| plane.pause("shop", "test", now)).unwrap();
    let refusal = remote.acquire(ask("/")).await.unwrap_err();
    assert!(refusal.why == RefusalKind::SitePaused && refusal.retry_after == Some(30 * SECOND), "{refusal:?}");
    stage.end().await;
}

#[tokio::test]
async fn a_closed_plane_asks_nobody() {
    let stage = Stage::new(1).await;
    let remote = stage.remote_with(ALL, RemoteOptions { wait: 5 * SECOND, ..RemoteOptions::default() });
    let held = remote.acquire(ask("/")).await.unwrap();
    let (waiting, ()) = tokio::join!(remote.acquire(ask("/")), async {
        tokio::time::sleep(SECOND / 10).await;
        remote.close(SECOND).await;
    });
    assert_eq!(waiting.unwrap_err().why, RefusalKind::Unanswered, "it was under way");
    let refusal = remote.acquire(ask("/")).await.unwrap_err();
    assert_eq!(refusal.why, RefusalKind::Unreachable, "nothing was sent");
    assert!(matches!(remote.release(held.lease.clone()).await, Err(PlaneError::Invalid(_))));
    assert!(matches!(remote.report(vec![report(1, &held.lease)]).await, Err(PlaneError::Invalid(_))));
    assert!(matches!(remote.follow(vec![ConfigKey::new("g", "k")]).await, Err(PlaneError::Invalid(_))));
    remote.close(SECOND).await;
    stage.end().await;
}

#[tokio::test]
async fn debug_texts_show_no_token_and_no_credential() {
    let proxies = "proxies = [{ url = \"http://user:c4n4ry-password@127.0.0.1:3128\" }]\n[sites.proxy]\nmode = \"pool\"\n";
    let stage = Stage::at(plane(1, proxies), SocketAddr::from((Ipv4Addr::LOCALHOST, 0))).await;
    let remote = stage.remote(ALL);
    let grant = remote.acquire(ask("/")).await.unwrap();
    assert_eq!(grant.proxy.as_ref().unwrap().expose(), "http://user:c4n4ry-password@127.0.0.1:3128");
    assert!(grant.about.proxy.is_some());
    let refusal = remote.acquire(ask("/")).await.unwrap_err();
    let wrong = stage.remote(UNKNOWN);
    let unauthorized = wrong.acquire(ask("/")).await.unwrap_err();
    let error = wrong.report(vec![report(1, &grant.lease)]).await.unwrap_err();
    let texts = [
        format!("{remote:?} {grant:?} {:?} {refusal:?} {}", remote.grants, refusal.message),
        format!("{wrong:?} {unauthorized:?} {} {error:?} {error}", unauthorized.message),
    ];
    for text in texts {
        for secret in ["c4n4ry", &token(ALL), &token(UNKNOWN)] {
            assert!(!text.contains(secret), "{text}");
        }
    }
    stage.end().await;
}

#[tokio::test]
async fn a_host_that_no_rule_covers_needs_no_server() {
    let stage = Stage::new(1).await;
    let remote = stage.remote(ALL);
    stage.end().await;
    let nobody = |host: &str| Ask { site: host.into(), client: "".into(), anonymous: true, ..ask("/") };
    let one = remote.acquire(nobody("a.example")).await.unwrap();
    let two = remote.acquire_batch(nobody("b.example"), 7).await.unwrap().remove(0);
    assert_eq!((&*one.identity.site, &*two.identity.site), ("a.example", "b.example"));
    assert!(one.lease != two.lease && one.credential.is_empty() && one.proxy.is_none());
    assert!(one.expires_at > Instant::now() + one.renew_before);
    assert!(remote.renew(one.lease.clone()).await.unwrap() >= one.expires_at);
    assert_eq!(remote.report(vec![report(1, &one.lease), report(2, &two.lease)]).await, Ok(Taken::default()));
    assert_eq!(remote.release(one.lease).await, Ok(()));
}
