//! Bounds, and where a page ends early.

use super::{Bound, Content, Limits, Recorder, Token};

fn with(source: &str, limits: Limits) -> Recorder {
    Recorder { limits, ..Recorder::new(source) }.run(Content::Data, None)
}

fn names(token: &Token) -> Vec<&str> {
    let Token::Start(_, attrs, _) = token else { panic!("no start tag: {token:?}") };
    attrs.iter().map(|(name, _)| name.as_str()).collect()
}

#[test]
fn attributes_beyond_those_of_one_element_are_left_out() {
    let recorder = with("<a b c d><e f g>", Limits { attributes_per_element: 2, ..Limits::NONE });
    assert_eq!(names(&recorder.tokens[0]), ["b", "c"]);
    assert_eq!(names(&recorder.tokens[1]), ["f", "g"]);
    assert_eq!(recorder.met, [Bound::Attributes]);
}

#[test]
fn attributes_beyond_those_of_a_page_are_left_out() {
    let recorder = with("<a b c><d e=1 f=2><g h>x", Limits { attributes: 3, ..Limits::NONE });
    let found: Vec<Vec<&str>> = recorder.tokens[..3].iter().map(names).collect();
    assert_eq!(found, [vec!["b", "c"], vec!["e"], vec![]]);
    assert_eq!(recorder.tokens[3], Token::Text("x".to_owned()));
    assert_eq!(recorder.met, [Bound::Attributes]);
}

#[test]
fn a_page_within_its_bounds_meets_none() {
    let recorder = with("<a b b c><d e=1></d f g h>", Limits { attributes: 3, attributes_per_element: 2, ..Limits::NONE });
    assert_eq!(recorder.met, []);
    assert_eq!(recorder.arena.attr_count(), 3);
}

#[test]
fn end_tags_and_unfinished_tags_keep_no_attributes() {
    let recorder = with("<a b='1'></a c='&amp;' d><a e f='2", Limits::NONE);
    assert_eq!(recorder.tokens.len(), 2);
    assert_eq!(recorder.arena.attr_count(), 1);
    assert!(recorder.arena.side.is_empty());
}

#[test]
fn a_repeated_attribute_is_not_decoded() {
    let recorder = with("<a b='&lt;' B='&gt;'>", Limits::NONE);
    assert_eq!(recorder.tokens, [Token::Start("a".to_owned(), vec![("b".to_owned(), "<".to_owned())], false)]);
    assert_eq!(recorder.arena.side, b"<");
}

#[test]
fn a_page_ends_when_its_sink_says_so() {
    let source = "<a>b<!--c--><?d?></a>&lt;<title>e</title>\0\0<![CDATA[f\0g]]>";
    let whole = Recorder { cdata: true, content: None, ..Recorder::new(source) }.run(Content::Data, None);
    let mut lengths = Vec::new();
    for most_calls in 0..=whole.calls {
        let recorder = Recorder { cdata: true, content: None, most_calls, ..Recorder::new(source) };
        let recorder = recorder.run(Content::Data, None);
        // Before a text it is not asked.
        assert!((most_calls..=most_calls + 1).contains(&recorder.calls), "{} for {most_calls}", recorder.calls);
        lengths.push(recorder.tokens.len());
    }
    assert!(lengths.is_sorted());
    assert_eq!(lengths.last(), Some(&whole.tokens.len()));
}
