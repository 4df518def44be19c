//! Item loaders: values for the fields of an item are collected from a page, cleaned on the way, and become the item at the end.
//!
//! [`LoaderRules`] say what happens to each field, [`ItemLoader`] collects. The first error is kept and given at the end, so that
//! the lines between need no `?`.

mod processor;

use std::collections::HashMap;
use std::sync::Arc;

use serde::de::DeserializeOwned;
use serde_json::{Map, Value};

use super::json_path::JsonPathError;
use super::response::Response;
use super::selector::Selection;
use processor::listed;
pub use processor::{ProcessError, Processor};

/// An item that cannot be loaded.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum LoaderError {
    /// A processor did not take the values of a field.
    #[error("field {field:?}: {source}")]
    Process {
        /// The field.
        field: String,
        /// The processor's words.
        source: ProcessError,
    },
    /// A field comes from JSON, and that cannot be asked.
    #[error("field {field:?}: {source}")]
    Json {
        /// The field.
        field: String,
        /// Why.
        source: JsonPathError,
    },
    /// A field comes from JSON, but the loader was made from a part of a page.
    #[error("field {field:?}: JSON is read from a whole response; make the loader by `response.loader(&rules)`")]
    NoBody {
        /// The field.
        field: String,
    },
    /// The fields do not make the item.
    #[error("the loaded fields ({fields}) are not the item: {source}")]
    Item {
        /// The names of the fields that have a value.
        fields: String,
        /// What is missing, or of another shape.
        source: serde_json::Error,
    },
}

/// What happens to the values of each field: an input processor for what is added at a time, an output processor for all of it at
/// the end. Without one values stay a list. Made once for many pages; cloning shares it.
///
/// ```
/// # use dragline::prelude::*;
/// # use dragline::api::{LoaderError, LoaderRules, Processor};
/// # #[derive(Serialize, Deserialize)] struct Book { title: String, price: Option<String>, tags: Vec<String>, url: String }
/// fn book(response: &Response) -> Result<Book, LoaderError> {
///     let rules = LoaderRules::new()
///         .default_input(Processor::words())
///         .default_output(Processor::take_first())
///         .output("tags", Processor::identity());
///     let mut loader = response.loader(&rules);
///     loader.css("title", "h1::text").value("url", response.url().as_str());
///     loader.nested_css("table.facts", |facts| {
///         facts.xpath("price", ".//tr[th='Price']/td/text()").css("tags", "a.tag::text");
///     });
///     loader.load()
/// }
/// ```
#[derive(Clone, Debug, Default)]
pub struct LoaderRules {
    inner: Arc<Rules>,
}

#[derive(Clone, Debug, Default)]
struct Rules {
    inputs: HashMap<String, Processor>,
    outputs: HashMap<String, Processor>,
    default_input: Option<Processor>,
    default_output: Option<Processor>,
}

impl LoaderRules {
    /// No rules: each field is the list of its values.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// What is done to values of this field as they are added.
    #[must_use]
    pub fn input(mut self, field: impl Into<String>, processor: Processor) -> Self {
        Arc::make_mut(&mut self.inner).inputs.insert(field.into(), processor);
        self
    }

    /// What is made of all values of this field at the end.
    #[must_use]
    pub fn output(mut self, field: impl Into<String>, processor: Processor) -> Self {
        Arc::make_mut(&mut self.inner).outputs.insert(field.into(), processor);
        self
    }

    /// The input processor of fields without one of their own.
    #[must_use]
    pub fn default_input(mut self, processor: Processor) -> Self {
        Arc::make_mut(&mut self.inner).default_input = Some(processor);
        self
    }

    /// The output processor of fields without one of their own.
    #[must_use]
    pub fn default_output(mut self, processor: Processor) -> Self {
        Arc::make_mut(&mut self.inner).default_output = Some(processor);
        self
    }
}

/// Collects the fields of one item. See [`LoaderRules`] for a whole example.
#[derive(Debug)]
pub struct ItemLoader<'p> {
    rules: LoaderRules,
    response: Option<&'p Response>,
    selection: Selection<'p>,
    /// Each a list.
    values: Map<String, Value>,
    error: Option<LoaderError>,
}

impl Response {
    /// A loader for one item of this page.
    #[must_use]
    pub fn loader(&self, rules: &LoaderRules) -> ItemLoader<'_> {
        ItemLoader { response: Some(self), ..ItemLoader::new(self.page().root(), rules) }
    }
}

impl<'p> ItemLoader<'p> {
    /// A loader for one item of a part of a page, such as a row of a table.
    #[must_use]
    pub fn new(selection: Selection<'p>, rules: &LoaderRules) -> Self {
        Self { rules: rules.clone(), response: None, selection, values: Map::new(), error: None }
    }

