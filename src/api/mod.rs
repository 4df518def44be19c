//! What a spider author touches, in full; [`prelude`](crate::prelude) has what most spiders need.
//!
//! No actor and no engine type appears in a signature.

pub mod args;
pub mod config;
pub mod context;
pub mod extension;
pub mod failure;
pub mod feeds;
pub mod form;
pub mod json_path;
pub mod lease;
pub mod links;
pub mod loader;
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
pub use crate::plane::{Grant, ProxyAbout};
pub use args::Arguments;
pub use config::{ConfigError, ConfigValue};
pub use context::Context;
pub use extension::Extension;
pub use failure::{Failure, FailureKind, Fault};
pub use feeds::{CsvError, CsvOptions, CsvRow, CsvRows, JsonLineError, JsonLines, XmlElement, XmlError, XmlItems, XmlNode};
pub use form::{Button, Form, FormError, Upload};
pub use json_path::{JsonItemError, JsonPathError};
pub use lease::LeaseView;
pub use links::{Link, LinkFilter, links_with};
pub use loader::{ItemLoader, LoaderError, LoaderRules, ProcessError, Processor};
pub use middleware::{AfterResponse, Attempting, BeforeSend, Middleware, OnFault};
pub use out::{Out, OutError};
pub use pipeline::{Item, ItemPipeline, Processed};
pub use request::{CurlError, HandleStatus, Request, RequestError};
pub use response::{JsonError, Response};
pub use selector::{Page, Selection, SelectorError, Variables, XPathValue};
pub use signal::Signal;
pub use spider::{CallbackError, CallbackResult, Spider, SpiderSettings};
pub use stats::Stats;
pub use step::Step;

#[cfg(test)]
mod canary_tests;
#[cfg(test)]
mod helper_tests;
