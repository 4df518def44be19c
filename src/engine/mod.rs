//! The engine: owns the life of every request, and nothing else.
//!
//! The decisions are the hub's, a plain struct. The actor around it moves facts in and orders out: an order
//! whose link is full waits in an outbox, which the window bounds, and goes when the link reports room. It
//! never awaits in a handler.

mod act;
mod ahead;
mod bounds;
mod callback;
mod commit;
mod ending;
mod fleet;
mod flow;
mod guard;
pub mod hub;
mod kept;
mod lease;
pub mod lease_books;
pub(crate) mod memory_watch;
pub mod message;
mod outbox;
mod owed;
pub(crate) mod pacing;
mod patience;
mod places;
mod record;
mod refusal;
mod refused_reports;
mod shared;
mod shutdown;
mod tally;
#[cfg(test)]
mod tests;
pub mod ticket;
mod watch;
pub(crate) mod window;

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use tokio::sync::oneshot;
use tokio::time::Instant;

use crate::actor::{Controls, Cx, Died, How, Link, Slot, Worker};
use crate::parser::message::CallbackFault;
use crate::parser::pulse::Pulse;
use crate::run::Progress;
use crate::{broker, collector, downloader, parser, reporter, scheduler};
use act::{Act, ParserCommand};
pub(crate) use fleet::SHUTDOWN;
use hub::Hub;
use message::{Control, Ended, Fact, Peer, StopReason};
use outbox::{Outbox, Parsers};

/// How often limits, holds and stalls are looked at.
const TICK: Duration = Duration::from_millis(250);

/// The links and controls of everyone the engine orders about.
pub(crate) struct Peers {
    pub scheduler: (Link<scheduler::message::Order>, Controls<scheduler::message::Control>),
    pub broker: (Link<broker::message::Order>, Controls<broker::message::Control>),
    pub downloader: (Link<downloader::message::Order>, Controls<downloader::message::Control>),
    pub parsers: Vec<ParserPeer>,
    pub reporter: (Link<reporter::message::Order>, Controls<reporter::message::Control>),
    pub collector: (Link<collector::message::Order>, Controls<collector::message::Control>),
}

/// One parser, as the engine knows it.
pub(crate) struct ParserPeer {
    pub link: Link<parser::message::Order>,
    pub controls: Controls<parser::message::Control>,
    pub pulse: Arc<Pulse>,
    /// Gives the parser's inbox to a successor on a new thread; false when none can be made.
    pub replace: Box<dyn Fn() -> bool + Send>,
}

/// The actor around the hub.
pub(crate) struct Engine {
    hub: Hub,
    scheduler: Outbox<scheduler::message::Order>,
    broker: Outbox<broker::message::Order>,
    downloader: Outbox<downloader::message::Order>,
    parsers: Parsers,
    reporter: Outbox<reporter::message::Order>,
    collector: Outbox<collector::message::Order>,
    peers: Peers,
    parse_stall: Duration,
    progress: Arc<Progress>,
    ended: Option<oneshot::Sender<Box<Ended>>>,
}

impl Engine {
    pub(crate) fn new(
        hub: Hub,
        peers: Peers,
        parse_stall: Duration,
        progress: Arc<Progress>,
        ended: oneshot::Sender<Box<Ended>>,
    ) -> Self {
        Self {
            hub,
            scheduler: Outbox::new(peers.scheduler.0.clone()),
            broker: Outbox::new(peers.broker.0.clone()),
            downloader: Outbox::new(peers.downloader.0.clone()),
            parsers: Parsers::new(peers.parsers.iter().map(|p| p.link.clone()).collect()),
            reporter: Outbox::new(peers.reporter.0.clone()),
            collector: Outbox::new(peers.collector.0.clone()),
            peers,
            parse_stall,
            progress,
            ended: Some(ended),
        }
    }

    fn act(&mut self, act: Act, cx: &mut Cx<'_, Self>) {
        match act {
            Act::Scheduler(order) => self.scheduler.push(order),
            Act::SchedulerControl(control) => tell(&self.peers.scheduler.1, control),
            Act::Broker(order) => self.broker.push(order),
            Act::BrokerControl(control) => tell(&self.peers.broker.1, control),
            Act::Downloader(order) => self.downloader.push(order),
            Act::DownloaderControl(control) => tell(&self.peers.downloader.1, control),
            Act::Parser(to, order) => self.parsers.push(to, order),
            Act::Parsers(ParserCommand::Abandon) => {
                for parser in &self.peers.parsers {
                    tell(&parser.controls, parser::message::Control::Abandon);
                }
            }
            Act::Parsers(ParserCommand::Closed { reason, stats }) => {
                let event = crate::api::signal::Lifecycle::Closed { reason, stats };
                self.parsers.push(Some(0), parser::message::Order::Signal(event));
            }
            Act::Reporter(order) => self.reporter.push(order),
            Act::ReporterControl(control) => tell(&self.peers.reporter.1, control),
            Act::Collector(order) => self.collector.push(order),
            Act::CollectorControl(control) => tell(&self.peers.collector.1, control),
            // The callback may be gone: then nobody waits.
            Act::Resume(done, result) => drop(done.send(result)),
            Act::StepOver(serial, after) => drop(cx.after(after, Control::StepOver(serial))),
            Act::Done(ended) => {
                if let Some(sender) = self.ended.take() {
                    // The runtime waits for it; if it does not, there is nobody to tell.
                    drop(sender.send(ended));
                }
                cx.stop();
            }
        }
    }