    /// Adds what a CSS selector finds.
    pub fn css(&mut self, field: &str, selector: &str) -> &mut Self {
        let found = self.selection.css(selector).getall();
        self.values(field, found)
    }

    /// Adds what a CSS selector finds, after this processor.
    pub fn css_with(&mut self, field: &str, selector: &str, processor: &Processor) -> &mut Self {
        let found = self.selection.css(selector).getall();
        self.processed(field, found.into(), processor)
    }

    /// Adds what an XPath expression finds.
    pub fn xpath(&mut self, field: &str, expression: &str) -> &mut Self {
        let found = self.selection.xpath(expression).getall();
        self.values(field, found)
    }

    /// Adds what an XPath expression finds, after this processor.
    pub fn xpath_with(&mut self, field: &str, expression: &str, processor: &Processor) -> &mut Self {
        let found = self.selection.xpath(expression).getall();
        self.processed(field, found.into(), processor)
    }

    /// Adds what a JSONPath finds in the body of the response.
    pub fn json_path(&mut self, field: &str, path: &str) -> &mut Self {
        let Some(response) = self.response else {
            return self.fail(LoaderError::NoBody { field: field.to_owned() });
        };
        match response.json_path(path) {
            Ok(found) => self.values(field, found.into_iter().cloned()),
            Err(source) => self.fail(LoaderError::Json { field: field.to_owned(), source }),
        }
    }

    /// Adds a value; null adds nothing.
    pub fn value(&mut self, field: &str, value: impl Into<Value>) -> &mut Self {
        self.add(field, value.into())
    }

    /// Adds values.
    pub fn values<V: Into<Value>>(&mut self, field: &str, values: impl IntoIterator<Item = V>) -> &mut Self {
        self.add(field, values.into_iter().map(Into::into).collect())
    }

    /// Forgets what was added to this field.
    pub fn clear(&mut self, field: &str) -> &mut Self {
        self.values.remove(field);
        self
    }

    /// Selects within what a CSS selector finds, for as long as `fill` runs.
    pub fn nested_css(&mut self, selector: &str, fill: impl FnOnce(&mut Self)) -> &mut Self {
        let within = self.selection.css(selector);
        self.nested(within, fill)
    }

    /// Selects within what an XPath expression finds, for as long as `fill` runs.
    pub fn nested_xpath(&mut self, expression: &str, fill: impl FnOnce(&mut Self)) -> &mut Self {
        let within = self.selection.xpath(expression);
        self.nested(within, fill)
    }

    /// What was added to this field so far, after its input processor.
    #[must_use]
    pub fn collected(&self, field: &str) -> &[Value] {
        self.values.get(field).and_then(Value::as_array).map_or(&[], Vec::as_slice)
    }

    /// What this field would be in the item; null when it would not be in it.
    ///
    /// # Errors
    /// When its output processor does not take its values.
    pub fn output(&self, field: &str) -> Result<Value, LoaderError> {
        let Some(values) = self.values.get(field) else { return Ok(Value::Null) };
        let rules = &self.rules.inner;
        match rules.outputs.get(field).or(rules.default_output.as_ref()) {
            Some(processor) => {
                processor.apply(values.clone()).map_err(|source| LoaderError::Process { field: field.to_owned(), source })
            }
            None => Ok(values.clone()),
        }
    }

    /// The fields as a JSON object, in the order they were first added; those that are null are left out.
    ///
    /// # Errors
    /// The first thing that went wrong since the loader was made.
    pub fn load_value(&mut self) -> Result<Value, LoaderError> {
        if let Some(error) = self.error.take() {
            return Err(error);
        }
        let mut fields = Map::new();
        for field in self.values.keys() {
            let value = self.output(field)?;
            if !value.is_null() {
                fields.insert(field.clone(), value);
            }
        }
        Ok(Value::Object(fields))
    }

    /// The item.
    ///
    /// # Errors
    /// The first thing that went wrong since the loader was made; or the fields do not make a `T`, as a field is missing that is
    /// neither an `Option` nor has a default.
    pub fn load<T: DeserializeOwned>(&mut self) -> Result<T, LoaderError> {
        let fields = self.load_value()?;
        let names = fields.as_object().map(|fields| fields.keys().cloned().collect::<Vec<_>>().join(", ")).unwrap_or_default();
        serde_json::from_value(fields).map_err(|source| LoaderError::Item { fields: names, source })
    }

    fn nested(&mut self, within: Selection<'p>, fill: impl FnOnce(&mut Self)) -> &mut Self {
        let around = std::mem::replace(&mut self.selection, within);
        fill(self);
        self.selection = around;
        self
    }

    fn processed(&mut self, field: &str, values: Value, processor: &Processor) -> &mut Self {
        match processor.apply(values) {
            Ok(values) => self.add(field, values),
            Err(source) => self.fail(LoaderError::Process { field: field.to_owned(), source }),
        }
    }

