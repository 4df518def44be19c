#![allow(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing)]
//! Forms against the table of cases, and what the table does not ask.

use encoding_rs::{Encoding, UTF_8};
use proptest::prelude::*;
use serde_json::{Value, json};
use url::Url;

use super::super::links::base_url;
use super::super::request::Request;
use super::super::selector::Page;
use super::find::Origin;
use super::*;

/// Cases that are answered otherwise than by Scrapy and by the table's `browser`, with the reason.
const EXCEPTIONS: &[(&str, &str)] =
    &[("form-method-dialog", "a browser sends nothing, as the case's note says, so that this is an error")];

fn with_page<T>(html: &str, encoding: &'static Encoding, url: &str, use_it: impl FnOnce(&Origin<'_>) -> T) -> T {
    let (page, url) = (Page::parse(html), Url::parse(url).unwrap());
    let base = base_url(&page, &url);
    use_it(&Origin { page: &page, url: &url, base: &base, encoding })
}

fn form(html: &str) -> Form {
    with_page(html, UTF_8, "https://example.com/dir/page.html?x=1", |origin| origin.forms().remove(0))
}

/// The request as the table writes it.
fn written(request: &Request) -> Value {
    let kind = request.headers().and_then(|headers| headers.get("content-type")).map(|kind| kind.to_str().unwrap());
    json!({
        "method": request.method().as_str(),
        "url": request.url().as_str(),
        "body": String::from_utf8_lossy(request.body_bytes()),
        "content_type": kind,
    })
}

fn answer(case: &Value) -> Result<Request, FormError> {
    let encoding = case["page_encoding"].as_str().map_or(UTF_8, |label| Encoding::for_label(label.as_bytes()).unwrap());
    with_page(case["html"].as_str().unwrap(), encoding, case["page_url"].as_str().unwrap(), |origin| {
        let options = &case["options"];
        let by_css = |css: &str| origin.form(&origin.page.css(css), css);
        let mut form = if let Some(id) = options["formid"].as_str() {
            by_css(&format!("form#{id}"))?
        } else if let Some(name) = options["formname"].as_str() {
            by_css(&format!("form[name='{name}']"))?
        } else if let Some(css) = options["formcss"].as_str() {
            by_css(css)?
        } else if let Some(xpath) = options["formxpath"].as_str() {
            origin.form(&origin.page.xpath(xpath), xpath)?
        } else {
            let number = options["formnumber"].as_u64().unwrap_or(0) as usize;
            let none = || FormError::NoForm { url: String::new(), asked: number.to_string(), forms: 0 };
            origin.forms().into_iter().nth(number).ok_or_else(none)?
        };
        for (name, value) in options["formdata"].as_object().into_iter().flatten() {
            match value {
                Value::Null => form.remove(name),
                Value::Array(values) => form.set_all(name, values.iter().map(|value| value.as_str().unwrap())),
                value => form.set(name, value.as_str().unwrap()),
            };
        }
        if options["dont_click"] == json!(true) {
            form.press_none();
        }
        if let Some(number) = options["clickdata"]["nr"].as_u64() {
            form.press_nth(number as usize)?;
        } else if let Some(attrs) = options["clickdata"].as_object() {
            let attrs: Vec<_> = attrs.iter().map(|(name, value)| (name.as_str(), value.as_str().unwrap())).collect();
            form.press_where(&attrs)?;
        }
        form.submit(&())
    })
}

/// The names and values in a body that has no percent-encoding.
fn entries_in(body: &str, content_type: &str) -> Value {
    if let Some((_, boundary)) = content_type.split_once("boundary=") {
        let delimiter = format!("--{boundary}");
        let parts = body.split(&delimiter).filter_map(|part| part.strip_suffix("\r\n"));
        return parts
            .filter_map(|part| {
                let (head, value) = part.split_once("\r\n\r\n")?;
                let name = head.split_once("name=\"")?.1.split_once('"')?.0;
                Some(json!([name, value]))
            })
            .collect();
    }
    body.lines().map(|line| line.split_once('=').map(|(name, value)| json!([name, value])).unwrap()).collect()
}

