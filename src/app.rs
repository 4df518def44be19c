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

/// Components of the Python client for APCloudy, as a Scrapy settings file names them. What they do is built in, so
/// each of the three settings takes them and nothing is made of them.
const BUILT_IN: [&str; 5] = [
    "apcloudy_pipeline.pipelines.APCloudyItemPipeline",
    "apcloudy_pipeline.middleware.APCloudyErrorMiddleware",
    "apcloudy_pipeline.request_logger.APCloudyRequestLogger",
    "apcloudy_pipeline.extensions.APCloudyLoggingExtension",
    "apcloudy_pipeline.extensions.APCloudyStatsExtension",
];

/// One line about the components that are switched on but not needed, as they are built in; `None`: there are none.
pub(crate) fn ignored(components: &Components, settings: &Settings) -> Option<String> {
    fn of<T>(registry: &BTreeMap<String, Build<T>>, chosen: &BTreeMap<String, Option<i32>>, setting: &str) -> Option<String> {
        let is_ignored = |name: &str| BUILT_IN.contains(&name) && !registry.contains_key(name);
        let names: Vec<&str> =
            chosen.iter().filter(|(name, order)| order.is_some() && is_ignored(name)).map(|(name, _)| name.as_str()).collect();
        (!names.is_empty()).then(|| format!("{setting} ({})", names.join(", ")))
    }
    let parts = [
        of(&components.pipelines, &settings.item_pipelines, "ITEM_PIPELINES"),
        of(&components.middlewares, &settings.downloader_middlewares, "DOWNLOADER_MIDDLEWARES"),
        of(&components.extensions, &settings.extensions, "EXTENSIONS"),
    ];
    let named: Vec<String> = parts.into_iter().flatten().collect();
    (!named.is_empty())
        .then(|| format!("delivery to APCloudy is built in; ignored, and can be removed from the settings: {}", named.join(", ")))
}

/// Chooses the named components that a setting switches on, in their order; those that are built in are left out.
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
            if BUILT_IN.contains(&name.as_str()) {
                continue;
            }
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

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing)]
    use super::*;
    use crate::api::{CallbackError, Context, Item, Processed};

    struct Keeps;

    impl ItemPipeline for Keeps {
        async fn process(&self, item: Item, _: &Context) -> Result<Processed, CallbackError> {
            Ok(Processed::Keep(item))
        }
    }

    fn chosen(names: &[&str]) -> BTreeMap<String, Option<i32>> {
        names.iter().map(|name| ((*name).to_owned(), Some(300))).collect()
    }

    fn built(components: &Components, settings: &Settings) -> Result<Vec<String>, String> {
        let pipelines = choose(&components.pipelines, &settings.item_pipelines, "ITEM_PIPELINES", settings)?;
        choose(&components.middlewares, &settings.downloader_middlewares, "DOWNLOADER_MIDDLEWARES", settings)?;
        choose(&components.extensions, &settings.extensions, "EXTENSIONS", settings)?;
        Ok(pipelines.into_iter().map(|(_, name, _)| name).collect())
    }

    #[test]
    fn components_of_the_python_client_are_taken_in_all_three_settings_and_named_in_one_line() {
        let App { components, .. } = App::new().pipeline("keeps", |_| Ok(Keeps));
        for name in BUILT_IN {
            let with = Settings {
                item_pipelines: chosen(&["keeps", name]),
                downloader_middlewares: chosen(&[name]),
                extensions: chosen(&[name]),
                ..Settings::default()
            };
            assert_eq!(built(&components, &with).unwrap(), ["keeps"]);
            assert_eq!(
                ignored(&components, &with).unwrap(),
                format!(
                    "delivery to APCloudy is built in; ignored, and can be removed from the settings: \
                     ITEM_PIPELINES ({name}), DOWNLOADER_MIDDLEWARES ({name}), EXTENSIONS ({name})"
                )
            );
        }
        let two = Settings { extensions: chosen(&BUILT_IN[3..]), ..Settings::default() };
        assert_eq!(
            ignored(&components, &two).unwrap(),
            "delivery to APCloudy is built in; ignored, and can be removed from the settings: EXTENSIONS \
             (apcloudy_pipeline.extensions.APCloudyLoggingExtension, apcloudy_pipeline.extensions.APCloudyStatsExtension)"
        );
    }

    #[test]
    fn nothing_is_said_of_components_that_are_off_or_registered_or_absent() {
        let App { components, .. } = App::new().pipeline(BUILT_IN[0], |_| Ok(Keeps));
        let registered = Settings { item_pipelines: chosen(&BUILT_IN[..1]), ..Settings::default() };
        assert_eq!(built(&components, &registered).unwrap(), [BUILT_IN[0]]);
        let off = BTreeMap::from([(BUILT_IN[1].to_owned(), None)]);
        let off = Settings { downloader_middlewares: off, ..Settings::default() };
        for settings in [registered, off, Settings::default()] {
            assert!(built(&components, &settings).is_ok());
            assert_eq!(ignored(&components, &settings), None);
        }
    }

    #[test]
    fn any_other_name_is_refused_with_those_there_are() {
        let App { components, .. } = App::new().pipeline("keeps", |_| Ok(Keeps));
        let with = Settings { item_pipelines: chosen(&["apcloudy_pipeline.pipelines.Other"]), ..Settings::default() };
        assert_eq!(
            built(&components, &with).unwrap_err(),
            "ITEM_PIPELINES: \"apcloudy_pipeline.pipelines.Other\" is not registered in this binary; registered: keeps"
        );
    }
}
