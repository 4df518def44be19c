//! An excerpt of a page that something between client and server wrote: enough to know what it is, nothing to leak.
//!
//! Such a page may echo the request with its token, or show somebody's cookies. So the rule does not look for secrets, it
//! says what is shown:
//! 1. of the first 512 bytes, plain words: letters in an ordinary mix of cases, at most 20, and numbers of at most five
//!    digits, perhaps joined by `-`, `/`, `.` or an apostrophe (`upstream`, `disconnect/reset`, `nginx/1.18.0`);
//! 2. tags without attributes;
//! 3. nothing behind a word or tag that announces a secret (`Authorization`, `cookie`, `token`, …) nor behind a `=`.
//!
//! Everything else is `[redacted]`. Line breaks and other control characters become spaces.

use super::redactor::{HIDDEN, Redactor};

/// How much of a page is shown.
const SHOWN: usize = 512;

/// How much more is read, so that a word is judged as a whole: one that reaches further is no plain word.
const BEHIND: usize = 512;

/// The longest run of letters that is a word.
const LETTERS: usize = 20;

/// The most characters of words that are joined.
const JOINED: usize = 40;

/// The most digits of a number.
const DIGITS: usize = 5;

/// The most digits of numbers that are joined.
const JOINED_DIGITS: usize = 8;

/// A word that holds one of these announces a secret.
const ANNOUNCING: [&str; 16] = [
    "auth",
    "cookie",
    "token",
    "secret",
    "passw",
    "pwd",
    "credential",
    "session",
    "bearer",
    "signature",
    "key",
    "jwt",
    "csrf",
    "xsrf",
    "private",
    "passphrase",
];

/// So does one that is exactly one of these.
const ANNOUNCING_WHOLE: [&str; 11] =
    ["basic", "digest", "negotiate", "ntlm", "pass", "pin", "otp", "sid", "sig", "user", "username"];

/// What a person may read of a page; empty for a blank one.
pub(super) fn excerpt(body: &[u8], redactor: &Redactor) -> String {
    let window = body.get(..SHOWN + BEHIND + redactor.reach()).unwrap_or(body);
    let text = String::from_utf8_lossy(window);
    let text = redactor.clean(&text);
    let mut shown = Shown::default();
    let mut rest = text.as_ref();
    // What is left says how far the reading came.
    while let Some(character) = rest.chars().next() {
        let at = text.len() - rest.len();
        if at >= SHOWN {
            break;
        }
        let piece = Piece::first(rest, character);
        rest = rest.get(piece.len()..).unwrap_or_default();
        let is_end = piece.show(&mut shown, SHOWN - at);
        if is_end {
            shown.hide();
            break;
        }
    }
    shown.text.trim().to_owned()
}

/// The excerpt in the making.
#[derive(Default)]
struct Shown {
    text: String,
}

impl Shown {
    fn push(&mut self, text: &str) {
        self.text.push_str(text);
    }

    fn space(&mut self) {
        if !self.text.ends_with(' ') {
            self.text.push(' ');
        }
    }

    /// Says once that something is missing, however much it is.
    fn hide(&mut self) {
        if !self.text.trim_end().ends_with(HIDDEN) {
            self.text.push_str(HIDDEN);
        }
    }
}

