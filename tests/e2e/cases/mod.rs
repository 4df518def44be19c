//! Inputs that broke public crawlers, with the right behaviour: `tests/data/cases`, each by its id.
//!
//! Those that are a function call are tested where the function is.

mod bodies;
mod charset;
mod cookies;
mod leasing;
mod pacing;
mod queue;
mod redirects;
mod reporting;
mod retries;
mod robots;
mod sitemaps;
mod stand;
mod urls;
