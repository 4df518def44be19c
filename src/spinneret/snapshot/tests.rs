#![allow(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing)]

mod faults;
mod interop;
mod secrets;

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use proptest::prelude::*;
use secrecy::SecretString;
use serde_json::{Value, json};
use tempfile::TempDir;

use super::store::{Saved, TreatAsSecret};
use super::{SnapshotOptions, SnapshotStore};
use crate::spinneret::testing::Logs;
use crate::spinneret::{ConfigItem, ConfigKey};

const TOKEN: &str = "spn_c4n4ry_token";
const HOST: &str = "spinneret.test:8080";

/// Stores that share a directory.
struct Cache {
    dir: TempDir,
}

impl Cache {
    fn new() -> Self {
        Self { dir: TempDir::new().unwrap() }
    }

    fn root(&self) -> PathBuf {
        self.dir.path().join("cache")
    }

    fn options(&self) -> SnapshotOptions {
        SnapshotOptions {
            cache_dir: self.root(),
            host: HOST.to_owned(),
            token: SecretString::from(TOKEN),
            cache_secrets: false,
            treat_as_secret: None,
        }
    }

    /// Keeps secrets out.
    fn store(&self) -> SnapshotStore {
        SnapshotStore::new(self.options())
    }

    /// Encrypts secrets.
    fn sealing(&self) -> SnapshotStore {
        SnapshotStore::new(SnapshotOptions { cache_secrets: true, ..self.options() })
    }

    /// Keeps those out, too, of which this is true.
    fn asking(&self, is_secret: impl Fn(&ConfigItem) -> bool + Send + Sync + 'static) -> SnapshotStore {
        let treat_as_secret: Option<TreatAsSecret> = Some(Arc::new(is_secret));
        SnapshotStore::new(SnapshotOptions { treat_as_secret, ..self.options() })
    }

    /// The file of [`item`].
    fn file(&self) -> PathBuf {
        self.root().join("spinneret.test%3A8080/prod/crawler/search.json.json")
    }

    /// Puts a file where that of [`item`] is read from.
    fn plant(&self, bytes: impl AsRef<[u8]>) {
        fs::create_dir_all(self.file().parent().unwrap()).unwrap();
        fs::write(self.file(), bytes).unwrap();
    }

    fn document(&self) -> Value {
        serde_json::from_slice(&fs::read(self.file()).unwrap()).unwrap()
    }

    /// All files and directories, below the root.
    fn entries(&self) -> Vec<PathBuf> {
        entries(&self.root())
    }
}

fn entries(dir: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in fs::read_dir(dir).into_iter().flatten() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            found.extend(entries(&path));
        }
        found.push(path);
    }
    found
}

fn item() -> ConfigItem {
    ConfigItem {
        namespace: "prod".to_owned(),
        group: "crawler".to_owned(),
        key: "search.json".to_owned(),
        format: "json".to_owned(),
        version: 3,
        content: "{\"note\": \"c4n4ry-content\"}".to_owned(),
        updated_at: Some("2026-09-16T08:30:00.25Z".parse().unwrap()),
        has_secret_refs: false,
    }
}

fn secret() -> ConfigItem {
    ConfigItem { version: 4, has_secret_refs: true, ..item() }
}

fn key() -> ConfigKey {
    ConfigKey { group: "crawler".to_owned(), key: "search.json".to_owned() }
}

fn named(group: &str, key: &str) -> ConfigKey {
    ConfigKey { group: group.to_owned(), key: key.to_owned() }
}

/// What it gives, and what was logged meanwhile. Nothing that is secret ever is.
fn logged<R>(run: impl FnOnce() -> R) -> (R, String) {
    let logs = Logs::of_target("spinneret.config");
    let result = run();
    let lines: Vec<String> = logs.all().into_iter().filter(|line| !line.starts_with("DEBUG")).collect();
    let text = lines.join("\n");
    assert!(!text.contains("c4n4ry"), "{text}");
    (result, text)
}

/// The item is not loaded, and one warning says why, and where.
fn assert_ignored(store: &SnapshotStore, why: &str) {
    let (loaded, log) = logged(|| store.load("prod", &key()));
    assert_eq!(loaded.map(|item| item.version), None, "{why}");
    assert_eq!(log.lines().count(), 1, "{why}: {log}");
    assert!(log.contains("WARN spinneret.config: a snapshot is ignored: "), "{log}");
    assert!(log.contains(why), "{why}: {log}");
    assert!(log.contains("spinneret.test%3A8080/prod/crawler/search.json.json"), "{log}");
}

