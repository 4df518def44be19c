//! Where the snapshot of an item lies: any name becomes one component of a path that leads nowhere else.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};

/// The directory of items that were asked for without a namespace: the token's own, whose name the node does not know.
const TOKEN_NAMESPACE: &str = "_token_namespace";

/// The file of an item.
pub(super) fn file(cache_dir: &Path, host: &str, namespace: &str, group: &str, key: &str) -> PathBuf {
    let namespace = if namespace.is_empty() { TOKEN_NAMESPACE } else { namespace };
    let mut path = cache_dir.to_path_buf();
    path.extend([component(host), component(namespace), component(group), format!("{}.json", component(key))]);
    path
}

/// A name as one component: never empty, never `.` or `..`, without a separator, all ASCII.
///
/// Two names share a component only if one is empty and the other a single NUL.
fn component(name: &str) -> String {
    let mut encoded = String::with_capacity(name.len());
    for (at, byte) in name.bytes().enumerate() {
        match byte {
            b'.' if at == 0 => encoded.push_str("%2E"),
            b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9' | b'_' | b'.' | b'-' | b'~' => encoded.push(char::from(byte)),
            _ => write!(encoded, "%{byte:02X}").unwrap_or_default(),
        }
    }
    if encoded.is_empty() { "%00".to_owned() } else { encoded }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing)]

    use std::path::Component;

    use proptest::prelude::*;

    use super::*;

    #[test]
    fn b192_names_become_the_components_of_the_vectors() {
        let vectors = [
            ("spinneret.test:8080", "spinneret.test%3A8080"),
            ("..", "%2E."),
            (".", "%2E"),
            (".hidden", "%2Ehidden"),
            ("a/b", "a%2Fb"),
            ("", "%00"),
            ("café", "caf%C3%A9"),
            ("a b~c_d-e.f", "a%20b~c_d-e.f"),
            ("x%y", "x%25y"),
            ("a*b'c(d)!", "a%2Ab%27c%28d%29%21"),
            ("../escape", "%2E.%2Fescape"),
            ("a\\b\0", "a%5Cb%00"),
        ];
        for (name, expected) in vectors {
            assert_eq!(component(name), expected, "{name:?}");
        }
    }

    #[test]
    fn b121_the_path_names_host_namespace_group_and_key() {
        let cache = Path::new("/var/cache");
        assert_eq!(
            file(cache, "spinneret.test:8080", "prod", "crawler", "search.json"),
            Path::new("/var/cache/spinneret.test%3A8080/prod/crawler/search.json.json")
        );
        assert_eq!(
            file(cache, "h", "", "_runtime", "breakers"),
            Path::new("/var/cache/h/_token_namespace/_runtime/breakers.json")
        );
    }

    proptest! {
        #[test]
        fn b122_any_names_stay_inside_the_directory(host: String, namespace: String, group: String, key: String) {
            let path = file(Path::new("/cache"), &host, &namespace, &group, &key);
            let inside: Vec<Component<'_>> = path.strip_prefix("/cache").unwrap().components().collect();
            prop_assert_eq!(inside.len(), 4);
            prop_assert!(inside.iter().all(|part| matches!(part, Component::Normal(_))));
            prop_assert!(path.to_str().unwrap().is_ascii());
        }

        #[test]
        fn different_names_lie_in_different_places(one in "[./%a\u{e9}]{0,4}", other in "[./%a\u{e9}]{0,4}") {
            prop_assert_eq!(one == other, component(&one) == component(&other));
        }
    }
}
