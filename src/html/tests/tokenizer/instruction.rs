//! Processing instructions, by the cases of the web-platform tests (`html/syntax/parsing/resources/processing-instructions.dat`).

use super::{Content, Recorder, Token, tokens};

#[test]
fn a_valid_target_makes_a_processing_instruction() {
    for (source, target, data) in [
        ("<?something>", "something", ""),
        ("<?something good>", "something", "good"),
        ("<?something else is good>", "something", "else is good"),
        ("<?good?>", "good", ""),
        ("<?hey there?>", "hey", "there"),
        ("<?hey   there?>", "hey", "there"),
        ("<?hey?there>", "hey", "?there"),
        ("<?hey\tthere=1?>", "hey", "there=1"),
        ("<?hey\r\nthere=1?>", "hey", "there=1"),
        ("<?hey\x0cthere=1?>", "hey", "there=1"),
        ("<?something ? >", "something", "? "),
        ("<?something x >", "something", "x "),
        ("<?something ?\\t   ??>", "something", "?\\t   ?"),
        ("<?t ???>", "t", "??"),
        ("<?config-v2 data>", "config-v2", "data"),
        ("<?xla->", "xla-", ""),
        ("<?UPPERCASE data>", "UPPERCASE", "data"),
        ("<?S_S-S_S>", "S_S-S_S", ""),
        ("<?_>", "_", ""),
        ("<?A----------------  >", "A----------------", ""),
        ("<?z0123456789 data>", "z0123456789", "data"),
        ("<?xmlx>", "xmlx", ""),
        ("<?xml-stylesheets a>", "xml-stylesheets", "a"),
        ("<?pi &amp;<tag\0?>", "pi", "&amp;<tag\0"),
    ] {
        assert_eq!(tokens(source), [Token::Instruction(target.to_owned(), data.to_owned())], "{source:?}");
    }
    let tokens = tokens("<?t d > ?>");
    assert_eq!(tokens, [Token::Instruction("t".to_owned(), "d ".to_owned()), Token::Text(" ?>".to_owned())]);
}

#[test]
fn others_stay_comments() {
    for text in [
        "?a$",
        "?xml",
        "?XML",
        "?xml version=1?",
        "?xml-stylesheet",
        "?xml-STYLesheet href",
        "?xml?",
        "?1st-place",
        "?-prefix",
        "?\u{665}-star",
        "?\u{b7}middle",
        "?price$value",
        "?data.v1",
        "?namespace:tag",
        "?x=y",
        "?a<b",
        "?fire-\u{1f525}",
        "?",
        "? ",
        "??",
        "?a/",
    ] {
        let source = format!("<{text}>x");
        assert_eq!(tokens(&source), [Token::Comment(text.to_owned()), Token::Text("x".to_owned())], "{source:?}");
    }
    assert_eq!(tokens("<?\0>"), [Token::Comment("?\u{fffd}".to_owned())]);
}

#[test]
fn one_that_the_page_ends_in_is_dropped_and_a_comment_is_not() {
    for source in ["<?", "<?start", "<?start?", "<?start ", "<?start data", "<?start ? ?", "<?xml"] {
        assert_eq!(tokens(source), [], "{source:?}");
    }
    for text in ["? ", "?a$", "?xml ", "?1"] {
        assert_eq!(tokens(&format!("<{text}")), [Token::Comment(text.to_owned())], "{text:?}");
    }
}

#[test]
fn without_them_all_are_comments() {
    for text in ["?something good", "?a?", "?", "?xml"] {
        for source in [format!("<{text}>"), format!("<{text}")] {
            let recorder = Recorder { instructions: false, ..Recorder::new(&source) };
            assert_eq!(recorder.run(Content::Data, None).tokens, [Token::Comment(text.to_owned())], "{source:?}");
        }
    }
}

#[test]
fn raw_text_has_none() {
    let recorder = Recorder { content: None, ..Recorder::new("<title><?a></title><script><?a></script>") };
    let tokens = recorder.run(Content::Data, None).tokens;
    assert_eq!(tokens.iter().filter(|token| **token == Token::Text("<?a>".to_owned())).count(), 2);
}
