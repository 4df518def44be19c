//! The embedded plane against a model that remembers everything and derives its answers from the whole history.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing)]

use std::time::Duration;

use proptest::prelude::*;
use tokio::time::Instant;

use super::roster::{Identity, Pool, Proxy, ReuseAnchor, Roster, Site};
use super::tests::{ask, report};
use super::*;
use crate::plane::ProxyUrl;

const TTL: u64 = 30;
const REUSE: [u64; 3] = [0, 4, 9];
const CONCURRENCY: [u32; 3] = [1, 2, 3];
const PROXIES: usize = 3;
const COOLDOWN_429: u64 = 20;
const COOLDOWN_403: u64 = 50;
const COOLDOWN_PROXY: u64 = 15;

#[derive(Debug, Clone)]
enum Step {
    Acquire {
        group: bool,
    },
    Anonymous,
    /// Of the n-th lease ever granted, whatever became of it.
    Report {
        lease: usize,
        release: bool,
        what: What,
        repeat: bool,
    },
    Release(usize),
    Renew(usize),
    Pass(u64),
}

#[derive(Debug, Clone, Copy)]
enum What {
    Fine,
    TooMany(Option<u64>),
    Forbidden,
    ProxyFailed,
}

#[derive(Debug)]
struct Known {
    id: LeaseId,
    /// Identity, group and proxy; `None` for an anonymous lease.
    of: Option<(usize, usize, usize)>,
    granted: Instant,
    expires: Instant,
    ended: Option<(Instant, End)>,
    reports: Vec<u64>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum End {
    Released,
    Expired,
}

#[derive(Default)]
struct Model {
    leases: Vec<Known>,
    /// Identity, group, until.
    rests: Vec<(usize, usize, Instant)>,
    proxy_rests: Vec<(usize, Instant)>,
    reports: u64,
}

impl Model {
    fn expire(&mut self, now: Instant, anchor: ReuseAnchor) {
        for index in 0..self.leases.len() {
            let lease = &self.leases[index];
            if lease.ended.is_none() && lease.expires <= now {
                let at = lease.expires;
                self.end(index, at, End::Expired, anchor);
            }
        }
    }

    fn end(&mut self, index: usize, at: Instant, how: End, anchor: ReuseAnchor) {
        self.leases[index].ended = Some((at, how));
        if let (Some((identity, group, _)), ReuseAnchor::Released) = (self.leases[index].of, anchor) {
            self.rests.push((identity, group, at + Duration::from_secs(REUSE[identity])));
        }
    }

    fn open(&self) -> impl Iterator<Item = &Known> {
        self.leases.iter().filter(|lease| lease.ended.is_none())
    }

    fn open_of(&self, identity: usize) -> usize {
        self.open().filter(|lease| lease.of.is_some_and(|of| of.0 == identity)).count()
    }

    fn open_through(&self, proxy: usize) -> usize {
        self.open().filter(|lease| lease.of.is_some_and(|of| of.2 == proxy)).count()
    }

    fn identity_rest(&self, identity: usize, group: usize, now: Instant) -> Option<Instant> {
        let rests = self.rests.iter().filter(|rest| rest.0 == identity && rest.1 == group && rest.2 > now);
        rests.map(|rest| rest.2).max()
    }

    fn proxy_rest(&self, proxy: usize, now: Instant) -> Option<Instant> {
        self.proxy_rests.iter().filter(|rest| rest.0 == proxy && rest.1 > now).map(|rest| rest.1).max()
    }

