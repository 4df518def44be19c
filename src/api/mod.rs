//! What a spider author touches, in full; [`prelude`](crate::prelude) has what most spiders need.
//!
//! No actor and no engine type appears in a signature.

pub mod args;
pub mod config;
pub mod context;
pub mod extension;
pub mod failure;
pub mod feeds;
mod follow;
pub mod form;
mod from_headers;
pub mod json_path;
pub mod lease;
pub mod links;
pub mod loader;
pub mod middleware;
#[cfg(test)]
mod mutated_tests;
pub mod out;
pub mod pipeline;
pub mod readable;
mod reading;
pub mod request;
pub mod response;
pub(crate) mod robots_directives;
pub mod rules;
pub mod selector;
pub mod signal;
pub mod sitemaps;
pub mod spider;
pub mod stats;
pub mod step;
pub mod structured;

#[doc(inline)]
pub use crate::downloader::transport::{BodyFlags, Limits, Outgoing, Over, Reply};
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
pub use links::{Link, LinkExtractor};
pub use loader::{ItemLoader, LoaderError, LoaderRules, ProcessError, Processor};
pub use middleware::{AfterResponse, Attempting, BeforeSend, Middleware, OnFault};
pub use out::{Out, OutError};
pub use pipeline::{Item, ItemPipeline, Processed};
pub use request::{CurlError, HandleStatus, Request, RequestError};
pub use response::{JsonError, Response};
pub use rules::{CrawlRules, Rule};
pub use selector::{Page, Selection, SelectorError, Variables, XPathValue};
pub use signal::Signal;
pub use sitemaps::Sitemaps;
pub use spider::{CallbackError, CallbackResult, Spider, SpiderSettings};
pub use stats::Stats;
pub use step::Step;
pub use structured::{MicrodataItem, MicrodataValue, OpenGraph, StructuredData};

pub use crate::web::content_disposition::ContentDisposition;
pub use crate::web::link_header::HeaderLink;
pub use crate::web::referrer_policy::ReferrerPolicy;

#[cfg(test)]
mod canary_tests;
#[cfg(test)]
mod helper_tests;
