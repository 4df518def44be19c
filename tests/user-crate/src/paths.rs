//! Fetches the paths it is given and tells how each went; a page may name fields that others lack.

use dragline::prelude::*;

#[derive(Debug, Deserialize)]
pub struct Paths {
    base: String,
    paths: Vec<String>,
}

impl Spider for Paths {
    const NAME: &'static str = "paths";
    type Step = String;
    type Item = Value;

    async fn start(&self, out: &mut Out<Self>) -> CallbackResult {
        println!("start: not an item");
        for path in &self.paths {
            out.get(&format!("{}{path}", self.base), path.clone())?;
        }
        Ok(())
    }

    async fn parse(&self, path: String, response: Response, out: &mut Out<Self>) -> CallbackResult {
        println!("page {path}: not an item");
        let mut item = json!({"path": path, "status": response.status().as_u16(), "bytes": response.body().len()});
        if let Ok(Value::Object(more)) = response.json::<Value>()
            && let Some(fields) = item.as_object_mut()
        {
            fields.extend(more);
        }
        out.follow(&response, "a[href]", |url| url.path().to_owned());
        out.item(item);
        Ok(())
    }

    async fn failed(&self, path: String, failure: Failure, out: &mut Out<Self>) -> CallbackResult {
        out.item(json!({"path": path, "failed": failure.kind().name(), "attempts": failure.attempts()}));
        Ok(())
    }
}
