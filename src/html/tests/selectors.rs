//! Random CSS selectors over the names the soup is made of.

use super::soup::Rng;

const TYPES: &[&str] = &["*", "div", "p", "b", "a", "i", "td", "tr", "table", "span", "li", "body", "html", "svg", "option", "h1", "x", "title"];
const SIMPLE: &[&str] = &[
    ".x", "#x", ".a", "#a", "[a]", "[id]", "[class=x]", "[type=hidden i]", "[a='']", "[href^='http']", "[id$=x]", "[class*=x]", "[a~=a]",
    "[a|=x]", ":first-child", ":last-child", ":only-child", ":first-of-type", ":last-of-type", ":only-of-type", ":empty",
    ":root", ":nth-child(2n+1)", ":nth-child(3)", ":nth-last-child(2)", ":nth-of-type(2n)", ":nth-last-of-type(-n+2)", ":nth-child(odd)",
];

/// One to three complex selectors.
pub(super) fn list(rng: &mut Rng) -> String {
    let count = if rng.one_in(4) { 1 + rng.below(3) } else { 1 };
    (0..count).map(|_| complex(rng, 2)).collect::<Vec<_>>().join(", ")
}

fn complex(rng: &mut Rng, depth: usize) -> String {
    let mut selector = compound(rng, depth);
    for _ in 0..rng.below(3) {
        selector.push_str(rng.pick(&[" ", " ", " > ", " > ", " + ", " ~ "]));
        selector.push_str(&compound(rng, depth));
    }
    selector
}

fn compound(rng: &mut Rng, depth: usize) -> String {
    let mut compound = if rng.one_in(4) { String::new() } else { rng.pick(TYPES).to_owned() };
    let count = rng.below(3);
    for _ in 0..count {
        if depth > 0 && rng.one_in(4) {
            let inner = complex(rng, depth - 1);
            let other = complex(rng, depth - 1);
            compound.push_str(&match rng.below(5) {
                0 => format!(":not({inner})"),
                1 => format!(":is({inner}, {other})"),
                2 => format!(":where({inner})"),
                3 => format!(":not({inner}, {other})"),
                _ => format!(":has({}{inner})", rng.pick(&["", "> ", "+ ", "~ "])),
            });
        } else {
            compound.push_str(rng.pick(SIMPLE));
        }
    }
    if compound.is_empty() { "*".to_owned() } else { compound }
}