/// A piece of a page.
enum Piece<'a> {
    /// White space or a control character.
    Space(char),
    Tag(&'a str),
    Mark(&'a str),
    Word(&'a str),
}

impl<'a> Piece<'a> {
    fn first(text: &'a str, character: char) -> Self {
        if is_space(character) {
            return Self::Space(character);
        }
        if character == '<' {
            let end = text.find('>').map_or(text.len(), |end| end + 1);
            return Self::Tag(text.get(..end).unwrap_or(text));
        }
        if is_mark(character) {
            return Self::Mark(text.get(..character.len_utf8()).unwrap_or(text));
        }
        let end = text.find(|character| is_space(character) || is_mark(character) || character == '<').unwrap_or(text.len());
        Self::Word(text.get(..end).unwrap_or(text))
    }

    fn len(&self) -> usize {
        match self {
            Self::Space(character) => character.len_utf8(),
            Self::Tag(text) | Self::Mark(text) | Self::Word(text) => text.len(),
        }
    }

    /// Shows the piece, at most so many bytes of it. True when nothing behind it may be shown.
    fn show(&self, shown: &mut Shown, most: usize) -> bool {
        match self {
            Self::Space(_) => shown.space(),
            Self::Mark(mark) => shown.push(mark),
            Self::Tag(tag) => {
                if is_bare_tag(tag) {
                    shown.push(cut(tag, most));
                } else {
                    shown.hide();
                }
                return is_announcing(tag);
            }
            Self::Word(word) => {
                if is_plain(word) {
                    shown.push(cut(word, most));
                } else {
                    shown.hide();
                }
                return word.contains('=') || is_announcing(word);
            }
        }
        false
    }
}

fn is_space(character: char) -> bool {
    character.is_whitespace() || character.is_control()
}

fn is_mark(character: char) -> bool {
    "\"(){}[],;>".contains(character)
}

fn cut(text: &str, most: usize) -> &str {
    text.get(..text.floor_char_boundary(most)).unwrap_or_default()
}

/// `<html>`, `</h1>`, `<br/>`: no attribute, no comment.
fn is_bare_tag(tag: &str) -> bool {
    let name = tag.strip_prefix('<').and_then(|tag| tag.strip_suffix('>')).unwrap_or_default();
    let name = name.strip_prefix('/').or_else(|| name.strip_suffix('/')).unwrap_or(name);
    (1..=10).contains(&name.len()) && name.bytes().all(|byte| byte.is_ascii_alphanumeric())
}

fn is_plain(word: &str) -> bool {
    let core = word.trim_matches(|character: char| ".:!?'’-/&*|#".contains(character));
    let digits = core.chars().filter(char::is_ascii_digit).count();
    core.is_empty()
        || (core.chars().count() <= JOINED && digits <= JOINED_DIGITS && core.split(['-', '/', '.', '\'', '’']).all(is_simple))
}

/// A word of letters, or a number.
fn is_simple(word: &str) -> bool {
    let is_number = word.len() <= DIGITS && word.bytes().all(|byte| byte.is_ascii_digit());
    let is_word = word.chars().count() <= LETTERS && word.chars().all(char::is_alphabetic);
    // `CloudFront` has one hump; what was drawn by lot has more.
    let humps = word.chars().zip(word.chars().skip(1)).filter(|(a, b)| a.is_lowercase() && b.is_uppercase()).count();
    !word.is_empty() && (is_number || (is_word && humps <= 1))
}

fn is_announcing(word: &str) -> bool {
    let word = word.to_lowercase();
    let mut parts = word.split(|character: char| !character.is_alphanumeric());
    ANNOUNCING.iter().any(|name| word.contains(name)) || parts.any(|part| ANNOUNCING_WHOLE.contains(&part))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use secrecy::SecretString;

    use super::*;

    fn shown(page: &str) -> String {
        excerpt(page.as_bytes(), &Redactor::new(SecretString::from("spn_own")))
    }

    #[test]
    fn plain_words_stay() {
        for page in [
            "upstream connect error or disconnect/reset before headers. reset reason: connection failure",
            "no healthy upstream",
            "<html><head><title>502 Bad Gateway</title></head><h1>502 Bad Gateway</h1><hr>nginx/1.18.0</html>",
            "The server doesn't answer (CloudFront). Try again later!",
            "Dienst vorübergehend nicht verfügbar",
            "{\"error\": \"service unavailable\", \"status\": 503}",
            "Error 1020",
        ] {
            assert_eq!(shown(page), page);
        }
    }

    #[test]
    fn what_may_be_a_secret_does_not() {
        for (page, expected) in [
            ("401 Authorization: Bearer c4n4ry", "401 Authorization:[redacted]"),
            ("got cookie: opensesame; and more", "got cookie:[redacted]"),
            ("Set-Cookie: a\nopensesame", "Set-Cookie:[redacted]"),
            ("via http://joe:opensesame@proxy.internal:3128/ failed", "via [redacted] failed"),
            ("via socks5://opensesame@proxy failed", "via [redacted] failed"),
            ("<token>opensesame</token>", "<token>[redacted]"),
            ("<b id=\"session\">opensesame</b>", "[redacted]"),
            ("failed with password=opensesame and more", "failed with [redacted]"),
            ("id = opensesame", "id [redacted]"),
            ("see /login?next=opensesame", "see [redacted]"),
            ("request QWxhZGRpbjpvcGVu was refused", "request [redacted] was refused"),
            ("request c4n4ry was refused", "request [redacted] was refused"),
            ("request 550e8400-e29b-41d4-a716-446655440000 was refused", "request [redacted] was refused"),
            ("card 4111111111111111, phone 0049-30-123456", "card [redacted], phone [redacted]"),
            ("<a href=\"https://h/?q=opensesame\">Home</a>", "[redacted]Home</a>"),
            ("<!-- opensesame --> ready", "[redacted] ready"),
            ("ready <input value=opensesame", "ready [redacted]"),
            ("{\"X-Api-Key\": \"opensesame\"}", "{\"X-Api-Key[redacted]"),
            ("caller spn_own is unknown", "caller [redacted] is unknown"),
            ("a b4d and b4d c4n4ry b4d end", "a [redacted] and [redacted] end"),
            (&"x".repeat(600), "[redacted]"),
        ] {
            assert_eq!(shown(page), expected, "{page}");
        }
    }

    #[test]
    fn the_page_ends_after_512_bytes() {
        let page = "busy ".repeat(200);
        assert_eq!(shown(&page), page.get(..512).map(str::trim).unwrap_or_default());
        let page = "ü ".repeat(400);
        assert_eq!(shown(&page).len(), 512);
        let page = format!("{}endings", "a ".repeat(255));
        assert!(shown(&page).ends_with("a en"));
    }

    #[test]
    fn a_token_at_the_edge_is_not_cut_to_a_word() {
        let token = SecretString::from("opensesame");
        let page = format!("{} opensesame", "a ".repeat(252));
        assert!(!excerpt(page.as_bytes(), &Redactor::new(token)).contains("open"));
        let page = format!("{}{}", "a ".repeat(254), "Bc4n4ryB".repeat(300));
        assert!(shown(&page).ends_with("a [redacted]"));
    }

    #[test]
    fn control_characters_are_spaces_and_blank_pages_are_empty() {
        assert_eq!(shown("bad\r\n\tgateway\u{1b}\u{7f}now\u{0}"), "bad gateway now");
        assert_eq!(shown(" \r\n\t\u{0} "), "");
        assert_eq!(excerpt(b"\xff\xfe", &Redactor::default()), "[redacted]");
        assert_eq!(excerpt(b"caf\xc3\xa9 \xff down", &Redactor::default()), "café [redacted] down");
        assert_eq!(shown("left\u{202e}right"), "[redacted]");
    }

    proptest! {
        #[test]
        fn an_excerpt_is_short_and_clean(body in prop::collection::vec(any::<u8>(), 0..2_000)) {
            let text = excerpt(&body, &Redactor::default());
            prop_assert!(!text.contains(char::is_control) && text.trim() == text);
            prop_assert!(text.len() <= SHOWN * (1 + HIDDEN.len()));
        }

        #[test]
        fn a_secret_vanishes_wherever_it_is_echoed(
            before in "([a-z ]{0,40}\n){0,3}",
            place in prop::sample::select(vec![
                "Authorization: Bearer @", "Proxy-Authorization: Basic @", "Cookie: a=b; c=@", "set-cookie: sid=@; Path=/",
                "http://user:@@proxy:3128", "https://@:secret@h/", "token=@", "\"api_key\": \"@\"", "<b title=\"@\">", "?sig=@&x=1",
                "'password': '@'", "X-Auth-Token:@", "<!-- @ -->", "password is @",
            ]),
            secret in "[a-zA-Z0-9]{4,40}",
            after in "[a-z <>]{0,40}",
        ) {
            let secret = format!("Zq{secret}");
            let page = format!("{before}{}{after}", place.replace('@', &secret));
            prop_assert!(!shown(&page).contains(&secret), "{}", shown(&page));
        }
    }
}
