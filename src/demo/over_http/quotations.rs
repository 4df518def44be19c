//! The quotations site, read as the tutorials read theirs.

use std::collections::BTreeSet;

use super::{client, first_text, text};
use crate::demo::quotes::{self, QuotesOptions};
use crate::html::{NodeRef, Page};

#[tokio::test]
async fn the_quotations_have_the_structure_of_the_tutorials() {
    let options = QuotesOptions::default();
    let site = quotes::start(options.clone()).await.unwrap();
    let client = client();
    let mut url = site.url();
    let (mut found, mut about) = (Vec::new(), BTreeSet::new());
    loop {
        let page = text(client.get(url.clone()).send().await.unwrap()).await;
        let page = Page::parse(&page);
        for quote in page.css("div.quote") {
            let tags: Vec<String> = quote.css("div.tags a.tag").nodes().map(NodeRef::text).collect();
            found.push((first_text(&quote, "span.text"), first_text(&quote, "small.author"), tags));
        }
        let next = page.css("li.next > a::attr(href)").get();
        about.extend(page.css(".author + a::attr(href)").strs().map(|href| url.join(href).unwrap()));
        let Some(next) = next else { break };
        url = url.join(&next).unwrap();
    }
    let expected: Vec<_> = quotes::all(&options)
        .into_iter()
        .map(|q| (q.text, q.author, q.tags.into_iter().map(str::to_owned).collect::<Vec<_>>()))
        .collect();
    assert_eq!(found.len(), 100);
    assert_eq!(found, expected);
    assert_eq!(found.iter().map(|(text, ..)| text).collect::<BTreeSet<_>>().len(), 100, "every quotation is different");

    let mut people = BTreeSet::new();
    for link in about {
        let moved = client.get(link.clone()).send().await.unwrap();
        assert_eq!(moved.status().as_u16(), 308);
        let page =
            text(client.get(link.join(moved.headers()["location"].to_str().unwrap()).unwrap()).send().await.unwrap()).await;
        let page = Page::parse(&page);
        let root = page.root();
        people.insert((
            first_text(&root, "h3.author-title"),
            first_text(&root, "span.author-born-date"),
            first_text(&root, "span.author-born-location"),
        ));
    }
    let expected: BTreeSet<_> = quotes::authors(&options).into_iter().map(|a| (a.name, a.born_date, a.born_location)).collect();
    assert_eq!(people, expected);
    site.stop().await;
}

#[tokio::test]
async fn the_quotations_let_in_only_those_who_send_their_token() {
    let site = quotes::start(QuotesOptions::default()).await.unwrap();
    let client = client();
    let login = site.url().join("login").unwrap();
    let form = client.get(login.clone()).send().await.unwrap();
    let cookie = form.headers()["set-cookie"].to_str().unwrap().split(';').next().unwrap().to_owned();
    let page = text(form).await;
    let token = Page::parse(&page).css("input[name=csrf_token]::attr(value)").get().unwrap();
    let send = |body: String, cookie: String| {
        client
            .post(login.clone())
            .header("content-type", "application/x-www-form-urlencoded")
            .header("cookie", cookie)
            .body(body)
            .send()
    };
    assert_eq!(send("username=a&password=b".into(), cookie.clone()).await.unwrap().status().as_u16(), 403);
    assert_eq!(
        send(format!("csrf_token={token}&username=a&password=b"), "session=7".into()).await.unwrap().status().as_u16(),
        403
    );
    let entered = send(format!("csrf_token={token}&username=a&password=b"), cookie).await.unwrap();
    assert_eq!((entered.status().as_u16(), &entered.headers()["location"]), (302, &"/".parse().unwrap()));
    let session = entered.headers()["set-cookie"].to_str().unwrap().split(';').next().unwrap().to_owned();
    let home = text(client.get(site.url()).header("cookie", session).send().await.unwrap()).await;
    assert!(home.contains("Logout"));
    site.stop().await;
}
