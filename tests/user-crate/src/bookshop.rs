//! A later version of the bookshop's spider, which has given up authors: the step of that name is gone.

use dragline::prelude::*;

steps! {
    pub enum Step for Bookshop {
        Listing => listing,
        Product => product,
    }
}

#[derive(Debug, Deserialize)]
pub struct Bookshop {
    url: String,
}

impl Spider for Bookshop {
    const NAME: &'static str = "bookshop";
    type Step = Step;
    type Item = Value;

    async fn start(&self, out: &mut Out<Self>) -> CallbackResult {
        out.get(&self.url, Step::Listing)?;
        Ok(())
    }

    async fn parse(&self, step: Step, response: Response, out: &mut Out<Self>) -> CallbackResult {
        self.dispatch(step, response, out).await
    }
}

impl Bookshop {
    async fn listing(&self, response: Response, out: &mut Out<Self>) -> CallbackResult {
        out.follow(&response, "a[href^='/products/']", |_| Step::Product);
        Ok(())
    }

    async fn product(&self, response: Response, out: &mut Out<Self>) -> CallbackResult {
        out.item(json!({"kind": "visit", "url": response.url().as_str()}));
        Ok(())
    }
}