#[test]
fn every_case_of_the_collection_is_sent_as_a_browser_sends_it() {
    let data: Value = serde_json::from_str(include_str!("../../../tests/data/forms.json")).unwrap();
    let cases = data["cases"].as_array().unwrap();
    assert_eq!((cases.len(), data["count"].as_u64()), (82, Some(82)));
    let mut report = Vec::new();
    for case in cases {
        let id = case["id"].as_str().unwrap();
        let expected = case.get("browser").unwrap_or(&case["expected"]);
        let found = answer(case);
        let same = match &found {
            Err(_) => expected["error"] == json!(true),
            Ok(request) => {
                let found = written(request);
                match expected["entries"].is_array() {
                    true => {
                        let kind = found["content_type"].as_str().unwrap();
                        kind.split(';').next() == expected["content_type"].as_str()
                            && (&found["method"], &found["url"]) == (&expected["method"], &expected["url"])
                            && entries_in(found["body"].as_str().unwrap(), kind) == expected["entries"]
                    }
                    false => found == *expected,
                }
            }
        };
        if same == EXCEPTIONS.iter().any(|(known, _)| *known == id) {
            report.push(format!("{id}: {:?}\n    expected {expected}", found.as_ref().map(written)));
        }
    }
    assert!(report.is_empty(), "{} cases:\n{}", report.len(), report.join("\n"));
}

#[test]
fn a_form_is_filled_as_by_a_reader() {
    let html = "<form id=f method=post><input name=user><input type=password name=pass value=old><textarea name=say></textarea>
        <input type=checkbox name=box value=1><input type=checkbox name=box value=2 checked>
        <input type=radio name=way value=sea checked><input type=radio name=way value=land>
        <select name=one><option>a<option>b<option disabled>c</select><select name=many multiple><option selected>x<option>y</select>
        <input name=off disabled></form>";
    let mut filled = form(html);
    filled.fill("user", "a\nb").unwrap().fill("pass", "new").unwrap().fill("say", "l1\nl2").unwrap();
    filled.fill("box", "1").unwrap().fill("way", "land").unwrap().fill("one", "b").unwrap().fill("many", "y").unwrap();
    let body = String::from_utf8(filled.submit(&()).unwrap().body_bytes().to_vec()).unwrap();
    assert_eq!(body, "user=ab&pass=new&say=l1%0D%0Al2&box=1&box=2&way=land&one=b&many=x&many=y");
    filled.untick("box").unwrap().untick("many").unwrap();
    assert_eq!((filled.value("box"), filled.value("many"), filled.value("one").as_deref()), (None, None, Some("b")));

    for (name, value, part) in [
        ("none", "1", "only \"user\", \"pass\", \"say\", \"box\", \"way\", \"one\", \"many\""),
        ("off", "1", "to fill"),
        ("one", "c", "only \"a\", \"b\""),
        ("way", "air", "only \"sea\", \"land\""),
    ] {
        let error = filled.fill(name, value).unwrap_err().to_string();
        assert!(error.contains(part) && error.contains("#\"f\""), "{error}");
    }
    assert!(filled.untick("way").is_err());
}

#[test]
fn a_value_that_the_type_of_a_control_does_not_take_is_an_error() {
    let html = "<form id=f><input type=date name=d value=2020-01-01><input type=number name=n><input type=month name=m>
        <input type=week name=w><input type=time name=t><input type=datetime-local name=l><input type=color name=c>
        <input type=range name=r><input type=email name=e></form>";
    let mut filled = form(html);
    for (name, wrong, right, sent) in [
        ("d", "1.2.2024", "2024-02-01", "2024-02-01"),
        ("n", "1,5", "1.5", "1.5"),
        ("m", "2/2024", "2024-02", "2024-02"),
        ("w", "2024-7", "2024-W07", "2024-W07"),
        ("t", "5 pm", "17:00", "17:00"),
        ("l", "1.2.2024 17:00", "2024-02-01 17:00", "2024-02-01T17:00"),
        ("c", "red", "#FFaa00", "#ffaa00"),
        ("r", "much", "140", "100"),
    ] {
        let before = filled.value(name);
        let error = filled.fill(name, wrong).unwrap_err();
        assert!(matches!(&error, FormError::NotTaken { name: named, .. } if named == name), "{error}");
        let message = error.to_string();
        assert!(
            message.contains("#\"f\"") && message.contains(" takes no such value, only a ") && !message.contains(wrong),
            "{message}"
        );
        assert_eq!(filled.value(name), before, "nothing is changed");
        filled.fill(name, right).unwrap();
        assert_eq!(filled.value(name).as_deref(), Some(sent));
        // Most of them can be emptied; a color and a slider always have a value.
        assert_eq!(filled.fill(name, "").is_err(), matches!(name, "c" | "r"), "{name}");
    }
    filled.fill("e", " a@b.test\n").unwrap();
    assert_eq!(filled.value("e").as_deref(), Some("a@b.test"));
    filled.set("d", "1.2.2024");
    assert_eq!(filled.value("d").as_deref(), Some("1.2.2024"));

    let mut two = form("<form><input type=date name=d><input name=d></form>");
    two.fill("d", "1.2.2024").unwrap();
    assert_eq!(two.fields(), [("d".to_owned(), String::new()), ("d".to_owned(), "1.2.2024".to_owned())]);
}

