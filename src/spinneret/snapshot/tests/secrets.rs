//! What is secret, and what becomes of it.

use std::sync::atomic::{AtomicUsize, Ordering};

use super::*;

fn holds(cache: &Cache, text: &str) -> bool {
    let bytes = fs::read(cache.file()).unwrap();
    bytes.windows(text.len()).any(|window| window == text.as_bytes())
}

#[test]
fn b123_a_secret_item_is_not_written_and_takes_the_older_plain_one_away() {
    let cache = Cache::new();
    let store = cache.store();
    assert_eq!(store.save("prod", &secret()), Saved::KeptOut);
    assert!(!cache.root().exists());
    assert_eq!(store.save("prod", &item()), Saved::Written);
    assert_eq!(store.save("prod", &secret()), Saved::Removed);
    assert_eq!(cache.entries().iter().filter(|path| path.is_file()).count(), 0);
    assert_eq!(store.load("prod", &key()), None);
    assert_eq!(store.save("prod", &ConfigItem { version: 5, ..item() }), Saved::Written);
    assert_eq!(store.load("prod", &key()).unwrap().version, 5);
}

#[test]
fn b190_a_plain_file_comes_and_goes_with_the_references_to_secrets() {
    let cache = Cache::new();
    let store = cache.store();
    let versions = [(1, false), (2, true), (3, true), (4, false)];
    let saved: Vec<(Saved, Option<i32>)> = versions
        .into_iter()
        .map(|(version, has_secret_refs)| {
            let saved = store.save("prod", &ConfigItem { version, has_secret_refs, ..item() });
            (saved, store.load("prod", &key()).map(|item| item.version))
        })
        .collect();
    assert_eq!(saved, [(Saved::Written, Some(1)), (Saved::Removed, None), (Saved::KeptOut, None), (Saved::Written, Some(4))]);
}

#[test]
fn b124_a_content_with_a_reference_counts_as_secret() {
    let cache = Cache::new();
    for (content, expected) in [
        ("key: ${secret:shop/api}", Saved::KeptOut),
        ("${secret:", Saved::KeptOut),
        ("key: ${env:HOME}", Saved::Written),
        ("${ secret:x}", Saved::Written),
    ] {
        assert_eq!(
            Cache::new().store().save("prod", &ConfigItem { content: content.to_owned(), ..item() }),
            expected,
            "{content}"
        );
    }
    cache.store().save("prod", &item());
    let content = "key: ${secret:shop/api}".to_owned();
    assert_eq!(cache.store().save("prod", &ConfigItem { content, ..item() }), Saved::Removed);
}

#[test]
fn b124_the_predicate_adds_but_never_exempts() {
    let cache = Cache::new();
    let store = cache.asking(|item| item.content.contains("password"));
    assert_eq!(store.save("prod", &item()), Saved::Written);
    let content = "password: c4n4ry".to_owned();
    assert_eq!(store.save("prod", &ConfigItem { content: content.clone(), ..item() }), Saved::Removed);
    assert_eq!(cache.asking(|_| false).save("prod", &secret()), Saved::KeptOut);
    let treat_as_secret: Option<TreatAsSecret> = Some(Arc::new(|item: &ConfigItem| item.content.contains("password")));
    let sealing = SnapshotStore::new(SnapshotOptions { cache_secrets: true, treat_as_secret, ..cache.options() });
    assert_eq!(sealing.save("prod", &ConfigItem { content: content.clone(), ..item() }), Saved::Written);
    assert!(!holds(&cache, "c4n4ry"));
    assert_eq!(sealing.load("prod", &key()).unwrap().content, content);
}

#[test]
fn b124_the_predicate_is_asked_only_about_items_that_are_not_secret_anyway() {
    let cache = Cache::new();
    let asked = Arc::new(AtomicUsize::new(0));
    let counter = asked.clone();
    let store = cache.asking(move |_| counter.fetch_add(1, Ordering::Relaxed) > 100);
    store.save("prod", &secret());
    store.save("prod", &ConfigItem { content: "${secret:a}".to_owned(), ..item() });
    assert_eq!(asked.load(Ordering::Relaxed), 0);
    store.save("prod", &item());
    assert_eq!(asked.load(Ordering::Relaxed), 1);
}

#[test]
fn b124_a_predicate_that_panics_says_secret() {
    let cache = Cache::new();
    cache.store().save("prod", &item());
    let store = cache.asking(|_| panic!("the predicate's own fault"));
    let (saved, log) = logged(|| store.save("prod", &item()));
    assert_eq!(saved, Saved::Removed);
    assert!(log.contains("WARN spinneret.config: treat_as_secret panicked: the item counts as secret"), "{log}");
    assert!(log.contains("crawler") && log.contains("search.json"), "{log}");
}

#[test]
fn b124_a_predicate_may_use_the_store() {
    let cache = Cache::new();
    let inner = Arc::new(cache.store());
    let store = cache.asking(move |item| {
        inner.save("other", item);
        false
    });
    assert_eq!(store.save("prod", &item()), Saved::Written);
    assert!(cache.store().load("other", &key()).is_some());
}

