//! XML feeds.

use super::*;

#[test]
fn a_field_is_an_element_and_a_list_has_values() {
    let item = json!({
        "name": "A & <B>", "price": 1.5, "stock": true, "none": null, "tags": ["x", 2], "size": {"w": 1, "h x": "\"q\""},
        "\u{e9}": "l1\nl2\r", "1st": "\u{1}", "": [], "g:id": 0,
    });
    let fields = "<name>A &amp; &lt;B&gt;</name><price>1.5</price><stock>True</stock><none></none>\
        <tags><value>x</value><value>2</value></tags><size><w>1</w><field name=\"h x\">&quot;q&quot;</field></size>\
        <field name=\"\u{e9}\">l1\nl2&#13;</field><field name=\"1st\">\u{fffd}</field><field name=\"\"></field>\
        <field name=\"g:id\">0</field>";
    let head = "<?xml version=\"1.0\" encoding=\"utf-8\"?>\n<items>";
    for (layout, expected) in [
        (Layout::OneLine, format!("{head}<item>{fields}</item><item></item></items>")),
        (Layout::ItemPerLine, format!("{head}\n<item>{fields}</item>\n<item></item>\n</items>")),
    ] {
        let dir = Dir::new();
        let summary = dir.run("a.xml", FeedOptions { layout, ..append() }, &[item.clone(), json!({})]);
        assert_eq!(dir.read("a.xml"), expected);
        assert_eq!((summary.items, summary.bytes, dir.names()), (2, expected.len() as u64, vec!["a.xml".to_owned()]));
    }
    let dir = Dir::new();
    dir.run("a.xml", FeedOptions { layout: Layout::Indented(1), ..append() }, &[json!({"a": [1], "b": {}})]);
    assert_eq!(dir.read("a.xml"), format!("{head}\n <item>\n  <a>\n   <value>1</value>\n  </a>\n  <b></b>\n </item>\n</items>"));
}

#[test]
fn items_that_are_there_stay_byte_for_byte() {
    for before in
        ["<items><item><n>0</n></item></items>", "<?xml version='1.0'?>\n<!-- mine -->\n<items>\n<item/>\n</items>\n \n"]
    {
        let dir = Dir::new();
        fs::write(dir.path("a.xml"), before).unwrap();
        dir.run("a.xml", append(), &[json!({"n": 1})]);
        dir.run("a.xml", append(), &[json!({"n": 2})]);
        let (kept, _) = before.split_once("</items>").unwrap();
        assert_eq!(dir.read("a.xml"), format!("{kept}<item><n>1</n></item>\n<item><n>2</n></item>\n</items>"));
        dir.run("a.xml", overwrite(), &[]);
        assert_eq!(dir.read("a.xml"), "<?xml version=\"1.0\" encoding=\"utf-8\"?>\n<items>\n</items>");
    }
}

#[test]
fn a_file_that_is_no_list_of_items_is_refused_and_left_alone() {
    for before in
        ["<rss></rss>", "<items>", "<items/>", "x", "<items></items><items></items>", "<items><a></items>", "<items></items >"]
    {
        let dir = Dir::new();
        fs::write(dir.path("a.xml"), before).unwrap();
        let error = dir.open("a.xml", append()).unwrap_err().to_string();
        assert!(error.contains("a.xml") && error.contains("not xml with items") && error.contains("-O"), "{before}: {error}");
        assert_eq!((dir.read("a.xml").as_str(), dir.names()), (before, vec!["a.xml".to_owned()]));
    }
}

#[test]
fn fields_are_chosen_and_the_journal_of_a_crash_is_picked_up() {
    let dir = Dir::new();
    let mut feed = dir.open("a.xml", fields(&["b", "a"])).unwrap();
    feed.write(&items(&[json!({"a": 1, "b": 2, "c": 3})])).unwrap();
    feed.flush().unwrap();
    drop(feed);
    dir.run("a.xml", append(), &[json!({"z": 1})]);
    assert!(
        dir.read("a.xml").ends_with("<item><b>2</b><a>1</a></item>\n<item><z>1</z></item>\n</items>"),
        "{}",
        dir.read("a.xml")
    );
    let (text, summary) = to_stdout("-:xml", append(), &[json!({"a": 1})]);
    assert!(text.ends_with("<item><a>1</a></item>\n</items>") && summary.items == 1, "{text}");
}
