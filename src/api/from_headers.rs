//! What the headers of a response say of other addresses: links, a file name, how much its links may tell of it.

use http::header::{CONTENT_DISPOSITION, LINK};

use super::response::Response;
use crate::web::content_disposition::ContentDisposition;
use crate::web::link_header::{self, HeaderLink};
use crate::web::referrer_policy::{self, ReferrerPolicy};

impl Response {
    /// The links of `Link` headers (RFC 8288), absolute, in order, without the query parameters of the lease.
    ///
    /// ```
    /// # use dragline::prelude::*;
    /// # fn next(response: &Response) -> Option<Url> {
    /// response.header_links().into_iter().find(|link| link.is("next")).map(|link| link.url)
    /// # }
    /// ```
    #[must_use]
    pub fn header_links(&self) -> Vec<HeaderLink> {
        let values = self.headers().get_all(LINK).iter();
        let mut links: Vec<_> = values.flat_map(|value| link_header::header_links(value.as_bytes(), self.url())).collect();
        for link in &mut links {
            self.clear(&mut link.url);
            if let Some(anchor) = &mut link.anchor {
                self.clear(anchor);
            }
        }
        links
    }

    /// What `Content-Disposition` says of the body (RFC 6266); its file name is the server's and fit for no file system yet.
    #[must_use]
    pub fn content_disposition(&self) -> Option<ContentDisposition> {
        Some(ContentDisposition::from_bytes(self.headers().get(CONTENT_DISPOSITION)?.as_bytes()))
    }

    /// A name under which the body may be kept: that of `Content-Disposition`, else that of the URL's path. One path component
    /// of at most 255 bytes, whatever the server says.
    #[must_use]
    pub fn download_name(&self) -> String {
        let disposition = self.headers().get(CONTENT_DISPOSITION).map(http::HeaderValue::as_bytes);
        crate::web::download_name::download_name(disposition, self.url())
    }

    /// How much requests for the links of this page may tell of it, where the page says so: by `<meta name=referrer>`, else by
    /// a `Referrer-Policy` header. Requests that its callback makes keep to it.
    #[must_use]
    pub fn referrer_policy(&self) -> Option<ReferrerPolicy> {
        let of_page = || referrer_policy::declared(self.page());
        let by_meta = if referrer_policy::may_declare(self.body()) { of_page() } else { None };
        let by_header = || {
            let values = self.headers().get_all("referrer-policy").iter().rev();
            values.filter_map(|value| value.to_str().ok()).find_map(ReferrerPolicy::from_header)
        };
        by_meta.or_else(by_header)
    }
}
