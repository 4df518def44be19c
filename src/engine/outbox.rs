//! Orders that wait for a slot of their link. Bounded by the window: each belongs to a ticket.

use std::collections::VecDeque;

use crate::actor::{Link, Refused};
use crate::parser::message::Order as ParserOrder;

/// Orders for one actor, in order.
#[derive(Debug)]
pub(crate) struct Outbox<M> {
    link: Link<M>,
    waiting: VecDeque<M>,
}

impl<M> Outbox<M> {
    pub(crate) fn new(link: Link<M>) -> Self {
        Self { link, waiting: VecDeque::new() }
    }

    pub(crate) fn push(&mut self, order: M) {
        self.waiting.push_back(order);
    }

    /// Sends as long as there are slots.
    pub(crate) fn pump(&mut self) {
        while let Some(order) = self.waiting.pop_front() {
            match self.link.offer(order) {
                Ok(()) => {}
                Err(Refused::Full(order)) => {
                    self.waiting.push_front(order);
                    return;
                }
                // The actor has ended; the engine hears of that and reissues or stops.
                Err(Refused::Closed(_)) => {}
            }
        }
    }
}

/// Orders for the parsers: some for one of them, most for any.
#[derive(Debug)]
pub(crate) struct Parsers {
    own: Vec<Outbox<ParserOrder>>,
    any: VecDeque<ParserOrder>,
}

impl Parsers {
    pub(crate) fn new(links: Vec<Link<ParserOrder>>) -> Self {
        Self { own: links.into_iter().map(Outbox::new).collect(), any: VecDeque::new() }
    }

    pub(crate) fn push(&mut self, to: Option<usize>, order: ParserOrder) {
        match to.and_then(|index| self.own.get_mut(index)) {
            Some(outbox) => outbox.push(order),
            None => self.any.push_back(order),
        }
    }

    /// Orders for any of them that none has room for.
    pub(crate) fn waiting(&self) -> usize {
        self.any.len()
    }

    pub(crate) fn pump(&mut self) {
        for outbox in &mut self.own {
            outbox.pump();
        }
        while let Some(order) = self.any.pop_front() {
            // The one with the most room is the one with the least to do.
            let Some(best) = self.own.iter().filter(|o| o.waiting.is_empty()).max_by_key(|o| o.link.free()) else {
                self.any.push_front(order);
                return;
            };
            match best.link.offer(order) {
                Ok(()) => {}
                Err(Refused::Full(order)) => {
                    self.any.push_front(order);
                    return;
                }
                Err(Refused::Closed(_)) => {}
            }
        }
    }
}
