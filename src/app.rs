//! The registry of a crawl binary: its spiders, and the pipelines, middlewares and extensions that settings
//! can switch on by name.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use crate::api::args::{ArgumentError, Arguments, from_arguments};
use crate::api::extension::Extension;
use crate::api::middleware::{Installed, Middleware};
use crate::api::pipeline::{DynPipeline, ItemPipeline};
use crate::api::spider::{DynSpider, Spider, SpiderSettings};
use crate::settings::Settings;

/// A crawl binary under construction. [`dragline::main!`](crate::main) is the short form for spiders alone.
///
/// ```no_run
/// # use dragline::prelude::*;
/// # #[derive(Deserialize)] struct Shop;
/// # impl Spider for Shop {
/// #     const NAME: &'static str = "shop"; type Step = (); type Item = Value;
/// #     async fn start(&self, _: &mut Out<Self>) -> CallbackResult { Ok(()) }
/// #     async fn parse(&self, _: (), _: Response, _: &mut Out<Self>) -> CallbackResult { Ok(()) }
/// # }
/// # struct Priced;
/// # impl ItemPipeline for Priced {
/// #     async fn process(&self, item: Item, _: &Context) -> Result<Processed, CallbackError> { Ok(Processed::Keep(item)) }
/// # }
/// fn main() -> std::process::ExitCode {
///     dragline::App::new().spider::<Shop>().pipeline("priced", |_settings| Ok(Priced)).run()
/// }
/// ```
#[derive(Debug, Default)]
pub struct App {
    pub(crate) spiders: Vec<SpiderEntry>,
    pub(crate) components: Components,
}

/// One spider of the registry.
#[derive(Clone, Copy)]
pub(crate) struct SpiderEntry {
    pub name: &'static str,
    pub settings: fn() -> SpiderSettings,
    pub build: fn(&Arguments) -> Result<Arc<dyn DynSpider>, ArgumentError>,
}

type Build<T> = Arc<dyn Fn(&Settings) -> Result<T, String> + Send + Sync>;

/// Pipelines and extensions by name; a setting gives each its order, or switches it off.
#[derive(Clone, Default)]
pub(crate) struct Components {
    pub pipelines: BTreeMap<String, Build<Box<dyn DynPipeline>>>,
    pub extensions: BTreeMap<String, Build<Box<dyn Extension>>>,
    pub middlewares: BTreeMap<String, Build<Installed>>,
}

impl App {
    /// An empty registry.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a spider.
    #[must_use]
    pub fn spider<S: Spider>(mut self) -> Self {
        self.spiders.push(SpiderEntry {
            name: S::NAME,
            settings: S::settings,
            build: |arguments| Ok(Arc::new(from_arguments::<S>(arguments)?)),
        });
        self
    }

    /// Adds an item pipeline that `ITEM_PIPELINES = { name = ORDER }` switches on.
    #[must_use]
    pub fn pipeline<P: ItemPipeline>(
        mut self,
        name: &str,
        build: impl Fn(&Settings) -> Result<P, String> + Send + Sync + 'static,
    ) -> Self {
        let build: Build<Box<dyn DynPipeline>> = Arc::new(move |settings| Ok(Box::new(build(settings)?)));
        self.components.pipelines.insert(name.to_owned(), build);
        self
    }

    /// Adds a downloader middleware that `DOWNLOADER_MIDDLEWARES = { name = ORDER }` switches on.
    #[must_use]
    pub fn middleware<M: Middleware>(
        mut self,
        name: &str,
        build: impl Fn(&Settings) -> Result<M, String> + Send + Sync + 'static,
    ) -> Self {
        let shown: Arc<str> = name.into();
        // The order comes with the setting, when the middleware is chosen.
        let build: Build<Installed> = Arc::new(move |settings| Ok(Installed::new(shown.clone(), 0, build(settings)?)));
        self.components.middlewares.insert(name.to_owned(), build);
        self
    }

    /// Adds an extension that `EXTENSIONS = { name = ORDER }` switches on.
    #[must_use]
    pub fn extension<E: Extension>(
        mut self,
        name: &str,
        build: impl Fn(&Settings) -> Result<E, String> + Send + Sync + 'static,
    ) -> Self {
        let build: Build<Box<dyn Extension>> = Arc::new(move |settings| Ok(Box::new(build(settings)?)));
        self.components.extensions.insert(name.to_owned(), build);
        self
    }
}

impl fmt::Debug for SpiderEntry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("SpiderEntry").field(&self.name).finish()
    }
}

impl fmt::Debug for Components {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Components")
            .field("pipelines", &self.pipelines.keys())
            .field("extensions", &self.extensions.keys())
            .field("middlewares", &self.middlewares.keys())
            .finish_non_exhaustive()
    }
}

/// Chooses the named components that a setting switches on, in their order.
///
/// # Errors
/// When a name is not in the registry, or a component cannot be built.
pub(crate) fn choose<T>(
    registry: &BTreeMap<String, Build<T>>,
    chosen: &BTreeMap<String, Option<i32>>,
    setting: &str,
    settings: &Settings,
) -> Result<Vec<(i32, String, T)>, String> {
    let mut built = Vec::new();
    for (name, order) in chosen {
        let Some(order) = order else { continue };
        let Some(build) = registry.get(name) else {
            let known =
                if registry.is_empty() { "none".to_owned() } else { registry.keys().cloned().collect::<Vec<_>>().join(", ") };
            return Err(format!("{setting}: {name:?} is not registered in this binary; registered: {known}"));
        };
        let component = build(settings).map_err(|reason| format!("{setting}: {name:?} cannot be built: {reason}"))?;
        built.push((*order, name.clone(), component));
    }
    built.sort_by(|a, b| a.0.cmp(&b.0).then_with(|| a.1.cmp(&b.1)));
    Ok(built)
}

/// Writes the `main` function of a crawl binary with these spiders.
///
/// ```no_run
/// # use dragline::prelude::*;
/// # #[derive(Deserialize)] struct Shop;
/// # impl Spider for Shop {
/// #     const NAME: &'static str = "shop"; type Step = (); type Item = Value;
/// #     async fn start(&self, _: &mut Out<Self>) -> CallbackResult { Ok(()) }
/// #     async fn parse(&self, _: (), _: Response, _: &mut Out<Self>) -> CallbackResult { Ok(()) }
/// # }
/// dragline::main!(Shop);
/// ```
#[macro_export]
macro_rules! main {
    ($($spider:ty),+ $(,)?) => {
        fn main() -> ::std::process::ExitCode {
            $crate::App::new()$(.spider::<$spider>())+.run()
        }
    };
}
