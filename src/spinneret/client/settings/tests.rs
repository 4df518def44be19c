//! What is made of arguments and environment.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing)]

use super::*;

const URL: (&str, &str) = ("SPINNERET_URL", "https://h:8443/");
const TOKEN: (&str, &str) = ("SPINNERET_TOKEN", " spn_c4n4ry ");
const HOME: (&str, &str) = ("HOME", "/home/crawl");

fn of(given: Given, variables: &[(&'static str, &'static str)]) -> Result<Settings> {
    Settings::of(given, &Environment::of(variables))
}

fn refused(given: Given, variables: &[(&'static str, &'static str)]) -> String {
    let error = of(given, variables).unwrap_err();
    assert!(matches!(error, Error::Configuration(_)), "{error:?}");
    assert_eq!(error.http_status(), 0);
    let message = error.message().to_owned();
    assert!(!message.contains("c4n4ry"), "{message}");
    message
}

fn token_is(token: &str) -> Given {
    Given { token: Some(token.into()), ..Given::default() }
}

#[test]
fn b001_url_and_token_of_the_environment_are_trimmed() {
    let settings = of(Given::default(), &[URL, TOKEN, HOME]).unwrap();
    assert_eq!((settings.address.base(), settings.address.host()), ("https://h:8443", "h:8443"));
    assert_eq!(settings.token.expose_secret(), "spn_c4n4ry");
    assert_eq!(settings.salutation().unwrap().authorization, "Bearer spn_c4n4ry");
}

#[test]
fn b002_the_rest_has_defaults() {
    let settings = of(Given::default(), &[URL, TOKEN, HOME]).unwrap();
    assert_eq!(settings.node, node_name::of_host());
    assert_eq!(settings.cache_dir.as_deref(), Some(Path::new("/home/crawl/.spinneret/cache")));
    assert!(settings.ca_files.is_empty());
    let blank = [URL, TOKEN, HOME, ("SPINNERET_NODE", " "), ("SPINNERET_CACHE_DIR", " "), ("SSL_CERT_FILE", "")];
    let settings = of(Given::default(), &blank).unwrap();
    assert_eq!((settings.node, settings.ca_files.len()), (node_name::of_host(), 0));
    assert_eq!(settings.cache_dir.as_deref(), Some(Path::new("/home/crawl/.spinneret/cache")));
}

#[test]
fn b003_an_argument_wins_over_its_variable() {
    let environment = [
        URL,
        TOKEN,
        HOME,
        ("SPINNERET_NODE", "env node"),
        ("SPINNERET_CACHE_DIR", "~/env"),
        ("SPINNERET_CA_FILE", "/env.pem"),
        ("SSL_CERT_FILE", "~/ssl.pem"),
    ];
    let settings = of(Given::default(), &environment).unwrap();
    assert_eq!(settings.node, "env-node");
    assert_eq!(settings.cache_dir.as_deref(), Some(Path::new("/home/crawl/env")));
    assert_eq!(settings.ca_files, ["/env.pem", "/home/crawl/ssl.pem"].map(PathBuf::from));

    let given = Given { url: Some("http://other/sp".to_owned()), ..Given::default() };
    assert_eq!(of(given, &environment).unwrap().address.base(), "http://other/sp");
    assert_eq!(of(token_is("spn_other"), &environment).unwrap().token.expose_secret(), "spn_other");
    let given = Given { node: Some("my node".to_owned()), ..Given::default() };
    assert_eq!(of(given, &environment).unwrap().node, "my-node");
    let given = Given { cache_dir: Some("~".into()), ..Given::default() };
    assert_eq!(of(given, &environment).unwrap().cache_dir.as_deref(), Some(Path::new("/home/crawl")));
    let given = Given { ca_file: Some("/own.pem".into()), ..Given::default() };
    assert_eq!(of(given, &environment).unwrap().ca_files, ["/own.pem", "/home/crawl/ssl.pem"].map(PathBuf::from));
}

