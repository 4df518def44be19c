//! A small plane for tests: the site `shop`, its client `web`, and a clock that only moves when it is told to.

use std::sync::Arc;

use secrecy::SecretString;
use serde_json::{Value, json};

use crate::dice::Dice;
use crate::plane::model::authority::Plane;
use crate::plane::model::groups::{Group, Groups, Rule, RuleKind};
use crate::plane::model::import::Attributes;
use crate::plane::model::policy::Policy;
use crate::plane::model::proxy_url::ProxyUrl;
use crate::plane::model::refusal::{Reason, Refusal};
use crate::plane::model::render;
use crate::plane::model::scope::Scopes;
use crate::plane::model::token::{RateLimit, Token};
use crate::plane::model::{Ms, import};
use crate::plane::seed::{
    AccountStart, Given, Seed, SeedAccount, SeedClient, SeedIdentity, SeedPolicies, SeedProxy, SeedSite, SeedToken, Start,
};
use crate::spinneret::messages::{ReleaseRequest, RenewRequest};
use crate::spinneret::{AcquireBatchRequest, AcquireBatchResponse, AcquireRequest, AcquireResponse, Report, ReportResponse};

pub(super) const SECOND: Ms = 1_000;
pub(super) const MINUTE: Ms = 60 * SECOND;
pub(super) const HOUR: Ms = 60 * MINUTE;
/// A whole day, so that buckets of every length begin here.
pub(super) const NOW: Ms = 20_000 * 24 * HOUR;
const TEXT: &str = "spn_0123456789abcdefghijklmnopqrstuvwxyzABCDEFG";

/// What a plane is made of.
pub(super) struct Setup(pub(super) Seed);

impl Setup {
    /// A site `shop` with the groups `search` (`/search/`), `item` (`/item/{id}`) and `_default`, and nobody to lease.
    pub(super) fn new() -> Self {
        let token = Token {
            name: "crawler".into(),
            namespace: "prod".into(),
            scopes: Scopes::everything(),
            networks: Vec::new(),
            expires_at: None,
            rate_limit: None,
        };
        Self(Seed {
            namespace: "prod".into(),
            tokens: vec![SeedToken { text: SecretString::from(TEXT), token, is_revoked: false }],
            sites: vec![site("shop")],
            proxies: Vec::new(),
            policies: SeedPolicies::default(),
            config: Vec::new(),
            secrets: Vec::new(),
            files: Vec::new(),
        })
    }

    pub(super) fn token(mut self, change: impl FnOnce(&mut SeedToken)) -> Self {
        change(&mut self.0.tokens[0]);
        self
    }

    pub(super) fn scopes(self, scopes: &[&str]) -> Self {
        let scopes = Scopes::parse(scopes.iter().copied()).unwrap();
        self.token(|token| token.token.scopes = scopes)
    }

    pub(super) fn rate(self, rate: u32) -> Self {
        self.token(|token| token.token.rate_limit = RateLimit::new(rate).unwrap())
    }

    pub(super) fn site(&mut self) -> &mut SeedSite {
        &mut self.0.sites[0]
    }

    /// Identities `i0`, `i1` and so on, after those that are there.
    pub(super) fn identities(mut self, many: usize, state: Start) -> Self {
        for _ in 0..many {
            let id = format!("i{}", self.site().identities.len());
            self.site().identities.push(identity(&id, state));
        }
        self
    }

    /// Active ones.
    pub(super) fn active(self, many: usize) -> Self {
        self.identities(many, Start::Active)
    }

    /// Puts these identities into an account.
    pub(super) fn account(mut self, name: &str, members: std::ops::Range<usize>) -> Self {
        self.site().accounts.push(SeedAccount { name: name.into(), state: AccountStart::Active });
        for identity in &mut self.site().identities[members] {
            identity.attributes.account = Some(name.to_owned());
        }
        self
    }

    /// Shared proxies `p0`, `p1` and so on, of these regions.
    pub(super) fn proxies(mut self, regions: &[&str]) -> Self {
        for region in regions {
            let number = self.0.proxies.len();
            self.0.proxies.push(proxy(&format!("p{number}"), region));
        }
        self
    }