#[test]
fn a_form_in_a_template_is_not_of_the_page() {
    let html = "<template><form id=f></form></template><form id=f><p></form><input id=x name=x form=f><input id=y form=g>";
    with_page(html, UTF_8, "https://example.com/", |origin| {
        assert_eq!(origin.forms().len(), 1);
        let form = origin.form(&origin.page.css("#x"), "#x").unwrap();
        assert_eq!(form.fields(), origin.forms()[0].fields());
        assert_eq!(form.fields(), [("x".to_owned(), String::new())]);
        assert!(matches!(origin.form(&origin.page.css("#y"), "#y"), Err(FormError::NoForm { forms: 1, .. })));
    });
}

#[test]
fn a_secret_in_a_field_is_in_no_message() {
    let mut login = form("<form><input name=pass><select name=s><option>a</select><button disabled name=go>Go</form>");
    login.fill("pass", "canary-1").unwrap();
    let errors =
        [login.fill("s", "canary-2").unwrap_err(), login.fill("x", "canary-3").unwrap_err(), login.press("go").unwrap_err()];
    for error in errors {
        assert!(!format!("{error} {error:?}").contains("canary"), "{error}");
    }
    login.set("pin", "canary-4");
    assert!(login.value("pass").is_some() && !format!("{login:?}").contains("canary"));
    assert!(login.press("go").unwrap_err().to_string().contains("\"go\" (disabled)"));
}

#[test]
fn what_a_button_says_goes_before_what_the_form_says() {
    let html = "<form action=/a method=post enctype=text/plain><input name=q value=1><button name=b value=1>Save</button>
        <button name=b value=2 formaction=/c formenctype=multipart/form-data>Send <b>it</b></button>
        <input type=image alt='Look here' formmethod=get></form>";
    let mut form = form(html);
    assert_eq!(form.buttons().map(Button::text).collect::<Vec<_>>(), ["Save", "Send it", "Look here"]);
    assert_eq!(form.submit(&()).unwrap().body_bytes(), b"q=1\r\nb=1\r\n");
    form.press_where(&[("name", "b"), ("value", "2")]).unwrap();
    let sent = written(&form.submit(&()).unwrap());
    assert!(sent["url"] == "https://example.com/c" && sent["content_type"].as_str().unwrap().starts_with("multipart/"), "{sent}");
    form.press_nth(2).unwrap();
    assert_eq!(form.submit(&()).unwrap().url().as_str(), "https://example.com/a?q=1&x=0&y=0");
    form.press_none();
    assert_eq!(form.fields(), [("q".to_owned(), "1".to_owned())]);
}

#[test]
fn a_file_goes_out_with_its_name_and_type() {
    let mut form = form("<form method=post enctype=multipart/form-data><input type=file name=f><input name=a value=1></form>");
    let empty = String::from_utf8(form.submit(&()).unwrap().body_bytes().to_vec()).unwrap();
    assert!(empty.contains("name=\"f\"; filename=\"\"\r\nContent-Type: application/octet-stream\r\n\r\n\r\n--"), "{empty}");
    form.attach("f", Upload { name: "a.csv".into(), media_type: "text/csv".into(), bytes: "x,y".into() });
    let body = String::from_utf8(form.submit(&()).unwrap().body_bytes().to_vec()).unwrap();
    assert!(body.contains("name=\"f\"; filename=\"a.csv\"\r\nContent-Type: text/csv\r\n\r\nx,y\r\n"), "{body}");
    assert!(body.find("name=\"f\"") < body.find("name=\"a\""), "a file stays in its control's place");
}

