//! What single requests to the bookshop are answered.

use std::collections::BTreeSet;

use http::Method;
use scraper::Html;
use url::Url;

use super::{client, json_at, links, site, text};
use crate::demo::{Delays, Site, SiteOptions};

#[tokio::test]
async fn the_same_seed_gives_the_same_bytes_and_another_seed_others() {
    let (one, two, other) = (site(60, 5).await, site(60, 5).await, site(60, 6).await);
    let client = client();
    for path in ["", "category/poetry", "staff-picks", "old-links", "products/7", "images/7.svg"] {
        let mut bodies = Vec::new();
        for site in [&one, &two, &other] {
            let mut response = client.get(site.url().join(path).unwrap()).send().await.unwrap();
            while let Some(target) = response.headers().get("location") {
                response = client.get(site.url().join(target.to_str().unwrap()).unwrap()).send().await.unwrap();
            }
            bodies.push(response.bytes().await.unwrap());
        }
        assert_eq!(bodies[0], bodies[1], "{path}");
        assert_ne!(bodies[0], bodies[2], "{path}");
    }
}

#[tokio::test]
async fn odd_requests_get_the_status_they_deserve() {
    let site = site(60, 1).await;
    let client = client();
    let long = format!("/search?q={}", "x".repeat(9_000));
    let cases = [
        (Method::GET, "/nowhere", 404),
        (Method::GET, "/products/99999", 404),
        (Method::GET, "/products/", 404),
        (Method::GET, "/category/poetry?page=0", 404),
        (Method::GET, "/category/poetry?page=99999999999999", 404),
        (Method::GET, "/category/poetry?page=%ff%00&&==", 404),
        (Method::GET, "/staff-picks?page=4294967295", 404),
        (Method::GET, "/api/products?page=4294967295", 404),
        (Method::GET, "/api/products/4294967295", 404),
        (Method::GET, "/authors/4294967295-x", 404),
        (Method::GET, "/moved/4294967295/again", 404),
        (Method::GET, "/p/0", 404),
        (Method::GET, "/sitemap-1.xml", 404),
        (Method::GET, "/images/1.png", 404),
        (Method::GET, "/search", 200),
        (Method::GET, "/search?q=%3Cscript%3E&q=b", 200),
        (Method::GET, "//////////", 404),
        (Method::GET, "/cart?add=1", 200),
        (Method::GET, "/private/stockroom", 200),
        (Method::GET, &long, 414),
        (Method::HEAD, "/", 200),
        (Method::HEAD, "/__truth", 200),
        (Method::POST, "/", 405),
        (Method::DELETE, "/products/1", 405),
        (Method::OPTIONS, "/login", 405),
        (Method::from_bytes(b"BREW").unwrap(), "/about", 405),
    ];
    for (method, path, status) in cases {
        let url = format!("http://{}{path}", site.addr());
        let response = client.request(method.clone(), url).send().await.unwrap();
        assert_eq!(response.status().as_u16(), status, "{method} {path:.60}");
        assert_eq!(response.headers().contains_key("allow"), status == 405);
        assert!(!text(response).await.contains("<script>"));
    }
    let body = client.post(site.url().join("login").unwrap()).body("x".repeat(20_000)).send().await.unwrap();
    assert_eq!(body.status().as_u16(), 413);
    site.stop().await;
}

