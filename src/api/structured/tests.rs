#![allow(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing)]
//! Pages with data of all three kinds, and pages that want to be endless.

use proptest::prelude::*;
use serde_json::json;
use url::Url;

use super::*;

fn data(html: &str) -> StructuredData {
    let base = Url::parse("https://shop.example/books/").unwrap();
    StructuredData::of(&Page::parse(html), |href| base.join(href).ok().map(String::from))
}

fn microdata(html: &str) -> Value {
    let data = data(html);
    assert!(!data.microdata_cut);
    serde_json::to_value(data.microdata).unwrap()
}

#[test]
fn items_have_the_form_of_the_standard() {
    let html = r##"<article itemscope itemtype="https://schema.org/Book  https://schema.org/Product" itemid="#9" itemref="more nothing">
        <h1 itemprop="name"> Tides
        and more </h1><img itemprop=image src=cover.jpg><a itemprop="url sameAs url" href="?a=1">x</a>
        <meta itemprop=isbn content=" 978 "><span itemprop=price content="9.90">9,90 €</span><time itemprop=date datetime=2020-02-02>then</time>
        <time itemprop=date>2021</time><data itemprop=sku value=7>seven</data><object itemprop=o data=/o></object>
        <div itemprop=author itemscope itemtype=Person><b itemprop=name>Ann</b><b itemprop=empty></b></div></article>
        <p id=more><i itemprop=name>Second</i></p><p id=more><i itemprop=name>Third</i></p>"##;
    assert_eq!(
        microdata(html),
        json!([{
            "type": ["https://schema.org/Book", "https://schema.org/Product"],
            "id": "https://shop.example/books/#9",
            "properties": {
                "name": ["Tides\n        and more", "Second"],
                "image": ["https://shop.example/books/cover.jpg"],
                "url": ["https://shop.example/books/?a=1"],
                "sameAs": ["https://shop.example/books/?a=1"],
                "isbn": ["978"],
                "price": ["9.90"],
                "date": ["2020-02-02", "2021"],
                "sku": ["7"],
                "o": ["https://shop.example/o"],
                "author": [{"type": ["Person"], "properties": {"name": ["Ann"], "empty": [""]}}],
            }
        }])
    );
}

#[test]
fn items_are_asked_by_name_and_type() {
    let data = data(
        "<div itemscope itemtype=http://schema.org/Product><p itemprop=name>A<p itemprop=name>B<div itemprop=offers itemscope \
         itemtype=http://schema.org/Offer><p itemprop=price>1</div></div><div itemscope itemtype=http://schema.org/Offer></div>",
    );
    let product = data.microdata_of_type("Product").next().unwrap();
    assert_eq!((product.text("name"), product.all("name").count(), product.get("none")), (Some("A"), 2, None));
    assert_eq!(product.item("offers").and_then(|offer| offer.text("price")), Some("1"));
    assert_eq!((product.text("offers"), product.is_a("duct")), (None, false));
    assert_eq!(data.microdata_of_type("Offer").count(), 2);
}

#[test]
fn an_item_that_holds_itself_is_read_once() {
    let data = data(
        "<div itemscope itemref=a></div><div id=a itemprop=x itemscope itemref=b></div><div id=b itemprop=y itemscope itemref=a></div>",
    );
    assert_eq!(
        serde_json::to_value(&data.microdata).unwrap(),
        json!([{"properties": {"x": [{"properties": {"y": [{"properties": {}}]}}]}}])
    );
    assert!(data.microdata_cut);
    assert_eq!(microdata("<div itemscope id=a itemref=a><p itemprop=x>1</div>"), json!([{"properties": {"x": ["1"]}}]));
}

#[test]
fn items_that_double_at_every_step_stay_within_the_page() {
    // Each refers twice to the next: two to the power of their number, if nobody counts.
    let html: String = (0..200)
        .map(|n| format!("<p id=a{n} itemprop='x y' itemscope itemref='b{m} c{m}'></p><p id=b{n} itemprop=b itemscope itemref=a{n}></p><p id=c{n} itemprop=c itemscope itemref=a{n}></p>", m = n + 1))
        .collect();
    let html = format!("<div itemscope itemref=a0></div>{html}");
    let data = data(&html);
    assert!(data.microdata_cut);
    assert!(serde_json::to_string(&data.microdata).unwrap().len() < 40 * html.len());
    assert!(microdata::every(&data.microdata).count() < 2_000);
}

#[test]
fn what_an_item_says_of_itself_counts_at_every_reading() {
    let refs = "<p itemscope itemref=e></p>".repeat(2_000);
    let long = "a ".repeat(50_000);
    let base = format!("https://shop.example/{}", "b".repeat(100_000));
    for item in [
        format!("itemtype='{long}'"),
        format!("itemtype='{}'", long.trim_end().replace(' ', "b")),
        format!("itemid='{long}'"),
        format!("itemtype='{}'", " ".repeat(100_000)),
        format!("itemref='{long}'"),
        "itemid=x".to_owned(),
    ] {
        let html = format!("<p id=e itemprop=p itemscope {item}></p>{refs}");
        let made = std::cell::Cell::new(0);
        let data = StructuredData::of(&Page::parse(&html), |href| {
            let address = format!("{base}{href}");
            made.set(made.get() + address.len());
            Some(address)
        });
        let (kind, size) = (item.get(..12).unwrap_or(&item), html.len());
        assert!(data.microdata_cut, "{kind}");
        assert!(serde_json::to_string(&data.microdata).unwrap().len() < 20 * size + (1 << 20), "{kind}");
        assert!(made.get() < 20 * size + (1 << 20), "{kind}: {} bytes of addresses", made.get());
        let types: usize = microdata::every(&data.microdata).map(|item| item.types.len()).sum();
        assert!(types <= 64 * 100, "{kind}: {types} types");
        assert!(microdata::every(&data.microdata).count() <= 2 * 2_000, "{kind}");
    }
}

