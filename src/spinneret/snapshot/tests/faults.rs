//! A disk that is not as it should be.

use std::io;

use super::*;
use crate::spinneret::snapshot::disk::MAX_BYTES;

/// The item is not written, one warning says why and where, and nothing is left behind.
fn assert_not_written(store: &SnapshotStore, item: &ConfigItem, why: &str) {
    let (saved, log) = logged(|| store.save("prod", item));
    assert_eq!(saved, Saved::Failed, "{why}");
    assert_eq!(log.lines().count(), 1, "{why}: {log}");
    assert!(log.contains("WARN spinneret.config: a snapshot could not be written: "), "{log}");
    assert!(log.contains(why) && log.contains("/prod/crawler/"), "{why}: {log}");
}

fn unfinished(dir: &Path) -> Vec<PathBuf> {
    entries(dir).into_iter().filter(|path| path.to_string_lossy().ends_with(".tmp")).collect()
}

#[test]
fn b129_a_rename_that_fails_leaves_nothing_behind() {
    let cache = Cache::new();
    fs::create_dir_all(cache.file()).unwrap();
    assert_not_written(&cache.store(), &item(), "directory");
    assert_eq!(unfinished(&cache.root()), Vec::<PathBuf>::new());
    assert!(cache.file().is_dir());
}

#[test]
fn b128_a_directory_in_place_of_the_file_is_ignored_with_a_warning() {
    let cache = Cache::new();
    fs::create_dir_all(cache.file()).unwrap();
    assert_ignored(&cache.store(), "it is not a regular file");
    let (saved, log) = logged(|| cache.store().save("prod", &secret()));
    assert_eq!(saved, Saved::Failed, "a secret item cannot take it away, either");
    assert!(log.contains("WARN spinneret.config: a snapshot could not be removed: "), "{log}");
}

#[test]
fn b121_a_parent_that_is_a_file_is_a_failure() {
    for parent in ["cache", "cache/spinneret.test%3A8080", "cache/spinneret.test%3A8080/prod/crawler"] {
        let cache = Cache::new();
        let parent = cache.dir.path().join(parent);
        fs::create_dir_all(parent.parent().unwrap()).unwrap();
        fs::write(&parent, "in the way").unwrap();
        assert_not_written(&cache.store(), &item(), "irectory");
        assert_ignored(&cache.store(), "irectory");
        assert_eq!(cache.store().save("prod", &secret()), Saved::KeptOut, "there is no older snapshot to remove");
        assert_eq!(fs::read_to_string(&parent).unwrap(), "in the way");
    }
}

#[cfg(unix)]
#[test]
fn b121_a_directory_that_may_not_be_written_to_is_a_failure() {
    use std::os::unix::fs::PermissionsExt as _;
    let cache = Cache::new();
    cache.store().save("prod", &ConfigItem { version: 1, ..item() });
    let dir = cache.file().parent().unwrap().to_path_buf();
    fs::set_permissions(&dir, fs::Permissions::from_mode(0o500)).unwrap();
    // Whoever runs as root writes there nevertheless.
    if fs::write(dir.join("probe"), "").is_err() {
        assert_not_written(&cache.store(), &item(), "ermission denied");
        assert_eq!(cache.store().load("prod", &key()).unwrap().version, 1, "the older one stays");
        assert_eq!(cache.store().save("prod", &secret()), Saved::Failed);
    } else {
        assert_eq!(cache.store().save("prod", &item()), Saved::Written);
    }
    fs::set_permissions(&dir, fs::Permissions::from_mode(0o700)).unwrap();
}

#[cfg(target_os = "linux")]
#[test]
fn b121_a_file_system_that_makes_no_directories_is_a_failure() {
    let cache = Cache::new();
    let store = SnapshotStore::new(SnapshotOptions { cache_dir: PathBuf::from("/proc/dragline/cache"), ..cache.options() });
    assert_not_written(&store, &item(), "o such file or directory");
}

