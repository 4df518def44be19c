//! A request from a command line of curl, as the developer tools of browsers copy it.
//!
//! Options about how curl itself behaves (output, time limits, certificates, redirects) are passed over: settings decide these.
//! What a crawl cannot do as curl does is an error that names the option.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use encoding_rs::UTF_8;
use http::Method;
use serde::Serialize;
use url::Url;

use super::{Request, RequestError};
use crate::web::form_data::{self, Entry, URL_ENCODED};

/// A command line that gives no request. No value of it is told, as there may be secrets in it.
#[derive(Debug, Clone, thiserror::Error)]
#[non_exhaustive]
pub enum CurlError {
    /// It is no command line of curl.
    #[error("this is no command line of curl: {0}; copy it from the browser as \"cURL (bash)\"")]
    Command(&'static str),
    /// An option has no meaning here.
    #[error("the option {option} of curl {why}")]
    Option {
        /// The option.
        option: String,
        /// What is wrong with it.
        why: &'static str,
    },
    /// The request cannot be made.
    #[error(transparent)]
    Request(#[from] RequestError),
}

/// Options that are passed over, with a value behind them.
const PASSED_WITH_VALUE: &[&str] = &[
    "-o",
    "--output",
    "-m",
    "--max-time",
    "--connect-timeout",
    "--retry",
    "--retry-delay",
    "--max-redirs",
    "--cacert",
    "-w",
    "--write-out",
    "-c",
    "--cookie-jar",
    "-D",
    "--dump-header",
    "--limit-rate",
    "--ciphers",
    "--tls-max",
];
/// Options that are passed over, without one.
const PASSED: &[&str] = &[
    "--compressed",
    "-s",
    "--silent",
    "-S",
    "--show-error",
    "-k",
    "--insecure",
    "-L",
    "--location",
    "-v",
    "--verbose",
    "-i",
    "--include",
    "-f",
    "--fail",
    "-g",
    "--globoff",
    "-#",
    "--progress-bar",
    "-N",
    "--no-buffer",
    "--http1.1",
    "--http1.0",
    "--http2",
    "--http2-prior-knowledge",
    "--http3",
    "-4",
    "-6",
    "--tlsv1.2",
    "--tlsv1.3",
    "-O",
    "--remote-name",
    "--path-as-is",
    "-q",
];
/// Short options that may have their value directly behind them: `-XPOST`.
const SHORT_WITH_VALUE: &str = "XHdbuAeFomcwD";

/// What was read so far.
#[derive(Default)]
struct Command {
    url: Option<String>,
    method: Option<String>,
    headers: Vec<(String, String)>,
    cookies: Vec<(String, String)>,
    data: Vec<String>,
    parts: Vec<Entry>,
    is_json: bool,
    data_in_query: bool,
    is_head: bool,
}

impl Request {
    /// The request that a command line of curl makes: URL, method, headers, cookies and body.
    ///
    /// ```
    /// use dragline::api::Request;
    ///
    /// let copied = r#"curl 'https://shop.example/api' -H 'Accept: application/json' -b 'lang=en' --data-raw '{"page":2}' --compressed"#;
    /// let request = Request::from_curl(copied, &()).unwrap();
    /// assert_eq!((request.method().as_str(), request.body_bytes()), ("POST", &br#"{"page":2}"#[..]));
    /// ```
    ///
    /// # Errors
    /// When it is no command line of curl, or asks for what a crawl does not do: reading files, or a proxy of its own.
    pub fn from_curl(command: &str, step: &impl Serialize) -> Result<Self, CurlError> {
        let mut words = words(command).ok_or(CurlError::Command("a quote is not closed"))?.into_iter();
        let is_curl = words.next().is_some_and(|word| word == "curl" || word.ends_with("/curl"));
        if !is_curl {
            return Err(CurlError::Command("it does not begin with curl"));
        }
        let mut read = Command::default();
        while let Some(word) = words.next() {
            read.take(word, &mut words)?;
        }
        read.request(step)
    }
}

impl Command {
    fn take(&mut self, word: String, rest: &mut impl Iterator<Item = String>) -> Result<(), CurlError> {
        if !word.starts_with('-') || word == "-" {
            self.url.get_or_insert(word);
            return Ok(());
        }
        let (option, joined) = split_option(&word);
        if PASSED.contains(&option) {
            return Ok(());
        }
        let bad = |why| CurlError::Option { option: option.to_owned(), why };
        match option {
            "-G" | "--get" => self.data_in_query = true,
            "-I" | "--head" => self.is_head = true,
            _ => {
                let mut value = || joined.map(str::to_owned).or_else(|| rest.next()).ok_or_else(|| bad("has no value"));
                match option {
                    "--url" => self.url = Some(value()?),
                    "-X" | "--request" => self.method = Some(value()?),
                    "-H" | "--header" => self.header(&value()?),
                    "-A" | "--user-agent" => self.headers.push(("user-agent".to_owned(), value()?)),
                    "-e" | "--referer" => self.headers.push(("referer".to_owned(), value()?)),
                    "-u" | "--user" => {
                        self.headers.push(("authorization".to_owned(), format!("Basic {}", BASE64.encode(value()?))));
                    }
                    "-b" | "--cookie" => {
                        let value = value()?;
                        if !value.contains('=') {
                            return Err(bad("reads cookies from a file; write them as name=value"));
                        }
                        self.cookies(&value);
                    }
                    "--data-raw" => self.data.push(value()?),
                    "-d" | "--data" | "--data-ascii" | "--data-binary" | "--json" => {
                        let value = value()?;
                        if value.starts_with('@') {
                            return Err(bad("reads a file; write its content in place of it"));
                        }
                        self.is_json |= option == "--json";
                        self.data.push(if matches!(option, "--data-binary" | "--json") {
                            value
                        } else {
                            value.replace(['\r', '\n'], "")
                        });
                    }
                    "--data-urlencode" => {
                        self.encoded(&value()?).ok_or_else(|| bad("reads a file; write its content in place of it"))?
                    }
                    "-F" | "--form" | "--form-string" => {
                        let value = value()?;
                        let (name, text) = value.split_once('=').ok_or_else(|| bad("is not name=value"))?;
                        if option != "--form-string" && text.starts_with(['@', '<']) {
                            return Err(bad("reads a file; make the request by a form, with `attach`"));
                        }
                        self.parts.push(Entry::new(name, text));
                    }
                    "-x" | "--proxy" | "-U" | "--proxy-user" => {
                        return Err(bad("names a proxy; the lease of a request has its own"));
                    }
                    passed if PASSED_WITH_VALUE.contains(&passed) => drop(value()?),
                    _ => return Err(bad("is not known here; leave it out if the request does not need it")),
                }
            }
        }
        Ok(())
    }

    fn header(&mut self, line: &str) {
        // `Name:` takes a header of curl's away, `Name;` sends an empty one.
        let (name, value) = match line.split_once(':') {
            Some((name, value)) => (name.trim(), value.trim()),
            None => (line.trim_end_matches(';').trim(), ""),
        };
        if name.eq_ignore_ascii_case("cookie") {
            self.cookies(value);
        } else if !value.is_empty() || line.ends_with(';') {
            self.headers.push((name.to_owned(), value.to_owned()));
        }
    }

    fn cookies(&mut self, line: &str) {
        let pairs = line.split(';').filter_map(|pair| pair.trim().split_once('='));
        self.cookies.extend(pairs.map(|(name, value)| (name.to_owned(), value.to_owned())));
    }

    /// `content`, `=content` or `name=content`; the content is encoded.
    fn encoded(&mut self, value: &str) -> Option<()> {
        let (name, content) = match value.split_once('=') {
            Some((name, content)) => (name, content),
            None if value.contains('@') => return None,
            None => ("", value),
        };
        let content: String = url::form_urlencoded::byte_serialize(content.as_bytes()).collect();
        self.data.push(if name.is_empty() { content } else { format!("{name}={content}") });
        Some(())
    }

    fn request<S: Serialize>(self, step: &S) -> Result<Request, CurlError> {
        let text = self.url.ok_or(CurlError::Command("there is no URL"))?;
        // Curl takes a host alone for one of http.
        let text = if text.contains("://") { text } else { format!("http://{text}") };
        let mut url = Url::parse(&text).map_err(|error| RequestError::Url { url: text, reason: error.to_string() })?;
        let data = (!self.data.is_empty()).then(|| self.data.join("&"));
        let (query, body) = if self.data_in_query { (data, None) } else { (None, data) };
        if let Some(query) = query {
            let before = url.query().filter(|before| !before.is_empty()).map(|before| format!("{before}&")).unwrap_or_default();
            url.set_query(Some(&format!("{before}{query}")));
        }
        let has_body = body.is_some() || !self.parts.is_empty();
        let method = match &self.method {
            Some(name) => Method::from_bytes(name.as_bytes()).map_err(|_| CurlError::Command("the method is none"))?,
            None if self.is_head => Method::HEAD,
            None if has_body => Method::POST,
            None => Method::GET,
        };
        let mut request = Request::to_url(url, step)?;
        request.set_method(method);
        if !self.parts.is_empty() {
            let (body, kind) = form_data::multipart(&self.parts, UTF_8);
            request.body(body).header("content-type", &kind)?;
        } else if let Some(body) = body {
            request.body(body).header("content-type", if self.is_json { "application/json" } else { URL_ENCODED })?;
        }
        if self.is_json {
            request.header("accept", "application/json")?;
        }
        for (name, value) in &self.headers {
            // The boundary that was copied is not that of this body.
            if self.parts.is_empty() || !name.eq_ignore_ascii_case("content-type") {
                request.header(name, value)?;
            }
        }
        for (name, value) in self.cookies {
            request.cookie(name, value);
        }
        Ok(request)
    }
}

/// An option and the value that is joined to it: `-XPOST`, `--request=POST`.
fn split_option(word: &str) -> (&str, Option<&str>) {
    if word.starts_with("--") {
        return word.split_once('=').map_or((word, None), |(option, value)| (option, Some(value)));
    }
    let takes_value = word.chars().nth(1).is_some_and(|letter| SHORT_WITH_VALUE.contains(letter));
    match word.split_at_checked(2) {
        Some((option, value)) if takes_value && !value.is_empty() => (option, Some(value)),
        _ => (word, None),
    }
}

/// The words of a command line as a POSIX shell splits them, with `$'…'` of bash; `None` for a quote that is not closed.
fn words(command: &str) -> Option<Vec<String>> {
    let mut words = Vec::new();
    let mut word: Option<String> = None;
    let mut chars = command.chars().peekable();
    while let Some(c) = chars.next() {
        match c {
            ' ' | '\t' | '\n' | '\r' => words.extend(word.take()),
            '\\' => match chars.next() {
                // A line that goes on.
                Some('\n') => {}
                Some('\r') if chars.peek() == Some(&'\n') => drop(chars.next()),
                Some(other) => word.get_or_insert_default().push(other),
                None => {}
            },
            '\'' => {
                let word = word.get_or_insert_default();
                loop {
                    match chars.next()? {
                        '\'' => break,
                        other => word.push(other),
                    }
                }
            }
            '"' => {
                let word = word.get_or_insert_default();
                loop {
                    match chars.next()? {
                        '"' => break,
                        '\\' => match chars.next()? {
                            '\n' => {}
                            escaped @ ('"' | '\\' | '$' | '`') => word.push(escaped),
                            other => word.extend(['\\', other]),
                        },
                        other => word.push(other),
                    }
                }
            }
            '$' if chars.peek() == Some(&'\'') => {
                chars.next();
                ansi_quoted(&mut chars, word.get_or_insert_default())?;
            }
            other => word.get_or_insert_default().push(other),
        }
    }
    words.extend(word);
    Some(words)
}

/// The rest of `$'…'`.
fn ansi_quoted(chars: &mut std::iter::Peekable<std::str::Chars<'_>>, word: &mut String) -> Option<()> {
    loop {
        let escaped = match chars.next()? {
            '\'' => return Some(()),
            '\\' => chars.next()?,
            other => {
                word.push(other);
                continue;
            }
        };
        let digits = match escaped {
            'x' => 2,
            'u' => 4,
            'U' => 8,
            _ => 0,
        };
        if digits > 0 {
            let mut number = 0;
            for _ in 0..digits {
                let Some(digit) = chars.peek().and_then(|c| c.to_digit(16)) else { break };
                number = number * 16 + digit;
                chars.next();
            }
            word.push(char::from_u32(number).unwrap_or(char::REPLACEMENT_CHARACTER));
            continue;
        }
        word.push(match escaped {
            'n' => '\n',
            't' => '\t',
            'r' => '\r',
            '0' => '\0',
            other => other,
        });
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing)]
    use proptest::prelude::*;

    use super::*;

    fn made(command: &str) -> Request {
        Request::from_curl(command, &()).unwrap_or_else(|error| panic!("{command}: {error}"))
    }

    #[test]
    fn a_command_copied_from_a_browser_is_a_request() {
        let request = made(
            "curl 'https://shop.example/api?x=1' \\\n  -X 'PUT' -H 'accept: */*' \\\r\n -H 'cookie: a=1; b=2=3' -b 'c=4' \\\n  -H 'x-empty;' -H 'gone:' --data-raw $'{\"q\":\"it\\'s \\u00e9\\n\"}' --compressed --insecure -o out.html",
        );
        assert_eq!((request.method().as_str(), request.url().as_str()), ("PUT", "https://shop.example/api?x=1"));
        assert_eq!(std::str::from_utf8(request.body_bytes()).unwrap(), "{\"q\":\"it's \u{e9}\n\"}");
        let cookies = [("a", "1"), ("b", "2=3"), ("c", "4")].map(|(name, value)| (name.to_owned(), value.to_owned()));
        assert_eq!(request.cookies(), cookies);
        let headers = request.headers().unwrap();
        assert_eq!((headers["accept"].as_bytes(), headers["x-empty"].as_bytes()), (&b"*/*"[..], &b""[..]));
        assert!(!headers.contains_key("gone"));
        assert_eq!(headers["content-type"], "application/x-www-form-urlencoded");
    }

    #[test]
    fn data_goes_where_curl_puts_it() {
        for (command, method, url, body, kind) in [
            ("curl a.test/x", "GET", "http://a.test/x", "", None),
            (
                "curl -d a=1 --data \"b=\\\"2\\\"\" https://a.test",
                "POST",
                "https://a.test/",
                "a=1&b=\"2\"",
                Some("application/x-www-form-urlencoded"),
            ),
            ("curl -G -d q=1 --data-urlencode 'k=a b&' https://a.test/?z=0", "GET", "https://a.test/?z=0&q=1&k=a+b%26", "", None),
            ("curl --json '{}' --url https://a.test", "POST", "https://a.test/", "{}", Some("application/json")),
            ("curl -I https://a.test", "HEAD", "https://a.test/", "", None),
            ("curl -XDELETE -HX:1 https://a.test", "DELETE", "https://a.test/", "", None),
            ("curl -d '' https://a.test", "POST", "https://a.test/", "", Some("application/x-www-form-urlencoded")),
        ] {
            let request = made(command);
            let found = request.headers().and_then(|headers| headers.get("content-type")).map(|kind| kind.to_str().unwrap());
            assert_eq!((request.method().as_str(), request.url().as_str(), found), (method, url, kind), "{command}");
            assert_eq!(std::str::from_utf8(request.body_bytes()).unwrap(), body, "{command}");
        }
        let form = made("curl -F a=1 -H 'content-type: multipart/form-data; boundary=x' https://a.test");
        let kind = form.headers().unwrap()["content-type"].to_str().unwrap().to_owned();
        assert!(kind.contains("boundary=----dragline") && form.body_bytes().starts_with(b"------dragline"), "{kind}");
        assert_eq!(made("curl -u me:pw https://a.test").headers().unwrap()["authorization"], "Basic bWU6cHc=");
    }

    #[test]
    fn what_a_crawl_does_not_do_is_named_without_its_value() {
        for (command, part) in [
            ("wget https://a.test", "begin with curl"),
            ("curl 'https://a.test", "not closed"),
            ("curl -H 'x: canary'", "no URL"),
            ("curl -d @canary https://a.test", "-d of curl reads a file"),
            ("curl -b canary https://a.test", "-b of curl reads cookies"),
            ("curl -x http://canary:1 https://a.test", "the lease"),
            ("curl --resolve canary https://a.test", "--resolve"),
            ("curl https://a.test -H", "-H of curl has no value"),
            ("curl https://a.test -H 'b d: canary'", "header"),
        ] {
            let error = Request::from_curl(command, &()).unwrap_err().to_string();
            assert!(error.contains(part) && !error.contains("canary"), "{command}: {error}");
        }
    }

    proptest! {
        #[test]
        fn any_command_is_read_or_refused(text in "(curl |-[A-Za-z]|--data |'|\"|\\\\|\\$'|u00|=|@|[a-z:/. \n]){0,30}") {
            let _ = Request::from_curl(&format!("curl {text}"), &());
        }
    }
}
