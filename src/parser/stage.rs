//! The item stage: what a callback made passes the pipelines and becomes wire text.

use std::sync::Arc;

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

impl Stage {
    /// Runs the items through the pipelines, one after the other, in the order they were made.
    pub(crate) async fn run(&self, jobs: Vec<Job>, items: Vec<Scraped>, page: Option<&Job>) -> Effects {
        let mut effects = Effects { jobs, scraped: items.len() as u64, ..Effects::default() };
        for item in items {
            let outcome = match item {
                Scraped::Broken(why) => Err(why),
                Scraped::Object(text) if self.pipelines.is_empty() => Ok(Some(text)),
                Scraped::Object(text) => self.process(&text).await,
            };
            let context = &self.listeners.context;
            match outcome {
                Ok(Some(text)) => {
                    self.listeners.tell(&Signal::ItemScraped { item: &text });
                    effects.items.push(text);
                }
                Ok(None) => effects.dropped += 1,
                Err(reason) => {
                    effects.broken += 1;
                    context.stats().inc("item_error_count");
                    let (url, step) = page.map(|job| (job.url().as_str(), job.request.step().name())).unwrap_or_default();
                    tracing::error!(url, step, reason, "item error");
                    self.listeners.tell(&Signal::ItemError { reason: &reason });
                }
            }
        }
        effects
    }

    async fn process(&self, text: &str) -> Result<Option<String>, String> {
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
                    self.listeners.tell(&Signal::ItemDropped { reason: &reason });
                    return Ok(None);
                }
                Err(error) => return Err(format!("pipeline {name}: {error}")),
            }
        }
        to_text(&item).map(Some).map_err(|e| e.to_string())
    }
}

impl std::fmt::Debug for Stage {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Stage").field("pipelines", &self.pipelines.len()).finish_non_exhaustive()
    }
}
