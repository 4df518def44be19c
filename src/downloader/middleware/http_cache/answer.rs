//! The way back: what an answer from the wire does to what is stored.

use std::time::{Duration, SystemTime};

use bytes::Bytes;
use http::header::AGE;
use http::{HeaderMap, StatusCode};

use super::rfc9111::{self, Trouble};
use super::rules::{stored, trouble};
use super::{Asked, HttpCache, Question, State, bare, secrets};
use crate::downloader::cache_store::{EntryName, Found, Head};
use crate::downloader::middleware::granted;
use crate::downloader::progress::Tally;
use crate::downloader::transport::{BodyFlags, Reply};
use crate::plane::Grant;
use crate::scheduler::job::{Job, JobKind};

/// What an exchange came to.
pub(crate) enum Came {
    /// This is the answer, be it from the wire or a stored one that the wire confirmed or that stands in for an error.
    Reply(Reply, Then),
    /// The site confirmed something that is not there any more: it has to be asked again.
    Again,
}

/// What becomes of the store once it is known what becomes of the answer.
#[derive(Debug)]
pub(crate) enum Then {
    Nothing,
    /// The answer is stored, unless it is tried again.
    Keep(Box<(EntryName, Head, Bytes)>),
    /// A stored answer was given out: it goes if that is tried again.
    Used(EntryName),
    /// These go.
    Drop(Vec<EntryName>),
}

impl HttpCache {
    /// Makes of an answer from the wire what the request gets.
    pub(crate) async fn came(&self, asked: Asked, job: &Job, grant: &Grant, reply: Reply, tally: &Tally<'_>) -> Came {
        let question = match asked.0 {
            State::Passed => return Came::Reply(reply, Then::Nothing),
            State::Unsafe(names) => {
                let is_good = reply.status.is_success() || reply.status.is_redirection();
                return Came::Reply(reply, if is_good { Then::Drop(names.into()) } else { Then::Nothing });
            }
            State::Cached(question) => *question,
        };
        let now = SystemTime::now();
        let Question { name, stale, .. } = question;
        let question = Question { stale: None, ..question };
        let Some(found) = stale else {
            self.stats.inc("httpcache/firsthand");
            let then = self.keeps(&question, job, grant, &reply, now);
            return Came::Reply(reply, then.unwrap_or(Then::Nothing));
        };
        if reply.status == StatusCode::NOT_MODIFIED {
            return self.confirmed(&question, found, job, grant, &reply, now, tally).await;
        }
        if let Some(trouble) = trouble(reply.status) {
            return match self.in_place_of(&question, found, trouble, now, tally).await {
                Some(stale) => Came::Reply(stale, Then::Used(name)),
                // What is stored is still the last thing that is known.
                None => Came::Reply(reply, Then::Nothing),
            };
        }
        self.stats.inc("httpcache/invalidate");
        let then = self.keeps(&question, job, grant, &reply, now);
        Came::Reply(reply, then.unwrap_or_else(|| Then::Drop(vec![name])))
    }

    /// The stored answer that stands in for one that did not come, if there is one and it may.
    pub(crate) async fn in_spite_of_fault(&self, asked: Asked, tally: &Tally<'_>) -> Option<(Reply, Then)> {
        let State::Cached(mut question) = asked.0 else { return None };
        let found = question.stale.take()?;
        let reply = self.in_place_of(&question, found, Trouble::Unreachable, SystemTime::now(), tally).await?;
        Some((reply, Then::Used(question.name)))
    }

    /// Does to the store what is to be done, now that it is known whether the answer is tried again.
    pub(crate) async fn settle(&self, then: Then, is_tried_again: bool) {
        match then {
            Then::Nothing => {}
            Then::Keep(kept) if !is_tried_again => {
                let (name, head, body) = *kept;
                match self.store.put(name, head, body).await {
                    Ok(gone) => {
                        self.stats.inc("httpcache/store");
                        if gone > 0 {
                            self.stats.add("httpcache/evicted", i64::try_from(gone).unwrap_or(i64::MAX));
                        }
                    }
                    Err(error) => self.failed(&error),
                }
            }
            Then::Keep(_) => {}
            Then::Used(name) if is_tried_again => self.forget(name).await,
            Then::Used(_) => {}
            Then::Drop(names) => {
                for name in names {
                    self.forget(name).await;
                }
            }
        }
    }

