//! Chains of pages, each under the lease of its first page, and from each page a way to another host.

use dragline::prelude::*;

#[derive(Debug, Deserialize)]
pub struct Chains {
    base: String,
    away: String,
    chains: u32,
    pages: u32,
}

impl Spider for Chains {
    const NAME: &'static str = "chains";
    /// Chain and page; no page for what is away.
    type Step = (u32, Option<u32>);
    type Item = Value;

    async fn start(&self, out: &mut Out<Self>) -> CallbackResult {
        for chain in 0..self.chains {
            out.get(&format!("{}{chain}/0", self.base), (chain, Some(0)))?;
        }
        Ok(())
    }

    async fn parse(&self, (chain, page): Self::Step, response: Response, out: &mut Out<Self>) -> CallbackResult {
        out.item(json!({"url": response.url().as_str(), "lease": format!("{:?}", response.lease())}));
        let Some(page) = page else { return Ok(()) };
        let next = page + 1;
        if next < self.pages {
            let mut request = Request::get(&format!("{}{chain}/{next}", self.base), &(chain, Some(next)))?;
            request.keep_lease();
            out.send(request).await?;
        }
        let mut request = Request::get(&format!("{}{chain}/{page}", self.away), &(chain, None::<u32>))?;
        request.keep_lease();
        out.send(request).await?;
        Ok(())
    }
}
