//! Files beside the seed.

use super::super::*;
use super::{FILES, read_beside};

const TYPE: &str = "[[sites]]\nname = \"shop\"\nidentity_types = [{ file = \"session.yaml\" }]\n";

#[test]
fn identities_are_imported_beside_those_that_are_written() {
    let text = format!(
        "{TYPE}[[sites.identities]]\nname = \"c\"\ntype = \"session\"\npayload = {{ user = \"carl\" }}\n\
         [[sites.import]]\ntype = \"session\"\nfile = \"good.jsonl\"\nstate = \"active\"\n"
    );
    let seed = read_beside(&text, FILES).unwrap();
    let site = &seed.sites[0];
    let ids: Vec<_> = site.identities.iter().map(|identity| (&*identity.id, &*identity.kind, identity.state)).collect();
    assert_eq!(ids[0], ("c", "session", Start::Pending));
    assert_eq!(ids[2], ("second", "session", Start::Active));
    assert!(ids[1].0.starts_with("session-") && ids[1].0.len() == "session-".len() + 16, "{:?}", ids[1]);
    assert_eq!(&*site.accounts[0].name, "a1");
    let files: Vec<_> = seed.files.iter().map(|path| path.display().to_string()).collect();
    assert_eq!(files, ["dir/ids.toml", "dir/session.yaml", "dir/good.jsonl"]);
    let again = read_beside(&text, FILES).unwrap();
    assert_eq!(again.sites[0].identities[1].id, site.identities[1].id);
    let peppered = read_beside(&format!("pepper = \"x\"\n{text}"), FILES).unwrap();
    assert_ne!(peppered.sites[0].identities[1].id, site.identities[1].id);
}

#[test]
fn a_mistake_in_another_file_names_that_file_and_its_line() {
    let import = |file: &str| format!("{TYPE}[[sites.import]]\ntype = \"session\"\nfile = \"{file}\"\n");
    for (text, parts) in [
        (import("bad.jsonl"), &["dir/bad.jsonl:2: sites[\"shop\"].import[1].file: ", "usr", "did you mean user", "1 more"][..]),
        (import("twice.jsonl"), &["dir/twice.jsonl:2: ", "has the id n"]),
        (import("bad.csv"), &["dir/bad.csv: ", "column 2", "empty"]),
        (import("gone.jsonl"), &["sites[\"shop\"].import[1].file: dir/gone.jsonl cannot be read", "check the path"]),
        ("proxy_files = \"bad.txt\"\n".to_owned(), &["dir/bad.txt:3: proxy_files: url: ", "socks5"]),
        (TYPE.replace("session.yaml", "bad.yaml"), &["dir/bad.yaml: ", "fields.user.type", "string"]),
        (TYPE.replace("session.yaml", "broken.yaml"), &["dir/broken.yaml:", "identity_types[1].file: ", "YAML"]),
        ("[[config]]\ngroup = \"g\"\nkey = \"k\"\nfile = \"bad.json\"\n".to_owned(), &["not JSON", "line 1, column 9"]),
    ] {
        let error = read_beside(&text, FILES).map(|_| ()).unwrap_err();
        for part in parts {
            assert!(error.contains(part), "{text}\n  {error}\n  lacks {part}");
        }
    }
}

#[test]
fn a_seed_is_loaded_with_the_files_beside_it() {
    let dir = tempfile::tempdir().unwrap();
    std::fs::write(dir.path().join("ids.toml"), "proxy_files = \"p.txt\"\n[secrets]\nkey = { file = \"key.txt\" }\n").unwrap();
    std::fs::write(dir.path().join("p.txt"), "# one\nhttp://10.0.0.1:80\n").unwrap();
    std::fs::write(dir.path().join("key.txt"), "abc\r\n").unwrap();
    let seed = load(&dir.path().join("ids.toml")).unwrap();
    assert_eq!((seed.proxies.len(), seed.files.len()), (1, 3));
    assert_eq!(secrecy::ExposeSecret::expose_secret(&seed.secrets[0].value), "abc");
    let error = load(&dir.path().join("gone.toml")).unwrap_err().to_string();
    assert!(error.contains("gone.toml cannot be read"), "{error}");
    std::fs::write(dir.path().join("latin.toml"), b"namespace = \"a\"\n# \xe9\n").unwrap();
    let error = load(&dir.path().join("latin.toml")).unwrap_err().to_string();
    assert!(error.ends_with("latin.toml:2: the text is not UTF-8; save it as such"), "{error}");
}
