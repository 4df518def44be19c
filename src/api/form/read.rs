//! Reads the controls of forms from a page: whose they are, what they hold, what is disabled (WHATWG HTML 4.10).
//!
//! One walk through the page whatever it holds; the content of a `template` is no part of it.

use std::collections::{HashMap, HashSet};

use super::super::selector::{NodeKind, NodeRef};
use super::control::{Button, Choice, Control, Kind};
use super::direction;
use super::value::{InputType, number};
use crate::html::arena::NodeId;
use crate::html::{Document, Namespace};
use crate::web::form_data::Upload;

/// The disabled `fieldset`s of a page, each with its first `legend`.
type Disabling = HashMap<NodeId, Option<NodeId>>;

/// Characters of a button's text that are kept.
const BUTTON_TEXT: usize = 200;

/// What one walk through a page finds.
pub(super) struct Forms<'p> {
    /// The forms with their controls, both in document order.
    pub(super) forms: Vec<(NodeRef<'p>, Vec<Control>)>,
    /// The first node with each id.
    named: HashMap<&'p str, NodeRef<'p>>,
}

impl<'p> Forms<'p> {
    /// The form that a node is or belongs to. The page is asked for an id once, not once for each node.
    pub(super) fn owner(&self, node: NodeRef<'p>) -> Option<NodeRef<'p>> {
        if node.is_form() { Some(node) } else { owner(node, &self.named) }
    }
}

fn owner<'p>(node: NodeRef<'p>, named: &HashMap<&str, NodeRef<'p>>) -> Option<NodeRef<'p>> {
    node.form_owner_among(|id| named.get(id).copied())
}

/// The forms of a page.
pub(super) fn forms(document: &Document) -> Forms<'_> {
    let mut forms: Vec<(NodeRef<'_>, Vec<Control>)> = Vec::new();
    let mut places = HashMap::new();
    let mut named: HashMap<&str, NodeRef<'_>> = HashMap::new();
    let mut controls = Vec::new();
    let mut disabling = Disabling::new();
    walk(document.root(), |node| {
        if let Some(id) = node.attr("id").filter(|id| !id.is_empty()) {
            named.entry(id).or_insert(node);
        }
        if node.is_form() {
            places.insert(node.id, forms.len());
            forms.push((node, Vec::new()));
        } else if is_control(node) {
            controls.push(node);
        } else if is_html(node, &["fieldset"]) && node.attr("disabled").is_some() {
            disabling.insert(node.id, node.children().find(|child| is_html(*child, &["legend"])).map(|legend| legend.id));
        }
        // What is offered for completion is no field, and nothing in a list is.
        !matches!(node.name(), Some("template" | "datalist")) || node.namespace() != Some(Namespace::Html)
    });
    for node in controls {
        let list = owner(node, &named).and_then(|form| places.get(&form.id)).and_then(|place| forms.get_mut(*place));
        if let (Some((_, list)), Some(control)) = (list, control(node, &disabling)) {
            list.push(control);
        }
    }
    for (_, controls) in &mut forms {
        keep_last_checked(controls);
    }
    Forms { forms, named }
}

/// All below a node, in document order; what lies in a node is passed over where `enter` says no.
fn walk<'d>(root: NodeRef<'d>, mut enter: impl FnMut(NodeRef<'d>) -> bool) {
    let mut next = root.first_child();
    while let Some(node) = next {
        let below = if enter(node) { node.first_child() } else { None };
        next = below.or_else(|| {
            let around = std::iter::successors(Some(node), |node| node.parent());
            around.take_while(|node| *node != root).find_map(|node| node.next_sibling())
        });
    }
}

fn is_html(node: NodeRef<'_>, names: &[&str]) -> bool {
    node.namespace() == Some(Namespace::Html) && node.name().is_some_and(|name| names.contains(&name))
}

fn is_control(node: NodeRef<'_>) -> bool {
    is_html(node, &["input", "button", "select", "textarea"])
}

fn control(node: NodeRef<'_>, disabling: &Disabling) -> Option<Control> {
    let name = node.attr("name").unwrap_or_default().to_owned();
    let is_disabled = node.attr("disabled").is_some() || is_in_disabled(node, disabling);
    let kind = match node.name()? {
        "textarea" => Kind::Text { value: node.text(), input: InputType::Textarea },
        "select" => select(node),
        "button" => match node.attr("type").map(str::to_ascii_lowercase).as_deref() {
            Some("button" | "reset") => return None,
            _ => button(node, false, is_disabled),
        },
        _ => input(node, &name, is_disabled)?,
    };
    let can_have_direction = match &kind {
        Kind::Text { input, .. } => {
            matches!(input, InputType::Textarea | InputType::Hidden | InputType::Line | InputType::Address)
        }
        Kind::Button(button) => !button.is_image && node.name() == Some("input"),
        _ => false,
    };
    let direction = node
        .attr("dirname")
        .filter(|dirname| can_have_direction && !dirname.is_empty())
        .map(|dirname| (dirname.to_owned(), direction::of(node)));
    Some(Control { name, is_disabled, kind, direction })
}

fn input(node: NodeRef<'_>, name: &str, is_disabled: bool) -> Option<Kind> {
    let kind = node.attr("type").unwrap_or_default().to_ascii_lowercase();
    let value = node.attr("value");
    let of = |name: &str| node.attr(name).and_then(number);
    let input = match kind.as_str() {
        "button" | "reset" => return None,
        "submit" => return Some(button(node, false, is_disabled)),
        "image" => return Some(button(node, true, is_disabled)),
        "file" => return Some(Kind::File(vec![Upload::default()])),
        "checkbox" | "radio" => {
            let value = value.unwrap_or("on").to_owned();
            let is_checked = node.attr("checked").is_some();
            let is_box = kind == "checkbox";
            return Some(if is_box { Kind::Checkbox { value, is_checked } } else { Kind::Radio { value, is_checked } });
        }
        "hidden" if name.eq_ignore_ascii_case("_charset_") => return Some(Kind::Charset),
        "hidden" => InputType::Hidden,
        "url" | "email" => InputType::Address,
        "number" => InputType::Number,
        "range" => {
            let any_step = node.attr("step").is_some_and(|step| step.eq_ignore_ascii_case("any"));
            let step = (!any_step).then(|| of("step").filter(|step| *step > 0.0).unwrap_or(1.0));
            InputType::Range { min: of("min").unwrap_or(0.0), max: of("max").unwrap_or(100.0), step }
        }
        "color" => InputType::Color,
        "date" => InputType::Date,
        "month" => InputType::Month,
        "week" => InputType::Week,
        "time" => InputType::Time,
        "datetime-local" => InputType::LocalTime,
        _ => InputType::Line,
    };
    Some(Kind::Text { value: input.sanitized(value.unwrap_or_default()), input })
}

fn button(node: NodeRef<'_>, is_image: bool, is_disabled: bool) -> Kind {
    let attr = |name: &str| node.attr(name).unwrap_or_default();
    let value = attr("value").to_owned();
    let text = match node.name() {
        Some("button") => collapsed(&first_text(node)),
        _ if is_image => collapsed(attr("alt")),
        _ => collapsed(&value),
    };
    let attrs = node.attrs().map(|(name, value)| (name.to_owned(), value.to_owned())).collect();
    Kind::Button(Button { name: attr("name").to_owned(), value, text, is_image, is_disabled, attrs })
}

/// The options of a list, and which of them are selected when the page is new (4.10.7, "selectedness setting algorithm").
fn select(node: NodeRef<'_>) -> Kind {
    let mut choices: Vec<Choice> = Vec::new();
    walk(node, |child| {
        if is_html(child, &["option"]) {
            let around = child.ancestors().take_while(|around| *around != node);
            let in_disabled =
                around.filter(|around| is_html(*around, &["optgroup"])).any(|group| group.attr("disabled").is_some());
            choices.push(Choice {
                value: child.attr("value").map_or_else(|| collapsed(&text_without_scripts(child)), str::to_owned),
                is_selected: child.attr("selected").is_some(),
                is_disabled: in_disabled || child.attr("disabled").is_some(),
            });
        }
        !is_html(child, &["option", "select", "datalist", "template", "hr"])
    });
    let is_multiple = node.attr("multiple").is_some();
    if !is_multiple {
        if let Some(last) = choices.iter().rposition(|choice| choice.is_selected) {
            choices.iter_mut().take(last).for_each(|choice| choice.is_selected = false);
        } else if rows(node) == 1
            && let Some(first) = choices.iter_mut().find(|choice| !choice.is_disabled)
        {
            first.is_selected = true;
        }
    }
    Kind::Select { is_multiple, choices }
}

/// The "display size" of a list that is not `multiple`.
fn rows(node: NodeRef<'_>) -> u64 {
    let size = node.attr("size").unwrap_or_default().trim_start_matches([' ', '\t', '\n', '\r', '\u{c}']);
    let size = size.strip_prefix('+').unwrap_or(size);
    let end = size.bytes().position(|byte| !byte.is_ascii_digit()).unwrap_or(size.len());
    // What is too long to be read is large all the same.
    match size.get(..end).unwrap_or_default() {
        "" => 1,
        digits => digits.parse().unwrap_or(u64::MAX).max(1),
    }
}

/// The beginning of the text of a button; buttons can lie in each other, in tables.
fn first_text(button: NodeRef<'_>) -> String {
    let mut text = String::new();
    for data in button.descendants().filter(|node| node.kind() == NodeKind::Text).filter_map(NodeRef::data) {
        text.extend(data.chars().take(BUTTON_TEXT));
        if text.len() >= BUTTON_TEXT {
            break;
        }
    }
    text
}

/// All text of an option but that of its scripts.
fn text_without_scripts(option: NodeRef<'_>) -> String {
    let mut text = String::new();
    walk(option, |node| {
        text.push_str(if node.kind() == NodeKind::Text { node.data().unwrap_or_default() } else { "" });
        node.name() != Some("script")
    });
    text
}

/// Without white space at both ends, and with one blank for each run of it within.
fn collapsed(text: &str) -> String {
    text.split_ascii_whitespace().collect::<Vec<_>>().join(" ")
}

/// Whether a disabled `fieldset` is around it; what is in the first `legend` of one is not disabled by it.
fn is_in_disabled(control: NodeRef<'_>, disabling: &Disabling) -> bool {
    if disabling.is_empty() {
        return false;
    }
    let mut below = control;
    for around in control.ancestors() {
        if disabling.get(&around.id).is_some_and(|first_legend| *first_legend != Some(below.id)) {
            return true;
        }
        below = around;
    }
    false
}

/// Of the radio buttons of a name, the last one that is checked stays so.
fn keep_last_checked(controls: &mut [Control]) {
    let mut seen = HashSet::new();
    for control in controls.iter_mut().rev() {
        if let Kind::Radio { is_checked, .. } = &mut control.kind
            && *is_checked
            && !control.name.is_empty()
            && !seen.insert(control.name.clone())
        {
            *is_checked = false;
        }
    }
}
