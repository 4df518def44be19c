//! The direction of a control's text, which `dirname` sends along (WHATWG HTML 3.2.6.4, "directionality").

use super::super::selector::{NodeKind, NodeRef};

/// Nodes that are looked at for a letter with a direction.
const MOST_NODES: usize = 1000;

/// `ltr` or `rtl`.
pub(super) fn of(control: NodeRef<'_>) -> &'static str {
    let is_input = control.name() == Some("input");
    let own = |node: NodeRef<'_>| node.attr("dir").map(str::to_ascii_lowercase);
    match own(control).as_deref() {
        Some("ltr") => return "ltr",
        Some("rtl") => return "rtl",
        Some("auto") if is_input => return by_first_letter([control.attr("value").unwrap_or_default()]),
        Some("auto") => return by_first_letter([control.text().as_str()]),
        // A telephone number is written from left to right unless the page says otherwise.
        _ if control.attr("type").is_some_and(|kind| kind.eq_ignore_ascii_case("tel")) => return "ltr",
        _ => {}
    }
    for around in control.ancestors() {
        match own(around).as_deref() {
            Some("ltr") => return "ltr",
            Some("rtl") => return "rtl",
            Some("auto") => {
                let texts = around.descendants().take(MOST_NODES).filter(|node| node.kind() == NodeKind::Text);
                return by_first_letter(texts.filter_map(NodeRef::data));
            }
            _ => {}
        }
    }
    "ltr"
}

/// By the first letter that has a direction.
fn by_first_letter<'t>(texts: impl IntoIterator<Item = &'t str>) -> &'static str {
    let letter = texts.into_iter().flat_map(str::chars).find(|c| c.is_alphabetic());
    if letter.is_some_and(is_right_to_left) { "rtl" } else { "ltr" }
}

/// The blocks of Unicode whose letters have the bidirectional classes R and AL.
fn is_right_to_left(c: char) -> bool {
    matches!(u32::from(c), 0x0590..=0x08ff | 0xfb1d..=0xfdff | 0xfe70..=0xfeff | 0x1_0800..=0x1_0fff | 0x1_e800..=0x1_efff)
}