#[tokio::test]
async fn one_connection_serves_many_requests_and_garbage_ends_only_its_own() {
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
    let site = site(20, 1).await;
    let request = |path: &str, last: bool| {
        format!("GET {path} HTTP/1.1\r\nhost: shop\r\n{}\r\n", if last { "connection: close\r\n" } else { "" })
    };
    let ask = async |bytes: Vec<u8>| {
        let mut stream = tokio::net::TcpStream::connect(site.addr()).await.unwrap();
        // The server may close before it has read everything; what it answered is what counts.
        let _ = stream.write_all(&bytes).await;
        let mut answer = Vec::new();
        let _ = stream.read_to_end(&mut answer).await;
        String::from_utf8_lossy(&answer).into_owned()
    };
    let three = [request("/about", false), request("/nowhere", false), request("/robots.txt", true)].concat();
    let answer = ask(three.into_bytes()).await;
    assert_eq!(answer.matches("HTTP/1.1 200 OK").count(), 2, "{answer}");
    assert!(answer.contains("HTTP/1.1 404 Not Found") && answer.ends_with("Sitemap: http://shop/sitemap.xml\n"));
    assert!(ask(b"\x16\x03\x01 this is no HTTP\r\n\r\n".to_vec()).await.starts_with("HTTP/1.1 400"));
    assert!(ask(request(&format!("/{}", "a".repeat(70_000)), true).into_bytes()).await.starts_with("HTTP/1.1 414"));
    assert!(ask(request("/about", true).into_bytes()).await.starts_with("HTTP/1.1 200 OK"));
    site.stop().await;
}

#[tokio::test]
async fn head_has_the_headers_of_get_and_no_body() {
    let site = site(60, 1).await;
    let client = client();
    let url = site.url().join("category/poetry").unwrap();
    let get = client.get(url.clone()).send().await.unwrap();
    let head = client.head(url).send().await.unwrap();
    for name in ["content-type", "content-length"] {
        assert_eq!(get.headers()[name], head.headers()[name]);
    }
    assert!(head.bytes().await.unwrap().is_empty());
    site.stop().await;
}

#[tokio::test]
async fn the_login_opens_the_account_only_with_the_right_password() {
    let site = site(20, 1).await;
    let client = client();
    let (login, account) = (site.url().join("login").unwrap(), site.url().join("account").unwrap());
    let send = |body: &'static str| {
        client.post(login.clone()).header("content-type", "application/x-www-form-urlencoded").body(body).send()
    };
    assert_eq!(send("username=reader&password=wrong").await.unwrap().status().as_u16(), 403);
    assert_eq!(client.get(account.clone()).send().await.unwrap().headers()["location"], "/login");
    let entered = send("username=reader&password=bookworm").await.unwrap();
    assert_eq!((entered.status().as_u16(), &entered.headers()["location"]), (303, &"/account".parse().unwrap()));
    let cookie = entered.headers()["set-cookie"].to_str().unwrap().split(';').next().unwrap().to_owned();
    let page = client.get(account.clone()).header("cookie", format!("a=b; {cookie}")).send().await.unwrap();
    assert!(text(page).await.contains("Welcome back, reader."));
    assert_eq!(client.get(account).header("cookie", "session=guess").send().await.unwrap().status().as_u16(), 302);
    site.stop().await;
}

#[tokio::test]
async fn search_links_to_every_title_that_holds_the_words() {
    let site = site(60, 1).await;
    let client = client();
    let api = json_at(&client, site.url().join("api/products").unwrap()).await;
    let wanted = &api["products"][4];
    let mut url = site.url().join("search").unwrap();
    url.query_pairs_mut().append_pair("q", &wanted["title"].as_str().unwrap().to_uppercase());
    let page = text(client.get(url.clone()).send().await.unwrap()).await;
    assert!(links(&page, &url).iter().any(|link| link.as_str() == wanted["url"]));
    site.stop().await;
}

#[tokio::test]
async fn the_api_pages_through_all_products() {
    let site = site(45, 2).await;
    let client = client();
    let mut url = site.url().join("api/products").unwrap().to_string();
    let mut products = Vec::new();
    loop {
        let page = json_at(&client, Url::parse(&url).unwrap()).await;
        products.extend(page["products"].as_array().unwrap().clone());
        let Some(next) = page["next"].as_str() else { break };
        url = next.to_owned();
    }
    assert_eq!(products.len(), 45);
    let one = json_at(&client, site.url().join("api/products/45").unwrap()).await;
    assert_eq!(one, products[44]);
    site.stop().await;
}

