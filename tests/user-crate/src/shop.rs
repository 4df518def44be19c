//! Uses everything a spider can use.

use std::sync::atomic::{AtomicBool, Ordering};

use dragline::downloader::transport::Outgoing;
use dragline::plane::Grant;
use dragline::prelude::*;

steps! {
    pub enum Step for Shop {
        Listing { page: u32 } => listing,
        Product { sku: String } => product,
        Late => late,
    }
}

#[derive(Debug, Deserialize)]
pub struct Shop {
    url: String,
    #[serde(default)]
    tags: Vec<String>,
    #[serde(skip)]
    was_idle: AtomicBool,
}

#[derive(Debug, Serialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Found {
    Product { sku: String, price: Option<String>, tags: Vec<String> },
    Missing { sku: String, why: String, status: Option<u16> },
    Late { depth: u32 },
}

impl Spider for Shop {
    const NAME: &'static str = "shop";
    type Step = Step;
    type Item = Found;

    fn settings() -> SpiderSettings {
        vec![
            ("BOT_NAME", json!("user-crate")),
            ("DOWNLOADER_MIDDLEWARES", json!({"stamp": 543})),
            ("ITEM_PIPELINES", json!({"priced": 100, "numbered": 200})),
            ("EXTENSIONS", json!({"diary": 1})),
            ("RETRY_BACKOFF", json!(0.05)),
            ("LEASES", json!([{"domains": ["127.0.0.1"], "site": "shop", "client": "web"}])),
        ]
    }

    async fn start(&self, out: &mut Out<Self>) -> CallbackResult {
        out.get(&self.url, Step::Listing { page: 1 })?.priority(10).header("x-first", "yes")?;
        Ok(())
    }

    async fn parse(&self, step: Step, response: Response, out: &mut Out<Self>) -> CallbackResult {
        self.dispatch(step, response, out).await
    }

    async fn failed(&self, step: Step, failure: Failure, out: &mut Out<Self>) -> CallbackResult {
        if let Step::Product { sku } = step {
            let status = failure.response().map(|response| response.status().as_u16());
            out.item(Found::Missing { sku, why: failure.kind().name().to_owned(), status });
        }
        Ok(())
    }

    async fn idle(&self, out: &mut Out<Self>) -> CallbackResult {
        if !self.was_idle.swap(true, Ordering::Relaxed) {
            out.get(&format!("{}late", self.url), Step::Late)?;
        }
        Ok(())
    }

    async fn authorize(&self, request: &mut Outgoing, grant: &Grant) -> Result<(), String> {
        let Some(pin) = grant.credential.json.get("pin").and_then(Value::as_u64) else {
            return Err("the identity has no pin".to_owned());
        };
        let signed = format!("{}{}", request.url.path(), pin + 1).parse().map_err(|_| "the path cannot be signed".to_owned())?;
        request.headers.insert("x-signed", signed);
        Ok(())
    }
}

impl Shop {
    async fn listing(&self, response: Response, out: &mut Out<Self>, page: u32) -> CallbackResult {
        println!("listing {page} has {} products", response.css("a.product").len());
        out.follow(&response, "a.product", |url| Step::Product { sku: url.path().trim_start_matches('/').to_owned() });
        out.follow(&response, "a.next", |_| Step::Listing { page: page + 1 });
        Ok(())
    }

    async fn product(&self, response: Response, out: &mut Out<Self>, sku: String) -> CallbackResult {
        if sku == "broken" {
            return Err(CallbackError::new("this page is beyond repair"));
        }
        if sku == "panic" {
            panic!("a fault of the user");
        }
        let price = response.css(".price::text").get();
        out.item(Found::Product { sku, price, tags: self.tags.clone() });
        Ok(())
    }

    async fn late(&self, response: Response, out: &mut Out<Self>) -> CallbackResult {
        out.item(Found::Late { depth: response.depth() });
        Ok(())
    }
}
