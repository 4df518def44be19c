//! Pages about the program as a whole, for readers: nothing here is called.

#[doc = include_str!("../../docs/scrapy.md")]
pub mod from_scrapy {}

#[doc = include_str!("../../docs/middlewares.md")]
pub mod middlewares {}

#[cfg(test)]
mod tests;
