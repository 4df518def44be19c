//! A middleware, two pipelines and an extension.

use std::sync::atomic::{AtomicU64, Ordering};

use dragline::api::middleware::{AfterResponse, Attempting, BeforeSend, Middleware};
use dragline::downloader::transport::{Outgoing, Reply};
use dragline::prelude::*;

/// Names the bot in a header, refuses one path, and has answers of "try again" repeated.
pub struct Stamp {
    bot: String,
}

impl Stamp {
    pub fn new(bot: &str) -> Result<Self, String> {
        Ok(Self { bot: bot.to_owned() })
    }
}

impl Middleware for Stamp {
    async fn before_send(&self, request: &mut Outgoing, attempting: Attempting<'_>) -> BeforeSend {
        if request.url.path() == "/refused" {
            return BeforeSend::Refuse("the stamp is out of ink".to_owned());
        }
        let Ok(value) = format!("{} depth {}", self.bot, attempting.depth()).parse() else {
            return BeforeSend::Refuse("BOT_NAME cannot be a header".to_owned());
        };
        request.headers.insert("x-stamp", value);
        BeforeSend::Continue
    }

    async fn after_response(&self, reply: &mut Reply, _: Attempting<'_>) -> AfterResponse {
        if reply.body.starts_with(b"try again") {
            return AfterResponse::Retry { reason: "told to".to_owned(), after: None };
        }
        AfterResponse::Continue
    }
}

/// Drops products without a price.
pub struct Priced;

impl ItemPipeline for Priced {
    async fn process(&self, item: Item, _: &Context) -> Result<Processed, CallbackError> {
        if item.get("kind").is_some_and(|kind| kind == "product") && item.get("price").is_none_or(Value::is_null) {
            return Ok(Processed::Drop("no price".to_owned()));
        }
        Ok(Processed::Keep(item))
    }
}

/// Numbers what is left.
#[derive(Default)]
pub struct Numbered {
    last: AtomicU64,
}

impl ItemPipeline for Numbered {
    async fn process(&self, mut item: Item, _: &Context) -> Result<Processed, CallbackError> {
        item.insert("number".to_owned(), json!(self.last.fetch_add(1, Ordering::Relaxed) + 1));
        Ok(Processed::Keep(item))
    }
}

/// Counts what happens.
pub struct Diary;

impl Extension for Diary {
    fn signal(&self, signal: &Signal<'_>, context: &Context) {
        let name = match signal {
            Signal::SpiderOpened => "opened",
            Signal::SpiderIdle => "idle",
            Signal::ItemScraped { .. } => "scraped",
            Signal::ItemDropped { .. } => "dropped",
            Signal::SpiderError { .. } => "error",
            Signal::SpiderClosed { reason, .. } => {
                println!("diary: closed because {reason}");
                return;
            }
            _ => "other",
        };
        context.stats().inc(format!("diary/{name}"));
    }
}
