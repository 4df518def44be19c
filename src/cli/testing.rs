//! Spiders for the tests of the verbs.

use crate::app::App;
use crate::prelude::*;

#[derive(Debug, Deserialize)]
struct Shop {
    #[allow(dead_code)]
    url: String,
}

#[derive(Debug, Deserialize)]
struct News;

macro_rules! idle_spider {
    ($spider:ty, $name:literal, $settings:expr) => {
        impl Spider for $spider {
            const NAME: &'static str = $name;
            type Step = ();
            type Item = Value;

            fn settings() -> SpiderSettings {
                $settings
            }

            async fn start(&self, _: &mut Out<Self>) -> CallbackResult {
                Ok(())
            }

            async fn parse(&self, (): (), _: Response, _: &mut Out<Self>) -> CallbackResult {
                Ok(())
            }
        }
    };
}

idle_spider!(Shop, "shop", vec![("RETRY_TIMES", json!(1))]);
idle_spider!(News, "news", Vec::new());

/// A binary with the spiders `shop`, which needs an argument `url`, and `news`.
pub(crate) fn app() -> App {
    App::new().spider::<Shop>().spider::<News>()
}
