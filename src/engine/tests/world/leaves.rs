//! Broker and downloader of the world: leases granted or refused, attempts that are answered, fail, or lead elsewhere.

use super::*;
use crate::downloader::message::Hop;

impl World {
    pub(super) fn lease(&mut self, tag: Tag) {
        if self.dice.chance(self.mood.refuse) {
            let why = if self.dice.chance(3) { RefusalKind::Invalid } else { TEMPORARY[self.dice.below(TEMPORARY.len())] };
            let refusal = Refusal { why, retry_after: None, message: "all in use".into() };
            let wait = Duration::from_millis(100);
            self.hub.fact(Fact::Refused(Refused { tag, refusal, wait, is_held: false }), self.now);
            return;
        }
        self.leases += 1;
        self.granted += 1;
        self.held.lock().unwrap().insert(self.leases);
        let grant = Grant {
            lease: LeaseId(self.leases.to_string().into()),
            identity: IdentityKey { site: "site".into(), name: "one".into() },
            credential: Arc::new(Credential::default()),
            proxy: None,
            about: About::default(),
            expires_at: self.now + Duration::from_secs(if self.dice.chance(self.mood.trouble) { 2 } else { 300 }),
            renew_before: Duration::from_secs(if self.dice.chance(50) { 1 } else { 200 }),
        };
        self.hub.fact(Fact::Leased(Leased { tag, grant }), self.now);
    }

    pub(super) fn fetch(&mut self, tag: Tag, job: &Job) {
        self.sent += 1;
        if self.wants_sent.remove(&tag) {
            self.hub.fact(Fact::Sent(Sent { tag, at: self.now }), self.now);
        }
        let ok = attempt(Some(200), None, self.now);
        let (verdict, attempt) = if job.kind == JobKind::Robots {
            let status = if self.dice.chance(20) { 404 } else { 200 };
            (Verdict::Deliver(Box::new(reply(status))), ok)
        } else if self.dice.chance(self.mood.fail) {
            let fault = Fault::new(FailureKind::Lost, "lost");
            (Verdict::Fail(fault.clone(), None), attempt(None, Some(fault), self.now))
        } else if job.attempts < 3 && self.dice.chance(self.mood.retry) {
            let fault = self.dice.chance(50).then(|| Fault::new(FailureKind::Timeout, "late"));
            let status = fault.is_none().then_some(503);
            (Verdict::Retry { reason: "again".into(), after: Duration::from_millis(500) }, attempt(status, fault, self.now))
        } else if job.hops < 4 && self.dice.chance(self.mood.redirect) {
            let host = if self.dice.chance(30) { "http://b.test" } else { "http://a.test" };
            let to = format!("{host}/r/{}", self.dice.below(200)).parse().unwrap();
            (Verdict::Redirect(Hop::to(to)), attempt(Some(302), None, self.now))
        } else {
            (Verdict::Deliver(Box::new(reply(200))), ok)
        };
        self.last_or_failed += u64::from(attempt.fault.is_some() || matches!(verdict, Verdict::Deliver(_)));
        self.hub.fact(Fact::Fetched(Box::new(Fetched { tag, verdict, attempt })), self.now);
    }

    pub(super) fn cancelled(&mut self, tag: Tag) {
        self.sent += 1;
        let fault = Fault::new(FailureKind::Cancelled, "the job stops");
        let attempt = attempt(None, Some(fault.clone()), self.now);
        self.hub.fact(Fact::Fetched(Box::new(Fetched { tag, verdict: Verdict::Fail(fault, None), attempt })), self.now);
    }
}

fn reply(status: u16) -> Reply {
    Reply {
        status: StatusCode::from_u16(status).unwrap(),
        version: Version::HTTP_11,
        headers: HeaderMap::new(),
        body: Bytes::new(),
        wire_bytes: 0,
        flags: BodyFlags::default(),
    }
}

fn attempt(status: Option<u16>, fault: Option<Fault>, now: Instant) -> Attempt {
    Attempt { status, fault, sent_at: Some(now), latency: Duration::from_millis(3), bytes: 100, ..Attempt::default() }
}
