//! The tokenizer against html5ever's, on random soup. Both know no processing instructions there.

use std::cell::RefCell;

use html5ever::tendril::StrTendril;
use html5ever::tokenizer::states::{RawKind, State};
use html5ever::tokenizer::{
    self as theirs, BufferQueue, TagKind, TokenSink, TokenSinkResult, Tokenizer as TheirTokenizer, TokenizerOpts,
};
use proptest::prelude::*;

use super::random::{contents, soup};
use super::{Content, Recorder, Token};
use crate::html::names::known;

/// A sink that writes down what html5ever tells.
#[derive(Default)]
struct Theirs {
    tokens: RefCell<Vec<Token>>,
    cdata: bool,
}

impl Theirs {
    /// It tells empty texts, too.
    fn add_text(&self, more: &str) {
        if more.is_empty() {
            return;
        }
        let mut tokens = self.tokens.borrow_mut();
        match tokens.last_mut() {
            Some(Token::Text(text)) => text.push_str(more),
            _ => tokens.push(Token::Text(more.to_owned())),
        }
    }
}

impl TokenSink for Theirs {
    type Handle = ();

    fn process_token(&self, token: theirs::Token, _line: u64) -> TokenSinkResult<()> {
        let token = match token {
            theirs::DoctypeToken(doctype) => {
                let owned = |text: Option<StrTendril>| text.map(|text| text.to_string());
                Token::Doctype(owned(doctype.name), owned(doctype.public_id), owned(doctype.system_id), doctype.force_quirks)
            }
            theirs::TagToken(tag) if tag.kind == TagKind::EndTag => Token::End(tag.name.to_string()),
            theirs::TagToken(tag) => {
                let attrs = tag.attrs.iter().map(|attr| (attr.name.local.to_string(), attr.value.to_string())).collect();
                self.tokens.borrow_mut().push(Token::Start(tag.name.to_string(), attrs, tag.self_closing));
                return match &*tag.name {
                    "title" | "textarea" => TokenSinkResult::RawData(RawKind::Rcdata),
                    "style" | "xmp" | "iframe" | "noembed" | "noframes" => TokenSinkResult::RawData(RawKind::Rawtext),
                    "script" => TokenSinkResult::RawData(RawKind::ScriptData),
                    "plaintext" => TokenSinkResult::Plaintext,
                    _ => TokenSinkResult::Continue,
                };
            }
            theirs::CommentToken(text) => Token::Comment(text.to_string()),
            theirs::CharacterTokens(text) => {
                self.add_text(&text);
                return TokenSinkResult::Continue;
            }
            theirs::NullCharacterToken => {
                self.add_text("\0");
                return TokenSinkResult::Continue;
            }
            theirs::EOFToken | theirs::ParseError(_) => return TokenSinkResult::Continue,
        };
        self.tokens.borrow_mut().push(token);
        TokenSinkResult::Continue
    }

    fn adjusted_current_node_present_but_not_in_html_namespace(&self) -> bool {
        self.cdata
    }
}

fn their_tokens(text: &str, content: Content, last_start: Option<&str>, cdata: bool) -> Vec<Token> {
    let state = match content {
        Content::Data => State::Data,
        Content::Rcdata => State::RawData(RawKind::Rcdata),
        Content::Rawtext => State::RawData(RawKind::Rawtext),
        Content::Script => State::RawData(RawKind::ScriptData),
        Content::Plaintext => State::Plaintext,
    };
    let options = TokenizerOpts {
        discard_bom: false,
        initial_state: Some(state),
        last_start_tag_name: last_start.map(str::to_owned),
        ..TokenizerOpts::default()
    };
    let tokenizer = TheirTokenizer::new(Theirs { cdata, ..Theirs::default() }, options);
    let input = BufferQueue::default();
    input.push_back(StrTendril::from(text));
    let _ = tokenizer.feed(&input);
    tokenizer.end();
    tokenizer.sink.tokens.take()
}

/// Cases: a few in every run, more by the environment.
fn cases() -> u32 {
    std::env::var("DRAGLINE_HTML_CASES").ok().and_then(|cases| cases.parse().ok()).unwrap_or(20_000)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(cases()))]

    #[test]
    fn html5ever_tells_the_same(text in soup(), (content, last_start) in contents(), cdata: bool) {
        let recorder = Recorder { cdata, content: None, instructions: false, ..Recorder::new(&text) };
        let ours = recorder.run(content, last_start).tokens;
        prop_assert_eq!(ours, their_tokens(&text, content, last_start, cdata));
    }
}

#[test]
fn known_raw_elements_are_the_same_for_both() {
    // The sinks of both sides choose by name: a name that is not known would never match on ours.
    for name in [known::TITLE, known::TEXTAREA, known::STYLE, known::SCRIPT, known::PLAINTEXT] {
        let text = format!("<{0}><b></{0}>", name.known_text().unwrap());
        let ours = Recorder { content: None, ..Recorder::new(&text) }.run(Content::Data, None).tokens;
        assert_eq!(ours, their_tokens(&text, Content::Data, None, false), "{text}");
        assert!(ours.contains(&Token::Text("<b>".to_owned())) || name == known::PLAINTEXT, "{text}");
    }
}
