//! The reference settings file and the TOML form of values.

use serde_json::Value;

use super::key::Reload;
use super::table::Settings;

/// Text of `config/dragline.toml`: every key, commented out, with meaning, type and default.
pub fn template() -> String {
    let mut text = String::from(
        "# Every setting of Dragline with its default. Take the `# ` off a line to change it.\n\
         # Order, low to high: default, this file, items of CONFIG_WATCH, the spider's own settings, environment, `-s NAME=VALUE`.\n\
         # Times are seconds, sizes are bytes or text such as \"64MiB\"; an empty text means not set.\n\
         # Keys marked \"Live\" take effect in a running crawl when this file or an item of CONFIG_WATCH changes.\n\
         # A text may be, or hold, `${secret:path}`: a secret of the control plane, read when a crawl starts.\n",
    );
    let mut section = "";
    for key in Settings::keys() {
        if key.section() != section {
            section = key.section();
            text.push_str(&format!("\n\n## {section}\n"));
        }
        text.push('\n');
        for line in key.doc().lines() {
            text.push_str(&format!("#: {}\n", line.trim()));
        }
        let live = match key.reload() {
            Reload::Live => " Live.",
            Reload::Restart => "",
        };
        text.push_str(&format!("#: Allowed: {}.{live}\n", key.allowed()));
        match key.default_toml() {
            Some(default) => text.push_str(&format!("# {} = {default}\n", key.name())),
            None => text.push_str(&format!("#: Not set by default. To set it: {} = VALUE\n", key.name())),
        }
    }
    text
}

/// A value as it stands behind `=` in a TOML file. Nothing is the empty text; TOML has no null.
pub(crate) fn toml_text(value: &Value) -> String {
    match value {
        Value::Null => "\"\"".to_owned(),
        Value::Bool(flag) => flag.to_string(),
        Value::Number(number) => number.to_string(),
        Value::String(text) => quoted(text),
        Value::Array(items) => {
            let items: Vec<String> = items.iter().map(toml_text).collect();
            format!("[{}]", items.join(", "))
        }
        Value::Object(map) if map.is_empty() => "{}".to_owned(),
        Value::Object(map) => {
            let fields: Vec<String> = map
                .iter()
                .map(|(name, value)| match value {
                    // The way to switch a component off.
                    Value::Null => format!("{} = false", bare_or_quoted(name)),
                    other => format!("{} = {}", bare_or_quoted(name), toml_text(other)),
                })
                .collect();
            format!("{{ {} }}", fields.join(", "))
        }
    }
}

fn quoted(text: &str) -> String {
    toml::Value::String(text.to_owned()).to_string()
}

fn bare_or_quoted(name: &str) -> String {
    let bare = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '_';
    if !name.is_empty() && name.chars().all(bare) { name.to_owned() } else { quoted(name) }
}
