//! Cookie maps: the three forms they are imported in, and the header they become.

use std::collections::BTreeMap;

use serde_json::Value;

/// The most cookies in a map.
const MAX_COOKIES: usize = 1024;

/// The longest name and the longest value, in bytes.
const MAX_NAME: usize = 1024;
const MAX_VALUE: usize = 16 * 1024;

/// Reads an object of texts, the text of a `Cookie` header or a list of `{name, value}`. An error quotes no value.
pub(crate) fn read(written: &Value) -> Result<BTreeMap<String, String>, String> {
    let mut cookies = BTreeMap::new();
    match written {
        Value::String(text) => {
            for (name, value) in pairs(text) {
                add(&mut cookies, name, value)?;
            }
            if cookies.is_empty() && !text.trim().is_empty() {
                return Err("the text has no name=value pair; write it as a Cookie header, a=1; b=2".to_owned());
            }
        }
        Value::Object(map) => {
            for (name, value) in map {
                let Value::String(value) = value else {
                    return Err("the value of a cookie has to be a text; quote it".to_owned());
                };
                add(&mut cookies, name, value)?;
            }
        }
        Value::Array(items) => {
            for (item, position) in items.iter().zip(1_u32..) {
                let text = |key| item.get(key).and_then(Value::as_str);
                let (Some(name), Some(value)) = (text("name"), text("value")) else {
                    return Err(format!("cookie {position} of the list needs a name and a value, both texts"));
                };
                add(&mut cookies, name, value)?;
            }
        }
        _ => return Err("expected an object of cookies, a Cookie header or a list of {name, value}".to_owned()),
    }
    Ok(cookies)
}

/// The pairs of a `Cookie` header; parts without a name or without `=` are left out.
fn pairs(text: &str) -> impl Iterator<Item = (&str, &str)> {
    let text = text.trim_start();
    let text = match text.split_at_checked("cookie:".len()) {
        Some((start, rest)) if start.eq_ignore_ascii_case("cookie:") => rest,
        _ => text,
    };
    text.split(';').filter_map(|part| {
        let (name, value) = part.split_once('=')?;
        let name = name.trim();
        (!name.is_empty()).then_some((name, value.trim()))
    })
}

fn add(cookies: &mut BTreeMap<String, String>, name: &str, value: &str) -> Result<(), String> {
    check_name(name)?;
    check_value(value)?;
    cookies.insert(name.to_owned(), value.to_owned());
    if cookies.len() > MAX_COOKIES {
        return Err(format!("found more than {MAX_COOKIES} cookies; that is the most of one map"));
    }
    Ok(())
}

/// Checks the name of a cookie.
pub(crate) fn check_name(name: &str) -> Result<(), String> {
    if name.is_empty() || name.len() > MAX_NAME {
        return Err(format!("the name of a cookie has {} bytes; allowed: 1 to {MAX_NAME}", name.len()));
    }
    let odd = |c: char| c.is_control() || c.is_whitespace() || matches!(c, '=' | ';' | ',' | '"');
    if name.contains(odd) {
        return Err("the name of a cookie has white space, a control character, or one of = ; , \"".to_owned());
    }
    Ok(())
}

/// Checks the value of a cookie.
pub(crate) fn check_value(value: &str) -> Result<(), String> {
    if value.len() > MAX_VALUE {
        return Err(format!("the value of a cookie has {} bytes; allowed: at most {MAX_VALUE}", value.len()));
    }
    if value.contains(|c: char| c == ';' || (c.is_control() && c != '\t')) {
        return Err("the value of a cookie has a semicolon or a control character".to_owned());
    }
    Ok(())
}

/// Adds the cookies to `text` as a header: `k1=v1; k2=v2`, the names sorted.
pub(crate) fn write_header(cookies: &BTreeMap<String, String>, text: &mut String) {
    for (position, (name, value)) in cookies.iter().enumerate() {
        if position > 0 {
            text.push_str("; ");
        }
        text.push_str(name);
        text.push('=');
        text.push_str(value);
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing)]
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    fn header(written: &Value) -> String {
        let mut text = String::new();
        write_header(&read(written).unwrap(), &mut text);
        text
    }

    #[test]
    fn a_cookie_map_comes_in_three_forms() {
        for (written, expected) in [
            (json!({"b": "2", "a": "1"}), "a=1; b=2"),
            (json!({}), ""),
            (json!(""), ""),
            (json!("a=1; b = 2 ;flag; =x; c="), "a=1; b=2; c="),
            (json!("Cookie: a=1"), "a=1"),
            (json!(" cookie:a=1;a=2"), "a=2"),
            (json!("a=b=c"), "a=b=c"),
            (json!([{"name": "a", "value": "1", "domain": ".example", "path": "/"}, {"name": "a", "value": "2"}]), "a=2"),
        ] {
            assert_eq!(header(&written), expected, "{written}");
        }
    }

    #[test]
    fn other_forms_are_refused_without_their_values() {
        for written in [
            json!(1),
            json!(null),
            json!("canary"),
            json!({"a": 5}),
            json!({"a b": "canary"}),
            json!({"": "canary"}),
            json!({"a": "canary;b"}),
            json!({"a": "canary\r\nx"}),
            json!(["a=canary"]),
            json!([{"name": "canary"}]),
            json!({"a": "c".repeat(16_385)}),
            json!({"c".repeat(1025): "a"}),
            json!((0..1025).map(|n| (format!("c{n}"), json!("v"))).collect::<serde_json::Map<_, _>>()),
        ] {
            let error = read(&written).unwrap_err();
            assert!(!error.contains("canary") && !error.is_empty(), "{error}");
        }
    }

    proptest! {
        #[test]
        fn any_header_is_read_and_its_own_header_gives_it_back(text in "\\PC{0,60}|[a-c=; \t:]{0,40}") {
            if let Ok(cookies) = read(&Value::String(text)) && !cookies.is_empty() {
                let mut header = String::new();
                write_header(&cookies, &mut header);
                // A name may begin with `Cookie:` itself; behind another pair it is one.
                prop_assert_eq!(read(&Value::String(format!("Cookie:{header}"))).unwrap(), cookies);
            }
        }
    }
}
