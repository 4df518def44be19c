//! The example of the Python pipeline's own documentation, ported one to one: the settings lie in the spider.

use dragline::api::spider::SpiderSettings;
use dragline::prelude::*;

#[derive(Debug, Deserialize)]
pub struct MySpider;

#[derive(Serialize)]
pub struct Page {
    title: Option<String>,
    price: Option<String>,
    url: String,
}

/// What the original has as literals; the test gives its own addresses.
fn given(name: &str, usual: &str) -> String {
    std::env::var(name).unwrap_or_else(|_| usual.to_owned())
}

impl Spider for MySpider {
    const NAME: &'static str = "myspider";
    type Step = ();
    type Item = Page;

    fn settings() -> SpiderSettings {
        vec![
            ("APCLOUDY_URL", json!(given("TEST_WEBHOOK", "https://your-api.com"))),
            ("APCLOUDY_API_KEY", json!("your_public_api_key")),
            ("APCLOUDY_SECRET_KEY", json!("your_secret_key")),
            ("JOB_ID", json!(123)),
            ("ITEM_PIPELINES", json!({"apcloudy_pipeline.pipelines.APCloudyItemPipeline": 300})),
            ("DOWNLOADER_MIDDLEWARES", json!({"apcloudy_pipeline.middleware.APCloudyErrorMiddleware": 50})),
            (
                "EXTENSIONS",
                json!({
                    "apcloudy_pipeline.request_logger.APCloudyRequestLogger": 100,
                    "apcloudy_pipeline.extensions.APCloudyLoggingExtension": 100,
                    "apcloudy_pipeline.extensions.APCloudyStatsExtension": 100,
                }),
            ),
        ]
    }

    async fn start(&self, out: &mut Out<Self>) -> CallbackResult {
        let base = given("TEST_SITE", "https://example.com");
        for url in [format!("{base}/page1"), format!("{base}/page2")] {
            out.get(&url, ())?;
        }
        Ok(())
    }

    async fn parse(&self, (): (), response: Response, out: &mut Out<Self>) -> CallbackResult {
        out.item(Page {
            title: response.css("h1::text").get(),
            price: response.css(".price::text").get(),
            url: response.url().to_string(),
        });
        Ok(())
    }
}
