//! Which control plane the settings choose, and the making of it: a Spinneret server, or the embedded plane.
//!
//! Sends nothing: a server that cannot be reached is found out by the first call.

use std::sync::Arc;

use tokio::runtime::Handle;

use super::StartError;
use crate::actor::Controls;
use crate::broker::message::Control;
use crate::broker::rules::Rules;
use crate::broker::runtime::{runtime_keys, watch_runtime};
use crate::plane::embedded::Embedded;
use crate::plane::remote::{Remote, RemoteOptions};
use crate::plane::{ConfigFeed, ControlPlane};
use crate::settings::{Settings, UnmatchedLease};
use crate::spinneret::{Client, ConfigKey, RetryPolicy, Timeouts};

/// What variables of the client begin with. The settings have read them already, and weighed them against other sources.
const OWN: &str = "SPINNERET_";

/// The control plane of a job.
pub(crate) struct Opened {
    /// Where leases come from.
    pub plane: Arc<dyn ControlPlane>,
    /// What people are told of it: its kind, and its address or file.
    pub name: String,
    /// The same plane, where it is a server.
    pub remote: Option<Arc<Remote>>,
}

impl std::fmt::Debug for Opened {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Opened").field("name", &self.name).finish_non_exhaustive()
    }
}

/// The plane of these settings: the server at `SPINNERET_URL` if it is set, else the embedded one, fed by `IDENTITIES`.
///
/// # Errors
/// When the settings do not make a plane: a token that is missing, say, or a file that cannot be read.
pub(crate) fn open(settings: &Settings) -> Result<Opened, StartError> {
    let Some(url) = &settings.spinneret_url else { return embedded(settings) };
    let client = client(url, settings)?;
    let options = RemoteOptions {
        wait: settings.spinneret_wait_ms,
        snapshots: settings.spinneret_snapshots,
        cache_secrets: settings.spinneret_cache_secrets,
        secret_groups: settings.spinneret_secret_groups.clone(),
        ..RemoteOptions::default()
    };
    let remote = Arc::new(Remote::new(client, options));
    Ok(Opened { plane: Arc::clone(&remote) as Arc<dyn ControlPlane>, name: name(settings), remote: Some(remote) })
}

/// What people are told of the plane of these settings, before it is made: its kind, and its address or file.
pub(crate) fn name(settings: &Settings) -> String {
    match (&settings.spinneret_url, &settings.identities) {
        (Some(url), None) => format!("spinneret {}", url.trim_end_matches('/')),
        (Some(url), Some(_)) => format!("spinneret {} (IDENTITIES is not used)", url.trim_end_matches('/')),
        (None, Some(path)) => format!("embedded (identities of {})", path.display()),
        (None, None) => "embedded (anonymous)".to_owned(),
    }
}

/// The items of `CONFIG_WATCH`, in its order.
pub(crate) fn watched(settings: &Settings) -> Vec<ConfigKey> {
    settings.config_watch.iter().filter_map(|name| name.split_once('/')).map(|(group, key)| ConfigKey::new(group, key)).collect()
}

/// Follows these items, if there are any; the plane's calls are made on `net`.
///
/// # Errors
/// [`StartError::Plane`] when the plane refuses this node, or cannot be reached and there are no snapshots.
pub(crate) async fn follow(
    plane: &Arc<dyn ControlPlane>,
    items: &[ConfigKey],
    net: &Handle,
) -> Result<Option<Arc<dyn ConfigFeed>>, StartError> {
    if items.is_empty() {
        return Ok(None);
    }
    let (plane, keys) = (Arc::clone(plane), items.to_vec());
    let followed = net.spawn(async move { plane.follow(keys).await }).await;
    match followed {
        Ok(Ok(feed)) => Ok(Some(feed)),
        Ok(Err(error)) => Err(StartError::Plane(format!("CONFIG_WATCH cannot be followed: {error}"))),
        Err(error) => Err(StartError::Io(format!("CONFIG_WATCH cannot be followed: {error}"))),
    }
}

/// Keeps the broker told of sites and endpoint groups that the plane has switched off. A plane that does not say costs asks
/// in vain, no more.
pub(crate) async fn watch_switches(plane: Arc<dyn ControlPlane>, broker: Controls<Control>) {
    match plane.follow(runtime_keys().to_vec()).await {
        Ok(feed) => watch_runtime(feed, broker).await,
        Err(error) => {
            tracing::info!("paused sites and open breakers are not known beforehand, as _runtime cannot be read: {error}")
        }
    }
}

/// The rules of `LEASES`, with what these settings mean for a request that none covers: the embedded plane leases it without
/// an identity, whatever `LEASE_UNMATCHED` says.
///
/// # Errors
/// When a domain is no host.
pub(crate) fn rules(settings: &Settings) -> Result<Rules, StartError> {
    Rules::new(&settings.leases, unmatched(settings)).map_err(|error| StartError::Usage(error.to_string()))
}

/// What happens to a request that no rule covers.
pub(crate) fn unmatched(settings: &Settings) -> UnmatchedLease {
    if settings.spinneret_url.is_some() { settings.lease_unmatched } else { UnmatchedLease::Anonymous }
}