#[test]
fn words_that_refer_to_nothing_are_steps_too() {
    let html = format!("<div id=e itemscope itemref='{}'></div><p id=y><b itemprop=b>2</b></p>", "x ".repeat(1_000) + "y");
    let data = data(&html);
    assert!(data.microdata_cut);
    assert!(data.microdata[0].properties.is_empty());
    assert_eq!(
        microdata("<div itemscope itemref='x x x y'></div><p id=y><b itemprop=b>2</b></p>"),
        json!([{"properties": {"b": ["2"]}}])
    );
}

#[test]
fn types_are_kept_up_to_a_number() {
    let types: String = (0..70).map(|n| format!("t{n} ")).collect();
    let data = data(&format!("<div itemscope itemtype='{types}'><b itemprop=x>1</b></div>"));
    assert!(data.microdata_cut);
    assert_eq!((data.microdata[0].types.len(), data.microdata[0].text("x")), (64, Some("1")));
}

#[test]
fn nested_texts_are_no_square_of_the_page() {
    let html = format!("<div itemscope>{}{}", "<b itemprop=x>".repeat(400), "text ".repeat(20_000));
    let data = data(&html);
    assert!(data.microdata_cut);
    let bytes: usize =
        data.microdata[0].all("x").map(|value| if let MicrodataValue::Text(text) = value { text.len() } else { 0 }).sum();
    assert!(bytes < 20 * html.len(), "{bytes}");
}

#[test]
fn scripts_of_json_ld_are_read_and_counted() {
    let data = data(
        r#"<script type="application/ld+json">{"@type":"Product","name":"A &amp; B <x>"}</script>
        <script type="Application/LD+JSON; charset=utf-8">[{"@type": "A"}, {"@type": "B"},]</script>
        <script type="application/ld+json">{oops}</script><script type="application/ld+json"> </script>
        <script type="application/json">{"@type": "C"}</script>"#,
    );
    assert_eq!(data.json_ld, [json!({"@type":"Product","name":"A &amp; B <x>"}), json!({"@type": "A"}), json!({"@type": "B"})]);
    assert_eq!(data.json_ld_broken, 1);
    assert_eq!(data.json_ld_of_type("B").count(), 1);
}

#[test]
fn open_graph_is_in_order_and_grouped() {
    let data = data(
        "<meta property=og:title content=' OG &amp; T '><meta property='og:image' content=/1.jpg><meta property=og:image:width content=300>
        <meta property=og:image content=/2.jpg><meta property=og:image:url content=/2.jpg><meta property=OG:image:alt content=two>
        <meta name=twitter:card content=summary><meta name=viewport content=x><meta property='og:' content=x><meta property=og:x>
        <meta property='product:price:amount og:extra' content=9.90>",
    );
    let graph = &data.open_graph;
    assert_eq!((graph.get("og:title"), graph.get("og:x"), graph.all("og:image").count()), (Some("OG & T"), None, 2));
    assert_eq!(graph.objects("og:image"), [vec![("url", "/1.jpg"), ("width", "300")], vec![("url", "/2.jpg"), ("alt", "two")]]);
    assert_eq!(
        serde_json::to_value(graph).unwrap(),
        json!({
            "og:title": "OG & T", "og:image": ["/1.jpg", "/2.jpg"], "og:image:width": "300", "og:image:url": "/2.jpg",
            "og:image:alt": "two", "twitter:card": "summary", "product:price:amount": "9.90", "og:extra": "9.90"
        })
    );
    assert!(OpenGraph::default().is_empty() && !graph.is_empty());
}

const PIECES: &[&str] = &[
    "<div itemscope itemprop='a b'>",
    "</div>",
    "<p itemprop=a itemref='x y'>",
    "<p id=x itemprop=c itemscope itemref='y z'>",
    "<p id=y itemprop='a c' itemscope itemref='x'>",
    "<div itemscope itemref='x y z'>",
    "<a itemprop=u href=//[>",
    "text",
    "<template>",
    "<script type=application/ld+json>",
    "[{\"@type\": ",
    "</script>",
    "<meta property=og:image content=x>",
    "<table>",
    "<svg>",
    "\u{0}",
];

proptest! {
    #[test]
    fn any_page_has_its_data_within_bounds(pieces in proptest::collection::vec(0..PIECES.len(), 0..60), rest in ".{0,30}") {
        let html: String = pieces.iter().map(|at| PIECES[*at]).chain([rest.as_str()]).collect();
        let data = data(&html);
        let shown = serde_json::to_string(&data).unwrap();
        prop_assert!(shown.len() < 40 * html.len() + (200 << 10));
    }
}
