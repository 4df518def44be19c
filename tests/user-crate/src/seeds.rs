//! Starts as many requests as it is told, one after the other.

use dragline::prelude::*;

#[derive(Debug, Deserialize)]
pub struct Seeds {
    base: String,
    count: u64,
}

impl Spider for Seeds {
    const NAME: &'static str = "seeds";
    type Step = ();
    type Item = Value;

    async fn start(&self, out: &mut Out<Self>) -> CallbackResult {
        for number in 0..self.count {
            out.send(Request::get(&format!("{}{number}", self.base), &())?).await?;
            out.stats().inc("seeds/sent");
        }
        Ok(())
    }

    async fn parse(&self, (): (), response: Response, out: &mut Out<Self>) -> CallbackResult {
        out.item(json!({"url": response.url().as_str()}));
        Ok(())
    }
}
