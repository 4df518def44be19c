//! Everything a spider needs: `use dragline::prelude::*;`
//!
//! What is rarer is in [`api`](crate::api): for a spider's `authorize` the types `Outgoing` and `Grant`; for a middleware
//! `BeforeSend`, `AfterResponse`, `OnFault`, `Attempting`, `Outgoing`, `Reply`.

pub use serde::{Deserialize, Serialize};
pub use serde_json::{Value, json};
pub use url::Url;

pub use crate::api::{
    CallbackError, CallbackResult, Context, Extension, Failure, FailureKind, HandleStatus, Item, ItemPipeline, Link, Middleware,
    Out, OutError, Processed, Request, Response, Selection, Signal, Spider, SpiderSettings, Stats, Variables, XPathValue,
};
pub use crate::steps;