#[tokio::test]
async fn a_large_shop_has_a_sitemap_index_whose_parts_hold_every_product() {
    let site = site(12_000, 1).await;
    let client = client();
    let locations =
        |xml: String| xml.split("<loc>").skip(1).map(|rest| rest.split('<').next().unwrap().to_owned()).collect::<Vec<_>>();
    let robots = text(client.get(site.url().join("robots.txt").unwrap()).send().await.unwrap()).await;
    let index = robots.split("Sitemap: ").nth(1).unwrap().trim().to_owned();
    let parts = locations(text(client.get(index).send().await.unwrap()).await);
    assert_eq!(parts.len(), 3);
    let mut all = BTreeSet::new();
    for part in parts {
        all.extend(locations(text(client.get(part).send().await.unwrap()).await));
    }
    assert_eq!(all.len(), 12_000 + 23);
    site.stop().await;
}

#[tokio::test]
async fn a_slow_page_takes_its_time() {
    let options = SiteOptions { products: 60, ..SiteOptions::default() };
    let site = Site::start(options).await.unwrap();
    let client = client();
    let truth = json_at(&client, site.url().join("__truth").unwrap()).await;
    let slow = truth["pages"].as_array().unwrap().iter().find(|page| page["special"] == "slow").unwrap();
    let start = std::time::Instant::now();
    client.get(slow["url"].as_str().unwrap()).send().await.unwrap();
    assert!(start.elapsed() >= Delays::default().slow_from);
    site.stop().await;
}

#[tokio::test]
async fn a_stop_ends_idle_connections_at_once_and_lets_a_slow_page_finish() {
    let slow = std::time::Duration::from_millis(800);
    let delays = Delays { slow_from: slow, slow_to: slow, ..Delays::default() };
    let options = SiteOptions { products: 60, delays, ..SiteOptions::default() };
    let site = Site::start(options).await.unwrap();
    let client = client();
    let truth = json_at(&client, site.url().join("__truth").unwrap()).await;
    let slow = truth["pages"].as_array().unwrap().iter().find(|page| page["special"] == "slow").unwrap()["url"]
        .as_str()
        .unwrap()
        .to_owned();
    let asked = tokio::spawn(async move { client.get(slow).send().await.unwrap().status().as_u16() });
    tokio::time::sleep(std::time::Duration::from_millis(400)).await;
    let start = std::time::Instant::now();
    site.stop().await;
    assert!(start.elapsed() < std::time::Duration::from_millis(1_900), "idle connections do not hold the stop");
    assert_eq!(asked.await.unwrap(), 200);
}

#[tokio::test]
async fn every_page_is_valid_html_except_those_that_are_broken_on_purpose() {
    let site = site(60, 1).await;
    let client = client();
    let truth = json_at(&client, site.url().join("__truth").unwrap()).await;
    let pages =
        truth["pages"].as_array().unwrap().iter().filter(|page| page["status"] == 200 && page.get("first_status").is_none());
    let mut urls: Vec<(String, bool)> =
        pages.map(|page| (page["url"].as_str().unwrap().to_owned(), page["special"] == "broken_html")).collect();
    urls.extend(
        ["account", "cart", "private/x", "search?q=the", "nowhere"]
            .map(|path| (site.url().join(path).unwrap().to_string(), false)),
    );
    let mut broken = 0;
    for (url, is_broken) in urls {
        let page = text(client.get(&url).send().await.unwrap()).await;
        let errors = Html::parse_document(&page).errors;
        if is_broken {
            assert!(errors.len() > 5, "{url}: {errors:?}");
            broken += 1;
        } else if !page.contains("<title>Moved</title>") {
            assert!(errors.is_empty(), "{url}: {errors:?}");
        }
    }
    assert_eq!(broken, 1);
    site.stop().await;
}

#[tokio::test]
async fn a_site_on_ipv6_has_brackets_in_its_address() {
    let options = SiteOptions { listen: "[::1]:0".parse().unwrap(), products: 20, ..SiteOptions::default() };
    // A machine without IPv6 has nothing to show here.
    let Ok(site) = Site::start(options).await else { return };
    assert!(site.url().as_str().starts_with("http://[::1]:"));
    let robots = text(client().get(site.url().join("robots.txt").unwrap()).send().await.unwrap()).await;
    assert!(robots.ends_with(&format!("Sitemap: {}sitemap.xml\n", site.url())), "{robots}");
    site.stop().await;
}