    /// The identity and the proxy that must be granted, or the refusal with its hint.
    fn expected(&self, group: usize, now: Instant) -> Result<(usize, usize), (RefusalKind, Option<Duration>)> {
        let busy = |identity: usize| self.open_of(identity) >= CONCURRENCY[identity] as usize;
        let resting = |identity: usize| self.identity_rest(identity, group, now);
        let fitting: Vec<usize> = (0..3).filter(|i| !busy(*i) && resting(*i).is_none()).collect();
        let proxies: Vec<usize> =
            (0..PROXIES).filter(|p| self.open_through(*p) < 2 && self.proxy_rest(*p, now).is_none()).collect();
        let last = |pick: &dyn Fn(&(usize, usize, usize)) -> bool| {
            self.leases.iter().rposition(|lease| lease.of.as_ref().is_some_and(pick)).map_or(0, |at| at + 1)
        };
        let identity = fitting.iter().copied().min_by_key(|i| (last(&|of| of.0 == *i), *i));
        let proxy = proxies.iter().copied().min_by_key(|p| (last(&|of| of.2 == *p), *p));
        if let (Some(identity), Some(proxy)) = (identity, proxy) {
            return Ok((identity, proxy));
        }
        let why = if identity.is_some() { RefusalKind::NoProxy } else { RefusalKind::NoIdentity };
        // When a proxy is free: now, at a known time, or whenever a lease is given back.
        let proxy_at = if proxy.is_some() {
            Some(now)
        } else if (0..PROXIES).any(|p| self.open_through(p) >= 2) {
            None
        } else {
            (0..PROXIES).filter_map(|p| self.proxy_rest(p, now)).min()
        };
        let known = (0..3).map(|i| if busy(i) { None } else { Some(resting(i).unwrap_or(now)) });
        let joint: Option<Vec<Instant>> = known.map(|at| Some(at?.max(proxy_at?))).collect();
        Err((why, joint.and_then(|all| all.into_iter().min()).map(|at| at - now)))
    }

