//! Everything a spider needs: `use dragline::prelude::*;`

pub use serde::{Deserialize, Serialize};
pub use serde_json::{Value, json};
pub use url::Url;

pub use crate::api::{
    CallbackError, CallbackResult, Context, Extension, Failure, FailureKind, HandleStatus, Item, ItemPipeline, Link, Out,
    Processed, Request, Response, Selection, Signal, Spider, SpiderSettings, Stats,
};
pub use crate::steps;
