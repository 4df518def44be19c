//! Dragline.
mod downloader;
pub mod web;
