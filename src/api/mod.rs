//! What a spider author touches. No actor and no engine type appears in a signature.

pub mod args;
pub mod context;
pub mod extension;
pub mod failure;
pub mod links;
pub mod middleware;
pub mod out;
pub mod pipeline;
pub mod request;
pub mod response;
pub mod selector;
pub mod signal;
pub mod spider;
pub mod stats;
pub mod step;

#[doc(inline)]
pub use crate::downloader::transport::{BodyFlags, Limits, Outgoing, Reply};
pub use context::Context;
pub use extension::Extension;
pub use failure::{Failure, FailureKind};
pub use links::Link;
pub use middleware::Middleware;
pub use out::{Out, OutError};
pub use pipeline::{Item, ItemPipeline, Processed};
pub use request::{HandleStatus, Request, RequestError};
pub use response::Response;
pub use selector::{Page, Selection};
pub use signal::Signal;
pub use spider::{CallbackError, CallbackResult, Spider, SpiderSettings};
pub use stats::Stats;
pub use step::Step;
