//! Small text forms shared by the pages: escaping, slugs, money, HTML assembly.

/// Appends formatted text to a `String`.
macro_rules! put {
    ($out:expr, $($arg:tt)*) => {{
        use std::fmt::Write as _;
        // Writing to a String cannot fail.
        let _ = write!($out, $($arg)*);
    }};
}
pub(crate) use put;

/// The text with the five characters that mean something in HTML written as references.
pub(crate) fn escape(text: &str) -> String {
    if !text.contains(['&', '<', '>', '"', '\'']) {
        return text.to_owned();
    }
    let mut out = String::with_capacity(text.len() + 16);
    for c in text.chars() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\'' => out.push_str("&#39;"),
            c => out.push(c),
        }
    }
    out
}

/// Lower-case ASCII letters and digits, everything else a single hyphen. The accented letters of our names lose their accent.
pub(crate) fn slug(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        if c.is_ascii_alphanumeric() {
            out.push(c.to_ascii_lowercase());
        } else if matches!(c, 'é' | 'è' | 'ë') {
            out.push('e');
        } else if c != '’' && !out.is_empty() && !out.ends_with('-') {
            out.push('-');
        }
    }
    while out.ends_with('-') {
        out.pop();
    }
    out
}

/// Pounds and pence without the sign: `1299` is `12.99`.
pub(crate) fn pounds(pence: u32) -> String {
    format!("{}.{:02}", pence / 100, pence % 100)
}

/// The text with its first letter in upper case.
pub(crate) fn capital(text: &str) -> String {
    let mut chars = text.chars();
    chars.next().map_or_else(String::new, |first| first.to_uppercase().chain(chars).collect())
}

/// The word after its indefinite article: `An Hour`, `A House`.
pub(crate) fn with_article(word: &str) -> String {
    let silent = word.starts_with("Ho") && (word.starts_with("Hour") || word.starts_with("Honest"));
    let article = if silent || word.starts_with(['A', 'E', 'I', 'O', 'U']) { "An" } else { "A" };
    format!("{article} {word}")
}

/// The words of a phrase in upper case as in a title, small words excepted.
pub(crate) fn title_case(phrase: &str) -> String {
    let small = ["a", "an", "and", "at", "between", "for", "in", "of", "on", "the", "to", "who", "with"];
    let words = phrase.split(' ').map(|word| if small.contains(&word) { word.to_owned() } else { capital(word) });
    words.collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn markup_in_a_text_is_written_as_references() {
        assert_eq!(escape("<a href=\"x\">'&"), "&lt;a href=&quot;x&quot;&gt;&#39;&amp;");
    }

    #[test]
    fn a_slug_is_plain_ascii_with_single_hyphens() {
        assert_eq!(slug("The Keeper’s  Café & Other Stories!"), "the-keepers-cafe-other-stories");
        assert_eq!(slug("—"), "");
    }

    #[test]
    fn pence_become_pounds() {
        assert_eq!([pounds(5), pounds(1_299), pounds(10_000)], ["0.05", "12.99", "100.00"]);
    }

    #[test]
    fn titles_read_like_titles() {
        assert_eq!(title_case("canals and the people who dug them"), "Canals and the People who Dug Them");
        assert_eq!(["Hour", "House", "Unlikely", "Bell"].map(with_article), ["An Hour", "A House", "An Unlikely", "A Bell"]);
    }

    #[test]
    fn only_the_first_letter_grows() {
        assert_eq!([capital("élan vital"), capital("")], ["Élan vital", ""]);
    }
}
