//! The item stage: what a callback made passes the pipelines and becomes wire text.

use std::sync::Arc;

use futures_util::StreamExt as _;
use serde_json::Value;

use super::message::Effects;
use crate::apcloudy::to_text;
use crate::api::context::Context;
use crate::api::extension::Extension;
use crate::api::out::Scraped;
use crate::api::pipeline::{DynPipeline, Processed};
use crate::api::signal::Signal;
use crate::api::spider::DynSpider;
use crate::scheduler::job::Job;

/// Pipelines in order, and who listens to what becomes of items.
#[derive(Clone)]
pub(crate) struct Stage {
    pub(crate) pipelines: Arc<[(String, Box<dyn DynPipeline>)]>,
    pub(crate) listeners: Listeners,
}

/// Whoever takes signals: the spider first, then the extensions in order.
#[derive(Clone)]
pub(crate) struct Listeners {
    pub(crate) spider: Arc<dyn DynSpider>,
    pub(crate) extensions: Arc<[Box<dyn Extension>]>,
    pub(crate) context: Context,
}

impl Listeners {
    /// Tells everyone. A panic in one is logged and does not reach the others.
    pub(crate) fn tell(&self, signal: &Signal<'_>) {
        let fenced = |who: &str, call: &dyn Fn()| {
            if let Err(panic) = std::panic::catch_unwind(std::panic::AssertUnwindSafe(call)) {
                let text = super::fence::panic_text(panic.as_ref());
                tracing::error!(listener = who, panic = text, "a signal listener panicked");
            }
        };
        fenced("spider", &|| self.spider.signal(signal, &self.context));
        for extension in self.extensions.iter() {
            fenced("extension", &|| extension.signal(signal, &self.context));
        }
    }
}

/// How an item left the pipelines.
enum Left {
    Kept(String),
    Dropped(String),
    Broken(String),
}

impl Stage {
    /// Runs the items through the pipelines, `CONCURRENT_ITEMS` at a time; they keep the order they were made in.
    pub(crate) async fn run(&self, jobs: Vec<Job>, items: Vec<Scraped>, page: Option<&Job>) -> Effects {
        let mut effects = Effects { jobs, scraped: items.len() as u64, ..Effects::default() };
        if self.pipelines.is_empty() {
            for item in items {
                let left = match item {
                    Scraped::Broken(why) => Left::Broken(why),
                    Scraped::Object(text) => Left::Kept(text),
                };
                self.account(left, &mut effects, page);
            }
            return effects;
        }
        let at_once = self.listeners.context.settings().concurrent_items.max(1);
        let passing = items.into_iter().map(async |item| match item {
            Scraped::Broken(why) => Left::Broken(why),
            Scraped::Object(text) => self.process(&text).await.unwrap_or_else(Left::Broken),
        });
        let mut passed = std::pin::pin!(futures_util::stream::iter(passing).buffered(at_once));
        while let Some(left) = passed.next().await {
            self.account(left, &mut effects, page);
        }
        effects
    }

    fn account(&self, left: Left, effects: &mut Effects, page: Option<&Job>) {
        match left {
            Left::Kept(text) => {
                self.listeners.tell(&Signal::ItemScraped { item: &text });
                effects.items.push(text);
            }
            Left::Dropped(reason) => {
                self.listeners.tell(&Signal::ItemDropped { reason: &reason });
                effects.dropped += 1;
            }
            Left::Broken(reason) => {
                effects.broken += 1;
                self.listeners.context.stats().inc("item_error_count");
                let (url, step) = page.map(|job| (job.url().as_str(), job.request.step().name())).unwrap_or_default();
                tracing::error!(url, step, reason, "item error");
                self.listeners.tell(&Signal::ItemError { reason: &reason });
            }
        }
    }

    async fn process(&self, text: &str) -> Result<Left, String> {
        let context = &self.listeners.context;
        let Ok(Value::Object(mut item)) = serde_json::from_str(text) else {
            return Err("the item is not readable as a JSON object".to_owned());
        };
        for (name, pipeline) in self.pipelines.iter() {
            match pipeline.process(item, context).await {
                Ok(Processed::Keep(next)) => item = next,
                Ok(Processed::Drop(reason)) => {
                    context.stats().inc("item_dropped_count");
                    context.stats().inc(format!("item_dropped_reasons_count/{name}"));
                    tracing::warn!(pipeline = name, reason, "item dropped");
                    return Ok(Left::Dropped(reason));
                }
                Err(error) => return Err(format!("pipeline {name}: {error}")),
            }
        }
        to_text(&item).map(Left::Kept).map_err(|e| e.to_string())
    }
}

impl std::fmt::Debug for Stage {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Stage").field("pipelines", &self.pipelines.len()).finish_non_exhaustive()
    }
}
