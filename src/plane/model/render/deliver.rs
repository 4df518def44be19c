//! The six segments of a credential, as a type delivers them.

use std::collections::BTreeMap;

use serde_json::{Map, Value};

use super::{Credential, RenderError, Scene, Template};
use crate::nearest::nearest;
use crate::plane::model::identity_type::{Field, FieldKind, FieldPath, Found, cookies};

/// The most entries of all segments together, and the deepest nesting of `json`.
const MAX_ENTRIES: usize = 256;
const MAX_DEPTH: usize = 32;

const SEGMENTS: [&str; 6] = ["cookies", "cookie_header", "headers", "query", "json", "values"];

/// The templates of a type. The default delivers nothing.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct Deliver {
    cookies: Cookies,
    cookie_header: Option<Template>,
    headers: BTreeMap<String, Template>,
    query: BTreeMap<String, Template>,
    json: Option<Node>,
    values: BTreeMap<String, Template>,
}

#[derive(Debug, Clone, PartialEq)]
enum Cookies {
    /// All cookies of a field.
    Whole(Template),
    Each(BTreeMap<String, Template>),
}

impl Default for Cookies {
    fn default() -> Self {
        Self::Each(BTreeMap::new())
    }
}

/// JSON whose texts are templates.
#[derive(Debug, Clone, PartialEq)]
enum Node {
    Fixed(Value),
    Text(Template),
    List(Vec<Node>),
    Table(Vec<(String, Node)>),
}

/// What is wrong: the key below `deliver` (with its dot), and why.
type Wrong = (String, String);

impl Deliver {
    /// Reads the `deliver` table of a type.
    pub(crate) fn read(written: &Value, fields: &[Field]) -> Result<Self, Wrong> {
        let Value::Object(map) = written else {
            return Err((String::new(), format!("expected a table; allowed keys are {}", SEGMENTS.join(", "))));
        };
        let mut reader = Reader { fields, entries: 0 };
        let mut deliver = Self::default();
        for (segment, written) in map {
            match segment.as_str() {
                "cookies" => deliver.cookies = reader.cookies(written)?,
                "cookie_header" => {
                    let template = reader.template(written, ".cookie_header")?;
                    if template.literals().any(is_no_header_value) {
                        return Err((".cookie_header".to_owned(), NO_CONTROL.to_owned()));
                    }
                    deliver.cookie_header = Some(template);
                }
                "headers" => deliver.headers = reader.headers(written)?,
                "query" => deliver.query = reader.templates(written, ".query")?,
                "json" => deliver.json = Some(reader.node(written, ".json", 0)?),
                "values" => deliver.values = reader.templates(written, ".values")?,
                unknown => {
                    let hint = nearest(unknown, SEGMENTS)
                        .map_or_else(|| format!("allowed are {}", SEGMENTS.join(", ")), |near| format!("did you mean {near}?"));
                    return Err((format!(".{}", shown(unknown)), format!("there is no such segment; {hint}")));
                }
            }
        }
        Ok(deliver)
    }

    /// The paths all templates refer to.
    pub(crate) fn paths(&self) -> impl Iterator<Item = &FieldPath> {
        let mut templates: Vec<&Template> = Vec::new();
        match &self.cookies {
            Cookies::Whole(template) => templates.push(template),
            Cookies::Each(each) => templates.extend(each.values()),
        }
        templates.extend(self.cookie_header.iter().chain(self.headers.values()));
        templates.extend(self.query.values().chain(self.values.values()));
        if let Some(node) = &self.json {
            node.collect(&mut templates);
        }
        templates.into_iter().flat_map(Template::paths)
    }

    pub(super) fn render(&self, scene: &Scene<'_>) -> Result<Credential, RenderError> {
        let mut credential = Credential::default();
        match &self.cookies {
            Cookies::Whole(template) => {
                if let Some(Found::Cookies(cookies)) = template.only().map(|path| scene.find(path)) {
                    credential.cookies.clone_from(cookies);
                }
            }
            Cookies::Each(each) => {
                for (name, template) in each {
                    let value = template.text(scene);
                    if cookies::check_value(&value).is_err() {
                        let problem = "the value of a cookie has no semicolon, no control character and at most 16 KiB";
                        return Err(scene.unfit(template, format!("cookies.{name}"), problem));
                    }
                    put(&mut credential.cookies, name, value);
                }
            }
        }
        if let Some(template) = &self.cookie_header {
            credential.cookie_header = template.text(scene);
            if is_no_header_value(&credential.cookie_header) {
                return Err(scene.unfit(template, "cookie_header".to_owned(), NO_CONTROL));
            }
        }
        for (name, template) in &self.headers {
            let value = template.text(scene);
            if is_no_header_value(&value) {
                return Err(scene.unfit(template, format!("headers.{name}"), NO_CONTROL));
            }
            put(&mut credential.headers, name, value);
        }
        for (name, template) in &self.query {
            put(&mut credential.query, name, template.text(scene));
        }
        credential.json = self.json.as_ref().map(|node| node.render(scene)).filter(|value| !value.is_null());
        for (name, template) in &self.values {
            let value = template.value(scene);
            if !value.is_null() && value.as_str() != Some("") {
                credential.values.insert(name.clone(), value);
            }
        }
        Ok(credential)
    }
}

impl Node {
    fn collect<'a>(&'a self, templates: &mut Vec<&'a Template>) {
        match self {
            Self::Fixed(_) => {}
            Self::Text(template) => templates.push(template),
            Self::List(nodes) => nodes.iter().for_each(|node| node.collect(templates)),
            Self::Table(entries) => entries.iter().for_each(|(_, node)| node.collect(templates)),
        }
    }

    fn render(&self, scene: &Scene<'_>) -> Value {
        match self {
            Self::Fixed(value) => value.clone(),
            Self::Text(template) => template.value(scene),
            Self::List(nodes) => Value::Array(nodes.iter().map(|node| node.render(scene)).collect()),
            Self::Table(entries) => {
                Value::Object(entries.iter().map(|(key, node)| (key.clone(), node.render(scene))).collect::<Map<_, _>>())
            }
        }
    }
}

