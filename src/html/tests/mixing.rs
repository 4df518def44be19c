//! CSS and XPath on one page: nesting, types, errors.

use super::selection::SHOP;
use crate::html::{Page, Selection, SelectorKind, Variables, XPathValue};

#[test]
fn css_and_xpath_nest_and_mix() {
    let page = Page::parse(SHOP);
    assert_eq!(page.css("#list").xpath("li").css("a::attr(href)").getall(), ["/1", "/2"]);
    assert_eq!(page.xpath("//ul").css("li").xpath("a/text()").getall(), ["One ", "Two"]);
    assert_eq!(page.css("b::text").xpath("..").css("::text").getall(), ["new", "c"]);
    assert_eq!(page.css("a::attr(title)").xpath("../@href").get().as_deref(), Some("/1"));
    assert_eq!(page.css("li").iter().map(|row| row.xpath("count(.//a)").number()).collect::<Vec<_>>(), [Some(1.0), Some(1.0)]);
    // From an element, `//` is the whole page and `.//` what is below.
    assert_eq!(page.css("#inner").xpath("//p").len(), 3);
    assert_eq!(page.css("#inner").xpath(".//p/text()").getall(), ["e"]);
    // The page's own node is the document element.
    assert_eq!(page.xpath("body/@class").get().as_deref(), Some("home"));
    assert!(page.xpath("html").is_empty());
}

#[test]
fn nodes_found_from_several_come_once_and_in_order() {
    let page = Page::parse(SHOP);
    assert_eq!(page.css("li").xpath("..").len(), 1);
    assert_eq!(page.css("#inner, #outer").xpath(".//p/text()").getall(), ["a", "d", "e"]);
    assert_eq!(page.css("li").xpath("preceding-sibling::li | following-sibling::li").len(), 2);
    let nested = page.xpath("//li").xpath("//a/@href");
    assert_eq!(nested.getall(), ["/1", "/2"]);
}

#[test]
fn values_keep_their_type_and_are_written_as_scrapy_writes_them() {
    let page = Page::parse(SHOP);
    for (expression, text, number, boolean) in [
        ("count(//li)", "2.0", Some(2.0), None),
        ("count(//li) = 2", "1", None, Some(true)),
        ("count(//li) = 3", "0", None, Some(false)),
        ("string(//title)", "Shop & Co", None, None),
        ("number('x')", "nan", None, None),
    ] {
        let found = page.xpath(expression);
        assert_eq!(found.get().as_deref(), Some(text), "{expression}");
        assert_eq!(found.getall(), [text], "{expression}");
        assert_eq!((found.len(), found.is_empty()), (1, false));
        assert_eq!(found.first().get().as_deref(), Some(text));
        assert_eq!(found.iter().next().and_then(|one| one.get()).as_deref(), Some(text));
        if expression != "number('x')" {
            assert_eq!((found.number(), found.boolean()), (number, boolean), "{expression}");
        }
        assert_eq!((found.attr("id"), found.name(), found.html()), (None, None, None));
        assert!(found.css("*").is_empty() && found.xpath(".").is_empty());
    }
    assert!(page.xpath("number('x')").number().is_some_and(f64::is_nan));
    assert_eq!(page.css("li").xpath("count(a)").getall(), ["1.0", "1.0"]);
    assert_eq!(page.css("li").number(), None);
    assert_eq!(page.xpath("concat(' a ', 'b')").re_first(r"a\s+b").as_deref(), Some("a b"));
    assert_eq!(page.xpath("' a  b '").text().as_deref(), Some("a b"));
    assert!(page.take_errors().is_empty());
}

#[test]
fn a_value_is_given_with_its_type() {
    let page = Page::parse(SHOP);
    let none = Variables::new();
    let value = |expression: &str| page.evaluate(expression, &none).unwrap();
    assert!(matches!(value("1 + 1"), XPathValue::Number(two) if (two - 2.0).abs() < f64::EPSILON));
    assert!(matches!(value("//li"), XPathValue::Nodes(nodes) if nodes.len() == 2));
    assert!(matches!(value("string(//b)"), XPathValue::Text(text) if text == "new"));
    assert!(matches!(value("boolean(//nav)"), XPathValue::Boolean(false)));
    assert!(matches!(value("re:match('a1b2', '[0-9]', 'g')"), XPathValue::Texts(texts) if texts == ["1", "2"]));
    assert_eq!(page.xpath("re:match('a1b2', '[0-9]', 'g')").getall(), ["1", "2"]);
}

