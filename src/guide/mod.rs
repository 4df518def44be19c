//! Pages about the program as a whole, for readers: nothing here is called.

#[doc = include_str!("../../docs/scrapy.md")]
pub mod from_scrapy {}

#[cfg(test)]
mod tests;