    pub(super) fn rotation(mut self, policy: Value) -> Self {
        self.0.policies.rotation.push(read(policy));
        self
    }

    pub(super) fn signal(mut self, policy: Value) -> Self {
        self.0.policies.signal.push(read(policy));
        self
    }

    pub(super) fn action(mut self, policy: Value) -> Self {
        self.0.policies.action.push(read(policy));
        self
    }

    pub(super) fn breaker(mut self, policy: Value) -> Self {
        self.0.policies.breaker.push(read(policy));
        self
    }

    pub(super) fn open(self) -> World {
        self.open_with(Dice::new(7))
    }

    pub(super) fn open_with(self, dice: Dice) -> World {
        let token = Arc::new(self.0.tokens[0].token.clone());
        World { plane: Plane::new(self.0, NOW, dice).unwrap(), token, now: NOW, reports: 0 }
    }
}

/// A policy bound to the whole namespace, unless it says otherwise.
fn read<P: Policy>(mut policy: Value) -> Arc<P> {
    let map = policy.as_object_mut().unwrap();
    map.entry("name").or_insert(json!("tested"));
    map.entry("bind").or_insert(json!({}));
    Arc::new(P::read(&policy).unwrap())
}

pub(super) fn site(name: &str) -> SeedSite {
    let rule = |kind, pattern: &str| Rule { kind, pattern: pattern.into(), position: 0, id: pattern.into() };
    let written = vec![
        Group { name: "search".into(), rules: vec![rule(RuleKind::Prefix, "/search/")] },
        Group { name: "item".into(), rules: vec![rule(RuleKind::Template, "/item/{id}")] },
    ];
    let groups = Groups::compile(name, "web", &written).unwrap();
    SeedSite {
        name: name.into(),
        clients: vec![SeedClient { name: "web".into(), written, groups }],
        types: Vec::new(),
        identities: Vec::new(),
        accounts: Vec::new(),
        proxies: Vec::new(),
        paused: None,
    }
}

pub(super) fn identity(id: &str, state: Start) -> SeedIdentity {
    let headers = [("x-id".to_owned(), id.to_owned())].into();
    let credential = render::Credential { headers, ..render::Credential::default() };
    SeedIdentity {
        id: id.into(),
        kind: "plain".into(),
        given: Given::Plain(Arc::new(credential)),
        clients: vec!["web".into()],
        state,
        attributes: Attributes::default(),
        proxy: None,
    }
}

pub(super) fn proxy(id: &str, region: &str) -> SeedProxy {
    let proxy = import::Proxy {
        url: ProxyUrl::parse(&format!("http://user:pass@{id}.test:3128")).unwrap(),
        kind: "datacenter".into(),
        region: region.into(),
        city: String::new(),
        provider: String::new(),
        tags: Vec::new(),
        max_concurrency: 1,
        session_template: None,
    };
    SeedProxy { id: id.into(), proxy, reserved_for: None }
}

/// A plane, a caller and a clock.
pub(super) struct World {
    pub(super) plane: Plane,
    pub(super) token: Arc<Token>,
    pub(super) now: Ms,
    reports: u64,
}

impl World {
    pub(super) fn pass(&mut self, time: Ms) {
        self.now += time;
        self.plane.tick(self.now);
    }

    pub(super) fn enter(&mut self) -> Result<Arc<Token>, Refusal> {
        self.plane.enter(Some(&format!("Bearer {TEXT}")), None, self.now)
    }

    pub(super) fn try_acquire(&mut self, group: &str) -> Result<AcquireResponse, Refusal> {
        self.request(&AcquireRequest::new("shop", "web").endpoint_group(group))
    }

    pub(super) fn request(&mut self, request: &AcquireRequest) -> Result<AcquireResponse, Refusal> {
        self.plane.acquire(&self.token, request, self.now)
    }

    /// The lease, or the test fails.
    #[track_caller]
    pub(super) fn acquire(&mut self, group: &str) -> AcquireResponse {
        self.try_acquire(group).unwrap()
    }

