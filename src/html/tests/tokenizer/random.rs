//! Anything at all is a page: it ends, and what is told is text.

use proptest::prelude::*;

use super::{Content, Recorder, Token};
use crate::html::parse::normalised;

/// Pieces that change a state, and some that do not.
pub(super) fn soup() -> impl Strategy<Value = String> {
    let piece = prop::sample::select(vec![
        "<",
        ">",
        "/",
        "</",
        "<!",
        "<?",
        "<!--",
        "-->",
        "--!>",
        "-",
        "--",
        "!",
        "?",
        "=",
        "\"",
        "'",
        "&",
        "&amp;",
        "&am",
        "&#",
        "&#x",
        "&#65;",
        "&#x110000;",
        "&notin;",
        "&notit;",
        ";",
        " ",
        "\n",
        "\t",
        "\r\n",
        "\x0c",
        "\0",
        "a",
        "A",
        "b",
        "x=y",
        "class=\"a b\"",
        "href='?a&b=1&copy=2'",
        "é",
        "日本",
        "\u{1f525}",
        "<p>",
        "</p>",
        "<DIV ID=X>",
        "<br/>",
        "<title>",
        "</title>",
        "<textarea>",
        "</textarea ",
        "<script>",
        "</script>",
        "</SCRIPT",
        "<style>",
        "</style>",
        "<plaintext>",
        "<![CDATA[",
        "]]>",
        "]",
        "[",
        "<!DOCTYPE",
        "<!doctype html",
        "PUBLIC",
        "SYSTEM",
        "xml",
        "_t",
        "data",
        "0",
        "9",
    ]);
    prop::collection::vec(piece, 0..60).prop_map(|pieces| pieces.concat())
}

pub(super) fn contents() -> impl Strategy<Value = (Content, Option<&'static str>)> {
    prop::sample::select(vec![
        (Content::Data, None),
        (Content::Rcdata, Some("title")),
        (Content::Rcdata, None),
        (Content::Rawtext, Some("style")),
        (Content::Script, Some("script")),
        (Content::Plaintext, None),
    ])
}

/// Runs with a sink that checks every span; the tokens.
fn read(source: &str, content: Content, last_start: Option<&str>, cdata: bool) -> Recorder {
    let recorder = Recorder { cdata, content: None, ..Recorder::new(source) };
    recorder.run(content, last_start)
}

/// Whether what was told can stand in a token.
fn is_sound(token: &Token) -> bool {
    let is_name = |name: &str| !name.is_empty() && !name.contains(|c: char| matches!(c, '\0' | ' ' | '\n' | '>' | 'A'..='Z'));
    match token {
        Token::Start(name, attrs, _) => {
            let names: Vec<&String> = attrs.iter().map(|(name, _)| name).collect();
            is_name(name)
                && names.iter().all(|name| is_name(name))
                && (1..names.len()).all(|place| !names[..place].contains(&names[place]))
                && attrs.iter().all(|(_, value)| !value.contains('\0'))
        }
        Token::End(name) => is_name(name),
        Token::Text(text) => !text.is_empty(),
        Token::Comment(text) => !text.contains('\0'),
        Token::Instruction(target, data) => !target.is_empty() && !data.contains('>'),
        Token::Doctype(name, ..) => name.as_ref().is_none_or(|name| is_name(name)),
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2_000))]

    #[test]
    fn any_text_is_read_to_its_end(text in any::<String>(), (content, last_start) in contents(), cdata: bool) {
        let recorder = read(&text, content, last_start, cdata);
        prop_assert!(recorder.tokens.iter().all(is_sound), "{:?}", recorder.tokens);
        prop_assert!(recorder.arena.side.len() <= 3 * text.len() + 16);
    }

    #[test]
    fn any_soup_is_read_to_its_end(text in soup(), (content, last_start) in contents(), cdata: bool) {
        let recorder = read(&text, content, last_start, cdata);
        prop_assert!(recorder.tokens.iter().all(is_sound), "{:?}", recorder.tokens);
    }

    #[test]
    fn text_without_markup_is_itself(text in "[^<&]*", (content, last_start) in contents()) {
        let recorder = read(&text, content, last_start, false);
        let normal = String::from_utf8(normalised(text.into()).to_vec()).unwrap();
        let normal = if content == Content::Data { normal } else { normal.replace('\0', "\u{fffd}") };
        let expected = if normal.is_empty() { vec![] } else { vec![Token::Text(normal)] };
        prop_assert_eq!(recorder.tokens, expected);
    }

    #[test]
    fn pages_behind_each_other_are_read_as_each_alone(first in soup(), second in soup()) {
        // A comment that is closed for sure ends all that may be open in the first, but for raw text.
        let close = |text: String| format!("{}x>'x>\"x>--><!---->", text.replace("<script>", "").replace("<plaintext>", "").replace("<style>", "").replace("<title>", "").replace("<textarea>", ""));
        let (first, second) = (close(first), close(second));
        let alone = |text: &str| read(text, Content::Data, None, false).tokens;
        let (mut expected, behind) = (alone(&first), alone(&second));
        prop_assume!(expected.last() == Some(&Token::Comment(String::new())));
        expected.extend(behind);
        prop_assert_eq!(alone(&format!("{first}{second}")), expected);
    }

    #[test]
    fn an_attribute_value_is_what_was_written(value in "[^\"&\0\r]*", name in "[a-z][a-z0-9-]{0,20}") {
        let source = format!("<p {name}=\"{value}\">");
        let expected = Token::Start("p".to_owned(), vec![(name.clone(), value)], false);
        prop_assert_eq!(read(&source, Content::Data, None, false).tokens, vec![expected]);
    }
}
