//! The calls about configuration and secrets (wire contract, sections 4.3, 4.4 and 30). A watch waits here.

use std::time::Duration;

use tokio::time::{Instant, timeout_at};

use super::read;
use super::{Caller, Face};
use crate::plane::desk::Looked;
use crate::plane::model::Ms;
use crate::plane::model::config_center::{self, ItemName, WatchedItem};
use crate::plane::model::refusal::Refusal;
use crate::spinneret::messages::{GetConfigResponse, WatchConfigResponse};
use crate::spinneret::{
    BatchGetConfigRequest, BatchGetConfigResponse, ConfigKey, GetConfigRequest, GetSecretRequest, Secret, WatchConfigRequest,
    WatchItem,
};

impl Face {
    pub(super) fn get_config(&self, caller: &Caller<'_>, body: &[u8]) -> Result<GetConfigResponse, Refusal> {
        let request: GetConfigRequest = read::message(body)?;
        let token = self.enter(caller)?;
        let name = ItemName { group: &request.group, key: &request.key };
        let item = self.desk.with(|plane, _| plane.config_center().get(&token.scopes, &request.namespace, name))?;
        Ok(GetConfigResponse { item: item.on_the_wire() })
    }

    pub(super) fn batch_get_config(&self, caller: &Caller<'_>, body: &[u8]) -> Result<BatchGetConfigResponse, Refusal> {
        let request: BatchGetConfigRequest = read::message(body)?;
        let token = self.enter(caller)?;
        let names: Vec<_> = request.items.iter().map(|ConfigKey { group, key }| ItemName { group, key }).collect();
        let batch = self.desk.with(|plane, _| plane.config_center().batch(&token.scopes, &request.namespace, &names))?;
        Ok(BatchGetConfigResponse {
            items: batch.items.iter().map(config_center::ConfigItem::on_the_wire).collect(),
            missing: batch.missing.iter().map(|name| ConfigKey::new(name.group, name.key)).collect(),
        })
    }

    pub(super) async fn watch_config(&self, caller: &Caller<'_>, body: &[u8]) -> Result<WatchConfigResponse, Refusal> {
        let request: WatchConfigRequest = read::message(body)?;
        let token = self.enter(caller)?;
        let scopes = &token.scopes;
        let items: Vec<WatchedItem<'_>> = request.items.iter().map(watched).collect();
        let limit = caller.timeout.map(|limit| Ms::try_from(limit.as_millis()).unwrap_or(Ms::MAX));
        let wait = self
            .desk
            .with(|plane, _| plane.config_center().begin_watch(scopes, &request.namespace, &items, request.timeout_ms, limit))?;
        let end = Instant::now() + Duration::from_millis(wait);
        loop {
            let mut watch = match self.desk.look(scopes, &items)? {
                Looked::Changed(items) => {
                    return Ok(WatchConfigResponse { items: items.iter().map(config_center::ConfigItem::on_the_wire).collect() });
                }
                Looked::Waits(watch) => watch,
            };
            let woken = timeout_at(end, self.unless_stopping(watch.woken())).await;
            if self.is_stopping() {
                return Err(Refusal::canceled());
            }
            if woken.is_err() {
                return Ok(WatchConfigResponse::default());
            }
        }
    }

    pub(super) fn get_secret(&self, caller: &Caller<'_>, body: &[u8]) -> Result<Secret, Refusal> {
        let request: GetSecretRequest = read::message(body)?;
        let token = self.enter(caller)?;
        let secret = self.desk.with(|plane, _| plane.get_secret(&token, &request));
        let outcome = secret.as_ref().map_or_else(|refusal| refusal.reason.map_or("refused", |reason| reason.name()), |_| "read");
        // Every reading is written down, also one that was refused.
        let (token, peer) = (&token.name, caller.peer);
        match &secret {
            Ok(Secret { path, version, .. }) => {
                tracing::info!(target: "dragline::plane", %token, %peer, path, version, "a secret was read");
            }
            Err(_) => tracing::warn!(target: "dragline::plane", %token, %peer, outcome, "a secret was asked for and not given"),
        }
        secret
    }
}

fn watched(WatchItem { group, key, version }: &WatchItem) -> WatchedItem<'_> {
    WatchedItem { name: ItemName { group, key }, version: *version }
}
