//! From text to tokens (XPath 1.0, 3.7), the rules for `*` and names included: what is an operator depends on the token before
//! it, what is a function or an axis on the characters behind it.

use super::error::{XPathError, quote};
use super::eval::Res;

/// A token and the bytes it stands at.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Token<'t> {
    pub(super) kind: Kind<'t>,
    pub(super) start: usize,
    pub(super) end: usize,
}

/// What a token is.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Kind<'t> {
    OpenParen,
    CloseParen,
    OpenBracket,
    CloseBracket,
    Dot,
    DotDot,
    At,
    Comma,
    ColonColon,
    Operator(Operator),
    Number(f64),
    Literal(&'t str),
    Variable(&'t str),
    /// `*` as a name test.
    Star,
    /// `prefix:*`.
    PrefixStar(&'t str),
    /// A name test; the prefix may be missing.
    Name(Option<&'t str>, &'t str),
    /// `comment`, `text`, `processing-instruction` or `node` before `(`.
    NodeType(&'t str),
    /// Any other name before `(`, as written.
    Function(&'t str),
    /// A name before `::`.
    Axis(&'t str),
}

/// The operators of 3.7.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Operator {
    And,
    Or,
    Mod,
    Div,
    Multiply,
    Slash,
    SlashSlash,
    Union,
    Plus,
    Minus,
    Equal,
    NotEqual,
    Less,
    LessEqual,
    Greater,
    GreaterEqual,
}

/// The white space of the grammar: `S` of XML.
pub(super) const fn is_space(c: char) -> bool {
    matches!(c, ' ' | '\t' | '\r' | '\n')
}

/// The tokens of an expression.
pub(super) fn tokens(text: &str) -> Res<Vec<Token<'_>>> {
    let mut lexer = Lexer { text, at: 0, tokens: Vec::new() };
    loop {
        lexer.skip_spaces();
        if lexer.at >= text.len() {
            return Ok(lexer.tokens);
        }
        let start = lexer.at;
        let kind = lexer.token()?;
        lexer.tokens.push(Token { kind, start, end: lexer.at });
    }
}

struct Lexer<'t> {
    text: &'t str,
    at: usize,
    tokens: Vec<Token<'t>>,
}

impl<'t> Lexer<'t> {
    fn rest(&self) -> &'t str {
        self.text.get(self.at..).unwrap_or_default()
    }

    fn skip_spaces(&mut self) {
        let rest = self.rest();
        self.at += rest.len() - rest.trim_start_matches(is_space).len();
    }

    fn error(&self, position: usize, found: impl Into<String>, allowed: impl Into<String>) -> Box<XPathError> {
        Box::new(XPathError::Syntax {
            expression: quote(self.text, position),
            position,
            found: found.into(),
            allowed: allowed.into(),
        })
    }

    /// Whether an operator is expected: there is a token before, and none of those after which an operand begins.
    fn is_behind_operand(&self) -> bool {
        self.tokens.last().is_some_and(|token| {
            !matches!(
                token.kind,
                Kind::At | Kind::ColonColon | Kind::OpenParen | Kind::OpenBracket | Kind::Comma | Kind::Operator(_)
            )
        })
    }

    fn token(&mut self) -> Res<Kind<'t>> {
        let rest = self.rest();
        let mut chars = rest.chars();
        let (Some(first), second) = (chars.next(), chars.next()) else {
            return Err(self.error(self.at, "the end", "a token"));
        };
        let is_pair = second == Some('=');
        let (kind, len) = match first {
            '(' => (Kind::OpenParen, 1),
            ')' => (Kind::CloseParen, 1),
            '[' => (Kind::OpenBracket, 1),
            ']' => (Kind::CloseBracket, 1),
            '@' => (Kind::At, 1),
            ',' => (Kind::Comma, 1),
            '.' if second == Some('.') => (Kind::DotDot, 2),
            '.' if second.is_none_or(|c| !c.is_ascii_digit()) => (Kind::Dot, 1),
            ':' if second == Some(':') => (Kind::ColonColon, 2),
            '|' => (Kind::Operator(Operator::Union), 1),
            '+' => (Kind::Operator(Operator::Plus), 1),
            '-' => (Kind::Operator(Operator::Minus), 1),
            '=' => (Kind::Operator(Operator::Equal), 1),
            '!' if is_pair => (Kind::Operator(Operator::NotEqual), 2),
            '<' if is_pair => (Kind::Operator(Operator::LessEqual), 2),
            '<' => (Kind::Operator(Operator::Less), 1),
            '>' if is_pair => (Kind::Operator(Operator::GreaterEqual), 2),
            '>' => (Kind::Operator(Operator::Greater), 1),
            '/' if second == Some('/') => (Kind::Operator(Operator::SlashSlash), 2),
            '/' => (Kind::Operator(Operator::Slash), 1),
            '*' if self.is_behind_operand() => (Kind::Operator(Operator::Multiply), 1),
            '*' => (Kind::Star, 1),
            '"' | '\'' => return self.literal(first),
            '0'..='9' | '.' => return Ok(self.number()),
            '$' => return self.variable(),
            c if is_name_start(c) => return self.name(),
            c => {
                return Err(self.error(
                    self.at,
                    format!("{c:?}"),
                    "a name, a number, a string in quotes, or one of / @ . * ( [ $",
                ));
            }
        };
        self.at += len;
        Ok(kind)
    }

    fn literal(&mut self, quotes: char) -> Res<Kind<'t>> {
        let inside = self.rest().get(1..).unwrap_or_default();
        let Some(len) = inside.find(quotes) else {
            return Err(self.error(self.at, "a string without an end", format!("a closing {quotes}")));
        };
        self.at += len + 2;
        Ok(Kind::Literal(inside.get(..len).unwrap_or_default()))
    }

    /// `Digits ('.' Digits?)? | '.' Digits`.
    fn number(&mut self) -> Kind<'t> {
        let rest = self.rest();
        let digits = |text: &str| text.len() - text.trim_start_matches(|c: char| c.is_ascii_digit()).len();
        let mut len = digits(rest);
        if let Some(fraction) = rest.get(len..).and_then(|text| text.strip_prefix('.')) {
            len += 1 + digits(fraction);
        }
        self.at += len;
        let text = rest.get(..len).unwrap_or_default();
        Kind::Number(super::number::parse(text))
    }

    fn variable(&mut self) -> Res<Kind<'t>> {
        let start = self.at;
        self.at += 1;
        let name_start = self.at;
        if self.ncname().is_none() {
            return Err(self.error(start, "$ without a name", "a name directly behind $"));
        }
        if self.rest().starts_with(':') && !self.rest().starts_with("::") {
            self.at += 1;
            if self.ncname().is_none() {
                return Err(self.error(self.at, "a prefix without a name", "a name directly behind the colon"));
            }
        }
        Ok(Kind::Variable(self.text.get(name_start..self.at).unwrap_or_default()))
    }

    fn ncname(&mut self) -> Option<&'t str> {
        let rest = self.rest();
        if !rest.starts_with(is_name_start) {
            return None;
        }
        let len = rest.find(|c| !is_name_char(c)).unwrap_or(rest.len());
        self.at += len;
        rest.get(..len)
    }

    fn name(&mut self) -> Res<Kind<'t>> {
        let start = self.at;
        let first = self.ncname().unwrap_or_default();
        if self.is_behind_operand() {
            return match first {
                "and" => Ok(Kind::Operator(Operator::And)),
                "or" => Ok(Kind::Operator(Operator::Or)),
                "mod" => Ok(Kind::Operator(Operator::Mod)),
                "div" => Ok(Kind::Operator(Operator::Div)),
                _ => Err(self.error(start, format!("the name {first:?}"), "an operator, / or [, a closing bracket, or the end")),
            };
        }
        let behind = self.rest();
        let mut local = first;
        let mut prefix = None;
        if behind.starts_with(':') && !behind.starts_with("::") {
            self.at += 1;
            if self.rest().starts_with('*') {
                self.at += 1;
                return Ok(Kind::PrefixStar(first));
            }
            prefix = Some(first);
            local = match self.ncname() {
                Some(local) => local,
                None => return Err(self.error(self.at, "a prefix without a name", "a name or * directly behind the colon")),
            };
        }
        let whole = self.text.get(start..self.at).unwrap_or_default();
        let behind = self.rest().trim_start_matches(is_space);
        if behind.starts_with('(') {
            let is_type = matches!(whole, "comment" | "text" | "processing-instruction" | "node");
            return Ok(if is_type { Kind::NodeType(whole) } else { Kind::Function(whole) });
        }
        if prefix.is_none() && behind.starts_with("::") {
            return Ok(Kind::Axis(first));
        }
        Ok(Kind::Name(prefix, local))
    }
}

