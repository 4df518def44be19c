//! Every page gives as many requests as it is told.

use dragline::prelude::*;

#[derive(Debug, Deserialize)]
pub struct Flood {
    base: String,
    count: u64,
    /// Whether every page does so, or the first alone.
    #[serde(default)]
    every: bool,
}

impl Spider for Flood {
    const NAME: &'static str = "flood";
    type Step = u64;
    type Item = Value;

    async fn start(&self, out: &mut Out<Self>) -> CallbackResult {
        out.get(&self.base, 0)?;
        Ok(())
    }

    async fn parse(&self, depth: u64, response: Response, out: &mut Out<Self>) -> CallbackResult {
        if depth == 0 || self.every {
            let page = response.url().path().trim_matches('/').to_owned();
            for number in 0..self.count {
                out.send(Request::get(&format!("{}{page}.{number}", self.base), &(depth + 1))?).await?;
            }
        }
        Ok(())
    }
}