    fn add(&mut self, field: &str, values: Value) -> &mut Self {
        let rules = &self.rules.inner;
        let values = match rules.inputs.get(field).or(rules.default_input.as_ref()) {
            // A processor sees a list, whatever was added.
            Some(processor) => match processor.apply(Value::Array(listed(values))) {
                Ok(values) => listed(values),
                Err(source) => return self.fail(LoaderError::Process { field: field.to_owned(), source }),
            },
            None => listed(values),
        };
        if values.is_empty() {
            return self;
        }
        if let Some(Value::Array(before)) = self.values.get_mut(field) {
            before.extend(values);
        } else {
            self.values.insert(field.to_owned(), Value::Array(values));
        }
        self
    }

    fn fail(&mut self, error: LoaderError) -> &mut Self {
        self.error.get_or_insert(error);
        self
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing)]
    use serde::Deserialize;
    use serde_json::json;

    use super::*;
    use crate::api::selector::Page;

    const PAGE: &str = "<h1> Tide  <b>tables</b></h1><div id=d><p class=price>12,50 €</p><a class=t>sea</a><a class=t>wind</a></div><p class=price>9</p>";

    #[derive(Debug, Deserialize, PartialEq)]
    struct Book {
        title: String,
        price: Option<String>,
        #[serde(default)]
        tags: Vec<String>,
    }

    fn rules() -> LoaderRules {
        LoaderRules::new()
            .default_input(Processor::words())
            .default_output(Processor::take_first())
            .input("price", Processor::re(r"[\d,]+").unwrap())
            .output("tags", Processor::identity())
    }

    #[test]
    fn fields_are_collected_cleaned_and_become_an_item() {
        let page = Page::parse(PAGE);
        let mut loader = ItemLoader::new(page.root(), &rules());
        loader.xpath("title", "string(//h1)");
        loader.nested_css("#d", |inner| {
            inner.css("price", ".price::text").css("tags", "a.t::text");
        });
        loader.css("price", "body > .price::text").value("tags", "tide").value("note", Value::Null).css("none", "i");
        assert_eq!(loader.collected("price"), [json!("12,50"), json!("9")]);
        assert_eq!(
            (loader.output("tags").unwrap(), loader.output("none").unwrap()),
            (json!(["sea", "wind", "tide"]), json!(null))
        );
        let book: Book = loader.load().unwrap();
        let tags = ["sea", "wind", "tide"].map(str::to_owned).to_vec();
        assert_eq!(book, Book { title: "Tide tables".into(), price: Some("12,50".into()), tags });
        loader.clear("price").clear("tags");
        assert_eq!(loader.load_value().unwrap(), json!({"title": "Tide tables"}));
    }

    #[test]
    fn without_rules_every_field_is_a_list_in_the_order_of_adding() {
        let page = Page::parse(PAGE);
        let mut loader = ItemLoader::new(page.root(), &LoaderRules::new());
        loader.value("z", 1).css("a", "a::text").values("z", [2, 3]).value("l", json!([4, [5]]));
        assert_eq!(loader.load_value().unwrap().to_string(), r#"{"z":[1,2,3],"a":["sea","wind"],"l":[4,[5]]}"#);
    }

    #[test]
    fn a_processor_of_a_line_runs_before_that_of_the_field() {
        let page = Page::parse(PAGE);
        let mut loader = ItemLoader::new(page.root(), &rules());
        loader.css_with("price", ".price::text", &Processor::join("+")).xpath_with("tags", "//a", &Processor::take_first());
        assert_eq!(loader.collected("price"), [json!("12,50"), json!("9")]);
        assert_eq!(loader.collected("tags").len(), 1);
    }

    #[test]
    fn the_first_error_is_told_at_the_end_and_names_its_field() {
        let page = Page::parse(PAGE);
        let refuse = |why: &'static str| Processor::try_each(move |_| Err(ProcessError(why.to_owned())));
        let mut loader = ItemLoader::new(page.root(), &rules().input("a", refuse("first")).input("b", refuse("second")));
        loader.value("a", 1).value("b", 1);
        assert_eq!(loader.load_value().unwrap_err().to_string(), "field \"a\": first");
        loader.json_path("j", "$.x");
        assert!(loader.load_value().unwrap_err().to_string().contains("response.loader"));
        let mut late = ItemLoader::new(page.root(), &rules().output("c", refuse("late")));
        assert!(late.value("c", "1").load_value().unwrap_err().to_string().contains("\"c\": late"));
    }

    #[test]
    fn an_item_that_lacks_a_field_says_which() {
        let page = Page::parse(PAGE);
        let mut loader = ItemLoader::new(page.root(), &rules());
        loader.css("price", ".price::text");
        let error = loader.load::<Book>().unwrap_err().to_string();
        assert!(error.contains("(price)") && error.contains("`title`"), "{error}");
    }
}
