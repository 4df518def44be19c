//! The specification's rules as tables, on pages small enough to see the answer.

use super::*;

const PAGE: &str = "<!DOCTYPE html><html id=html><head id=head></head><body id=body xml:lang=en-GB>\
    <ul id=u><li id=i1>1</li><li id=i2>2</li><li id=i3>x</li></ul>\
    <ol id=o><li id=j1>2</li><li id=j2>10</li></ol><p id=p><!--c--><b id=b></b></p>\
    <svg id=s><linearGradient id=g></linearGradient><a id=sa xlink:href=u></a></svg>\
    <template id=t><i id=ti>in</i></template></body></html>";

fn check(cases: &[(&str, Value)]) {
    let document = page(PAGE);
    for (xpath, expected) in cases {
        let found = evaluate(&document, xpath);
        let is_same = match (&found, expected) {
            (Ok(Value::Number(a)), Value::Number(b)) => a.to_bits() == b.to_bits() || (a.is_nan() && b.is_nan()),
            (found, expected) => found.as_ref() == Ok(expected),
        };
        assert!(is_same, "{xpath}: {found:?}, expected {expected:?}");
    }
}

fn check_names(cases: &[(&str, &[&str])]) {
    let document = page(PAGE);
    for (xpath, expected) in cases {
        let found = evaluate(&document, xpath).unwrap_or_else(|error| panic!("{xpath}: {error}"));
        assert_eq!(names(&document, &found), *expected, "{xpath}");
    }
}

#[test]
fn comparisons_with_sets_hold_if_one_pair_does() {
    let boolean = |xpath, holds: bool| (xpath, Value::Boolean(holds));
    check(&[
        boolean("//ul/li = 2", true),
        boolean("//ul/li = '2'", true),
        boolean("//ul/li != 2", true),
        boolean("//ul/li = 3", false),
        boolean("2 = //ul/li", true),
        boolean("'x' = //ul/li", true),
        boolean("//ul/li = //ol/li", true),
        boolean("//ul/li[1] = //ol/li", false),
        boolean("//ul/li != //ul/li", true),
        boolean("//ul/li[1] != //ul/li[1]", false),
        boolean("//none != //ul/li", false),
        boolean("//none = //none", false),
        boolean("//ul/li < //ol/li", true),
        boolean("//ol/li < //ul/li", false),
        boolean("//ol/li <= //ul/li", true),
        boolean("//ol/li > //ul/li", true),
        boolean("//ul/li[3] < //ol/li", false),
        boolean("//ul/li > 1.5", true),
        boolean("//ul/li > 2", false),
        boolean("1.5 < //ul/li", true),
        boolean("3 < //ul/li", false),
        boolean("//ul/li = true()", true),
        boolean("//none = false()", true),
        boolean("//none = true()", false),
        boolean("//ul/li > false()", true),
        boolean("//none < true()", true),
        boolean("//ul/li < '2'", true),
        boolean("'a' = 'a'", true),
        boolean("'1.0' = 1", true),
        boolean("'1.0' = '1'", false),
        boolean("'a' < 'b'", false),
        boolean("true() = 'a'", true),
        boolean("true() = 0", false),
        boolean("true() > '0'", true),
        boolean("0 div 0 = 0 div 0", false),
        boolean("0 div 0 != 0 div 0", true),
        boolean("-0 = 0", true),
        boolean("1 < 2 = 1", true),
        boolean("2 = 2 != 3 > 2", false),
        boolean("boolean(//none | //p)", true),
        boolean("not(0 div 0)", true),
    ]);
}

