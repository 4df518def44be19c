//! The sink of batches: one try at a time, answered when it is over.

use std::sync::Arc;

use futures_util::future::BoxFuture;

use crate::apcloudy::Answer;
use crate::collector::batch::Batch;

/// A try under way. It holds whatever it needs and nothing of the sink.
pub type Pending = BoxFuture<'static, Answer>;

/// Takes batches, the same one as often as it is handed over: a batch that was taken before, recognised by its id, is not
/// taken twice.
pub trait Webhook: Send {
    /// One try. The call itself must be quick, or may take the delivery thread's time where there is no other way; the
    /// future is polled on that thread and dropped when the job ends first.
    fn deliver(&mut self, batch: Arc<Batch>) -> Pending;

    /// Where batches go, for messages and for the card of a spool: `apcloudy https://host/path` or
    /// `embedded /path/jobs.db`. No secret.
    fn place(&self) -> String;
}
