//! The grammar of names: sites, clients, endpoint groups (wire contract, section 18).

use super::GroupsError;
use super::error::shown;

/// The most clients of a site.
pub(crate) const MAX_CLIENTS: usize = 16;

/// The clients of a site that declares none.
pub(crate) const DEFAULT_CLIENTS: [&str; 1] = ["web"];

/// Checks the name of a site: `^[a-z0-9_][a-z0-9_.-]{0,63}$`.
pub(crate) fn site(name: &str) -> Result<(), GroupsError> {
    long("site", name)
}

/// Checks the name of an endpoint group: `^[a-z0-9_][a-z0-9_.-]{0,63}$`.
pub(crate) fn group(name: &str) -> Result<(), GroupsError> {
    long("endpoint group", name)
}

/// Checks the name of a client: `^[a-z0-9_-]{1,32}$`.
pub(crate) fn client(name: &str) -> Result<(), GroupsError> {
    let fits = (1..=32).contains(&name.len()) && name.bytes().all(|byte| is_word(byte) || byte == b'-');
    if fits { Ok(()) } else { Err(wrong("client", name, "1 to 32 of a-z, 0-9, _ and -")) }
}

/// Checks all clients of a site.
pub(crate) fn clients<'a>(site: &str, clients: &[&'a str]) -> Result<(), GroupsError> {
    if clients.is_empty() || clients.len() > MAX_CLIENTS {
        return Err(GroupsError::Clients { site: site.to_owned(), found: clients.len(), allowed: MAX_CLIENTS });
    }
    let mut seen: Vec<&'a str> = Vec::with_capacity(clients.len());
    for name in clients {
        client(name)?;
        if seen.contains(name) {
            return Err(GroupsError::ClientTwice { site: site.to_owned(), client: (*name).to_owned() });
        }
        seen.push(name);
    }
    Ok(())
}

fn long(what: &'static str, name: &str) -> Result<(), GroupsError> {
    let fits = (1..=64).contains(&name.len())
        && name.bytes().next().is_some_and(is_word)
        && name.bytes().all(|byte| is_word(byte) || matches!(byte, b'.' | b'-'));
    if fits { Ok(()) } else { Err(wrong(what, name, "1 to 64 of a-z, 0-9, _, . and -, not starting with . or -")) }
}

const fn is_word(byte: u8) -> bool {
    matches!(byte, b'a'..=b'z' | b'0'..=b'9' | b'_')
}

fn wrong(what: &'static str, name: &str, allowed: &'static str) -> GroupsError {
    GroupsError::Name { what, found: shown(name), allowed }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing)]
    use super::*;

    #[test]
    fn names_follow_their_grammar() {
        let long = "a".repeat(64);
        for name in ["a", "_default", "0.a-b_c", "9", long.as_str()] {
            assert!(site(name).is_ok() && group(name).is_ok(), "{name}");
        }
        let longer = "a".repeat(65);
        for name in ["", ".a", "-a", "A", "a b", "é", "a/b", longer.as_str()] {
            assert!(site(name).is_err() && group(name).is_err(), "{name}");
        }
        let long = "a".repeat(32);
        for name in ["web", "-", "_", "app-2", long.as_str()] {
            assert!(client(name).is_ok(), "{name}");
        }
        let longer = "a".repeat(33);
        for name in ["", "a.b", "Web", "ü", longer.as_str()] {
            assert!(client(name).is_err(), "{name}");
        }
        assert_eq!(
            group("Search").unwrap_err().to_string(),
            "endpoint group name \"Search\" is not allowed; allowed: 1 to 64 of a-z, 0-9, _, . and -, not starting with . or -"
        );
    }

    #[test]
    fn a_site_has_one_to_sixteen_different_clients() {
        assert!(clients("shop", &DEFAULT_CLIENTS).is_ok());
        assert!(clients("shop", &[]).is_err());
        assert!(clients("shop", &["web", "app", "web"]).is_err());
        let names: Vec<String> = (0..17).map(|n| format!("c{n}")).collect();
        let names: Vec<&str> = names.iter().map(String::as_str).collect();
        assert!(clients("shop", &names[..16]).is_ok());
        assert!(clients("shop", &names).is_err());
    }
}
