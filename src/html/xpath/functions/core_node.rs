//! Functions on nodes (XPath 1.0, 4.1 and, for `lang`, 4.3), and those that give sets.
//!
//! Elements of HTML are in no namespace here, as in lxml's tree of a page; SVG and MathML are in theirs.

use std::borrow::Cow;
use std::collections::HashSet;
use std::rc::Rc;

use super::Function;
use crate::html::arena::{Kind, Namespace, NodeId};
use crate::html::hit::Hit;
use crate::html::names::known;
use crate::html::xpath::eval::{Context, Eval, HASHED, Res};
use crate::html::xpath::lexer::is_space;
use crate::html::xpath::plan::Op;
use crate::html::xpath::value::Val;

impl<'e> Eval<'e> {
    pub(super) fn call_nodes(&self, function: Function, args: &'e [Op], context: Context) -> Res<Val<'e>> {
        match (function, args) {
            (Function::Id, [arg]) => self.id(arg, context),
            (Function::ReMatch, _) => self.re_match(None, args, context),
            _ => self.set_function(function, args, context),
        }
    }

    /// `name()`, `local-name()` and `namespace-uri()` of the context node or of the first node of a set.
    pub(super) fn name_function(&self, function: Function, args: &'e [Op], context: Context) -> Res<Cow<'e, str>> {
        let hit = match args.first() {
            None => Some(context.hit),
            Some(arg) => self.first(arg, context, "what a name is asked of")?,
        };
        if let Some(hit) = hit {
            self.charge_hit(hit)?;
        }
        Ok(Cow::Borrowed(hit.map_or("", |hit| match function {
            Function::Name => self.name_of(hit),
            Function::LocalName => self.local_name_of(hit),
            _ => self.namespace_of(hit),
        })))
    }

    fn name_of(&self, hit: Hit) -> &'e str {
        let arena = self.arena;
        match hit {
            Hit::Attr { .. } => hit.attr(arena).map_or("", |attr| arena.name_text(attr.name())),
            Hit::Node(node) => match arena.kind(node) {
                Kind::Element | Kind::ProcessingInstruction => arena.name_text(arena.name(node)),
                Kind::Document | Kind::Text | Kind::Comment | Kind::Doctype => "",
            },
        }
    }

    /// The prefix of an attribute the standard puts in a namespace (WHATWG HTML 13.2.6.1, "adjust foreign attributes").
    fn prefix_of(&self, hit: Hit) -> Option<(&'e str, &'e str)> {
        let Hit::Attr { owner, .. } = hit else { return None };
        if self.arena.namespace(owner) == Namespace::Html {
            return None;
        }
        self.name_of(hit).split_once(':').filter(|(prefix, _)| matches!(*prefix, "xlink" | "xml" | "xmlns"))
    }

    fn local_name_of(&self, hit: Hit) -> &'e str {
        self.prefix_of(hit).map_or_else(|| self.name_of(hit), |(_, local)| local)
    }

    fn namespace_of(&self, hit: Hit) -> &'e str {
        match hit {
            Hit::Attr { .. } => match self.prefix_of(hit) {
                Some(("xlink", _)) => "http://www.w3.org/1999/xlink",
                Some(("xml", _)) => "http://www.w3.org/XML/1998/namespace",
                Some(_) => "http://www.w3.org/2000/xmlns/",
                None => "",
            },
            Hit::Node(node) if self.arena.is_element(node) => match self.arena.namespace(node) {
                Namespace::Html => "",
                Namespace::Svg => "http://www.w3.org/2000/svg",
                Namespace::MathMl => "http://www.w3.org/1998/Math/MathML",
            },
            Hit::Node(_) => "",
        }
    }

    /// `id()`: the first element with each of the ids.
    fn id(&self, arg: &'e Op, context: Context) -> Res<Val<'e>> {
        let texts: Vec<Cow<'_, str>> = match self.value(arg, context)? {
            Val::Nodes(hits) => hits.iter().map(|hit| self.text_of(*hit)).collect::<Res<_>>()?,
            Val::Strings(texts) => texts.iter().map(|text| Cow::Owned(text.clone())).collect(),
            other => vec![self.string_of(&other)?],
        };
        let mut wanted: HashSet<&str> = HashSet::new();
        for text in &texts {
            self.charge_chars(text.len())?;
            wanted.extend(text.split(is_space).filter(|id| !id.is_empty()));
        }
        let mut found = Vec::new();
        let mut id = NodeId::DOCUMENT;
        self.charge(HASHED * wanted.len())?;
        while id.is_some() && !wanted.is_empty() {
            self.charge(1)?;
            if let Some(value) = self.attr(id, known::ID)? {
                self.charge_key(value.len())?;
                if wanted.remove(value) {
                    found.push(Hit::Node(id));
                }
            }
            id = self.arena.following(id, NodeId::DOCUMENT);
        }
        Ok(Val::Nodes(Rc::new(found)))
    }

    /// `lang()`: by the nearest `xml:lang`, as the specification and lxml have it; `lang` of HTML is not looked at.
    pub(super) fn lang(&self, hit: Hit, wanted: &str) -> Res<bool> {
        let Some(name) = self.arena.find_name("xml:lang") else { return Ok(false) };
        let mut id = hit.node();
        while id.is_some() {
            self.charge(1)?;
            if let Some(value) = self.attr(id, name)? {
                let value = value.as_bytes();
                let Some((start, rest)) = value.split_at_checked(wanted.len()) else { return Ok(false) };
                return Ok(start.eq_ignore_ascii_case(wanted.as_bytes()) && matches!(rest.first(), None | Some(b'-')));
            }
            id = self.arena.parent(id);
        }
        Ok(false)
    }
}
