//! The webhook: one POST in, one line of JSON out, and a 200 only for what is on disk.

use std::sync::Arc;

use bytes::Bytes;
use http::header::CONTENT_LENGTH;
use http::{HeaderMap, StatusCode};
use serde_json::json;
use sha2::{Digest as _, Sha256};

use super::body::{Counts, Examined, examine};
use super::gate;
use super::keys::{KeyRing, Keys};
use super::refusal::Refusal;
use super::writer::{PutError, Writer};
use crate::apcloudy::JobId;
use crate::courier::intake::{Arrival, Taken};
use crate::http_server::{Answer, Asked, BodyFault, Head, Reply};

/// Bodies above this are looked through aside, so that nobody else waits for it.
const LARGE: usize = 64 << 10;
/// Seconds after which a store that takes nothing may be asked again.
const STORE_REST: u16 = 5;
/// The same for a server whose connections are all being answered.
const FULL_REST: u16 = 1;

/// Takes batches into the job store.
#[derive(Debug)]
pub(crate) struct Webhook {
    pub(crate) keys: Arc<KeyRing>,
    pub(crate) writer: Writer,
    /// The time in Unix seconds.
    pub(crate) now: fn() -> i64,
}

/// A batch that was taken.
struct Receipt {
    taken: Taken,
    batch: String,
    counts: Counts,
}

impl Answer for Webhook {
    async fn answer(&self, asked: Asked) -> Reply {
        match self.take(asked).await {
            Ok(receipt) => receipt.into_reply(),
            Err(refusal) => reply(refusal),
        }
    }

    fn refuse(&self, head: &Head) -> Option<Reply> {
        gate::head(head).err().map(reply)
    }

    fn refuse_target(&self, most: usize) -> Reply {
        let message = format!("the address is longer than {most} bytes; batches go to {}", gate::ENDPOINT);
        reply(Refusal::new(StatusCode::URI_TOO_LONG, "address_too_long", message))
    }

    fn refuse_full(&self, _head: &Head) -> Reply {
        let message = "this server answers as many connections as it may (--connections); send the batch again later";
        reply(Refusal::later("full", message, FULL_REST))
    }

    fn refuse_body(&self, head: &Head, fault: BodyFault) -> Reply {
        reply(match fault {
            BodyFault::TooLarge(most) => {
                let found = head.headers.get(CONTENT_LENGTH).and_then(|length| length.to_str().ok());
                let found = found.map_or_else(|| "more".to_owned(), |length| format!("{length} bytes"));
                let message = format!("the body has {found}, allowed are {most} bytes (--max-body); send smaller batches");
                Refusal::new(StatusCode::PAYLOAD_TOO_LARGE, "too_large", message)
            }
            BodyFault::TooSlow(limit) => {
                let message = format!("the body did not arrive within {} s; send it again", limit.as_secs());
                Refusal::new(StatusCode::REQUEST_TIMEOUT, "too_slow", message)
            }
            BodyFault::CutOff => {
                let message = "the body ended before it was complete; send it again";
                Refusal::new(StatusCode::BAD_REQUEST, "cut_off", message)
            }
        })
    }
}

impl Webhook {
    async fn take(&self, asked: Asked) -> Result<Receipt, Refusal> {
        let (keys, now) = (self.keys.current(), (self.now)());
        let Asked { headers, body, .. } = asked;
        let is_large = body.len() > LARGE;
        let work = move || check(&keys, &headers, body, now);
        let (arrival, counts) = if is_large {
            // Only a runtime that goes down loses it.
            tokio::task::spawn_blocking(work).await.unwrap_or_else(|_| Err(stopping()))?
        } else {
            work()?
        };
        let batch = arrival.id.clone();
        let job = arrival.job.clone();
        match self.writer.put(arrival).await {
            Ok(Taken::OtherBody) => {
                let message = format!(
                    "Idempotency-Key {batch:?} was used before with another body; send the same body again, or a new body under a \
                     new key"
                );
                Err(Refusal::new(StatusCode::UNPROCESSABLE_ENTITY, "idempotency_key_reused", message))
            }
            Ok(taken) => {
                let what = if taken == Taken::Duplicate { "had" } else { "stored" };
                tracing::info!(
                    target: "dragline::serve",
                    "{what} batch {batch} of job {job}: {} items, {} requests, {} logs", counts.items, counts.requests, counts.logs
                );
                Ok(Receipt { taken, batch, counts })
            }
            Err(error @ PutError::Store { is_damaged: true, .. }) => {
                Err(Refusal::new(StatusCode::INTERNAL_SERVER_ERROR, "store_damaged", error.to_string()))
            }
            Err(error) => Err(Refusal::later("store_unavailable", format!("{error}; send the batch again later"), STORE_REST)),
        }
    }
}

