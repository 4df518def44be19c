//! Takes pages apart in every way there is, rightly and wrongly; which way, the path of a page says.

use dragline::prelude::*;

#[derive(Debug, Deserialize)]
pub struct Pages {
    base: String,
    paths: Vec<String>,
}

impl Spider for Pages {
    const NAME: &'static str = "pages";
    type Step = String;
    type Item = Value;

    async fn start(&self, out: &mut Out<Self>) -> CallbackResult {
        for path in &self.paths {
            out.get(&format!("{}{path}", self.base), path.clone())?;
        }
        Ok(())
    }

    async fn parse(&self, path: String, response: Response, out: &mut Out<Self>) -> CallbackResult {
        let before = response.flags().html.any();
        let found = match path.as_str() {
            "/offers" => offers(&response),
            "/deep" | "/deep/again" => json!(response.css("b::text").getall()),
            "/bad/css" => json!(response.css("p[").getall()),
            "/bad/nested" => json!(response.css("p").iter().map(|p| p.css("a:hoover").len()).collect::<Vec<_>>()),
            "/bad/xpath" => json!(response.xpath("//p[@id=]/text()").get()),
            "/bad/function" => json!(response.xpath("ends-with(//p, 'x')").get()),
            "/bad/variable" => json!(response.xpath("//p[. = $wanted]").get()),
            "/bad/pattern" => json!(response.css("p").re_first(r"^(\d+")),
            "/long/css" => json!(response.css("b:is(zz ~ b)").getall()),
            "/long/xpath" => json!(response.xpath("//b[count(preceding::*) = count(following::*)]").getall()),
            // What was given up is the reason why nothing was found.
            "/long/hidden" => {
                let found = response.xpath("//b[count(preceding::*) = count(following::*)]").get();
                json!(found.ok_or_else(|| CallbackError::new("the page has no middle"))?)
            }
            "/tried" => {
                let errors = [response.try_css("p:first-letter").err(), response.try_xpath("//p/@").err()];
                json!(errors.map(|error| error.map(|e| (e.position(), e.is_given_up()))))
            }
            _ => json!(response.css("p").get()),
        };
        let html = response.flags().html;
        out.item(json!({"path": path, "found": found, "flags": [before, html.depth, html.is_cut()]}));
        Ok(())
    }
}

fn offers(response: &Response) -> Value {
    let rows: Vec<Value> = response
        .css("table.offers tr")
        .iter()
        .map(|row| {
            json!({
                "name": row.xpath("./td[1]").css("a::text").get(),
                "link": row.css("a").attr("href"),
                "price": row.css("td:nth-child(2)").xpath("./text()").re_first(r"[\d.]+"),
            })
        })
        .collect();
    let wanted = Variables::new().with("name", "the \"other\" one's").with("most", 2);
    json!({
        "title": response.css("h1::text").get(),
        "rows": rows,
        "count": response.xpath("count(//tr)").number(),
        "dear": response.xpath("//td[2]/@data-pence > 1000").boolean(),
        "sum": match response.xpath_value("sum(//td[2]/@data-pence)") {
            Ok(XPathValue::Number(sum)) => json!(sum),
            other => json!(format!("{other:?}")),
        },
        "other": response.xpath_with("//tr[td/a = $name][position() <= $most]/td[2]/text()", &wanted).get(),
        "classes": response.xpath("//*[has-class('price', 'low')]/text()").getall(),
        "tested": response.xpath(r"//a[re:test(@href, '^/p/\d$')]/@href").getall(),
        "texts": response.css("tr ::text").re(r"[A-Za-z]+").len(),
    })
}