#[test]
fn b121_a_saved_item_lies_in_its_place_with_all_its_members() {
    let cache = Cache::new();
    let (saved, log) = logged(|| cache.store().save("prod", &item()));
    assert_eq!((saved, log.as_str()), (Saved::Written, ""));
    let document = cache.document();
    let members: Vec<&String> = document.as_object().unwrap().keys().collect();
    assert_eq!(members, ["format", "saved_at", "encrypted", "item"]);
    assert_eq!((&document["format"], &document["encrypted"]), (&json!(1), &json!(false)));
    let saved_at = document["saved_at"].as_str().unwrap();
    assert_eq!((saved_at.len(), &saved_at[19..20], &saved_at[26..]), (27, ".", "Z"));
    let age = jiff::Timestamp::now().duration_since(saved_at.parse().unwrap());
    assert!((0..60).contains(&age.as_secs()), "{age}");
    let expected = json!({
        "namespace": "prod", "group": "crawler", "key": "search.json", "format": "json", "version": 3,
        "content": "{\"note\": \"c4n4ry-content\"}", "updated_at": "2026-09-16T08:30:00.250000Z", "has_secret_refs": false
    });
    assert_eq!(document["item"].to_string(), expected.to_string());
    assert_eq!(cache.entries().iter().filter(|path| path.is_file()).count(), 1);
    assert_eq!(cache.store().load("prod", &key()), Some(item()));
}

#[test]
fn b121_a_newer_item_takes_the_place_of_an_older_one() {
    let cache = Cache::new();
    for version in 1..=3 {
        assert_eq!(cache.store().save("prod", &ConfigItem { version, ..item() }), Saved::Written);
    }
    assert_eq!(cache.store().load("prod", &key()).unwrap().version, 3);
    assert_eq!(cache.entries().iter().filter(|path| path.is_file()).count(), 1);
}

#[cfg(unix)]
#[test]
fn b121_only_its_owner_gets_at_what_is_made() {
    use std::os::unix::fs::PermissionsExt as _;
    let cache = Cache::new();
    let above = cache.dir.path().join("above");
    fs::create_dir(&above).unwrap();
    fs::set_permissions(&above, fs::Permissions::from_mode(0o755)).unwrap();
    let store = SnapshotStore::new(SnapshotOptions { cache_dir: above.join("a/b"), ..cache.options() });
    assert_eq!(store.save("prod", &item()), Saved::Written);
    let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
    let made = entries(&above);
    assert_eq!(made.len(), 6, "{made:?}");
    for path in made {
        assert_eq!(mode(&path), if path.is_dir() { 0o700 } else { 0o600 }, "{}", path.display());
    }
    assert_eq!(mode(&above), 0o755, "what was there is left as it was");
}

#[test]
fn b122_names_that_look_like_paths_stay_inside_and_come_back() {
    for name in ["../escape", ".hidden", "..", ".", "", "a/b", "/etc/passwd", "naïve ☃", "C:\\x", "a\0b", "%2E.", "~root"] {
        let cache = Cache::new();
        let store = SnapshotStore::new(SnapshotOptions { host: name.to_owned(), ..cache.options() });
        let item = ConfigItem { group: name.to_owned(), key: name.to_owned(), ..item() };
        assert_eq!(store.save(name, &item), Saved::Written, "{name:?}");
        assert_eq!(store.load(name, &named(name, name)), Some(item), "{name:?}");
        assert_eq!(cache.entries().len(), 4, "{name:?}: {:?}", cache.entries());
        assert_eq!(fs::read_dir(cache.dir.path()).unwrap().count(), 1, "{name:?} got out");
    }
}

#[test]
fn namespaces_groups_and_keys_do_not_get_into_each_other_s_way() {
    let cache = Cache::new();
    let store = cache.store();
    let places = [("", "g", "k"), ("prod", "g", "k"), ("prod", "g", "k.json"), ("prod", "g/k", "k"), ("prod", "k", "g")];
    for (version, (namespace, group, key)) in (1..).zip(places) {
        store.save(namespace, &ConfigItem { group: group.to_owned(), key: key.to_owned(), version, ..item() });
    }
    for (version, (namespace, group, key)) in (1..).zip(places) {
        assert_eq!(store.load(namespace, &named(group, key)).unwrap().version, version);
    }
}

#[test]
fn b128_an_item_that_was_never_saved_is_absent_without_a_word() {
    let cache = Cache::new();
    let (loaded, log) = logged(|| cache.store().load("prod", &key()));
    assert_eq!((loaded, log.as_str()), (None, ""));
    assert!(!cache.root().exists(), "reading makes no directory");
}

