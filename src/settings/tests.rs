//! Tests over the whole table and over all layers together.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing)]

mod delivery;
mod secrets;
mod stack;
mod whole_table;

use super::{Layers, SettingsError};

fn errors(layers: Layers) -> Vec<SettingsError> {
    layers.resolve().unwrap_err().iter().cloned().collect()
}
