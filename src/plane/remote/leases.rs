//! Leases are asked for, and those that cannot be used are given back.

use std::sync::{Arc, PoisonError};
use std::time::Duration;

use futures_util::{StreamExt as _, stream};
use jiff::Timestamp;
use tokio::time::Instant;

use super::faults::refusal;
use super::{Remote, TARGET};
use crate::plane::grants::Unusable;
use crate::plane::{Ask, BATCH_MAX, Grant, LeaseId, Refusal, RefusalKind};
use crate::spinneret::{AcquireBatchRequest, AcquireRequest, AcquireResponse, Error, Expiry, Procedure, ReleaseRequest};

/// Bytes of a path that the server looks at (wire contract, 4.1).
const LONGEST_URI: usize = 2048;

/// Leases that are given back at one time.
const BACK: usize = 8;

/// Leases of which a person is told that they cannot be used.
const MOST_TOLD: usize = 100;

impl Remote {
    pub(super) async fn acquire_one(&self, ask: Ask) -> Result<Grant, Refusal> {
        if ask.anonymous {
            return Ok(self.anonymous.grant(&ask.site, Instant::now()));
        }
        self.check_open()?;
        let site = Arc::clone(&ask.site);
        let answer = self.client.acquire(self.request(ask)).await.map_err(|error| refusal(&error))?;
        match self.take(&site, answer, Timestamp::now(), Instant::now()) {
            Ok(grant) => Ok(grant),
            Err(Unusable { lease, why }) => {
                let back = if lease.is_some() { "; it was given back" } else { "" };
                self.give_back(lease).await;
                Err(unusable(format!("{why}{back}")))
            }
        }
    }

    pub(super) async fn acquire_several(&self, ask: Ask, count: usize) -> Result<Vec<Grant>, Refusal> {
        let count = count.clamp(1, BATCH_MAX);
        if count == 1 || ask.anonymous {
            return self.acquire_one(ask).await.map(|grant| vec![grant]);
        }
        self.check_open()?;
        let site = Arc::clone(&ask.site);
        let request = AcquireBatchRequest::new(self.request(ask), i32::try_from(count).unwrap_or(1));
        let answer = self.client.acquire_batch(request).await.map_err(|error| refusal(&error))?;
        let (wall, now) = (Timestamp::now(), Instant::now());
        let (mut grants, mut back, mut wrong) = (Vec::with_capacity(answer.leases.len()), Vec::new(), None);
        for lease in answer.leases {
            match self.take(&site, lease, wall, now) {
                Ok(grant) if grants.len() < count => grants.push(grant),
                Ok(unasked) => back.push(unasked.lease),
                Err(Unusable { lease, why }) => {
                    back.extend(lease);
                    wrong.get_or_insert(why);
                }
            }
        }
        self.give_back(back).await;
        match (grants.is_empty(), wrong) {
            (false, None) => {}
            (false, Some(why)) => self.tell(why),
            (true, Some(why)) => return Err(unusable(why)),
            // Without any to give it would have been an error: whoever answers is no Spinneret server.
            (true, None) => return Err(refusal(&Error::invalid_response(Procedure::AcquireBatch, 200, "it holds no lease"))),
        }
        Ok(grants)
    }

    /// Gives these leases back, once each; what cannot be given back expires.
    pub(super) async fn give_back(&self, leases: impl IntoIterator<Item = LeaseId>) {
        let back = stream::iter(leases).map(|lease| async move {
            let request = ReleaseRequest::new(&*lease.0);
            if let Err(error) = self.client.wire().call_once(&request).await
                && !error.is_lease_gone()
            {
                tracing::warn!(target: TARGET, lease = &*lease.0, "a lease could not be given back and will expire: {error}");
            }
            self.lives.over(&lease);
        });
        back.buffer_unordered(BACK).collect::<()>().await;
    }

    fn request(&self, ask: Ask) -> AcquireRequest {
        let Ask { site, client, group, mut path, session_key, .. } = ask;
        if !group.is_empty() {
            // The group wins, and nobody looks at a path beside it.
            path.clear();
        } else {
            shorten(&mut path);
        }
        AcquireRequest {
            site: (*site).to_owned(),
            client: (*client).to_owned(),
            uri: path,
            endpoint_group: (*group).to_owned(),
            session_key: session_key.as_deref().unwrap_or_default().to_owned(),
            wait_ms: i32::try_from(self.options.wait.as_millis()).unwrap_or(0),
        }
    }

    fn take(&self, site: &Arc<str>, answer: AcquireResponse, wall: Timestamp, now: Instant) -> Result<Grant, Unusable> {
        let before = Duration::from_millis(u64::try_from(answer.hints.renew_before_ms).unwrap_or(0));
        let expiry = Expiry::granted(answer.lease.expires_at, before, wall, now);
        let grant = self.grants.grant(site, answer, wall, now)?;
        self.lives.granted(&grant.lease, expiry, now);
        Ok(grant)
    }

    /// Tells a person of a lease that cannot be used, beside others that can; the same once.
    fn tell(&self, why: String) {
        let mut told = self.told.lock().unwrap_or_else(PoisonError::into_inner);
        if told.len() < MOST_TOLD && !told.contains(&why) {
            tracing::warn!(target: TARGET, "a lease that cannot be used was given back: {why}");
            told.insert(why);
        }
    }

    /// Tells a call that was never made from one whose answer was lost when the client was closed.
    fn check_open(&self) -> Result<(), Refusal> {
        if !self.client.wire().is_closed() {
            return Ok(());
        }
        let message = "the client of the control plane is closed; nothing was asked".to_owned();
        Err(Refusal { why: RefusalKind::Unreachable, retry_after: None, message })
    }
}

fn unusable(message: String) -> Refusal {
    Refusal { why: RefusalKind::Invalid, retry_after: None, message }
}

/// Cuts a path that is too long for the server, between two characters as they are encoded.
fn shorten(path: &mut String) {
    if path.len() > LONGEST_URI {
        path.truncate(path.floor_char_boundary(LONGEST_URI));
        if let Some(cut) = path.rfind('%').filter(|start| start + 3 > path.len()) {
            path.truncate(cut);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_path_is_cut_and_no_character_with_it() {
        for (start, repeated, kept) in
            [("/", "ü", 2047), ("/", "%C3%BC", 2047), ("/a", "%41", 2048), ("/abc", "%41", 2047), ("", "a", 2048)]
        {
            let mut path = start.to_owned() + &repeated.repeat(4_000);
            shorten(&mut path);
            assert_eq!(path.len(), kept, "{start}{repeated}");
            assert_eq!((path.len() - start.len()) % repeated.len().min(3), 0);
        }
        let mut short = "/a%".to_owned();
        shorten(&mut short);
        assert_eq!(short, "/a%");
    }
}