    /// The site says that the stored answer still holds.
    #[allow(clippy::too_many_arguments, reason = "the two answers, and what they are answers to")]
    async fn confirmed(
        &self,
        question: &Question,
        found: Found,
        job: &Job,
        grant: &Grant,
        reply: &Reply,
        now: SystemTime,
        tally: &Tally<'_>,
    ) -> Came {
        if !rfc9111::confirms(&found.head.headers, &reply.headers) {
            self.stats.inc("httpcache/invalidate");
            self.forget(question.name).await;
            return Came::Again;
        }
        let Some(mut whole) = self.load(question, found, None, tally).await else { return Came::Again };
        self.stats.inc("httpcache/revalidate");
        let mut newer = reply.headers.clone();
        rfc9111::strip(&mut newer);
        granted::clear_headers(&mut newer, &bare(job.url()), &grant.credential);
        rfc9111::refresh(&mut whole.headers, &newer);
        whole.wire_bytes = reply.wire_bytes;
        let then = self.keeps(question, job, grant, &whole, now);
        Came::Reply(whole, then.unwrap_or_else(|| Then::Drop(vec![question.name])))
    }

    async fn in_place_of(
        &self,
        question: &Question,
        found: Found,
        trouble: Trouble,
        now: SystemTime,
        tally: &Tally<'_>,
    ) -> Option<Reply> {
        if !self.rules.stands_in(&found.head, &question.method, &question.headers, now, trouble) {
            return None;
        }
        let age = rfc9111::age(stored(&found.head, &question.method), now);
        let reply = self.load(question, found, Some(age), tally).await?;
        self.stats.inc("httpcache/errorrecovery");
        Some(reply)
    }

    /// What is kept of an answer; `None`: nothing may be.
    fn keeps(&self, question: &Question, job: &Job, grant: &Grant, reply: &Reply, now: SystemTime) -> Option<Then> {
        // An origin whose robots.txt cannot be read is asked again, and not for the stored trouble.
        let is_no_rule = job.kind == JobKind::Robots && (reply.status.is_server_error() || reply.status.as_u16() == 429);
        if is_no_rule || !self.rules.stores(&question.method, &question.headers, reply, now) {
            self.stats.inc("httpcache/uncacheable");
            return None;
        }
        let mut headers = reply.headers.clone();
        let url = bare(job.url());
        rfc9111::strip(&mut headers);
        granted::clear_headers(&mut headers, &url, &grant.credential);
        if secrets::repeats(&grant.credential, &question.headers, &headers, &reply.body) {
            self.stats.inc("httpcache/withheld");
            return None;
        }
        let head = Head {
            url: url.into(),
            method: question.method.as_str().to_owned(),
            site: grant.identity.site.to_string(),
            identity: grant.identity.name.to_string(),
            status: reply.status,
            version: reply.version,
            stored_at: now,
            vary: self.vary(&headers, &question.headers),
            headers,
            decoded: reply.flags.decoded,
            not_as_labelled: reply.flags.not_as_labelled,
        };
        Some(Then::Keep(Box::new((question.name, head, reply.body.clone()))))
    }

    fn vary(&self, response: &HeaderMap, request: &HeaderMap) -> Vec<(String, String)> {
        let names = if self.rules.varies() { rfc9111::vary(response) } else { None };
        let pair = |name: http::HeaderName| (name.as_str().to_owned(), self.print(request, name.as_str()));
        names.unwrap_or_default().into_iter().map(pair).collect()
    }
}

/// A stored answer as if it came over the wire now.
pub(super) fn reply(head: Head, body: Bytes, age: Option<Duration>) -> Reply {
    let Head { status, version, mut headers, decoded, not_as_labelled, .. } = head;
    if let Some(age) = age {
        headers.insert(AGE, age.as_secs().into());
    }
    let flags = BodyFlags { cached: true, decoded, not_as_labelled, ..BodyFlags::default() };
    Reply { status, version, headers, body, wire_bytes: 0, flags }
}