#[cfg(unix)]
#[test]
fn a_link_in_place_of_the_file_is_not_followed_and_is_replaced() {
    let cache = Cache::new();
    let elsewhere = cache.dir.path().join("elsewhere.json");
    cache.store().save("prod", &item());
    fs::rename(cache.file(), &elsewhere).unwrap();
    std::os::unix::fs::symlink(&elsewhere, cache.file()).unwrap();
    assert_ignored(&cache.store(), "symbolic links");
    assert_eq!(cache.store().save("prod", &ConfigItem { version: 9, ..item() }), Saved::Written);
    assert!(!cache.file().is_symlink());
    assert_eq!(cache.store().load("prod", &key()).unwrap().version, 9);
    let other: Value = serde_json::from_slice(&fs::read(&elsewhere).unwrap()).unwrap();
    assert_eq!(other["item"]["version"], 3, "what the link led to is left alone");
}

#[cfg(unix)]
#[test]
fn a_directory_may_be_a_link() {
    let cache = Cache::new();
    let elsewhere = cache.dir.path().join("elsewhere");
    fs::create_dir(&elsewhere).unwrap();
    std::os::unix::fs::symlink(&elsewhere, cache.root()).unwrap();
    assert_eq!(cache.store().save("prod", &item()), Saved::Written);
    assert_eq!(cache.store().load("prod", &key()), Some(item()));
    assert_eq!(entries(&elsewhere).len(), 4);
}

#[cfg(target_os = "linux")]
#[test]
fn a_pipe_in_place_of_the_file_is_ignored_without_waiting() {
    use rustix::fs::{CWD, FileType, Mode, mknodat};
    let cache = Cache::new();
    fs::create_dir_all(cache.file().parent().unwrap()).unwrap();
    mknodat(CWD, cache.file(), FileType::Fifo, Mode::RWXU, 0).unwrap();
    assert_ignored(&cache.store(), "it is not a regular file");
}

#[test]
fn a_file_of_more_than_32_mib_is_neither_read_nor_written() {
    let cache = Cache::new();
    cache.plant("");
    let file = fs::OpenOptions::new().write(true).open(cache.file()).unwrap();
    let too_large = "it is larger than 32 MiB";
    file.set_len(MAX_BYTES as u64 + 1).unwrap();
    assert_ignored(&cache.store(), too_large);
    file.set_len(MAX_BYTES as u64).unwrap();
    assert_ignored(&cache.store(), "it is not a JSON object");
    assert_not_written(&cache.store(), &ConfigItem { content: "x".repeat(MAX_BYTES), ..item() }, too_large);
    assert_eq!(unfinished(&cache.root()), Vec::<PathBuf>::new());
}

#[test]
fn a_name_too_long_for_a_file_is_a_failure_and_nothing_worse() {
    let cache = Cache::new();
    for key in ["k".repeat(256), "☃".repeat(86), "/".repeat(84)] {
        let long = ConfigItem { key: key.clone(), ..item() };
        assert_not_written(&cache.store(), &long, "name too long");
        let (loaded, log) = logged(|| cache.store().load("prod", &named("crawler", &key)));
        assert_eq!((loaded, log.lines().count()), (None, 1), "{log}");
        let (saved, log) = logged(|| cache.store().save("prod", &ConfigItem { has_secret_refs: true, ..long }));
        assert_eq!((saved, log.as_str()), (Saved::KeptOut, ""));
    }
    assert_eq!(unfinished(&cache.root()), Vec::<PathBuf>::new());
}

#[test]
fn the_longest_name_a_file_can_have_is_written() {
    let cache = Cache::new();
    for length in [230, 240, 250] {
        let long = ConfigItem { key: "k".repeat(length), ..item() };
        assert_eq!(cache.store().save("prod", &long), Saved::Written, "{length}");
        assert_eq!(cache.store().load("prod", &named("crawler", &long.key)), Some(long));
    }
}

