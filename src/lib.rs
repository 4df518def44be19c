//! Dragline.
pub mod web;
mod downloader;