    fn pump(&mut self) {
        self.scheduler.pump();
        self.broker.pump();
        self.downloader.pump();
        self.parsers.pump();
        self.hub.note_unparsed(self.parsers.waiting());
        self.reporter.pump();
        self.collector.pump();
    }

    /// An actor ended: what it had and cannot answer any more is given out again or fails.
    fn died(&mut self, died: &Died, now: Instant) {
        let restarts = matches!(died.how, How::Panicked(_) | How::Replaced);
        if matches!(died.how, How::Stopped) {
            return;
        }
        tracing::error!(actor = died.name, epoch = died.epoch.0, how = ?died.how, lost = died.lost, "an actor ended");
        self.hub.note_restart(died.name);
        if !restarts {
            self.hub.control(Control::Stop(StopReason::Internal(format!("{} could not be kept alive", died.name))), now);
            return;
        }
        match died.name {
            "broker" => self.hub.lost_by_broker(now),
            "collector" => self.hub.lost_by_collector(now),
            name => {
                let index = name.strip_prefix("parser-").and_then(|n| n.parse::<usize>().ok());
                if let (Some(parser), How::Panicked(text)) = (index.and_then(|i| self.peers.parsers.get(i)), &died.how) {
                    let (last, others) = parser.pulse.take();
                    self.hub.lost_by_parser(last, &CallbackFault::Panic(text.clone()), &others, now);
                }
            }
        }
    }

    /// Looks for callbacks that hold their thread.
    fn check_parsers(&mut self, now: Instant) {
        for index in 0..self.peers.parsers.len() {
            let Some(parser) = self.peers.parsers.get(index) else { continue };
            let Some((busy, tag)) = parser.pulse.busy() else { continue };
            if busy < self.parse_stall {
                continue;
            }
            tracing::error!(
                parser = index,
                seconds = busy.as_secs(),
                ticket = tag.ticket,
                "a callback holds its thread; the thread is abandoned"
            );
            let (last, others) = parser.pulse.take();
            if (parser.replace)() {
                self.hub.lost_by_parser(last, &CallbackFault::Stalled, &others, now);
            } else {
                self.hub.control(Control::Stop(StopReason::Internal("no thread for a new parser".to_owned())), now);
            }
        }
    }

    fn show(&self) {
        let (pages, items, queued, in_flight, leases, errors) = self.hub.progress();
        let p = &self.progress;
        for (cell, value) in [
            (&p.pages, pages),
            (&p.items, items),
            (&p.queued, queued),
            (&p.in_flight, in_flight),
            (&p.leases, leases),
            (&p.errors, errors),
        ] {
            cell.store(value, Ordering::Relaxed);
        }
    }
}

impl Worker for Engine {
    type Order = Fact;
    type Control = Control;

    fn started(&mut self, cx: &mut Cx<'_, Self>) {
        self.hub.begin(Instant::now());
        cx.after(TICK, Control::Tick);
        self.turn_end(cx);
    }

    fn handle(&mut self, fact: Fact, _: Slot, _: &mut Cx<'_, Self>) {
        self.hub.fact(fact, Instant::now());
    }

    fn control(&mut self, control: Control, cx: &mut Cx<'_, Self>) {
        let now = Instant::now();
        match control {
            Control::Died(died) => self.died(&died, now),
            Control::Room(_) => {}
            Control::Tick => {
                self.check_parsers(now);
                self.hub.control(Control::Tick, now);
                self.show();
                cx.after(TICK, Control::Tick);
            }
            other => self.hub.control(other, now),
        }
    }

    fn turn_end(&mut self, cx: &mut Cx<'_, Self>) {
        self.hub.turn_end(Instant::now());
        for act in self.hub.take_acts() {
            self.act(act, cx);
        }
        self.pump();
    }
}

/// Registers the engine for room on every link whose orders may wait.
pub(crate) fn watch_room(peers: &Peers, engine: &Controls<Control>) {
    let room = |peer: Peer| -> Arc<dyn Fn() + Send + Sync> {
        let engine = engine.clone();
        Arc::new(move || {
            // A closed engine needs no room.
            engine.tell(Control::Room(peer));
        })
    };
    peers.scheduler.0.on_room(room(Peer::Scheduler));
    peers.broker.0.on_room(room(Peer::Broker));
    peers.downloader.0.on_room(room(Peer::Downloader));
    peers.reporter.0.on_room(room(Peer::Reporter));
    peers.collector.0.on_room(room(Peer::Collector));
    for (index, parser) in peers.parsers.iter().enumerate() {
        parser.link.on_room(room(Peer::Parser(index)));
    }
}

fn tell<C>(controls: &Controls<C>, control: C) {
    // An actor that has ended has told so: the engine acts on that, not on a command that goes nowhere.
    controls.tell(control);
}
