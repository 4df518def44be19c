//! The webhook over HTTP: hands a batch's body to the APCloudy client, with the batch's id as idempotency key.
//!
//! Copies no body and decides nothing: the client classifies the answer, the courier acts on it.

use std::fmt;
use std::sync::Arc;

use bytes::Bytes;

use super::webhook::{Pending, Webhook};
use crate::apcloudy::Client;
use crate::collector::batch::Batch;

/// Delivers batches to APCloudy.
pub struct HttpWebhook {
    client: Client,
}

impl HttpWebhook {
    /// A webhook that posts with this client.
    #[must_use]
    pub const fn new(client: Client) -> Self {
        Self { client }
    }
}

impl Webhook for HttpWebhook {
    fn deliver(&mut self, batch: Arc<Batch>) -> Pending {
        let key = batch.id.to_string();
        Box::pin(self.client.post(Bytes::from_owner(Body(batch)), &key))
    }

    fn place(&self) -> String {
        format!("apcloudy {}", self.client.endpoint())
    }
}

impl fmt::Debug for HttpWebhook {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("HttpWebhook").field("client", &self.client).finish()
    }
}

/// The body of a batch that others hold as well.
struct Body(Arc<Batch>);

impl AsRef<[u8]> for Body {
    fn as_ref(&self) -> &[u8] {
        self.0.body.as_bytes()
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing)]

    use super::*;
    use crate::apcloudy::{Answer, ClientConfig, ProxyChoice};
    use crate::courier::testing::batch;
    use crate::testkit::{ScriptedWebhook, Step};

    #[tokio::test]
    async fn a_batch_is_posted_as_it_is_with_its_id() {
        let server = ScriptedWebhook::with_script("sk_test_secret", [Step::Answer(503)]).unwrap();
        let config = ClientConfig {
            proxy: ProxyChoice::None,
            ..ClientConfig::new(format!("{}/run/", server.url()), "pk_test_1234".into(), "sk_test_secret".into())
        };
        let mut webhook = HttpWebhook::new(Client::new(config).unwrap());
        assert_eq!(webhook.place(), format!("apcloudy {}/run", server.url()));
        let batch = Arc::new(batch(7, 3));
        assert!(matches!(webhook.deliver(Arc::clone(&batch)).await, Answer::Retry { .. }));
        assert_eq!(webhook.deliver(Arc::clone(&batch)).await, Answer::Delivered);
        let requests = server.requests();
        for request in &requests {
            assert_eq!((request.text(), request.key()), (batch.body.clone(), Some(batch.id.to_string().as_str())));
            assert!(request.is_signed);
        }
        assert_eq!((requests.len(), server.records().items.len()), (2, 1));
    }
}