#[test]
fn b003_an_empty_argument_wins_too_and_is_an_error() {
    let environment = [URL, TOKEN, HOME, ("SPINNERET_CACHE_DIR", "/env"), ("SPINNERET_CA_FILE", "/env.pem")];
    let empty = Given { url: Some(String::new()), ..Given::default() };
    assert!(refused(empty, &environment).starts_with("SPINNERET_URL (ClientBuilder::url) is empty"));
    assert!(refused(token_is(""), &environment).starts_with("SPINNERET_TOKEN (ClientBuilder::token) is empty"));
    let empty = Given { cache_dir: Some(PathBuf::new()), ..Given::default() };
    assert!(refused(empty, &environment).starts_with("SPINNERET_CACHE_DIR (ClientBuilder::cache_dir) is empty"));
    let empty = Given { ca_file: Some(PathBuf::new()), ..Given::default() };
    assert!(refused(empty, &environment).starts_with("SPINNERET_CA_FILE (ClientBuilder::ca_file) is empty"));
    let empty = Given { node: Some(String::new()), ..Given::default() };
    assert_eq!(of(empty, &[URL, TOKEN, ("SPINNERET_NODE", "env")]).unwrap().node, "unknown");
}

#[test]
fn b004_what_is_missing_is_named() {
    for variables in [vec![TOKEN], vec![TOKEN, ("SPINNERET_URL", "  ")]] {
        assert!(refused(Given::default(), &variables).starts_with("SPINNERET_URL (ClientBuilder::url) is not set"));
    }
    for variables in [vec![URL], vec![URL, ("SPINNERET_TOKEN", " ")]] {
        assert!(refused(Given::default(), &variables).starts_with("SPINNERET_TOKEN (ClientBuilder::token) is not set"));
    }
}

#[test]
fn b006_a_token_no_header_can_carry_is_refused_without_being_shown() {
    for (token, words) in [
        ("", "is empty"),
        ("   ", "is empty"),
        ("spn c4n4ry", "holds white space"),
        ("spn_c4n4ry\r\nX-Evil: 1", "holds white space"),
        ("spn_c4n4ry\u{1}", "holds a control character"),
        ("spn_c4n4ry\u{7f}", "holds a control character"),
        ("spn_c4n4ryé", "outside ASCII"),
    ] {
        let message = refused(token_is(token), &[URL]);
        assert!(message.starts_with("SPINNERET_TOKEN (ClientBuilder::token) ") && message.contains(words), "{message}");
    }
}

#[test]
fn the_user_agent_stands_before_our_own() {
    let agent = |own: Option<&str>| {
        let given = Given { user_agent: own.map(str::to_owned), ..Given::default() };
        of(given, &[URL, TOKEN]).map(|settings| settings.salutation().unwrap().user_agent.to_str().unwrap().to_owned())
    };
    let ours = format!("dragline-spinneret/{}", env!("CARGO_PKG_VERSION"));
    assert_eq!(agent(None).unwrap(), ours);
    assert_eq!(agent(Some(" ")).unwrap(), ours);
    assert_eq!(agent(Some("crawl/7 (x)")).unwrap(), format!("crawl/7 (x) {ours}"));
    for bad in ["a\r\nX: y", "é", "a\tb"] {
        assert!(agent(Some(bad)).unwrap_err().message().contains("user_agent"), "{bad:?}");
    }
}

#[cfg(unix)]
#[test]
fn a_variable_that_is_no_text_is_an_error_for_texts_and_fine_for_paths() {
    use std::ffi::OsString;
    use std::os::unix::ffi::OsStringExt as _;
    let odd = OsString::from_vec(vec![b'/', 0xff]);
    for name in ["SPINNERET_URL", "SPINNERET_TOKEN", "SPINNERET_NODE"] {
        let (base, odd) = (Environment::of(&[URL, TOKEN, HOME]), odd.clone());
        let environment = Environment::new(move |asked| if asked == name { Some(odd.clone()) } else { base.get(asked) });
        let message = Settings::of(Given::default(), &environment).unwrap_err().message().to_owned();
        assert!(message.starts_with(name), "{message}");
    }
    let base = Environment::of(&[URL, TOKEN]);
    let path = PathBuf::from(&odd);
    let environment =
        Environment::new(move |asked| if asked == "SPINNERET_CACHE_DIR" { Some(odd.clone()) } else { base.get(asked) });
    assert_eq!(Settings::of(Given::default(), &environment).unwrap().cache_dir, Some(path));
}
