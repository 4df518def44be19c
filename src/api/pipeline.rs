//! Item pipelines: each item of a callback passes them in order before it is kept.

use std::fmt;
use std::future::Future;

use futures_util::future::LocalBoxFuture;
use serde_json::{Map, Value};

use super::context::Context;
use super::spider::CallbackError;

/// An item on its way through the pipelines: a JSON object, its fields in order.
pub type Item = Map<String, Value>;

/// What a pipeline makes of an item.
#[derive(Debug)]
pub enum Processed {
    /// It goes on.
    Keep(Item),
    /// It is dropped, for this reason; counted and logged.
    Drop(String),
}

/// One stage of item processing. Pipelines run on the parse threads and need not be quick, but must await
/// instead of blocking.
///
/// ```
/// use dragline::prelude::*;
///
/// struct Priced;
///
/// impl ItemPipeline for Priced {
///     async fn process(&self, item: Item, _: &Context) -> Result<Processed, CallbackError> {
///         match item.get("price") {
///             Some(price) if !price.is_null() => Ok(Processed::Keep(item)),
///             _ => Ok(Processed::Drop("no price".into())),
///         }
///     }
/// }
/// ```
pub trait ItemPipeline: Send + Sync + 'static {
    /// Takes one item. An error counts as an item error: the item is lost to the job, counted and logged,
    /// and the callback's other effects stay.
    fn process(&self, item: Item, context: &Context) -> impl Future<Output = Result<Processed, CallbackError>>;
}

/// The object-safe twin of [`ItemPipeline`].
pub(crate) trait DynPipeline: Send + Sync {
    fn process<'a>(&'a self, item: Item, context: &'a Context) -> LocalBoxFuture<'a, Result<Processed, CallbackError>>;
}

impl<P: ItemPipeline> DynPipeline for P {
    fn process<'a>(&'a self, item: Item, context: &'a Context) -> LocalBoxFuture<'a, Result<Processed, CallbackError>> {
        Box::pin(ItemPipeline::process(self, item, context))
    }
}

impl fmt::Debug for dyn DynPipeline {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("ItemPipeline")
    }
}
