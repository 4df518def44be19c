//! The callbacks of the simulated spider: they follow, give items, commit in parts, and fail.

use std::sync::Arc;

use tokio::sync::oneshot;

use super::{Callback, Pending, World};
use crate::api::request::Request;
use crate::engine::message::Fact;
use crate::engine::ticket::Tag;
use crate::parser::message::{CallbackFault, Effects, Marks, Parsed, Part};
use crate::scheduler::job::{Job, RequestId};
use crate::web::key::seen_key;

impl World {
    pub(super) fn callback(&mut self, tag: Tag, job: Option<Arc<Job>>, callback: Callback) {
        let mut parsed = Parsed {
            tag,
            effects: Effects::default(),
            result: Ok(()),
            marks: Marks::default(),
            discarded: 0,
            unknown_step: false,
        };
        if self.abandoned {
            parsed.result = Err(CallbackFault::Cancelled);
            self.hub.fact(Fact::Parsed(Box::new(parsed)), self.now);
            return;
        }
        if let Callback::Committing(mut done) = callback {
            match done.try_recv() {
                Err(oneshot::error::TryRecvError::Empty) => {
                    self.pending.push(Pending::Parse(tag, job, Callback::Committing(done)));
                    // A suspended callback lets time pass.
                    if self.pending.len() == 1 {
                        self.pass_time();
                    }
                    return;
                }
                Ok(Ok(())) => {}
                Ok(Err(why)) => {
                    parsed.result = Err(CallbackFault::Error(why));
                    self.hub.fact(Fact::Parsed(Box::new(parsed)), self.now);
                    return;
                }
                Err(oneshot::error::TryRecvError::Closed) => {
                    parsed.result = Err(CallbackFault::Cancelled);
                    self.hub.fact(Fact::Parsed(Box::new(parsed)), self.now);
                    return;
                }
            }
        }
        if job.is_none() {
            if let Some(n) = self.start.pop_front() {
                let effects = Effects { jobs: vec![page(None, n, n)], ..Effects::default() };
                self.commit(tag, job, effects);
                return;
            }
            self.hub.fact(Fact::Parsed(Box::new(parsed)), self.now);
            return;
        }
        if self.dice.chance(self.mood.parts) {
            let effects = self.effects(job.as_deref(), 1000);
            self.commit(tag, job, effects);
            return;
        }
        if self.dice.chance(self.mood.callback_fails) {
            parsed.result = Err(CallbackFault::Error("no".into()));
            parsed.discarded = 2;
        } else if self.dice.chance(2) {
            parsed.unknown_step = true;
        } else {
            parsed.effects = self.effects(job.as_deref(), 0);
        }
        self.hub.fact(Fact::Parsed(Box::new(parsed)), self.now);
    }

    fn commit(&mut self, tag: Tag, job: Option<Arc<Job>>, effects: Effects) {
        let (done, answer) = oneshot::channel();
        self.hub.fact(Fact::Part(Part { tag, effects, done }), self.now);
        self.pending.push(Pending::Parse(tag, job, Callback::Committing(answer)));
    }

    fn effects(&mut self, parent: Option<&Job>, from: u64) -> Effects {
        let mut effects = Effects::default();
        for index in 0..self.dice.below(4) as u64 {
            if self.made < self.mood.pages {
                self.made += 1;
                let target = self.dice.below(usize::try_from(self.mood.pages).unwrap()) as u64;
                let mut job = page(parent.map(|p| p.id), from + index + self.made * 10_000, target);
                if self.dice.chance(self.mood.keep) {
                    job.request.keep_lease();
                    self.keeping += 1;
                }
                effects.jobs.push(job);
            }
        }
        for _ in 0..self.dice.below(3) {
            effects.items.push("{\"a\": 1}".into());
        }
        effects.scraped = effects.items.len() as u64;
        effects
    }
}

fn page(parent: Option<RequestId>, index: u64, target: u64) -> Job {
    let host = match target % 12 {
        11 => "c.test",
        0 | 3 | 6 | 9 => "b.test",
        _ => "a.test",
    };
    let request = Request::get(&format!("http://{host}/p/{target}"), &()).unwrap();
    let key = seen_key(request.method(), request.url(), &[]);
    Job::page(RequestId::child(parent, index), key, request)
}
