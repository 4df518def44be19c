//! What the hub wants done: orders for the leaves, told as values, so that every decision can be tested
//! without an actor.

use std::time::Duration;

use serde_json::{Map, Value};
use tokio::sync::oneshot;

use super::message::Ended;
use crate::{broker, collector, downloader, parser, reporter, scheduler};

/// One thing to do. The engine does them in order; an order whose link is full waits in the engine's outbox.
#[derive(Debug)]
pub(crate) enum Act {
    Scheduler(scheduler::message::Order),
    SchedulerControl(scheduler::message::Control),
    Broker(broker::message::Order),
    BrokerControl(broker::message::Control),
    Downloader(downloader::message::Order),
    DownloaderControl(downloader::message::Control),
    /// To this parser, or to any.
    Parser(Option<usize>, parser::message::Order),
    /// To every parser.
    Parsers(ParserCommand),
    Reporter(reporter::message::Order),
    ReporterControl(reporter::message::Control),
    Collector(collector::message::Order),
    CollectorControl(collector::message::Control),
    /// A callback that waited for its commit goes on.
    Resume(oneshot::Sender<Result<(), String>>, Result<(), String>),
    /// Wake the hub for its shutdown step.
    StepOver(u32, Duration),
    /// The job is over.
    Done(Box<Ended>),
}

/// Commands to every parser.
#[derive(Debug)]
pub(crate) enum ParserCommand {
    /// Stop running callbacks.
    Abandon,
    /// The job has ended: tell spider and extensions, on the first parser.
    Closed { reason: String, stats: Map<String, Value> },
}
