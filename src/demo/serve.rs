//! The bookshop as a program: tell the address, serve until told to stop.

use std::future::Future;
use std::io::Write;

use super::{Site, SiteError, SiteOptions};

/// Serves the bookshop until `until` is done, then stops it. The first line written to `out` is `listening on ` and the address of
/// the home page; it is flushed as soon as the site answers.
///
/// # Errors
/// Those of [`Site::start`], and [`SiteError::Output`] when the line cannot be written.
pub async fn serve(options: SiteOptions, out: &mut impl Write, until: impl Future<Output = ()>) -> Result<(), SiteError> {
    let site = Site::start(options).await?;
    let told = writeln!(out, "listening on {}", site.url()).and_then(|()| out.flush());
    if let Err(error) = told {
        site.stop().await;
        return Err(SiteError::Output(error));
    }
    until.await;
    site.stop().await;
    Ok(())
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing)]
    use super::*;

    #[tokio::test]
    async fn the_first_line_names_the_address_and_the_future_ends_it() {
        let mut out = Vec::new();
        serve(SiteOptions { products: 5, ..SiteOptions::default() }, &mut out, std::future::ready(())).await.unwrap();
        let line = String::from_utf8(out).unwrap();
        assert!(line.starts_with("listening on http://127.0.0.1:") && line.ends_with("/\n"), "{line}");
    }

    #[tokio::test]
    async fn an_output_that_fails_is_an_error() {
        let mut full: &mut [u8] = &mut [];
        let error =
            serve(SiteOptions { products: 5, ..SiteOptions::default() }, &mut full, std::future::pending()).await.unwrap_err();
        assert!(matches!(error, SiteError::Output(_)));
    }
}