    /// Why not, and the hint.
    #[track_caller]
    pub(super) fn refused(&mut self, group: &str) -> (Reason, Ms) {
        let refusal = self.try_acquire(group).unwrap_err();
        (refusal.reason.unwrap(), refusal.retry_after.unwrap_or(0))
    }

    pub(super) fn batch(&mut self, group: &str, count: i32) -> Result<AcquireBatchResponse, Refusal> {
        let each = AcquireRequest::new("shop", "web").endpoint_group(group);
        self.plane.acquire_batch(&self.token, &AcquireBatchRequest::new(each, count), self.now)
    }

    pub(super) fn release(&mut self, lease: &str) -> Result<bool, Reason> {
        let released = self.plane.release(&self.token, &ReleaseRequest::new(lease), self.now);
        released.map(|response| response.released).map_err(|refusal| refusal.reason.unwrap())
    }

    pub(super) fn renew(&mut self, lease: &str, extend: i32) -> Result<Ms, Reason> {
        let request = RenewRequest { lease_id: lease.to_owned(), extend_ms: extend };
        match self.plane.renew(&self.token, &request, self.now) {
            Ok(response) => Ok(response.expires_at.unwrap().as_millisecond() as Ms),
            Err(refusal) => Err(refusal.reason.unwrap()),
        }
    }

    /// A report that does not release, with a new id.
    pub(super) fn make(&mut self, lease: &str, status: i32) -> Report {
        self.reports += 1;
        let at = super::super::timestamp(self.now);
        Report {
            report_id: format!("r{}", self.reports),
            lease_id: lease.to_owned(),
            uri: "/search/x".into(),
            method: "GET".into(),
            http_status: status,
            business_code: String::new(),
            error_kind: String::new(),
            markers: Vec::new(),
            outcome_hint: String::new(),
            latency_ms: 10,
            response_bytes: 100,
            started_at: at,
            finished_at: at,
            release: false,
        }
    }

    pub(super) fn send(&mut self, reports: Vec<Report>) -> ReportResponse {
        self.plane.report(&self.token, reports.into_iter().map(Ok).collect(), self.now).unwrap()
    }

    /// Reports a status, and the lease goes on.
    #[track_caller]
    pub(super) fn report(&mut self, lease: &str, status: i32) {
        let report = self.make(lease, status);
        assert_eq!(self.send(vec![report]).accepted, 1);
    }

    /// Reports a marker on a 200.
    #[track_caller]
    pub(super) fn mark(&mut self, lease: &str, marker: &str) {
        let report = Report { markers: vec![marker.to_owned()], ..self.make(lease, 200) };
        assert_eq!(self.send(vec![report]).accepted, 1);
    }

    /// Reports a transport error.
    #[track_caller]
    pub(super) fn fail(&mut self, lease: &str, kind: &str) {
        let report = Report { error_kind: kind.to_owned(), ..self.make(lease, 0) };
        assert_eq!(self.send(vec![report]).accepted, 1);
    }

    /// One whole cycle: lease, report, release; answers the identity.
    #[track_caller]
    pub(super) fn cycle(&mut self, group: &str, status: i32) -> String {
        let lease = self.acquire(group).lease;
        let report = Report { release: true, ..self.make(&lease.lease_id, status) };
        assert_eq!(self.send(vec![report]).accepted, 1);
        lease.identity_id
    }

    pub(super) fn state(&self, identity: &str) -> String {
        self.plane.ledger().sites["shop"].identities[identity].state.clone()
    }

    /// The cool-down of an identity in a group that is left, in milliseconds.
    pub(super) fn cooldown(&self, identity: u32, group: &str) -> Ms {
        let site = &self.plane.sites[0];
        let group = site.groups.iter().find(|known| *known.name == *group).unwrap();
        group.states.get(identity).map_or(0, |state| state.cooldown.saturating_sub(self.now))
    }

    /// The cool-down of an identity on the site that is left, in milliseconds.
    pub(super) fn site_cooldown(&self, identity: u32) -> Ms {
        self.plane.sites[0].identities[identity as usize].site_cooldown.saturating_sub(self.now)
    }
}