#[test]
fn operators_bind_and_compute_as_the_grammar_says() {
    let number = |xpath, number: f64| (xpath, Value::Number(number));
    check(&[
        number("1 + 2 * 3 - 4 div 2", 5.0),
        number("2 - 1 - 1", 0.0),
        number("-2 * -3", 6.0),
        number("---2", -2.0),
        number("5 mod 2", 1.0),
        number("5 mod -2", 1.0),
        number("-5 mod 2", -1.0),
        number("1.5 mod .5", 0.0),
        number("1 mod 0", f64::NAN),
        number("1 div -0", f64::NEG_INFINITY),
        number("- 0", -0.0),
        number("//ul/li[2] * //ol/li[2]", 20.0),
        number("count(//li | //p) + 1", 7.0),
        number("-count(//li)", -5.0),
        number("sum(//ol/li)", 12.0),
        number("number('x')", f64::NAN),
        number("string-length('é😀')", 2.0),
        number("string-length(concat('a', 1 div 0, true()))", 13.0),
        number("count(re:match('a1b22', '(\\d)', 'g'))", 3.0),
        number("count(//@* | //node() | /)", 44.0),
    ]);
}

#[test]
fn functions_of_strings_follow_their_definitions() {
    let string = |xpath, text: &str| (xpath, Value::String(text.to_owned()));
    check(&[
        string("substring-before('1999/04/01', '/')", "1999"),
        string("substring-after('1999/04/01', '/')", "04/01"),
        string("substring-after('1999/04/01', '19')", "99/04/01"),
        string("substring('12345', 1.5, 2.6)", "234"),
        string("substring('12345', 0 div 0, 3)", ""),
        string("substring('12345', -42, 1 div 0)", "12345"),
        string("translate('bar', 'abc', 'AB')", "BAr"),
        string("translate('aab', 'aba', 'xyz')", "xxy"),
        string("translate('naïve-1234567890', '1234567890-', 'abcdefghij')", "naïveabcdefghij"),
        string("normalize-space('\t a \n b ')", "a b"),
        string("string(//none)", ""),
        string("string(1 = 1)", "true"),
        string("string(-0)", "0"),
        string("concat(1.50, '', //ul/li)", "1.51"),
        string("name(//comment())", ""),
        string("name(//ul/@id)", "id"),
        string("local-name(//svg/a/@*[contains(name(), ':')])", "href"),
        string("namespace-uri(//svg/a/@*[contains(name(), ':')])", "http://www.w3.org/1999/xlink"),
        string("name(//svg/*)", "linearGradient"),
        string("namespace-uri(//ul)", ""),
        string("re:replace('2024-01-02', '(\\d+)-(\\d+)', '', '\\2/\\1')", "01/2024-02"),
        string("re:replace('aBc', 'b', 'gi', '')", "ac"),
        string("re:replace('abc', 'x', 'g', 'y')", "abc"),
        string("string(re:match('k=v', '(\\w)=(\\w)')[3])", "v"),
        string("string(re:match('k=v', '(\\w)=(\\w)')[last()]/text())", "v"),
    ]);
    let matches = |xpath, texts: &[&str]| (xpath, Value::Strings(texts.iter().map(|text| (*text).to_owned()).collect()));
    check(&[
        matches("re:match('a1b22', '\\d+', 'g')", &["1", "22"]),
        matches("re:match('a1b22', '([a-z])(\\d)', 'g')", &["a1", "b2"]),
        matches("re:match('a1b22', '([a-z])(x)?')", &["a", "a", ""]),
        matches("re:match('a', 'b')", &[]),
        matches("re:match('abc', '[a-z]', 'g')[position() > 1]", &["b", "c"]),
        matches("re:match('abc', concat('[', 'b', ']'))", &["b"]),
    ]);
}