/// `NameStartChar` of XML 1.0 (fifth edition, production 4) without the colon.
const fn is_name_start(c: char) -> bool {
    matches!(c, 'A'..='Z' | 'a'..='z' | '_' | '\u{C0}'..='\u{D6}' | '\u{D8}'..='\u{F6}' | '\u{F8}'..='\u{2FF}'
        | '\u{370}'..='\u{37D}' | '\u{37F}'..='\u{1FFF}' | '\u{200C}' | '\u{200D}' | '\u{2070}'..='\u{218F}'
        | '\u{2C00}'..='\u{2FEF}' | '\u{3001}'..='\u{D7FF}' | '\u{F900}'..='\u{FDCF}' | '\u{FDF0}'..='\u{FFFD}'
        | '\u{10000}'..='\u{EFFFF}')
}

/// `NameChar` (production 4a) without the colon.
const fn is_name_char(c: char) -> bool {
    is_name_start(c) || matches!(c, '-' | '.' | '0'..='9' | '\u{B7}' | '\u{300}'..='\u{36F}' | '\u{203F}' | '\u{2040}')
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    fn kinds(text: &str) -> Vec<Kind<'_>> {
        tokens(text).unwrap().into_iter().map(|token| token.kind).collect()
    }

    #[test]
    fn what_a_star_or_a_name_is_depends_on_what_stands_around_it() {
        use Kind::{Axis, ColonColon, Function, Name, NodeType, Number, Star};
        let op = Kind::Operator;
        assert_eq!(kinds("* * *"), [Star, op(Operator::Multiply), Star]);
        assert_eq!(kinds("div div mod"), [Name(None, "div"), op(Operator::Div), Name(None, "mod")]);
        assert_eq!(kinds("and/or"), [Name(None, "and"), op(Operator::Slash), Name(None, "or")]);
        assert_eq!(kinds("@* "), [Kind::At, Star]);
        assert_eq!(kinds("child :: *"), [Axis("child"), ColonColon, Star]);
        assert_eq!(kinds("text ("), [NodeType("text"), Kind::OpenParen]);
        assert_eq!(kinds("re:test("), [Function("re:test"), Kind::OpenParen]);
        assert_eq!(kinds("a-b -1"), [Name(None, "a-b"), op(Operator::Minus), Number(1.0)]);
        assert_eq!(kinds("x:* | x:y"), [Kind::PrefixStar("x"), op(Operator::Union), Name(Some("x"), "y")]);
        assert_eq!(kinds(".5 5. 1.5"), [Number(0.5), Number(5.0), Number(1.5)]);
        assert_eq!(kinds(". .. $a:b"), [Kind::Dot, Kind::DotDot, Kind::Variable("a:b")]);
    }

    #[test]
    fn an_error_names_the_byte_and_what_could_stand_there() {
        for (text, at) in [("//a[é=\"x]", 7), ("a ! b", 2), ("$", 0), ("$1", 0), ("1 2e", 3), ("a:", 2), ("a b", 2), ("#", 0)] {
            let error = tokens(text).unwrap_err();
            assert!(matches!(&*error, XPathError::Syntax { position, .. } if *position == at), "{text}: {error}");
        }
    }
}
