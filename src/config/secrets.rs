//! Secrets that settings refer to, read from the control plane before a crawl starts.

use std::collections::BTreeMap;

use crate::plane::ControlPlane;
use crate::settings::{Layers, SettingsErrors};

/// The layers with every secret that the settings in effect refer to. Each path is read once, as each reading is written down
/// at the plane; without references the plane is not asked.
///
/// # Errors
/// Every secret that cannot be read, with its setting and the reason.
pub(crate) async fn read_secrets(layers: &Layers, plane: &dyn ControlPlane) -> Result<Layers, SettingsErrors> {
    let references = layers.secret_references();
    let mut answers = BTreeMap::new();
    for reference in &references {
        if !answers.contains_key(&reference.path) {
            answers.insert(reference.path.clone(), plane.secret(reference.path.clone()).await);
        }
    }
    let unread = references.iter().filter_map(|reference| match answers.get(&reference.path) {
        Some(Err(why)) => Some(reference.unread(why)),
        _ => None,
    });
    SettingsErrors::none(unread)?;
    Ok(layers.with_secrets(&answers.into_iter().filter_map(|(path, answer)| Some((path, answer.ok()?))).collect()))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing)]
    use super::*;
    use crate::plane::scripted::Scripted;

    #[tokio::test]
    async fn each_secret_is_read_once_and_put_in_its_places() {
        let plane = Scripted::new();
        plane.keep_secret("a/key", "k-1");
        plane.keep_secret("a/delay", "2.5");
        let layers = Layers::new()
            .set("USER_AGENT=bot ${secret:a/key}")
            .set("BOT_NAME=${secret:a/key}")
            .set("DOWNLOAD_DELAY=${secret:a/delay}")
            .set("LOG_FILE=${secret:lost}")
            .set("LOG_FILE=plain.log");
        let settings = read_secrets(&layers, &*plane).await.unwrap().resolve().unwrap().settings;
        assert_eq!((settings.user_agent.as_str(), settings.bot_name.as_str()), ("bot k-1", "k-1"));
        assert_eq!(settings.download_delay.as_millis(), 2500);
        let mut calls = plane.calls();
        calls.sort_unstable();
        assert_eq!(calls, ["secret a/delay", "secret a/key"]);
    }

    #[tokio::test]
    async fn all_that_cannot_be_read_are_named_together() {
        let plane = Scripted::new();
        plane.keep_secret("a/key", "k-1");
        let layers = Layers::new().set("USER_AGENT=${secret:a/key} ${secret:b}").set("BOT_NAME=${secret:b}");
        let shown = read_secrets(&layers, &*plane).await.unwrap_err().to_string();
        let lines: Vec<&str> = shown.lines().collect();
        assert_eq!(lines.len(), 2, "{shown}");
        assert!(lines[0].starts_with("setting BOT_NAME (-s): the secret b cannot be read: "), "{shown}");
        assert!(lines[1].starts_with("setting USER_AGENT (-s): the secret b cannot be read: "), "{shown}");
        assert!(read_secrets(&Layers::new(), &*Scripted::new()).await.is_ok());
    }
}