#[test]
fn names_and_node_tests_select_what_they_should() {
    check_names(&[
        ("//UL/LI[1]", &["i1"]),
        ("//linearGradient", &["g"]),
        ("//lineargradient", &[]),
        ("//svg:*", &["s", "g", "sa"]),
        ("//svg:a | //svg:p", &["sa"]),
        ("//math:*", &[]),
        ("//a/@xlink:href", &["@xlink:href=u"]),
        ("//@xml:lang/..", &["body"]),
        ("//*[lang('en')]/self::p", &["p"]),
        ("//p[lang('en-gb')]", &["p"]),
        ("//p[lang('en-US')]", &[]),
        ("/*[lang('en')]", &[]),
        ("//template/i", &["ti"]),
        ("//comment()", &["c"]),
        ("//processing-instruction('x')", &[]),
        ("//p/namespace::*", &[]),
        ("id('i3 u nope i3')", &["u", "i3"]),
        ("id(//ul/li/@id)/self::li", &["i1", "i2", "i3"]),
        ("/", &[]),
        ("/node()", &["html"]),
        ("/..", &[]),
        ("//ul/ancestor::node()", &["html", "body"]),
        ("set:difference(//li, //ul/li)", &["j1", "j2"]),
        ("set:distinct(//li)", &["i1", "i2", "i3", "j2"]),
        ("set:leading(//li, //li[. = 2])", &["i1"]),
        ("set:leading(//ul, //li)", &[]),
        ("set:trailing(//ul/li, //none)", &["i1", "i2", "i3"]),
        ("(//li | //p)[last()]", &["p"]),
        ("(//li)[position() = 2 or position() = last()]", &["i2", "j2"]),
        ("//li[2][. = 2]", &["i2"]),
        ("//li[. = 2][2]", &[]),
        ("//li[position() = last()]", &["i3", "j2"]),
        ("//li[last()][1]", &["i3", "j2"]),
        ("//b/ancestor::*[last()]", &["html"]),
        ("(//b/ancestor::*)[last()]", &["p"]),
        ("//li['']", &[]),
        ("//li['a'][true()][1]", &["i1", "j1"]),
        ("//li[1.5]", &[]),
        ("//ol/preceding::li[1]", &["i3"]),
        ("//ul/@id/following::li[1]", &["i1"]),
        ("//ol/@id/preceding::li", &["i1", "i2", "i3"]),
    ]);
}

#[test]
fn variables_are_of_any_kind_and_decide_what_a_predicate_is() {
    let document = page(PAGE);
    let lists = evaluate(&document, "//ol | //ul").unwrap();
    let variables =
        Variables::NONE.with("n", 2.0).with("t", "x").with("no", false).with("lists", lists).with("a:b", String::new());
    for (xpath, expected) in [
        ("//li[$n]", vec!["i2", "j2"]),
        ("//li[. = $t]", vec!["i3"]),
        ("//li[$no]", vec![]),
        ("$lists[$n]", vec!["o"]),
        ("$lists/li[1]", vec!["i1", "j1"]),
        ("//li[../@id = $lists[1]/@id][3]", vec!["i3"]),
        ("//p[$a:b]", vec![]),
        ("//*[count($lists) = $n][self::p]", vec!["p"]),
    ] {
        let found = Compiled::parse(xpath).unwrap().evaluate(&document, top(&document), &variables).unwrap();
        assert_eq!(names(&document, &found), expected, "{xpath}");
    }
    for (xpath, place) in [("$t/a", "before /"), ("$n[1]", "before ["), ("count($no)", "count()"), ("$n | //a", "|")] {
        let found = Compiled::parse(xpath).unwrap().evaluate(&document, top(&document), &variables);
        assert!(matches!(&found, Err(XPathError::Kind { place: other, .. }) if other.contains(place)), "{xpath}: {found:?}");
    }
    assert_eq!(evaluate(&document, "$x + 1"), Err(XPathError::UndefinedVariable { name: "x".to_owned() }));
}