#[test]
fn variables_need_no_quoting() {
    let page = Page::parse("<p id=a>x</p><p id=b>it's \"y\"</p><p id=c>3</p>");
    let with = |value: &str| Variables::new().with("value", value);
    assert_eq!(page.xpath_with("//p[.=$value]/@id", &with("it's \"y\"")).get().as_deref(), Some("b"));
    assert_eq!(page.xpath_with("//p[.=$value]/@id", &with("x")).get().as_deref(), Some("a"));
    let numbers = Variables::new().with("n", 2).with("yes", true).with("half", 1.5).with("s", "c".to_owned());
    assert_eq!(page.xpath_with("//p[$n]/@id", &numbers).get().as_deref(), Some("b"));
    assert_eq!(page.xpath_with("$half * $n", &numbers).number(), Some(3.0));
    assert_eq!(page.xpath_with("//p[$yes][@id=$s]", &numbers).text().as_deref(), Some("3"));
    assert_eq!(page.css("body").try_xpath_with("p[@id=$s]", &numbers).unwrap().len(), 1);
}

#[test]
fn other_nodes_are_read_as_they_are_written() {
    let page = Page::parse("<!-- top --><p a='1 &amp; 2'>x<!--in-->y&lt;</p>");
    assert_eq!(page.xpath("//comment()").getall(), ["<!-- top -->", "<!--in-->"]);
    assert_eq!(page.xpath("//p/@a").getall(), ["1 & 2"]);
    assert_eq!(page.xpath("//p/@a").strs().collect::<Vec<_>>(), ["1 & 2"]);
    assert_eq!(page.xpath("//p/text()").strs().collect::<Vec<_>>(), ["x", "y<"]);
    assert_eq!(page.css("p").strs().count(), 0);
    assert_eq!(page.css("p").nodes().map(|node| node.text()).collect::<Vec<_>>(), ["xy<"]);
    assert_eq!(page.xpath("//p").getall(), ["<p a=\"1 &amp; 2\">x<!--in-->y&lt;</p>"]);
    assert_eq!((page.xpath("//comment()").name(), page.xpath("//comment()").html()), (None, None));
}

#[test]
fn a_bad_expression_gives_nothing_and_is_kept_for_the_caller() {
    let page = Page::parse(SHOP);
    for expression in ["//a[", "foo()", "$nothing", "//li[1]/x:y"] {
        assert!(page.xpath(expression).is_empty(), "{expression}");
        let errors = page.take_errors();
        assert_eq!(errors.len(), 1, "{expression}");
        assert_eq!((errors[0].kind(), errors[0].text()), (SelectorKind::XPath, expression));
        assert!(errors[0].to_string().contains("xpath"), "{}", errors[0]);
        let error = page.try_xpath(expression).map(|_| ()).unwrap_err();
        assert_eq!(error, errors[0]);
        assert!(page.evaluate(expression, &Variables::new()).is_err());
        assert!(page.take_errors().is_empty(), "{expression}");
    }
    let error = page.try_xpath("//a[").map(|_| ()).unwrap_err();
    assert_eq!(error.position(), 4);
}

#[test]
fn what_takes_too_long_is_an_error_and_not_a_silence() {
    let page = Page::parse(&"<i>x".repeat(2000));
    let expression = "//i[count(.//i[count(.//i) > 1]) > 1]";
    assert!(page.xpath(expression).is_empty());
    let errors = page.take_errors();
    assert!(errors[0].is_given_up(), "{errors:?}");
    assert!(errors[0].to_string().contains(expression), "{}", errors[0]);
    assert!(page.try_xpath(expression).map(|_| ()).unwrap_err().is_given_up());
    // So it is with CSS; what was found before is given.
    let wide = Page::parse(&format!("<!DOCTYPE html><body><p></p>{}", "<i></i>".repeat(20_000)));
    assert_eq!(wide.css(":is(zz ~ i), p").getall(), ["<p></p>"]);
    let error = wide.take_errors().remove(0);
    assert!(error.is_given_up() && error.to_string().contains(":is(zz ~ i), p"), "{error}");
    assert_eq!(wide.css(":is(zz ~ i), p").get().as_deref(), Some("<p></p>"));
    assert_eq!(wide.take_errors(), [], "the first was found in time");
    // Many roots share one bound.
    let all = page.css("i");
    let error = all.try_xpath("//i[contains(., 'y')]").map(|_| ()).unwrap_err();
    assert!(error.is_given_up(), "{error}");
    // The bound is one of each reading, not of the page.
    assert_eq!(page.xpath("//i").len(), 2000);
}

#[test]
fn results_outlive_the_selections_they_came_from() {
    let page = Page::parse(SHOP);
    let (link, text, node): (&str, Vec<&str>, Selection<'_>) = {
        let list = page.css("#list");
        let rows = list.xpath("li");
        (rows.css("a").attr("href").unwrap(), rows.css("a::text").strs().collect(), rows.first())
    };
    assert_eq!((link, text, node.attr("class")), ("/1", vec!["One ", "Two"], Some("item")));
}
