//! Files of the Python SDK's layout, read here; and files of ours, which have its very bytes.

use jiff::Timestamp;

use super::super::document;
use super::super::envelope::Freshness;
use super::*;

const FACTS: &str = include_str!("../../../../tests/data/spinneret/snapshots/facts.json");
const FILES: [(&str, &[u8]); 4] = [
    ("plain", include_bytes!("../../../../tests/data/spinneret/snapshots/plain.json")),
    ("names", include_bytes!("../../../../tests/data/spinneret/snapshots/names.json")),
    ("runtime", include_bytes!("../../../../tests/data/spinneret/snapshots/runtime.json")),
    ("encrypted", include_bytes!("../../../../tests/data/spinneret/snapshots/encrypted.json")),
];

fn bytes<const N: usize>(hex: &Value) -> [u8; N] {
    let hex = hex.as_str().unwrap();
    std::array::from_fn(|at| u8::from_str_radix(&hex[2 * at..2 * at + 2], 16).unwrap())
}

struct Golden {
    path: PathBuf,
    asked_namespace: String,
    item: ConfigItem,
    file: &'static [u8],
}

/// The facts, the store they speak of, and its files.
fn golden(cache: &Cache) -> (Value, SnapshotStore, Vec<Golden>) {
    let facts: Value = serde_json::from_str(FACTS).unwrap();
    let store = SnapshotStore::new(SnapshotOptions {
        token: SecretString::from(facts["token"].as_str().unwrap()),
        host: facts["host"].as_str().unwrap().to_owned(),
        cache_secrets: true,
        ..cache.options()
    });
    let files = FILES.map(|(name, file)| {
        let facts = &facts["files"][name];
        Golden {
            path: cache.root().join(facts["path"].as_str().unwrap()),
            asked_namespace: facts["asked_namespace"].as_str().unwrap().to_owned(),
            item: serde_json::from_value(facts["item"].clone()).unwrap(),
            file,
        }
    });
    (facts, store, files.into())
}

#[test]
fn b130_files_written_in_python_are_read() {
    let cache = Cache::new();
    let (_, store, files) = golden(&cache);
    for golden in files {
        fs::create_dir_all(golden.path.parent().unwrap()).unwrap();
        fs::write(&golden.path, golden.file).unwrap();
        let key = named(&golden.item.group, &golden.item.key);
        let (loaded, log) = logged(|| store.load(&golden.asked_namespace, &key));
        assert_eq!((loaded, log.as_str()), (Some(golden.item), ""), "{}", golden.path.display());
    }
}

#[test]
fn b130_files_written_here_are_those_written_in_python_byte_for_byte() {
    let cache = Cache::new();
    let (facts, store, files) = golden(&cache);
    let saved_at: Timestamp = facts["saved_at"].as_str().unwrap().parse().unwrap();
    for golden in files {
        let fresh = || Ok(Freshness { salt: bytes(&facts["salt"]), nonce: bytes(&facts["nonce"]) });
        assert_eq!(store.save_as_of(&golden.asked_namespace, &golden.item, saved_at, fresh), Saved::Written);
        let written = fs::read(&golden.path).unwrap();
        assert_eq!(String::from_utf8_lossy(&written), String::from_utf8_lossy(golden.file));
        assert_eq!(written, golden.file);
    }
}

#[test]
fn times_are_written_with_six_digits_and_the_rest_is_cut_off() {
    let times = [
        ("2026-09-16T08:30:00Z", "2026-09-16T08:30:00.000000Z"),
        ("2026-09-16T08:30:00.1Z", "2026-09-16T08:30:00.100000Z"),
        ("2026-09-16T10:30:00.123456789+02:00", "2026-09-16T08:30:00.123456Z"),
        ("2026-12-31T23:59:59.999999999Z", "2026-12-31T23:59:59.999999Z"),
    ];
    for (time, expected) in times {
        let time: Timestamp = time.parse().unwrap();
        let text = document::plain(&ConfigItem { updated_at: Some(time), ..item() }, time).unwrap();
        let document: Value = serde_json::from_slice(&text).unwrap();
        assert_eq!((&document["saved_at"], &document["item"]["updated_at"]), (&json!(expected), &json!(expected)));
    }
}