#[test]
fn an_error_says_where_what_and_what_is_allowed() {
    for (xpath, expected) in [
        (
            "//li[",
            "xpath at byte 5 of \"//li[\": found the end, allowed here: a path, a function call, a number, a string in quotes, $name or (",
        ),
        (
            "//li[@class=\"a]",
            "xpath at byte 12 of \"//li[@class=\\\"a]\": found a string without an end, allowed here: a closing \"",
        ),
        ("li]", "xpath at byte 2 of \"li]\": found \"]\", allowed here: an operator, / or [, or the end"),
        (
            "//a/@",
            "xpath at byte 5 of \"//a/@\": found the end, allowed here: a name, *, @name, axis::name, a node type such as text(), . or ..",
        ),
        ("count(1)", "xpath at byte 0 of \"count(1)\": count() has a number as argument 1, allowed: a node-set"),
        ("not()", "xpath at byte 0 of \"not()\": not() has 0 arguments, allowed: 1"),
        ("concat('a')", "xpath at byte 0 of \"concat('a')\": concat() has 1 arguments, allowed: 2 or more arguments"),
        (
            "//h:p",
            "xpath at byte 2 of \"//h:p\": prefix \"h\" stands for no namespace; elements of HTML are named without prefix, svg: and math: for elements and xml:, xlink:, xmlns: for attributes are known",
        ),
        ("1 | 2", "xpath at byte 2 of \"1 | 2\": found a number, allowed here: a node-set to each side of |"),
        ("last()", "xpath: last() outside of a predicate has no meaning; use it between [ and ]"),
    ] {
        let error = evaluate(&page(PAGE), xpath).unwrap_err();
        assert_eq!(error.to_string(), expected);
        assert!(error.is_in_expression(), "{xpath}");
    }
    let long = format!("{}//a[!]{}", "//p".repeat(100), "/p".repeat(100));
    let error = Compiled::parse(&long).unwrap_err().to_string();
    assert!(error.contains("byte 304 of") && error.len() < 400, "{error}");
    for (xpath, name) in [("foo(1)", "foo"), ("//a[re:foo()]", "re:foo"), ("Count(//a)", "Count"), ("current()", "current")] {
        let error = Compiled::parse(xpath).unwrap_err();
        assert!(matches!(&error, XPathError::UnknownFunction { name: other, .. } if other == name), "{xpath}: {error}");
    }
    assert!(matches!(Compiled::parse("re:test(., '(')"), Err(XPathError::Pattern { .. })));
}

#[test]
fn results_become_texts_as_scrapy_gives_them() {
    let document = page(PAGE);
    let texts = |xpath| texts(&document, &evaluate(&document, xpath).unwrap());
    assert_eq!(texts("count(//li)"), ["5.0"]);
    assert_eq!(texts("1 = 1"), ["1"]);
    assert_eq!(texts("1 = 2"), ["0"]);
    assert_eq!(texts("string(//ul)"), ["12x"]);
    assert_eq!(texts("//ul/li | //ul/@id"), ["u", "1", "2", "x"]);
    assert_eq!(texts("re:match('a1', '\\d')"), ["1"]);
    assert!(texts("//none").is_empty());
    assert_eq!(text_of(&document, top(&document)), "12x210in");
    assert!(evaluate(&document, "//ul").unwrap().scrapy_text().is_none());
}

#[test]
fn texts_made_at_once_are_those_made_one_by_one() {
    for document in [page(PAGE), page(&"<div>a<p>b</p><!--c--><i></i>".repeat(30))] {
        // The first part asks for so many that the second is answered from the text of the whole page.
        let many = "count(//node()[string-length() >= 0][string-length() >= 0][string-length() >= 0][string-length() >= 0]) > 0";
        assert_eq!(evaluate(&document, many), Ok(Value::Boolean(true)));
        let Ok(Value::Nodes(nodes)) = evaluate(&document, "//node() | //@*") else { panic!() };
        for (n, hit) in nodes.iter().enumerate() {
            let wanted = text_of(&document, *hit);
            let both = format!("concat(string({many}), (//node() | //@*)[{}])", n + 1);
            assert_eq!(evaluate(&document, &both), Ok(Value::String(format!("true{wanted}"))), "{n}");
        }
    }
}

/// What is no set until it is evaluated may ask for the size all the same.
#[test]
fn steps_from_matches_know_how_many_nodes_there_are() {
    check_names(&[
        ("//ul/li[re:match(last(), '3')/node()]", &["i1", "i2", "i3"]),
        ("//ol/li[re:match(last(), '3')/node()]", &[]),
        ("//li[re:match(position(), '3')/node()]", &["i3"]),
        ("(//li)[re:match(last() - position(), '0')/text()]", &["j2"]),
    ]);
}
