//! The spiders that come with the `dragline` binary.

mod bench;
mod bookshop;
mod links;
mod quotes;

/// The binary with its spiders.
pub(crate) fn app() -> dragline::App {
    dragline::App::new()
        .spider::<bench::Bench>()
        .spider::<bookshop::Bookshop>()
        .spider::<links::Links>()
        .spider::<quotes::Quotes>()
}
