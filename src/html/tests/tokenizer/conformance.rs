//! html5lib's tokenizer tests.

use serde_json::Value;

use super::{Content, Recorder, Token};

/// Cases whose input no `str` can hold: a lone surrogate.
const NOT_UTF8: [&str; 4] = [
    "unicodeCharsProblematic-0001",
    "unicodeCharsProblematic-0002",
    "unicodeCharsProblematic-0003",
    "unicodeCharsProblematic-0004",
];

/// Cases that were right until 25 June 2026, when processing instructions came in (whatwg/html 12118).
fn changed() -> [(&'static str, Vec<Token>); 4] {
    let instruction = |target: &str| vec![Token::Instruction(target.to_owned(), String::new())];
    [
        ("test2-0032", instruction("namespace")), // <?namespace>
        ("test2-0033", instruction("foo--")),     // <?foo-->
        ("test3-1181", vec![]),                   // <?A at the end of the page
        ("test3-1189", vec![]),                   // <?z at the end of the page
    ]
}

/// A text of a case that is escaped twice; `None` if it is not Unicode.
fn unescaped(text: &str) -> Option<String> {
    let mut out = String::new();
    let mut rest = text;
    while let Some((before, behind)) = rest.split_once("\\u") {
        out.push_str(before);
        let (digits, behind) = behind.split_at(4);
        out.push(char::from_u32(u32::from_str_radix(digits, 16).unwrap())?);
        rest = behind;
    }
    out.push_str(rest);
    Some(out)
}

fn text(value: &Value, twice: bool) -> Option<String> {
    let text = value.as_str()?;
    if twice { unescaped(text) } else { Some(text.to_owned()) }
}

fn expected(token: &Value, twice: bool) -> Token {
    let part = |place: usize| text(&token[place], twice);
    match token[0].as_str().unwrap() {
        "StartTag" => {
            let attrs = token[2].as_object().unwrap().iter();
            let attrs = attrs.map(|(name, value)| (name.clone(), text(value, twice).unwrap())).collect();
            Token::Start(part(1).unwrap(), attrs, token[3].as_bool().unwrap_or(false))
        }
        "EndTag" => Token::End(part(1).unwrap()),
        "Comment" => Token::Comment(part(1).unwrap()),
        "Character" => Token::Text(part(1).unwrap()),
        "DOCTYPE" => Token::Doctype(part(1), part(2), part(3), !token[4].as_bool().unwrap()),
        other => panic!("a token of an unknown kind: {other}"),
    }
}

/// The tokens of an input read from a state on.
fn read(input: &str, state: &str, last_start: Option<&str>, instructions: bool) -> Vec<Token> {
    // The state behind `<![CDATA[` where such a section is allowed.
    let cdata = state == "CDATA section state";
    let input = if cdata { format!("<![CDATA[{input}") } else { input.to_owned() };
    let content = match state {
        "Data state" | "CDATA section state" => Content::Data,
        "RCDATA state" => Content::Rcdata,
        "RAWTEXT state" => Content::Rawtext,
        "Script data state" => Content::Script,
        "PLAINTEXT state" => Content::Plaintext,
        other => panic!("an unknown state: {other}"),
    };
    Recorder { cdata, instructions, ..Recorder::new(&input) }.run(content, last_start).tokens
}

#[test]
fn the_tests_of_html5lib_pass() {
    let file: Value = serde_json::from_str(include_str!("../../../../tests/data/html_tokenizer.json")).unwrap();
    let cases = file["cases"].as_array().unwrap();
    assert_eq!(cases.len(), 1_185);
    let changed = changed();
    let (mut passed, mut failed, mut skipped, mut altered) = (0, Vec::new(), Vec::new(), 0);
    for case in cases {
        let id = case["id"].as_str().unwrap();
        let twice = case["double_escaped"].as_bool().unwrap_or(false);
        let Some(input) = text(&case["input"], twice) else {
            skipped.push(id);
            continue;
        };
        let expected: Vec<Token> = case["output"].as_array().unwrap().iter().map(|token| expected(token, twice)).collect();
        let states = case["initial_states"].as_array();
        let states: Vec<&str> =
            states.map_or(vec!["Data state"], |states| states.iter().map(|state| state.as_str().unwrap()).collect());
        let last_start = case["last_start_tag"].as_str();
        for state in states {
            let new = changed.iter().find(|(changed, _)| *changed == id).map(|(_, tokens)| tokens);
            altered += usize::from(new.is_some());
            for (instructions, expected) in [(true, new.unwrap_or(&expected)), (false, &expected)] {
                let found = read(&input, state, last_start, instructions);
                if found == *expected {
                    passed += 1;
                } else {
                    failed.push(format!("{id} in {state}: {input:?}\n  expected {expected:?}\n  found    {found:?}"));
                }
            }
        }
    }
    assert!(failed.is_empty(), "{passed} passed, {} failed:\n{}", failed.len(), failed.join("\n"));
    assert_eq!(skipped, NOT_UTF8);
    assert_eq!(altered, changed.len());
    assert!(passed > 2 * 1_181, "{passed}");
}
