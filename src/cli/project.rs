//! Files of a crawl project: names that fit, templates, and the list of spiders.
//!
//! Pure text: what is written where is the business of `new` and `genspider`.

/// A spider's name in its three forms.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct SpiderName {
    /// As the command line calls it: `my-shop`.
    pub(crate) name: String,
    /// Its module and file: `my_shop`.
    pub(crate) module: String,
    /// Its type: `MyShop`.
    pub(crate) type_name: String,
}

/// Words of the language that no module may be called (Rust reference, keywords), and names the template uses itself.
const TAKEN: &[&str] = &[
    "abstract", "app", "as", "async", "await", "become", "box", "break", "const", "continue", "crate", "do", "dyn", "else",
    "enum", "extern", "false", "final", "fn", "for", "gen", "if", "impl", "in", "let", "loop", "macro", "match", "mod", "move",
    "mut", "override", "page", "priv", "pub", "ref", "return", "self", "static", "step", "struct", "super", "trait", "true",
    "try", "type", "typeof", "unsafe", "use", "virtual", "where", "while", "yield",
];

impl SpiderName {
    /// Reads a name: letters, digits, `-` and `_`, a letter first.
    ///
    /// # Errors
    /// A sentence that says what is allowed.
    pub(crate) fn parse(name: &str) -> Result<Self, String> {
        let fits = name.starts_with(|c: char| c.is_ascii_alphabetic())
            && name.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '-' | '_'))
            && name.len() <= 60;
        let module = name.replace('-', "_").to_ascii_lowercase();
        if !fits || TAKEN.contains(&module.as_str()) {
            return Err(format!(
                "{name:?} cannot name a spider; use up to 60 letters, digits, `-` and `_`, a letter first, and no word of Rust"
            ));
        }
        let type_name = module.split('_').map(capital).collect();
        Ok(Self { name: name.to_owned(), module, type_name })
    }
}

/// Puts values in the place of `{{name}}`.
pub(crate) fn fill(template: &str, values: &[(&str, &str)]) -> String {
    values.iter().fold(template.to_owned(), |text, (name, value)| text.replace(&format!("{{{{{name}}}}}"), value))
}

/// Adds a spider to `spiders/mod.rs`; a spider that is in it stays in it once.
///
/// # Errors
/// When there is no `App::new()` to add it to: a sentence with the lines to add by hand.
pub(crate) fn register(text: &str, spider: &SpiderName) -> Result<String, String> {
    let module = format!("mod {};", spider.module);
    let entry = format!(".spider::<{}::{}>()", spider.module, spider.type_name);
    let mut text = text.to_owned();
    if !text.lines().any(|line| declares(line, &spider.module)) {
        let at = end_of_modules(&text);
        text.insert_str(at, &format!("{module}\n"));
    }
    if !text.contains(&entry) {
        let last = text.rfind(".spider::<").and_then(|at| Some(at + text.get(at..)?.find(">()")? + ">()".len()));
        let first = || text.find("App::new()").map(|at| at + "App::new()".len());
        let Some(at) = last.or_else(first) else {
            return Err(format!("no `App::new()` was found; add `{module}` and `{entry}` by hand"));
        };
        text.insert_str(at, &format!("\n        {entry}"));
    }
    Ok(text)
}

fn declares(line: &str, module: &str) -> bool {
    let line = line.trim();
    let declaration = line.strip_prefix("pub(crate) ").or_else(|| line.strip_prefix("pub ")).unwrap_or(line);
    declaration.strip_prefix("mod ").and_then(|rest| rest.strip_suffix(';')).is_some_and(|name| name.trim() == module)
}

/// Behind the last module declaration, or else behind the comments and blank lines at the top.
fn end_of_modules(text: &str) -> usize {
    let mut at = 0;
    let (mut modules, mut top, mut in_top) = (None, 0, true);
    for line in text.split_inclusive('\n') {
        at += line.len();
        let trimmed = line.trim();
        let declaration = trimmed.strip_prefix("pub(crate) ").or_else(|| trimmed.strip_prefix("pub ")).unwrap_or(trimmed);
        if declaration.starts_with("mod ") && declaration.ends_with(';') && line.ends_with('\n') {
            modules = Some(at);
        }
        in_top &= (trimmed.is_empty() || trimmed.starts_with("//!") || trimmed.starts_with("#![")) && line.ends_with('\n');
        if in_top {
            top = at;
        }
    }
    modules.unwrap_or(top)
}

fn capital(word: &str) -> String {
    let mut letters = word.chars();
    letters.next().map_or_else(String::new, |first| first.to_ascii_uppercase().to_string() + letters.as_str())
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing)]
    use super::*;

    const MOD: &str = include_str!("templates/spiders_mod.rs.txt");

    #[test]
    fn a_name_has_three_forms() {
        for (name, module, type_name) in
            [("news", "news", "News"), ("my-shop_2", "my_shop_2", "MyShop2"), ("eBay", "ebay", "Ebay")]
        {
            let parsed = SpiderName::parse(name).unwrap();
            assert_eq!((parsed.module.as_str(), parsed.type_name.as_str()), (module, type_name));
        }
    }

    #[test]
    fn names_that_make_no_module_are_refused() {
        for name in ["", "2shop", "a b", "a/b", "mod", "Type", "yield", "naïve", "../x", "_x"] {
            assert!(SpiderName::parse(name).unwrap_err().contains("letters"), "{name}");
        }
    }

    #[test]
    fn a_spider_is_registered_once() {
        let news = SpiderName::parse("news").unwrap();
        let once = register(MOD, &news).unwrap();
        assert!(once.contains("mod books;\nmod news;\n"), "{once}");
        assert!(once.contains(".spider::<books::Books>()\n        .spider::<news::News>()\n"), "{once}");
        assert_eq!(register(&once, &news).unwrap(), once);
    }

    #[test]
    fn registration_bears_a_list_that_was_formatted_or_emptied() {
        let news = SpiderName::parse("news").unwrap();
        let one_line = "//! Mine.\n\npub(crate) fn app() -> dragline::App {\n    dragline::App::new().pipeline(\"x\", make)\n}\n";
        let text = register(one_line, &news).unwrap();
        assert!(text.starts_with("//! Mine.\n\nmod news;\npub(crate) fn app()"), "{text}");
        assert!(text.contains("App::new()\n        .spider::<news::News>().pipeline("), "{text}");
        let chained = "mod a;\nfn app() -> dragline::App {\n    dragline::App::new().spider::<a::A>()\n}\n";
        assert!(register(chained, &news).unwrap().contains("mod a;\nmod news;\n"));
        let error = register("fn nothing() {}\n", &news).unwrap_err();
        assert!(error.contains("mod news;") && error.contains(".spider::<news::News>()"), "{error}");
    }

    #[test]
    fn a_template_is_filled() {
        assert_eq!(fill("{{a}}-{{b}}-{{a}} {c}", &[("a", "1"), ("b", "2")]), "1-2-1 {c}");
    }
}