/// Everything there is to check of a request, in the order of the answers.
fn check(keys: &Keys, headers: &HeaderMap, body: Bytes, now: i64) -> Result<(Arrival, Counts), Refusal> {
    gate::signature(keys, headers, &body, now)?;
    let id = gate::batch_id(headers)?;
    let Examined { job, body, counts, end } = examine(body)?;
    let id = id.unwrap_or_else(|| digest(&job, body.sent()));
    Ok((Arrival { id, job, body, end }, counts))
}

/// The id of a batch whose sender gives none: the same body for the same job is the same batch.
fn digest(job: &JobId, body: &[u8]) -> String {
    use std::fmt::Write as _;
    let mut hash = Sha256::new();
    hash.update(job.to_json());
    // No JSON text of an id has this byte.
    hash.update([0]);
    hash.update(body);
    hash.finalize().iter().fold(String::with_capacity(64), |mut hex, byte| {
        let _ = write!(hex, "{byte:02x}");
        hex
    })
}

fn stopping() -> Refusal {
    Refusal::later("stopping", "this server is about to stop; send the batch again later", STORE_REST)
}

fn reply(refusal: Refusal) -> Reply {
    tracing::warn!(target: "dragline::serve", "refused with {} {}: {}", refusal.status.as_u16(), refusal.code, refusal.message);
    refusal.into_reply()
}

impl Receipt {
    fn into_reply(self) -> Reply {
        let status = if self.taken == Taken::Duplicate { "duplicate" } else { "stored" };
        let Counts { items, requests, logs } = self.counts;
        let body = json!({ "status": status, "batch": self.batch, "items": items, "requests": requests, "logs": logs });
        Reply::new(StatusCode::OK, "application/json", format!("{body}\n"))
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing)]

    use super::*;
    use crate::apcloudy::Signer;

    #[test]
    fn a_batch_without_a_key_is_told_apart_by_job_and_body() {
        let ids = [digest(&7.into(), b"{}"), digest(&"7".into(), b"{}"), digest(&7.into(), b"{} ")];
        assert!(ids[0] != ids[1] && ids[0] != ids[2] && ids.iter().all(|id| id.len() == 64), "{ids:?}");
        assert_eq!(digest(&7.into(), b"{}"), ids[0]);
    }

    #[test]
    fn the_signature_is_checked_before_anything_of_the_body() {
        let keys = Keys::parse(super::super::file::SAMPLE, std::path::Path::new("serve.toml")).unwrap();
        let headers = |secret: &str, body: &[u8]| {
            let mut headers = HeaderMap::new();
            headers.insert("x-api-key", "sample-key".parse().unwrap());
            headers.insert("x-timestamp", "1700000000".parse().unwrap());
            headers.insert("x-signature", Signer::new(secret.into()).sign("1700000000", body).parse().unwrap());
            headers.insert("idempotency-key", "é".parse().unwrap());
            headers
        };
        let check = |headers: &HeaderMap, body: &'static [u8]| check(&keys, headers, Bytes::from_static(body), 1_700_000_000);
        let mut good = headers("sample-secret", b"[");
        assert_eq!(check(&headers("wrong", b"["), b"[").unwrap_err().code, "bad_signature");
        assert_eq!(check(&good, b"[").unwrap_err().code, "malformed_idempotency_key");
        good.remove("idempotency-key");
        assert_eq!(check(&good, b"[").unwrap_err().code, "malformed_json");
        assert_eq!(check(&headers("sample-secret", b"{}"), b"[").unwrap_err().code, "bad_signature");
    }
}