struct Reader<'a> {
    fields: &'a [Field],
    entries: usize,
}

impl Reader<'_> {
    fn cookies(&mut self, written: &Value) -> Result<Cookies, Wrong> {
        let wrong = |key: &str, problem: &str| (format!(".cookies{key}"), problem.to_owned());
        if written.is_string() {
            let template = self.template(written, ".cookies")?;
            let whole = template.only().is_some_and(|path| self.is_cookie_map(path));
            return whole
                .then_some(Cookies::Whole(template))
                .ok_or_else(|| wrong("", "a text here is one placeholder of a whole cookie_map field; else write a table"));
        }
        let each = self.templates(written, ".cookies")?;
        for (name, template) in &each {
            let key = format!(".{}", shown(name));
            cookies::check_name(name).map_err(|problem| wrong(&key, &problem))?;
            if template.literals().any(|text| cookies::check_value(text).is_err()) {
                return Err(wrong(&key, "the value of a cookie has no semicolon and no control character"));
            }
            if template.paths().any(|path| self.is_cookie_map(path)) {
                return Err(wrong(&key, "a whole cookie map is no value of one cookie; name the cookie, as in {{ field.name }}"));
            }
        }
        Ok(Cookies::Each(each))
    }

    fn headers(&mut self, written: &Value) -> Result<BTreeMap<String, Template>, Wrong> {
        let headers = self.templates(written, ".headers")?;
        let mut seen: Vec<String> = Vec::with_capacity(headers.len());
        for (name, template) in &headers {
            let wrong = |problem: &str| (format!(".headers.{}", shown(name)), problem.to_owned());
            if !name.bytes().all(is_token) {
                return Err(wrong("not a header name; allowed: letters, digits and !#$%&'*+-.^_`|~"));
            }
            if template.literals().any(is_no_header_value) {
                return Err(wrong(NO_CONTROL));
            }
            let lower = name.to_ascii_lowercase();
            if seen.contains(&lower) {
                return Err(wrong("the header is there twice, in another case; take one out"));
            }
            seen.push(lower);
        }
        Ok(headers)
    }

    fn templates(&mut self, written: &Value, key: &str) -> Result<BTreeMap<String, Template>, Wrong> {
        let Value::Object(map) = written else {
            return Err((key.to_owned(), "expected a table of names and templates".to_owned()));
        };
        let mut templates = BTreeMap::new();
        for (name, written) in map {
            if name.is_empty() {
                return Err((key.to_owned(), "found an empty name".to_owned()));
            }
            templates.insert(name.clone(), self.template(written, &format!("{key}.{}", shown(name)))?);
        }
        Ok(templates)
    }

    fn template(&mut self, written: &Value, key: &str) -> Result<Template, Wrong> {
        self.count(key)?;
        let text = written.as_str().ok_or_else(|| (key.to_owned(), "expected a text, as in \"{{ field }}\"".to_owned()))?;
        Template::parse(text, self.fields).map_err(|problem| (key.to_owned(), problem))
    }

    fn node(&mut self, written: &Value, key: &str, depth: usize) -> Result<Node, Wrong> {
        if depth > MAX_DEPTH {
            return Err((key.to_owned(), format!("found more than {MAX_DEPTH} levels of nesting")));
        }
        match written {
            Value::String(_) => self.template(written, key).map(Node::Text),
            Value::Array(items) => {
                let nodes = items.iter().map(|item| self.node(item, key, depth + 1));
                nodes.collect::<Result<_, _>>().map(Node::List)
            }
            Value::Object(map) => {
                let mut entries = Vec::with_capacity(map.len());
                for (name, item) in map {
                    entries.push((name.clone(), self.node(item, &format!("{key}.{}", shown(name)), depth + 1)?));
                }
                Ok(Node::Table(entries))
            }
            fixed => {
                self.count(key)?;
                Ok(Node::Fixed(fixed.clone()))
            }
        }
    }

    fn count(&mut self, key: &str) -> Result<(), Wrong> {
        self.entries += 1;
        if self.entries > MAX_ENTRIES {
            return Err((key.to_owned(), format!("found more than {MAX_ENTRIES} entries; that is the most of one type")));
        }
        Ok(())
    }

    fn is_cookie_map(&self, path: &FieldPath) -> bool {
        path.is_whole() && self.fields.get(path.field()).is_some_and(|field| field.kind == FieldKind::CookieMap)
    }
}

const NO_CONTROL: &str = "a header has no control characters";

/// RFC 9110, section 5.5: a field value has no control characters but tab.
fn is_no_header_value(text: &str) -> bool {
    text.bytes().any(|byte| byte.is_ascii_control() && byte != b'\t')
}

/// RFC 9110, section 5.6.2.
const fn is_token(byte: u8) -> bool {
    byte.is_ascii_alphanumeric()
        || matches!(byte, b'!' | b'#' | b'$' | b'%' | b'&' | b'\'' | b'*' | b'+' | b'-' | b'.' | b'^' | b'_' | b'`' | b'|' | b'~')
}

/// An entry that is empty is left out.
fn put(map: &mut BTreeMap<String, String>, name: &str, value: String) {
    if !value.is_empty() {
        map.insert(name.to_owned(), value);
    }
}

fn shown(name: &str) -> String {
    name.chars().take(64).flat_map(char::escape_debug).collect()
}
