//! RE2's syntax in the words of the engine here.
//!
//! The two differ in little: in RE2 `\d \w \s \b` mean ASCII (`\B` too, but that has no counterpart on text here), `\Q…\E` quotes, and a class has no inner classes and no set
//! operations. What RE2 refuses and the engine here allows stays allowed.

/// The expression that means here what `pattern` means in RE2.
pub(super) fn to_rust(pattern: &str) -> String {
    let mut ours = String::with_capacity(pattern.len() + 16);
    let mut rest = pattern.chars();
    let mut class = Class::Outside;
    while let Some(character) = rest.next() {
        class = match (character, class) {
            ('\\', _) => {
                match rest.next() {
                    Some('Q') => rest = quote(rest.as_str(), &mut ours).chars(),
                    Some(escaped) => escape(escaped, class, &mut ours),
                    None => ours.push('\\'),
                }
                class.after_member()
            }
            ('[', Class::Outside) => {
                ours.push('[');
                if let Some(behind) = rest.as_str().strip_prefix('^') {
                    ours.push('^');
                    rest = behind.chars();
                }
                Class::Start
            }
            ('[', _) => {
                // A named class ends with `:]`; any other bracket is a member.
                let named = rest.as_str().strip_prefix(':').and_then(|name| name.split_once(":]"));
                if let Some((name, behind)) = named {
                    ours.extend(["[:", name, ":]"]);
                    rest = behind.chars();
                } else {
                    ours.push_str("\\[");
                }
                Class::Inside
            }
            ('&' | '~', Class::Start | Class::Inside) | (']', Class::Start) => {
                ours.push('\\');
                ours.push(character);
                Class::Inside
            }
            (']', Class::Inside) => {
                ours.push(']');
                Class::Outside
            }
            _ => {
                ours.push(character);
                class.after_member()
            }
        };
    }
    ours
}

/// Where in a character class the reader is.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Class {
    Outside,
    /// Right behind the opening: a `]` there is a member.
    Start,
    Inside,
}

impl Class {
    const fn after_member(self) -> Self {
        match self {
            Self::Outside => Self::Outside,
            Self::Start | Self::Inside => Self::Inside,
        }
    }
}

fn escape(escaped: char, class: Class, ours: &mut String) {
    match escaped {
        'd' => ours.push_str("[0-9]"),
        'D' => ours.push_str("[^0-9]"),
        'w' => ours.push_str("[0-9A-Za-z_]"),
        'W' => ours.push_str("[^0-9A-Za-z_]"),
        's' => ours.push_str(r"[\t\n\f\r ]"),
        'S' => ours.push_str(r"[^\t\n\f\r ]"),
        'b' if class == Class::Outside => ours.push_str(r"(?-u:\b)"),
        other => {
            ours.push('\\');
            ours.push(other);
        }
    }
}

/// Takes everything up to `\E`, or all, literally; gives what is behind.
fn quote<'a>(text: &'a str, ours: &mut String) -> &'a str {
    let (quoted, behind) = text.split_once("\\E").unwrap_or((text, ""));
    ours.push_str(&regex::escape(quoted));
    behind
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing)]
    use proptest::prelude::*;
    use regex::Regex;

    use super::*;

    #[test]
    fn an_expression_means_what_it_means_in_re2() {
        for (pattern, yes, no) in [
            (r"^/\d+$", vec!["/12"], vec!["/١٢", "/"]),
            (r"^/\w+$", vec!["/aZ_9"], vec!["/é", "/a-b"]),
            (r"^/[\w-]+$", vec!["/a-b"], vec!["/é"]),
            (r"^/[^\d]$", vec!["/x", "/١"], vec!["/1"]),
            (r"^/\D$", vec!["/x", "/١"], vec!["/1"]),
            (r"^/\W$", vec!["/é", "/-"], vec!["/e"]),
            (r"^/\S$", vec!["/\u{a0}"], vec!["/ "]),
            (r"\bfeed\b", vec!["/feed/", "/éfeedé"], vec!["/feeds"]),
            (r"^/.$", vec!["/é", "/a"], vec!["/ab"]),
            (r"^/\Qa.b[\E$", vec!["/a.b["], vec!["/axb["]),
            (r"^/[[a]$", vec!["/[", "/a"], vec!["/b"]),
            (r"^/[]a]$", vec!["/]", "/a"], vec!["/b"]),
            (r"^/[^]a]$", vec!["/b"], vec!["/]", "/a"]),
            (r"^/[a&&b]$", vec!["/a", "/&", "/b"], vec!["/c"]),
            (r"^/[[:digit:]x]+$", vec!["/1x"], vec!["/y"]),
            (r"^/(?P<id>[0-9]{2})/(?i:ABC)$", vec!["/12/abc"], vec!["/1/abc"]),
            (r"\.html?\z", vec!["/a.htm"], vec!["/a.htm/"]),
        ] {
            let ours = Regex::new(&to_rust(pattern)).unwrap_or_else(|e| panic!("{pattern}: {e}"));
            assert!(yes.iter().all(|path| ours.is_match(path)), "{pattern} {yes:?}");
            assert!(!no.iter().any(|path| ours.is_match(path)), "{pattern} {no:?}");
        }
    }

    proptest! {
        #[test]
        fn any_text_is_translated(text in "\\PC{0,30}|[\\[\\]\\\\^:a-zQE&~-]{0,20}") {
            let _ = Regex::new(&to_rust(&text));
        }

        #[test]
        fn a_plain_text_stays_as_it_is(text in "[a-z0-9/._%()|*+?{}$^-]{0,30}") {
            prop_assert_eq!(to_rust(&text), text);
        }
    }
}
