//! Fields in the query of a request's URL.

use super::Request;

impl Request {
    /// Adds fields to the query of the URL, as a GET form does.
    pub fn query<K: AsRef<str>, V: AsRef<str>>(&mut self, fields: impl IntoIterator<Item = (K, V)>) -> &mut Self {
        let mut fields = fields.into_iter().peekable();
        // Without fields there would be a query that is empty.
        if fields.peek().is_some() {
            self.url.query_pairs_mut().extend_pairs(fields);
        }
        self
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing)]
    use super::*;

    #[test]
    fn fields_are_added_to_the_query_that_is_there() {
        let mut request = Request::get("https://shop.example/s?a=1#top", &()).unwrap();
        request.query([("q", "a b"), ("x", "ä&")]).query(std::iter::empty::<(&str, &str)>());
        assert_eq!(request.url().as_str(), "https://shop.example/s?a=1&q=a+b&x=%C3%A4%26#top");
        let mut plain = Request::get("https://shop.example/s", &()).unwrap();
        plain.query(std::iter::empty::<(&str, &str)>());
        assert_eq!(plain.url().as_str(), "https://shop.example/s");
    }
}