    fn ledger(&self) -> PlaneLedger {
        let count = |how| self.leases.iter().filter(|lease| lease.ended.is_some_and(|end| end.1 == how)).count() as u64;
        PlaneLedger {
            acquired: self.leases.len() as u64,
            released: count(End::Released),
            expired: count(End::Expired),
            open: self.open().count() as u64,
            reports: self.reports,
            cooled: 0,
        }
    }
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let what = prop_oneof![
        6 => Just(What::Fine),
        1 => proptest::option::of(1u64..90).prop_map(What::TooMany),
        1 => Just(What::Forbidden),
        1 => Just(What::ProxyFailed),
    ];
    let step = prop_oneof![
        6 => any::<bool>().prop_map(|group| Step::Acquire { group }),
        1 => Just(Step::Anonymous),
        5 => (0usize..40, any::<bool>(), what, proptest::bool::weighted(0.2))
            .prop_map(|(lease, release, what, repeat)| Step::Report { lease, release, what, repeat }),
        2 => (0usize..40).prop_map(Step::Release),
        2 => (0usize..40).prop_map(Step::Renew),
        4 => (1u64..25).prop_map(Step::Pass),
    ];
    proptest::collection::vec(step, 1..120)
}

fn roster(anchor: ReuseAnchor) -> Roster {
    let identities = (0..3)
        .map(|index| {
            let mut identity = Identity::new(&format!("i{index}"));
            identity.concurrency = CONCURRENCY[index];
            identity.reuse_interval = Duration::from_secs(REUSE[index]);
            identity
        })
        .collect();
    let mut site = Site::new("shop", identities);
    site.groups.push(roster::Group { name: "search".into(), prefixes: vec!["/search".into()] });
    site.rules.ttl = Duration::from_secs(TTL);
    site.rules.reuse_anchor = anchor;
    site.rules.cooldown_429 = Duration::from_secs(COOLDOWN_429);
    site.rules.cooldown_403 = Duration::from_secs(COOLDOWN_403);
    site.rules.cooldown_proxy = Duration::from_secs(COOLDOWN_PROXY);
    let proxy = |index: usize| Proxy {
        name: format!("p{index}").into(),
        url: ProxyUrl(format!("http://10.0.0.{index}:1").into()),
        concurrency: 2,
    };
    site.pool = Pool::Own((0..PROXIES).map(proxy).collect());
    Roster { sites: vec![site], proxies: Vec::new() }
}

async fn run(steps: Vec<Step>, anchor: ReuseAnchor) {
    let plane = Embedded::new(Some(&roster(anchor)));
    let mut model = Model::default();
    let mut next_report = 0;
    for step in steps {
        let now = Instant::now();
        model.expire(now, anchor);
        match step {
            Step::Acquire { group } => acquire(&plane, &mut model, usize::from(group), now, anchor),
            Step::Anonymous => {
                let mut ask = ask("elsewhere.example", "/");
                ask.anonymous = true;
                let grant = plane.acquire_now(&ask).unwrap();
                let expires = now + ANONYMOUS_TTL;
                let lease = Known { id: grant.lease, of: None, granted: now, expires, ended: None, reports: Vec::new() };
                model.leases.push(lease);
            }
            Step::Report { lease, release, what, repeat } => {
                let Some(known) = model.leases.get(lease) else { continue };
                let id = known.reports.last().copied().filter(|_| repeat).unwrap_or_else(|| {
                    next_report += 1;
                    next_report
                });
                let mut sent = report(id, &known.id, release);
                match what {
                    What::Fine => {}
                    What::TooMany(retry_after) => {
                        sent.status = Some(429);
                        sent.retry_after = retry_after.map(Duration::from_secs);
                    }
                    What::Forbidden => sent.status = Some(403),
                    What::ProxyFailed => (sent.status, sent.error) = (None, Some(ErrorKind::ProxyAuth)),
                }
                let rejected = plane.report_now(&[sent]);
                if known.ended.is_some() {
                    assert_eq!(rejected.len(), 1, "a report on a lease that is over is rejected");
                    continue;
                }
                assert_eq!(rejected, [], "a report on an open lease is taken");
                if !known.reports.contains(&id) {
                    model.reports += 1;
                    if let Some((identity, group, proxy)) = known.of {
                        let rest = |seconds| now + Duration::from_secs(seconds);
                        match what {
                            What::Fine => {}
                            What::TooMany(asked) => {
                                model.rests.push((identity, group, rest(COOLDOWN_429.max(asked.unwrap_or(0)))));
                            }
                            What::Forbidden => model.rests.push((identity, group, rest(COOLDOWN_403))),
                            What::ProxyFailed => model.proxy_rests.push((proxy, rest(COOLDOWN_PROXY))),
                        }
                    }
                }
                model.leases[lease].reports.push(id);
                if release {
                    model.end(lease, now, End::Released, anchor);
                }
            }
            Step::Release(lease) => {
                let Some(known) = model.leases.get(lease) else { continue };
                plane.release_now(&known.id);
                if known.ended.is_none() {
                    model.end(lease, now, End::Released, anchor);
                }
            }
            Step::Renew(lease) => {
                let Some(known) = model.leases.get_mut(lease) else { continue };
                let renewed = plane.renew_now(&known.id);
                if known.ended.is_some() {
                    assert_eq!(renewed, Err(PlaneError::NoLease(known.id.0.to_string())));
                } else {
                    known.expires = now + if known.of.is_some() { Duration::from_secs(TTL) } else { ANONYMOUS_TTL };
                    assert_eq!(renewed, Ok(known.expires));
                }
            }
            Step::Pass(seconds) => tokio::time::advance(Duration::from_secs(seconds)).await,
        }
        model.expire(Instant::now(), anchor);
        let ledger = plane.ledger().unwrap();
        assert_eq!(ledger, model.ledger());
        assert!(ledger.balances());
    }
}

fn acquire(plane: &Embedded, model: &mut Model, group: usize, now: Instant, anchor: ReuseAnchor) {
    let answer = plane.acquire_now(&ask("shop", if group == 1 { "/search?q" } else { "/book" }));
    match (model.expected(group, now), answer) {
        (Ok((identity, proxy)), Ok(grant)) => {
            assert_eq!(*grant.identity.name, format!("i{identity}"));
            assert_eq!(grant.proxy.unwrap().expose(), format!("http://10.0.0.{proxy}:1"));
            if anchor == ReuseAnchor::Acquired {
                model.rests.push((identity, group, now + Duration::from_secs(REUSE[identity])));
            }
            let of = Some((identity, group, proxy));
            let expires = now + Duration::from_secs(TTL);
            assert_eq!(grant.expires_at, expires);
            assert!(model.leases.iter().all(|known| known.id != grant.lease && known.granted <= now));
            model.leases.push(Known { id: grant.lease, of, granted: now, expires, ended: None, reports: Vec::new() });
        }
        (Err((why, hint)), Err(refusal)) => assert_eq!((refusal.why, refusal.retry_after), (why, hint)),
        (expected, answer) => panic!("expected {expected:?}, the plane said {answer:?}"),
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn the_plane_and_the_model_never_disagree(steps in steps(), released in any::<bool>()) {
        let anchor = if released { ReuseAnchor::Released } else { ReuseAnchor::Acquired };
        crate::actor::run_local(run(steps, anchor));
    }
}