#[test]
fn a_system_without_randomness_writes_no_secret() {
    let cache = Cache::new();
    let none = || Err(io::Error::other("the system gives no randomness"));
    let (saved, log) = logged(|| cache.sealing().save_as_of("prod", &secret(), jiff::Timestamp::UNIX_EPOCH, none));
    assert_eq!(saved, Saved::Failed);
    assert!(log.contains("a snapshot could not be written: the system gives no randomness"), "{log}");
    assert!(!cache.root().exists());
}

/// Rules for a whole process, such as its umask: these tests run in one of their own.
#[cfg(unix)]
mod alone {
    use std::os::unix::fs::PermissionsExt as _;
    use std::process::Command;

    use super::*;

    const DIR: &str = "DRAGLINE_SNAPSHOT_TEST_DIR";

    /// Runs an ignored test of this module under rules that a shell sets first.
    fn run(rules: &str, test: &str, dir: &Path) {
        let (_, module) = module_path!().split_once("::").unwrap();
        let output = Command::new("sh")
            .arg("-c")
            .arg(format!("{rules}; exec \"$0\" --exact {module}::{test} --ignored"))
            .arg(std::env::current_exe().unwrap())
            .env(DIR, dir)
            .output()
            .unwrap();
        let said = String::from_utf8_lossy(&output.stdout);
        assert!(output.status.success() && said.contains("1 passed"), "{rules}: {said}");
    }

    /// The store of the directory that [`run`] names; by itself, of one that is gone after the test.
    fn store(cache: &Cache) -> SnapshotStore {
        let cache_dir = std::env::var_os(DIR).map_or_else(|| cache.root(), PathBuf::from);
        SnapshotStore::new(SnapshotOptions { cache_dir: cache_dir.join("a/b"), cache_secrets: true, ..cache.options() })
    }

    #[test]
    fn b121_modes_hold_whatever_the_umask() {
        for umask in ["000", "022", "077", "277", "777"] {
            let dir = TempDir::new().unwrap();
            run(&format!("umask {umask}"), "saves", dir.path());
            let made = entries(dir.path());
            assert_eq!(made.len(), 7, "{umask}: {made:?}");
            for path in made {
                let mode = fs::metadata(&path).unwrap().permissions().mode() & 0o777;
                assert_eq!(mode, if path.is_dir() { 0o700 } else { 0o600 }, "{umask}: {}", path.display());
            }
        }
    }

    #[test]
    #[ignore = "run by the test `b121_modes_hold_whatever_the_umask`"]
    fn saves() {
        let cache = Cache::new();
        let (store, sealed) = (store(&cache), ConfigItem { key: "sealed".to_owned(), ..secret() });
        for item in [item(), sealed] {
            assert_eq!(store.save("prod", &item), Saved::Written);
            assert_eq!(store.load("prod", &named("crawler", &item.key)), Some(item));
        }
    }

    #[test]
    fn b129_a_disk_that_takes_half_of_it_keeps_the_older_one() {
        let dir = TempDir::new().unwrap();
        run("trap '' XFSZ; ulimit -f 8", "fills_the_disk", dir.path());
        assert_eq!(entries(dir.path()).iter().filter(|path| path.is_file()).count(), 1);
    }

    #[test]
    #[ignore = "run by the test `b129_a_disk_that_takes_half_of_it_keeps_the_older_one`"]
    fn fills_the_disk() {
        let cache = Cache::new();
        let store = store(&cache);
        assert_eq!(store.save("prod", &item()), Saved::Written);
        for large in [item(), secret()] {
            let large = ConfigItem { version: 9, content: "x".repeat(100_000), ..large };
            if std::env::var_os(DIR).is_some() {
                assert_not_written(&store, &large, "too large");
                assert_eq!(store.load("prod", &key()), Some(item()));
            }
        }
    }
}