#[test]
fn b128_a_document_that_is_none_is_ignored_with_a_warning() {
    let cache = Cache::new();
    let item = serde_json::to_value(item()).unwrap();
    let with = |member: &str, value: Value| {
        let mut item = item.clone();
        item[member] = value;
        json!({"format": 1, "saved_at": "", "encrypted": false, "item": item}).to_string()
    };
    let no_object = "it is not a JSON object";
    let format = "its format is not 1";
    let no_item = "its item cannot be read";
    let cases = [
        ("not json c4n4ry".to_owned(), no_object),
        (String::new(), no_object),
        ("[]".to_owned(), no_object),
        ("null".to_owned(), no_object),
        ("{\"format\": 1".to_owned(), no_object),
        (format!("{} {{}}", with("version", json!(3))), no_object),
        ("[".repeat(100_000), no_object),
        ("{}".to_owned(), format),
        (format!("{{\"later\": {}0{}}}", "[".repeat(10_000), "]".repeat(10_000)), format),
        (json!({"format": 99, "encrypted": false, "item": item}).to_string(), format),
        (json!({"format": "1", "encrypted": false, "item": item}).to_string(), format),
        (json!({"format": null, "encrypted": false, "item": item}).to_string(), format),
        (json!({"format": 1, "encrypted": "no", "item": item}).to_string(), "it does not say whether it is encrypted"),
        (json!({"format": 1, "encrypted": false}).to_string(), no_item),
        (json!({"format": 1, "encrypted": false, "item": null}).to_string(), no_item),
        (json!({"format": 1, "encrypted": false, "item": "c4n4ry"}).to_string(), no_item),
        (
            json!({"format": 1, "encrypted": false, "item": ["prod", "crawler", "search.json", "json", 3, "c4n4ry", null, false]})
                .to_string(),
            no_item,
        ),
        (with("version", json!("c4n4ry")), no_item),
        (with("content", json!(["c4n4ry"])), no_item),
        (with("updated_at", json!("c4n4ry")), no_item),
        (with("group", json!("c4n4ry")), "it holds another item"),
        (with("key", json!("c4n4ry")), "it holds another item"),
        (json!({"format": 1, "encrypted": false, "item": {}}).to_string(), "it holds another item"),
    ];
    for (document, why) in cases {
        cache.plant(&document);
        assert_ignored(&cache.store(), why);
        assert_ignored(&cache.sealing(), why);
    }
    cache.plant(b"{\"format\": 1, \"note\": \"\xff\"}");
    assert_ignored(&cache.store(), no_object);
}

#[test]
fn unknown_members_and_any_order_of_them_are_read() {
    let cache = Cache::new();
    let mut item = serde_json::to_value(item()).unwrap();
    item["later"] = json!({"x": [1]});
    cache.plant(json!({"item": item, "later": null, "format": 1}).to_string());
    assert_eq!(cache.store().load("prod", &key()).unwrap().version, 3);
}

#[test]
fn readers_see_a_whole_document_whoever_writes_meanwhile() {
    let cache = Cache::new();
    let store = cache.store();
    store.save("prod", &item());
    std::thread::scope(|scope| {
        for writer in 0..2 {
            let store = &store;
            scope.spawn(move || {
                for version in 0..40 {
                    let content = version.to_string().repeat(2_000 * (writer + 1));
                    assert_eq!(store.save("prod", &ConfigItem { version, content, ..item() }), Saved::Written);
                }
            });
        }
        for _ in 0..200 {
            assert!(store.load("prod", &key()).is_some());
        }
    });
    assert_eq!(cache.entries().iter().filter(|path| path.is_file()).count(), 1);
}

fn any_json() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<f64>().prop_map(Value::from),
        any::<String>().prop_map(Value::from),
    ];
    leaf.prop_recursive(3, 16, 4, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            prop::collection::vec((any::<String>(), inner), 0..4).prop_map(|pairs| Value::Object(pairs.into_iter().collect())),
        ]
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn b122_any_names_come_back_and_stay_inside(
        namespace in prop::collection::vec(any::<char>(), 0..20),
        group in prop::collection::vec(any::<char>(), 0..20),
        key in prop::collection::vec(any::<char>(), 0..20),
        content: String,
    ) {
        let cache = Cache::new();
        let [namespace, group, key] = [namespace, group, key].map(|name| name.into_iter().collect::<String>());
        let item = ConfigItem { group: group.clone(), key: key.clone(), content, ..item() };
        prop_assume!(!item.content.contains("${secret:"));
        prop_assert_eq!(cache.store().save(&namespace, &item), Saved::Written);
        prop_assert_eq!(cache.store().load(&namespace, &named(&group, &key)), Some(item));
        prop_assert_eq!(cache.entries().len(), 4);
        prop_assert_eq!(fs::read_dir(cache.dir.path()).unwrap().count(), 1);
    }

    #[test]
    fn any_bytes_in_a_file_are_read_or_ignored(bytes: Vec<u8>) {
        let cache = Cache::new();
        cache.plant(&bytes);
        prop_assert_eq!(cache.sealing().load("prod", &key()), None);
    }

    #[test]
    fn any_value_in_place_of_a_member_is_read_or_ignored(
        member in prop::sample::select(vec!["format", "encrypted", "saved_at", "item", "envelope"]),
        inner in prop::sample::select(vec![
            "namespace", "group", "key", "format", "version", "content", "updated_at", "has_secret_refs",
            "alg", "salt", "nonce", "ciphertext",
        ]),
        value in any_json(),
        is_inner: bool,
        is_secret: bool,
    ) {
        let cache = Cache::new();
        let store = cache.sealing();
        store.save("prod", &if is_secret { secret() } else { item() });
        let mut document = cache.document();
        if is_inner {
            let body = if is_secret { "envelope" } else { "item" };
            document[body][inner] = value;
        } else {
            document[member] = value;
        }
        cache.plant(document.to_string());
        if let Some(loaded) = store.load("prod", &key()) {
            prop_assert_eq!((loaded.group.as_str(), loaded.key.as_str()), ("crawler", "search.json"));
        }
    }
}
