#![allow(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing)]
//! The plane by its calls: behaviours of the contract's section 35 by their numbers, laws, and what a cycle costs.

mod breakers;
mod conservation;
mod cost;
mod leases;
mod manual;
mod proxies;
mod reloads;
mod reports;
mod rotation;
mod support;