fn embedded(settings: &Settings) -> Result<Opened, StartError> {
    let plane = match &settings.identities {
        Some(path) => Embedded::load(path).map_err(|error| StartError::Usage(format!("IDENTITIES: {error}")))?,
        None => Embedded::anonymous(),
    };
    Ok(Opened { plane: Arc::new(plane), name: name(settings), remote: None })
}

fn client(url: &str, settings: &Settings) -> Result<Client, StartError> {
    let retry = RetryPolicy {
        max_retries: settings.spinneret_max_retries,
        max_retry_after: settings.spinneret_max_retry_after,
        backoff_initial: settings.spinneret_backoff,
        backoff_max: settings.spinneret_backoff_max,
    };
    let timeouts = Timeouts {
        connect: settings.spinneret_connect_timeout,
        read: settings.spinneret_timeout,
        write: settings.spinneret_timeout,
        ..Timeouts::default()
    };
    let mut builder = Client::builder()
        .url(url)
        .timeouts(timeouts)
        .retry(retry)
        .max_connections(settings.spinneret_max_connections)
        // Proxies, roots and the home directory are still the environment's.
        .environment(|name| if name.starts_with(OWN) { None } else { std::env::var_os(name) });
    if let Some(token) = &settings.spinneret_token {
        builder = builder.token(token.to_secret_string());
    }
    if let Some(node) = &settings.spinneret_node {
        builder = builder.node(node);
    }
    if let Some(folder) = &settings.spinneret_cache_dir {
        builder = builder.cache_dir(folder);
    }
    if let Some(file) = &settings.spinneret_ca_file {
        builder = builder.ca_file(file);
    }
    builder.build().map_err(|error| StartError::Usage(error.to_string()))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing)]
    use std::path::Path;
    use std::time::Duration;

    use super::*;
    use crate::settings::{Environment, Layers};

    fn settings(pairs: &[&str]) -> Settings {
        let layers = pairs.iter().fold(Layers::new().env(Environment::default()), |layers, pair| layers.set(pair));
        layers.resolve().unwrap().settings
    }

    #[test]
    fn the_settings_choose_the_plane_and_its_name_shows_no_secret() {
        let opened = open(&settings(&[])).unwrap();
        assert_eq!((opened.name.as_str(), opened.remote.is_none()), ("embedded (anonymous)", true));
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("who.toml");
        std::fs::write(&file, "[[sites]]\nname = \"shop\"\n[[sites.identities]]\nname = \"anna\"\n").unwrap();
        let opened = open(&settings(&[&format!("IDENTITIES={}", file.display())])).unwrap();
        assert_eq!(opened.name, format!("embedded (identities of {})", file.display()));
        let opened = open(&settings(&["SPINNERET_URL=https://plane.example/base/", "SPINNERET_TOKEN=spn_secret"])).unwrap();
        assert!(opened.name.starts_with("spinneret https://plane.example/base") && !opened.name.contains("secret"), "{opened:?}");
        assert!(opened.remote.is_some() && opened.plane.is_remote());
    }

    #[test]
    fn a_server_without_a_token_and_a_file_that_is_not_there_are_bad_usage() {
        let without = Settings { spinneret_url: Some("https://plane.example".to_owned()), ..Settings::default() };
        let error = open(&without).unwrap_err();
        assert!(matches!(&error, StartError::Usage(text) if text.contains("SPINNERET_TOKEN")), "{error}");
        let error = open(&settings(&["IDENTITIES=/no/such/file.toml"])).unwrap_err();
        assert!(matches!(&error, StartError::Usage(text) if text.contains("/no/such/file.toml")), "{error}");
    }

    #[test]
    fn limits_and_names_are_those_of_the_settings() {
        let settings = settings(&[
            "SPINNERET_URL=https://plane.example",
            "SPINNERET_TOKEN=spn_x",
            "SPINNERET_NODE=node-7",
            "SPINNERET_CACHE_DIR=/tmp/cache",
            "SPINNERET_MAX_RETRIES=9",
            "SPINNERET_TIMEOUT=7",
        ]);
        let client = client("https://plane.example", &settings).unwrap();
        assert_eq!((client.node(), client.cache_dir()), ("node-7", Some(Path::new("/tmp/cache"))));
        assert_eq!(settings.spinneret_timeout, Duration::from_secs(7));
        let missing = Settings { spinneret_ca_file: Some("/no/such.pem".into()), ..settings };
        assert!(open(&missing).unwrap_err().to_string().contains("/no/such.pem"));
    }

    #[test]
    fn only_a_server_may_refuse_what_no_rule_covers() {
        assert_eq!(unmatched(&settings(&["LEASE_UNMATCHED=refuse"])), UnmatchedLease::Anonymous);
        let server = settings(&["SPINNERET_URL=https://plane.example", "SPINNERET_TOKEN=spn_x"]);
        assert_eq!(unmatched(&server), UnmatchedLease::Refuse);
    }
}
