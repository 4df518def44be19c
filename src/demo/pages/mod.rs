//! The HTML of the bookshop. Each page is a pure function of the catalog and of what was asked.

mod author;
mod layout;
mod listing;
mod picks;
mod product;
mod shop;

pub(crate) use author::author;
pub(crate) use layout::cover;
pub(crate) use listing::{search, shelf};
pub(crate) use picks::{old_links, staff_picks};
pub(crate) use product::{broken, product, windows_1252};
pub(crate) use shop::{about, account, cart, contact, error, home, login, private};