#[test]
fn b125_a_secret_item_is_encrypted_and_comes_back() {
    let cache = Cache::new();
    let store = cache.sealing();
    assert_eq!(store.save("prod", &secret()), Saved::Written);
    for text in ["c4n4ry", "has_secret_refs", "content", TOKEN] {
        assert!(!holds(&cache, text), "{text}");
    }
    let document = cache.document();
    let members: Vec<&String> = document.as_object().unwrap().keys().collect();
    assert_eq!(members, ["format", "saved_at", "encrypted", "envelope"]);
    let members: Vec<&String> = document["envelope"].as_object().unwrap().keys().collect();
    assert_eq!(members, ["alg", "salt", "nonce", "ciphertext"]);
    assert_eq!(store.load("prod", &key()), Some(secret()));
}

#[test]
fn b125_two_files_of_one_item_have_nothing_in_common() {
    let cache = Cache::new();
    let envelopes = [0, 1].map(|_| {
        cache.sealing().save("prod", &secret());
        cache.document()["envelope"].clone()
    });
    for member in ["salt", "nonce", "ciphertext"] {
        assert_ne!(envelopes[0][member], envelopes[1][member], "{member}");
    }
}

#[test]
fn b125_another_token_reads_nothing_and_says_so() {
    let cache = Cache::new();
    cache.sealing().save("prod", &secret());
    let token = SecretString::from("spn_c4n4ry_other");
    let other = SnapshotStore::new(SnapshotOptions { cache_secrets: true, token, ..cache.options() });
    assert_ignored(&other, "it was written under another token, for another item, or was changed since");
    assert_eq!(cache.sealing().load("prod", &key()), Some(secret()));
}

#[test]
fn b125_without_cache_secrets_an_encrypted_file_is_none_without_a_word() {
    let cache = Cache::new();
    cache.sealing().save("prod", &secret());
    let (loaded, log) = logged(|| cache.store().load("prod", &key()));
    assert_eq!((loaded, log.as_str()), (None, ""));
}

#[test]
fn b125_an_item_that_is_not_secret_stays_plain() {
    let cache = Cache::new();
    cache.sealing().save("prod", &item());
    assert!(holds(&cache, "c4n4ry-content"));
    assert_eq!(cache.store().load("prod", &key()), Some(item()));
}

#[test]
fn b126_an_envelope_that_cannot_be_opened_is_ignored_with_a_warning() {
    let cache = Cache::new();
    let store = cache.sealing();
    let cases = [
        ("alg", json!("c4n4ry"), "its algorithm is not HKDF-SHA256/AES-256-GCM"),
        ("salt", Value::Null, "its envelope has no text as salt"),
        ("nonce", json!("c4n4ry!"), "nonce of its envelope is not base64"),
        ("nonce", json!("AAAA"), "the nonce of its envelope does not have 12 bytes"),
        ("ciphertext", json!(17), "its envelope has no text as ciphertext"),
    ];
    for (member, value, why) in cases {
        store.save("prod", &secret());
        let mut document = cache.document();
        document["envelope"][member] = value;
        cache.plant(document.to_string());
        assert_ignored(&store, why);
    }
    for envelope in [Value::Null, json!([]), json!("c4n4ry")] {
        cache.plant(json!({"format": 1, "encrypted": true, "envelope": envelope}).to_string());
        assert_ignored(&store, "it has no envelope");
    }
}

#[test]
fn b126_a_file_of_another_item_is_not_taken_for_this_one() {
    let cache = Cache::new();
    let store = cache.sealing();
    store.save("prod", &ConfigItem { key: "other.json".to_owned(), ..secret() });
    let other = cache.file().with_file_name("other.json.json");
    cache.plant(fs::read(other).unwrap());
    assert_ignored(&store, "another item");
}

#[test]
fn b126_a_flipped_bit_gives_nothing_or_what_was_written() {
    let cache = Cache::new();
    let store = cache.sealing();
    store.save("prod", &ConfigItem { content: "k: v".to_owned(), ..secret() });
    let written = store.load("prod", &key()).unwrap();
    let file = fs::read(cache.file()).unwrap();
    let envelope = file.windows(8).position(|window| window == b"envelope").unwrap() - 1;
    for bit in 0..file.len() * 8 {
        let mut flipped = file.clone();
        flipped[bit / 8] ^= 1 << (bit % 8);
        cache.plant(&flipped);
        match store.load("prod", &key()) {
            None => {}
            // When it was saved is not authenticated, and not read.
            Some(loaded) => {
                assert!(bit / 8 < envelope, "bit {bit}");
                assert_eq!(loaded, written, "bit {bit}");
            }
        }
    }
}

#[test]
fn a_plain_file_is_refused_when_its_item_counts_as_secret_by_now() {
    let cache = Cache::new();
    let plain = "it holds a secret in plain text";
    cache.store().save("prod", &item());
    assert_ignored(&cache.asking(|_| true), plain);
    let mut document = cache.document();
    document["item"]["has_secret_refs"] = json!(true);
    cache.plant(document.to_string());
    assert_ignored(&cache.store(), plain);
    assert_ignored(&cache.sealing(), plain);
}

#[test]
fn stores_and_their_options_show_no_token() {
    let cache = Cache::new();
    let shown = format!("{:?} {:?} {:?}", cache.options(), cache.store(), cache.sealing());
    assert!(!shown.contains("c4n4ry"), "{shown}");
    assert!(shown.contains("cache_secrets: true") && shown.contains(HOST), "{shown}");
}
