//! What `Debug` shows of a URI: its path. A query may be signed, and an authority may hold a password.

use std::fmt;

/// The path of a path or URL.
pub(crate) struct PathOnly<'a>(pub(crate) &'a str);

impl fmt::Debug for PathOnly<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let uri = self.0.split(['?', '#']).next().unwrap_or_default();
        match uri.split_once("://") {
            None => fmt::Debug::fmt(uri, f),
            Some((_, rest)) => {
                let path = rest.split_once('/').map_or("", |(_authority, path)| path);
                write!(f, "\"/{}\"", path.escape_debug())
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_path_is_shown() {
        for (uri, shown) in [
            ("", r#""""#),
            ("/feed?page=2", r#""/feed""#),
            ("/feed#part", r#""/feed""#),
            ("https://user:secret@h:8443/x/y?q=1#f", r#""/x/y""#),
            ("https://user:secret@h", r#""/""#),
            ("/\"\n", r#""/\"\n""#),
            ("http://h/\"\n", r#""/\"\n""#),
        ] {
            assert_eq!(format!("{:?}", PathOnly(uri)), shown);
        }
    }
}
