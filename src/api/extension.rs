//! Extensions: listeners to a job's signals that belong to no spider.

use super::context::Context;
use super::signal::Signal;

/// Listens to signals, in order, after the fact. Runs on a parse thread; a panic in it is caught and logged.
///
/// ```
/// use dragline::prelude::*;
///
/// struct CountErrors;
///
/// impl Extension for CountErrors {
///     fn signal(&self, signal: &Signal<'_>, context: &Context) {
///         if matches!(signal, Signal::SpiderError { .. }) {
///             context.stats().inc("errors/seen");
///         }
///     }
/// }
/// ```
pub trait Extension: Send + Sync + 'static {
    /// Takes one signal.
    fn signal(&self, signal: &Signal<'_>, context: &Context);
}