#[test]
fn the_encoding_of_the_page_is_that_of_fields_and_of_the_query_of_the_action() {
    let html = "<form action='/s?k=\u{e9}' method=post><input name=a value='\u{e9}'><input type=hidden name=_charset_></form>";
    let latin = Encoding::for_label(b"latin1").unwrap();
    let sent = |html: &str| {
        with_page(html, latin, "https://example.com/", |origin| written(&origin.forms().remove(0).submit(&()).unwrap()))
    };
    let request = sent(html);
    assert_eq!(
        (&request["url"], &request["body"]),
        (&json!("https://example.com/s?k=%E9"), &json!("a=%E9&_charset_=windows-1252"))
    );
    let request = sent(&html.replace("<form", "<form accept-charset=utf-8"));
    assert_eq!((&request["url"], &request["body"]), (&json!("https://example.com/s?k=%E9"), &json!("a=%C3%A9&_charset_=UTF-8")));
}

#[test]
fn the_direction_of_a_text_is_sent_where_it_is_asked_for() {
    for (html, direction) in [
        ("<input name=a dirname=d value=x>", "ltr"),
        ("<input name=a dirname=d dir=rtl>", "rtl"),
        ("<input name=a dirname=d dir=auto value='1 \u{5d0}a'>", "rtl"),
        ("<div dir=rtl><textarea name=a dirname=d>x</textarea></div>", "rtl"),
        ("<div dir=rtl><input type=tel name=a dirname=d></div>", "ltr"),
        ("<div dir=auto>\u{627}<input name=a dirname=d></div>", "rtl"),
    ] {
        assert_eq!(form(&format!("<form>{html}</form>")).value("d").as_deref(), Some(direction), "{html}");
    }
    assert_eq!(form("<form><input type=number name=a dirname=d></form>").value("d"), None);
}

#[test]
fn a_page_made_to_be_slow_is_read_in_one_walk() {
    let controls = 8_000;
    let pages = [
        format!("<form id=f></form>{}", "<input name=a form=f>".repeat(controls)),
        format!("<form id=f></form>{}", "<input name=a form=g>".repeat(controls)),
        format!("<form><fieldset disabled>{}", "<p></p><input name=a>".repeat(controls)),
        format!("<form>{}{}", "<div>".repeat(500), "<input name=a>".repeat(controls)),
        format!("<form><div dir=auto>{}", "<input name=a dirname=d>".repeat(controls)),
        "<form><input>".repeat(controls),
        "<table><form><input></table></form>".repeat(controls),
    ];
    for page in &pages {
        let started = std::time::Instant::now();
        with_page(page, UTF_8, "https://example.com/", |origin| origin.forms().len());
        assert!(started.elapsed() < std::time::Duration::from_secs(10), "{page:.40}: {:?}", started.elapsed());
    }
}

proptest! {
    #[test]
    fn any_page_has_forms_that_can_be_sent_or_say_why_not(
        parts in proptest::collection::vec(proptest::sample::select(vec![
            "<form>", "<form method=post enctype=multipart/form-data>", "</form>", "<table>", "<tr><td>", "</table>", "<input name=a value=1>",
            "<input type=radio name=r checked>", "<select name=s>", "<select name=s multiple size=9>", "<option selected>", "</select>",
            "<textarea name=t>", "</textarea>", "<button name=b formaction='x:y'>", "<fieldset disabled>", "<legend>", "<template>",
            "</template>", "<input type=image>", "<input type=range min=1e300 max=-1e300 step=0.1>", "<datalist>", "\u{e9}\r", "<div>", "</div>",
        ]), 0..25)
    ) {
        let page = parts.concat();
        with_page(&page, encoding_rs::SHIFT_JIS, "https://example.com/", |origin| {
            for mut form in origin.forms() {
                let _ = form.submit(&());
                let _ = form.fill("s", "").map(|form| form.press_nth(0).map(|form| form.submit(&())));
                let names: Vec<String> = form.fields().into_iter().map(|(name, _)| name).collect();
                for name in names {
                    assert!(form.remove(&name).fields().iter().all(|(other, _)| *other != name));
                }
            }
        });
    }
}
